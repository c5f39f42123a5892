/* SPDX-License-Identifier: Apache-2.0 */
/* attempt.c -- one transaction that may bring a command to its outcome.
 *
 * Claim the identity, run the handler, append its events, write the audit entry and the command's
 * row, commit. The row is written once, complete, at the end. What is not a success (a rejection, a
 * hit on business uniqueness, a failure) rolls everything back and is *recorded* by the next
 * attempt, which claims again: so there is one way to undo, and a twin that got in between is found
 * and believed.
 *
 * (I1) one commit for row, change, events and audit entry; or for an UNKNOWN row and its exception.
 * (I2) the primary key arbitrates.   (I7) a commit without an answer is unknown until the store
 * says.   (I10) no answer before it. */
#include "command/attempt.h"

#include "base/instant.h"
#include "command/declared.h"
#include "command/exception.h"
#include "command/keep.h"
#include "command/params.h"
#include "command/recent.h"
#include "command/strategy.h"

#include <assert.h>
#include <string.h>

enum { MISSES_MAX = 3 };

/* ---- Running -------------------------------------------------------------------------------- */

void attempt_work(struct ibid_work *work, struct submission *sub, struct tx *tx, struct uuid id)
{
	*work = (struct ibid_work){
	    .arena = &sub->attempt,
	    .tx = tx,
	    .contract = sub->contract,
	    .identity = &sub->identity,
	    .sender = &sub->sender,
	    .payload = sub->canonical,
	    .id = id,
	    .now_us = sub->now_us,
	    .correlation_id = *sub->correlation_id ? sub->correlation_id : NULL,
	    .causation_id = *sub->causation_id ? sub->causation_id : NULL,
	    .traceparent = sub->traceparent,
	    .tracestate = sub->tracestate,
	    .rules = &sub->ledger->rules,
	};
	uuid_write(id, work->command_id);
	instant_write(sub->now_us, work->now);
}

enum ibid_code submission_run_script(struct ibid_work *work, const struct script *script,
                                     struct ibid_err *err)
{
	const char *const *values = params_values(work);
	if (!values)
		return err_set(err, IBID_NOMEM, "out of memory");
	return work->tx->store->ops->run_script(work->tx, work->arena, script, values, &work->outcome,
	                                        err);
}

/* A callback did not succeed, and its code says how. Can what it did still be undone? */
enum ibid_code submission_check_undo(struct ibid_work *work, enum ibid_code code,
                                     struct ibid_err *err)
{
	const struct store_ops *ops = work->tx->store->ops;
	enum ibid_code found = ops->check_tx ? ops->check_tx(work->tx, err) : IBID_OK;
	if (found == IBID_MISUSE)
		work->outcome = (struct outcome){.text = arena_strdup(work->arena, err->text)};
	return found ? found : code;
}

/* The script, and what the contract declares of it. */
static enum ibid_code run_handler_script(struct submission *sub, struct ibid_work *work,
                                         struct ibid_err *err)
{
	const struct store_ops *ops = work->tx->store->ops;
	bool declared = sub->contract->success.status;
	const char *const *values = params_values(work);
	if (!values)
		return err_set(err, IBID_NOMEM, "out of memory");
	enum ibid_code code = (declared ? ops->run_statements : ops->run_script)(
	    work->tx, work->arena, sub->script, values, &work->outcome, err);
	if (!code)
		code = declared_check_rows(work->arena, sub->contract, &work->outcome);
	if (!code && !declared)
		code = work_check_answer(work->arena, &work->outcome);
	return code ? code : declared_succeed(work, values);
}

/* IBID_OK, IBID_REJECTED, IBID_DUPLICATE, IBID_FAILED, IBID_RETRY; IBID_MISUSE: it ended the
 * transaction; other codes are the store's. */
static enum ibid_code run_handler(struct submission *sub, struct ibid_work *work,
                                  struct ibid_err *err)
{
	enum ibid_code code;
	if (sub->script && submission_is_finishing(sub))
		return recovery_query(sub, work, err);
	if (sub->script) {
		code = run_handler_script(sub, work, err);
		return code == IBID_REJECTED ? work_check_rejection(work->arena, &work->outcome) : code;
	}
	work->connection = work->tx->store->ops->lend(work->tx, true);
	code = sub->handler(work, sub->user);
	work->tx->store->ops->lend(work->tx, false);
	code = work_result(work, code);
	return code ? submission_check_undo(work, code, err) : IBID_OK; /* commit looks itself */
}

