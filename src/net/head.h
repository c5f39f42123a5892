/* SPDX-License-Identifier: Apache-2.0 */
/* head.h -- the request line and the header fields of an HTTP/1.x request, parsed strictly.
 *
 * If two programs parse one request differently, an attacker can make them see two requests. The
 * parser therefore refuses everything that RFC 9112 allows a recipient to repair: bare line feeds,
 * folded lines, blanks before a colon, control characters, a body length given in two ways. */
#ifndef NET_HEAD_H
#define NET_HEAD_H

#include "base/arena.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { HEAD_FIELDS_MAX = 128, HEAD_METHOD_MAX = 32 };

struct head_field {
	const char *name, *value;
};

struct head {
	const char *method, *target; /* NULL: the request line could not be parsed */
	int minor;                   /* of HTTP/1.minor */
	struct head_field fields[HEAD_FIELDS_MAX];
	size_t count;
	bool chunked;        /* the body is sent in chunks */
	bool keep_alive;     /* the client may send another request on the connection */
	bool wants_continue; /* the client waits for status 100 before it sends the body */
	int64_t length;      /* of a body that is not chunked; INT64_MAX: that or more */
	const char *wrong;   /* why the request is refused; NULL: the head is good */
};

/* The number of bytes up to and including the empty line that ends a head; 0: the head is not
 * complete. Lines that end with a bare line feed count as lines here: head_read refuses them, and
 * the server does not wait for more. The search starts at `*scanned` and advances it. */
size_t head_size(const char *text, size_t size, size_t *scanned);

/* Can this incomplete head still become a valid one? Checks the request line only. */
bool head_may_begin(const char *text, size_t size);

/* Parse a complete head. The fields of `ret` point into `text`, which is modified. */
void head_read(struct head *ret, struct arena *arena, char *text, size_t size);

/* The value of a field; NULL when the field is missing or occurs several times (`*ret_many`). */
const char *head_find(const struct head *head, const char *name, bool *ret_many);

#endif
