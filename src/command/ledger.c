/* SPDX-License-Identifier: Apache-2.0 */
/* ledger.c -- open a ledger: contracts kept in the store, scripts ready, old versions at hand.
 *
 * A retry is compared under the contract version on its row, so every version that may be on a row
 * is in the store before the first command runs, and never changes there. */
#include "command/ledger.h"

#include "base/keyring.h"
#include "command/duplicates.h"
#include "command/group.h"
#include "command/recent.h"
#include "command/script_check.h"
#include "contract/event.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct past_contract {
	struct past_contract *next;
	struct arena arena;
	struct contract *contract;
};

static bool same_texts(const struct texts *a, const struct texts *b)
{
	bool same = a->count == b->count;
	for (size_t i = 0; same && i < a->count; i++)
		same = strcmp(a->items[i], b->items[i]) == 0;
	return same;
}

/* Which answer about the key differs, if any: NULL when both know a command by the same identity.
 */
static const char *identity_change(const struct contract_key *a, const struct contract_key *b)
{
	if (a->from != b->from || !same_texts(&a->fields, &b->fields))
		return "key.from";
	if (a->form != b->form)
		return "key.form";
	return a->scope != b->scope ? "key.scope" : NULL;
}

/* A version that knows commands by another identity would run again what earlier ones accepted. All
 * kept versions agree, so the newest speaks for them. */
static enum ibid_code check_identity(struct store *store, const struct contracts *contracts,
                                     const struct contract *contract, struct ibid_err *err)
{
	struct arena arena = {0};
	struct contract_row row;
	struct contract *kept = NULL;
	enum ibid_code code = store_get_contract(store, &arena, "command", contract->name, 0, &row,
	                                         err);
	if (!code)
		code = contract_from_text(&arena, row.text, &kept, err);
	const char *change = code ? NULL : identity_change(&contract->key, &kept->key);
	if (change)
		code = err_set(err, IBID_CONTRACT,
		               "%s/%s: version %d changes %s, by which commands accepted under version %d "
		               "are known: their retries would run again; keep it, or give the new "
		               "identity a new command name",
		               contracts_dir(contracts), contract->file, contract->version, change,
		               kept->version);
	arena_release(&arena);
	return code == IBID_NOT_FOUND ? IBID_OK : code;
}

static enum ibid_code keep_contract(struct store *store, const struct contracts *contracts,
                                    const struct contract *contract, struct env *env,
                                    struct ibid_err *err)
{
	struct contract_row row = {
	    .kind = contract_kind_name(contract->kind),
	    .name = contract->name,
	    .version = contract->version,
	    .digest = contract->digest,
	    .text = contract->text,
	    .at_us = env_wall_us(env),
	};
	enum ibid_code code = store_put_contract(store, &row, err);
	if (code == IBID_CONTRACT)
		code = err_set(err, IBID_CONTRACT,
		               "%s/%s: version %d of %s was changed after it was put to use; %s, so a "
		               "changed contract needs a new version: set `version: %d`",
		               contracts_dir(contracts), contract->file, contract->version, contract->name,
		               contract->event ? "events tell the version they were written under"
		                               : "commands are compared under the version they came with",
		               contract->version + 1);
	return code;
}

enum ibid_code ledger_keep_contracts(struct store *store, const struct contracts *contracts,
                                     struct env *env, struct ibid_err *err)
{
	enum ibid_code code = IBID_OK;
	/* First the events: a command that is kept finds the contracts of those that it emits. */
	for (size_t i = 0; !code && i < contracts_event_count(contracts); i++)
		code = keep_contract(store, contracts, contracts_event_at(contracts, i), env, err);
	for (size_t i = 0; !code && i < contracts_count(contracts); i++) {
		const struct contract *contract = contracts_at(contracts, i);
		code = check_identity(store, contracts, contract, err);
		if (!code)
			code = keep_contract(store, contracts, contract, env, err);
	}
	return code;
}

