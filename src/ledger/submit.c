/* SPDX-License-Identifier: Apache-2.0 */
/* submit.c -- turn one command into one outcome.
 *
 * An attempt is one transaction: claim the identity, run the handler, append its events, write the
 * audit entry and the command's row, commit. The row is written once, complete, at the end. What is
 * not a success (a rejection, a hit on business uniqueness, a failure) rolls everything back and is
 * *recorded* by the next attempt, which claims again: so there is one way to undo, and a twin that
 * got in between is found and believed.
 *
 * (I1) one commit for row, change, events and audit entry; or for an UNKNOWN row and its exception.
 * (I2) the primary key arbitrates.   (I7) a commit without an answer is unknown until the store
 * says.   (I10) no answer before it. */
#include "base/instant.h"
#include "ledger/decide.h"
#include "ledger/duplicates.h"
#include "ledger/exception.h"
#include "ledger/keep.h"
#include "ledger/params.h"
#include "ledger/recent.h"
#include "ledger/strategy.h"
#include "ledger/submission.h"
#include "retry/retry.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

enum {
	MISSES_MAX = 3,
	LOOK_PAUSE_US = 20000,
};

/* Deadlocks and serialization failures: short pauses, then "try later". Never an outcome (B07). */
static const struct retry_policy inner_policy = {
    .attempts_max = 10, .base_us = 1000, .cap_us = 100000};

/* How an attempt ended, beside errors. */
enum step {
	STEP_DONE,
	STEP_AGAIN,
	STEP_COLLIDED,
	STEP_LOOK_LATER, /* for what a twin does meanwhile */
	STEP_QUEUED,     /* in a group, without a thread */
};

/* ---- Running -------------------------------------------------------------------------------- */

static void work_init(struct ibid_work *work, struct submission *sub, struct tx *tx, struct uuid id)
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

/* IBID_OK, IBID_REJECTED, IBID_DUPLICATE, IBID_FAILED, IBID_RETRY; IBID_MISUSE: it ended the
 * transaction; other codes are the store's. */
