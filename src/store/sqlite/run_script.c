/* SPDX-License-Identifier: Apache-2.0 */
/* run_script.c -- a handler script: statements with named, typed parameters; the last row answers.
 *
 * Statements are prepared when they are first reached, since an earlier one may create what a later
 * one needs, and kept with the connection under the script's id. Ids are never used twice, so that
 * the statements of a freed script can't be taken for another's. */
#include "store/sqlite/run_script.h"

#include "store/sqlite/lite.h"
#include "store/sqlite/unique.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

struct lite_prepared {
	struct lite_prepared *next;
	uint64_t script;
	size_t count;
	sqlite3_stmt *items[]; /* NULL: not reached yet */
};

/* ---- Making --------------------------------------------------------------------------------- */

static struct script *script_new(struct lite_store *store, const char *file,
                                 const struct param_spec *params, size_t count)
{
	struct script *script = calloc(1, sizeof *script);
	if (!script)
		return NULL;
	script->id = atomic_fetch_add(&store->scripts, 1) + 1;
	script->file = arena_strdup(&script->arena, file);
	script->params = arena_array(&script->arena, count, sizeof *script->params);
	script->param_count = count;
	for (size_t i = 0; script->params && i < count; i++) {
		script->params[i].name = arena_strdup(&script->arena, params[i].name);
		script->params[i].type = params[i].type;
	}
	return script;
}

static void script_free(struct script *script)
{
	if (!script)
		return;
	arena_release(&script->arena);
	free(script);
}

enum ibid_code lite_make_script(struct store *base, const char *file, const char *text,
                                const struct param_spec *params, size_t count, struct script **ret,
                                struct ibid_err *err)
{
	struct script *script = script_new(lite_of(base), file, params, count);
	enum ibid_code code = IBID_OK;
	if (!script || script->arena.failed)
		code = err_set(err, IBID_NOMEM, "out of memory");
	if (!code)
		code = script_split(&script->arena, DIALECT_SQLITE, script->file, text, script->params,
		                    count, &script->statements, err);
	if (code)
		script_free(script);
	else
		*ret = script;
	return code;
}

static void prepared_free(struct lite_prepared *prepared)
{
	for (size_t i = 0; i < prepared->count; i++)
		sqlite3_finalize(prepared->items[i]);
	free(prepared);
}

void lite_prepared_free_all(struct lite_conn *conn)
{
	while (conn->scripts) {
		struct lite_prepared *next = conn->scripts->next;
		prepared_free(conn->scripts);
		conn->scripts = next;
	}
}

static void forget(struct lite_conn *conn, uint64_t script)
{
	struct lite_prepared **at = &conn->scripts;
	while (*at && (*at)->script != script)
		at = &(*at)->next;
	struct lite_prepared *found = *at;
	if (found) {
		*at = found->next;
		prepared_free(found);
	}
}

/* Where the writer does not come free, the statements stay until the connection is closed. */
void lite_free_script(struct store *base, struct script *script)
{
	struct lite_store *store = lite_of(base);
	if (!script)
		return;
	if (gate_enter(&store->gate, lite_wait_us(store))) {
		if (store->writer)
			forget(store->writer, script->id);
		gate_leave(&store->gate);
	}
	script_free(script);
}

/* ---- Preparing ------------------------------------------------------------------------------ */

static struct lite_prepared *prepared_of(struct lite_conn *conn, const struct script *script)
{
	struct lite_prepared *prepared = conn->scripts;
	while (prepared && prepared->script != script->id)
		prepared = prepared->next;
	if (prepared)
		return prepared;
	size_t count = script->statements.count;
	prepared = calloc(1, sizeof *prepared + count * sizeof(sqlite3_stmt *));
	if (prepared) {
		prepared->script = script->id;
		prepared->count = count;
		prepared->next = conn->scripts;
		conn->scripts = prepared;
	}
	return prepared;
}

/* ---- Parameters ----------------------------------------------------------------------------- */

static const char *const *value_of(const struct script *script, const char *const *values,
                                   const char *name, enum param_type *ret_type)
{
	for (size_t i = 0; i < script->param_count; i++) {
		if (strcmp(script->params[i].name, name) == 0) {
			*ret_type = script->params[i].type;
			return &values[i];
		}
	}
	return NULL;
}

static bool read_integer(const char *text, sqlite3_int64 *ret)
{
	char *end;
	errno = 0;
	*ret = strtoll(text, &end, 10);
	return !errno && end != text && !*end;
}

