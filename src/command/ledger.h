/* SPDX-License-Identifier: Apache-2.0 */
/* ledger.h -- the idempotent command ledger: an open store, its contracts and their handlers. */
#ifndef COMMAND_LEDGER_H
#define COMMAND_LEDGER_H

#include "command/result.h"
#include "contract/contract.h"
#include "store/event_rule.h"

#include <pthread.h>
#include <sys/types.h>

/* One operation and what runs it. */
struct operation {
	const struct contract *contract;
	struct script *script;          /* NULL: a callback */
	struct script **finds;          /* one per contract->uniques; NULL entries: no `find` */
	struct script *already, *state; /* of strategies that look; else NULL */
	ibid_handler *handler;          /* NULL until registered */
	void *user;
	struct script *query;   /* of a staged contract that recovers by one; else NULL */
	ibid_inquirer *inquire; /* NULL until registered */
	void *inquire_user;
};

/* A contract version that rows refer to and the directory no longer holds. */
struct past_contract;

struct ledger {
	struct store *store;
	struct contracts *contracts;
	struct env *env;
	struct log log;
	struct duplicates *duplicates;
	struct group *group;
	struct recent *recent;        /* NULL: every duplicate is looked up in the store */
	struct keyring *keys;         /* NULL: none were given */
	int64_t resolve_us;           /* how long an unknown commit is asked about */
	pid_t pid;                    /* connections do not survive a fork */
	struct operation *operations; /* in the order of contracts_at */
	size_t operation_count;
	struct event_rules rules; /* of the events that the directory has contracts of */
	pthread_mutex_t lock;     /* guards `past` */
	struct past_contract *past;
};

/* Take over `store` and `contracts` (also on failure), keep the contracts' versions in the store
 * and prepare the scripts. `queue_max` as for group_new. IBID_CONTRACT when a kept version differs
 * from the file. */
IBID_CHECK enum ibid_code ledger_open(struct store *store, struct contracts *contracts,
                                      struct env *env, struct log log, unsigned busy_ms,
                                      unsigned queue_max, struct ledger **ret,
                                      struct ibid_err *err);
void ledger_close(struct ledger *ledger); /* takes NULL */

/* Answer duplicates of what came again less than `keep_us` ago from memory, where that is as good
 * as the store: see recent.h. Before the first command; 0: none. */
IBID_CHECK enum ibid_code ledger_remember(struct ledger *ledger, int64_t keep_us,
                                          struct ibid_err *err);

/* IBID_MISUSE in a process that did not open it. */
IBID_CHECK enum ibid_code ledger_check_process(const struct ledger *ledger, struct ibid_err *err);

struct operation *ledger_operation(const struct ledger *ledger, const char *name);

/* The contract `name` at `version`: from the directory or, for an older one, from the store. */
IBID_CHECK enum ibid_code ledger_contract(struct ledger *ledger, const char *name, int version,
                                          const struct contract **ret, struct ibid_err *err);

/* The contract of an event as it was written under `version`: the same way. */
IBID_CHECK enum ibid_code ledger_event(struct ledger *ledger, const char *type, int version,
                                       const struct event_contract **ret, struct ibid_err *err);

/* Keep every contract of a set in a store. IBID_CONTRACT when one was changed without a new
 * version. */
IBID_CHECK enum ibid_code ledger_keep_contracts(struct store *store,
                                                const struct contracts *contracts, struct env *env,
                                                struct ibid_err *err);

/* See ibid_stage and ibid_recover. */
IBID_CHECK enum ibid_code ledger_stage(struct ledger *ledger, const struct ibid_command *command,
                                       struct ibid_staged **ret_staged, struct ibid_result **ret,
                                       struct ibid_err *err);
IBID_CHECK enum ibid_code ledger_recover(struct ledger *ledger, const struct ibid_recovery *options,
                                         size_t *ret_count, struct ibid_err *err);

/* See ibid_adopt_sqlite and ibid_adopt_postgres; `engine` is the store's name that the connection
 * belongs to. */
IBID_CHECK enum ibid_code ledger_adopt(struct ledger *ledger, const char *engine, void *connection,
                                       const struct ibid_command *command,
                                       struct ibid_adopted **ret_adopted, struct ibid_result **ret,
                                       struct ibid_err *err);

/* See ibid_submit. */
IBID_CHECK enum ibid_code ledger_submit(struct ledger *ledger, const struct ibid_command *command,
                                        struct ibid_result **ret, struct ibid_err *err);

/* What is told from memory, told at once: it touches no store and never waits. False: submit it. */
bool ledger_recall(struct ledger *ledger, const struct ibid_command *command,
                   struct ibid_result **ret);

#endif
