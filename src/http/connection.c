/* SPDX-License-Identifier: Apache-2.0 */
/* connection.c -- from a head and a body to a request, and from its answer to the listener.
 *
 * Everything here but request_answered runs on the listener's thread, which must never wait. */
#include "http/connection.h"

#include "base/hash.h"
#include "base/utf8.h"
#include "command/result.h"
#include "http/access.h"
#include "http/failure.h"
#include "http/meters.h"
#include "http/pass.h"
#include "http/trace.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum {
	BODY_COPIES = 3, /* of a body at most: it grows twofold, and is joined with the path */
};

/* ---- What a request says -------------------------------------------------------------------- */

const char *request_header(const struct request *request, const char *name, bool *ret_many)
{
	return head_find(client_head(request->client), name, ret_many);
}

const char *request_query(struct request *request, const char *name, bool *ret_bad)
{
	size_t size = strlen(name);
	for (const char *at = request->query; *at;) {
		size_t pair = strcspn(at, "&");
		if (pair > size && at[size] == '=' && memcmp(at, name, size) == 0) {
			const char *value = route_decode(&request->arena, at + size + 1, pair - size - 1);
			bool good = value && utf8_ok(value, strlen(value));
			*ret_bad |= !good;
			return good ? value : NULL;
		}
		at += pair + (at[pair] == '&');
	}
	return NULL;
}

/* ---- Memory --------------------------------------------------------------------------------- */

static bool hold(struct request *request, size_t bytes)
{
	bool room = memory_hold(&request->server->memory, &request->held, bytes);
	client_holds(request->client, request->held > 0);
	return room;
}

static void free_answer(struct request *request)
{
	ibid_result_free(request->answer.result);
	request->answer.result = NULL;
	free(request->answer.owned);
	request->answer.owned = NULL;
}

bool request_hold_answer(struct request *request, size_t more)
{
	struct answer *answer = &request->answer;
	size_t bytes = request->body.room + request->arena.used + more;
	bytes += answer->result ? answer->result->arena.used : 0;
	bytes += answer->owned ? answer->size : 0;
	if (hold(request, bytes))
		return true;
	request->command_id = arena_strdup(&request->arena, request->command_id); /* for the log */
	free_answer(request);
	request->unheld = true;
	return false;
}

/* ---- Waiting -------------------------------------------------------------------------------- */

void request_suspend(struct request *request)
{
	request->suspended = true;
	client_suspend(request->client);
}

void request_answered(struct request *request)
{
	if (request->answer.status)
		(void)request_hold_answer(request, 0);
	client_resume(request->client);
}

void request_answered_together(struct request *request)
{
	(void)request_hold_answer(request, 0);
	client_resume_soon(request->client);
}

void request_hand_on(struct request *request, worker_fn *call)
{
	struct ibid_err err = {0};
	request_suspend(request);
	if (!worker_pool_call(request->generation->workers, request->principal.tenant, call, request,
	                      &err))
		return;
	failure_answer(request, &err);
	request_answered(request);
}

/* ---- Beginning and end ---------------------------------------------------------------------- */

static void *begin(void *user, struct client *client)
{
	struct server *server = user;
	const struct head *head = client_head(client);
	struct request *request = calloc(1, sizeof *request);
	if (!request)
		return NULL;
	request->server = server;
	request->client = client;
	request->began_us = env_steady_us(server->env);
	request->method = head->method;
	request->uri = head->target;
	request->body = STR_INIT((size_t)server->settings->body_bytes);
	pthread_mutex_lock(&server->lock);
	request->generation = server->generation;
	request->generation->requests++;
	server->active++;
	pthread_mutex_unlock(&server->lock);
	trace_read(request);
	return request;
}

/* Whoever knows a key finds its lines; whoever reads the lines does not learn the key. */
static const char *hash_of(const char *key, char text[SHA256_TEXT_SIZE])
{
	if (!key)
		return NULL;
	struct sha256 hash = sha256(key, strlen(key));
	sha256_write(&hash, text);
	return text;
}

static const char *or_null(const char *text)
{
	return text && *text ? text : NULL;
}

static void log_request(const struct request *request, int64_t took_us, bool sent)
{
	const struct ibid_result *result = request->answer.result;
	const struct traceparent *span = request->trace ? &request->trace->span : NULL;
	char hash[SHA256_TEXT_SIZE];
	LOG(&request->server->log, IBID_LOG_INFO, "http.request", {"method", log_text(request->method)},
	    {"route", log_text(request->route ? request->route->path : NULL)},
	    {"status", log_int(request->answer.status)},
	    {"operation", log_text(request->contract ? request->contract->name : NULL)},
	    {"decision", log_text(request->decision)},
	    {"replayed", log_text(result ? result->replayed ? "yes" : "no" : NULL)},
	    {"commandId", log_text(request->command_id)},
	    {"attempt", result && result->attempts ? log_int(result->attempts) : log_text(NULL)},
	    {"keyHash", log_text(hash_of(request->key, hash))},
	    {"correlationId", log_text(request->correlation_id)},
	    {"causationId", log_text(request->causation_id)},
	    {"traceId", log_text(span ? span->trace_id : NULL)},
	    {"spanId", log_text(span ? span->parent_id : NULL)},
	    {"resourceType", log_text(result ? or_null(result->resource_type) : NULL)},
	    {"resourceId", log_text(result ? or_null(result->resource_id) : NULL)},
	    {"reason", log_text(result ? or_null(result->reason) : NULL)},
	    {"tenant", log_text(request->principal.tenant)},
	    {"client", log_text(request->principal.client)},
	    {"token",
	     log_text(request->principal.tenant && *request->token.id ? request->token.id : NULL)},
	    {"tookUs", log_int(took_us)}, {"end", log_text(sent ? "sent" : "broken off")});
}

