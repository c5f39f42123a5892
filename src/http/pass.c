/* SPDX-License-Identifier: Apache-2.0 */
/* pass.c -- two pipes between a client's connection and a call to the service.
 *
 * The listener's thread is at one end of each, the calls' thread at the other. Whoever finds its
 * pipe full or empty stops (the connection is suspended, the call is paused), and the other end
 * starts it again. Both hold the pass until they are through with it. (P1) The connection is
 * suspended, and resumed, under the lock; so it can't be resumed before it is suspended. */
#include "http/pass.h"

#include "http/failure.h"
#include "http/upstream.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { PIPE_BYTES = 64 << 10 };

struct pipe {
	size_t start, size;
	char bytes[PIPE_BYTES];
};

struct pass {
	struct call call;        /* first */
	struct request *request; /* until the client is gone */
	struct upstream *upstream;
	struct memory_limit *memory;
	size_t held; /* of it */
	struct arena arena;
	pthread_mutex_t lock;
	int holders;
	struct pipe up, down;
	int64_t taken;      /* bytes of the body */
	bool whole;         /* the request's body is in */
	bool headed, ended; /* the answer's head is there; the call is over */
	bool too_large, gone;
	bool suspended;              /* the connection is */
	bool up_paused, down_paused; /* the call is */
};

static struct pass *pass_of(struct call *call)
{
	return (struct pass *)call;
}

/* ---- Pipes ---------------------------------------------------------------------------------- */

static size_t pipe_put(struct pipe *pipe, const char *bytes, size_t size)
{
	size_t room = PIPE_BYTES - pipe->size, put = size < room ? size : room;
	size_t at = (pipe->start + pipe->size) % PIPE_BYTES;
	size_t first = put < PIPE_BYTES - at ? put : PIPE_BYTES - at;
	memcpy(pipe->bytes + at, bytes, first);
	memcpy(pipe->bytes, bytes + first, put - first);
	pipe->size += put;
	return put;
}

static size_t pipe_get(struct pipe *pipe, char *to, size_t room)
{
	size_t got = room < pipe->size ? room : pipe->size;
	size_t first = got < PIPE_BYTES - pipe->start ? got : PIPE_BYTES - pipe->start;
	memcpy(to, pipe->bytes + pipe->start, first);
	memcpy(to + first, pipe->bytes, got - first);
	pipe->start = (pipe->start + got) % PIPE_BYTES;
	pipe->size -= got;
	return got;
}

/* ---- Both ends ------------------------------------------------------------------------------ */

static void suspend(struct pass *pass)
{
	pass->suspended = true;
	request_suspend(pass->request);
}

static void resume(struct pass *pass)
{
	if (!pass->suspended)
		return;
	pass->suspended = false;
	request_answered(pass->request);
}

static void let_go(struct pass *pass)
{
	pthread_mutex_lock(&pass->lock);
	bool last = --pass->holders == 0;
	pthread_mutex_unlock(&pass->lock);
	if (!last)
		return;
	upstream_leave_place(pass->upstream, PLACE_PASS);
	(void)memory_hold(pass->memory, &pass->held, 0);
	call_release(&pass->call);
	arena_release(&pass->arena);
	pthread_mutex_destroy(&pass->lock);
	free(pass);
}

/* What is known of the answer; its bytes follow. */
static void fill_answer(struct pass *pass)
{
	struct request *request = pass->request;
	if (pass->too_large)
		answer_problem(&request->answer, &request->arena, PROBLEM_TOO_LARGE,
		               "the body has more than %lld bytes",
		               (long long)pass->upstream->settings->pass_bytes);
	else if (pass->headed && pass->call.too_large)
		answer_problem(&request->answer, &request->arena, PROBLEM_UPSTREAM,
		               "it answered %d, with headers of more than %d bytes", pass->call.status,
		               CALL_HEAD_BYTES_MAX);
	else if (pass->headed)
		request->answer.status = pass->call.status;
	else
		answer_problem(&request->answer, &request->arena, PROBLEM_UPSTREAM, "%s%s",
		               pass->call.end == CALL_NOT_SENT ? "nothing was sent: " : "", pass->call.why);
}

