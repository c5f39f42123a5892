/* SPDX-License-Identifier: Apache-2.0 */
/* gate.h -- one at a time, in the order of arrival, and nobody waits longer than it wants.
 *
 * A plain mutex lets a busy thread take itself over and over while others run into their time-out;
 * here whoever leaves hands over to whoever waits longest. The gate belongs to no thread. */
#ifndef STORE_SQLITE_GATE_H
#define STORE_SQLITE_GATE_H

#include "base/steady.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

struct gate_waiter;

struct gate {
	pthread_mutex_t lock;
	bool held;
	struct gate_waiter *first, **end; /* who waits; only while held */
};

void gate_init(struct gate *gate);
void gate_release(struct gate *gate); /* nobody is inside or waiting */

bool gate_enter(struct gate *gate, int64_t wait_us); /* false: not within that time */
void gate_leave(struct gate *gate);

#endif
