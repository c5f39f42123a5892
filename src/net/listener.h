/* SPDX-License-Identifier: Apache-2.0 */
/* listener.h -- the sockets of an HTTP/1.1 server: one thread reads requests and writes answers.
 *
 * The thread waits for sockets only. A callback answers its request, or suspends the client;
 * another thread resumes the client later. While a client is suspended the listener does not read,
 * write or close its connection. */
#ifndef NET_LISTENER_H
#define NET_LISTENER_H

#include "base/env.h"
#include "base/err.h"
#include "net/head.h"

#include <sys/socket.h>
#include <sys/types.h>

struct listener;
struct client;

/* The listener's thread calls these. `request` is the pointer that `begin` returned. */
struct listener_ops {
	/* A head was parsed or refused: see client_head. NULL (out of memory) closes the connection. */
	void *(*begin)(void *user, struct client *client);
	/* Before the body is read: answer; or suspend, to be called again; or return to read the body.
	 * A head that was refused must be answered. */
	void (*enter)(void *request);
	/* A piece of the body; returns the bytes consumed: all, or fewer after suspending the client.
	 */
	size_t (*body)(void *request, const char *bytes, size_t size);
	/* The framing of the body is malformed, as `why` says: answer. */
	void (*broken)(void *request, const char *why);
	/* The request is complete: answer; or suspend, to be called again. */
	void (*run)(void *request);
	/* The request has ended; `sent`: its whole answer was written. The answer's memory may be
	 * freed. */
	void (*end)(void *request, bool sent);
	/* One connection more (1) or less (-1). May be NULL. */
	void (*count)(void *user, int change);
	/* Is memory short, so that slow clients that hold memory should be cut off? Called ten times a
	 * second. May be NULL. */
	bool (*crowded)(void *user);
	/* So many clients were cut off because of that. */
	void (*cut_off)(void *user, size_t clients);
};

struct listener_options {
	struct env *env;
	const struct sockaddr *address;
	const char *certificate, *key; /* PEM; NULL: without TLS */
	size_t clients_max;
	size_t head_bytes;  /* limit for the request line and the header fields */
	int64_t request_us; /* time limit for sending a request, and for reading its answer */
	int64_t idle_us;    /* time limit between two requests */
	const struct listener_ops *ops;
	void *user;
};

/* Bind and listen; listener_start begins to serve. IBID_INVALID: certificate or key.
 * IBID_UNAVAILABLE: the address. */
IBID_CHECK enum ibid_code listener_open(const struct listener_options *options,
                                        struct listener **ret, struct ibid_err *err);
IBID_CHECK enum ibid_code listener_start(struct listener *listener, struct ibid_err *err);
uint16_t listener_port(const struct listener *listener);

/* Accept no more connections, and close those whose requests are incomplete at `read_by_us` (steady
 * clock). Callable from any thread. */
void listener_drain(struct listener *listener, int64_t read_by_us);

/* Close all connections; no client may be suspended. Takes NULL. */
void listener_close(struct listener *listener);

/* ---- A client ------------------------------------------------------------------------------- */

const struct head *client_head(const struct client *client);
const struct sockaddr *client_address(const struct client *client);

/* Call in a callback. */
void client_suspend(struct client *client);

/* Callable from any thread, once for each client_suspend. */
void client_resume(struct client *client);

/* The same without waking the listener's thread: call listener_wake afterwards, once for many. */
void client_resume_soon(struct client *client);
void listener_wake(struct listener *listener);

/* The client holds memory that other clients may need. Callable from any thread. */
void client_holds(struct client *client, bool holds);

/* Replace request_us for this request. While the listener drains, it waits for the body of such a
 * request. */
void client_allow(struct client *client, int64_t us);

/* Answer in a callback: a status, headers, and then either a body, which must stay valid until
 * `end`, or pieces. Headers with an invalid name or value are dropped. The listener adds Date,
 * Connection and the headers that frame the body; any Connection header of the caller closes the
 * connection. */
void client_answer(struct client *client, int status);
void client_header(struct client *client, const char *name, const char *value);
void client_send(struct client *client, const char *body, size_t size);

/* Write the next piece and return its size; 0 after suspending the client; or one of these: */
enum { PIECES_END = -1, PIECES_BROKEN = -2 };
typedef ssize_t client_pieces(void *user, char *to, size_t room);

/* `length`: of all pieces, -1 when unknown. No piece is requested for an answer without a body. */
void client_stream(struct client *client, int64_t length, client_pieces *pieces, void *user);

/* Close the connection without an answer. Call in a callback. */
void client_break_off(struct client *client);

#endif
