/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_token.c -- make, list and revoke the tokens that the server is used with. A token is shown
 * when it is made, and never again: nobody has it afterwards but whoever it was made for. */
#include "base/instant.h"
#include "cli/cli.h"
#include "cli/output.h"
#include "cli/page.h"

#include <string.h>

/* ---- Showing -------------------------------------------------------------------------------- */

static const char *state_of(const struct token_row *row, int64_t now_us)
{
	if (row->revoked_us)
		return "revoked";
	return row->expires_us && row->expires_us <= now_us ? "expired" : "valid";
}

/* `text` NULL: only what is kept. */
static void row_json(struct str *out, const struct token_row *row, const char *text, int64_t now_us)
{
	obj_begin(out, NULL, '{');
	row_add_json(out, &token_shape, row, ROW_WHOLE);
	if (text)
		obj_text(out, "token", text);
	obj_text(out, "state", state_of(row, now_us));
	obj_end(out, '}');
}

static bool print_row_json(const struct token_row *row, const char *text)
{
	struct str out = STR_INIT(OUTPUT_BYTES_MAX);
	row_json(&out, row, text, env_wall_us(env_system()));
	bool ok = out_line(&out);
	str_release(&out);
	return ok;
}

static void print_made(struct arena *arena, const struct token_row *row, const char *text)
{
	field_print("token", text);
	field_print("id", row->token.id);
	field_print("tenant", row->tenant);
	field_print("client", row->client);
	field_print("roles", token_roles_write(arena, row->roles));
	field_print("expires", row->expires_us ? time_text(arena, row->expires_us) : "never");
}

/* ---- Making --------------------------------------------------------------------------------- */

static const int64_t LASTS_US_MAX = INT64_C(100) * 365 * 86400 * 1000000;

/* CLI_OK, or CLI_USAGE after telling. */
static int read_row(const struct args *args, struct arena *arena, struct token_row *ret)
{
	const char *const *values = args->values;
	const char *roles = values[OPT_ROLES] ? values[OPT_ROLES] : "client";
	struct ibid_err err = {0};
	int64_t lasts_us = 0;
	*ret = (struct token_row){
	    .tenant = values[OPT_TENANT],
	    .client = values[OPT_CLIENT],
	    .created_by = values[OPT_BY] ? values[OPT_BY] : user_name(arena),
	    .created_us = env_wall_us(env_system()),
	};
	if (name_check("tenant", ret->tenant, &err) || name_check("client", ret->client, &err) ||
	    name_check("by", ret->created_by, &err))
		return usage_error(args->command, "%s", err.text);
	if (!token_roles_read(roles, &ret->roles))
		return usage_error(args->command, "--roles is one or more of %s",
		                   option_meaning(args->command, OPT_ROLES));
	if (values[OPT_EXPIRES] &&
	    (!duration_read(values[OPT_EXPIRES], &lasts_us) || lasts_us > LASTS_US_MAX))
		return usage_error(args->command,
		                   "--expires is a duration such as 12h or 90d, 100y at most");
	ret->expires_us = lasts_us ? ret->created_us + lasts_us : 0;
	return CLI_OK;
}

/* False, after telling: it was made, and nobody has seen it. */
static bool show_made(const struct args *args, struct arena *arena, const struct token_row *row,
                      const char *text)
{
	bool shown = true;
	if (args_has(args, OPT_JSON))
		shown = print_row_json(row, text);
	else
		print_made(arena, row, text);
	shown = shown && out_flush();
	if (shown)
		say("keep the token now: it is not kept here, and not shown again");
	else
		say("the token could not be shown: revoke %s and make another", row->token.id);
	return shown;
}

int cmd_token_create(const struct args *args)
{
	struct arena arena = {0};
	struct ibid_err err = {0};
	struct store *store = NULL;
	struct token_row row;
	char text[TOKEN_TEXT_SIZE];
	int exit = read_row(args, &arena, &row);
	if (exit) {
		arena_release(&arena);
		return exit;
	}
	row.token = token_make(env_system(), text);
	enum ibid_code code = open_store(args, false, true, &store, &err);
	if (!code)
		code = store_put_token(store, &row, &err);
	if (code)
		exit = say_err(&err);
	else if (!show_made(args, &arena, &row, text))
		exit = CLI_ERROR;
	store_close(store);
	arena_release(&arena);
	return exit;
}

