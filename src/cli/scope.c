/* SPDX-License-Identifier: Apache-2.0 */
/* scope.c -- the scope of a command's identity, by the names of its parts: client=web,actor=u7.
 *
 * The store has it as a canonical JSON object, which is taken as well. Which parts there are is
 * said by the contract, and seen in the commands that were sent with a key: no contract is needed.
 */
#include "base/json.h"
#include "cli/cli.h"
#include "cli/output.h"
#include "cli/page.h"

#include <string.h>

enum { PARTS_MAX = 8, SCOPE_TEXT_MAX = 4096 };

/* ---- Showing -------------------------------------------------------------------------------- */

/* The parts of a scope, one after the other; NULL: it has none. */
static const struct json *parts_of(struct arena *arena, const char *scope)
{
	struct json *root = NULL;
	bool object = *scope && !json_read(arena, scope, strlen(scope), 0, &root, NULL) &&
	              root->type == JSON_OBJECT;
	return object ? root->child : NULL;
}

const char *scope_text(struct arena *arena, const char *scope)
{
	struct str out = STR_INIT(SCOPE_TEXT_MAX);
	const struct json *part = parts_of(arena, scope);
	const char *text = part ? NULL : scope;
	for (; part && !text; part = part->next) {
		if (!part->text || strchr(part->text, ','))
			text = scope; /* by names it would be read otherwise */
		else
			str_addf(&out, "%s%s=%s", out.size ? "," : "", part->name, part->text);
	}
	if (!text)
		text = arena_strdup(arena, str_text(&out));
	str_release(&out);
	return text;
}

/* ---- Finding -------------------------------------------------------------------------------- */

/* What --scope says. */
struct wish {
	struct {
		const char *name, *value;
	} parts[PARTS_MAX];
	size_t count;
};

static enum ibid_code read_wish(struct arena *arena, const char *given, struct wish *ret,
                                struct ibid_err *err)
{
	char *rest = arena_strdup(arena, given);
	*ret = (struct wish){0};
	while (rest) {
		char *part = strsep(&rest, ","), *value = strchr(part, '=');
		if (!value || value == part || !value[1] || ret->count == PARTS_MAX)
			return err_set(err, IBID_INVALID,
			               "--scope names the parts of the scope, such as client=web,actor=u7, and "
			               "not \"%.100s\"",
			               given);
		*value = '\0';
		ret->parts[ret->count].name = part;
		ret->parts[ret->count++].value = value + 1;
	}
	return ret->count ? IBID_OK : err_set(err, IBID_NOMEM, "out of memory");
}

static const struct json *part_of(struct arena *arena, const struct command_row *row,
                                  const char *name)
{
	const struct json *part = parts_of(arena, row->identity.scope);
	while (part && strcmp(part->name, name) != 0)
		part = part->next;
	return part;
}

static bool matches(struct arena *arena, const struct command_row *row, const struct wish *wish)
{
	for (size_t i = 0; i < wish->count; i++) {
		const struct json *part = part_of(arena, row, wish->parts[i].name);
		if (!part || !part->text || strcmp(part->text, wish->parts[i].value) != 0)
			return false;
	}
	return true;
}

/* A name that the contract does not have is told with those that it has. */
static enum ibid_code check_names(struct arena *arena, const struct command_row *row,
                                  const struct wish *wish, struct ibid_err *err)
{
	struct str names = STR_INIT(SCOPE_TEXT_MAX);
	const char *unknown = NULL;
	for (size_t i = 0; i < wish->count && !unknown; i++)
		if (!part_of(arena, row, wish->parts[i].name))
			unknown = wish->parts[i].name;
	for (const struct json *part = parts_of(arena, row->identity.scope); part; part = part->next)
		str_addf(&names, "%s%s", names.size ? ", " : "", part->name);
	enum ibid_code code = IBID_OK;
	if (unknown && names.size)
		code = err_set(err, IBID_INVALID,
		               "--scope: the scope of %s has no part \"%.100s\"; it has %s",
		               row->identity.operation, unknown, str_text(&names));
	else if (unknown)
		code = err_set(err, IBID_INVALID, "the contract of %s declares no scope: leave --scope out",
		               row->identity.operation);
	str_release(&names);
	return code;
}

/* More than one is left: which parts are missing is seen in two of them. */
static enum ibid_code choose(struct arena *arena, const struct command_row *rows, size_t count,
                             const struct wish *wish, const struct command_row **ret,
                             struct ibid_err *err)
{
	const struct command_row *one = NULL, *other = NULL;
	for (size_t i = 0; i < count; i++) {
		if (!matches(arena, &rows[i], wish))
			continue;
		other = one;
		one = &rows[i];
	}
	if (!one)
		return err_set(err, IBID_NOT_FOUND,
		               "no command %s with key %s has that scope; one has --scope '%s'",
		               rows[0].identity.operation, rows[0].identity.key,
		               scope_text(arena, rows[0].identity.scope));
	if (other)
		return err_set(err, IBID_INVALID,
		               "several senders used key %s: give the ID, or --scope '%s' or '%s'",
		               one->identity.key, scope_text(arena, one->identity.scope),
		               scope_text(arena, other->identity.scope));
	*ret = one;
	return IBID_OK;
}

enum ibid_code command_by_key(struct store *store, struct arena *arena, const struct args *args,
                              struct identity *ret, struct ibid_err *err)
{
	const char *const *values = args->values, *scope = values[OPT_SCOPE];
	struct command_filter filter = {.tenant = values[OPT_TENANT],
	                                .operation = values[OPT_OPERATION],
	                                .key = values[OPT_KEY],
	                                .state = -1,
	                                .limit = LIMIT_MAX};
	const struct command_row *found = NULL;
	struct command_row *rows = NULL;
	struct wish wish = {0};
	size_t count = 0;
	*ret = (struct identity){filter.tenant, filter.operation, scope, filter.key};
	if (scope && (!*scope || *scope == '{'))
		return IBID_OK;
	enum ibid_code code = scope ? read_wish(arena, scope, &wish, err) : IBID_OK;
	if (!code)
		code = store_list_commands(store, arena, &filter, &rows, &count, err);
	if (!code && !count)
		code = err_set(err, IBID_NOT_FOUND,
		               "tenant %s has no command %s with key %s; `ibid command list --tenant %s` "
		               "shows those that there are",
		               filter.tenant, filter.operation, filter.key, filter.tenant);
	if (!code)
		code = check_names(arena, &rows[0], &wish, err);
	if (!code)
		code = choose(arena, rows, count, &wish, &found, err);
	if (!code)
		ret->scope = found->identity.scope;
	return code;
}
