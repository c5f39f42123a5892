/* SPDX-License-Identifier: Apache-2.0 */
/* action.c -- what a person does about something.
 *
 * The exception and the subject are read first, for a clear refusal; the transaction then compares
 * them again, so that of two people who act at once one is told that the other was faster. What
 * needs a second person is kept as a proposal, with all it takes to do it; approving it does it. */
#include "desk/action.h"

#include "base/hash.h"
#include "base/json.h"
#include "base/obj.h"
#include "base/utf8.h"
#include "contract/payload.h"
#include "desk/exception.h"
#include "store/run.h"

#include <assert.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

enum { ACTION_REASON_BYTES_MAX = 2000, PARAMETERS_BYTES_MAX = 32 << 20 };

enum ibid_code action_refuse(struct action *action, enum action_refusal why, struct ibid_err *err,
                             const char *format, ...)
{
	va_list args;
	va_start(args, format);
	err_setv(err, IBID_REJECTED, format, args);
	va_end(args);
	action->result->refusal = why;
	return IBID_REJECTED;
}

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

static enum ibid_code no_memory(struct ibid_err *err)
{
	return err_set(err, IBID_NOMEM, "out of memory");
}

/* ---- The request ---------------------------------------------------------------------------- */

static enum ibid_code check_request(struct action *action, struct ibid_err *err)
{
	const struct action_request *request = action->request;
	const char *reason = request->reason, *owner = request->owner, *assignee = request->assignee;
	struct ibid_err why = {0};
	if (!reason || !reason[strspn(reason, " \t\r\n")])
		return action_refuse(action, REFUSED_INPUT, err,
		                     "a reason is required: it is kept as evidence");
	if (strlen(reason) > ACTION_REASON_BYTES_MAX || !utf8_ok(reason, strlen(reason)))
		return action_refuse(action, REFUSED_INPUT, err, "the reason is UTF-8 of at most %d bytes",
		                     ACTION_REASON_BYTES_MAX);
	if (request->verb != ACTION_ASSIGN)
		return IBID_OK;
	if (!owner && !assignee)
		return action_refuse(action, REFUSED_INPUT, err, "name a team, a person or both");
	if ((owner && name_check("owner", owner, &why)) ||
	    (assignee && name_check("assignee", assignee, &why)))
		return action_refuse(action, REFUSED_INPUT, err, "%s", why.text);
	return IBID_OK;
}

/* ---- What is there -------------------------------------------------------------------------- */

static const struct action_subject *subject_of(const struct desk *desk, const char *type)
{
	const struct action_subject *const *at = desk->subjects;
	while (*at && strcmp((*at)->type, type) != 0)
		at++;
	return *at;
}

/* The exception, and the proposal that waits for it. The proposal first: whoever resolves the item
 * ends it in the same transaction, and of a proposal that has ended so the item must tell. */
static enum ibid_code look_at_item(struct action *action, const struct uuid *id,
                                   struct ibid_err *err)
{
	struct store *store = action->desk->store;
	struct action_result *result = action->result;
	const char *tenant = action->request->actor->tenant;
	struct approval_row *newest = NULL;
	size_t count = 0;
	uuid_write(*id, action->item_id);
	enum ibid_code code = store_list_approvals(store, action->arena, tenant, "exception",
	                                           action->item_id, 1, &newest, &count, err);
	if (!code)
		code = store_get_exception(store, action->arena, tenant, id, &result->item, err);
	if (code == IBID_NOT_FOUND)
		return err_set(err, code,
		               "tenant %s has no such exception; `ibid exception list --tenant %s "
		               "--state all` shows those that there are",
		               tenant, tenant);
	if (!code)
		code = row_check_words(&exception_shape, &result->item, "the exception", err);
	if (!code && count)
		code = row_check_words(&approval_shape, newest, "the proposal for the exception", err);
	if (code)
		return code;
	result->has_item = action->by_item = true;
	action->waits = count && newest->decision == APPROVAL_WAITS;
	if (count)
		action->proposal = *newest;
	action->subject = subject_of(action->desk, result->item.subject_type);
	action->subject_id = result->item.subject_id;
	return IBID_OK;
}

