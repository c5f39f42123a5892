/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_exception.c -- look at human work: what stopped, whose it is, until when, what may be done.
 */
#include "base/instant.h"
#include "cli/cli.h"
#include "cli/output.h"

#include <string.h>
#include <strings.h>

/* ---- Values as text ------------------------------------------------------------------------- */

static const char *duration_text(struct arena *arena, int64_t us)
{
	char text[INSTANT_TEXT_SIZE];
	duration_write(us, text);
	return arena_strdup(arena, text);
}

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

/* ---- JSON ----------------------------------------------------------------------------------- */

static void row_json(struct str *out, struct arena *arena, const struct exception_row *row,
                     int64_t now_us)
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
	obj_text(out, "subject_type", row->subject_type);
	obj_text(out, "subject_id", row->subject_id);
	obj_text(out, "business_key", row->business_key);
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
	obj_end(out, '}');
}

static bool print_rows_json(struct arena *arena, const struct exception_row *rows, size_t count)
{
	bool ok = true;
	int64_t now_us = env_wall_us(env_system());
	struct str out = STR_INIT(OUTPUT_BYTES_MAX);
	for (size_t i = 0; ok && i < count; i++) {
		str_clear(&out);
		row_json(&out, arena, &rows[i], now_us);
		ok = out_line(&out);
	}
	str_release(&out);
	return ok;
}

/* ---- Text ----------------------------------------------------------------------------------- */

static void print_state(struct arena *arena, const struct exception_row *row, int64_t now_us)
{
	const char *state = exception_state_name(row->state), *due = due_text(arena, row, now_us);
	out_textf("%-12s ", "state");
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
	for (const char *rest = row->actions; *rest;)
		out_textf("  %s\n", next_name(arena, &rest));
}

static bool print_row(struct arena *arena, const struct exception_row *row, size_t count)
{
	int64_t now_us = env_wall_us(env_system());
	(void)count;
	field_print("exception", id_text(arena, row->id));
	field_print("tenant", row->tenant);
	field_print("queue", exception_queue_name(row->queue));
	print_state(arena, row, now_us);
	field_print("severity", exception_severity_name(row->severity));
	field_print("owner", row->owner);
	field_print("reason", row->reason);
	field_print("detail", row->detail);
	field_print("suggestion", row->suggestion);
	field_print("retry", row->retryable ? "safe" : "not safe");
	field_print("subject", thing_text(arena, row->subject_type, row->subject_id));
	field_print("key", row->business_key);
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
	return true;
}

static bool print_rows(struct arena *arena, const struct exception_row *rows, size_t count)
{
	static const char *const heads[] = {"EXCEPTION", "AGE",   "SEVERITY", "DUE",    "TENANT",
	                                    "QUEUE",     "OWNER", "REASON",   "SUBJECT"};
	enum { COLUMNS = sizeof heads / sizeof *heads, SEVERITY_COLUMN = 2 };
	struct table table = {
	    .arena = arena, .heads = heads, .columns = COLUMNS, .painted = SEVERITY_COLUMN};
	int64_t now_us = env_wall_us(env_system());
	for (size_t i = 0; i < count; i++) {
		const struct exception_row *row = &rows[i];
		const char *resolved = row->state == EXCEPTION_RESOLVED ? "resolved" : NULL;
		table_add(&table,
		          (const char *[COLUMNS]){
		              id_text(arena, row->id), duration_text(arena, now_us - row->opened_us),
		              exception_severity_name(row->severity),
		              resolved ? resolved : due_text(arena, row, now_us), row->tenant,
		              exception_queue_name(row->queue), row->owner, row->reason,
		              thing_text(arena, row->subject_type, row->subject_id)});
	}
	if (count)
		table_print(&table);
	else
		say("no exceptions");
	return true;
}

/* ---- Commands ------------------------------------------------------------------------------- */

int cmd_exception_show(const struct args *args)
{
	struct arena arena = {0};
	struct ibid_err err = {0};
	struct store *store = NULL;
	struct exception_row row;
	struct uuid id;
	int exit = CLI_OK;
	const char *tenant = args->values[OPT_TENANT];
	if (!args->operand_count)
		return usage_error(args->command, "name the exception by its ID");
	if (!uuid_read(args->operands[0], &id))
		return usage_error(args->command, "\"%.100s\" is not the id of an exception",
		                   args->operands[0]);
	enum ibid_code code = open_store(args, false, true, &store, &err);
	if (!code)
		code = store->ops->get_exception(store, &arena, tenant, &id, &row, &err);
	if (code == IBID_NOT_FOUND && store)
		err_set(&err, code, "tenant %s has no such exception", tenant);
	if (code)
		exit = say_err(&err);
	else if (!(args_has(args, OPT_JSON) ? print_rows_json : print_row)(&arena, &row, 1))
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

int cmd_exception_list(const struct args *args)
{
	struct arena arena = {0};
	struct ibid_err err = {0};
	struct store *store = NULL;
	struct exception_filter filter;
	struct exception_row *rows = NULL;
	struct uuid after;
	size_t count = 0;
	int exit = read_filter(args, &filter, &after);
	if (exit)
		return exit;
	size_t limit = filter.limit++; /* one more tells whether there is a next page */
	enum ibid_code code = open_store(args, false, true, &store, &err);
	if (!code)
		code = store->ops->list_exceptions(store, &arena, &filter, &rows, &count, &err);
	size_t shown = count < limit ? count : limit;
	if (code)
		exit = say_err(&err);
	else if (!(args_has(args, OPT_JSON) ? print_rows_json : print_rows)(&arena, rows, shown))
		exit = CLI_ERROR;
	else if (count > shown)
		say("there are more: add --after %s", id_text(&arena, rows[shown - 1].id));
	store_close(store);
	arena_release(&arena);
	return exit;
}
