/* SPDX-License-Identifier: Apache-2.0 */
/* page.c -- lists, a page at a time. */
#include "cli/page.h"

#include <assert.h>
#include <ctype.h>
#include <inttypes.h>
#include <string.h>

static bool limit_read(const char *given, size_t *ret)
{
	size_t limit = 0;
	for (const char *c = given; *c; c++) {
		if (*c < '0' || *c > '9' || limit > LIMIT_MAX)
			return false;
		limit = 10 * limit + (size_t)(*c - '0');
	}
	*ret = limit;
	return limit >= 1 && limit <= LIMIT_MAX;
}

int read_limit(const struct args *args, size_t *ret)
{
	const char *given = args->values[OPT_LIMIT];
	*ret = LIMIT_DEFAULT;
	if (given && !limit_read(given, ret))
		return usage_error(args->command, "--limit is a number from 1 to %d", LIMIT_MAX);
	return CLI_OK;
}

int read_page(const struct args *args, const char *what, size_t *ret_limit, struct uuid *after,
              const struct uuid **ret_after)
{
	const char *id = args->values[OPT_AFTER];
	int exit = read_limit(args, ret_limit);
	*ret_after = NULL;
	if (exit)
		return exit;
	if (id && !uuid_read(id, after))
		return usage_error(args->command, "--after is the id of %s, not \"%.100s\"", what, id);
	if (id)
		*ret_after = after;
	return CLI_OK;
}

/* ---- As their shape says -------------------------------------------------------------------- */

static bool is_shown(const struct row_column *column)
{
	return !column->json || *column->json;
}

/* "SOURCE SYSTEM" */
static const char *head_of(struct arena *arena, const struct row_column *column)
{
	char *head = arena_strdup(arena, column->name);
	for (char *at = head; at && *at; at++)
		*at = (char)(*at == '_' ? ' ' : toupper((unsigned char)*at));
	return head;
}

static const char *cell_of(struct arena *arena, const struct row_column *column, const void *row)
{
	struct sql_value value = row_value(column, row, arena);
	char hash[SHA256_TEXT_SIZE];
	if (value.null)
		return NULL;
	switch (value.type) {
	case COLUMN_LONG: return arena_printf(arena, "%" PRId64, value.number);
	case COLUMN_BOOL: return value.number ? "yes" : "no";
	case COLUMN_TIME:
	case COLUMN_TIME_OR_NONE: return time_text(arena, value.number);
	case COLUMN_UUID: return id_text(arena, value.uuid);
	case COLUMN_HASH: sha256_write(&value.hash, hash); return arena_strdup(arena, hash);
	default: return line_text(arena, value.text);
	}
}

/* The heads, without a row. */
static size_t cells_of(struct arena *arena, const struct row_shape *shape, const void *row,
                       const char *ret[TABLE_COLUMNS_MAX])
{
	size_t count = 0;
	for (size_t i = 0; i < shape->count && count < TABLE_COLUMNS_MAX; i++) {
		const struct row_column *column = &shape->columns[i];
		if (is_shown(column))
			ret[count++] = row ? cell_of(arena, column, row) : head_of(arena, column);
	}
	return count;
}

/* ---- Showing -------------------------------------------------------------------------------- */

static const void *row_at(const struct listing *listing, const void *rows, size_t i)
{
	size_t size = listing->shape ? listing->shape->size : listing->row_size;
	return (const char *)rows + i * size;
}

static void add_json(struct str *out, struct arena *arena, const struct listing *listing,
                     const void *row, int64_t now_us)
{
	if (!listing->shape) {
		assert(listing->row_json);
		listing->row_json(out, arena, row, now_us);
		return;
	}
	obj_begin(out, NULL, '{');
	row_add_json(out, listing->shape, row, ROW_WHOLE);
	obj_end(out, '}');
}

static bool print_rows_json(struct arena *arena, const struct listing *listing, const void *rows,
                            size_t count)
{
	bool ok = true;
	int64_t now_us = env_wall_us(env_system());
	struct str out = STR_INIT(OUTPUT_BYTES_MAX);
	for (size_t i = 0; ok && i < count; i++) {
		str_clear(&out);
		add_json(&out, arena, listing, row_at(listing, rows, i), now_us);
		ok = out_line(&out);
	}
	str_release(&out);
	return ok;
}

static bool print_rows(struct arena *arena, const struct listing *listing, const void *rows,
                       size_t count)
{
	struct table table = {.arena = arena,
	                      .heads = listing->heads,
	                      .columns = listing->columns,
	                      .painted = listing->painted};
	const char *heads[TABLE_COLUMNS_MAX], *cells[TABLE_COLUMNS_MAX];
	int64_t now_us = env_wall_us(env_system());
	assert(listing->shape || listing->add_row);
	if (listing->shape) {
		table.heads = heads;
		table.columns = table.painted = cells_of(arena, listing->shape, NULL, heads);
	}
	for (size_t i = 0; i < count; i++) {
		const void *row = row_at(listing, rows, i);
		if (!listing->shape)
			listing->add_row(&table, row, now_us);
		else if (cells_of(arena, listing->shape, row, cells))
			table_add(&table, cells);
	}
	if (count)
		table_print(&table);
	else
		say("%s", listing->none);
	if (listing->notes)
		listing->notes(arena, rows, count);
	return true;
}

int list_show(const struct args *args, struct arena *arena, const struct listing *listing,
              const void *filter, size_t *limit)
{
	struct ibid_err err = {0};
	struct store *store = NULL;
	void *rows = NULL;
	size_t count = 0, shown_max = limit ? (*limit)++ : SIZE_MAX; /* one more: is there a next? */
	int exit = CLI_OK;
	enum ibid_code code = open_store(args, false, true, &store, &err);
	if (!code)
		code = listing->read ? listing->read(store, arena, filter, &rows, &count, &err)
		                     : sql_list(store, *(const struct sql_in *)filter, arena,
		                                listing->shape, &rows, &count, &err);
	size_t shown = count < shown_max ? count : shown_max;
	if (code)
		exit = say_err(&err);
	else if (!(args_has(args, OPT_JSON) ? print_rows_json : print_rows)(arena, listing, rows,
	                                                                    shown))
		exit = CLI_ERROR;
	else if (count > shown)
		say("there are more: add --after %s",
		    listing->place(arena, row_at(listing, rows, shown - 1)));
	store_close(store);
	return exit;
}

int cmd_list(const struct args *args)
{
	const struct cli_list *list = &args->command->list;
	const struct lookup of = {.tenant = args->values[OPT_TENANT]};
	const struct sql_in in = {list->statement, &lookup_shape, &of};
	const struct listing listing = {.none = list->none, .shape = list->shape};
	struct arena arena = {0};
	int exit = list_show(args, &arena, &listing, &in, NULL);
	arena_release(&arena);
	return exit;
}
