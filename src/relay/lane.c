/* SPDX-License-Identifier: Apache-2.0 */
/* lane.c -- the course of one lane.
 *
 * (L1) What was read is in memory until all of it is settled: arrived, or in the hold. Only then
 * the cursor goes past it. (L2) Of an aggregate of which something is held, nothing goes before
 * that does (I5). (L3) What became of a batch is kept before the next one goes; evidence that could
 * not be kept is owed, and nothing is sent meanwhile. (L4) Nothing of the store is held while the
 * destination is waited for.
 *
 * A failure of the destination as a whole is nobody's attempt: all waits, in memory. A record's own
 * failure puts it into the hold, and with it what comes behind it in its aggregate. */
#include "relay/lane.h"

#include "base/traceparent.h"
#include "contract/event.h"
#include "relay/envelope.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	KEEP_US = 1000000,    /* cursor and lease are kept so often */
	LOOK_US = 1000000,    /* the hold is looked at so often, while something is in it */
	IDLE_LEAST_US = 2000, /* pauses between looks at a quiet lane: doubled */
	IDLE_MOST_US = 50000,
	TROUBLE_US = 250000,  /* until the store is asked again */
	REFUSED_US = 5000000, /* until a channel is opened again that the settings do not allow */
	PARKED_SLA_HOURS = 4, /* where the event has no contract any more */
};
#define HOUR_US (INT64_C(3600) * 1000000)

static const char early[] = "PREDECESSOR_COMES"; /* reason of a hold */

/* One event on its way. */
struct sending {
	const struct event_row *event;
	const struct hold_row *hold; /* NULL: it is new */
	uint64_t aggregate;
	bool settled;
	bool waits; /* new, and behind what is held: not sent */
	bool early;
};

struct relay_lane {
	struct relay *relay;
	struct arena names; /* of the lease */
	struct lane_lease lease;
	struct channel *channel;
	char *cursor;      /* behind all that is settled */
	bool doubtful;     /* what is read may have been sent by who held the lane before */
	char *kept;        /* the cursor, in the store */
	int64_t uncounted; /* deliveries since that moved */
	int64_t kept_us;   /* on the steady clock, like all of these: when cursor and lease were */
	_Atomic int64_t renewed_us; /* when the lease was, by whomever */
	atomic_bool halt;           /* whoever publishes returns soon */
	int64_t quiet_until_us;
	int64_t idle_us; /* the next pause of a quiet lane */
	int failures;    /* of the destination, in a row */

	/* The hold, as it was last looked at. */
	struct arena held_arena;
	struct held_event *held;
	size_t held_count;
	int64_t held_us;
	bool held_stale;

	/* What is on its way (L1). */
	struct arena arena;
	struct sending *sendings;
	size_t count, unsettled;
	size_t waiting;    /* of them, new ones that wait behind what is held */
	char *next_cursor; /* behind them; NULL: they are all of the hold */
	bool more;

	/* What is owed to the store (L3). */
	bool owes;
	struct delivery_row *deliveries;
	struct hold_row *holds;
	struct exception_row *exceptions;
	size_t delivery_count, hold_count, exception_count;
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
	lane->idle_us = IDLE_LEAST_US;
	lane->kept_us = env_steady_us(relay->options.env);
	lane->renewed_us = lane->kept_us;
	if (!lane->names.failed && lane->cursor && lane->kept)
		return lane;
	lane_free(lane);
	return NULL;
}

static void close_channel(struct relay_lane *lane)
{
	struct broker *broker = lane->relay->options.broker;
	if (lane->channel)
		broker->ops->close_channel(lane->channel);
	lane->channel = NULL;
}

void lane_free(struct relay_lane *lane)
{
	if (!lane)
		return;
	close_channel(lane);
	free(lane->cursor);
	free(lane->kept);
	free(lane->next_cursor);
	arena_release(&lane->arena);
	arena_release(&lane->held_arena);
	arena_release(&lane->names);
	free(lane);
}

int lane_number(const struct relay_lane *lane)
{
	return lane->lease.lane;
}

static int64_t steady(const struct relay_lane *lane)
{
	return env_steady_us(lane->relay->options.env);
}

static void tell(const struct relay_lane *lane, const char *event, const struct ibid_err *err)
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

