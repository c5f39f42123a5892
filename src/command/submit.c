/* SPDX-License-Identifier: Apache-2.0 */
/* submit.c -- turn one command into one outcome: attempts, until there is a decision.
 *
 * Who has a thread waits between them; who has none is told when to go on. */
#include "command/attempt.h"
#include "command/recent.h"
#include "retry/retry.h"

#include <assert.h>

#define BIT(n) (1u << (n))

/* Deadlocks and serialization failures: short pauses, then "try later". Never an outcome (B07). */
static const struct retry_policy inner_policy = {
    .attempts_max = 10, .base_us = 1000, .cap_us = 100000};

/* Behind one that ended come replays of what it wrote. */
static const unsigned char submission_moves[SUBMISSION_STATES] = {
    [SUBMISSION_TRIES] = BIT(SUBMISSION_STEPS) | BIT(SUBMISSION_ANEW) | BIT(SUBMISSION_HOLDS) |
                         BIT(SUBMISSION_ENDED),
    [SUBMISSION_STEPS] = BIT(SUBMISSION_ANEW) | BIT(SUBMISSION_HOLDS) | BIT(SUBMISSION_ENDED),
    [SUBMISSION_ANEW] = BIT(SUBMISSION_STEPS) | BIT(SUBMISSION_HOLDS) | BIT(SUBMISSION_ENDED),
    [SUBMISSION_HOLDS] = BIT(SUBMISSION_ENDED),
};

void submission_move(struct submission *sub, enum submission_state to)
{
	assert(to == sub->state || (submission_moves[sub->state] & BIT(to)));
	sub->state = to;
}

void submission_finishes(struct submission *sub)
{
	if (sub->goal != GOAL_RESOLVE)
		sub->goal = GOAL_FINISH;
}

static struct work_context context_of(const struct submission *sub)
{
	return (struct work_context){
	    .command_id = sub->id,
	    .tenant = sub->identity.tenant,
	    .correlation_id = *sub->correlation_id ? sub->correlation_id : NULL,
	    .causation_id = *sub->causation_id ? sub->causation_id : NULL,
	    .traceparent = sub->traceparent,
	    .tracestate = sub->tracestate,
	    .emits = sub->contract->emits.items,
	    .emit_count = sub->contract->emits.count,
	    .makes_events = sub->contract->events,
	    .rules = &sub->ledger->rules,
	    .now_us = sub->now_us,
	    .holds_lease = submission_holds_lease(sub),
	    .runs_again = decide_expired(sub->contract) == VERDICT_RUN_ANEW,
	};
}

/* What came again a moment ago comes once more: a replay is told at once, all else is the store's
 * to say. */
static bool tell_recent(struct submission *sub)
{
	struct command_row row;
	struct sha256 fingerprint;
	enum verdict verdict;
	struct ibid_err ignored;
	if (sub->goal != GOAL_SUBMIT || sub->pending || sub->lost.code ||
	    !recent_find(sub->ledger->recent, &sub->identity, &sub->attempt, &row) ||
	    submission_judge(sub, &row, &verdict, &fingerprint, &ignored) || verdict != VERDICT_REPLAY)
		return false;
	submission_answer(sub, verdict, &row, &fingerprint);
	return true;
}

static enum ibid_code attempt(struct submission *sub, enum step *ret, struct ibid_err *err)
{
	arena_release(&sub->attempt);
	if (sub->state == SUBMISSION_ANEW) /* of the last attempt, whose row may be gone */
		submission_move(sub, SUBMISSION_STEPS);
	sub->now_us = env_wall_us(sub->ledger->env);
	*ret = STEP_DONE;
	if (tell_recent(sub))
		return IBID_OK;
	sub->sharing.context = context_of(sub);
	return attempt_path(sub, ret, err);
}

/* ---- The course of attempts ----------------------------------------------------------------- */

/* Nothing was done, and it is not tried any more. */
static enum ibid_code give_up(const struct submission *sub, struct ibid_err *err)
{
	if (sub->lost.code)
		return err_set(err, IBID_IO, "%s; nothing was done: mend that and send the same key again",
		               sub->lost.text);
	return err_set(err, IBID_BUSY,
	               "deadlocks or races kept this command from running; nothing was done: send it "
	               "again with the same key");
}

/* What follows an attempt. A collision pauses and counts; recording what an attempt ended in does
 * not, but can't go on for ever either. */
static enum ibid_code follow(struct submission *sub, enum step step, enum advance *ret,
                             struct ibid_err *err)
{
	uint64_t random;
	*ret = ADVANCE_PAUSE;
	switch (step) {
	case STEP_DONE: *ret = ADVANCE_DECIDED; return IBID_OK;
	case STEP_QUEUED: *ret = ADVANCE_QUEUED; return IBID_OK;
	case STEP_LOOK_LATER: sub->pause_us = ATTEMPT_LOOK_PAUSE_US; return IBID_OK;
	case STEP_AGAIN: sub->pause_us = 0; break;
	case STEP_COLLIDED:
		env_random(sub->ledger->env, &random, sizeof random);
		sub->pause_us = retry_pause_us(&inner_policy, ++sub->collisions, random);
		if (sub->pause_us < 0)
			return give_up(sub, err);
		submission_log(sub, IBID_LOG_INFO, "command.retry",
		               "deadlock, serialization failure or race");
		break;
	}
	return ++sub->turns < 3 * inner_policy.attempts_max ? IBID_OK : give_up(sub, err);
}

