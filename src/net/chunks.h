/* SPDX-License-Identifier: Apache-2.0 */
/* chunks.h -- a chunked body (RFC 9112, 7.1), parsed strictly and incrementally. */
#ifndef NET_CHUNKS_H
#define NET_CHUNKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { CHUNKS_EXTRA_MAX = 16 << 10 }; /* bytes of extensions and trailers in one body */

enum chunks_found {
	CHUNKS_MORE,  /* the parser needs more bytes */
	CHUNKS_DATA,  /* the next `left` bytes are data; the caller subtracts what it consumes */
	CHUNKS_END,   /* the body and its trailers are complete */
	CHUNKS_WRONG, /* `wrong` says why */
};

struct chunks {
	int state; /* chunks.c; zeroed is the beginning */
	uint64_t left;
	size_t digits, extra;
	const char *wrong;
};

/* Parse the framing up to the next data; `*ret_used` bytes of the input were consumed. */
enum chunks_found chunks_read(struct chunks *chunks, const char *bytes, size_t size,
                              size_t *ret_used);

#endif
