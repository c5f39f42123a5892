/* SPDX-License-Identifier: Apache-2.0 */
/* adopt.c -- a command in a transaction that the caller owns, on the caller's connection.
 *
 * The functions of the SQL API are the ledger here, and this is a client of them like any other:
 * they decide by the kept contract, write with their owner's rights for a role that has the tenant
 * only, and refuse the commit of what is unfinished. Statements are unnamed, one round trip each,
 * behind a savepoint of ours, so that one that fails does not take the caller's transaction along.
 */
#include "store/postgres/postgres.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

struct pg_adopted {
	struct tx base;
	struct pg_store *store;
	struct pg_conn conn; /* only its link, the caller's, and what errors mean on it */
};

static struct pg_adopted *adopted_of(struct tx *tx)
{
	return (struct pg_adopted *)tx;
}

/* ---- Whose transaction it is ---------------------------------------------------------------- */

static enum ibid_code check_transaction(PGconn *link, struct ibid_err *err)
{
	if (PQstatus(link) != CONNECTION_OK)
		return err_set(err, IBID_UNAVAILABLE, "the connection to PostgreSQL was lost");
	if (PQpipelineStatus(link) != PQ_PIPELINE_OFF)
		return err_set(
		    err, IBID_MISUSE,
		    "the connection is in pipeline mode: leave it with PQexitPipelineMode first");
	switch (PQtransactionStatus(link)) {
	case PQTRANS_INTRANS: return IBID_OK;
	case PQTRANS_IDLE:
		return err_set(err, IBID_MISUSE,
		               "no transaction is open on the connection: run `begin` first");
	case PQTRANS_INERROR:
		return err_set(err, IBID_MISUSE,
		               "the transaction has failed: roll back, to a savepoint at least, first");
	default:
		return err_set(err, IBID_MISUSE,
		               "a query is running on the connection: read its results first");
	}
}

static enum ibid_code check_encoding(PGconn *link, struct ibid_err *err)
{
	const char *encoding = PQparameterStatus(link, "client_encoding");
	if (encoding && strcmp(encoding, "UTF8") == 0)
		return IBID_OK;
	return err_set(err, IBID_MISUSE, "the connection's client_encoding is %s: set it to UTF8",
	               encoding ? encoding : "not known");
}

enum ibid_code pg_adopt(struct store *base, void *connection, struct tx **ret, struct ibid_err *err)
{
	if (!connection)
		return err_set(err, IBID_MISUSE, "no connection was given");
	enum ibid_code code = check_transaction(connection, err);
	if (!code)
		code = check_encoding(connection, err);
	if (code)
		return code;
	struct pg_adopted *adopted = calloc(1, sizeof *adopted);
	if (!adopted)
		return err_set(err, IBID_NOMEM, "out of memory");
	*adopted = (struct pg_adopted){
	    {base}, pg_store_of(base), {.link = connection, .hook = &base->hook}};
	*ret = &adopted->base;
	return IBID_OK;
}

void pg_release_adopted(struct tx **tx)
{
	free(*tx);
	*tx = NULL;
}

/* ---- One call ------------------------------------------------------------------------------- */

/* NULL without memory, or where a hook lost the connection; anything but a success has its error in
 * it. */
static PGresult *ask(struct pg_adopted *adopted, enum pg_statement_name name,
                     const char *const *values)
{
	const struct pg_statement *statement = &pg_statements[name];
	if (pg_hook_fails(&adopted->conn, HOOK_BEFORE, statement->file))
		return PQexec(adopted->conn.link, pg_statements[STATEMENT_HOOK_RAISE].sql);
	PGresult *result = PQexecParams(adopted->conn.link, statement->sql, statement->param_count,
	                                NULL, values, NULL, NULL, 0);
	if (pg_hook_fails(&adopted->conn, HOOK_AFTER, statement->file)) {
		PQclear(result);
		result = NULL;
	}
	return result;
}