static enum ibid_code run_handler(struct submission *sub, struct ibid_work *work,
                                  struct ibid_err *err)
{
	enum ibid_code code;
	if (sub->script && sub->errand == ERRAND_FINISH)
		return recovery_query(sub, work, err);
	if (sub->script) {
		code = submission_run_script(work, sub->script, err);
		if (code == IBID_OK)
			return work_check_answer(work->arena, &work->outcome);
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

/* Remember what an attempt ended in, beyond its transaction. */
static void postpone(struct submission *sub, enum ibid_code code, enum refusal_class class,
                     const struct outcome *outcome)
{
	sub->pending = code;
	sub->pending_class = class;
	sub->outcome = (struct outcome){
	    .status = outcome->status,
	    .resource_type = kept(sub, outcome->resource_type),
	    .resource_id = kept(sub, outcome->resource_id),
	    .reason = kept(sub, outcome->reason),
	    .text = kept(sub, outcome->text),
	    .unique = kept(sub, outcome->unique),
	};
}

/* It is durable: an outcome for the caller, or a lease for the worker. */
static void tell(struct submission *sub, const struct command_row *row)
{
	if (row->state != COMMAND_IN_PROGRESS) {
		sub->ended = true;
		result_of_row(sub->result, row);
		return;
	}
	sub->held = true;
	sub->id = row->id;
	sub->token = row->lease_token;
}

/* Is the row what this submission wanted to write? Those who resolve share a token: the moment
 * tells two of them apart. */
static bool wrote(const struct submission *sub, const struct command_row *row,
                  const struct command_row *told)
{
	return row->attempts == told->attempts && row->lease_token == told->lease_token &&
	       (row->state == COMMAND_IN_PROGRESS) == (told->state == COMMAND_IN_PROGRESS) &&
	       memcmp(&row->id, &told->id, sizeof told->id) == 0 &&
	       (!sub->resolves || (row->state == told->state && row->finished_us == told->finished_us));
}

/* The commit did not report success: ask the store, and believe what it says (I7). Where the
 * handler's answer was lost with the commit's, the caller hears what was kept of it. */
static enum ibid_code resolve(struct submission *sub, const struct command_row *told,
                              bool answer_lost, enum step *ret, struct ibid_err *err)
{
	struct store *store = sub->ledger->store;
	struct claim claim = {0};
	sub->lost = *err;
	enum ibid_code code = store->ops->resolve(store, &sub->attempt, &sub->identity,
	                                          sub->ledger->resolve_us, &claim, err);
	if (code || claim.kind == CLAIM_BUSY) {
		submission_log(sub, IBID_LOG_ERROR, "command.unknown", code ? err->text : "still held");
		result_unknown(sub->result, &told->id);
		*ret = STEP_DONE;
		return IBID_OK;
	}
	bool ours = claim.kind == CLAIM_FOUND && wrote(sub, &claim.row, told);
	if (ours)
		tell(sub, answer_lost ? &claim.row : told);
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
	               sub->resolves ? "it is still unknown" : "the lease goes on");
}

/* `told` is what the caller hears once it is durable (I10). */
static enum ibid_code commit(struct submission *sub, struct tx **tx, const struct command_row *told,
                             enum step *ret, struct ibid_err *err)
{
	struct outcome outcome = {0};
	enum ibid_code code = (*tx)->store->ops->commit(tx, &sub->attempt, &outcome, err);
	switch (code) {
	case IBID_OK:
		tell(sub, told);
		*ret = STEP_DONE;
		return IBID_OK;
	case IBID_UNKNOWN: return resolve(sub, told, false, ret, err);
	case IBID_RETRY: *ret = STEP_COLLIDED; return IBID_OK;
	case IBID_MISUSE:
		/* The handler ended the transaction: what it did is committed, or not. Nobody knows, and
		 * the key must not run again. */
		outcome.text = err->text;
		postpone(sub, code, class_of(code), &outcome);
		*ret = STEP_AGAIN;
		return IBID_OK;
	case IBID_REJECTED:
		if (sub->errand == ERRAND_FINISH)
			return finish_failed(sub, &outcome, err); /* fall through */
	case IBID_DUPLICATE:
	case IBID_FAILED:
		/* Found only now: a deferred constraint, an event's version. The handler is not run again.
		 */
		postpone(sub, code, class_of(code), &outcome);
		*ret = STEP_AGAIN;
		return IBID_OK;
	default: return code;
	}
}

/* What nobody knows has an owner, from the same commit on (I1, I8). */
static enum ibid_code open_exception(struct submission *sub, struct tx *tx, enum trouble trouble,
                                     const struct command_row *row, struct ibid_err *err)
{
	struct exception_row item = trouble_exception(trouble, &sub->attempt, sub->ledger->env,
	                                              sub->contract, row);
	if (sub->attempt.failed)
		return err_set(err, IBID_NOMEM, "out of memory");
	return tx->store->ops->put_exception(tx, &item, err);
}

/* Write the row of a rejection or failure; of what is unknown, with its exception. */
static enum ibid_code record_refusal(struct submission *sub, struct tx **tx,
                                     const struct command_row *previous, enum refusal_class class,
                                     const struct outcome *outcome, enum step *ret,
                                     struct ibid_err *err)
{
	struct command_row row = submission_row(sub, previous);
	bool server = class == REFUSAL_SERVER;
	if (server && sub->errand == ERRAND_FINISH && !sub->end.given && sub->pending != IBID_MISUSE)
		return finish_failed(sub, outcome, err);
	submission_refuse(sub, &row, class, outcome);
	if (sub->pending == IBID_MISUSE) {
		row.state = COMMAND_UNKNOWN;
		row.reason = trouble_reason(TROUBLE_HANDLER_ENDED_TRANSACTION);
	} else if (sub->end.given) {
		submission_set_end(sub, &row);
	}
	bool unknown = row.state == COMMAND_UNKNOWN;
	/* What was asked has refused: that is an outcome, and no failure of ours. */
	bool refused = sub->end.given && sub->end.status && row.state == COMMAND_REJECTED;
	struct command_row told = row;
	row = submission_kept_refusal(sub, &row);
	if (server && !refused)
		submission_log(sub, IBID_LOG_ERROR, unknown ? "command.unknown" : "command.failed",
		               row.text);
	enum ibid_code code = keep_row(sub, *tx, &row, previous, err);
	if (!code && unknown)
		code = open_exception(
		    sub, *tx, sub->end.given ? TROUBLE_STAGED_UNKNOWN : TROUBLE_HANDLER_ENDED_TRANSACTION,
		    &row, err);
	if (code == IBID_RETRY) {
		(*tx)->store->ops->rollback(tx);
		*ret = STEP_COLLIDED;
		return IBID_OK;
	}
	return code ? code : commit(sub, tx, &told, ret, err);
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
		code = ops->put_audit(*tx, &audit, err);
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
	struct command_row told = submission_whole_answer(&row, outcome);
	return commit(sub, tx, &told, ret, err);
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
		postpone(sub, code, class_of(code), &work->outcome);
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
		work->outcome.text = arena_printf(
		    &sub->attempt, "the same business fact exists already (%s)", unique->name);
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

/* The transaction holds the identity: bring it to an outcome. */
static enum ibid_code perform(struct submission *sub, struct tx **tx,
                              const struct command_row *previous, enum step *ret,
                              struct ibid_err *err)
{
	struct ibid_work work;
	const char *why = NULL;
	bool linked = false;
	enum ibid_code code = IBID_OK;
	const struct command_row *same = submission_continued(sub, previous);
	if (sub->errand == ERRAND_SUBMIT && sub->contract->staged.lease_us)
		return err_set(err, IBID_MISUSE, "operation %s is staged: it is run by %s",
		               sub->contract->name, contract_run_by(sub->contract));
	work_init(&work, sub, *tx, same ? same->id : sub->id);
	if (sub->payload)
		code = fields_check(&sub->attempt, sub->contract, sub->payload, &work.params, &why, err);
	if (code == IBID_REJECTED) {
		struct outcome invalid = {.status = 422, .reason = "INVALID_PAYLOAD", .text = why};
		return record_refusal(sub, tx, previous, REFUSAL_VALIDATION, &invalid, ret, err);
	}
	if (code)
		return code;
	if (sub->pending == IBID_DUPLICATE)
		return record_duplicate(sub, tx, previous, &work, ret, err);
	if (sub->pending)
		return record_refusal(sub, tx, previous, sub->pending_class, &sub->outcome, ret, err);
	if (sub->errand == ERRAND_STAGE)
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
		enum ibid_code code = store->ops->get_command(store, &sub->attempt, sub->identity.tenant,
		                                              NULL, &sub->identity, &row, err);
		int64_t left_us = deadline_us - env_steady_us(env);
		if (code == IBID_NOT_FOUND)
			return IBID_OK;
		if (code || row.state != COMMAND_IN_PROGRESS || left_us <= 0)
			return code;
		env_sleep_us(env, left_us < LOOK_PAUSE_US ? left_us : LOOK_PAUSE_US);
	}
}

static enum ibid_code tell_busy(struct submission *sub, const struct uuid *id, enum step *ret,
                                struct ibid_err *err)
{
	struct store *store = sub->ledger->store;
	const struct contract_duplicates *policy = &sub->contract->duplicates;
	struct claim claim = {0};
	if (policy->in_progress == PROGRESS_WAIT && sub->told) {
		int64_t now_us = env_steady_us(sub->ledger->env);
		if (!sub->wait_until_us)
			sub->wait_until_us = now_us + policy->wait_us;
		*ret = STEP_LOOK_LATER;
		if (now_us < sub->wait_until_us)
			return IBID_OK;
	} else if (policy->in_progress == PROGRESS_WAIT && !sub->waited) {
		sub->waited = true;
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
	return err_set(err, IBID_FENCED,
	               "the lease is lost: somebody else has the command, and nothing was done");
}

/* Nothing is written of what was not found out: the row, and its item, are there. */
static bool found_out(const struct submission *sub)
{
	bool unknown = sub->end.given && sub->end.state == COMMAND_UNKNOWN;
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
		if (sub->errand == ERRAND_FINISH)
			return perform(sub, &claim->tx, row, ret, err);
		return row->stale ? hold(sub, &claim->tx, row, ret, err) : fenced(err);
	}
	if (sub->errand == ERRAND_TAKE)
		return fenced(err);
	if (sub->resolves && row->state == COMMAND_UNKNOWN && found_out(sub)) {
		assert(claim->tx);
		return perform(sub, &claim->tx, row, ret, err);
	}
	if (sub->resolves && row->state != COMMAND_UNKNOWN && !sub->ended)
		return fenced(err);
	/* It was ended under its token before: by its own worker, or by who looked for it. */
	submission_tell_replay(sub, row);
	*ret = STEP_DONE;
	return IBID_OK;
}

/* A key that is kept no longer. Only a claim by the long way holds the row that gives way. */
static enum ibid_code meet_expired(struct submission *sub, struct claim *claim, enum step *ret,
                                   struct ibid_err *err)
{
	if (!claim->tx) {
		sub->long_way = true;
		*ret = STEP_AGAIN;
		return IBID_OK;
	}
	sub->anew = true;
	return perform(sub, &claim->tx, &claim->row, ret, err);
}

/* Evidence is kept before the caller is told (B04). */
static enum ibid_code keep_evidence(const struct submission *sub, const struct command_row *row,
                                    const struct sha256 *fingerprint, struct ibid_err *err)
{
	struct store *store = sub->ledger->store;
	struct evidence_row evidence = submission_evidence(sub, row, fingerprint);
	enum ibid_code code = store->ops->put_evidence(store, &evidence, err);
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
		submission_tell(sub, verdict, row, &fingerprint);
	return code;
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
	    .rules = &sub->ledger->rules,
	    .now_us = sub->now_us,
	    .holds_lease = submission_holds_lease(sub),
	    .runs_again = decide_expired(sub->contract) == VERDICT_RUN_ANEW,
	};
}

