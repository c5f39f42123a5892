/* SPDX-License-Identifier: Apache-2.0 */
/* claim.c -- who may run a command, and what became of one.
 *
 * The writer lock makes claims exclusive: between the look inside it and the end of the transaction
 * nobody else can write the row. A completed command, and one in progress, is answered by a reader
 * alone. */
#include "store/sqlite/lite.h"

/* ---- Claim ---------------------------------------------------------------------------------- */

/* IBID_NOT_FOUND without a text when there is none. */
static enum ibid_code look(struct lite_store *store, struct arena *arena,
                           const struct identity *identity, struct command_row *ret,
                           struct ibid_err *err)
{
	/* A reader's cache is empty after every commit; the writer's is not. */
	struct lite_conn *conn = lite_writer_borrow(store);
	bool borrowed = conn;
	enum ibid_code code = borrowed ? IBID_OK : lite_reader_take(store, &conn, err);
	if (code)
		return code;
	code = lite_find_command(conn, arena, identity, ret, err);
	if (borrowed)
		lite_writer_return(store);
	else
		lite_reader_give(store, conn);
	return code;
}

static enum ibid_code claim_inside(struct lite_tx *tx, struct arena *arena,
                                   const struct identity *identity, struct claim *ret,
                                   struct ibid_err *err)
{
	enum ibid_code code = lite_find_command(tx->conn, arena, identity, &ret->row, err);
	if (code && code != IBID_NOT_FOUND)
		return code;
	ret->kind = code ? CLAIM_FREE : CLAIM_FOUND;
	if (ret->kind == CLAIM_FOUND && !command_gives_way(&ret->row, &tx->context))
		tx->context.command_id = ret->row.id;
	return IBID_OK;
}

/* A completed row that does not give way does not change any more, and one in progress is nobody's
 * but its worker's. */
static bool decided_by_looking(const struct command_row *row, const struct work_context *context)
{
	return (row->state == COMMAND_COMPLETED && !command_gives_way(row, context)) ||
	       (row->state == COMMAND_IN_PROGRESS && !context->holds_lease);
}

enum ibid_code lite_claim(struct store *base, struct arena *arena, const struct identity *identity,
                          const struct work_context *context, struct claim *ret,
                          struct ibid_err *err)
{
	struct lite_store *store = lite_of(base);
	struct claim claim = {.kind = CLAIM_FOUND};
	struct lite_tx *tx = NULL;
	enum ibid_code code = look(store, arena, identity, &claim.row, err);
	if (code && code != IBID_NOT_FOUND)
		return code;
	if (code || !decided_by_looking(&claim.row, context)) {
		if (lite_runs(store, identity)) {
			*ret = (struct claim){.kind = CLAIM_BUSY};
			return IBID_OK;
		}
		code = lite_tx_open(store, identity, context, &tx, err);
		if (code)
			return code;
		claim.tx = &tx->base;
		code = claim_inside(tx, arena, identity, &claim, err);
	}
	if (code || (claim.kind == CLAIM_FOUND && decided_by_looking(&claim.row, context)))
		lite_tx_rollback(&claim.tx);
	if (!code)
		*ret = claim;
	return code;
}

/* ---- Resolve -------------------------------------------------------------------------------- */

static enum ibid_code settle(struct lite_store *store, struct lite_conn *conn, bool found,
                             struct ibid_err *err)
{
	bool stale = store->stale;
	if (found && !stale) {
		lite_write_rollback(store);
		return IBID_OK;
	}
	enum ibid_code code = lite_write_fence(store, conn, err);
	/* After a sync that failed the kernel may hold for clean what never reached the disk: copy what
	 * was found into the file before anybody is told (I10). */
	if (!code && found)
		code = lite_checkpoint(store, err);
	return code;
}

static enum ibid_code look_and_settle(struct lite_store *store, struct lite_conn *conn,
                                      struct arena *arena, const struct identity *identity,
                                      struct claim *ret, struct ibid_err *err)
{
	enum ibid_code code = lite_find_command(conn, arena, identity, &ret->row, err);
	if (code && code != IBID_NOT_FOUND) {
		lite_write_rollback(store);
		return code;
	}
	ret->kind = code ? CLAIM_FREE : CLAIM_FOUND;
	return settle(store, conn, ret->kind == CLAIM_FOUND, err);
}

enum ibid_code lite_resolve(struct store *base, struct arena *arena,
                            const struct identity *identity, int64_t wait_us, struct claim *ret,
                            struct ibid_err *err)
{
	struct lite_store *store = lite_of(base);
	struct claim claim = {.kind = CLAIM_BUSY};
	struct lite_conn *conn;
	enum ibid_code code = lite_write_begin(store, wait_us, &conn, err);
	if (!code)
		code = look_and_settle(store, conn, arena, identity, &claim, err);
	else if (code == IBID_BUSY)
		code = IBID_OK;
	if (!code)
		*ret = claim;
	return code;
}