/* ---- Recording ------------------------------------------------------------------------------ */

static const char *kept(struct submission *sub, const char *text)
{
	return arena_strdup(&sub->arena, text);
}

void attempt_postpone(struct submission *sub, enum ibid_code code, const struct outcome *outcome)
{
	sub->pending = code;
	sub->outcome = (struct outcome){
	    .status = outcome->status,
	    .resource_type = kept(sub, outcome->resource_type),
	    .resource_id = kept(sub, outcome->resource_id),
	    .reason = kept(sub, outcome->reason),
	    .text = kept(sub, outcome->text),
	    .unique = kept(sub, outcome->unique),
	};
}

void attempt_answer(struct submission *sub, const struct command_row *row)
{
	if (row->state != COMMAND_IN_PROGRESS) {
		submission_move(sub, SUBMISSION_ENDED);
		result_of_row(sub->result, row);
		return;
	}
	submission_move(sub, SUBMISSION_HOLDS);
	sub->id = row->id;
	sub->token = row->lease_token;
}

/* Is the row what this submission wanted to write? Those who resolve share a token, and those who
 * run a row again its id: what was sent, and the moment, tell two of them apart. */
static bool wrote(const struct submission *sub, const struct command_row *row,
                  const struct command_row *answer)
{
	bool shares = sub->goal == GOAL_RESOLVE || answer->attempts > 1;
	return row->attempts == answer->attempts && row->lease_token == answer->lease_token &&
	       (row->state == COMMAND_IN_PROGRESS) == (answer->state == COMMAND_IN_PROGRESS) &&
	       memcmp(&row->id, &answer->id, sizeof answer->id) == 0 &&
	       (!shares ||
	        (row->state == answer->state && row->finished_us == answer->finished_us &&
	         memcmp(&row->fingerprint, &answer->fingerprint, sizeof answer->fingerprint) == 0));
}

enum ibid_code attempt_resolve(struct submission *sub, const struct command_row *answer,
                               bool answer_lost, enum step *ret, struct ibid_err *err)
{
	struct store *store = sub->ledger->store;
	struct claim claim = {0};
	sub->lost = *err;
	enum ibid_code code = store->ops->resolve(store, &sub->attempt, &sub->identity,
	                                          sub->ledger->resolve_us, &claim, err);
	if (code || claim.kind == CLAIM_BUSY) {
		submission_log(sub, IBID_LOG_ERROR, "command.unknown", code ? err->text : "still held");
		result_unknown(sub->result, &answer->id);
		*ret = STEP_DONE;
		return IBID_OK;
	}
	/* What claims and commits in one trip holds nothing that could be waited for until it arrives.
	 */
	sub->late |= answer_lost && claim.kind == CLAIM_FREE && !store->ops->one_writer;
	bool ours = claim.kind == CLAIM_FOUND && wrote(sub, &claim.row, answer);
	if (ours)
		attempt_answer(sub, answer_lost ? &claim.row : answer);
	*ret = ours ? STEP_DONE : STEP_COLLIDED;
	return IBID_OK;
}

/* Which class of failure a code belongs to, where a transaction ended in it. */
static enum refusal_class class_of(enum ibid_code code)
{
	return code == IBID_FAILED || code == IBID_MISUSE ? REFUSAL_SERVER : REFUSAL_BUSINESS;
}

/* What was done outside is done: only its worker, or recovery, may say that it was not, or reject
 * it (I4). */
static enum ibid_code finish_failed(const struct submission *sub, const struct outcome *outcome,
                                    struct ibid_err *err)
{
	return err_set(err, IBID_FAILED, "%s%s%s; nothing was recorded, and %s",
	               outcome->reason ? outcome->reason : "", outcome->reason ? ": " : "",
	               outcome->text ? outcome->text : "the handler failed",
	               sub->goal == GOAL_RESOLVE ? "it is still unknown" : "the lease goes on");
}

