/* SPDX-License-Identifier: Apache-2.0 */
/* page.h -- lists, a page at a time: which rows are asked for, how they are shown as JSON or as a
 * table, and how to go on behind them. */
#ifndef CLI_PAGE_H
#define CLI_PAGE_H

#include "cli/cli.h"
#include "cli/output.h"

enum { LIMIT_DEFAULT = 50, LIMIT_MAX = 1000 };

/* --limit: a number from 1 to LIMIT_MAX. CLI_OK, or CLI_USAGE after telling. */
int read_limit(const struct args *args, size_t *ret);

/* --limit and --after of a list of `what` ("a command"). CLI_OK, or CLI_USAGE after telling.
 * `after` is where the id is kept; `*ret_after` is NULL when none was given. */
int read_page(const struct args *args, const char *what, size_t *ret_limit, struct uuid *after,
              const struct uuid **ret_after);

/* How rows of one kind are read and shown. */
struct listing {
	const char *none; /* said in place of an empty table: "no commands" */
	/* Its columns are those of JSON and of the table; NULL: what follows says. */
	const struct row_shape *shape;
	size_t row_size;
	const char *const *heads; /* as in struct table */
	size_t columns, painted;
	/* NULL: the filter is a struct sql_in. */
	enum ibid_code (*read)(struct store *store, struct arena *arena, const void *filter, void **ret,
	                       size_t *ret_count, struct ibid_err *err);
	void (*row_json)(struct str *out, struct arena *arena, const void *row, int64_t now_us);
	void (*add_row)(struct table *table, const void *row, int64_t now_us);
	/* What has to be said about the rows of a table, after it; NULL: nothing. */
	void (*notes)(struct arena *arena, const void *rows, size_t count);
	/* What --after takes to go on behind the row; NULL: there are no pages. */
	const char *(*place)(struct arena *arena, const void *row);
};

/* Open --store, read the rows that `filter` asks for and show them. Returns the exit code. `limit`
 * is the filter's own, and is changed; NULL: it has none, and all rows are shown. */
int list_show(const struct args *args, struct arena *arena, const struct listing *listing,
              const void *filter, size_t *limit);

#endif
