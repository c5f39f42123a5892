/* SPDX-License-Identifier: Apache-2.0 */
/* express.c -- a whole command in one round trip: claim, script, row, audit entry, commit.
 *
 * Most commands are new and succeed; waiting for each answer before the next step costs them as
 * much as the work itself. So everything is sent at once, beginning with a claim that stops the
 * trip unless the identity was free, and the script's last statement wrapped into the one that
 * writes the row (I1, I2). No BEGIN and no COMMIT: the trip is the transaction, and its end
 * commits. Whatever is not plainly a success stops before that, changes nothing, and is told or
 * left to the long way. (I7) as for any commit. */
#include "base/json.h"
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
	    {":status", "answer.status"},
	    {":resource_type", columns->resource_type ? "answer.resource_type" : "null"},
	    {":resource_id", columns->resource_id ? "answer.resource_id" : "null"},
	};
	const char *at = strstr(pg_express_finish, "\nselect") + 1;
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

enum { EXPRESS_COLUMNS = 1 }; /* our own, before those of the answer */

static const Oid express_oids[EXPRESS_PARAMS] = {25, 25,   25,   25, 2950, 23, 23, 17, 25,
                                                 25, 1184, 1184, 16, 16,   25, 25, 25, 25};

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

/* In the order of the calls; the script's parts but the last come next, and the finish last. */
enum { CALL_CLAIM, CALL_SCRIPT };

static const char **claim_values(const struct pg_store *store, struct arena *arena,
                                 const struct express *express)
{
	const struct work_context *context = express->context;
	const struct identity *identity = &express->row->identity;
	const char *own[] = {
	    pg_int(arena, pg_lock_key(identity)),
	    pg_uuid(arena, &context->command_id),
	    identity->tenant,
	    identity->operation,
	    identity->scope,
	    identity->key,
	    context->correlation_id ? context->correlation_id : "",
	    context->causation_id ? context->causation_id : "",
	    pg_emits(arena, context),
	    pg_time(arena, context->now_us),
	    pg_int(arena, store->busy_ms),
	    pg_trace(arena, context->traceparent, context->tracestate),
	};
	const char **values = arena_array(arena, sizeof own / sizeof *own, sizeof *values);
	if (values)
		memcpy(values, own, sizeof own);
	return values;
}

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
	    pg_trace(arena, express->audit->traceparent, express->audit->tracestate),
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
	size_t parts = script->parts.count - 1, count = CALL_SCRIPT + parts + 1;
	struct pg_call *calls = arena_array(arena, count, sizeof *calls);
	if (!calls)
		return NULL;
	calls[CALL_CLAIM] = PG_CALL(EXPRESS_CLAIM, .values = claim_values(store, arena, express));
	for (size_t i = 0; i < parts; i++)
		calls[CALL_SCRIPT + i] = (struct pg_call){
		    .statement = &script->statements[i],
		    .values = pg_script_values(arena, &script->parts.items[i], express->values, 0),
		};
	calls[count - 1] = (struct pg_call){.statement = &script->finish,
	                                    .values = finish_values(arena, express)};
	*ret_count = count;
	return arena->failed ? NULL : calls;
}

/* ---- Judging -------------------------------------------------------------------------------- */

static const char *member_text(const struct json *row, const char *name)
{
	const struct json *member = json_member(row, name);
	return member && (member->type == JSON_STRING || member->type == JSON_NUMBER) ? member->text
	                                                                              : NULL;
}

static int64_t member_int(const struct json *row, const char *name)
{
	const char *text = member_text(row, name);
	return text ? strtoll(text, NULL, 10) : 0;
}

static struct uuid member_uuid(const struct json *row, const char *name)
{
	struct uuid uuid = {0};
	const char *text = member_text(row, name);
	if (text)
		(void)!uuid_read(text, &uuid);
	return uuid;
}

