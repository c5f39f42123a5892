/* SPDX-License-Identifier: Apache-2.0 */
/* openapi.c -- the OpenAPI document: from the table of routes and the contracts.
 *
 * It is made once for each generation, so that it says what that generation does. Nothing in it
 * depends on anything but the routes, the contracts and the settings. */
#include "http/openapi.h"

#include "base/obj.h"
#include "http/forward.h"
#include "http/payload_schema.h"
#include "http/request.h"
#include "http/text_schema.h"
#include "store/store.h"

#include <assert.h>
#include <string.h>
#include <strings.h>

enum { OPENAPI_BYTES_MAX = 64 << 20, TELLS_MAX = 128, DESCRIPTION_BYTES_MAX = 4096 };

#define BIT(n) (1u << (n))

/* ---- Headers -------------------------------------------------------------------------------- */

/* X(symbol, name, schema, meaning) */
#define HEADERS(X)                                                                                 \
	X(HEADER_COMMAND_ID, "Ibid-Command-Id", "{\"type\":\"string\",\"format\":\"uuid\"}",           \
	  "The command; /v1/operations/{id} shows it")                                                 \
	X(HEADER_REPLAYED, "Idempotent-Replayed", "{\"const\":\"true\"}",                              \
	  "There when the answer is that of an earlier request with the same key")                     \
	X(HEADER_LOCATION, "Location", "{\"type\":\"string\",\"format\":\"uri-reference\"}",           \
	  "Where what was made, or the operation, is found")                                           \
	X(HEADER_RETRY_AFTER, "Retry-After", "{\"type\":\"integer\",\"minimum\":1}",                   \
	  "Seconds after which the same may be sent again, with the same key")                         \
	X(HEADER_AUTHENTICATE, "WWW-Authenticate", "{\"type\":\"string\"}", "How to say who asks")     \
	X(HEADER_RATE, "RateLimit", "{\"type\":\"string\"}", "What is left of the token's rate")       \
	X(HEADER_RATE_POLICY, "RateLimit-Policy", "{\"type\":\"string\"}", "The token's rate")         \
	X(HEADER_CORRELATION, "Correlation-Id", "{\"type\":\"string\"}", "The request's own")          \
	X(HEADER_CAUSATION, "Causation-Id", "{\"type\":\"string\"}", "The request's own")              \
	X(HEADER_TRACERESPONSE, "traceresponse", "{\"type\":\"string\"}",                              \
	  "There when the request had a valid traceparent: its trace, and the span that ibid made in " \
	  "it")

enum header {
#define HEADER_ENUM(symbol, name, schema, meaning) symbol,
	HEADERS(HEADER_ENUM)
#undef HEADER_ENUM
	    HEADER_COUNT
};

static const struct {
	const char *name, *schema, *meaning;
} headers[HEADER_COUNT] = {
#define HEADER_ROW(symbol, name, schema, meaning) [symbol] = {name, schema, meaning},
    HEADERS(HEADER_ROW)
#undef HEADER_ROW
};

/* What a problem is told with, wherever it is told. */
static const unsigned problem_headers[PROBLEM_KINDS] = {
    [PROBLEM_UNAUTHORIZED] = BIT(HEADER_AUTHENTICATE),
    [PROBLEM_RATE] = BIT(HEADER_RETRY_AFTER) | BIT(HEADER_RATE) | BIT(HEADER_RATE_POLICY),
    [PROBLEM_UNAVAILABLE] = BIT(HEADER_RETRY_AFTER),
    [PROBLEM_ANSWER_TOO_LARGE] = BIT(HEADER_COMMAND_ID) | BIT(HEADER_REPLAYED),
    [PROBLEM_KEY_REUSED] = BIT(HEADER_COMMAND_ID),
    [PROBLEM_IN_PROGRESS] = BIT(HEADER_COMMAND_ID) | BIT(HEADER_RETRY_AFTER),
    [PROBLEM_KEY_EXPIRED] = BIT(HEADER_COMMAND_ID),
    [PROBLEM_REJECTED] = BIT(HEADER_COMMAND_ID) | BIT(HEADER_REPLAYED),
    [PROBLEM_INVALID_PAYLOAD] = BIT(HEADER_COMMAND_ID),
    [PROBLEM_FAILED] = BIT(HEADER_COMMAND_ID) | BIT(HEADER_RETRY_AFTER),
    [PROBLEM_UPSTREAM_UNKNOWN] = BIT(HEADER_COMMAND_ID) | BIT(HEADER_RETRY_AFTER) |
                                 BIT(HEADER_LOCATION),
    [PROBLEM_UNKNOWN] = BIT(HEADER_COMMAND_ID) | BIT(HEADER_RETRY_AFTER) | BIT(HEADER_LOCATION),
};

/* Of the server's own routes, not a contract's? */
static bool is_own(const struct route *route)
{
	return route->id;
}

/* ---- Answers -------------------------------------------------------------------------------- */

/* One thing that may be answered. Several may have one status. */
struct tell {
	char status[4];
	const char *title;
	unsigned headers;
	bool problem;
	const char *schema;        /* JSON; of what is no problem */
	const char *media;         /* its type; NULL: JSON */
	bool of_service;           /* it is the service's, of any type */
	const struct texts *named; /* headers of the service's; NULL: none */
	bool passed;               /* it goes through as it is, without headers of ours */
};

struct tells {
	struct tell items[TELLS_MAX];
	size_t count;
	unsigned headers; /* of all of them */
};

static void tell(struct tells *tells, const char *status, struct tell what)
{
	assert(tells->count < TELLS_MAX);
	memcpy(what.status, status, sizeof what.status);
	if (!what.passed)
		what.headers |= tells->headers;
	tells->items[tells->count++] = what;
}

