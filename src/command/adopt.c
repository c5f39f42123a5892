/* SPDX-License-Identifier: Apache-2.0 */
/* adopt.c -- commands in a transaction that the caller owns.
 *
 * The caller does the work itself, between begin and finish, on its own connection. The row is
 * there from begin on, IN_PROGRESS, and the database refuses the commit until the command is
 * finished: a caller that forgets it loses its transaction, never the guarantee (I1). Whatever
 * fails here leaves the caller's transaction as it was. Nothing is run again: the transaction, and
 * with it every retry, is the caller's. */
#include "command/keep.h"
#include "command/submission.h"

#include <stdlib.h>
#include <string.h>

struct ibid_adopted {
	struct submission sub;
	struct ibid_work work;
	struct tx *tx;
	struct command_row row;    /* as it was begun */
	struct sha256 fingerprint; /* under the contract version of the row that was found */
	bool finished;
};

/* ---- Begin ---------------------------------------------------------------------------------- */

/* Of a command that may be run: IN_PROGRESS, or rejected at once for what its fields hold. */
static enum ibid_code plan_run(struct ibid_adopted *adopted, const struct command_row *found,
                               struct plan *ret, struct ibid_err *err)
{
	struct submission *sub = &adopted->sub;
	struct params params;
	const char *why = NULL;
	ret->row = submission_row(sub, found);
	ret->row.state = COMMAND_IN_PROGRESS;
	ret->row.finished_us = 0;
	enum ibid_code code = fields_check(&sub->arena, sub->contract, sub->payload, &params, &why,
	                                   err);
	if (code != IBID_REJECTED)
		return code;
	*err = (struct ibid_err){.code = IBID_OK}; /* that is an outcome, not an error */
	struct outcome invalid = {.status = 422, .reason = "INVALID_PAYLOAD", .text = why};
	submission_refuse(sub, &ret->row, REFUSAL_VALIDATION, &invalid);
	submission_unbind(sub, &ret->row, found);
	ret->row.finished_us = sub->now_us;
	return IBID_OK;
}

/* And what is kept of its payload (I1). */
static enum ibid_code plan_payload(struct ibid_adopted *adopted, const struct command_row *found,
                                   struct plan *ret, struct ibid_err *err)
{
	return keep_payload(&adopted->sub, &ret->row, found, &ret->has_payload, &ret->payload, err);
}

static enum ibid_code plan(void *user, const struct command_row *found, struct plan *ret,
                           struct ibid_err *err)
{
	struct ibid_adopted *adopted = user;
	struct submission *sub = &adopted->sub;
	enum ibid_code code = IBID_OK;
	ret->verdict = VERDICT_RUN;
	if (found)
		code = submission_judge(sub, found, &ret->verdict, &adopted->fingerprint, err);
	if (code)
		return code;
	if (ret->verdict == VERDICT_RUN_ANEW)
		submission_move(sub, SUBMISSION_ANEW);
	bool runs = ret->verdict == VERDICT_RUN || ret->verdict == VERDICT_RUN_ANEW;
	if (runs)
		code = plan_run(adopted, found, ret, err);
	if (!code && runs)
		code = plan_payload(adopted, found, ret, err);
	if (ret->verdict == VERDICT_CONFLICT)
		ret->evidence = submission_evidence(sub, found, &adopted->fingerprint);
	return code;
}

static const char *given(const char *text)
{
	return *text ? text : NULL;
}

static enum ibid_code begin(struct ibid_adopted *adopted, struct begun *ret, struct ibid_err *err)
{
	struct submission *sub = &adopted->sub;
	struct beginning beginning = {
	    .identity = sub->identity,
	    .payload = sub->canonical,
	    .contract_version = sub->contract->version,
	    .client = given(sub->sender.client),
	    .actor = given(sub->sender.actor),
	    .resource = given(sub->sender.resource),
	    .correlation_id = given(sub->correlation_id),
	    .causation_id = given(sub->causation_id),
	    .traceparent = sub->traceparent,
	    .tracestate = sub->tracestate,
	    .plan = plan,
	    .user = adopted,
	};
	sub->now_us = env_wall_us(sub->ledger->env);
	adopted->fingerprint = sub->fingerprint;
	return adopted->tx->store->ops->begin_adopted(adopted->tx, &sub->arena, &beginning, ret, err);
}

