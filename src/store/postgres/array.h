/* SPDX-License-Identifier: Apache-2.0 */
/* array.h -- parameters that are arrays, an element for each row. */
#ifndef POSTGRES_ARRAY_H
#define POSTGRES_ARRAY_H

#include "base/str.h"
#include "store/postgres/postgres.h"

enum { PG_ARRAYS_MAX = 24, PG_ARRAYS_BYTES = 64 << 20 };

enum pg_element { PG_BOOL, PG_BYTES, PG_INT4, PG_INT8, PG_TEXT, PG_TIME, PG_UUID };

/* One behind the other: pg_arrays_begin, `count` elements, the next one, ..., pg_arrays_end. */
struct pg_arrays {
	struct str bytes;
	size_t starts[PG_ARRAYS_MAX];
	size_t count;
	bool filled[PG_ARRAYS_MAX]; /* not all of it is NULL */
	enum pg_element element;    /* of the last array */
	size_t left;                /* elements that it still lacks */
};
#define PG_ARRAYS_INIT ((struct pg_arrays){.bytes = STR_INIT(PG_ARRAYS_BYTES)})

void pg_arrays_begin(struct pg_arrays *arrays, enum pg_element element, size_t count);

/* The next element. NULL, or 0 where that is said, is SQL NULL. */
void pg_arrays_bool(struct pg_arrays *arrays, bool value);
void pg_arrays_bytes(struct pg_arrays *arrays, const void *bytes, size_t size);
void pg_arrays_int4(struct pg_arrays *arrays, int32_t value);
void pg_arrays_int8(struct pg_arrays *arrays, int64_t value);
void pg_arrays_text(struct pg_arrays *arrays, const char *text);
void pg_arrays_time(struct pg_arrays *arrays, int64_t us);
void pg_arrays_time_or_null(struct pg_arrays *arrays, int64_t us);
void pg_arrays_uuid(struct pg_arrays *arrays, const struct uuid *uuid);

/* Make them the parameters of a call, in the arena, and release them; one of nothing but NULLs is
 * NULL itself, of which unnest makes the same beside others. False without memory. */
IBID_CHECK bool pg_arrays_end(struct pg_arrays *arrays, struct arena *arena, struct pg_call *call);

/* The same as text, for a statement that has other parameters, too: begin an array with a value, or
 * add one; NULL is SQL NULL. */
void pg_array_add(struct str *text, const char *value);

#endif
