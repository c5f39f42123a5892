/* SPDX-License-Identifier: Apache-2.0 */
/* outbox.c -- requests that look at the outbox: how events stand toward their destinations.
 *
 * Another tenant's event is as if it were not there. Payloads are not shown: who may look after
 * deliveries need not read what is delivered. */
#include "base/obj.h"
#include "http/document.h"
#include "http/failure.h"
#include "http/openapi.h"
#include "http/request.h"
#include "outbox/outbox_look.h"

#include <string.h>

/* ---- Looking -------------------------------------------------------------------------------- */

static void look_up(void *user)
{
	struct request *request = user;
	struct outbox_file file;
	struct ibid_err err = {0};
	struct str out = STR_INIT(DOCUMENT_BYTES_MAX);
	struct uuid id;
	enum ibid_code code = IBID_NOT_FOUND;
	if (uuid_read(request->params[0], &id))
		code = outbox_file_read(store_of(request), &request->arena, request->principal.tenant, &id,
		                        &file, &err);
	if (code == IBID_NOT_FOUND) {
		answer_problem(&request->answer, &request->arena, PROBLEM_NOT_FOUND,
		               "there is no such event");
	} else if (code) {
		failure_answer(request, &err);
	} else {
		outbox_file_json(&out, &file, ROW_SHARED);
		answer_document(request, &out);
	}
	request_answered(request);
}

void show_outbox_event(struct request *request)
{
	request_hand_on(request, look_up);
}

static bool read_state(const char *given, int *ret)
{
	enum outbox_state state;
	*ret = -1;
	if (given && !outbox_state_read(given, &state))
		return false;
	if (given)
		*ret = (int)state;
	return true;
}

/* What is wrong with the query; NULL: nothing. */
static const char *read_filter(struct request *request, struct outbox_filter *ret,
                               struct uuid *after)
{
	bool bad = false;
	const char *limit = request_query(request, "limit", &bad);
	const char *from = request_query(request, "after", &bad);
	const char *state = request_query(request, "state", &bad);
	*ret = (struct outbox_filter){
	    .tenant = request->principal.tenant,
	    .destination = request_query(request, "destination", &bad),
	    .type = request_query(request, "type", &bad),
	    .aggregate_type = request_query(request, "aggregateType", &bad),
	    .aggregate_id = request_query(request, "aggregateId", &bad),
	    .after = from ? after : NULL,
	};
	if (bad)
		return "the query can't be decoded";
	if (!page_limit_read(limit, &ret->limit))
		return "limit must be a number from 1 to 1000";
	if (from && !outbox_place_read(from, after, &ret->after_destination))
		return "after must be the `next` of the page before";
	if (!read_state(state, &ret->state))
		return "state must be PENDING, CLAIMED, PUBLISHED, FAILED, PARKED, SKIPPED or CANCELLED";
	return NULL;
}

static void answer_page(struct request *request, const struct outbox_row *rows, size_t count,
                        struct pauses_found pauses, bool full)
{
	struct str out = STR_INIT(DOCUMENT_BYTES_MAX);
	obj_begin(&out, NULL, '{');
	obj_begin(&out, "items", '[');
	for (size_t i = 0; i < count; i++)
		outbox_json(&out, &rows[i], pauses, NULL, ROW_SHARED);
	obj_end(&out, ']');
	if (full)
		obj_text_if(&out, "next", outbox_place_text(&request->arena, &rows[count - 1]));
	obj_end(&out, '}');
	answer_document(request, &out);
}

static void look_through(void *user)
{
	struct request *request = user;
	struct store *store = store_of(request);
	struct outbox_filter filter;
	struct outbox_row *rows = NULL;
	struct pause_row *pauses = NULL;
	struct arena reading = {0};
	struct uuid after;
	struct ibid_err err = {0};
	size_t count = 0, pause_count = 0;
	const char *wrong = read_filter(request, &filter, &after);
	if (wrong)
		answer_problem(&request->answer, &request->arena, PROBLEM_BAD_REQUEST, "%s", wrong);
	else if (store_list_outbox(store, &reading, &filter, &rows, &count, &err) ||
	         store_list_pauses(store, &reading, filter.tenant, &pauses, &pause_count, &err))
		failure_answer(request, &err);
	else
		answer_page(request, rows, count, (struct pauses_found){pauses, pause_count},
		            count == filter.limit);
	arena_release(&reading);
	request_answered(request);
}