/* A row as ibid_internal.express_claim wrote it. */
static bool read_row(const struct json *json, const struct identity *identity,
                     struct command_row *ret)
{
	const struct json *body = json_member(json, "body"), *linked = json_member(json, "linked");
	const char *state = member_text(json, "state"), *hash = member_text(json, "fingerprint");
	*ret = (struct command_row){
	    .identity = *identity,
	    .id = member_uuid(json, "id"),
	    .scheme = (int)member_int(json, "scheme"),
	    .contract_version = (int)member_int(json, "contract_version"),
	    .linked = linked && linked->type == JSON_TRUE,
	    .status = (int)member_int(json, "status"),
	    .resource_type = member_text(json, "resource_type"),
	    .resource_id = member_text(json, "resource_id"),
	    .reason = member_text(json, "reason"),
	    .text = member_text(json, "text"),
	    .body = member_text(json, "body"),
	    .body_size = body ? body->size : 0,
	    .audit_id = member_uuid(json, "audit_id"),
	    .attempts = (int)member_int(json, "attempts"),
	    .client = member_text(json, "client"),
	    .actor = member_text(json, "actor"),
	    .created_us = member_int(json, "created_us"),
	    .finished_us = member_int(json, "finished_us"),
	    .expires_us = member_int(json, "expires_us"),
	};
	return hash && sha256_read(hash, &ret->fingerprint) && command_state_read(state, &ret->state);
}

/* The claim stopped the trip: tell who has the identity, where that is final. A notice that a
 * setting suppressed leaves it to the long way. */
static void tell_claim(const struct pg_conn *conn, struct arena *arena,
                       const struct express *express, const PGresult *result, struct claim *ret)
{
	struct command_row row;
	struct json *json;
	struct ibid_err ignored;
	if (strcmp(PQresultErrorField(result, PG_DIAG_SQLSTATE), "IB009") == 0)
		ret->kind = CLAIM_BUSY;
	else if (conn->told && !json_read(arena, conn->told, strlen(conn->told), 0, &json, &ignored) &&
	         read_row(json, &express->row->identity, &row) && row.state == COMMAND_COMPLETED)
		*ret = (struct claim){.kind = CLAIM_FOUND, .row = row};
}

/* Calls before trip->done succeeded; the next one did not, or behind the last the commit. */
static enum ibid_code judge(struct pg_conn *conn, struct arena *arena,
                            const struct express *express, const struct pg_call *calls,
                            size_t count, const struct pg_trip *trip, struct claim *ret,
                            struct outcome *ret_outcome, struct ibid_err *err)
{
	size_t at = trip->done, finish = count - 1;
	const PGresult *result = pg_trip_error(conn, calls, count, trip);
	bool fatal = pg_error_is_fatal(conn, result);
	if (fatal) {
		enum ibid_code code = pg_error_outcome(conn, result, arena, ret_outcome, err);
		conn->broken = true;
		if (trip->queued < count)
			return code;
		err->code = IBID_UNKNOWN;
		err->next = err_next_of(IBID_UNKNOWN);
		return err_prefix(err, "the commit was sent and did not report success");
	}
	if (at == CALL_CLAIM && strncmp(PQresultErrorField(result, PG_DIAG_SQLSTATE), "IB", 2) == 0) {
		tell_claim(conn, arena, express, result, ret);
		return IBID_OK;
	}
	if (at >= CALL_SCRIPT && at < finish)
		return pg_script_failed(conn, arena, express->script, at - CALL_SCRIPT, result, ret_outcome,
		                        err);
	enum ibid_code code = pg_error_outcome(conn, result, arena, ret_outcome, err);
	/* The wrapped statement is two in one: the long way tells which of them failed, and where. A
	 * row of ours that was there already is a second row of the answer, or a race lost. */
	bool twice = strcmp(PQresultErrorField(result, PG_DIAG_SQLSTATE), "23505") == 0;
	return at == finish && (twice || code != IBID_RETRY) ? IBID_OK : code;
}

static enum ibid_code run(struct pg_conn *conn, struct arena *arena, const struct express *express,
                          struct pg_call *calls, size_t count, struct claim *ret,
                          struct outcome *ret_outcome, bool *ret_done, struct ibid_err *err)
{
	struct pg_trip trip;
	if (!pg_trip(conn, calls, count, &trip))
		return judge(conn, arena, express, calls, count, &trip, ret, ret_outcome, err);
	*ret_done = true;
	return pg_read_answer(arena, calls[count - 1].result, EXPRESS_COLUMNS, ret_outcome, err);
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
