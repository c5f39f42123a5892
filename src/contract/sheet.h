/* SPDX-License-Identifier: Apache-2.0 */
/* sheet.h -- a table that can be printed for a terminal, for Markdown and as JSON. */
#ifndef CONTRACT_SHEET_H
#define CONTRACT_SHEET_H

#include "base/arena.h"
#include "base/str.h"

struct column {
	const char *id;    /* name in JSON */
	const char *title; /* heading */
};

struct cell {
	const char *text; /* never NULL */
	bool marked;      /* printed with a `*` after it; in JSON the id is listed under `inherited` */
};

struct sheet_row {
	struct cell *cells; /* one per column */
	struct sheet_row *next;
};

struct sheet {
	struct arena *arena;
	const char *id, *title;
	const struct column *columns;
	size_t column_count;
	struct sheet_row *first, **end;
};

void sheet_init(struct sheet *sheet, struct arena *arena, const char *id, const char *title,
                const struct column *columns, size_t column_count);

/* Copies the cells (their texts must live as long as the arena). A NULL text becomes "". */
void sheet_add(struct sheet *sheet, const struct cell *cells);

/* Aligned within 100 columns, long cells wrapped; wide tables as one block per row. */
void sheet_write_text(struct str *out, const struct sheet *sheet);
void sheet_write_markdown(struct str *out, const struct sheet *sheet);

/* The title, underlined. */
void sheet_write_title(struct str *out, const struct sheet *sheet);

/* "id":[{...},...] */
void sheet_write_json(struct str *out, const struct sheet *sheet);

#endif
