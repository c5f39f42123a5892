/* SPDX-License-Identifier: Apache-2.0 */
/* group.c -- commands in one transaction of the writer: several, each behind a savepoint, or one,
 * which needs none.
 *
 * A savepoint undoes everything but two things: a deferred foreign key that a member leaves
 * violated (it would fail the commit of all, or be healed by a neighbour), which is looked for
 * before the release; and a statement that rolls the whole transaction back, after which nothing of
 * anybody remains and all run alone. */
#include "store/sqlite/lite.h"

/* The transaction now works for this member. */
static void turn_to(struct lite_tx *tx, const struct group_member *member)
{
	lite_tx_turn(tx, &member->row.identity, member->context);
	tx->ordinal = 0;
	tx->doom.code = IBID_OK;
	tx->doom.status = 0;
	tx->doom.reason = tx->doom.text = tx->doom.unique = NULL;
}

static bool leaves_violation(struct lite_tx *tx)
{
	int open = 0, ignored;
	sqlite3_db_status(tx->conn->db, SQLITE_DBSTATUS_DEFERRED_FKS, &open, &ignored, 0);
	return open;
}

/* The script. `*ret_good`: a plain success. */
static enum ibid_code run(struct lite_tx *tx, struct group_member *member, bool *ret_good,
                          struct ibid_err *err)
{
	struct outcome outcome = {.status = 0};
	enum ibid_code code = (member->answered ? lite_run_statements : lite_run_script)(
	    &tx->base, member->arena, member->script, member->values, &outcome, err);
	if (code || !member->answered)
		member->outcome = outcome;
	member->outcome.rows = outcome.rows;
	member->outcome.row_count = outcome.row_count;
	bool asks = !member->answered || member->compares;
	*ret_good = !code && (!asks || member->complete(member));
	return code;
}

/* Codes as of the verbs; `*ret_stays`: its work may be released. */
static enum ibid_code work(struct lite_tx *tx, struct group_member *member, bool *ret_stays,
                           struct ibid_err *err)
{
	bool good = false;
	enum ibid_code code = run(tx, member, &good, err);
	if (code || !good)
		return code;
	for (size_t i = 0; !code && i < member->event_count; i++)
		code = lite_put_event(&tx->base, &member->events[i], err);
	if (code == IBID_REJECTED)
		return lite_tx_doom(tx, member->arena, &member->outcome, err);
	if (!code)
		code = store_put_audit(&tx->base, &member->audit, err);
	if (!code)
		code = lite_put_command(&tx->base, &member->row, NULL, err);
	*ret_stays = !code;
	return code;
}

/* Is that the member's own affair? */
static bool is_own(enum ibid_code code)
{
	return code == IBID_OK || code == IBID_REJECTED || code == IBID_DUPLICATE ||
	       code == IBID_FAILED;
}

static enum ibid_code run_member(struct lite_tx *tx, struct group_member *member,
                                 struct ibid_err *err)
{
	bool stays = false;
	enum ibid_code code = lite_do(tx->conn, LITE_group_savepoint, err);
	if (!code)
		code = work(tx, member, &stays, err);
	if (!is_own(code))
		return code;
	stays = stays && !leaves_violation(tx);
	if (sqlite3_get_autocommit(tx->conn->db))
		return err_set(err, IBID_FAILED,
		               "a statement of a script rolled back the transaction of its whole batch");
	code = stays ? IBID_OK : lite_do(tx->conn, LITE_group_undo, err);
	if (!code)
		code = lite_do(tx->conn, LITE_group_release, err);
	member->done = stays;
	return code;
}

/* The transaction is its own: what stops it is, too. */
static enum ibid_code run_alone(struct lite_tx *tx, struct group_member *member,
                                struct ibid_err *err)
{
	enum ibid_code code = work(tx, member, &member->done, err);
	if (!is_own(code))
		return code;
	member->code = code;
	return IBID_OK;
}

static enum ibid_code meet_member(struct lite_tx *tx, struct group_member *member, bool alone,
                                  struct ibid_err *err)
{
	struct claim claim = {.kind = CLAIM_FOUND};
	turn_to(tx, member);
	enum ibid_code code = lite_find_command(tx->conn, member->arena, &member->row.identity,
	                                        &claim.row, err);
	if (code == IBID_NOT_FOUND)
		return (alone ? run_alone : run_member)(tx, member, err);
	if (!code && claim.row.state == COMMAND_COMPLETED)
		member->claim = claim;
	return code;
}

size_t lite_lanes(const struct store *store)
{
	(void)store;
	return 1; /* there is one writer */
}

enum ibid_code lite_run_group(struct store *base, struct group_member **members, size_t count,
                              struct ibid_err *err)
{
	struct lite_tx *tx;
	struct outcome outcome = {0};
	bool any = false;
	enum ibid_code code = lite_tx_open(lite_of(base), &members[0]->row.identity,
	                                   members[0]->context, &tx, err);
	if (code)
		return code;
	for (size_t i = 0; !code && i < count; i++) {
		code = meet_member(tx, members[i], count == 1, err);
		any |= members[i]->done;
	}
	struct tx *open = &tx->base;
	tx->doom.code = IBID_OK; /* the last member's */
	if (!code && any)
		code = lite_tx_commit(&open, members[0]->arena, &outcome, err);
	else
		lite_tx_rollback(&open);
	if (code && count == 1 && is_own(code)) { /* a deferred constraint */
		members[0]->done = false;
		members[0]->code = code;
		members[0]->outcome = outcome;
		return IBID_OK;
	}
	for (size_t i = 0; code && i < count; i++)
		members[i]->done = false;
	return code;
}
