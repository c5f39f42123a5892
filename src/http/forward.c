/* SPDX-License-Identifier: Apache-2.0 */
/* forward.c -- a command whose work the service behind the server does (B06, B11).
 *
 * The command is staged, the request is sent on once, and its end is recorded under the lease. In
 * between nobody waits but the client's connection, and that no longer than the contract says. The
 * service's change and the command's row are not one transaction: where no answer comes, nobody
 * knows, and nothing is sent again before somebody has looked (I4). Nothing is sent, either, that
 * could end after its lease: who looks then must see it (I6). */
#include "http/forward.h"

#include "base/utf8.h"
#include "command/keep.h"
#include "command/staged.h"
#include "contract/classes.h"
#include "http/command.h"
#include "http/failure.h"
#include "http/meters.h"
#include "http/pass.h"
#include "http/upstream.h"
#include "net/header.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* An answer of the service: as it came, grown twofold, and as it is kept. */
enum { ANSWER_COPIES = 3 };

enum { AGAIN_US = 200000, EXTRAS_MAX = ROUTE_PARAMS_MAX + 3 };

/* What is sent on, beyond the request that brought it. */
struct forward {
	struct call call; /* first */
	struct server *server;
	struct generation *generation;
	const struct contract *contract;
	struct arena arena;
	struct str body;
	size_t held; /* of the server's memory, by the body and a large answer */
	bool has_room;
	const char *tenant;
	struct ibid_staged *staged;
	bool opaque; /* the service may repeat parts of a query, or of a body that is no JSON object */
	int64_t began_us;
	_Atomic(struct request *) waiting; /* for the outcome; NULL: it was told something already */
};

static struct forward *forward_of(struct call *call)
{
	return (struct forward *)call;
}

static void forward_free(struct forward *forward)
{
	upstream_leave_place(forward->server->upstream, PLACE_COMMAND);
	ibid_staged_free(forward->staged);
	call_release(&forward->call);
	str_release(&forward->body);
	arena_release(&forward->arena);
	(void)memory_hold(&forward->server->memory, &forward->held, 0);
	server_let_go(forward->server, forward->generation);
	free(forward);
}

/* ---- The outcome ---------------------------------------------------------------------------- */

enum answer_meaning forward_meaning(const struct contract *contract, int status)
{
	const struct contract_upstream *upstream = &contract->upstream;
	switch (status) {
	case 401:
	case 403:
	case 407:
	case 408:
	case 425:
	case 429:
	case 503: return MEANS_AGAIN;
	case 409:
		if (upstream->conflict == UPSTREAM_CONFLICT_RETRY)
			return MEANS_AGAIN;
		break;
	default: break;
	}
	if (status < 200 || status > 599) /* it speaks another protocol now, or none that we know */
		return MEANS_UNKNOWN;
	if (status < 400)
		return MEANS_DONE;
	if (status < 500)
		return contract->final[REFUSAL_BUSINESS] ? MEANS_REFUSED : MEANS_AGAIN;
	switch (upstream->error) {
	case UPSTREAM_ERROR_KEEP: return MEANS_REFUSED;
	case UPSTREAM_ERROR_RETRY: return MEANS_AGAIN;
	default: return MEANS_UNKNOWN;
	}
}

enum ibid_code forward_answer(struct ibid_staged *staged, const struct call *call,
                              struct arena *arena, const struct contract *contract,
                              struct ibid_result **ret, struct ibid_err *err)
{
	const char *kept = upstream_keep(arena, call, &contract->upstream.headers);
	return kept ? staged_answer(staged, call->status, kept, ret, err)
	            : err_set(err, IBID_NOMEM, "out of memory");
}

/* What it said where that is no outcome, for those who find out. A part of a value that may not be
 * kept can't be found in it. */
static const char *service_answer(struct forward *forward)
{
	const struct str *said = &forward->call.answer;
	size_t most = SERVICE_ANSWER_BYTES_MAX + 4; /* a character that is cut here lies behind it */
	size_t size = said->size < most ? said->size : most;
	char *text = arena_strndup(&forward->arena, str_text(said), size);
	if (!text || (forward->opaque && classes_hide(forward->contract)))
		return NULL;
	for (size_t i = 0; i < size; i++)
		text[i] = text[i] ? text[i] : '?';
	utf8_mend(text);
	return text;
}

