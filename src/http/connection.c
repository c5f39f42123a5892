/* SPDX-License-Identifier: Apache-2.0 */
/* connection.c -- from bytes to a request, and from its answer to bytes.
 *
 * Everything here but request_answered runs on libmicrohttpd's thread, which must never wait. */
#include "http/connection.h"

#include "base/hash.h"
#include "base/utf8.h"
#include "http/access.h"
#include "http/failure.h"
#include "http/meters.h"
#include "http/pass.h"
#include "http/trace.h"
#include "ledger/result.h"
#include "net/header.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
	LEAVING_US = 2000000,    /* how long is taken what a client sends who was refused */
	LEAVING_MAX = 64,        /* of how many at once */
	LEAVING_BYTES = 1 << 20, /* how much of one, each time */
	CROWDED_US = 2000000,    /* how long a client may hold memory while others find none */
	BODY_COPIES = 3,         /* of a body at most: it grows twofold, and is joined with the path */
};

/* A client's connection, for as long as it stands. */
struct visitor {
	int fd;
	int64_t until_us;  /* the request must be read by then; 0: nothing is awaited from the client */
	int64_t since_us;  /* when it began to send its request, or to take its answer */
	atomic_bool holds; /* of the memory that all share */
	bool takes;        /* its answer must be taken by then, instead */
	bool sends;        /* though it was refused and nobody reads it */
	bool passes;       /* what it sends is on its way to the service */
	bool gone;         /* it had closed its side when we looked before */
	struct visitor *next, **at;
};

/* ---- Connections ---------------------------------------------------------------------------- */

static void arrive(struct server *server, struct visitor *visitor)
{
	visitor->until_us = env_steady_us(server->env) + server->settings->request_us;
	pthread_mutex_lock(&server->lock);
	visitor->next = server->visitors;
	visitor->at = &server->visitors;
	if (visitor->next)
		visitor->next->at = &visitor->next;
	server->visitors = visitor;
	pthread_mutex_unlock(&server->lock);
}

/* Bytes that come for a socket that is closed reset the connection, and a reset may take the answer
 * away from a client that has not read it. So the socket stays open for a while. */
static bool lingers(struct server *server, struct visitor *visitor)
{
	if (!visitor->sends || server->leaving_count == LEAVING_MAX)
		return false;
	visitor->fd = fcntl(visitor->fd, F_DUPFD_CLOEXEC, 0);
	if (visitor->fd < 0)
		return false;
	shutdown(visitor->fd, SHUT_WR);
	visitor->until_us = env_steady_us(server->env) + LEAVING_US;
	visitor->next = server->leaving;
	server->leaving = visitor;
	server->leaving_count++;
	return true;
}

static void leave(struct server *server, struct visitor *visitor)
{
	pthread_mutex_lock(&server->lock);
	*visitor->at = visitor->next;
	if (visitor->next)
		visitor->next->at = visitor->at;
	bool stays = lingers(server, visitor);
	pthread_mutex_unlock(&server->lock);
	if (!stays)
		free(visitor);
}

void connection_change(void *user, struct MHD_Connection *connection, void **ret_visitor,
                       enum MHD_ConnectionNotificationCode code)
{
	struct server *server = user;
	struct visitor *visitor = *ret_visitor;
	metrics_connection(server->metrics, code == MHD_CONNECTION_NOTIFY_STARTED ? 1 : -1);
	if (code == MHD_CONNECTION_NOTIFY_STARTED) {
		const union MHD_ConnectionInfo *info = MHD_get_connection_info(
		    connection, MHD_CONNECTION_INFO_CONNECTION_FD);
		visitor = calloc(1, sizeof *visitor);
		if (!visitor)
			return;
		visitor->fd = info->connect_fd;
		arrive(server, visitor);
		*ret_visitor = visitor;
	} else if (visitor) {
		leave(server, visitor);
		*ret_visitor = NULL;
	}
}

/* Whether more may come of it. */
static bool still_sends(int fd)
{
	char bytes[16384];
	ssize_t got = 1;
	for (size_t taken = 0; got > 0 && taken < LEAVING_BYTES; taken += (size_t)got)
		got = recv(fd, bytes, sizeof bytes, MSG_DONTWAIT);
	return got > 0 || (got < 0 && (errno == EAGAIN || errno == EINTR));
}

