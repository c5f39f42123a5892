/* SPDX-License-Identifier: Apache-2.0 */
/* recover.c -- what becomes of a staged command whose worker went silent (B06).
 *
 * The lease is taken over under a new token, which fences the old worker and other recoverers (I6).
 * Then somebody looks: the contract's script at business state, the program's inquiry at the
 * partner, or a person. Nothing is run again before that (I4): "not done" makes the command FAILED,
 * which the same key may stage again; no clear answer makes it UNKNOWN. A recovery that is cut off
 * anywhere leaves a lease that ends, too.
 *
 * What is UNKNOWN may be looked at again. That takes no lease: whoever finds out compares the token
 * on the row in the transaction that writes the outcome (I6); the others are fenced. Who finds out
 * nothing writes nothing. */
#include "command/staged.h"

#include <string.h>

enum { LIMIT_DEFAULT = 100, LIMIT_MAX = 10000, UNKNOWN_PAGE = 100 };

static const char not_done[] = "NOT_DONE", outcome_unknown[] = "OUTCOME_UNKNOWN";

/* In words of handlers: an answer, a rejection, or a failure that only a worker could have caused.
 */
enum ibid_code recovery_query(struct submission *sub, struct ibid_work *work, struct ibid_err *err)
{
	struct outcome *outcome = &work->outcome;
	enum ibid_code code = submission_run_script(work, sub->script, err);
	if (code == IBID_OK && outcome->found)
		return work_check_answer(work->arena, outcome);
	if (code == IBID_OK) {
		sub->end.state = COMMAND_UNKNOWN;
		sub->end.reason = outcome_unknown;
		return outcome_fail(work->arena, outcome,
		                    "its worker went silent, and the recovery script found no answer");
	}
	if (code == IBID_DUPLICATE)
		return outcome_fail(work->arena, outcome,
		                    "the recovery script violated the unique index %s", outcome->unique);
	if (code != IBID_REJECTED)
		return code;
	if (strcmp(outcome->reason, "VERSION_CONFLICT") == 0 ||
	    strcmp(outcome->reason, "EVENT_KEY_USED") == 0) /* the store's words, not the script's */
		return outcome_fail(work->arena, outcome, "%s", outcome->text);
	code = work_check_rejection(work->arena, outcome);
	if (code != IBID_REJECTED || strcmp(outcome->reason, not_done) != 0)
		return code;
	sub->end.state = COMMAND_FAILED;
	sub->end.reason = not_done;
	return IBID_FAILED;
}

/* ---- One command ---------------------------------------------------------------------------- */

void recovery_hold(struct submission *sub, const struct command_row *row)
{
	sub->identity = row->identity;
	sub->sender = (struct sender){.tenant = row->identity.tenant,
	                              .client = row->client ? row->client : "",
	                              .actor = row->actor ? row->actor : "",
	                              .resource = ""};
	sub->correlation_id = row->correlation_id ? row->correlation_id : "";
	sub->causation_id = row->causation_id ? row->causation_id : "";
	sub->traceparent = row->traceparent;
	sub->tracestate = row->tracestate;
	sub->canonical = "";
	sub->fingerprint = row->fingerprint;
	sub->id = row->id;
	sub->token = row->lease_token;
	sub->goal = row->state == COMMAND_UNKNOWN ? GOAL_RESOLVE : GOAL_TAKE_OVER;
}

/* Whose lease and whose answers: the version on the row. How it is recovered: the newest word. */
static enum ibid_code find_contract(struct submission *sub, const struct command_row *row,
                                    struct ibid_err *err)
{
	sub->operation = ledger_operation(sub->ledger, row->identity.operation);
	if (!sub->operation)
		return err_set(err, IBID_NOT_FOUND, "no contract for operation %s in %s",
		               row->identity.operation, contracts_dir(sub->ledger->contracts));
	enum ibid_code code = ledger_contract(sub->ledger, row->identity.operation,
	                                      row->contract_version, &sub->contract, err);
	if (!code && (row->scheme != FINGERPRINT_SCHEME || !sub->contract->staged.lease_us))
		code = err_set(
		    err, IBID_CONTRACT,
		    "the contract of the command, version %d of %s, does not say `staged`: there is "
		    "nothing to recover",
		    row->contract_version, row->identity.operation);
	return code;
}

/* An inquiry may say itself why it does not know. */
static const char *inquiry_said(const struct submission *sub)
{
	if (sub->goal == GOAL_RESOLVE && sub->end.state == COMMAND_UNKNOWN)
		return sub->outcome.text;
	return "its worker went silent, and the inquiry gave no answer";
}