/* What the client named, and the exception about it: the one that is open, or the newest. */
static enum ibid_code look_at_subject(struct action *action, struct ibid_err *err)
{
	const struct action_request *request = action->request;
	struct exception_filter filter = {
	    .tenant = request->actor->tenant,
	    .state = EXCEPTION_OPEN,
	    .subject_type = request->subject_type,
	    .subject_id = request->subject_id,
	};
	const struct exception_row *item = NULL;
	action->subject = subject_of(action->desk, request->subject_type);
	action->subject_id = request->subject_id;
	assert(action->subject);
	enum ibid_code code = action->subject->find(action, err);
	if (code || action->subject->ends_item)
		return code;
	code = exception_newest(action->desk->store, action->arena, filter, &item, err);
	if (!code && item)
		return look_at_item(action, &item->id, err);
	filter.state = -1;
	if (!code)
		code = exception_newest(action->desk->store, action->arena, filter, &item, err);
	if (!code && item)
		code = row_check_words(&exception_shape, item, "the exception about it", err);
	action->result->has_item = !code && item;
	if (action->result->has_item)
		action->result->item = *item;
	return code;
}

static enum ibid_code look(struct action *action, struct ibid_err *err)
{
	const struct action_request *request = action->request;
	struct uuid id = action->by_item ? action->result->item.id : request->item;
	return request->subject_type && !action->by_item ? look_at_subject(action, err)
	                                                 : look_at_item(action, &id, err);
}

/* ---- May it be done? ------------------------------------------------------------------------ */

/* Any exception may allow it: the item alone ends. */
static const struct action_rule closing = {"close", ROLE_OPERATOR, false, NULL, NULL};

static const struct action_rule *rule_of(const struct action *action, const char *name)
{
	const struct action_rule *rule = action->subject ? action->subject->rules : NULL;
	if (!name || (action->by_item && strcmp(name, closing.name) == 0))
		return name ? &closing : NULL;
	while (rule && rule->name && strcmp(rule->name, name) != 0)
		rule++;
	return rule && rule->name ? rule : NULL;
}

/* Who may decide may propose; who proposed may take it back. */
static unsigned roles_for(const struct action *action)
{
	const struct action_request *request = action->request;
	unsigned roles = action->rule ? action->rule->roles : ROLE_OPERATOR;
	switch (request->verb) {
	case ACTION_DO:
		if (action->by_item && names_hold(action->result->item.needs_approval, request->action))
			roles |= ROLE_APPROVER;
		return roles;
	case ACTION_ASSIGN: return ROLE_OPERATOR;
	case ACTION_APPROVE: return ROLE_APPROVER;
	case ACTION_DECLINE: break;
	}
	bool own = action->waits && strcmp(action->proposal.proposed_by, request->actor->client) == 0;
	return own ? ROLE_APPROVER | ROLE_OPERATOR : ROLE_APPROVER;
}

static const char *verb_text(const struct action *action)
{
	static const char *const verbs[] = {
	    [ACTION_ASSIGN] = "assign", [ACTION_APPROVE] = "approve", [ACTION_DECLINE] = "decline"};
	const struct action_request *request = action->request;
	if (request->verb != ACTION_DO)
		return verbs[request->verb];
	return request->subject_type ? request->action : "resolve";
}

static enum ibid_code check_role(struct action *action, struct ibid_err *err)
{
	unsigned roles = roles_for(action);
	action->role = actor_role(action->request->actor, roles);
	if (action->role)
		return IBID_OK;
	return action_refuse(action, REFUSED_ROLE, err,
	                     "to %s %s, a token needs the role %s%sadmin; `ibid token create --roles` "
	                     "makes one",
	                     verb_text(action), action->what,
	                     roles ? token_roles_write(action->arena, roles) : "", roles ? " or " : "");
}

static enum ibid_code refuse_resolved(struct action *action, struct ibid_err *err)
{
	const struct exception_row *item = &action->result->item;
	return action_refuse(action, REFUSED_RESOLVED, err, "it is resolved already by %s: %s",
	                     item->resolved_by, item->resolution);
}

static enum ibid_code refuse_waiting(struct action *action, struct ibid_err *err)
{
	const struct approval_row *proposal = &action->proposal;
	return action_refuse(action, REFUSED_WAITING, err,
	                     "%s is proposed already by %s: an approver approves or declines it",
	                     proposal->action, proposal->proposed_by);
}

static enum ibid_code check(struct action *action, struct ibid_err *err)
{
	action->rule = rule_of(action, action->request->action);
	enum ibid_code code = check_role(action, err);
	if (!code && action->by_item && action->result->item.state == EXCEPTION_RESOLVED)
		code = refuse_resolved(action, err);
	return code;
}

