/* SPDX-License-Identifier: Apache-2.0 */
/* retry.h -- how often something is tried, and how far apart the tries are.
 *
 * Pauses double from try to try up to a cap, and each is drawn at random from all of its range
 * ("full jitter"): those who failed together do not come back together. Pure functions: time and
 * random numbers are arguments, so that tests can walk through years of them. */
#ifndef RETRY_RETRY_H
#define RETRY_RETRY_H

#include <stdint.h>

enum { RETRY_ATTEMPTS_MAX = 1000 };

/* No pause is longer, whatever a setting or the other side says: a point in time that far ahead is
 * still a number, and somebody sees the work again within a month. */
#define RETRY_PAUSE_MAX_US (INT64_C(30) * 86400 * 1000000)

/* A try of which nobody knows whether it was done. */
enum retry_unknown {
	RETRY_INQUIRE, /* find out before anything is repeated (I4); so also where nobody said */
	RETRY_REPEAT,  /* once more is harmless: the other side knows it by its id */
};

struct retry_policy {
	int attempts_max; /* the first try included */
	int64_t base_us;  /* the first pause at most; doubled each time */
	int64_t cap_us;   /* no pause is longer, unless the other side asks for it */
	enum retry_unknown unknown;
};

/* How long to wait after the `attempt`-th try (from 1) failed: uniformly random up to the doubled
 * base, so that callers that collided do not meet again; -1 when the tries are used up. */
int64_t retry_pause_us(const struct retry_policy *policy, int attempt, uint64_t random);

/* The same, but `least_us` or longer, and whether or not tries are left. Where the least is beyond
 * the range, the pause is drawn from one base more: many who were told the same do not come at the
 * same moment either. At most RETRY_PAUSE_MAX_US. */
int64_t retry_pause_from_us(const struct retry_policy *policy, int attempt, int64_t least_us,
                            uint64_t random);

/* When to look again at what has been open for `age_us`: the longest pause of the try that somebody
 * would have come to by now who took each pause at its longest. Grows with the age up to the cap.
 */
int64_t retry_pause_at_age_us(const struct retry_policy *policy, int64_t age_us);

#endif
