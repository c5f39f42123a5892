/* SPDX-License-Identifier: Apache-2.0 */
/* page.c -- lists, a page at a time. */
#include "cli/page.h"

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

static const void *row_at(const struct listing *listing, const void *rows, size_t i)
{
	return (const char *)rows + i * listing->row_size;
}

static bool print_rows_json(struct arena *arena, const struct listing *listing, const void *rows,
                            size_t count)
{
	bool ok = true;
	int64_t now_us = env_wall_us(env_system());
	struct str out = STR_INIT(OUTPUT_BYTES_MAX);
	for (size_t i = 0; ok && i < count; i++) {
		str_clear(&out);
		listing->row_json(&out, arena, row_at(listing, rows, i), now_us);
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
	int64_t now_us = env_wall_us(env_system());
	for (size_t i = 0; i < count; i++)
		listing->add_row(&table, row_at(listing, rows, i), now_us);
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
		code = listing->read(store, arena, filter, &rows, &count, &err);
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