static void end(void *user, bool sent)
{
	struct request *request = user;
	struct server *server = request->server;
	int64_t took_us = env_steady_us(server->env) - request->began_us;
	meters_request(request, took_us);
	log_request(request, took_us, sent);
	free_answer(request);
	str_release(&request->body);
	(void)hold(request, 0);
	pass_close(request->pass); /* the calls' thread may be filling in an answer */
	arena_release(&request->arena);
	server_let_go(server, request->generation);
	free(request);
}

/* ---- Reading -------------------------------------------------------------------------------- */

/* The name of a header that may occur once and occurs several times; NULL: none. */
static const char *given_twice(const struct request *request)
{
	static const char *const once[] = {"Ibid-Actor", "Correlation-Id", "Causation-Id"};
	bool many = false;
	for (size_t i = 0; i < sizeof once / sizeof *once; i++) {
		(void)request_header(request, once[i], &many);
		if (many)
			return once[i];
	}
	return NULL;
}

static bool head_is_good(struct request *request)
{
	const char *wrong = client_head(request->client)->wrong;
	const char *twice = wrong ? NULL : given_twice(request);
	if (wrong)
		answer_problem(&request->answer, &request->arena, PROBLEM_BAD_REQUEST, "%s", wrong);
	else if (twice)
		answer_problem(&request->answer, &request->arena, PROBLEM_BAD_REQUEST,
		               "%s must be given once", twice);
	return !wrong && !twice;
}

static bool is_one_of(const char *word, const char *const *words)
{
	for (; *words; words++)
		if (strcmp(word, *words) == 0)
			return true;
	return false;
}

/* To the service behind the server, though no contract names it. What changes something there must
 * not look like a protected request that is only written differently. */
static bool may_pass(const struct request *request)
{
	static const char *const safe[] = {"GET", "HEAD", "OPTIONS", NULL};
	static const char *const never[] = {"CONNECT", "TRACE", NULL};
	const char *other = request->server->settings->upstream_other;
	if (!request->server->upstream || strcmp(other, "none") == 0)
		return false;
	if (is_one_of(request->method, safe))
		return true;
	return strcmp(other, "all") == 0 && !is_one_of(request->method, never) &&
	       !routes_resemble(&request->generation->routes, request->method, request->path);
}

/* It goes on as it comes in: nothing is protected by a key. */
static bool passes(struct request *request)
{
	const struct contract *contract = request->route->contract;
	bool many;
	if (request->route == request->generation->routes.pass)
		return true;
	return contract && contract->upstream.given &&
	       contract->upstream.without_key == UPSTREAM_WITHOUT_KEY_PASS &&
	       !request_header(request, "Idempotency-Key", &many) && !many;
}

static bool find_route(struct request *request)
{
	const char *allow, *mark = strchr(request->uri, '?');
	bool bad;
	size_t size = mark ? (size_t)(mark - request->uri) : strlen(request->uri);
	const char *method = strcmp(request->method, "HEAD") == 0 ? "GET" : request->method;
	request->path = arena_strndup(&request->arena, request->uri, size);
	request->query = mark ? mark + 1 : "";
	if (!request->path) {
		answer_problem(&request->answer, &request->arena, PROBLEM_UNAVAILABLE, "out of memory");
		return false;
	}
	request->route = routes_find(&request->generation->routes, method, request->path,
	                             &request->arena, request->params, &allow, &bad);
	if (!request->route && may_pass(request))
		request->route = request->generation->routes.pass;
	if (request->route && !bad) {
		request->passes = passes(request);
		return true;
	}
	if (bad) {
		request->route = NULL;
		answer_problem(&request->answer, &request->arena, PROBLEM_BAD_REQUEST,
		               "the path can't be decoded");
	} else if (allow) {
		answer_problem(&request->answer, &request->arena, PROBLEM_METHOD, "allowed here: %s",
		               allow);
		answer_header(&request->answer, "Allow", allow);
	} else {
		answer_problem(&request->answer, &request->arena, PROBLEM_NOT_FOUND, "no route leads to %s",
		               request->path);
	}
	return false;
}

