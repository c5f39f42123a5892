/* SPDX-License-Identifier: Apache-2.0 */
/* emitted.c -- events that a script emits in a group: told by the script's statement, and written
 * for all members at once.
 *
 * `select ibid.emit(type, id, event, payload) ...` is sent as `select ibid.emitted(...)`, which
 * only gives its arguments back. That is done where it is sure to mean the same: every emit of the
 * script has this form, and nothing else in the script needs ibid but reject. An emit that a
 * function or a trigger hides fails in such a turn, and the member runs alone. */
#include "base/str.h"
#include "store/event_rule.h"
#include "store/postgres/postgres.h"
#include "store/script.h"

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
	    mentions(arguments, "ibid"))
		return NULL;
	return arena_printf(arena, "select ibid.emitted(%s", arguments);
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
	                        .aggregate_type = event->aggregate_type,
	                        .aggregate_id = event->aggregate_id,
	                        .payload = event->payload,
	                        .partition_key = event->aggregate_id,
	                        .headers = "{}"};
	if (event_rule_apply(event_rule_find(context->rules, event->type), arena, NULL, &row, &ignored))
		return false;
	event->topic = row.topic;
	event->partition_key = row.partition_key;
	event->headers = row.headers;
	return true;
}

bool pg_emitted_read(struct arena *arena, const struct work_context *context,
                     const PGresult *result, struct pg_emitted *ret)
{
	for (int row = 0; row < PQntuples(result); row++) {
		const char *at = pg_cell(result, row, 0);
		struct pg_emitted_event *event = arena_alloc(arena, sizeof *event);
		if (!at || *at++ != '{' || !event)
			return false;
		*event = (struct pg_emitted_event){.context = context, .ordinal = ++ret->last};
		event->aggregate_type = next_element(arena, &at);
		event->aggregate_id = next_element(arena, &at);
		event->type = next_element(arena, &at);
		event->payload = next_element(arena, &at);
		if (!is_name(event->aggregate_type) || !is_name(event->aggregate_id) ||
		    !is_declared(context, event->type) || !event->payload ||
		    strlen(event->payload) > PAYLOAD_BYTES || ret->last > ORDINAL_MAX ||
		    !place_event(arena, event))
			return false;
		*ret->end = event;
		ret->end = &event->next;
		ret->count++;
	}
	return !arena->failed;
}

/* ---- Writing it ----------------------------------------------------------------------------- */

/* In the order of group_events' parameters. */
enum { EMITTED_COLUMNS = 14 };

static void list_event(struct arena *arena, const struct pg_emitted_event *event,
                       const char *ret[EMITTED_COLUMNS])
{
	const struct work_context *context = event->context;
	const char *values[EMITTED_COLUMNS] = {
	    context->tenant,
	    pg_uuid(arena, &context->command_id),
	    pg_int(arena, event->ordinal),
	    event->aggregate_type,
	    event->aggregate_id,
	    event->type,
	    event->payload,
	    context->correlation_id,
	    context->causation_id,
	    pg_time(arena, context->now_us),
	    pg_trace(arena, context->traceparent, context->tracestate),
	    event->topic,
	    event->partition_key,
	    event->headers,
	};
	memcpy(ret, values, sizeof values);
}

const char **pg_emitted_values(struct arena *arena, const struct pg_emitted *emitted)
{
	struct str arrays[EMITTED_COLUMNS];
	const char **texts = arena_array(arena, EMITTED_COLUMNS, sizeof *texts);
	for (size_t i = 0; i < EMITTED_COLUMNS; i++)
		arrays[i] = STR_INIT(64 << 20);
	for (const struct pg_emitted_event *event = emitted->first; event; event = event->next) {
		const char *values[EMITTED_COLUMNS];
		list_event(arena, event, values);
		for (size_t i = 0; i < EMITTED_COLUMNS; i++)
			pg_array_add(&arrays[i], values[i]);
	}
	for (size_t i = 0; i < EMITTED_COLUMNS; i++) {
		str_addc(&arrays[i], '}');
		arena->failed |= arrays[i].failed;
		if (texts)
			texts[i] = arena_strndup(arena, str_text(&arrays[i]), arrays[i].size);
		str_release(&arrays[i]);
	}
	return arena->failed ? NULL : texts;
}
