/* SPDX-License-Identifier: Apache-2.0 */
/* erasure.h -- what is forgotten on request, and the record of it. */
#ifndef STORE_ERASURE_H
#define STORE_ERASURE_H

#include "base/err.h"
#include "store/row.h"

struct store;
struct tx;

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

extern const struct row_shape erasure_shape;

/* ---- Verbs ---------------------------------------------------------------------------------- */

/* Newest first; tenant NULL: of all. */
IBID_CHECK enum ibid_code store_list_erasures(struct store *, struct arena *, const char *tenant,
                                              size_t limit, struct erasure_row **ret,
                                              size_t *ret_count, struct ibid_err *);

#endif
