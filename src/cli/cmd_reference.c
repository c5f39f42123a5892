/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_reference.c -- look at external references, from either side. */
#include "cli/cli.h"
#include "cli/output.h"

static bool print_json(struct arena *arena, const struct reference_row *rows, size_t count)
{
	bool ok = true;
	for (size_t i = 0; ok && i < count; i++) {
		struct str out = STR_INIT(OUTPUT_BYTES_MAX);
		obj_begin(&out, NULL, '{');
		obj_text(&out, "tenant", rows[i].tenant);
		obj_text(&out, "source_system", rows[i].source_system);
		obj_text(&out, "external_id", rows[i].external_id);
		obj_text(&out, "resource_type", rows[i].resource_type);
		obj_text(&out, "resource_id", rows[i].resource_id);
		obj_text(&out, "command_id", id_text(arena, rows[i].command_id));
		obj_text(&out, "at", time_text(arena, rows[i].at_us));
		obj_end(&out, '}');
		ok = out_line(&out);
		str_release(&out);
	}
	return ok;
}

static bool print_table(struct arena *arena, const struct reference_row *rows, size_t count)
{
	static const char *const heads[] = {"SOURCE", "EXTERNAL", "TYPE", "ID", "COMMAND", "AT"};
	enum { COLUMNS = sizeof heads / sizeof *heads };
	struct table table = {.arena = arena, .heads = heads, .columns = COLUMNS, .painted = COLUMNS};
	for (size_t i = 0; i < count; i++) {
		const char *cells[COLUMNS] = {
		    rows[i].source_system,
		    rows[i].external_id,
		    rows[i].resource_type,
		    rows[i].resource_id,
		    id_text(arena, rows[i].command_id),
		    time_text(arena, rows[i].at_us),
		};
		table_add(&table, cells);
	}
	table_print(&table);
	return true;
}

static enum ibid_code find(struct store *store, struct arena *arena,
                           const struct reference_filter *filter, struct reference_row **ret,
                           size_t *ret_count, struct ibid_err *err)
{
	enum ibid_code code = store_list_references(store, arena, filter, ret, ret_count, err);
	if (code || *ret_count)
		return code;
	if (filter->external_id)
		return err_set(err, IBID_NOT_FOUND, "tenant %s has no resource that is %s of %s",
		               filter->tenant, filter->external_id, filter->source_system);
	return err_set(err, IBID_NOT_FOUND, "tenant %s has no external id of %s %s", filter->tenant,
	               filter->resource_type, filter->resource_id);
}

/* One side, the whole of it, and not both. */
static bool names_side(const struct reference_filter *filter)
{
	bool outside = filter->source_system && filter->external_id;
	bool inside = filter->resource_type && filter->resource_id;
	return outside ? !filter->resource_type && !filter->resource_id
	               : inside && !filter->source_system && !filter->external_id;
}

int cmd_reference_show(const struct args *args)
{
	struct arena arena = {0};
	struct ibid_err err = {0};
	struct store *store = NULL;
	struct reference_row *rows = NULL;
	size_t count = 0;
	int exit = CLI_OK;
	struct reference_filter filter = {
	    .tenant = args->values[OPT_TENANT],
	    .source_system = args->values[OPT_SOURCE],
	    .external_id = args->values[OPT_EXTERNAL],
	    .resource_type = args->values[OPT_TYPE],
	    .resource_id = args->values[OPT_ID],
	};
	if (!names_side(&filter))
		return usage_error(
		    args->command,
		    "name the resource from outside by --source and --external, or from inside "
		    "by --type and --id");
	enum ibid_code code = open_store(args, false, true, &store, &err);
	if (!code)
		code = find(store, &arena, &filter, &rows, &count, &err);
	if (code)
		exit = say_err(&err);
	else if (!(args_has(args, OPT_JSON) ? print_json : print_table)(&arena, rows, count))
		exit = CLI_ERROR;
	store_close(store);
	arena_release(&arena);
	return exit;
}
