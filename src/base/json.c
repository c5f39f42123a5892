/* SPDX-License-Identifier: Apache-2.0 */
/* json.c -- read a text once, from left to right, without recursion.
 *
 * Strings and numbers are copied, unescaped and terminated, into one buffer as long as the text.
 * It is long enough: a string's NUL replaces a quote, a number's NUL the delimiter that must
 * follow it; only a number that ends the text needs one byte more.
 *
 * Names are checked when their object closes: pairwise when they are few, sorted otherwise, so that
 * no choice of names makes it slow (a hash with a known seed would). Line and column are counted
 * only when there is an error to report. */
#include "base/json.h"

#include "base/number.h"
#include "base/str.h"
#include "base/utf8.h"

#include <assert.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	NAMES_PAIRWISE_MAX = 16,
	NAMES_FEW = 32,
	NAME_SHOWN_MAX = 60,
	NUMBER_SURE_MAX = 11, /* in so few bytes a number can't leave its limits: 1e999999999 */
};

/* Canonical: a sign, the digits, a point, "e+" and nine digits, or "0.00000" before the digits. */
_Static_assert(1 + JSON_NUMBER_DIGITS_MAX + 1 + 2 + 9 <= JSON_NUMBER_BYTES_MAX,
               "the canonical form of a number that was read can be read");
_Static_assert(JSON_EXPONENT_MAX <= 999999999 && NUMBER_EXPONENT_DIGITS_MAX == 9,
               "a canonical exponent is short enough to be read");

struct name_place {
	const struct json *member;
	const char *at; /* of its quote in the text */
};

struct frame {
	struct json *value;
	struct json **tail;
	size_t names; /* where this object's names start in reader.names */
};

struct reader {
	struct arena *arena;
	const char *bytes, *at, *end;
	char *copy; /* where the next string or number goes */
	struct frame frames[JSON_DEPTH_MAX];
	size_t depth;
	struct name_place few[NAMES_FEW], *names; /* of all open objects, the innermost last */
	size_t names_count, names_room;
	struct ibid_err *err;
};

/* ---- Errors --------------------------------------------------------------------------------- */

__attribute__((format(printf, 4, 5))) static enum ibid_code
fail(const struct reader *reader, enum ibid_code code, const char *at, const char *format, ...)
{
	char what[440]; /* leaves room for the place, so that the place is never cut */
	size_t line = 1;
	const char *start = reader->bytes;
	for (const char *p = reader->bytes; p < at; p++) {
		if (*p == '\n') {
			line++;
			start = p + 1;
		}
	}
	va_list args;
	va_start(args, format);
	vsnprintf(what, sizeof what, format, args);
	va_end(args);
	return err_set(reader->err, code, "%s at line %zu, column %zu", what, line,
	               (size_t)(at - start) + 1);
}

static enum ibid_code fail_expected(const struct reader *reader, const char *expected)
{
	if (reader->at == reader->end)
		return fail(reader, IBID_INVALID, reader->at, "unexpected end of text: %s is missing",
		            expected);
	unsigned char byte = (unsigned char)*reader->at;
	if (byte > 0x20 && byte < 0x7F)
		return fail(reader, IBID_INVALID, reader->at, "expected %s, found '%c'", expected, byte);
	return fail(reader, IBID_INVALID, reader->at, "expected %s, found byte 0x%02X", expected, byte);
}

static enum ibid_code fail_memory(const struct reader *reader, size_t size)
{
	const struct arena *arena = reader->arena;
	size_t cap = arena->cap ? arena->cap : ARENA_CAP_DEFAULT;
	if (cap - arena->used < size + _Alignof(max_align_t))
		return fail(reader, IBID_LIMIT, reader->at, "the text needs more than %zu bytes of memory",
		            cap);
	return fail(reader, IBID_NOMEM, reader->at, "out of memory");
}

static enum ibid_code fail_duplicate(const struct reader *reader, const struct name_place *place)
{
	const struct json *member = place->member;
	size_t shown = utf8_fit(member->name, member->name_size, NAME_SHOWN_MAX);
	struct str quoted = STR_INIT(8 * NAME_SHOWN_MAX);
	str_add_json(&quoted, member->name, shown);
	enum ibid_code code = fail(reader, IBID_INVALID, place->at, "duplicate member %s%s",
	                           str_text(&quoted), shown < member->name_size ? "..." : "");
	str_release(&quoted);
	return code;
}

