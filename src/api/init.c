/* SPDX-License-Identifier: Apache-2.0 */
/* init.c -- make a store ready for a directory of contracts: migrate, apply the business schema
 * once, refuse columns that would round money, keep the contracts. Safe to run again, and side by
 * side. */
#include "api/api.h"

#include <stdio.h>

/* schema.sqlite.sql, schema.postgres.sql: optional. */
static enum ibid_code apply_schema_file(struct store *store, const struct contracts *contracts,
                                        struct env *env, struct init_report *report,
                                        struct ibid_err *err)
{
	struct arena arena = {0};
	char name[64];
	const char *text = NULL;
	snprintf(name, sizeof name, "schema.%s.sql", store->ops->name);
	enum ibid_code code = contracts_read_file(contracts, &arena, name, store->ops->name, &text,
	                                          err);
	if (code == IBID_NOT_FOUND) {
		code = IBID_OK;
	} else if (!code) {
		report->has_file = true;
		code = store->ops->apply_schema(store, name, text, env_wall_us(env), &report->file, err);
	}
	arena_release(&arena);
	return code;
}

static enum ibid_code check_columns(struct store *store, const struct contracts *contracts,
                                    struct ibid_err *err)
{
	enum ibid_code code = IBID_OK;
	for (size_t i = 0; !code && i < contracts_count(contracts); i++) {
		const struct contract *contract = contracts_at(contracts, i);
		for (size_t k = 0; !code && k < contract->field_count; k++) {
			if (contract->fields[k].type == FIELD_DECIMAL)
				code = store->ops->check_decimal_column(store, contract->fields[k].name, err);
		}
	}
	return code;
}

enum ibid_code api_init(const struct ibid_options *given, struct init_report *ret,
                        struct ibid_err *err)
{
	struct ibid_options options = api_options(given);
	struct store_options store_options = api_store_options(&options, env_system(), true);
	struct init_report report = {0};
	struct contracts *contracts = NULL;
	struct store *store = NULL;
	enum ibid_code code = options.contracts && *options.contracts
	                          ? contracts_load(options.contracts, &contracts, err)
	                          : err_set(err, IBID_INVALID, "no directory of contracts was given");
	if (!code)
		code = store_open(&store_options, &store, err);
	if (!code)
		code = store->ops->migrate(store, &report.schema_from, &report.schema_to, err);
	if (!code)
		code = apply_schema_file(store, contracts, store_options.env, &report, err);
	if (!code)
		code = check_columns(store, contracts, err);
	if (!code)
		code = ledger_keep_contracts(store, contracts, store_options.env, err);
	if (!code) {
		report.contracts = contracts_count(contracts);
		*ret = report;
	}
	store_close(store);
	contracts_free(contracts);
	return code;
}

enum ibid_code ibid_init(const struct ibid_options *options, struct ibid_err *err)
{
	struct ibid_err spare = {0};
	struct init_report report;
	return api_init(options, &report, err ? err : &spare);
}
