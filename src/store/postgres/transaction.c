/* SPDX-License-Identifier: Apache-2.0 */
/* transaction.c -- the open transaction of one command, from claim to commit.
 *
 * The commit is one trip: what goes ahead, the guard, what was queued, COMMIT. An error before
 * COMMIT keeps it from running, and one of COMMIT itself (a deferred constraint) rolls back: both
 * are definite. A connection that ends before COMMIT's own result was read leaves the outcome
 * unknown (P3, I7): also where another statement's result was still missing, because a proxy may
 * have dropped results that the server had sent. */
#include "store/postgres/postgres.h"

#include <stdlib.h>
#include <string.h>

enum ibid_code pg_tx_new(struct pg_store *store, struct pg_conn *conn,
                         const struct uuid *command_id, struct pg_tx **ret, struct ibid_err *err)
{
	struct pg_tx *tx = calloc(1, sizeof *tx);
	if (!tx) {
		pg_pool_give(store, conn);
		return err_set(err, IBID_NOMEM, "out of memory");
	}
	tx->base.store = &store->base;
	tx->store = store;
	tx->conn = conn;
	uuid_write(*command_id, tx->command_id);
	*ret = tx;
	return IBID_OK;
}

enum ibid_code pg_begin_action(struct store *base, struct tx **ret, struct ibid_err *err)
{
	struct pg_store *store = pg_store_of(base);
	const struct uuid no_command = {{0}};
	struct arena arena = {0};
	const char *values[] = {pg_uuid(&arena, &no_command), pg_int(&arena, store->busy_ms)};
	struct pg_call calls[] = {PG_CALL(BEGIN), PG_CALL(ACT_BEGIN, .values = values)};
	struct pg_conn *conn = NULL;
	struct pg_tx *tx = NULL;
	enum ibid_code code = arena.failed ? err_set(err, IBID_NOMEM, "out of memory")
	                                   : pg_pool_trip(store, calls, 2, &conn, err);
	pg_release(calls, 2);
	arena_release(&arena);
	if (!code)
		code = pg_tx_new(store, conn, &no_command, &tx, err);
	if (!code)
		*ret = &tx->base;
	return code;
}

static void tx_free(struct pg_tx *tx)
{
	pg_pool_give(tx->store, tx->conn);
	arena_release(&tx->arena);
	free(tx);
}

static struct outcome copy_outcome(struct arena *arena, const struct outcome *outcome)
{
	return (struct outcome){
	    .status = outcome->status,
	    .reason = arena_strdup(arena, outcome->reason),
	    .text = arena_strdup(arena, outcome->text),
	    .unique = arena_strdup(arena, outcome->unique),
	};
}

enum ibid_code pg_tx_doom(struct pg_tx *tx, const struct ibid_err *err,
                          const struct outcome *outcome)
{
	if (tx->doom.code)
		return err->code; /* the first reason is the reason */
	tx->doom = *err;
	if (outcome)
		tx->doom_outcome = copy_outcome(&tx->arena, outcome);
	return err->code;
}

enum ibid_code pg_tx_queue(struct pg_tx *tx, struct pg_call call, struct ibid_err *err)
{
	if (tx->queue_count == tx->queue_room) {
		size_t room = tx->queue_room ? tx->queue_room * 2 : 8;
		struct pg_call *queue = arena_array(&tx->arena, room, sizeof *queue);
		if (queue && tx->queue_count)
			memcpy(queue, tx->queue, tx->queue_count * sizeof *queue);
		if (queue) {
			tx->queue = queue;
			tx->queue_room = room;
		}
	}
	if (tx->arena.failed) {
		err_set(err, IBID_NOMEM, "out of memory");
		return pg_tx_doom(tx, err, NULL);
	}
	tx->queue[tx->queue_count++] = call;
	return IBID_OK;
}

/* ---- Lending -------------------------------------------------------------------------------- */

/* Back to P1. The handler may have left anything behind: a transaction of its own, a pipeline,
 * unread results. Only what can still be our transaction goes on; the guard of commit has the last
 * word. */
static void take_back(struct pg_tx *tx)
{
	PGconn *link = tx->conn->link;
	PGTransactionStatusType status = PQtransactionStatus(link);
	if (PQpipelineStatus(link) != PQ_PIPELINE_OFF && !PQexitPipelineMode(link))
		tx->conn->broken = true;
	if (!PQenterPipelineMode(link))
		tx->conn->broken = true;
	if (PQstatus(link) == CONNECTION_BAD) {
		tx->conn->broken = true;
		return; /* lost, which is not the handler's fault */
	}
	if (tx->conn->broken || (status != PQTRANS_INTRANS && status != PQTRANS_INERROR)) {
		struct ibid_err err;
		err_set(&err, IBID_MISUSE, "the handler ended the transaction");
		(void)pg_tx_doom(tx, &err, NULL);
	}
}

