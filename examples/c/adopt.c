/* SPDX-License-Identifier: Apache-2.0 */
/* adopt.c STORE CONTRACTS -- a program with its own connection and its own transaction, made safe
 * to retry: three calls between `begin` and `commit`. */
#include <ibid.h>
#include <libpq-fe.h>
#include <sqlite3.h>
#include <stdio.h>
#include <string.h>

/* Whatever the program has: a connection to SQLite or to PostgreSQL. */
struct connection {
	sqlite3 *db;
	PGconn *conn;
};

static bool run(struct connection *own, const char *sql)
{
	if (own->db)
		return sqlite3_exec(own->db, sql, NULL, NULL, NULL) == SQLITE_OK;
	PGresult *result = PQexec(own->conn, sql);
	bool done = PQresultStatus(result) == PGRES_COMMAND_OK;
	PQclear(result);
	return done;
}

static bool open_own(struct connection *own, const char *store)
{
	if (strncmp(store, "sqlite:", 7) != 0) {
		own->conn = PQconnectdb(store);
		return PQstatus(own->conn) == CONNECTION_OK;
	}
	/* A commit with an unfinished command is refused by a foreign key: they must be on. And ibid
	 * moves the WAL: before SQLite 3.51.3 two programs that do could lose a commit. */
	return sqlite3_open(store + 7, &own->db) == SQLITE_OK && run(own, "pragma foreign_keys = on") &&
	       run(own, "pragma wal_autocheckpoint = 0");
}

static enum ibid_code adopt(struct ibid *ibid, struct connection *own, const char *key,
                            struct ibid_adopted **adopted, struct ibid_result **result,
                            struct ibid_err *err)
{
	const struct ibid_command *command =
	    IBID_COMMAND(.tenant = "acme", .client = "example", .operation = "transfer", .key = key,
	                 .payload = "{\"from\":\"A\",\"to\":\"B\",\"cents\":1250}");
	return own->db ? ibid_adopt_sqlite(ibid, own->db, command, adopted, result, err)
	               : ibid_adopt_postgres(ibid, own->conn, command, adopted, result, err);
}

/* The program's own statements, and what becomes of the command. */
static enum ibid_code transfer(struct connection *own, struct ibid_adopted *adopted,
                               struct ibid_result **result, struct ibid_err *err)
{
	struct ibid_work *work = ibid_adopted_work(adopted);
	if (!run(own, "savepoint work") ||
	    !run(own, "update account set cents = cents - 1250 where id = 'A'") ||
	    !run(own, "update account set cents = cents + 1250 where id = 'B'")) {
		(void)run(own, "rollback to savepoint work"); /* what is rejected changes nothing */
		return ibid_adopted_reject(adopted, "NOT_POSSIBLE", 422, "not enough money", result, err);
	}
	ibid_emit(work, IBID_EVENT(.aggregate_type = "account", .aggregate_id = "A",
	                           .type = "Transferred", .payload = ibid_work_payload(work)));
	return ibid_adopted_complete(adopted, 201, "{\"done\":true}", result, err);
}

/* One transaction of the program's. */
static bool serve(struct ibid *ibid, struct connection *own, const char *key)
{
	struct ibid_adopted *adopted = NULL;
	struct ibid_result *result = NULL;
	struct ibid_err err = {0};
	bool good = run(own, own->db ? "begin immediate" : "begin") &&
	            adopt(ibid, own, key, &adopted, &result, &err) == IBID_OK &&
	            (!adopted || transfer(own, adopted, &result, &err) == IBID_OK) &&
	            run(own, "commit");
	if (good) /* only now is it true */
		printf("%s%s %d %s\n", ibid_result_replayed(result) ? "replayed " : "",
		       ibid_decision_name(ibid_result_decision(result)), ibid_result_status(result),
		       ibid_result_body(result));
	else
		fprintf(stderr, "adopt: %s\n", err.code ? err.text : "the database refused");
	if (!good)
		(void)run(own, "rollback"); /* after IBID_RETRY: and run it again */
	ibid_adopted_free(adopted);
	ibid_result_free(result);
	return good;
}

int main(int argc, char **argv)
{
	struct ibid *ibid = NULL;
	struct connection own = {NULL, NULL};
	struct ibid_err err = {0};
	if (argc != 3) {
		fprintf(stderr, "usage: adopt sqlite:FILE|postgres://... CONTRACTS\n");
		return 2;
	}
	if (ibid_init(IBID_OPTIONS(.store = argv[1], .contracts = argv[2]), &err) ||
	    ibid_open(IBID_OPTIONS(.store = argv[1], .contracts = argv[2]), &ibid, &err)) {
		fprintf(stderr, "adopt: %s\n", err.text);
		return 1;
	}
	bool good = open_own(&own, argv[1]) && serve(ibid, &own, "k-1") &&
	            serve(ibid, &own, "k-1"); /* the second time is a retry */
	sqlite3_close(own.db);
	PQfinish(own.conn);
	ibid_close(ibid);
	return good ? 0 : 1;
}