/* ---- Strings -------------------------------------------------------------------------------- */

/* Does one of eight bytes need attention: a quote, a backslash, a control character, non-ASCII? */
static bool any_special(uint64_t eight)
{
	const uint64_t ones = UINT64_C(0x0101010101010101), tops = ones * 0x80;
	uint64_t quote = eight ^ (ones * '"'), slash = eight ^ (ones * '\\');
	return ((eight - ones * 0x20) | (quote - ones) | (slash - ones) | eight) & tops;
}

static bool is_special(char byte)
{
	unsigned char b = (unsigned char)byte;
	return b < 0x20 || b >= 0x80 || b == '"' || b == '\\';
}

static void copy_plain(struct reader *reader)
{
	const char *at = reader->at, *end = reader->end;
	char *copy = reader->copy;
	uint64_t eight;
	for (; end - at >= 8; at += 8, copy += 8) {
		memcpy(&eight, at, 8);
		if (any_special(eight))
			break;
		memcpy(copy, &eight, 8);
	}
	while (at < end && !is_special(*at))
		*copy++ = *at++;
	reader->at = at;
	reader->copy = copy;
}

static enum ibid_code copy_utf8(struct reader *reader)
{
	size_t size = utf8_size(reader->at, (size_t)(reader->end - reader->at));
	if (!size)
		return fail(reader, IBID_INVALID, reader->at, "invalid UTF-8");
	memcpy(reader->copy, reader->at, size);
	reader->copy += size;
	reader->at += size;
	return IBID_OK;
}

static int hex_value(char byte)
{
	if (byte >= '0' && byte <= '9')
		return byte - '0';
	if (byte >= 'a' && byte <= 'f')
		return byte - 'a' + 10;
	if (byte >= 'A' && byte <= 'F')
		return byte - 'A' + 10;
	return -1;
}

/* At the `u` of an escape: its code unit, or -1 when there is none; moves only when there is. */
static int32_t read_unit(struct reader *reader)
{
	int32_t unit = 0;
	if (reader->end - reader->at < 5 || *reader->at != 'u')
		return -1;
	for (int i = 1; i <= 4; i++) {
		int digit = hex_value(reader->at[i]);
		if (digit < 0)
			return -1;
		unit = unit * 16 + digit;
	}
	reader->at += 5;
	return unit;
}

static void put_char(struct reader *reader, uint32_t c)
{
	char *copy = reader->copy;
	if (c < 0x80) {
		*copy++ = (char)c;
	} else if (c < 0x800) {
		*copy++ = (char)(0xC0 | c >> 6);
		*copy++ = (char)(0x80 | (c & 0x3F));
	} else if (c < 0x10000) {
		*copy++ = (char)(0xE0 | c >> 12);
		*copy++ = (char)(0x80 | (c >> 6 & 0x3F));
		*copy++ = (char)(0x80 | (c & 0x3F));
	} else {
		*copy++ = (char)(0xF0 | c >> 18);
		*copy++ = (char)(0x80 | (c >> 12 & 0x3F));
		*copy++ = (char)(0x80 | (c >> 6 & 0x3F));
		*copy++ = (char)(0x80 | (c & 0x3F));
	}
	reader->copy = copy;
}

static enum ibid_code read_unicode(struct reader *reader, const char *start)
{
	int32_t unit = read_unit(reader);
	if (unit < 0)
		return fail(reader, IBID_INVALID, start, "\\u without four hexadecimal digits");
	if (unit < 0xD800 || unit > 0xDFFF) {
		put_char(reader, (uint32_t)unit);
		return IBID_OK;
	}
	int32_t low = -1;
	if (unit < 0xDC00 && reader->at < reader->end && *reader->at == '\\') {
		reader->at++;
		low = read_unit(reader);
	}
	if (low < 0xDC00 || low > 0xDFFF)
		return fail(reader, IBID_INVALID, start, "lone surrogate \\u%04x", (unsigned int)unit);
	put_char(reader, 0x10000 + ((uint32_t)(unit - 0xD800) << 10) + (uint32_t)(low - 0xDC00));
	return IBID_OK;
}

static enum ibid_code read_escape(struct reader *reader)
{
	static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
	const char *start = reader->at++;
	if (reader->at == reader->end)
		return fail_expected(reader, "the rest of an escape");
	if (*reader->at == 'u')
		return read_unicode(reader, start);
	const char *found = memchr(from, *reader->at, sizeof from - 1);
	if (!found)
		return fail(reader, IBID_INVALID, start, "unknown escape in a string");
	*reader->copy++ = to[found - from];
	reader->at++;
	return IBID_OK;
}