static enum ibid_code record_answer(struct forward *forward, struct ibid_result **ret,
                                    struct ibid_err *err)
{
	const struct call *call = &forward->call;
	struct ibid_staged *staged = forward->staged;
	const char *said = arena_printf(&forward->arena, "the service answered %d", call->status);
	const char *kept;
	switch (forward_meaning(forward->contract, call->status)) {
	case MEANS_DONE:
		return forward_answer(staged, call, &forward->arena, forward->contract, ret, err);
	case MEANS_REFUSED:
		kept = upstream_keep(&forward->arena, call, &forward->contract->upstream.headers);
		if (!kept)
			return err_set(err, IBID_NOMEM, "out of memory");
		return staged_refuse(staged, call->status, "UPSTREAM_REFUSED", said, kept, ret, err);
	case MEANS_AGAIN: return staged_fail(staged, call->status, "UPSTREAM_DECLINED", said, ret, err);
	default:
		return staged_unknown(staged, "UPSTREAM_ERROR", said, service_answer(forward), ret, err);
	}
}

/* Under the lease; what it ended in is told to whoever asks with the same key. */
static enum ibid_code record(struct forward *forward, struct ibid_result **ret,
                             struct ibid_err *err)
{
	const struct call *call = &forward->call;
	switch (call->end) {
	case CALL_ANSWERED: return record_answer(forward, ret, err);
	case CALL_NOT_SENT:
		return staged_fail(forward->staged, 502, "UPSTREAM_UNREACHABLE",
		                   arena_printf(&forward->arena,
		                                "the service can't be reached, and nothing was sent: %s",
		                                call->why),
		                   ret, err);
	default:
		return staged_unknown(
		    forward->staged, call->timed_out ? UPSTREAM_TIMEOUT : "UPSTREAM_SILENT",
		    arena_printf(&forward->arena, "the request was sent, and no whole answer came: %s",
		                 call->why),
		    NULL, ret, err);
	}
}

/* ---- Telling -------------------------------------------------------------------------------- */

/* Whoever still waits; once. */
static struct request *take_waiting(struct forward *forward)
{
	return atomic_exchange(&forward->waiting, NULL);
}

static const char *unkept_names[] = {"WWW-Authenticate", "Retry-After"};
const struct texts forward_unkept_headers = {.items = unkept_names, .count = 2};

/* An answer that is not kept goes to this caller alone, as it is. */
static bool show_unkept(struct forward *forward, struct request *request)
{
	struct call *call = &forward->call;
	struct answer *answer = &request->answer;
	if (call->end != CALL_ANSWERED || call->too_large ||
	    forward_meaning(forward->contract, call->status) != MEANS_AGAIN)
		return false;
	const char *text = upstream_keep(&request->arena, call, &forward_unkept_headers);
	answer->status = call->status;
	return text && upstream_show(&request->arena, text, strlen(text), answer);
}

static void tell(struct forward *forward, enum ibid_code code, struct ibid_result *result,
                 const struct ibid_err *err)
{
	struct request *request = take_waiting(forward);
	meters_outcome(forward->generation, forward->contract, code ? NULL : result,
	               env_steady_us(forward->server->env) - forward->began_us);
	if (!request) {
		ibid_result_free(code ? NULL : result);
	} else {
		if (code)
			failure_answer(request, err);
		else if (show_unkept(forward, request)) {
			request->decision = ibid_decision_name(result->decision);
			request->command_id = arena_strdup(&request->arena, result->command_id);
			answer_header(&request->answer, "Ibid-Command-Id", request->command_id);
			ibid_result_free(result);
		} else
			command_answer(request, result);
		request_answered(request);
	}
}

/* It takes longer than the contract lets a caller wait: where to look for it (B11). */
static void tell_accepted(struct forward *forward)
{
	struct request *request = take_waiting(forward);
	struct ibid_result *result = request ? result_new() : NULL;
	if (!request)
		return;
	if (result) {
		result_in_progress(result, &forward->staged->sub.id, true);
		command_answer(request, result);
	} else {
		answer_problem(&request->answer, &request->arena, PROBLEM_UNAVAILABLE, "out of memory");
	}
	request_answered(request);
}

/* A large answer has room as a whole or not at all: two that have begun never wait for each other.
 * One that waits beyond its deadline was sent and has no answer, as if the service were silent. */
static bool room(struct call *call, size_t bytes)
{
	struct forward *forward = forward_of(call);
	if (bytes > MEMORY_SMALL_BYTES && !forward->has_room)
		forward->has_room = memory_hold(&forward->server->memory, &forward->held,
		                                forward->body.room + ANSWER_COPIES * call->answer_max);
	return bytes <= MEMORY_SMALL_BYTES || forward->has_room;
}

