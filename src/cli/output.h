/* SPDX-License-Identifier: Apache-2.0 */
/* output.h -- results go to the standard output, talk to the standard error.
 *
 * Nothing that is shown to a person can steer the terminal: control characters and bytes that are
 * not UTF-8 are written as escapes. JSON and canonical bytes are written as they are. */
#ifndef CLI_OUTPUT_H
#define CLI_OUTPUT_H

#include "base/arena.h"
#include "base/err.h"
#include "base/id.h"
#include "base/obj.h"
#include "store/row.h"

#include <stdint.h>

enum { OUTPUT_BYTES_MAX = 256 << 20 };

/* Make the three standard descriptors safe to use, whatever the parent left of them: a closed one
 * must not become the database's file. Call first. */
void out_init(void);

/* Everything was written, or the reason is told and `code` becomes CLI_ERROR. A reader that ended
 * early (`ibid … | head -1`) has what it wanted: that is no error. Call last. */
int out_finish(int code);

/* Write out what is buffered. False when that, or anything before it, could not be written. */
bool out_flush(void);

/* Was it because the reader of the pipe has ended? */
bool out_reader_ended(void);

void out_bytes(const char *bytes, size_t size); /* as they are */
void out_text(const char *text);                /* for a person: escaped, newlines kept */
void out_textf(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* A whole text as it is, and a newline. False, after telling, when it could not be built. */
bool out_line(const struct str *line);
bool out_row(const struct row_shape *shape, const void *row); /* likewise, as an object */

/* "ibid: ..." on the standard error. */
void say(const char *format, ...) __attribute__((format(printf, 1, 2)));
int say_err(const struct ibid_err *err); /* returns CLI_ERROR */
int say_no_memory(void);                 /* likewise */

/* ---- Colour --------------------------------------------------------------------------------- */

enum paint { PAINT_PLAIN, PAINT_GOOD, PAINT_WARN, PAINT_BAD, PAINT_HEAD };
void out_painted(enum paint paint,
                 const char *text);         /* colour only on a terminal, without NO_COLOR */
enum paint paint_of_word(const char *word); /* of a decision, state, finding or severity */

/* ---- Tables --------------------------------------------------------------------------------- */

enum { TABLE_COLUMNS_MAX = 12 };

struct table {
	struct arena *arena;
	const char *const *heads; /* NULL: none */
	size_t columns;
	size_t painted; /* this column is coloured by its words; `columns`: none */
	const char **cells;
	size_t count, room; /* in cells */
};

/* Copies the cells; NULL shows as "-". A failed allocation is remembered in the arena. */
void table_add(struct table *table, const char *const *cells);
void table_print(const struct table *table);

/* "name            value", for records: all values of a page begin in one column, and so do the
 * lines of a value that has several. NULL values are left out. */
void field_begin(const char *name); /* a value that is painted comes next */
void field_print(const char *name, const char *value);

/* A heading over what follows, with its number. */
void section_print(const char *title, size_t count);

/* ---- Values as text ------------------------------------------------------------------------- */

const char *plural(int64_t count);                          /* "" for 1, "s" for others */
const char *id_text(struct arena *arena, struct uuid id);   /* NULL: all zero */
const char *time_text(struct arena *arena, int64_t us);     /* RFC 3339, UTC; NULL: 0 */
const char *duration_text(struct arena *arena, int64_t us); /* "1 h 30 min" */
const char *line_text(struct arena *arena,
                      const char *text); /* with blanks for line breaks; NULL: NULL */
const char *thing_text(struct arena *arena, const char *type,
                       const char *id); /* "payment p-1"; either may be NULL */

#endif
