/* SPDX-License-Identifier: Apache-2.0 */
/* steady.h -- waiting for other threads with a time limit. It uses the machine's clock, because
 * threads wait in real time also when a test replaces the clock of env.h. */
#ifndef BASE_STEADY_H
#define BASE_STEADY_H

#include <pthread.h>
#include <stdint.h>
#include <time.h>

/* A condition variable that uses the steady clock, and the time on it `wait_us` from now. */
void steady_cond_init(pthread_cond_t *cond);
struct timespec steady_after(int64_t wait_us);

#endif
