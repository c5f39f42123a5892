/* SPDX-License-Identifier: Apache-2.0 */
/* error.c -- what a SQLSTATE means for the ledger.
 *
 * The text shown is the server's first line, without detail or hint, which quote rows; and of data
 * exceptions, which quote the value in the first line, without what stands in quotes. */
#include "base/json.h"
#include "store/postgres/postgres.h"

#include <stdlib.h>
#include <string.h>

/* The longest entry that begins the SQLSTATE counts. */
static const struct {
	const char *sqlstate;
	enum ibid_code code;
} codes[] = {
    {"08", IBID_UNAVAILABLE},  /* connection exceptions */
    {"0A000", IBID_RETRY},     /* a cached plan outlived a change of its tables; see cached_plan */
    {"23505", IBID_DUPLICATE}, /* unique violation */
    {"23P01", IBID_DUPLICATE}, /* exclusion violation */
    {"25006", IBID_UNAVAILABLE}, /* read-only: see explain */
    {"25P03", IBID_UNAVAILABLE}, /* idle in transaction for too long */
    {"26000", IBID_UNAVAILABLE}, /* no such prepared statement: see changed_statements */
    {"28", IBID_DENIED},         /* authorization */
    {"3D000", IBID_NOT_FOUND},   /* no such database */
    {"40001", IBID_RETRY},       /* serialization failure */
    {"40P01", IBID_RETRY},       /* deadlock */
    {"42501", IBID_DENIED},      /* privileges */
    {"42P05", IBID_UNAVAILABLE}, /* such a prepared statement exists: see changed_statements */
    {"53", IBID_UNAVAILABLE},    /* out of resources, too many connections */
    {"53100", IBID_FULL},        /* disk full */
    {"54", IBID_LIMIT},          /* a limit of the server, such as the size of an index entry */
    {"55P03", IBID_BUSY},        /* lock_timeout */
    {"57014", IBID_BUSY},        /* statement_timeout, or cancelled by an operator */
    {"57P01", IBID_UNAVAILABLE}, /* shut down by an administrator, crashed, or starting */
    {"57P02", IBID_UNAVAILABLE}, {"57P03", IBID_UNAVAILABLE}, {"57P05", IBID_UNAVAILABLE},
    {"58030", IBID_IO},          {"IB001", IBID_REJECTED},    {"IB002", IBID_MISUSE},
    {"IB003", IBID_FAILED},      {"IB004", IBID_REJECTED},    {"IB005", IBID_REJECTED},
    {"IB006", IBID_RETRY},       {"IB010", IBID_INVALID},     {"IB011", IBID_MISUSE},
    {"IB012", IBID_MISUSE},      {"IB013", IBID_FAILED},      {"IB014", IBID_FENCED},
    {"IB017", IBID_DUPLICATE},   {"XX001", IBID_IO}, /* corrupted */
    {"XX002", IBID_IO},
};

enum ibid_code pg_sqlstate_code(const char *sqlstate)
{
	enum ibid_code code = IBID_OK;
	size_t longest = 0;
	for (size_t i = 0; i < sizeof codes / sizeof *codes; i++) {
		size_t size = strlen(codes[i].sqlstate);
		if (size <= longest || strncmp(codes[i].sqlstate, sqlstate, size) != 0)
			continue;
		longest = size;
		code = codes[i].code;
	}
	return code;
}

static const char *field(const PGresult *result, int code)
{
	const char *text = result ? PQresultErrorField(result, code) : NULL;
	return text ? text : "";
}

static bool is_state(const PGresult *result, const char *sqlstate)
{
	return strcmp(field(result, PG_DIAG_SQLSTATE), sqlstate) == 0;
}

bool pg_error_is_fatal(const struct pg_conn *conn, const PGresult *result)
{
	const char *severity = field(result, PG_DIAG_SEVERITY_NONLOCALIZED);
	const char *sqlstate = field(result, PG_DIAG_SQLSTATE);
	return conn->broken || !*sqlstate || strcmp(severity, "ERROR") != 0 ||
	       strncmp(sqlstate, "08", 2) == 0 || strncmp(sqlstate, "57P", 3) == 0;
}

/* ---- Text ----------------------------------------------------------------------------------- */

static enum ibid_code say(struct ibid_err *err, enum ibid_code code, const PGresult *result)
{
	const char *text = field(result, PG_DIAG_MESSAGE_PRIMARY);
	const char *first = strchr(text, '"'), *last = strrchr(text, '"');
	bool quotes_value = strncmp(field(result, PG_DIAG_SQLSTATE), "22", 2) == 0;
	if (quotes_value && first != last)
		return err_set(err, code, "%.*s\"...%s", (int)(first - text), text, last);
	return err_set(err, code, "%s", text);
}

/* libpq ends its messages with a newline. */
static enum ibid_code say_lost(const struct pg_conn *conn, struct ibid_err *err)
{
	const char *text = PQerrorMessage(conn->link);
	size_t size = strcspn(text, "\n");
	if (!size)
		return err_set(err, IBID_UNAVAILABLE, "the connection to PostgreSQL was lost");
	return err_set(err, IBID_UNAVAILABLE, "the connection to PostgreSQL was lost: %.*s", (int)size,
	               text);
}

int pg_error_line(const PGresult *result, const char *text)
{
	long position = strtol(field(result, PG_DIAG_STATEMENT_POSITION), NULL, 10);
	int line = 0;
	/* The position counts characters, from 1: bytes that continue one don't count. */
	for (; *text && position > 1; text++) {
		line += *text == '\n';
		if (((unsigned char)text[1] & 0xC0) != 0x80)
			position--;
	}
	return line;
}

