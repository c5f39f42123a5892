/* SPDX-License-Identifier: Apache-2.0 */
/* group.c -- lanes, who waits in them, and who leads.
 *
 * (G1) A lane that is busy has exactly one thread that works for it: it runs alone, or leads. It
 * hands the lane on to the first who waits, or to whoever leads for those without a thread. (G2)
 * The queue is sorted by turn: a tenant's next command gets the turn after its last one, so whoever
 * sends much waits behind itself. (G3) A place is touched by its own thread, or, while that waits,
 * under the lane's lock or by the leader that took it out of the queue. */
#include "command/group.h"

#include "base/steady.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum {
	QUEUE_MAX_DEFAULT = 4096,
	COMEBACK_US = 100, /* within which who was just served is back with its next command */
	CROWD = 12,        /* of so many, half go together */
};

struct lane {
	struct group *group;
	pthread_mutex_t lock;
	bool busy;
	size_t expected; /* who was served last, and who waited then: 0 or 1 when it is quiet */
	size_t awaited;  /* by who gathers */
	pthread_cond_t gathered;
	uint64_t turn; /* of who was served last */
	struct waiter *first;
	size_t waiting;
};

struct group {
	struct store *store;
	size_t queue_max;
	group_leader *lead;
	void *lead_user;
	size_t lane_count;
	struct lane lanes[GROUP_LANES];
};

/* ---- Numbers -------------------------------------------------------------------------------- */

/* FNV-1a. The NUL is in, and keeps values apart. */
static uint64_t hash_text(uint64_t hash, const char *text)
{
	for (;; text++) {
		hash = (hash ^ (unsigned char)*text) * 1099511628211U;
		if (!*text)
			return hash;
	}
}

enum { HASH_NULL = 0x9e };
static const uint64_t hash_seed = 14695981039346656037U;

uint64_t group_contention(const char *tenant, const char *const *values, size_t count)
{
	uint64_t hash = hash_text(hash_seed, tenant);
	for (size_t i = 0; i < count; i++)
		hash = values[i] ? hash_text(hash, values[i]) : hash ^ HASH_NULL;
	return hash;
}

static uint64_t hash_identity(const struct identity *identity)
{
	uint64_t hash = hash_text(hash_seed, identity->tenant);
	hash = hash_text(hash, identity->operation);
	hash = hash_text(hash, identity->scope);
	return hash_text(hash, identity->key);
}

/* ---- Life ----------------------------------------------------------------------------------- */

struct group *group_new(struct store *store, unsigned queue_max)
{
	struct group *group = calloc(1, sizeof *group);
	if (!group)
		return NULL;
	group->store = store;
	group->lane_count = store->ops->lanes(store);
	assert(group->lane_count <= GROUP_LANES);
	group->queue_max = (queue_max ? queue_max : QUEUE_MAX_DEFAULT);
	for (size_t i = 0; i < group->lane_count; i++) {
		group->lanes[i].group = group;
		pthread_mutex_init(&group->lanes[i].lock, NULL);
		steady_cond_init(&group->lanes[i].gathered);
	}
	return group;
}

void group_free(struct group *group)
{
	if (!group)
		return;
	for (size_t i = 0; i < group->lane_count; i++) {
		assert(!group->lanes[i].busy && !group->lanes[i].first);
		pthread_cond_destroy(&group->lanes[i].gathered);
		pthread_mutex_destroy(&group->lanes[i].lock);
	}
	free(group);
}

/* ---- Waiting -------------------------------------------------------------------------------- */

/* Into the queue, by turn (G2). False: it is full, or the tenant's part of it. */
static bool enqueue(struct lane *lane, struct waiter *waiter)
{
	size_t own = 0;
	waiter->turn = lane->turn;
	for (const struct waiter *at = lane->first; at; at = at->next) {
		if (at->tenant == waiter->tenant) {
			waiter->turn = at->turn + 1;
			own++;
		}
	}
	size_t most = lane->group->queue_max;
	if (lane->waiting >= most || own >= (most + 1) / 2)
		return false;
	struct waiter **place = &lane->first;
	while (*place && (*place)->turn <= waiter->turn)
		place = &(*place)->next;
	waiter->next = *place;
	*place = waiter;
	if (++lane->waiting >= lane->awaited)
		pthread_cond_signal(&lane->gathered);
	return true;
}

