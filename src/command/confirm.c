/* SPDX-License-Identifier: Apache-2.0 */
/* confirm.c -- a person says whether a command was done that is UNKNOWN.
 *
 * It ends as recovery ends one: under the token that is on the row, so that of a person and a
 * recovery, or of two persons, one finds out and the others are fenced (I6). Its item is resolved,
 * and the evidence of who said so is written, in the same transaction (I1). Nothing is run: no
 * handler, and no event. */
#include "base/json.h"
#include "base/obj.h"
#include "command/staged.h"

#include <string.h>

static enum ibid_code check_body(struct arena *arena, const char *body, struct ibid_err *err)
{
	struct json *json = NULL;
	struct ibid_err why = {0};
	if (json_read(arena, body, strlen(body), ANSWER_BYTES_MAX, &json, &why))
		return err_set(err, IBID_INVALID, "the answer is not JSON that can be kept: %s", why.text);
	return IBID_OK;
}

/* What duplicates are to be answered with. */
static enum ibid_code check_policy(const struct contract *contract,
                                   const struct confirmation *given, struct ibid_err *err)
{
	if (contract->answer == ANSWER_FULL && !given->body && !given->status)
		return err_set(err, IBID_INVALID,
		               "duplicates of %s get the whole answer: give its JSON (--answer), or only "
		               "its status (--status) where it has none",
		               contract->name);
	if (contract->answer == ANSWER_REFERENCE && !given->resource_id)
		return err_set(err, IBID_INVALID,
		               "duplicates of %s get the resource: give its type and its id "
		               "(--resource-type and --resource-id)",
		               contract->name);
	return IBID_OK;
}

enum ibid_code confirmation_check(struct arena *arena, const struct contract *contract,
                                  struct confirmation *confirmation, struct ibid_err *err)
{
	struct confirmation *given = confirmation;
	bool answers = given->status || given->body || given->resource_type || given->resource_id;
	if (!given->executed && answers)
		return err_set(err, IBID_INVALID,
		               "confirm-not-executed takes no answer, status or resource: leave them out");
	if (!given->executed)
		return IBID_OK;
	if (given->status && (given->status < 200 || given->status > 399))
		return err_set(err, IBID_INVALID,
		               "the status of the answer (--status) is %d: a success has 200 to 399",
		               given->status);
	if (!given->resource_type != !given->resource_id)
		return err_set(err, IBID_INVALID,
		               "a resource is named by its type and its id (--resource-type and "
		               "--resource-id): one of them is missing");
	enum ibid_code code = given->body ? check_body(arena, given->body, err) : IBID_OK;
	if (!code)
		code = check_policy(contract, given, err);
	if (!code && !given->status)
		given->status = given->body ? 200 : 204;
	return code;
}

static enum ibid_code give_answer(struct ibid_work *work, void *user)
{
	const struct confirmation *given = user;
	if (given->resource_id)
		ibid_resource(work, given->resource_type, given->resource_id);
	return ibid_answer(work, given->status, given->body);
}

static void hold(struct submission *sub, const struct command_row *row, const struct deed *deed)
{
	recovery_hold(sub, row);
	sub->errand = ERRAND_FINISH;
	sub->deed = deed;
}

static enum ibid_code find_contract(struct submission *sub, const struct command_row *row,
                                    struct ibid_err *err)
{
	sub->operation = ledger_operation(sub->ledger, row->identity.operation);
	if (!sub->operation)
		return err_set(err, IBID_NOT_FOUND, "no contract for operation %s in %s",
		               row->identity.operation, contracts_dir(sub->ledger->contracts));
	return ledger_contract(sub->ledger, row->identity.operation, row->contract_version,
	                       &sub->contract, err);
}

/* As the answer of a service behind the server is kept: see http/upstream.c. */
static const char *as_of_service(struct arena *arena, const char *body)
{
	struct str out = STR_INIT(2 * ANSWER_BYTES_MAX);
	obj_begin(&out, NULL, '{');
	obj_raw(&out, "headers", "{\"Content-Type\":\"application/json\"}");
	obj_text(&out, "text", body);
	obj_end(&out, '}');
	const char *kept = out.failed ? NULL : arena_strndup(arena, str_text(&out), out.size);
	arena->failed |= out.failed;
	str_release(&out);
	return kept;
}

/* `given` lives as long as the submission. */
static enum ibid_code end(struct submission *sub, struct confirmation *given,
                          struct ibid_result **ret, struct ibid_err *err)
{
	struct ending not_done = {.state = COMMAND_FAILED,
	                          .reason = "NOT_DONE",
	                          .text = "a person found that it was not done"};
	if (!given->executed)
		return submission_end(sub, &not_done, ret, err);
	if (given->body && sub->contract->upstream.given)
		given->body = as_of_service(&sub->arena, given->body);
	if (sub->arena.failed)
		return err_set(err, IBID_NOMEM, "out of memory");
	sub->handler = give_answer;
	sub->user = given;
	return submission_decide(sub, ret, err);
}

enum ibid_code ledger_confirm(struct ledger *ledger, const struct command_row *row,
                              const struct confirmation *confirmation, const struct deed *deed,
                              struct ibid_err *err)
{
	struct submission sub;
	struct confirmation given = *confirmation;
	struct ibid_result *result = NULL;
	if (row->state != COMMAND_UNKNOWN)
		return err_set(
		    err, IBID_FENCED,
		    "the command is %s by now, and only one that is UNKNOWN can be confirmed; `ibid "
		    "command show` shows it",
		    command_state_name(row->state));
	submission_init(&sub, ledger);
	hold(&sub, row, deed);
	enum ibid_code code = find_contract(&sub, row, err);
	if (!code)
		code = end(&sub, &given, &result, err);
	if (!code && !sub.ended)
		code = err_set(
		    err, IBID_UNKNOWN,
		    "the store was lost while it was written: `ibid exception show` tells whether "
		    "the item is resolved; if not, do it again");
	ibid_result_free(result);
	submission_release(&sub);
	return code;
}