static void tell_problem_as(struct tells *tells, enum problem_kind kind, const char *status)
{
	tell(tells, status,
	     (struct tell){.title = problem_infos[kind].title,
	                   .headers = problem_headers[kind],
	                   .problem = true});
}

struct status_text {
	char text[4];
};

static struct status_text status_text(int status)
{
	return (struct status_text){
	    {(char)('0' + status / 100), (char)('0' + status / 10 % 10), (char)('0' + status % 10), 0}};
}

static void tell_problem(struct tells *tells, enum problem_kind kind)
{
	tell_problem_as(tells, kind, status_text(problem_infos[kind].status).text);
}

/* Can a request bring it to its outcome? A staged one's work is done by somebody else. */
static bool is_brought(const struct contract *contract)
{
	return !contract->staged.lease_us;
}

/* What comes before anybody looks at the command. */
static void tell_common(struct tells *tells, const struct route *route)
{
	tell_problem(tells, PROBLEM_BAD_REQUEST);
	tell_problem(tells, PROBLEM_UNAVAILABLE);
	if (route->takes_body)
		tell_problem(tells, PROBLEM_TOO_LARGE);
	if (route->open)
		return;
	tell_problem(tells, PROBLEM_UNAUTHORIZED);
	tell_problem(tells, PROBLEM_FORBIDDEN);
	tell_problem(tells, PROBLEM_RATE);
	tell_problem(tells, PROBLEM_INTERNAL);
}

static void tell_success(struct tells *tells, const struct contract *contract)
{
	static const char *const statuses[] = {"202", "2XX", "3XX"};
	unsigned told = BIT(HEADER_COMMAND_ID) | BIT(HEADER_REPLAYED);
	if (contract->location)
		told |= BIT(HEADER_LOCATION);
	for (size_t i = 0; i < sizeof statuses / sizeof *statuses; i++)
		tell(tells, statuses[i],
		     (struct tell){
		         .title = "The handler's answer, or that of the first request with the same key",
		         .headers = told,
		         .schema = "true"});
}

static void tell_refusals(struct tells *tells, const struct contract *contract)
{
	static const struct {
		enum refusal_class class;
		const char *status;
		enum problem_kind otherwise;
	} classes[] = {{REFUSAL_VALIDATION, "422", PROBLEM_INVALID_PAYLOAD},
	               {REFUSAL_BUSINESS, "4XX", PROBLEM_FAILED},
	               {REFUSAL_SERVER, "500", PROBLEM_FAILED}};
	for (size_t i = 0; i < sizeof classes / sizeof *classes; i++) {
		if (contract->final[classes[i].class])
			tell_problem_as(tells, PROBLEM_REJECTED, classes[i].status);
		else
			tell_problem_as(tells, classes[i].otherwise, classes[i].status);
	}
}

/* What is decided by who came before. */
static void tell_decisions(struct tells *tells, const struct contract *contract,
                           const struct settings *settings)
{
	bool accepts = contract->duplicates.in_progress == PROGRESS_ACCEPTED;
	bool error = contract->upstream.given && contract->upstream.unknown == UPSTREAM_UNKNOWN_ERROR;
	tell_problem(tells, error ? PROBLEM_UPSTREAM_UNKNOWN : PROBLEM_UNKNOWN);
	if (error)
		tell_problem_as(tells, PROBLEM_UPSTREAM_UNKNOWN, "504");
	tell_problem(tells, PROBLEM_KEY_REUSED);
	if (contract->key.after_expiry == EXPIRY_REFUSE)
		tell_problem(tells, PROBLEM_KEY_EXPIRED);
	if (!accepts)
		tell_problem_as(tells, PROBLEM_IN_PROGRESS, settings->in_progress == 425 ? "425" : "409");
	if (accepts || contract->upstream.given)
		tell(tells, "202",
		     (struct tell){.title = problem_infos[PROBLEM_IN_PROGRESS].title,
		                   .headers = problem_headers[PROBLEM_IN_PROGRESS] | BIT(HEADER_LOCATION),
		                   .problem = true});
}

/* A command's own answers. */
static void tell_outcomes(struct tells *tells, const struct contract *contract,
                          const struct settings *settings)
{
	if (contract->key.from == KEY_HEADER) {
		tell_problem(tells, PROBLEM_KEY_MISSING);
		tell_problem(tells, PROBLEM_KEY_INVALID);
	}
	tell_problem(tells, PROBLEM_MEDIA_TYPE);
	tell_success(tells, contract);
	tell_refusals(tells, contract);
	tell_decisions(tells, contract, settings);
}

/* Does a status, or a class of them, stand for something already? */
static bool is_told(const struct tells *tells, const char *status)
{
	for (size_t i = 0; i < tells->count; i++)
		if (strcmp(tells->items[i].status, status) == 0)
			return true;
	return false;
}

/* The service's own answer with this status, by what it means. */
static void tell_service(struct tells *tells, const struct contract *contract, const char *status,
                         enum answer_meaning meaning)
{
	bool kept = meaning == MEANS_DONE || meaning == MEANS_REFUSED;
	if (kept)
		tell(tells, status,
		     (struct tell){
		         .title = "The service's answer, or that of the first request with the same key",
		         .headers = BIT(HEADER_COMMAND_ID) | BIT(HEADER_REPLAYED),
		         .named = &contract->upstream.headers,
		         .of_service = true});
	else if (meaning == MEANS_AGAIN)
		tell(tells, status,
		     (struct tell){
		         .title = "The service's answer, which is not kept: the same key is sent on again",
		         .headers = BIT(HEADER_COMMAND_ID),
		         .named = &forward_unkept_headers,
		         .of_service = true});
	if (contract->upstream.without_key == UPSTREAM_WITHOUT_KEY_PASS)
		tell(tells, status,
		     (struct tell){.title = "Without a key: the service's answer, as it is",
		                   .of_service = true,
		                   .passed = true});
}