void connection_see_off(struct server *server, bool all)
{
	int64_t now_us = env_steady_us(server->env);
	struct visitor *stay = NULL, *next;
	pthread_mutex_lock(&server->lock);
	struct visitor *visitor = server->leaving;
	server->leaving = NULL;
	pthread_mutex_unlock(&server->lock);
	size_t gone = 0;
	for (; visitor; visitor = next) {
		next = visitor->next;
		if (!all && now_us < visitor->until_us && still_sends(visitor->fd)) {
			visitor->next = stay;
			stay = visitor;
			continue;
		}
		close(visitor->fd);
		free(visitor);
		gone++;
	}
	pthread_mutex_lock(&server->lock);
	server->leaving_count -= gone;
	struct visitor **end = &server->leaving; /* some may have come meanwhile */
	while (*end)
		end = &(*end)->next;
	*end = stay;
	pthread_mutex_unlock(&server->lock);
}

static void expect(struct request *request, bool takes, int64_t until_us)
{
	struct server *server = request->server;
	if (!request->visitor)
		return;
	pthread_mutex_lock(&server->lock);
	request->visitor->until_us = until_us;
	if (takes)
		request->visitor->since_us = env_steady_us(server->env);
	request->visitor->takes = takes;
	request->visitor->passes = request->passes;
	request->visitor->gone = false;
	pthread_mutex_unlock(&server->lock);
}

static void expect_by(struct request *request, int64_t until_us)
{
	expect(request, false, until_us);
}

/* Has the client closed its side, and nothing is left to be read? libmicrohttpd may not hear of it
 * that came with the last bytes. Twice in a row: what was read a moment ago may be a whole request,
 * whose sender waits for its answer. */
