/* SPDX-License-Identifier: Apache-2.0 */
/* retry.h -- how often something is tried, and how far apart the tries are.
 *
 * Pauses double from try to try up to a cap, and each is random between zero and that value ("full
 * jitter"), so that work that failed together is not retried together. Pure functions: time and
 * random numbers are arguments, so that tests can simulate years. */
#ifndef RETRY_RETRY_H
#define RETRY_RETRY_H

#include <stdint.h>

enum { RETRY_ATTEMPTS_MAX = 1000 };

/* No pause is longer, whatever a setting or the other side says: times stay within int64_t, and the
 * work is tried again within a month. */
#define RETRY_PAUSE_MAX_US (INT64_C(30) * 86400 * 1000000)

/* What may follow a try whose outcome is unknown. */
enum retry_unknown {
	RETRY_INQUIRE, /* the default: find out before anything is repeated (I4) */
	RETRY_REPEAT,  /* repeating is harmless: the other side recognises its id */
};

struct retry_policy {
	int attempts_max; /* the first try included */
	int64_t base_us;  /* the first pause at most; doubled each time */
	int64_t cap_us;   /* no pause is longer, unless the other side asks for it */
	enum retry_unknown unknown;
};

/* How long to wait after the `attempt`-th try (from 1) failed: uniformly random up to the doubled
 * base, so that callers that collided do not collide again; -1 when the tries are used up. */
int64_t retry_pause_us(const struct retry_policy *policy, int attempt, uint64_t random);

/* The same, but at least `least_us`, whether or not tries are left. If `least_us` is beyond the
 * range, up to one base is added at random, so that many callers with the same least pause do not
 * come at the same moment. At most RETRY_PAUSE_MAX_US. */
int64_t retry_pause_from_us(const struct retry_policy *policy, int attempt, int64_t least_us,
                            uint64_t random);

/* When to check again work that has been open for `age_us`: the longest pause of the try that would
 * be due now if every pause had been as long as possible. Grows with the age up to the cap. */
int64_t retry_pause_at_age_us(const struct retry_policy *policy, int64_t age_us);

#endif