/* Classes of statuses, and those that mean something else than the rest of their class. */
static void tell_service_answers(struct tells *tells, const struct contract *contract)
{
	static const int like_all[] = {[2] = 200, [3] = 300, [4] = 404, [5] = 500};
	for (int status = 200; status < 600; status++) {
		enum answer_meaning meaning = forward_meaning(contract, status);
		struct status_text text = status_text(status);
		if (is_told(tells, text.text) ||
		    meaning != forward_meaning(contract, like_all[status / 100]))
			tell_service(tells, contract, text.text, meaning);
	}
	for (int class = 2; class <= 5; class ++) {
		const char text[] = {(char)('0' + class), 'X', 'X', 0};
		tell_service(tells, contract, text, forward_meaning(contract, like_all[class]));
	}
}

/* Of a command whose work the service behind the server does. */
static void tell_upstream(struct tells *tells, const struct contract *contract,
                          const struct settings *settings)
{
	bool passes = contract->upstream.without_key == UPSTREAM_WITHOUT_KEY_PASS;
	if (contract->key.from == KEY_HEADER && !passes)
		tell_problem(tells, PROBLEM_KEY_MISSING);
	if (contract->key.from == KEY_HEADER)
		tell_problem(tells, PROBLEM_KEY_INVALID);
	if (contract->field_count || contract->refuse_unknown_fields)
		tell_problem_as(tells, PROBLEM_REJECTED, "422");
	tell_decisions(tells, contract, settings);
	tell_problem_as(tells, PROBLEM_FAILED, "502"); /* it can't be reached */
	tell_problem(tells, PROBLEM_ANSWER_TOO_LARGE);
	if (passes)
		tell_problem(tells, PROBLEM_UPSTREAM);
	tell_service_answers(tells, contract);
}

/* Headers that the service gives under their own names, which may be any. */
static bool service_names(const struct tells *tells, const char *status, const char *name)
{
	for (size_t i = 0; i < tells->count; i++) {
		const struct tell *one = &tells->items[i];
		for (size_t j = 0; one->named && j < one->named->count; j++)
			if (strcmp(one->status, status) == 0 && strcasecmp(one->named->items[j], name) == 0)
				return true;
	}
	return false;
}

static void add_service_headers(struct str *out, const struct tells *tells, const char *status)
{
	struct tells before = {0};
	for (size_t i = 0; i < tells->count; i++) {
		const struct tell *one = &tells->items[i];
		if (strcmp(one->status, status) != 0)
			continue;
		for (size_t j = 0; one->named && j < one->named->count; j++)
			if (!service_names(&before, status, one->named->items[j]))
				obj_raw(out, one->named->items[j],
				        "{\"$ref\":\"#/components/headers/of-the-service\"}");
		before.items[before.count++] = *one;
	}
}

/* All that one status stands for. */
static void add_status(struct str *out, const struct tells *tells, const char *status)
{
	struct str description = STR_INIT(DESCRIPTION_BYTES_MAX);
	unsigned told = 0;
	bool problem = false, of_service = false;
	const char *schema = NULL, *media = NULL;
	for (size_t i = 0; i < tells->count; i++) {
		const struct tell *one = &tells->items[i];
		if (strcmp(one->status, status) != 0)
			continue;
		if (!strstr(str_text(&description), one->title))
			str_addf(&description, "%s%s", description.size ? "; " : "", one->title);
		told |= one->headers;
		problem |= one->problem;
		of_service |= one->of_service;
		schema = one->schema ? one->schema : schema;
		media = one->media ? one->media : media;
	}
	obj_begin(out, status, '{');
	obj_text(out, "description", str_text(&description));
	obj_begin(out, "headers", '{');
	for (size_t i = 0; i < HEADER_COUNT; i++)
		if (told & BIT(i) && !service_names(tells, status, headers[i].name)) {
			obj_begin(out, headers[i].name, '{');
			str_addf(out, "\"$ref\":\"#/components/headers/%s\"", headers[i].name);
			obj_end(out, '}');
		}
	add_service_headers(out, tells, status);
	obj_end(out, '}');
	obj_begin(out, "content", '{');
	if (of_service)
		obj_raw(out, "*/*", "{}");
	if (schema) {
		obj_begin(out, media ? media : "application/json", '{');
		obj_raw(out, "schema", schema);
		obj_end(out, '}');
	}
	if (problem)
		obj_raw(out, "application/problem+json",
		        "{\"schema\":{\"$ref\":\"#/components/schemas/Problem\"}}");
	obj_end(out, '}');
	obj_end(out, '}');
	out->failed |= description.failed;
	str_release(&description);
}

/* The next status after `status` in order; NULL: that was the last. */
static const char *status_after(const struct tells *tells, const char *status)
{
	const char *next = NULL;
	for (size_t i = 0; i < tells->count; i++) {
		const char *one = tells->items[i].status;
		if (strcmp(one, status) > 0 && (!next || strcmp(one, next) < 0))
			next = one;
	}
	return next;
}

/* A rule rejects with any status of its own, also with one that stands for something else. */
static void tell_rules(struct tells *tells, const struct contract *contract)
{
	for (const char *status = status_after(tells, "4"); status && *status == '4';
	     status = status_after(tells, status)) {
		if (contract->final[REFUSAL_BUSINESS])
			tell_problem_as(tells, PROBLEM_REJECTED, status);
		else
			tell_problem_as(tells, PROBLEM_FAILED, status);
	}
}

