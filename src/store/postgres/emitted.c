/* SPDX-License-Identifier: Apache-2.0 */
/* emitted.c -- events that a script emits in a group: told by the script's statement, and written
 * for all members at once.
 *
 * `select ibid.emit(type, id, event, payload) ...` is sent as `select ibid_internal.emitted(...)`,
 * which only gives its arguments back. That is done where it is sure to mean the same: every emit
 * of the script has this form, and nothing else in the script needs ibid but reject. An emit that a
 * function or a trigger hides fails in such a turn, by an error that WHEN OTHERS does not catch,
 * and the member runs alone. */
#include "store/event_rule.h"
#include "store/postgres/array.h"
#include "store/script.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { NAME_BYTES = 255, PAYLOAD_BYTES = 1 << 20, ORDINAL_MAX = 65535, TELLS_COMMAS = 3 };

/* ---- The statement -------------------------------------------------------------------------- */

static const char *skip_blanks(const char *at)
{
	return at + strspn(at, " \t\r\n");
}

/* Behind a string or a quoted name; NULL: it has no end. Doubled quotes are two of them. */
static const char *skip_quotes(const char *at)
{
	const char *end = strchr(at + 1, *at);
	return end ? end + 1 : NULL;
}

static bool is_word(const char *at, const char *word)
{
	size_t size = strlen(word);
	return strncasecmp(at, word, size) == 0 && (at[size] == ' ' || strchr("\t\r\n", at[size]));
}

/* Behind the parenthesis that closes the one before `at`; NULL: not four plain arguments. What is
 * hard to read, such as comments, dollar quotes and escapes, is left alone. */
static const char *skip_arguments(const char *at)
{
	int depth = 1, commas = 0;
	while (at && depth) {
		switch (*at) {
		case 0: return NULL;
		case '(': depth++; break;
		case ')': depth--; break;
		case ',': commas += depth == 1; break;
		case '\'':
		case '"': at = skip_quotes(at); continue;
		case '\\': return NULL;
		case '$':
			if (!strchr("0123456789", at[1]) || !at[1])
				return NULL;
			break;
		case '=':
			if (at[1] == '>')
				return NULL;
			break;
		case '-':
		case '/':
			if (at[1] == (*at == '-' ? '-' : '*'))
				return NULL;
			break;
		default: break;
		}
		at++;
	}
	return commas == TELLS_COMMAS ? at : NULL;
}

static bool mentions(const char *text, const char *word)
{
	for (; *text; text++)
		if (strncasecmp(text, word, strlen(word)) == 0)
			return true;
	return false;
}

static bool in_name(char c)
{
	return isalnum((unsigned char)c) || c == '_' || c == '$' || (unsigned char)c >= 0x80;
}

/* Does it say which of its rows count, or in which order? Emit is called for others, too, and what
 * it gives is not what is told. Names that are such words, quoted or in a string, are taken for
 * them. */
static bool chooses_rows(const char *rest)
{
	static const char *const words[] = {"group", "having", "order",     "limit", "offset",
	                                    "fetch", "union",  "intersect", "except"};
	for (size_t size; *rest; rest += size) {
		size = 0;
		while (in_name(rest[size]))
			size++;
		for (size_t i = 0; i < sizeof words / sizeof *words; i++)
			if (size == strlen(words[i]) && strncasecmp(rest, words[i], size) == 0)
				return true;
		size += !size;
	}
	return false;
}

/* "select ibid.emit(": where its arguments begin; NULL: it begins otherwise. */
static const char *find_arguments(const char *sql)
{
	static const char call[] = "ibid.emit";
	if (!is_word(sql, "select"))
		return NULL;
	const char *at = skip_blanks(sql + strlen("select"));
	if (strncasecmp(at, call, sizeof call - 1) != 0)
		return NULL;
	at = skip_blanks(at + sizeof call - 1);
	return *at == '(' ? at + 1 : NULL;
}

const char *pg_emitted_sql(struct arena *arena, const char *sql)
{
	const char *arguments = find_arguments(sql);
	const char *end = arguments ? skip_arguments(arguments) : NULL;
	const char *rest = end ? skip_blanks(end) : NULL;
	if (!rest || (*rest && !is_word(rest, "from") && !is_word(rest, "where")) ||
	    mentions(arguments, "ibid") || chooses_rows(rest))
		return NULL;
	return arena_printf(arena, "select ibid_internal.emitted(%s", arguments);
}

bool pg_emitted_fits(const char *sql)
{
	if (is_word(sql, "do") || is_word(sql, "call")) /* could end the transaction */
		return false;
	for (; *sql; sql++)
		if (strncasecmp(sql, "ibid", 4) == 0 && strncasecmp(sql, "ibid.reject(", 12) != 0)
			return false;
	return true;
}

