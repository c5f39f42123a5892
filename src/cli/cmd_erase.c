/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_erase.c -- forget on request, and show who had what forgotten. */
#include "cli/cli.h"
#include "cli/output.h"
#include "cli/page.h"
#include "retention/erase.h"

#include <stdlib.h>

enum { BATCH_MAX = 100000 };

static bool read_batch(const char *given, size_t *ret)
{
	size_t batch = 0;
	for (const char *c = given; c && *c; c++) {
		if (*c < '0' || *c > '9' || batch > BATCH_MAX)
			return false;
		batch = 10 * batch + (size_t)(*c - '0');
	}
	*ret = batch;
	return !given || (batch >= 1 && batch <= BATCH_MAX);
}

/* ---- Erasing -------------------------------------------------------------------------------- */

static bool print_report_json(const struct erasure_report *report)
{
	struct str out = STR_INIT(OUTPUT_BYTES_MAX);
	char *json = erasure_json(report);
	out.failed = !json;
	str_adds(&out, json ? json : "");
	bool ok = out_line(&out);
	str_release(&out);
	free(json);
	return ok;
}

static void print_report(const struct erasure_report *report)
{
	const struct erasure_count *count = &report->count;
	if (!count->commands && !count->names) {
		say("nothing to erase");
		return;
	}
	out_textf("%s\n", report->dry_run ? "would be erased" : "erased");
#define COUNT_TEXT(name, meaning) out_textf("%10lld  %s\n", (long long)count->name, meaning);
	ERASURE_COUNTS(COUNT_TEXT)
#undef COUNT_TEXT
}

static int erase(struct store *store, const struct args *args, const struct ibid_erasure *erasure)
{
	struct ibid_err err = {0};
	struct erasure_report report;
	if (ledger_erase(store, env_system(), erasure, &report, &err))
		return say_err(&err);
	if (!args_has(args, OPT_JSON))
		print_report(&report);
	else if (!print_report_json(&report))
		return CLI_ERROR;
	if (!report.left)
		return CLI_OK;
	say("left alone because they have no outcome yet: %lld command%s. Run the same again later: "
	    "`ibid command list --state in_progress` (or unknown) shows them",
	    (long long)report.left, plural(report.left));
	return CLI_AGAIN;
}

/* ---- Listing -------------------------------------------------------------------------------- */

static bool print_rows_json(struct arena *arena, const struct erasure_row *rows, size_t count)
{
	bool ok = true;
	(void)arena;
	for (size_t i = 0; ok && i < count; i++)
		ok = out_row(&erasure_shape, &rows[i]);
	return ok;
}

static bool print_rows(struct arena *arena, const struct erasure_row *rows, size_t count)
{
	static const char *const heads[] = {"AT",        "TENANT",   "BY", "REASON",
	                                    "SELECTION", "COMMANDS", ""};
	enum { COLUMNS = sizeof heads / sizeof *heads };
	struct table table = {.arena = arena, .heads = heads, .columns = COLUMNS, .painted = COLUMNS};
	for (size_t i = 0; i < count; i++)
		table_add(&table, (const char *[COLUMNS]){
		                      time_text(arena, rows[i].at_us), rows[i].tenant, rows[i].by,
		                      rows[i].reason, rows[i].selection,
		                      arena_printf(arena, "%lld", (long long)rows[i].count.commands),
		                      rows[i].finished_us ? "" : "not finished"});
	if (count)
		table_print(&table);
	else
		say("no erasures");
	return true;
}

static int list(struct store *store, const struct args *args, size_t limit)
{
	struct arena arena = {0};
	struct ibid_err err = {0};
	struct erasure_row *rows = NULL;
	size_t count = 0;
	int exit = CLI_OK;
	if (store_list_erasures(store, &arena, args->values[OPT_TENANT], limit, &rows, &count, &err))
		exit = say_err(&err);
	else if (!(args_has(args, OPT_JSON) ? print_rows_json : print_rows)(&arena, rows, count))
		exit = CLI_ERROR;
	arena_release(&arena);
	return exit;
}

/* ---- Both ----------------------------------------------------------------------------------- */

/* The scope of the command that is named by its key, as the store has it. */
static enum ibid_code resolve_scope(struct store *store, struct arena *arena,
                                    const struct args *args, const char **ret, struct ibid_err *err)
{
	struct identity identity;
	*ret = args->values[OPT_SCOPE];
	if (!*ret || !args_has(args, OPT_OPERATION) || !args_has(args, OPT_KEY))
		return IBID_OK;
	enum ibid_code code = command_by_key(store, arena, args, &identity, err);
	if (!code)
		*ret = identity.scope;
	return code;
}

int cmd_erase(const struct args *args)
{
	const char *const *values = args->values;
	struct arena arena = {0};
	struct ibid_err err = {0};
	struct store *store = NULL;
	size_t batch = 0, limit;
	bool lists = args_has(args, OPT_LIST);
	if (!lists && !values[OPT_TENANT])
		return usage_missing(args, OPT_TENANT);
	if (!lists && !values[OPT_REASON])
		return usage_missing(args, OPT_REASON);
	if (!read_batch(values[OPT_BATCH], &batch))
		return usage_error(args->command, "--batch is a number from 1 to %d", BATCH_MAX);
	int exit = read_limit(args, &limit);
	if (exit)
		return exit;
	const char *scope = NULL;
	enum ibid_code code = open_store(args, false, true, &store, &err);
	if (!code)
		code = resolve_scope(store, &arena, args, &scope, &err);
	exit = code    ? say_err(&err)
	       : lists ? list(store, args, limit)
	               : erase(store, args,
	                       IBID_ERASURE(.tenant = values[OPT_TENANT], .command_id = values[OPT_ID],
	                                    .operation = values[OPT_OPERATION], .key = values[OPT_KEY],
	                                    .scope = scope, .resource_type = values[OPT_RESOURCE_TYPE],
	                                    .resource_id = values[OPT_RESOURCE_ID],
	                                    .actor = values[OPT_ACTOR],
	                                    .by = values[OPT_BY] ? values[OPT_BY] : user_name(&arena),
	                                    .reason = values[OPT_REASON], .batch = batch,
	                                    .dry_run = args_has(args, OPT_DRY_RUN)));
	store_close(store);
	arena_release(&arena);
	return exit;
}