static void add_answers(struct str *out, const struct route *route, const struct settings *settings)
{
	struct tells tells = {.headers = BIT(HEADER_CORRELATION) | BIT(HEADER_CAUSATION) |
	                                 BIT(HEADER_TRACERESPONSE)};
	const struct contract *contract = route->contract;
	if (settings->rate && !route->open)
		tells.headers |= BIT(HEADER_RATE) | BIT(HEADER_RATE_POLICY);
	tell_common(&tells, route);
	if (route->takes_body && contract && contract->upstream.given)
		tell_upstream(&tells, contract, settings);
	else if (route->takes_body && contract && is_brought(contract)) {
		tell_outcomes(&tells, contract, settings);
		tell_rules(&tells, contract);
	}
	for (int kind = 0; kind < PROBLEM_KINDS; kind++)
		if (route->problems & BIT(kind))
			tell_problem(&tells, (enum problem_kind)kind);
	if (route->document)
		tell(&tells, "200",
		     (struct tell){.title = route->summary,
		                   .schema = route->document,
		                   .media = route->media,
		                   .headers = route->waits ? BIT(HEADER_RETRY_AFTER) : 0});
	obj_begin(out, "responses", '{');
	for (const char *status = status_after(&tells, ""); status;
	     status = status_after(&tells, status))
		add_status(out, &tells, status);
	obj_end(out, '}');
}

/* ---- Questions ------------------------------------------------------------------------------ */

static void begin_param(struct str *out, const char *name, const char *in, bool required)
{
	obj_begin(out, NULL, '{');
	obj_text(out, "name", name);
	obj_text(out, "in", in);
	if (required)
		obj_bool(out, "required", true);
}

static void add_header_param(struct str *out, const char *name, bool required, const char *schema,
                             const char *meaning)
{
	begin_param(out, name, "header", required);
	obj_text(out, "description", meaning);
	obj_raw(out, "schema", schema);
	obj_end(out, '}');
}

static const char any_text[] = "{\"type\":\"string\"}";

static void add_command_headers(struct str *out, const struct contract *contract)
{
	bool from_header = contract->key.from == KEY_HEADER;
	bool passes = contract->upstream.given &&
	              contract->upstream.without_key == UPSTREAM_WITHOUT_KEY_PASS;
	if (from_header)
		add_header_param(
		    out, "Idempotency-Key", !passes, KEY_SCHEMA,
		    "1 to 255 bytes, bare or as a quoted string: a new one for each intent, the "
		    "same for each retry");
	add_header_param(out, "Correlation-Id", false, HEADER_NAME_SCHEMA,
	                 "Kept with the audit entry and the events, and returned");
	add_header_param(
	    out, "Causation-Id", false, HEADER_NAME_SCHEMA,
	    "What caused the command; kept with the audit entry and the events, and returned");
	add_header_param(
	    out, "traceparent", false, any_text,
	    "W3C trace context; kept, with a span of ibid's own as the parent, in the audit "
	    "entry and the events. A malformed one is as if none was sent");
	add_header_param(out, "tracestate", false, any_text,
	                 "Kept with a valid traceparent; dropped when it is longer than 512 bytes");
	add_header_param(out, "Ibid-Actor", false, HEADER_NAME_SCHEMA,
	                 "The acting person or service; the client when left out");
}

static void add_problem_slugs(struct str *out)
{
	obj_begin(out, "schema", '{');
	obj_begin(out, "enum", '[');
	for (size_t i = 0; i < PROBLEM_KINDS; i++)
		obj_text(out, NULL, problem_infos[i].slug);
	obj_end(out, ']');
	obj_end(out, '}');
}

/* Of a route of the server's own. */
static void add_own_param_schema(struct str *out, const char *name)
{
	if (strcmp(name, "problem") == 0)
		add_problem_slugs(out);
	else if (strcmp(name, "id") == 0)
		obj_raw(out, "schema", "{\"type\":\"string\",\"format\":\"uuid\"}");
	else
		obj_raw(out, "schema", "{\"type\":\"string\",\"minLength\":1}");
}

/* Parameters are called as in `path`, which is the route's own but for their names. */
static void add_path_params(struct str *out, const struct route *route, const char *path)
{
	const char *at = path, *own_at = route->path, *shown, *own;
	size_t shown_size, own_size;
	while (route_param(&at, &shown, &shown_size) && route_param(&own_at, &own, &own_size)) {
		struct str name = STR_INIT(256), pointer = STR_INIT(256);
		str_add(&name, shown, shown_size);
		str_addc(&pointer, '/');
		str_add(&pointer, own, own_size);
		begin_param(out, str_text(&name), "path", true);
		if (is_own(route))
			add_own_param_schema(out, str_text(&name));
		else
			param_schema(out, "schema", contract_field_at(route->contract, str_text(&pointer)));
		obj_end(out, '}');
		out->failed |= name.failed || pointer.failed;
		str_release(&name);
		str_release(&pointer);
	}
}

static bool is_asked(const struct contract *contract, const struct route_query *query)
{
	assert(contract || query->when == QUERY_ALWAYS); /* only commands have a resource */
	switch (query->when) {
	case QUERY_RESOURCE: return contract->key.scope & SCOPE_RESOURCE;
	case QUERY_RESOURCE_UNSAID:
		return contract_asks_resource(contract) && !strchr(contract->route, '{');
	default: return true;
	}
}

static void add_queries(struct str *out, const struct route *route)
{
	for (const struct route_query *query = route->queries; query && query->name; query++) {
		if (!is_asked(route->contract, query))
			continue;
		begin_param(out, query->name, "query", query->when);
		obj_text(out, "description", query->meaning);
		obj_raw(out, "schema", query->schema);
		obj_end(out, '}');
	}
}

