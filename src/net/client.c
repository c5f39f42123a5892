/* SPDX-License-Identifier: Apache-2.0 */
/* client.c -- one connection: read a head and a body, call the request's callbacks, write the
 * answer.
 *
 * Each state has a step, which goes on until it needs the socket or another thread. */
#include "net/client.h"

#include "net/header.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/uio.h>

enum {
	IN_BYTES = 8 << 10, /* input buffer; it grows for large heads and bodies */
	BODY_IN_BYTES = 64 << 10,
	PIECE_BYTES = 16 << 10, /* of an answer in pieces */
	EMPTY_LINES_MAX = 4,    /* tolerated before a request line */
	LINGER_US = 2000000,    /* how long the input of a refused client is discarded */
	LINGER_MAX = 64,        /* lingering clients at once */
};

static int64_t now_us(const struct client *client)
{
	return env_steady_us(client->listener->options.env);
}

/* ---- Sockets -------------------------------------------------------------------------------- */

/* -1: nothing to read now; 0: end of input, or an error. */
static ssize_t receive(struct client *client, void *to, size_t room)
{
	ssize_t got;
	do
		got = client->tls ? tls_read(client->tls, to, room) : recv(client->fd, to, room, 0);
	while (got < 0 && errno == EINTR);
	/* A short read means that the socket is empty; TLS may have more buffered. */
	if (got > 0 && (size_t)got < room && !client->tls && !client->hung)
		client->readable = false;
	if (got >= 0)
		return got;
	if (errno != EAGAIN && errno != EWOULDBLOCK)
		return 0;
	client->readable = false;
	return -1;
}

/* Write what is left of the head and of the body. -1: not writable now; 0: an error. */
static ssize_t transmit(struct client *client)
{
	struct iovec parts[2] = {
	    {client->out.data + client->out_sent, client->out.size - client->out_sent},
	    {(void *)(uintptr_t)(client->body + client->body_sent),
	     client->body_size - client->body_sent},
	};
	bool first = parts[0].iov_len > 0;
	struct msghdr message = {.msg_iov = first ? parts : parts + 1,
	                         .msg_iovlen = first && parts[1].iov_len ? 2 : 1};
	ssize_t put;
	do
		put = client->tls
		          ? tls_write(client->tls, message.msg_iov->iov_base, message.msg_iov->iov_len)
		          : sendmsg(client->fd, &message, MSG_NOSIGNAL);
	while (put < 0 && errno == EINTR);
	if (put >= 0)
		return put;
	if (errno != EAGAIN && errno != EWOULDBLOCK)
		return 0;
	client->writable = false;
	return -1;
}

/* Write until nothing is left. */
static enum step flush(struct client *client)
{
	while (client->out_sent < client->out.size || client->body_sent < client->body_size) {
		if (!client->writable)
			return STEP_WAIT;
		ssize_t put = transmit(client);
		if (put < 0)
			continue;
		if (!put)
			return STEP_GONE;
		size_t left = client->out.size - client->out_sent;
		size_t of_out = (size_t)put < left ? (size_t)put : left;
		client->out_sent += of_out;
		client->body_sent += (size_t)put - of_out;
	}
	return STEP_ON;
}

/* ---- Reading -------------------------------------------------------------------------------- */

static size_t in_left(const struct client *client)
{
	return client->in_size - client->in_start;
}

static bool make_room(struct client *client, size_t room)
{
	if (client->in_room >= room)
		return true;
	char *in = realloc(client->in, room);
	if (!in)
		return false;
	client->in = in;
	client->in_room = room;
	return true;
}

/* Read more input, behind the unused input. */
static enum step fill(struct client *client)
{
	if (client->in_start) {
		memmove(client->in, client->in + client->in_start, in_left(client));
		client->in_size -= client->in_start;
		client->in_start = 0;
	}
	if (!client->readable)
		return STEP_WAIT;
	ssize_t got = receive(client, client->in + client->in_size, client->in_room - client->in_size);
	if (got <= 0)
		return got ? STEP_WAIT : STEP_GONE;
	client->in_size += (size_t)got;
	return STEP_ON;
}

