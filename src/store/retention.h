/* SPDX-License-Identifier: Apache-2.0 */
/* retention.h -- what is kept how long, and what was removed. */
#ifndef STORE_RETENTION_H
#define STORE_RETENTION_H

#include "base/err.h"
#include "store/row.h"

struct store;
struct tx;

/* What is kept how long. Periods are per operation: an operation without one keeps everything. */
struct retention {
	int64_t now_us;
	struct uuid before;   /* only commands with a smaller id are looked at */
	const char *audit_us; /* JSON: {"create-payment": 315360000000000, ...} */
	int64_t audit_max_us; /* the longest of them */
	size_t batch;         /* rows a step, at most */
	bool dry_run;         /* change nothing, only count */
};

/* How far a run of retention got. All zero: at the beginning. */
struct retention_cursor {
	const char *tenant;
	struct uuid id;
	bool done;
};

/* What was removed. */
struct retention_count {
	int64_t tombstones; /* commands that lost body, payload and text */
	int64_t commands, answers, payloads, evidence, duplicates, audit, events;
};

#endif
