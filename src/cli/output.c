/* SPDX-License-Identifier: Apache-2.0 */
/* output.c -- write results so that people and programs can read them, and notice when nobody
 * could. */
#include "cli/output.h"

#include "base/instant.h"
#include "base/utf8.h"
#include "cli/cli.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SAY_BYTES_MAX = 64 << 10 };

/* The first error of the standard output; later ones say less. */
static int out_errno;

/* ---- The standard descriptors --------------------------------------------------------------- */

void out_init(void)
{
	/* Opened the wrong way round, so that using one that was closed is an error and not silence. */
	static const int modes[] = {O_WRONLY, O_RDONLY, O_RDONLY};
	for (int fd = 0; fd <= 2; fd++) {
		/* open takes the lowest free number, which is this one. */
		if (fcntl(fd, F_GETFD) < 0 && errno == EBADF && open("/dev/null", modes[fd]) != fd)
			abort();
	}
	/* A reader that ended early ends neither a server nor what a command still has to do, and a
	 * limit on the size of files is an error to be told. */
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN);
}

void out_bytes(const char *bytes, size_t size)
{
	if (fwrite(bytes, 1, size, stdout) != size && !out_errno)
		out_errno = errno;
}

bool out_flush(void)
{
	if (fflush(stdout) != 0 && !out_errno)
		out_errno = errno;
	return !out_errno;
}

bool out_reader_ended(void)
{
	return out_errno == EPIPE;
}

int out_finish(int code)
{
	out_flush();
	/* Some file systems report only here that there was no space. */
	if (close(STDOUT_FILENO) != 0 && !out_errno)
		out_errno = errno;
	if (!out_errno || out_reader_ended())
		return code;
	say("the output could not be written: %s", strerror(out_errno));
	return CLI_ERROR;
}

/* ---- Text for people ------------------------------------------------------------------------ */

static bool is_control(const char *bytes, size_t size)
{
	unsigned char first = (unsigned char)bytes[0];
	if (size == 1)
		return first < 0x20 || first == 0x7f;
	return first == 0xc2 && (unsigned char)bytes[1] < 0xa0; /* U+0080..U+009F */
}

static void add_safe(struct str *out, const char *text)
{
	size_t size = strlen(text);
	for (size_t i = 0; i < size;) {
		size_t step = utf8_size(text + i, size - i);
		if (step == 0)
			str_addf(out, "\\x%02x", (unsigned char)text[i]);
		else if (text[i] == '\t')
			str_adds(out, "    ");
		else if (is_control(text + i, step) && text[i] != '\n')
			str_addf(out, "\\u%04x", (unsigned char)text[i + step - 1]);
		else
			str_add(out, text + i, step);
		i += step ? step : 1;
	}
}

void out_text(const char *text)
{
	struct str safe = STR_INIT(OUTPUT_BYTES_MAX);
	add_safe(&safe, text);
	if (safe.failed)
		out_errno = out_errno ? out_errno : ENOMEM;
	else
		out_bytes(str_text(&safe), safe.size);
	str_release(&safe);
}

static void add_formatted(struct str *out, const char *format, va_list args)
{
	char *text = NULL;
	if (vasprintf(&text, format, args) < 0)
		out->failed = true;
	else
		add_safe(out, text);
	free(text);
}

void out_textf(const char *format, ...)
{
	va_list args;
	struct str safe = STR_INIT(OUTPUT_BYTES_MAX);
	va_start(args, format);
	add_formatted(&safe, format, args);
	va_end(args);
	if (safe.failed)
		out_errno = out_errno ? out_errno : ENOMEM;
	else
		out_bytes(str_text(&safe), safe.size);
	str_release(&safe);
}

bool out_line(const struct str *line)
{
	if (line->failed) {
		say_no_memory();
		return false;
	}
	out_bytes(str_text(line), line->size);
	out_bytes("\n", 1);
	return true;
}

