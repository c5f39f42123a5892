/* SPDX-License-Identifier: Apache-2.0 */
/* number.c -- the grammar of numbers, and their digits.
 *
 * Invariant: the digits of a `struct number` neither begin nor end with 0. A nonzero value has
 * exactly one such form, so comparing forms compares values. */
#include "base/number.h"

#include <assert.h>

static bool is_digit(char byte)
{
	return byte >= '0' && byte <= '9';
}

static enum number_fault skip_digits(const char **at, const char *end)
{
	const char *from = *at;
	while (*at < end && is_digit(**at))
		++*at;
	return *at > from ? NUMBER_OK : NUMBER_NO_DIGIT;
}

static enum number_fault skip_exponent(const char **at, const char *end)
{
	if (*at < end && (**at == '+' || **at == '-'))
		++*at;
	const char *from = *at;
	if (skip_digits(at, end))
		return NUMBER_NO_DIGIT;
	while (from < *at && *from == '0')
		from++;
	if (*at - from <= NUMBER_EXPONENT_DIGITS_MAX)
		return NUMBER_OK;
	*at = from;
	return NUMBER_EXPONENT;
}

enum number_fault number_end(const char **at, const char *end)
{
	if (*at < end && **at == '-')
		++*at;
	const char *first = *at;
	if (skip_digits(at, end))
		return NUMBER_NO_DIGIT;
	if (*first == '0' && *at - first > 1) {
		*at = first + 1;
		return NUMBER_LEADING_ZERO;
	}
	if (*at < end && **at == '.') {
		++*at;
		if (skip_digits(at, end))
			return NUMBER_NO_DIGIT;
	}
	if (*at < end && (**at == 'e' || **at == 'E')) {
		++*at;
		return skip_exponent(at, end);
	}
	return NUMBER_OK;
}

static int64_t read_exponent(const char *at, const char *end)
{
	bool negative = at < end && *at == '-';
	int64_t value = 0;
	if (at < end && !is_digit(*at))
		at++;
	for (; at < end; at++) {
		value = value * 10 + (*at - '0');
		assert(value < INT64_C(1000000000)); /* number_end refused the text */
	}
	return negative ? -value : value;
}

static void strip_front(struct number *number)
{
	if (number->whole_size == 1 && *number->whole == '0') {
		number->whole_size = 0;
		number->point = 0;
	}
	while (number->whole_size == 0 && number->rest_size && *number->rest == '0') {
		number->rest++;
		number->rest_size--;
		number->point--;
	}
}

static void strip_back(struct number *number)
{
	while (number->rest_size && number->rest[number->rest_size - 1] == '0')
		number->rest_size--;
	while (!number->rest_size && number->whole_size && number->whole[number->whole_size - 1] == '0')
		number->whole_size--;
}

struct number number_split(const char *text, size_t size)
{
	struct number number = {0};
	const char *at = text, *end = text + size;
	if (at < end && *at == '-') {
		number.negative = true;
		at++;
	}
	number.whole = at;
	(void)skip_digits(&at, end);
	number.whole_size = (size_t)(at - number.whole);
	assert(number.whole_size);
	number.point = (int64_t)number.whole_size;
	if (at < end && *at == '.') {
		number.rest = ++at;
		(void)skip_digits(&at, end);
		number.rest_size = (size_t)(at - number.rest);
	}
	strip_front(&number);
	strip_back(&number);
	if (number.whole_size + number.rest_size == 0)
		return (struct number){0};
	if (at < end)
		number.point += read_exponent(at + 1, end);
	return number;
}
