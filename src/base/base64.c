/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base64.h"

#include <string.h>

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

void base64_add(struct str *out, const unsigned char *bytes, size_t size)
{
	for (size_t i = 0; i < size; i += 3) {
		size_t left = size - i;
		unsigned group = (unsigned)bytes[i] << 16;
		group |= left > 1 ? (unsigned)bytes[i + 1] << 8 : 0;
		group |= left > 2 ? (unsigned)bytes[i + 2] : 0;
		for (unsigned k = 0; k < (left > 2 ? 4 : left + 1); k++)
			str_addc(out, digits[group >> (18 - 6 * k) & 63]);
	}
}

static int digit_of(char c)
{
	const char *found = c ? strchr(digits, c) : NULL;
	return found ? (int)(found - digits) : -1;
}

bool base64_read(const char *text, size_t size, unsigned char *ret, size_t *ret_size)
{
	unsigned group = 0, bits = 0;
	size_t count = 0;
	for (size_t i = 0; i < size; i++) {
		int digit = digit_of(text[i]);
		if (digit < 0)
			return false;
		group = (group << 6 | (unsigned)digit) & 0xFFFFFF;
		bits += 6;
		if (bits >= 8) {
			bits -= 8;
			ret[count++] = (unsigned char)(group >> bits);
		}
	}
	*ret_size = count;
	return size % 4 != 1 && !(group & ((1u << bits) - 1)); /* one text for one meaning */
}
