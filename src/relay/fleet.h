/* SPDX-License-Identifier: Apache-2.0 */
/* fleet.h -- the relays of one process: one for each destination that the settings name. */
#ifndef RELAY_FLEET_H
#define RELAY_FLEET_H

#include "relay/destination.h"
#include "relay/relay.h"

struct fleet_options {
	const char *store, *contracts; /* as the settings have them; each relay has its own */
	const struct destination_setting *settings;
	size_t setting_count;
	const char *only; /* one destination; NULL: all */
	int64_t lease_us;
	size_t batch;
	struct env *env;
	struct log log;
};

struct fleet;

/* Open store, contracts and destinations, and start a thread for each destination. IBID_INVALID: a
 * setting is wrong, a contract names a destination that there is not, or there is none at all. */
IBID_CHECK enum ibid_code fleet_start(const struct fleet_options *options, struct fleet **ret,
                                      struct ibid_err *err);

/* What has begun ends, lanes are given up; what was counted stays. Takes NULL. */
void fleet_halt(struct fleet *fleet);
void fleet_stop(struct fleet *fleet); /* the same, and it is gone; takes NULL */

void fleet_wake(struct fleet *fleet); /* something was committed; takes NULL */

size_t fleet_count(const struct fleet *fleet);
const char *fleet_destination(const struct fleet *fleet, size_t at);
struct relay_counts fleet_counts(struct fleet *fleet, size_t at);
struct store *fleet_store(const struct fleet *fleet);

#endif
