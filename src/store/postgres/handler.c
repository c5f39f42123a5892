/* SPDX-License-Identifier: Apache-2.0 */
/* handler.c -- a handler's script: made once, run in the command's transaction, in one trip.
 *
 * Each statement gets only its own parameters, always typed: so what a value means never depends on
 * where it stands. The last row of the last statement is the answer. */
#include "store/postgres/postgres.h"
#include "store/script.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

/* Object ids of pg_catalog's types: fixed for as long as PostgreSQL has had them. */
static const Oid type_oids[] = {
    [PARAM_TEXT] = 25,   [PARAM_INTEGER] = 20,   [PARAM_DECIMAL] = 1700, [PARAM_BOOLEAN] = 16,
    [PARAM_DATE] = 1082, [PARAM_INSTANT] = 1184, [PARAM_JSON] = 3802,    [PARAM_UUID] = 2950,
};

static const Oid *types_of(struct arena *arena, const struct script_statement *part,
                           const struct param_spec *params)
{
	Oid *types = arena_array(arena, part->param_count, sizeof *types);
	for (size_t i = 0; types && i < part->param_count; i++)
		types[i] = type_oids[params[part->params[i]].type];
	return types;
}

static enum ibid_code build(struct script *script, const char *file, const char *text,
                            const struct param_spec *params, size_t count, struct ibid_err *err)
{
	struct arena *arena = &script->arena;
	struct script_statements *parts = &script->parts;
	enum ibid_code code = script_split(arena, DIALECT_POSTGRES, file, text, params, count, parts,
	                                   err);
	if (code)
		return code;
	script->file = arena_strdup(arena, file);
	script->names = arena_array(arena, count, sizeof *script->names);
	for (size_t i = 0; script->names && i < count; i++)
		script->names[i] = arena_strdup(arena, params[i].name);
	script->statements = arena_array(arena, parts->count, sizeof *script->statements);
	script->asks = arena_alloc(arena, sizeof *script->asks);
	if (script->asks)
		atomic_init(script->asks, false);
	for (size_t i = 0; !arena->failed && i < parts->count; i++) {
		script->statements[i] = (struct pg_statement){
		    .sql = parts->items[i].sql,
		    .param_count = (int)parts->items[i].param_count,
		    .types = types_of(arena, &parts->items[i], params),
		};
		if (!pg_statement_register(&script->statements[i]))
			return err_set(err, IBID_NOMEM, "out of memory");
		script->sets |= parts->items[i].sets;
		script->leaves_state |= parts->items[i].leaves_state;
	}
	return arena->failed ? err_set(err, IBID_NOMEM, "out of memory") : IBID_OK;
}

enum ibid_code pg_make_script(struct store *store, const char *file, const char *text,
                              const struct param_spec *params, size_t count, struct script **ret,
                              struct ibid_err *err)
{
	struct script *script = calloc(1, sizeof *script);
	if (!script)
		return err_set(err, IBID_NOMEM, "out of memory");
	(void)store;
	enum ibid_code code = build(script, file, text, params, count, err);
	if (code)
		pg_free_script(store, script);
	else
		*ret = script;
	return code;
}

void pg_free_script(struct store *store, struct script *script)
{
	(void)store;
	if (!script)
		return;
	arena_release(&script->arena);
	free(script);
}

/* ---- The answer ----------------------------------------------------------------------------- */

static enum ibid_code read_status(const char *text, int *ret)
{
	char *end;
	errno = 0;
	long status = text ? strtol(text, &end, 10) : 0;
	if (!text || end == text || *end || errno || status < INT_MIN || status > INT_MAX)
		return IBID_FAILED;
	*ret = (int)status;
	return IBID_OK;
}

enum { ANSWER_STATUS, ANSWER_BODY, ANSWER_RESOURCE_TYPE, ANSWER_RESOURCE_ID, ANSWER_COLUMNS };

static int answer_column(const char *name)
{
	static const char *const names[ANSWER_COLUMNS] = {"status", "body", "resource_type",
	                                                  "resource_id"};
	int column = 0;
	while (column < ANSWER_COLUMNS && strcmp(name, names[column]) != 0)
		column++;
	return column;
}

enum ibid_code pg_check_answer(const PGresult *result, struct ibid_err *err)
{
	if (PQfnumber(result, "status") < 0)
		return err_set(err, IBID_FAILED, "the answer has no column status");
	for (int column = 0; column < PQnfields(result); column++)
		if (answer_column(PQfname(result, column)) == ANSWER_COLUMNS)
			return err_set(err, IBID_FAILED,
			               "the answer has a column %s; known are status, body, resource_type and "
			               "resource_id",
			               PQfname(result, column));
	return IBID_OK;
}

