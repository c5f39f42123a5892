/* SPDX-License-Identifier: Apache-2.0 */
/* memory_limit.h -- how much memory all requests may hold together: bodies that are read, answers
 * that clients have not taken, and what the service behind the server says. */
#ifndef HTTP_MEMORY_LIMIT_H
#define HTTP_MEMORY_LIMIT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A holder with less is not counted: small requests have room whatever the others hold. There are
 * as many of them as connections and calls. */
enum { MEMORY_SMALL_BYTES = 32 << 10 };

struct memory_limit {
	size_t bytes; /* that may be held; set before anybody asks */
	atomic_size_t held;
	atomic_bool reached; /* somebody found no room since memory_was_short was asked */
};

/* Bring what a holder has, `*held`, to `bytes`; 0 gives all of it back. False: there is no room,
 * and `*held` is as it was. A holder that is alone always has room, so that no request is too large
 * for ever. From any thread; a holder belongs to one at a time. */
bool memory_hold(struct memory_limit *limit, size_t *held, size_t bytes);

/* What a request without room is told. */
extern const char memory_short_text[];

/* Did somebody find no room since this was asked before? */
bool memory_was_short(struct memory_limit *limit);

#endif