static enum ibid_code meet_claim(struct submission *sub, struct claim *claim, enum step *ret,
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

/* ---- The short way -------------------------------------------------------------------------- */

/* A first run of a script that does all there is to do, and nothing of the payload is kept. */
static bool runs_plainly(const struct submission *sub)
{
	return sub->errand == ERRAND_SUBMIT && sub->script && !sub->long_way && !sub->pending &&
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
			return meet_claim(sub, claim, ret, err);
		sub->long_way = true;
		return IBID_OK;
	case IBID_UNKNOWN: return resolve(sub, row, true, ret, err);
	case IBID_RETRY: *ret = STEP_COLLIDED; return IBID_OK;
	case IBID_REJECTED: code = work_check_rejection(&sub->attempt, outcome); /* fall through */
	case IBID_DUPLICATE:
	case IBID_FAILED: postpone(sub, code, class_of(code), outcome); return IBID_OK;
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
	work_init(&work, sub, NULL, sub->id);
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

static enum ibid_code attempt_alone(struct submission *sub, const struct work_context *context,
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
	code = meet_claim(sub, &claim, ret, err);
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
static bool may_share(const struct submission *sub)
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
		tell(sub, &told);
		*ret = STEP_DONE;
	} else if (member->claim.kind != CLAIM_FREE) {
		return meet_claim(sub, &member->claim, ret, err);
	} else if (place->code == IBID_UNKNOWN) {
		*err = place->err;
		sub->alone = true; /* if it is to run: a neighbour may have ended the connection */
		return resolve(sub, &member->row, true, ret, err);
	} else if (place->code == IBID_MISUSE) {
		postpone(sub, place->code, class_of(place->code), &outcome);
	} else {
		sub->alone = true;
	}
	return IBID_OK;
}

/* What the group made of it; alone: run it now, and go. */
static enum ibid_code attempt_in_group(struct submission *sub, enum group_part part, enum step *ret,
                                       struct ibid_err *err)
{
	if (part == GROUP_SERVED)
		return meet_shared(sub, ret, err);
	enum ibid_code code = attempt_alone(sub, &sub->sharing.context, ret, err);
	group_leave(&sub->sharing.place);
	return code;
}

static enum ibid_code attempt_shared(struct submission *sub, enum step *ret, struct ibid_err *err)
{
	struct sharing *sharing = &sub->sharing;
	struct ibid_work *work = &sharing->work;
	enum group_part part;
	const char *why;
	work_init(work, sub, NULL, sub->id);
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
	return code || part == GROUP_WAITS ? code : attempt_in_group(sub, part, ret, err);
}

/* What came again a moment ago comes once more: a replay is told at once, all else is the store's
 * to say. */
static bool tell_recent(struct submission *sub)
{
	struct command_row row;
	struct sha256 fingerprint;
	enum verdict verdict;
	struct ibid_err ignored;
	if (sub->errand != ERRAND_SUBMIT || sub->pending || sub->lost.code ||
	    !recent_find(sub->ledger->recent, &sub->identity, &sub->attempt, &row) ||
	    submission_judge(sub, &row, &verdict, &fingerprint, &ignored) || verdict != VERDICT_REPLAY)
		return false;
	submission_tell(sub, verdict, &row, &fingerprint);
	return true;
}

static enum ibid_code attempt(struct submission *sub, enum step *ret, struct ibid_err *err)
{
	arena_release(&sub->attempt);
	sub->anew = false;
	sub->now_us = env_wall_us(sub->ledger->env);
	*ret = STEP_DONE;
	if (tell_recent(sub))
		return IBID_OK;
	sub->sharing.context = context_of(sub);
	return may_share(sub) ? attempt_shared(sub, ret, err)
	                      : attempt_alone(sub, &sub->sharing.context, ret, err);
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
static enum ibid_code follow(struct submission *sub, enum step step, enum pace *ret,
                             struct ibid_err *err)
{
	uint64_t random;
	*ret = PACE_PAUSE;
	switch (step) {
	case STEP_DONE: *ret = PACE_DECIDED; return IBID_OK;
	case STEP_QUEUED: *ret = PACE_QUEUED; return IBID_OK;
	case STEP_LOOK_LATER: sub->pause_us = LOOK_PAUSE_US; return IBID_OK;
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

enum ibid_code submission_advance(struct submission *sub, enum pace *ret, struct ibid_err *err)
{
	enum ibid_code code;
	do {
		enum step step = STEP_DONE;
		code = attempt(sub, &step, err);
		/* Who waits in a group may be served by now, and gone. */
		if (!code && step == STEP_QUEUED) {
			*ret = PACE_QUEUED;
			return IBID_OK;
		}
		if (!code)
			code = follow(sub, step, ret, err);
	} while (!code && *ret == PACE_PAUSE && sub->pause_us == 0);
	return code;
}

enum ibid_code submission_served(struct submission *sub, enum group_part part, enum pace *ret,
                                 struct ibid_err *err)
{
	enum step step = STEP_DONE;
	enum ibid_code code = attempt_in_group(sub, part, &step, err);
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
	enum pace pace = PACE_PAUSE;
	enum ibid_code code = submission_begin(sub, err);
	if (code)
		return code;
	do {
		code = submission_advance(sub, &pace, err);
		if (!code && pace == PACE_PAUSE)
			env_sleep_us(sub->ledger->env, sub->pause_us);
	} while (!code && pace == PACE_PAUSE);
	return submission_close(sub, code, ret, err);
}

enum ibid_code submission_end(struct submission *sub, const struct ending *ending,
                              struct ibid_result **ret, struct ibid_err *err)
{
	struct outcome outcome = {.text = ending->text};
	sub->errand = ERRAND_FINISH;
	postpone(sub, IBID_FAILED, REFUSAL_SERVER, &outcome);
	sub->end.given = true;
	sub->end.state = ending->state;
	sub->end.reason = kept(sub, ending->reason);
	sub->end.status = ending->status;
	sub->end.body = kept(sub, ending->body);
	if (sub->arena.failed)
		return err_set(err, IBID_NOMEM, "out of memory");
	return submission_decide(sub, ret, err);
}

enum ibid_code submission_view(struct submission *sub, struct ibid_work *ret, struct ibid_err *err)
{
	const char *why;
	sub->now_us = env_wall_us(sub->ledger->env);
	work_init(ret, sub, NULL, sub->id);
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
	bool told = false;
	if (!recent_expects(ledger->recent, command->key))
		return false;
	submission_init(&sub, ledger);
	if (!submission_prepare(&sub, command, &ignored) && !submission_begin(&sub, &ignored)) {
		sub.now_us = env_wall_us(ledger->env);
		told = !submission_close(&sub, tell_recent(&sub) ? IBID_OK : IBID_NOT_FOUND, ret, &ignored);
	}
	submission_release(&sub);
	return told;
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
