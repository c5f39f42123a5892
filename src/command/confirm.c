/* SPDX-License-Identifier: Apache-2.0 */
/* confirm.c -- a person says whether a command was done that is UNKNOWN.
 *
 * It ends as recovery ends one: under the token that is on the row, so that of a person and a
 * recovery, or of two persons, one finds out and the others are fenced (I6). Its item is resolved,
 * and the record of who said so is written, in the same transaction (I1). Nothing is run: no
 * handler, and no event. */
#include "base/json.h"
#include "base/obj.h"
#include "command/staged.h"
#include "desk/action.h"
#include "store/run.h"

#include <string.h>

/* ---- The command ---------------------------------------------------------------------------- */

struct found {
	struct command_row row;
	const struct contract *contract; /* the one on the row */
};

/* The command that an exception is about. */
static enum ibid_code find_command(struct action *action, struct ibid_err *err)
{
	struct store *store = action->desk->store;
	struct ledger *ledger = action->desk->ledger;
	struct found *found = arena_alloc(action->arena, sizeof *found);
	struct uuid id;
	if (!found)
		return err_set(err, IBID_NOMEM, "out of memory");
	if (!ledger)
		return err_set(err, IBID_CONTRACT,
		               "this ends a command: it needs the contracts (--contracts DIR or "
		               "IBID_CONTRACTS)");
	if (!uuid_read(action->subject_id, &id))
		return err_set(err, IBID_CONTRACT,
		               "the exception is about %s, which is not the id of a command",
		               action->subject_id);
	enum ibid_code code = store_get_command(store, action->arena, action->request->actor->tenant,
	                                        &id, NULL, &found->row, err);
	if (code == IBID_NOT_FOUND)
		return err_set(err, IBID_CONTRACT,
		               "the command %s that the exception is about is not in the "
		               "store any more; `close` ends the exception alone",
		               action->subject_id);
	if (!code)
		code = row_check_words(&command_shape, &found->row, "the command", err);
	if (code)
		return code;
	if (!ledger_operation(ledger, found->row.identity.operation))
		return err_set(err, IBID_CONTRACT,
		               "the command is of operation %s, which has no contract in the directory "
		               "that was given (--contracts)",
		               found->row.identity.operation);
	action->found = found;
	return ledger_contract(ledger, found->row.identity.operation, found->row.contract_version,
	                       &found->contract, err);
}

/* ---- The answer ----------------------------------------------------------------------------- */

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

/* May it be the answer of the command, as far as duplicates get one? */
static enum ibid_code check_answer(struct arena *arena, const struct contract *contract,
                                   const struct confirmation *given, struct ibid_err *err)
{
	if (given->status && (given->status < 200 || given->status > 399))
		return err_set(err, IBID_INVALID,
		               "the status of the answer (--status) is %d: a success has 200 to 399",
		               given->status);
	if (!given->resource_type != !given->resource_id)
		return err_set(err, IBID_INVALID,
		               "a resource is named by its type and its id (--resource-type and "
		               "--resource-id): one of them is missing");
	enum ibid_code code = given->body ? check_body(arena, given->body, err) : IBID_OK;
	return code ? code : check_policy(contract, given, err);
}

static enum ibid_code check_command(struct action *action, struct ibid_err *err)
{
	struct confirmation *given = &action->confirmation;
	const struct found *found = action->found;
	struct ibid_err why = {0};
	if (!action->rule->takes_answer)
		return IBID_OK;
	if (check_answer(action->arena, found->contract, given, &why))
		return action_refuse(action, REFUSED_INPUT, err, "%s", why.text);
	if (!given->status)
		given->status = given->body ? 200 : 204;
	return IBID_OK;
}

static enum ibid_code give_answer(struct ibid_work *work, void *user)
{
	const struct confirmation *given = user;
	if (given->resource_id)
		ibid_resource(work, given->resource_type, given->resource_id);
	return ibid_answer(work, given->status, given->body);
}

/* ---- Ending it ------------------------------------------------------------------------------ */

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
static enum ibid_code end_executed(struct submission *sub, struct confirmation *given,
                                   struct ibid_result **ret, struct ibid_err *err)
{
	if (given->body && sub->contract->upstream.given)
		given->body = as_of_service(&sub->arena, given->body);
	if (sub->arena.failed)
		return err_set(err, IBID_NOMEM, "out of memory");
	sub->handler = give_answer;
	sub->user = given;
	return submission_decide(sub, ret, err);
}

/* As recovery would, together with the record. IBID_FENCED: it is not UNKNOWN any more. */
static enum ibid_code end_command(struct action *action, const struct action_record *record,
                                  bool executed, struct ibid_err *err)
{
	static const struct ending not_done = {.state = COMMAND_FAILED,
	                                       .reason = "NOT_DONE",
	                                       .text = "a person found that it was not done"};
	const struct found *found = action->found;
	struct confirmation given = action->confirmation;
	struct ibid_result *result = NULL;
	struct submission sub;
	if (found->row.state != COMMAND_UNKNOWN)
		return err_set(
		    err, IBID_FENCED,
		    "the command is %s by now, and only one that is UNKNOWN can be confirmed; `ibid "
		    "command show` shows it",
		    command_state_name(found->row.state));
	submission_init(&sub, action->desk->ledger);
	recovery_hold(&sub, &found->row);
	submission_finishes(&sub);
	sub.operation = ledger_operation(sub.ledger, found->row.identity.operation);
	sub.contract = found->contract;
	sub.by_person = record;
	enum ibid_code code = executed ? end_executed(&sub, &given, &result, err)
	                               : submission_end(&sub, &not_done, &result, err);
	if (!code && sub.state != SUBMISSION_ENDED)
		code = err_set(
		    err, IBID_UNKNOWN,
		    "the store was lost while it was written: `ibid exception show` tells whether "
		    "the item is resolved; if not, do it again");
	ibid_result_free(result);
	submission_release(&sub);
	return code;
}

static enum ibid_code confirm_executed(struct action *action, const struct action_record *record,
                                       struct ibid_err *err)
{
	return end_command(action, record, true, err);
}

static enum ibid_code confirm_not_executed(struct action *action,
                                           const struct action_record *record, struct ibid_err *err)
{
	return end_command(action, record, false, err);
}

static const struct action_rule rules[] = {
    {"confirm-executed", ROLE_OPERATOR, .takes_answer = true, .run = confirm_executed},
    {"confirm-not-executed", ROLE_OPERATOR, .run = confirm_not_executed},
    {0},
};
const struct action_subject command_subject = {
    .type = "command", .rules = rules, .find = find_command, .check = check_command};
