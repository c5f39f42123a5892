/* SPDX-License-Identifier: Apache-2.0 */
/* number.h -- JSON number texts, taken apart without rounding. */
#ifndef BASE_NUMBER_H
#define BASE_NUMBER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The exponent may have this many significant digits; then positions are exact in an int64_t. */
enum { NUMBER_EXPONENT_DIGITS_MAX = 9 };

enum number_fault {
	NUMBER_OK,
	NUMBER_NO_DIGIT,     /* a digit must follow here */
	NUMBER_LEADING_ZERO, /* a digit after a leading 0 */
	NUMBER_EXPONENT,     /* more than NUMBER_EXPONENT_DIGITS_MAX digits in the exponent */
};

/* Move `*at` behind the longest number (RFC 8259 grammar) that starts there, or to the fault. */
enum number_fault number_end(const char **at, const char *end);

/* value = 0.DIGITS * 10^point, DIGITS being `whole` followed by `rest` (which point into the text)
 * without zeros at either end; so equal values have equal digits and points. Zero has no digits,
 * point 0, and is not negative. */
struct number {
	const char *whole, *rest;
	size_t whole_size, rest_size;
	int64_t point;
	bool negative;
};

/* Take apart a text that number_end accepted whole. */
struct number number_split(const char *text, size_t size);

#endif
