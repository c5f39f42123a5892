/* SPDX-License-Identifier: Apache-2.0 */
/* utf8.h -- one well-formed UTF-8 sequence at a time (RFC 3629). */
#ifndef BASE_UTF8_H
#define BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>

/* The length of the character at `bytes`: 1..4, or 0 if it is not well-formed (overlong, a
 * surrogate, above U+10FFFF, cut off by `size`). */
size_t utf8_size(const char *bytes, size_t size);

/* Is all of it well-formed? */
bool utf8_ok(const char *bytes, size_t size);

/* Replace each byte that is not part of a well-formed character with a question mark. */
void utf8_mend(char *text);

/* Columns of a terminal that the text takes: none for a combining mark, two for a wide character,
 * one for a byte that is not well-formed. */
size_t utf8_width(const char *bytes, size_t size);

/* The longest beginning of at most `most` bytes that does not cut a character. `bytes` is valid. */
size_t utf8_fit(const char *bytes, size_t size, size_t most);

#endif
