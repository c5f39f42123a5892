/* SPDX-License-Identifier: Apache-2.0 */
/* relay.c -- leases, and a thread for each lane that is held.
 *
 * (R1) A lane's object belongs to its thread until that has ended; others may only renew its lease
 * and halt it. (R2) The thread that runs the relay leases lanes, renews leases while lanes wait for
 * the destination, reads what is paused, and asks threads to end; nobody waits for the destination
 * but a lane's thread.
 */
#include "relay/relay.h"

#include "base/steady.h"
#include "relay/lane.h"

#include <assert.h>
#include <stdlib.h>

enum {
	LOOK_US = 1000000,       /* what is paused is looked at so often */
	LOOK_PAUSED_US = 100000, /* while something is: whether it is resumed */
};

void relay_init(struct relay *relay, const struct relay_options *options)
{
	*relay = (struct relay){.options = *options};
	relay->options.policy.unknown = RETRY_REPEAT; /* under the same id: who receives it knows */
	pauses_init(&relay->pauses, options->broker->name, &relay->options.log);
	pthread_mutex_init(&relay->lock, NULL);
	steady_cond_init(&relay->woken);
}

void relay_release(struct relay *relay)
{
	pthread_cond_destroy(&relay->woken);
	pthread_mutex_destroy(&relay->lock);
	pauses_release(&relay->pauses);
}

void relay_counts_age(struct relay_counts *counts, int64_t age_us)
{
#define AGE_BOUND(us, text) us,
	static const int64_t bounds[RELAY_AGE_COUNT] = {RELAY_AGES(AGE_BOUND)};
#undef AGE_BOUND
	size_t i = 0;
	while (i < RELAY_AGE_COUNT && age_us > bounds[i])
		i++;
	counts->ages[i]++;
	counts->age_sum_us += age_us > 0 ? age_us : 0;
}

void relay_counts_add(struct relay_counts *to, const struct relay_counts *more)
{
	static_assert(sizeof *to % sizeof(int64_t) == 0, "nothing but numbers");
	int64_t *sum = (int64_t *)to;
	const int64_t *each = (const int64_t *)more;
	for (size_t i = 0; i < sizeof *to / sizeof *sum; i++)
		sum[i] += each[i];
}

struct relay_counts relay_counts(struct relay *relay)
{
	pthread_mutex_lock(&relay->lock);
	struct relay_counts counts = relay->counts;
	counts.breaker[relay->gate.breaker.state] = 1;
	pthread_mutex_unlock(&relay->lock);
	return counts;
}

void relay_wake(struct relay *relay)
{
	pthread_mutex_lock(&relay->lock);
	relay->hint++;
	pthread_cond_broadcast(&relay->woken);
	pthread_mutex_unlock(&relay->lock);
}

void relay_stop(struct relay *relay)
{
	atomic_store(&relay->stop, true);
	relay_wake(relay);
}

enum ibid_code relay_look_at_pauses(struct relay *relay, struct ibid_err *err)
{
	struct pauses_news news = {0};
	enum ibid_code code = pauses_read(&relay->pauses, relay->options.store, &news, err);
	if (news.resumed) {
		pthread_mutex_lock(&relay->lock);
		breaker_hasten(&relay->gate.breaker);
		pthread_mutex_unlock(&relay->lock);
	}
	if (news.changed)
		relay_wake(relay);
	return code;
}

/* ---- A lane's thread ------------------------------------------------------------------------ */

struct worker {
	struct relay *relay;
	struct relay_lane *lane;
	pthread_t thread;
	bool used, ended; /* under the relay's lock; likewise: */
	bool leave;       /* it is to give its lane up */
};

/* Until it is time, something may have come, or it is to end. */
static void wait_for(struct worker *worker, uint64_t *hint, int64_t wait_us)
{
	struct relay *relay = worker->relay;
	struct timespec until = steady_after(wait_us);
	pthread_mutex_lock(&relay->lock);
	while (!atomic_load(&relay->stop) && !worker->leave && relay->hint == *hint)
		if (pthread_cond_timedwait(&relay->woken, &relay->lock, &until))
			break;
	*hint = relay->hint;
	pthread_mutex_unlock(&relay->lock);
}

