/* SPDX-License-Identifier: Apache-2.0 */
/* work.c -- the handler's side of the public API.
 *
 * Nothing here touches the database: a callback's events and answer are noted, and written by the
 * ledger when the handler has returned (I1). A first mistake is remembered, so that a handler which
 * ignores a return code still fails. */
#include "command/work.h"

#include "base/canon.h"
#include "base/utf8.h"
#include "command/external_key.h"
#include "store/event_rule.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

const char *ibid_work_tenant(const struct ibid_work *work)
{
	return work->identity->tenant;
}
const char *ibid_work_operation(const struct ibid_work *work)
{
	return work->identity->operation;
}
const char *ibid_work_key(const struct ibid_work *work)
{
	return work->identity->key;
}
const char *ibid_work_client(const struct ibid_work *work)
{
	return work->sender->client;
}
const char *ibid_work_actor(const struct ibid_work *work)
{
	return work->sender->actor;
}
const char *ibid_work_command_id(const struct ibid_work *work)
{
	return work->command_id;
}
const char *ibid_work_now(const struct ibid_work *work)
{
	return work->now;
}
const char *ibid_work_payload(const struct ibid_work *work)
{
	return work->payload;
}

const char *ibid_work_external_key(const struct ibid_work *work)
{
	const char *key = external_key(work->arena, work->identity);
	return key ? key : "";
}

void *ibid_work_sqlite(const struct ibid_work *work)
{
	return work->tx && strcmp(work->tx->store->ops->name, "sqlite") == 0 ? work->connection : NULL;
}

void *ibid_work_postgres(const struct ibid_work *work)
{
	return work->tx && strcmp(work->tx->store->ops->name, "postgres") == 0 ? work->connection
	                                                                       : NULL;
}

static const struct param *find_param(const struct ibid_work *work, const char *pointer)
{
	for (size_t i = 0; i < work->params.count; i++) {
		if (strcmp(work->params.items[i].field->pointer, pointer) == 0)
			return &work->params.items[i];
	}
	return NULL;
}

const char *ibid_field_text(const struct ibid_work *work, const char *pointer)
{
	const struct param *param = find_param(work, pointer);
	return param ? param->text : NULL;
}

bool ibid_field_int64(const struct ibid_work *work, const char *pointer, int64_t *ret)
{
	const struct param *param = find_param(work, pointer);
	long long value;
	char rest;
	if (!param || !param->text || param->field->type != FIELD_INTEGER ||
	    sscanf(param->text, "%lld%c", &value, &rest) != 1)
		return false;
	*ret = value;
	return true;
}

enum ibid_code outcome_fail(struct arena *arena, struct outcome *outcome, const char *format, ...)
{
	char text[512];
	va_list args;
	va_start(args, format);
	vsnprintf(text, sizeof text, format, args);
	va_end(args);
	outcome->text = arena_strdup(arena, text);
	return IBID_FAILED;
}

static enum ibid_code work_fail(struct ibid_work *work, enum ibid_code code, const char *text)
{
	if (work->failure.code == IBID_OK)
		err_set(&work->failure, code, "%s", text);
	return code;
}

/* What ends up in rows and answers must be text that any JSON reader takes. */
static bool text_ok(const char *text, size_t most)
{
	return !text || (strlen(text) <= most && utf8_ok(text, strlen(text)));
}

const char *work_text_or(const char *text, const char *otherwise)
{
	return text && *text && text_ok(text, TEXT_BYTES_MAX) ? text : otherwise;
}

struct canonical {
	const char *text;
	size_t size;
	struct json *value; /* as it was read */
};

/* Strict JSON in, canonical JSON out. */
static enum ibid_code canonical_copy(struct arena *arena, const char *json, size_t size, size_t cap,
                                     struct canonical *ret, struct ibid_err *err)
{
	struct json *value;
	struct str out = STR_INIT(cap);
	enum ibid_code code = json_read(arena, json, size, cap, &value, err);
	if (code)
		return code;
	canon_write(&out, value);
	char *copy = out.failed ? NULL : arena_strndup(arena, out.data, out.size);
	if (copy)
		*ret = (struct canonical){copy, out.size, value};
	else
		code = err_set(err, IBID_LIMIT, "more than %zu bytes in canonical form", cap);
	str_release(&out);
	return code;
}

