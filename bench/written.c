/* SPDX-License-Identifier: Apache-2.0 */
/* written.c -- bytes of write-ahead log that one payment costs.
 *
 * PostgreSQL: how far the log's position moved; SQLite: how much the WAL grew while nothing moved
 * it back to its beginning (a checkpoint writes each changed page once more, into the file). Rounds
 * are of a number of payments, not of a time. */
#include "payment.h"

enum { STEPS = 400 }; /* of all callers in a round */

static size_t ways_on(struct target *target, struct way ret[WAYS_MAX])
{
	const struct way ways[] = {
	    {"bare INSERT", target, pay_bare, .drives = true},
	    {"unprotected", target, pay_unprotected, .drives = true},
	    {"ibid_submit", target, pay_submit, .operation = "pay"},
	    {"ibid_submit, serialize_by", target, pay_submit, .operation = "pay-serialized"},
	    {"SQL API", target, pay_api, .drives = true, .operation = "pay"},
	};
	size_t count = on_sqlite(target) ? 4 : 5;
	for (size_t i = 0; i < count; i++)
		ret[i] = ways[i];
	return count;
}

static double bytes_each(struct target *target, struct team *team, size_t way)
{
	target_hold(target);
	int64_t before = target_written(target);
	uint64_t done = team_play(team, way, 0, (uint64_t)(STEPS / team->callers));
	double bytes = (double)(target_written(target) - before);
	target_release(target);
	return bytes / (double)done;
}

static void compare(struct target *target, int callers)
{
	struct way ways[WAYS_MAX];
	struct team team;
	struct figures figures = {0};
	size_t count = ways_on(target, ways);
	progress("written: %s, callers: %d", target->store, callers);
	target_open(target, callers);
	team_init(&team, ways, count, callers);
	team_warm_up(&team);
	for (int round = 0; round < target->bench->rounds; round++) {
		for (size_t way = 0; way < count; way++)
			figures.values[way][round] = bytes_each(target, &team, way);
	}
	figures_print(&team, &figures);
	team_release(&team);
	target_close(target);
}

void part_written(const struct bench *bench)
{
	figures_head("Write-ahead log", "bytes each", false);
	for (const char *const *store = bench->stores; *store; store++) {
		struct target *target = target_new(bench, *store, "written");
		for (size_t i = 0; i < bench->caller_counts; i++)
			compare(target, bench->callers[i]);
		target_free(target);
	}
}
