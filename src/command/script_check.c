/* SPDX-License-Identifier: Apache-2.0 */
/* script_check.c -- have the store prepare the scripts of contracts before anybody depends on them.
 */
#include "command/script_check.h"

#include "command/declared.h"
#include "command/params.h"

#include <string.h>

/* Where the contract declares what the script does not say. */
static enum ibid_code check_declared(struct arena *arena, const struct store *store,
                                     const struct contract *contract, const char *file,
                                     const char *text, const struct param_spec *specs, size_t count,
                                     struct ibid_err *err)
{
	bool postgres = strcmp(store->ops->name, "postgres") == 0;
	struct script_statements parts;
	enum ibid_code code = script_split(arena, postgres ? DIALECT_POSTGRES : DIALECT_SQLITE, file,
	                                   text, specs, count, &parts, err);
	return code ? code : declared_check_script(contract, file, &parts, err);
}

enum ibid_code script_read(struct store *store, const struct contracts *contracts,
                           const struct contract *contract, const char *file, struct script **ret,
                           struct ibid_err *err)
{
	struct arena arena = {0};
	const char *text;
	struct param_spec *specs = NULL;
	size_t count = 0;
	bool declares = contract && file == contract->script &&
	                (contract->success.status || contract->rows.count);
	enum ibid_code code = contracts_read_file(contracts, &arena, file, store->ops->name, &text,
	                                          err);
	if (!code)
		code = params_specs(&arena, contract, &specs, &count, err);
	if (!code) {
		const char *shown = contract_file_name(&arena, file, store->ops->name);
		file = shown ? shown : file;
		if (declares)
			code = check_declared(&arena, store, contract, file, text, specs, count, err);
		if (!code)
			code = store->ops->make_script(store, file, text, specs, count, ret, err);
	}
	arena_release(&arena);
	return code;
}

struct told {
	struct told *next;
	const char *text;
};

struct check {
	struct arena arena;
	struct store *store;
	const struct contracts *contracts;
	struct script **scripts; /* of `uses`, in the same order */
	struct script_use *uses;
	size_t count;
	finding_fn *fn;
	void *user;
	struct told *told;
};

/* ---- Telling -------------------------------------------------------------------------------- */

static void tell_once(struct check *check, enum finding_level level, const char *text)
{
	struct told *told = check->told;
	while (told && strcmp(told->text, text) != 0)
		told = told->next;
	if (told)
		return;
	told = arena_alloc(&check->arena, sizeof *told);
	if (told) {
		*told = (struct told){check->told, text};
		check->told = told;
	}
	check->fn(check->user, level, text, NULL);
}

static void tell(void *user, enum finding_level level, const char *what, const char *advice)
{
	struct check *check = user;
	const char *text = arena_printf(&check->arena, "%s/%s", contracts_dir(check->contracts), what);
	(void)advice;
	tell_once(check, level, text ? text : what);
}

/* ---- Collecting ----------------------------------------------------------------------------- */

/* A finding, or what keeps the store from looking. */
static enum ibid_code meet(struct check *check, enum ibid_code code, const struct ibid_err *err)
{
	const char *text = arena_strdup(&check->arena, err->text);
	switch (code) {
	case IBID_NOT_FOUND: /* these two name the directory */
	case IBID_INVALID: tell_once(check, FINDING_REFUSE, text ? text : ""); return IBID_OK;
	case IBID_CONTRACT: tell(check, FINDING_REFUSE, err->text, NULL); return IBID_OK;
	default: return code;
	}
}

static enum ibid_code add(struct check *check, const struct contract *contract, const char *file,
                          enum script_answer answer, struct ibid_err *err)
{
	struct script *script = NULL;
	if (!file)
		return IBID_OK;
	enum ibid_code code = script_read(check->store, check->contracts, contract, file, &script, err);
	if (code)
		return meet(check, code, err);
	check->scripts[check->count] = script;
	check->uses[check->count++] = (struct script_use){script, answer};
	return IBID_OK;
}

static size_t scripts_most(const struct contract *contract)
{
	return 4 + contract->unique_count;
}

static enum ibid_code add_contract(struct check *check, const struct contract *contract,
                                   struct ibid_err *err)
{
	bool declared = contract->success.status;
	enum ibid_code code = add(check, contract, contract->script,
	                          declared ? SCRIPT_ANSWERS_NEVER : SCRIPT_ANSWERS, err);
	if (!code)
		code = add(check, contract, contract->already, SCRIPT_ANSWERS, err);
	if (!code)
		code = add(check, contract, contract->state, SCRIPT_ANSWERS, err);
	if (!code) /* no row is an answer, too: it is not known */
		code = add(check, NULL, contract->staged.query, SCRIPT_MAY_ANSWER, err);
	for (size_t i = 0; !code && i < contract->unique_count; i++)
		code = add(check, contract, contract->uniques[i].find, SCRIPT_ANSWERS, err);
	return code;
}

static bool make_room(struct check *check, const struct contract *contract)
{
	size_t most = contract ? scripts_most(contract) : 0;
	for (size_t i = 0; !contract && i < contracts_count(check->contracts); i++)
		most += scripts_most(contracts_at(check->contracts, i));
	check->scripts = arena_array(&check->arena, most + 1, sizeof *check->scripts);
	check->uses = arena_array(&check->arena, most + 1, sizeof *check->uses);
	return check->scripts && check->uses;
}

enum ibid_code script_check(struct store *store, const struct contracts *contracts,
                            const struct contract *contract, finding_fn *fn, void *user,
                            struct ibid_err *err)
{
	struct check check = {.store = store, .contracts = contracts, .fn = fn, .user = user};
	enum ibid_code code = make_room(&check, contract) ? IBID_OK
	                                                  : err_set(err, IBID_NOMEM, "out of memory");
	if (!code && contract)
		code = add_contract(&check, contract, err);
	for (size_t i = 0; !code && !contract && i < contracts_count(contracts); i++)
		code = add_contract(&check, contracts_at(contracts, i), err);
	if (!code && check.count)
		code = store->ops->prepare_scripts(store, check.uses, check.count, tell, &check, err);
	for (size_t i = 0; i < check.count; i++)
		store->ops->free_script(store, check.scripts[i]);
	arena_release(&check.arena);
	return code;
}

/* ---- The first of all ----------------------------------------------------------------------- */

struct first {
	const struct log *log;
	struct ibid_err err;
	size_t refused;
};

static void keep_first(void *user, enum finding_level level, const char *what, const char *advice)
{
	struct first *first = user;
	(void)advice;
	if (level == FINDING_REFUSE && !first->refused++)
		err_set(&first->err, IBID_CONTRACT, "%s", what);
	else if (level == FINDING_WARN)
		LOG(first->log, IBID_LOG_WARN, "script.not_checked", {"reason", log_text(what)});
}

enum ibid_code script_check_all(struct store *store, const struct contracts *contracts,
                                const struct log *log, struct ibid_err *err)
{
	struct first first = {.log = log};
	enum ibid_code code = script_check(store, contracts, NULL, keep_first, &first, err);
	if (code || !first.refused)
		return code;
	if (first.refused == 1)
		return err_set(err, IBID_CONTRACT, "%s", first.err.text);
	return err_set(err, IBID_CONTRACT,
	               "%s\n%zu more: `ibid contract check %s --store ...` lists all", first.err.text,
	               first.refused - 1, contracts_dir(contracts));
}
