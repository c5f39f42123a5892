/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_contract.c -- look at a directory of contracts, and keep it in a store. */
#include "base/env.h"
#include "cli/cli.h"
#include "cli/output.h"
#include "command/declared.h"
#include "command/ledger.h"
#include "command/params.h"
#include "command/script_check.h"
#include "contract/matrix.h"
#include "contract/review.h"
#include "store/script.h"

#include <stdlib.h>
#include <string.h>

/* ---- check ---------------------------------------------------------------------------------- */

static bool print_problem_json(const struct contract_problem *problem)
{
	struct str out = STR_INIT(OUTPUT_BYTES_MAX);
	obj_begin(&out, NULL, '{');
	obj_text(&out, "file", problem->file);
	obj_int(&out, "line", problem->line);
	obj_text(&out, "text", problem->text);
	obj_text(&out, "question", problem->question);
	obj_end(&out, '}');
	bool ok = out_line(&out);
	str_release(&out);
	return ok;
}

static void print_problem(const struct contract_problem *problem)
{
	if (problem->line)
		out_textf("%s:%d: %s\n", problem->file, problem->line, problem->text);
	else
		out_textf("%s: %s\n", problem->file, problem->text);
	if (problem->question)
		out_textf("  %s\n", problem->question);
}

static void say_count(const struct contracts *contracts, size_t problems)
{
	say("%zu problem%s in %s", problems, plural((int64_t)problems), contracts_dir(contracts));
}

static int print_problems(const struct args *args, const struct contracts *contracts)
{
	bool ok = true;
	size_t count = contracts_problem_count(contracts);
	for (size_t i = 0; ok && i < count; i++) {
		if (args_has(args, OPT_JSON))
			ok = print_problem_json(contracts_problem(contracts, i));
		else
			print_problem(contracts_problem(contracts, i));
	}
	say_count(contracts, count);
	return ok ? CLI_FOUND : CLI_ERROR;
}

static const struct {
	const char *name;
	enum script_dialect dialect;
} dialects[] = {{"sqlite", DIALECT_SQLITE}, {"postgres", DIALECT_POSTGRES}};

/* Split a script as each store that has it would; `contract` as in params_specs. False when one is
 * refused, which is then printed. */
static bool check_script(const struct args *args, const struct contracts *contracts,
                         const struct contract *contract, const char *file)
{
	struct arena arena = {0};
	struct param_spec *specs = NULL;
	size_t count = 0;
	struct ibid_err err = {0};
	bool good = params_specs(&arena, contract, &specs, &count, &err) == IBID_OK;
	for (size_t i = 0; good && i < sizeof dialects / sizeof *dialects; i++) {
		const char *text = NULL, *name = contract_file_name(&arena, file, dialects[i].name);
		struct script_statements parts;
		if (contracts_read_file(contracts, &arena, file, dialects[i].name, &text, &err))
			continue; /* written for the other store only */
		enum ibid_code code = script_split(&arena, dialects[i].dialect, name, text, specs, count,
		                                   &parts, &err);
		if (!code && contract && file == contract->script)
			code = declared_check_script(contract, name, &parts, &err);
		if (code) {
			struct contract_problem problem = {.file = contracts_dir(contracts), .text = err.text};
			good = false;
			if (args_has(args, OPT_JSON))
				(void)print_problem_json(&problem);
			else
				out_textf("%s/%s\n", problem.file, problem.text);
		}
	}
	arena_release(&arena);
	return good;
}

static size_t bad_scripts(const struct args *args, const struct contracts *contracts)
{
	size_t bad = 0;
	for (size_t i = 0; i < contracts_count(contracts); i++) {
		const struct contract *contract = contracts_at(contracts, i);
		if (contract->script)
			bad += !check_script(args, contracts, contract, contract->script);
		if (contract->already)
			bad += !check_script(args, contracts, contract, contract->already);
		if (contract->state)
			bad += !check_script(args, contracts, contract, contract->state);
		if (contract->staged.query)
			bad += !check_script(args, contracts, NULL, contract->staged.query);
		for (size_t k = 0; k < contract->unique_count; k++)
			bad += !check_script(args, contracts, contract, contract->uniques[k].find);
	}
	return bad;
}

/* What a store says about the scripts, printed as it comes. */
struct script_report {
	const struct args *args;
	size_t bad;
};

static void print_finding(void *user, enum finding_level level, const char *what,
                          const char *advice)
{
	struct script_report *report = user;
	char *file = strdup(what), *line = file ? strchr(file, ':') : NULL;
	(void)advice;
	if (level != FINDING_REFUSE) {
		say("warning: %s", what);
	} else if (args_has(report->args, OPT_JSON) && line) {
		char *text = strstr(line, ": ");
		*line = 0;
		(void)print_problem_json(&(struct contract_problem){
		    .file = file, .line = atoi(line + 1), .text = text ? text + 2 : what});
	} else {
		out_textf("%s\n", what);
	}
	report->bad += level == FINDING_REFUSE;
	free(file);
}

