/* SPDX-License-Identifier: Apache-2.0 */
#include "base/err.h"

#include <stdio.h>
#include <string.h>

_Static_assert(sizeof(struct ibid_err) == 512, "struct ibid_err is frozen");

static const char *const code_names[] = {
#define CODE_NAME(symbol, name, meaning) [symbol] = name,
    IBID_CODES(CODE_NAME)
#undef CODE_NAME
};

const char *ibid_code_name(enum ibid_code code)
{
	size_t index = (size_t)code;
	return index < sizeof code_names / sizeof *code_names ? code_names[index] : "unlisted";
}

enum ibid_next err_next_of(enum ibid_code code)
{
	switch (code) {
	case IBID_UNKNOWN:
	case IBID_FAILED:
	case IBID_RETRY:
	case IBID_IO:
	case IBID_GONE: return IBID_NEXT_SAME_KEY;
	case IBID_BUSY:
	case IBID_UNAVAILABLE:
	case IBID_FULL:
	case IBID_NOMEM: return IBID_NEXT_LATER;
	default: return IBID_NEXT_NEVER;
	}
}

enum ibid_code err_setv(struct ibid_err *err, enum ibid_code code, const char *format, va_list args)
{
	if (err) {
		err->code = code;
		err->next = err_next_of(code);
		vsnprintf(err->text, sizeof err->text, format, args);
	}
	return code;
}

enum ibid_code err_write(struct ibid_err *err, enum ibid_code code, const char *format, ...)
{
	va_list args;
	va_start(args, format);
	err_setv(err, code, format, args);
	va_end(args);
	return code;
}

enum ibid_code err_prefix(struct ibid_err *err, const char *format, ...)
{
	char text[sizeof err->text];
	va_list args;
	if (!err)
		return IBID_INTERNAL;
	memcpy(text, err->text, sizeof text);
	va_start(args, format);
	vsnprintf(err->text, sizeof err->text, format, args);
	va_end(args);
	/* The prefix names the place; a text too long for both loses its end, never its beginning. */
	size_t used = strlen(err->text);
	const char *const parts[] = {": ", text};
	for (size_t i = 0; i < 2; i++) {
		size_t size = strlen(parts[i]), room = sizeof err->text - 1 - used;
		size = size < room ? size : room;
		memcpy(err->text + used, parts[i], size);
		used += size;
	}
	err->text[used] = '\0';
	return err->code;
}
