/* SPDX-License-Identifier: Apache-2.0 */
/* budget.h -- a retry budget: retries are at most a share of what is sent.
 *
 * Backoff slows each piece of work; the budget bounds all of them together. When much fails at
 * once, retries would multiply the load on a side that is already failing: so in any window of time
 * there are at most `floor` retries plus `share_percent` of the first tries in the same window. A
 * retry without budget waits longer; the floor, at least one, lets every retry through in the end.
 *
 * The window slides in tenths. First tries are counted over ten of them and retries over eleven,
 * so that the limit holds for every exact window and not only for those that begin with a tenth.
 *
 * A value without a lock: callers that share one between threads lock it. */
#ifndef RETRY_BUDGET_H
#define RETRY_BUDGET_H

#include <stdint.h>

enum { BUDGET_SLOTS = 10, BUDGET_UNLIMITED = -1 };

struct budget_limit {
	int64_t window_us; /* a multiple of BUDGET_SLOTS; 0: no limit */
	int64_t floor;     /* at least 1 */
	int share_percent; /* BUDGET_UNLIMITED: no limit */
};

struct budget { /* all zero: nothing was tried yet */
	int64_t first[BUDGET_SLOTS + 1], again[BUDGET_SLOTS + 1];
	int64_t slot; /* the newest, counted from steady time 0 */
};

/* `count` first tries are sent now. */
void budget_first(struct budget *budget, const struct budget_limit *limit, int64_t now_us,
                  int64_t count);

/* Take as many of the wanted retries as the budget allows now; returns how many. */
int64_t budget_again(struct budget *budget, const struct budget_limit *limit, int64_t now_us,
                     int64_t wanted);

/* How long until a retry is allowed, if nothing else is sent meanwhile; 0: now. */
int64_t budget_wait_us(const struct budget *budget, const struct budget_limit *limit,
                       int64_t now_us);

#endif
