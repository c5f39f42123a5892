/* SPDX-License-Identifier: Apache-2.0 */
/* claimer.h -- the usual publisher, to compare with: claims rows, sends them, marks them. */
#ifndef BENCH_CLAIMER_H
#define BENCH_CLAIMER_H

#include "target.h"

struct claimed {
	int64_t events;
	double seconds;
};

/* Publishers as threads, until nothing is left or the time is up. Kafka is sent to by the same code
 * as the relay's, without transactions: nobody is fenced. */
struct claimed claimers_run(const struct target *target, const char *brokers, int threads,
                            size_t batch, double most_seconds);

#endif