void client_reset_on_close(struct client *client, bool resets)
{
	struct linger linger = {.l_onoff = resets};
	setsockopt(client->fd, SOL_SOCKET, SO_LINGER, &linger, sizeof linger);
}

void client_set_deadline(struct client *client, int64_t us)
{
	client->since_us = now_us(client);
	client->until_us = client->since_us + us;
}

static enum step begin_request(struct client *client)
{
	const struct listener_options *options = &client->listener->options;
	client->scanned = client->empty_lines = 0;
	client->allowed = false;
	client->allowed_us = options->request_us;
	client->chunks = (struct chunks){0};
	client->left = client->head.length;
	client->since_us = now_us(client);
	client->until_us = 0; /* until the body is read */
	client->delimits = client->ends = client->unread = client->resets = false;
	client->state = CLIENT_ENTER;
	client->request = options->ops->begin(options->user, client);
	return client->request ? STEP_ON : STEP_GONE;
}

static enum step refuse_head(struct client *client, const char *why)
{
	client->head = (struct head){.wrong = why ? why : "out of memory"};
	client->in_start = client->in_size;
	return begin_request(client);
}

static enum step read_whole_head(struct client *client, size_t size)
{
	char *text = arena_strndup(&client->arena, client->in + client->in_start, size);
	if (!text)
		return STEP_GONE;
	head_read(&client->head, &client->arena, text, size);
	client->in_start += size;
	return begin_request(client);
}

/* Some clients send an empty line after a body (RFC 9112, 2.2). */
static bool skip_empty_lines(struct client *client)
{
	while (in_left(client) >= 2 && memcmp(client->in + client->in_start, "\r\n", 2) == 0) {
		client->in_start += 2;
		if (++client->empty_lines > EMPTY_LINES_MAX)
			return false;
	}
	return true;
}

static enum step step_head(struct client *client)
{
	static const char malformed[] =
	    "the request does not begin with a method, a path and HTTP/1.1, "
	    "with one blank between them";
	size_t most = client->listener->options.head_bytes;
	bool began = in_left(client) > 0;
	if (!skip_empty_lines(client))
		return refuse_head(client, malformed);
	const char *text = client->in + client->in_start;
	size_t size = in_left(client);
	size_t whole = size ? head_size(text, size, &client->scanned) : 0;
	if (whole && whole <= most)
		return read_whole_head(client, whole);
	bool returns = size == 1 && *text == '\r'; /* half of an empty line */
	if (size && !returns && !head_may_begin(text, size))
		return refuse_head(client, malformed);
	if (whole || size > most)
		return refuse_head(
		    client, arena_printf(&client->arena, "the headers are more than %zu bytes", most));
	/* Room for one byte more than the limit: reading it shows that the head is too long. */
	size_t room = 2 * size > IN_BYTES ? 2 * size : IN_BYTES;
	if (!make_room(client, room < most + 1 ? room : most + 1))
		return STEP_GONE;
	enum step step = fill(client);
	if (step == STEP_ON && !began)
		client_set_deadline(client, client->listener->options.request_us);
	return step;
}

/* ---- The request ---------------------------------------------------------------------------- */

static bool has_body(const struct client *client)
{
	return client->head.chunked || client->left > 0;
}

static enum step step_enter(struct client *client)
{
	const struct listener_ops *ops = client->listener->options.ops;
	client->unread = client->head.wrong || has_body(client);
	ops->enter(client->request);
	if (client->suspended || client->state != CLIENT_ENTER)
		return STEP_ON;
	assert(!client->head.wrong); /* enter must answer it */
	client_set_deadline(client, client->allowed_us);
	client->state = CLIENT_BODY;
	if (client->head.wants_continue && has_body(client) && !in_left(client))
		str_adds(&client->out, "HTTP/1.1 100 Continue\r\n\r\n");
	return STEP_ON;
}

