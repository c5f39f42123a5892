/* SPDX-License-Identifier: Apache-2.0 */
/* decimal.h -- exact decimals: up to 38 significant digits, up to 18 after the point.
 *
 * value = units / 10^scale. Nothing is ever rounded: what does not fit is an error. */
#ifndef BASE_DECIMAL_H
#define BASE_DECIMAL_H

#include "base/err.h"

#include <stddef.h>

enum { DECIMAL_DIGITS_MAX = 38, DECIMAL_SCALE_MAX = 18, DECIMAL_TEXT_MAX = 48 };

struct decimal {
	__int128 units; /* |units| < 10^38 */
	int scale;      /* 0 .. DECIMAL_SCALE_MAX; kept minimal (no trailing zeros after the point) */
};

/* Read a decimal or JSON number text: "12.50", "-0", "11e-1", "1E+3". IBID_INVALID when it is not a
 * number, IBID_LIMIT when it has too many digits. A leading '+' or surrounding blanks are refused.
 */
IBID_CHECK enum ibid_code decimal_read(const char *text, size_t size, struct decimal *ret,
                                       struct ibid_err *err);

/* Plain notation, no exponent, minimal scale: "12.5", "0", "-3". Returns the length. */
size_t decimal_write(struct decimal value, char ret[DECIMAL_TEXT_MAX]);

int decimal_cmp(struct decimal a, struct decimal b); /* exact, never overflows */
IBID_CHECK enum ibid_code decimal_add(struct decimal a, struct decimal b, struct decimal *ret,
                                      struct ibid_err *err);
IBID_CHECK enum ibid_code decimal_sub(struct decimal a, struct decimal b, struct decimal *ret,
                                      struct ibid_err *err);
IBID_CHECK enum ibid_code decimal_mul(struct decimal a, struct decimal b, struct decimal *ret,
                                      struct ibid_err *err);

#endif