/* Exact: a decimal stays text, because SQLite's numbers would round it. False: not such a value. */
static bool bind_value(sqlite3_stmt *stmt, int at, enum param_type type, const char *value)
{
	sqlite3_int64 number;
	if (!value)
		return sqlite3_bind_null(stmt, at) == SQLITE_OK;
	switch (type) {
	case PARAM_INTEGER:
		return read_integer(value, &number) && sqlite3_bind_int64(stmt, at, number) == SQLITE_OK;
	case PARAM_BOOLEAN: return sqlite3_bind_int(stmt, at, strcmp(value, "true") == 0) == SQLITE_OK;
	case PARAM_TEXT:
	case PARAM_DECIMAL:
	case PARAM_DATE:
	case PARAM_INSTANT:
	case PARAM_JSON:
	case PARAM_UUID: break;
	}
	return sqlite3_bind_text(stmt, at, value, -1, SQLITE_STATIC) == SQLITE_OK;
}

static enum ibid_code bind_all(sqlite3_stmt *stmt, const struct script *script,
                               const char *const *values, struct ibid_err *err)
{
	int count = sqlite3_bind_parameter_count(stmt);
	for (int at = 1; at <= count; at++) {
		enum param_type type = PARAM_TEXT;
		const char *name = sqlite3_bind_parameter_name(stmt, at);
		const char *const *value = name ? value_of(script, values, name + 1, &type) : NULL;
		if (!value)
			return err_set(err, IBID_FAILED, "unknown parameter %s", name ? name : "?");
		if (!bind_value(stmt, at, type, *value))
			return err_set(err, IBID_FAILED, "the value of %s can't be bound", name);
	}
	return IBID_OK;
}

/* ---- The answer ----------------------------------------------------------------------------- */

enum { ANSWER_STATUS, ANSWER_BODY, ANSWER_RESOURCE_TYPE, ANSWER_RESOURCE_ID, ANSWER_COLUMNS };

static const char *const answer_names[ANSWER_COLUMNS] = {
    [ANSWER_STATUS] = "status",
    [ANSWER_BODY] = "body",
    [ANSWER_RESOURCE_TYPE] = "resource_type",
    [ANSWER_RESOURCE_ID] = "resource_id",
};

/* The last row so far. */
struct answer {
	bool found;
	sqlite3_value *values[ANSWER_COLUMNS];
};

static void answer_release(struct answer *answer)
{
	for (size_t i = 0; i < ANSWER_COLUMNS; i++)
		sqlite3_value_free(answer->values[i]);
	*answer = (struct answer){.found = false};
}

static int answer_column(const char *name)
{
	int column = 0;
	while (column < ANSWER_COLUMNS && strcasecmp(name, answer_names[column]) != 0)
		column++;
	return column;
}

enum ibid_code lite_answer_check(sqlite3_stmt *stmt, struct ibid_err *err)
{
	bool status = false;
	for (int i = 0; i < sqlite3_column_count(stmt); i++) {
		const char *name = sqlite3_column_name(stmt, i);
		int column = name ? answer_column(name) : ANSWER_COLUMNS;
		if (column == ANSWER_COLUMNS)
			return err_set(err, IBID_FAILED,
			               "the answer has a column %s; it may have status, body, resource_type "
			               "and resource_id",
			               name ? name : "");
		status |= column == ANSWER_STATUS;
	}
	return status ? IBID_OK : err_set(err, IBID_FAILED, "the answer has no column status");
}

static enum ibid_code answer_take(struct answer *answer, sqlite3_stmt *stmt, struct ibid_err *err)
{
	answer_release(answer);
	enum ibid_code code = lite_answer_check(stmt, err);
	for (int i = 0; !code && i < sqlite3_column_count(stmt); i++) {
		sqlite3_value **value = &answer->values[answer_column(sqlite3_column_name(stmt, i))];
		sqlite3_value_free(*value);
		*value = sqlite3_value_dup(sqlite3_column_value(stmt, i));
		if (!*value)
			code = err_set(err, IBID_NOMEM, "out of memory");
	}
	answer->found = !code;
	return code;
}