static bool succeeded(const PGresult *result)
{
	ExecStatusType status = PQresultStatus(result);
	return status == PGRES_TUPLES_OK || status == PGRES_COMMAND_OK;
}

static enum ibid_code explain(struct pg_adopted *adopted, const PGresult *result,
                              struct ibid_err *err)
{
	const char *sqlstate = PQresultErrorField(result, PG_DIAG_SQLSTATE);
	if (sqlstate && strcmp(sqlstate, "25006") == 0)
		return err_set(err, IBID_MISUSE, "the transaction is read-only: begin one that may write");
	enum ibid_code code = pg_error(&adopted->conn, result, err);
	return code == IBID_RETRY ? err_prefix(err, "roll your transaction back and run it again")
	                          : code;
}

static enum ibid_code run(struct pg_adopted *adopted, enum pg_statement_name name,
                          const char *const *values, struct ibid_err *err)
{
	PGresult *result = ask(adopted, name, values);
	enum ibid_code code = succeeded(result) ? IBID_OK : explain(adopted, result, err);
	PQclear(result);
	return code;
}

/* After a failure the caller's transaction is as it was. */
static enum ibid_code settle(struct pg_adopted *adopted, enum ibid_code code, struct ibid_err *err)
{
	struct ibid_err ignored;
	if (!code)
		return run(adopted, STATEMENT_ADOPT_KEEP, NULL, err);
	if (run(adopted, STATEMENT_ADOPT_UNDO, NULL, &ignored) == IBID_OK)
		(void)!run(adopted, STATEMENT_ADOPT_KEEP, NULL, &ignored);
	return code;
}

/* ---- Where it is ---------------------------------------------------------------------------- */

static enum ibid_code place_of_store(struct pg_store *store, int64_t *ret, struct ibid_err *err)
{
	struct pg_call call = PG_CALL(ADOPT_PLACE);
	enum ibid_code code = pg_pool_query(store, &call, 1, err);
	if (!code)
		*ret = pg_cell_int(call.result, 0, 0);
	pg_release(&call, 1);
	return code;
}

/* A server that was started again is another one until the store, too, is asked again. */
static enum ibid_code check_place(struct pg_adopted *adopted, struct ibid_err *err)
{
	struct pg_store *store = adopted->store;
	int64_t known = atomic_load(&store->place);
	PGresult *result = ask(adopted, STATEMENT_ADOPT_PLACE, NULL);
	enum ibid_code code = succeeded(result) ? IBID_OK : explain(adopted, result, err);
	int64_t place = code ? 0 : pg_cell_int(result, 0, 0);
	PQclear(result);
	if (!code && place != known) {
		code = place_of_store(store, &known, err);
		atomic_store(&store->place, known);
	}
	if (!code && place != known)
		code = err_set(err, IBID_MISUSE,
		               "the connection is to database %s, which is not that of the store",
		               PQdb(adopted->conn.link));
	return code;
}

/* ---- Begin ---------------------------------------------------------------------------------- */

enum column {
	COLUMN_DECISION,
	COLUMN_ID,
	COLUMN_STATUS,
	COLUMN_BODY,
	COLUMN_OUTCOME,
	COLUMN_REASON,
	COLUMN_MESSAGE,
	COLUMN_RESOURCE_TYPE,
	COLUMN_RESOURCE_ID,
	COLUMN_FIRST,
	COLUMN_EXPIRES,
	COLUMN_CORRECTABLE,
};

/* Decisions of command_begin. */
static const struct {
	const char *decision;
	enum verdict verdict;
} verdicts[] = {
    {"execute", VERDICT_RUN},
    {"rejected", VERDICT_RUN}, /* and ended at once */
    {"replay", VERDICT_REPLAY},
    {"conflict", VERDICT_CONFLICT},
    {"in_progress", VERDICT_IN_PROGRESS},
    {"unknown", VERDICT_UNKNOWN},
    {"expired", VERDICT_EXPIRED},
};

