/* SPDX-License-Identifier: Apache-2.0 */
/* action.h -- what people do and propose: evidence, kept with what it did. */
#ifndef STORE_ACTION_H
#define STORE_ACTION_H

#include "base/err.h"
#include "store/row.h"

struct store;
struct tx;

/* What a person did: evidence, which commits with what it did. */
struct action_row {
	const char *tenant;
	struct uuid id;
	int64_t at_us;
	const char *actor, *token; /* the token's client, and its id */
	const char *role;          /* the one that allowed it */
	const char *action;        /* "assign", "confirm-executed", "approve", ... */
	const char *subject_type, *subject_id;
	const char *reason;      /* never empty */
	const char *parameters;  /* JSON; NULL: none */
	struct uuid approval_id; /* all zero: nobody else was asked */
};

#define APPROVAL_DECISIONS(X)                                                                      \
	X(WAITS, "") /* not decided */                                                                 \
	X(APPROVED, "APPROVED") X(DECLINED, "DECLINED") X(LAPSED, "LAPSED")
enum approval_decision {
#define APPROVAL_DECISION_ENUM(symbol, name) APPROVAL_##symbol,
	APPROVAL_DECISIONS(APPROVAL_DECISION_ENUM)
#undef APPROVAL_DECISION_ENUM
	    APPROVAL_DECISION_COUNT
};
const char *approval_decision_name(enum approval_decision decision);        /* NULL: it waits */
bool approval_decision_read(const char *name, enum approval_decision *ret); /* NULL: it waits */

/* What one person proposes and another decides. One waits per subject. */
struct approval_row {
	const char *tenant;
	struct uuid id;
	const char *subject_type, *subject_id;
	const char *action, *parameters; /* JSON; NULL: none */
	const char *proposed_by, *proposed_token, *reason;
	int64_t proposed_us;
	/* Out. */
	enum approval_decision decision;
	const char *decided_by, *decided_token, *decided_reason; /* NULL: it waits; or lapsed */
	int64_t decided_us;                                      /* 0: it waits */
};

struct approval_end {
	const char *tenant;
	struct uuid id;
	enum approval_decision decision;
	const char *decided_by, *decided_token, *decided_reason;
	const char *parameters; /* what stays of them */
	int64_t decided_us;
};

extern const struct row_shape action_shape;
extern const struct row_shape approval_shape;

/* ---- Verbs ---------------------------------------------------------------------------------- */

/* Keep what a person did, with what it did (I1, I3). The id must be new. */
IBID_CHECK enum ibid_code store_put_action(struct tx *, const struct action_row *,
                                           struct ibid_err *);

/* Propose something to a second person. IBID_RETRY, from here or from commit: something waits
 * for the subject already. The id must be new. */
IBID_CHECK enum ibid_code store_put_approval(struct tx *, const struct approval_row *,
                                             struct ibid_err *);

/* Decide it, once. IBID_RETRY, from here or from commit: it does not wait any more. Approving
 * what one proposed oneself is refused by the database, too. */
IBID_CHECK enum ibid_code store_decide_approval(struct tx *, const struct approval_end *,
                                                struct ibid_err *);

/* What people did about one subject, the oldest first, and what they proposed, the newest
 * first.
 */
IBID_CHECK enum ibid_code store_list_actions(struct store *, struct arena *, const char *tenant,
                                             const char *subject_type, const char *subject_id,
                                             size_t limit, struct action_row **ret,
                                             size_t *ret_count, struct ibid_err *);

IBID_CHECK enum ibid_code store_list_approvals(struct store *, struct arena *, const char *tenant,
                                               const char *subject_type, const char *subject_id,
                                               size_t limit, struct approval_row **ret,
                                               size_t *ret_count, struct ibid_err *);

#endif
