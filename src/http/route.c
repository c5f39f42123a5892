/* SPDX-License-Identifier: Apache-2.0 */
#include "http/route.h"

#include "base/utf8.h"
#include "http/answer.h"
#include "http/text_schema.h"

#include <string.h>
#include <strings.h>

#define SCHEMA(name) "{\"$ref\":\"#/components/schemas/" name "\"}"
#define BIT(n)       (1u << (n))

static const struct route_query list_queries[] = {
    {"operation", TEXT_SCHEMA, "only those of this operation"},
    {"key", TEXT_SCHEMA, "only those with this key"},
    {"client", TEXT_SCHEMA, "only those of this client; for operators"},
    {"state",
     "{\"enum\":[\"ACCEPTED\",\"IN_PROGRESS\",\"COMPLETED\",\"REJECTED\",\"FAILED\",\"UNKNOWN\"]}",
     "only those in this state"},
    {"limit", "{\"type\":\"integer\",\"minimum\":1,\"maximum\":1000,\"default\":50}",
     "how many at most"},
    {"after", ID_SCHEMA, "the `next` of the page before"},
    {0},
};
static const struct route_query submit_queries[] = {
    {"resource", NAME_SCHEMA, "what the command is about", .when = QUERY_RESOURCE_UNSAID},
    {0},
};
static const struct route_query command_queries[] = {
    {"resource", NAME_SCHEMA, "as the contract's scope has it", .when = QUERY_RESOURCE},
    {"client", NAME_IF_ANY, "whose it is; for operators"},
    {0},
};

static const struct route_query exception_queries[] = {
    {"queue",
     "{\"enum\":[\"dead-letter\",\"business\",\"reconciliation\",\"security\",\"data-quality\"]}",
     "only those in this queue"},
    {"state", "{\"enum\":[\"open\",\"resolved\",\"all\"],\"default\":\"open\"}",
     "only those in this state"},
    {"owner", TEXT_SCHEMA, "only those of this team"},
    {"assignee", TEXT_SCHEMA, "only those of this person"},
    {"limit", "{\"type\":\"integer\",\"minimum\":1,\"maximum\":1000,\"default\":50}",
     "how many at most"},
    {"after", ID_SCHEMA, "the `next` of the page before"},
    {0},
};

static const struct route_query outbox_queries[] = {
    {"destination", TEXT_SCHEMA, "only toward this destination"},
    {"state",
     "{\"enum\":[\"PENDING\",\"CLAIMED\",\"PUBLISHED\",\"FAILED\",\"PARKED\",\"SKIPPED\","
     "\"CANCELLED\"]}",
     "only those in this state"},
    {"type", TEXT_SCHEMA, "only events of this type"},
    {"aggregateType", TEXT_SCHEMA, "only events of aggregates of this type"},
    {"aggregateId", TEXT_SCHEMA, "only events of the aggregate of this id"},
    {"limit", "{\"type\":\"integer\",\"minimum\":1,\"maximum\":1000,\"default\":50}",
     "how many at most"},
    {"after", TEXT_SCHEMA_OF("^" TEXT_ID "(?:/[^\\\\u0000]*)?$"), "the `next` of the page before"},
    {0},
};

/* What people send to act on exceptions. */
#define MEMBER(name, schema) "\"" name "\":" schema
#define REASON               MEMBER("reason", REASON_SCHEMA)
#define ACT_BODY(required, members, rule)                                                          \
	"{\"type\":\"object\",\"required\":[" required                                                 \
	"],\"additionalProperties\":false,\"properties\":{" members "}" rule "}"
static const char assign_body[] = ACT_BODY(
    "\"reason\"", MEMBER("assignee", NAME_SCHEMA) "," MEMBER("owner", NAME_SCHEMA) "," REASON,
    ",\"anyOf\":[{\"required\":[\"assignee\"]},{\"required\":[\"owner\"]}]");