/* What is sent on may be of any type. An object in JSON is checked by the declared fields; any
 * other body is itself a member or two of the payload. True: there must be one. */
static bool add_service_body(struct str *out, const struct route *route)
{
	static const char no_object[] = "{\"not\":{\"type\":\"object\"}}";
	const struct contract *contract = route->contract;
	const struct contract_field *body = contract_field_at(contract, "/@body");
	const struct contract_field *type = contract_field_at(contract, "/@type");
	struct str object = STR_INIT(OPENAPI_BYTES_MAX), schema = STR_INIT(OPENAPI_BYTES_MAX);
	bool needed;
	payload_schema(&object, NULL, contract, route->path, &needed);
	bool objects = !(body && body->required) && !(type && type->required);
	bool passes = contract->upstream.without_key == UPSTREAM_WITHOUT_KEY_PASS;
	bool others = !needed && (!contract->refuse_unknown_fields || (body && type));
	others = others || passes; /* without a key nobody looks at it */
	if (objects && others)
		str_addf(&schema, "{\"anyOf\":[%s,%s]}", str_text(&object), no_object);
	else
		str_adds(&schema, objects ? str_text(&object) : others ? no_object : "{\"not\":{}}");
	obj_begin(out, "application/json", '{');
	obj_raw(out, "schema", str_text(&schema));
	obj_end(out, '}');
	if (others)
		obj_raw(out, "*/*", "{}");
	out->failed |= object.failed || schema.failed;
	str_release(&object);
	str_release(&schema);
	return !passes && (needed || !objects);
}

static void add_json_body(struct str *out, const struct route *route, bool *ret_required)
{
	bool needed = true, params = strchr(route->path, '{');
	obj_begin(out, "application/json", '{');
	if (route->body) {
		obj_raw(out, "schema", route->body);
	} else if (is_own(route)) {
		assert(route->contract); /* of all own routes only the generic one takes a payload */
		obj_begin(out, "schema", '{');
		str_addf(out, "\"$ref\":\"#/components/schemas/payload.%s\"", route->contract->name);
		obj_end(out, '}');
	} else {
		payload_schema(out, "schema", route->contract, route->path, &needed);
	}
	obj_end(out, '}');
	*ret_required = needed || !params; /* a path with parameters is a payload by itself */
}

static void add_body(struct str *out, const struct route *route)
{
	bool required = true;
	obj_begin(out, "requestBody", '{');
	obj_begin(out, "content", '{');
	if (route->contract && route->contract->upstream.given)
		required = add_service_body(out, route);
	else
		add_json_body(out, route, &required);
	obj_end(out, '}');
	obj_bool(out, "required", required);
	obj_end(out, '}');
}

/* ---- Operations ----------------------------------------------------------------------------- */

static const char *run_by(const struct contract *contract)
{
	if (contract->upstream.given)
		return ". It is sent on, once, to the service behind the server; the same request is the "
		       "same path, query and body";
	return is_brought(contract) ? "" : ". It is staged: a program runs it, no request";
}

static void add_operation(struct str *out, const struct route *route, const char *path,
                          const struct settings *settings)
{
	const struct contract *contract = route->contract;
	char method[8] = "";
	for (size_t i = 0; route->method[i] && i + 1 < sizeof method; i++)
		method[i] = (char)(route->method[i] | 0x20);
	obj_begin(out, method, '{');
	obj_text(out, "operationId", contract && !is_own(route) ? contract->name : route->id);
	obj_text(out, "summary", route->summary);
	if (contract && route->takes_body) {
		struct str text = STR_INIT(DESCRIPTION_BYTES_MAX);
		str_addf(&text, "The command %s, version %d%s", contract->name, contract->version,
		         run_by(contract));
		obj_text(out, "description", str_text(&text));
		str_release(&text);
	}
	obj_begin(out, "tags", '[');
	obj_text(out, NULL, contract ? contract->owner : "ibid");
	obj_end(out, ']');
	obj_begin(out, "parameters", '[');
	add_path_params(out, route, path);
	add_queries(out, route);
	if (route->takes_body && contract)
		add_command_headers(out, contract);
	obj_end(out, ']');
	if (route->takes_body)
		add_body(out, route);
	add_answers(out, route, settings);
	obj_end(out, '}');
}

/* The same but for the names of parameters? */
static bool same_path(const char *a, const char *b)
{
	for (; *a && *b; a++, b++) {
		if (*a != *b)
			return false;
		if (*a != '{')
			continue;
		a += strcspn(a, "}");
		b += strcspn(b, "}");
	}
	return *a == *b;
}

static bool seen_before(const struct route *routes, size_t index)
{
	for (size_t i = 0; i < index; i++)
		if (same_path(routes[i].path, routes[index].path))
			return true;
	return false;
}

static void add_paths(struct str *out, const struct route *routes, size_t count,
                      const struct settings *settings)
{
	obj_begin(out, "paths", '{');
	for (size_t i = 0; i < count; i++) {
		const char *path = routes[i].path;
		if (seen_before(routes, i))
			continue;
		obj_begin(out, path, '{');
		for (size_t j = i; j < count; j++)
			if (same_path(path, routes[j].path))
				add_operation(out, &routes[j], path, settings);
		obj_end(out, '}');
	}
	obj_end(out, '}');
}

/* ---- Routes of all operations --------------------------------------------------------------- */

static const char operation_param[] = "{operation}";

static bool is_of_each(const struct route *route)
{
	return is_own(route) && strstr(route->path, operation_param);
}

/* Can a request name the operation there? The service's is a request of its own. */
static bool is_for(const struct route *route, const struct contract *contract)
{
	return !route->takes_body || (is_brought(contract) && !contract->upstream.given);
}

