/* SPDX-License-Identifier: Apache-2.0 */
#include "rounds.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Callers -------------------------------------------------------------------------------- */

uint64_t caller_random(struct caller *caller)
{
	uint64_t x = caller->random;
	x ^= x << 13;
	x ^= x >> 7;
	x ^= x << 17;
	return caller->random = x;
}

void team_init(struct team *team, const struct way *ways, size_t count, int callers)
{
	static int numbers;
	*team = (struct team){.ways = ways, .count = count, .callers = callers};
	for (size_t way = 0; way < count; way++) {
		team->members[way] = calloc((size_t)callers, sizeof(struct caller));
		if (!team->members[way])
			die("callers", "out of memory");
		for (int i = 0; i < callers; i++) {
			struct caller *caller = &team->members[way][i];
			caller->way = &ways[way];
			caller->number = ++numbers;
			caller->random = (uint64_t)caller->number * 0x9E3779B97F4A7C15u;
			if (ways[way].drives)
				caller->driver = target_driver(ways[way].target, i);
		}
	}
}

void team_release(struct team *team)
{
	for (size_t way = 0; way < team->count; way++)
		free(team->members[way]);
	*team = (struct team){0};
}

static void *run_caller(void *user)
{
	struct caller *caller = user;
	while (!__atomic_load_n(caller->stop, __ATOMIC_RELAXED) &&
	       (!caller->limit || caller->done < caller->limit)) {
		caller->way->step(caller);
		caller->count++;
		caller->done++;
	}
	return NULL;
}

/* ---- Rounds --------------------------------------------------------------------------------- */

uint64_t team_play(struct team *team, size_t way, double seconds, uint64_t steps)
{
	struct env *env = team->ways[way].target->bench->env;
	struct caller *callers = team->members[way];
	bool stop = false;
	uint64_t done = 0;
	for (int i = 0; i < team->callers; i++) {
		callers[i].done = 0;
		callers[i].limit = steps;
		callers[i].stop = &stop;
		if (pthread_create(&callers[i].thread, NULL, run_caller, &callers[i]))
			die("thread", "can't start");
	}
	if (!steps) {
		env_sleep_us(env, (int64_t)(seconds * 1e6));
		__atomic_store_n(&stop, true, __ATOMIC_RELAXED);
	}
	for (int i = 0; i < team->callers; i++) {
		pthread_join(callers[i].thread, NULL);
		done += callers[i].done;
	}
	return done;
}

void team_warm_up(struct team *team)
{
	for (size_t way = 0; way < team->count; way++)
		team_play(team, way, 0, WARM_STEPS);
}

uint64_t team_steps(const struct team *team, size_t way)
{
	uint64_t steps = 0;
	for (int i = 0; i < team->callers; i++)
		steps += team->members[way][i].count;
	return steps;
}

void team_measure(struct team *team, struct figures *ret)
{
	const struct bench *bench = team->ways[0].target->bench;
	memset(ret, 0, sizeof *ret);
	team_warm_up(team);
	for (int round = 0; round < bench->rounds; round++) {
		for (size_t way = 0; way < team->count; way++) {
			double began = bench_now(bench);
			uint64_t done = team_play(team, way, bench->seconds, 0);
			ret->values[way][round] = (double)done / (bench_now(bench) - began);
		}
	}
}

/* ---- Figures -------------------------------------------------------------------------------- */

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

struct spread {
	double low, middle, high;
};

static struct spread spread_of(const double *values, int count)
{
	double sorted[ROUNDS_MAX];
	memcpy(sorted, values, (size_t)count * sizeof *sorted);
	qsort(sorted, (size_t)count, sizeof *sorted, by_value);
	return (struct spread){
	    .low = sorted[0],
	    .middle = (sorted[(count - 1) / 2] + sorted[count / 2]) / 2,
	    .high = sorted[count - 1],
	};
}

static struct spread ratios_of(const struct figures *figures, size_t way, int against, int rounds)
{
	double ratios[ROUNDS_MAX];
	for (int round = 0; round < rounds; round++)
		ratios[round] = figures->values[way][round] / figures->values[against][round];
	return spread_of(ratios, rounds);
}

void figures_head(const char *title, const char *unit)
{
	printf("\n%s\n%-9s %7s  %-28s %11s  %-19s %6s  %s\n", title, "store", "callers", "way", unit,
	       "  lowest .. highest", "ratio", "lowest .. highest");
}

void figures_print(const struct team *team, const struct figures *figures)
{
	int rounds = team->ways[0].target->bench->rounds;
	for (size_t i = 0; i < team->count; i++) {
		const struct way *way = &team->ways[i];
		struct spread value = spread_of(figures->values[i], rounds);
		struct spread ratio = ratios_of(figures, i, way->against, rounds);
		printf("%-9s %7d  %-28s %11.0f  %8.0f .. %-7.0f %6.2f  %6.2f .. %.2f\n", way->target->store,
		       team->callers, way->title, value.middle, value.low, value.high, ratio.middle,
		       ratio.low, ratio.high);
	}
	fflush(stdout);
}
