/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_command.c -- look at commands: one with everything that belongs to it, or a list.
 *
 * A key is shown as it is: whoever may open the store may see it. */
#include "cli/cli.h"
#include "cli/output.h"
#include "cli/page.h"
#include "command/command_json.h"
#include "command/external_key.h"
#include "command/keep.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

enum { EVENTS_MAX = 10000, DUPLICATES_MAX = 1000, ITEMS_MAX = 100, STATE_MAX = 32 };

/* One command and what belongs to it. */
struct dossier {
	struct command_row row;
	struct event_row *events;
	size_t event_count;
	struct audit_row *audit;
	size_t audit_count;
	struct key_conflict_row *conflicts;
	size_t conflict_count;
	struct duplicate_row duplicates; /* count 0: none */
	struct duplicate_seen_row *seen;
	size_t seen_count;
	struct exception_row *items; /* of human work about it: the newest first */
	size_t item_count;
	bool asks_payload;
	const char *payload; /* NULL: none is kept, or nobody asked */
};

/* ---- Values as text ------------------------------------------------------------------------- */

/* To the second, for tables: "2026-11-15T10:00:00Z". */
static const char *short_time(struct arena *arena, int64_t us)
{
	const char *text = time_text(arena, us);
	return text ? arena_printf(arena, "%.19sZ", text) : NULL;
}

static const char *hash_text(struct arena *arena, const struct sha256 *hash)
{
	char text[SHA256_TEXT_SIZE];
	sha256_write(hash, text);
	return arena_strdup(arena, text);
}

static const char *number_text(struct arena *arena, int64_t number)
{
	return number ? arena_printf(arena, "%lld", (long long)number) : NULL;
}

static const char *reason_text(struct arena *arena, const struct command_row *row)
{
	if (!row->reason || !row->text)
		return row->reason ? row->reason : row->text;
	return arena_printf(arena, "%s: %s", row->reason, row->text);
}

/* What a command that has no outcome waits for (B11). */
static const char *awaited(struct arena *arena, const struct command_row *row)
{
	if (row->state == COMMAND_UNKNOWN)
		return "a person: nobody knows whether it was done";
	if (command_unbound(row))
		return "the corrected payload: the key is bound to none yet";
	if (row->state != COMMAND_IN_PROGRESS)
		return NULL;
	if (row->stale)
		return "recovery: its worker went silent; see `ibid command recover`";
	if (!row->lease_until_us)
		return "its worker: locked, because its lease has no end";
	return arena_printf(arena, "its worker, until %s", time_text(arena, row->lease_until_us));
}

/* ---- JSON ----------------------------------------------------------------------------------- */

static void row_json(struct str *out, struct arena *arena, const struct command_row *row,
                     bool whole)
{
	const struct command_shown shown = {row, row->text, awaited(arena, row), whole};
	command_json(out, arena, &shown, ROW_WHOLE);
}

static void duplicates_json(struct str *out, const struct dossier *dossier)
{
	obj_begin(out, "duplicates", '{');
	row_add_json(out, &duplicate_shape, &dossier->duplicates, ROW_WHOLE);
	row_add_list(out, "listed", &duplicate_seen_shape, dossier->seen, dossier->seen_count,
	             ROW_WHOLE);
	obj_end(out, '}');
}

/* What a service said, time and again, that did not tell whether the command was carried out. */
static void service_answers_json(struct str *out, struct arena *arena,
                                 const struct dossier *dossier)
{
	obj_begin(out, "serviceAnswers", '[');
	for (size_t i = 0; i < dossier->item_count; i++) {
		const struct exception_row *item = &dossier->items[i];
		if (!item->service_answer)
			continue;
		obj_begin(out, NULL, '{');
		obj_text(out, "at", time_text(arena, item->opened_us));
		obj_text(out, "exceptionId", id_text(arena, item->id));
		obj_text(out, "answer", item->service_answer);
		obj_end(out, '}');
	}
	obj_end(out, ']');
}

static bool print_dossier_json(struct arena *arena, const struct dossier *dossier)
{
	struct str out = STR_INIT(OUTPUT_BYTES_MAX);
	obj_begin(&out, NULL, '{');
	row_json(&out, arena, &dossier->row, true);
	if (dossier->asks_payload)
		obj_raw(&out, "payload", dossier->payload);
	service_answers_json(&out, arena, dossier);
	row_add_list(&out, "events", &event_shape, dossier->events, dossier->event_count, ROW_WHOLE);
	if (dossier->audit_count)
		row_add_object(&out, "audit", &audit_shape, &dossier->audit[0], ROW_WHOLE);
	row_add_list(&out, "conflicts", &key_conflict_shape, dossier->conflicts,
	             dossier->conflict_count, ROW_WHOLE);
	duplicates_json(&out, dossier);
	obj_end(&out, '}');
	bool ok = out_line(&out);
	str_release(&out);
	return ok;
}