static struct route route_of(struct arena *arena, const struct route *route,
                             const struct contract *contract)
{
	struct route one = *route;
	const char *param = strstr(route->path, operation_param);
	one.path = arena_printf(arena, "%.*s%s%s", (int)(param - route->path), route->path,
	                        contract->name, param + sizeof operation_param - 1);
	one.id = arena_printf(arena, "%s.%s", route->id, contract->name);
	one.contract = contract;
	return one;
}

/* The routes, but those of all operations once for each: what they take and answer is as different
 * as the contracts. NULL: no memory. */
static struct route *routes_described(struct arena *arena, const struct routes *routes,
                                      const struct contracts *contracts, size_t *ret_count)
{
	size_t of_each = contracts_count(contracts), room = 0, count = 0;
	for (size_t i = 0; i < routes->count; i++)
		room += is_of_each(&routes->items[i]) ? of_each : 1;
	struct route *all = arena_array(arena, room, sizeof *all);
	for (size_t i = 0; all && i < routes->count; i++) {
		const struct route *route = &routes->items[i];
		if (!is_of_each(route)) {
			all[count++] = *route;
			continue;
		}
		for (size_t j = 0; j < of_each; j++)
			if (is_for(route, contracts_at(contracts, j)))
				all[count++] = route_of(arena, route, contracts_at(contracts, j));
	}
	*ret_count = count;
	return arena->failed ? NULL : all;
}

/* ---- What operations share ------------------------------------------------------------------ */

static void add_problem_schema(struct str *out)
{
	obj_begin(out, "Problem", '{');
	obj_text(out, "type", "object");
	obj_text(out, "description", "RFC 9457 problem details");
	obj_raw(out, "required", "[\"status\",\"title\",\"type\"]");
	obj_begin(out, "properties", '{');
	obj_raw(out, "code",
	        "{\"type\":\"string\",\"description\":\"Stable: what a program decides by\"}");
	obj_raw(out, "commandId", "{\"type\":\"string\",\"format\":\"uuid\"}");
	obj_raw(out, "detail", "{\"type\":\"string\"}");
	obj_raw(out, "errors",
	        "{\"type\":\"array\",\"description\":\"What is wrong with the payload, and where\","
	        "\"items\":{\"type\":\"object\",\"required\":[\"detail\",\"pointer\"],\"properties\":{"
	        "\"detail\":{\"type\":\"string\"},\"pointer\":{\"type\":\"string\"}}}}");
	obj_raw(out, "incidentId",
	        "{\"type\":\"string\",\"description\":\"Of a failure of the server: its log has the "
	        "cause under this id\"}");
	obj_raw(out, "resourceId", "{\"type\":\"string\"}");
	obj_raw(out, "resourceType", "{\"type\":\"string\"}");
	obj_raw(out, "status", "{\"type\":\"integer\"}");
	obj_raw(out, "title", "{\"type\":\"string\"}");
	obj_begin(out, "type", '{');
	obj_begin(out, "enum", '[');
	for (size_t i = 0; i < PROBLEM_KINDS; i++) {
		struct str type = STR_INIT(128);
		str_addf(&type, "/problems/%s", problem_infos[i].slug);
		obj_text(out, NULL, str_text(&type));
		str_release(&type);
	}
	obj_end(out, ']');
	obj_end(out, '}');
	obj_end(out, '}');
	obj_end(out, '}');
}

static void add_command_schema(struct str *out)
{
	static const char *const texts[] = {
	    "actor",         "awaits",     "causationId",  "client",      "code",
	    "correlationId", "detail",     "externalKey",  "incidentId",  "key",
	    "operation",     "resourceId", "resourceType", "traceparent", "tracestate"};
	static const char *const times[] = {"createdAt", "expiresAt", "finishedAt"};
	obj_begin(out, "Command", '{');
	obj_text(out, "type", "object");
	obj_raw(out, "required", "[\"id\",\"operation\",\"key\",\"state\",\"attempts\",\"createdAt\"]");
	obj_begin(out, "properties", '{');
	obj_raw(out, "id", "{\"type\":\"string\",\"format\":\"uuid\"}");
	obj_begin(out, "state", '{');
	obj_begin(out, "enum", '[');
	for (int i = 0; i < COMMAND_STATE_COUNT; i++)
		obj_text(out, NULL, command_state_name((enum command_state)i));
	obj_end(out, ']');
	obj_end(out, '}');
	obj_raw(out, "attempts", "{\"type\":\"integer\"}");
	obj_raw(out, "status",
	        "{\"type\":\"integer\",\"description\":\"Of the answer, where there is one\"}");
	obj_raw(out, "result", "{\"description\":\"The body of the answer, where it is kept\"}");
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
		obj_raw(out, texts[i], "{\"type\":\"string\"}");
	for (size_t i = 0; i < sizeof times / sizeof *times; i++)
		obj_raw(out, times[i], "{\"type\":\"string\",\"format\":\"date-time\"}");
	obj_end(out, '}');
	obj_raw(out, "additionalProperties", "false");
	obj_end(out, '}');
}

static void add_texts(struct str *out, const char *const *names, size_t count)
{
	for (size_t i = 0; i < count; i++)
		obj_raw(out, names[i], "{\"type\":\"string\"}");
}

static void add_times(struct str *out, const char *const *names, size_t count)
{
	for (size_t i = 0; i < count; i++)
		obj_raw(out, names[i], "{\"type\":\"string\",\"format\":\"date-time\"}");
}

#define COUNT(array) (sizeof(array) / sizeof *(array))