static enum ibid_code operation_init(struct ledger *ledger, struct operation *operation,
                                     const struct contract *contract, struct ibid_err *err)
{
	struct store *store = ledger->store;
	enum ibid_code code = IBID_OK;
	operation->contract = contract;
	operation->finds = calloc(contract->unique_count + 1, sizeof *operation->finds);
	if (!operation->finds)
		return err_set(err, IBID_NOMEM, "out of memory");
	if (contract->script)
		code = script_read(store, ledger->contracts, contract, contract->script, &operation->script,
		                   err);
	if (!code && contract->already)
		code = script_read(store, ledger->contracts, contract, contract->already,
		                   &operation->already, err);
	if (!code && contract->state)
		code = script_read(store, ledger->contracts, contract, contract->state, &operation->state,
		                   err);
	if (!code && contract->staged.query)
		code = script_read(store, ledger->contracts, NULL, contract->staged.query,
		                   &operation->query, err);
	for (size_t i = 0; !code && i < contract->unique_count; i++)
		code = script_read(store, ledger->contracts, contract, contract->uniques[i].find,
		                   &operation->finds[i], err);
	return code;
}

static void operation_release(struct ledger *ledger, struct operation *operation)
{
	struct store *store = ledger->store;
	store->ops->free_script(store, operation->script);
	store->ops->free_script(store, operation->already);
	store->ops->free_script(store, operation->state);
	store->ops->free_script(store, operation->query);
	for (size_t i = 0; operation->finds && i < operation->contract->unique_count; i++)
		store->ops->free_script(store, operation->finds[i]);
	free(operation->finds);
}

static enum ibid_code list_rules(struct ledger *ledger, struct ibid_err *err)
{
	size_t count = contracts_event_count(ledger->contracts);
	ledger->rules.items = calloc(count + 1, sizeof *ledger->rules.items);
	if (!ledger->rules.items)
		return err_set(err, IBID_NOMEM, "out of memory");
	for (size_t i = 0; i < count; i++)
		ledger->rules.items[i] = &contracts_event_at(ledger->contracts, i)->event->rule;
	ledger->rules.count = count;
	return IBID_OK;
}

enum ibid_code ledger_open(struct store *store, struct contracts *contracts, struct env *env,
                           struct log log, unsigned busy_ms, unsigned queue_max,
                           struct ledger **ret, struct ibid_err *err)
{
	enum ibid_code code = IBID_OK;
	size_t count = contracts_count(contracts);
	struct ledger *ledger = calloc(1, sizeof *ledger);
	struct operation *operations = calloc(count + 1, sizeof *operations);
	if (!ledger || !operations) {
		free(ledger);
		free(operations);
		store_close(store);
		contracts_free(contracts);
		return err_set(err, IBID_NOMEM, "out of memory");
	}
	*ledger = (struct ledger){.store = store,
	                          .contracts = contracts,
	                          .env = env,
	                          .log = log,
	                          .resolve_us = (int64_t)busy_ms * 1000,
	                          .pid = getpid(),
	                          .operations = operations};
	pthread_mutex_init(&ledger->lock, NULL);
	ledger->duplicates = duplicates_open(store, &ledger->log);
	ledger->group = group_new(store, queue_max);
	if (!ledger->duplicates || !ledger->group)
		code = err_set(err, IBID_NOMEM, "out of memory");
	if (!code)
		code = ledger_keep_contracts(store, contracts, env, err);
	if (!code)
		code = list_rules(ledger, err);
	while (!code && ledger->operation_count < count) {
		size_t i = ledger->operation_count++;
		code = operation_init(ledger, &operations[i], contracts_at(contracts, i), err);
	}
	if (code)
		ledger_close(ledger);
	else
		*ret = ledger;
	return code;
}