/* With a store: as its database sees them; otherwise as far as their texts show it. Who has set one
 * for all commands may check contracts before the store is made. */
static enum ibid_code check_scripts(const struct args *args, const struct contracts *contracts,
                                    size_t *ret_bad, struct ibid_err *err)
{
	struct script_report report = {.args = args};
	struct store *store = NULL;
	if (!args_has(args, OPT_STORE)) {
		*ret_bad = bad_scripts(args, contracts);
		return IBID_OK;
	}
	enum ibid_code code = open_store(args, false, true, &store, err);
	if ((code == IBID_NOT_FOUND || code == IBID_SCHEMA) &&
	    args->from_environment & BIT(OPT_STORE)) {
		say("warning: no database has prepared the scripts: %s", err->text);
		*ret_bad = bad_scripts(args, contracts);
		return IBID_OK;
	}
	if (!code)
		code = script_check(store, contracts, NULL, print_finding, &report, err);
	store_close(store);
	*ret_bad = report.bad;
	return code;
}

int cmd_contract_check(const struct args *args)
{
	struct ibid_err err = {0};
	struct contracts *contracts = NULL;
	int exit = CLI_OK;
	size_t bad = 0;
	if (!dir_of(args))
		return usage_no_dir(args);
	enum ibid_code code = contracts_load(dir_of(args), &contracts, &err);
	size_t count = contracts ? contracts_count(contracts) + contracts_event_count(contracts) : 0;
	bool open = code == IBID_CONTRACT;
	if (!code)
		code = check_scripts(args, contracts, &bad, &err);
	if (open)
		exit = print_problems(args, contracts);
	else if (code)
		exit = say_err(&err);
	else if (!bad && !args_has(args, OPT_JSON))
		out_textf("%zu contract%s, 0 problems\n", count, plural((int64_t)count));
	if (!code && bad) {
		say_count(contracts, bad);
		exit = CLI_FOUND;
	}
	contracts_free(contracts);
	return exit;
}

/* ---- matrix --------------------------------------------------------------------------------- */

static bool format_of(const struct args *args, enum matrix_format *ret)
{
	static const char *const names[] = {
	    [MATRIX_TEXT] = "text",
	    [MATRIX_MARKDOWN] = "markdown",
	    [MATRIX_JSON] = "json",
	};
	const char *given = args->values[OPT_FORMAT];
	if (!given)
		given = args_has(args, OPT_JSON) ? "json" : "text";
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		if (strcmp(given, names[i]) == 0) {
			*ret = (enum matrix_format)i;
			return *ret == MATRIX_JSON || !args_has(args, OPT_JSON);
		}
	}
	return false;
}

static int usage_format(const struct args *args)
{
	return usage_error(args->command, "--format is one of text, markdown and json (and --json is "
	                                  "--format json)");
}

/* The whole of it, ended by a newline; no memory is told. */
static int print_sheets(const struct str *out)
{
	if (out->failed)
		return say_no_memory();
	out_bytes(str_text(out), out->size);
	if (out->size && out->data[out->size - 1] != '\n')
		out_bytes("\n", 1);
	return CLI_OK;
}

int cmd_contract_matrix(const struct args *args)
{
	struct ibid_err err = {0};
	struct contracts *contracts = NULL;
	enum matrix_format format;
	if (!dir_of(args))
		return usage_no_dir(args);
	if (!format_of(args, &format))
		return usage_format(args);
	if (load_contracts(dir_of(args), &contracts, &err))
		return say_err(&err);
	struct str out = STR_INIT(OUTPUT_BYTES_MAX);
	matrix_write(&out, contracts, format);
	int exit = print_sheets(&out);
	str_release(&out);
	contracts_free(contracts);
	return exit;
}

/* ---- review --------------------------------------------------------------------------------- */

struct script_trouble {
	struct arena *arena;
	const char *text; /* NULL: none yet */
};

static void keep_trouble(void *user, enum finding_level level, const char *what, const char *advice)
{
	struct script_trouble *trouble = user;
	(void)advice;
	if (level == FINDING_REFUSE)
		trouble->text = trouble->text ? arena_printf(trouble->arena, "%s; %s", trouble->text, what)
		                              : arena_strdup(trouble->arena, what);
}

