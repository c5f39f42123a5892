/* SPDX-License-Identifier: Apache-2.0 */
/* express.c -- a whole command in one round trip: claim, script, row, audit entry, commit.
 *
 * Most commands are new and succeed; waiting for each answer before the next step costs them as
 * much as the work itself. So everything is sent at once, with a guard behind the claim that stops
 * the trip unless the identity was free, and the script's last statement wrapped into the one that
 * writes the row (I1, I2). Whatever is not plainly a success stops before the COMMIT, changes
 * nothing, and is told or left to the long way. (I7) as for any commit. */
#include "base/str.h"
#include "store/postgres/postgres.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* ---- Wrapping the last statement ------------------------------------------------------------ */

/* Past blanks and comments; the splitter has checked that they end. */
static const char *first_word(const char *sql)
{
	for (;;) {
		if (isspace((unsigned char)*sql)) {
			sql++;
		} else if (sql[0] == '-' && sql[1] == '-') {
			sql += strcspn(sql, "\n");
		} else if (sql[0] == '/' && sql[1] == '*') {
			const char *end = strstr(sql + 2, "*/");
			sql = end ? end + 2 : sql + strlen(sql);
		} else {
			return sql;
		}
	}
}

static bool is_select(const char *sql)
{
	const char *word = first_word(sql);
	return strncasecmp(word, "select", 6) == 0 && !isalnum((unsigned char)word[6]) &&
	       word[6] != '_';
}

/* What the last statement answers with: which of the known columns it has. */
struct columns {
	bool status, body, resource_type, resource_id;
};

enum { OID_INT8 = 20, OID_INT2 = 21, OID_INT4 = 23, OID_JSON = 114, OID_JSONB = 3802 };

/* False where only the long way can tell whether the answer is good. */
static bool read_columns(const PGresult *result, struct columns *ret)
{
	for (int i = 0; i < PQnfields(result); i++) {
		const char *name = PQfname(result, i);
		Oid type = PQftype(result, i);
		if (strcmp(name, "status") == 0 && !ret->status)
			ret->status = type == OID_INT2 || type == OID_INT4 || type == OID_INT8;
		else if (strcmp(name, "body") == 0 && (type == OID_JSON || type == OID_JSONB))
			ret->body = true;
		else if (strcmp(name, "resource_type") == 0 && !ret->resource_type)
			ret->resource_type = true;
		else if (strcmp(name, "resource_id") == 0 && !ret->resource_id)
			ret->resource_id = true;
		else
			return false;
	}
	return ret->status;
}

/* Ask the server. A statement that it can't describe yet (a table is missing, or locked for longer
 * than we wait) takes the long way. In a transaction, which giving the connection back ends: so a
 * proxy does not change the server in between. */
static bool describe(struct pg_conn *conn, unsigned wait_ms, const struct pg_statement *statement,
                     struct columns *ret)
{
	bool good = false;
	char begin[64];
	PGresult *begun = NULL, *prepared = NULL, *described = NULL;
	snprintf(begin, sizeof begin, "begin; set local lock_timeout = %u", wait_ms);
	if (!PQexitPipelineMode(conn->link))
		conn->broken = true;
	if (!conn->broken)
		begun = PQexec(conn->link, begin);
	if (PQresultStatus(begun) == PGRES_COMMAND_OK)
		prepared = PQprepare(conn->link, "", statement->sql, statement->param_count,
		                     statement->types);
	if (PQresultStatus(prepared) == PGRES_COMMAND_OK)
		described = PQdescribePrepared(conn->link, "");
	if (PQresultStatus(described) == PGRES_COMMAND_OK)
		good = read_columns(described, ret);
	PQclear(begun);
	PQclear(prepared);
	PQclear(described);
	if (PQstatus(conn->link) == CONNECTION_BAD || !PQenterPipelineMode(conn->link))
		conn->broken = true;
	return good;
}

/* The template with the statement and its columns in their places, and its own parameters numbered
 * behind the statement's. */
static void compose(struct str *out, const struct script_statement *last,
                    const struct columns *columns)
{
	const struct {
		const char *mark, *text;
	} places[] = {
	    {":answer", last->sql}, /* on lines of its own: it may end in a comment */
	    {":status", "last.status"},
	    {":resource_type", columns->resource_type ? "last.resource_type" : "null"},
	    {":resource_id", columns->resource_id ? "last.resource_id" : "null"},
	};
	const char *at = strstr(pg_express_finish, "\nwith answer") + 1;
	while (*at) {
		size_t i = 0, size = 0;
		for (; i < sizeof places / sizeof *places; i++) {
			size = strlen(places[i].mark);
			if (strncmp(at, places[i].mark, size) == 0)
				break;
		}
		if (i < sizeof places / sizeof *places) {
			str_adds(out, places[i].text);
			at += size;
		} else if (*at == '$') {
			char *end;
			unsigned long number = strtoul(at + 1, &end, 10);
			str_addf(out, "$%lu", number + last->param_count);
			at = end;
		} else {
			str_addc(out, *at++);
		}
	}
}

