/* SPDX-License-Identifier: Apache-2.0 */
/* fault.h -- faults at the statements of a store: one at its n-th point, until none is left.
 *
 *     fault_path("success");
 *     for (unsigned n = 1;; n++) {
 *         struct fault fault = {.kind = FAULT_KILL, .at = n};
 *         ... open the store with {.wrap = fault_set, .user = &fault}, use it, look ...
 *         if (!fault.fired)
 *             break;
 *     }
 *
 * Where a fault acted is counted once for each path, statement and kind, by all processes that the
 * program forks, and printed when the program ends. */
#ifndef TEST_FAULT_H
#define TEST_FAULT_H

#include "store/store.h"

#include <stdatomic.h>

enum fault_kind {
	FAULT_FAIL, /* the statement fails */
	FAULT_LOSE, /* it ran, or may have, and its answer is lost; on PostgreSQL with the connection */
	FAULT_KILL, /* SIGKILL to this process, before it or after it */
	FAULT_KINDS
};

struct fault {
	enum fault_kind kind;
	unsigned at;           /* the at-th point of its kind; 0: it only counts them */
	const char *statement; /* of this statement alone; NULL: of all */
	struct fault *also;    /* another one on the same store; NULL: none */
	void (*tell)(void *user, const struct hook_point *point); /* before it acts; may be NULL */
	void *user;

	atomic_uint points; /* so far */
	atomic_bool fired;
	struct hook hook;
};

/* Set it on a store, which it must outlive: for api_seams. Returns the store. */
struct store *fault_set(void *fault, struct store *store);

/* Is this one of its points? */
bool fault_meets(const struct fault *fault, const struct hook_point *point);

/* What is being tested: faults from here on are counted under this name. Called before the first
 * fork. */
void fault_path(const char *name);

/* On PostgreSQL each point takes long: is this one of those that are tried, one in `share`, which
 * IBID_TEST_SEED chooses? All are with IBID_TEST_WHOLE=1, and on SQLite. */
bool fault_takes_part(unsigned long point, unsigned share);

/* How many faults have acted, in this process and those that it forked. */
unsigned fault_count(void);

#endif
