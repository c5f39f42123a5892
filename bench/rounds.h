/* SPDX-License-Identifier: Apache-2.0 */
/* rounds.h -- ways to do the same work take turns, and are compared.
 *
 * A round lets a number of callers repeat one way as fast as they can. Rounds of the ways
 * alternate, so that a slow minute of the machine meets all of them; a figure is the median of its
 * rounds, and a ratio the median of the ratios to the round of another way beside it. */
#ifndef BENCH_ROUNDS_H
#define BENCH_ROUNDS_H

#include "target.h"

#include <pthread.h>

struct caller;
struct way;

/* What a round came to. Times are those of single steps; 0: nobody took them. */
struct round {
	double rate; /* steps a second */
	double p50_us, p99_us;
};

struct way {
	const char *title;
	struct target *target;
	void (*step)(struct caller *caller); /* do it once */
	/* Instead of steps: a program of its own plays a whole round, with so many callers. */
	void (*play)(const struct way *way, int callers, struct round *ret);
	int callers;           /* where not as many as the team's; 0: as many */
	bool drives;           /* needs a connection of its own */
	int against;           /* the way that it is compared with: its index */
	const char *operation; /* which contract, where ibid_submit is called */
	const void *data;      /* the step's */
};

struct caller {
	const struct way *way;
	struct driver *driver;
	int number;           /* no other caller of this run has it */
	uint64_t random;      /* state of caller_random */
	uint64_t count, done; /* steps in all, and in this round */
	uint64_t limit;       /* steps of a round; 0: until it is told to stop */
	const bool *stop;
	float *times; /* of its latest steps, in microseconds; NULL: not taken */
	pthread_t thread;
};

/* A cheap number, another one each time. */
uint64_t caller_random(struct caller *caller);

enum { WAYS_MAX = 12 };

struct team {
	const struct way *ways;
	size_t count;
	int callers;
	bool timed; /* p50 and p99 are wanted, too */
	struct caller *members[WAYS_MAX];
};

/* As many callers of each way that says no other number. */
void team_init(struct team *team, const struct way *ways, size_t count, int callers);
void team_release(struct team *team);

/* One round of one way, for some time or of some steps each: steps that were done. */
uint64_t team_play(struct team *team, size_t way, double seconds, uint64_t steps);

/* Each caller's first WARM_STEPS of each way, or a first round of a program, which nobody measures:
 * they open connections, prepare statements and touch new pages. */
enum { WARM_STEPS = 16 };
void team_warm_up(struct team *team);

/* Steps of a way in all, the first ones included. */
uint64_t team_steps(const struct team *team, size_t way);

struct figures {
	double values[WAYS_MAX][ROUNDS_MAX];
	double p50_us[WAYS_MAX][ROUNDS_MAX], p99_us[WAYS_MAX][ROUNDS_MAX]; /* of a team that is timed */
};

/* Warm up, then all rounds of all ways: steps a second. `team->timed`: and what they took. */
void team_measure(struct team *team, struct figures *ret);

/* The n-th percentile; sorts them. 0 of none. */
double figures_percentile(double *values, size_t count, double percent);

/* A heading, and a line for each way with its median and spread; of a team that is timed, with the
 * medians of the rounds' p50 and p99. */
void figures_head(const char *title, const char *unit, bool timed);
void figures_print(const struct team *team, const struct figures *figures);

#endif