/* Keep what is owed, and cursor and lease where it is time. */
static enum ibid_code keep(struct relay_lane *lane, int64_t lease_us, struct ibid_err *err)
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
		lane->kept_us = steady(lane);
		lane->renewed_us = lane->kept_us;
		note_kept(lane);
	}
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
	return steady(lane) - lane->kept_us >= keep_every_us(lane);
}

void lane_renew(struct relay_lane *lane)
{
	struct store *store = lane->relay->options.store;
	const struct lane_settlement settlement = {
	    .lease = &lane->lease,
	    .lease_us = lane->relay->options.lease_us,
	};
	struct ibid_err err = {0};
	int64_t asked_us = steady(lane);
	enum ibid_code code = store->ops->settle_lane(store, &settlement, &err);
	if (!code)
		lane->renewed_us = asked_us;
	else if (code == IBID_FENCED)
		lane_halt(lane);
	else
		tell(lane, "relay.renew", &err);
}

void lane_halt(struct relay_lane *lane)
{
	atomic_store(&lane->halt, true);
}

static enum ibid_code keep_if_due(struct relay_lane *lane, struct ibid_err *err)
{
	if (!lane->owes && !is_due(lane))
		return IBID_OK;
	return keep(lane, is_due(lane) ? lane->relay->options.lease_us : 0, err);
}

static enum ibid_code look_at_hold(struct relay_lane *lane, struct ibid_err *err)
{
	struct store *store = lane->relay->options.store;
	bool old = lane->held_count && steady(lane) - lane->held_us >= LOOK_US;
	if (!lane->held_stale && !old)
		return IBID_OK;
	arena_release(&lane->held_arena);
	lane->held_count = 0;
	enum ibid_code code = store->ops->list_held(store, &lane->held_arena, &lane->lease, &lane->held,
	                                            &lane->held_count, err);
	lane->held_stale = code;
	lane->held_us = steady(lane);
	return code;
}

/* ---- What is to go -------------------------------------------------------------------------- */

static bool same_aggregate(const struct hold_row *one, const struct hold_row *two)
{
	return strcmp(one->tenant, two->tenant) == 0 &&
	       strcmp(one->aggregate_type, two->aggregate_type) == 0 &&
	       strcmp(one->aggregate_id, two->aggregate_id) == 0;
}

static uint64_t aggregate_of(const struct hold_row *hold)
{
	return envelope_aggregate(hold->tenant, hold->aggregate_type, hold->aggregate_id);
}

/* It was read before its predecessor, which neither arrived nor stands before it yet. */
static bool is_early(const struct held_event *held)
{
	return held->early && held->hold.reason && strcmp(held->hold.reason, early) == 0;
}

/* May the first that is held of an aggregate go? */
static bool may_go(const struct relay_lane *lane, const struct hold_row *hold)
{
	switch (hold->state) {
	case HOLD_RELEASED:
	case HOLD_WAITS: return true;
	case HOLD_FAILED: return hold->next_us <= env_wall_us(lane->relay->options.env);
	default: return false; /* a person decides */
	}
}

static void add_held(struct relay_lane *lane, const struct held_event *held)
{
	lane->sendings[lane->count++] = (struct sending){
	    .event = &held->event,
	    .hold = &held->hold,
	    .aggregate = aggregate_of(&held->hold),
	};
}

/* Of each aggregate whose first may go: that and those right behind it. */
static void add_due(struct relay_lane *lane)
{
	const struct hold_row *before = NULL;
	bool going = false;
	for (size_t i = 0; i < lane->held_count; i++) {
		const struct held_event *held = &lane->held[i];
		if (held->hold.state == HOLD_SKIPPED)
			continue;
		bool first = !before || !same_aggregate(before, &held->hold);
		if (first)
			going = may_go(lane, &held->hold);
		else
			going = going && held->hold.state != HOLD_PARKED;
		going = going && !is_early(held);
		if (going)
			add_held(lane, held);
		before = &held->hold;
	}
}

static bool is_held(const struct relay_lane *lane, const struct event_row *event)
{
	for (size_t i = 0; i < lane->held_count; i++)
		if (memcmp(&lane->held[i].event.id, &event->id, sizeof event->id) == 0 &&
		    strcmp(lane->held[i].event.tenant, event->tenant) == 0)
			return true;
	return false;
}

