/* SPDX-License-Identifier: Apache-2.0 */
/* event_rule.h -- what an event of one type must hold, and where it goes.
 *
 * Part of the event's contract, in the form in which it is applied when the event is written:
 * topic, partition key and headers are made then, and never later. PostgreSQL applies the same
 * rules by itself where a payload does not pass through here (migrations/002_event.sql), with the
 * same sentences. */
#ifndef STORE_EVENT_RULE_H
#define STORE_EVENT_RULE_H

#include "base/json.h"
#include "store/store.h"

enum {
	PARTITION_KEY_BYTES_MAX = 255,
	PARTITION_KEY_DIGITS_MAX = 18, /* of an integer */
};

enum partition_from { PARTITION_AGGREGATE_ID, PARTITION_TENANT, PARTITION_PAYLOAD };

struct event_rule {
	const char *type;
	int version;
	const char *aggregate, *topic;
	enum partition_from partition;
	const char *partition_pointer; /* PARTITION_PAYLOAD; else NULL */
	const char *const *required;   /* pointers: each is there, and not null */
	size_t required_count;
	size_t max_bytes;    /* of the payload, as it is stored */
	const char *headers; /* {"event_version":"1","deliver_to":"kafka-main,audit-file"} */
};

/* Of different types, in their order. */
struct event_rules {
	const struct event_rule **items;
	size_t count;
};

/* The rule of a type: NULL where there is none. `rules` may be NULL. */
const struct event_rule *event_rule_find(const struct event_rules *rules, const char *type);

/* Check the event and give it topic, partition key and headers. `payload` is what was read of it;
 * NULL: it is read here, where a rule asks for it. What is made lives in `arena`, which `payload`
 * must outlive, or in the rule. `rule` NULL: the event has no contract, and goes nowhere.
 * IBID_FAILED says what is violated: "event PaymentCreated version 1: /amount is missing, ...". */
IBID_CHECK enum ibid_code event_rule_apply(const struct event_rule *rule, struct arena *arena,
                                           struct json *payload, struct event_row *event,
                                           struct ibid_err *err);

#endif
