/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_init.c -- make a store ready: `init` with contracts, `migrate` without. */
#include "api/api.h"
#include "cli/cli.h"
#include "cli/output.h"

#include <string.h>

static void print_schema(const char *store, int from, int to)
{
	if (from == 0)
		out_textf("store      %s: created, schema %d\n", store, to);
	else if (from == to)
		out_textf("store      %s: schema %d, nothing to migrate\n", store, to);
	else
		out_textf("store      %s: migrated from schema %d to %d\n", store, from, to);
}

static const char *file_state(const struct init_report *report)
{
	static const char *const names[] = {
	    [SCHEMA_APPLIED] = "applied",
	    [SCHEMA_ALREADY] = "already applied",
	    [SCHEMA_CHANGED] = "changed",
	};
	return report->has_file ? names[report->file] : "none";
}

static void print_file(const struct init_report *report, const char *store_name)
{
	if (!report->has_file)
		out_textf("tables     no schema.%s.sql\n", store_name);
	else if (report->file == SCHEMA_CHANGED)
		out_textf("tables     schema.%s.sql CHANGED since it was applied; left alone\n",
		          store_name);
	else
		out_textf("tables     schema.%s.sql %s\n", store_name, file_state(report));
}

static bool print_report(const struct args *args, const char *store,
                         const struct init_report *report)
{
	const char *name = strncmp(store, "sqlite:", 7) == 0 ? "sqlite" : "postgres";
	bool ok = true;
	if (args_has(args, OPT_JSON)) {
		struct str out = STR_INIT(OUTPUT_BYTES_MAX);
		obj_begin(&out, NULL, '{');
		obj_text(&out, "store", store);
		obj_int(&out, "schemaFrom", report->schema_from);
		obj_int(&out, "schemaTo", report->schema_to);
		obj_text(&out, "schemaFile", file_state(report));
		obj_int(&out, "contracts", (int64_t)report->contracts);
		obj_end(&out, '}');
		ok = out_line(&out);
		str_release(&out);
	} else {
		print_schema(store, report->schema_from, report->schema_to);
		print_file(report, name);
		out_textf("contracts  %zu kept\n", report->contracts);
	}
	if (report->has_file && report->file == SCHEMA_CHANGED)
		say("warning: schema.%s.sql differs from the one that was applied. ibid applies it once; "
		    "later changes of your tables are yours to migrate",
		    name);
	return ok;
}

int cmd_init(const struct args *args)
{
	struct arena arena = {0};
	struct ibid_err err = {0};
	struct init_report report;
	int exit = CLI_OK;
	if (api_init(IBID_OPTIONS(.store = args->values[OPT_STORE],
	                          .contracts = args->values[OPT_CONTRACTS]),
	             NULL, &report, &err))
		exit = say_err(&err);
	else if (!print_report(args, store_shown(&arena, args), &report))
		exit = CLI_ERROR;
	arena_release(&arena);
	return exit;
}

int cmd_migrate(const struct args *args)
{
	struct arena arena = {0};
	struct ibid_err err = {0};
	struct store *store = NULL;
	int from = 0, to = 0, exit = CLI_OK;
	enum ibid_code code = open_store(args, true, false, &store, &err);
	if (!code)
		code = store->ops->migrate(store, &from, &to, &err);
	if (code) {
		exit = say_err(&err);
	} else if (args_has(args, OPT_JSON)) {
		struct str out = STR_INIT(OUTPUT_BYTES_MAX);
		obj_begin(&out, NULL, '{');
		obj_text(&out, "store", store_shown(&arena, args));
		obj_int(&out, "schemaFrom", from);
		obj_int(&out, "schemaTo", to);
		obj_end(&out, '}');
		exit = out_line(&out) ? CLI_OK : CLI_ERROR;
		str_release(&out);
	} else {
		print_schema(store_shown(&arena, args), from, to);
	}
	store_close(store);
	arena_release(&arena);
	return exit;
}