static bool is_gone(struct visitor *visitor)
{
	char byte;
	bool before = visitor->gone;
	visitor->gone = recv(visitor->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0;
	return before && visitor->gone;
}

/* While others find no room, a client may not hold it for as long as it could otherwise. */
static bool crowds(struct visitor *visitor, int64_t now_us)
{
	return atomic_load(&visitor->holds) && now_us - visitor->since_us > CROWDED_US;
}

void connection_end_slow(struct server *server, bool look)
{
	int64_t now_us = env_steady_us(server->env);
	bool scarce = memory_was_short(&server->memory);
	size_t cut = 0;
	bool stops = atomic_load(&server->stopping) && now_us >= atomic_load(&server->read_by_us);
	pthread_mutex_lock(&server->lock);
	for (struct visitor *visitor = server->visitors; visitor; visitor = visitor->next) {
		if (!visitor->until_us)
			continue;
		/* Who takes its answer may have closed its side, and is waited for by who stops. */
		bool stays = visitor->takes || ((!stops || visitor->passes) && !(look && is_gone(visitor)));
		bool cuts = scarce && crowds(visitor, now_us);
		if (visitor->until_us > now_us && stays && !cuts)
			continue;
		cut += cuts;
		visitor->until_us = 0;
		shutdown(visitor->fd, SHUT_RDWR);
	}
	pthread_mutex_unlock(&server->lock);
	if (cut)
		LOG(&server->log, IBID_LOG_WARN, "http.memory_short",
		    {"limit", log_int(server->settings->memory_bytes)},
		    {"connectionsCutOff", log_int((int64_t)cut)});
}

/* ---- What a request says -------------------------------------------------------------------- */

struct lookup {
	const char *name, *value;
	int count;
};

static enum MHD_Result match(void *user, enum MHD_ValueKind kind, const char *name,
                             const char *value)
{
	struct lookup *lookup = user;
	(void)kind;
	if (strcasecmp(name, lookup->name) == 0) {
		lookup->value = value ? value : "";
		lookup->count++;
	}
	return MHD_YES;
}

const char *request_header(struct request *request, const char *name, bool *ret_many)
{
	struct lookup lookup = {.name = name};
	MHD_get_connection_values(request->connection, MHD_HEADER_KIND, match, &lookup);
	*ret_many = lookup.count > 1;
	return lookup.count == 1 ? lookup.value : NULL;
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
	if (request->visitor)
		atomic_store(&request->visitor->holds, request->held > 0);
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
	free_answer(request);
	request->unheld = true;
	return false;
}

/* ---- Waiting -------------------------------------------------------------------------------- */

void request_suspend(struct request *request)
{
	request->suspended = true;
	MHD_suspend_connection(request->connection);
}

void request_answered(struct request *request)
{
	if (request->answer.status)
		(void)request_hold_answer(request, 0);
	MHD_resume_connection(request->connection);
}

void request_answered_together(struct request *request)
{
	struct server *server = request->server;
	(void)request_hold_answer(request, 0);
	request->next_answered = atomic_load(&server->answered);
	while (!atomic_compare_exchange_weak(&server->answered, &request->next_answered, request))
		;
}

void request_resume_answered(void *user)
{
	struct server *server = user;
	struct request *first = NULL;
	struct request *next = atomic_load(&server->answered) ? atomic_exchange(&server->answered, NULL)
	                                                      : NULL;
	while (next) { /* in the order of their answers */
		struct request *request = next;
		next = request->next_answered;
		request->next_answered = first;
		first = request;
	}
	while (first) {
		struct request *request = first;
		first = request->next_answered; /* it is gone when it is resumed */
		MHD_resume_connection(request->connection);
	}
}

void request_hand_on(struct request *request, crew_fn *call)
{
	struct ibid_err err = {0};
	request_suspend(request);
	if (!crew_call(request->house->crew, request->principal.tenant, call, request, &err))
		return;
	failure_answer(request, &err);
	request_answered(request);
}

/* ---- Beginning and end ---------------------------------------------------------------------- */

void *connection_begin(void *user, const char *uri, struct MHD_Connection *connection)
{
	struct server *server = user;
	struct request *request = calloc(1, sizeof *request);
	if (!request)
		return NULL;
	request->server = server;
	request->connection = connection;
	request->began_us = env_steady_us(server->env);
	request->uri = arena_strdup(&request->arena, uri);
	request->body = STR_INIT((size_t)server->settings->body_bytes);
	const union MHD_ConnectionInfo *info = MHD_get_connection_info(
	    connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
	request->visitor = info ? info->socket_context : NULL;
	pthread_mutex_lock(&server->lock);
	if (request->visitor)
		request->visitor->since_us = request->began_us;
	request->house = server->house;
	request->house->guests++;
	server->active++;
	pthread_mutex_unlock(&server->lock);
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

static void log_request(const struct request *request, int64_t took_us,
                        enum MHD_RequestTerminationCode code)
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
	    {"tookUs", log_int(took_us)},
	    {"end", log_text(code == MHD_REQUEST_TERMINATED_COMPLETED_OK ? "sent" : "broken off")});
}

void connection_end(void *user, struct MHD_Connection *connection, void **ret_request,
                    enum MHD_RequestTerminationCode code)
{
	struct server *server = user;
	struct request *request = *ret_request;
	const struct settings *settings = server->settings;
	(void)connection;
	if (!request)
		return;
	*ret_request = NULL;
	int64_t took_us = env_steady_us(server->env) - request->began_us;
	meters_request(request, took_us);
	log_request(request, took_us, code);
	/* The next request on this connection, and the silence before it. */
	expect_by(request, env_steady_us(server->env) + settings->idle_us + settings->request_us);
	free_answer(request);
	str_release(&request->body);
	(void)hold(request, 0);
	pass_close(request->pass); /* the calls' thread may be filling in an answer */
	arena_release(&request->arena);
	server_let_go(server, request->house);
	free(request);
}

/* ---- Reading -------------------------------------------------------------------------------- */

struct head {
	size_t told;
	const char *end; /* of what stands before the next line; a return and a line feed follow */
	unsigned seen;   /* of those that may stand there once */
	const char *twice;
	int count, misnamed; /* headers so far; the number of the first whose name is none, or 0 */
	bool odd;            /* a carriage return is the end of a line to some */
};

/* Two of these are two things to two readers. */
static void count_name(struct head *head, const char *name)
{
	static const char *const once[] = {"Host", "Ibid-Actor", "Correlation-Id", "Causation-Id"};
	if (!strchr("HhIiCc", *name)) /* of most headers it is enough to see the first letter */
		return;
	for (unsigned i = 0; i < sizeof once / sizeof *once; i++) {
		if (strcasecmp(name, once[i]) != 0)
			continue;
		if (head->seen & (1u << i))
			head->twice = once[i];
		head->seen |= 1u << i;
	}
}

static enum MHD_Result add_line(void *user, enum MHD_ValueKind kind, const char *name,
                                const char *value)
{
	struct head *head = user;
	const char *colon = name + strlen(name);
	/* Both stand in the line as it came: what is between them is the colon and blanks. */
	bool together = value && value == colon + 1 + strspn(colon + 1, " \t");
	size_t between = together ? (size_t)(value - colon) : sizeof ": " - 1;
	(void)kind;
	head->count++;
	/* "Content-Length :" and "Content-Length;" are headers to some who read them next. */
	if (!head->misnamed && !header_name_ok(name))
		head->misnamed = head->count;
	count_name(head, name);
	head->odd |= name != head->end + sizeof "\r\n" - 1;
	head->end = together ? value + strlen(value) : colon;
	head->told += strlen(name) + between + (value ? strlen(value) : 0) + sizeof "\r\n" - 1;
	head->odd |= value && !header_value_ok(value);
	return MHD_YES;
}

/* RFC 9112, 3.2: visible ASCII. What is not may be written differently on the way to a service. */
static bool target_is_plain(const char *uri)
{
	for (; *uri; uri++)
		if (*uri <= ' ' || *uri > '~')
			return false;
	return true;
}

/* libmicrohttpd ends a value at a NUL and drops what stands behind it; a head that is longer than
 * what we were told of it had such bytes, or folded lines, or needless blanks. It also takes a bare
 * line feed for the end of a line: then there would be room for what it drops. */
static bool head_is_whole(struct request *request, const char *version)
{
	size_t most = (size_t)request->server->settings->header_bytes;
	const union MHD_ConnectionInfo *info = MHD_get_connection_info(
	    request->connection, MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE);
	struct head head = {.told = strlen(request->method) + strlen(request->uri) + strlen(version) +
	                            sizeof "  \r\n\r\n" - 1,
	                    .end = version + strlen(version)};
	int count = MHD_get_connection_values(request->connection, MHD_HEADER_KIND, add_line, &head);
	if (head.told > most || (info && info->header_size > most) || count > HEADERS_MAX) {
		answer_problem(&request->answer, &request->arena, PROBLEM_BAD_REQUEST,
		               "the headers are more than %zu bytes or %d lines", most, HEADERS_MAX);
		return false;
	}
	if (head.twice) {
		answer_problem(&request->answer, &request->arena, PROBLEM_BAD_REQUEST,
		               "%s must be told once", head.twice);
		return false;
	}
	if (!target_is_plain(request->uri)) {
		answer_problem(&request->answer, &request->arena, PROBLEM_BAD_REQUEST,
		               "the path or the query holds a blank, a control character or a byte beyond "
		               "ASCII: it must be written as %%XX");
		return false;
	}
	if (head.misnamed) {
		answer_problem(&request->answer, &request->arena, PROBLEM_BAD_REQUEST,
		               "the name of header %d holds a byte that HTTP allows in no name: letters, "
		               "digits and !#$%%&'*+-.^_`|~ may stand there",
		               head.misnamed);
		return false;
	}
	if (!head.odd && (!info || info->header_size == head.told))
		return true;
	answer_problem(&request->answer, &request->arena, PROBLEM_BAD_REQUEST,
	               "the head holds a NUL or another control character, a folded line, needless "
	               "blanks, or a line that does not end with a return and a line feed");
	return false;
}

/* One length, told in one way: otherwise two readers see two requests. */
static bool length_is_plain(struct request *request)
{
	bool lengths, encodings;
	const char *length = request_header(request, "Content-Length", &lengths);
	const char *encoding = request_header(request, "Transfer-Encoding", &encodings);
	bool plain = !lengths && !encodings && !(length && encoding) &&
	             (!encoding || strcasecmp(encoding, "chunked") == 0);
	if (!plain)
		answer_problem(&request->answer, &request->arena, PROBLEM_BAD_REQUEST,
		               "the length of the body must be told once, by Content-Length or chunks");
	return plain;
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
	       !routes_resemble(&request->house->routes, request->method, request->path);
}

/* It goes on as it comes in: nothing is protected by a key. */
static bool passes(struct request *request)
{
	const struct contract *contract = request->route->contract;
	bool many;
	if (request->route == request->house->routes.pass)
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
	request->route = routes_find(&request->house->routes, method, request->path, &request->arena,
	                             request->params, &allow, &bad);
	if (!request->route && may_pass(request))
		request->route = request->house->routes.pass;
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
	bool many;
	const char *length = request_header(request, "Content-Length", &many);
	size_t most = request->passes ? (size_t)request->server->settings->pass_bytes
	                              : request->body.cap;
	if (!length || strtoull(length, NULL, 10) <= most)
		return true;
	answer_problem(&request->answer, &request->arena, PROBLEM_TOO_LARGE,
	               "the body has %s bytes; %zu are allowed", length, most);
	return false;
}

static void read_head(struct request *request, const char *method, const char *version)
{
	request->method = arena_strdup(&request->arena, method);
	trace_read(request);
	if (!request->uri || !request->method)
		answer_problem(&request->answer, &request->arena, PROBLEM_UNAVAILABLE, "out of memory");
	else if (atomic_load(&request->server->stopping))
		answer_problem(&request->answer, &request->arena, PROBLEM_UNAVAILABLE,
		               "the server is stopping; nothing was done");
	else if (head_is_whole(request, version) && length_is_plain(request) && find_route(request))
		access_check(request);
}

/* The head is there, and nothing was taken of the body: what is refused now is answered without it.
 * Whether a token is valid that was not seen of late is asked first; that is no time of the
 * client's. The connection stands still meanwhile, and this is called again. */
static void enter(struct request *request, const char *method, const char *version)
{
	request->suspended = false;
	if (request->step == STEP_HEAD) {
		request->step = STEP_ADMITTED;
		read_head(request, method, version);
		if (!request->answer.status && !request->admitted) {
			expect_by(request, 0);
			access_ask(request);
			return;
		}
	} else {
		expect_by(request,
		          env_steady_us(request->server->env) + request->server->settings->request_us);
	}
	request->step = STEP_WHOLE;
	if (!request->answer.status && body_fits(request) && request->passes) {
		expect_by(request, env_steady_us(request->server->env) +
		                       request->server->settings->upstream_deadline_us);
		pass_begin(request);
	}
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

static enum MHD_Result send_answer(struct request *request)
{
	const struct answer *answer = &request->answer;
	const struct settings *settings = request->server->settings;
	bool passed = request->pass && !answer->body;
	str_release(&request->body); /* nobody needs it any more */
	if (request->unheld || !request_hold_answer(request, 0))
		return MHD_NO;
	expect(request, true,
	       env_steady_us(request->server->env) +
	           (passed ? settings->upstream_deadline_us : settings->request_us));
	struct MHD_Response *response = passed ? pass_response(request)
	                                       : MHD_create_response_from_buffer(
	                                             answer->body ? answer->size : 0,
	                                             (void *)(uintptr_t)answer->body,
	                                             MHD_RESPMEM_PERSISTENT);
	if (!response)
		return MHD_NO;
	if (answer->body && answer->type)
		MHD_add_response_header(response, "Content-Type", answer->type);
	if (!passed) {
		MHD_add_response_header(response, "Cache-Control", "no-store");
		trace_answer(request, response);
	}
	if (atomic_load(&request->server->stopping))
		MHD_add_response_header(response, "Connection", "close");
	for (size_t i = 0; i < answer->header_count; i++)
		if (answer->headers[i].value)
			MHD_add_response_header(response, answer->headers[i].name, answer->headers[i].value);
	enum MHD_Result sent = MHD_queue_response(request->connection, (unsigned)answer->status,
	                                          response);
	MHD_destroy_response(response);
	return sent;
}

/* The body, if there is one, will not be read. */
static enum MHD_Result turn_away(struct request *request)
{
	bool many;
	if (request->visitor)
		request->visitor->sends = request_header(request, "Content-Length", &many) ||
		                          request_header(request, "Transfer-Encoding", &many);
	return send_answer(request);
}

/* The request is whole. */
static void advance(struct request *request)
{
	assert(request->step >= STEP_WHOLE);
	switch (request->step++) {
	case STEP_HEAD:
	case STEP_ADMITTED: break;
	case STEP_WHOLE:
		expect_by(request, 0);
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

enum MHD_Result connection_handle(void *user, struct MHD_Connection *connection, const char *url,
                                  const char *method, const char *version, const char *upload,
                                  size_t *upload_size, void **ret_request)
{
	struct request *request = *ret_request;
	(void)user, (void)connection, (void)url;
	if (!request)
		return MHD_NO; /* no memory */
	if (request->step < STEP_WHOLE) {
		enter(request, method, version);
		return !request->suspended && request->answer.status ? turn_away(request) : MHD_YES;
	}
	if (*upload_size && request->pass) {
		*upload_size -= pass_feed(request, upload, *upload_size);
		return MHD_YES;
	}
	if (*upload_size) {
		read_body(request, upload, *upload_size);
		*upload_size = 0;
		return MHD_YES;
	}
	request->suspended = false; /* nobody is called for one that is */
	while (!request->suspended && !request->answer.status)
		advance(request);
	return request->suspended ? MHD_YES : send_answer(request);
}
