/* SPDX-License-Identifier: Apache-2.0 */
/* ways.c -- how an attempt goes: alone, alone by the short way, or with others in one transaction.
 *
 * The short ways carry out what is plainly a success. Whatever else they meet has changed nothing,
 * and the next attempt goes the long way. */
#include "command/attempt.h"
#include "command/params.h"

/* ---- The short way -------------------------------------------------------------------------- */

/* A first run of a script that does all there is to do, and nothing of the payload is kept. */
static bool runs_plainly(const struct submission *sub)
{
	return sub->goal == GOAL_SUBMIT && sub->script && !sub->long_way && !sub->pending &&
	       sub->contract->payload == CLASS_OMIT && !contract_looks(sub->contract);
}

/* Scripts whose body is not kept, where the store can run a command from end to end at once. */
static bool may_express(const struct submission *sub)
{
	return sub->ledger->store->ops->express && runs_plainly(sub) &&
	       sub->contract->answer != ANSWER_FULL;
}

/* It is durable. A body that can't be brought into canonical form is JSON all the same. */
static void tell_executed(struct submission *sub, struct command_row *row,
                          const struct outcome *outcome)
{
	struct outcome checked = *outcome;
	bool good = work_check_answer(&sub->attempt, &checked) == IBID_OK;
	(void)submission_complete(sub, row, outcome, false);
	struct command_row told = submission_whole_answer(row, good ? &checked : outcome);
	result_of_row(sub->result, &told);
}

/* What the store said of an express command that it did not carry out. */
static enum ibid_code meet_express(struct submission *sub, enum ibid_code code,
                                   const struct command_row *row, struct claim *claim,
                                   struct outcome *outcome, enum step *ret, struct ibid_err *err)
{
	*ret = STEP_AGAIN;
	switch (code) {
	case IBID_OK:
		if (claim->kind != CLAIM_FREE)
			return attempt_meet(sub, claim, ret, err);
		sub->long_way = true;
		return IBID_OK;
	case IBID_UNKNOWN: return attempt_resolve(sub, row, true, ret, err);
	case IBID_RETRY: *ret = STEP_COLLIDED; return IBID_OK;
	case IBID_REJECTED: code = work_check_rejection(&sub->attempt, outcome); /* fall through */
	case IBID_DUPLICATE:
	case IBID_FAILED: attempt_postpone(sub, code, outcome); return IBID_OK;
	default: return code;
	}
}

static enum ibid_code express(struct submission *sub, const struct work_context *context,
                              enum step *ret, struct ibid_err *err)
{
	struct store *store = sub->ledger->store;
	struct ibid_work work;
	struct outcome outcome = {0};
	struct claim claim = {0};
	const char *why;
	bool done = false;
	attempt_work(&work, sub, NULL, sub->id);
	enum ibid_code code = fields_check(&sub->attempt, sub->contract, sub->payload, &work.params,
	                                   &why, err);
	if (code) {
		sub->long_way = true;
		*ret = STEP_AGAIN;
		return code == IBID_REJECTED ? IBID_OK : code;
	}
	const char *const *values = params_values(&work);
	if (!values)
		return err_set(err, IBID_NOMEM, "out of memory");
	struct command_row row = submission_row(sub, NULL);
	struct audit_row audit = submission_complete(sub, &row, &outcome, false);
	struct express request = {
	    .context = context,
	    .script = sub->script,
	    .values = values,
	    .row = &row,
	    .audit = &audit,
	    .keep_status = sub->contract->answer != ANSWER_NONE,
	    .keep_resource = sub->contract->answer == ANSWER_REFERENCE,
	};
	code = store->ops->express(store, &sub->attempt, &request, &claim, &outcome, &done, err);
	if (code || !done)
		return meet_express(sub, code, &row, &claim, &outcome, ret, err);
	tell_executed(sub, &row, &outcome);
	*ret = STEP_DONE;
	return IBID_OK;
}

enum ibid_code attempt_alone(struct submission *sub, const struct work_context *context,
                             enum step *ret, struct ibid_err *err)
{
	struct store *store = sub->ledger->store;
	struct claim claim = {0};
	if (may_express(sub))
		return express(sub, context, ret, err);
	enum ibid_code code = store->ops->claim(store, &sub->attempt, &sub->identity, context, &claim,
	                                        err);
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

/* ---- With others ---------------------------------------------------------------------------- */

static bool complete_member(struct group_member *member)
{
	const struct submission *sub = ((struct sharing *)member)->sub;
	if (work_check_answer(member->arena, &member->outcome))
		return false;
	member->audit = submission_complete(sub, &member->row, &member->outcome, false);
	return true;
}

/* Where row locks have an order, only commands that say what they contend for. */
bool attempt_may_share(const struct submission *sub)
{
	return runs_plainly(sub) && !sub->alone &&
	       (sub->ledger->store->ops->one_writer || sub->contract->serialize_by.items);
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

static enum ibid_code meet_shared(struct submission *sub, enum step *ret, struct ibid_err *err)
{
	struct group_member *member = &sub->sharing.member;
	const struct group_place *place = &sub->sharing.place;
	struct outcome outcome = {.text = place->err.text};
	*ret = STEP_AGAIN;
	if (member->done) {
		struct command_row told = submission_whole_answer(&member->row, &member->outcome);
		attempt_tell(sub, &told);
		*ret = STEP_DONE;
	} else if (member->claim.kind != CLAIM_FREE) {
		return attempt_meet(sub, &member->claim, ret, err);
	} else if (place->code == IBID_UNKNOWN) {
		*err = place->err;
		sub->alone = true; /* if it is to run: a neighbour may have ended the connection */
		return attempt_resolve(sub, &member->row, true, ret, err);
	} else if (place->code == IBID_MISUSE) {
		attempt_postpone(sub, place->code, &outcome);
	} else {
		sub->alone = true;
	}
	return IBID_OK;
}

enum ibid_code attempt_served(struct submission *sub, enum group_part part, enum step *ret,
                              struct ibid_err *err)
{
	if (part == GROUP_SERVED)
		return meet_shared(sub, ret, err);
	enum ibid_code code = attempt_alone(sub, &sub->sharing.context, ret, err);
	group_leave(&sub->sharing.place);
	return code;
}

enum ibid_code attempt_shared(struct submission *sub, enum step *ret, struct ibid_err *err)
{
	struct sharing *sharing = &sub->sharing;
	struct ibid_work *work = &sharing->work;
	enum group_part part;
	const char *why;
	attempt_work(work, sub, NULL, sub->id);
	enum ibid_code code = fields_check(&sub->attempt, sub->contract, sub->payload, &work->params,
	                                   &why, err);
	if (code == IBID_REJECTED)
		return attempt_alone(sub, &sharing->context, ret, err);
	if (code)
		return code;
	sharing->sub = sub;
	sharing->member = (struct group_member){
	    .context = &sharing->context,
	    .script = sub->script,
	    .values = params_values(work),
	    .arena = &sub->attempt,
	    .row = submission_row(sub, NULL),
	    .complete = complete_member,
	};
	sharing->place = (struct group_place){
	    .member = &sharing->member,
	    .contends = contention_of(sub, work),
	    .told = sub->told,
	};
	if (sub->attempt.failed)
		return err_set(err, IBID_NOMEM, "out of memory");
	code = group_enter(sub->ledger->group, &sharing->place, &part, err);
	*ret = STEP_QUEUED;
	return code || part == GROUP_WAITS ? code : attempt_served(sub, part, ret, err);
}
