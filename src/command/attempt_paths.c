/* SPDX-License-Identifier: Apache-2.0 */
/* attempt_paths.c -- which path an attempt takes: in a group, alone or with others, or by the
 * steps.
 *
 * A group carries out what is plainly a success. Whatever else it meets has changed nothing: the
 * group says what it is, or the next attempt goes by the steps. */
#include "command/attempt.h"
#include "command/declared.h"
#include "command/params.h"

/* ---- By the steps --------------------------------------------------------------------------- */

enum ibid_code attempt_steps(struct submission *sub, enum step *ret, struct ibid_err *err)
{
	struct store *store = sub->ledger->store;
	struct claim claim = {0};
	enum ibid_code code = store->ops->claim(store, &sub->attempt, &sub->identity,
	                                        &sub->sharing.context, &claim, err);
	if (code == IBID_RETRY) {
		*ret = STEP_COLLIDED;
		return IBID_OK;
	}
	if (code)
		return code;
	code = attempt_meet(sub, &claim, ret, err);
	store->ops->rollback(&claim.tx);
	return code;
}

/* ---- In a group ----------------------------------------------------------------------------- */

/* A first run of a script that does all there is to do, and nothing of the payload is kept. */
static bool runs_plainly(const struct submission *sub)
{
	return sub->goal == GOAL_SUBMIT && sub->script && sub->state == SUBMISSION_TRIES &&
	       !sub->pending && sub->contract->payload == CLASS_OMIT && !contract_looks(sub->contract);
}

/* Where row locks have an order, only commands that say what they contend for. */
static bool may_share(const struct submission *sub)
{
	return sub->ledger->store->ops->one_writer || sub->contract->serialize_by.items;
}

static bool complete_member(struct group_member *member)
{
	const struct submission *sub = ((struct sharing *)member)->sub;
	if (declared_check_rows(member->arena, sub->contract, &member->outcome))
		return false;
	if (member->answered)
		return true;
	if (work_check_answer(member->arena, &member->outcome))
		return false;
	member->audit = submission_complete(sub, &member->row, &member->outcome, false);
	return true;
}

/* With what the contract declares. False: it is no plain success. */
static bool make_member(struct submission *sub, const char *const *values)
{
	struct ibid_work *work = &sub->sharing.work;
	struct group_member *member = &sub->sharing.member;
	const struct contract *contract = sub->contract;
	if (declared_reject(contract, values) || declared_succeed(work, values))
		return false;
	*member = (struct group_member){
	    .context = &sub->sharing.context,
	    .script = sub->script,
	    .values = values,
	    .arena = &sub->attempt,
	    .row = submission_row(sub, NULL),
	    .answered = contract->success.status,
	    .compares = declared_compares(contract),
	    .complete = complete_member,
	    .events = work->events,
	    .event_count = work->event_count,
	    .outcome = work->outcome,
	};
	if (member->answered)
		member->audit = submission_complete(sub, &member->row, &member->outcome, false);
	return true;
}

static uint64_t contention_of(struct submission *sub, const struct ibid_work *work)
{
	const struct texts *by = &sub->contract->serialize_by;
	if (!by->count)
		return group_contention(sub->identity.tenant, &sub->identity.key, 1); /* any lane will do */
	const char **values = arena_array(&sub->attempt, by->count, sizeof *values);
	for (size_t i = 0; values && i < by->count; i++) {
		const struct contract_field *field = contract_field_at(sub->contract, by->items[i]);
		values[i] = work->params.items[field - sub->contract->fields].text;
	}
	return group_contention(sub->identity.tenant, values, values ? by->count : 0);
}

/* One that shared its transaction may not have succeeded for a neighbour's sake. */
static enum ibid_code meet_stopped(struct submission *sub, bool shared, enum step *ret,
                                   struct ibid_err *err)
{
	struct group_member *member = &sub->sharing.member;
	const struct group_place *place = &sub->sharing.place;
	struct outcome outcome = {.text = place->err.text};
	*ret = STEP_AGAIN;
	switch (place->code) {
	case IBID_UNKNOWN:
		*err = place->err;
		submission_move(sub, SUBMISSION_STEPS);
		return attempt_resolve(sub, &member->row, true, ret, err);
	case IBID_MISUSE: attempt_postpone(sub, place->code, &outcome); return IBID_OK;
	case IBID_OK: break;
	default:
		if (shared)
			break;
		if (place->code != IBID_RETRY) {
			*err = place->err;
			return place->code;
		}
		*ret = STEP_COLLIDED;
	}
	enum ibid_code code = member->code;
	if (code == IBID_REJECTED)
		code = work_check_rejection(member->arena, &member->outcome);
	if (code)
		attempt_postpone(sub, code, &member->outcome);
	submission_move(sub, SUBMISSION_STEPS);
	return IBID_OK;
}

static enum ibid_code meet_served(struct submission *sub, bool shared, enum step *ret,
                                  struct ibid_err *err)
{
	struct group_member *member = &sub->sharing.member;
	*ret = STEP_AGAIN;
	if (member->done) {
		struct command_row answer = submission_whole_answer(&member->row, &member->outcome);
		attempt_answer(sub, &answer);
		*ret = STEP_DONE;
		return IBID_OK;
	}
	if (member->claim.kind != CLAIM_FREE)
		return attempt_meet(sub, &member->claim, ret, err);
	return meet_stopped(sub, shared, ret, err);
}

static enum ibid_code run_alone(struct submission *sub, enum step *ret, struct ibid_err *err)
{
	struct store *store = sub->ledger->store;
	struct group_member *member = &sub->sharing.member;
	struct group_place *place = &sub->sharing.place;
	place->code = store->ops->run_group(store, &member, 1, &place->err);
	return meet_served(sub, false, ret, err);
}

enum ibid_code attempt_served(struct submission *sub, enum group_part part, enum step *ret,
                              struct ibid_err *err)
{
	if (part == GROUP_SERVED)
		return meet_served(sub, true, ret, err);
	enum ibid_code code = run_alone(sub, ret, err);
	group_leave(&sub->sharing.place);
	return code;
}

static enum ibid_code attempt_group(struct submission *sub, enum step *ret, struct ibid_err *err)
{
	struct sharing *sharing = &sub->sharing;
	struct ibid_work *work = &sharing->work;
	enum group_part part;
	const char *why;
	attempt_work(work, sub, NULL, sub->id);
	enum ibid_code code = fields_check(&sub->attempt, sub->contract, sub->payload, &work->params,
	                                   &why, err);
	if (code == IBID_REJECTED)
		return attempt_steps(sub, ret, err);
	if (code)
		return code;
	const char *const *values = params_values(work);
	bool plain = values && make_member(sub, values);
	if (sub->attempt.failed)
		return err_set(err, IBID_NOMEM, "out of memory");
	if (!plain)
		return attempt_steps(sub, ret, err);
	sharing->sub = sub;
	sharing->place = (struct group_place){.member = &sharing->member, .served = sub->served};
	if (!may_share(sub))
		return run_alone(sub, ret, err);
	sharing->place.contends = contention_of(sub, work);
	if (sub->attempt.failed)
		return err_set(err, IBID_NOMEM, "out of memory");
	code = group_enter(sub->ledger->group, &sharing->place, &part, err);
	*ret = STEP_QUEUED;
	return code || part == GROUP_WAITS ? code : attempt_served(sub, part, ret, err);
}

enum ibid_code attempt_path(struct submission *sub, enum step *ret, struct ibid_err *err)
{
	return runs_plainly(sub) ? attempt_group(sub, ret, err) : attempt_steps(sub, ret, err);
}