/* ---- What it told --------------------------------------------------------------------------- */

/* The next element of an array's text, unquoted; NULL: SQL NULL, or not of an array. */
static char *next_element(struct arena *arena, const char **at)
{
	const char *from = *at;
	char *element = arena_strdup(arena, from), *to = element;
	bool quoted = *from == '"';
	if (!element)
		return NULL;
	from += quoted;
	while (*from && (quoted ? *from != '"' : *from != ',' && *from != '}')) {
		from += quoted && *from == '\\';
		*to++ = *from;
		from += *from != 0;
	}
	*to = 0;
	from += quoted && *from;
	*at = from + (*from == ',');
	return !quoted && strcmp(element, "NULL") == 0 ? NULL : element;
}

static bool is_name(const char *text)
{
	size_t size = text ? strlen(text) : 0;
	return size >= 1 && size <= NAME_BYTES;
}

static bool is_declared(const struct work_context *context, const char *type)
{
	for (size_t i = 0; type && i < context->emit_count; i++)
		if (strcmp(context->emits[i], type) == 0)
			return true;
	return false;
}

/* False: it violates its contract, as emit will say when the member runs alone. */
static bool place_event(struct arena *arena, struct pg_emitted_event *event)
{
	const struct work_context *context = event->context;
	struct ibid_err ignored;
	struct event_row row = {.tenant = context->tenant,
	                        .aggregate_type = event->told.aggregate_type,
	                        .aggregate_id = event->told.aggregate_id,
	                        .payload = event->told.payload,
	                        .partition_key = event->told.aggregate_id,
	                        .headers = "{}"};
	if (event_rule_apply(event_rule_find(context->rules, event->told.type), arena, NULL, &row,
	                     &ignored))
		return false;
	event->topic = row.topic;
	event->partition_key = row.partition_key;
	event->headers = row.headers;
	return true;
}

bool pg_emitted_add(struct arena *arena, const struct work_context *context,
                    const struct pg_told *told, struct pg_emitted *ret)
{
	struct pg_emitted_event *event = arena_alloc(arena, sizeof *event);
	if (!event)
		return false;
	*event = (struct pg_emitted_event){
	    .context = context, .nth = ret->count, .ordinal = ++ret->last, .told = *told};
	if (!is_name(told->aggregate_type) || !is_name(told->aggregate_id) ||
	    !is_declared(context, told->type) || !told->payload ||
	    strlen(told->payload) > PAYLOAD_BYTES || ret->last > ORDINAL_MAX ||
	    !place_event(arena, event))
		return false;
	*ret->end = event;
	ret->end = &event->next;
	ret->count++;
	return !arena->failed;
}

bool pg_emitted_read(struct arena *arena, const struct work_context *context,
                     const PGresult *result, struct pg_emitted *ret)
{
	for (int row = 0; row < PQntuples(result); row++) {
		const char *at = pg_cell(result, row, 0);
		if (!at || *at++ != '{')
			return false;
		struct pg_told told;
		told.aggregate_type = next_element(arena, &at);
		told.aggregate_id = next_element(arena, &at);
		told.type = next_element(arena, &at);
		told.payload = next_element(arena, &at);
		if (!pg_emitted_add(arena, context, &told, ret))
			return false;
	}
	return true;
}

/* ---- Writing it ----------------------------------------------------------------------------- */

/* Events of one aggregate beside each other, in their order; aggregates in one order, in which
 * everybody moves their heads. */
static int by_aggregate(const void *a, const void *b)
{
	const struct pg_emitted_event *one = *(struct pg_emitted_event *const *)a;
	const struct pg_emitted_event *two = *(struct pg_emitted_event *const *)b;
	int order = strcmp(one->context->tenant, two->context->tenant);
	if (!order)
		order = strcmp(one->told.aggregate_type, two->told.aggregate_type);
	if (!order)
		order = strcmp(one->told.aggregate_id, two->told.aggregate_id);
	return order ? order : (one->nth > two->nth) - (one->nth < two->nth);
}

static bool is_of_one(const struct pg_emitted_event *one, const struct pg_emitted_event *two)
{
	return strcmp(one->context->tenant, two->context->tenant) == 0 &&
	       strcmp(one->told.aggregate_type, two->told.aggregate_type) == 0 &&
	       strcmp(one->told.aggregate_id, two->told.aggregate_id) == 0;
}

/* An aggregate, and how its head is moved. */
struct head {
	const struct pg_emitted_event *first;
	int events;
	bool sent; /* one of them, at least */
};

