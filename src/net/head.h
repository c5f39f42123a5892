/* SPDX-License-Identifier: Apache-2.0 */
/* head.h -- the request line and the header fields of an HTTP/1.x request, read strictly.
 *
 * Two programs that read one request differently can be made to see two requests. So everything
 * that RFC 9112 lets a recipient repair is refused instead: bare line feeds, folded lines, blanks
 * before a colon, control characters, more than one way to tell the length of the body. */
#ifndef NET_HEAD_H
#define NET_HEAD_H

#include "base/arena.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { HEAD_FIELDS_MAX = 128 };

struct head_field {
	const char *name, *value;
};

struct head {
	const char *method, *target; /* NULL where the request line could not be read */
	int minor;                   /* of HTTP/1.minor */
	struct head_field fields[HEAD_FIELDS_MAX];
	size_t count;
	bool chunked;        /* the body comes in chunks */
	bool keep_alive;     /* the client wants to send another request on the connection */
	bool wants_continue; /* it waits for 100 before it sends the body */
	int64_t length;      /* of the body, where it is not chunked; INT64_MAX: that or more */
	const char *wrong;   /* why the request is refused; NULL: the head is good */
};

/* The bytes up to and with the empty line that ends a head; 0: it has not come whole. A line may
 * end with a line feed alone here, so that such a head is refused and not waited for. The search
 * goes on at `*scanned`, which is moved. */
size_t head_size(const char *text, size_t size, size_t *scanned);

/* Can this beginning of a head become a good one? Looks at the request line alone. */
bool head_may_begin(const char *text, size_t size);

/* Read a whole head. `text` is cut into pieces and must live as long as `ret`. */
void head_read(struct head *ret, struct arena *arena, char *text, size_t size);

/* The value of a field, NULL when it is not there or there several times: `*ret_many`. */
const char *head_find(const struct head *head, const char *name, bool *ret_many);

#endif
