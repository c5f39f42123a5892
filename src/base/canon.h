/* SPDX-License-Identifier: Apache-2.0 */
/* canon.h -- one text for one meaning.
 *
 * Output is RFC 8785's (members sorted by UTF-16 code units, minimal escapes, ECMAScript numbers)
 * except for numbers that a double would change: if the shortest decimal that reads back as the
 * same double differs in value from the text, all digits are kept, in ECMAScript's layout (same
 * thresholds for the exponent, no overflow). So different values never collide.
 *
 * Number texts given here must be in JSON's grammar with at most nine digits in the exponent, as
 * json_read leaves them; anything else is a programming error. */
#ifndef BASE_CANON_H
#define BASE_CANON_H

#include "base/json.h"
#include "base/str.h"

/* Append the canonical form of `value`. Fails only through `out->failed`. */
void canon_write(struct str *out, const struct json *value);

/* Append the canonical form of one JSON number text ("1.10" gives 1.1, "-0" gives 0). */
void canon_number(struct str *out, const char *text, size_t size);

/* The order of two member names in RFC 8785: by UTF-16 code units. */
int canon_name_cmp(const char *a, size_t a_size, const char *b, size_t b_size);

/* Exact comparison of the values of any two JSON number texts: <0, 0, >0. No rounding, whatever the
 * exponents (1e400 and 1e401 differ). */
int canon_number_cmp(const char *a, size_t a_size, const char *b, size_t b_size);

#endif
