/* SPDX-License-Identifier: Apache-2.0 */
/* row.h -- what a record looks like: its columns, by which it is bound to a statement, read from a
 * result and written as JSON.
 *
 *     static const struct row_column pause_columns[] = {
 *         ROW_COLUMN(TEXT, struct pause_row, tenant, tenant),
 *         ROW_COLUMN(TIME, struct pause_row, since, since_us),
 *     };
 *     const struct row_shape pause_shape = ROW_SHAPE(struct pause_row, pause_columns); */
#ifndef STORE_ROW_H
#define STORE_ROW_H

#include "base/arena.h"
#include "base/hash.h"
#include "base/id.h"
#include "base/str.h"
#include "base/words.h"

#include <stdint.h>

enum column_type {
	COLUMN_TEXT,  /* const char *; NULL is SQL NULL */
	COLUMN_CHARS, /* an array of characters, with its NUL */
	COLUMN_JSON,  /* const char *: JSON text */
	COLUMN_NAMES, /* const char *: names joined by commas; in JSON an array */
	COLUMN_SIZED, /* const char *, which may hold NULs, and behind it a size_t */
	COLUMN_SIZE,  /* size_t: how many rows at most */
	COLUMN_LONG,  /* int64_t; SQL NULL is 0, in these, too: */
	COLUMN_INT,   /* int */
	COLUMN_BOOL,
	COLUMN_TIME,         /* int64_t, microseconds since 1970 */
	COLUMN_TIME_OR_NONE, /* likewise; 0: none, which is NULL in PostgreSQL */
	COLUMN_WORD,         /* an enum, by `words`; -1 is SQL NULL: any */
	COLUMN_BITS,         /* unsigned, likewise: words joined by commas */
	COLUMN_UUID,
	COLUMN_UUID_OR_NULL, /* all zero is SQL NULL */
	COLUMN_UUID_AT,      /* const struct uuid *; NULL is SQL NULL; only bound */
	COLUMN_HASH,
};

/* What stands for none where a member can't be NULL. */
enum row_none { NONE_IS_NULL, NONE_EMPTY /* 0 or "" */, NONE_NEGATIVE };

struct row_column {
	const char *name;    /* in the schema: "opened_at"; SQLite's is called opened_us */
	const char *json;    /* NULL: as the name, in camelCase; "": it is not in JSON */
	struct words *words; /* COLUMN_WORD, COLUMN_BITS */
	size_t offset;
	enum column_type type;
	enum row_none none;
	bool inside; /* only in the JSON of ROW_WHOLE */
};

struct row_shape {
	const struct row_column *columns;
	size_t count, size;
};

#define ROW_COLUMN(kind, row, column, member, ...)                                                 \
	{                                                                                              \
		.name = #column, .type = COLUMN_##kind, .offset = offsetof(row, member), __VA_ARGS__       \
	}
#define ROW_SHAPE(row, list)                                                                       \
	{                                                                                              \
		.columns = (list), .count = sizeof(list) / sizeof *(list), .size = sizeof(row)             \
	}

/* ---- Values --------------------------------------------------------------------------------- */

/* One value on its way to a statement or from a result: what its type means is set. */
struct sql_value {
	enum column_type type; /* TEXT, SIZED, LONG, BOOL, TIME, TIME_OR_NONE, UUID or HASH */
	bool null;
	const char *text;
	size_t size; /* of a SIZED text */
	int64_t number;
	struct uuid uuid;
	struct sha256 hash;
};

/* A member of a row as a value. What it points to lives in the row, or in the arena. */
struct sql_value row_value(const struct row_column *column, const void *row, struct arena *arena);

/* False: it is a word, or has one, that only a newer schema knows. */
bool row_word_known(const struct row_column *column, const void *row);

/* The column that a statement calls `name`, looked for from `*at` on, which is moved behind it.
 * NULL: there is none. */
const struct row_column *row_find_column(const struct row_shape *shape, const char *name,
                                         size_t *at);

/* ---- Reading -------------------------------------------------------------------------------- */

/* The current row of an engine's result. */
struct row_source {
	void *result;
	int row, columns;
	const char *(*name)(const struct row_source *, int column);
	/* The value as that type: one of those of struct sql_value. */
	void (*cell)(const struct row_source *, int column, enum column_type type,
	             struct sql_value *ret);
};

/* Fill in a zeroed row; texts go into the arena. Columns of the result that the shape does not name
 * are passed over. Check arena->failed once. */
void row_read(const struct row_shape *shape, const struct row_source *source, struct arena *arena,
              void *ret);

/* Rows that are read, growing in an arena. */
struct row_list {
	struct arena *arena;
	const struct row_shape *shape;
	void *items;
	size_t count, room;
};
void row_list_read(struct row_list *list, const struct row_source *source);

/* ---- JSON ----------------------------------------------------------------------------------- */

/* Who reads it: clients of the server, or those who may open the store. */
enum row_view { ROW_SHARED, ROW_WHOLE };

/* The members of a row, without braces; what is none is left out. */
void row_add_json(struct str *out, const struct row_shape *shape, const void *row,
                  enum row_view view);

/* A row as an object, and rows as an array of them; name NULL: no member. */
void row_add_object(struct str *out, const char *name, const struct row_shape *shape,
                    const void *row, enum row_view view);
void row_add_list(struct str *out, const char *name, const struct row_shape *shape,
                  const void *rows, size_t count, enum row_view view);

#endif
