/* SPDX-License-Identifier: Apache-2.0 */
/* chunks.h -- the body of a request in chunks (RFC 9112, 7.1), read strictly, piece by piece. */
#ifndef NET_CHUNKS_H
#define NET_CHUNKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { CHUNKS_EXTRA_MAX = 16 << 10 }; /* bytes of extensions and trailers in one body */

enum chunks_found {
	CHUNKS_MORE,  /* needed */
	CHUNKS_DATA,  /* what follows is data: `left` bytes of it; whoever takes some counts them off */
	CHUNKS_END,   /* of the body, with its trailers */
	CHUNKS_WRONG, /* `wrong` says why */
};

struct chunks {
	int state; /* chunks.c; zeroed is the beginning */
	uint64_t left;
	size_t digits, extra;
	const char *wrong;
};

/* Read what is not data: `*ret_used` of the bytes. */
enum chunks_found chunks_read(struct chunks *chunks, const char *bytes, size_t size,
                              size_t *ret_used);

#endif
