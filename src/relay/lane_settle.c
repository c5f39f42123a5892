/* SPDX-License-Identifier: Apache-2.0 */
/* lane_settle.c -- what became of an event: it arrived, waits behind another, failed or is parked.
 */
#include "relay/exception.h"
#include "relay/lane_parts.h"

#include <assert.h>
#include <stdio.h>

void lane_settle(struct relay_lane *lane, struct sending *sending)
{
	assert(!sending->settled);
	sending->settled = true;
	lane->unsettled--;
	lane->owes = true;
}

/* It stands in the hold behind another. */
void lane_let_wait(struct relay_lane *lane, struct sending *sending)
{
	if (!sending->hold) {
		struct hold_row hold = lane_hold_of(lane, sending);
		hold.reason = sending->early ? HOLD_EARLY : sending->paused ? HOLD_PAUSED : NULL;
		lane->holds[lane->hold_count++] = hold;
	}
	lane_settle(lane, sending);
}

/* All that comes behind it in its aggregate. */
static void let_wait_behind(struct relay_lane *lane, const struct sending *stuck)
{
	for (struct sending *at = lane->sendings; at < lane->sendings + lane->count; at++)
		if (at > stuck && !at->settled && at->aggregate == stuck->aggregate)
			lane_let_wait(lane, at);
}

void lane_arrive(struct relay_lane *lane, struct sending *sending, const struct record *record)
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
	lane_settle(lane, sending);
	lane->held_stale |= sending->hold != NULL;
}

static void park(struct relay_lane *lane, const struct event_row *event,
                 const struct hold_row *hold, const struct retry_stop *stop)
{
	struct exception_row *item = &lane->exceptions[lane->exception_count];
	*item = relay_parked_exception(lane->relay, &lane->arena, event, hold, stop);
	lane->parked[lane->exception_count++] = (struct notice_parked){event, hold, item->id};
}

void lane_note_breaker(struct relay_lane *lane, enum breaker_state before,
                       const struct event_row *event)
{
	const struct relay *relay = lane->relay;
	const struct breaker *breaker = &relay->gate.breaker;
	const struct notice notice = lane_notice(lane);
	const struct notice_breaker moved = {
	    .before = before,
	    .after = breaker->state,
	    .event = event,
	    .trouble = relay->trouble,
	    .next_us = env_wall_us(relay->options.env) + breaker_wait_us(breaker, lane_steady(lane)),
	};
	notice_breaker(&notice, &moved);
}

void lane_report(struct relay_lane *lane, const struct heard *heard)
{
	struct relay *relay = lane->relay;
	const struct gate_limits *limits = &relay->options.limits;
	pthread_mutex_lock(&relay->lock);
	enum breaker_state before = relay->gate.breaker.state;
	if (heard->good)
		gate_succeeded(&relay->gate, limits, lane_steady(lane));
	else
		gate_failed(&relay->gate, limits, lane_steady(lane), heard->failure);
	if (!heard->good)
		snprintf(relay->trouble, sizeof relay->trouble, "%s%s%s",
		         heard->reason ? heard->reason : "", heard->reason ? ": " : "",
		         heard->why ? heard->why : "");
	lane_note_breaker(lane, before, heard->event);
	bool closed = before != BREAKER_CLOSED && relay->gate.breaker.state == BREAKER_CLOSED;
	pthread_mutex_unlock(&relay->lock);
	if (closed) /* other lanes wait for the next probe */
		relay_wake(relay);
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
	    .random = lane_random(lane),
	};
	pthread_mutex_lock(&relay->lock);
	gate_inform(&relay->gate, &relay->options.limits, lane_steady(lane), &failed);
	pthread_mutex_unlock(&relay->lock);
	return retry_decide(&failed);
}

/* A record's own failure. Returns how long the lane should leave the destination alone. */
int64_t lane_fail(struct relay_lane *lane, struct sending *sending, const struct record *record)
{
	struct hold_row hold = lane_hold_of(lane, sending);
	struct retry_decision decision = decide(lane, record, hold.attempts);
	if (decision.move == RETRY_MOVE_DONE) {
		lane_arrive(lane, sending, record);
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
		park(lane, sending->event, &lane->holds[lane->hold_count - 1], decision.stop);
	lane_settle(lane, sending);
	let_wait_behind(lane, sending);
	return decision.pause_us;
}