/* What duplicates get; only confirm-executed says it. */
#define RESULT                                                                                     \
	MEMBER("answer", "{\"description\":\"What duplicates get\"}")                                  \
	"," MEMBER("resourceId", SHORT_SCHEMA(255)) "," MEMBER(                                        \
	    "resourceType",                                                                            \
	    SHORT_SCHEMA(128)) "," MEMBER("status",                                                    \
	                                  "{\"type\":\"integer\",\"minimum\":200,\"maximum\":399}")
static const char resolve_body[] = ACT_BODY(
    "\"action\",\"reason\"", MEMBER("action", TEXT_GIVEN) "," REASON "," RESULT,
    ",\"dependentRequired\":{\"resourceId\":[\"resourceType\"],\"resourceType\":[\"resourceId\"]},"
    "\"anyOf\":[{\"properties\":{\"action\":{\"const\":\"confirm-executed\"}}},"
    "{\"properties\":{\"answer\":false,\"resourceId\":false,\"status\":false}}]");
static const char decide_body[] = ACT_BODY("\"reason\"", REASON, "");
static const char event_body[] = ACT_BODY("\"destination\",\"reason\"",
                                          MEMBER("destination", TEXT_GIVEN) "," REASON, "");
static const char pause_body[] = ACT_BODY(
    "\"kind\",\"reason\"",
    "\"kind\":{\"enum\":[\"relay\",\"destination\",\"event\"]},"
    "\"name\":{\"type\":\"string\",\"description\":\"Of the destination or event type\"}," REASON,
    ",\"oneOf\":[{\"properties\":{\"kind\":{\"const\":\"relay\"},\"name\":{\"const\":\"\"}}},"
    "{\"properties\":{\"kind\":{\"enum\":[\"destination\",\"event\"]},"
    "\"name\":" NAME_SCHEMA "},\"required\":[\"name\"]}]");

#define WORKERS (ROLE_OPERATOR | ROLE_APPROVER | ROLE_ADMIN)
#define ACTS(...)                                                                                  \
	run_action, .act = {__VA_ARGS__}, .takes_body = true, .proven = true, .roles = WORKERS
#define EVENT_PROBLEMS (ACT_PROBLEMS | BIT(PROBLEM_NOT_HELD))
#define ACT_PROBLEMS                                                                               \
	(BIT(PROBLEM_NOT_FOUND) | BIT(PROBLEM_MEDIA_TYPE) | BIT(PROBLEM_EXCEPTION_RESOLVED))

