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

/* What it did so far. */
struct relay_counts {
	int64_t delivered, failed, parked, batches, fenced;
	int64_t age_us; /* of the youngest event of the last batch, when it was acknowledged */
};

struct relay_lane;

struct relay {
	struct relay_options options;
	atomic_bool stop;     /* whatever waits returns soon */
	pthread_mutex_t lock; /* of what follows */
	pthread_cond_t woken;
	uint64_t hint; /* grows when something may have come */
	struct gate gate;
	struct relay_counts counts;
};

void relay_init(struct relay *relay, const struct relay_options *options);
void relay_release(struct relay *relay);

/* Run until relay_stop: leases lanes and works on each by a thread of its own. IBID_NOMEM. */
IBID_CHECK enum ibid_code relay_run(struct relay *relay, struct ibid_err *err);

/* From any thread. */
void relay_stop(struct relay *relay);
void relay_wake(struct relay *relay); /* something was committed: look at once */

struct relay_counts relay_counts(struct relay *relay);

#endif
