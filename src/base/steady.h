/* SPDX-License-Identifier: Apache-2.0 */
/* steady.h -- waiting for other threads, at most so long. The machine's clock, because threads wait
 * in real time also where a test moves the ledger's. */
#ifndef BASE_STEADY_H
#define BASE_STEADY_H

#include <pthread.h>
#include <stdint.h>
#include <time.h>

/* A condition that counts time on the steady clock, and the point `wait_us` from now on it. */
void steady_cond_init(pthread_cond_t *cond);
struct timespec steady_after(int64_t wait_us);

#endif
