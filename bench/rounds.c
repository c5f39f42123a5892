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

enum { TIMES_MAX = 1 << 14 }; /* that are kept of one caller's steps */

static int callers_of(const struct team *team, size_t way)
{
	return team->ways[way].callers ? team->ways[way].callers : team->callers;
}

void team_init(struct team *team, const struct way *ways, size_t count, int callers)
{
	static int numbers;
	*team = (struct team){.ways = ways, .count = count, .callers = callers};
	for (size_t way = 0; way < count; way++) {
		team->members[way] = calloc((size_t)callers_of(team, way), sizeof(struct caller));
		if (!team->members[way])
			die("callers", "out of memory");
		for (int i = 0; i < callers_of(team, way); i++) {
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
	for (size_t way = 0; way < team->count; way++) {
		for (int i = 0; i < callers_of(team, way); i++)
			free(team->members[way][i].times);
		free(team->members[way]);
	}
	*team = (struct team){0};
}

static void step(struct caller *caller)
{
	const struct bench *bench = caller->way->target->bench;
	if (!caller->times) {
		caller->way->step(caller);
		return;
	}
	double began = bench_now(bench);
	caller->way->step(caller);
	caller->times[caller->done % TIMES_MAX] = (float)((bench_now(bench) - began) * 1e6);
}

static void *run_caller(void *user)
{
	struct caller *caller = user;
	while (!__atomic_load_n(caller->stop, __ATOMIC_RELAXED) &&
	       (!caller->limit || caller->done < caller->limit)) {
		step(caller);
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
	for (int i = 0; i < callers_of(team, way); i++) {
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
	for (int i = 0; i < callers_of(team, way); i++) {
		pthread_join(callers[i].thread, NULL);
		done += callers[i].done;
	}
	return done;
}

void team_warm_up(struct team *team)
{
	struct round ignored;
	for (size_t way = 0; way < team->count; way++) {
		if (team->ways[way].play)
			team->ways[way].play(&team->ways[way], callers_of(team, way), &ignored);
		else
			team_play(team, way, 0, WARM_STEPS);
	}
}

uint64_t team_steps(const struct team *team, size_t way)
{
	uint64_t steps = 0;
	for (int i = 0; i < callers_of(team, way); i++)
		steps += team->members[way][i].count;
	return steps;
}

static void take_times(struct team *team)
{
	for (size_t way = 0; way < team->count; way++) {
		for (int i = 0; !team->ways[way].play && i < callers_of(team, way); i++) {
			struct caller *caller = &team->members[way][i];
			caller->times = calloc(TIMES_MAX, sizeof *caller->times);
			if (!caller->times)
				die("times", "out of memory");
		}
	}
}

static void read_times(const struct team *team, size_t way, struct round *ret)
{
	size_t count = 0;
	double *all = calloc((size_t)callers_of(team, way) * TIMES_MAX, sizeof *all);
	if (!all)
		die("times", "out of memory");
	for (int i = 0; i < callers_of(team, way); i++) {
		const struct caller *caller = &team->members[way][i];
		for (uint64_t k = 0; k < caller->done && k < TIMES_MAX; k++)
			all[count++] = caller->times[k];
	}
	ret->p50_us = figures_percentile(all, count, 50);
	ret->p99_us = figures_percentile(all, count, 99);
	free(all);
}

static void play_round(struct team *team, size_t way, struct round *ret)
{
	const struct bench *bench = team->ways[way].target->bench;
	*ret = (struct round){0};
	if (team->ways[way].play) {
		team->ways[way].play(&team->ways[way], callers_of(team, way), ret);
		return;
	}
	double began = bench_now(bench);
	uint64_t done = team_play(team, way, bench->seconds, 0);
	ret->rate = (double)done / (bench_now(bench) - began);
	if (team->timed)
		read_times(team, way, ret);
}

void team_measure(struct team *team, struct figures *ret)
{
	const struct bench *bench = team->ways[0].target->bench;
	memset(ret, 0, sizeof *ret);
	team_warm_up(team);
	if (team->timed)
		take_times(team);
	for (int round = 0; round < bench->rounds; round++) {
		for (size_t way = 0; way < team->count; way++) {
			struct round played;
			play_round(team, way, &played);
			ret->values[way][round] = played.rate;
			ret->p50_us[way][round] = played.p50_us;
			ret->p99_us[way][round] = played.p99_us;
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
	double ratios[ROUNDS_MAX] = {0};
	for (int round = 0; round < rounds; round++)
		ratios[round] = figures->values[way][round] / figures->values[against][round];
	return spread_of(ratios, rounds);
}

double figures_percentile(double *values, size_t count, double percent)
{
	if (!count)
		return 0;
	qsort(values, count, sizeof *values, by_value);
	return values[(size_t)((double)(count - 1) * percent / 100)];
}

void figures_head(const char *title, const char *unit, bool timed)
{
	printf("\n%s\n%-9s %7s  %-28s %11s  %-19s %6s  %-17s%s\n", title, "store", "callers", "way",
	       unit, "  lowest .. highest", "ratio", "lowest .. highest",
	       timed ? "    p50 ms    p99 ms" : "");
}

void figures_print(const struct team *team, const struct figures *figures)
{
	int rounds = team->ways[0].target->bench->rounds;
	for (size_t i = 0; i < team->count; i++) {
		const struct way *way = &team->ways[i];
		struct spread value = spread_of(figures->values[i], rounds);
		struct spread ratio = ratios_of(figures, i, way->against, rounds);
		printf("%-9s %7d  %-28s %11.0f  %8.0f .. %-7.0f %6.2f  %6.2f .. %-7.2f", way->target->store,
		       callers_of(team, i), way->title, value.middle, value.low, value.high, ratio.middle,
		       ratio.low, ratio.high);
		if (team->timed)
			printf(" %9.2f %9.2f", spread_of(figures->p50_us[i], rounds).middle / 1000,
			       spread_of(figures->p99_us[i], rounds).middle / 1000);
		putchar('\n');
	}
	fflush(stdout);
}
