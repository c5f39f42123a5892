/* SPDX-License-Identifier: Apache-2.0 */
/* group.h -- threads that submit at the same time share transactions.
 *
 * A caller whose lane is free runs its command at once, alone. Callers that come while the lane is
 * in use wait in the lane's queue. When the lane is free again, the first of them leads: it takes
 * as many waiting commands as may share a transaction and runs them all. So no command is delayed
 * for the sake of a batch, and batches grow with the load.
 *
 * Asynchronous callers pass a callback (`served`) instead of waiting in a thread. Where such a
 * caller is the first in the queue, the thread that serves the group leads in its place
 * (group_lead).
 *
 * Commands that contend for the same row use the same lane, and every batch has them in the same
 * order. Tenants take turns, however much one of them sends (K10). */
#ifndef COMMAND_GROUP_H
#define COMMAND_GROUP_H

#include "store/store.h"

#include <pthread.h>

struct group;
struct lane;

enum { GROUP_LANES = 2 }; /* that work at the same time, at most: see lanes of the store */

/* `queue_max`: how many may wait, 0 for the default; one tenant has half of that. NULL without
 * memory. */
struct group *group_new(struct store *store, unsigned queue_max);
void group_free(struct group *group); /* takes NULL; nobody is in it */

enum group_part {
	GROUP_ALONE,  /* run it now, and call group_leave when that is over */
	GROUP_SERVED, /* somebody has run it: `member` and `code` say what became of it */
	GROUP_WAITS,  /* with `served`: that is called with one of the others, once */
};

struct group_place;
typedef void group_served_fn(struct group_place *place, enum group_part part);

/* Where somebody stands in a lane's queue; group.c's own. */
struct waiter {
	struct group_place *place;
	uint64_t tenant, identity; /* hashes: two that are equal by chance only wait for each other */
	uint64_t turn;
	enum { WAITS, LEADS, SERVED } state;
	pthread_cond_t woken; /* of a thread */
	struct waiter *next;
};

struct group_place {
	struct group_member *member; /* in: with a new row and its context */
	uint64_t contends;           /* in: group_contention of what it contends for */
	group_served_fn *served; /* in; NULL: the thread waits. The place lives until it was called */
	enum ibid_code code;     /* out, GROUP_SERVED: what run_group returned */
	struct ibid_err err;
	struct lane *lane; /* out, GROUP_ALONE: for group_leave */
	struct waiter waiter;
};

/* Take part. IBID_BUSY: too many wait; nothing was done. */
IBID_CHECK enum ibid_code group_enter(struct group *group, struct group_place *place,
                                      enum group_part *ret, struct ibid_err *err);
void group_leave(struct group_place *place);

/* Who leads where whoever is next has no thread: `lead` is called with a lane, under its lock, and
 * calls group_lead on a thread of its own soon. Before anybody enters with `told`. */
typedef void group_leader(void *user, struct lane *lane);
void group_serve(struct group *group, group_leader *lead, void *user);
void group_lead(struct lane *lane);

size_t group_waiting(struct group *group); /* now */

/* A number for a tenant's row: the same values, the same number, in every process. */
uint64_t group_contention(const char *tenant, const char *const *values, size_t count);

#endif