static void late(struct call *call)
{
	tell_accepted(forward_of(call));
}

/* ---- The course ----------------------------------------------------------------------------- */

static void log_call(const struct forward *forward, enum ibid_code code, const struct ibid_err *err)
{
	static const char *const ends[] = {
	    [CALL_ANSWERED] = "answered", [CALL_NOT_SENT] = "not sent", [CALL_SILENT] = "silent"};
	const struct call *call = &forward->call;
	LOG(&forward->server->log, code ? IBID_LOG_ERROR : IBID_LOG_INFO, "upstream.call",
	    {"operation", log_text(forward->contract->name)},
	    {"commandId", log_text(ibid_work_command_id(ibid_staged_work(forward->staged)))},
	    {"end", log_text(ends[call->end])},
	    {"status", log_int(call->end == CALL_ANSWERED ? call->status : 0)},
	    {"reason", log_text(code         ? err->text
	                        : *call->why ? call->why
	                                     : NULL)},
	    {"tookUs", log_int(env_steady_us(forward->server->env) - forward->began_us)});
}

/* What the store could not take now may be taken later: until somebody else has the command. */
static bool may_try_again(enum ibid_code code)
{
	return code == IBID_UNAVAILABLE || code == IBID_BUSY || code == IBID_IO || code == IBID_FULL ||
	       code == IBID_NOMEM;
}

/* Somebody took it over when the lease had ended, or whoever starts on the ledger that this store
 * no longer leads to will: what it came to, or will, is theirs to tell. */
static enum ibid_code tell_taken_over(const struct forward *forward, struct ibid_result **ret,
                                      struct ibid_err *err)
{
	struct ibid_result *result = result_new();
	if (!result)
		return err_set(err, IBID_NOMEM, "out of memory");
	result_unknown(result, &forward->staged->sub.id);
	*ret = result;
	return IBID_OK;
}

/* On one of the workers's threads. */
static void finish(void *user)
{
	struct forward *forward = user;
	struct ibid_result *result = NULL;
	struct ibid_err err = {0}, spare = {0};
	enum ibid_code code = record(forward, &result, &err);
	if (code == IBID_FENCED || code == IBID_GONE)
		code = tell_taken_over(forward, &result, &err);
	if (code && may_try_again(code)) {
		tell_accepted(forward);
		if (!worker_pool_call_later(forward->generation->workers, forward->tenant, AGAIN_US, finish,
		                            forward, &spare))
			return;
	}
	log_call(forward, code, &err);
	tell(forward, code, result, &err);
	forward_free(forward);
}

/* On the calls' thread. */
static void done(struct call *call)
{
	struct forward *forward = forward_of(call);
	struct ibid_err err = {0};
	meters_call(forward->generation, forward->contract, call);
	enum ibid_code code = worker_pool_call_later(forward->generation->workers, forward->tenant, 0,
	                                             finish, forward, &err);
	if (!code)
		return;
	tell(forward, code, NULL, &err); /* no memory: its lease ends, and it is looked for */
	forward_free(forward);
}

/* Which command it is: under a key that no other client, tenant or operation can have. */
static enum ibid_code add_identity(struct forward *forward, struct ibid_err *err)
{
	const struct ibid_work *work = ibid_staged_work(forward->staged);
	struct call *call = &forward->call;
	const char *key = ibid_work_key(work);
	enum ibid_code code = call_add_header(call, "Idempotency-Key", ibid_work_external_key(work),
	                                      err);
	if (!code && header_value_ok(key)) /* one that is made of fields may hold anything */
		code = call_add_header(call, "Ibid-Client-Key", key, err);
	if (!code)
		code = call_add_header(call, "Ibid-Command-Id", ibid_work_command_id(work), err);
	return code;
}

static void send_on(struct forward *forward)
{
	struct ibid_err err = {0};
	if (!forward->contract->upstream.wait_us)
		tell_accepted(forward);
	enum ibid_code code = add_identity(forward, &err);
	if (!code)
		code = calls_make(forward->server->upstream->calls, &forward->call, &err);
	if (!code)
		return;
	forward->call.end = CALL_NOT_SENT;
	snprintf(forward->call.why, sizeof forward->call.why, "%s", err.text);
	done(&forward->call);
}

/* On one of the workers's threads: there is a lease, or somebody has decided before. */
static void staged(void *user, enum ibid_code code, struct ibid_staged *held,
                   struct ibid_result *result, const struct ibid_err *err)
{
	struct forward *forward = user;
	forward->staged = held;
	if (held) {
		send_on(forward);
		return;
	}
	tell(forward, code, result, err);
	forward_free(forward);
}