/* A REAL may have lost digits and a BLOB is no text. */
static enum ibid_code answer_text(const struct answer *answer, int column, struct arena *arena,
                                  const char **ret, size_t *ret_size, struct ibid_err *err)
{
	sqlite3_value *value = answer->values[column];
	int type = value ? sqlite3_value_type(value) : SQLITE_NULL;
	if (type == SQLITE_NULL)
		return IBID_OK;
	if (type != SQLITE_TEXT && type != SQLITE_INTEGER)
		return err_set(err, IBID_FAILED, "the answer's %s is not text", answer_names[column]);
	const char *text = (const char *)sqlite3_value_text(value);
	*ret_size = (size_t)sqlite3_value_bytes(value);
	*ret = text ? arena_strndup(arena, text, *ret_size) : NULL;
	return *ret ? IBID_OK : err_set(err, IBID_NOMEM, "out of memory");
}

static enum ibid_code answer_status(sqlite3_value *value, int *ret, struct ibid_err *err)
{
	sqlite3_int64 status = sqlite3_value_int64(value);
	if (sqlite3_value_type(value) != SQLITE_INTEGER || status < INT_MIN || status > INT_MAX)
		return err_set(err, IBID_FAILED,
		               "the answer's status is not a number (an integer of at most 32 bits)");
	*ret = (int)status;
	return IBID_OK;
}

static enum ibid_code answer_read(const struct answer *answer, struct arena *arena,
                                  struct outcome *ret, struct ibid_err *err)
{
	size_t size;
	if (!answer->found)
		return IBID_OK;
	enum ibid_code code = answer_status(answer->values[ANSWER_STATUS], &ret->status, err);
	ret->found = !code;
	if (!code)
		code = answer_text(answer, ANSWER_BODY, arena, &ret->body, &ret->body_size, err);
	if (!code)
		code = answer_text(answer, ANSWER_RESOURCE_TYPE, arena, &ret->resource_type, &size, err);
	if (!code)
		code = answer_text(answer, ANSWER_RESOURCE_ID, arena, &ret->resource_id, &size, err);
	return code;
}

/* ---- Running -------------------------------------------------------------------------------- */

static enum ibid_code duplicate(struct lite_tx *tx, const char *message, struct ibid_err *err)
{
	tx->conn->mode = LITE_OURS;
	const char *unique;
	enum ibid_code code = lite_unique_name(tx->conn, &tx->arena, message, &unique, err);
	tx->conn->mode = LITE_SCRIPT;
	if (code)
		return code;
	if (!unique)
		return err_set(err, IBID_FAILED, "%s", message);
	tx->doom.unique = unique;
	return err_set(err, IBID_DUPLICATE, "%s", message);
}

/* What stopped a statement: our functions, a unique index, the machine, or the statement itself. */
static enum ibid_code statement_failed(struct lite_tx *tx, int rc, struct ibid_err *err)
{
	enum ibid_code code = lite_code_of(rc);
	const char *message = sqlite3_errmsg(tx->conn->db);
	if (tx->doom.code)
		return err_set(err, tx->doom.code, "%s", tx->doom.text ? tx->doom.text : "");
	if (code != IBID_FAILED)
		return lite_fail(tx->conn, rc, err);
	if (rc == SQLITE_AUTH && tx->conn->refused)
		message = tx->conn->refused;
	if (rc != SQLITE_CONSTRAINT_UNIQUE && rc != SQLITE_CONSTRAINT_PRIMARYKEY)
		return err_set(err, IBID_FAILED, "%s", message);
	const char *kept = arena_strdup(&tx->arena, message);
	return kept ? duplicate(tx, kept, err) : err_set(err, IBID_NOMEM, "out of memory");
}

/* `*ret_rows`: as many as it returned, or changed where it does that. */
static enum ibid_code step_all(struct lite_tx *tx, sqlite3_stmt *stmt, struct answer *answer,
                               int64_t *ret_rows, struct ibid_err *err)
{
	int64_t before = sqlite3_total_changes64(tx->conn->db), rows = 0;
	enum ibid_code code = IBID_OK;
	int rc = lite_conn_step(tx->conn, stmt, "script");
	for (; !code && rc != SQLITE_DONE; rows++, rc = code ? rc : sqlite3_step(stmt)) {
		if (rc != SQLITE_ROW)
			code = statement_failed(tx, rc, err);
		else if (answer)
			code = answer_take(answer, stmt, err);
	}
	if (!sqlite3_stmt_readonly(stmt)) /* other than total_changes, without those of triggers */
		rows = sqlite3_total_changes64(tx->conn->db) == before ? 0
		                                                       : sqlite3_changes64(tx->conn->db);
	*ret_rows = rows;
	if (!code && sqlite3_get_autocommit(tx->conn->db))
		code = err_set(err, IBID_FAILED, "the statement rolled the transaction back");
	return code;
}

