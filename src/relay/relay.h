/* SPDX-License-Identifier: Apache-2.0 */
/* relay.h -- bring the outbox to one destination: any number of relays at once, in any process.
 *
 * A relay leases lanes of its destination (store/outbox.h) and works on each by steps; those of
 * different lanes may run at the same time. What all its lanes share is the destination's gate:
 * breaker, rate and budget of retries. */
#ifndef RELAY_RELAY_H
#define RELAY_RELAY_H

#include "broker/broker.h"
#include "contract/contract.h"
#include "relay/pauses.h"
#include "retry/gate.h"
#include "store/outbox.h"

#include <pthread.h>

struct relay_options {
	struct store *store;
	struct broker *broker;
	const struct contracts *contracts; /* whose the events are that get stuck */
	const char *name; /* of this relay, among all: host, process, something random */
	struct env *env;
	struct log log;
	int64_t lease_us;
	size_t batch; /* events that are sent together, at most */
	struct retry_policy policy;
	struct gate_limits limits;
};

/* Upper bounds of how old events are when they are acknowledged: X(microseconds, seconds). */
#define RELAY_AGES(X)                                                                              \
	X(1000, "0.001")                                                                               \
	X(2500, "0.0025")                                                                              \
	X(5000, "0.005")                                                                               \
	X(10000, "0.01")                                                                               \
	X(25000, "0.025")                                                                              \
	X(50000, "0.05")                                                                               \
	X(100000, "0.1")                                                                               \
	X(250000, "0.25")                                                                              \
	X(500000, "0.5")                                                                               \
	X(1000000, "1")                                                                                \
	X(2500000, "2.5")                                                                              \
	X(5000000, "5")                                                                                \
	X(10000000, "10")                                                                              \
	X(30000000, "30")                                                                              \
	X(60000000, "60")                                                                              \
	X(300000000, "300")                                                                            \
	X(3600000000, "3600")
#define RELAY_AGE_ONE(us, text) +1
enum { RELAY_AGE_COUNT = 0 RELAY_AGES(RELAY_AGE_ONE) };
#undef RELAY_AGE_ONE

/* What it did so far. */
struct relay_counts {
	int64_t delivered, parked, batches, fenced;
	int64_t recovered;                    /* of those delivered: they had failed before */
	int64_t failed[FAILURE_CLASS_COUNT];  /* attempts at an event */
	int64_t outages[FAILURE_CLASS_COUNT]; /* whole batches, and nobody's attempt */
	int64_t ages[RELAY_AGE_COUNT + 1];    /* each without those below it; the last has no bound */
	int64_t age_sum_us;
	int64_t breaker[BREAKER_STATE_COUNT]; /* 1 in the state that it is in */
};
void relay_counts_add(struct relay_counts *to, const struct relay_counts *more);

/* An event that is so old was acknowledged. */
void relay_counts_age(struct relay_counts *counts, int64_t age_us);

struct relay_lane;

/* How many aggregates in a row may be refused as if nothing of ours were wanted, and none taken,
 * before the destination is paused. */
enum { RELAY_REFUSALS = 3 };

enum { RELAY_TROUBLE_SIZE = 512 };

struct relay {
	struct relay_options options;
	atomic_bool stop; /* whatever waits returns soon */
	struct pauses pauses;
	pthread_mutex_t lock; /* of what follows */
	pthread_cond_t woken;
	uint64_t hint; /* grows when something may have come */
	struct gate gate;
	char trouble[RELAY_TROUBLE_SIZE]; /* the last failure that was reported to the gate */
	struct relay_counts counts;
	uint64_t refused[RELAY_REFUSALS]; /* aggregates, since one was taken */
	size_t refused_count;
};

void relay_init(struct relay *relay, const struct relay_options *options);
void relay_release(struct relay *relay);

/* Run until relay_stop: leases lanes and works on each by a thread of its own. IBID_NOMEM. */
IBID_CHECK enum ibid_code relay_run(struct relay *relay, struct ibid_err *err);

/* From any thread. */
void relay_stop(struct relay *relay);
void relay_wake(struct relay *relay); /* something was committed: look at once */

/* Read what is paused; lanes learn of it at once. */
IBID_CHECK enum ibid_code relay_look_at_pauses(struct relay *relay, struct ibid_err *err);

struct relay_counts relay_counts(struct relay *relay);

#endif
