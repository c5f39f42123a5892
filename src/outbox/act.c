/* SPDX-License-Identifier: Apache-2.0 */
/* act.c -- what a person does about an exception.
 *
 * The item is looked at first, for a clear refusal; the transaction then compares it again, so that
 * of two who act at once one is told that the other was faster. What needs a second person is kept
 * as a proposal, with all it takes to do it; approving it does it. */
#include "outbox/act.h"

#include "base/json.h"
#include "base/obj.h"
#include "base/utf8.h"
#include "outbox/delivery.h"

#include <stdlib.h>
#include <string.h>

enum { PARAMETERS_BYTES_MAX = 32 << 20, APPROVALS_SHOWN = 1 };

static const char subject_type[] = "exception";

/* What becomes of the item's subject. */
enum effect { EFFECT_NONE, EFFECT_EXECUTED, EFFECT_NOT_EXECUTED, EFFECT_DELIVERY };

static const struct {
	const char *name;
	const char *subject_type; /* what it can be done to; NULL: to anything */
	enum effect effect;
	enum hold_state held; /* of a delivery: what becomes of the event there */
} effects[] = {
    {"confirm-executed", "command", EFFECT_EXECUTED, 0},
    {"confirm-not-executed", "command", EFFECT_NOT_EXECUTED, 0},
    {"release", "delivery", EFFECT_DELIVERY, HOLD_RELEASED},
    {"skip", "delivery", EFFECT_DELIVERY, HOLD_SKIPPED},
    {"cancel", "delivery", EFFECT_DELIVERY, HOLD_CANCELLED},
    {"close", NULL, EFFECT_NONE, 0},
};
enum { EFFECTS = sizeof effects / sizeof *effects };

static const struct {
	const char *verb;
	unsigned roles;
} kinds[] = {
#define ACT_ROW(symbol, verb, past, roles) [symbol] = {verb, roles},
    ACTS(ACT_ROW)
#undef ACT_ROW
};

/* One act on its way. */
struct doing {
	const struct acting *acting;
	struct arena *arena;
	const struct act *act;
	struct acted *acted;
	const char *role, *item_id;
	struct approval_row proposal; /* that waits */
	bool waits;
	int64_t now_us;
};

#define REFUSE(doing, why, err, ...)                                                               \
	((doing)->acted->refusal = (why), err_set(err, IBID_REJECTED, __VA_ARGS__))

bool names_hold(const char *names, const char *name)
{
	size_t size = name ? strlen(name) : 0;
	for (const char *at = names; name && at && *at;) {
		size_t part = strcspn(at, ",");
		if (part == size && memcmp(at, name, size) == 0)
			return true;
		at += part + (at[part] == ',');
	}
	return false;
}

/* ---- What is asked -------------------------------------------------------------------------- */

enum ibid_code act_check_reason(const char *reason, struct ibid_err *err)
{
	if (!reason || !reason[strspn(reason, " \t\r\n")])
		return err_set(err, IBID_REJECTED, "a reason is required: it is kept as evidence");
	if (strlen(reason) > TEXT_BYTES_MAX || !utf8_ok(reason, strlen(reason)))
		return err_set(err, IBID_REJECTED, "the reason is UTF-8 of at most %d bytes",
		               TEXT_BYTES_MAX);
	return IBID_OK;
}

static enum ibid_code check_reason(struct doing *doing, struct ibid_err *err)
{
	enum ibid_code code = act_check_reason(doing->act->reason, err);
	if (code)
		doing->acted->refusal = REFUSED_INPUT;
	return code;
}

static enum ibid_code check_assignment(struct doing *doing, struct ibid_err *err)
{
	const struct act *act = doing->act;
	if (!act->owner && !act->assignee)
		return REFUSE(doing, REFUSED_INPUT, err, "name a team, a person or both");
	if ((act->owner && name_check("owner", act->owner, err)) ||
	    (act->assignee && name_check("assignee", act->assignee, err))) {
		struct ibid_err why = *err;
		return REFUSE(doing, REFUSED_INPUT, err, "%s", why.text);
	}
	return IBID_OK;
}

static unsigned roles_for(const struct doing *doing)
{
	const struct act *act = doing->act;
	unsigned roles = kinds[act->kind].roles;
	/* Who may decide may propose; who proposed may take it back. */
	if (act->kind == ACT_RESOLVE && names_hold(doing->acted->item.needs_approval, act->action))
		roles |= ROLE_APPROVER;
	if (act->kind == ACT_DECLINE && doing->waits &&
	    strcmp(doing->proposal.proposed_by, act->actor->client) == 0)
		roles |= ROLE_OPERATOR;
	return roles;
}

