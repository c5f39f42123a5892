/* SPDX-License-Identifier: Apache-2.0 */
/* listener.c -- one thread, an epoll, and a state for each client.
 *
 * Sockets are watched by edges: an event says that a client may be read or written again, and it
 * stays so until a call says EAGAIN. Clients with something to do stand in one queue, from which
 * each takes a bounded turn, so that none that sends without end keeps the others waiting.
 *
 * (N1) Only the listener's thread touches a client, except for `holds` and the list of those that
 * are resumed. (N2) A client is ended only in its own turn, and never while it is suspended: its
 * request belongs to others then. (N3) What of a body was not read is never taken for a request:
 * the connection ends behind the answer. */
#include "net/listener.h"

#include "base/str.h"
#include "net/chunks.h"
#include "net/header.h"
#include "net/tls.h"

#include <assert.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

enum {
	TICK_US = 100000,        /* how exact deadlines of clients are */
	EVENTS_MAX = 256,        /* in one look */
	ACCEPTS_MAX = 64,        /* likewise */
	TURN_STEPS = 64,         /* of one client, before others have theirs */
	IN_BYTES = 8 << 10,      /* that are read at once; more for heads and bodies that need it */
	BODY_IN_BYTES = 64 << 10,
	PIECE_BYTES = 16 << 10,  /* of an answer in pieces */
	PIECE_FRAME_BYTES = 16,  /* around one: its size and the ends of two lines */
	OUT_BYTES_MAX = 1 << 20, /* of the head of an answer */
	EMPTY_LINES_MAX = 4,     /* before a request */
	LINGER_US = 2000000,     /* how long is taken what a client sends that was refused */
	LINGER_MAX = 64,         /* of how many at once */
	CROWD_US = 2000000,      /* how long a client may hold memory while others find none */
	ADDRESS_BACKLOG = 1024,
};

enum client_state {
	CLIENT_HEAD,   /* a request is awaited, or has begun to come */
	CLIENT_ENTER,  /* its head is there */
	CLIENT_BODY,   /* its body comes */
	CLIENT_RUN,    /* it is whole */
	CLIENT_ANSWER, /* it is answered */
	CLIENT_LINGER, /* nothing more is said; what still comes is thrown away */
};

/* What a step of a client came to. */
enum step { STEP_ON, STEP_WAIT, STEP_GONE };

struct client {
	struct listener *listener;
	int fd;
	struct tls *tls; /* NULL: none */
	struct sockaddr_storage address;
	enum client_state state;
	bool readable, writable; /* as far as is known */
	bool hung;               /* the client has closed its side: there is an end to be read */
	bool suspended, queued;
	bool cut; /* its time is over */

	char *in; /* what was read and not yet used is from in_start */
	size_t in_start, in_size, in_room;
	size_t scanned, empty_lines; /* of a head that is not whole */
	struct arena arena;          /* of the head; until the request is over */
	struct head head;
	void *request;
	struct chunks chunks;
	int64_t left; /* of a body whose length was told */

	int64_t until_us;   /* then it is ended; 0: nothing is awaited from the client */
	int64_t since_us;   /* when its request or its answer began */
	int64_t allowed_us; /* for sending the request, and for taking the answer */
	bool allowed;       /* that was said for this request */
	atomic_bool holds;

	struct str out; /* the head of the answer, and frames of pieces */
	size_t out_sent;
	const char *body;
	size_t body_size, body_sent;
	client_pieces *pieces;
	void *pieces_user;
	int status;
	bool dated, chunks_out;
	bool ends;    /* the connection does, behind the answer */
	bool unread;  /* something of the body was not read */
	bool resets;  /* the client must not take what it got for all */

	struct client *next, **at; /* of all */
	struct client *next_queued, *next_resumed;
};

struct listener {
	struct listener_options options;
	int fd, epoll, wake_fd;
	struct tls_server *tls;
	bool accepts;
	bool has_thread;
	pthread_t thread;
	struct client *clients;
	size_t count, lingering;
	struct client *queue, **queue_end;
	_Atomic(struct client *) resumed; /* the latest first */
	atomic_bool awake, draining, closing;
	_Atomic int64_t read_by_us;
	int64_t tick_us;
	time_t dated; /* the second of `date` */
	char date[96];
};