static void take(struct client *client, uint64_t size, uint64_t *left)
{
	const struct listener_ops *ops = client->listener->options.ops;
	size_t here = in_left(client), most = size < here ? (size_t)size : here;
	size_t taken = ops->body(client->request, client->in + client->in_start, most);
	assert(taken <= most && (taken == most || client->suspended));
	client->in_start += taken;
	*left -= taken;
}

static enum step read_length(struct client *client)
{
	uint64_t left = (uint64_t)client->left;
	take(client, left, &left);
	client->left = (int64_t)left;
	return STEP_ON;
}

static enum step read_chunks(struct client *client)
{
	size_t used;
	enum chunks_found found = chunks_read(&client->chunks, client->in + client->in_start,
	                                      in_left(client), &used);
	client->in_start += used;
	switch (found) {
	case CHUNKS_MORE: break;
	case CHUNKS_DATA:
		if (in_left(client))
			take(client, client->chunks.left, &client->chunks.left);
		break;
	case CHUNKS_END: client->head.chunked = false; break;
	case CHUNKS_WRONG:
		client->listener->options.ops->broken(client->request, client->chunks.wrong);
		assert(client->state == CLIENT_ANSWER);
		break;
	}
	return STEP_ON;
}

static enum step step_body(struct client *client)
{
	if (client->out.size) { /* 100 Continue */
		enum step step = flush(client);
		if (step != STEP_ON)
			return step;
		str_clear(&client->out);
		client->out_sent = 0;
	}
	if (!has_body(client)) {
		client->unread = false;
		client->until_us = 0;
		client->state = CLIENT_RUN;
		return STEP_ON;
	}
	if (in_left(client))
		return client->head.chunked ? read_chunks(client) : read_length(client);
	bool long_one = client->head.chunked || client->left > (int64_t)client->in_room;
	if (long_one && !make_room(client, BODY_IN_BYTES))
		return STEP_GONE;
	return fill(client);
}

static enum step step_run(struct client *client)
{
	client->listener->options.ops->run(client->request);
	assert(client->suspended || client->state != CLIENT_RUN);
	return STEP_ON;
}

/* ---- The answer ----------------------------------------------------------------------------- */

static const char *reason_of(int status)
{
	static const struct {
		int status;
		const char *reason;
	} reasons[] = {
	    {200, "OK"},
	    {201, "Created"},
	    {202, "Accepted"},
	    {203, "Non-Authoritative Information"},
	    {204, "No Content"},
	    {205, "Reset Content"},
	    {206, "Partial Content"},
	    {207, "Multi-Status"},
	    {300, "Multiple Choices"},
	    {301, "Moved Permanently"},
	    {302, "Found"},
	    {303, "See Other"},
	    {304, "Not Modified"},
	    {307, "Temporary Redirect"},
	    {308, "Permanent Redirect"},
	    {400, "Bad Request"},
	    {401, "Unauthorized"},
	    {402, "Payment Required"},
	    {403, "Forbidden"},
	    {404, "Not Found"},
	    {405, "Method Not Allowed"},
	    {406, "Not Acceptable"},
	    {407, "Proxy Authentication Required"},
	    {408, "Request Timeout"},
	    {409, "Conflict"},
	    {410, "Gone"},
	    {411, "Length Required"},
	    {412, "Precondition Failed"},
	    {413, "Content Too Large"},
	    {414, "URI Too Long"},
	    {415, "Unsupported Media Type"},
	    {416, "Range Not Satisfiable"},
	    {417, "Expectation Failed"},
	    {421, "Misdirected Request"},
	    {422, "Unprocessable Content"},
	    {423, "Locked"},
	    {424, "Failed Dependency"},
	    {425, "Too Early"},
	    {426, "Upgrade Required"},
	    {428, "Precondition Required"},
	    {429, "Too Many Requests"},
	    {431, "Request Header Fields Too Large"},
	    {451, "Unavailable For Legal Reasons"},
	    {500, "Internal Server Error"},
	    {501, "Not Implemented"},
	    {502, "Bad Gateway"},
	    {503, "Service Unavailable"},
	    {504, "Gateway Timeout"},
	    {505, "HTTP Version Not Supported"},
	    {507, "Insufficient Storage"},
	};
	for (size_t i = 0; i < sizeof reasons / sizeof *reasons; i++)
		if (reasons[i].status == status)
			return reasons[i].reason;
	return "";
}