/* It is `next` that works for the lane. */
static void call(struct lane *lane, struct waiter *next)
{
	if (next->place->served) {
		lane->group->lead(lane->group->lead_user, lane);
		return;
	}
	next->state = LEADS;
	pthread_cond_signal(&next->woken);
}

/* Whoever worked for the lane goes: the first who waits works on (G1). */
static void hand_on(struct lane *lane, size_t served)
{
	struct waiter *next = lane->first;
	assert(lane->busy);
	lane->expected = served + lane->waiting;
	lane->busy = next;
	if (next)
		call(lane, next);
}

/* ---- Leading -------------------------------------------------------------------------------- */

static bool has_twin(struct waiter *const *batch, size_t count, const struct waiter *waiter)
{
	for (size_t i = 0; i < count; i++)
		if (batch[i]->identity == waiter->identity)
			return true;
	return false;
}

static struct waiter *dequeue(struct lane *lane, struct waiter **at)
{
	struct waiter *waiter = *at;
	*at = waiter->next;
	lane->waiting--;
	lane->turn = waiter->turn;
	return waiter;
}

/* Out of the queue: the leader, wherever it stands by now, and `most` whose turn it is, in order. A
 * twin waits for the commit. */
static size_t take_batch(struct lane *lane, const struct waiter *leader, size_t most,
                         struct waiter **ret)
{
	size_t count = 0;
	struct waiter **at = &lane->first;
	while (*at != leader)
		at = &(*at)->next;
	ret[count++] = dequeue(lane, at);
	for (at = &lane->first; *at && count < most;) {
		if (has_twin(ret, count, *at))
			at = &(*at)->next;
		else
			ret[count++] = dequeue(lane, at);
	}
	return count;
}

static int by_contention(const void *a, const void *b)
{
	const struct waiter *one = *(struct waiter *const *)a, *two = *(struct waiter *const *)b;
	if (one->place->contends != two->place->contends)
		return one->place->contends < two->place->contends ? -1 : 1;
	return one->turn < two->turn ? -1 : one->turn > two->turn;
}

static void run_batch(struct lane *lane, struct waiter **batch, size_t count)
{
	struct store *store = lane->group->store;
	struct group_member *members[GROUP_MAX];
	struct ibid_err err = {0};
	qsort(batch, count, sizeof(struct waiter *), by_contention);
	for (size_t i = 0; i < count; i++)
		members[i] = batch[i]->place->member;
	enum ibid_code code = store->ops->run_group(store, members, count, &err);
	for (size_t i = 0; i < count; i++) {
		batch[i]->place->code = code;
		batch[i]->place->err = err;
	}
}

/* Threads that submit in a loop come back at once, but not before the next leader: without a moment
 * for them, batches of one and of all but one would take turns. Who does not come is not expected
 * again. */
static void gather(struct lane *lane, size_t awaited)
{
	struct timespec until = steady_after(COMEBACK_US);
	lane->awaited = awaited;
	while (lane->waiting < awaited)
		if (pthread_cond_timedwait(&lane->gathered, &lane->lock, &until))
			return;
}

/* Those without a thread come back later, over a network: while half of a crowd is served, the
 * other half does that. */
static size_t half_of_crowd(const struct lane *lane)
{
	size_t crowd = lane->expected > lane->waiting ? lane->expected : lane->waiting;
	size_t half = crowd < CROWD ? crowd : (crowd + 1) / 2;
	return half < GROUP_MAX ? half : GROUP_MAX;
}

/* Run a batch that was taken out of the queue, and tell its members. The lane is locked before and
 * after. */
static void serve(struct lane *lane, struct waiter **batch, size_t count)
{
	struct group_place *served[GROUP_MAX];
	size_t served_count = 0;
	pthread_mutex_unlock(&lane->lock);
	run_batch(lane, batch, count);
	pthread_mutex_lock(&lane->lock);
	for (size_t i = 0; i < count; i++) {
		batch[i]->state = SERVED;
		if (batch[i]->place->served)
			served[served_count++] = batch[i]->place;
		else
			pthread_cond_signal(&batch[i]->woken); /* its own memory: not behind the lock */
	}
	hand_on(lane, count);
	if (!served_count)
		return;
	pthread_mutex_unlock(&lane->lock);
	for (size_t i = 0; i < served_count; i++)
		served[i]->served(served[i], GROUP_SERVED);
	pthread_mutex_lock(&lane->lock);
}