/* ---- Text ----------------------------------------------------------------------------------- */

static void print_row(struct arena *arena, const struct command_row *row)
{
	const char *scope = row->identity.scope, *state = command_state_name(row->state);
	field_print("command", id_text(arena, row->id));
	field_print("tenant", row->identity.tenant);
	field_print("operation", row->identity.operation);
	field_print("scope", *scope ? scope_text(arena, scope) : NULL);
	field_print("key", row->identity.key);
	field_print("external key", external_key_of_row(arena, row));
	field_begin("state");
	out_painted(paint_of_word(state), state);
	out_textf("%s\n", row->linked ? ", linked to what was there" : "");
	field_print("awaits", awaited(arena, row));
	field_print("lease", time_text(arena, row->lease_until_us));
	field_print("lease token", number_text(arena, row->lease_token));
	field_print("status", number_text(arena, row->status));
	field_print("reason", reason_text(arena, row));
	field_print("resource", thing_text(arena, row->resource_type, row->resource_id));
	field_print("body", line_text(arena, row->body));
	field_print("contract", arena_printf(arena, "version %d", row->contract_version));
	const char *hash = hash_text(arena, &row->fingerprint);
	field_print("fingerprint", command_unbound(row)
	                               ? arena_printf(arena, "%s (refused)", hash)
	                               : arena_printf(arena, "%s (scheme %d)", hash, row->scheme));
	field_print("attempts", number_text(arena, row->attempts));
	field_print("client", row->client);
	field_print("actor", row->actor);
	field_print("created", time_text(arena, row->created_us));
	field_print("finished", time_text(arena, row->finished_us));
	field_print("expires", time_text(arena, row->expires_us));
}

static void print_origin(const struct command_row *row)
{
	field_print("correlation", row->correlation_id);
	field_print("causation", row->causation_id);
	field_print("trace", row->traceparent);
	field_print("tracestate", row->tracestate);
}

static void print_events(struct arena *arena, const struct dossier *dossier)
{
	section_print("events", dossier->event_count);
	for (size_t i = 0; i < dossier->event_count; i++) {
		const struct event_row *event = &dossier->events[i];
		field_print("  type", event->type);
		field_print("  aggregate", arena_printf(arena, "%s %s, version %lld", event->aggregate_type,
		                                        event->aggregate_id, (long long)event->version));
		field_print("  payload", event->payload);
		field_print("  topic", event->topic);
		field_print("  partition key", event->partition_key);
		field_print("  id", id_text(arena, event->id));
		field_print("  key", event->key);
		field_print("  correlation", event->correlation_id);
		field_print("  causation", event->causation_id);
		field_print("  trace", event->traceparent);
		field_print("  tracestate", event->tracestate);
		field_print("  at", time_text(arena, event->at_us));
	}
}

static void print_audit(struct arena *arena, const struct dossier *dossier)
{
	section_print("audit trail", dossier->audit_count);
	for (size_t i = 0; i < dossier->audit_count; i++) {
		const struct audit_row *audit = &dossier->audit[i];
		field_print("  fact", audit->fact);
		field_print("  outcome", audit->outcome);
		field_print("  resource", thing_text(arena, audit->resource_type, audit->resource_id));
		field_print("  client", audit->client);
		field_print("  actor", audit->actor);
		field_print("  id", id_text(arena, audit->id));
		field_print("  correlation", audit->correlation_id);
		field_print("  causation", audit->causation_id);
		field_print("  trace", audit->traceparent);
		field_print("  tracestate", audit->tracestate);
		field_print("  at", time_text(arena, audit->at_us));
	}
}

static void print_conflicts(struct arena *arena, const struct dossier *dossier)
{
	section_print("conflicts: the same key with another payload", dossier->conflict_count);
	for (size_t i = 0; i < dossier->conflict_count; i++) {
		const struct key_conflict_row *conflict = &dossier->conflicts[i];
		field_print("  payload", hash_text(arena, &conflict->fingerprint));
		field_print("  times", number_text(arena, conflict->count));
		field_print("  client", *conflict->client ? conflict->client : NULL);
		field_print("  actor", *conflict->actor ? conflict->actor : NULL);
		field_print("  first", time_text(arena, conflict->first_us));
		field_print("  last", time_text(arena, conflict->last_us));
	}
}

static void print_duplicates(struct arena *arena, const struct dossier *dossier)
{
	const struct duplicate_row *row = &dossier->duplicates;
	section_print("duplicates", (size_t)row->count);
	field_print("  first", time_text(arena, row->first_us));
	field_print("  last", time_text(arena, row->last_us));
	field_print("  not listed", number_text(arena, row->unlisted));
	for (size_t i = 0; i < dossier->seen_count; i++) {
		const struct duplicate_seen_row *seen = &dossier->seen[i];
		const char *at = short_time(arena, seen->at_us);
		out_textf("  %s  %-11s  client %s, actor %s\n", at ? at : "-", seen->decision,
		          *seen->client ? seen->client : "-", *seen->actor ? seen->actor : "-");
	}
}