/* What the store says about one contract. */
static enum ibid_code look_at(struct store *store, struct arena *arena,
                              const struct contracts *contracts, const struct contract *contract,
                              struct review_live *ret, struct ibid_err *err)
{
	struct script_trouble trouble = {.arena = arena};
	struct contract_row *kept = arena_alloc(arena, sizeof *kept);
	struct index_row *indexes = arena_array(arena, contract->unique_count + 1, sizeof *indexes);
	if (!kept || !indexes)
		return err_set(err, IBID_NOMEM, "out of memory");
	enum ibid_code code = store_get_contract(store, arena, "command", contract->name,
	                                         contract->version, kept, err);
	if (code && code != IBID_NOT_FOUND)
		return code;
	*ret = (struct review_live){
	    .store = store->ops->name, .kept = code ? NULL : kept, .indexes = indexes};
	code = script_check(store, contracts, contract, keep_trouble, &trouble, err);
	if (code)
		return code;
	ret->scripts = trouble.text;
	for (size_t i = 0; i < contract->unique_count; i++) {
		indexes[i] = (struct index_row){0};
		code = store->ops->describe_index(store, arena, contract->uniques[i].name, &indexes[i],
		                                  err);
		if (code && code != IBID_NOT_FOUND)
			return code;
	}
	return IBID_OK;
}

/* `*ret` stays NULL without --store. */
static enum ibid_code look_at_all(const struct args *args, struct arena *arena,
                                  const struct contracts *contracts, struct review_live **ret,
                                  struct ibid_err *err)
{
	struct store *store = NULL;
	if (!args_has(args, OPT_STORE))
		return IBID_OK;
	enum ibid_code code = open_store(args, false, true, &store, err);
	struct review_live *lives = arena_array(arena, contracts_count(contracts) + 1, sizeof *lives);
	if (!code && !lives)
		code = err_set(err, IBID_NOMEM, "out of memory");
	for (size_t i = 0; !code && i < contracts_count(contracts); i++)
		code = look_at(store, arena, contracts, contracts_at(contracts, i), &lives[i], err);
	store_close(store);
	if (!code)
		*ret = lives;
	return code;
}

static int print_review(const struct contracts *contracts, const struct review_live *lives,
                        enum matrix_format format)
{
	struct str out = STR_INIT(OUTPUT_BYTES_MAX);
	struct review_counts counts;
	review_write(&out, contracts, lives, format, &counts);
	int exit = print_sheets(&out);
	str_release(&out);
	return exit || !counts.fail ? exit : CLI_FOUND;
}

int cmd_contract_review(const struct args *args)
{
	struct arena arena = {0};
	struct ibid_err err = {0};
	struct contracts *contracts = NULL;
	struct review_live *lives = NULL;
	enum matrix_format format;
	if (!dir_of(args))
		return usage_no_dir(args);
	if (!format_of(args, &format))
		return usage_format(args);
	enum ibid_code code = contracts_load(dir_of(args), &contracts, &err);
	if (!code || code == IBID_CONTRACT) /* its problems are findings of the review */
		code = look_at_all(args, &arena, contracts, &lives, &err);
	int exit = code ? say_err(&err) : print_review(contracts, lives, format);
	contracts_free(contracts);
	arena_release(&arena);
	return exit;
}

/* ---- apply ---------------------------------------------------------------------------------- */

static bool print_kept_one(const struct args *args, const struct contract *contract)
{
	if (!args_has(args, OPT_JSON)) {
		out_textf("%s version %d kept\n", contract->name, contract->version);
		return true;
	}
	struct str out = STR_INIT(OUTPUT_BYTES_MAX);
	obj_begin(&out, NULL, '{');
	obj_text(&out, contract_kind_name(contract->kind), contract->name);
	obj_int(&out, "version", contract->version);
	obj_end(&out, '}');
	bool ok = out_line(&out);
	str_release(&out);
	return ok;
}

static bool print_kept(const struct args *args, const struct contracts *contracts)
{
	bool ok = true;
	for (size_t i = 0; ok && i < contracts_count(contracts); i++)
		ok = print_kept_one(args, contracts_at(contracts, i));
	for (size_t i = 0; ok && i < contracts_event_count(contracts); i++)
		ok = print_kept_one(args, contracts_event_at(contracts, i));
	return ok;
}

int cmd_contract_apply(const struct args *args)
{
	struct ibid_err err = {0};
	struct contracts *contracts = NULL;
	struct store *store = NULL;
	struct script_report report = {.args = args};
	int exit = CLI_OK;
	if (!dir_of(args))
		return usage_no_dir(args);
	enum ibid_code code = load_contracts(dir_of(args), &contracts, &err);
	if (!code)
		code = open_store(args, false, true, &store, &err);
	if (!code)
		code = script_check(store, contracts, NULL, print_finding, &report, &err);
	if (!code && !report.bad)
		code = ledger_keep_contracts(store, contracts, env_system(), &err);
	if (code) {
		exit = say_err(&err);
	} else if (report.bad) {
		say_count(contracts, report.bad);
		exit = CLI_FOUND;
	} else if (!print_kept(args, contracts)) {
		exit = CLI_ERROR;
	}
	store_close(store);
	contracts_free(contracts);
	return exit;
}
