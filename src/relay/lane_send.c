/* SPDX-License-Identifier: Apache-2.0 */
/* lane_send.c -- a batch, from the gate to its ends. */
#include "relay/disable.h"
#include "relay/envelope.h"
#include "relay/lane_parts.h"

#include <assert.h>
#include <stdio.h>

enum {
	REFUSED_US = 5000000,    /* until a channel is opened again that the settings do not allow */
	BROKEN_OFF_US = 5000000, /* at most, until those go that were not tried: another failed */
	OUTAGE_US = 30000000,    /* at most, until a destination is tried again that was not there */
};

/* Those that may go now, in order; `limit` at most. */
struct convoy {
	struct arena arena; /* its own: the same may go again and again while a destination is down */
	struct record *records;
	struct sending **sendings;
	size_t count;
};

static bool make_convoy(struct relay_lane *lane, size_t limit, struct convoy *ret)
{
	struct arena *arena = &ret->arena;
	ret->records = arena_array(arena, limit, sizeof *ret->records);
	ret->sendings = arena_array(arena, limit, sizeof *ret->sendings);
	for (size_t i = 0; !arena->failed && i < lane->count && ret->count < limit; i++) {
		struct sending *sending = &lane->sendings[i];
		if (sending->settled || sending->waits)
			continue;
		if (!envelope_make(arena, sending->event, &ret->records[ret->count]))
			return false;
		ret->sendings[ret->count++] = sending;
	}
	return !arena->failed;
}

/* How many of those that want to go may. 0: wait so long. */
size_t lane_ask_gate(struct relay_lane *lane, int64_t *ret_wait_us)
{
	struct relay *relay = lane->relay;
	const struct event_row *event = NULL; /* that goes next */
	int64_t first = 0, again = 0;
	for (size_t i = 0; i < lane->count; i++) {
		if (lane->sendings[i].settled || lane->sendings[i].waits)
			continue;
		if (!event)
			event = lane->sendings[i].event;
		if (lane->sendings[i].hold && lane->sendings[i].hold->attempts)
			again++;
		else
			first++;
	}
	if (!first && !again)
		return 0;
	pthread_mutex_lock(&relay->lock);
	enum breaker_state before = relay->gate.breaker.state;
	struct gate_pass pass = gate_ask(&relay->gate, &relay->options.limits, lane_steady(lane), first,
	                                 again);
	lane_note_breaker(lane, before, event);
	pthread_mutex_unlock(&relay->lock);
	*ret_wait_us = pass.wait_us;
	return (size_t)(pass.first + pass.again);
}

static void count_batch(struct relay_lane *lane, const struct convoy *convoy)
{
	struct relay_counts batch = {.batches = 1, .parked = (int64_t)lane->exception_count};
	int64_t now_us = env_wall_us(lane->relay->options.env);
	for (size_t i = 0; i < convoy->count; i++) {
		const struct sending *sending = convoy->sendings[i];
		assert(sending->event);
		if (convoy->records[i].end == RECORD_FAILED)
			batch.failed[convoy->records[i].failure]++;
		if (convoy->records[i].end != RECORD_ACKED)
			continue;
		batch.delivered++;
		batch.recovered += sending->hold && sending->hold->attempts;
		relay_counts_age(&batch, now_us - sending->event->at_us);
	}
	pthread_mutex_lock(&lane->relay->lock);
	relay_counts_add(&lane->relay->counts, &batch);
	pthread_mutex_unlock(&lane->relay->lock);
}

/* Pause the destination. Where that can't be kept, it is tried again. */
static void disable(struct relay_lane *lane, const struct refusal *refusal)
{
	struct relay *relay = lane->relay;
	struct ibid_err err = {0};
	lane->quiet_until_us = lane_steady(lane) + LANE_TROUBLE_US;
	if (relay_disable(relay, refusal, &err)) {
		lane_tell(lane, "relay.disable", &err);
		return;
	}
	lane->denied = 0;
	pthread_mutex_lock(&relay->lock);
	relay->refused_count = 0;
	pthread_mutex_unlock(&relay->lock);
}