static enum ibid_code inquire(struct ibid_staged *staged, struct ibid_result **ret,
                              struct ibid_err *err)
{
	struct submission *sub = &staged->sub;
	const struct operation *operation = sub->operation;
	enum ibid_code code = submission_view(sub, &staged->view, err);
	if (!code)
		code = operation->inquire(staged, operation->inquire_user);
	if (code == IBID_FENCED)
		return err_set(
		    err, code,
		    "another process has ended the command meanwhile; `ibid command show` shows how");
	if (code)
		return err_set(err, IBID_FAILED, "the inquiry could not be made: %s", ibid_code_name(code));
	/* Gives back what the inquiry ended it with, if it did. */
	struct ending unknown = {
	    .state = COMMAND_UNKNOWN, .reason = outcome_unknown, .text = inquiry_said(sub)};
	return submission_end(sub, &unknown, ret, err);
}

static enum ibid_code find_out(struct ibid_staged *staged, struct ibid_result **ret,
                               struct ibid_err *err)
{
	struct submission *sub = &staged->sub;
	if (sub->operation->query) {
		submission_finishes(sub);
		sub->script = sub->operation->query;
		return submission_decide(sub, ret, err);
	}
	if (sub->operation->inquire)
		return inquire(staged, ret, err);
	struct ending unknown = {
	    .state = COMMAND_UNKNOWN,
	    .reason = outcome_unknown,
	    .text = "its worker went silent: whether it was done has to be found out by a person"};
	return submission_end(sub, &unknown, ret, err);
}

static enum ibid_code take_over(struct submission *sub, struct ibid_err *err)
{
	struct ibid_result *result = NULL;
	enum ibid_code code = submission_decide(sub, &result, err);
	ibid_result_free(result);
	if (!code && sub->state != SUBMISSION_HOLDS)
		code = err_set(
		    err, IBID_BUSY,
		    "the store was lost while the command was taken over: run `ibid command recover` "
		    "again");
	return code;
}

/* From when on the outcome is open, on the row as it was found. */
static int64_t since_us(const struct command_row *row)
{
	if (row->state == COMMAND_UNKNOWN)
		return row->finished_us;
	return row->lease_until_us > row->created_us ? row->lease_until_us : row->created_us;
}

/* A worker that knows that the outcome is unknown gives a reason of its own. */
static bool was_taken_over(const struct command_row *row)
{
	return row->state != COMMAND_UNKNOWN ||
	       (row->reason && strcmp(row->reason, outcome_unknown) == 0);
}

/* `*ret` is NULL where somebody else has it by now. */
static enum ibid_code recover_row(struct ledger *ledger, const struct command_row *row,
                                  struct ibid_result **ret, struct ibid_err *err)
{
	struct ibid_staged staged = {.since_us = since_us(row), .taken_over = was_taken_over(row)};
	struct submission *sub = &staged.sub;
	struct ibid_result *result = NULL;
	submission_init(sub, ledger);
	recovery_hold(sub, row);
	enum ibid_code code = find_contract(sub, row, err);
	if (!code && sub->goal != GOAL_RESOLVE)
		code = take_over(sub, err);
	if (!code)
		code = find_out(&staged, &result, err);
	if (!code && sub->goal == GOAL_RESOLVE && result->decision == IBID_DECISION_UNKNOWN) {
		code = err_set(err, IBID_FAILED, "it is still unknown: %s",
		               sub->outcome.text ? sub->outcome.text : result->text);
		ibid_result_free(result);
	}
	submission_release(sub);
	if (code == IBID_FENCED)
		return IBID_OK;
	if (!code)
		*ret = result;
	return code;
}

/* ---- All of them ---------------------------------------------------------------------------- */

static struct ibid_recovery recovery_of(const struct ibid_recovery *given)
{
	struct ibid_recovery recovery = {0};
	memcpy(&recovery, given, given->size < sizeof recovery ? given->size : sizeof recovery);
	if (!recovery.limit)
		recovery.limit = LIMIT_DEFAULT;
	if (recovery.limit > LIMIT_MAX)
		recovery.limit = LIMIT_MAX;
	return recovery;
}

static const char *plan(const struct ledger *ledger, const struct command_row *row)
{
	const struct operation *operation = ledger_operation(ledger, row->identity.operation);
	if (!operation)
		return "it would be left: there is no contract for it";
	if (operation->query)
		return "its contract's script would look at business state";
	return operation->inquire ? "the inquiry would ask the partner"
	                          : "it would become UNKNOWN, for a person to decide";
}

static void tell(const struct ibid_recovery *recovery, const struct command_row *row,
                 const struct ibid_result *result, const char *text)
{
	char id[UUID_TEXT_SIZE];
	uuid_write(row->id, id);
	if (recovery->tell)
		recovery->tell(recovery->user, row->identity.tenant, row->identity.operation, id, result,
		               text);
}