enum ibid_code act_check_role(struct arena *arena, const struct actor *actor, unsigned roles,
                              const char *verb, const char **ret, struct ibid_err *err)
{
	const char *role = actor_role(actor, roles);
	if (!role)
		return err_set(err, IBID_REJECTED,
		               "to %s it, a token needs the role %s or admin; `ibid token create --roles` "
		               "makes one",
		               verb, token_roles_write(arena, roles));
	*ret = role;
	return IBID_OK;
}

static enum ibid_code check_role(struct doing *doing, struct ibid_err *err)
{
	enum ibid_code code = act_check_role(doing->arena, doing->act->actor, roles_for(doing),
	                                     kinds[doing->act->kind].verb, &doing->role, err);
	if (code)
		doing->acted->refusal = REFUSED_ROLE;
	return code;
}

static enum ibid_code refuse_resolved(struct doing *doing, struct ibid_err *err)
{
	const struct exception_row *item = &doing->acted->item;
	return REFUSE(doing, REFUSED_RESOLVED, err, "it is resolved already by %s: %s",
	              item->resolved_by, item->resolution);
}

static enum ibid_code refuse_waiting(struct doing *doing, struct ibid_err *err)
{
	const struct approval_row *proposal = &doing->proposal;
	return REFUSE(doing, REFUSED_WAITING, err,
	              "%s is proposed already by %s: an approver approves or declines it",
	              proposal->action, proposal->proposed_by);
}

static enum ibid_code check_action(struct doing *doing, const char *action, size_t *ret,
                                   struct ibid_err *err)
{
	const struct exception_row *item = &doing->acted->item;
	size_t i = 0;
	if (!action || !*action)
		return REFUSE(doing, REFUSED_INPUT, err, "say which action; allowed: %s", item->actions);
	if (!names_hold(item->actions, action))
		return REFUSE(doing, REFUSED_ACTION, err, "%.80s is not allowed for it; allowed: %s",
		              action, *item->actions ? item->actions : "nothing");
	while (i < EFFECTS && strcmp(effects[i].name, action) != 0)
		i++;
	if (i == EFFECTS ||
	    (effects[i].subject_type && strcmp(effects[i].subject_type, item->subject_type) != 0))
		return REFUSE(doing, REFUSED_ACTION, err,
		              "%s is not done by resolving the exception of a %s", action,
		              item->subject_type);
	*ret = i;
	return IBID_OK;
}

/* ---- Parameters ----------------------------------------------------------------------------- */

static const char *finish_json(struct doing *doing, struct str *out)
{
	obj_end(out, '}');
	const char *text = out->failed ? NULL : arena_strndup(doing->arena, str_text(out), out->size);
	doing->arena->failed |= out->failed;
	str_release(out);
	return text;
}

static void add_text(struct str *out, const char *name, const char *text)
{
	if (text)
		obj_text(out, name, text);
}

/* The answer may tell of persons: as evidence stays its digest, and whole it is kept only while the
 * proposal waits. */
static const char *parameters(struct doing *doing, const char *action,
                              const struct confirmation *given, bool whole)
{
	struct str out = STR_INIT(PARAMETERS_BYTES_MAX);
	obj_begin(&out, NULL, '{');
	obj_text(&out, "action", action);
	if (given->status)
		obj_int(&out, "status", given->status);
	if (given->body && whole) {
		obj_text(&out, "answer", given->body);
	} else if (given->body) {
		char digest[SHA256_TEXT_SIZE];
		struct sha256 hash = sha256(given->body, strlen(given->body));
		sha256_write(&hash, digest);
		obj_text(&out, "answer_sha256", digest);
	}
	add_text(&out, "resource_type", given->resource_type);
	add_text(&out, "resource_id", given->resource_id);
	return finish_json(doing, &out);
}

static const char *assignment_parameters(struct doing *doing)
{
	struct str out = STR_INIT(PARAMETERS_BYTES_MAX);
	obj_begin(&out, NULL, '{');
	add_text(&out, "owner", doing->act->owner);
	add_text(&out, "assignee", doing->act->assignee);
	return finish_json(doing, &out);
}

