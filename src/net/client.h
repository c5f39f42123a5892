/* SPDX-License-Identifier: Apache-2.0 */
/* client.h -- what listener.c and client.c share: the state of a connection and of its listener.
 *
 * (N1) Only the listener's thread uses a client, except for `holds` and the list of resumed
 * clients. (N2) A client is freed only in its own turn, and never while it is suspended: other
 * threads own its request then. (N3) Unread bytes of a body are never parsed as a request: the
 * connection is closed after the answer. */
#ifndef NET_CLIENT_H
#define NET_CLIENT_H

#include "base/str.h"
#include "net/chunks.h"
#include "net/listener.h"
#include "net/tls.h"

#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

enum client_state {
	CLIENT_HEAD,   /* waits for a request, or reads its head */
	CLIENT_ENTER,  /* the head was parsed */
	CLIENT_BODY,   /* reads the body */
	CLIENT_RUN,    /* the request is complete */
	CLIENT_ANSWER, /* writes the answer */
	CLIENT_LINGER, /* the answer was sent; input is discarded until the client closes */
};

/* The result of one step of a client: go on, wait for the socket, close the connection. */
enum step { STEP_ON, STEP_WAIT, STEP_GONE };

struct client {
	struct listener *listener;
	int fd;
	struct tls *tls; /* NULL: plain text */
	struct sockaddr_storage address;
	enum client_state state;
	bool readable, writable; /* no EAGAIN since the last event */
	bool hung;               /* the client has closed its side */
	bool suspended, queued;
	bool cut; /* its deadline has passed */

	char *in; /* input; the unused part starts at in_start */
	size_t in_start, in_size, in_room;
	size_t scanned, empty_lines; /* of an incomplete head */
	struct arena arena;          /* holds the head until the request ends */
	struct head head;
	void *request;
	struct chunks chunks;
	int64_t left; /* bytes left of a body, or of an answer, of known length */

	int64_t until_us;   /* deadline; 0: nothing is expected from the client */
	int64_t since_us;   /* start of the request or of the answer */
	int64_t allowed_us; /* time limit for the request and for the answer */
	bool allowed;       /* client_allow was called for this request */
	atomic_bool holds;

	struct str out; /* the head of the answer, then its pieces */
	size_t out_sent;
	const char *body;
	size_t body_size, body_sent;
	client_pieces *pieces;
	void *pieces_user;
	int status;
	bool dated, chunks_out;
	bool ends;     /* close the connection after the answer */
	bool unread;   /* part of the body was not read */
	bool delimits; /* only the end of the connection ends the answer */
	bool resets;   /* reset the connection: the answer is incomplete */

	struct client *next, **at; /* list of all clients */
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
	_Atomic(struct client *) resumed; /* the last one first */
	atomic_bool awake, draining, closing;
	_Atomic int64_t read_by_us;
	int64_t tick_us;
	time_t dated; /* the second of `date` */
	char date[96];
};

/* Do one step of the client's state machine. */
enum step client_advance(struct client *client);

/* End the request, if there is one: see listener_ops.end. */
void client_end_request(struct client *client, bool sent);

/* Closing the connection resets it, even when the process dies. */
void client_reset_on_close(struct client *client, bool resets);

/* The client is cut off unless it makes progress within this time. */
void client_set_deadline(struct client *client, int64_t us);

#endif