/* What is wrong with one command says nothing of the next. */
static bool concerns_one(enum ibid_code code)
{
	return code == IBID_FAILED || code == IBID_NOT_FOUND || code == IBID_CONTRACT ||
	       code == IBID_BUSY;
}

/* One call, and how far it got. */
struct round {
	struct ledger *ledger;
	struct ibid_recovery recovery;
	struct arena arena;
	struct command_row *stale; /* was taken over, or is somebody else's by now */
	size_t stale_count;
	size_t visited, ended;
};

static enum ibid_code recover_one(struct round *round, const struct command_row *row,
                                  struct ibid_err *err)
{
	struct ibid_result *result = NULL;
	const struct ibid_recovery *recovery = &round->recovery;
	round->visited++;
	if (recovery->dry_run) {
		tell(recovery, row, NULL, plan(round->ledger, row));
		return IBID_OK;
	}
	enum ibid_code code = recover_row(round->ledger, row, &result, err);
	if (!code && result) {
		round->ended++;
		tell(recovery, row, result, result->text);
	}
	ibid_result_free(result);
	if (!concerns_one(code))
		return code;
	tell(recovery, row, NULL, err->text);
	return IBID_OK;
}

static struct command_filter filter_of(const struct round *round, size_t limit)
{
	return (struct command_filter){
	    .tenant = round->recovery.tenant, .operation = round->recovery.operation, .limit = limit};
}

static enum ibid_code recover_stale(struct round *round, struct ibid_err *err)
{
	struct store *store = round->ledger->store;
	struct command_filter filter = filter_of(round, round->recovery.limit);
	enum ibid_code code = store_list_stale(store, &round->arena, &filter, &round->stale,
	                                       &round->stale_count, err);
	for (size_t i = 0; !code && i < round->stale_count; i++)
		code = recover_one(round, &round->stale[i], err);
	return code;
}

/* ---- What is unknown ------------------------------------------------------------------------ */

static bool can_look(const struct round *round, const struct command_row *row)
{
	const struct operation *operation = ledger_operation(round->ledger, row->identity.operation);
	return operation && (operation->query || operation->inquire);
}

/* This call has made it unknown itself: nothing new is known of it. */
static bool was_stale(const struct round *round, const struct command_row *row)
{
	for (size_t i = 0; i < round->stale_count; i++)
		if (memcmp(&round->stale[i].id, &row->id, sizeof row->id) == 0)
			return true;
	return false;
}

static bool wanted(const struct round *round, const struct command_row *row)
{
	const struct ibid_recovery *recovery = &round->recovery;
	char id[UUID_TEXT_SIZE];
	uuid_write(row->id, id);
	return !recovery->wanted ||
	       recovery->wanted(recovery->user, row->identity.tenant, row->identity.operation, id,
	                        row->lease_token, since_us(row));
}

static enum ibid_code resolve_page(struct round *round, const struct command_row *rows,
                                   size_t count, struct ibid_err *err)
{
	enum ibid_code code = IBID_OK;
	for (size_t i = 0; !code && i < count && round->visited < round->recovery.limit; i++)
		if (can_look(round, &rows[i]) && !was_stale(round, &rows[i]) && wanted(round, &rows[i]))
			code = recover_one(round, &rows[i], err);
	return code;
}

static enum ibid_code resolve_unknown(struct round *round, struct ibid_err *err)
{
	struct store *store = round->ledger->store;
	struct command_filter filter = filter_of(round, UNKNOWN_PAGE);
	struct uuid last;
	size_t count = UNKNOWN_PAGE;
	enum ibid_code code = IBID_OK;
	while (!code && count == UNKNOWN_PAGE && round->visited < round->recovery.limit) {
		struct arena arena = {0};
		struct command_row *rows = NULL;
		code = store_list_unknown(store, &arena, &filter, &rows, &count, err);
		if (!code && count) {
			last = rows[count - 1].id;
			filter.after = &last;
			code = resolve_page(round, rows, count, err);
		}
		arena_release(&arena);
	}
	return code;
}

enum ibid_code ledger_recover(struct ledger *ledger, const struct ibid_recovery *given,
                              size_t *ret_count, struct ibid_err *err)
{
	struct round round = {.ledger = ledger, .recovery = recovery_of(given)};
	enum ibid_code code = ledger_check_process(ledger, err);
	if (!code)
		code = recover_stale(&round, err);
	if (!code && round.recovery.unknown)
		code = resolve_unknown(&round, err);
	if (!code)
		*ret_count = round.ended;
	arena_release(&round.arena);
	return code;
}
