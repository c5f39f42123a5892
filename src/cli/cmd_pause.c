/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_pause.c -- what is paused, as the command line shows it. */
#include "cli/cli.h"
#include "cli/output.h"
#include "cli/page.h"
#include "cli/pause.h"

const char *pause_line(struct arena *arena, const struct pause_row *row)
{
	return arena_printf(arena, "%s%s%s since %s, by %s: %s",
	                    pause_text(arena, row->kind, row->name), *row->tenant ? " of tenant " : "",
	                    row->tenant, time_text(arena, row->since_us), row->by, row->reason);
}

void pause_say(struct arena *arena, const struct pause_row *row)
{
	say("paused: %s; to let it go on: ibid resume %s%s%s --reason R", pause_line(arena, row),
	    pause_kind_name(row->kind), *row->name ? " " : "", row->name);
}

static enum ibid_code read_rows(struct store *store, struct arena *arena, const void *tenant,
                                void **ret, size_t *ret_count, struct ibid_err *err)
{
	struct pause_row *rows = NULL;
	enum ibid_code code = store_list_pauses(store, arena, tenant, &rows, ret_count, err);
	*ret = rows;
	return code;
}

static void listed_json(struct str *out, struct arena *arena, const void *row, int64_t now_us)
{
	(void)now_us;
	(void)arena;
	row_add_object(out, NULL, &pause_shape, row, ROW_WHOLE);
}

static void add_row(struct table *table, const void *item, int64_t now_us)
{
	struct arena *arena = table->arena;
	const struct pause_row *row = item;
	const char *cells[] = {pause_kind_name(row->kind),
	                       *row->name ? row->name : NULL,
	                       *row->tenant ? row->tenant : NULL,
	                       time_text(arena, row->since_us),
	                       row->by,
	                       row->reason};
	(void)now_us;
	table_add(table, cells);
}

int cmd_pause_list(const struct args *args)
{
	static const char *const heads[] = {"PAUSED", "NAME", "TENANT", "SINCE", "BY", "REASON"};
	enum { COLUMNS = sizeof heads / sizeof *heads };
	static const struct listing listing = {
	    .row_size = sizeof(struct pause_row),
	    .none = "nothing is paused",
	    .heads = heads,
	    .columns = COLUMNS,
	    .painted = COLUMNS,
	    .read = read_rows,
	    .row_json = listed_json,
	    .add_row = add_row,
	};
	struct arena arena = {0};
	int exit = list_show(args, &arena, &listing, args->values[OPT_TENANT], NULL);
	arena_release(&arena);
	return exit;
}
