/* SPDX-License-Identifier: Apache-2.0 */
/* lane.c -- the course of one lane.
 *
 * (L1) What was read is in memory until all of it is settled: arrived, or in the hold. Only then
 * the cursor goes past it. (L2) Of an aggregate of which something is held, nothing goes before
 * that does (I5). (L3) What became of a batch is kept before the next one goes; evidence that could
 * not be kept is owed, and nothing is sent meanwhile. (L4) Nothing of the store is held while the
 * destination is waited for. (L5) A channel is used only when the store has said, after it was
 * opened, that the lane is still ours: whoever gets the lane later opens it later, too, and the
 * destination refuses us. Who opened it last is not who leased last, otherwise: opening takes time,
 * and a process may be stopped in it.
 *
 * A failure of the destination as a whole is nobody's attempt: all waits, in memory. A record's own
 * failure puts it into the hold, and with it what comes behind it in its aggregate. While the
 * destination is paused only the lease is kept; an event whose type is paused waits in the hold. */
#include "relay/lane_parts.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum {
	KEEP_US = 1000000,    /* cursor and lease are kept so often */
	IDLE_LEAST_US = 2000, /* pauses between looks at a quiet lane: doubled */
	IDLE_MOST_US = 50000,
};

/* ---- Life ----------------------------------------------------------------------------------- */

struct relay_lane *lane_new(struct relay *relay, const struct lane_lease *lease)
{
	struct relay_lane *lane = calloc(1, sizeof *lane);
	if (!lane)
		return NULL;
	lane->relay = relay;
	lane->lease = *lease;
	lane->lease.destination = arena_strdup(&lane->names, lease->destination);
	lane->lease.cursor = arena_strdup(&lane->names, lease->cursor);
	lane->cursor = strdup(lease->cursor);
	lane->kept = strdup(lease->cursor);
	lane->doubtful = true;
	lane->held_stale = true;
	lane->paused.all = true;
	lane->idle_us = IDLE_LEAST_US;
	lane->kept_us = env_steady_us(relay->options.env);
	lane->renewed_us = lane->kept_us;
	if (!lane->names.failed && lane->cursor && lane->kept)
		return lane;
	lane_free(lane);
	return NULL;
}

void lane_close_channel(struct relay_lane *lane)
{
	struct broker *broker = lane->relay->options.broker;
	if (lane->channel)
		broker->ops->close_channel(lane->channel);
	lane->channel = NULL;
	lane->sure = false;
}

void lane_free(struct relay_lane *lane)
{
	if (!lane)
		return;
	lane_close_channel(lane);
	free(lane->cursor);
	free(lane->kept);
	free(lane->next_cursor);
	paused_release(&lane->paused);
	arena_release(&lane->arena);
	held_list_release(&lane->held);
	arena_release(&lane->names);
	free(lane);
}

int lane_number(const struct relay_lane *lane)
{
	return lane->lease.lane;
}

const char *lane_fenced_by(const struct relay_lane *lane)
{
	return lane->refused ? "broker" : "store";
}

int64_t lane_steady(const struct relay_lane *lane)
{
	return env_steady_us(lane->relay->options.env);
}

uint64_t lane_random(const struct relay_lane *lane)
{
	uint64_t number;
	env_random(lane->relay->options.env, &number, sizeof number);
	return number;
}

struct notice lane_notice(const struct relay_lane *lane)
{
	return (struct notice){&lane->relay->options.log, lane->lease.destination};
}

void lane_tell(const struct relay_lane *lane, const char *event, const struct ibid_err *err)
{
	LOG(&lane->relay->options.log, IBID_LOG_WARN, event,
	    {"destination", log_text(lane->lease.destination)}, {"lane", log_int(lane->lease.lane)},
	    {"reason", log_text(err->text)});
}

/* ---- The store ------------------------------------------------------------------------------ */

/* The store has the cursor, and has counted what came before it. */
static void note_kept(struct relay_lane *lane)
{
	char *kept = strcmp(lane->kept, lane->cursor) != 0 ? strdup(lane->cursor) : NULL;
	if (!kept)
		return;
	free(lane->kept);
	lane->kept = kept;
	lane->uncounted = 0;
}

static void say_parked(struct relay_lane *lane)
{
	const struct notice notice = lane_notice(lane);
	for (size_t i = 0; i < lane->exception_count; i++)
		notice_parked(&notice, &lane->parked[i]);
}

