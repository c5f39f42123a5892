/* SPDX-License-Identifier: Apache-2.0 */
/* decimal.c -- exact arithmetic in 128 bits.
 *
 * (D1) |units| < 10^38.   (D2) 0 <= scale <= 18, and minimal: if scale > 0, the last digit is not
 * 0. Every result that exists under D1 and D2 is found, even if the obvious intermediate value
 * would not fit: sums add whole and fractional parts separately, products first cancel twos
 * against fives. */
#include "base/decimal.h"

#include "base/number.h"

#include <assert.h>
#include <stdbool.h>

static const int64_t unit = INT64_C(1000000000000000000); /* 10^DECIMAL_SCALE_MAX */

_Static_assert(DECIMAL_SCALE_MAX == 18, "a fraction at full scale is an int64_t");

static __int128 power(int exponent)
{
	__int128 value = 1;
	assert(exponent >= 0 && exponent <= DECIMAL_DIGITS_MAX);
	while (exponent-- > 0)
		value *= 10;
	return value;
}

static bool fits(__int128 units, int digits)
{
	return units < power(digits) && units > -power(digits);
}

static void check(struct decimal value)
{
	assert(value.scale >= 0 && value.scale <= DECIMAL_SCALE_MAX); /* D2 */
	assert(fits(value.units, DECIMAL_DIGITS_MAX));                /* D1 */
	(void)value;
}

static enum ibid_code too_long(struct ibid_err *err)
{
	return err_set(err, IBID_LIMIT, "a decimal has at most %d digits, %d of them after the point",
	               DECIMAL_DIGITS_MAX, DECIMAL_SCALE_MAX);
}

static __int128 append_digits(__int128 units, const char *digits, size_t size)
{
	for (size_t i = 0; i < size; i++)
		units = units * 10 + (digits[i] - '0');
	return units;
}

enum ibid_code decimal_read(const char *text, size_t size, struct decimal *ret,
                            struct ibid_err *err)
{
	const char *at = text ? text : "", *end = at + size;
	enum number_fault fault = number_end(&at, end);
	if (fault == NUMBER_EXPONENT)
		return too_long(err);
	if (fault || at != end)
		return err_set(err, IBID_INVALID, "not a decimal number");
	struct number number = number_split(text, size);
	int64_t digits = (int64_t)(number.whole_size + number.rest_size);
	int64_t scale = digits - number.point;
	if (digits > DECIMAL_DIGITS_MAX || number.point > DECIMAL_DIGITS_MAX ||
	    scale > DECIMAL_SCALE_MAX)
		return too_long(err);
	__int128 units = append_digits(0, number.whole, number.whole_size);
	units = append_digits(units, number.rest, number.rest_size);
	if (scale < 0) {
		units *= power((int)-scale);
		scale = 0;
	}
	*ret = (struct decimal){number.negative ? -units : units, (int)scale};
	check(*ret);
	return IBID_OK;
}

size_t decimal_write(struct decimal value, char ret[DECIMAL_TEXT_MAX])
{
	char reversed[DECIMAL_TEXT_MAX];
	size_t size = 0;
	bool negative = value.units < 0;
	unsigned __int128 left = (unsigned __int128)(negative ? -value.units : value.units);
	check(value);
	for (int place = 0; left || place <= value.scale; place++) {
		if (place == value.scale && place > 0)
			reversed[size++] = '.';
		reversed[size++] = (char)('0' + (int)(left % 10));
		left /= 10;
	}
	if (negative)
		reversed[size++] = '-';
	for (size_t i = 0; i < size; i++)
		ret[i] = reversed[size - 1 - i];
	ret[size] = '\0';
	return size;
}

/* value = whole + part / 10^18, both with the sign of the value. */
struct split {
	__int128 whole;
	int64_t part;
};

static struct split split(struct decimal value)
{
	__int128 divisor = power(value.scale);
	check(value);
	return (struct split){
	    .whole = value.units / divisor,
	    .part = (int64_t)(value.units % divisor * power(DECIMAL_SCALE_MAX - value.scale)),
	};
}

int decimal_cmp(struct decimal a, struct decimal b)
{
	struct split left = split(a), right = split(b);
	if (left.whole != right.whole)
		return left.whole < right.whole ? -1 : 1;
	return (left.part > right.part) - (left.part < right.part);
}

static enum ibid_code join(struct split sum, struct decimal *ret, struct ibid_err *err)
{
	int scale = DECIMAL_SCALE_MAX;
	for (; scale > 0 && sum.part % 10 == 0; scale--)
		sum.part /= 10;
	if (!fits(sum.whole, DECIMAL_DIGITS_MAX - scale))
		return too_long(err);
	*ret = (struct decimal){sum.whole * power(scale) + sum.part, scale};
	check(*ret);
	return IBID_OK;
}

enum ibid_code decimal_add(struct decimal a, struct decimal b, struct decimal *ret,
                           struct ibid_err *err)
{
	struct split left = split(a), right = split(b), sum;
	if (__builtin_add_overflow(left.whole, right.whole, &sum.whole))
		return too_long(err);
	sum.part = left.part + right.part; /* below 2 * 10^18 */
	sum.whole += sum.part / unit;
	sum.part %= unit;
	if (sum.whole > 0 && sum.part < 0) {
		sum.whole--;
		sum.part += unit;
	} else if (sum.whole < 0 && sum.part > 0) {
		sum.whole++;
		sum.part -= unit;
	}
	return join(sum, ret, err);
}

enum ibid_code decimal_sub(struct decimal a, struct decimal b, struct decimal *ret,
                           struct ibid_err *err)
{
	b.units = -b.units;
	return decimal_add(a, b, ret, err);
}

/* Take up to `most` factors out of `*units`; returns how many. */
static int take_factors(__int128 *units, int factor, int most)
{
	int taken = 0;
	for (; taken < most && *units % factor == 0; taken++)
		*units /= factor;
	return taken;
}

static int count_factors(__int128 a, __int128 b, int factor, int most)
{
	int taken = take_factors(&a, factor, most);
	return taken + take_factors(&b, factor, most - taken);
}

static void drop_factors(__int128 *a, __int128 *b, int factor, int count)
{
	count -= take_factors(a, factor, count);
	(void)take_factors(b, factor, count);
}

enum ibid_code decimal_mul(struct decimal a, struct decimal b, struct decimal *ret,
                           struct ibid_err *err)
{
	__int128 units;
	int scale = a.scale + b.scale;
	check(a);
	check(b);
	if (a.units == 0 || b.units == 0) {
		*ret = (struct decimal){0, 0};
		return IBID_OK;
	}
	int twos = count_factors(a.units, b.units, 2, scale);
	int tens = count_factors(a.units, b.units, 5, twos);
	drop_factors(&a.units, &b.units, 2, tens);
	drop_factors(&a.units, &b.units, 5, tens);
	scale -= tens; /* now 0, or the product does not end in 0 (D2) */
	if (scale > DECIMAL_SCALE_MAX || __builtin_mul_overflow(a.units, b.units, &units) ||
	    !fits(units, DECIMAL_DIGITS_MAX))
		return too_long(err);
	*ret = (struct decimal){units, scale};
	return IBID_OK;
}
