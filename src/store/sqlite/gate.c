/* SPDX-License-Identifier: Apache-2.0 */
/* gate.c -- a queue of waiters, each with a condition of its own.
 *
 * (G1) Someone waits only while the gate is held. (G2) `granted` is set under the lock by whoever
 * hands over, and the waiter is then no longer in the queue. */
#include "store/sqlite/gate.h"

#include <assert.h>

struct gate_waiter {
	pthread_cond_t cond;
	bool granted;
	struct gate_waiter *next;
};

void gate_init(struct gate *gate)
{
	*gate = (struct gate){.held = false};
	gate->end = &gate->first;
	pthread_mutex_init(&gate->lock, NULL);
}

void gate_release(struct gate *gate)
{
	assert(!gate->first); /* G1 */
	pthread_mutex_destroy(&gate->lock);
}

static void enqueue(struct gate *gate, struct gate_waiter *waiter)
{
	waiter->next = NULL;
	*gate->end = waiter;
	gate->end = &waiter->next;
}

static void unlink_waiter(struct gate *gate, struct gate_waiter *waiter)
{
	struct gate_waiter **at = &gate->first;
	while (*at != waiter)
		at = &(*at)->next;
	*at = waiter->next;
	if (!*at)
		gate->end = at;
}

static bool wait_turn(struct gate *gate, int64_t wait_us)
{
	struct gate_waiter self = {.granted = false};
	struct timespec until = steady_after(wait_us);
	int failed = 0;
	steady_cond_init(&self.cond);
	enqueue(gate, &self);
	while (!self.granted && !failed)
		failed = pthread_cond_timedwait(&self.cond, &gate->lock, &until);
	if (!self.granted)
		unlink_waiter(gate, &self); /* G2 */
	pthread_cond_destroy(&self.cond);
	return self.granted;
}

bool gate_enter(struct gate *gate, int64_t wait_us)
{
	bool entered = true;
	pthread_mutex_lock(&gate->lock);
	if (!gate->held)
		gate->held = true;
	else if (wait_us > 0)
		entered = wait_turn(gate, wait_us);
	else
		entered = false;
	pthread_mutex_unlock(&gate->lock);
	return entered;
}

void gate_leave(struct gate *gate)
{
	pthread_mutex_lock(&gate->lock);
	struct gate_waiter *next = gate->first;
	assert(gate->held);
	if (next) {
		unlink_waiter(gate, next);
		next->granted = true;
		/* Under the lock: the condition lives on the waiter's stack. */
		pthread_cond_signal(&next->cond);
	} else {
		gate->held = false;
	}
	pthread_mutex_unlock(&gate->lock);
}
