/* SPDX-License-Identifier: Apache-2.0 */
/* hash.h -- SHA-256. */
#ifndef BASE_HASH_H
#define BASE_HASH_H

#include <stdbool.h>
#include <stddef.h>

struct sha256 {
	unsigned char bytes[32];
};

enum { SHA256_TEXT_SIZE = 65 };

struct sha256 sha256(const void *bytes, size_t size);
void sha256_write(const struct sha256 *hash, char ret[SHA256_TEXT_SIZE]); /* lower-case hex */

/* Piece by piece. */
struct sha256_sum {
	void *context;
};
void sha256_init(struct sha256_sum *sum);
void sha256_add(struct sha256_sum *sum, const void *bytes, size_t size);
struct sha256 sha256_end(struct sha256_sum *sum); /* of what was added; releases it */
void sha256_release(struct sha256_sum *sum);      /* takes one that is zeroed or has ended */

bool sha256_read(const char *text, struct sha256 *ret); /* 64 hex digits, either case */

#endif