/* What people did, and what waits for one of them. */
static void add_history_schemas(struct str *out)
{
	static const char *const did[] = {"action", "actor", "reason", "role", "token"};
	static const char *const approval[] = {"action",   "decidedBy",  "decidedReason",
	                                       "decision", "proposedBy", "reason"};
	static const char *const at[] = {"at"}, *const approval_at[] = {"decidedAt", "proposedAt"};
	obj_begin(out, "Action", '{');
	obj_text(out, "type", "object");
	obj_raw(out, "required", "[\"id\",\"at\",\"action\",\"actor\",\"reason\",\"role\",\"token\"]");
	obj_begin(out, "properties", '{');
	obj_raw(out, "id", "{\"type\":\"string\",\"format\":\"uuid\"}");
	add_texts(out, did, COUNT(did));
	add_times(out, at, COUNT(at));
	obj_raw(out, "parameters", "{\"type\":\"object\"}");
	obj_raw(out, "approvalId", "{\"type\":\"string\",\"format\":\"uuid\"}");
	obj_end(out, '}');
	obj_raw(out, "additionalProperties", "false");
	obj_end(out, '}');
	obj_begin(out, "Approval", '{');
	obj_text(out, "type", "object");
	obj_raw(out, "required", "[\"id\",\"action\",\"proposedBy\",\"proposedAt\",\"reason\"]");
	obj_begin(out, "properties", '{');
	obj_raw(out, "id", "{\"type\":\"string\",\"format\":\"uuid\"}");
	add_texts(out, approval, COUNT(approval));
	add_times(out, approval_at, COUNT(approval_at));
	obj_end(out, '}');
	obj_raw(out, "additionalProperties", "false");
	obj_end(out, '}');
}

static void add_exception_schema(struct str *out)
{
	static const char *const texts[] = {
	    "assignee",    "correlationId", "detail",      "documentId", "documentType",
	    "externalKey", "key",           "note",        "owner",      "payloadRef",
	    "queue",       "reason",        "resolution",  "resolvedBy", "serviceAnswer",
	    "source",      "subjectId",     "subjectType", "suggestion", "traceId"};
	static const char *const times[] = {"dueAt", "openedAt", "resolvedAt"};
	static const char names[] = "{\"type\":\"array\",\"items\":{\"type\":\"string\"}}";
	obj_begin(out, "Exception", '{');
	obj_text(out, "type", "object");
	obj_raw(
	    out, "required",
	    "[\"id\",\"queue\",\"state\",\"severity\",\"owner\",\"reason\",\"retryable\",\"overdue\","
	    "\"actions\",\"needsApproval\",\"subjectType\",\"subjectId\",\"openedAt\"]");
	obj_begin(out, "properties", '{');
	obj_raw(out, "id", "{\"type\":\"string\",\"format\":\"uuid\"}");
	obj_raw(out, "state", "{\"enum\":[\"OPEN\",\"RESOLVED\"]}");
	obj_raw(out, "severity", "{\"enum\":[\"low\",\"medium\",\"high\",\"critical\"]}");
	obj_raw(out, "retryable", "{\"type\":\"boolean\"}");
	obj_raw(out, "overdue", "{\"type\":\"boolean\"}");
	obj_raw(out, "actions", names);
	obj_raw(out, "needsApproval", names);
	obj_raw(out, "proposal", "{\"$ref\":\"#/components/schemas/Approval\"}");
	obj_raw(out, "approvals",
	        "{\"type\":\"array\",\"items\":{\"$ref\":\"#/components/schemas/Approval\"}}");
	obj_raw(out, "history",
	        "{\"type\":\"array\",\"items\":{\"$ref\":\"#/components/schemas/Action\"}}");
	add_texts(out, texts, COUNT(texts));
	add_times(out, times, COUNT(times));
	obj_end(out, '}');
	obj_raw(out, "additionalProperties", "false");
	obj_end(out, '}');
}

static void add_pause_schemas(struct str *out)
{
	static const char *const texts[] = {"by", "name", "reason"};
	static const char *const times[] = {"since"};
	obj_begin(out, "Pause", '{');
	obj_text(out, "type", "object");
	obj_raw(out, "required", "[\"kind\",\"source\",\"by\",\"reason\",\"since\"]");
	obj_begin(out, "properties", '{');
	obj_raw(out, "kind", "{\"enum\":[\"relay\",\"destination\",\"event\"]}");
	obj_raw(out, "source", "{\"enum\":[\"person\",\"relay\"]}");
	add_texts(out, texts, COUNT(texts));
	add_times(out, times, COUNT(times));
	obj_end(out, '}');
	obj_raw(out, "additionalProperties", "false");
	obj_end(out, '}');
	obj_raw(out, "Pauses",
	        "{\"type\":\"object\",\"required\":[\"items\"],\"additionalProperties\":false,"
	        "\"properties\":{\"items\":{\"type\":\"array\",\"items\":{\"$ref\":"
	        "\"#/components/schemas/Pause\"}}}}");
}