static const char *text_of(const struct json *object, const char *name)
{
	const struct json *member = json_member(object, name);
	return member ? member->text : NULL;
}

/* What was proposed, as parameters(..., true) wrote it. */
static enum ibid_code read_proposal(struct doing *doing, struct confirmation *ret,
                                    struct ibid_err *err)
{
	const char *text = doing->proposal.parameters ? doing->proposal.parameters : "{}";
	struct json *json = NULL;
	enum ibid_code code = json_read(doing->arena, text, strlen(text), PARAMETERS_BYTES_MAX, &json,
	                                err);
	if (code)
		return code;
	const char *status = text_of(json, "status");
	ret->status = status ? atoi(status) : 0;
	ret->body = text_of(json, "answer");
	ret->resource_type = text_of(json, "resource_type");
	ret->resource_id = text_of(json, "resource_id");
	return IBID_OK;
}

/* ---- Evidence ------------------------------------------------------------------------------- */

static struct action_row action_of(struct doing *doing, const char *action, const char *with)
{
	const struct actor *actor = doing->act->actor;
	return (struct action_row){
	    .tenant = actor->tenant,
	    .id = uuid_v7(doing->acting->env),
	    .at_us = doing->now_us,
	    .actor = actor->client,
	    .token = actor->token,
	    .role = doing->role,
	    .action = action,
	    .subject_type = subject_type,
	    .subject_id = doing->item_id,
	    .reason = doing->act->reason,
	    .parameters = with,
	};
}

static struct approval_end decision_of(const struct doing *doing, enum approval_decision decision,
                                       const char *with)
{
	const struct actor *actor = doing->act->actor;
	return (struct approval_end){
	    .tenant = actor->tenant,
	    .id = doing->proposal.id,
	    .decision = decision,
	    .decided_by = actor->client,
	    .decided_token = actor->token,
	    .decided_reason = doing->act->reason,
	    .parameters = with,
	    .decided_us = doing->now_us,
	};
}

/* ---- Doing ---------------------------------------------------------------------------------- */

/* What a transaction of our own writes; `code` is what its verbs said. */
static enum ibid_code end_tx(struct doing *doing, struct tx **tx, enum ibid_code code,
                             struct ibid_err *err)
{
	struct outcome outcome;
	struct store *store = doing->acting->store;
	if (!code && doing->arena->failed)
		code = err_set(err, IBID_NOMEM, "out of memory");
	if (!code)
		code = store->ops->commit(tx, doing->arena, &outcome, err);
	store->ops->rollback(tx);
	return code;
}

static struct exception_assignment hold_of(const struct doing *doing)
{
	return (struct exception_assignment){.tenant = doing->act->actor->tenant, .id = doing->act->id};
}

static enum ibid_code assign(struct doing *doing, struct ibid_err *err)
{
	const struct store_ops *ops = doing->acting->store->ops;
	struct exception_assignment to = hold_of(doing);
	struct action_row action = action_of(doing, "assign", assignment_parameters(doing));
	struct tx *tx = NULL;
	to.owner = doing->act->owner;
	to.assignee = doing->act->assignee;
	doing->acted->action = "assign";
	enum ibid_code code = ops->begin_action(doing->acting->store, &tx, err);
	if (code)
		return code;
	code = ops->assign_exception(tx, &to, err);
	if (!code)
		code = ops->put_action(tx, &action, err);
	return end_tx(doing, &tx, code, err);
}

static enum ibid_code propose(struct doing *doing, const char *action,
                              const struct confirmation *given, struct ibid_err *err)
{
	const struct store_ops *ops = doing->acting->store->ops;
	const struct actor *actor = doing->act->actor;
	struct exception_assignment hold = hold_of(doing);
	struct approval_row row = {
	    .tenant = actor->tenant,
	    .id = uuid_v7(doing->acting->env),
	    .subject_type = subject_type,
	    .subject_id = doing->item_id,
	    .action = action,
	    .parameters = parameters(doing, action, given, true),
	    .proposed_by = actor->client,
	    .proposed_token = actor->token,
	    .reason = doing->act->reason,
	    .proposed_us = doing->now_us,
	};
	struct action_row evidence = action_of(doing, "propose",
	                                       parameters(doing, action, given, false));
	struct tx *tx = NULL;
	evidence.approval_id = row.id;
	doing->acted->proposed = true;
	enum ibid_code code = ops->begin_action(doing->acting->store, &tx, err);
	if (code)
		return code;
	code = ops->assign_exception(tx, &hold, err);
	if (!code)
		code = ops->put_approval(tx, &row, err);
	if (!code)
		code = ops->put_action(tx, &evidence, err);
	return end_tx(doing, &tx, code, err);
}