static enum ibid_code read_string(struct reader *reader, const char **ret, size_t *ret_size)
{
	const char *text = reader->copy;
	reader->at++;
	for (;;) {
		enum ibid_code code = IBID_OK;
		copy_plain(reader);
		if (reader->at == reader->end)
			return fail_expected(reader, "the end of a string");
		unsigned char byte = (unsigned char)*reader->at;
		if (byte == '"')
			break;
		if (byte == '\\')
			code = read_escape(reader);
		else if (byte < 0x20)
			code = fail(reader, IBID_INVALID, reader->at,
			            "control character 0x%02X in a string must be escaped", byte);
		else if (byte >= 0x80)
			code = copy_utf8(reader);
		if (code)
			return code;
	}
	reader->at++;
	*ret_size = (size_t)(reader->copy - text);
	*reader->copy++ = '\0';
	*ret = text;
	return IBID_OK;
}

/* ---- Values --------------------------------------------------------------------------------- */

static void skip_blanks(struct reader *reader)
{
	const char *at = reader->at, *end = reader->end;
	while (at < end && (*at == ' ' || *at == '\n' || *at == '\r' || *at == '\t'))
		at++;
	reader->at = at;
}

static enum ibid_code fail_exponent(const struct reader *reader, const char *at)
{
	return fail(reader, IBID_LIMIT, at, "a number may have exponents up to %d", JSON_EXPONENT_MAX);
}

static enum ibid_code fail_number(const struct reader *reader, enum number_fault fault)
{
	if (fault == NUMBER_LEADING_ZERO)
		return fail(reader, IBID_INVALID, reader->at, "a number may not have leading zeros");
	if (fault == NUMBER_EXPONENT)
		return fail_exponent(reader, reader->at);
	return fail_expected(reader, "a digit");
}

/* The limits are on the value, not only on the text: the canonical form must pass them again. */
static enum ibid_code check_number(const struct reader *reader, const char *text, size_t size)
{
	if (size > JSON_NUMBER_BYTES_MAX)
		return fail(reader, IBID_LIMIT, text, "a number may have at most %d bytes",
		            JSON_NUMBER_BYTES_MAX);
	struct number number = number_split(text, size);
	if (number.whole_size + number.rest_size > JSON_NUMBER_DIGITS_MAX)
		return fail(reader, IBID_LIMIT, text, "a number may have at most %d significant digits",
		            JSON_NUMBER_DIGITS_MAX);
	if (number.point - 1 > JSON_EXPONENT_MAX || number.point - 1 < -JSON_EXPONENT_MAX)
		return fail_exponent(reader, text);
	return IBID_OK;
}

static enum ibid_code read_number(struct reader *reader, struct json *value)
{
	const char *start = reader->at;
	enum number_fault fault = number_end(&reader->at, reader->end);
	if (fault)
		return fail_number(reader, fault);
	size_t size = (size_t)(reader->at - start);
	if (size > NUMBER_SURE_MAX) {
		enum ibid_code code = check_number(reader, start, size);
		if (code)
			return code;
	}
	value->type = JSON_NUMBER;
	value->text = reader->copy;
	value->size = size;
	memcpy(reader->copy, start, size);
	reader->copy += size;
	*reader->copy++ = '\0';
	return IBID_OK;
}

static enum ibid_code read_literal(struct reader *reader, struct json *value)
{
	static const struct {
		const char *text;
		size_t size;
		enum json_type type;
	} literals[] = {{"null", 4, JSON_NULL}, {"true", 4, JSON_TRUE}, {"false", 5, JSON_FALSE}};
	size_t left = (size_t)(reader->end - reader->at);
	assert(value);
	for (size_t i = 0; i < sizeof literals / sizeof *literals; i++) {
		size_t size = literals[i].size;
		if (left >= size && memcmp(reader->at, literals[i].text, size) == 0) {
			value->type = literals[i].type;
			reader->at += size;
			return IBID_OK;
		}
	}
	return fail_expected(reader, "a value");
}

static enum ibid_code open_container(struct reader *reader, struct json *value, enum json_type type)
{
	if (reader->depth == JSON_DEPTH_MAX)
		return fail(reader, IBID_LIMIT, reader->at, "more than %d levels", JSON_DEPTH_MAX);
	value->type = type;
	reader->frames[reader->depth++] = (struct frame){value, &value->child, reader->names_count};
	reader->at++;
	return IBID_OK;
}