static enum ibid_code prepare(struct ibid_adopted *adopted, const char *engine, void *connection,
                              const struct ibid_command *command, struct ibid_err *err)
{
	struct submission *sub = &adopted->sub;
	struct store *store = sub->ledger->store;
	enum ibid_code code = ledger_check_process(sub->ledger, err);
	if (!code && strcmp(engine, store->ops->name) != 0)
		code = err_set(err, IBID_MISUSE, "the store is on %s: call ibid_adopt_%s", store->ops->name,
		               store->ops->name);
	if (!code)
		code = submission_prepare(sub, command, err);
	if (!code && sub->contract->staged.lease_us)
		code = err_set(err, IBID_MISUSE, "operation %s is staged: it is run by %s",
		               sub->contract->name, contract_run_by(sub->contract));
	if (!code && contract_looks(sub->contract))
		code = err_set(err, IBID_MISUSE,
		               "operation %s has the strategy %s: it is enforced around its handler, by "
		               "ibid_submit",
		               sub->contract->name, contract_strategy_name(sub->contract->strategy));
	if (!code)
		code = store->ops->adopt(store, connection, &adopted->tx, err);
	return code;
}

static bool is_open(const struct begun *begun)
{
	return (begun->verdict == VERDICT_RUN || begun->verdict == VERDICT_RUN_ANEW) &&
	       begun->row.state == COMMAND_IN_PROGRESS;
}

/* The command as the caller works on it. */
static enum ibid_code show(struct ibid_adopted *adopted, const struct begun *begun,
                           void *connection, struct ibid_err *err)
{
	struct submission *sub = &adopted->sub;
	sub->id = begun->row.id;
	adopted->row = begun->row;
	enum ibid_code code = submission_view(sub, &adopted->work, err);
	adopted->work.tx = adopted->tx;
	adopted->work.connection = connection;
	/* The engine has checked the same fields by the same contract. */
	return code == IBID_REJECTED ? err_set(err, IBID_INTERNAL,
	                                       "the store accepts a payload that "
	                                       "its contract refuses")
	                             : code;
}

/* A decision, where there is nothing to work on. */
static enum ibid_code tell(struct ibid_adopted *adopted, const struct begun *begun,
                           struct ibid_result **ret, struct ibid_err *err)
{
	struct submission *sub = &adopted->sub;
	sub->result = result_new();
	if (!sub->result)
		return err_set(err, IBID_NOMEM, "out of memory");
	if (begun->verdict == VERDICT_RUN || begun->verdict == VERDICT_RUN_ANEW) {
		struct command_row row = begun->row;
		struct outcome invalid = {.status = row.status, .reason = row.reason, .text = row.text};
		submission_refuse(sub, &row, REFUSAL_VALIDATION, &invalid);
		result_of_row(sub->result, &row);
	} else {
		submission_answer(sub, begun->verdict, &begun->row, &adopted->fingerprint);
	}
	if (sub->result->arena.failed) {
		ibid_result_free(sub->result);
		return err_set(err, IBID_NOMEM, "out of memory");
	}
	*ret = sub->result;
	sub->result = NULL;
	return IBID_OK;
}

enum ibid_code ledger_adopt(struct ledger *ledger, const char *engine, void *connection,
                            const struct ibid_command *command, struct ibid_adopted **ret_adopted,
                            struct ibid_result **ret, struct ibid_err *err)
{
	struct begun begun = {.verdict = VERDICT_RUN};
	struct ibid_result *result = NULL;
	struct ibid_adopted *adopted = calloc(1, sizeof *adopted);
	if (!adopted)
		return err_set(err, IBID_NOMEM, "out of memory");
	submission_init(&adopted->sub, ledger);
	adopted->sub.goal = GOAL_ADOPT;
	enum ibid_code code = prepare(adopted, engine, connection, command, err);
	if (!code)
		code = begin(adopted, &begun, err);
	bool open = !code && is_open(&begun);
	if (open)
		code = show(adopted, &begun, connection, err);
	else if (!code)
		code = tell(adopted, &begun, &result, err);
	if (!code) {
		*ret_adopted = open ? adopted : NULL;
		*ret = result;
	}
	if (code || !open)
		ibid_adopted_free(adopted);
	return code;
}

/* ---- The handle ----------------------------------------------------------------------------- */

struct ibid_work *ibid_adopted_work(struct ibid_adopted *adopted)
{
	return &adopted->work;
}

void ibid_adopted_free(struct ibid_adopted *adopted)
{
	if (!adopted)
		return;
	if (adopted->tx)
		adopted->tx->store->ops->release_adopted(&adopted->tx);
	submission_release(&adopted->sub);
	free(adopted);
}

/* ---- Finish --------------------------------------------------------------------------------- */

static enum ibid_code check_open(const struct ibid_adopted *adopted, struct ibid_err *err)
{
	enum ibid_code code = ledger_check_process(adopted->sub.ledger, err);
	if (!code && adopted->finished)
		code = err_set(err, IBID_MISUSE, "the command was finished before, by this handle");
	return code;
}

