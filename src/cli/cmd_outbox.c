/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_outbox.c -- look at the outbox: how events stand toward their destinations, and why. */
#include "cli/cli.h"
#include "cli/output.h"
#include "cli/page.h"
#include "cli/pause.h"
#include "outbox/outbox_look.h"

#include <string.h>

/* One event toward one destination. */
struct shown {
	struct outbox_row row;
	struct pauses_found pauses;
};

/* ---- JSON ----------------------------------------------------------------------------------- */

static void row_json(struct str *out, struct arena *arena, const void *item, int64_t now_us)
{
	const struct shown *shown = item;
	(void)arena;
	(void)now_us;
	outbox_json(out, &shown->row, shown->pauses, NULL, ROW_WHOLE);
}

static bool print_file_json(struct arena *arena, const struct outbox_file *file)
{
	struct str out = STR_INIT(OUTPUT_BYTES_MAX);
	(void)arena;
	outbox_file_json(&out, file, ROW_WHOLE);
	bool ok = out_line(&out);
	str_release(&out);
	return ok;
}

/* ---- Text ----------------------------------------------------------------------------------- */

/* NULL: less than `least`, which stands for none. */
static const char *number_text(struct arena *arena, int64_t number, int64_t least)
{
	return number < least ? NULL : arena_printf(arena, "%lld", (long long)number);
}

static void print_event(struct arena *arena, const struct event_row *event)
{
	field_print("event", id_text(arena, event->id));
	field_print("tenant", event->tenant);
	field_print("type", event->type);
	field_print("aggregate", arena_printf(arena, "%s %s, version %lld", event->aggregate_type,
	                                      event->aggregate_id, (long long)event->version));
	field_print("payload", event->payload);
	field_print("topic", event->topic);
	field_print("partition key", event->partition_key);
	field_print("key", event->key);
	field_print("command", id_text(arena, event->command_id));
	field_print("correlation", event->correlation_id);
	field_print("causation", event->causation_id);
	field_print("trace", event->traceparent);
	field_print("tracestate", event->tracestate);
	field_print("created", time_text(arena, event->at_us));
}

/* "orders, partition 3, offset 17" */
static const char *place_text(struct arena *arena, const char *place, int32_t partition,
                              int64_t offset)
{
	const char *text = place;
	if (text && partition >= 0)
		text = arena_printf(arena, "%s, partition %d", text, (int)partition);
	if (text && offset >= 0)
		text = arena_printf(arena, "%s, offset %lld", text, (long long)offset);
	return text;
}

static void print_standing(struct arena *arena, const struct outbox_row *row, struct uuid exception,
                           struct pauses_found pauses)
{
	const char *state = outbox_state_name(row->state);
	field_print("  to", row->destination);
	field_begin("  state");
	out_painted(paint_of_word(state), state);
	out_text("\n");
	field_print("  attempts", number_text(arena, row->attempts, 1));
	field_print("  failure", row->failure);
	for (size_t i = 0; i < pauses.count; i++)
		if (outbox_is_kept(row, &pauses.rows[i]))
			field_print("  paused", pause_line(arena, &pauses.rows[i]));
	field_print("  reason", row->reason);
	field_print("  why", row->why);
	field_print("  next", time_text(arena, row->next_us));
	field_print("  since", time_text(arena, row->since_us));
	field_print("  exception", id_text(arena, exception));
	field_print("  relay", row->relay);
	field_print("  place", place_text(arena, row->place, row->partition, row->offset));
	field_print("  published", time_text(arena, row->published_us));
}

static bool print_file(struct arena *arena, const struct outbox_file *file)
{
	print_event(arena, &file->event);
	section_print("destinations", file->row_count);
	for (size_t i = 0; i < file->row_count; i++)
		print_standing(arena, &file->rows[i], file->exceptions[i],
		               (struct pauses_found){file->pauses, file->pause_count});
	section_print("deliveries", file->delivery_count);
	for (size_t i = 0; i < file->delivery_count; i++) {
		const struct delivery_row *row = &file->deliveries[i];
		out_textf("  %s  %s  %s\n", time_text(arena, row->at_us), row->destination,
		          place_text(arena, row->place, row->partition, row->offset));
	}
	return true;
}

/* ---- Commands ------------------------------------------------------------------------------- */

int cmd_outbox_show(const struct args *args)
{
	struct arena arena = {0};
	struct ibid_err err = {0};
	struct store *store = NULL;
	struct outbox_file file;
	struct uuid id;
	int exit = CLI_OK;
	const char *tenant = args->values[OPT_TENANT];
	if (!args->operand_count)
		return usage_error(args->command,
		                   "EVENT_ID is missing: `ibid outbox list` shows the ids of events");
	if (!uuid_read(args->operands[0], &id))
		return usage_error(args->command,
		                   "\"%.100s\" is not the id of an event: `ibid outbox list` shows ids",
		                   args->operands[0]);
	enum ibid_code code = open_store(args, false, true, &store, &err);
	if (!code)
		code = outbox_file_read(store, &arena, tenant, &id, &file, &err);
	if (code == IBID_NOT_FOUND && store)
		err_set(&err, code,
		        "tenant %s has no such event; `ibid outbox list --tenant %s` shows those "
		        "that there are",
		        tenant, tenant);
	if (code)
		exit = say_err(&err);
	else if (!(args_has(args, OPT_JSON) ? print_file_json : print_file)(&arena, &file))
		exit = CLI_ERROR;
	store_close(store);
	arena_release(&arena);
	return exit;
}

