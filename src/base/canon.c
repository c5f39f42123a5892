/* SPDX-License-Identifier: Apache-2.0 */
/* canon.c -- write a value so that equal meaning is equal bytes.
 *
 * Numbers need no binary arithmetic. Let v be the value of the text, and D the decimal that
 * ECMAScript prints for the double nearest to v: the one with the fewest digits that reads back.
 *   - D's digits do not end in 0, or fewer would do, and do not begin with 0. A nonzero value has
 *     exactly one decimal form 0.d1..dk * 10^n with such digits (d1 and dk not 0).
 *   - If D = v, then D's form is the form of v; ECMAScript's layout looks only at the sign, the
 *     digits and n; so printing v's form in that layout is what RFC 8785 prints.
 *   - If D is not v, or v has no finite nonzero double, all digits of v are to be kept in the same
 *     layout: v's form again. Zero, of either sign, is "0" in both.
 * Hence the output is always the text's own digits without outer zeros, in ECMAScript's layout. It
 * is one to one with the value: it reads back as v, and v has one form. */
#include "base/canon.h"

#include "base/number.h"

#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { WRITER_BYTES = 2048, MEMBERS_FEW = 32 };

/* Small pieces are gathered here: most of the output is commas, quotes and short words. */
struct writer {
	struct str *out;
	size_t used;
	char bytes[WRITER_BYTES];
};

static void flush(struct writer *writer)
{
	if (writer->used)
		str_add(writer->out, writer->bytes, writer->used);
	writer->used = 0;
}

static void put(struct writer *writer, const char *bytes, size_t size)
{
	if (size > WRITER_BYTES - writer->used)
		flush(writer);
	if (size > WRITER_BYTES) {
		str_add(writer->out, bytes, size);
		return;
	}
	if (size)
		memcpy(writer->bytes + writer->used, bytes, size);
	writer->used += size;
}

static void put_byte(struct writer *writer, char byte)
{
	if (writer->used == WRITER_BYTES)
		flush(writer);
	writer->bytes[writer->used++] = byte;
}

/* ---- Numbers -------------------------------------------------------------------------------- */

static void put_zeros(struct writer *writer, int64_t count)
{
	while (count-- > 0)
		put_byte(writer, '0');
}

/* Digits from..to of the number, counted over both parts. */
static void put_digits(struct writer *writer, const struct number *n, size_t from, size_t to)
{
	size_t whole_to = to < n->whole_size ? to : n->whole_size;
	if (from < whole_to)
		put(writer, n->whole + from, whole_to - from);
	size_t rest_from = from > n->whole_size ? from - n->whole_size : 0;
	if (to > n->whole_size)
		put(writer, n->rest + rest_from, to - n->whole_size - rest_from);
}

static void put_exponent(struct writer *writer, int64_t exponent)
{
	char digits[20];
	size_t at = sizeof digits;
	uint64_t left = (uint64_t)(exponent < 0 ? -exponent : exponent);
	for (; left; left /= 10)
		digits[--at] = (char)('0' + left % 10);
	put_byte(writer, 'e');
	put_byte(writer, exponent < 0 ? '-' : '+');
	put(writer, digits + at, sizeof digits - at);
}

/* ECMAScript's Number::toString layout; `point` is its n, the number of digits its k. */
static void put_number(struct writer *writer, const struct number *n)
{
	size_t digits = n->whole_size + n->rest_size;
	int64_t count = (int64_t)digits, point = n->point;
	if (n->negative)
		put_byte(writer, '-');
	if (count == 0) {
		put_byte(writer, '0');
	} else if (point > 0 && point <= 21) {
		size_t left = count < point ? digits : (size_t)point;
		put_digits(writer, n, 0, left);
		put_zeros(writer, point - count);
		if (left < digits)
			put_byte(writer, '.');
		put_digits(writer, n, left, digits);
	} else if (point > -6 && point <= 0) {
		put(writer, "0.", 2);
		put_zeros(writer, -point);
		put_digits(writer, n, 0, digits);
	} else {
		put_digits(writer, n, 0, 1);
		if (digits > 1)
			put_byte(writer, '.');
		put_digits(writer, n, 1, digits);
		put_exponent(writer, point - 1);
	}
}

void canon_number(struct str *out, const char *text, size_t size)
{
	struct writer writer;
	struct number number = number_split(text, size);
	writer.out = out;
	writer.used = 0;
	put_number(&writer, &number);
	flush(&writer);
}

static char digit_at(const struct number *n, size_t i)
{
	return i < n->whole_size ? n->whole[i] : n->rest[i - n->whole_size];
}

/* Of the absolute values, both nonzero. */
static int magnitude_cmp(const struct number *a, const struct number *b)
{
	size_t a_digits = a->whole_size + a->rest_size, b_digits = b->whole_size + b->rest_size;
	if (a->point != b->point)
		return a->point < b->point ? -1 : 1;
	for (size_t i = 0; i < a_digits && i < b_digits; i++) {
		int order = digit_at(a, i) - digit_at(b, i);
		if (order)
			return order;
	}
	return (a_digits > b_digits) - (a_digits < b_digits);
}

static int sign(const struct number *n)
{
	if (n->whole_size + n->rest_size == 0)
		return 0;
	return n->negative ? -1 : 1;
}

int canon_number_cmp(const char *a, size_t a_size, const char *b, size_t b_size)
{
	struct number left = number_split(a, a_size), right = number_split(b, b_size);
	int a_sign = sign(&left), b_sign = sign(&right);
	if (a_sign != b_sign)
		return a_sign - b_sign;
	return a_sign ? a_sign * magnitude_cmp(&left, &right) : 0;
}

