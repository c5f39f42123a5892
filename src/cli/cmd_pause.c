/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_pause.c -- pause the relay, a destination or an event type; let it go on; list what is. */
#include "base/instant.h"
#include "cli/cli.h"
#include "cli/output.h"
#include "cli/page.h"
#include "cli/pause.h"

/* ---- Telling -------------------------------------------------------------------------------- */

void pause_json(struct str *out, struct arena *arena, const struct pause_row *row)
{
	obj_begin(out, NULL, '{');
	obj_text(out, "kind", pause_kind_name(row->kind));
	obj_text(out, "name", *row->name ? row->name : NULL);
	obj_text(out, "tenant", *row->tenant ? row->tenant : NULL);
	obj_text(out, "source", row->by_relay ? "relay" : "person");
	obj_text(out, "by", row->by);
	obj_text(out, "reason", row->reason);
	obj_text(out, "since", time_text(arena, row->since_us));
	obj_end(out, '}');
}

const char *pause_line(struct arena *arena, const struct pause_row *row)
{
	return arena_printf(arena, "%s%s%s since %s, by %s: %s",
	                    pause_subject(arena, row->kind, row->name),
	                    *row->tenant ? " of tenant " : "", row->tenant,
	                    time_text(arena, row->since_us), row->by, row->reason);
}

void pauses_json(struct str *out, struct arena *arena, const struct pause_row *rows, size_t count)
{
	obj_begin(out, "paused", '[');
	for (size_t i = 0; i < count; i++)
		pause_json(out, arena, &rows[i]);
	obj_end(out, ']');
}

void pause_say(struct arena *arena, const struct pause_row *row)
{
	say("paused: %s; to let it go on: ibid resume %s%s%s --reason R", pause_line(arena, row),
	    pause_kind_name(row->kind), *row->name ? " " : "", row->name);
}

static int tell(const struct args *args, struct arena *arena, const struct pause_wish *wish,
                const struct pause_row *row)
{
	const char *what = pause_subject(arena, row->kind, row->name);
	const char *word = wish->resume ? "resumed" : "paused";
	struct str out = STR_INIT(OUTPUT_BYTES_MAX);
	bool ok = true;
	if (args_has(args, OPT_JSON)) {
		obj_begin(&out, NULL, '{');
		obj_text(&out, "done", word);
		obj_text(&out, "kind", pause_kind_name(row->kind));
		obj_text(&out, "name", *row->name ? row->name : NULL);
		obj_text(&out, "tenant", *row->tenant ? row->tenant : NULL);
		obj_text(&out, "by", wish->actor->client);
		obj_end(&out, '}');
		ok = out_line(&out);
	} else {
		out_textf("%-10s %s%s%s  by %s\n", word, what ? what : "",
		          *row->tenant ? " of tenant " : "", row->tenant, wish->actor->client);
	}
	str_release(&out);
	return ok ? CLI_OK : CLI_ERROR;
}

static int tell_not(enum ibid_code code, const struct ibid_err *err)
{
	(void)say_err(err);
	return code == IBID_REJECTED  ? CLI_REJECTED
	       : code == IBID_UNKNOWN ? CLI_UNKNOWN
	       : code == IBID_BUSY    ? CLI_AGAIN
	                              : CLI_ERROR;
}

/* ---- Doing ---------------------------------------------------------------------------------- */

/* Event types are checked where there are contracts. */
static enum ibid_code open_both(const struct args *args, enum pause_kind kind, struct store **ret,
                                struct contracts **ret_contracts, struct ibid_err *err)
{
	const char *dir = kind == PAUSE_EVENT ? args->values[OPT_CONTRACTS] : NULL;
	enum ibid_code code = dir ? load_contracts(dir, ret_contracts, err) : IBID_OK;
	return code ? code : open_store(args, false, true, ret, err);
}

static int act(const struct args *args, enum pause_kind kind, bool resume)
{
	struct arena arena = {0};
	struct ibid_err err = {0};
	struct store *store = NULL;
	struct contracts *contracts = NULL;
	struct actor actor = {0};
	struct pause_done done = {0};
	struct pause_wish wish = {.kind = kind,
	                          .name = args->operand_count ? args->operands[0] : NULL,
	                          .reason = args->values[OPT_REASON],
	                          .resume = resume,
	                          .actor = &actor};
	if (kind != PAUSE_RELAY && !args->operand_count)
		return usage_error(args->command, "name the %s", pause_kind_name(kind));
	enum ibid_code code = open_both(args, kind, &store, &contracts, &err);
	if (!code)
		code = find_actor(store, &arena, &actor, &err);
	const struct pausing pausing = {store, env_system(), contracts};
	if (!code)
		code = pause_act(&pausing, &arena, &wish, &done, &err);
	int exit = code ? tell_not(code, &err) : tell(args, &arena, &wish, &done.row);
	store_close(store);
	contracts_free(contracts);
	arena_release(&arena);
	return exit;
}

int cmd_pause_relay(const struct args *args)
{
	return act(args, PAUSE_RELAY, false);
}

int cmd_pause_destination(const struct args *args)
{
	return act(args, PAUSE_DESTINATION, false);
}

int cmd_pause_event(const struct args *args)
{
	return act(args, PAUSE_EVENT, false);
}

int cmd_resume_relay(const struct args *args)
{
	return act(args, PAUSE_RELAY, true);
}

int cmd_resume_destination(const struct args *args)
{
	return act(args, PAUSE_DESTINATION, true);
}

int cmd_resume_event(const struct args *args)
{
	return act(args, PAUSE_EVENT, true);
}

/* ---- Looking -------------------------------------------------------------------------------- */

static enum ibid_code read_rows(struct store *store, struct arena *arena, const void *tenant,
                                void **ret, size_t *ret_count, struct ibid_err *err)
{
	struct pause_row *rows = NULL;
	enum ibid_code code = store->ops->list_pauses(store, arena, tenant, &rows, ret_count, err);
	*ret = rows;
	return code;
}

static void listed_json(struct str *out, struct arena *arena, const void *row, int64_t now_us)
{
	(void)now_us;
	pause_json(out, arena, row);
}

static void add_row(struct table *table, const void *item, int64_t now_us)
{
	struct arena *arena = table->arena;
	const struct pause_row *row = item;
	const char *cells[] = {pause_kind_name(row->kind),
	                       *row->name ? row->name : NULL,
	                       *row->tenant ? row->tenant : NULL,
	                       time_text(arena, row->since_us),
	                       row->by,
	                       row->reason};
	(void)now_us;
	table_add(table, cells);
}

int cmd_pause_list(const struct args *args)
{
	static const char *const heads[] = {"PAUSED", "NAME", "TENANT", "SINCE", "BY", "REASON"};
	enum { COLUMNS = sizeof heads / sizeof *heads };
	static const struct listing listing = {
	    .row_size = sizeof(struct pause_row),
	    .none = "nothing is paused",
	    .heads = heads,
	    .columns = COLUMNS,
	    .painted = COLUMNS,
	    .read = read_rows,
	    .row_json = listed_json,
	    .add_row = add_row,
	};
	struct arena arena = {0};
	int exit = list_show(args, &arena, &listing, args->values[OPT_TENANT], NULL);
	arena_release(&arena);
	return exit;
}