/* Does something stand before new events of this aggregate? */
static bool is_blocked(const struct relay_lane *lane, uint64_t aggregate)
{
	for (size_t i = 0; i < lane->held_count; i++)
		if (lane->held[i].hold.state != HOLD_SKIPPED &&
		    aggregate_of(&lane->held[i].hold) == aggregate)
			return true;
	for (size_t i = 0; lane->waiting && i < lane->count; i++)
		if (lane->sendings[i].waits && lane->sendings[i].aggregate == aggregate)
			return true;
	return false;
}

/* Who came early waits for one that goes elsewhere: no longer. */
static void free_early(struct relay_lane *lane, const struct event_row *passed)
{
	for (size_t i = 0; i < lane->held_count; i++) {
		const struct held_event *held = &lane->held[i];
		if (!is_early(held) || held->after != passed->version ||
		    strcmp(held->event.tenant, passed->tenant) != 0 ||
		    strcmp(held->event.aggregate_type, passed->aggregate_type) != 0 ||
		    strcmp(held->event.aggregate_id, passed->aggregate_id) != 0)
			continue;
		struct hold_row hold = held->hold;
		hold.reason = NULL;
		lane->holds[lane->hold_count++] = hold;
		lane->owes = true;
	}
}

static void add_new(struct relay_lane *lane, const struct outbox_event *event)
{
	const struct event_row *row = &event->event;
	if (!envelope_is_for(row, lane->lease.destination)) {
		free_early(lane, row);
		return;
	}
	if (lane->held_count && is_held(lane, row))
		return;
	uint64_t aggregate = envelope_aggregate(row->tenant, row->aggregate_type, row->aggregate_id);
	struct sending sending = {.event = row, .aggregate = aggregate, .early = event->early};
	sending.waits = event->early || is_blocked(lane, aggregate);
	lane->waiting += sending.waits;
	lane->sendings[lane->count++] = sending;
}

/* Fill the lane with what may go: of the hold, and what is new. */
static enum ibid_code fill(struct relay_lane *lane, struct ibid_err *err)
{
	const struct relay_options *options = &lane->relay->options;
	struct lane_batch batch = {0};
	enum ibid_code code = look_at_hold(lane, err);
	if (code)
		return code;
	arena_release(&lane->arena);
	lane->count = lane->unsettled = lane->waiting = 0;
	code = options->store->ops->read_lane(options->store, &lane->arena, &lane->lease, lane->cursor,
	                                      options->batch, lane->doubtful, &batch, err);
	if (code)
		return code;
	size_t room = batch.count + 2 * lane->held_count + 1;
	lane->sendings = arena_array(&lane->arena, room, sizeof *lane->sendings);
	lane->deliveries = arena_array(&lane->arena, room, sizeof *lane->deliveries);
	lane->holds = arena_array(&lane->arena, room, sizeof *lane->holds);
	lane->exceptions = arena_array(&lane->arena, room, sizeof *lane->exceptions);
	free(lane->next_cursor);
	lane->next_cursor = strdup(batch.cursor);
	if (lane->arena.failed || !lane->next_cursor)
		return err_set(err, IBID_NOMEM, "out of memory");
	add_due(lane);
	for (size_t i = 0; i < batch.count; i++)
		add_new(lane, &batch.events[i]);
	lane->unsettled = lane->count;
	lane->more = batch.more;
	lane->doubtful = lane->doubtful && batch.more;
	return IBID_OK;
}

/* ---- What became of it ---------------------------------------------------------------------- */

static void settle(struct relay_lane *lane, struct sending *sending)
{
	assert(!sending->settled);
	sending->settled = true;
	lane->unsettled--;
	lane->owes = true;
}

static struct hold_row hold_of(const struct relay_lane *lane, const struct sending *sending)
{
	const struct event_row *event = sending->event;
	if (sending->hold)
		return *sending->hold;
	return (struct hold_row){
	    .tenant = event->tenant,
	    .event_id = event->id,
	    .aggregate_type = event->aggregate_type,
	    .aggregate_id = event->aggregate_id,
	    .version = event->version,
	    .state = HOLD_WAITS,
	    .since_us = env_wall_us(lane->relay->options.env),
	};
}

