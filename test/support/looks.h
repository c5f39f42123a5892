/* SPDX-License-Identifier: Apache-2.0 */
/* looks.h -- a store that tells when a command is claimed alone or a group is run: what the queue
 * made of those who wait. One at a time in a process. */
#ifndef TEST_LOOKS_H
#define TEST_LOOKS_H

#include "store/store.h"

enum look { LOOK_ALONE, LOOK_GROUP };

/* Before a look with code IBID_OK, and after it with its own. */
typedef void look_fn(void *user, enum look look, bool after, enum ibid_code code);

struct store *looks_wrap(struct store *store, look_fn *tell, void *user);

#endif