/* `told` is what the caller hears once it is durable (I10). */
static enum ibid_code commit(struct submission *sub, struct tx **tx,
                             const struct command_row *answer, enum step *ret, struct ibid_err *err)
{
	struct outcome outcome = {0};
	enum ibid_code code = (*tx)->store->ops->commit(tx, &sub->attempt, &outcome, err);
	switch (code) {
	case IBID_OK:
		attempt_answer(sub, answer);
		*ret = STEP_DONE;
		return IBID_OK;
	case IBID_UNKNOWN: return attempt_resolve(sub, answer, false, ret, err);
	case IBID_RETRY: *ret = STEP_COLLIDED; return IBID_OK;
	case IBID_MISUSE:
		/* The handler ended the transaction: what it did is committed, or not. Nobody knows, and
		 * the key must not run again. */
		outcome.text = err->text;
		attempt_postpone(sub, code, &outcome);
		*ret = STEP_AGAIN;
		return IBID_OK;
	case IBID_REJECTED:
		if (submission_is_finishing(sub))
			return finish_failed(sub, &outcome, err); /* fall through */
	case IBID_DUPLICATE:
	case IBID_FAILED:
		/* Found only now: a deferred constraint, an event's version. The handler is not run again.
		 */
		attempt_postpone(sub, code, &outcome);
		*ret = STEP_AGAIN;
		return IBID_OK;
	default: return code;
	}
}

/* What nobody knows has an owner, from the same commit on (I1, I8). */
static enum ibid_code open_exception(struct submission *sub, struct tx *tx,
                                     const struct command_row *row, struct ibid_err *err)
{
	struct exception_row item = command_exception(&sub->attempt, sub->ledger->env, sub->contract,
	                                              row);
	item.service_answer = keep_service_answer(sub, row, sub->end.service_answer);
	if (sub->attempt.failed)
		return err_set(err, IBID_NOMEM, "out of memory");
	return store_put_exception(tx, &item, err);
}

/* Write the row of a rejection or failure; of what is unknown, with its exception. */
static enum ibid_code record_refusal(struct submission *sub, struct tx **tx,
                                     const struct command_row *previous, enum refusal_class class,
                                     const struct outcome *outcome, enum step *ret,
                                     struct ibid_err *err)
{
	struct command_row row = submission_row(sub, previous);
	bool server = class == REFUSAL_SERVER;
	if (server && submission_is_finishing(sub) && !submission_has_end(sub) &&
	    sub->pending != IBID_MISUSE)
		return finish_failed(sub, outcome, err);
	submission_refuse(sub, &row, class, outcome);
	if (class == REFUSAL_VALIDATION)
		submission_unbind(sub, &row, previous);
	if (sub->pending == IBID_MISUSE) {
		row.state = COMMAND_UNKNOWN;
		row.reason = handler_ended_transaction;
	} else if (submission_has_end(sub)) {
		submission_set_end(sub, &row);
	}
	bool unknown = row.state == COMMAND_UNKNOWN;
	/* What was asked has refused: that is an outcome, and no failure of ours. */
	bool refused = submission_has_end(sub) && sub->end.status && row.state == COMMAND_REJECTED;
	struct command_row answer = row;
	row = submission_kept_refusal(sub, &row);
	if (server && !refused)
		submission_log_incident(sub, unknown ? "command.unknown" : "command.failed", &row);
	enum ibid_code code = keep_row(sub, *tx, &row, previous, err);
	if (!code && unknown)
		code = open_exception(sub, *tx, &row, err);
	if (code == IBID_RETRY) {
		(*tx)->store->ops->rollback(tx);
		*ret = STEP_COLLIDED;
		return IBID_OK;
	}
	return code ? code : commit(sub, tx, &answer, ret, err);
}

