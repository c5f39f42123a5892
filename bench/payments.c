/* SPDX-License-Identifier: Apache-2.0 */
/* payments.c -- one payment, all ways side by side. */
#include "payment.h"

#include <stdio.h>

enum { FEWEST = 6 }; /* ways that both stores have; the rest is PostgreSQL's SQL API */

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
	size_t count = on_sqlite(target) ? FEWEST : sizeof ways / sizeof *ways;
	for (size_t i = 0; i < count; i++)
		ret[i] = ways[i];
	return count;
}

/* A figure of work that was not done, or done twice, would be worth nothing. */
static void check_payments(struct target *target, const struct team *team, int64_t before)
{
	int64_t made = driver_number(target_admin(target), "select count(*) from payment") - before;
	uint64_t wanted = 0;
	for (size_t i = 0; i < team->count; i++) {
		bool again = team->ways[i].step == pay_again || team->ways[i].step == pay_again_api;
		for (int n = 0; n < team->callers; n++) {
			uint64_t steps = team->members[i][n].count;
			wanted += again && steps > PAYMENT_REPLAYS ? PAYMENT_REPLAYS : steps;
		}
	}
	if (made != (int64_t)wanted)
		die("payments", "not as many rows as were paid");
}

static void compare(struct target *target, int callers)
{
	struct way ways[WAYS_MAX];
	struct team team;
	struct figures figures;
	size_t count = ways_on(target, ways);
	int64_t before = driver_number(target_admin(target), "select count(*) from payment");
	progress("payments: %s, %d callers", target->store, callers);
	target_open(target, callers);
	team_init(&team, ways, count, callers);
	team_measure(&team, &figures);
	figures_print(&team, &figures);
	check_payments(target, &team, before);
	team_release(&team);
	target_close(target);
}

void part_payments(const struct bench *bench)
{
	figures_head("One payment", "per second");
	for (const char *const *store = bench->stores; *store; store++) {
		struct target *target = target_new(bench, *store, "payments");
		for (size_t i = 0; i < bench->caller_counts; i++)
			compare(target, bench->callers[i]);
		target_free(target);
	}
}
