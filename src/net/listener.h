/* SPDX-License-Identifier: Apache-2.0 */
/* listener.h -- an HTTP/1.1 server's sockets: requests come in, answers go out, one thread for all.
 *
 * The thread never waits for anything but sockets. Whoever answers a request says so in one of its
 * callbacks, or suspends the client there and resumes it from any thread when there is more to do.
 * A client that is suspended is neither read nor written nor ended. */
#ifndef NET_LISTENER_H
#define NET_LISTENER_H

#include "base/env.h"
#include "base/err.h"
#include "net/head.h"

#include <sys/socket.h>
#include <sys/types.h>

struct listener;
struct client;

/* All are called by the listener's thread. `request` is what `begin` gave. */
struct listener_ops {
	/* The head of a request is there, or what is wrong with it: client_head. NULL without memory:
	 * the connection ends. */
	void *(*begin)(void *user, struct client *client);
	/* Nothing was taken of the body: answer, suspend (it is called again), or have the body come. */
	void (*enter)(void *request);
	/* A piece of the body; how much was taken. Less than all only of a client that it suspends. */
	size_t (*body)(void *request, const char *bytes, size_t size);
	/* The framing of the body is wrong, as `why` says: answer. */
	void (*broken)(void *request, const char *why);
	/* The request is whole: answer or suspend (it is called again). */
	void (*run)(void *request);
	/* The request is over; `sent`: its answer has left. What the answer was made of may go. */
	void (*end)(void *request, bool sent);
	/* A connection more, or one less. May be NULL. */
	void (*count)(void *user, int change);
	/* Are those to be ended that take long for the memory that they hold? Asked ten times a second.
	 * May be NULL. */
	bool (*crowded)(void *user);
	/* So many were. */
	void (*cut_off)(void *user, size_t clients);
};

struct listener_options {
	struct env *env;
	const struct sockaddr *address;
	const char *certificate, *key; /* PEM; NULL: without TLS */
	size_t clients_max;
	size_t head_bytes;  /* of a request's line and fields */
	int64_t request_us; /* for sending a request, and for taking its answer */
	int64_t idle_us;    /* between one and the next */
	const struct listener_ops *ops;
	void *user;
};

/* Clients can connect, and are served from listener_start on. IBID_INVALID: certificate or key.
 * IBID_UNAVAILABLE: the address. */
IBID_CHECK enum ibid_code listener_open(const struct listener_options *options,
                                        struct listener **ret, struct ibid_err *err);
IBID_CHECK enum ibid_code listener_start(struct listener *listener, struct ibid_err *err);
uint16_t listener_port(const struct listener *listener);

/* Take no more connections; end those whose requests are not whole by `read_by_us`, of the steady
 * clock. From any thread. */
void listener_drain(struct listener *listener, int64_t read_by_us);

/* Ends all connections; none may be suspended. Takes NULL. */
void listener_close(struct listener *listener);

/* ---- A client ------------------------------------------------------------------------------- */

const struct head *client_head(const struct client *client);
const struct sockaddr *client_address(const struct client *client);

/* In a callback. */
void client_suspend(struct client *client);

/* From any thread, once for each time that it was suspended. */
void client_resume(struct client *client);

/* The same, but the listener's thread may hear of it as late as listener_wake: once for many. */
void client_resume_soon(struct client *client);
void listener_wake(struct listener *listener);

/* It holds memory that others may need. From any thread. */
void client_holds(struct client *client, bool holds);

/* This request may take as long as that to be sent and to be answered; and its body is on its way
 * to somebody else, so that draining waits for it. */
void client_allow(struct client *client, int64_t us);

/* The answer: a status, headers (those that could be read as more than one line are left out), and
 * either a body, which must stay until `end`, or pieces. In a callback. The headers that frame the
 * body, Connection and Date are added here; a Connection that is given ends it. */
void client_answer(struct client *client, int status);
void client_header(struct client *client, const char *name, const char *value);
void client_send(struct client *client, const char *body, size_t size);

/* The next piece: its size; 0: there is none yet, and the client was suspended; or one of: */
enum { PIECES_END = -1, PIECES_BROKEN = -2 };
typedef ssize_t client_pieces(void *user, char *to, size_t room);

/* `length`: of all pieces, -1: not known. Of an answer that has no body nothing is asked for. */
void client_stream(struct client *client, int64_t length, client_pieces *pieces, void *user);

/* There is no answer: end the connection. In a callback. */
void client_break_off(struct client *client);

#endif