/* With the relay's lock. Were so many aggregates refused in a row that it is the destination? */
static bool is_one_too_many(struct relay *relay, uint64_t aggregate)
{
	size_t at = 0;
	while (at < relay->refused_count && relay->refused[at] != aggregate)
		at++;
	if (at == relay->refused_count && at < RELAY_REFUSALS)
		relay->refused[relay->refused_count++] = aggregate;
	return relay->refused_count == RELAY_REFUSALS;
}

/* The first that was refused not for what it is; NULL: none, or others were taken. */
static const struct record *find_refusal(struct relay_lane *lane, const struct convoy *convoy)
{
	struct relay *relay = lane->relay;
	const struct record *found = NULL;
	bool taken = false;
	for (size_t i = 0; i < convoy->count; i++)
		taken |= convoy->records[i].end == RECORD_ACKED;
	pthread_mutex_lock(&relay->lock);
	if (taken)
		relay->refused_count = 0;
	for (size_t i = 0; !found && i < convoy->count; i++) {
		const struct record *record = &convoy->records[i];
		if (record->end != RECORD_FAILED || record->concern == CONCERNS_RECORD)
			continue;
		if (record->concern == CONCERNS_ALL ||
		    (!taken && is_one_too_many(relay, record->aggregate)))
			found = record;
	}
	pthread_mutex_unlock(&relay->lock);
	return found;
}

/* Nothing of a batch arrived, and what failed is tried again by itself: people who wait for it look
 * here. What is parked is told by its exception. */
static void tell_why(const struct relay_lane *lane, const struct convoy *convoy)
{
	struct ibid_err why = {0};
	for (size_t i = 0; i < convoy->count; i++) {
		const struct record *record = &convoy->records[i];
		bool passes = record->failure == FAILURE_TRANSIENT || record->failure == FAILURE_CAPACITY ||
		              record->failure == FAILURE_UNKNOWN;
		if (record->end != RECORD_FAILED || !passes)
			continue;
		err_set(&why, IBID_UNAVAILABLE, "%s: %s", record->reason ? record->reason : "",
		        record->why);
		lane_tell(lane, "relay.publish", &why);
		return;
	}
}

static int64_t broken_off_us(int64_t pause_us)
{
	if (!pause_us)
		return LANE_TROUBLE_US;
	return pause_us < BROKEN_OFF_US ? pause_us : BROKEN_OFF_US;
}

/* Each record has its end; but what a destination refused that is paused for it stays as it was. */
static void read_ends(struct relay_lane *lane, const struct convoy *convoy)
{
	const struct record *refused = find_refusal(lane, convoy);
	/* Whatever was paused meanwhile, perhaps it was for this. */
	bool spare = refused || paused_is_old(&lane->paused, &lane->relay->pauses);
	const struct event_row *taken = NULL;
	size_t failed = 0, left = 0;
	int64_t pause_us = 0;
	bool reported[FAILURE_CLASS_COUNT] = {false};
	for (size_t i = 0; i < convoy->count; i++) {
		const struct record *record = &convoy->records[i];
		if (record->end == RECORD_FAILED && !reported[record->failure]) {
			reported[record->failure] = true;
			lane_report(lane, &(struct heard){.failure = record->failure,
			                                  .reason = record->reason,
			                                  .why = record->why,
			                                  .event = convoy->sendings[i]->event});
		}
	}
	for (size_t i = 0; i < convoy->count; i++) {
		const struct record *record = &convoy->records[i];
		struct sending *sending = convoy->sendings[i];
		if (sending->settled) /* behind one that failed */
			continue;
		if (record->end == RECORD_ACKED) {
			lane_arrive(lane, sending, record);
			taken = sending->event;
		} else if (record->end == RECORD_FAILED && !(spare && record->concern)) {
			int64_t own_us = lane_fail(lane, sending, record);
			pause_us = own_us > pause_us ? own_us : pause_us;
			failed++;
		} else {
			left++;
		}
	}
	if (taken)
		lane_report(lane, &(struct heard){.good = true, .event = taken});
	else if (failed)
		tell_why(lane, convoy);
	/* The destination broke off: whoever is left need not find out one by one. Nor have they failed
	 * as often as the one that did: its own pause may be an hour. */
	if (failed && left && !taken)
		lane->quiet_until_us = lane_steady(lane) + broken_off_us(pause_us);
	count_batch(lane, convoy);
	lane->failures = 0;
	if (refused)
		disable(lane, &(struct refusal){convoy->sendings[refused - convoy->records]->event,
		                                refused->reason, refused->why, lane->paused.version});
}