static enum ibid_code read_verdict(const char *decision, enum verdict *ret, struct ibid_err *err)
{
	for (size_t i = 0; i < sizeof verdicts / sizeof *verdicts; i++) {
		if (strcmp(decision, verdicts[i].decision) == 0) {
			*ret = verdicts[i].verdict;
			return IBID_OK;
		}
	}
	return err_set(err, IBID_SCHEMA, "the store has the unknown decision %s; upgrade ibid",
	               decision);
}

static enum command_state read_state(const PGresult *result)
{
	const char *outcome = pg_cell(result, 0, COLUMN_OUTCOME);
	if (!outcome)
		return COMMAND_IN_PROGRESS;
	return strcmp(outcome, "rejected") == 0 ? COMMAND_REJECTED : COMMAND_COMPLETED;
}

static enum ibid_code read_begun(const PGresult *result, struct arena *arena,
                                 const struct identity *identity, struct begun *ret,
                                 struct ibid_err *err)
{
	const char *outcome = pg_cell(result, 0, COLUMN_OUTCOME);
	*ret = (struct begun){
	    .row = {.identity = *identity,
	            .id = pg_cell_uuid(result, 0, COLUMN_ID),
	            .state = read_state(result),
	            .scheme = pg_cell_bool(result, 0, COLUMN_CORRECTABLE) ? SCHEME_UNBOUND : 1,
	            .linked = outcome && strcmp(outcome, "linked") == 0,
	            .status = (int)pg_cell_int(result, 0, COLUMN_STATUS),
	            .body = pg_cell_text(arena, result, 0, COLUMN_BODY),
	            .body_size = (size_t)PQgetlength(result, 0, COLUMN_BODY),
	            .reason = pg_cell_text(arena, result, 0, COLUMN_REASON),
	            .text = pg_cell_text(arena, result, 0, COLUMN_MESSAGE),
	            .resource_type = pg_cell_text(arena, result, 0, COLUMN_RESOURCE_TYPE),
	            .resource_id = pg_cell_text(arena, result, 0, COLUMN_RESOURCE_ID),
	            .created_us = pg_cell_int(result, 0, COLUMN_FIRST),
	            .expires_us = pg_cell_int(result, 0, COLUMN_EXPIRES)},
	};
	if (arena->failed)
		return err_set(err, IBID_NOMEM, "out of memory");
	return read_verdict(PQgetvalue(result, 0, COLUMN_DECISION), &ret->verdict, err);
}

static enum ibid_code begin(struct pg_adopted *adopted, struct arena *arena,
                            const struct beginning *beginning, struct begun *ret,
                            struct ibid_err *err)
{
	const struct identity *identity = &beginning->identity;
	const char *values[] = {
	    identity->tenant,        identity->operation,
	    identity->key,           beginning->payload,
	    beginning->client,       beginning->actor,
	    beginning->resource,     beginning->correlation_id,
	    beginning->causation_id, pg_int(arena, beginning->contract_version),
	    beginning->traceparent,  beginning->tracestate,
	};
	if (arena->failed)
		return err_set(err, IBID_NOMEM, "out of memory");
	enum ibid_code code = check_place(adopted, err);
	if (code)
		return code;
	PGresult *result = ask(adopted, STATEMENT_ADOPT_BEGIN, values);
	code = succeeded(result) ? read_begun(result, arena, identity, ret, err)
	                         : explain(adopted, result, err);
	PQclear(result);
	return code;
}

enum ibid_code pg_begin_adopted(struct tx *tx, struct arena *arena,
                                const struct beginning *beginning, struct begun *ret,
                                struct ibid_err *err)
{
	struct pg_adopted *adopted = adopted_of(tx);
	struct begun begun = {.verdict = VERDICT_RUN};
	enum ibid_code code = run(adopted, STATEMENT_ADOPT_MARK, NULL, err);
	if (!code)
		code = settle(adopted, begin(adopted, arena, beginning, &begun, err), err);
	if (!code)
		*ret = begun;
	return code;
}

