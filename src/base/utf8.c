/* SPDX-License-Identifier: Apache-2.0 */
/* utf8.c -- the table of well-formed byte sequences, as data.
 *
 * Overlong forms, surrogates and values above U+10FFFF differ from valid sequences only in the
 * range of the second byte, so one row for each range of first bytes is enough. */
#include "base/utf8.h"

#include <stdbool.h>
#include <string.h>
#include <utf8proc.h>

static const struct lead {
	unsigned char from, to;  /* first byte */
	unsigned char low, high; /* second byte */
	unsigned char size;
} leads[] = {
    {0xC2, 0xDF, 0x80, 0xBF, 2}, {0xE0, 0xE0, 0xA0, 0xBF, 3}, {0xE1, 0xEC, 0x80, 0xBF, 3},
    {0xED, 0xED, 0x80, 0x9F, 3}, {0xEE, 0xEF, 0x80, 0xBF, 3}, {0xF0, 0xF0, 0x90, 0xBF, 4},
    {0xF1, 0xF3, 0x80, 0xBF, 4}, {0xF4, 0xF4, 0x80, 0x8F, 4},
};

static bool is_tail(char byte)
{
	return ((unsigned char)byte & 0xC0) == 0x80;
}

size_t utf8_size(const char *bytes, size_t size)
{
	if (size == 0)
		return 0;
	unsigned char first = (unsigned char)bytes[0];
	if (first < 0x80)
		return 1;
	for (size_t i = 0; i < sizeof leads / sizeof *leads; i++) {
		const struct lead *lead = &leads[i];
		if (first < lead->from || first > lead->to)
			continue;
		if (size < lead->size)
			return 0;
		unsigned char second = (unsigned char)bytes[1];
		if (second < lead->low || second > lead->high)
			return 0;
		for (size_t k = 2; k < lead->size; k++)
			if (!is_tail(bytes[k]))
				return 0;
		return lead->size;
	}
	return 0;
}

bool utf8_ok(const char *bytes, size_t size)
{
	for (size_t step; size; bytes += step, size -= step) {
		step = utf8_size(bytes, size);
		if (!step)
			return false;
	}
	return true;
}

size_t utf8_width(const char *bytes, size_t size)
{
	size_t columns = 0;
	for (size_t step; size; bytes += step, size -= step) {
		utf8proc_int32_t point = '?';
		step = utf8_size(bytes, size);
		if (step)
			utf8proc_iterate((const utf8proc_uint8_t *)bytes, (utf8proc_ssize_t)step, &point);
		else
			step = 1;
		columns += (size_t)utf8proc_charwidth(point);
	}
	return columns;
}

void utf8_mend(char *text)
{
	for (size_t left = strlen(text), step; left; text += step, left -= step) {
		step = utf8_size(text, left);
		if (!step) {
			*text = '?';
			step = 1;
		}
	}
}

size_t utf8_fit(const char *bytes, size_t size, size_t most)
{
	if (size <= most)
		return size;
	while (most > 0 && is_tail(bytes[most]))
		most--;
	return most;
}
