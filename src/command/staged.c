/* SPDX-License-Identifier: Apache-2.0 */
/* staged.c -- commands whose work is done between two transactions (B06, B11).
 *
 * The first claims the identity and leaves a row IN_PROGRESS with a lease; the second replaces that
 * row. In between nothing is held: duplicates see the row. Whoever ends the command proves by the
 * token that nobody has taken it over (I6), in the transaction that writes everything else (I1). */
#include "command/staged.h"

#include "base/json.h"

#include <stdlib.h>
#include <string.h>

struct ibid_staged *staged_new(struct ledger *ledger)
{
	struct ibid_staged *staged = calloc(1, sizeof *staged);
	if (!staged)
		return NULL;
	submission_init(&staged->sub, ledger);
	staged->sub.goal = GOAL_STAGE;
	return staged;
}

enum ibid_code staged_prepare(struct ibid_staged *staged, const struct ibid_command *command,
                              struct ibid_err *err)
{
	struct submission *sub = &staged->sub;
	enum ibid_code code = submission_prepare(sub, command, err);
	if (!code && !sub->contract->staged.lease_us)
		code = err_set(err, IBID_MISUSE,
		               "the contract of %s does not say `staged`: use ibid_submit",
		               sub->contract->name);
	return code;
}

enum ibid_code staged_decided(struct ibid_staged *staged, enum ibid_code code,
                              struct ibid_result *result, struct ibid_staged **ret_staged,
                              struct ibid_result **ret, struct ibid_err *err)
{
	struct submission *sub = &staged->sub;
	if (!code && sub->state == SUBMISSION_HOLDS)
		code = submission_view(sub, &staged->view, err);
	bool held = !code && sub->state == SUBMISSION_HOLDS;
	if (!code) {
		*ret_staged = held ? staged : NULL;
		*ret = held ? NULL : result;
	}
	if (code || held)
		ibid_result_free(result);
	if (!held)
		ibid_staged_free(staged);
	return code;
}

enum ibid_code ledger_stage(struct ledger *ledger, const struct ibid_command *command,
                            struct ibid_staged **ret_staged, struct ibid_result **ret,
                            struct ibid_err *err)
{
	struct ibid_result *result = NULL;
	struct ibid_staged *staged = staged_new(ledger);
	if (!staged)
		return err_set(err, IBID_NOMEM, "out of memory");
	enum ibid_code code = staged_prepare(staged, command, err);
	if (!code)
		code = submission_decide(&staged->sub, &result, err);
	return staged_decided(staged, code, result, ret_staged, ret, err);
}

void ibid_staged_free(struct ibid_staged *staged)
{
	if (!staged)
		return;
	submission_release(&staged->sub);
	free(staged);
}

const struct ibid_work *ibid_staged_work(const struct ibid_staged *staged)
{
	return &staged->view;
}

int64_t ibid_staged_token(const struct ibid_staged *staged)
{
	return staged->sub.token;
}

int64_t ibid_staged_since_us(const struct ibid_staged *staged)
{
	return staged->since_us;
}

enum ibid_code ibid_staged_renew(struct ibid_staged *staged, struct ibid_err *err)
{
	struct ibid_err spare;
	const struct submission *sub = &staged->sub;
	struct store *store = sub->ledger->store;
	err = err_or(err, &spare);
	enum ibid_code code = ledger_check_process(sub->ledger, err);
	if (!code && sub->goal != GOAL_RESOLVE) /* who only looks again holds no lease */
		code = store->ops->renew_lease(store, sub->identity.tenant, &sub->id, sub->token,
		                               sub->contract->staged.lease_us, err);
	return code;
}

enum ibid_code ibid_staged_finish(struct ibid_staged *staged, ibid_handler *handler, void *user,
                                  struct ibid_result **ret, struct ibid_err *err)
{
	struct ibid_err spare;
	struct submission *sub = &staged->sub;
	err = err_or(err, &spare);
	if (!handler)
		return err_set(err, IBID_MISUSE, "a staged command is finished by a handler");
	submission_finishes(sub);
	sub->pending = IBID_OK; /* what an earlier call failed with is over */
	sub->lost = (struct ibid_err){0};
	sub->misses = 0;
	sub->end.state = COMMAND_ACCEPTED;
	sub->handler = handler;
	sub->user = user;
	return submission_decide(sub, ret, err);
}

/* ---- Without a success ---------------------------------------------------------------------- */

