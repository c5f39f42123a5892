/* SPDX-License-Identifier: Apache-2.0 */
/* ended.h -- a store whose commits find, on either engine, that the handler ended the transaction.
 * One at a time in a process. */
#ifndef TEST_ENDED_H
#define TEST_ENDED_H

#include "store/store.h"

extern int ended_times; /* how many of the next commits find it */

/* For api_seams; `user` is not used. */
struct store *ended_wrap(void *user, struct store *store);

#endif