/* It stands in the hold behind another. */
static void let_wait(struct relay_lane *lane, struct sending *sending)
{
	if (!sending->hold) {
		struct hold_row hold = hold_of(lane, sending);
		hold.reason = sending->early ? early : NULL;
		lane->holds[lane->hold_count++] = hold;
	}
	settle(lane, sending);
}

/* All that comes behind it in its aggregate. */
static void let_wait_behind(struct relay_lane *lane, const struct sending *stuck)
{
	for (struct sending *at = lane->sendings; at < lane->sendings + lane->count; at++)
		if (at > stuck && !at->settled && at->aggregate == stuck->aggregate)
			let_wait(lane, at);
}

static void arrive(struct relay_lane *lane, struct sending *sending, const struct record *record)
{
	lane->deliveries[lane->delivery_count++] = (struct delivery_row){
	    .tenant = sending->event->tenant,
	    .event_id = sending->event->id,
	    .place = arena_strdup(&lane->arena, record->place),
	    .partition = record->partition,
	    .offset = record->offset,
	    .at_us = record->acked_us ? record->acked_us : env_wall_us(lane->relay->options.env),
	    .was_held = sending->hold != NULL,
	};
	settle(lane, sending);
	lane->held_stale |= sending->hold != NULL;
}

/* What a person is told about an event that stopped. */
static struct exception_row exception_of(struct relay_lane *lane, const struct event_row *event,
                                         const struct hold_row *hold, const struct retry_stop *stop)
{
	struct arena *arena = &lane->arena;
	const struct event_contract *contract = lane->relay->options.contracts
	                                            ? contracts_event(lane->relay->options.contracts,
	                                                              event->type)
	                                            : NULL;
	int64_t now_us = env_wall_us(lane->relay->options.env);
	struct traceparent trace;
	bool traced = event->traceparent && traceparent_read(event->traceparent, &trace);
	char id[UUID_TEXT_SIZE];
	uuid_write(event->id, id);
	return (struct exception_row){
	    .tenant = event->tenant,
	    .id = uuid_v7(lane->relay->options.env),
	    .queue = stop->queue,
	    .state = EXCEPTION_OPEN,
	    .severity = contract ? contract->on_parked.severity : stop->severity,
	    .subject_type = "delivery",
	    .subject_id = arena_printf(arena, "%s/%s", lane->lease.destination, id),
	    .business_key = arena_printf(arena, "%s %s version %lld", event->aggregate_type,
	                                 event->aggregate_id, (long long)event->version),
	    .source = lane->lease.destination,
	    .payload_ref = arena_printf(arena, "event:%s", id),
	    .reason = hold->reason,
	    .detail = arena_printf(arena, "%s: %s", event->type, hold->why),
	    .suggestion = stop->suggestion,
	    .owner = contract ? contract->on_parked.owner : "relay",
	    .retryable = stop->retryable,
	    .actions = stop->actions,
	    .correlation_id = event->correlation_id,
	    .trace_id = traced ? arena_strdup(arena, trace.trace_id) : NULL,
	    .document_type = event->aggregate_type,
	    .document_id = event->aggregate_id,
	    .opened_us = now_us,
	    .due_us = now_us + (contract ? contract->on_parked.sla_us : PARKED_SLA_HOURS * HOUR_US),
	};
}

static uint64_t random_number(const struct relay_lane *lane)
{
	uint64_t number;
	env_random(lane->relay->options.env, &number, sizeof number);
	return number;
}

static void report(struct relay_lane *lane, bool good, enum failure_class failure)
{
	struct relay *relay = lane->relay;
	pthread_mutex_lock(&relay->lock);
	if (good)
		gate_succeeded(&relay->gate, &relay->options.limits, steady(lane));
	else
		gate_failed(&relay->gate, &relay->options.limits, steady(lane), failure);
	pthread_mutex_unlock(&relay->lock);
}

static struct retry_decision decide(struct relay_lane *lane, const struct record *record,
                                    int attempts)
{
	struct relay *relay = lane->relay;
	struct retry_case failed = {
	    .policy = &relay->options.policy,
	    .failure = record->failure,
	    .attempt = attempts + 1,
	    .retry_after_us = record->retry_after_us,
	    .random = random_number(lane),
	};
	pthread_mutex_lock(&relay->lock);
	gate_inform(&relay->gate, &relay->options.limits, steady(lane), &failed);
	pthread_mutex_unlock(&relay->lock);
	return retry_decide(&failed);
}