static bool must_leave(struct worker *worker)
{
	pthread_mutex_lock(&worker->relay->lock);
	bool leave = worker->leave || atomic_load(&worker->relay->stop);
	pthread_mutex_unlock(&worker->relay->lock);
	return leave;
}

static void *work(void *user)
{
	struct worker *worker = user;
	struct relay *relay = worker->relay;
	struct ibid_err err = {0};
	enum ibid_code code = IBID_OK;
	int64_t wait_us = 0;
	uint64_t hint = 0;
	while (!code && !must_leave(worker)) {
		code = lane_step(worker->lane, &wait_us, &err);
		if (!code && wait_us)
			wait_for(worker, &hint, wait_us);
	}
	if (code)
		LOG(&relay->options.log, IBID_LOG_WARN, "relay.fenced",
		    {"destination", log_text(relay->options.broker->name)},
		    {"lane", log_int(lane_number(worker->lane))},
		    {"by", log_text(lane_fenced_by(worker->lane))}, {"reason", log_text(err.text)});
	else
		lane_give_up(worker->lane);
	pthread_mutex_lock(&relay->lock);
	worker->ended = true;
	pthread_cond_broadcast(&relay->woken);
	pthread_mutex_unlock(&relay->lock);
	return NULL;
}

/* ---- Leases --------------------------------------------------------------------------------- */

struct worker_pool {
	struct relay *relay;
	struct worker workers[OUTBOX_LANES];
	uint64_t version; /* the version of what is paused */
};

static void join_ended(struct worker_pool *workers, bool all)
{
	for (size_t i = 0; i < OUTBOX_LANES; i++) {
		struct worker *worker = &workers->workers[i];
		pthread_mutex_lock(&workers->relay->lock);
		bool join = worker->used && (all || worker->ended);
		pthread_mutex_unlock(&workers->relay->lock);
		if (!join)
			continue;
		pthread_join(worker->thread, NULL);
		lane_free(worker->lane);
		*worker = (struct worker){0};
	}
}

static enum ibid_code start(struct worker_pool *workers, const struct lane_lease *lease,
                            struct ibid_err *err)
{
	size_t at = 0;
	while (at < OUTBOX_LANES && workers->workers[at].used)
		at++;
	if (at == OUTBOX_LANES) /* one of its threads ends only now: the lease is left to end, too */
		return IBID_OK;
	struct worker *worker = &workers->workers[at];
	*worker = (struct worker){.relay = workers->relay, .lane = lane_new(workers->relay, lease)};
	if (!worker->lane || pthread_create(&worker->thread, NULL, work, worker)) {
		lane_free(worker->lane);
		return err_set(err, IBID_NOMEM, "out of memory or threads");
	}
	worker->used = true;
	LOG(&workers->relay->options.log, IBID_LOG_INFO, "relay.leased",
	    {"destination", log_text(lease->destination)}, {"lane", log_int(lease->lane)},
	    {"token", log_int(lease->token)});
	return IBID_OK;
}

/* Lanes outlive this: their threads are joined by who calls it. */
static void tell_all(struct worker_pool *workers, void (*tell)(struct relay_lane *lane))
{
	for (size_t i = 0; i < OUTBOX_LANES; i++) {
		struct worker *worker = &workers->workers[i];
		pthread_mutex_lock(&workers->relay->lock);
		bool at_work = worker->used && !worker->ended;
		pthread_mutex_unlock(&workers->relay->lock);
		if (at_work)
			tell(worker->lane);
	}
}

/* Whoever publishes what is paused by now stops. What can't be read stays as it was. */
static void look_at_pauses(struct worker_pool *workers)
{
	const struct relay_options *options = &workers->relay->options;
	struct ibid_err err = {0};
	if (relay_look_at_pauses(workers->relay, &err))
		LOG(&options->log, IBID_LOG_WARN, "relay.pauses",
		    {"destination", log_text(options->broker->name)}, {"reason", log_text(err.text)});
	workers->version = workers->relay->pauses.version;
	tell_all(workers, lane_interrupt);
}