/* ---- Finish --------------------------------------------------------------------------------- */

/* An event that is refused is told by its reason. The ledger has checked what emit checks: if it is
 * used wrongly all the same, it is because the command is not open. */
static enum ibid_code emit_failed(struct pg_adopted *adopted, const PGresult *result,
                                  struct ibid_err *err)
{
	struct arena arena = {0};
	struct outcome outcome;
	enum ibid_code code = pg_error_outcome(&adopted->conn, result, &arena, &outcome, err);
	const char *sqlstate = PQresultErrorField(result, PG_DIAG_SQLSTATE);
	if (sqlstate && strcmp(sqlstate, "IB003") == 0)
		code = err_set(err, IBID_MISUSE,
		               "%s: what began the command was rolled back, or it was finished before",
		               outcome.text ? outcome.text : "");
	else if (code == IBID_REJECTED)
		code = err_set(err, IBID_FAILED, "%s: %s", outcome.reason,
		               outcome.text ? outcome.text : "");
	else if (code == IBID_RETRY)
		err_prefix(err, "roll your transaction back and run it again");
	arena_release(&arena);
	return code;
}

static enum ibid_code emit(struct pg_adopted *adopted, const struct event_row *event,
                           struct ibid_err *err)
{
	struct arena arena = {0};
	const char *values[] = {
	    event->aggregate_type,
	    event->aggregate_id,
	    event->type,
	    event->payload,
	    pg_int(&arena, event->version),
	    event->key,
	    pg_uuid(&arena, &event->command_id),
	};
	enum ibid_code code = IBID_OK;
	if (arena.failed) {
		code = err_set(err, IBID_NOMEM, "out of memory");
	} else {
		PGresult *result = ask(adopted, STATEMENT_ADOPT_EMIT, values);
		if (!succeeded(result))
			code = emit_failed(adopted, result, err);
		PQclear(result);
	}
	arena_release(&arena);
	return code;
}

static enum ibid_code end(struct pg_adopted *adopted, struct arena *arena,
                          const struct finishing *ending, struct ibid_err *err)
{
	const struct outcome *outcome = ending->outcome;
	const char *id = pg_uuid(arena, &ending->row->id), *status = pg_int(arena, outcome->status);
	if (arena->failed)
		return err_set(err, IBID_NOMEM, "out of memory");
	if (ending->row->state == COMMAND_COMPLETED) {
		const char *values[] = {id,
		                        status,
		                        outcome->body,
		                        outcome->resource_type,
		                        outcome->resource_id,
		                        ending->row->linked ? "true" : "false"};
		return run(adopted, STATEMENT_ADOPT_COMPLETE, values, err);
	}
	if (ending->by_failure) {
		const char *values[] = {id, outcome->text};
		return run(adopted, STATEMENT_ADOPT_FAIL, values, err);
	}
	const char *values[] = {id, outcome->reason, status, outcome->text};
	return run(adopted, STATEMENT_ADOPT_REJECT, values, err);
}

enum ibid_code pg_finish_adopted(struct tx *tx, const struct finishing *ending,
                                 struct ibid_err *err)
{
	struct pg_adopted *adopted = adopted_of(tx);
	struct arena arena = {0};
	enum ibid_code code = check_transaction(adopted->conn.link, err);
	if (!code)
		code = run(adopted, STATEMENT_ADOPT_MARK, NULL, err);
	if (code)
		return code;
	for (size_t i = 0; !code && i < ending->event_count; i++)
		code = emit(adopted, &ending->events[i], err);
	if (!code)
		code = end(adopted, &arena, ending, err);
	arena_release(&arena);
	return settle(adopted, code, err);
}