/* The item alone ends. */
static enum ibid_code close_item(struct doing *doing, const struct deed *deed, struct ibid_err *err)
{
	struct tx *tx = NULL;
	enum ibid_code code = doing->acting->store->ops->begin_action(doing->acting->store, &tx, err);
	return code ? code : end_tx(doing, &tx, deed_write(tx, deed, err), err);
}

/* What is held changes, and the item ends. */
static enum ibid_code decide_delivery(struct doing *doing, enum hold_state to,
                                      const struct delivery_subject *subject,
                                      const struct deed *deed, struct ibid_err *err)
{
	struct tx *tx = NULL;
	enum ibid_code code = doing->acting->store->ops->begin_action(doing->acting->store, &tx, err);
	if (code)
		return code;
	code = delivery_decide(tx, doing->arena, subject, to, deed, err);
	if (!code)
		code = deed_write(tx, deed, err);
	return end_tx(doing, &tx, code, err);
}

/* The command that the item is about, and the contract on its row. */
static enum ibid_code find_command(struct doing *doing, struct command_row *ret,
                                   const struct contract **ret_contract, struct ibid_err *err)
{
	const struct exception_row *item = &doing->acted->item;
	struct store *store = doing->acting->store;
	struct uuid id;
	if (!doing->acting->ledger)
		return err_set(err, IBID_CONTRACT,
		               "this ends a command: it needs the contracts (--contracts DIR or "
		               "IBID_CONTRACTS)");
	if (!uuid_read(item->subject_id, &id))
		return err_set(err, IBID_CONTRACT,
		               "the exception is about %s, which is not the id of a command",
		               item->subject_id);
	enum ibid_code code = store->ops->get_command(store, doing->arena, item->tenant, &id, NULL, ret,
	                                              err);
	if (code == IBID_NOT_FOUND)
		return err_set(err, IBID_CONTRACT,
		               "the command %s that the exception is about is not in the "
		               "store any more; `close` ends the exception alone",
		               item->subject_id);
	if (code)
		return code;
	if (!ledger_operation(doing->acting->ledger, ret->identity.operation))
		return err_set(err, IBID_CONTRACT,
		               "the command is of operation %s, which has no contract in the directory "
		               "that was given (--contracts)",
		               ret->identity.operation);
	return ledger_contract(doing->acting->ledger, ret->identity.operation, ret->contract_version,
	                       ret_contract, err);
}

/* How it is taken: alone, or with the approval of what was proposed. */
struct taking {
	size_t effect;
	struct confirmation given;
	struct command_row row;          /* of a command */
	struct delivery_subject subject; /* of a delivery */
};

static enum ibid_code take(struct doing *doing, const struct taking *taking,
                           const struct approval_end *decision, const char *kept,
                           struct ibid_err *err)
{
	const struct act *act = doing->act;
	const char *action = effects[taking->effect].name;
	const struct approval_row *proposal = &doing->proposal;
	struct deed deed = {
	    .end = {.tenant = act->actor->tenant,
	            .id = &act->id,
	            .approval = decision ? &decision->id : NULL,
	            .resolved_us = doing->now_us,
	            .resolution = action,
	            .resolved_by = act->actor->client,
	            .note = act->reason},
	    .decision = decision,
	    .action = action_of(doing, decision ? "approve" : action, kept),
	};
	if (decision) {
		deed.action.approval_id = decision->id;
		deed.end.note = arena_printf(doing->arena, "%s (proposed by %s: %s)", act->reason,
		                             proposal->proposed_by, proposal->reason);
	}
	if (doing->arena->failed)
		return err_set(err, IBID_NOMEM, "out of memory");
	if (effects[taking->effect].effect == EFFECT_NONE)
		return close_item(doing, &deed, err);
	if (effects[taking->effect].effect == EFFECT_DELIVERY)
		return decide_delivery(doing, effects[taking->effect].held, &taking->subject, &deed, err);
	return ledger_confirm(doing->acting->ledger, &taking->row, &taking->given, &deed, err);
}

