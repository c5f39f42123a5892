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

static bool is_overdue(const struct exception_row *row, int64_t now_us)
{
	return row->state == EXCEPTION_OPEN && row->due_us && row->due_us < now_us;
}

/* "in 4 h", "overdue 2 h"; NULL: nobody waits for it. */
static const char *due_text(struct arena *arena, const struct exception_row *row, int64_t now_us)
{
	if (row->state != EXCEPTION_OPEN || !row->due_us)
		return NULL;
	if (is_overdue(row, now_us))
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

/* What a list leaves out. */
struct more {
	const char *external_key; /* how a partner knows its command; NULL: no partner does */
	struct exception_history history;
};

static void action_json(struct str *out, struct arena *arena, const struct action_row *action)
{
	obj_begin(out, NULL, '{');
	obj_text(out, "id", id_text(arena, action->id));
	obj_text(out, "at", time_text(arena, action->at_us));
	obj_text(out, "actor", action->actor);
	obj_text(out, "token", action->token);
	obj_text(out, "role", action->role);
	obj_text(out, "action", action->action);
	obj_text(out, "reason", action->reason);
	obj_raw(out, "parameters", action->parameters);
	obj_text(out, "approval_id", id_text(arena, action->approval_id));
	obj_end(out, '}');
}

/* What is proposed is in its action; an answer that waits is not shown. */
static void approval_json(struct str *out, struct arena *arena, const struct approval_row *approval)
{
	obj_begin(out, NULL, '{');
	obj_text(out, "id", id_text(arena, approval->id));
	obj_text(out, "action", approval->action);
	obj_text(out, "proposed_by", approval->proposed_by);
	obj_text(out, "proposed_at", time_text(arena, approval->proposed_us));
	obj_text(out, "reason", approval->reason);
	obj_text(out, "decision", approval_decision_name(approval->decision));
	obj_text(out, "decided_by", approval->decided_by);
	obj_text(out, "decided_at", time_text(arena, approval->decided_us));
	obj_text(out, "decided_reason", approval->decided_reason);
	obj_end(out, '}');
}

static void history_json(struct str *out, struct arena *arena,
                         const struct exception_history *history)
{
	obj_begin(out, "history", '[');
	for (size_t i = 0; i < history->action_count; i++)
		action_json(out, arena, &history->actions[i]);
	obj_end(out, ']');
	obj_begin(out, "approvals", '[');
	for (size_t i = 0; i < history->approval_count; i++)
		approval_json(out, arena, &history->approvals[i]);
	obj_end(out, ']');
}

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

/* `more` NULL: in a list. */
static void row_json(struct str *out, struct arena *arena, const struct exception_row *row,
                     const struct more *more, int64_t now_us)
{
	obj_begin(out, NULL, '{');
	obj_text(out, "id", id_text(arena, row->id));
	obj_text(out, "tenant", row->tenant);
	obj_text(out, "queue", exception_queue_name(row->queue));
	obj_text(out, "state", exception_state_name(row->state));
	obj_text(out, "severity", exception_severity_name(row->severity));
	obj_text(out, "owner", row->owner);
	obj_text(out, "reason", row->reason);
	obj_text(out, "detail", row->detail);
	obj_text(out, "suggestion", row->suggestion);
	obj_bool(out, "retryable", row->retryable);
	obj_begin(out, "actions", '[');
	for (const char *rest = row->actions; *rest;)
		obj_text(out, NULL, next_name(arena, &rest));
	obj_end(out, ']');
	obj_begin(out, "needs_approval", '[');
	for (const char *rest = row->needs_approval; *rest;)
		obj_text(out, NULL, next_name(arena, &rest));
	obj_end(out, ']');
	obj_text(out, "assignee", row->assignee);
	obj_text(out, "subject_type", row->subject_type);
	obj_text(out, "subject_id", row->subject_id);
	obj_text(out, "business_key", row->business_key);
	if (more) {
		obj_text(out, "external_key", more->external_key);
		obj_text(out, "service_answer", row->service_answer);
	}
	obj_text(out, "source", row->source);
	obj_text(out, "payload_ref", row->payload_ref);
	obj_text(out, "document_type", row->document_type);
	obj_text(out, "document_id", row->document_id);
	obj_text(out, "correlation_id", row->correlation_id);
	obj_text(out, "trace_id", row->trace_id);
	obj_text(out, "opened_at", time_text(arena, row->opened_us));
	obj_text(out, "due_at", time_text(arena, row->due_us));
	obj_bool(out, "overdue", is_overdue(row, now_us));
	obj_text(out, "resolved_at", time_text(arena, row->resolved_us));
	obj_text(out, "resolution", row->resolution);
	obj_text(out, "resolved_by", row->resolved_by);
	obj_text(out, "note", row->note);
	if (more)
		history_json(out, arena, &more->history);
	obj_end(out, '}');
}

static bool print_item_json(struct arena *arena, const struct exception_row *row,
                            const struct more *more)
{
	struct str out = STR_INIT(OUTPUT_BYTES_MAX);
	row_json(&out, arena, row, more, env_wall_us(env_system()));
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
		out_text(is_overdue(row, now_us) ? ", " : ", due ");
		out_painted(is_overdue(row, now_us) ? PAINT_BAD : PAINT_PLAIN, due);
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
                       const struct more *more)
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
	field_print("service said", line_text(arena, row->service_answer));
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
                                  struct exception_row *row, struct ibid_err *err)
{
	const char *file = args->values[OPT_KEY_FILE];
	struct keyring *keys = NULL;
	enum ibid_code code = file && *file ? keyring_read(file, &keys, err) : IBID_OK;
	if (!code)
		row->service_answer = keep_read_service_answer(arena, row, keys);
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
	struct more more = {0};
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
		code = open_answer(&arena, args, &row, &err);
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
	row_json(out, arena, row, NULL, now_us);
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