/* Write everything a success consists of (I1). */
static enum ibid_code record_success(struct submission *sub, struct tx **tx,
                                     const struct command_row *previous,
                                     const struct ibid_work *work, const struct outcome *outcome,
                                     bool linked, enum step *ret, struct ibid_err *err)
{
	const struct store_ops *ops = (*tx)->store->ops;
	struct command_row row = submission_row(sub, previous);
	struct audit_row audit = submission_complete(sub, &row, outcome, linked);
	enum ibid_code code = IBID_OK;
	for (size_t i = 0; !code && work && i < work->event_count; i++)
		code = ops->put_event(*tx, &work->events[i], err);
	if (!code)
		code = store_put_audit(*tx, &audit, err);
	if (!code)
		code = keep_row(sub, *tx, &row, previous, err);
	if (code == IBID_RETRY) {
		ops->rollback(tx);
		*ret = STEP_COLLIDED;
		return IBID_OK;
	}
	/* An event that the store rejected dooms the transaction: commit rolls back, and says why. */
	if (code && code != IBID_REJECTED)
		return code;
	struct command_row answer = submission_whole_answer(&row, outcome);
	return commit(sub, tx, &answer, ret, err);
}

/* Is `name` among the candidates? SQLite can't always tell indexes over the same columns apart. */
static bool names_unique(const char *candidates, const char *name)
{
	size_t size = strlen(name);
	for (const char *at = candidates; at && *at;) {
		size_t part = strcspn(at, ",");
		if (part == size && memcmp(at, name, size) == 0)
			return true;
		at += part + (at[part] == ',');
	}
	return false;
}

/* What the handler said rolls the transaction back; the next attempt records it, or runs it again.
 */
static enum ibid_code undo(struct submission *sub, struct tx **tx, enum ibid_code code,
                           const struct ibid_work *work, enum step *ret)
{
	(*tx)->store->ops->rollback(tx);
	if (code != IBID_RETRY)
		attempt_postpone(sub, code, &work->outcome);
	*ret = code == IBID_RETRY ? STEP_COLLIDED : STEP_AGAIN;
	return IBID_OK;
}

/* A business uniqueness was hit: find the document that is there (B09). */
static enum ibid_code record_duplicate(struct submission *sub, struct tx **tx,
                                       const struct command_row *previous, struct ibid_work *work,
                                       enum step *ret, struct ibid_err *err)
{
	const struct contract *contract = sub->contract;
	bool declared = false;
	for (size_t i = 0; i < contract->unique_count; i++) {
		const struct contract_unique *unique = &contract->uniques[i];
		if (!names_unique(sub->outcome.unique, unique->name))
			continue;
		declared = true;
		work->outcome = (struct outcome){0};
		enum ibid_code code = submission_run_script(work, sub->operation->finds[i], err);
		if (code == IBID_REJECTED) /* what is there contradicts the command */
			code = work_check_rejection(work->arena, &work->outcome);
		if (code == IBID_FAILED || code == IBID_REJECTED || code == IBID_RETRY)
			return undo(sub, tx, code, work, ret);
		if (code)
			return code;
		if (!work->outcome.found)
			continue;
		if (work_check_answer(work->arena, &work->outcome))
			return record_refusal(sub, tx, previous, REFUSAL_SERVER, &work->outcome, ret, err);
		if (unique->on_duplicate == UNIQUE_LINK)
			return record_success(sub, tx, previous, NULL, &work->outcome, true, ret, err);
		work->outcome.status = 409;
		work->outcome.reason = "DUPLICATE";
		work->outcome.text = "the same business fact exists already";
		return record_refusal(sub, tx, previous, REFUSAL_BUSINESS, &work->outcome, ret, err);
	}
	if (declared && ++sub->misses < MISSES_MAX) {
		/* It was there when the handler hit it and is gone now: run the handler again. */
		(*tx)->store->ops->rollback(tx);
		sub->pending = IBID_OK;
		*ret = STEP_COLLIDED;
		return IBID_OK;
	}
	if (declared) {
		outcome_fail(
		    &sub->attempt, &work->outcome,
		    "unique index %s is violated again and again, and its `find` script returns no "
		    "row: it must find what the index protects",
		    sub->outcome.unique);
		return record_refusal(sub, tx, previous, REFUSAL_SERVER, &work->outcome, ret, err);
	}
	outcome_fail(&sub->attempt, &work->outcome,
	             "unique index %s was violated and the contract does not name it under `unique`%s",
	             sub->outcome.unique,
	             strncmp(sub->outcome.unique, "sqlite_autoindex_", 17) == 0
	                 ? "; SQLite forgets a table constraint's name: use `create unique index`"
	                 : "");
	return record_refusal(sub, tx, previous, REFUSAL_SERVER, &work->outcome, ret, err);
}