/* ---- Meaning -------------------------------------------------------------------------------- */

/* 0A000 is also what a statement gets that uses something unsupported: only this one goes away. The
 * text may be translated, but not the routine that raises it. */
static bool is_cached_plan(const PGresult *result)
{
	return strcmp(field(result, PG_DIAG_SOURCE_FUNCTION), "RevalidateCachedQuery") == 0;
}

/* Another server behind a proxy, which lacks our statements or has those of somebody else; or a
 * handler meddled. */
static bool changed_statements(const PGresult *result)
{
	return is_state(result, "26000") || is_state(result, "42P05");
}

static bool in_our_schema(const PGresult *result)
{
	return strcmp(field(result, PG_DIAG_SCHEMA_NAME), "ibid") == 0;
}

/* Which of our own keys is there twice: a command's is another's by now; evidence is said again. */
static enum ibid_code own_duplicate(const PGresult *result)
{
	const char *constraint = field(result, PG_DIAG_CONSTRAINT_NAME);
	if (strcmp(constraint, "command_pkey") == 0)
		return IBID_RETRY;
	bool evidence = strncmp(constraint, "delivery_", sizeof "delivery_" - 1) == 0 &&
	                strcmp(constraint, "delivery_hold_pkey") != 0;
	return evidence ? IBID_DUPLICATE : IBID_INTERNAL;
}

/* Known whoever's statement it was; IBID_OK when it is not. */
static enum ibid_code common_code(struct pg_conn *conn, const PGresult *result)
{
	enum ibid_code code = pg_sqlstate_code(field(result, PG_DIAG_SQLSTATE));
	if (is_state(result, "0A000") && !is_cached_plan(result))
		return IBID_OK;
	/* What this connection believes about its statements is no longer true. */
	if (is_state(result, "0A000") || changed_statements(result))
		conn->broken = true;
	if (code == IBID_DUPLICATE && in_our_schema(result))
		code = own_duplicate(result);
	return code;
}

/* Tables, columns or functions of ours that aren't there, and values that the server can't keep. */
static enum ibid_code own_code(const PGresult *result)
{
	const char *sqlstate = field(result, PG_DIAG_SQLSTATE);
	if (strncmp(sqlstate, "42", 2) == 0 || strcmp(sqlstate, "3F000") == 0)
		return IBID_SCHEMA;
	return strncmp(sqlstate, "22", 2) == 0 ? IBID_INVALID : IBID_INTERNAL;
}

static void explain(const PGresult *result, enum ibid_code code, struct ibid_err *err)
{
	if (changed_statements(result)) {
		err_set(err, code,
		        "prepared statements were changed under this connection: behind a "
		        "transaction-pooling proxy add statements=unnamed to the store's URL");
		return;
	}
	say(err, code, result);
	if (is_state(result, "25006"))
		err_prefix(err, "the server refuses to write: a standby, or "
		                "default_transaction_read_only is on");
}

enum ibid_code pg_error(struct pg_conn *conn, const PGresult *result, struct ibid_err *err)
{
	if (!*field(result, PG_DIAG_SQLSTATE))
		return say_lost(conn, err);
	enum ibid_code code = common_code(conn, result);
	if (code == IBID_OK)
		code = own_code(result);
	explain(result, code, err);
	if (code == IBID_SCHEMA)
		err_prefix(err, "the schema is missing or not ibid's (run ibid init)");
	return code;
}

/* The code, status and sentence that ibid.reject put into the detail. */
static void read_rejection(const PGresult *result, struct arena *arena, struct outcome *ret)
{
	const char *detail = field(result, PG_DIAG_MESSAGE_DETAIL);
	struct ibid_err ignored;
	struct json *root = NULL;
	if (json_read(arena, detail, strlen(detail), 0, &root, &ignored))
		root = &(struct json){.type = JSON_NULL};
	const struct json *reason = json_member(root, "code"), *status = json_member(root, "status");
	const struct json *text = json_member(root, "text");
	ret->reason = reason && reason->type == JSON_STRING ? reason->text : "REJECTED";
	ret->status = status && status->type == JSON_NUMBER ? atoi(status->text) : 422;
	ret->text = text && text->type == JSON_STRING ? text->text : NULL;
}

static void read_conflict(const PGresult *result, struct arena *arena, struct outcome *ret)
{
	ret->reason = is_state(result, "IB004") ? "VERSION_CONFLICT" : "EVENT_KEY_USED";
	ret->status = 409;
	ret->text = arena_strdup(arena, field(result, PG_DIAG_MESSAGE_PRIMARY));
}

enum ibid_code pg_error_outcome(struct pg_conn *conn, const PGresult *result, struct arena *arena,
                                struct outcome *ret, struct ibid_err *err)
{
	*ret = (struct outcome){0};
	if (!*field(result, PG_DIAG_SQLSTATE))
		return say_lost(conn, err);
	enum ibid_code code = common_code(conn, result);
	/* What the SQL API refuses in a script is the script's failure; only IB002 says that the
	 * transaction was ended. */
	bool refused = code == IBID_INVALID || (code == IBID_MISUSE && !is_state(result, "IB002"));
	if (code == IBID_OK || refused)
		code = IBID_FAILED;
	explain(result, code, err);
	if (code == IBID_FAILED)
		ret->text = arena_strdup(arena, err->text);
	else if (code == IBID_DUPLICATE)
		ret->unique = arena_strdup(arena, field(result, PG_DIAG_CONSTRAINT_NAME));
	else if (code == IBID_REJECTED && is_state(result, "IB001"))
		read_rejection(result, arena, ret);
	else if (code == IBID_REJECTED)
		read_conflict(result, arena, ret);
	return code;
}