/* ---- The request ---------------------------------------------------------------------------- */

/* What a retry must bring again: the members of a JSON object; of any other body its value or its
 * digest; and what the path and the query say. The operation stands for method and route. */
static bool read_payload(struct request *request)
{
	struct extra extras[EXTRAS_MAX];
	size_t count = command_params(request, extras, ROUTE_PARAMS_MAX);
	bool many;
	const char *type = request_header(request, "Content-Type", &many);
	const char *text = "{}", *own_type = NULL, *own_body = NULL;
	size_t size = 2;
	char digest[SHA256_TEXT_SIZE];
	const char *body = str_text(&request->body);
	if (request->body.size && type && command_is_json(type) &&
	    body[strspn(body, " \t\r\n")] == '{') {
		text = body;
		size = request->body.size;
	} else if (request->body.size) {
		struct sha256 hash = sha256(body, request->body.size);
		sha256_write(&hash, digest);
		own_type = type ? type : "";
		own_body = digest;
		request->opaque_body = true;
	}
	extras[count++] = (struct extra){"@query", *request->query ? request->query : NULL};
	extras[count++] = (struct extra){"@type", own_type};
	extras[count++] = (struct extra){"@body", own_body};
	return command_join(request, text, size, extras, count);
}

static struct forward *forward_new(struct request *request)
{
	struct forward *forward = calloc(1, sizeof *forward);
	if (!forward)
		return NULL;
	const struct contract_upstream *upstream = &request->contract->upstream;
	struct arena *arena = &forward->arena;
	forward->server = request->server;
	forward->generation = request->generation;
	forward->contract = request->contract;
	forward->began_us = env_steady_us(request->server->env);
	int64_t sends_us = request->contract->staged.lease_us - upstream->deadline_us;
	forward->tenant = arena_strdup(arena, request->principal.tenant);
	forward->opaque = *request->query || request->opaque_body;
	forward->body = request->body; /* the payload may point into it */
	request->body = STR_INIT(0);
	forward->held = request->held;
	request->held = 0;
	atomic_init(&forward->waiting, request);
	forward->call = (struct call){
	    .method = arena_strdup(arena, request->method),
	    .url = arena_printf(arena, "%s%s", request->server->upstream->base, request->uri),
	    .body = str_text(&forward->body),
	    .body_size = forward->body.size,
	    .deadline_us = upstream->deadline_us,
	    .send_by_us = forward->began_us + sends_us,
	    .send_by_wall_us = env_wall_us(request->server->env) + sends_us,
	    .answer_max = (size_t)request->server->settings->answer_bytes,
	    .room = room,
	    .done = done,
	    .late = upstream->wait_us && upstream->wait_us < upstream->deadline_us ? late : NULL,
	    .late_us = upstream->wait_us,
	};
	server_hold(forward->server, forward->generation);
	return forward;
}

static void begin(struct request *request)
{
	struct upstream *upstream = request->server->upstream;
	struct ibid_err err = {0};
	if (!upstream_take_place(upstream, PLACE_COMMAND)) {
		meters_outcome(request->generation, request->contract, NULL, 0);
		answer_problem(&request->answer, &request->arena, PROBLEM_UNAVAILABLE,
		               "too many requests are at the service already; nothing was done");
		return;
	}
	struct forward *forward = forward_new(request);
	if (!forward) {
		upstream_leave_place(upstream, PLACE_COMMAND);
		answer_problem(&request->answer, &request->arena, PROBLEM_UNAVAILABLE, "out of memory");
		return;
	}
	struct ibid_command command = command_of(request);
	request_suspend(request);
	enum ibid_code code = forward->arena.failed
	                          ? err_set(&err, IBID_NOMEM, "out of memory")
	                          : upstream_add_headers(request, true, &forward->call, &err);
	if (!code)
		code = worker_pool_stage(request->generation->workers, &command, staged, forward, &err);
	if (!code)
		return;
	tell(forward, code, NULL, &err);
	forward_free(forward);
}

static bool has_key(struct request *request)
{
	bool many;
	return request_header(request, "Idempotency-Key", &many) || many;
}

void forward_command(struct request *request)
{
	const struct contract *contract = request->contract;
	if (!upstream_check_request(request))
		return;
	if (contract->upstream.without_key == UPSTREAM_WITHOUT_KEY_PASS && !has_key(request))
		pass_on(request);
	else if (command_read_key(request) && read_payload(request))
		begin(request);
}
