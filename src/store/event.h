/* SPDX-License-Identifier: Apache-2.0 */
/* event.h -- facts to tell others: immutable outbox rows. */
#ifndef STORE_EVENT_H
#define STORE_EVENT_H

#include "base/err.h"
#include "store/row.h"

struct store;
struct tx;

enum { EVENT_ORDINAL_MAX = 65535 };

/* A fact to tell others; an immutable outbox row. */
struct event_row {
	struct uuid id; /* out only: uuid_nth(command_id, ordinal) */
	struct uuid command_id;
	const char *tenant, *aggregate_type, *aggregate_id, *type, *payload;
	int64_t version; /* in: 0 asks for the next one; out: the version it got */
	const char *key; /* NULL in: "<command id>:<ordinal>"; given by the caller: unique per tenant */
	int ordinal;     /* within the command, from 1 */
	const char *correlation_id, *causation_id, *traceparent, *tracestate;
	int64_t at_us;

	/* Where it goes, by its contract when it was written. */
	const char *topic;         /* NULL: nowhere: it has no contract */
	const char *partition_key; /* NULL in: the aggregate's id */
	const char *headers;       /* a JSON object; NULL in: an empty one */
};

extern const struct row_shape event_shape;

/* ---- Verbs ---------------------------------------------------------------------------------- */

/* IBID_NOT_FOUND when the tenant has no such event. */
IBID_CHECK enum ibid_code store_get_event(struct store *, struct arena *, const char *tenant,
                                          const struct uuid *id, struct event_row *ret,
                                          struct ibid_err *);

/* Of one command; or of the tenant (newest first, at most `limit`) when command_id is NULL. */
IBID_CHECK enum ibid_code store_list_events(struct store *, struct arena *, const char *tenant,
                                            const struct uuid *command_id, size_t limit,
                                            struct event_row **ret, size_t *ret_count,
                                            struct ibid_err *);

#endif
