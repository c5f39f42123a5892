/* SPDX-License-Identifier: Apache-2.0 */
/* event.h -- the contract of an event: its required members, its topic and destinations, and its
 * owner when it can't be delivered. */
#ifndef CONTRACT_EVENT_H
#define CONTRACT_EVENT_H

#include "contract/contract.h"
#include "store/event_rule.h"

enum event_order { ORDER_AGGREGATE_VERSION };

/* The exception of an event that can't be delivered and waits for a person. */
struct event_parked {
	const char *owner;
	enum exception_severity severity;
	int64_t sla_us;
	bool skip_needs_approval; /* a second person, before its aggregate goes on without it */
};

struct event_contract {
	struct event_rule rule; /* applied when the event is written */
	const char *owner;
	struct texts required;
	enum event_order order;
	struct texts deliver_to; /* names of destinations; none: kept, and delivered nowhere */
	struct event_parked on_parked;
};

/* The event of this type in a set: NULL when it has no contract there. */
const struct event_contract *contracts_event(const struct contracts *contracts, const char *type);

#endif