/* `self` is in the queue and leads. False: nobody else waits, it goes alone. */
static bool lead(struct lane *lane, struct waiter *self)
{
	struct waiter *batch[GROUP_MAX];
	gather(lane, lane->expected < GROUP_MAX ? lane->expected : GROUP_MAX);
	size_t count = take_batch(lane, self, GROUP_MAX, batch);
	if (count == 1)
		return false;
	serve(lane, batch, count);
	return true;
}

void group_serve(struct group *group, group_leader *leader, void *user)
{
	group->lead = leader;
	group->lead_user = user;
}

void group_lead(struct lane *lane)
{
	struct waiter *batch[GROUP_MAX];
	struct group_place *alone = NULL;
	pthread_mutex_lock(&lane->lock);
	assert(lane->busy && lane->first);
	struct waiter *first = lane->first;
	if (!first->place->served) { /* it came since, with a thread of its own */
		call(lane, first);
	} else {
		gather(lane, half_of_crowd(lane));
		size_t count = take_batch(lane, first, half_of_crowd(lane), batch);
		if (count == 1)
			alone = batch[0]->place;
		else
			serve(lane, batch, count);
	}
	pthread_mutex_unlock(&lane->lock);
	if (alone)
		alone->served(alone, GROUP_ALONE);
}

/* A lane that is free, or a place in its queue. */
static enum ibid_code take_place(struct lane *lane, struct group_place *place, enum group_part *ret,
                                 struct ibid_err *err)
{
	struct waiter *self = &place->waiter;
	bool first = !lane->busy;
	lane->busy = true;
	*ret = GROUP_ALONE;
	if (first && lane->expected <= 1)
		return IBID_OK;
	*ret = GROUP_WAITS;
	if (!enqueue(lane, self)) {
		assert(!first); /* nobody waits in a lane that is not busy */
		return err_set(err, IBID_BUSY,
		               "too many commands wait already; nothing was done: send it again with the "
		               "same key, later");
	}
	if (first)
		call(lane, self);
	return IBID_OK;
}

enum ibid_code group_enter(struct group *group, struct group_place *place, enum group_part *ret,
                           struct ibid_err *err)
{
	struct lane *lane = &group->lanes[place->contends % group->lane_count];
	const struct identity *identity = &place->member->row.identity;
	struct waiter *self = &place->waiter;
	bool waits = !place->served;
	place->lane = lane;
	*self = (struct waiter){
	    .place = place,
	    .tenant = hash_text(hash_seed, identity->tenant),
	    .identity = hash_identity(identity),
	};
	if (waits)
		pthread_cond_init(&self->woken, NULL);
	pthread_mutex_lock(&lane->lock);
	enum ibid_code code = take_place(lane, place, ret, err);
	/* Where nobody waits, it may be served by now, and gone. */
	if (waits && !code && *ret == GROUP_WAITS) {
		while (self->state == WAITS)
			pthread_cond_wait(&self->woken, &lane->lock);
		*ret = self->state == SERVED || lead(lane, self) ? GROUP_SERVED : GROUP_ALONE;
	}
	pthread_mutex_unlock(&lane->lock);
	if (waits)
		pthread_cond_destroy(&self->woken);
	return code;
}

void group_leave(struct group_place *place)
{
	struct lane *lane = place->lane;
	pthread_mutex_lock(&lane->lock);
	hand_on(lane, 1);
	pthread_mutex_unlock(&lane->lock);
}

size_t group_waiting(struct group *group)
{
	size_t waiting = 0;
	for (size_t i = 0; i < group->lane_count; i++) {
		pthread_mutex_lock(&group->lanes[i].lock);
		waiting += group->lanes[i].waiting;
		pthread_mutex_unlock(&group->lanes[i].lock);
	}
	return waiting;
}