/* Others are there, too. */
static void give_up_more_than(struct worker_pool *workers, size_t share)
{
	size_t held = 0;
	pthread_mutex_lock(&workers->relay->lock);
	for (size_t i = 0; i < OUTBOX_LANES; i++) {
		struct worker *worker = &workers->workers[i];
		if (!worker->used || worker->ended || worker->leave)
			continue;
		worker->leave = ++held > share;
	}
	pthread_cond_broadcast(&workers->relay->woken);
	pthread_mutex_unlock(&workers->relay->lock);
}

static enum ibid_code lease(struct worker_pool *workers, struct ibid_err *err)
{
	const struct relay_options *options = &workers->relay->options;
	const struct lane_wish wish = {options->broker->name, options->name, options->lease_us};
	struct arena arena = {0};
	struct lane_lease *leases = NULL;
	struct ibid_err own = {0};
	size_t count = 0, share = OUTBOX_LANES;
	enum ibid_code code = options->store->ops->lease_lanes(options->store, &arena, &wish, &leases,
	                                                       &count, &share, &own);
	if (code) { /* whoever holds a lane finds out for itself */
		LOG(&options->log, IBID_LOG_WARN, "relay.lease",
		    {"destination", log_text(wish.destination)}, {"reason", log_text(own.text)});
		code = IBID_OK;
		count = 0;
	} else {
		give_up_more_than(workers, share);
	}
	for (size_t i = 0; !code && i < count; i++)
		code = start(workers, &leases[i], err);
	arena_release(&arena);
	return code;
}

/* So that whoever asks what waits finds little left to count. */
static void count_outbox(struct relay *relay)
{
	enum { PIECES = 100 };
	const struct relay_options *options = &relay->options;
	struct ibid_err err = {0};
	if (outbox_count(options->store, PIECES, &err))
		LOG(&options->log, IBID_LOG_WARN, "relay.not_counted",
		    {"destination", log_text(options->broker->name)}, {"reason", log_text(err.text)});
}

/* Well before a lease ends. */
static int64_t lease_every_us(const struct relay *relay)
{
	return relay->options.lease_us / 3;
}

/* Or until a lane has found out that something is paused. */
static void wait_next(struct worker_pool *workers)
{
	struct relay *relay = workers->relay;
	int64_t every_us = lease_every_us(relay);
	int64_t look_us = pauses_any(&relay->pauses) ? LOOK_PAUSED_US : LOOK_US;
	struct timespec until = steady_after(every_us < look_us ? every_us : look_us);
	pthread_mutex_lock(&relay->lock);
	while (!atomic_load(&relay->stop) && workers->version == relay->pauses.version)
		if (pthread_cond_timedwait(&relay->woken, &relay->lock, &until))
			break;
	pthread_mutex_unlock(&relay->lock);
}

/* Others need not wait to see that it is gone. */
static void leave(const struct relay *relay)
{
	const struct relay_options *options = &relay->options;
	const struct lane_wish wish = {options->broker->name, options->name, 0};
	struct arena arena = {0};
	struct lane_lease *leases = NULL;
	struct ibid_err err = {0};
	size_t count, share;
	if (options->store->ops->lease_lanes(options->store, &arena, &wish, &leases, &count, &share,
	                                     &err))
		LOG(&options->log, IBID_LOG_WARN, "relay.leave",
		    {"destination", log_text(wish.destination)}, {"reason", log_text(err.text)});
	arena_release(&arena);
}

enum ibid_code relay_run(struct relay *relay, struct ibid_err *err)
{
	struct worker_pool workers = {.relay = relay};
	enum ibid_code code = IBID_OK;
	int64_t leased_us = -lease_every_us(relay);
	while (!code && !atomic_load(&relay->stop)) {
		look_at_pauses(&workers);
		int64_t now_us = env_steady_us(relay->options.env);
		if (now_us - leased_us >= lease_every_us(relay)) {
			leased_us = now_us;
			join_ended(&workers, false);
			tell_all(&workers, lane_renew);
			code = lease(&workers, err);
			if (!code)
				count_outbox(relay);
		}
		if (!code)
			wait_next(&workers);
	}
	relay_stop(relay);
	tell_all(&workers, lane_halt);
	join_ended(&workers, true);
	leave(relay);
	return code;
}
