/* SPDX-License-Identifier: Apache-2.0 */
/* event_rule.c -- hold an event to its contract when it is written. */
#include "store/event_rule.h"

#include "base/canon.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Words ---------------------------------------------------------------------------------- */

static enum ibid_code violates(const struct event_rule *rule, struct ibid_err *err,
                               const char *format, ...) __attribute__((format(printf, 3, 4)));

static enum ibid_code violates(const struct event_rule *rule, struct ibid_err *err,
                               const char *format, ...)
{
	char what[512];
	va_list args;
	va_start(args, format);
	vsnprintf(what, sizeof what, format, args);
	va_end(args);
	return err_set(err, IBID_FAILED, "event %s version %d: %s", rule->type, rule->version, what);
}

/* ---- Partition key -------------------------------------------------------------------------- */

static enum ibid_code key_of_text(const struct event_rule *rule, struct arena *arena,
                                  const struct json *value, const char **ret, struct ibid_err *err)
{
	const char *pointer = rule->partition_pointer;
	if (!value->size)
		return violates(rule, err, "its partition key %s is an empty text", pointer);
	if (value->size > PARTITION_KEY_BYTES_MAX)
		return violates(rule, err, "its partition key %s is longer than %d bytes", pointer,
		                PARTITION_KEY_BYTES_MAX);
	if (memchr(value->text, 0, value->size))
		return violates(rule, err, "its partition key %s contains U+0000", pointer);
	*ret = arena_strndup(arena, value->text, value->size);
	return *ret ? IBID_OK : err_set(err, IBID_NOMEM, "out of memory");
}

/* One text for one value, however it is written: 100, 1e2 and 100.0 are one key. */
static enum ibid_code key_of_number(const struct event_rule *rule, struct arena *arena,
                                    const struct json *value, const char **ret,
                                    struct ibid_err *err)
{
	struct str text = STR_INIT(2 * (size_t)JSON_NUMBER_BYTES_MAX);
	canon_number(&text, value->text, value->size);
	const char *digits = str_text(&text) + (*str_text(&text) == '-');
	size_t count = strspn(digits, "0123456789");
	enum ibid_code code = IBID_OK;
	if (text.failed || digits[count] || count > PARTITION_KEY_DIGITS_MAX)
		code = violates(rule, err, "its partition key %s is no integer of at most %d digits",
		                rule->partition_pointer, PARTITION_KEY_DIGITS_MAX);
	else if (!(*ret = arena_strndup(arena, text.data, text.size)))
		code = err_set(err, IBID_NOMEM, "out of memory");
	str_release(&text);
	return code;
}

static enum ibid_code partition_key(const struct event_rule *rule, struct arena *arena,
                                    struct json *payload, const struct event_row *event,
                                    const char **ret, struct ibid_err *err)
{
	if (rule->partition != PARTITION_PAYLOAD) {
		*ret = rule->partition == PARTITION_TENANT ? event->tenant : event->aggregate_id;
		return IBID_OK;
	}
	const struct json *value = json_at(payload, rule->partition_pointer);
	if (!value || value->type == JSON_NULL)
		return violates(rule, err, "its partition key %s is missing", rule->partition_pointer);
	switch (value->type) {
	case JSON_STRING: return key_of_text(rule, arena, value, ret, err);
	case JSON_NUMBER: return key_of_number(rule, arena, value, ret, err);
	default:
		return violates(rule, err, "its partition key %s is neither a text nor an integer",
		                rule->partition_pointer);
	}
}

/* ---- The event ------------------------------------------------------------------------------ */

static enum ibid_code check_required(const struct event_rule *rule, struct json *payload,
                                     struct ibid_err *err)
{
	for (size_t i = 0; i < rule->required_count; i++) {
		const struct json *value = json_at(payload, rule->required[i]);
		if (!value || value->type == JSON_NULL)
			return violates(rule, err, "%s is missing, which its contract requires",
			                rule->required[i]);
	}
	return IBID_OK;
}

static enum ibid_code check_outside(const struct event_rule *rule, const struct event_row *event,
                                    struct ibid_err *err)
{
	size_t size = strlen(event->payload);
	if (strcmp(event->aggregate_type, rule->aggregate) != 0)
		return violates(rule, err, "its aggregate is %.80s, and its contract says %s",
		                event->aggregate_type, rule->aggregate);
	if (size > rule->max_bytes)
		return violates(rule, err, "its payload has %zu bytes, and its contract allows %zu", size,
		                rule->max_bytes);
	return IBID_OK;
}

enum ibid_code event_rule_apply(const struct event_rule *rule, struct arena *arena,
                                struct json *payload, struct event_row *event, struct ibid_err *err)
{
	const char *key = NULL;
	if (!rule)
		return IBID_OK;
	enum ibid_code code = check_outside(rule, event, err);
	bool looks = rule->required_count || rule->partition == PARTITION_PAYLOAD;
	if (!code && looks && !payload) {
		code = json_read(arena, event->payload, strlen(event->payload), 0, &payload, err);
		if (code)
			return violates(rule, err, "payload: %s", err->text);
	}
	if (!code)
		code = check_required(rule, payload, err);
	if (!code)
		code = partition_key(rule, arena, payload, event, &key, err);
	if (code)
		return code;
	event->topic = rule->topic;
	event->partition_key = key;
	event->headers = rule->headers;
	return IBID_OK;
}

static int by_type(const void *type, const void *item)
{
	return strcmp(type, (*(const struct event_rule *const *)item)->type);
}

const struct event_rule *event_rule_find(const struct event_rules *rules, const char *type)
{
	if (!rules || !rules->count)
		return NULL;
	const struct event_rule **found = bsearch(type, rules->items, rules->count,
	                                          sizeof *rules->items, by_type);
	return found ? *found : NULL;
}
