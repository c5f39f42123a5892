/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_doctor.c -- what is unsafe: about the database, ibid's schema in it, the libraries in use,
 * and the contracts. */
#include "broker/kafka_library.h"
#include "cli/cli.h"
#include "cli/output.h"
#include "command/script_check.h"

#include <string.h>

/* Findings are printed as they come. */
struct report {
	bool json, ok;
	size_t refused, warned;
};

static void print_json(struct report *report, const char *level, const char *what,
                       const char *advice)
{
	struct str out = STR_INIT(OUTPUT_BYTES_MAX);
	obj_begin(&out, NULL, '{');
	obj_text(&out, "level", level);
	obj_text(&out, "what", what);
	obj_text(&out, "advice", advice);
	obj_end(&out, '}');
	report->ok = out_line(&out) && report->ok;
	str_release(&out);
}

static void finding(void *user, enum finding_level level, const char *what, const char *advice)
{
	static const char *const names[] = {
	    [FINDING_OK] = "ok",
	    [FINDING_WARN] = "warn",
	    [FINDING_REFUSE] = "refuse",
	};
	struct report *report = user;
	report->refused += level == FINDING_REFUSE;
	report->warned += level == FINDING_WARN;
	if (advice && !*advice)
		advice = NULL;
	if (report->json) {
		print_json(report, names[level], what, advice);
		return;
	}
	out_painted(paint_of_word(names[level]), names[level]);
	out_textf("%*s%s\n", 8 - (int)strlen(names[level]), "", what);
	if (advice)
		out_textf("        %s\n", advice);
}

/* ---- Contracts ------------------------------------------------------------------------------ */

static void report_problem(struct report *report, struct arena *arena,
                           const struct contract_problem *problem)
{
	const char *what = problem->line ? arena_printf(arena, "%s:%d: %s", problem->file,
	                                                problem->line, problem->text)
	                                 : arena_printf(arena, "%s: %s", problem->file, problem->text);
	finding(report, FINDING_REFUSE, what ? what : problem->text, problem->question);
}

/* Is what the store keeps under this version what the file says? */
static enum ibid_code check_kept(struct report *report, struct arena *arena, struct store *store,
                                 const struct contract *contract, struct ibid_err *err)
{
	struct contract_row row;
	enum ibid_code code = store_get_contract(store, arena, contract_kind_name(contract->kind),
	                                         contract->name, contract->version, &row, err);
	const char *what = arena_printf(arena, "contract %s version %d", contract->name,
	                                contract->version);
	if (!what)
		return err_set(err, IBID_NOMEM, "out of memory");
	if (code == IBID_NOT_FOUND) {
		finding(report, FINDING_WARN, arena_printf(arena, "%s is not kept in the store yet", what),
		        "run `ibid init` or `ibid contract apply`");
		return IBID_OK;
	}
	if (code)
		return code;
	if (memcmp(&row.digest, &contract->digest, sizeof row.digest) != 0)
		finding(report, FINDING_REFUSE,
		        arena_printf(arena, "%s was changed after it was put to use", what),
		        "give the changed contract a new version");
	else
		finding(report, FINDING_OK, what, NULL);
	return IBID_OK;
}

static enum ibid_code check_contracts(struct report *report, struct arena *arena,
                                      struct store *store, const char *dir, struct ibid_err *err)
{
	struct contracts *contracts = NULL;
	enum ibid_code code = contracts_load(dir, &contracts, err);
	if (code == IBID_CONTRACT) {
		for (size_t i = 0; i < contracts_problem_count(contracts); i++)
			report_problem(report, arena, contracts_problem(contracts, i));
		code = IBID_OK;
	} else {
		for (size_t i = 0; store && !code && i < contracts_count(contracts); i++)
			code = check_kept(report, arena, store, contracts_at(contracts, i), err);
		for (size_t i = 0; store && !code && i < contracts_event_count(contracts); i++)
			code = check_kept(report, arena, store, contracts_event_at(contracts, i), err);
		if (store && !code)
			code = script_check(store, contracts, NULL, finding, report, err);
	}
	contracts_free(contracts);
	return code;
}

/* ---- The store ------------------------------------------------------------------------------ */

/* `*ret_usable`: may the tables be asked? */
static enum ibid_code check_store(struct report *report, struct store *store, bool *ret_usable,
                                  struct ibid_err *err)
{
	int version = 0;
	enum ibid_code code = store->ops->check_schema(store, &version, err);
	if (code && code != IBID_SCHEMA)
		return code;
	*ret_usable = !code;
	if (code)
		finding(report, FINDING_REFUSE, err->text, NULL);
	return store->ops->doctor(store, finding, report, err);
}

int cmd_doctor(const struct args *args)
{
	struct arena arena = {0};
	struct ibid_err err = {0};
	struct store *store = NULL;
	struct report report = {.json = args_has(args, OPT_JSON), .ok = true};
	const char *dir = args->values[OPT_CONTRACTS];
	bool usable = false;
	enum ibid_code code = open_store(args, false, false, &store, &err);
	if (!code)
		code = check_store(&report, store, &usable, &err);
	if (!code)
		kafka_library_check(finding, &report);
	if (!code && dir)
		code = check_contracts(&report, &arena, usable ? store : NULL, dir, &err);
	int exit = code ? say_err(&err) : report.refused ? CLI_FOUND : CLI_OK;
	if (!code && !report.json)
		out_textf("%zu problem%s, %zu warning%s\n", report.refused, plural((int64_t)report.refused),
		          report.warned, plural((int64_t)report.warned));
	if (!report.ok)
		exit = CLI_ERROR;
	store_close(store);
	arena_release(&arena);
	return exit;
}
