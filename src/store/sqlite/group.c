/* SPDX-License-Identifier: Apache-2.0 */
/* group.c -- several commands in one transaction of the writer, each behind a savepoint.
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

/* Codes as of the verbs; `*ret_stays`: its work may be released. */
static enum ibid_code work(struct lite_tx *tx, struct group_member *member, bool *ret_stays,
                           struct ibid_err *err)
{
	enum ibid_code code = lite_run_script(&tx->base, member->arena, member->script, member->values,
	                                      &member->outcome, err);
	if (code || !member->complete(member))
		return code;
	code = store_put_audit(&tx->base, &member->audit, err);
	if (!code)
		code = lite_put_command(&tx->base, &member->row, NULL, err);
	*ret_stays = !code && !leaves_violation(tx);
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
	if (sqlite3_get_autocommit(tx->conn->db))
		return err_set(err, IBID_FAILED,
		               "a statement of a script rolled back the transaction of its whole batch");
	code = stays ? IBID_OK : lite_do(tx->conn, LITE_group_undo, err);
	if (!code)
		code = lite_do(tx->conn, LITE_group_release, err);
	member->done = stays;
	return code;
}

static enum ibid_code meet_member(struct lite_tx *tx, struct group_member *member,
                                  struct ibid_err *err)
{
	struct claim claim = {.kind = CLAIM_FOUND};
	turn_to(tx, member);
	enum ibid_code code = lite_find_command(tx->conn, member->arena, &member->row.identity,
	                                        &claim.row, err);
	if (code == IBID_NOT_FOUND)
		return run_member(tx, member, err);
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
	struct outcome ignored = {0};
	bool any = false;
	enum ibid_code code = lite_tx_open(lite_of(base), &members[0]->row.identity,
	                                   members[0]->context, &tx, err);
	if (code)
		return code;
	for (size_t i = 0; !code && i < count; i++) {
		code = meet_member(tx, members[i], err);
		any |= members[i]->done;
	}
	struct tx *open = &tx->base;
	tx->doom.code = IBID_OK; /* the last member's */
	if (!code && any)
		code = lite_tx_commit(&open, members[0]->arena, &ignored, err);
	else
		lite_tx_rollback(&open);
	for (size_t i = 0; code && i < count; i++)
		members[i]->done = false;
	return code;
}