static enum ibid_code read_value(struct reader *reader, struct json *value)
{
	if (reader->at == reader->end)
		return fail_expected(reader, "a value");
	switch (*reader->at) {
	case '{': return open_container(reader, value, JSON_OBJECT);
	case '[': return open_container(reader, value, JSON_ARRAY);
	case '"': value->type = JSON_STRING; return read_string(reader, &value->text, &value->size);
	case '-':
	case '0':
	case '1':
	case '2':
	case '3':
	case '4':
	case '5':
	case '6':
	case '7':
	case '8':
	case '9': return read_number(reader, value);
	default: return read_literal(reader, value);
	}
}

/* ---- Names ---------------------------------------------------------------------------------- */

static enum ibid_code grow_names(struct reader *reader)
{
	size_t room = reader->names_room * 2, bytes = room * sizeof *reader->names;
	struct name_place *names = realloc(reader->names == reader->few ? NULL : reader->names, bytes);
	if (!names)
		return fail(reader, IBID_NOMEM, reader->at, "out of memory");
	if (reader->names == reader->few)
		memcpy(names, reader->few, sizeof reader->few);
	reader->names = names;
	reader->names_room = room;
	return IBID_OK;
}

static enum ibid_code read_name(struct reader *reader, struct json *member)
{
	const char *start = reader->at;
	if (start == reader->end || *start != '"')
		return fail_expected(reader, "a member name");
	if (reader->names_count == reader->names_room) {
		enum ibid_code code = grow_names(reader);
		if (code)
			return code;
	}
	reader->names[reader->names_count++] = (struct name_place){member, start};
	enum ibid_code code = read_string(reader, &member->name, &member->name_size);
	if (code)
		return code;
	skip_blanks(reader);
	if (reader->at == reader->end || *reader->at != ':')
		return fail_expected(reader, "':'");
	reader->at++;
	skip_blanks(reader);
	return IBID_OK;
}

static bool same_name(const struct json *a, const struct json *b)
{
	return a->name_size == b->name_size && memcmp(a->name, b->name, a->name_size) == 0;
}

/* Any total order of names will do; equal names stay in the order of the text. */
static int name_place_cmp(const void *left, const void *right)
{
	const struct name_place *a = left, *b = right;
	size_t a_size = a->member->name_size, b_size = b->member->name_size;
	if (a_size != b_size)
		return a_size < b_size ? -1 : 1;
	int order = memcmp(a->member->name, b->member->name, a_size);
	return order ? order : (a->at > b->at) - (a->at < b->at);
}

static const struct name_place *repeated_sorted(struct name_place *names, size_t count)
{
	const struct name_place *first = NULL;
	qsort(names, count, sizeof *names, name_place_cmp);
	for (size_t i = 1; i < count; i++)
		if (same_name(names[i].member, names[i - 1].member) && (!first || names[i].at < first->at))
			first = &names[i];
	return first;
}

/* The first name in the text that stood there before; NULL when there is none. */
static const struct name_place *repeated(struct name_place *names, size_t count)
{
	if (count > NAMES_PAIRWISE_MAX)
		return repeated_sorted(names, count);
	for (size_t i = 1; i < count; i++)
		for (size_t k = 0; k < i; k++)
			if (same_name(names[i].member, names[k].member))
				return &names[i];
	return NULL;
}

/* ---- Structure ------------------------------------------------------------------------------ */

static enum ibid_code close_container(struct reader *reader)
{
	const struct frame *frame = &reader->frames[--reader->depth];
	size_t count = reader->names_count - frame->names;
	const struct name_place *place = repeated(reader->names + frame->names, count);
	if (place)
		return fail_duplicate(reader, place);
	reader->names_count = frame->names;
	reader->at++;
	return IBID_OK;
}

static enum ibid_code new_value(struct reader *reader, struct json **ret)
{
	struct json *value = arena_alloc(reader->arena, sizeof *value);
	if (!value)
		return fail_memory(reader, sizeof *value);
	*ret = value;
	return IBID_OK;
}

