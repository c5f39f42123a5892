/* SPDX-License-Identifier: Apache-2.0 */
/* payments.c -- one payment, all ways side by side. */
#include "bench_sql.h"
#include "payment.h"

#include <stdio.h>
#include <string.h>

enum { ON_BOTH = 6 }; /* ways that both stores have; the rest is PostgreSQL's SQL API */

static size_t ways_on(struct target *target, struct way ret[WAYS_MAX])
{
	const struct way ways[] = {
	    {"bare INSERT", target, pay_bare, .drives = true},
	    {"unprotected", target, pay_unprotected, .drives = true},
	    {"ibid_submit", target, pay_submit, .operation = "pay"},
	    {"ibid_submit, serialize_by", target, pay_submit, .operation = "pay-serialized"},
	    {"replay", target, pay_again, .operation = "pay"},
	    {"replay, serialize_by", target, pay_again, .operation = "pay-serialized"},
	    {"SQL API, 6 round trips", target, pay_api, .drives = true, .operation = "pay"},
	    {"SQL API, 2 round trips", target, pay_api_pipeline, .drives = true, .operation = "pay"},
	    {"SQL API, 1 round trip", target, pay_api_whole, .drives = true, .operation = "pay"},
	    {"SQL API, replay", target, pay_again_api, .drives = true, .operation = "pay"},
	};
	size_t count = on_sqlite(target) ? ON_BOTH : sizeof ways / sizeof *ways, wanted = 0;
	for (size_t i = 0; i < count; i++)
		if (!target->bench->way || strstr(ways[i].title, target->bench->way))
			ret[wanted++] = ways[i];
	if (wanted == 0)
		die("BENCH_WAY", "no way has this in its title");
	return wanted;
}

/* What is in the tables: payments, and those that ibid made. */
struct tally {
	int64_t payments, protected;
};

int64_t payments_protected(struct target *target)
{
	return driver_number(target_admin(target), on_sqlite(target) ? sql_bench_sqlite_protected
	                                                             : sql_bench_postgres_protected);
}

static struct tally tally_of(struct target *target)
{
	return (struct tally){
	    .payments = driver_number(target_admin(target), "select count(*) from payment"),
	    .protected = payments_protected(target),
	};
}

static uint64_t payments_by(const struct team *team, size_t way)
{
	bool again = team->ways[way].step == pay_again || team->ways[way].step == pay_again_api;
	return again ? (uint64_t)(WARM_STEPS * team->callers) : team_steps(team, way);
}

/* A figure of work that was not done, or done twice, would be worth nothing. */
static void check(struct target *target, const struct team *team, struct tally before)
{
	/* The count joins tables that have just grown. Never before the rounds: what is planned for
	 * empty tables is slow on full ones. */
	driver_run(target_admin(target), "analyze");
	struct tally after = tally_of(target);
	uint64_t payments = 0, protected = 0;
	for (size_t i = 0; i < team->count; i++) {
		payments += payments_by(team, i);
		if (team->ways[i].operation)
		protected += payments_by(team, i);
	}
	if (after.payments - before.payments != (int64_t)payments)
		die("payments", "not as many rows as were paid");
	if (after.protected - before.protected != (int64_t) protected)
		die("payments", "a protected one lacks its event or its audit entry");
}

static void compare(struct target *target, int callers)
{
	struct way ways[WAYS_MAX];
	struct team team;
	struct figures figures;
	size_t count = ways_on(target, ways);
	struct tally before = tally_of(target);
	progress("payments: %s, callers: %d", target->store, callers);
	target_open(target, callers);
	team_init(&team, ways, count, callers);
	team_measure(&team, &figures);
	figures_print(&team, &figures);
	check(target, &team, before);
	team_release(&team);
	target_close(target);
}

void part_payments(const struct bench *bench)
{
	figures_head("One payment", "per second", false);
	for (const char *const *store = bench->stores; *store; store++) {
		struct target *target = target_new(bench, *store, "payments");
		for (size_t i = 0; i < bench->caller_counts; i++)
			compare(target, bench->callers[i]);
		target_free(target);
	}
}