/* ---- Names ---------------------------------------------------------------------------------- */

/* UTF-8 bytes order as code points do. UTF-16 differs in one thing: characters above U+FFFF (first
 * byte F0..F4) are spelled with surrogates, which come before U+E000..U+FFFF (first byte EE, EF).
 */
int canon_name_cmp(const char *a, size_t a_size, const char *b, size_t b_size)
{
	size_t least = a_size < b_size ? a_size : b_size, i = 0;
	while (i < least && a[i] == b[i])
		i++;
	if (i == least)
		return (a_size > b_size) - (a_size < b_size);
	unsigned char x = (unsigned char)a[i], y = (unsigned char)b[i];
	int order = x < y ? -1 : 1;
	return x >= 0xEE && y >= 0xEE && (x >= 0xF0) != (y >= 0xF0) ? -order : order;
}

static int member_cmp(const void *left, const void *right)
{
	const struct json *a = *(const struct json *const *)left;
	const struct json *b = *(const struct json *const *)right;
	return canon_name_cmp(a->name, a->name_size, b->name, b->name_size);
}

/* Few members are sorted by insertion: they often are nearly in order, and a call for each
 * comparison costs more than the comparison. */
static void sort_members(const struct json **members, size_t count)
{
	if (count > MEMBERS_FEW) {
		qsort(members, count, sizeof *members, member_cmp);
		return;
	}
	for (size_t i = 1; i < count; i++) {
		const struct json *member = members[i];
		size_t k = i;
		for (; k > 0 && member_cmp(&members[k - 1], &member) > 0; k--)
			members[k] = members[k - 1];
		members[k] = member;
	}
}

/* ---- Values --------------------------------------------------------------------------------- */

/* Bytes from `from` on that stand for themselves in a string. */
static size_t plain_size(const char *bytes, size_t size, size_t from)
{
	const uint64_t ones = UINT64_C(0x0101010101010101), tops = ones * 0x80;
	size_t i = from;
	for (uint64_t eight; size - i >= 8; i += 8) {
		memcpy(&eight, bytes + i, 8);
		uint64_t quote = eight ^ (ones * '"'), slash = eight ^ (ones * '\\');
		uint64_t less = (eight - ones * 0x20) & ~eight;
		if ((less | ((quote - ones) & ~quote) | ((slash - ones) & ~slash)) & tops)
			break;
	}
	while (i < size && (unsigned char)bytes[i] >= 0x20 && bytes[i] != '"' && bytes[i] != '\\')
		i++;
	return i - from;
}

static void put_string(struct writer *writer, const char *bytes, size_t size)
{
	if (plain_size(bytes, size, 0) < size) {
		flush(writer);
		str_add_json(writer->out, bytes, size);
		return;
	}
	put_byte(writer, '"');
	put(writer, bytes, size);
	put_byte(writer, '"');
}

static void put_value(struct writer *writer, const struct json *value, int depth);

static void put_array(struct writer *writer, const struct json *array, int depth)
{
	put_byte(writer, '[');
	for (const struct json *item = array->child; item; item = item->next) {
		if (item != array->child)
			put_byte(writer, ',');
		put_value(writer, item, depth + 1);
	}
	put_byte(writer, ']');
}

static void put_member(struct writer *writer, const struct json *member, bool first, int depth)
{
	if (!first)
		put_byte(writer, ',');
	put_string(writer, member->name, member->name_size);
	put_byte(writer, ':');
	put_value(writer, member, depth + 1);
}

static bool is_sorted(const struct json *object)
{
	const struct json *member = object->child;
	for (; member && member->next; member = member->next)
		if (member_cmp(&member, &(const struct json *){member->next}) > 0)
			return false;
	return true;
}

static void put_sorted(struct writer *writer, const struct json *object, int depth)
{
	const struct json *few[MEMBERS_FEW], **members = few;
	size_t count = 0;
	if (object->size > MEMBERS_FEW)
		members = malloc(object->size * sizeof *members);
	if (!members) {
		writer->out->failed = true;
		return;
	}
	for (const struct json *member = object->child; member; member = member->next)
		members[count++] = member;
	assert(count == object->size);
	sort_members(members, count);
	for (size_t i = 0; i < count; i++)
		put_member(writer, members[i], i == 0, depth);
	if (members != few)
		free(members);
}

static void put_object(struct writer *writer, const struct json *object, int depth)
{
	put_byte(writer, '{');
	if (!is_sorted(object)) {
		put_sorted(writer, object, depth);
	} else {
		for (const struct json *member = object->child; member; member = member->next)
			put_member(writer, member, member == object->child, depth);
	}
	put_byte(writer, '}');
}

static void put_value(struct writer *writer, const struct json *value, int depth)
{
	struct number number;
	if (depth > JSON_DEPTH_MAX) { /* no text that json_read accepts is so deep */
		writer->out->failed = true;
		return;
	}
	switch (value->type) {
	case JSON_NULL: put(writer, "null", 4); break;
	case JSON_FALSE: put(writer, "false", 5); break;
	case JSON_TRUE: put(writer, "true", 4); break;
	case JSON_NUMBER:
		number = number_split(value->text, value->size);
		put_number(writer, &number);
		break;
	case JSON_STRING: put_string(writer, value->text, value->size); break;
	case JSON_ARRAY: put_array(writer, value, depth); break;
	case JSON_OBJECT: put_object(writer, value, depth); break;
	}
}

void canon_write(struct str *out, const struct json *value)
{
	struct writer writer;
	writer.out = out;
	writer.used = 0;
	put_value(&writer, value, 0);
	flush(&writer);
}