void *pg_lend(struct tx *base, bool lent)
{
	struct pg_tx *tx = pg_tx_of(base);
	if (lent == tx->lent)
		return lent ? tx->conn->link : NULL;
	tx->lent = lent;
	if (!lent) {
		take_back(tx);
		return NULL;
	}
	if (!tx->conn->broken && !PQexitPipelineMode(tx->conn->link))
		tx->conn->broken = true;
	return tx->conn->link;
}

enum ibid_code pg_check_tx(struct tx *base, struct ibid_err *err)
{
	struct pg_tx *tx = pg_tx_of(base);
	const char *guard[] = {tx->command_id};
	struct pg_call call = PG_CALL(GUARD, .values = guard);
	struct pg_trip trip;
	enum ibid_code code = IBID_OK;
	if (tx->doom.code == IBID_MISUSE) {
		*err = tx->doom;
		return err->code;
	}
	if (tx->conn->broken || PQtransactionStatus(tx->conn->link) != PQTRANS_INTRANS)
		return IBID_OK;
	if (!pg_trip(tx->conn, &call, 1, &trip))
		code = pg_error(tx->conn, pg_trip_error(tx->conn, &call, 1, &trip), err);
	pg_release(&call, 1);
	return code;
}

/* ---- Ending --------------------------------------------------------------------------------- */

/* COMMIT of a transaction that had failed succeeds, with this tag. */
static bool was_rolled_back(const PGresult *result)
{
	return strcmp(PQcmdStatus((PGresult *)result), "COMMIT") != 0;
}

/* A script may raise what else a lost connection is called. It was told as an error, and all
 * behind it was answered, too: COMMIT was not run. */
static bool was_refused(const struct pg_tx *tx, const struct pg_trip *trip, const PGresult *result)
{
	const char *severity = PQresultErrorField(result, PG_DIAG_SEVERITY_NONLOCALIZED);
	return tx->ahead && trip->done < tx->ahead->count && !tx->conn->broken && severity &&
	       strcmp(severity, "ERROR") == 0;
}

static enum ibid_code judge(struct pg_tx *tx, const struct pg_call *calls, size_t count,
                            const struct pg_trip *trip, struct arena *arena, struct outcome *ret,
                            struct ibid_err *err)
{
	const PGresult *result = trip->done < count ? calls[trip->done].result : NULL;
	if (trip->done == count && !was_rolled_back(calls[count - 1].result))
		return IBID_OK;
	if (trip->done == count)
		return err_set(err, IBID_FAILED, "the transaction had failed and was rolled back");
	/* Trying to send COMMIT may have sent it, also where libpq reported a failure. */
	bool sent = trip->queued >= count - 1;
	bool fatal = pg_error_is_fatal(tx->conn, result), refused = was_refused(tx, trip, result);
	enum ibid_code code = pg_error_outcome(tx->conn, result, arena, ret, err);
	tx->conn->broken |= fatal;
	if (!fatal || !sent || refused)
		return code;
	err->code = IBID_UNKNOWN;
	err->next = err_next_of(IBID_UNKNOWN);
	return err_prefix(err, "the commit was sent and did not report success");
}

static enum ibid_code commit(struct pg_tx *tx, struct arena *arena, struct outcome *ret,
                             struct ibid_err *err)
{
	const char *guard[] = {tx->command_id};
	size_t ahead = tx->ahead ? tx->ahead->count : 0, count = ahead + tx->queue_count + 2;
	struct pg_trip trip;
	struct pg_call *calls = arena_array(&tx->arena, count, sizeof *calls);
	if (!calls)
		return err_set(err, IBID_NOMEM, "out of memory");
	if (ahead)
		memcpy(calls, tx->ahead->calls, ahead * sizeof *calls);
	calls[ahead] = PG_CALL(GUARD, .values = guard);
	if (tx->queue_count)
		memcpy(calls + ahead + 1, tx->queue, tx->queue_count * sizeof *calls);
	calls[count - 1] = PG_CALL(COMMIT);
	(void)!pg_trip(tx->conn, calls, count, &trip);
	enum ibid_code code = judge(tx, calls, count, &trip, arena, ret, err);
	for (size_t i = 0; i < ahead; i++) {
		tx->ahead->calls[i].result = calls[i].result;
		calls[i].result = NULL;
	}
	if (ahead)
		tx->ahead->done = trip.done < ahead ? trip.done : ahead;
	pg_release(calls, count);
	return code;
}

enum ibid_code pg_commit(struct tx **base, struct arena *arena, struct outcome *ret,
                         struct ibid_err *err)
{
	struct pg_tx *tx = pg_tx_of(*base);
	enum ibid_code code;
	*base = NULL;
	(void)pg_lend(&tx->base, false);
	if (tx->doom.code) {
		*err = tx->doom;
		*ret = copy_outcome(arena, &tx->doom_outcome);
		code = err->code;
	} else {
		code = commit(tx, arena, ret, err);
	}
	tx_free(tx);
	return code;
}

void pg_rollback(struct tx **base)
{
	if (!*base)
		return;
	struct pg_tx *tx = pg_tx_of(*base);
	*base = NULL;
	(void)pg_lend(&tx->base, false);
	tx_free(tx);
}