/* Find what it is about, and check what is said of it. */
static enum ibid_code prepare(struct doing *doing, struct taking *taking, struct ibid_err *err)
{
	struct confirmation *given = &taking->given;
	const struct contract *contract = NULL;
	enum effect effect = effects[taking->effect].effect;
	bool of_command = effect == EFFECT_EXECUTED || effect == EFFECT_NOT_EXECUTED;
	given->executed = effect == EFFECT_EXECUTED;
	if (!of_command && (given->status || given->body || given->resource_id))
		return REFUSE(doing, REFUSED_INPUT, err, "only confirm-executed takes an answer");
	if (effect == EFFECT_DELIVERY)
		return delivery_find(doing->acting->store, doing->arena, &doing->acted->item,
		                     &taking->subject, err);
	if (!of_command)
		return IBID_OK;
	enum ibid_code code = find_command(doing, &taking->row, &contract, err);
	if (!code && confirmation_check(doing->arena, contract, given, err)) {
		struct ibid_err why = *err;
		return REFUSE(doing, REFUSED_INPUT, err, "%s", why.text);
	}
	return code;
}

static enum ibid_code resolve(struct doing *doing, struct ibid_err *err)
{
	const struct act *act = doing->act;
	struct taking taking = {.given = act->confirmation};
	enum ibid_code code = check_action(doing, act->action, &taking.effect, err);
	if (code)
		return code;
	const char *action = effects[taking.effect].name;
	bool needs = names_hold(doing->acted->item.needs_approval, action);
	doing->acted->action = action;
	if (needs && doing->waits)
		return refuse_waiting(doing, err);
	code = prepare(doing, &taking, err);
	if (code)
		return code;
	if (needs)
		return propose(doing, action, &taking.given, err);
	return take(doing, &taking, NULL, parameters(doing, action, &taking.given, false), err);
}

static enum ibid_code check_proposal(struct doing *doing, struct ibid_err *err)
{
	if (!doing->waits)
		return REFUSE(doing, REFUSED_NO_PROPOSAL, err, "nothing is proposed for it");
	doing->acted->action = doing->proposal.action;
	return IBID_OK;
}

static enum ibid_code approve(struct doing *doing, struct ibid_err *err)
{
	struct taking taking = {.given = {0}};
	enum ibid_code code = check_proposal(doing, err);
	if (!code && strcmp(doing->proposal.proposed_by, doing->act->actor->client) == 0)
		return REFUSE(doing, REFUSED_SAME_PERSON, err,
		              "%s proposed it: a second person has to approve it",
		              doing->proposal.proposed_by);
	if (!code)
		code = check_action(doing, doing->proposal.action, &taking.effect, err);
	if (!code)
		code = read_proposal(doing, &taking.given, err);
	if (!code)
		code = prepare(doing, &taking, err);
	if (code)
		return code;
	const char *kept = parameters(doing, doing->proposal.action, &taking.given, false);
	struct approval_end decision = decision_of(doing, APPROVAL_APPROVED, kept);
	return take(doing, &taking, &decision, kept, err);
}

static enum ibid_code decline(struct doing *doing, struct ibid_err *err)
{
	const struct store_ops *ops = doing->acting->store->ops;
	struct confirmation given = {0};
	struct exception_assignment hold = hold_of(doing);
	struct tx *tx = NULL;
	enum ibid_code code = check_proposal(doing, err);
	if (!code)
		code = read_proposal(doing, &given, err);
	if (code)
		return code;
	const char *kept = parameters(doing, doing->proposal.action, &given, false);
	struct approval_end decision = decision_of(doing, APPROVAL_DECLINED, kept);
	struct action_row action = action_of(doing, "decline", kept);
	action.approval_id = decision.id;
	code = ops->begin_action(doing->acting->store, &tx, err);
	if (code)
		return code;
	code = ops->assign_exception(tx, &hold, err);
	if (!code)
		code = ops->decide_approval(tx, &decision, err);
	if (!code)
		code = ops->put_action(tx, &action, err);
	return end_tx(doing, &tx, code, err);
}

/* ---- One act -------------------------------------------------------------------------------- */

/* The item, and the proposal that waits for it. The proposal first: whoever resolves the item ends
 * it in the same transaction, and of a proposal that has ended so the item must tell. */
