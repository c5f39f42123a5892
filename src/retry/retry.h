/* SPDX-License-Identifier: Apache-2.0 */
/* retry.h -- when to try again: a pure function, so that tests can walk through it. */
#ifndef RETRY_RETRY_H
#define RETRY_RETRY_H

#include <stdint.h>

struct retry_policy {
	int attempts_max; /* the first try included */
	int64_t base_us;  /* the first pause at most; doubled each time */
	int64_t cap_us;   /* no pause is longer */
};

/* How long to wait after the `attempt`-th try (from 1) failed: uniformly random up to the doubled
 * base, so that callers that collided do not meet again; -1 when the tries are used up. */
int64_t retry_pause_us(const struct retry_policy *policy, int attempt, uint64_t random);

#endif