static enum ibid_code read_column(struct arena *arena, const PGresult *result, int row, int column,
                                  struct outcome *ret, struct ibid_err *err)
{
	const char *text = pg_cell(result, row, column);
	switch (answer_column(PQfname(result, column))) {
	case ANSWER_STATUS:
		return read_status(text, &ret->status)
		           ? err_set(err, IBID_FAILED, "the answer's status is not a number")
		           : IBID_OK;
	case ANSWER_RESOURCE_TYPE: ret->resource_type = arena_strdup(arena, text); break;
	case ANSWER_RESOURCE_ID: ret->resource_id = arena_strdup(arena, text); break;
	default:
		ret->body = arena_strdup(arena, text);
		ret->body_size = text ? (size_t)PQgetlength(result, row, column) : 0;
	}
	return IBID_OK;
}

enum ibid_code pg_read_answer(struct arena *arena, const PGresult *result, struct outcome *ret,
                              struct ibid_err *err)
{
	struct outcome outcome = {0};
	int row = PQntuples(result) - 1;
	if (row < 0)
		return IBID_OK;
	enum ibid_code code = pg_check_answer(result, err);
	for (int column = 0; !code && column < PQnfields(result); column++)
		code = read_column(arena, result, row, column, &outcome, err);
	if (code)
		return code;
	if (arena->failed)
		return err_set(err, IBID_NOMEM, "out of memory");
	outcome.found = true;
	*ret = outcome;
	return IBID_OK;
}

/* ---- Running -------------------------------------------------------------------------------- */

const char **pg_script_values(struct arena *arena, const struct script_statement *part,
                              const char *const *values)
{
	const char **own = arena_array(arena, part->param_count, sizeof *own);
	for (size_t k = 0; own && k < part->param_count; k++)
		own[k] = values[part->params[k]];
	return own;
}

/* One trip: what was queued, so that events keep the order in which they were asked for; the
 * script, between what makes it a query where it is one. */
struct run {
	struct pg_call *calls;
	size_t count;
	size_t first, last; /* statements of the script among the calls */
};

enum { QUERY_BEFORE = 2, QUERY_AFTER = 2 };

static bool make_run(struct pg_tx *tx, struct arena *arena, const struct script *script,
                     const char *const *values, bool query, struct run *ret)
{
	size_t parts = script->parts.count, queued = tx->queue_count;
	size_t first = queued + (query ? QUERY_BEFORE : 0), last = first + parts - 1;
	size_t count = last + 1 + (query ? QUERY_AFTER : 0);
	struct pg_call *calls = arena_array(arena, count, sizeof *calls);
	if (calls && queued)
		memcpy(calls, tx->queue, queued * sizeof *calls);
	if (calls && query) {
		calls[queued] = PG_CALL(QUERY_SAVEPOINT);
		calls[queued + 1] = PG_CALL(QUERY_READ_ONLY);
		calls[last + 1] = PG_CALL(QUERY_UNDO);
		calls[last + 2] = PG_CALL(QUERY_RELEASE);
	}
	for (size_t i = 0; calls && i < parts; i++) {
		const struct script_statement *part = &script->parts.items[i];
		const char **own = pg_script_values(arena, part, values);
		calls[first + i] = (struct pg_call){&script->statements[i], own, NULL};
	}
	*ret = (struct run){calls, count, first, last};
	return calls && !arena->failed;
}

/* Say where in the file; what a person reads about a failure says it too. */
static enum ibid_code place(struct arena *arena, const struct script *script, int line,
                            struct outcome *ret, struct ibid_err *err)
{
	err_prefix(err, "%s:%d", script->file, line);
	if (err->code == IBID_FAILED)
		ret->text = arena_strdup(arena, err->text);
	return err->code;
}

enum ibid_code pg_script_failed(struct arena *arena, const struct script *script, size_t part,
                                const PGresult *result, struct outcome *ret, struct ibid_err *err)
{
	if (err->code == IBID_LIMIT) { /* of the handler's tables, not of ours */
		err->code = IBID_FAILED;
		err->next = err_next_of(IBID_FAILED);
	}
	const struct script_statement *statement = &script->parts.items[part];
	return place(arena, script, statement->line + pg_error_line(result, statement->sql), ret, err);
}