/* ---- Listing and revoking ------------------------------------------------------------------- */

static enum ibid_code read_rows(struct store *store, struct arena *arena, const void *filter,
                                void **ret, size_t *ret_count, struct ibid_err *err)
{
	struct token_row *rows = NULL;
	enum ibid_code code = store_list_tokens(store, arena, filter, &rows, ret_count, err);
	*ret = rows;
	return code;
}

static void listed_json(struct str *out, struct arena *arena, const void *row, int64_t now_us)
{
	(void)arena;
	row_json(out, row, NULL, now_us);
}

static void add_row(struct table *table, const void *item, int64_t now_us)
{
	struct arena *arena = table->arena;
	const struct token_row *row = item;
	const char *cells[] = {row->token.id,
	                       state_of(row, now_us),
	                       row->tenant,
	                       row->client,
	                       token_roles_write(arena, row->roles),
	                       time_text(arena, row->created_us),
	                       row->created_by,
	                       time_text(arena, row->expires_us),
	                       time_text(arena, row->revoked_us)};
	table_add(table, cells);
}

static const char *row_place(struct arena *arena, const void *row)
{
	(void)arena;
	return ((const struct token_row *)row)->token.id;
}

int cmd_token_list(const struct args *args)
{
	static const char *const heads[] = {"TOKEN",   "STATE", "TENANT",  "CLIENT", "ROLES",
	                                    "CREATED", "BY",    "EXPIRES", "REVOKED"};
	enum { COLUMNS = sizeof heads / sizeof *heads };
	static const struct listing listing = {
	    .row_size = sizeof(struct token_row),
	    .none = "no tokens",
	    .heads = heads,
	    .columns = COLUMNS,
	    .painted = COLUMNS,
	    .read = read_rows,
	    .row_json = listed_json,
	    .add_row = add_row,
	    .place = row_place,
	};
	struct arena arena = {0};
	struct token_filter filter = {.tenant = args->values[OPT_TENANT],
	                              .after = args->values[OPT_AFTER]};
	int exit = read_limit(args, &filter.limit);
	if (!exit && filter.after && !token_id_ok(filter.after))
		exit = usage_error(
		    args->command,
		    "--after is the id of a token, 16 hex digits: the page before names it at its end");
	if (!exit)
		exit = list_show(args, &arena, &listing, &filter, &filter.limit);
	arena_release(&arena);
	return exit;
}

int cmd_token_revoke(const struct args *args)
{
	struct arena arena = {0};
	struct ibid_err err = {0};
	struct store *store = NULL;
	struct token_row row;
	int exit = CLI_OK;
	const char *id = args->operand_count ? args->operands[0] : NULL;
	if (!id)
		return usage_error(args->command,
		                   "ID is missing: `ibid token list` shows the ids of tokens");
	/* What was given may be a secret: it is not repeated. */
	if (!token_id_ok(id))
		return usage_error(args->command, "the id of a token has 16 hex digits: `ibid token list` "
		                                  "shows it");
	const char *by = args_has(args, OPT_BY) ? args->values[OPT_BY] : user_name(&arena);
	enum ibid_code code = open_store(args, false, true, &store, &err);
	if (!code)
		code = store_revoke_token(store, id, by, env_wall_us(env_system()), &err);
	if (!code)
		code = store_get_token(store, &arena, id, &row, &err);
	if (code == IBID_NOT_FOUND && store)
		err_set(&err, code, "there is no token %s: `ibid token list` shows those that there are",
		        id);
	if (code)
		exit = say_err(&err);
	else if (!args_has(args, OPT_JSON))
		out_textf("revoked    %s by %s\n", time_text(&arena, row.revoked_us), row.revoked_by);
	else if (!print_row_json(&row, NULL))
		exit = CLI_ERROR;
	store_close(store);
	arena_release(&arena);
	return exit;
}