/* The next item or member of the innermost open container, or its end. */
static enum ibid_code read_next(struct reader *reader)
{
	struct frame *frame = &reader->frames[reader->depth - 1];
	bool object = frame->value->type == JSON_OBJECT;
	skip_blanks(reader);
	if (reader->at < reader->end && *reader->at == (object ? '}' : ']'))
		return close_container(reader);
	if (frame->value->size++) {
		if (reader->at == reader->end || *reader->at != ',')
			return fail_expected(reader, object ? "',' or '}'" : "',' or ']'");
		reader->at++;
		skip_blanks(reader);
	}
	enum ibid_code code = new_value(reader, frame->tail);
	if (code)
		return code;
	struct json *value = *frame->tail;
	frame->tail = &value->next;
	if (object)
		code = read_name(reader, value);
	return code ? code : read_value(reader, value);
}

static enum ibid_code read_text(struct reader *reader, struct json **ret)
{
	struct json *root = NULL;
	size_t size = (size_t)(reader->end - reader->bytes);
	reader->copy = arena_alloc(reader->arena, size + 1);
	if (!reader->copy)
		return fail_memory(reader, size + 1);
	enum ibid_code code = new_value(reader, &root);
	if (code)
		return code;
	skip_blanks(reader);
	code = read_value(reader, root);
	while (!code && reader->depth)
		code = read_next(reader);
	if (code)
		return code;
	skip_blanks(reader);
	if (reader->at < reader->end)
		return fail(reader, IBID_INVALID, reader->at, "trailing text after the value");
	*ret = root;
	return IBID_OK;
}

enum ibid_code json_read(struct arena *arena, const char *bytes, size_t size, size_t bytes_max,
                         struct json **ret, struct ibid_err *err)
{
	struct reader reader;
	size_t most = bytes_max ? bytes_max : JSON_BYTES_MAX;
	reader.arena = arena;
	reader.bytes = reader.at = bytes ? bytes : "";
	reader.end = reader.bytes + size;
	reader.depth = reader.names_count = 0;
	reader.names = reader.few;
	reader.names_room = NAMES_FEW;
	reader.err = err;
	if (size > most)
		return fail(&reader, IBID_LIMIT, reader.bytes + most, "the text is longer than %zu bytes",
		            most);
	enum ibid_code code = read_text(&reader, ret);
	if (reader.names != reader.few)
		free(reader.names);
	return code;
}

/* ---- Looking things up ---------------------------------------------------------------------- */

struct json *json_member(const struct json *object, const char *name)
{
	if (!object || object->type != JSON_OBJECT)
		return NULL;
	size_t size = strlen(name);
	for (struct json *member = object->child; member; member = member->next)
		if (member->name_size == size && memcmp(member->name, name, size) == 0)
			return member;
	return NULL;
}

bool json_pointer_ok(const char *pointer)
{
	if (*pointer && *pointer != '/')
		return false;
	for (; *pointer; pointer++)
		if (*pointer == '~' && pointer[1] != '0' && pointer[1] != '1')
			return false;
	return true;
}

/* Is `name` what the token, up to '/' or the end, spells? */
static bool token_is(const char *token, const char *name, size_t size)
{
	size_t i = 0;
	for (; *token && *token != '/'; token++, i++) {
		char byte = *token;
		if (byte == '~')
			byte = *++token == '0' ? '~' : '/';
		if (i == size || name[i] != byte)
			return false;
	}
	return i == size;
}

/* The index a token spells (digits, no leading zero), or SIZE_MAX. */
static size_t token_index(const char *token)
{
	size_t index = 0, digits = 0;
	for (; token[digits] >= '0' && token[digits] <= '9'; digits++) {
		if (index > SIZE_MAX / 10 - 1)
			return SIZE_MAX;
		index = index * 10 + (size_t)(token[digits] - '0');
	}
	bool whole = token[digits] == '\0' || token[digits] == '/';
	return whole && digits && (digits == 1 || *token != '0') ? index : SIZE_MAX;
}

static struct json *child_at(struct json *value, const char *token)
{
	struct json *child = value->child;
	if (value->type == JSON_OBJECT) {
		while (child && !token_is(token, child->name, child->name_size))
			child = child->next;
		return child;
	}
	size_t index = value->type == JSON_ARRAY ? token_index(token) : SIZE_MAX;
	if (index == SIZE_MAX || index >= value->size)
		return NULL;
	while (index--)
		child = child->next;
	return child;
}

struct json *json_at(struct json *root, const char *pointer)
{
	if (!root || !json_pointer_ok(pointer))
		return NULL;
	while (root && *pointer) {
		root = child_at(root, ++pointer);
		pointer += strcspn(pointer, "/");
	}
	return root;
}
