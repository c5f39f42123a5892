/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_exception.c -- look at human work: what stopped, whose it is, until when, what may be done.
 */
#include "cli/cli.h"
#include "cli/output.h"
#include "cli/page.h"
#include "command/external_key.h"
#include "command/keep.h"
#include "desk/exception.h"

#include <string.h>
#include <strings.h>

/* ---- Values as text ------------------------------------------------------------------------- */

/* "in 4 h", "overdue 2 h"; NULL: nobody waits for it. */
static const char *due_text(struct arena *arena, const struct exception_row *row, int64_t now_us)
{
	if (row->state != EXCEPTION_OPEN || !row->due_us)
		return NULL;
	if (exception_overdue(row, now_us))
		return arena_printf(arena, "overdue %s", duration_text(arena, now_us - row->due_us));
	return arena_printf(arena, "in %s", duration_text(arena, row->due_us - now_us));
}

/* Takes the next name off a list that is joined by commas. */
static const char *next_name(struct arena *arena, const char **rest)
{
	size_t size = strcspn(*rest, ",");
	const char *name = arena_strndup(arena, *rest, size);
	*rest += size + ((*rest)[size] == ',');
	return name;
}

/* ---- History -------------------------------------------------------------------------------- */

static void print_history(struct arena *arena, const struct exception_history *history)
{
	const struct approval_row *waiting = exception_proposal(history);
	if (waiting) {
		section_print("waits for approval", 1);
		out_textf("  %s  proposed by %s  %s\n", waiting->action, waiting->proposed_by,
		          waiting->reason);
	}
	section_print("history", history->action_count);
	for (size_t i = 0; i < history->action_count; i++) {
		const struct action_row *action = &history->actions[i];
		out_textf("  %s  %s (%s) %s%s%s  %s\n", time_text(arena, action->at_us), action->actor,
		          action->role, action->action, action->parameters ? " " : "",
		          action->parameters ? action->parameters : "", action->reason);
	}
}

/* ---- JSON ----------------------------------------------------------------------------------- */

static bool print_item_json(struct arena *arena, const struct exception_row *row,
                            const struct exception_more *more)
{
	struct str out = STR_INIT(OUTPUT_BYTES_MAX);
	(void)arena;
	exception_json(&out, row, more, env_wall_us(env_system()), ROW_WHOLE);
	bool ok = out_line(&out);
	str_release(&out);
	return ok;
}

/* ---- Text ----------------------------------------------------------------------------------- */

static void print_state(struct arena *arena, const struct exception_row *row, int64_t now_us)
{
	const char *state = exception_state_name(row->state), *due = due_text(arena, row, now_us);
	field_begin("state");
	out_painted(paint_of_word(state), state);
	if (due) {
		out_text(exception_overdue(row, now_us) ? ", " : ", due ");
		out_painted(exception_overdue(row, now_us) ? PAINT_BAD : PAINT_PLAIN, due);
	}
	out_text("\n");
}

static void print_actions(struct arena *arena, const struct exception_row *row)
{
	size_t count = 0;
	for (const char *rest = row->actions; *rest; count++)
		(void)next_name(arena, &rest);
	section_print("what may be done", count);
	for (const char *rest = row->actions; *rest;) {
		const char *name = next_name(arena, &rest);
		bool second = names_hold(row->needs_approval, name);
		out_textf("  %s%s\n", name, second ? "  (a second person approves it)" : "");
	}
}

static bool print_item(struct arena *arena, const struct exception_row *row,
                       const struct exception_more *more)
{
	int64_t now_us = env_wall_us(env_system());
	field_print("exception", id_text(arena, row->id));
	field_print("tenant", row->tenant);
	field_print("queue", exception_queue_name(row->queue));
	print_state(arena, row, now_us);
	field_print("severity", exception_severity_name(row->severity));
	field_print("owner", row->owner);
	field_print("assignee", row->assignee);
	field_print("reason", row->reason);
	field_print("detail", row->detail);
	field_print("service said", line_text(arena, more->service_answer));
	field_print("suggestion", row->suggestion);
	field_print("retry", row->retryable ? "safe" : "not safe");
	field_print("subject", thing_text(arena, row->subject_type, row->subject_id));
	field_print("key", row->business_key);
	field_print("external key", more->external_key);
	field_print("source", row->source);
	field_print("payload", row->payload_ref);
	field_print("document", thing_text(arena, row->document_type, row->document_id));
	field_print("correlation", row->correlation_id);
	field_print("trace", row->trace_id);
	field_print("opened", time_text(arena, row->opened_us));
	field_print("due", time_text(arena, row->due_us));
	field_print("resolved", time_text(arena, row->resolved_us));
	field_print("resolution", row->resolution);
	field_print("resolved by", row->resolved_by);
	field_print("note", row->note);
	if (row->state == EXCEPTION_OPEN)
		print_actions(arena, row);
	if (more->history.action_count)
		print_history(arena, &more->history);
	return true;
}

/* Where it is sealed, the key file opens what a service said. */
static enum ibid_code open_answer(struct arena *arena, const struct args *args,
                                  const struct exception_row *row, const char **ret,
                                  struct ibid_err *err)
{
	const char *file = args->values[OPT_KEY_FILE];
	struct keyring *keys = NULL;
	enum ibid_code code = file && *file ? keyring_read(file, &keys, err) : IBID_OK;
	if (!code)
		*ret = keep_read_service_answer(arena, row, keys);
	keyring_free(keys);
	return code;
}