static const Oid express_oids[EXPRESS_PARAMS] = {25, 25,   25,   25, 2950, 23, 23, 17, 25,
                                                 25, 1184, 1184, 16, 16,   25, 25, 25};

static enum ibid_code wrap(struct script *script, const struct columns *columns,
                           struct ibid_err *err)
{
	const struct script_statement *last = &script->parts.items[script->parts.count - 1];
	const struct pg_statement *plain = &script->statements[script->parts.count - 1];
	size_t count = last->param_count;
	struct str sql = STR_INIT(4 << 20);
	compose(&sql, last, columns);
	Oid *types = arena_array(&script->arena, count + EXPRESS_PARAMS, sizeof *types);
	const char *text = sql.failed ? NULL : arena_strndup(&script->arena, sql.data, sql.size);
	str_release(&sql);
	if (!types || !text)
		return err_set(err, IBID_NOMEM, "out of memory");
	if (count)
		memcpy(types, plain->types, count * sizeof *types);
	memcpy(types + count, express_oids, sizeof express_oids);
	script->finish = (struct pg_statement){
	    .sql = text,
	    .param_count = (int)(count + EXPRESS_PARAMS),
	    .types = types,
	};
	if (!pg_statement_register(&script->finish))
		return err_set(err, IBID_NOMEM, "out of memory");
	return IBID_OK;
}

enum ibid_code pg_express_build(struct pg_store *store, struct script *script, struct ibid_err *err)
{
	const struct pg_statement *plain = &script->statements[script->parts.count - 1];
	struct columns columns = {0};
	struct pg_conn *conn;
	if (!is_select(plain->sql))
		return IBID_OK;
	enum ibid_code code = pg_pool_take(store, false, &conn, err);
	if (code)
		return code;
	bool good = describe(conn, store->busy_ms, plain, &columns);
	pg_pool_give(store, conn);
	return good ? wrap(script, &columns, err) : IBID_OK;
}

/* ---- Sending -------------------------------------------------------------------------------- */

/* In the order of the calls; the script's parts stand between GUARD and FINISH. */
enum { CALL_BEGIN, CALL_LOCK, CALL_FIND, CALL_GUARD, CALL_SCRIPT };
enum { TAIL_FINISH, TAIL_COMMIT, TAIL_COUNT };

static const char **finish_values(struct arena *arena, const struct express *express)
{
	const struct script *script = express->script;
	const struct script_statement *last = &script->parts.items[script->parts.count - 1];
	const struct command_row *row = express->row;
	const char *own[EXPRESS_PARAMS] = {
	    row->identity.tenant,
	    row->identity.operation,
	    row->identity.scope,
	    row->identity.key,
	    pg_uuid(arena, &row->id),
	    pg_int(arena, row->scheme),
	    pg_int(arena, row->contract_version),
	    pg_hash(arena, &row->fingerprint),
	    row->client,
	    row->actor,
	    pg_time(arena, row->created_us),
	    pg_time(arena, row->expires_us),
	    express->keep_status ? "true" : "false",
	    express->keep_resource ? "true" : "false",
	    express->audit->fact,
	    express->audit->correlation_id,
	    express->audit->causation_id,
	};
	const char **values = pg_script_values(arena, last, express->values, EXPRESS_PARAMS);
	if (values)
		memcpy(values + last->param_count, own, sizeof own);
	return values;
}