/* A record's own failure. Returns how long the lane should leave the destination alone. */
static int64_t fail(struct relay_lane *lane, struct sending *sending, const struct record *record)
{
	struct hold_row hold = hold_of(lane, sending);
	struct retry_decision decision = decide(lane, record, hold.attempts);
	if (decision.move == RETRY_MOVE_DONE) {
		arrive(lane, sending, record);
		return 0;
	}
	bool parked = decision.move == RETRY_MOVE_PARK;
	hold.state = parked ? HOLD_PARKED : HOLD_FAILED;
	hold.attempts = decision.attempts;
	hold.failure = record->failure;
	hold.reason = record->reason ? record->reason : retry_reason_code(decision.reason);
	hold.why = arena_strdup(&lane->arena, record->why);
	hold.next_us = parked ? 0 : env_wall_us(lane->relay->options.env) + decision.pause_us;
	lane->holds[lane->hold_count++] = hold;
	if (parked)
		lane->exceptions[lane->exception_count++] = exception_of(lane, sending->event, &hold,
		                                                         decision.stop);
	settle(lane, sending);
	let_wait_behind(lane, sending);
	return decision.pause_us;
}

/* ---- Sending -------------------------------------------------------------------------------- */

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
static size_t ask_gate(struct relay_lane *lane, int64_t *ret_wait_us)
{
	struct relay *relay = lane->relay;
	int64_t first = 0, again = 0;
	for (size_t i = 0; i < lane->count; i++) {
		if (lane->sendings[i].settled || lane->sendings[i].waits)
			continue;
		if (lane->sendings[i].hold && lane->sendings[i].hold->attempts)
			again++;
		else
			first++;
	}
	if (!first && !again)
		return 0;
	pthread_mutex_lock(&relay->lock);
	struct gate_pass pass = gate_ask(&relay->gate, &relay->options.limits, steady(lane), first,
	                                 again);
	pthread_mutex_unlock(&relay->lock);
	*ret_wait_us = pass.wait_us;
	return (size_t)(pass.first + pass.again);
}

static void count_batch(struct relay_lane *lane, const struct convoy *convoy, size_t acked,
                        size_t failed)
{
	struct relay_counts *counts = &lane->relay->counts;
	pthread_mutex_lock(&lane->relay->lock);
	counts->batches++;
	counts->delivered += (int64_t)acked;
	counts->failed += (int64_t)failed;
	counts->parked += (int64_t)lane->exception_count;
	if (acked)
		counts->age_us = env_wall_us(lane->relay->options.env) -
		                 convoy->sendings[convoy->count - 1]->event->at_us;
	pthread_mutex_unlock(&lane->relay->lock);
}

/* Each record has its end. */
static void read_ends(struct relay_lane *lane, const struct convoy *convoy)
{
	size_t acked = 0, failed = 0, left = 0;
	int64_t pause_us = 0;
	bool reported[FAILURE_CLASS_COUNT] = {false};
	for (size_t i = 0; i < convoy->count; i++) {
		const struct record *record = &convoy->records[i];
		if (record->end == RECORD_FAILED && !reported[record->failure]) {
			reported[record->failure] = true;
			report(lane, false, record->failure);
		}
	}
	for (size_t i = 0; i < convoy->count; i++) {
		const struct record *record = &convoy->records[i];
		struct sending *sending = convoy->sendings[i];
		if (sending->settled) /* behind one that failed */
			continue;
		if (record->end == RECORD_ACKED) {
			arrive(lane, sending, record);
			acked++;
		} else if (record->end == RECORD_FAILED) {
			int64_t own_us = fail(lane, sending, record);
			pause_us = own_us > pause_us ? own_us : pause_us;
			failed++;
		} else {
			left++;
		}
	}
	if (acked)
		report(lane, true, FAILURE_TRANSIENT);
	/* The destination broke off: whoever is left need not find out one by one. */
	if (failed && left && !acked)
		lane->quiet_until_us = steady(lane) + (pause_us ? pause_us : TROUBLE_US);
	count_batch(lane, convoy, acked, failed);
	lane->failures = 0;
}

