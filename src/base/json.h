/* SPDX-License-Identifier: Apache-2.0 */
/* json.h -- a strict JSON reader that keeps what it read.
 *
 * RFC 8259 without leniency: no BOM, no comments, no trailing commas, no control characters in
 * strings, valid UTF-8 only, no lone surrogates, no duplicate member names. A number keeps its
 * text; nothing is rounded. The limits of numbers (below) also hold for the canonical form: a text
 * that json_read accepts is accepted again after canon_write. */
#ifndef BASE_JSON_H
#define BASE_JSON_H

#include "base/arena.h"
#include "base/err.h"

enum json_type {
	JSON_NULL,
	JSON_FALSE,
	JSON_TRUE,
	JSON_NUMBER,
	JSON_STRING,
	JSON_ARRAY,
	JSON_OBJECT
};

/* One value. Members of objects and items of arrays are linked through `next`, in the order of the
 * text. Strings are unescaped UTF-8 (they may hold NUL bytes: use `size`). Strings, numbers and
 * names are terminated. */
struct json {
	enum json_type type;
	const char *text; /* string: content; number: its text; others NULL */
	size_t size;      /* bytes of text; for arrays and objects the number of children */
	const char *name; /* member name when the parent is an object, else NULL */
	size_t name_size;
	struct json *child; /* first item or member */
	struct json *next;
};

enum {
	JSON_DEPTH_MAX = 64,
	JSON_BYTES_MAX = 16 << 20,     /* default cap of one text */
	JSON_NUMBER_BYTES_MAX = 4096,  /* longer number texts are refused */
	JSON_NUMBER_DIGITS_MAX = 4080, /* significant digits, zeros at either end not counted */
	JSON_EXPONENT_MAX = 999999999, /* of d.ddd * 10^exponent, and nine digits as it is written */
};

/* Read one text. Everything lives in `arena`. `bytes_max` 0 means JSON_BYTES_MAX. Errors are
 * IBID_INVALID (IBID_LIMIT for caps) and end in " at line L, column C" (column in bytes, from 1).
 */
IBID_CHECK enum ibid_code json_read(struct arena *arena, const char *bytes, size_t size,
                                    size_t bytes_max, struct json **ret, struct ibid_err *err);

/* NULL when `object` is not an object or has no such member. */
struct json *json_member(const struct json *object, const char *name);

/* Follow a JSON Pointer (RFC 6901; "" is the root). NULL when it leads nowhere. Array indexes are
 * supported; "-" never matches. */
struct json *json_at(struct json *root, const char *pointer);

/* Is `pointer` well-formed: empty, or starts with '/', with only ~0 and ~1 as escapes? */
bool json_pointer_ok(const char *pointer);

#endif