void list_outbox(struct request *request)
{
	request_hand_on(request, look_through);
}

/* ---- What the documents are like ------------------------------------------------------------ */

static const char text_schema[] = "{\"type\":\"string\"}";
static const char number_schema[] = "{\"type\":\"integer\"}";
static const char id_schema[] = "{\"type\":\"string\",\"format\":\"uuid\"}";
static const char time_schema[] = "{\"type\":\"string\",\"format\":\"date-time\"}";

struct described {
	const char *name, *schema;
};

/* Members of an event, of how one stands, of evidence: each ends without a name. */
static const struct described event_members[] = {
    {"eventId", id_schema},         {"key", text_schema},         {"type", text_schema},
    {"aggregateType", text_schema}, {"aggregateId", text_schema}, {"version", number_schema},
    {"topic", text_schema},         {"createdAt", time_schema},   {0},
};
static const struct described origin_members[] = {
    {"commandId", id_schema},
    {"partitionKey", text_schema},
    {"correlationId", text_schema},
    {"causationId", text_schema},
    {"traceparent", text_schema},
    {"tracestate", text_schema},
    {0},
};
static const struct described standing_members[] = {
    {"destination", text_schema}, {"attempts", number_schema},
    {"failure", text_schema},     {"reason", text_schema},
    {"why", text_schema},         {"waitsFor", number_schema},
    {"nextAt", time_schema},      {"since", time_schema},
    {"relay", text_schema},       {"place", text_schema},
    {"partition", number_schema}, {"offset", number_schema},
    {"publishedAt", time_schema}, {0},
};
static const struct described delivery_members[] = {
    {"destination", text_schema},
    {"place", text_schema},
    {"partition", number_schema},
    {"offset", number_schema},
    {"token", number_schema},
    {"at", time_schema},
    {0},
};

static void add_members(struct str *out, const struct described *members)
{
	for (; members->name; members++)
		obj_raw(out, members->name, members->schema);
}

static void add_state_schema(struct str *out)
{
	obj_begin(out, "state", '{');
	obj_begin(out, "enum", '[');
	for (int i = 0; i < OUTBOX_STATE_COUNT; i++)
		obj_text(out, NULL, outbox_state_name((enum outbox_state)i));
	obj_end(out, ']');
	obj_end(out, '}');
}

static void begin_schema(struct str *out, const char *name, const char *required)
{
	obj_begin(out, name, '{');
	obj_text(out, "type", "object");
	obj_raw(out, "required", required);
	obj_raw(out, "additionalProperties", "false");
	obj_begin(out, "properties", '{');
}

static void end_schema(struct str *out)
{
	obj_end(out, '}');
	obj_end(out, '}');
}

#define ARRAY_OF(schema)                                                                           \
	"{\"type\":\"array\",\"items\":{\"$ref\":\"#/components/schemas/" schema "\"}}"

void add_outbox_schemas(struct str *out)
{
	begin_schema(out, "OutboxItem",
	             "[\"eventId\",\"key\",\"type\",\"aggregateType\",\"aggregateId\",\"version\","
	             "\"topic\",\"destination\",\"state\",\"attempts\",\"paused\",\"createdAt\"]");
	add_members(out, event_members);
	add_members(out, standing_members);
	obj_raw(out, "paused", ARRAY_OF("Pause"));
	obj_raw(out, "exceptionId", id_schema);
	add_state_schema(out);
	end_schema(out);
	begin_schema(out, "Outbox", "[\"items\"]");
	obj_raw(out, "items", ARRAY_OF("OutboxItem"));
	obj_raw(out, "next",
	        "{\"type\":\"string\",\"description\":\"`after` of the next page; missing on the last "
	        "one\"}");
	end_schema(out);
	begin_schema(out, "OutboxDelivery", "[\"destination\",\"place\",\"token\",\"at\"]");
	add_members(out, delivery_members);
	end_schema(out);
	begin_schema(out, "OutboxEvent",
	             "[\"eventId\",\"commandId\",\"key\",\"type\",\"aggregateType\",\"aggregateId\","
	             "\"version\",\"createdAt\",\"destinations\",\"deliveries\"]");
	add_members(out, event_members);
	add_members(out, origin_members);
	obj_raw(out, "destinations", ARRAY_OF("OutboxItem"));
	obj_raw(out, "deliveries", ARRAY_OF("OutboxDelivery"));
	end_schema(out);
}