/* ---- The calls' end ------------------------------------------------------------------------- */

static size_t more(struct call *call, char *to, size_t room)
{
	struct pass *pass = pass_of(call);
	pthread_mutex_lock(&pass->lock);
	size_t got = pipe_get(&pass->up, to, room);
	bool over = pass->gone || pass->too_large;
	pass->up_paused = !got && !pass->whole && !over;
	if (got && !pass->whole)
		resume(pass);
	bool paused = pass->up_paused;
	pthread_mutex_unlock(&pass->lock);
	if (over)
		return CURL_READFUNC_ABORT;
	return paused ? (size_t)CALL_PAUSE : got;
}

static void head(struct call *call)
{
	struct pass *pass = pass_of(call);
	pthread_mutex_lock(&pass->lock);
	pass->headed = true;
	if (pass->whole && !pass->gone) {
		fill_answer(pass);
		resume(pass);
	}
	pthread_mutex_unlock(&pass->lock);
}

static size_t take(struct call *call, const char *bytes, size_t size)
{
	struct pass *pass = pass_of(call);
	pthread_mutex_lock(&pass->lock);
	bool gone = pass->gone || !pass->headed; /* bytes behind a preliminary answer are none */
	pass->down_paused = !gone && PIPE_BYTES - pass->down.size < size;
	bool paused = pass->down_paused;
	if (!gone && !paused) {
		(void)pipe_put(&pass->down, bytes, size);
		if (pass->whole)
			resume(pass);
	}
	pthread_mutex_unlock(&pass->lock);
	if (gone)
		return 0;
	return paused ? (size_t)CURL_WRITEFUNC_PAUSE : size;
}

static void done(struct call *call)
{
	struct pass *pass = pass_of(call);
	pthread_mutex_lock(&pass->lock);
	pass->ended = true;
	if (pass->whole && !pass->gone && !pass->headed)
		fill_answer(pass);
	if (!pass->gone)
		resume(pass);
	pthread_mutex_unlock(&pass->lock);
	let_go(pass);
}

/* ---- The client's end ----------------------------------------------------------------------- */

static struct pass *pass_new(struct request *request)
{
	struct server *server = request->server;
	struct pass *pass = calloc(1, sizeof *pass);
	if (!pass)
		return NULL;
	const struct head *said = client_head(request->client);
	bool body = said->chunked || said->length > 0;
	bool many, told = request_header(request, "Content-Length", &many);
	bool empty = strcmp(request->method, "POST") == 0 || strcmp(request->method, "PUT") == 0 ||
	             strcmp(request->method, "PATCH") == 0;
	bool safe = strcmp(request->method, "GET") == 0 || strcmp(request->method, "HEAD") == 0 ||
	            strcmp(request->method, "OPTIONS") == 0;
	pthread_mutex_init(&pass->lock, NULL);
	pass->request = request;
	pass->upstream = server->upstream;
	pass->memory = &server->memory;
	pass->holders = 2;
	pass->call = (struct call){
	    .method = arena_strdup(&pass->arena, request->method),
	    .url = arena_printf(&pass->arena, "%s%s", server->upstream->base, request->uri),
	    .body = !body && empty ? "" : NULL,
	    .length = told ? said->length : -1,
	    .deadline_us = server->settings->upstream_deadline_us,
	    .repeatable = safe && !body,
	    .more = body ? more : NULL,
	    .head = head,
	    .take = take,
	    .done = done,
	};
	return pass;
}

void pass_begin(struct request *request)
{
	struct upstream *upstream = request->server->upstream;
	struct ibid_err err = {0};
	if (!upstream_check_request(request))
		return;
	if (!upstream_take_place(upstream, PLACE_PASS)) {
		answer_problem(&request->answer, &request->arena, PROBLEM_UNAVAILABLE,
		               "too many requests are at the service already; nothing was done");
		return;
	}
	struct pass *pass = pass_new(request);
	if (!pass) {
		upstream_leave_place(upstream, PLACE_PASS);
		answer_problem(&request->answer, &request->arena, PROBLEM_UNAVAILABLE, "out of memory");
		return;
	}
	enum ibid_code code = IBID_OK;
	if (pass->arena.failed)
		code = err_set(&err, IBID_NOMEM, "out of memory");
	else if (!memory_hold(pass->memory, &pass->held, sizeof *pass))
		code = err_set(&err, IBID_BUSY, "%s", memory_short_text);
	else
		code = upstream_add_headers(request, false, &pass->call, &err);
	if (!code)
		code = calls_make(upstream->calls, &pass->call, &err);
	if (!code) {
		request->pass = pass;
		return;
	}
	pass->holders = 1;
	let_go(pass);
	failure_answer(request, &err);
}