static int64_t now_us(const struct listener *listener)
{
	return env_steady_us(listener->options.env);
}

/* ---- The queue ------------------------------------------------------------------------------ */

static void queue_client(struct client *client)
{
	struct listener *listener = client->listener;
	if (client->queued)
		return;
	client->queued = true;
	client->next_queued = NULL;
	*listener->queue_end = client;
	listener->queue_end = &client->next_queued;
}

void listener_wake(struct listener *listener)
{
	uint64_t one = 1;
	if (!atomic_exchange(&listener->awake, true))
		(void)!write(listener->wake_fd, &one, sizeof one);
}

void client_resume_soon(struct client *client)
{
	struct listener *listener = client->listener;
	client->next_resumed = atomic_load(&listener->resumed);
	while (!atomic_compare_exchange_weak(&listener->resumed, &client->next_resumed, client))
		;
}

void client_resume(struct client *client)
{
	struct listener *listener = client->listener; /* the client may be gone when it is resumed */
	client_resume_soon(client);
	listener_wake(listener);
}

void client_suspend(struct client *client)
{
	assert(!client->suspended);
	client->suspended = true;
}

static void queue_resumed(struct listener *listener)
{
	struct client *first = NULL, *next = atomic_exchange(&listener->resumed, NULL);
	while (next) { /* in the order in which they were resumed */
		struct client *client = next;
		next = client->next_resumed;
		client->next_resumed = first;
		first = client;
	}
	while (first) {
		struct client *client = first;
		first = client->next_resumed;
		assert(client->suspended);
		client->suspended = false;
		queue_client(client);
	}
}

/* ---- Sockets -------------------------------------------------------------------------------- */

/* -1: nothing can be read now; 0: the end, or an error, which is one. */
static ssize_t receive(struct client *client, void *to, size_t room)
{
	ssize_t got;
	do
		got = client->tls ? tls_read(client->tls, to, room) : recv(client->fd, to, room, 0);
	while (got < 0 && errno == EINTR);
	/* A socket that gave less than it could is empty; TLS may hold more. */
	if (got > 0 && (size_t)got < room && !client->tls && !client->hung)
		client->readable = false;
	if (got >= 0)
		return got;
	if (errno != EAGAIN && errno != EWOULDBLOCK)
		return 0;
	client->readable = false;
	return -1;
}

/* The head of the answer and its body, or what is left of them. -1 as above; 0: an error. */
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
		put = client->tls ? tls_write(client->tls, message.msg_iov->iov_base,
		                              message.msg_iov->iov_len)
		                  : sendmsg(client->fd, &message, MSG_NOSIGNAL);
	while (put < 0 && errno == EINTR);
	if (put >= 0)
		return put;
	if (errno != EAGAIN && errno != EWOULDBLOCK)
		return 0;
	client->writable = false;
	return -1;
}

/* Until all that is to be said has been. */
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

/* More of what the client sends, behind what is there. */
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

static void set_deadline(struct client *client, int64_t us)
{
	client->since_us = now_us(client->listener);
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
	client->since_us = now_us(client->listener);
	client->ends = client->unread = client->resets = false;
	client->state = CLIENT_ENTER;
	client->request = options->ops->begin(options->user, client);
	return client->request ? STEP_ON : STEP_GONE;
}