/* Keep what is owed, and cursor and lease where it is time. */
enum ibid_code lane_keep(struct relay_lane *lane, int64_t lease_us, struct ibid_err *err)
{
	struct store *store = lane->relay->options.store;
	const struct lane_settlement settlement = {
	    .lease = &lane->lease,
	    .cursor = lease_us ? lane->cursor : NULL,
	    .lease_us = lease_us,
	    .uncounted = lane->uncounted,
	    .deliveries = lane->deliveries,
	    .delivery_count = lane->delivery_count,
	    .holds = lane->holds,
	    .hold_count = lane->hold_count,
	    .exceptions = lane->exceptions,
	    .exception_count = lane->exception_count,
	};
	enum ibid_code code = store->ops->settle_lane(store, &settlement, err);
	if (code)
		return code;
	lane->uncounted += (int64_t)lane->delivery_count;
	if (lease_us) {
		lane->kept_us = lane_steady(lane);
		lane->renewed_us = lane->kept_us;
		note_kept(lane);
	}
	say_parked(lane);
	lane->held_stale |= lane->hold_count > 0;
	lane->delivery_count = lane->hold_count = lane->exception_count = 0;
	lane->owes = false;
	return IBID_OK;
}

/* How often cursor and lease are kept: well before the lease ends. */
static int64_t keep_every_us(const struct relay_lane *lane)
{
	int64_t third_us = lane->relay->options.lease_us / 3;
	return third_us < KEEP_US ? third_us : KEEP_US;
}

static bool is_due(const struct relay_lane *lane)
{
	return lane_steady(lane) - lane->kept_us >= keep_every_us(lane);
}

void lane_renew(struct relay_lane *lane)
{
	struct store *store = lane->relay->options.store;
	const struct lane_settlement settlement = {
	    .lease = &lane->lease,
	    .lease_us = lane->relay->options.lease_us,
	};
	struct ibid_err err = {0};
	int64_t asked_us = lane_steady(lane);
	enum ibid_code code = store->ops->settle_lane(store, &settlement, &err);
	if (!code)
		lane->renewed_us = asked_us;
	else if (code == IBID_FENCED)
		lane_halt(lane);
	else
		lane_tell(lane, "relay.renew", &err);
}

void lane_halt(struct relay_lane *lane)
{
	atomic_store(&lane->lost, true);
	atomic_store(&lane->halt, true);
}

/* With the lock, so that nobody is told who has heard of it meanwhile and publishes what may go. */
void lane_interrupt(struct relay_lane *lane)
{
	pthread_mutex_lock(&lane->relay->lock);
	if (lane->knows != lane->relay->pauses.version)
		atomic_store(&lane->halt, true);
	pthread_mutex_unlock(&lane->relay->lock);
}

static enum ibid_code keep_if_due(struct relay_lane *lane, struct ibid_err *err)
{
	if (!lane->owes && !is_due(lane))
		return IBID_OK;
	return lane_keep(lane, is_due(lane) ? lane->relay->options.lease_us : 0, err);
}

/* ---- The step ------------------------------------------------------------------------------- */

/* New ones that wait behind what is held do so durably, before anything passes them. */
static void hold_waiting(struct relay_lane *lane)
{
	for (struct sending *at = lane->sendings; at < lane->sendings + lane->count; at++)
		if (at->waits && !at->settled)
			lane_let_wait(lane, at);
}

/* All that was read is settled: the lane stands behind it (L1). */
static void pass(struct relay_lane *lane)
{
	assert(lane->unsettled == 0);
	if (lane->next_cursor && strcmp(lane->cursor, lane->next_cursor) != 0) {
		free(lane->cursor);
		lane->cursor = lane->next_cursor;
		lane->next_cursor = NULL;
	}
}

/* Has a person withdrawn it since it was read? */
static bool is_withdrawn(const struct sending *sending, const struct held_list *held)
{
	const struct held_event *now = held_list_find(held, sending->event);
	return now ? now->hold.state == HOLD_CANCELLED : sending->hold != NULL;
}

static void withdraw(struct relay_lane *lane, struct sending *sending)
{
	if (!sending->hold)
		lane_note_read(lane, &(struct outbox_event){.event = *sending->event});
	lane_settle(lane, sending);
}