/* ---- One attempt ---------------------------------------------------------------------------- */

/* Larger than any before it, and not the same by chance where two take the lease at once and one of
 * them does not hear of its commit. Whole numbers of JSON hold it. */
static int64_t next_token(struct submission *sub, const struct command_row *previous)
{
	uint32_t random;
	env_random(sub->ledger->env, &random, sizeof random);
	return (((previous ? previous->lease_token : 0) >> 32) + 1) << 32 | random;
}

/* Write the row of a command that is being worked on outside: staged, or taken over. */
static enum ibid_code hold(struct submission *sub, struct tx **tx,
                           const struct command_row *previous, enum step *ret, struct ibid_err *err)
{
	struct command_row row = submission_row(sub, previous);
	row.state = COMMAND_IN_PROGRESS;
	row.finished_us = 0;
	row.lease_token = next_token(sub, previous);
	row.lease_us = sub->contract->staged.lease_us;
	assert(row.lease_us); /* without an end nobody could take it over */
	enum ibid_code code = keep_row(sub, *tx, &row, previous, err);
	if (code == IBID_RETRY) {
		(*tx)->store->ops->rollback(tx);
		*ret = STEP_COLLIDED;
		return IBID_OK;
	}
	return code ? code : commit(sub, tx, &row, ret, err);
}

/* What is done already is replayed anywhere; only a program that has the handler runs it. */
static enum ibid_code check_handler(const struct submission *sub, struct ibid_err *err)
{
	const char *name = sub->contract->name;
	if (sub->goal != GOAL_SUBMIT)
		return IBID_OK;
	if (sub->contract->staged.lease_us)
		return err_set(err, IBID_MISUSE, "operation %s is staged: it is run by %s", name,
		               contract_run_by(sub->contract));
	if (!sub->script && !sub->handler)
		return err_set(err, IBID_MISUSE,
		               "operation %s has `handler: callback`: only a program that gives the "
		               "callback to ibid_handle can run it; elsewhere a command that is done is "
		               "replayed, and this one is not done",
		               name);
	return IBID_OK;
}

/* `*ret`: the rule of the contract that refuses the command; NULL: none. */
static enum ibid_code check_rejects(const struct submission *sub, const struct ibid_work *work,
                                    const struct contract_reject **ret, struct ibid_err *err)
{
	*ret = NULL;
	if (!sub->contract->reject_count || !sub->payload)
		return IBID_OK;
	const char *const *values = params_values(work);
	if (!values)
		return err_set(err, IBID_NOMEM, "out of memory");
	*ret = declared_reject(sub->contract, values);
	return IBID_OK;
}

/* The transaction holds the identity: bring it to an outcome. */
static enum ibid_code perform(struct submission *sub, struct tx **tx,
                              const struct command_row *previous, enum step *ret,
                              struct ibid_err *err)
{
	struct ibid_work work;
	const char *why = NULL;
	const struct contract_reject *rule = NULL;
	bool linked = false;
	const struct command_row *same = submission_continued(sub, previous);
	enum ibid_code code = check_handler(sub, err);
	if (code)
		return code;
	attempt_work(&work, sub, *tx, same ? same->id : sub->id);
	if (sub->payload)
		code = fields_check(&sub->attempt, sub->contract, sub->payload, &work.params, &why, err);
	if (code == IBID_REJECTED) {
		struct outcome invalid = {.status = 422, .reason = "INVALID_PAYLOAD", .text = why};
		return record_refusal(sub, tx, previous, REFUSAL_VALIDATION, &invalid, ret, err);
	}
	if (!code)
		code = check_rejects(sub, &work, &rule, err);
	if (code)
		return code;
	if (rule) {
		struct outcome refused = {.status = rule->status, .reason = rule->code, .text = rule->text};
		return record_refusal(sub, tx, previous, rule->class, &refused, ret, err);
	}
	if (sub->pending == IBID_DUPLICATE)
		return record_duplicate(sub, tx, previous, &work, ret, err);
	if (sub->pending)
		return record_refusal(sub, tx, previous, class_of(sub->pending), &sub->outcome, ret, err);
	if (sub->goal == GOAL_STAGE)
		return hold(sub, tx, previous, ret, err);