static bool declared(const struct texts *emits, const char *type)
{
	for (size_t i = 0; i < emits->count; i++) {
		if (strcmp(emits->items[i], type) == 0)
			return true;
	}
	return false;
}

/* Members that an older caller does not know are read as zero. */
static struct ibid_event event_of(const struct ibid_event *event)
{
	struct ibid_event copy = {0};
	memcpy(&copy, event, event->size < sizeof copy ? event->size : sizeof copy);
	return copy;
}

/* Whatever its payload is. */
static enum ibid_code check_event(struct ibid_work *work, const struct ibid_event *event)
{
	struct ibid_err err = {0};
	if (!event->aggregate_type || !*event->aggregate_type || !event->aggregate_id ||
	    !*event->aggregate_id || !event->type || !event->payload || event->version < 0)
		return work_fail(work, IBID_MISUSE,
		                 "an event needs aggregate_type, aggregate_id, type and payload");
	if (!text_ok(event->aggregate_type, NAME_BYTES_MAX) ||
	    !text_ok(event->aggregate_id, KEY_BYTES_MAX))
		return work_fail(work, IBID_INVALID,
		                 "an event's aggregate type and id are UTF-8 of at most 128 and 255 bytes");
	if (event->key && key_check(event->key, &err)) {
		err_prefix(&err, "event key");
		return work_fail(work, IBID_INVALID, err.text);
	}
	return IBID_OK;
}

enum ibid_code work_note_event(struct ibid_work *work, const struct ibid_event *event,
                               const char *payload, struct json *value)
{
	const struct event_rule *rule = event_rule_find(work->rules, event->type);
	struct ibid_err err = {0};
	enum ibid_code code = check_event(work, event);
	if (code)
		return code;
	if (!work->events)
		work->events = arena_array(work->arena, EVENTS_MAX, sizeof *work->events);
	if (!work->events)
		return work_fail(work, IBID_NOMEM, "out of memory");
	struct event_row row = {
	    .command_id = work->id,
	    .tenant = work->identity->tenant,
	    .aggregate_type = arena_strdup(work->arena, event->aggregate_type),
	    .aggregate_id = arena_strdup(work->arena, event->aggregate_id),
	    .type = arena_strdup(work->arena, event->type),
	    .payload = payload,
	    .version = event->version,
	    .key = arena_strdup(work->arena, event->key),
	    .ordinal = (int)work->event_count + 1,
	    .correlation_id = work->correlation_id,
	    .causation_id = work->causation_id,
	    .traceparent = work->traceparent,
	    .tracestate = work->tracestate,
	    .at_us = work->now_us,
	};
	if (work->arena->failed)
		return work_fail(work, IBID_NOMEM, "out of memory");
	if (event_rule_apply(rule, work->arena, value, &row, &err))
		return work_fail(work, err.code == IBID_FAILED ? IBID_INVALID : err.code, err.text);
	work->events[work->event_count++] = row;
	return IBID_OK;
}

enum ibid_code ibid_emit(struct ibid_work *work, const struct ibid_event *given)
{
	struct ibid_event event = event_of(given);
	struct ibid_err err = {0};
	struct canonical payload = {0};
	enum ibid_code code = check_event(work, &event);
	if (code)
		return code;
	if (!declared(&work->contract->emits, event.type)) {
		err_set(&err, IBID_MISUSE, "the contract does not declare event %s under `emits`",
		        event.type);
		return work_fail(work, IBID_MISUSE, err.text);
	}
	if (work->event_count == EVENTS_MAX)
		return work_fail(work, IBID_LIMIT, "more than 1000 events in one command");
	if (canonical_copy(work->arena, event.payload, strlen(event.payload), EVENT_BYTES_MAX, &payload,
	                   &err)) {
		err_prefix(&err, "event payload");
		return work_fail(work, err.code, err.text);
	}
	return work_note_event(work, &event, payload.text, payload.value);
}

enum ibid_code ibid_answer(struct ibid_work *work, int status, const char *body)
{
	work->outcome.status = status;
	work->outcome.body = arena_strdup(work->arena, body);
	work->outcome.body_size = body ? strlen(body) : 0;
	work->outcome.found = true;
	work->answered = true;
	return IBID_OK;
}

