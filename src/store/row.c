/* SPDX-License-Identifier: Apache-2.0 */
/* row.c -- bind, read and show a record by the description of its columns. */
#include "store/row.h"

#include "base/instant.h"
#include "base/obj.h"

#include <assert.h>
#include <string.h>

/* ---- Names ---------------------------------------------------------------------------------- */

/* "opened_at" and "opened_us" are one column, so are "at" and "at_us". */
static bool same_column(const char *column, const char *name)
{
	size_t size = strlen(column), common = size;
	if (strcmp(column, name) == 0)
		return true;
	if (size > 3 && strcmp(column + size - 3, "_at") == 0)
		common = size - 3;
	return strncmp(column, name, common) == 0 && strcmp(name + common, "_us") == 0;
}

const struct row_column *row_find_column(const struct row_shape *shape, const char *name,
                                         size_t *at)
{
	for (size_t i = 0; i < shape->count; i++) {
		size_t place = (*at + i) % shape->count;
		if (same_column(shape->columns[place].name, name)) {
			*at = place + 1;
			return &shape->columns[place];
		}
	}
	return NULL;
}

/* ---- Binding -------------------------------------------------------------------------------- */

static const void *member_of(const struct row_column *column, const void *row)
{
	return (const char *)row + column->offset;
}

/* SIZED: the size stands behind the pointer. */
static const size_t *size_of(const struct row_column *column, const void *row)
{
	return (const size_t *)member_of(column, row) + 1;
}

static struct sql_value text_value(const char *text)
{
	return (struct sql_value){.type = COLUMN_TEXT, .text = text, .null = !text};
}

static struct sql_value number_value(enum column_type type, int64_t number)
{
	return (struct sql_value){.type = type, .number = number};
}

static int64_t limit_of(size_t size)
{
	return size > INT32_MAX ? INT32_MAX : (int64_t)size;
}

static struct sql_value uuid_value(const struct uuid *uuid, bool zero_is_null)
{
	static const struct uuid none;
	bool null = !uuid || (zero_is_null && memcmp(uuid, &none, sizeof none) == 0);
	struct sql_value value = {.type = COLUMN_UUID, .null = null};
	if (uuid)
		value.uuid = *uuid;
	return value;
}

static struct sql_value sized_value(const char *text, size_t size)
{
	return (struct sql_value){.type = COLUMN_SIZED, .text = text, .size = size, .null = !text};
}

struct sql_value row_value(const struct row_column *column, const void *row, struct arena *arena)
{
	const void *member = member_of(column, row);
	switch (column->type) {
	case COLUMN_TEXT:
	case COLUMN_JSON:
	case COLUMN_NAMES: return text_value(*(const char *const *)member);
	case COLUMN_CHARS: return text_value(member);
	case COLUMN_WORD: return text_value(words_text(column->words, *(const int *)member));
	case COLUMN_BITS:
		return text_value(words_join(column->words, arena, *(const unsigned *)member));
	case COLUMN_LONG: return number_value(COLUMN_LONG, *(const int64_t *)member);
	case COLUMN_INT: return number_value(COLUMN_LONG, *(const int *)member);
	case COLUMN_BOOL: return number_value(COLUMN_BOOL, *(const bool *)member);
	case COLUMN_TIME:
	case COLUMN_TIME_OR_NONE: return number_value(column->type, *(const int64_t *)member);
	case COLUMN_SIZE: return number_value(COLUMN_LONG, limit_of(*(const size_t *)member));
	case COLUMN_SIZED: return sized_value(*(const char *const *)member, *size_of(column, row));
	case COLUMN_UUID: return uuid_value(member, false);
	case COLUMN_UUID_OR_NULL: return uuid_value(member, true);
	case COLUMN_UUID_AT: return uuid_value(*(const struct uuid *const *)member, false);
	case COLUMN_HASH: break;
	}
	return (struct sql_value){.type = COLUMN_HASH, .hash = *(const struct sha256 *)member};
}

bool row_word_known(const struct row_column *column, const void *row)
{
	const void *member = member_of(column, row);
	if (column->type == COLUMN_WORD)
		return words_known(column->words, *(const int *)member);
	return column->type != COLUMN_BITS || *(const unsigned *)member >> column->words->count == 0;
}

/* ---- Reading -------------------------------------------------------------------------------- */

/* As what an engine hands the value over. */
static enum column_type plain_type(enum column_type type)
{
	switch (type) {
	case COLUMN_CHARS:
	case COLUMN_JSON:
	case COLUMN_NAMES:
	case COLUMN_WORD:
	case COLUMN_BITS: return COLUMN_TEXT;
	case COLUMN_INT: return COLUMN_LONG;
	case COLUMN_TIME_OR_NONE: return COLUMN_TIME;
	case COLUMN_UUID_OR_NULL: return COLUMN_UUID;
	default: return type;
	}
}

static size_t chars_room(const struct row_shape *shape, const struct row_column *column)
{
	size_t end = shape->size;
	for (size_t i = 0; i < shape->count; i++) {
		size_t offset = shape->columns[i].offset;
		if (offset > column->offset && offset < end)
			end = offset;
	}
	return end - column->offset;
}