	code = strategy_run(sub, &work, run_handler, &linked, err);
	switch (code) {
	case IBID_OK: return record_success(sub, tx, previous, &work, &work.outcome, linked, ret, err);
	case IBID_RETRY:
	case IBID_REJECTED:
	case IBID_DUPLICATE:
	case IBID_MISUSE:
	case IBID_FAILED: return undo(sub, tx, code, &work, ret);
	default: return code;
	}
}

/* A worker holds no lock that could be waited for: look now and then until its time is over. */
static enum ibid_code await_worker(struct submission *sub, int64_t wait_us, struct ibid_err *err)
{
	struct store *store = sub->ledger->store;
	struct env *env = sub->ledger->env;
	int64_t deadline_us = env_steady_us(env) + wait_us;
	for (;;) {
		struct command_row row;
		enum ibid_code code = store_get_command(store, &sub->attempt, sub->identity.tenant, NULL,
		                                        &sub->identity, &row, err);
		int64_t left_us = deadline_us - env_steady_us(env);
		if (code == IBID_NOT_FOUND)
			return IBID_OK;
		if (code || row.state != COMMAND_IN_PROGRESS || left_us <= 0)
			return code;
		env_sleep_us(env, left_us < ATTEMPT_LOOK_PAUSE_US ? left_us : ATTEMPT_LOOK_PAUSE_US);
	}
}

static enum ibid_code tell_busy(struct submission *sub, const struct uuid *id, enum step *ret,
                                struct ibid_err *err)
{
	struct store *store = sub->ledger->store;
	const struct contract_duplicates *policy = &sub->contract->duplicates;
	struct claim claim = {0};
	if (policy->in_progress == PROGRESS_WAIT && sub->served) {
		int64_t now_us = env_steady_us(sub->ledger->env);
		if (!sub->wait_until_us)
			sub->wait_until_us = now_us + policy->wait_us;
		*ret = STEP_LOOK_LATER;
		if (now_us < sub->wait_until_us)
			return IBID_OK;
	} else if (policy->in_progress == PROGRESS_WAIT && !sub->wait_until_us) {
		sub->wait_until_us = env_steady_us(sub->ledger->env) + policy->wait_us;
		*ret = STEP_AGAIN;
		if (id)
			return await_worker(sub, policy->wait_us, err);
		enum ibid_code code = store->ops->resolve(store, &sub->attempt, &sub->identity,
		                                          policy->wait_us, &claim, err);
		if (code)
			return code;
		if (claim.kind != CLAIM_BUSY)
			return IBID_OK;
	}
	result_in_progress(sub->result, id, policy->in_progress == PROGRESS_ACCEPTED);
	*ret = STEP_DONE;
	return IBID_OK;
}

static enum ibid_code fenced(struct ibid_err *err)
{
	return err_set(
	    err, IBID_FENCED,
	    "the lease of this command has ended and another worker or `ibid command recover` "
	    "has taken it over: nothing was written; `ibid command show` shows who ended it");
}

/* Nothing is written of what was not found out: the row, and its item, are there. */
static bool found_out(const struct submission *sub)
{
	bool unknown = sub->end.state == COMMAND_UNKNOWN;
	return !unknown && sub->pending != IBID_MISUSE;
}

