/* SPDX-License-Identifier: Apache-2.0 */
/* keep.h -- rows about what is kept beside a command, for how long, and how it is forgotten. */
#ifndef STORE_KEEP_H
#define STORE_KEEP_H

#include "base/hash.h"
#include "base/id.h"

#include <stdbool.h>
#include <stdint.h>

/* What is kept of a command's payload: JSON in canonical form, after the contract's classes. */
struct payload_row {
	const char *tenant;
	struct uuid command_id;
	const char *text; /* NULL in put_payload: keep none */
	size_t size;
};

/* A command that came again, with whatever payload, and was not run: counted. */
struct duplicate_row {
	const char *tenant;
	struct uuid command_id;
	int64_t first_us, last_us, count;
	int64_t unlisted; /* of those that were to be kept one by one, and are only counted */
};

/* One of them, where the contract keeps each. */
struct duplicate_seen_row {
	const char *tenant;
	struct uuid command_id;
	int64_t at_us;
	const char *client, *actor; /* "" when not given */
	const char *decision;       /* what it was told: "executed", "conflict", "expired", ... */
	struct sha256 fingerprint;
};

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

/* What an erasure removes: X(name, meaning). */
#define ERASURE_COUNTS(X)                                                                          \
	X(commands, "commands of which something was erased")                                          \
	X(payloads, "payloads")                                                                        \
	X(bodies, "bodies of answers")                                                                 \
	X(texts, "texts of rejections and failures")                                                   \
	X(events, "payloads of events")                                                                \
	X(names, "rows that lost the names of client and actor")                                       \
	X(exceptions, "exceptions that lost detail and note")

struct erasure_count {
#define ERASURE_COUNT_MEMBER(name, meaning) int64_t name;
	ERASURE_COUNTS(ERASURE_COUNT_MEMBER)
#undef ERASURE_COUNT_MEMBER
};

/* What is to be forgotten of one tenant: one command, those of a resource, or those of an actor. */
struct erasure {
	const char *tenant;
	struct uuid id;                          /* of the erasure */
	const struct uuid *command_id;           /* or NULL; likewise: */
	const char *resource_type, *resource_id; /* both or none */
	const char *actor;
	const char *by, *reason; /* for the record; likewise: */
	const char *selection;   /* JSON; holds no name */
	int64_t now_us;
	size_t batch; /* commands a step, at most */
	bool dry_run; /* change nothing, only count */
};

/* How far it got. All zero: at the beginning. */
struct erasure_progress {
	struct uuid id; /* of the last command that was looked at */
	bool done;
	struct erasure_count count;
	int64_t left; /* commands without an outcome: left as they are */
};

/* The record that an erasure leaves. */
struct erasure_row {
	const char *tenant;
	struct uuid id;
	const char *by, *reason, *selection;
	int64_t at_us, finished_us; /* finished 0: it was cut off, or goes on */
	struct erasure_count count;
};

#endif
