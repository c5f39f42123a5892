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

struct way {
	const char *title;
	struct target *target;
	void (*step)(struct caller *caller); /* do it once */
	bool drives;                         /* needs a connection of its own */
	int against;                         /* the way that it is compared with: its index */
	const char *operation;               /* which contract, where ibid_submit is called */
	const void *data;                    /* the step's */
};

struct caller {
	const struct way *way;
	struct driver *driver;
	int number;           /* no other caller of this run has it */
	uint64_t random;      /* state of caller_random */
	uint64_t count, done; /* steps in all, and in this round */
	uint64_t limit;       /* steps of a round; 0: until it is told to stop */
	const bool *stop;
	pthread_t thread;
};

/* A cheap number, another one each time. */
uint64_t caller_random(struct caller *caller);

enum { WAYS_MAX = 12 };

struct team {
	const struct way *ways;
	size_t count;
	int callers;
	struct caller *members[WAYS_MAX];
};

/* As many callers of each way. */
void team_init(struct team *team, const struct way *ways, size_t count, int callers);
void team_release(struct team *team);

/* One round of one way, for some time or of some steps each: steps that were done. */
uint64_t team_play(struct team *team, size_t way, double seconds, uint64_t steps);

/* Each caller's first WARM_STEPS of each way, which nobody measures: they open connections, prepare
 * statements and touch new pages. */
enum { WARM_STEPS = 16 };
void team_warm_up(struct team *team);

/* Steps of a way in all, the first ones included. */
uint64_t team_steps(const struct team *team, size_t way);

struct figures {
	double values[WAYS_MAX][ROUNDS_MAX];
};

/* Warm up, then all rounds of all ways: steps a second. */
void team_measure(struct team *team, struct figures *ret);

/* A heading, and a line for each way with its median and spread. */
void figures_head(const char *title, const char *unit);
void figures_print(const struct team *team, const struct figures *figures);

#endif