/* Does the exception allow it, and is there a way to do it? */
static enum ibid_code check_allowed(struct action *action, const char *name, struct ibid_err *err)
{
	const struct exception_row *item = &action->result->item;
	if (!name || !*name)
		return action_refuse(action, REFUSED_INPUT, err, "say which action; allowed: %s",
		                     item->actions);
	if (!names_hold(item->actions, name))
		return action_refuse(action, REFUSED_ACTION, err,
		                     "%.80s is not allowed for it; allowed: %s", name,
		                     *item->actions ? item->actions : "nothing");
	action->rule = rule_of(action, name);
	if (!action->rule)
		return action_refuse(action, REFUSED_ACTION, err,
		                     "%s is not done by resolving the exception of a %s", name,
		                     item->subject_type);
	return IBID_OK;
}

/* Find what it is about, and check what is said of it. */
static enum ibid_code prepare(struct action *action, struct ibid_err *err)
{
	const struct confirmation *given = &action->confirmation;
	const struct action_subject *subject = action->subject;
	enum ibid_code code = IBID_OK;
	if (!action->rule->takes_answer &&
	    (given->status || given->body || given->resource_type || given->resource_id))
		return action_refuse(action, REFUSED_INPUT, err, "only confirm-executed takes an answer");
	if (action->rule == &closing)
		return IBID_OK;
	if (!action->found)
		code = subject->find(action, err);
	return code || !subject->check ? code : subject->check(action, err);
}

/* ---- Parameters ----------------------------------------------------------------------------- */

