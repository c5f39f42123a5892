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
bool sha256_read(const char *text, struct sha256 *ret); /* 64 hex digits, either case */

#endif