static const struct route own[] = {
    {"GET", "/healthz", run_health, .open = true, .summary = "Is the process alive?",
     .id = "ibid.health", .document = SCHEMA("Status")},
    {"GET", "/readyz", run_ready, .open = true,
     .summary = "Can it take commands? Says what is not ready", .id = "ibid.ready",
     .document = SCHEMA("Status")},
    {"GET", "/openapi.json", show_openapi, .open = true, .summary = "This document",
     .id = "ibid.openapi", .document = "{\"type\":\"object\"}"},
    {"GET", "/metrics", run_metrics, .open = true,
     .summary = "What the server counts and measures, in Prometheus' text format",
     .id = "ibid.metrics", .document = "{\"type\":\"string\"}", .media = "text/plain"},
    {"GET", "/problems/{problem}", run_problem, .open = true,
     .summary = "What a type of problem means", .id = "ibid.problem",
     .document = SCHEMA("ProblemType"), .problems = BIT(PROBLEM_NOT_FOUND)},
    {"POST", "/v1/commands/{operation}", run_operation, .takes_body = true, .roles = ROLE_CLIENT,
     .summary = "Bring one command to its outcome", .id = "ibid.submit", .queries = submit_queries},
    {"GET", "/v1/commands", list_commands, .roles = ROLE_CLIENT | ROLE_OPERATOR,
     .summary = "List commands, the newest first", .id = "ibid.list",
     .document = SCHEMA("Commands"), .queries = list_queries},
    {"GET", "/v1/commands/{operation}/{key}", show_command, .roles = ROLE_CLIENT | ROLE_OPERATOR,
     .summary = "Look a command up by its key", .id = "ibid.command", .document = SCHEMA("Command"),
     .queries = command_queries, .problems = BIT(PROBLEM_NOT_FOUND), .waits = true},
    {"GET", "/v1/operations/{id}", show_operation, .roles = ROLE_CLIENT | ROLE_OPERATOR,
     .summary = "State of a command, its result, and what is awaited", .id = "ibid.operation",
     .document = SCHEMA("Command"), .problems = BIT(PROBLEM_NOT_FOUND), .waits = true},
    {"GET", "/v1/exceptions", list_exceptions, .roles = WORKERS,
     .summary = "List what waits for a person, the newest first", .id = "ibid.exceptions",
     .document = SCHEMA("Exceptions"), .queries = exception_queries},
    {"GET", "/v1/exceptions/{id}", show_exception, .roles = WORKERS,
     .summary = "One item of human work, what may be done about it, and what was",
     .id = "ibid.exception", .document = SCHEMA("Exception"), .problems = BIT(PROBLEM_NOT_FOUND)},
    {"POST", "/v1/exceptions/{id}/assign", ACTS(FORM_ASSIGN, ACTION_ASSIGN),
     .summary = "Give an item to a team or a person", .id = "ibid.exception.assign",
     .document = SCHEMA("Exception"), .body = assign_body, .problems = ACT_PROBLEMS},
    {"POST", "/v1/exceptions/{id}/resolve", ACTS(FORM_RESOLVE, ACTION_DO),
     .summary = "End an item by one of its actions, or propose that to a second person",
     .id = "ibid.exception.resolve", .document = SCHEMA("Exception"), .body = resolve_body,
     .problems = ACT_PROBLEMS | BIT(PROBLEM_ALREADY_PROPOSED) | BIT(PROBLEM_ACTION_NOT_ALLOWED)},
    {"POST", "/v1/exceptions/{id}/approve", ACTS(FORM_DECIDE, ACTION_APPROVE),
     .summary = "Agree with what another person proposes, which is then done",
     .id = "ibid.exception.approve", .document = SCHEMA("Exception"), .body = decide_body,
     .problems = ACT_PROBLEMS | BIT(PROBLEM_NOTHING_PROPOSED) | BIT(PROBLEM_SECOND_PERSON)},
    {"POST", "/v1/exceptions/{id}/decline", ACTS(FORM_DECIDE, ACTION_DECLINE),
     .summary = "Disagree with what another person proposes", .id = "ibid.exception.decline",
     .document = SCHEMA("Exception"), .body = decide_body,
     .problems = ACT_PROBLEMS | BIT(PROBLEM_NOTHING_PROPOSED)},
    {"POST", "/v1/outbox/{event}/release", ACTS(FORM_EVENT, ACTION_DO, "release"),
     .summary = "Have a destination try an event again, now", .id = "ibid.outbox.release",
     .document = SCHEMA("EventDecision"), .body = event_body, .problems = EVENT_PROBLEMS},
    {"POST", "/v1/outbox/{event}/skip", ACTS(FORM_EVENT, ACTION_DO, "skip"),
     .summary = "Never send a parked event to a destination, or propose that to a second person",
     .id = "ibid.outbox.skip", .document = SCHEMA("EventDecision"), .body = event_body,
     .problems = EVENT_PROBLEMS | BIT(PROBLEM_ALREADY_PROPOSED)},
    {"POST", "/v1/outbox/{event}/cancel", ACTS(FORM_EVENT, ACTION_DO, "cancel"),
     .summary = "Withdraw a parked event wherever it has not arrived, or propose that",
     .id = "ibid.outbox.cancel", .document = SCHEMA("EventDecision"), .body = event_body,
     .problems = EVENT_PROBLEMS | BIT(PROBLEM_ALREADY_PROPOSED)},
    {"GET", "/v1/pauses", list_pauses, .roles = WORKERS,
     .summary = "What is paused: the relay, destinations, event types of the tenant",
     .id = "ibid.pauses", .document = SCHEMA("Pauses")},
    {"POST", "/v1/pauses", run_action, .act = {FORM_PAUSE, ACTION_DO, "pause"}, .takes_body = true,
     .proven = true, .roles = WORKERS, .summary = "Pause the relay, a destination or an event type",
     .id = "ibid.pause", .document = SCHEMA("Pause"), .body = pause_body,
     .problems = BIT(PROBLEM_NOT_FOUND) | BIT(PROBLEM_MEDIA_TYPE) | BIT(PROBLEM_NO_CHANGE)},
    {"POST", "/v1/pauses/resume", ACTS(FORM_PAUSE, ACTION_DO, "resume"),
     .summary = "Let what is paused go on; shows it as it was", .id = "ibid.resume",
     .document = SCHEMA("Pause"), .body = pause_body,
     .problems = BIT(PROBLEM_MEDIA_TYPE) | BIT(PROBLEM_NO_CHANGE)},
    {"GET", "/v1/outbox", list_outbox, .roles = WORKERS,
     .summary = "List events and how they stand toward destinations, the newest first",
     .id = "ibid.outbox", .document = SCHEMA("Outbox"), .queries = outbox_queries},
    {"GET", "/v1/outbox/{id}", show_outbox_event, .roles = WORKERS,
     .summary = "One event, how it stands toward each destination, and what arrived",
     .id = "ibid.outbox.event", .document = SCHEMA("OutboxEvent"),
     .problems = BIT(PROBLEM_NOT_FOUND)},
};
enum { OWN = sizeof own / sizeof *own };