/* CLI_OK, or CLI_USAGE after telling. */
static int read_aggregate(const struct args *args, struct arena *arena, struct outbox_filter *ret)
{
	const char *given = args->values[OPT_AGGREGATE], *slash = given ? strchr(given, '/') : NULL;
	if (!given)
		return CLI_OK;
	if (!slash || slash == given || !slash[1])
		return usage_error(args->command, "--aggregate is TYPE/ID, not \"%.100s\"", given);
	ret->aggregate_type = arena_strndup(arena, given, (size_t)(slash - given));
	ret->aggregate_id = slash + 1;
	return ret->aggregate_type ? CLI_OK : say_no_memory();
}

/* Likewise. `after` is where the id is kept. */
static int read_filter(const struct args *args, struct arena *arena, struct uuid *after,
                       struct outbox_filter *ret)
{
	const char *const *values = args->values;
	enum outbox_state state;
	*ret = (struct outbox_filter){
	    .tenant = values[OPT_TENANT],
	    .destination = values[OPT_DESTINATION],
	    .type = values[OPT_TYPE],
	    .state = -1,
	};
	if (values[OPT_STATE]) {
		if (!outbox_state_read(values[OPT_STATE], &state))
			return usage_error(args->command, "--state is one of %s",
			                   option_meaning(args->command, OPT_STATE));
		ret->state = (int)state;
	}
	int exit = read_limit(args, &ret->limit);
	if (exit)
		return exit;
	if (values[OPT_AFTER]) {
		if (!outbox_place_read(values[OPT_AFTER], after, &ret->after_destination))
			return usage_error(args->command, "--after is EVENT_ID/DESTINATION, not \"%.100s\"",
			                   values[OPT_AFTER]);
		ret->after = after;
	}
	return read_aggregate(args, arena, ret);
}

static enum ibid_code read_rows(struct store *store, struct arena *arena, const void *filter,
                                void **ret, size_t *ret_count, struct ibid_err *err)
{
	const struct outbox_filter *wanted = filter;
	struct outbox_row *rows = NULL;
	struct pause_row *pauses = NULL;
	size_t count = 0, pause_count = 0;
	enum ibid_code code = store_list_outbox(store, arena, wanted, &rows, &count, err);
	if (!code)
		code = store_list_pauses(store, arena, wanted->tenant, &pauses, &pause_count, err);
	if (code)
		return code;
	struct shown *shown = arena_array(arena, count, sizeof *shown);
	if (arena->failed)
		return err_set(err, IBID_NOMEM, "out of memory");
	for (size_t i = 0; i < count; i++)
		shown[i] = (struct shown){rows[i], {pauses, pause_count}};
	*ret = shown;
	*ret_count = count;
	return IBID_OK;
}

/* What it waits for, where nothing else is the matter with it. */
static const char *pause_reason(const struct shown *shown)
{
	static const char *const reasons[PAUSE_KIND_COUNT] = {
	    [PAUSE_RELAY] = "RELAY_PAUSED",
	    [PAUSE_DESTINATION] = "DESTINATION_PAUSED",
	    [PAUSE_EVENT] = HOLD_PAUSED,
	};
	for (size_t i = 0; i < shown->pauses.count; i++) {
		enum pause_kind kind = shown->pauses.rows[i].kind;
		if (outbox_is_kept(&shown->row, &shown->pauses.rows[i]))
			return kind < PAUSE_KIND_COUNT ? reasons[kind] : pause_kind_name(kind);
	}
	return NULL;
}

static void add_row(struct table *table, const void *item, int64_t now_us)
{
	struct arena *arena = table->arena;
	const struct shown *shown = item;
	const struct outbox_row *row = &shown->row;
	const char *cells[] = {id_text(arena, row->event_id),
	                       duration_text(arena, now_us - row->created_us),
	                       outbox_state_name(row->state),
	                       row->destination,
	                       row->tenant,
	                       row->type,
	                       thing_text(arena, row->aggregate_type, row->aggregate_id),
	                       number_text(arena, row->version, 0),
	                       number_text(arena, row->attempts, 1),
	                       row->reason ? row->reason : pause_reason(shown)};
	table_add(table, cells);
}

/* Each pause that keeps one of the rows, once. */
static void say_pauses(struct arena *arena, const void *items, size_t count)
{
	const struct shown *shown = items;
	for (size_t i = 0; count && i < shown->pauses.count; i++) {
		const struct pause_row *pause = &shown->pauses.rows[i];
		bool keeps = false;
		for (size_t k = 0; !keeps && k < count; k++)
			keeps = outbox_is_kept(&shown[k].row, pause);
		if (keeps)
			pause_say(arena, pause);
	}
}

static const char *row_place(struct arena *arena, const void *item)
{
	const struct shown *shown = item;
	return outbox_place_text(arena, &shown->row);
}

int cmd_outbox_list(const struct args *args)
{
	static const char *const heads[] = {"EVENT", "AGE",       "STATE",   "DESTINATION", "TENANT",
	                                    "TYPE",  "AGGREGATE", "VERSION", "ATTEMPTS",    "REASON"};
	enum { COLUMNS = sizeof heads / sizeof *heads, STATE_COLUMN = 2 };
	static const struct listing listing = {
	    .row_size = sizeof(struct shown),
	    .none = "no events",
	    .heads = heads,
	    .columns = COLUMNS,
	    .painted = STATE_COLUMN,
	    .read = read_rows,
	    .row_json = row_json,
	    .add_row = add_row,
	    .notes = say_pauses,
	    .place = row_place,
	};
	struct arena arena = {0};
	struct outbox_filter filter;
	struct uuid after;
	int exit = read_filter(args, &arena, &after, &filter);
	if (!exit)
		exit = list_show(args, &arena, &listing, &filter, &filter.limit);
	arena_release(&arena);
	return exit;
}