/* All of it failed as one: nobody's attempt. */
static void back_off(struct relay_lane *lane, enum failure_class failure,
                     const struct event_row *event, const char *why)
{
	const struct retry_policy *policy = &lane->relay->options.policy;
	lane_close_channel(lane);
	lane_report(lane, &(struct heard){.failure = failure, .why = why, .event = event});
	pthread_mutex_lock(&lane->relay->lock);
	lane->relay->counts.outages[failure]++;
	pthread_mutex_unlock(&lane->relay->lock);
	lane->failures++;
	int64_t pause_us = retry_pause_from_us(policy, lane->failures, 0, lane_random(lane));
	lane->quiet_until_us = lane_steady(lane) + (pause_us < OUTAGE_US ? pause_us : OUTAGE_US);
}

/* `event`: that is to go. */
static enum ibid_code open_channel(struct relay_lane *lane, const struct event_row *event,
                                   struct ibid_err *err)
{
	struct broker *broker = lane->relay->options.broker;
	char name[32];
	snprintf(name, sizeof name, "lane-%d", lane->lease.lane);
	enum ibid_code code = broker->ops->open_channel(broker, name, &lane->channel, err);
	lane->denied = code == IBID_DENIED ? lane->denied + 1 : 0;
	if (!code)
		return IBID_OK;
	lane->channel = NULL;
	lane_tell(lane, "relay.channel", err);
	back_off(lane, code == IBID_UNAVAILABLE ? FAILURE_TRANSIENT : FAILURE_PERMANENT, event,
	         err->text);
	if (code != IBID_UNAVAILABLE)
		lane->quiet_until_us = lane_steady(lane) + REFUSED_US;
	if (lane->denied >= RELAY_REFUSALS)
		disable(lane,
		        &(struct refusal){event, "DESTINATION_DENIED", err->text, lane->paused.version});
	return code;
}

/* Not with what it knew before something was paused, nor when the lane is lost: who says so after
 * this is heard by whoever publishes. */
static bool may_publish(struct relay_lane *lane)
{
	atomic_store(&lane->halt, false);
	if (atomic_load(&lane->lost))
		lane->quiet_until_us = lane_steady(lane) + LANE_TROUBLE_US;
	return !atomic_load(&lane->lost) && !paused_is_old(&lane->paused, &lane->relay->pauses);
}

static enum ibid_code make_sure(struct relay_lane *lane, struct ibid_err *err)
{
	enum ibid_code code = lane->sure ? IBID_OK
	                                 : lane_keep(lane, lane->relay->options.lease_us, err);
	lane->sure = !code;
	return code;
}

static enum ibid_code publish(struct relay_lane *lane, struct convoy *convoy, struct ibid_err *err)
{
	struct ibid_err own = {0};
	if (!convoy->count)
		return IBID_OK;
	if (!lane->channel && open_channel(lane, convoy->sendings[0]->event, &own))
		return IBID_OK;
	enum ibid_code code = make_sure(lane, err);
	if (code)
		return code;
	if (!may_publish(lane)) /* the last word: making sure may have taken long */
		return IBID_OK;
	code = lane->channel->broker->ops->publish(lane->channel, convoy->records, convoy->count,
	                                           &lane->halt, &own);
	if (code == IBID_FENCED) {
		lane->refused = true;
		return err_set(err, code, "%s", own.text);
	}
	if (!code) {
		read_ends(lane, convoy);
		return IBID_OK;
	}
	lane_tell(lane, "relay.publish", &own);
	back_off(lane, code == IBID_UNKNOWN ? FAILURE_UNKNOWN : FAILURE_TRANSIENT,
	         convoy->sendings[0]->event, own.text);
	return IBID_OK;
}

enum ibid_code lane_send(struct relay_lane *lane, size_t limit, struct ibid_err *err)
{
	struct convoy convoy = {0};
	enum ibid_code code = make_convoy(lane, limit, &convoy)
	                          ? publish(lane, &convoy, err)
	                          : err_set(err, IBID_NOMEM, "out of memory");
	arena_release(&convoy.arena);
	return code;
}