/* The command as its worker, or whoever takes it over or looks again, finds it (I6). */
static enum ibid_code meet_held(struct submission *sub, struct claim *claim, enum step *ret,
                                struct ibid_err *err)
{
	struct store *store = sub->ledger->store;
	const struct command_row *row = &claim->row;
	if (claim->kind == CLAIM_BUSY) {
		/* Somebody looks at it, or ends it: wait, and see what is there then. */
		enum ibid_code code = store->ops->resolve(store, &sub->attempt, &sub->identity,
		                                          sub->ledger->resolve_us, claim, err);
		*ret = STEP_COLLIDED;
		return code;
	}
	if (claim->kind == CLAIM_FREE || row->lease_token != sub->token)
		return fenced(err);
	if (row->state == COMMAND_IN_PROGRESS) {
		assert(claim->tx);
		if (submission_is_finishing(sub))
			return perform(sub, &claim->tx, row, ret, err);
		return row->stale ? hold(sub, &claim->tx, row, ret, err) : fenced(err);
	}
	if (sub->goal == GOAL_TAKE_OVER)
		return fenced(err);
	bool resolves = sub->goal == GOAL_RESOLVE;
	if (resolves && row->state == COMMAND_UNKNOWN && found_out(sub)) {
		assert(claim->tx);
		return perform(sub, &claim->tx, row, ret, err);
	}
	if (resolves && row->state != COMMAND_UNKNOWN && sub->state != SUBMISSION_ENDED)
		return fenced(err);
	/* It was ended under its token before: by its own worker, or by who looked for it. */
	submission_answer_replay(sub, row);
	*ret = STEP_DONE;
	return IBID_OK;
}

/* A key that is kept no longer. Only a claim of the steps holds the row that gives way. */
static enum ibid_code meet_expired(struct submission *sub, struct claim *claim, enum step *ret,
                                   struct ibid_err *err)
{
	if (!claim->tx) {
		submission_move(sub, SUBMISSION_STEPS);
		*ret = STEP_AGAIN;
		return IBID_OK;
	}
	submission_move(sub, SUBMISSION_ANEW);
	return perform(sub, &claim->tx, &claim->row, ret, err);
}

/* Evidence is kept before the caller is told (B04). */
static enum ibid_code keep_evidence(const struct submission *sub, const struct command_row *row,
                                    const struct sha256 *fingerprint, struct ibid_err *err)
{
	struct store *store = sub->ledger->store;
	struct key_conflict_row evidence = submission_evidence(sub, row, fingerprint);
	enum ibid_code code = store_put_evidence(store, &evidence, err);
	return code ? err_prefix(err,
	                         "the key was used for another payload, but the evidence can't be kept")
	            : IBID_OK;
}

/* There is a row: the decision table says what its twin gets. */
static enum ibid_code meet_row(struct submission *sub, struct claim *claim, enum step *ret,
                               struct ibid_err *err)
{
	const struct command_row *row = &claim->row;
	struct sha256 fingerprint;
	enum verdict verdict;
	enum ibid_code code = submission_judge(sub, row, &verdict, &fingerprint, err);
	if (code)
		return code;
	if (verdict == VERDICT_RUN) {
		assert(claim->tx); /* I2: only a claimed identity is run */
		return perform(sub, &claim->tx, row, ret, err);
	}
	if (verdict == VERDICT_RUN_ANEW)
		return meet_expired(sub, claim, ret, err);
	sub->ledger->store->ops->rollback(&claim->tx);
	*ret = STEP_DONE;
	if (verdict == VERDICT_IN_PROGRESS) {
		code = tell_busy(sub, &row->id, ret, err);
		if (!code && *ret == STEP_DONE)
			submission_note(sub, row, &fingerprint);
		return code;
	}
	if (verdict == VERDICT_REPLAY)
		recent_keep(sub->ledger->recent, row);
	if (verdict == VERDICT_CONFLICT)
		code = keep_evidence(sub, row, &fingerprint, err);
	if (!code)
		submission_answer(sub, verdict, row, &fingerprint);
	return code;
}

enum ibid_code attempt_meet(struct submission *sub, struct claim *claim, enum step *ret,
                            struct ibid_err *err)
{
	if (submission_holds_lease(sub))
		return meet_held(sub, claim, ret, err);
	switch (claim->kind) {
	case CLAIM_FOUND: return meet_row(sub, claim, ret, err);
	case CLAIM_BUSY: return tell_busy(sub, NULL, ret, err);
	default: return perform(sub, &claim->tx, NULL, ret, err);
	}
}
