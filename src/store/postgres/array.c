/* SPDX-License-Identifier: Apache-2.0 */
/* array.c -- parameters that are arrays, an element for each row, as the server keeps them.
 *
 * In text the server would look at every byte of them for quotes and parse every time and id; what
 * that took was a third of what it took to write the rows of a group. */
#include "store/postgres/array.h"

#include <assert.h>
#include <string.h>

/* Of PostgreSQL's own types, in pg_type. */
enum {
	OID_BOOL = 16,
	OID_BYTEA = 17,
	OID_INT8 = 20,
	OID_INT4 = 23,
	OID_TEXT = 25,
	OID_TIMESTAMPTZ = 1184,
	OID_UUID = 2950,
};

static const unsigned element_oids[] = {
    [PG_BOOL] = OID_BOOL, [PG_BYTES] = OID_BYTEA,      [PG_INT8] = OID_INT8, [PG_INT4] = OID_INT4,
    [PG_TEXT] = OID_TEXT, [PG_TIME] = OID_TIMESTAMPTZ, [PG_UUID] = OID_UUID,
};

#define NULL_SIZE     UINT32_MAX               /* of an element that is NULL */
#define EPOCH_2000_US INT64_C(946684800000000) /* where the server's times begin */

static void add_number(struct str *bytes, uint64_t number, size_t size)
{
	char text[sizeof number];
	for (size_t i = 0; i < size; i++)
		text[i] = (char)(number >> (8 * (size - 1 - i)));
	str_add(bytes, text, size);
}

static void add_u32(struct str *bytes, uint32_t number)
{
	add_number(bytes, number, sizeof number);
}

void pg_arrays_begin(struct pg_arrays *arrays, enum pg_element element, size_t count)
{
	enum { DIMENSIONS = 1, NULLS = 1, LOWER_BOUND = 1 };
	assert(count && arrays->count < PG_ARRAYS_MAX && !arrays->left);
	arrays->starts[arrays->count++] = arrays->bytes.size;
	arrays->element = element;
	arrays->left = count;
	add_u32(&arrays->bytes, DIMENSIONS);
	add_u32(&arrays->bytes, NULLS);
	add_u32(&arrays->bytes, element_oids[element]);
	add_u32(&arrays->bytes, (uint32_t)count);
	add_u32(&arrays->bytes, LOWER_BOUND);
}

static void begin_element(struct pg_arrays *arrays, enum pg_element element, size_t size)
{
	assert(arrays->left && arrays->element == element);
	(void)element;
	arrays->left--;
	arrays->filled[arrays->count - 1] |= size != NULL_SIZE;
	add_u32(&arrays->bytes, (uint32_t)size);
}

static void add_null(struct pg_arrays *arrays, enum pg_element element)
{
	begin_element(arrays, element, NULL_SIZE);
}

void pg_arrays_text(struct pg_arrays *arrays, const char *text)
{
	if (!text) {
		add_null(arrays, PG_TEXT);
		return;
	}
	size_t size = strlen(text);
	begin_element(arrays, PG_TEXT, size);
	str_add(&arrays->bytes, text, size);
}

void pg_arrays_bytes(struct pg_arrays *arrays, const void *bytes, size_t size)
{
	begin_element(arrays, PG_BYTES, size);
	str_add(&arrays->bytes, bytes, size);
}

void pg_arrays_uuid(struct pg_arrays *arrays, const struct uuid *uuid)
{
	begin_element(arrays, PG_UUID, sizeof uuid->bytes);
	str_add(&arrays->bytes, (const char *)uuid->bytes, sizeof uuid->bytes);
}

void pg_arrays_bool(struct pg_arrays *arrays, bool value)
{
	begin_element(arrays, PG_BOOL, 1);
	add_number(&arrays->bytes, value, 1);
}

void pg_arrays_int4(struct pg_arrays *arrays, int32_t value)
{
	begin_element(arrays, PG_INT4, sizeof value);
	add_u32(&arrays->bytes, (uint32_t)value);
}

void pg_arrays_int8(struct pg_arrays *arrays, int64_t value)
{
	begin_element(arrays, PG_INT8, sizeof value);
	add_number(&arrays->bytes, (uint64_t)value, sizeof value);
}

void pg_arrays_time(struct pg_arrays *arrays, int64_t us)
{
	begin_element(arrays, PG_TIME, sizeof us);
	add_number(&arrays->bytes, (uint64_t)(us - EPOCH_2000_US), sizeof us);
}

void pg_arrays_time_or_null(struct pg_arrays *arrays, int64_t us)
{
	if (us)
		pg_arrays_time(arrays, us);
	else
		add_null(arrays, PG_TIME);
}

bool pg_arrays_end(struct pg_arrays *arrays, struct arena *arena, struct pg_call *call)
{
	size_t count = arrays->count, size = arrays->bytes.size;
	assert(!arrays->left && (int)count == call->statement->param_count);
	char *bytes = arrays->bytes.failed ? NULL : arena_strndup(arena, arrays->bytes.data, size);
	const char **values = arena_array(arena, count, sizeof *values);
	int *lengths = arena_array(arena, count, sizeof *lengths);
	for (size_t i = 0; bytes && values && lengths && i < count; i++) {
		size_t end = i + 1 < count ? arrays->starts[i + 1] : size;
		values[i] = arrays->filled[i] ? bytes + arrays->starts[i] : NULL;
		lengths[i] = (int)(end - arrays->starts[i]);
	}
	str_release(&arrays->bytes);
	call->values = values;
	call->lengths = lengths;
	return bytes && values && lengths;
}

void pg_array_add(struct str *text, const char *value)
{
	str_adds(text, text->size ? "," : "{");
	str_adds(text, value ? "\"" : "null");
	for (const char *at = value; at && *at; at++) {
		if (*at == '"' || *at == '\\')
			str_addc(text, '\\');
		str_addc(text, *at);
	}
	str_adds(text, value ? "\"" : "");
}