static void add_schemas(struct str *out, const struct contracts *contracts)
{
	bool required;
	obj_begin(out, "schemas", '{');
	add_command_schema(out);
	obj_raw(out, "Commands",
	        "{\"type\":\"object\",\"required\":[\"items\"],\"additionalProperties\":false,"
	        "\"properties\":{\"items\":{\"type\":\"array\",\"items\":{\"$ref\":"
	        "\"#/components/schemas/Command\"}},\"next\":{\"type\":\"string\",\"format\":\"uuid\","
	        "\"description\":\"`after` of the next page; missing on the last one\"}}}");
	add_exception_schema(out);
	add_history_schemas(out);
	obj_raw(
	    out, "Exceptions",
	    "{\"type\":\"object\",\"required\":[\"items\"],\"additionalProperties\":false,"
	    "\"properties\":{\"items\":{\"type\":\"array\",\"items\":{\"$ref\":"
	    "\"#/components/schemas/Exception\"}},\"next\":{\"type\":\"string\",\"format\":\"uuid\","
	    "\"description\":\"`after` of the next page; missing on the last one\"}}}");
	obj_raw(out, "EventDecision",
	        "{\"type\":\"object\",\"required\":[\"eventId\",\"destination\",\"action\",\"by\","
	        "\"proposed\",\"arrivedAt\",\"paused\"],\"additionalProperties\":false,\"properties\":{"
	        "\"action\":{\"enum\":[\"release\",\"skip\",\"cancel\"]},\"arrivedAt\":{\"type\":"
	        "\"array\",\"items\":{\"type\":\"string\"},\"description\":\"where it had arrived "
	        "before it was cancelled\"},\"by\":{\"type\":\"string\"},\"destination\":{\"type\":"
	        "\"string\"},\"eventId\":{\"type\":\"string\",\"format\":\"uuid\"},"
	        "\"exceptionId\":{\"type\":\"string\",\"format\":\"uuid\"},\"paused\":{\"type\":"
	        "\"array\",\"items\":{\"$ref\":"
	        "\"#/components/schemas/Pause\"},\"description\":\"released: what keeps the event from "
	        "going all the "
	        "same\"},\"proposed\":{\"type\":\"boolean\"},\"state\":{\"type\":\"string\","
	        "\"description\":\"how the event is held "
	        "there now\"}}}");
	add_pause_schemas(out);
	add_outbox_schemas(out);
	add_problem_schema(out);
	obj_raw(out, "ProblemType",
	        "{\"type\":\"object\",\"required\":[\"meaning\",\"status\",\"title\",\"type\"],"
	        "\"additionalProperties\":false,\"properties\":{\"meaning\":{\"type\":\"string\"},"
	        "\"status\":{\"type\":\"integer\"},\"title\":{\"type\":\"string\"},\"type\":{\"type\":"
	        "\"string\"}}}");
	obj_raw(out, "Status",
	        "{\"type\":\"object\",\"required\":[\"status\"],\"additionalProperties\":false,"
	        "\"properties\":{\"status\":{\"enum\":[\"alive\",\"ready\"]}}}");
	for (size_t i = 0; i < contracts_count(contracts); i++) {
		const struct contract *contract = contracts_at(contracts, i);
		struct str name = STR_INIT(128);
		if (contract->upstream.given)
			continue; /* its payload is made of a request of its own */
		str_addf(&name, "payload.%s", contract->name);
		payload_schema(out, str_text(&name), contract, NULL, &required);
		out->failed |= name.failed;
		str_release(&name);
	}
	obj_end(out, '}');
}

static bool any_upstream(const struct contracts *contracts)
{
	for (size_t i = 0; i < contracts_count(contracts); i++)
		if (contracts_at(contracts, i)->upstream.given)
			return true;
	return false;
}

static void add_components(struct str *out, const struct contracts *contracts)
{
	obj_begin(out, "components", '{');
	add_schemas(out, contracts);
	obj_begin(out, "headers", '{');
	for (size_t i = 0; i < HEADER_COUNT; i++) {
		obj_begin(out, headers[i].name, '{');
		obj_text(out, "description", headers[i].meaning);
		obj_raw(out, "schema", headers[i].schema);
		obj_end(out, '}');
	}
	if (any_upstream(contracts))
		obj_raw(out, "of-the-service",
		        "{\"description\":\"As the service behind the server says it\","
		        "\"schema\":{\"type\":\"string\"}}");
	obj_end(out, '}');
	obj_end(out, '}');
}

/* Those who own what is done, each once, after the server itself. */
static void add_tags(struct str *out, const struct contracts *contracts)
{
	const char *last = "";
	obj_begin(out, "tags", '[');
	obj_raw(out, NULL, "{\"name\":\"ibid\",\"description\":\"The ledger and the server\"}");
	for (;;) {
		const char *next = NULL;
		for (size_t i = 0; i < contracts_count(contracts); i++) {
			const char *owner = contracts_at(contracts, i)->owner;
			if (strcmp(owner, last) > 0 && (!next || strcmp(owner, next) < 0))
				next = owner;
		}
		if (!next)
			break;
		last = next;
		if (strcmp(next, "ibid") == 0)
			continue;
		obj_begin(out, NULL, '{');
		obj_text(out, "name", next);
		obj_end(out, '}');
	}
	obj_end(out, ']');
}

/* ---- The document --------------------------------------------------------------------------- */

enum ibid_code openapi_make(const struct routes *routes, const struct contracts *contracts,
                            const struct settings *settings, struct str *ret, struct ibid_err *err)
{
	struct str out = STR_INIT(OPENAPI_BYTES_MAX);
	struct arena arena = {0};
	size_t count;
	const struct route *described = routes_described(&arena, routes, contracts, &count);
	if (!described) {
		arena_release(&arena);
		return err_set(err, IBID_NOMEM, "out of memory");
	}
	obj_begin(&out, NULL, '{');
	obj_text(&out, "openapi", "3.1.0");
	obj_begin(&out, "info", '{');
	obj_text(&out, "title", "ibid: one outcome for each intent");
	obj_text(&out, "version", ibid_version());
	obj_end(&out, '}');
	obj_raw(&out, "servers", "[{\"url\":\"/\"}]");
	add_tags(&out, contracts);
	add_paths(&out, described, count, settings);
	add_components(&out, contracts);
	obj_end(&out, '}');
	arena_release(&arena);
	if (out.failed) {
		str_release(&out);
		return err_set(err, IBID_NOMEM, "out of memory");
	}
	*ret = out;
	return IBID_OK;
}

void show_openapi(struct request *request)
{
	/* The generation outlives its requests. */
	answer_json(&request->answer, 200, request->generation->openapi.data);
}
