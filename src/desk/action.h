/* SPDX-License-Identifier: Apache-2.0 */
/* action.h -- what a person does about something: one engine, and a table for each subject.
 *
 * A *subject* is what can be acted upon: a command, a delivery, a destination. Its concept
 * describes it by a row: the actions, the roles that may do them, and the functions that find the
 * subject and carry an action out. All else is the same for all and done here: the token's role,
 * the reason, the exception that is open about the subject, the second person where one has to
 * approve, and the record of it, in the transaction of what is done (I1). */
#ifndef DESK_ACTION_H
#define DESK_ACTION_H

#include "desk/actor.h"
#include "store/outbox.h"

/* ---- Asking --------------------------------------------------------------------------------- */

enum action_verb {
	ACTION_DO,      /* one of the subject's own, or propose it */
	ACTION_ASSIGN,  /* the exception to a team or a person */
	ACTION_APPROVE, /* what another person proposed */
	ACTION_DECLINE,
};

/* What a person found out: the answer that duplicates get. */
struct confirmation {
	int status;                              /* 0: not given */
	const char *body;                        /* JSON; NULL: none; likewise: */
	const char *resource_type, *resource_id; /* of what was made */
};

struct action_request {
	enum action_verb verb;
	const struct actor *actor;             /* whose tenant it is all about */
	const char *reason;                    /* required */
	struct uuid item;                      /* the exception; or the subject, by its type and id: */
	const char *subject_type, *subject_id; /* NULL: by the exception */
	const char *action;                    /* ACTION_DO: its name */
	struct confirmation confirmation;      /* likewise, where the action takes one */
	const char *owner, *assignee;          /* ACTION_ASSIGN: one of them at least; NULL: as it is */
};

/* Why it was not done, where nothing is wrong but the request. */
enum action_refusal {
	REFUSED_NOT,         /* it was done, or an error says why not */
	REFUSED_INPUT,       /* the reason, a name or the answer can't be that */
	REFUSED_ROLE,        /* the token has no role that may */
	REFUSED_SAME_PERSON, /* who proposed it can't approve it */
	REFUSED_ACTION,      /* the exception does not allow that */
	REFUSED_RESOLVED,    /* it was decided already */
	REFUSED_WAITING,     /* something is proposed, and not decided */
	REFUSED_NO_PROPOSAL, /* nothing is proposed */
	REFUSED_NOT_HELD,    /* of an event: there is nothing to decide about it */
	REFUSED_NAME,        /* no destination or event type has that name */
	REFUSED_NO_CHANGE,   /* it is paused already; or it is not */
	REFUSAL_COUNT
};

/* What became of it, and how its subject is now. */
struct action_result {
	enum action_refusal refusal;
	bool proposed;             /* it waits for a second person */
	const char *action;        /* what was done or proposed: "confirm-executed", "assign" */
	bool has_item;             /* there is an exception about it, or was: */
	struct exception_row item; /* the newest */
	/* A delivery. */
	bool is_held;
	struct hold_row hold;     /* at the destination */
	const char *arrived;      /* cancelled: where it had arrived, joined by commas; NULL: nowhere */
	struct pause_row *pauses; /* released: what keeps the event from going all the same */
	size_t pause_count;
	struct pause_row pause; /* a pause; after resuming, as it was */
};

/* ---- Subjects ------------------------------------------------------------------------------- */

struct action;

/* All that is written with an action, besides what it does. */
struct action_record {
	const struct exception_assignment *assignment; /* or hold the item; NULL: neither; likewise: */
	const struct exception_end *end;               /* of the item */
	const struct approval_row *proposal;
	const struct approval_end *decision; /* of what was proposed */
	struct action_row action;
};

/* In the transaction of what is done (I1), behind that. IBID_RETRY, from here or from commit:
 * another person was faster. */
IBID_CHECK enum ibid_code action_record_write(struct tx *tx, const struct action_record *record,
                                              struct ibid_err *err);

struct action_rule {
	const char *name;
	unsigned roles;    /* enum token_role: who may; an admin may all. 0: only an admin */
	bool takes_answer; /* a confirmation */
	/* Carry it out: in the desk's transaction, which then writes the record; or in one of its own,
	 * with the record. IBID_RETRY, IBID_FENCED: the subject is not as it was found. */
	enum ibid_code (*write)(struct action *, struct tx *, const struct action_record *,
	                        struct ibid_err *);
	enum ibid_code (*run)(struct action *, const struct action_record *, struct ibid_err *);
};

struct action_subject {
	const char *type;                /* as exceptions and records name it */
	const struct action_rule *rules; /* ended by one without a name */
	bool ends_item; /* named by a client, its actions end by themselves what tells about it */
	/* Read what `subject_id` names, into `found`. IBID_NOT_FOUND where a client named it;
	 * IBID_CONTRACT where an exception did. */
	enum ibid_code (*find)(struct action *, struct ibid_err *);
	/* May the action be done to what was found? Refuses by action_refuse. NULL: always. */
	enum ibid_code (*check)(struct action *, struct ibid_err *);
	/* After it was done or proposed: read what the result tells besides. NULL: nothing. */
	enum ibid_code (*show)(struct action *, struct ibid_err *);
};

/* Where people act. */
struct desk {
	struct store *store;
	struct env *env;
	const struct action_subject *const *subjects; /* ended by NULL */
	struct ledger *ledger;                        /* NULL: commands can't be ended here */
	const struct contracts *contracts;            /* what event types there are; NULL: any */
};

/* One action, from the request to the record. */
struct action {
	const struct desk *desk;
	struct arena *arena;
	const struct action_request *request;
	struct action_result *result;
	const struct action_subject *subject; /* NULL: of the exception, and not known here */
	const struct action_rule *rule;       /* NULL: none of that name */
	const char *subject_id;
	void *found;            /* the subject's, in `arena`; NULL: not yet */
	const char *what;       /* the subject in a sentence; "it" */
	const char *parameters; /* kept with the record: JSON; NULL: as the desk knows them */
	struct confirmation confirmation;
	bool by_item; /* an exception is open, which tells what is allowed, and ends with it */
	char item_id[UUID_TEXT_SIZE];
	bool waits; /* a proposal: */
	struct approval_row proposal;
	const char *role; /* that allows it */
	int64_t now_us;
};

/* IBID_REJECTED, for this reason. */
enum ibid_code action_refuse(struct action *action, enum action_refusal why, struct ibid_err *err,
                             const char *format, ...) __attribute__((format(printf, 4, 5)));

/* ---- Acting --------------------------------------------------------------------------------- */

/* Do it, or propose it, in one transaction with the record of it (I1). What is refused is
 * IBID_REJECTED, with the refusal in `ret`. IBID_NOT_FOUND: the tenant has no such exception or
 * subject. IBID_BUSY: nothing was done, try again. IBID_UNKNOWN: whether it was done is not known;
 * asking again is safe. */
IBID_CHECK enum ibid_code desk_act(const struct desk *desk, struct arena *arena,
                                   const struct action_request *request, struct action_result *ret,
                                   struct ibid_err *err);

/* Is `name` one of those joined by commas? NULL is none of any. */
bool names_hold(const char *names, const char *name);

#endif
