/* SPDX-License-Identifier: Apache-2.0 */
/* ended.h -- a store whose commits do not happen: because the handler has ended the transaction, or
 * nobody knows why. One at a time in a process. */
#ifndef TEST_ENDED_H
#define TEST_ENDED_H

#include "store/store.h"

extern int ended_times; /* how many of the next commits find that the handler ended it */

/* The outcome of the next commit is unknown; this runs before its caller learns that. NULL: none */
extern void (*lost_meanwhile)(void);

/* For api_seams; `user` is not used. */
struct store *ended_wrap(void *user, struct store *store);

#endif
