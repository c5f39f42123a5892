/* SPDX-License-Identifier: Apache-2.0 */
/* envelope.h -- an event in the form in which destinations get it: CloudEvents 1.0. */
#ifndef RELAY_ENVELOPE_H
#define RELAY_ENVELOPE_H

#include "broker/broker.h"
#include "store/outbox.h"

/* Is the event to go there? Said by its contract when it was written. */
bool envelope_is_for(const struct event_row *event, const char *destination);

/* A number for the event's aggregate: two that are equal by chance only wait for each other. */
uint64_t envelope_aggregate(const char *tenant, const char *type, const char *id);

/* Its record; what it points at is the event's or in `arena`. False without memory. */
bool envelope_make(struct arena *arena, const struct event_row *event, struct record *ret);

#endif