/* What is told is in the caller's hands: it is true once the caller has committed. */
static enum ibid_code finish(struct ibid_adopted *adopted, const struct finishing *ending,
                             struct ibid_result **ret, struct ibid_err *err)
{
	struct submission *sub = &adopted->sub;
	sub->result = result_new();
	if (!sub->result)
		return err_set(err, IBID_NOMEM, "out of memory");
	struct command_row answer = ending->audit
	                                ? submission_whole_answer(ending->row, ending->outcome)
	                                : *ending->row;
	result_of_row(sub->result, &answer);
	enum ibid_code code = sub->result->arena.failed
	                          ? err_set(err, IBID_NOMEM, "out of memory")
	                          : adopted->tx->store->ops->finish_adopted(adopted->tx, ending, err);
	if (code) {
		ibid_result_free(sub->result);
	} else {
		adopted->finished = true;
		*ret = sub->result;
	}
	sub->result = NULL;
	return code;
}

/* The row as it was begun, ending now. */
static struct command_row ending_row(struct ibid_adopted *adopted)
{
	struct command_row row = adopted->row;
	row.finished_us = adopted->sub.now_us = env_wall_us(adopted->sub.ledger->env);
	return row;
}

static enum ibid_code complete(struct ibid_adopted *adopted, int status, const char *body,
                               bool linked, struct ibid_result **ret, struct ibid_err *err)
{
	struct ibid_work *work = &adopted->work;
	enum ibid_code code = check_open(adopted, err);
	if (code)
		return code;
	if (work->failure.code)
		return err_set(err, work->failure.code, "%s", work->failure.text);
	(void)!ibid_answer(work, status, body);
	if (work_check_answer(work->arena, &work->outcome))
		return err_set(err, IBID_INVALID, "%s", work->outcome.text);
	if (work->arena->failed)
		return err_set(err, IBID_NOMEM, "out of memory");
	struct command_row row = ending_row(adopted);
	struct audit_row audit = submission_complete(&adopted->sub, &row, &work->outcome, linked);
	struct finishing ending = {
	    .row = &row,
	    .previous = &adopted->row,
	    .outcome = &work->outcome,
	    .audit = &audit,
	    .events = work->events,
	    .event_count = linked ? 0 : work->event_count,
	};
	return finish(adopted, &ending, ret, err);
}

enum ibid_code ibid_adopted_complete(struct ibid_adopted *adopted, int status, const char *body,
                                     struct ibid_result **ret, struct ibid_err *err)
{
	struct ibid_err spare;
	return complete(adopted, status, body, false, ret, err_or(err, &spare));
}

enum ibid_code ibid_adopted_link(struct ibid_adopted *adopted, int status, const char *body,
                                 struct ibid_result **ret, struct ibid_err *err)
{
	struct ibid_err spare;
	return complete(adopted, status, body, true, ret, err_or(err, &spare));
}

/* Events that were noted are forgotten: what is refused changes nothing. */
static enum ibid_code refuse(struct ibid_adopted *adopted, enum refusal_class class,
                             const struct outcome *outcome, struct ibid_result **ret,
                             struct ibid_err *err)
{
	struct command_row row = ending_row(adopted);
	struct outcome kept = *outcome;
	submission_refuse(&adopted->sub, &row, class, outcome);
	kept.text = row.text;
	if (class == REFUSAL_SERVER)
		submission_log_incident(&adopted->sub, "command.failed", &row);
	struct finishing ending = {
	    .row = &row,
	    .previous = &adopted->row,
	    .outcome = &kept,
	    .by_failure = class == REFUSAL_SERVER,
	};
	return finish(adopted, &ending, ret, err);
}

enum ibid_code ibid_adopted_reject(struct ibid_adopted *adopted, const char *reason, int status,
                                   const char *text, struct ibid_result **ret, struct ibid_err *err)
{
	struct ibid_err spare;
	struct outcome outcome = {.status = status, .reason = reason, .text = text ? text : ""};
	err = err_or(err, &spare);
	enum ibid_code code = check_open(adopted, err);
	if (!code && work_check_rejection(&adopted->sub.arena, &outcome) != IBID_REJECTED)
		code = err_set(err, IBID_INVALID, "%s", outcome.text);
	return code ? code : refuse(adopted, REFUSAL_BUSINESS, &outcome, ret, err);
}

enum ibid_code ibid_adopted_fail(struct ibid_adopted *adopted, const char *text,
                                 struct ibid_result **ret, struct ibid_err *err)
{
	struct ibid_err spare;
	struct outcome outcome = {.text = work_text_or(text, "the caller gave no reason")};
	err = err_or(err, &spare);
	enum ibid_code code = check_open(adopted, err);
	return code ? code : refuse(adopted, REFUSAL_SERVER, &outcome, ret, err);
}
