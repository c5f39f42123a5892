/* SPDX-License-Identifier: Apache-2.0 */
/* calls.h -- HTTP calls to other services: one thread carries many at once.
 *
 * A call is made once, on a connection of its own. When a reused connection turns out to be closed,
 * libcurl sends the request again, even if the server may have executed it (I4): so only calls that
 * may be made twice reuse connections. Redirects are not followed: they are answers. */
#ifndef NET_CALLS_H
#define NET_CALLS_H

#include "base/env.h"
#include "base/err.h"
#include "base/str.h"

#include <curl/curl.h>
#include <stdatomic.h>

enum { CALL_WHY_SIZE = 512, CALL_HEAD_BYTES_MAX = 16 << 10, CALL_PAUSE = CURL_READFUNC_PAUSE };

/* The result of a call. */
enum call_end {
	CALL_ANSWERED, /* there is a whole answer */
	CALL_NOT_SENT, /* no byte was sent: it may be made again */
	CALL_SILENT,   /* it was sent, at least in part, without a whole answer: unknown */
};

struct call {
	/* The request. It must live until `done`. */
	const char *method, *url;
	struct curl_slist *headers; /* made only by call_add_header and call_leave_out */
	const char *body;           /* NULL: none, or what `more` gives */
	size_t body_size;
	int64_t deadline_us;     /* for all of it */
	int64_t send_by_us;      /* on the steady clock: nothing is sent later than this; 0: no limit */
	int64_t send_by_wall_us; /* likewise on the wall clock, which goes on while a machine sleeps */
	bool repeatable;         /* it may be made twice: a connection may be used again */
	const atomic_bool *stop; /* becomes true when the call is cancelled; may be NULL */
	size_t answer_max;       /* bytes of the answer's body that are kept; more: `too_large` */

	/* On the calls' thread: may `answer` grow to so many bytes? While it returns false, the answer
	 * is not read, and the function is called again soon. NULL: always. */
	bool (*room)(struct call *call, size_t bytes);

	/* On the calls' thread: they must not block. `late`, unless NULL, is called when the call has
	 * not ended `late_us` after its start. */
	void (*done)(struct call *call);
	void (*late)(struct call *call);
	int64_t late_us;

	/* For calls whose bodies are streamed; else NULL. On the calls' thread. Each may return
	 * CALL_PAUSE; calls_go_on ends the pause. `more` returns 0 at the end and CURL_READFUNC_ABORT
	 * to abort; `head` is called when the answer's headers are complete. */
	size_t (*more)(struct call *call, char *to, size_t room);
	void (*head)(struct call *call);
	size_t (*take)(struct call *call, const char *bytes, size_t size);
	int64_t length; /* of what `more` gives; -1: not known */

	/* Its end. */
	enum call_end end;
	char why[CALL_WHY_SIZE];      /* one clause for people, where there is no answer */
	char detail[CURL_ERROR_SIZE]; /* more of that; it may name addresses */
	bool distrusted;              /* it was not sent: TLS with the server failed */
	bool off_limits;              /* it was not sent: no public address, see public_only */
	bool timed_out;               /* there was no whole answer by its deadline */
	int status;
	struct str answer_head; /* the lines of its headers */
	struct str answer;
	bool too_large;
	int64_t took_us; /* from its start to its end */

	/* calls.c's own. */
	CURL *easy;
	struct env *env;
	bool in_head;   /* a status line came, and the empty line did not */
	bool headed;    /* what follows are trailers */
	bool ambiguous; /* its head is refused */
	bool old;       /* it is HTTP/1.0 */
	bool reachable; /* there was an address that may be called */
	int64_t began_us, late_at_us;
	bool adding, going_on, breaking_off;
	bool waits; /* for room */
	struct call *next;
};

struct calls_options {
	const char *authorities; /* PEM file of trusted authorities; NULL: the system's */
	int64_t connect_us;      /* for making a connection */
	/* Only public addresses are called. The address of the connection is checked, not that of an
	 * earlier look-up of the name. */
	bool public_only;
};

/* Add a header to the request. This is the only place where foreign text becomes a line for
 * libcurl, which has a notation of its own (`Name;` is an empty header, `Name:` none at all): so
 * the name must be a token of RFC 9110, and the value one line. IBID_INVALID: it is not, and
 * nothing was added. IBID_NOMEM. */
IBID_CHECK enum ibid_code call_add_header(struct call *call, const char *name, const char *value,
                                          struct ibid_err *err);

/* Suppress a header that libcurl would add by itself. IBID_NOMEM. */
IBID_CHECK enum ibid_code call_leave_out(struct call *call, const char *name, struct ibid_err *err);

struct calls;

IBID_CHECK enum ibid_code calls_new(struct env *env, const struct calls_options *options,
                                    struct calls **ret, struct ibid_err *err);

/* Aborts the calls that have not ended. Takes NULL. */
void calls_free(struct calls *calls);

/* Start the call. IBID_NOMEM: it was not started; otherwise `done` is called once, perhaps before
 * this returns. */
IBID_CHECK enum ibid_code calls_make(struct calls *calls, struct call *call, struct ibid_err *err);

/* Call from any thread, also after the end: a paused call can continue, or it was cancelled. */
void calls_go_on(struct calls *calls, struct call *call);
void calls_break_off(struct calls *calls, struct call *call);

/* Make the call synchronously on the calling thread: `done` is not called. */
IBID_CHECK enum ibid_code calls_wait(struct calls *calls, struct call *call, struct ibid_err *err);

/* The memory of its end. */
void call_release(struct call *call);

/* The value of a header of the answer; of several, the last. False: there is none. */
bool call_header(const struct call *call, const char *name, const char **ret, size_t *ret_size);

#endif