struct running {
	struct lite_tx *tx;
	const struct script *script;
	const char *const *values;
	struct lite_prepared *prepared;
};

static enum ibid_code run_statement(const struct running *running, size_t index,
                                    struct answer *answer, int64_t *ret_rows, struct ibid_err *err)
{
	sqlite3_stmt **stmt = &running->prepared->items[index];
	enum ibid_code code = IBID_OK;
	if (!*stmt) {
		int rc = sqlite3_prepare_v3(running->tx->conn->db,
		                            running->script->statements.items[index].sql, -1,
		                            SQLITE_PREPARE_PERSISTENT, stmt, NULL);
		if (rc)
			return statement_failed(running->tx, rc, err);
		if (!*stmt)
			return IBID_OK; /* nothing but comments */
	}
	code = bind_all(*stmt, running->script, running->values, err);
	if (!code)
		code = step_all(running->tx, *stmt, answer, ret_rows, err);
	sqlite3_reset(*stmt);
	sqlite3_clear_bindings(*stmt);
	return code;
}

/* `answer` NULL: nobody wants it. */
static enum ibid_code run_all(const struct running *running, struct answer *answer, int64_t *rows,
                              struct ibid_err *err)
{
	const struct script_statements *statements = &running->script->statements;
	enum ibid_code code = IBID_OK;
	for (size_t i = 0; !code && i < statements->count; i++) {
		bool last = i + 1 == statements->count;
		code = run_statement(running, i, last ? answer : NULL, &rows[i], err);
		if (code && code != IBID_REJECTED)
			err_prefix(err, "%s:%d", running->script->file, statements->items[i].line);
	}
	return code;
}

static enum ibid_code run_script(struct lite_tx *tx, struct arena *arena,
                                 const struct script *script, const char *const *values,
                                 bool answers, struct outcome *ret, struct ibid_err *err)
{
	struct answer answer = {.found = false};
	size_t count = script->statements.count;
	int64_t *rows = arena_array(arena, count, sizeof *rows);
	struct outcome outcome = {.rows = rows, .row_count = count};
	struct running running = {.tx = tx, .script = script, .values = values};
	enum ibid_code code = lite_tx_ready(tx, err);
	if (code)
		return lite_tx_doom(tx, arena, ret, err);
	running.prepared = prepared_of(tx->conn, script);
	if (!running.prepared || !rows)
		return lite_tx_failed(tx, err_set(err, IBID_NOMEM, "out of memory"), err);
	tx->conn->mode = LITE_SCRIPT;
	code = run_all(&running, answers ? &answer : NULL, rows, err);
	tx->conn->mode = LITE_OURS;
	if (!code)
		code = answer_read(&answer, arena, &outcome, err);
	answer_release(&answer);
	lite_tx_failed(tx, code, err);
	if (code && code != IBID_REJECTED)
		tx->doom.text = arena_strdup(&tx->arena, err->text); /* with file and line */
	if (code)
		return lite_tx_doom(tx, arena, ret, err);
	*ret = outcome;
	return IBID_OK;
}

enum ibid_code lite_run_script(struct tx *base, struct arena *arena, const struct script *script,
                               const char *const *values, struct outcome *ret, struct ibid_err *err)
{
	return run_script(lite_tx_of(base), arena, script, values, true, ret, err);
}

enum ibid_code lite_run_statements(struct tx *base, struct arena *arena,
                                   const struct script *script, const char *const *values,
                                   struct outcome *ret, struct ibid_err *err)
{
	return run_script(lite_tx_of(base), arena, script, values, false, ret, err);
}

/* Every row that a statement or a function of ours touches is counted by the connection. */
enum ibid_code lite_run_query(struct tx *base, struct arena *arena, const struct script *script,
                              const char *const *values, struct outcome *ret, struct ibid_err *err)
{
	struct lite_tx *tx = lite_tx_of(base);
	int64_t before = sqlite3_total_changes64(tx->conn->db);
	struct outcome outcome = {.status = 0};
	enum ibid_code code = lite_run_script(base, arena, script, values, &outcome, err);
	if (!code && sqlite3_total_changes64(tx->conn->db) != before) {
		err_set(err, IBID_FAILED, "%s may only look, but it changed something", script->file);
		lite_tx_failed(tx, IBID_FAILED, err);
		return lite_tx_doom(tx, arena, ret, err);
	}
	*ret = outcome;
	return code;
}
