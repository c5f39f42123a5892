/* SPDX-License-Identifier: Apache-2.0 */
/* id.h -- UUIDs: random (v4), from a name (v5), ordered by time (v7). RFC 9562. */
#ifndef BASE_ID_H
#define BASE_ID_H

#include "base/env.h"

#include <stdbool.h>

struct uuid {
	unsigned char bytes[16];
};

enum { UUID_TEXT_SIZE = 37 }; /* 36 characters and a NUL */

struct uuid uuid_v4(struct env *env);
struct uuid uuid_v5(struct uuid space, const char *name, size_t size); /* SHA-1 */
/* Milliseconds of env's wall clock, then 12 bits of sub-millisecond fraction, then random. */
struct uuid uuid_v7(struct env *env);

/* The n-th id that belongs to `base`: n (below 65536) in its last two bytes. Sorts beside it. */
struct uuid uuid_nth(struct uuid base, unsigned n);

/* The id before this one in their order. */
struct uuid uuid_before(struct uuid uuid);

void uuid_write(struct uuid uuid, char ret[UUID_TEXT_SIZE]); /* lower case */
bool uuid_read(const char *text, struct uuid *ret);          /* 8-4-4-4-12, either case */

#endif
