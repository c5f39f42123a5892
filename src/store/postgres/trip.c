/* SPDX-License-Identifier: Apache-2.0 */
/* trip.c -- calls go out together and their results come back together.
 *
 * A statement is prepared where it is first used on a connection, in the same trip. libpq buffers
 * what is sent and, when the buffer is full, reads while it writes, so neither side can block the
 * other for good.
 *
 * Invariants: the results are read in the order of the calls, one Parse and one Execute each, up to
 * the answer to Sync; whatever deviates from that leaves the connection broken (P1). */
#include "store/postgres/postgres.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

/* Where it is noted whether the server has this statement; NULL without memory. */
static unsigned char *prepared_mark(struct pg_conn *conn, unsigned id)
{
	if (id >= conn->prepared_room) {
		size_t room = (size_t)id * 2 + STATEMENT_COUNT;
		unsigned char *marks = realloc(conn->prepared, room);
		if (!marks)
			return NULL;
		memset(marks + conn->prepared_room, 0, room - conn->prepared_room);
		conn->prepared = marks;
		conn->prepared_room = room;
	}
	return &conn->prepared[id];
}

enum { MARK_NONE, MARK_PREPARED, MARK_SENT };

static bool send_prepare(struct pg_conn *conn, const struct pg_statement *statement)
{
	unsigned char *mark = prepared_mark(conn, statement->id);
	if (!mark)
		return false;
	if (*mark != MARK_NONE)
		return true;
	if (!PQsendPrepare(conn->link, pg_statement_name(statement), statement->sql,
	                   statement->types ? statement->param_count : 0, statement->types))
		return false;
	*mark = MARK_SENT;
	return true;
}

bool pg_hook_fails(struct pg_conn *conn, enum hook_kind kind, const char *name)
{
	const struct hook *hook = *conn->hook;
	if (!hook || !hook->at(hook->user, &(struct hook_point){"postgres", name, kind}))
		return false;
	if (kind != HOOK_BEFORE) {
		shutdown(PQsocket(conn->link), SHUT_RDWR);
		conn->broken = true;
	}
	return true;
}

static bool call_fails(struct pg_conn *conn, enum hook_kind kind, const struct pg_call *call)
{
	return pg_hook_fails(conn, kind, call->statement->file ? call->statement->file : "script");
}

static bool send_raise(struct pg_conn *conn)
{
	return PQsendQueryParams(conn->link, pg_statements[STATEMENT_HOOK_RAISE].sql, 0, NULL, NULL,
	                         NULL, NULL, 0);
}

static const int *formats_of(const struct pg_call *call)
{
	static const int binary[] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,
	                             1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
	assert(!call->lengths || call->statement->param_count <= (int)(sizeof binary / sizeof *binary));
	return call->lengths ? binary : NULL;
}

static bool send_call(struct pg_conn *conn, struct pg_call *call)
{
	const struct pg_statement *statement = call->statement;
	const int *formats = formats_of(call);
	call->raises = call_fails(conn, HOOK_BEFORE, call);
	if (call->raises)
		return send_raise(conn);
	if (conn->unnamed)
		return PQsendQueryParams(conn->link, statement->sql, statement->param_count,
		                         statement->types, call->values, call->lengths, formats, 0);
	if (!send_prepare(conn, statement))
		return false;
	return PQsendQueryPrepared(conn->link, pg_statement_name(statement), statement->param_count,
	                           call->values, call->lengths, formats, 0);
}

/* The result of one message, up to the NULL behind it. NULL when the connection broke. */
static PGresult *read_one(struct pg_conn *conn)
{
	PGresult *result, *last = NULL;
	while ((result = PQgetResult(conn->link))) {
		ExecStatusType status = PQresultStatus(result);
		PQclear(last);
		last = result;
		if (PQstatus(conn->link) == CONNECTION_BAD || status == PGRES_COPY_IN ||
		    status == PGRES_COPY_OUT || status == PGRES_COPY_BOTH ||
		    status == PGRES_PIPELINE_SYNC) {
			conn->broken = true;
			break;
		}
	}
	if (!last)
		conn->broken = true;
	return last;
}