/* What waits in memory while the destination can't be reached may be withdrawn meanwhile. */
static enum ibid_code look_again(struct relay_lane *lane, struct ibid_err *err)
{
	struct held_list held = {0};
	if (lane_steady(lane) - lane->looked_us < LANE_LOOK_US)
		return IBID_OK;
	lane->looked_us = lane_steady(lane);
	enum ibid_code code = held_list_read(&held, lane->relay->options.store, &lane->lease, err);
	for (struct sending *at = lane->sendings; !code && at < lane->sendings + lane->count; at++)
		if (!at->settled && is_withdrawn(at, &held))
			withdraw(lane, at);
	held_list_release(&held);
	return code;
}

static int64_t rest(struct relay_lane *lane)
{
	int64_t idle_us = lane->idle_us;
	lane->idle_us = idle_us * 2 < IDLE_MOST_US ? idle_us * 2 : IDLE_MOST_US;
	return idle_us;
}

/* What is in memory is read again: people may decide about it while it is paused. What arrived of
 * it has evidence (L3). */
static void forget(struct relay_lane *lane)
{
	assert(!lane->owes);
	lane->count = lane->unsettled = lane->waiting = 0;
	free(lane->next_cursor);
	lane->next_cursor = NULL;
	lane->doubtful = lane->held_stale = true;
}

/* It was resumed: whoever did so says that the destination is there. What it did before no longer
 * counts, and what failed there need not wait for its next attempt. */
static void go_on(struct relay_lane *lane)
{
	lane->quiet_until_us = 0;
	lane->failures = 0;
	lane->idle_us = IDLE_LEAST_US;
	lane->eager = true;
}

/* Is nothing to be sent? With nothing owed. */
static bool is_paused(struct relay_lane *lane)
{
	if (paused_is_old(&lane->paused, &lane->relay->pauses)) {
		uint64_t known = lane->paused.version, resumed = lane->paused.resumed;
		forget(lane);
		paused_renew(&lane->paused, &lane->relay->pauses);
		/* A pause that was short it may not have seen. */
		if (known && lane->paused.resumed != resumed)
			go_on(lane);
		pthread_mutex_lock(&lane->relay->lock);
		lane->knows = lane->paused.version;
		pthread_mutex_unlock(&lane->relay->lock);
	}
	return lane->paused.all;
}

static enum ibid_code work(struct relay_lane *lane, int64_t *ret_wait_us, struct ibid_err *err)
{
	enum ibid_code code = keep_if_due(lane, err);
	if (code)
		return code;
	if (is_paused(lane)) {
		*ret_wait_us = keep_every_us(lane);
		return IBID_OK;
	}
	int64_t quiet_us = lane->quiet_until_us - lane_steady(lane);
	if (!lane->unsettled) {
		code = lane_load(lane, err);
		if (code)
			return code;
		hold_waiting(lane);
		if (!lane->count && !lane->more)
			*ret_wait_us = rest(lane);
		else
			lane->idle_us = IDLE_LEAST_US;
	}
	if (lane->unsettled)
		code = look_again(lane, err);
	if (code)
		return code;
	if (lane->unsettled && quiet_us > 0) {
		*ret_wait_us = quiet_us < keep_every_us(lane) ? quiet_us : keep_every_us(lane);
	} else if (lane->unsettled) {
		size_t limit = lane_ask_gate(lane, ret_wait_us);
		/* Reading may have taken long: who is not sure of its lease sends nothing. */
		if (limit && lane_steady(lane) - lane->renewed_us > lane->relay->options.lease_us / 2)
			code = lane_keep(lane, lane->relay->options.lease_us, err);
		if (!code && limit)
			code = lane_send(lane, limit, err);
	}
	if (!code && !lane->unsettled)
		pass(lane);
	return code || !lane->owes ? code : keep_if_due(lane, err);
}

enum ibid_code lane_step(struct relay_lane *lane, int64_t *ret_wait_us, struct ibid_err *err)
{
	struct ibid_err own = {0};
	*ret_wait_us = 0;
	enum ibid_code code = work(lane, ret_wait_us, &own);
	if (!code)
		return IBID_OK;
	if (code == IBID_FENCED) {
		pthread_mutex_lock(&lane->relay->lock);
		lane->relay->counts.fenced++;
		pthread_mutex_unlock(&lane->relay->lock);
		return err_set(err, code, "%s", own.text);
	}
	lane_tell(lane, "relay.store", &own);
	*ret_wait_us = LANE_TROUBLE_US;
	return IBID_OK;
}

void lane_give_up(struct relay_lane *lane)
{
	struct ibid_err err = {0};
	if (lane_keep(lane, -1, &err))
		lane_tell(lane, "relay.give_up", &err);
}