static struct pg_call *make_calls(struct pg_store *store, struct arena *arena,
                                  const struct express *express, size_t *ret_count)
{
	const struct script *script = express->script;
	size_t parts = script->parts.count - 1, count = CALL_SCRIPT + parts + TAIL_COUNT;
	struct pg_call *calls = arena_array(arena, count, sizeof *calls);
	const char **guard = arena_array(arena, 1, sizeof *guard);
	if (!calls || !guard)
		return NULL;
	guard[0] = pg_uuid(arena, &express->row->id);
	pg_claim_calls(store, arena, &express->row->identity, express->context, calls);
	calls[CALL_GUARD] = PG_CALL(EXPRESS_GUARD, .values = guard);
	for (size_t i = 0; i < parts; i++)
		calls[CALL_SCRIPT + i] = (struct pg_call){
		    .statement = &script->statements[i],
		    .values = pg_script_values(arena, &script->parts.items[i], express->values, 0),
		};
	struct pg_call *tail = calls + CALL_SCRIPT + parts;
	tail[TAIL_FINISH] = (struct pg_call){.statement = &script->finish,
	                                     .values = finish_values(arena, express)};
	tail[TAIL_COMMIT] = PG_CALL(COMMIT);
	*ret_count = count;
	return arena->failed ? NULL : calls;
}

/* ---- Judging -------------------------------------------------------------------------------- */

/* The guard stopped the trip: tell who has the identity, where that is final. */
static void tell_claim(struct arena *arena, const struct pg_call *calls, struct claim *ret)
{
	if (PQntuples(calls[CALL_FIND].result)) {
		struct command_row row;
		pg_read_command(arena, calls[CALL_FIND].result, 0, &row);
		if (row.state == COMMAND_COMPLETED)
			*ret = (struct claim){.kind = CLAIM_FOUND, .row = row};
	} else if (!pg_cell_bool(calls[CALL_LOCK].result, 0, 0)) {
		ret->kind = CLAIM_BUSY;
	}
}

/* Calls before `at` succeeded, calls[at] did not. */
static enum ibid_code judge(struct pg_conn *conn, struct arena *arena,
                            const struct express *express, const struct pg_call *calls,
                            size_t count, const struct pg_trip *trip, struct claim *ret,
                            struct outcome *ret_outcome, struct ibid_err *err)
{
	size_t at = trip->done, finish = count - TAIL_COUNT;
	const PGresult *result = calls[at].result;
	bool fatal = pg_error_is_fatal(conn, result);
	if (fatal) {
		enum ibid_code code = pg_error_outcome(conn, result, arena, ret_outcome, err);
		conn->broken = true;
		if (trip->queued < count - 1)
			return code;
		err->code = IBID_UNKNOWN;
		err->next = err_next_of(IBID_UNKNOWN);
		return err_prefix(err, "the commit was sent and did not report success");
	}
	if (at == CALL_GUARD) {
		tell_claim(arena, calls, ret);
		return IBID_OK;
	}
	if (at >= CALL_SCRIPT && at < finish)
		return pg_script_failed(conn, arena, express->script, at - CALL_SCRIPT, result, ret_outcome,
		                        err);
	enum ibid_code code = pg_error_outcome(conn, result, arena, ret_outcome, err);
	/* The wrapped statement is two in one: the long way tells which of them failed, and where. */
	return at == finish && code != IBID_RETRY ? IBID_OK : code;
}

static enum ibid_code run(struct pg_conn *conn, struct arena *arena, const struct express *express,
                          struct pg_call *calls, size_t count, struct claim *ret,
                          struct outcome *ret_outcome, bool *ret_done, struct ibid_err *err)
{
	struct pg_trip trip;
	if (!pg_trip(conn, calls, count, &trip))
		return judge(conn, arena, express, calls, count, &trip, ret, ret_outcome, err);
	if (strcmp(PQcmdStatus(calls[count - 1].result), "COMMIT") != 0)
		return err_set(err, IBID_FAILED, "the transaction had failed and was rolled back");
	*ret_done = true;
	return pg_read_answer(arena, calls[count - TAIL_COUNT].result, ret_outcome, err);
}

enum ibid_code pg_express(struct store *base, struct arena *arena, const struct express *express,
                          struct claim *ret, struct outcome *ret_outcome, bool *ret_done,
                          struct ibid_err *err)
{
	struct pg_store *store = pg_store_of(base);
	struct pg_conn *conn;
	size_t count = 0;
	struct claim claim = {.kind = CLAIM_FREE};
	struct outcome outcome = {0};
	bool done = false;
	enum ibid_code code = IBID_OK;
	if (express->script->finish.sql) {
		struct pg_call *calls = make_calls(store, arena, express, &count);
		if (!calls)
			return err_set(err, IBID_NOMEM, "out of memory");
		code = pg_pool_take(store, false, &conn, err);
		if (code)
			return code;
		code = run(conn, arena, express, calls, count, &claim, &outcome, &done, err);
		pg_release(calls, count);
		pg_pool_give(store, conn); /* rolls back what did not commit */
	}
	*ret = claim;
	*ret_outcome = outcome;
	*ret_done = done;
	return code;
}