static bool is_good(const PGresult *result)
{
	ExecStatusType status = PQresultStatus(result);
	return status == PGRES_TUPLES_OK || status == PGRES_COMMAND_OK || status == PGRES_EMPTY_QUERY;
}

/* Read what belongs to one call: of its Parse, when this trip sent it, and of itself. */
static PGresult *read_call(struct pg_conn *conn, const struct pg_call *call)
{
	bool named = !conn->unnamed && !call->raises;
	unsigned char *mark = named ? prepared_mark(conn, call->statement->id) : NULL;
	PGresult *parsed = NULL, *result;
	if (mark && *mark == MARK_SENT) {
		parsed = read_one(conn);
		*mark = parsed && is_good(parsed) ? MARK_PREPARED : MARK_NONE;
		if (conn->broken)
			return parsed;
	}
	result = read_one(conn);
	if (parsed && !is_good(parsed)) {
		PQclear(result); /* says only that the pipeline was aborted */
		return parsed;
	}
	PQclear(parsed);
	return result;
}

/* The end of a trip. It commits what had no BEGIN, and may fail in doing so. */
static void read_sync(struct pg_conn *conn)
{
	PGresult *result = PQgetResult(conn->link);
	if (PQresultStatus(result) == PGRES_FATAL_ERROR) {
		conn->refused = result;
		result = PQgetResult(conn->link);
	}
	if (!result) /* behind an error, as behind any result */
		result = PQgetResult(conn->link);
	if (PQresultStatus(result) != PGRES_PIPELINE_SYNC)
		conn->broken = true;
	PQclear(result);
}

static bool send_all(struct pg_conn *conn, struct pg_call *calls, size_t count, size_t *ret_queued)
{
	for (*ret_queued = 0; *ret_queued < count; ++*ret_queued)
		if (!send_call(conn, &calls[*ret_queued]))
			return false;
	const struct pg_call *last = &calls[count - 1];
	return !call_fails(conn, HOOK_FLUSH, last) && PQpipelineSync(conn->link) &&
	       !call_fails(conn, HOOK_SENT, last);
}

bool pg_trip(struct pg_conn *conn, struct pg_call *calls, size_t count, struct pg_trip *ret)
{
	*ret = (struct pg_trip){0};
	PQclear(conn->refused);
	conn->refused = NULL;
	if (conn->broken)
		return false;
	/* Half a pipeline can't be taken back. */
	conn->broken = !send_all(conn, calls, count, &ret->queued);
	bool failed = conn->broken;
	for (size_t i = 0; i < count && !conn->broken; i++) {
		PGresult *result = read_call(conn, &calls[i]);
		if (failed) {
			PQclear(result);
			continue;
		}
		calls[i].result = result;
		failed = conn->broken || !is_good(result);
		if (failed)
			continue;
		ret->done++;
		(void)call_fails(conn, HOOK_AFTER, &calls[i]);
	}
	if (!conn->broken)
		read_sync(conn);
	return !failed && !conn->broken && !conn->refused;
}

const PGresult *pg_trip_error(const struct pg_conn *conn, const struct pg_call *calls, size_t count,
                              const struct pg_trip *trip)
{
	return trip->done < count ? calls[trip->done].result : conn->refused;
}

void pg_release(struct pg_call *calls, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		PQclear(calls[i].result);
		calls[i].result = NULL;
	}
}

PGresult *pg_exec(struct pg_conn *conn, const char *name, const char *text)
{
	if (pg_hook_fails(conn, HOOK_BEFORE, name))
		text = pg_statements[STATEMENT_HOOK_RAISE].sql;
	if (pg_hook_fails(conn, HOOK_FLUSH, name))
		return NULL;
	if (!PQexitPipelineMode(conn->link))
		conn->broken = true;
	PGresult *result = PQexec(conn->link, text);
	if (!PQenterPipelineMode(conn->link) || PQstatus(conn->link) == CONNECTION_BAD)
		conn->broken = true;
	if (pg_hook_fails(conn, HOOK_AFTER, name)) {
		PQclear(result);
		return NULL;
	}
	return result;
}