static const char *date_of(struct listener *listener)
{
	time_t now = (time_t)(env_wall_us(listener->options.env) / 1000000);
	struct tm parts;
	if (now != listener->dated && gmtime_r(&now, &parts)) {
		static const char *const days[] = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
		static const char *const months[] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
		                                     "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
		snprintf(listener->date, sizeof listener->date, "%s, %02d %s %04d %02d:%02d:%02d GMT",
		         days[parts.tm_wday], parts.tm_mday, months[parts.tm_mon], parts.tm_year + 1900,
		         parts.tm_hour, parts.tm_min, parts.tm_sec);
		listener->dated = now;
	}
	return listener->date;
}

void client_answer(struct client *client, int status)
{
	assert(client->state != CLIENT_ANSWER);
	client->state = CLIENT_ANSWER;
	client->status = status;
	client->dated = client->chunks_out = false;
	client->pieces = NULL;
	client->body = NULL;
	client->body_size = client->body_sent = 0;
	str_addf(&client->out, "HTTP/1.1 %d %s\r\n", status, reason_of(status));
}

void client_header(struct client *client, const char *name, const char *value)
{
	if (!header_name_ok(name) || !header_value_ok(value))
		return;
	if (strcasecmp(name, "Connection") == 0) {
		client->ends = true;
		return;
	}
	client->dated |= strcasecmp(name, "Date") == 0;
	str_addf(&client->out, "%s: %s\r\n", name, value);
}

/* RFC 9110, 6.4.1 */
static bool has_no_body(const struct client *client)
{
	return client->status == 204 || client->status == 304 ||
	       (client->head.method && strcmp(client->head.method, "HEAD") == 0);
}

/* The fields about the connection and the body, and the end of the head. `length`: -1 when unknown.
 */
static void end_head(struct client *client, int64_t length)
{
	struct listener *listener = client->listener;
	bool old = !client->head.minor, no_body = has_no_body(client);
	client->chunks_out = length < 0 && !no_body && !old;
	client->delimits = length < 0 && !no_body && old;
	if (client->delimits) /* a connection that is cut off must not look like the end */
		client_reset_on_close(client, true);
	/* N3 */
	client->ends = client->ends || client->unread || !client->head.keep_alive || client->delimits ||
	               atomic_load(&listener->draining);
	if (!client->dated)
		str_addf(&client->out, "Date: %s\r\n", date_of(listener));
	if (client->ends || old)
		str_addf(&client->out, "Connection: %s\r\n", client->ends ? "close" : "keep-alive");
	if (client->chunks_out)
		str_adds(&client->out, "Transfer-Encoding: chunked\r\n");
	else if (length >= 0 && client->status != 204 && (client->status != 304 || length))
		str_addf(&client->out, "Content-Length: %lld\r\n", (long long)length);
	str_adds(&client->out, "\r\n");
	client_set_deadline(client, client->allowed_us);
}

void client_send(struct client *client, const char *body, size_t size)
{
	end_head(client, (int64_t)size);
	if (has_no_body(client))
		return;
	client->body = body;
	client->body_size = size;
}

void client_stream(struct client *client, int64_t length, client_pieces *pieces, void *user)
{
	end_head(client, length);
	if (has_no_body(client))
		return;
	client->pieces = pieces;
	client->pieces_user = user;
	client->left = length;
}

void client_break_off(struct client *client)
{
	client->state = CLIENT_ANSWER;
	client->resets = client->ends = true;
}

