/* SPDX-License-Identifier: Apache-2.0 */
/* sheet.c -- one table, three printers. */
#include "contract/sheet.h"

#include "base/obj.h"
#include "base/utf8.h"

#include <string.h>

enum {
	WIDTH_MAX = 100,
	COLUMNS_MAX = 24,
	GRID_COLUMNS_MAX = 6, /* more do not fit side by side */
	COLUMN_WIDTH_MIN = 10,
	GAP = 2,
};

void sheet_init(struct sheet *sheet, struct arena *arena, const char *id, const char *title,
                const struct column *columns, size_t column_count)
{
	*sheet = (struct sheet){
	    .arena = arena, .id = id, .title = title, .columns = columns, .column_count = column_count};
	sheet->end = &sheet->first;
}

void sheet_add(struct sheet *sheet, const struct cell *cells)
{
	struct sheet_row *row = arena_alloc(sheet->arena, sizeof *row);
	struct cell *copy = arena_array(sheet->arena, sheet->column_count, sizeof *copy);
	if (!row || !copy)
		return;
	for (size_t i = 0; i < sheet->column_count; i++) {
		copy[i] = cells[i];
		if (!copy[i].text)
			copy[i].text = "";
	}
	row->cells = copy;
	*sheet->end = row;
	sheet->end = &row->next;
}

/* ---- Text ----------------------------------------------------------------------------------- */

static size_t width_of(const char *text)
{
	return utf8_width(text, strlen(text));
}

static size_t cell_width(const struct cell *cell)
{
	return width_of(cell->text) + cell->marked;
}

/* Bytes of `text` that fit into `width`, broken at a blank where there is one; at least one
 * character. */
static size_t fitting(const char *text, size_t width)
{
	size_t left = strlen(text), size = 0, blank = 0, columns = 0;
	while (size < left) {
		size_t step = utf8_size(text + size, left - size);
		step = step ? step : 1;
		columns += utf8_width(text + size, step);
		if (size && columns > width)
			return blank ? blank : size;
		if (text[size] == ' ')
			blank = size;
		size += step;
	}
	return size;
}

static void pad(struct str *out, size_t count)
{
	while (count-- > 0)
		str_addc(out, ' ');
}

/* The next line of a cell; `*text` moves on. Returns the width written. */
static size_t write_line(struct str *out, const char **text, size_t width, bool marked)
{
	size_t size = fitting(*text, width - marked);
	size_t written = utf8_width(*text, size);
	str_add(out, *text, size);
	*text += size;
	*text += strspn(*text, " ");
	if (size && marked && **text == '\0') {
		str_addc(out, '*');
		written++;
	}
	return written;
}

static void trim_line(struct str *out)
{
	while (out->size && out->data[out->size - 1] == ' ')
		out->data[--out->size] = '\0';
	str_addc(out, '\n');
}

static void write_grid_row(struct str *out, const struct cell *cells, const size_t *widths,
                           size_t count)
{
	const char *rest[COLUMNS_MAX];
	bool more = true;
	for (size_t i = 0; i < count; i++)
		rest[i] = cells[i].text;
	while (more && !out->failed) {
		more = false;
		for (size_t i = 0; i < count; i++) {
			size_t written = write_line(out, &rest[i], widths[i], cells[i].marked);
			if (i + 1 < count)
				pad(out, widths[i] - written + GAP);
			more = more || *rest[i];
		}
		trim_line(out);
	}
}

/* Every column as wide as its content, then the widest give way until the row fits. */
static void fit_widths(const struct sheet *sheet, size_t *widths)
{
	size_t total = 0;
	for (size_t i = 0; i < sheet->column_count; i++) {
		widths[i] = width_of(sheet->columns[i].title);
		for (const struct sheet_row *row = sheet->first; row; row = row->next)
			if (cell_width(&row->cells[i]) > widths[i])
				widths[i] = cell_width(&row->cells[i]);
		total += widths[i] + (i ? GAP : 0);
	}
	while (total > WIDTH_MAX) {
		size_t widest = 0;
		for (size_t i = 1; i < sheet->column_count; i++)
			if (widths[i] > widths[widest])
				widest = i;
		if (widths[widest] <= COLUMN_WIDTH_MIN)
			return;
		widths[widest]--;
		total--;
	}
}