/* ---- Making --------------------------------------------------------------------------------- */

enum path_kind { PATH_OF_ROUTE, PATH_ASKED_FOR };

/* Does the path fit the route's? Or, if it is another route's: is there one that fits both? A
 * parameter fits any segment that is not empty; in what a client asks for, braces are text. */
static bool meet(const char *route, const char *path, enum path_kind kind)
{
	for (;;) {
		size_t route_size = strcspn(route, "/"), size = strcspn(path, "/");
		bool any = *route == '{' || (kind == PATH_OF_ROUTE && *path == '{');
		if (any ? !route_size || !size : route_size != size || memcmp(route, path, size) != 0)
			return false;
		route += route_size;
		path += size;
		if (!*route || !*path)
			return !*route && !*path;
		route++;
		path++;
	}
}

static enum ibid_code check_free(const struct route *routes, size_t count,
                                 const struct route *added, struct ibid_err *err)
{
	const struct contract *contract = added->contract;
	for (size_t i = 0; i < count; i++) {
		if (strcmp(routes[i].method, added->method) != 0 ||
		    !meet(routes[i].path, added->path, PATH_OF_ROUTE))
			continue;
		return err_set(err, IBID_CONTRACT, "%s: route %s leads to %s already", contract->file,
		               contract->route,
		               routes[i].contract ? routes[i].contract->name : "the server itself");
	}
	return IBID_OK;
}

static const struct route pass = {
    .method = "any", .path = "*", .run = pass_on, .takes_body = true, .roles = ROLE_CLIENT};

static void put_own(struct arena *arena, const char *prefix, struct route *items)
{
	memcpy(items, own, sizeof own);
	for (size_t i = 0; *prefix && i < OWN; i++)
		if (own[i].run != run_problem) /* types of problems are the same everywhere */
			items[i].path = arena_printf(arena, "%s%s", prefix, own[i].path);
}

enum ibid_code routes_make(const struct contracts *contracts, const char *prefix,
                           struct routes *ret, struct ibid_err *err)
{
	size_t count = contracts_count(contracts);
	struct routes routes = {.prefix = prefix};
	struct route *items = arena_array(&routes.arena, OWN + count + 1, sizeof *items);
	enum ibid_code code = items ? IBID_OK : err_set(err, IBID_NOMEM, "out of memory");
	if (!code)
		put_own(&routes.arena, prefix, items);
	if (!code && routes.arena.failed)
		code = err_set(err, IBID_NOMEM, "out of memory");
	routes.count = OWN;
	for (size_t i = 0; !code && i < count; i++) {
		const struct contract *contract = contracts_at(contracts, i);
		const char *space = strchr(contract->route, ' ');
		if (!space)
			continue;
		struct route route = {
		    .method = arena_strndup(&routes.arena, contract->route,
		                            (size_t)(space - contract->route)),
		    .path = space + 1,
		    .run = run_command,
		    .contract = contract,
		    .takes_body = true,
		    .roles = ROLE_CLIENT,
		    .summary = contract->fact,
		};
		code = route.method ? check_free(items, routes.count, &route, err)
		                    : err_set(err, IBID_NOMEM, "out of memory");
		items[routes.count++] = route;
	}
	routes.items = items;
	if (!code) {
		items[routes.count] = pass;
		routes.pass = &items[routes.count];
	}
	if (code)
		routes_release(&routes);
	else
		*ret = routes;
	return code;
}