size_t pass_feed(struct request *request, const char *bytes, size_t size)
{
	struct pass *pass = request->pass;
	pthread_mutex_lock(&pass->lock);
	bool over = pass->ended || pass->too_large, paused = pass->up_paused;
	size_t taken = over ? size : pipe_put(&pass->up, bytes, size);
	pass->taken += (int64_t)taken;
	pass->too_large |= pass->taken > pass->upstream->settings->pass_bytes;
	if (taken < size)
		suspend(pass); /* P1: nobody is called again for a rest, unless more comes */
	pthread_mutex_unlock(&pass->lock);
	if (paused)
		calls_go_on(pass->upstream->calls, &pass->call);
	return taken;
}

void pass_on(struct request *request)
{
	if (!request->pass)
		pass_begin(request);
	struct pass *pass = request->pass;
	if (!pass)
		return;
	pthread_mutex_lock(&pass->lock);
	bool paused = pass->up_paused;
	pass->whole = true;
	if (pass->headed || pass->ended || pass->too_large)
		fill_answer(pass);
	else
		suspend(pass); /* P1 */
	pthread_mutex_unlock(&pass->lock);
	if (paused)
		calls_go_on(pass->upstream->calls, &pass->call);
}

/* The listener wants more of the answer. */
static ssize_t give(void *user, char *to, size_t room)
{
	struct pass *pass = user;
	pthread_mutex_lock(&pass->lock);
	ssize_t got = (ssize_t)pipe_get(&pass->down, to, room);
	bool paused = pass->down_paused;
	if (!got && pass->ended)
		got = pass->call.end == CALL_ANSWERED ? PIECES_END : PIECES_BROKEN;
	else if (!got)
		suspend(pass); /* P1 */
	pthread_mutex_unlock(&pass->lock);
	if (paused)
		calls_go_on(pass->upstream->calls, &pass->call);
	return got;
}

void pass_headers(struct request *request)
{
	struct pass *pass = request->pass;
	pthread_mutex_lock(&pass->lock);
	for (const char *at = str_text(&pass->call.answer_head); *at;) {
		size_t line = strcspn(at, "\r\n"), name = strcspn(at, ":");
		if (name < line && !upstream_drops(&pass->call, at, name)) {
			const char *value = at + name + 1 + strspn(at + name + 1, " \t");
			const char *end = at + line;
			char *copy = arena_strndup(&request->arena, value,
			                           value < end ? (size_t)(end - value) : 0);
			char *called = arena_strndup(&request->arena, at, name);
			if (called && copy)
				client_header(request->client, called, copy);
		}
		at += line;
		at += strspn(at, "\r\n");
	}
	pthread_mutex_unlock(&pass->lock);
}

void pass_send(struct request *request)
{
	struct pass *pass = request->pass;
	const char *length;
	size_t size;
	int64_t bytes = -1;
	pthread_mutex_lock(&pass->lock);
	if (!call_header(&pass->call, "Transfer-Encoding", &length, &size) &&
	    call_header(&pass->call, "Content-Length", &length, &size))
		bytes = strtoll(length, NULL, 10);
	pthread_mutex_unlock(&pass->lock);
	client_stream(request->client, bytes, give, pass);
}

void pass_close(struct pass *pass)
{
	if (!pass)
		return;
	pthread_mutex_lock(&pass->lock);
	pass->gone = true;
	pass->request = NULL;
	bool ended = pass->ended;
	pthread_mutex_unlock(&pass->lock);
	if (!ended)
		calls_break_off(pass->upstream->calls, &pass->call);
	let_go(pass);
}