static bool print_dossier(struct arena *arena, const struct dossier *dossier)
{
	print_row(arena, &dossier->row);
	print_origin(&dossier->row);
	if (dossier->asks_payload)
		field_print("payload", dossier->payload ? dossier->payload : "(none is kept)");
	for (size_t i = 0; i < dossier->item_count; i++)
		field_print("service said", line_text(arena, dossier->items[i].service_answer));
	print_events(arena, dossier);
	print_audit(arena, dossier);
	print_conflicts(arena, dossier);
	print_duplicates(arena, dossier);
	return true;
}

/* ---- show ----------------------------------------------------------------------------------- */

static enum ibid_code find_row(struct store *store, struct arena *arena, const struct args *args,
                               const struct uuid *id, struct command_row *ret, struct ibid_err *err)
{
	const char *tenant = args->values[OPT_TENANT];
	struct identity identity;
	enum ibid_code code = id ? IBID_OK : command_by_key(store, arena, args, &identity, err);
	if (code)
		return code;
	code = store_get_command(store, arena, tenant, id, id ? NULL : &identity, ret, err);
	if (code == IBID_NOT_FOUND)
		return err_set(err, code,
		               "tenant %s has no such command; `ibid command list --tenant %s` shows those "
		               "that there are",
		               tenant, tenant);
	return code;
}

static enum ibid_code read_dossier(struct store *store, struct arena *arena,
                                   const struct args *args, const struct uuid *id,
                                   struct dossier *ret, struct ibid_err *err)
{
	const char *tenant = args->values[OPT_TENANT];
	enum ibid_code code = find_row(store, arena, args, id, &ret->row, err);
	const struct uuid *found = &ret->row.id;
	if (!code)
		code = store_list_events(store, arena, tenant, found, EVENTS_MAX, &ret->events,
		                         &ret->event_count, err);
	if (!code)
		code = store_list_audit(store, arena, tenant, found, 1, &ret->audit, &ret->audit_count,
		                        err);
	if (!code && ret->audit_count)
		command_take_origin(&ret->row, ret->audit);
	if (!code)
		code = store_list_evidence(store, arena, tenant, found, &ret->conflicts,
		                           &ret->conflict_count, err);
	if (!code)
		code = store_get_duplicates(store, arena, tenant, found, &ret->duplicates, err);
	if (!code && args_has(args, OPT_DUPLICATES))
		code = store_list_duplicates(store, arena, tenant, found, DUPLICATES_MAX, &ret->seen,
		                             &ret->seen_count, err);
	return code;
}

static enum ibid_code read_payload(struct store *store, struct arena *arena,
                                   const struct keyring *keys, struct dossier *ret,
                                   struct ibid_err *err)
{
	size_t size;
	ret->asks_payload = true;
	enum ibid_code code = keep_read(store, arena, &ret->row, keys, &ret->payload, &size, err);
	return code == IBID_NOT_FOUND && !ret->payload ? IBID_OK : code;
}

/* A list has no answers of services: each item is read. */
static enum ibid_code read_items(struct store *store, struct arena *arena,
                                 const struct keyring *keys, struct dossier *ret,
                                 struct ibid_err *err)
{
	const struct exception_filter filter = {.tenant = ret->row.identity.tenant,
	                                        .queue = -1,
	                                        .state = -1,
	                                        .subject_type = "command",
	                                        .subject_id = id_text(arena, ret->row.id),
	                                        .limit = ITEMS_MAX};
	enum ibid_code code = store_list_exceptions(store, arena, &filter, &ret->items,
	                                            &ret->item_count, err);
	for (size_t i = 0; !code && i < ret->item_count; i++) {
		struct exception_row *item = &ret->items[i];
		code = store_get_exception(store, arena, item->tenant, &item->id, item, err);
		if (!code)
			item->service_answer = keep_read_service_answer(arena, item, keys);
	}
	return code;
}

/* What may be sealed. */
static enum ibid_code read_kept(struct store *store, struct arena *arena, const struct args *args,
                                struct dossier *ret, struct ibid_err *err)
{
	const char *file = args->values[OPT_KEY_FILE];
	struct keyring *keys = NULL;
	enum ibid_code code = file && *file ? keyring_read(file, &keys, err) : IBID_OK;
	if (!code && args_has(args, OPT_PAYLOAD))
		code = read_payload(store, arena, keys, ret, err);
	if (!code)
		code = read_items(store, arena, keys, ret, err);
	keyring_free(keys);
	return code;
}

