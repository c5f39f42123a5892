/* SPDX-License-Identifier: Apache-2.0 */
/* ledger.c -- does a command cost more when the ledger is large?
 *
 * Two ledgers of each store, alike but for their size, take turns: new payments in both, and
 * replays of payments that are chosen from all of the ledger at random. A replay of a random one
 * is also counted (see replay.c), so what is measured includes writing those counts. */
#include "fill.h"
#include "payment.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { SMALL_ROWS = 10000, KEYS = 20000 };

struct ledger {
	struct target *target;
	int64_t rows;
	char (*keys)[KEY_SIZE];
	double fill_seconds;
	char titles[2][32];
	pthread_t thread;
};

static void replay_any(struct caller *caller)
{
	const struct ledger *ledger = caller->way->data;
	pay_with_key(caller->way->target, ledger->keys[caller_random(caller) % KEYS], true);
}

/* ---- Filling -------------------------------------------------------------------------------- */

static void *make_rows(void *user)
{
	struct ledger *ledger = user;
	const struct bench *bench = ledger->target->bench;
	double began = bench_now(bench);
	fill_ledger(ledger->target, ledger->rows);
	ledger->fill_seconds = bench_now(bench) - began;
	fill_keys(ledger->target, KEYS, ledger->keys);
	return NULL;
}

static void ledger_init(struct ledger *ledger, const struct bench *bench, const char *store,
                        const char *name, int64_t rows)
{
	*ledger = (struct ledger){.target = target_new(bench, store, name), .rows = rows};
	ledger->keys = calloc(KEYS, KEY_SIZE);
	if (!ledger->keys)
		die("ledger", "out of memory");
	snprintf(ledger->titles[0], sizeof ledger->titles[0], "ibid_submit, %" PRId64, rows);
	snprintf(ledger->titles[1], sizeof ledger->titles[1], "replay, %" PRId64, rows);
	target_open(ledger->target, 1);
	pay_with_key(ledger->target, "model", false);
	target_close(ledger->target);
}

static void ledger_release(struct ledger *ledger)
{
	target_free(ledger->target);
	free(ledger->keys);
}

/* The ledgers of one store one after the other, those of two stores at once. */
static void fill_large(struct ledger *ledgers, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (pthread_create(&ledgers[i].thread, NULL, make_rows, &ledgers[i]))
			die("thread", "can't start");
	}
	for (size_t i = 0; i < count; i++)
		pthread_join(ledgers[i].thread, NULL);
}

static void print_fill(const struct ledger *ledger)
{
	printf("%-9s %" PRId64 " commands, each with event, aggregate and audit entry: %.2f GB, filled "
	       "in %.0f s\n",
	       ledger->target->store, ledger->rows, (double)fill_size(ledger->target) / 1e9,
	       ledger->fill_seconds);
}

/* ---- Comparing ------------------------------------------------------------------------------ */

static void compare(const struct ledger *small, const struct ledger *large, int callers)
{
	const struct way ways[] = {
	    {small->titles[0], small->target, pay_submit, .against = 0, .operation = "pay"},
	    {large->titles[0], large->target, pay_submit, .against = 0, .operation = "pay"},
	    {small->titles[1], small->target, replay_any, .against = 2, .data = small},
	    {large->titles[1], large->target, replay_any, .against = 2, .data = large},
	};
	struct team team;
	struct figures figures;
	progress("ledger: %s, callers: %d", small->target->store, callers);
	target_open(small->target, callers);
	target_open(large->target, callers);
	team_init(&team, ways, sizeof ways / sizeof *ways, callers);
	team_measure(&team, &figures);
	figures_print(&team, &figures);
	team_release(&team);
	target_close(small->target);
	target_close(large->target);
}

enum { STORES_MAX = 2 };

void part_ledger(const struct bench *bench)
{
	struct ledger small[STORES_MAX], large[STORES_MAX];
	size_t count = 0;
	for (; bench->stores[count]; count++) {
		ledger_init(&small[count], bench, bench->stores[count], "small", SMALL_ROWS);
		ledger_init(&large[count], bench, bench->stores[count], "large", bench->ledger_rows);
		make_rows(&small[count]);
	}
	fill_large(large, count);
	progress("ledger: until all of it is on the disk");
	sync(); /* the kernel writing gigabytes would be measured with the first rounds */
	printf("\n");
	for (size_t i = 0; i < count; i++) {
		print_fill(&small[i]);
		print_fill(&large[i]);
	}
	figures_head("A small and a large ledger", "per second", false);
	for (size_t i = 0; i < count; i++) {
		for (size_t n = 0; n < bench->caller_counts; n++)
			compare(&small[i], &large[i], bench->callers[n]);
		ledger_release(&small[i]);
		ledger_release(&large[i]);
	}
}