void routes_release(struct routes *routes)
{
	arena_release(&routes->arena);
	*routes = (struct routes){0};
}

/* ---- Finding -------------------------------------------------------------------------------- */

bool route_param(const char **at, const char **ret_name, size_t *ret_size)
{
	const char *open = strchr(*at, '{');
	if (!open)
		return false;
	*ret_name = open + 1;
	*ret_size = strcspn(open + 1, "}");
	*at = open + 1 + *ret_size;
	return true;
}

static int hex(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

char *route_decode(struct arena *arena, const char *text, size_t size)
{
	char *decoded = arena_strndup(arena, text, size), *to = decoded;
	for (size_t i = 0; decoded && i < size; i++) {
		if (text[i] != '%') {
			*to++ = text[i];
			continue;
		}
		int high = i + 2 < size ? hex(text[i + 1]) : -1, low = high >= 0 ? hex(text[i + 2]) : -1;
		if (low < 0 || (high | low) == 0)
			return NULL;
		*to++ = (char)(high << 4 | low);
		i += 2;
	}
	if (decoded)
		*to = 0;
	return decoded && utf8_ok(decoded, strlen(decoded)) ? decoded : NULL;
}

static bool take_values(const struct route *route, const char *path, struct arena *arena,
                        const char *values[ROUTE_PARAMS_MAX])
{
	const char *pattern = route->path;
	for (size_t count = 0;;) {
		size_t size = strcspn(path, "/");
		if (*pattern == '{') {
			if (count == ROUTE_PARAMS_MAX || !(values[count++] = route_decode(arena, path, size)))
				return false;
		}
		pattern += strcspn(pattern, "/");
		path += size;
		if (!*pattern)
			return true;
		pattern++;
		path++;
	}
}

const struct route *routes_find(const struct routes *routes, const char *method, const char *path,
                                struct arena *arena, const char *values[ROUTE_PARAMS_MAX],
                                const char **ret_allow, bool *ret_bad)
{
	const struct route *found = NULL;
	const char *allow = NULL;
	for (size_t i = 0; i < routes->count && !found; i++) {
		const struct route *route = &routes->items[i];
		if (!meet(route->path, path, PATH_ASKED_FOR))
			continue;
		if (strcmp(route->method, method) == 0)
			found = route;
		else
			allow = allow ? arena_printf(arena, "%s, %s", allow, route->method) : route->method;
	}
	*ret_allow = found ? NULL : allow;
	*ret_bad = found && !take_values(found, path, arena, values);
	return found;
}

bool routes_resemble(const struct routes *routes, const char *method, const char *path)
{
	for (size_t i = 0; i < routes->count; i++) {
		const struct route *route = &routes->items[i];
		const char *a = route->path, *b = path;
		if (!route->contract || strcmp(route->method, method) != 0)
			continue;
		while (*a && *b) {
			size_t a_size = strcspn(a, "/"), b_size = strcspn(b, "/");
			size_t a_word = strcspn(a, "/;.%"), b_word = strcspn(b, "/;.%");
			if (*a != '{' && (a_word != b_word || strncasecmp(a, b, a_word) != 0))
				break;
			a += a_size + (a[a_size] == '/');
			b += b_size + (b[b_size] == '/');
		}
		if (!*a && !*b)
			return true;
	}
	return false;
}