void ibid_resource(struct ibid_work *work, const char *type, const char *id)
{
	work->outcome.resource_type = arena_strdup(work->arena, type);
	work->outcome.resource_id = arena_strdup(work->arena, id);
}

enum ibid_code ibid_reject(struct ibid_work *work, const char *reason, int status, const char *text)
{
	work->outcome.reason = arena_strdup(work->arena, reason ? reason : "");
	work->outcome.text = arena_strdup(work->arena, text ? text : "");
	work->outcome.status = status;
	return IBID_REJECTED;
}

enum ibid_code ibid_duplicate(struct ibid_work *work, const char *unique)
{
	work->outcome.unique = arena_strdup(work->arena, unique ? unique : "");
	return IBID_DUPLICATE;
}

enum ibid_code ibid_fail(struct ibid_work *work, const char *text)
{
	return work_fail(work, IBID_FAILED,
	                 text && text_ok(text, TEXT_BYTES_MAX) ? text : "the handler gave no reason");
}

enum ibid_code work_check_answer(struct arena *arena, struct outcome *outcome)
{
	struct ibid_err err = {0};
	struct canonical body;
	if (!outcome->found)
		return outcome_fail(
		    arena, outcome,
		    "the handler gave no answer: a script's last statement selects one, such as "
		    "`select 201 as status`; a C callback calls ibid_answer");
	if (outcome->status < 200 || outcome->status > 399)
		return outcome_fail(
		    arena, outcome,
		    "the handler answered with status %d, and a success has 200 to 399; to "
		    "refuse a command, a script calls ibid_reject (PostgreSQL: ibid.reject)",
		    outcome->status);
	if (!text_ok(outcome->resource_type, NAME_BYTES_MAX) ||
	    !text_ok(outcome->resource_id, KEY_BYTES_MAX))
		return outcome_fail(
		    arena, outcome,
		    "the handler's resource_type or resource_id is too long or not UTF-8: they "
		    "have at most 128 and 255 bytes");
	if (!outcome->body || outcome->exact)
		return IBID_OK;
	if (canonical_copy(arena, outcome->body, outcome->body_size, ANSWER_BYTES_MAX, &body, &err))
		return outcome_fail(arena, outcome, "the answer's body is not JSON: %s", err.text);
	outcome->body = body.text;
	outcome->body_size = body.size;
	return IBID_OK;
}

bool work_reason_ok(const char *reason)
{
	size_t size = strlen(reason);
	return size > 0 && size <= REASON_BYTES_MAX &&
	       strspn(reason, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") == size;
}

enum ibid_code work_check_rejection(struct arena *arena, struct outcome *outcome)
{
	const char *reason = outcome->reason ? outcome->reason : "";
	if (!work_reason_ok(reason))
		return outcome_fail(arena, outcome,
		                    "the handler rejected with the code \"%.80s\": a code is letters A-Z, "
		                    "digits and _, such as ACCOUNT_CLOSED",
		                    reason);
	if (!text_ok(outcome->text, TEXT_BYTES_MAX))
		return outcome_fail(arena, outcome, "a rejection's text is UTF-8 of at most %d bytes",
		                    TEXT_BYTES_MAX);
	if (outcome->status < 400 || outcome->status > 499)
		return outcome_fail(arena, outcome,
		                    "the handler rejected with status %d: a rejection has 400 to 499",
		                    outcome->status);
	return IBID_REJECTED;
}

enum ibid_code work_result(struct ibid_work *work, enum ibid_code returned)
{
	struct outcome *outcome = &work->outcome;
	if (returned == IBID_RETRY)
		return IBID_RETRY;
	if (work->failure.code)
		return outcome_fail(work->arena, outcome, "%s", work->failure.text);
	switch (returned) {
	case IBID_OK: return work_check_answer(work->arena, outcome);
	case IBID_REJECTED: return work_check_rejection(work->arena, outcome);
	case IBID_DUPLICATE:
		if (outcome->unique)
			return IBID_DUPLICATE;
		return outcome_fail(work->arena, outcome, "IBID_DUPLICATE without ibid_duplicate()");
	default:
		return outcome_fail(work->arena, outcome, "the handler returned \"%s\"",
		                    ibid_code_name(returned));
	}
}