/* The aggregates of sorted events, and the place of each event in its own; how many. */
static size_t find_heads(struct pg_emitted_event **events, size_t count, struct head *ret)
{
	size_t heads = 0;
	for (size_t from = 0, to; from < count; from = to) {
		struct head *head = &ret[heads++];
		*head = (struct head){.first = events[from]};
		for (to = from; to < count && is_of_one(events[from], events[to]); to++) {
			events[to]->later = head->sent && events[to]->topic;
			head->sent |= events[to]->topic != NULL;
		}
		head->events = (int)(to - from);
		for (size_t i = from; i < to; i++)
			events[i]->behind = (int)(to - 1 - i);
	}
	return heads;
}

#define LIST(arrays, kind, from, count, add)                                                       \
	do {                                                                                           \
		pg_arrays_begin(arrays, kind, count);                                                      \
		for (size_t i = 0; i < (count); i++)                                                       \
			add(arrays, from);                                                                     \
	} while (0)

/* In the order of group_events' parameters. */
static void list_heads(struct pg_arrays *arrays, const struct head *heads, size_t count)
{
	LIST(arrays, PG_TEXT, heads[i].first->context->tenant, count, pg_arrays_text);
	LIST(arrays, PG_TEXT, heads[i].first->told.aggregate_type, count, pg_arrays_text);
	LIST(arrays, PG_TEXT, heads[i].first->told.aggregate_id, count, pg_arrays_text);
	LIST(arrays, PG_INT4, heads[i].events, count, pg_arrays_int4);
	LIST(arrays, PG_BOOL, heads[i].sent, count, pg_arrays_bool);
}

static void list_events(struct pg_arrays *arrays, struct pg_emitted_event *const *events,
                        size_t count)
{
	LIST(arrays, PG_TEXT, events[i]->context->tenant, count, pg_arrays_text);
	LIST(arrays, PG_UUID, &events[i]->id, count, pg_arrays_uuid);
	LIST(arrays, PG_TEXT, events[i]->key, count, pg_arrays_text);
	LIST(arrays, PG_UUID, &events[i]->context->command_id, count, pg_arrays_uuid);
	LIST(arrays, PG_INT4, events[i]->ordinal, count, pg_arrays_int4);
	LIST(arrays, PG_TEXT, events[i]->told.aggregate_type, count, pg_arrays_text);
	LIST(arrays, PG_TEXT, events[i]->told.aggregate_id, count, pg_arrays_text);
	LIST(arrays, PG_TEXT, events[i]->told.type, count, pg_arrays_text);
	LIST(arrays, PG_TEXT, events[i]->told.payload, count, pg_arrays_text);
	LIST(arrays, PG_INT4, events[i]->behind, count, pg_arrays_int4);
	LIST(arrays, PG_BOOL, events[i]->later, count, pg_arrays_bool);
	LIST(arrays, PG_TEXT, events[i]->context->correlation_id, count, pg_arrays_text);
	LIST(arrays, PG_TEXT, events[i]->context->causation_id, count, pg_arrays_text);
	LIST(arrays, PG_TIME, events[i]->context->now_us, count, pg_arrays_time);
	LIST(arrays, PG_TEXT, events[i]->context->traceparent, count, pg_arrays_text);
	LIST(arrays, PG_TEXT, events[i]->context->tracestate, count, pg_arrays_text);
	LIST(arrays, PG_TEXT, events[i]->topic, count, pg_arrays_text);
	LIST(arrays, PG_TEXT, events[i]->partition_key, count, pg_arrays_text);
	LIST(arrays, PG_TEXT, events[i]->headers, count, pg_arrays_text);
}

bool pg_emitted_list(struct arena *arena, const struct pg_emitted *emitted, struct pg_call *call)
{
	struct pg_emitted_event **events = arena_array(arena, emitted->count, sizeof *events);
	struct head *heads = arena_array(arena, emitted->count, sizeof *heads);
	struct pg_arrays arrays = PG_ARRAYS_INIT;
	size_t count = 0;
	if (!events || !heads)
		return false;
	for (struct pg_emitted_event *event = emitted->first; event; event = event->next) {
		const struct uuid *command = &event->context->command_id;
		event->id = uuid_nth(*command, (unsigned)event->ordinal);
		event->key = arena_printf(arena, "%s:%d", pg_uuid(arena, command), event->ordinal);
		events[count++] = event;
	}
	qsort(events, count, sizeof(struct pg_emitted_event *), by_aggregate);
	list_heads(&arrays, heads, find_heads(events, count, heads));
	list_events(&arrays, events, count);
	return pg_arrays_end(&arrays, arena, call) && !arena->failed;
}
