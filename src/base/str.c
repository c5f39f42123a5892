/* SPDX-License-Identifier: Apache-2.0 */
#include "base/str.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void str_release(struct str *str)
{
	free(str->data);
	*str = (struct str){.cap = str->cap};
}

void str_clear(struct str *str)
{
	str->size = 0;
	str->failed = false;
	if (str->data)
		str->data[0] = '\0';
}

static bool str_reserve(struct str *str, size_t more)
{
	if (str->failed || more > str->cap || str->size > str->cap - more) {
		str->failed = true;
		return false;
	}
	size_t need = str->size + more + 1;
	if (need <= str->room)
		return true;
	size_t room = str->room ? str->room * 2 : 64;
	if (room < need)
		room = need;
	char *data = realloc(str->data, room);
	if (!data) {
		str->failed = true;
		return false;
	}
	str->data = data;
	str->room = room;
	return true;
}

void str_add(struct str *str, const char *bytes, size_t size)
{
	if (!str_reserve(str, size))
		return;
	if (size)
		memcpy(str->data + str->size, bytes, size);
	str->size += size;
	str->data[str->size] = '\0';
}

void str_adds(struct str *str, const char *text)
{
	str_add(str, text, strlen(text));
}

void str_addc(struct str *str, char byte)
{
	str_add(str, &byte, 1);
}

void str_addf(struct str *str, const char *format, ...)
{
	va_list args, again;
	va_start(args, format);
	va_copy(again, args);
	int size = vsnprintf(NULL, 0, format, args);
	va_end(args);
	if (size < 0) {
		str->failed = true;
	} else if (str_reserve(str, (size_t)size)) {
		vsnprintf(str->data + str->size, (size_t)size + 1, format, again);
		str->size += (size_t)size;
	}
	va_end(again);
}

const char *str_text(const struct str *str)
{
	return str->data ? str->data : "";
}

void str_add_json(struct str *str, const char *bytes, size_t size)
{
	static const char hex[] = "0123456789abcdef";
	size_t from = 0;
	str_addc(str, '"');
	for (size_t i = 0; i < size; i++) {
		unsigned char byte = (unsigned char)bytes[i];
		char escape[6] = {'\\', 'u', '0', '0', hex[byte >> 4], hex[byte & 15]};
		size_t length = 2;
		if (byte >= 0x20 && byte != '"' && byte != '\\')
			continue;
		str_add(str, bytes + from, i - from);
		from = i + 1;
		switch (byte) {
		case '"': escape[1] = '"'; break;
		case '\\': escape[1] = '\\'; break;
		case '\b': escape[1] = 'b'; break;
		case '\f': escape[1] = 'f'; break;
		case '\n': escape[1] = 'n'; break;
		case '\r': escape[1] = 'r'; break;
		case '\t': escape[1] = 't'; break;
		default: length = 6; break;
		}
		str_add(str, escape, length);
	}
	str_add(str, bytes + from, size - from);
	str_addc(str, '"');
}

char *str_take(struct str *str, size_t *ret_size)
{
	char *data = str->failed ? NULL : str->data;
	if (!data) {
		str_release(str);
		return NULL;
	}
	if (ret_size)
		*ret_size = str->size;
	*str = (struct str){.cap = str->cap};
	return data;
}