/* An id, or operation and key; not both, not half of it. */
static bool names_one(const struct args *args)
{
	bool operation = args_has(args, OPT_OPERATION), key = args_has(args, OPT_KEY);
	if (args->operand_count)
		return !operation && !key && !args_has(args, OPT_SCOPE);
	return operation && key;
}

int cmd_command_show(const struct args *args)
{
	struct arena arena = {0};
	struct ibid_err err = {0};
	struct store *store = NULL;
	struct dossier dossier = {0};
	struct uuid id;
	int exit = CLI_OK;
	if (!names_one(args))
		return usage_error(
		    args->command,
		    "name the command by its ID, which `ibid command list` shows, or by --operation "
		    "and --key");
	if (args->operand_count && !uuid_read(args->operands[0], &id))
		return usage_error(args->command,
		                   "\"%.100s\" is not the id of a command: `ibid command list` shows ids",
		                   args->operands[0]);
	enum ibid_code code = open_store(args, false, true, &store, &err);
	if (!code)
		code = read_dossier(store, &arena, args, args->operand_count ? &id : NULL, &dossier, &err);
	if (!code)
		code = read_kept(store, &arena, args, &dossier, &err);
	if (code)
		exit = say_err(&err);
	else if (!(args_has(args, OPT_JSON) ? print_dossier_json : print_dossier)(&arena, &dossier))
		exit = CLI_ERROR;
	store_close(store);
	arena_release(&arena);
	return exit;
}

/* ---- list ----------------------------------------------------------------------------------- */

static bool read_state(const char *given, int *ret)
{
	char name[STATE_MAX];
	size_t size = strlen(given);
	enum command_state state;
	if (size >= sizeof name)
		return false;
	for (size_t i = 0; i <= size; i++)
		name[i] = (char)(given[i] == '-' ? '_' : toupper((unsigned char)given[i]));
	if (!command_state_read(name, &state))
		return false;
	*ret = (int)state;
	return true;
}

/* CLI_OK, or CLI_USAGE after telling. */
static int read_filter(const struct args *args, struct command_filter *ret, struct uuid *after)
{
	const char *const *values = args->values;
	*ret = (struct command_filter){
	    .tenant = values[OPT_TENANT],
	    .operation = values[OPT_OPERATION],
	    .key = values[OPT_KEY],
	    .state = -1,
	};
	if (values[OPT_STATE] && !read_state(values[OPT_STATE], &ret->state))
		return usage_error(args->command, "--state is one of %s",
		                   option_meaning(args->command, OPT_STATE));
	return read_page(args, "a command", &ret->limit, after, &ret->after);
}

static enum ibid_code read_rows(struct store *store, struct arena *arena, const void *filter,
                                void **ret, size_t *ret_count, struct ibid_err *err)
{
	struct command_row *rows = NULL;
	enum ibid_code code = store_list_commands(store, arena, filter, &rows, ret_count, err);
	*ret = rows;
	return code;
}

static void listed_json(struct str *out, struct arena *arena, const void *row, int64_t now_us)
{
	(void)now_us;
	obj_begin(out, NULL, '{');
	row_json(out, arena, row, false);
	obj_end(out, '}');
}

static void add_row(struct table *table, const void *item, int64_t now_us)
{
	struct arena *arena = table->arena;
	const struct command_row *row = item;
	const char *resource = thing_text(arena, row->resource_type, row->resource_id);
	const char *cells[] = {id_text(arena, row->id),
	                       short_time(arena, row->created_us),
	                       row->identity.tenant,
	                       row->identity.operation,
	                       row->identity.key,
	                       command_state_name(row->state),
	                       number_text(arena, row->status),
	                       row->reason ? reason_text(arena, row) : resource};
	(void)now_us;
	table_add(table, cells);
}

static const char *row_place(struct arena *arena, const void *row)
{
	return id_text(arena, ((const struct command_row *)row)->id);
}

int cmd_command_list(const struct args *args)
{
	static const char *const heads[] = {"COMMAND", "CREATED", "TENANT", "OPERATION",
	                                    "KEY",     "STATE",   "STATUS", "RESOURCE OR REASON"};
	enum { COLUMNS = sizeof heads / sizeof *heads, STATE_COLUMN = 5 };
	static const struct listing listing = {
	    .row_size = sizeof(struct command_row),
	    .none = "no commands",
	    .heads = heads,
	    .columns = COLUMNS,
	    .painted = STATE_COLUMN,
	    .read = read_rows,
	    .row_json = listed_json,
	    .add_row = add_row,
	    .place = row_place,
	};
	struct arena arena = {0};
	struct command_filter filter;
	struct uuid after;
	int exit = read_filter(args, &filter, &after);
	if (!exit)
		exit = list_show(args, &arena, &listing, &filter, &filter.limit);
	arena_release(&arena);
	return exit;
}