bool out_row(const struct row_shape *shape, const void *row)
{
	struct str out = STR_INIT(OUTPUT_BYTES_MAX);
	row_add_object(&out, NULL, shape, row, ROW_WHOLE);
	bool ok = out_line(&out);
	str_release(&out);
	return ok;
}

void say(const char *format, ...)
{
	va_list args;
	struct str safe = STR_INIT(SAY_BYTES_MAX);
	va_start(args, format);
	add_formatted(&safe, format, args);
	va_end(args);
	/* In one piece, so that the lines of several processes do not mix. */
	fprintf(stderr, "ibid: %s\n", safe.failed ? "out of memory" : str_text(&safe));
	str_release(&safe);
}

int say_err(const struct ibid_err *err)
{
	say("%s", *err->text ? err->text : ibid_code_name(err->code));
	return CLI_ERROR;
}

int say_no_memory(void)
{
	say("out of memory");
	return CLI_ERROR;
}

/* ---- Colour --------------------------------------------------------------------------------- */

static bool colours(void)
{
	const char *no_color = getenv("NO_COLOR"), *term = getenv("TERM");
	if ((no_color && *no_color) || (term && strcmp(term, "dumb") == 0))
		return false;
	return isatty(STDOUT_FILENO);
}

void out_painted(enum paint paint, const char *text)
{
	static const char *const codes[] = {
	    [PAINT_GOOD] = "\033[32m",
	    [PAINT_WARN] = "\033[33m",
	    [PAINT_BAD] = "\033[31m",
	    [PAINT_HEAD] = "\033[1m",
	};
	bool painted = paint != PAINT_PLAIN && colours();
	if (painted)
		out_bytes(codes[paint], strlen(codes[paint]));
	out_text(text);
	if (painted)
		out_bytes("\033[0m", 4);
}

enum paint paint_of_word(const char *word)
{
	static const struct {
		const char *word;
		enum paint paint;
	} words[] = {
	    {"executed", PAINT_GOOD},  {"replayed", PAINT_GOOD},    {"linked", PAINT_GOOD},
	    {"COMPLETED", PAINT_GOOD}, {"ok", PAINT_GOOD},          {"in_progress", PAINT_WARN},
	    {"ACCEPTED", PAINT_WARN},  {"IN_PROGRESS", PAINT_WARN}, {"warn", PAINT_WARN},
	    {"rejected", PAINT_BAD},   {"REJECTED", PAINT_BAD},     {"conflict", PAINT_BAD},
	    {"failed", PAINT_BAD},     {"FAILED", PAINT_BAD},       {"unknown", PAINT_BAD},
	    {"UNKNOWN", PAINT_BAD},    {"expired", PAINT_BAD},      {"refuse", PAINT_BAD},
	    {"RESOLVED", PAINT_GOOD},  {"OPEN", PAINT_WARN},        {"medium", PAINT_WARN},
	    {"high", PAINT_BAD},       {"critical", PAINT_BAD},     {"left", PAINT_BAD},
	    {"stale", PAINT_WARN},     {"PUBLISHED", PAINT_GOOD},   {"CLAIMED", PAINT_WARN},
	    {"PARKED", PAINT_BAD},
	};
	for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
		if (strcmp(word, words[i].word) == 0)
			return words[i].paint;
	}
	return PAINT_PLAIN;
}

/* ---- Tables --------------------------------------------------------------------------------- */

static size_t width(const char *text)
{
	return utf8_width(text, strlen(text));
}

/* A cell is one line. */
static const char *cell_of(struct arena *arena, const char *text)
{
	struct str safe = STR_INIT(OUTPUT_BYTES_MAX);
	add_safe(&safe, text ? text : "-");
	char *cell = safe.failed ? NULL : arena_strdup(arena, str_text(&safe));
	str_release(&safe);
	if (!cell)
		return "";
	for (char *c = cell; (c = strchr(c, '\n'));)
		*c = ' ';
	return cell;
}

