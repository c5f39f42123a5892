/* SPDX-License-Identifier: Apache-2.0 */
/* hot_rows.c -- callers contend for few rows: one UPDATE each over 200 accounts.
 *
 * Single updates can't deadlock with each other; commands that share a transaction can, unless
 * they take their rows in order. So a deadlock ends the run, and the balances have to add up. */
#include "base/id.h"
#include "rounds.h"

#include <stdio.h>

enum { ACCOUNTS = 200 }; /* as in contracts/schema.*.sql */

static void any_account(struct caller *caller, char ret[16])
{
	snprintf(ret, 16, "a%u", (unsigned)(caller_random(caller) % ACCOUNTS) + 1);
}

static void update_account(struct caller *caller, const char *account)
{
	const char *values[] = {"1", "acme", account};
	driver_step(caller->driver, STATEMENT_DEPOSIT, values, NULL);
}

static void deposit_bare(struct caller *caller)
{
	char account[16];
	any_account(caller, account);
	update_account(caller, account);
}

static void deposit_unprotected(struct caller *caller)
{
	char account[16], id[UUID_TEXT_SIZE];
	any_account(caller, account);
	uuid_write(uuid_v7(caller->way->target->bench->env), id);
	const char *audit[] = {id, "acme", "u7", "deposit", id};
	driver_step(caller->driver, STATEMENT_BEGIN, NULL, NULL);
	update_account(caller, account);
	driver_step(caller->driver, STATEMENT_AUDIT, audit, NULL);
	driver_step(caller->driver, STATEMENT_COMMIT, NULL, NULL);
}

static void deposit_submit(struct caller *caller)
{
	char account[16], key[UUID_TEXT_SIZE], payload[64];
	struct ibid_result *result = NULL;
	struct ibid_err err = {0};
	any_account(caller, account);
	uuid_write(uuid_v7(caller->way->target->bench->env), key);
	snprintf(payload, sizeof payload, "{\"account\":\"%s\",\"amount\":1}", account);
	if (ibid_submit(caller->way->target->ibid,
	                IBID_COMMAND(.tenant = "acme", .client = "bench", .actor = "u7", .key = key,
	                             .operation = caller->way->operation, .payload = payload),
	                &result, &err))
		die("ibid_submit", err.text);
	if (ibid_result_decision(result) != IBID_DECISION_EXECUTED)
		die("ibid_submit", ibid_result_text(result));
	ibid_result_free(result);
}

static int64_t balances(struct target *target)
{
	return driver_number(target_admin(target), "select sum(balance) from account");
}

static void compare(struct target *target, int callers)
{
	const struct way ways[] = {
	    {"bare UPDATE", target, deposit_bare, .drives = true},
	    {"unprotected", target, deposit_unprotected, .drives = true},
	    {"ibid_submit", target, deposit_submit, .operation = "deposit"},
	    {"ibid_submit, serialize_by", target, deposit_submit, .operation = "deposit-serialized"},
	};
	struct team team;
	struct figures figures;
	uint64_t done = 0;
	int64_t before = balances(target);
	progress("hot: %s, callers: %d", target->store, callers);
	target_open(target, callers);
	team_init(&team, ways, sizeof ways / sizeof *ways, callers);
	team_measure(&team, &figures);
	figures_print(&team, &figures);
	for (size_t i = 0; i < team.count; i++)
		done += team_steps(&team, i);
	if (balances(target) - before != (int64_t)done)
		die("hot", "the balances do not add up to what was deposited");
	team_release(&team);
	target_close(target);
}

/* Connections tell the server's statistics when they end. */
static int64_t deadlocks(struct target *target)
{
	for (int i = 0; i < CALLERS_MAX; i++) {
		driver_close(target->drivers[i]);
		target->drivers[i] = NULL;
	}
	return driver_number(target_admin(target), "select deadlocks from pg_stat_database "
	                                           "where datname = current_database()");
}

void part_hot_rows(const struct bench *bench)
{
	figures_head("One UPDATE over 200 hot rows", "per second", false);
	for (const char *const *store = bench->stores; *store; store++) {
		struct target *target = target_new(bench, *store, "hot");
		for (size_t i = 0; i < bench->caller_counts; i++)
			compare(target, bench->callers[i]);
		if (!on_sqlite(target) && deadlocks(target))
			die("hot", "there were deadlocks");
		target_free(target);
	}
}