static enum ibid_code end(struct ibid_staged *staged, struct ending ending,
                          struct ibid_result **ret, struct ibid_err *err)
{
	struct ibid_err spare;
	ending.text = work_text_or(ending.text, "the worker gave no reason");
	return submission_end(&staged->sub, &ending, ret, err_or(err, &spare));
}

enum ibid_code ibid_staged_fail(struct ibid_staged *staged, bool retryable, const char *text,
                                struct ibid_result **ret, struct ibid_err *err)
{
	return end(staged,
	           (struct ending){.state = retryable ? COMMAND_FAILED : COMMAND_REJECTED,
	                           .reason = "HANDLER_FAILED",
	                           .text = text},
	           ret, err);
}

enum ibid_code ibid_staged_unknown(struct ibid_staged *staged, const char *text,
                                   struct ibid_result **ret, struct ibid_err *err)
{
	return end(staged,
	           (struct ending){.state = COMMAND_UNKNOWN, .reason = "OUTCOME_UNKNOWN", .text = text},
	           ret, err);
}

/* ---- For our own workers -------------------------------------------------------------------- */

static enum ibid_code check_body(const char *body, struct ibid_err *err)
{
	struct arena arena = {0};
	struct json *json = NULL;
	struct ibid_err why = {0};
	if (body && json_read(&arena, body, strlen(body), ANSWER_BYTES_MAX, &json, &why))
		err_set(err, IBID_MISUSE, "the body is not JSON that can be kept: %s", why.text);
	arena_release(&arena);
	return why.code ? IBID_MISUSE : IBID_OK;
}

static enum ibid_code check_refusal(int status, const char *reason, struct ibid_err *err)
{
	if (status < 400 || status > 599)
		return err_set(err, IBID_MISUSE,
		               "a command was refused with status %d: a refusal has 400 to 599", status);
	if (!work_reason_ok(reason))
		return err_set(err, IBID_MISUSE,
		               "a command was refused with the reason \"%.80s\": a reason is letters A-Z, "
		               "digits and _",
		               reason);
	return IBID_OK;
}

/* What staged_answer hands to the finishing transaction. */
struct exact_answer {
	int status;
	const char *body;
};

static enum ibid_code give_exactly(struct ibid_work *work, void *user)
{
	const struct exact_answer *answer = user;
	work->outcome.exact = true;
	return ibid_answer(work, answer->status, answer->body);
}

enum ibid_code staged_answer(struct ibid_staged *staged, int status, const char *body,
                             struct ibid_result **ret, struct ibid_err *err)
{
	struct exact_answer answer = {status, body};
	enum ibid_code code = check_body(body, err);
	if (!code && (status < 200 || status > 399))
		code = err_set(err, IBID_MISUSE,
		               "a command was answered with status %d: a success has 200 to 399", status);
	return code ? code : ibid_staged_finish(staged, give_exactly, &answer, ret, err);
}

enum ibid_code staged_refuse(struct ibid_staged *staged, int status, const char *reason,
                             const char *text, const char *body, struct ibid_result **ret,
                             struct ibid_err *err)
{
	enum ibid_code code = check_refusal(status, reason, err);
	if (!code)
		code = check_body(body, err);
	return code ? code
	            : end(staged,
	                  (struct ending){.state = COMMAND_REJECTED,
	                                  .reason = reason,
	                                  .text = text,
	                                  .status = status,
	                                  .body = body},
	                  ret, err);
}

enum ibid_code staged_fail(struct ibid_staged *staged, int status, const char *reason,
                           const char *text, struct ibid_result **ret, struct ibid_err *err)
{
	enum ibid_code code = check_refusal(status, reason, err);
	return code
	           ? code
	           : end(staged,
	                 (struct ending){
	                     .state = COMMAND_FAILED, .reason = reason, .text = text, .status = status},
	                 ret, err);
}

enum ibid_code staged_unknown(struct ibid_staged *staged, const char *reason, const char *text,
                              const char *answer, struct ibid_result **ret, struct ibid_err *err)
{
	if (!work_reason_ok(reason))
		return err_set(err, IBID_MISUSE, "the reason \"%.80s\" must be letters A-Z, digits and _",
		               reason);
	return end(
	    staged,
	    (struct ending){
	        .state = COMMAND_UNKNOWN, .reason = reason, .text = text, .service_answer = answer},
	    ret, err);
}