static void write_grid(struct str *out, const struct sheet *sheet)
{
	size_t widths[COLUMNS_MAX];
	struct cell titles[COLUMNS_MAX] = {{0}};
	fit_widths(sheet, widths);
	for (size_t i = 0; i < sheet->column_count; i++)
		titles[i].text = sheet->columns[i].title;
	write_grid_row(out, titles, widths, sheet->column_count);
	for (size_t i = 0; i < sheet->column_count; i++) {
		for (size_t j = 0; j < widths[i]; j++)
			str_addc(out, '-');
		pad(out, i + 1 < sheet->column_count ? GAP : 0);
	}
	trim_line(out);
	for (const struct sheet_row *row = sheet->first; row; row = row->next)
		write_grid_row(out, row->cells, widths, sheet->column_count);
}

static void write_blocks(struct str *out, const struct sheet *sheet)
{
	size_t widths[2] = {0};
	for (size_t i = 1; i < sheet->column_count; i++) {
		size_t width = width_of(sheet->columns[i].title);
		widths[0] = width + GAP > widths[0] ? width + GAP : widths[0];
	}
	widths[1] = WIDTH_MAX - GAP - widths[0];
	for (const struct sheet_row *row = sheet->first; row; row = row->next) {
		str_addf(out, "%s%s\n", row == sheet->first ? "" : "\n", row->cells[0].text);
		for (size_t i = 1; i < sheet->column_count; i++) {
			char label[128];
			size_t size = strlen(sheet->columns[i].title);
			size = size < sizeof label - 3 ? size : sizeof label - 3;
			memcpy(label, "  ", 2);
			memcpy(label + 2, sheet->columns[i].title, size);
			label[size + 2] = '\0';
			struct cell cells[2] = {{label, false}, row->cells[i]};
			write_grid_row(out, cells, widths, 2);
		}
	}
}

void sheet_write_title(struct str *out, const struct sheet *sheet)
{
	str_addf(out, "%s\n", sheet->title);
	for (size_t i = width_of(sheet->title); i > 0; i--)
		str_addc(out, '=');
	str_adds(out, "\n\n");
}

void sheet_write_text(struct str *out, const struct sheet *sheet)
{
	sheet_write_title(out, sheet);
	if (sheet->column_count > GRID_COLUMNS_MAX)
		write_blocks(out, sheet);
	else
		write_grid(out, sheet);
	str_addc(out, '\n');
}

/* ---- Markdown ------------------------------------------------------------------------------- */

static void add_escaped(struct str *out, const char *text)
{
	for (; *text; text++) {
		if (strchr("\\|*<[", *text))
			str_addc(out, '\\');
		str_addc(out, *text);
	}
}

void sheet_write_markdown(struct str *out, const struct sheet *sheet)
{
	str_addf(out, "## %s\n\n|", sheet->title);
	for (size_t i = 0; i < sheet->column_count; i++)
		str_addf(out, " %s |", sheet->columns[i].title);
	str_adds(out, "\n|");
	for (size_t i = 0; i < sheet->column_count; i++)
		str_adds(out, "---|");
	for (const struct sheet_row *row = sheet->first; row; row = row->next) {
		str_adds(out, "\n|");
		for (size_t i = 0; i < sheet->column_count; i++) {
			str_addc(out, ' ');
			add_escaped(out, row->cells[i].text);
			str_adds(out, row->cells[i].marked ? "\\* |" : " |");
		}
	}
	str_adds(out, "\n\n");
}

/* ---- JSON ----------------------------------------------------------------------------------- */

static void write_marked(struct str *out, const struct sheet *sheet, const struct sheet_row *row)
{
	const char *between = "";
	char name[OBJ_NAME_SIZE];
	bool any = false;
	for (size_t i = 0; i < sheet->column_count; i++)
		any = any || row->cells[i].marked;
	if (!any)
		return;
	str_adds(out, ",\"inherited\":[");
	for (size_t i = 0; i < sheet->column_count; i++) {
		if (!row->cells[i].marked)
			continue;
		str_addf(out, "%s\"%s\"", between, obj_camel(sheet->columns[i].id, name));
		between = ",";
	}
	str_addc(out, ']');
}

void sheet_write_json(struct str *out, const struct sheet *sheet)
{
	char name[OBJ_NAME_SIZE];
	str_addf(out, "\"%s\":[", obj_camel(sheet->id, name));
	for (const struct sheet_row *row = sheet->first; row; row = row->next) {
		str_adds(out, row == sheet->first ? "{" : ",{");
		for (size_t i = 0; i < sheet->column_count; i++) {
			str_addf(out, "%s\"%s\":", i ? "," : "", obj_camel(sheet->columns[i].id, name));
			str_add_json(out, row->cells[i].text, strlen(row->cells[i].text));
		}
		write_marked(out, sheet, row);
		str_addc(out, '}');
	}
	str_addc(out, ']');
}
