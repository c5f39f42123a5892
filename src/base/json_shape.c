/* SPDX-License-Identifier: Apache-2.0 */
#include "base/json_shape.h"

#include "base/number.h"

#include <stdint.h>
#include <string.h>

struct look {
	const char *at, *end;
	size_t depth;
	bool first;                              /* nothing stands in the innermost container yet */
	bool deeper;                             /* than we look */
	uint8_t is_object[JSON_SHAPE_DEPTH_MAX]; /* each container that is open */
};

static void skip_blanks(struct look *look)
{
	while (look->at < look->end &&
	       (*look->at == ' ' || *look->at == '\n' || *look->at == '\r' || *look->at == '\t'))
		look->at++;
}

static bool skip_char(struct look *look, char wanted)
{
	skip_blanks(look);
	if (look->at == look->end || *look->at != wanted)
		return false;
	look->at++;
	return true;
}

static bool skip_escape(struct look *look)
{
	static const char hex[] = "0123456789abcdefABCDEF";
	if (look->at == look->end)
		return false;
	char kind = *look->at++;
	if (kind != 'u')
		return kind && strchr("\"\\/bfnrt", kind);
	for (int i = 0; i < 4; i++, look->at++)
		if (look->at == look->end || !*look->at || !strchr(hex, *look->at))
			return false;
	return true;
}

static bool skip_string(struct look *look)
{
	if (!skip_char(look, '"'))
		return false;
	while (look->at < look->end) {
		unsigned char byte = (unsigned char)*look->at++;
		if (byte == '"')
			return true;
		if (byte < ' ' || (byte == '\\' && !skip_escape(look)))
			return false;
	}
	return false;
}

static bool skip_literal(struct look *look)
{
	static const char *const all[] = {"true", "false", "null"};
	for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
		size_t size = strlen(all[i]);
		if ((size_t)(look->end - look->at) >= size && memcmp(look->at, all[i], size) == 0) {
			look->at += size;
			return true;
		}
	}
	return number_end(&look->at, look->end) == NUMBER_OK;
}

static bool open_container(struct look *look)
{
	look->deeper = look->depth == JSON_SHAPE_DEPTH_MAX;
	if (!look->deeper)
		look->is_object[look->depth++] = *look->at == '{';
	look->first = true;
	look->at++;
	return true;
}

static bool skip_value(struct look *look)
{
	skip_blanks(look);
	look->first = false;
	if (look->at == look->end)
		return false;
	switch (*look->at) {
	case '{':
	case '[': return open_container(look);
	case '"': return skip_string(look);
	default: return skip_literal(look);
	}
}

/* The next item or member of the innermost container, or its end. */
static bool skip_next(struct look *look)
{
	bool object = look->is_object[look->depth - 1];
	if (skip_char(look, object ? '}' : ']')) {
		look->depth--;
		look->first = false;
		return true;
	}
	if (!look->first && !skip_char(look, ','))
		return false;
	if (object && (!skip_string(look) || !skip_char(look, ':')))
		return false;
	return skip_value(look);
}

bool json_shape_ok(const char *bytes, size_t size)
{
	struct look look;
	look.at = bytes;
	look.end = bytes + size;
	look.depth = 0;
	look.first = look.deeper = false;
	bool ok = skip_value(&look);
	while (ok && look.depth && !look.deeper)
		ok = skip_next(&look);
	skip_blanks(&look);
	return ok && (look.deeper || look.at == look.end);
}