/* Get the next piece; everything before it was written. */
static enum step add_piece(struct client *client)
{
	char piece[PIECE_BYTES];
	ssize_t got = client->pieces(client->pieces_user, piece, sizeof piece);
	if (!got) {
		assert(client->suspended);
		return STEP_ON;
	}
	/* A client would take surplus bytes for the next answer, and wait for missing ones. */
	bool wrong = got > 0 ? client->left >= 0 && client->left < got
	                     : got == PIECES_BROKEN || client->left > 0;
	if (wrong && !client->chunks_out && client->left >= 0)
		client->resets = true;
	client->resets |= got == PIECES_BROKEN;
	if (client->resets)
		return STEP_GONE;
	if (got > 0 && client->left >= 0)
		client->left -= got;
	str_clear(&client->out);
	client->out_sent = 0;
	if (got > 0 && client->chunks_out)
		str_addf(&client->out, "%zx\r\n", (size_t)got);
	if (got > 0)
		str_add(&client->out, piece, (size_t)got);
	if (client->chunks_out)
		str_adds(&client->out, got > 0 ? "\r\n" : "0\r\n\r\n");
	if (got < 0)
		client->pieces = NULL;
	return STEP_ON;
}

void client_end_request(struct client *client, bool sent)
{
	if (client->request)
		client->listener->options.ops->end(client->request, sent);
	client->request = NULL;
	client->body = NULL;
	client->body_size = client->body_sent = client->out_sent = 0;
	client->pieces = NULL;
	str_clear(&client->out);
	arena_release(&client->arena);
}

/* Closing a socket with unread input resets the connection, and the client may lose the answer that
 * it has not read. So the socket stays open for a while, and its input is discarded. */
static enum step begin_lingering(struct client *client)
{
	struct listener *listener = client->listener;
	if ((!client->unread && !in_left(client)) || listener->lingering == LINGER_MAX)
		return STEP_GONE;
	tls_free(client->tls, true);
	client->tls = NULL;
	shutdown(client->fd, SHUT_WR);
	listener->lingering++;
	client->state = CLIENT_LINGER;
	client->readable = true; /* input that TLS had buffered is gone */
	client_set_deadline(client, LINGER_US);
	return STEP_ON;
}

static enum step step_answer(struct client *client)
{
	if (client->out.failed || (client->resets && !client->out.size))
		return STEP_GONE;
	enum step step = flush(client);
	if (step != STEP_ON)
		return step;
	if (client->pieces)
		return add_piece(client);
	client_end_request(client, true);
	if (client->delimits)
		client_reset_on_close(client, false);
	if (client->ends)
		return begin_lingering(client);
	client->state = CLIENT_HEAD;
	client_set_deadline(client, in_left(client) ? client->listener->options.request_us
	                                            : client->listener->options.idle_us);
	if (!in_left(client) && client->in_room > IN_BYTES) {
		char *in = realloc(client->in, IN_BYTES);
		if (in) {
			client->in = in;
			client->in_room = IN_BYTES;
		}
		client->in_start = client->in_size = 0;
	}
	return STEP_ON;
}

static enum step step_linger(struct client *client)
{
	char bytes[PIECE_BYTES];
	if (!client->readable)
		return STEP_WAIT;
	ssize_t got = receive(client, bytes, sizeof bytes);
	if (got > 0)
		return STEP_ON;
	return got ? STEP_WAIT : STEP_GONE;
}

/* ---- Steps ---------------------------------------------------------------------------------- */

enum step client_advance(struct client *client)
{
	switch (client->state) {
	case CLIENT_HEAD: return step_head(client);
	case CLIENT_ENTER: return step_enter(client);
	case CLIENT_BODY: return step_body(client);
	case CLIENT_RUN: return step_run(client);
	case CLIENT_ANSWER: return step_answer(client);
	case CLIENT_LINGER: return step_linger(client);
	}
	return STEP_GONE;
}

/* ---- For callbacks -------------------------------------------------------------------------- */

void client_suspend(struct client *client)
{
	assert(!client->suspended);
	client->suspended = true;
}

const struct head *client_head(const struct client *client)
{
	return &client->head;
}

const struct sockaddr *client_address(const struct client *client)
{
	return (const struct sockaddr *)&client->address;
}

void client_holds(struct client *client, bool holds)
{
	atomic_store(&client->holds, holds);
}

void client_allow(struct client *client, int64_t us)
{
	client->allowed_us = us;
	client->allowed = true;
}