/* ---- Commands ------------------------------------------------------------------------------- */

int cmd_exception_show(const struct args *args)
{
	struct arena arena = {0};
	struct ibid_err err = {0};
	struct store *store = NULL;
	struct exception_row row;
	struct exception_more more = {0};
	struct uuid id;
	int exit = CLI_OK;
	const char *tenant = args->values[OPT_TENANT];
	if (!args->operand_count)
		return usage_error(args->command,
		                   "ID is missing: `ibid exception list` shows the ids of exceptions");
	if (!uuid_read(args->operands[0], &id))
		return usage_error(
		    args->command,
		    "\"%.100s\" is not the id of an exception: `ibid exception list` shows ids",
		    args->operands[0]);
	enum ibid_code code = open_store(args, false, true, &store, &err);
	if (!code)
		code = store_get_exception(store, &arena, tenant, &id, &row, &err);
	if (code == IBID_NOT_FOUND && store)
		err_set(&err, code,
		        "tenant %s has no such exception; `ibid exception list --tenant %s --state "
		        "all` shows those that there are",
		        tenant, tenant);
	if (!code)
		code = exception_history(store, &arena, &row, &more.history, &err);
	if (!code)
		code = external_key_of_exception(store, &arena, &row, &more.external_key, &err);
	if (!code)
		code = open_answer(&arena, args, &row, &more.service_answer, &err);
	if (code)
		exit = say_err(&err);
	else if (!(args_has(args, OPT_JSON) ? print_item_json : print_item)(&arena, &row, &more))
		exit = CLI_ERROR;
	store_close(store);
	arena_release(&arena);
	return exit;
}

/* "open", "resolved" or "all", which is -1. */
static bool read_state(const char *given, int *ret)
{
	for (int i = 0; i < EXCEPTION_STATE_COUNT; i++) {
		if (strcasecmp(given, exception_state_name((enum exception_state)i)) == 0) {
			*ret = i;
			return true;
		}
	}
	*ret = -1;
	return strcasecmp(given, "all") == 0;
}

/* CLI_OK, or CLI_USAGE after telling. */
static int read_filter(const struct args *args, struct exception_filter *ret, struct uuid *after)
{
	const char *const *values = args->values;
	enum exception_queue queue;
	*ret = (struct exception_filter){
	    .tenant = values[OPT_TENANT],
	    .owner = values[OPT_OWNER],
	    .assignee = values[OPT_ASSIGNEE],
	    .queue = -1,
	    .state = EXCEPTION_OPEN,
	};
	if (values[OPT_STATE] && !read_state(values[OPT_STATE], &ret->state))
		return usage_error(args->command, "--state is one of %s",
		                   option_meaning(args->command, OPT_STATE));
	if (values[OPT_QUEUE]) {
		if (!exception_queue_read(values[OPT_QUEUE], &queue))
			return usage_error(args->command, "--queue is one of %s",
			                   option_meaning(args->command, OPT_QUEUE));
		ret->queue = (int)queue;
	}
	return read_page(args, "an exception", &ret->limit, after, &ret->after);
}

static enum ibid_code read_rows(struct store *store, struct arena *arena, const void *filter,
                                void **ret, size_t *ret_count, struct ibid_err *err)
{
	struct exception_row *rows = NULL;
	enum ibid_code code = store_list_exceptions(store, arena, filter, &rows, ret_count, err);
	*ret = rows;
	return code;
}

static void listed_json(struct str *out, struct arena *arena, const void *row, int64_t now_us)
{
	(void)arena;
	exception_json(out, row, NULL, now_us, ROW_WHOLE);
}

static void add_row(struct table *table, const void *item, int64_t now_us)
{
	struct arena *arena = table->arena;
	const struct exception_row *row = item;
	const char *resolved = row->state == EXCEPTION_RESOLVED ? "resolved" : NULL;
	const char *cells[] = {id_text(arena, row->id),
	                       duration_text(arena, now_us - row->opened_us),
	                       exception_severity_name(row->severity),
	                       resolved ? resolved : due_text(arena, row, now_us),
	                       row->tenant,
	                       exception_queue_name(row->queue),
	                       row->owner,
	                       row->assignee,
	                       row->reason,
	                       thing_text(arena, row->subject_type, row->subject_id)};
	table_add(table, cells);
}

static const char *row_place(struct arena *arena, const void *row)
{
	return id_text(arena, ((const struct exception_row *)row)->id);
}

int cmd_exception_list(const struct args *args)
{
	static const char *const heads[] = {"EXCEPTION", "AGE",   "SEVERITY", "DUE",    "TENANT",
	                                    "QUEUE",     "OWNER", "ASSIGNEE", "REASON", "SUBJECT"};
	enum { COLUMNS = sizeof heads / sizeof *heads, SEVERITY_COLUMN = 2 };
	static const struct listing listing = {
	    .row_size = sizeof(struct exception_row),
	    .none = "no exceptions",
	    .heads = heads,
	    .columns = COLUMNS,
	    .painted = SEVERITY_COLUMN,
	    .read = read_rows,
	    .row_json = listed_json,
	    .add_row = add_row,
	    .place = row_place,
	};
	struct arena arena = {0};
	struct exception_filter filter;
	struct uuid after;
	int exit = read_filter(args, &filter, &after);
	if (!exit)
		exit = list_show(args, &arena, &listing, &filter, &filter.limit);
	arena_release(&arena);
	return exit;
}
