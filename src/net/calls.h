/* SPDX-License-Identifier: Apache-2.0 */
/* calls.h -- HTTP calls to other services: one thread carries many at once.
 *
 * A call is made once, on a connection of its own. libcurl sends a request again by itself when a
 * connection that was used before turns out to be closed, also one that may have been carried out
 * (I4): so no connection is used twice, but by calls that may be made twice. Redirects are answers
 * like any other. */
#ifndef NET_CALLS_H
#define NET_CALLS_H

#include "base/env.h"
#include "base/err.h"
#include "base/str.h"

#include <curl/curl.h>
#include <stdatomic.h>

enum { CALL_WHY_SIZE = 512, CALL_HEAD_BYTES_MAX = 16 << 10, CALL_PAUSE = CURL_READFUNC_PAUSE };

/* What became of a call. */
enum call_end {
	CALL_ANSWERED, /* there is a whole answer */
	CALL_NOT_SENT, /* nobody has seen a byte of it: it may be made again */
	CALL_SILENT,   /* it was sent, at least in part, and there is no whole answer: who knows? */
};

struct call {
	/* What is asked. Lives until `done`. */
	const char *method, *url;
	struct curl_slist *headers; /* call_add_header and call_leave_out make them, nothing else */
	const char *body;           /* NULL: none, or what `more` gives */
	size_t body_size;
	int64_t deadline_us;     /* for all of it */
	int64_t send_by_us;      /* on the steady clock: later nothing is sent any more; 0: whenever */
	int64_t send_by_wall_us; /* likewise on the wall clock, which goes on while a machine sleeps */
	bool repeatable;         /* it may be made twice: a connection may be used again */
	const atomic_bool *stop; /* becomes true when it is not wanted any more; NULL: it is wanted */
	size_t answer_max;       /* bytes of the answer's body that are kept; more: `too_large` */

	/* On the calls' thread: may `answer` grow to so many bytes? While it may not, nothing of it is
	 * read; it is asked again soon. NULL: it may. */
	bool (*room)(struct call *call, size_t bytes);

	/* On the calls' thread; nobody may wait there. `late`, unless NULL, is called when there is no
	 * end `late_us` after the start. */
	void (*done)(struct call *call);
	void (*late)(struct call *call);
	int64_t late_us;

	/* Of a call whose bodies are handed on in pieces; NULL: it is not. On the calls' thread. Each
	 * may say CALL_PAUSE; calls_go_on ends the pause. `more` gives 0 at the end and
	 * CURL_READFUNC_ABORT to break off; `head` is called when the answer's head is there. */
	size_t (*more)(struct call *call, char *to, size_t room);
	void (*head)(struct call *call);
	size_t (*take)(struct call *call, const char *bytes, size_t size);
	int64_t length; /* of what `more` gives; -1: not known */

	/* Its end. */
	enum call_end end;
	char why[CALL_WHY_SIZE];      /* one clause for people, where there is no answer */
	char detail[CURL_ERROR_SIZE]; /* more of that; it may name addresses */
	bool distrusted;              /* it was not sent: there is no TLS with who answers there */
	bool off_limits;              /* it was not sent: not one public address, see public_only */
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
	const char *authorities; /* PEM file of who may vouch for a service; NULL: the system's */
	int64_t connect_us;      /* for making a connection */
	/* Only addresses of the public Internet are called. It is the address of a connection that
	 * counts, not what a name stood for when somebody looked. */
	bool public_only;
};

/* One header of the request. This is the only place where text from outside becomes a line for
 * libcurl, which has a notation of its own (`Name;` is an empty header, `Name:` none at all): so
 * the name must be a token of RFC 9110, and the value one line. IBID_INVALID: it is not, and
 * nothing was added. IBID_NOMEM. */
IBID_CHECK enum ibid_code call_add_header(struct call *call, const char *name, const char *value,
                                          struct ibid_err *err);

/* A header that libcurl would add by itself is not sent. IBID_NOMEM. */
IBID_CHECK enum ibid_code call_leave_out(struct call *call, const char *name, struct ibid_err *err);

struct calls;

IBID_CHECK enum ibid_code calls_new(struct env *env, const struct calls_options *options,
                                    struct calls **ret, struct ibid_err *err);

/* Calls that have no end yet are broken off. Takes NULL. */
void calls_free(struct calls *calls);

/* Make it. IBID_NOMEM: it was not made; otherwise `done` is called once, and may be before this
 * returns. */
IBID_CHECK enum ibid_code calls_make(struct calls *calls, struct call *call, struct ibid_err *err);

/* From any thread, also after the end: who paused may have more, or room; nobody wants it any more.
 */
void calls_go_on(struct calls *calls, struct call *call);
void calls_break_off(struct calls *calls, struct call *call);

/* Make it here and now, with a thread that waits: `done` is not called. */
IBID_CHECK enum ibid_code calls_wait(struct calls *calls, struct call *call, struct ibid_err *err);

/* The memory of its end. */
void call_release(struct call *call);

/* The value of a header of the answer; its last one, where there are several. False: there is none.
 */
bool call_header(const struct call *call, const char *name, const char **ret, size_t *ret_size);

#endif