static enum step refuse_head(struct client *client, const char *why)
{
	client->head = (struct head){.wrong = why};
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

/* Some clients end their bodies with an empty line that they do not count. */
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
	static const char malformed[] = "the request does not begin with a method, a path and HTTP/1.1, "
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
	bool returns = size == 1 && *text == '\r'; /* of an empty line */
	if (size && !returns && !head_may_begin(text, size))
		return refuse_head(client, malformed);
	if (whole || size > most)
		return refuse_head(client, arena_printf(&client->arena,
		                                        "the headers are more than %zu bytes", most));
	/* One byte more than is allowed shows that it is too much. */
	size_t room = 2 * size > IN_BYTES ? 2 * size : IN_BYTES;
	if (!make_room(client, room < most + 1 ? room : most + 1))
		return STEP_GONE;
	enum step step = fill(client);
	if (step == STEP_ON && !began)
		set_deadline(client, client->listener->options.request_us);
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
	assert(!client->head.wrong); /* it is answered */
	set_deadline(client, client->allowed_us);
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
	if (strcasecmp(name, "Connection") == 0) { /* whatever options it would name end with it */
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

/* The fields that are about the connection and the body, and the end of the head. `length`: -1: it
 * is not known. */
static void end_head(struct client *client, int64_t length)
{
	struct listener *listener = client->listener;
	bool old = !client->head.minor, no_body = has_no_body(client);
	client->chunks_out = length < 0 && !no_body && !old;
	/* N3 */
	client->ends = client->ends || client->unread || !client->head.keep_alive ||
	               (length < 0 && !no_body && old) || atomic_load(&listener->draining);
	if (!client->dated)
		str_addf(&client->out, "Date: %s\r\n", date_of(listener));
	if (client->ends || old)
		str_addf(&client->out, "Connection: %s\r\n", client->ends ? "close" : "keep-alive");
	if (client->chunks_out)
		str_adds(&client->out, "Transfer-Encoding: chunked\r\n");
	else if (length >= 0 && client->status != 204 && (client->status != 304 || length))
		str_addf(&client->out, "Content-Length: %lld\r\n", (long long)length);
	str_adds(&client->out, "\r\n");
	set_deadline(client, client->allowed_us);
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

/* The next piece, behind a head that has left. */
static enum step add_piece(struct client *client)
{
	char piece[PIECE_BYTES];
	ssize_t got = client->pieces(client->pieces_user, piece, sizeof piece);
	if (!got) {
		assert(client->suspended);
		return STEP_ON;
	}
	/* More or less than was told would be taken for the next answer, or waited for. */
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

static void end_request(struct client *client, bool sent)
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

/* Bytes that come for a socket that is closed reset the connection, and a reset may take the answer
 * away from a client that has not read it. So the socket stays open for a while. */
static enum step begin_lingering(struct client *client)
{
	struct listener *listener = client->listener;
	if (!client->unread || listener->lingering == LINGER_MAX)
		return STEP_GONE;
	tls_free(client->tls);
	client->tls = NULL;
	shutdown(client->fd, SHUT_WR);
	listener->lingering++;
	client->state = CLIENT_LINGER;
	client->readable = true; /* what TLS has left over is for nobody */
	set_deadline(client, LINGER_US);
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
	end_request(client, true);
	if (client->ends)
		return begin_lingering(client);
	client->state = CLIENT_HEAD;
	set_deadline(client, in_left(client) ? client->listener->options.request_us
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

/* ---- Turns ---------------------------------------------------------------------------------- */

static void accept_again(struct listener *listener);

static void end_client(struct client *client)
{
	struct listener *listener = client->listener;
	assert(!client->suspended && !client->queued); /* N2 */
	end_request(client, false);
	listener->lingering -= client->state == CLIENT_LINGER;
	tls_free(client->tls);
	if (client->resets) {
		struct linger none = {.l_onoff = 1};
		setsockopt(client->fd, SOL_SOCKET, SO_LINGER, &none, sizeof none);
	}
	close(client->fd);
	*client->at = client->next;
	if (client->next)
		client->next->at = client->at;
	str_release(&client->out);
	free(client->in);
	free(client);
	listener->count--;
	if (listener->options.ops->count)
		listener->options.ops->count(listener->options.user, -1);
	accept_again(listener);
}

static enum step advance(struct client *client)
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

static void take_turn(struct client *client)
{
	enum step step = client->cut ? STEP_GONE : STEP_ON;
	client->queued = false;
	if (client->suspended)
		return; /* it is queued again when it is resumed */
	for (int steps = 0; step == STEP_ON && !client->suspended; steps++) {
		if (steps == TURN_STEPS) {
			queue_client(client);
			return;
		}
		step = advance(client);
	}
	if (step == STEP_GONE && !client->suspended)
		end_client(client);
}

static void take_turns(struct listener *listener)
{
	struct client *client = listener->queue;
	listener->queue = NULL;
	listener->queue_end = &listener->queue;
	while (client) {
		struct client *next = client->next_queued;
		take_turn(client);
		client = next;
	}
}

/* ---- Coming --------------------------------------------------------------------------------- */

static void watch(struct listener *listener, int operation, int fd, unsigned events, void *what)
{
	struct epoll_event event = {.events = events, .data.ptr = what};
	(void)!epoll_ctl(listener->epoll, operation, fd, &event);
}

static void stop_accepting(struct listener *listener)
{
	if (listener->accepts)
		watch(listener, EPOLL_CTL_DEL, listener->fd, 0, NULL);
	listener->accepts = false;
}

static void accept_again(struct listener *listener)
{
	if (listener->accepts || listener->fd < 0 || atomic_load(&listener->draining) ||
	    listener->count >= listener->options.clients_max)
		return;
	watch(listener, EPOLL_CTL_ADD, listener->fd, EPOLLIN, listener);
	listener->accepts = true;
}

static struct client *client_new(struct listener *listener, int fd)
{
	struct client *client = calloc(1, sizeof *client);
	if (!client)
		return NULL;
	client->listener = listener;
	client->fd = fd;
	client->out = STR_INIT(OUT_BYTES_MAX);
	client->readable = client->writable = true;
	if (listener->tls && !(client->tls = tls_new(listener->tls, fd))) {
		free(client);
		return NULL;
	}
	client->next = listener->clients;
	client->at = &listener->clients;
	if (client->next)
		client->next->at = &client->next;
	listener->clients = client;
	return client;
}

static void come(struct listener *listener, int fd, const struct sockaddr_storage *address)
{
	int one = 1;
	struct client *client = client_new(listener, fd);
	if (!client) {
		close(fd);
		return;
	}
	client->address = *address;
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
	watch(listener, EPOLL_CTL_ADD, fd, EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, client);
	set_deadline(client, listener->options.request_us);
	listener->count++;
	if (listener->options.ops->count)
		listener->options.ops->count(listener->options.user, 1);
	queue_client(client);
}

static void accept_some(struct listener *listener)
{
	for (int i = 0; i < ACCEPTS_MAX; i++) {
		struct sockaddr_storage address = {0};
		socklen_t size = sizeof address;
		if (listener->count >= listener->options.clients_max) {
			stop_accepting(listener); /* until one of them has gone */
			return;
		}
		int fd = accept4(listener->fd, (struct sockaddr *)&address, &size,
		                 SOCK_NONBLOCK | SOCK_CLOEXEC);
		if (fd >= 0)
			come(listener, fd, &address);
		if (fd >= 0 || errno == ECONNABORTED || errno == EINTR)
			continue;
		if (errno != EAGAIN && errno != EWOULDBLOCK)
			stop_accepting(listener); /* until the next tick: there may be descriptors again */
		return;
	}
}

/* ---- Time ----------------------------------------------------------------------------------- */

static bool is_late(const struct client *client, int64_t now, bool stops)
{
	bool reads = client->state == CLIENT_HEAD ||
	             (client->state == CLIENT_BODY && !client->allowed);
	return client->until_us && (now >= client->until_us || (stops && reads));
}

static void tick(struct listener *listener)
{
	const struct listener_options *options = &listener->options;
	int64_t now = now_us(listener);
	if (now < listener->tick_us)
		return;
	listener->tick_us = now + TICK_US;
	bool drains = atomic_load(&listener->draining), crowded = false;
	if (drains && listener->fd >= 0) {
		stop_accepting(listener);
		close(listener->fd);
		listener->fd = -1;
	}
	accept_again(listener);
	bool stops = drains && now >= atomic_load(&listener->read_by_us);
	if (options->ops->crowded)
		crowded = options->ops->crowded(options->user);
	size_t cut = 0;
	for (struct client *client = listener->clients; client; client = client->next) {
		if (client->suspended || client->cut)
			continue;
		/* While others find no room, one may not hold it for as long as it could otherwise. */
		bool crowds = crowded && client->until_us && atomic_load(&client->holds) &&
		              now - client->since_us > CROWD_US;
		if (!crowds && !is_late(client, now, stops))
			continue;
		cut += crowds;
		client->cut = true;
		queue_client(client);
	}
	if (cut)
		options->ops->cut_off(options->user, cut);
}

/* ---- The thread ----------------------------------------------------------------------------- */

static void note_event(struct listener *listener, const struct epoll_event *event)
{
	if (!event->data.ptr) {
		uint64_t count;
		(void)!read(listener->wake_fd, &count, sizeof count);
		atomic_store(&listener->awake, false); /* before the list is looked at */
	} else if (event->data.ptr == listener) {
		accept_some(listener);
	} else {
		struct client *client = event->data.ptr;
		bool broken = event->events & (EPOLLERR | EPOLLHUP);
		/* TLS may have to write to read on, and the other way round. */
		bool both = broken || client->tls;
		client->hung |= (event->events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0;
		client->readable |= both || (event->events & (EPOLLIN | EPOLLRDHUP));
		client->writable |= both || (event->events & EPOLLOUT);
		queue_client(client);
	}
}

static void *live(void *user)
{
	struct listener *listener = user;
	struct epoll_event events[EVENTS_MAX];
	while (!atomic_load(&listener->closing)) {
		int count = epoll_wait(listener->epoll, events, EVENTS_MAX,
		                       listener->queue ? 0 : TICK_US / 1000);
		for (int i = 0; i < count; i++)
			note_event(listener, &events[i]);
		queue_resumed(listener);
		tick(listener);
		take_turns(listener);
	}
	return NULL;
}

/* ---- Opening and closing -------------------------------------------------------------------- */

static enum ibid_code listen_at(struct listener *listener, struct ibid_err *err)
{
	const struct sockaddr *address = listener->options.address;
	int one = 1;
	socklen_t size = address->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6)
	                                                : sizeof(struct sockaddr_in);
	listener->fd = socket(address->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (listener->fd < 0 ||
	    setsockopt(listener->fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one) ||
	    bind(listener->fd, address, size) || listen(listener->fd, ADDRESS_BACKLOG))
		return err_set(err, IBID_UNAVAILABLE, "%s", strerror(errno));
	return IBID_OK;
}

enum ibid_code listener_open(const struct listener_options *options, struct listener **ret,
                             struct ibid_err *err)
{
	struct listener *listener = calloc(1, sizeof *listener);
	if (!listener)
		return err_set(err, IBID_NOMEM, "out of memory");
	listener->options = *options;
	listener->queue_end = &listener->queue;
	listener->fd = -1;
	listener->epoll = epoll_create1(EPOLL_CLOEXEC);
	listener->wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	enum ibid_code code = IBID_OK;
	if (listener->epoll < 0 || listener->wake_fd < 0)
		code = err_set(err, IBID_UNAVAILABLE, "%s", strerror(errno));
	if (!code && options->certificate)
		code = tls_server_new(options->certificate, options->key, &listener->tls, err);
	if (!code)
		code = listen_at(listener, err);
	if (!code) {
		watch(listener, EPOLL_CTL_ADD, listener->wake_fd, EPOLLIN, NULL);
		accept_again(listener);
	}
	if (code)
		listener_close(listener);
	else
		*ret = listener;
	return code;
}

enum ibid_code listener_start(struct listener *listener, struct ibid_err *err)
{
	listener->has_thread = !pthread_create(&listener->thread, NULL, live, listener);
	return listener->has_thread ? IBID_OK
	                            : err_set(err, IBID_UNAVAILABLE, "no thread can be started");
}

uint16_t listener_port(const struct listener *listener)
{
	struct sockaddr_storage address = {0};
	socklen_t size = sizeof address;
	if (getsockname(listener->fd, (struct sockaddr *)&address, &size))
		return 0;
	return ntohs(address.ss_family == AF_INET6 ? ((struct sockaddr_in6 *)&address)->sin6_port
	                                           : ((struct sockaddr_in *)&address)->sin_port);
}

void listener_drain(struct listener *listener, int64_t read_by_us)
{
	shutdown(listener->fd, SHUT_RDWR); /* from now on nobody connects; the thread closes it */
	atomic_store(&listener->read_by_us, read_by_us);
	atomic_store(&listener->draining, true);
	listener_wake(listener);
}

void listener_close(struct listener *listener)
{
	if (!listener)
		return;
	atomic_store(&listener->closing, true);
	if (listener->has_thread) {
		listener_wake(listener);
		pthread_join(listener->thread, NULL);
	}
	if (listener->fd >= 0)
		close(listener->fd);
	listener->fd = -1;
	while (listener->clients) {
		listener->clients->queued = false;
		end_client(listener->clients);
	}
	if (listener->epoll >= 0)
		close(listener->epoll);
	if (listener->wake_fd >= 0)
		close(listener->wake_fd);
	tls_server_free(listener->tls);
	free(listener);
}

/* ---- What a client is asked ----------------------------------------------------------------- */

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
