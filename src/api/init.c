/* SPDX-License-Identifier: Apache-2.0 */
/* init.c -- make a store ready for a directory of contracts: migrate, apply the business schema
 * once, refuse columns that would round money and scripts that would not run, keep the contracts.
 * Safe to run again, and side by side. */
#include "api/api.h"

#include "command/script_check.h"

#include <stdio.h>

/* The parameters of all contracts that get decimals; NULL without memory. */
static const char **decimals_of(struct arena *arena, const struct contracts *contracts,
                                size_t *ret_count)
{
	size_t most = 0, count = 0;
	for (size_t i = 0; i < contracts_count(contracts); i++)
		most += contracts_at(contracts, i)->field_count;
	const char **names = arena_array(arena, most, sizeof *names);
	for (size_t i = 0; names && i < contracts_count(contracts); i++) {
		const struct contract *contract = contracts_at(contracts, i);
		for (size_t k = 0; k < contract->field_count; k++) {
			if (contract->fields[k].type == FIELD_DECIMAL)
				names[count++] = contract->fields[k].name;
		}
	}
	*ret_count = count;
	return names;
}

/* schema.sqlite.sql, schema.postgres.sql: optional. */
static enum ibid_code apply_schema_file(struct store *store, const struct contracts *contracts,
                                        struct env *env, struct init_report *report,
                                        struct ibid_err *err)
{
	struct arena arena = {0};
	char name[64];
	const char *text = NULL;
	size_t count = 0;
	const char **decimals = decimals_of(&arena, contracts, &count);
	snprintf(name, sizeof name, "schema.%s.sql", store->ops->name);
	enum ibid_code code = contracts_read_file(contracts, &arena, name, store->ops->name, &text,
	                                          err);
	report->has_file = code == IBID_OK;
	if (!decimals) {
		code = err_set(err, IBID_NOMEM, "out of memory");
	} else if (code == IBID_OK) {
		struct schema_file file = {name, text, decimals, count, env_wall_us(env)};
		code = store->ops->apply_schema(store, &file, &report->file, err);
	} else if (code == IBID_NOT_FOUND) {
		code = IBID_OK;
	}
	for (size_t i = 0; !code && i < count; i++)
		code = store->ops->check_decimal_column(store, decimals[i], err);
	arena_release(&arena);
	return code;
}

enum ibid_code api_init(const struct ibid_options *given, const struct api_seams *seams,
                        struct init_report *ret, struct ibid_err *err)
{
	struct ibid_options options = api_options(given);
	struct store_options store_options = api_store_options(&options, env_system(), true);
	struct init_report report = {0};
	struct contracts *contracts = NULL;
	struct store *store = NULL;
	enum ibid_code code =
	    options.contracts && *options.contracts
	        ? contracts_load(options.contracts, &contracts, err)
	        : err_set(
	              err, IBID_INVALID,
	              "no directory of contracts was given: ibid_open and ibid_init need the option "
	              "contracts");
	if (!code)
		code = store_open(&store_options, &store, err);
	if (!code && seams && seams->wrap)
		store = seams->wrap(seams->user, store);
	if (!code)
		code = store->ops->migrate(store, &report.schema_from, &report.schema_to, err);
	if (!code)
		code = apply_schema_file(store, contracts, store_options.env, &report, err);
	if (!code)
		code = script_check_all(store, contracts, &store_options.log, err);
	if (!code) {
		struct ledger *ledger = NULL;
		report.contracts = contracts_count(contracts) + contracts_event_count(contracts);
		code = ledger_open(store, contracts, store_options.env, store_options.log, options.busy_ms,
		                   options.queue, &ledger, err);
		store = NULL;
		contracts = NULL;
		ledger_close(ledger);
	}
	if (!code)
		*ret = report;
	store_close(store);
	contracts_free(contracts);
	return code;
}

enum ibid_code ibid_init(const struct ibid_options *options, struct ibid_err *err)
{
	struct ibid_err spare = {0};
	struct init_report report;
	return api_init(options, NULL, &report, err ? err : &spare);
}