static enum ibid_code look(struct doing *doing, struct ibid_err *err)
{
	struct store *store = doing->acting->store;
	const char *tenant = doing->act->actor->tenant;
	struct approval_row *newest = NULL;
	size_t count = 0;
	enum ibid_code code = store->ops->list_approvals(store, doing->arena, tenant, subject_type,
	                                                 doing->item_id, APPROVALS_SHOWN, &newest,
	                                                 &count, err);
	if (!code)
		code = store->ops->get_exception(store, doing->arena, tenant, &doing->act->id,
		                                 &doing->acted->item, err);
	if (code == IBID_NOT_FOUND)
		return err_set(err, code,
		               "tenant %s has no such exception; `ibid exception list --tenant %s "
		               "--state all` shows those that there are",
		               tenant, tenant);
	if (code)
		return code;
	doing->waits = count && newest->decision == APPROVAL_WAITS;
	if (count)
		doing->proposal = *newest;
	return IBID_OK;
}

static enum ibid_code check(struct doing *doing, struct ibid_err *err)
{
	enum ibid_code code = check_reason(doing, err);
	if (!code && doing->act->kind == ACT_ASSIGN)
		code = check_assignment(doing, err);
	if (!code)
		code = look(doing, err);
	if (!code)
		code = check_role(doing, err);
	if (!code && doing->acted->item.state == EXCEPTION_RESOLVED)
		code = refuse_resolved(doing, err);
	return code;
}

/* The transaction found another item, or another proposal, than we did: say what is there. */
static enum ibid_code tell_faster(struct doing *doing, enum ibid_code code, struct ibid_err *err)
{
	struct ibid_err ignored = {0};
	bool waited = doing->waits;
	doing->acted->proposed = false;
	if (look(doing, &ignored))
		return code;
	if (doing->acted->item.state == EXCEPTION_RESOLVED)
		return refuse_resolved(doing, err);
	if (!waited && doing->waits)
		return refuse_waiting(doing, err);
	if (waited && !doing->waits)
		return REFUSE(doing, REFUSED_NO_PROPOSAL, err, "%s has decided it already",
		              doing->proposal.decided_by);
	return err_set(err, IBID_BUSY,
	               "somebody else acts on this exception at the same time; nothing was done: run "
	               "the same command again");
}

static enum ibid_code tell_pauses(struct doing *doing, struct ibid_err *err)
{
	struct store *store = doing->acting->store;
	struct acted *acted = doing->acted;
	struct delivery_subject subject;
	enum ibid_code code = delivery_find(store, doing->arena, &acted->item, &subject, err);
	return code ? code
	            : delivery_pauses(store, doing->arena, &subject, &acted->pauses,
	                              &acted->pause_count, err);
}

/* What was cancelled may have arrived before, somewhere; what was released may not go yet. */
static enum ibid_code tell_delivery(struct doing *doing, struct ibid_err *err)
{
	const struct exception_row *item = &doing->acted->item;
	if (strcmp(item->subject_type, "delivery") != 0 || !item->resolution)
		return IBID_OK;
	if (strcmp(item->resolution, "release") == 0)
		return tell_pauses(doing, err);
	if (strcmp(item->resolution, "cancel") != 0)
		return IBID_OK;
	return delivery_arrived(doing->acting->store, doing->arena, item, &doing->acted->arrived, err);
}

enum ibid_code exception_act(const struct acting *acting, struct arena *arena,
                             const struct act *act, struct acted *ret, struct ibid_err *err)
{
	static enum ibid_code (*const runs[])(struct doing *, struct ibid_err *) = {
	    [ACT_ASSIGN] = assign,
	    [ACT_RESOLVE] = resolve,
	    [ACT_APPROVE] = approve,
	    [ACT_DECLINE] = decline,
	};
	char id[UUID_TEXT_SIZE];
	uuid_write(act->id, id);
	*ret = (struct acted){.refusal = REFUSED_NOT};
	struct doing doing = {
	    .acting = acting,
	    .arena = arena,
	    .act = act,
	    .acted = ret,
	    .item_id = id,
	    .now_us = env_wall_us(acting->env),
	};
	enum ibid_code code = check(&doing, err);
	if (!code)
		code = runs[act->kind](&doing, err);
	if (code == IBID_RETRY || code == IBID_FENCED || code == IBID_BUSY)
		return tell_faster(&doing, code, err);
	if (!code && (look(&doing, err) || tell_delivery(&doing, err)))
		code = IBID_OK; /* it is done: what is shown is what was there before */
	return code;
}