static bool body_fits(struct request *request)
{
	int64_t length = client_head(request->client)->length;
	size_t most = request->passes ? (size_t)request->server->settings->pass_bytes
	                              : request->body.cap;
	if ((uint64_t)length <= most)
		return true;
	answer_problem(&request->answer, &request->arena, PROBLEM_TOO_LARGE,
	               "the body has more than %zu bytes", most);
	return false;
}

static void read_head(struct request *request)
{
	if (!head_is_good(request))
		return;
	if (atomic_load(&request->server->stopping))
		answer_problem(&request->answer, &request->arena, PROBLEM_UNAVAILABLE,
		               "the server is stopping; nothing was done");
	else if (find_route(request))
		access_check(request);
}

static void read_body(struct request *request, const char *bytes, size_t size)
{
	if (request->too_large || request->unread)
		return;
	request->unread = !hold(request, BODY_COPIES * (request->body.size + size));
	if (!request->unread)
		str_add(&request->body, bytes, size);
	else
		str_release(&request->body);
	request->too_large = request->body.failed;
}

/* ---- Answering ------------------------------------------------------------------------------ */

static void send_headers(struct request *request, bool passed)
{
	const struct answer *answer = &request->answer;
	struct client *client = request->client;
	client_answer(client, answer->status);
	if (answer->body && answer->type)
		client_header(client, "Content-Type", answer->type);
	if (passed) {
		pass_headers(request);
	} else {
		client_header(client, "Cache-Control", "no-store");
		trace_answer(request);
	}
	for (size_t i = 0; i < answer->header_count; i++)
		if (answer->headers[i].value)
			client_header(client, answer->headers[i].name, answer->headers[i].value);
}

static void send_answer(struct request *request)
{
	const struct answer *answer = &request->answer;
	bool passed = request->pass && !answer->body;
	str_release(&request->body); /* nobody needs it any more */
	if (request->unheld || !request_hold_answer(request, 0)) {
		client_break_off(request->client);
		return;
	}
	if (!passed)
		client_allow(request->client, request->server->settings->request_us);
	send_headers(request, passed);
	if (passed)
		pass_send(request);
	else
		client_send(request->client, answer->body, answer->body ? answer->size : 0);
}

/* The request is whole. */
static void advance(struct request *request)
{
	assert(request->step >= STEP_WHOLE);
	switch (request->step++) {
	case STEP_HEAD:
	case STEP_ADMITTED: break;
	case STEP_WHOLE:
		if (request->too_large)
			answer_problem(&request->answer, &request->arena, PROBLEM_TOO_LARGE,
			               "the body has more than %zu bytes", request->body.cap);
		else if (request->unread)
			answer_problem(&request->answer, &request->arena, PROBLEM_UNAVAILABLE, "%s",
			               memory_short_text);
		break;
	case STEP_RUN:
		assert(request->admitted);
		request->route->run(request);
		break;
	case STEP_OVER:
		answer_problem(&request->answer, &request->arena, PROBLEM_INTERNAL, "there is no answer");
		break;
	}
}

/* ---- What the listener calls ---------------------------------------------------------------- */

/* The head is there, and nothing was taken of the body: what is refused now is answered without it.
 * Whether a token is valid that was not seen of late is asked first. The client stands still
 * meanwhile, and this is called again. */
static void enter(void *user)
{
	struct request *request = user;
	request->suspended = false;
	if (request->step == STEP_HEAD) {
		request->step = STEP_ADMITTED;
		read_head(request);
		if (!request->answer.status && !request->admitted) {
			access_ask(request);
			return;
		}
	}
	request->step = STEP_WHOLE;
	if (!request->answer.status && body_fits(request) && request->passes) {
		client_allow(request->client, request->server->settings->upstream_deadline_us);
		pass_begin(request);
	}
	if (request->answer.status)
		send_answer(request);
}

static size_t body(void *user, const char *bytes, size_t size)
{
	struct request *request = user;
	if (request->pass)
		return pass_feed(request, bytes, size);
	read_body(request, bytes, size);
	return size;
}

static void broken(void *user, const char *why)
{
	struct request *request = user;
	answer_problem(&request->answer, &request->arena, PROBLEM_BAD_REQUEST, "%s", why);
	send_answer(request);
}

static void run(void *user)
{
	struct request *request = user;
	request->suspended = false;
	while (!request->suspended && !request->answer.status)
		advance(request);
	if (!request->suspended)
		send_answer(request);
}

static void count(void *user, int change)
{
	struct server *server = user;
	metrics_connection(server->metrics, change);
}

static bool crowded(void *user)
{
	struct server *server = user;
	return memory_was_short(&server->memory);
}

static void cut_off(void *user, size_t clients)
{
	struct server *server = user;
	LOG(&server->log, IBID_LOG_WARN, "http.memory_short",
	    {"limit", log_int(server->settings->memory_bytes)},
	    {"connectionsCutOff", log_int((int64_t)clients)});
}

const struct listener_ops connection_ops = {
    .begin = begin,
    .enter = enter,
    .body = body,
    .broken = broken,
    .run = run,
    .end = end,
    .count = count,
    .crowded = crowded,
    .cut_off = cut_off,
};