static const char *finish_json(struct action *action, struct str *out)
{
	obj_end(out, '}');
	const char *text = out->failed ? NULL : arena_strndup(action->arena, str_text(out), out->size);
	action->arena->failed |= out->failed;
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
static const char *parameters(struct action *action, const char *name, bool whole)
{
	const struct confirmation *given = &action->confirmation;
	struct str out = STR_INIT(PARAMETERS_BYTES_MAX);
	if (action->parameters || !action->by_item)
		return action->parameters;
	obj_begin(&out, NULL, '{');
	obj_text(&out, "action", name);
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
	return finish_json(action, &out);
}

static const char *assignment_parameters(struct action *action)
{
	struct str out = STR_INIT(PARAMETERS_BYTES_MAX);
	obj_begin(&out, NULL, '{');
	add_text(&out, "owner", action->request->owner);
	add_text(&out, "assignee", action->request->assignee);
	return finish_json(action, &out);
}

static const char *text_of(const struct json *object, const char *name)
{
	const struct json *member = json_member(object, name);
	return member ? member->text : NULL;
}

/* What was proposed, as parameters(..., true) wrote it. */
static enum ibid_code read_proposal(struct action *action, struct ibid_err *err)
{
	const char *text = action->proposal.parameters ? action->proposal.parameters : "{}";
	struct json *json = NULL;
	if (!action->waits)
		return action_refuse(action, REFUSED_NO_PROPOSAL, err, "nothing is proposed for it");
	action->result->action = action->proposal.action;
	enum ibid_code code = json_read(action->arena, text, strlen(text), PARAMETERS_BYTES_MAX, &json,
	                                err);
	if (code)
		return code;
	const char *status = text_of(json, "status");
	action->confirmation = (struct confirmation){
	    .status = status ? atoi(status) : 0,
	    .body = text_of(json, "answer"),
	    .resource_type = text_of(json, "resource_type"),
	    .resource_id = text_of(json, "resource_id"),
	};
	return IBID_OK;
}

/* ---- The record ----------------------------------------------------------------------------- */

/* The item before its approval, always: who holds the item may wait for the approval. */
enum ibid_code action_record_write(struct tx *tx, const struct action_record *record,
                                   struct ibid_err *err)
{
	enum ibid_code code = IBID_OK;
	if (record->assignment)
		code = store_assign_exception(tx, record->assignment, err);
	if (!code && record->end)
		code = store_resolve_exception(tx, record->end, err);
	if (!code && record->proposal)
		code = store_put_approval(tx, record->proposal, err);
	if (!code && record->decision)
		code = store_decide_approval(tx, record->decision, err);
	return code ? code : store_put_action(tx, &record->action, err);
}

static struct action_record record_of(struct action *action, const char *name, const char *with)
{
	const struct action_request *request = action->request;
	return (struct action_record){
	    .action = {
	        .tenant = request->actor->tenant,
	        .id = uuid_v7(action->desk->env),
	        .at_us = action->now_us,
	        .actor = request->actor->client,
	        .token = request->actor->token,
	        .role = action->role,
	        .action = name,
	        .subject_type = action->by_item ? "exception" : action->subject->type,
	        .subject_id = action->by_item ? action->item_id : action->subject_id,
	        .reason = request->reason,
	        .parameters = with,
	    }};
}

static struct exception_assignment held_item(const struct action *action)
{
	return (struct exception_assignment){.tenant = action->request->actor->tenant,
	                                     .id = action->result->item.id};
}

static struct approval_end decision_of(const struct action *action, enum approval_decision decision,
                                       const char *with)
{
	const struct actor *actor = action->request->actor;
	return (struct approval_end){
	    .tenant = actor->tenant,
	    .id = action->proposal.id,
	    .decision = decision,
	    .decided_by = actor->client,
	    .decided_token = actor->token,
	    .decided_reason = action->request->reason,
	    .parameters = with,
	    .decided_us = action->now_us,
	};
}

/* In one transaction: what the rule writes (NULL: nothing), and the record. */
static enum ibid_code commit(struct action *action, const struct action_rule *rule,
                             const struct action_record *record, struct ibid_err *err)
{
	struct store *store = action->desk->store;
	struct outcome outcome;
	struct tx *tx = NULL;
	if (action->arena->failed)
		return no_memory(err);
	enum ibid_code code = store->ops->begin_action(store, &tx, err);
	if (code)
		return code;
	if (rule && rule->write)
		code = rule->write(action, tx, record, err);
	if (!code)
		code = action_record_write(tx, record, err);
	if (!code && action->arena->failed)
		code = no_memory(err);
	if (!code)
		code = store->ops->commit(&tx, action->arena, &outcome, err);
	store->ops->rollback(&tx);
	return code;
}

/* ---- Doing ---------------------------------------------------------------------------------- */

static enum ibid_code assign(struct action *action, struct ibid_err *err)
{
	struct exception_assignment to = held_item(action);
	struct action_record record = record_of(action, "assign", assignment_parameters(action));
	to.owner = action->request->owner;
	to.assignee = action->request->assignee;
	record.assignment = &to;
	action->result->action = "assign";
	return commit(action, NULL, &record, err);
}

static enum ibid_code propose(struct action *action, struct ibid_err *err)
{
	const struct actor *actor = action->request->actor;
	const struct exception_assignment hold = held_item(action);
	const struct approval_row proposal = {
	    .tenant = actor->tenant,
	    .id = uuid_v7(action->desk->env),
	    .subject_type = "exception",
	    .subject_id = action->item_id,
	    .action = action->rule->name,
	    .parameters = parameters(action, action->rule->name, true),
	    .proposed_by = actor->client,
	    .proposed_token = actor->token,
	    .reason = action->request->reason,
	    .proposed_us = action->now_us,
	};
	struct action_record record = record_of(action, "propose",
	                                        parameters(action, action->rule->name, false));
	record.assignment = &hold;
	record.proposal = &proposal;
	record.action.approval_id = proposal.id;
	action->result->proposed = true;
	return commit(action, NULL, &record, err);
}

/* With the decision on what was proposed; NULL: nobody else was asked. */
static enum ibid_code carry_out(struct action *action, const struct approval_end *decision,
                                const char *with, struct ibid_err *err)
{
	const struct action_request *request = action->request;
	const struct action_rule *rule = action->rule;
	struct action_record record = record_of(action, decision ? "approve" : rule->name, with);
	struct exception_end end = {
	    .tenant = request->actor->tenant,
	    .id = &action->result->item.id,
	    .resolved_us = action->now_us,
	    .resolution = rule->name,
	    .resolved_by = request->actor->client,
	    .note = request->reason,
	};
	if (decision) {
		record.decision = decision;
		record.action.approval_id = decision->id;
		end.approval = &decision->id;
		end.note = arena_printf(action->arena, "%s (proposed by %s: %s)", request->reason,
		                        action->proposal.proposed_by, action->proposal.reason);
	}
	if (action->by_item)
		record.end = &end;
	if (action->arena->failed)
		return no_memory(err);
	return rule->run ? rule->run(action, &record, err) : commit(action, rule, &record, err);
}

static enum ibid_code perform(struct action *action, struct ibid_err *err)
{
	const char *name = action->request->action;
	enum ibid_code code = action->by_item ? check_allowed(action, name, err) : IBID_OK;
	bool needs = action->by_item && names_hold(action->result->item.needs_approval, name);
	if (code)
		return code;
	assert(action->rule);
	action->result->action = action->rule->name;
	action->confirmation = action->request->confirmation;
	if (needs && action->waits)
		return refuse_waiting(action, err);
	code = prepare(action, err);
	if (code)
		return code;
	return needs ? propose(action, err)
	             : carry_out(action, NULL, parameters(action, name, false), err);
}

static enum ibid_code approve(struct action *action, struct ibid_err *err)
{
	const struct approval_row *proposal = &action->proposal;
	if (action->waits && strcmp(proposal->proposed_by, action->request->actor->client) == 0)
		return action_refuse(action, REFUSED_SAME_PERSON, err,
		                     "%s proposed it: a second person has to approve it",
		                     proposal->proposed_by);
	enum ibid_code code = read_proposal(action, err);
	if (!code)
		code = check_allowed(action, proposal->action, err);
	if (!code)
		code = prepare(action, err);
	if (code)
		return code;
	const char *with = parameters(action, proposal->action, false);
	const struct approval_end decision = decision_of(action, APPROVAL_APPROVED, with);
	return carry_out(action, &decision, with, err);
}

static enum ibid_code decline(struct action *action, struct ibid_err *err)
{
	const struct exception_assignment hold = held_item(action);
	enum ibid_code code = read_proposal(action, err);
	if (code)
		return code;
	const char *with = parameters(action, action->proposal.action, false);
	const struct approval_end decision = decision_of(action, APPROVAL_DECLINED, with);
	struct action_record record = record_of(action, "decline", with);
	record.assignment = &hold;
	record.decision = &decision;
	record.action.approval_id = decision.id;
	return commit(action, NULL, &record, err);
}

/* ---- One action ----------------------------------------------------------------------------- */

/* The transaction found another exception, proposal or subject than we did: say what is there. */
static enum ibid_code explain_conflict(struct action *action, enum ibid_code code,
                                       struct ibid_err *err)
{
	struct ibid_err ignored = {0};
	bool waited = action->waits;
	action->result->proposed = false;
	if (look(action, &ignored))
		return code;
	if (action->by_item && action->result->item.state == EXCEPTION_RESOLVED)
		return refuse_resolved(action, err);
	if (!waited && action->waits)
		return refuse_waiting(action, err);
	if (waited && !action->waits)
		return action_refuse(action, REFUSED_NO_PROPOSAL, err, "%s has decided it already",
		                     action->proposal.decided_by);
	if (!action->by_item && action->subject->check)
		code = action->subject->check(action, err);
	if (action->result->refusal)
		return code;
	return err_set(err, IBID_BUSY,
	               "another person, or a relay, changed it at the same time; nothing was done: run "
	               "the same command again");
}

/* It is done: what can't be read now is shown as it was before. */
static void show(struct action *action)
{
	struct ibid_err ignored = {0};
	enum ibid_code code = action->by_item ? look(action, &ignored) : IBID_OK;
	if (!code && action->found && action->subject->show)
		(void)!action->subject->show(action, &ignored);
}

enum ibid_code desk_act(const struct desk *desk, struct arena *arena,
                        const struct action_request *request, struct action_result *ret,
                        struct ibid_err *err)
{
	static enum ibid_code (*const runs[])(struct action *, struct ibid_err *) = {
	    [ACTION_DO] = perform,
	    [ACTION_ASSIGN] = assign,
	    [ACTION_APPROVE] = approve,
	    [ACTION_DECLINE] = decline,
	};
	struct action action = {
	    .desk = desk,
	    .arena = arena,
	    .request = request,
	    .result = ret,
	    .what = "it",
	    .now_us = env_wall_us(desk->env),
	};
	*ret = (struct action_result){.refusal = REFUSED_NOT};
	enum ibid_code code = check_request(&action, err);
	if (!code)
		code = look(&action, err);
	if (!code)
		code = check(&action, err);
	if (!code)
		code = runs[request->verb](&action, err);
	if (code == IBID_RETRY || code == IBID_FENCED || code == IBID_BUSY)
		return explain_conflict(&action, code, err);
	if (!code)
		show(&action);
	return code;
}
