/* SPDX-License-Identifier: Apache-2.0 */
/* relays.h -- the relays of one process: one for each destination that the settings name. */
#ifndef RELAY_RELAYS_H
#define RELAY_RELAYS_H

#include "relay/destination.h"
#include "relay/relay.h"

struct relays_options {
	const char *store, *contracts; /* as the settings have them; each relay has its own */
	const struct destination_setting *settings;
	size_t setting_count;
	const char *only; /* one destination; NULL: all */
	int64_t lease_us;
	size_t batch;
	struct env *env;
	struct log log;
};

struct relays;

/* Open store, contracts and destinations, and start a thread for each destination. IBID_INVALID: a
 * setting is wrong, a contract names a destination that there is not, or there is none at all. */
IBID_CHECK enum ibid_code relays_start(const struct relays_options *options, struct relays **ret,
                                       struct ibid_err *err);

/* What has begun ends, lanes are given up; what was counted stays. Takes NULL. */
void relays_halt(struct relays *relays);
void relays_stop(struct relays *relays); /* the same, and it is gone; takes NULL */

void relays_wake(struct relays *relays); /* something was committed; takes NULL */

size_t relays_count(const struct relays *relays);
const char *relays_destination(const struct relays *relays, size_t at);
struct relay_counts relays_counts(struct relays *relays, size_t at);
struct store *relays_store(const struct relays *relays);

#endif
