/* SPDX-License-Identifier: Apache-2.0 */
/* act.h -- what a person does about an exception: who may, what is allowed, and who must agree. */
#ifndef OUTBOX_ACT_H
#define OUTBOX_ACT_H

#include "command/ledger.h"
#include "command/staged.h"
#include "desk/actor.h"

/* X(symbol, verb, past, roles): an admin may all of it. */
#define ACTS(X)                                                                                    \
	X(ACT_ASSIGN, "assign", "assigned", ROLE_OPERATOR)                                             \
	X(ACT_RESOLVE, "resolve", "resolved", ROLE_OPERATOR)                                           \
	X(ACT_APPROVE, "approve", "approved", ROLE_APPROVER)                                           \
	X(ACT_DECLINE, "decline", "declined", ROLE_APPROVER)

enum act_kind {
#define ACT_ENUM(symbol, verb, past, roles) symbol,
	ACTS(ACT_ENUM)
#undef ACT_ENUM
};

/* What is asked for. */
struct act {
	enum act_kind kind;
	const struct actor *actor;
	struct uuid id;                   /* of the exception, in the actor's tenant */
	const char *reason;               /* required */
	const char *owner, *assignee;     /* assign: one of them at least; NULL: as it is */
	const char *action;               /* resolve: one of those that the item allows */
	struct confirmation confirmation; /* resolve: the answer, where it was executed */
};

/* Why it was not done, where nothing is wrong but the asking. */
enum act_refusal {
	REFUSED_NOT,         /* it was done, or an error says why not */
	REFUSED_INPUT,       /* the reason, the name or the answer can't be that */
	REFUSED_ROLE,        /* the token has no role that may */
	REFUSED_SAME_PERSON, /* who proposed it can't approve it */
	REFUSED_ACTION,      /* the item does not allow that */
	REFUSED_RESOLVED,    /* somebody was faster */
	REFUSED_WAITING,     /* something is proposed, and not decided */
	REFUSED_NO_PROPOSAL, /* nothing is proposed */
	REFUSED_NOT_HELD,    /* of an event: there is nothing to decide about it */
};

struct acted {
	enum act_refusal refusal;
	bool proposed;            /* it waits for a second person */
	const char *action;       /* what was done or proposed: "confirm-executed", "assign" */
	const char *arrived;      /* cancelled: where it had arrived, joined by commas; NULL: nowhere */
	struct pause_row *pauses; /* released: what keeps the event from going all the same */
	size_t pause_count;
	struct exception_row item; /* as it is now */
};

struct acting {
	struct store *store;
	struct env *env;
	struct ledger *ledger; /* NULL: only what needs no contract can be done */
};

/* Do it, in one transaction with the evidence of it (I1). What is refused is IBID_REJECTED, with
 * the refusal in `ret`. IBID_NOT_FOUND: the tenant has no such item. IBID_UNKNOWN: whether it was
 * done is not known; asking again is safe. */
IBID_CHECK enum ibid_code exception_act(const struct acting *acting, struct arena *arena,
                                        const struct act *act, struct acted *ret,
                                        struct ibid_err *err);

/* What every act demands: IBID_REJECTED says what is missing. `verb`: what is to be done. */
IBID_CHECK enum ibid_code act_check_reason(const char *reason, struct ibid_err *err);
IBID_CHECK enum ibid_code act_check_role(struct arena *arena, const struct actor *actor,
                                         unsigned roles, const char *verb, const char **ret,
                                         struct ibid_err *err);

/* Is `name` one of those joined by commas? NULL is none of any. */
bool names_hold(const char *names, const char *name);

#endif