static void read_chars(const struct row_shape *shape, const struct row_column *column,
                       const char *text, char *ret)
{
	size_t room = chars_room(shape, column), size = text ? strlen(text) : 0;
	if (size >= room)
		size = room - 1;
	memcpy(ret, text ? text : "", size);
	ret[size] = '\0';
}

static void read_member(const struct row_shape *shape, const struct row_column *column,
                        const struct sql_value *value, struct arena *arena, void *row)
{
	void *member = (char *)row + column->offset;
	switch (column->type) {
	case COLUMN_TEXT:
	case COLUMN_JSON:
	case COLUMN_NAMES: *(const char **)member = arena_strdup(arena, value->text); break;
	case COLUMN_CHARS: read_chars(shape, column, value->text, member); break;
	case COLUMN_WORD:
		*(int *)member = value->text ? words_number(column->words, value->text) : 0;
		break;
	case COLUMN_BITS: *(unsigned *)member = words_split(column->words, value->text); break;
	case COLUMN_LONG: *(int64_t *)member = value->number; break;
	case COLUMN_TIME:
	case COLUMN_TIME_OR_NONE: *(int64_t *)member = instant_clamp(value->number); break;
	case COLUMN_INT: *(int *)member = (int)value->number; break;
	case COLUMN_BOOL: *(bool *)member = value->number != 0; break;
	case COLUMN_SIZED:
		*(const char **)member = value->text ? arena_strndup(arena, value->text, value->size)
		                                     : NULL;
		*((size_t *)member + 1) = value->size;
		break;
	case COLUMN_UUID:
	case COLUMN_UUID_OR_NULL: *(struct uuid *)member = value->uuid; break;
	case COLUMN_SIZE:
	case COLUMN_UUID_AT: assert(false); break; /* these are only bound */
	case COLUMN_HASH: *(struct sha256 *)member = value->hash; break;
	}
}

void row_read(const struct row_shape *shape, const struct row_source *source, struct arena *arena,
              void *ret)
{
	size_t at = 0;
	for (int i = 0; i < source->columns; i++) {
		const struct row_column *column = row_find_column(shape, source->name(source, i), &at);
		struct sql_value value = {.null = false};
		if (!column)
			continue;
		value.type = plain_type(column->type);
		source->cell(source, i, value.type, &value);
		read_member(shape, column, &value, arena, ret);
	}
}

static void *add_row(struct row_list *list)
{
	size_t size = list->shape->size;
	if (list->count == list->room) {
		size_t room = list->room ? list->room * 2 : 16;
		char *items = arena_array(list->arena, room, size);
		if (!items)
			return NULL;
		if (list->count)
			memcpy(items, list->items, list->count * size);
		list->items = items;
		list->room = room;
	}
	return (char *)list->items + list->count++ * size;
}

void row_list_read(struct row_list *list, const struct row_source *source)
{
	void *row = add_row(list);
	if (row)
		row_read(list->shape, source, list->arena, row);
}

/* ---- JSON ----------------------------------------------------------------------------------- */

static void add_value(struct str *out, const char *name, const struct sql_value *value)
{
	char text[SHA256_TEXT_SIZE];
	switch (value->type) {
	case COLUMN_LONG: obj_int(out, name, value->number); return;
	case COLUMN_BOOL: obj_bool(out, name, value->number != 0); return;
	case COLUMN_TIME:
	case COLUMN_TIME_OR_NONE: instant_write(value->number, text); break;
	case COLUMN_UUID: uuid_write(value->uuid, text); break;
	case COLUMN_HASH: sha256_write(&value->hash, text); break;
	default: obj_text(out, name, value->text); return;
	}
	obj_text(out, name, text);
}

static bool is_none(const struct row_column *column, const struct sql_value *value)
{
	if (value->null || (value->type == COLUMN_TIME_OR_NONE && !value->number))
		return true;
	if (column->none == NONE_EMPTY)
		return value->text ? !*value->text : !value->number;
	return column->none == NONE_NEGATIVE && value->number < 0;
}

void row_add_json(struct str *out, const struct row_shape *shape, const void *row,
                  enum row_view view)
{
	struct arena arena = {0};
	for (size_t i = 0; i < shape->count; i++) {
		const struct row_column *column = &shape->columns[i];
		char camel[OBJ_NAME_SIZE];
		const char *name = column->json ? column->json : obj_camel(column->name, camel);
		struct sql_value value = row_value(column, row, &arena);
		if (!*name || (column->inside && view == ROW_SHARED) || is_none(column, &value))
			continue;
		if (column->type == COLUMN_NAMES || column->type == COLUMN_BITS)
			names_json(out, name, value.text);
		else if (column->type == COLUMN_JSON)
			obj_raw(out, name, value.text);
		else
			add_value(out, name, &value);
	}
	out->failed = out->failed || arena.failed;
	arena_release(&arena);
}

void row_add_object(struct str *out, const char *name, const struct row_shape *shape,
                    const void *row, enum row_view view)
{
	obj_begin(out, name, '{');
	row_add_json(out, shape, row, view);
	obj_end(out, '}');
}

void row_add_list(struct str *out, const char *name, const struct row_shape *shape,
                  const void *rows, size_t count, enum row_view view)
{
	obj_begin(out, name, '[');
	for (size_t i = 0; i < count; i++)
		row_add_object(out, NULL, shape, (const char *)rows + i * shape->size, view);
	obj_end(out, ']');
}