void table_add(struct table *table, const char *const *cells)
{
	if (table->count + table->columns > table->room) {
		size_t room = 2 * table->room + 8 * table->columns;
		const char **more = arena_array(table->arena, room, sizeof *more);
		if (!more)
			return;
		if (table->count)
			memcpy(more, table->cells, table->count * sizeof *more);
		table->cells = more;
		table->room = room;
	}
	for (size_t i = 0; i < table->columns; i++)
		table->cells[table->count++] = cell_of(table->arena, cells[i]);
}

static size_t column_width(const struct table *table, size_t column)
{
	size_t most = table->heads ? width(table->heads[column]) : 0;
	for (size_t i = column; i < table->count; i += table->columns) {
		size_t wide = width(table->cells[i]);
		most = wide > most ? wide : most;
	}
	return most;
}

static void print_row(const struct table *table, const char *const *cells, const size_t *widths,
                      bool head)
{
	for (size_t i = 0; i < table->columns; i++) {
		enum paint paint = head ? PAINT_HEAD : PAINT_PLAIN;
		if (!head && i == table->painted)
			paint = paint_of_word(cells[i]);
		out_painted(paint, cells[i]);
		if (i + 1 < table->columns) /* no blanks at the end of a line */
			out_textf("%*s", (int)(widths[i] - width(cells[i])) + 2, "");
	}
	out_bytes("\n", 1);
}

void table_print(const struct table *table)
{
	size_t widths[TABLE_COLUMNS_MAX];
	assert(table->columns <= TABLE_COLUMNS_MAX);
	for (size_t i = 0; i < table->columns; i++)
		widths[i] = column_width(table, i);
	if (table->heads)
		print_row(table, table->heads, widths, true);
	for (size_t i = 0; i < table->count; i += table->columns)
		print_row(table, table->cells + i, widths, false);
}

/* As wide as the longest name of a field, "  partition key". */
enum { FIELD_COLUMNS = 15 };

void field_begin(const char *name)
{
	assert(strlen(name) <= FIELD_COLUMNS);
	out_textf("%-*s ", FIELD_COLUMNS, name);
}

void field_print(const char *name, const char *value)
{
	if (!value)
		return;
	field_begin(name);
	for (size_t line; (line = strcspn(value, "\n")), value[line]; value += line + 1)
		out_textf("%.*s\n%*s", (int)line, value, FIELD_COLUMNS + 1, "");
	out_textf("%s\n", value);
}

void section_print(const char *title, size_t count)
{
	out_text("\n");
	out_painted(PAINT_HEAD, title);
	out_textf(" (%zu)\n", count);
}

/* ---- Values as text ------------------------------------------------------------------------- */

const char *plural(int64_t count)
{
	return count == 1 ? "" : "s";
}

const char *id_text(struct arena *arena, struct uuid id)
{
	static const struct uuid none;
	char text[UUID_TEXT_SIZE];
	if (memcmp(&id, &none, sizeof id) == 0)
		return NULL;
	uuid_write(id, text);
	return arena_strdup(arena, text);
}

const char *time_text(struct arena *arena, int64_t us)
{
	char text[INSTANT_TEXT_SIZE];
	if (!us)
		return NULL;
	instant_write(us, text);
	return arena_strdup(arena, text);
}

const char *duration_text(struct arena *arena, int64_t us)
{
	char text[INSTANT_TEXT_SIZE];
	duration_write(us, text);
	return arena_strdup(arena, text);
}

const char *line_text(struct arena *arena, const char *text)
{
	char *copy = text ? arena_strdup(arena, text) : NULL;
	for (char *at = copy ? strpbrk(copy, "\r\n") : NULL; at; at = strpbrk(at, "\r\n"))
		*at = ' ';
	return copy;
}

const char *thing_text(struct arena *arena, const char *type, const char *id)
{
	if (!type || !id)
		return id;
	return arena_printf(arena, "%s %s", type, id);
}