/* It tried to write, which the server refuses as it would on a standby. */
static bool changed_something(const struct run *run, size_t at)
{
	const char *state = PQresultErrorField(run->calls[at].result, PG_DIAG_SQLSTATE);
	return run->count > run->last + 1 && state && strcmp(state, "25006") == 0;
}

static enum ibid_code run_failed(struct pg_tx *tx, struct arena *arena, const struct script *script,
                                 const struct run *run, const struct pg_trip *trip,
                                 struct outcome *ret, struct ibid_err *err)
{
	const PGresult *result = pg_trip_error(tx->conn, run->calls, run->count, trip);
	size_t at = trip->done; /* behind the last one: the connection was lost before the end */
	enum ibid_code code = pg_error_outcome(tx->conn, result, arena, ret, err);
	tx->conn->broken |= pg_error_is_fatal(tx->conn, result);
	if (tx->conn->broken || at < run->first || at > run->last)
		return code;
	size_t part = at - run->first;
	if (changed_something(run, at)) {
		*ret = (struct outcome){0};
		err_set(err, IBID_FAILED, "it may only look, but it changes something");
		return place(arena, script, script->parts.items[part].line, ret, err);
	}
	return pg_script_failed(arena, script, part, result, ret, err);
}

enum run_kind {
	RUN_ANSWERS, /* the last row of the last statement is the answer */
	RUN_PLAIN,   /* nobody wants it */
	RUN_QUERY,   /* it may only look */
};

enum ibid_code pg_read_rows(struct arena *arena, const struct pg_call *calls, size_t count,
                            struct outcome *ret, struct ibid_err *err)
{
	int64_t *rows = arena_array(arena, count, sizeof *rows);
	if (!rows)
		return err_set(err, IBID_NOMEM, "out of memory");
	for (size_t i = 0; i < count; i++)
		rows[i] = strtoll(PQcmdTuples(calls[i].result), NULL, 10); /* "" of what has none */
	ret->rows = rows;
	ret->row_count = count;
	return IBID_OK;
}

static enum ibid_code run_script(struct pg_tx *tx, struct arena *arena, const struct script *script,
                                 const char *const *values, enum run_kind kind, struct outcome *ret,
                                 struct ibid_err *err)
{
	size_t last = script->parts.count - 1;
	struct run run;
	struct pg_trip trip;
	enum ibid_code code;
	if (!make_run(tx, arena, script, values, kind == RUN_QUERY, &run))
		return err_set(err, IBID_NOMEM, "out of memory");
	tx->conn->spoiled |= script->leaves_state;
	if (!pg_trip(tx->conn, run.calls, run.count, &trip)) {
		code = run_failed(tx, arena, script, &run, &trip, ret, err);
		goto out;
	}
	tx->queue_count = 0;
	code = kind == RUN_PLAIN ? IBID_OK
	                         : pg_read_answer(arena, run.calls[run.last].result, ret, err);
	if (!code)
		code = pg_read_rows(arena, run.calls + run.first, script->parts.count, ret, err);
	if (code == IBID_FAILED)
		place(arena, script, script->parts.items[last].line, ret, err);
out:
	pg_release(run.calls, run.count);
	return code;
}

static enum ibid_code run_or_doom(struct tx *base, struct arena *arena, const struct script *script,
                                  const char *const *values, enum run_kind kind,
                                  struct outcome *ret, struct ibid_err *err)
{
	struct pg_tx *tx = pg_tx_of(base);
	struct outcome outcome = {0};
	enum ibid_code code = run_script(tx, arena, script, values, kind, &outcome, err);
	*ret = outcome;
	return code ? pg_tx_doom(tx, err, &outcome) : IBID_OK;
}

enum ibid_code pg_run_script(struct tx *tx, struct arena *arena, const struct script *script,
                             const char *const *values, struct outcome *ret, struct ibid_err *err)
{
	return run_or_doom(tx, arena, script, values, RUN_ANSWERS, ret, err);
}

enum ibid_code pg_run_statements(struct tx *tx, struct arena *arena, const struct script *script,
                                 const char *const *values, struct outcome *ret,
                                 struct ibid_err *err)
{
	return run_or_doom(tx, arena, script, values, RUN_PLAIN, ret, err);
}

enum ibid_code pg_run_query(struct tx *tx, struct arena *arena, const struct script *script,
                            const char *const *values, struct outcome *ret, struct ibid_err *err)
{
	return run_or_doom(tx, arena, script, values, RUN_QUERY, ret, err);
}