void ledger_close(struct ledger *ledger)
{
	if (!ledger)
		return;
	duplicates_close(ledger->duplicates);
	group_free(ledger->group);
	recent_free(ledger->recent);
	for (size_t i = 0; i < ledger->operation_count; i++)
		operation_release(ledger, &ledger->operations[i]);
	free(ledger->operations);
	free(ledger->rules.items);
	while (ledger->past) {
		struct past_contract *past = ledger->past;
		ledger->past = past->next;
		arena_release(&past->arena);
		free(past);
	}
	pthread_mutex_destroy(&ledger->lock);
	keyring_free(ledger->keys);
	store_close(ledger->store);
	contracts_free(ledger->contracts);
	free(ledger);
}

enum ibid_code ledger_remember(struct ledger *ledger, int64_t keep_us, struct ibid_err *err)
{
	if (!keep_us)
		return IBID_OK;
	ledger->recent = recent_new(ledger->env, keep_us);
	return ledger->recent ? IBID_OK : err_set(err, IBID_NOMEM, "out of memory");
}

enum ibid_code ledger_check_process(const struct ledger *ledger, struct ibid_err *err)
{
	if (ledger->pid == getpid())
		return IBID_OK;
	return err_set(err, IBID_MISUSE, "opened before a fork: open ibid in each process of its own");
}

struct operation *ledger_operation(const struct ledger *ledger, const char *name)
{
	for (size_t i = 0; i < ledger->operation_count; i++) {
		if (strcmp(ledger->operations[i].contract->name, name) == 0)
			return &ledger->operations[i];
	}
	return NULL;
}

static const struct contract *find_past(struct ledger *ledger, enum contract_kind kind,
                                        const char *name, int version)
{
	const struct contract *found = NULL;
	pthread_mutex_lock(&ledger->lock);
	for (struct past_contract *past = ledger->past; past && !found; past = past->next) {
		if (past->contract->kind == kind && past->contract->version == version &&
		    strcmp(past->contract->name, name) == 0)
			found = past->contract;
	}
	pthread_mutex_unlock(&ledger->lock);
	return found;
}

/* One that the directory does not hold, or not in this version: from the store. */
static enum ibid_code past_contract(struct ledger *ledger, enum contract_kind kind,
                                    const char *name, int version, const struct contract **ret,
                                    struct ibid_err *err)
{
	const struct contract *found = find_past(ledger, kind, name, version);
	if (found) {
		*ret = found;
		return IBID_OK;
	}
	struct past_contract *past = calloc(1, sizeof *past);
	struct contract_row row;
	if (!past)
		return err_set(err, IBID_NOMEM, "out of memory");
	enum ibid_code code = store_get_contract(ledger->store, &past->arena, contract_kind_name(kind),
	                                         name, version, &row, err);
	if (!code)
		code = contract_from_text(&past->arena, row.text, &past->contract, err);
	if (code) {
		arena_release(&past->arena);
		free(past);
		return code;
	}
	pthread_mutex_lock(&ledger->lock);
	past->next = ledger->past;
	ledger->past = past;
	pthread_mutex_unlock(&ledger->lock);
	*ret = past->contract;
	return IBID_OK;
}

enum ibid_code ledger_contract(struct ledger *ledger, const char *name, int version,
                               const struct contract **ret, struct ibid_err *err)
{
	struct operation *operation = ledger_operation(ledger, name);
	if (!operation || operation->contract->version != version)
		return past_contract(ledger, CONTRACT_COMMAND, name, version, ret, err);
	*ret = operation->contract;
	return IBID_OK;
}

enum ibid_code ledger_event(struct ledger *ledger, const char *type, int version,
                            const struct event_contract **ret, struct ibid_err *err)
{
	const struct event_contract *event = contracts_event(ledger->contracts, type);
	const struct contract *past = NULL;
	enum ibid_code code = IBID_OK;
	if (!event || event->rule.version != version) {
		code = past_contract(ledger, CONTRACT_EVENT, type, version, &past, err);
		event = past ? past->event : NULL;
	}
	if (!code)
		*ret = event;
	return code;
}
