/* SPDX-License-Identifier: Apache-2.0 */
/* request.h -- one request from its first byte to its last, and what it is served by. */
#ifndef HTTP_REQUEST_H
#define HTTP_REQUEST_H

#include "api/api.h"
#include "base/log.h"
#include "base/str.h"
#include "command/worker_pool.h"
#include "http/answer.h"
#include "http/memory_limit.h"
#include "http/route.h"
#include "http/settings.h"
#include "net/listener.h"

#include <stdatomic.h>

/* The ledger and its contracts, as they are from one reload to the next. Requests keep the one that
 * they began with. */
struct generation {
	struct ibid *ibid;
	struct worker_pool *workers;
	struct routes routes;
	struct str openapi;                        /* the document of the routes */
	struct operation_meter **operation_meters; /* in the order of the contracts */
	struct route_meter **route_meters;         /* of the routes; then: no route; the service's */
	size_t requests; /* requests that use it; the server's lock guards it */
	struct generation *next;
};

struct server {
	const struct settings *settings;
	struct log log;
	struct env *env;
	struct metrics *metrics;
	struct outbox_metrics *outbox;
	struct listener *listener;
	bool on_loopback;
	struct access *access;     /* the tokens that were seen */
	struct upstream *upstream; /* the service behind it; NULL: none */
	struct asked *asked;       /* the inquiry thread's own */
	struct memory_limit memory;
	pthread_mutex_t lock;
	struct relays *relays;         /* of relays in this process; NULL: none */
	struct generation *generation; /* the present one */
	struct generation *retired;    /* those before it that still have requests */
	size_t active;                 /* requests */
	atomic_bool stopping, ended;
	_Atomic enum ibid_code store_code; /* what the last look at the store came to */
	struct ibid_err gone;              /* where that is IBID_GONE */
};

/* Whoever works for a client holds the generation, and the server does not end before (server.c).
 */
void server_hold(struct server *server, struct generation *generation);
void server_let_go(struct server *server, struct generation *generation);

/* What a look at the store, or a request that needed it, found: readiness says so from now on, and
 * the server stops when the file is gone. Callable from any thread. */
void server_note_store(struct server *server, enum ibid_code code, const struct ibid_err *err);

/* Who asks, as the server knows it. */
struct principal {
	const char *tenant, *client, *actor;
	unsigned roles; /* enum token_role */
};

/* What is done next with a request. The body is read between STEP_ADMITTED and STEP_WHOLE. */
enum step { STEP_HEAD, STEP_ADMITTED, STEP_WHOLE, STEP_RUN, STEP_OVER };

struct request {
	struct server *server;
	struct generation *generation;
	struct client *client;
	struct arena arena;
	int64_t began_us;
	const char *uri; /* as it was sent */
	const char *method, *path, *query;
	const struct route *route;
	const char *params[ROUTE_PARAMS_MAX];
	struct token token; /* as it was sent; no id: none */
	struct principal principal;
	bool admitted; /* the principal is who it says, and may do this */
	struct str body;
	size_t held; /* of the server's memory, by the body and then by the answer */
	bool too_large, suspended;
	bool unread; /* there was no room for the body */
	bool unheld; /* there was none for the answer: the connection ends instead */
	enum step step;
	struct answer answer;
	bool passes;       /* it goes to the service without protection, as it comes in */
	struct pass *pass; /* it has begun to */

	/* What is looked for or sent, for whoever answers later. */
	const char *key, *payload;
	bool opaque_body;     /* it is no JSON object: the payload has its digest */
	const char *resource; /* of a command that is sent by its name; NULL: none */
	size_t payload_size;
	const struct contract *contract;
	int64_t submitted_us;

	/* For the log; may be NULL. */
	const char *decision, *command_id;

	/* What the headers say of where it comes from (trace.c); NULL: nothing. */
	const char *correlation_id, *causation_id;
	const struct request_trace *trace;
};

/* Room for the answer, as far as it is there, and for more bytes of it. It is held until the client
 * has taken it. False: there is none; the answer is dropped, and the connection ends instead. What
 * became of a command is in the store, for the next request with its key. */
bool request_hold_answer(struct request *request, size_t more);

/* The value of a header, NULL when it is not there or there several times: `*ret_many`. */
const char *request_header(const struct request *request, const char *name, bool *ret_many);

/* The decoded value of a query parameter; NULL: none. `*ret_bad`: it can't be decoded. */
const char *request_query(struct request *request, const char *name, bool *ret_bad);

/* Nobody reads or writes the connection until request_answered. Call before the work is handed on.
 */
void request_suspend(struct request *request);

/* request->answer is there: send it. From any thread, once, after request_suspend. */
void request_answered(struct request *request);

/* The same from a thread of the workers, which wakes the listener when it has told whatever else it
 * knows: once for many. */
void request_answered_together(struct request *request);

/* Work for the workers; answers when it can't take it. */
void request_hand_on(struct request *request, worker_fn *call);

#endif