enum ibid_code submission_advance(struct submission *sub, enum advance *ret, struct ibid_err *err)
{
	enum ibid_code code;
	do {
		enum step step = STEP_DONE;
		code = attempt(sub, &step, err);
		/* Who waits in a group may be served by now, and gone. */
		if (!code && step == STEP_QUEUED) {
			*ret = ADVANCE_QUEUED;
			return IBID_OK;
		}
		if (!code)
			code = follow(sub, step, ret, err);
	} while (!code && *ret == ADVANCE_PAUSE && sub->pause_us == 0);
	return code;
}

enum ibid_code submission_served(struct submission *sub, enum group_part part, enum advance *ret,
                                 struct ibid_err *err)
{
	enum step step = STEP_DONE;
	enum ibid_code code = attempt_served(sub, part, &step, err);
	return code ? code : follow(sub, step, ret, err);
}

enum ibid_code submission_begin(struct submission *sub, struct ibid_err *err)
{
	enum ibid_code code = ledger_check_process(sub->ledger, err);
	if (code)
		return code;
	sub->turns = sub->collisions = 0;
	sub->result = result_new();
	return sub->result ? IBID_OK : err_set(err, IBID_NOMEM, "out of memory");
}

enum ibid_code submission_close(struct submission *sub, enum ibid_code code,
                                struct ibid_result **ret, struct ibid_err *err)
{
	if (code && sub->late) { /* I7: nothing was recorded that would refuse what arrives */
		submission_log(sub, IBID_LOG_ERROR, "command.unknown", err->text);
		result_unknown(sub->result, &sub->id);
		code = IBID_OK;
	}
	if (!code)
		code = submission_locate(sub, err);
	if (!code && sub->result->arena.failed)
		code = err_set(err, IBID_NOMEM, "out of memory");
	if (!code)
		*ret = sub->result;
	else
		ibid_result_free(sub->result);
	sub->result = NULL;
	return code;
}

enum ibid_code submission_decide(struct submission *sub, struct ibid_result **ret,
                                 struct ibid_err *err)
{
	enum advance advance = ADVANCE_PAUSE;
	enum ibid_code code = submission_begin(sub, err);
	if (code)
		return code;
	do {
		code = submission_advance(sub, &advance, err);
		if (!code && advance == ADVANCE_PAUSE)
			env_sleep_us(sub->ledger->env, sub->pause_us);
	} while (!code && advance == ADVANCE_PAUSE);
	return submission_close(sub, code, ret, err);
}

enum ibid_code submission_end(struct submission *sub, const struct ending *ending,
                              struct ibid_result **ret, struct ibid_err *err)
{
	struct outcome outcome = {.text = ending->text};
	submission_finishes(sub);
	attempt_postpone(sub, IBID_FAILED, &outcome);
	sub->end.state = ending->state;
	sub->end.reason = arena_strdup(&sub->arena, ending->reason);
	sub->end.status = ending->status;
	sub->end.body = arena_strdup(&sub->arena, ending->body);
	sub->end.service_answer = arena_strdup(&sub->arena, ending->service_answer);
	if (sub->arena.failed)
		return err_set(err, IBID_NOMEM, "out of memory");
	return submission_decide(sub, ret, err);
}

enum ibid_code submission_view(struct submission *sub, struct ibid_work *ret, struct ibid_err *err)
{
	const char *why;
	sub->now_us = env_wall_us(sub->ledger->env);
	attempt_work(ret, sub, NULL, sub->id);
	ret->arena = &sub->arena;
	if (!sub->payload)
		return IBID_OK;
	return fields_check(&sub->arena, sub->contract, sub->payload, &ret->params, &why, err);
}

bool ledger_recall(struct ledger *ledger, const struct ibid_command *command,
                   struct ibid_result **ret)
{
	struct submission sub;
	struct ibid_err ignored;
	bool answer = false;
	if (!recent_expects(ledger->recent, command->key))
		return false;
	submission_init(&sub, ledger);
	if (!submission_prepare(&sub, command, &ignored) && !submission_begin(&sub, &ignored)) {
		sub.now_us = env_wall_us(ledger->env);
		answer = !submission_close(&sub, tell_recent(&sub) ? IBID_OK : IBID_NOT_FOUND, ret,
		                           &ignored);
	}
	submission_release(&sub);
	return answer;
}

enum ibid_code ledger_submit(struct ledger *ledger, const struct ibid_command *command,
                             struct ibid_result **ret, struct ibid_err *err)
{
	struct submission sub;
	submission_init(&sub, ledger);
	enum ibid_code code = submission_prepare(&sub, command, err);
	if (!code)
		code = submission_decide(&sub, ret, err);
	submission_release(&sub);
	return code;
}