/* All of it failed as one: nobody's attempt. */
static void back_off(struct relay_lane *lane, enum failure_class failure)
{
	const struct retry_policy *policy = &lane->relay->options.policy;
	close_channel(lane);
	report(lane, false, failure);
	lane->failures++;
	lane->quiet_until_us = steady(lane) +
	                       retry_pause_from_us(policy, lane->failures, 0, random_number(lane));
}

static enum ibid_code open_channel(struct relay_lane *lane, struct ibid_err *err)
{
	struct broker *broker = lane->relay->options.broker;
	char name[32];
	snprintf(name, sizeof name, "lane-%d", lane->lease.lane);
	enum ibid_code code = broker->ops->open_channel(broker, name, &lane->channel, err);
	if (!code)
		return IBID_OK;
	lane->channel = NULL;
	tell(lane, "relay.channel", err);
	back_off(lane, code == IBID_UNAVAILABLE ? FAILURE_TRANSIENT : FAILURE_PERMANENT);
	if (code != IBID_UNAVAILABLE)
		lane->quiet_until_us = steady(lane) + REFUSED_US;
	return code;
}

static enum ibid_code publish(struct relay_lane *lane, struct convoy *convoy, struct ibid_err *err)
{
	struct ibid_err own = {0};
	if (!convoy->count || (!lane->channel && open_channel(lane, &own)))
		return IBID_OK;
	enum ibid_code code = lane->channel->broker->ops->publish(lane->channel, convoy->records,
	                                                          convoy->count, &lane->halt, &own);
	if (code == IBID_FENCED)
		return err_set(err, code, "%s", own.text);
	if (!code) {
		read_ends(lane, convoy);
		return IBID_OK;
	}
	tell(lane, "relay.publish", &own);
	back_off(lane, code == IBID_UNKNOWN ? FAILURE_UNKNOWN : FAILURE_TRANSIENT);
	return IBID_OK;
}

static enum ibid_code send(struct relay_lane *lane, size_t limit, struct ibid_err *err)
{
	struct convoy convoy = {0};
	enum ibid_code code = make_convoy(lane, limit, &convoy)
	                          ? publish(lane, &convoy, err)
	                          : err_set(err, IBID_NOMEM, "out of memory");
	arena_release(&convoy.arena);
	return code;
}

/* ---- The step ------------------------------------------------------------------------------- */

/* New ones that wait behind what is held do so durably, before anything passes them. */
static void hold_waiting(struct relay_lane *lane)
{
	for (struct sending *at = lane->sendings; at < lane->sendings + lane->count; at++)
		if (at->waits && !at->settled)
			let_wait(lane, at);
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

static int64_t rest(struct relay_lane *lane)
{
	int64_t idle_us = lane->idle_us;
	lane->idle_us = idle_us * 2 < IDLE_MOST_US ? idle_us * 2 : IDLE_MOST_US;
	return idle_us;
}

static enum ibid_code work(struct relay_lane *lane, int64_t *ret_wait_us, struct ibid_err *err)
{
	enum ibid_code code = keep_if_due(lane, err);
	int64_t quiet_us = lane->quiet_until_us - steady(lane);
	if (code)
		return code;
	if (!lane->unsettled) {
		code = fill(lane, err);
		if (code)
			return code;
		hold_waiting(lane);
		if (!lane->count && !lane->more)
			*ret_wait_us = rest(lane);
		else
			lane->idle_us = IDLE_LEAST_US;
	}
	if (lane->unsettled && quiet_us > 0) {
		*ret_wait_us = quiet_us < keep_every_us(lane) ? quiet_us : keep_every_us(lane);
	} else if (lane->unsettled) {
		size_t limit = ask_gate(lane, ret_wait_us);
		/* Reading may have taken long: who is not sure of its lease sends nothing. */
		if (limit && steady(lane) - lane->renewed_us > lane->relay->options.lease_us / 2)
			code = keep(lane, lane->relay->options.lease_us, err);
		if (!code && limit)
			code = send(lane, limit, err);
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
	tell(lane, "relay.store", &own);
	*ret_wait_us = TROUBLE_US;
	return IBID_OK;
}

void lane_give_up(struct relay_lane *lane)
{
	struct ibid_err err = {0};
	if (keep(lane, -1, &err))
		tell(lane, "relay.give_up", &err);
}
