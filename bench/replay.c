/* SPDX-License-Identifier: Apache-2.0 */
/* replay.c -- a replay writes nothing.
 *
 * Duplicates are counted in memory; a thread of the handle writes the counts, a second after the
 * first. So each look has a new handle and ends within that second. A server writes for reasons of
 * its own too (a checkpoint, autovacuum): of several looks one without a byte is enough, because
 * whatever a replay writes would be in all of them. */
#include "payment.h"

#include <inttypes.h>
#include <stdio.h>

enum { LOOKS = 10, REPLAYS = 128 }; /* at least, and each caller's WARM_STEPS */

struct look {
	int64_t replaying, counting; /* bytes */
	uint64_t replays;
	bool in_time; /* nothing was counted meanwhile: only libibid's handle counts */
};

static void look_once(struct target *target, struct team *team, struct look *ret)
{
	const struct bench *bench = target->bench;
	uint64_t steps = (uint64_t)(REPLAYS / team->callers);
	target_open(target, team->callers);
	target_hold(target);
	int64_t before = target_written(target);
	double began = bench_now(bench);
	ret->replays = team_play(team, 0, 0, steps > WARM_STEPS ? steps : WARM_STEPS);
	int64_t after = target_written(target);
	ret->in_time = team->ways[0].drives || bench_now(bench) - began < 0.9;
	target_close(target); /* writes the counts */
	ret->counting = target_written(target) - after;
	ret->replaying = after - before;
	target_release(target);
}

static void show(const struct way *way, int callers)
{
	struct target *target = way->target;
	struct team team;
	struct look look = {0};
	team_init(&team, way, 1, callers);
	target_open(target, callers);
	team_warm_up(&team); /* these are executed */
	int looks = 0;
	do
		look_once(target, &team, &look);
	while ((look.replaying || !look.in_time) && ++looks < LOOKS);
	printf("%-9s %7d  %-28s %10" PRIu64 " %14" PRId64 " %19" PRId64 "\n", target->store, callers,
	       way->title, look.replays, look.replaying, look.counting);
	fflush(stdout);
	if (look.replaying)
		die("replay", "it wrote something");
	if (!look.in_time)
		die("replay", "too slow to be told from the counting of duplicates");
	team_release(&team);
}

void part_replay(const struct bench *bench)
{
	printf("\nA replay writes nothing (asserted)\n%-9s %7s  %-28s %10s %14s %19s\n", "store",
	       "callers", "way", "replays", "bytes written", "bytes of counting");
	for (const char *const *store = bench->stores; *store; store++) {
		struct target *target = target_new(bench, *store, "replay");
		const struct way submit = {"replay", target, pay_again, .operation = "pay"};
		const struct way api = {"SQL API, replay", target, pay_again_api, .drives = true,
		                        .operation = "pay"};
		for (size_t i = 0; i < bench->caller_counts; i++) {
			show(&submit, bench->callers[i]);
			if (!on_sqlite(target))
				show(&api, bench->callers[i]);
		}
		target_free(target);
	}
}
