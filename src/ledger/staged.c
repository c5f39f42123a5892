/* SPDX-License-Identifier: Apache-2.0 */
/* staged.c -- commands whose work is done between two transactions (B06, B11).
 *
 * The first claims the identity and leaves a row IN_PROGRESS with a lease; the second replaces that
 * row. In between nothing is held: duplicates see the row. Whoever ends the command proves by the
 * token that nobody has taken it over (I6), in the transaction that writes everything else (I1). */
#include "ledger/staged.h"

#include <stdlib.h>

struct ibid_staged *staged_new(struct ledger *ledger)
{
	struct ibid_staged *staged = calloc(1, sizeof *staged);
	if (!staged)
		return NULL;
	submission_init(&staged->sub, ledger);
	staged->sub.errand = ERRAND_STAGE;
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
	if (!code && sub->held)
		code = submission_view(sub, &staged->view, err);
	bool held = !code && sub->held;
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

enum ibid_code ibid_staged_renew(struct ibid_staged *staged, struct ibid_err *err)
{
	struct ibid_err spare;
	const struct submission *sub = &staged->sub;
	struct store *store = sub->ledger->store;
	err = err_or(err, &spare);
	enum ibid_code code = ledger_check_process(sub->ledger, err);
	if (!code)
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
	sub->errand = ERRAND_FINISH;
	sub->pending = IBID_OK; /* what an earlier call failed with is over */
	sub->lost = (struct ibid_err){0};
	sub->misses = 0;
	sub->end.given = false;
	sub->handler = handler;
	sub->user = user;
	return submission_decide(sub, ret, err);
}

enum ibid_code ibid_staged_fail(struct ibid_staged *staged, bool retryable, const char *text,
                                struct ibid_result **ret, struct ibid_err *err)
{
	struct ibid_err spare;
	return submission_end(&staged->sub, retryable ? COMMAND_FAILED : COMMAND_REJECTED,
	                      "HANDLER_FAILED", work_text_or(text, "the worker gave no reason"), ret,
	                      err_or(err, &spare));
}

enum ibid_code ibid_staged_unknown(struct ibid_staged *staged, const char *text,
                                   struct ibid_result **ret, struct ibid_err *err)
{
	struct ibid_err spare;
	return submission_end(&staged->sub, COMMAND_UNKNOWN, "OUTCOME_UNKNOWN",
	                      work_text_or(text, "the worker gave no reason"), ret,
	                      err_or(err, &spare));
}
