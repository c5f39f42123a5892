/* SPDX-License-Identifier: Apache-2.0 */
/* webhook_answer.h -- what a receiver's answer means for a record (F01). */
#ifndef BROKER_WEBHOOK_ANSWER_H
#define BROKER_WEBHOOK_ANSWER_H

#include "broker/broker.h"
#include "net/calls.h"

#define WEBHOOK_RETRY_AFTER_US_MAX INT64_C(86400000000) /* a day */

struct webhook_answer {
	const struct call *call;
	bool headed;      /* its status and headers arrived, perhaps not its body */
	const char *said; /* a part of its body; "": nothing may be shown */
	const char *place;
	int64_t now_us; /* wall clock */
};

/* Set the record's result. False: the answer is about the receiver, not about this record, so
 * another record would now get the same answer. */
bool webhook_conclude(struct record *record, const struct webhook_answer *answer);

#endif
