/* SPDX-License-Identifier: Apache-2.0 */
/* test_adopt.c -- commands in a transaction that the caller owns, on a connection of its own. */
#include "support/bed.h"
#include "support/fault.h"

#include <libpq-fe.h>
#include <pthread.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define FIXTURE IBID_SOURCE_DIR "/test/flow/adopt"

static const char payload[] = "{\"amount\":12.50}";
static const char other_payload[] = "{\"amount\":13}";
static const char body[] = "{\"ordered\":true}";

static struct bed bed;
static struct ibid *ibid;

/* ---- A program with a connection of its own ------------------------------------------------- */

struct own {
	sqlite3 *db;  /* NULL: PostgreSQL */
	PGconn *conn; /* NULL: SQLite */
	char error[256];
};

static bool own_exec(struct own *own, const char *text)
{
	char sql[1024];
	snprintf(sql, sizeof sql, "%s", text);
	if (own->db) {
		for (char *at; (at = strstr(sql, "ibid."));)
			at[4] = '_';
		bool done = sqlite3_exec(own->db, sql, NULL, NULL, NULL) == SQLITE_OK;
		snprintf(own->error, sizeof own->error, "%s", done ? "" : sqlite3_errmsg(own->db));
		return done;
	}
	PGresult *result = PQexec(own->conn, sql);
	bool done = PQresultStatus(result) == PGRES_COMMAND_OK ||
	            PQresultStatus(result) == PGRES_TUPLES_OK;
	snprintf(own->error, sizeof own->error, "%s",
	         done ? "" : PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY));
	PQclear(result);
	return done;
}

static void own_do(struct own *own, const char *sql)
{
	if (!own_exec(own, sql))
		fail_msg("%s: %s", sql, own->error);
}

static void own_begin(struct own *own)
{
	own_do(own, own->db ? "begin immediate" : "begin");
}

static void own_open_url(struct own *own, const char *url)
{
	*own = (struct own){.db = NULL};
	if (strncmp(url, "sqlite:", 7) == 0) {
		assert_int_equal(sqlite3_open(url + 7, &own->db), SQLITE_OK);
		sqlite3_busy_timeout(own->db, 20000);
		own_do(own, "pragma foreign_keys = on");
		own_do(own, "pragma wal_autocheckpoint = 0");
		return;
	}
	own->conn = PQconnectdb(url);
	if (PQstatus(own->conn) != CONNECTION_OK)
		fail_msg("%s: %s", url, PQerrorMessage(own->conn));
}

static struct own own_open(void)
{
	struct own own;
	own_open_url(&own, bed.url);
	return own;
}

static void own_close(struct own *own)
{
	if (own->db) /* fails where a statement was left behind */
		assert_int_equal(sqlite3_close(own->db), SQLITE_OK);
	PQfinish(own->conn);
}

/* What the caller does beside the command. */
static void own_effect(struct own *own, const char *tenant, const char *key, const char *id)
{
	char sql[512];
	snprintf(sql, sizeof sql,
	         "insert into effect (tenant, key, command_id) values ('%s', '%s', '%s')", tenant, key,
	         id);
	own_do(own, sql);
}

/* ---- Words ---------------------------------------------------------------------------------- */

#define TRACE "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

struct tried {
	enum ibid_code code;
	struct ibid_adopted *adopted;
	struct ibid_result *result;
	struct ibid_err err;
};

static struct tried try_adopt_as(struct ibid *on, struct own *own, const char *tenant,
                                 const char *operation, const char *key, const char *with)
{
	struct tried tried = {.code = IBID_OK};
	const struct ibid_command *command = IBID_COMMAND(.tenant = tenant, .client = "c", .actor = "a",
	                                                  .operation = operation, .key = key,
	                                                  .payload = with, .correlation_id = "corr",
	                                                  .causation_id = "cause", .traceparent = TRACE,
	                                                  .tracestate = "a=1");
	tried.code = own->db ? ibid_adopt_sqlite(on, own->db, command, &tried.adopted, &tried.result,
	                                         &tried.err)
	                     : ibid_adopt_postgres(on, own->conn, command, &tried.adopted,
	                                           &tried.result, &tried.err);
	assert_int_equal(tried.code, tried.err.code);
	assert_int_equal(!tried.code, (tried.adopted != NULL) + (tried.result != NULL));
	if (own->db) /* nothing of ours stays */
		assert_null(sqlite3_next_stmt(own->db, NULL));
	return tried;
}

static struct tried try_adopt(struct own *own, const char *operation, const char *key,
                              const char *with)
{
	return try_adopt_as(ibid, own, "t", operation, key, with);
}

static struct ibid_adopted *adopt(struct own *own, const char *operation, const char *key)
{
	struct tried tried = try_adopt(own, operation, key, payload);
	if (tried.code)
		fail_msg("adopt %s: %s: %s", key, ibid_code_name(tried.code), tried.err.text);
	if (!tried.adopted)
		fail_msg("adopt %s: %s", key, bed_say(tried.result));
	return tried.adopted;
}

/* What a duplicate hears; "execute" when it would have to do the work. */
static void expect_adopt(struct own *own, const char *operation, const char *key, const char *with,
                         const char *expected)
{
	struct tried tried = try_adopt(own, operation, key, with);
	if (tried.code)
		fail_msg("adopt %s: %s: %s", key, ibid_code_name(tried.code), tried.err.text);
	assert_string_equal(tried.adopted ? "execute" : bed_say(tried.result), expected);
	ibid_adopted_free(tried.adopted);
	ibid_result_free(tried.result);
}

static void expect_error(struct own *own, const char *operation, const char *key,
                         enum ibid_code code, const char *part)
{
	struct tried tried = try_adopt(own, operation, key, payload);
	if (tried.code != code || !strstr(tried.err.text, part))
		fail_msg("%s: %s", ibid_code_name(tried.code), tried.err.text);
}

static const char *id_of(struct ibid_adopted *adopted)
{
	return ibid_work_command_id(ibid_adopted_work(adopted));
}

static void emit(struct ibid_work *work, const char *id, int64_t version)
{
	assert_int_equal(
	    ibid_emit(work, IBID_EVENT(.aggregate_type = "order", .aggregate_id = id, .type = "Ordered",
	                               .payload = "{ \"n\" : 1 }", .version = version)),
	    IBID_OK);
}

/* Say how it ends, and free it. */
static void end(enum ibid_code code, struct ibid_adopted *adopted, struct ibid_result **result,
                const struct ibid_err *err, const char *expected)
{
	if (code)
		fail_msg("finish: %s: %s", ibid_code_name(code), err->text);
	assert_string_equal(bed_say(*result), expected);
	assert_string_equal(ibid_result_command_id(*result), id_of(adopted));
	ibid_result_free(*result);
	*result = NULL;
	ibid_adopted_free(adopted);
}

static void complete(struct ibid_adopted *adopted)
{
	struct ibid_result *result = NULL;
	struct ibid_err err;
	enum ibid_code code = ibid_adopted_complete(adopted, 201, body, &result, &err);
	if (!code)
		assert_string_equal(ibid_result_body(result), body);
	end(code, adopted, &result, &err, "executed 201");
}

/* The whole of it, but for begin and commit. */
static void order_as(struct ibid *on, struct own *own, const char *tenant, const char *operation,
                     const char *key)
{
	struct tried tried = try_adopt_as(on, own, tenant, operation, key, payload);
	if (!tried.adopted)
		fail_msg("%s: %s", key, tried.code ? tried.err.text : bed_say(tried.result));
	own_effect(own, tenant, key, id_of(tried.adopted));
	emit(ibid_adopted_work(tried.adopted), id_of(tried.adopted), 0);
	ibid_resource(ibid_adopted_work(tried.adopted), "order", "o-1");
	complete(tried.adopted);
}

static void order(struct own *own, const char *operation, const char *key)
{
	order_as(ibid, own, "t", operation, key);
}

static int64_t rows(const char *table)
{
	return bed_number(&bed, "select count(*) from %s", table);
}

static void assert_rows(int64_t effects, int64_t commands, int64_t events, int64_t audits)
{
	assert_int_equal(rows("effect"), effects);
	assert_int_equal(rows("ibid.command"), commands);
	assert_int_equal(rows("ibid.event"), events);
	assert_int_equal(rows("ibid.audit"), audits);
	assert_int_equal(rows("ibid.open_command"), 0);
}

/* ---- The same by ibid_submit ---------------------------------------------------------------- */

/* How a run ends, for callbacks and adopted commands alike. */
enum mode { MODE_COMPLETE, MODE_REJECT, MODE_FAIL, MODES };

static enum mode mode;

static enum ibid_code handle(struct ibid_work *work, void *user)
{
	struct own own = {.db = ibid_work_sqlite(work), .conn = ibid_work_postgres(work)};
	(void)user;
	if (mode == MODE_REJECT)
		return ibid_reject(work, "SOLD_OUT", 409, "nothing is left");
	if (mode == MODE_FAIL)
		return ibid_fail(work, "the shelf is broken");
	own_effect(&own, ibid_work_tenant(work), ibid_work_key(work), ibid_work_command_id(work));
	emit(work, ibid_work_command_id(work), 0);
	ibid_resource(work, "order", "o-1");
	return ibid_answer(work, 201, body);
}

static const char *const operations[] = {
    "order",        "order-again", "order-wait",  "order-soft",    "order-brief",
    "order-status", "order-none",  "order-renew", "order-derived",
};
enum { OPERATIONS = sizeof operations / sizeof *operations };

static void register_handlers(struct ibid *on)
{
	for (size_t i = 0; i < OPERATIONS; i++)
		assert_int_equal(ibid_handle(on, operations[i], handle, NULL, NULL), IBID_OK);
}

static struct ibid_result *finish_by_mode(struct own *own, struct ibid_adopted *adopted)
{
	struct ibid_work *work = ibid_adopted_work(adopted);
	struct ibid_result *result = NULL;
	struct ibid_err err;
	enum ibid_code code;
	if (mode == MODE_REJECT) {
		code = ibid_adopted_reject(adopted, "SOLD_OUT", 409, "nothing is left", &result, &err);
	} else if (mode == MODE_FAIL) {
		code = ibid_adopted_fail(adopted, "the shelf is broken", &result, &err);
	} else {
		own_effect(own, ibid_work_tenant(work), ibid_work_key(work), id_of(adopted));
		emit(work, id_of(adopted), 0);
		ibid_resource(work, "order", "o-1");
		code = ibid_adopted_complete(adopted, 201, body, &result, &err);
	}
	if (code)
		fail_msg("%s: %s", ibid_code_name(code), err.text);
	ibid_adopted_free(adopted);
	return result;
}

static struct ibid_result *submit(struct ibid *on, const char *tenant, const char *operation,
                                  const char *key, const char *with)
{
	struct ibid_result *result = NULL;
	struct ibid_err err = {0};
	if (ibid_submit(on,
	                IBID_COMMAND(.tenant = tenant, .client = "c", .actor = "a",
	                             .operation = operation, .key = key, .payload = with,
	                             .correlation_id = "corr", .causation_id = "cause",
	                             .traceparent = TRACE, .tracestate = "a=1"),
	                &result, &err))
		fail_msg("submit %s %s: %s", operation, key ? key : "-", err.text);
	return result;
}

/* Begin, work, finish, commit: what ibid_submit does in one call. */
static struct ibid_result *submit_adopted(struct own *own, const char *tenant,
                                          const char *operation, const char *key, const char *with)
{
	own_begin(own);
	struct tried tried = try_adopt_as(ibid, own, tenant, operation, key, with);
	if (tried.code)
		fail_msg("adopt %s %s: %s", operation, key ? key : "-", tried.err.text);
	if (tried.adopted)
		tried.result = finish_by_mode(own, tried.adopted);
	own_do(own, "commit");
	return tried.result;
}

/* ---- Set-up --------------------------------------------------------------------------------- */

static int set_up(void **state)
{
	(void)state;
	mode = MODE_COMPLETE;
	bed_open(&bed, FIXTURE);
	ibid = bed_ibid(&bed, NULL);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	ibid_close(ibid);
	bed_close(&bed);
	return 0;
}

/* ---- One command ---------------------------------------------------------------------------- */

static void everything_is_in_the_callers_commit(void **state) /* B02 B03 I1 */
{
	(void)state;
	struct own own = own_open();
	own_begin(&own);
	struct ibid_adopted *adopted = adopt(&own, "order", "k-1"); /* no handler is needed */
	struct ibid_work *work = ibid_adopted_work(adopted);
	assert_string_equal(ibid_field_text(work, "/amount"), "12.5");
	assert_string_equal(ibid_work_payload(work), "{\"amount\":12.5}");
	assert_string_equal(ibid_work_tenant(work), "t");
	assert_string_equal(ibid_work_key(work), "k-1");
	assert_ptr_equal(ibid_work_sqlite(work), own.db);
	assert_ptr_equal(ibid_work_postgres(work), own.conn);
	own_effect(&own, "t", "k-1", id_of(adopted));
	emit(work, "o-1", 1);
	emit(work, "o-1", 0);
	ibid_resource(work, "order", "o-1");
	complete(adopted);
	assert_rows(0, 0, 0, 0); /* seen by nobody yet */
	own_do(&own, "commit");
	assert_rows(1, 1, 2, 1);
	assert_int_equal(bed_number(&bed, "select count(*) from ibid.command c join ibid.audit a on "
	                                  "a.tenant = c.tenant and a.id = c.audit_id join effect e on "
	                                  "e.command_id = cast(c.id as text) where c.state = "
	                                  "'COMPLETED' and a.resource_id = 'o-1' and "
	                                  "a.correlation_id = 'corr' and a.traceparent = '" TRACE
	                                  "' and a.tracestate = 'a=1' and c.traceparent is null"),
	                 1);
	assert_int_equal(bed_number(&bed, "select max(version) from ibid.event where aggregateid = "
	                                  "'o-1' and correlation_id = 'corr' and traceparent = '" TRACE
	                                  "' and tracestate = 'a=1'"),
	                 2);
	own_begin(&own);
	expect_adopt(&own, "order", "k-1", "{\"amount\": 1.25e1}", "replayed executed 201");
	own_do(&own, "commit");
	register_handlers(ibid);
	bed_expect(ibid, "order", "k-1", payload, "replayed executed 201");
	own_close(&own);
}

static void what_the_contract_keeps_of_the_payload_is_in_the_callers_commit(void **state) /* K05 */
{
	(void)state;
	struct own own = own_open();
	char *kept[2] = {NULL, NULL};
	size_t size;
	assert_int_equal(ibid_handle(ibid, "order-kept", handle, NULL, NULL), IBID_OK);
	struct ibid_result *results[2] = {
	    submit_adopted(&own, "t", "order-kept", "k-1", payload),
	    bed_submit(ibid, "order-kept", "k-2", payload),
	};
	for (size_t i = 0; i < 2; i++) {
		assert_int_equal(
		    ibid_payload(ibid, "t", ibid_result_command_id(results[i]), &kept[i], &size, NULL),
		    IBID_OK);
		ibid_result_free(results[i]);
	}
	assert_string_equal(kept[0], kept[1]);
	assert_null(strstr(kept[0], "12.5"));
	ibid_free(kept[0]);
	ibid_free(kept[1]);
	own_close(&own);
}

static void a_rollback_undoes_everything_and_the_key_is_free(void **state) /* B02 */
{
	(void)state;
	struct own own = own_open();
	own_begin(&own);
	order(&own, "order", "k-1");
	own_do(&own, "rollback");
	assert_rows(0, 0, 0, 0);
	own_begin(&own);
	own_do(&own, "savepoint mine");
	struct ibid_adopted *adopted = adopt(&own, "order", "k-1");
	struct ibid_result *result = NULL;
	struct ibid_err err;
	own_do(&own, "rollback to mine");
	assert_int_equal(ibid_adopted_complete(adopted, 201, body, &result, &err), IBID_MISUSE);
	assert_non_null(strstr(err.text, "not open in this transaction"));
	ibid_adopted_free(adopted);
	own_do(&own, "commit"); /* nothing is unfinished */
	assert_rows(0, 0, 0, 0);

	own_begin(&own);
	adopted = adopt(&own, "order", "k-1");
	own_do(&own, "rollback");
	assert_int_equal(ibid_adopted_complete(adopted, 201, body, &result, &err), IBID_MISUSE);
	own_begin(&own); /* another transaction is not the one that began it */
	assert_int_equal(ibid_adopted_fail(adopted, "x", &result, &err), IBID_MISUSE);
	emit(ibid_adopted_work(adopted), "o-1", 0);
	assert_int_equal(ibid_adopted_complete(adopted, 201, body, &result, &err), IBID_MISUSE);
	assert_non_null(strstr(err.text, "rolled back"));
	own_do(&own, "commit");
	ibid_adopted_free(adopted);
	assert_rows(0, 0, 0, 0);
	own_begin(&own);
	order(&own, "order", "k-1");
	own_do(&own, "commit");
	assert_rows(1, 1, 1, 1);
	own_close(&own);
}

static void a_commit_with_an_unfinished_command_is_refused(void **state) /* B02 I1 */
{
	(void)state;
	struct own own = own_open();
	for (int freed = 0; freed < 2; freed++) {
		own_begin(&own);
		order(&own, "order", "finished");
		struct ibid_adopted *adopted = adopt(&own, "order", "k-1");
		own_effect(&own, "t", "k-1", id_of(adopted));
		if (freed)
			ibid_adopted_free(adopted);
		assert_false(own_exec(&own, "commit"));
		assert_non_null(strstr(own.error, own.db ? "FOREIGN KEY constraint failed"
		                                         : "was begun and not finished"));
		if (own.db)
			own_do(&own, "rollback");
		if (!freed)
			ibid_adopted_free(adopted);
		assert_rows(0, 0, 0, 0);
	}
	if (own.db) { /* there the transaction stays, and may still be put right */
		own_begin(&own);
		struct ibid_adopted *adopted = adopt(&own, "order", "k-1");
		assert_false(own_exec(&own, "commit"));
		complete(adopted);
		own_do(&own, "commit");
		assert_rows(0, 1, 0, 1);
	}
	own_close(&own);
}

/* A transaction that an outermost savepoint opened is one, too. */
static void releasing_the_outermost_savepoint_is_refused_like_a_commit(void **state)
{
	(void)state;
	if (bed.kind == BED_POSTGRES)
		return; /* there is no such thing */
	struct own own = own_open();
	own_do(&own, "savepoint outer");
	struct ibid_adopted *adopted = adopt(&own, "order", "k-1");
	assert_false(own_exec(&own, "release outer"));
	complete(adopted);
	own_do(&own, "release outer");
	assert_rows(0, 1, 0, 1);
	own_close(&own);
}

static void rejections_failures_and_links_are_kept_as_the_contract_says(void **state) /* B07 B09 */
{
	(void)state;
	struct own own = own_open();
	struct ibid_result *result = NULL;
	struct ibid_err err;
	own_begin(&own);
	struct ibid_adopted *adopted = adopt(&own, "order", "rejected");
	emit(ibid_adopted_work(adopted), "o-1", 0); /* forgotten */
	end(ibid_adopted_reject(adopted, "SOLD_OUT", 409, "nothing is left", &result, &err), adopted,
	    &result, &err, "rejected 409");
	adopted = adopt(&own, "order", "failed");
	end(ibid_adopted_fail(adopted, NULL, &result, &err), adopted, &result, &err, "failed 500");
	adopted = adopt(&own, "order", "linked");
	ibid_resource(ibid_adopted_work(adopted), "order", "o-0");
	end(ibid_adopted_link(adopted, 200, "{\"id\":\"o-0\"}", &result, &err), adopted, &result, &err,
	    "linked 200");
	own_do(&own, "commit");
	assert_rows(0, 3, 0, 1);
	register_handlers(ibid);
	bed_expect(ibid, "order", "rejected", payload, "replayed rejected 409");
	bed_expect(ibid, "order", "linked", payload, "replayed linked 200");
	own_begin(&own);
	expect_adopt(&own, "order", "linked", payload, "replayed linked 200");
	adopted = adopt(&own, "order", "failed");
	complete(adopted);
	own_do(&own, "commit");
	assert_int_equal(bed_number(&bed, "select attempts from ibid.command where key = 'failed'"), 2);
	bed_expect(ibid, "order", "failed", payload, "replayed executed 201");
	own_close(&own);
}

/* SQLite can't tell what was rolled back, and refuses nothing. */
static void what_was_written_is_rolled_back_before_a_rejection(void **state)
{
	(void)state;
	struct own own = own_open();
	for (unsigned failing = 0; failing < 2; failing++) {
		struct ibid_result *result = NULL;
		struct ibid_err err = {0};
		const char *key = failing ? "failed" : "rejected";
		own_begin(&own);
		struct ibid_adopted *adopted = adopt(&own, "order", key);
		own_do(&own, "savepoint work");
		own_effect(&own, "t", key, id_of(adopted));
		mode = failing ? MODE_FAIL : MODE_REJECT;
		if (own.conn) {
			assert_int_equal(failing ? ibid_adopted_fail(adopted, "no", &result, &err)
			                         : ibid_adopted_reject(adopted, "NO", 409, NULL, &result, &err),
			                 IBID_MISUSE);
			assert_non_null(
			    strstr(err.text, "has written to public.effect: roll back to the savepoint"));
			assert_null(result);
		}
		own_do(&own, "rollback to savepoint work");
		ibid_result_free(finish_by_mode(&own, adopted));
		own_do(&own, "commit");
		assert_rows(0, failing + 1, 0, 0);
	}
	mode = MODE_COMPLETE;
	own_close(&own);
}

static void a_payload_that_breaks_the_fields_is_rejected_and_kept(void **state)
{
	(void)state;
	struct own own = own_open();
	own_begin(&own);
	expect_adopt(&own, "order", "k-1", "{\"amount\":0}", "rejected 422");
	expect_adopt(&own, "order-soft", "k-1", "{\"amount\":0}", "rejected 422");
	order(&own, "order", "k-2"); /* the transaction goes on */
	own_do(&own, "commit");
	assert_rows(1, 3, 1, 1);
	register_handlers(ibid);
	bed_expect(ibid, "order", "k-1", "{\"amount\":0}", "replayed rejected 422");
	bed_expect(ibid, "order-soft", "k-1", "{\"amount\":0}", "rejected 422");
	own_close(&own);
}

static void a_corrected_payload_takes_the_key_in_the_callers_transaction(void **state) /* B03 B04 */
{
	(void)state;
	static const char invalid[] = "{\"amount\":0}", negative[] = "{\"amount\":-1}";
	struct own own = own_open();
	register_handlers(ibid);
	own_begin(&own);
	struct tried tried = try_adopt(&own, "order-soft", "k-1", invalid);
	assert_non_null(tried.result);
	assert_true(ibid_result_correctable(tried.result));
	assert_int_equal(ibid_result_retry_after_ms(tried.result), 0);
	ibid_result_free(tried.result);
	own_do(&own, "commit");
	own_begin(&own);
	order(&own, "order-soft", "k-1");
	own_do(&own, "rollback"); /* then it is as it was */
	own_begin(&own);
	expect_adopt(&own, "order-soft", "k-1", negative, "rejected 422");
	order(&own, "order-soft", "k-1"); /* in one transaction with what it corrects */
	own_do(&own, "commit");
	own_begin(&own);
	expect_adopt(&own, "order-soft", "k-1", invalid, "conflict 409");
	expect_adopt(&own, "order-soft", "k-1", payload, "replayed executed 201");
	own_do(&own, "commit");
	assert_int_equal(bed_number(&bed, "select sum(count) from ibid.evidence"), 3);
	bed_expect(ibid, "order-soft", "k-1", negative, "conflict 409");
	/* Whoever refused it, either way may correct it. */
	bed_expect(ibid, "order-soft", "k-2", invalid, "rejected 422");
	own_begin(&own);
	order(&own, "order-soft", "k-2");
	expect_adopt(&own, "order-soft", "k-3", invalid, "rejected 422");
	own_do(&own, "commit");
	bed_expect(ibid, "order-soft", "k-2", invalid, "conflict 409");
	bed_expect(ibid, "order-soft", "k-3", payload, "executed 201");
	assert_rows(3, 3, 3, 3);
	own_close(&own);
}

/* ---- The same decisions as ibid_submit ------------------------------------------------------ */

static const char *const states[] = {"COMPLETED", "REJECTED",    "FAILED",
                                     "ACCEPTED",  "IN_PROGRESS", "UNKNOWN"};

/* What a caller sees of a result, without ids, ages and the tenant. */
static void describe(const struct ibid_result *result, char said[2048])
{
	const char *id = ibid_result_command_id(result);
	bool dated = ibid_result_decision(result) == IBID_DECISION_CONFLICT ||
	             ibid_result_decision(result) == IBID_DECISION_EXPIRED;
	char shown[1024];
	snprintf(shown, sizeof shown, "%s", dated ? "" : ibid_result_body(result));
	for (char *at; *id && (at = strstr(shown, id));)
		memset(at, '#', strlen(id));
	snprintf(said, 2048, "%s|%s|%s|%s|%s|%s|id %s|age %d|again %d", bed_say(result), shown,
	         ibid_result_reason(result), dated ? "" : ibid_result_text(result),
	         ibid_result_resource_type(result), ibid_result_resource_id(result), *id ? "yes" : "no",
	         ibid_result_age_ms(result) >= 0, ibid_result_retry_after_ms(result) > 0);
}

static void assert_same(const char *what, struct ibid_result *by_submit,
                        struct ibid_result *by_adopt)
{
	char one[2048], other[2048];
	describe(by_submit, one);
	describe(by_adopt, other);
	if (strcmp(one, other) != 0)
		fail_msg("%s\n  submit: %s\n  adopt:  %s", what, one, other);
	ibid_result_free(by_submit);
	ibid_result_free(by_adopt);
}

/* Tenants t and u went through the same, t by ibid_submit, u by adopting. */
static void assert_tenants_have_the_same_rows(void)
{
	const char *created = bed.kind == BED_SQLITE ? "created_us" : "created_at";
	const char *finished = bed.kind == BED_SQLITE ? "finished_us" : "finished_at";
	const char *expires = bed.kind == BED_SQLITE ? "expires_us" : "expires_at";
	assert_int_equal(rows("ibid.command where tenant = 't'"),
	                 rows("ibid.command where tenant = 'u'"));
	int64_t pairs = bed_number(
	    &bed,
	    "select count(*) from ibid.command a join ibid.command b on a.tenant = 't' and "
	    "b.tenant = 'u' and a.operation = b.operation and a.scope = b.scope and a.key = b.key");
	assert_int_equal(pairs, rows("ibid.command where tenant = 't'"));
	int64_t different = bed_number(
	    &bed,
	    "select count(*) from ibid.command a join ibid.command b on a.tenant = 't' and b.tenant = "
	    "'u' and a.operation = b.operation and a.scope = b.scope and a.key = b.key where (a.state, "
	    "a.scheme, a.contract_version, a.linked, a.status, a.attempts, a.audit_id is null, "
	    "a.lease_token is null, coalesce(a.resource_type, '-'), coalesce(a.resource_id, '-'), "
	    "coalesce(a.reason, '-'), coalesce(a.text, '-'), coalesce(a.client, '-'), "
	    "coalesce(a.actor, '-'), coalesce(a.correlation_id, '-'), "
	    "coalesce(a.causation_id, '-'), coalesce(a.traceparent, '-'), coalesce(a.tracestate, '-'), "
	    "a.%s > a.%s, a.%s < a.%s) <> (b.state, b.scheme, "
	    "b.contract_version, b.linked, b.status, b.attempts, b.audit_id is null, b.lease_token is "
	    "null, coalesce(b.resource_type, '-'), coalesce(b.resource_id, '-'), coalesce(b.reason, "
	    "'-'), coalesce(b.text, '-'), coalesce(b.client, '-'), coalesce(b.actor, '-'), "
	    "coalesce(b.correlation_id, '-'), coalesce(b.causation_id, '-'), coalesce(b.traceparent, "
	    "'-'), coalesce(b.tracestate, '-'), b.%s > "
	    "b.%s, "
	    "b.%s < b.%s)",
	    expires, created, finished, created, expires, created, finished, created);
	assert_int_equal(different, 0);
	static const char *const like[] = {
	    "effect",
	    "ibid.event where type = 'Ordered' and payload = '{\"n\":1}' and ordinal = 1 and "
	    "version = 1 and correlation_id = 'corr' and causation_id = 'cause' and traceparent = "
	    "'" TRACE "' and tracestate = 'a=1' and tenant",
	    "ibid.audit where client = 'c' and actor = 'a' and outcome = 'executed' and fact <> '' and "
	    "resource_type = 'order' and resource_id = 'o-1' and correlation_id = 'corr' and "
	    "traceparent = '" TRACE "' and tracestate = 'a=1' and tenant",
	    "ibid.answer where body = '{\"ordered\":true}' and tenant",
	};
	for (size_t i = 0; i < sizeof like / sizeof *like; i++) {
		const char *where = strstr(like[i], "where") ? "" : " where tenant";
		int64_t one = bed_number(&bed, "select count(*) from %s%s = 't'", like[i], where);
		assert_true(one > 0);
		assert_int_equal(bed_number(&bed, "select count(*) from %s%s = 'u'", like[i], where), one);
	}
}

struct decision_case {
	const char *operation, *state;
	bool same, expired;
};

static void set_state(const struct decision_case *it, const char *key)
{
	char audit[32] = "null", expires[64] = "";
	if (strcmp(it->state, "COMPLETED") == 0)
		snprintf(audit, sizeof audit, "audit_id");
	if (it->expired)
		snprintf(expires, sizeof expires, ", %s",
		         bed.kind == BED_SQLITE ? "expires_us = 1" : "expires_at = '1971-01-01'");
	bed_exec(&bed, "update ibid.command set state = '%s', audit_id = %s%s where key = '%s'",
	         it->state, audit, expires, key);
}

static void duplicates_are_decided_as_by_submit(void **state) /* B01 B03 B04 B08 B10 */
{
	(void)state;
	struct own own = own_open();
	char key[64], what[256];
	int n = 0;
	register_handlers(ibid);
	for (size_t i = 0; i < OPERATIONS; i++) {
		if (strcmp(operations[i], "order-derived") == 0 || strcmp(operations[i], "order-wait") == 0)
			continue; /* another payload is another key; a submit would wait */
		for (size_t k = 0; k < sizeof states / sizeof *states; k++) {
			for (int bits = 0; bits < 4; bits++) {
				struct decision_case it = {operations[i], states[k], bits & 1, bits & 2};
				snprintf(key, sizeof key, "k-%d", n++);
				snprintf(what, sizeof what, "%s %s %s payload%s", it.operation, it.state,
				         it.same ? "same" : "other", it.expired ? ", expired" : "");
				/* Only a success has left events. */
				mode = strcmp(it.state, "COMPLETED") == 0 ? MODE_COMPLETE : MODE_FAIL;
				assert_same(what, submit(ibid, "t", it.operation, key, payload),
				            submit_adopted(&own, "u", it.operation, key, payload));
				set_state(&it, key);
				mode = MODE_COMPLETE;
				const char *again = it.same ? payload : other_payload;
				assert_same(what, submit(ibid, "t", it.operation, key, again),
				            submit_adopted(&own, "u", it.operation, key, again));
			}
		}
	}
	assert_int_equal(bed_number(&bed, "select count(*) from ibid.evidence where tenant = 't'"),
	                 bed_number(&bed, "select count(*) from ibid.evidence where tenant = 'u'"));
	assert_true(rows("ibid.evidence") > 0);
	assert_tenants_have_the_same_rows();
	own_close(&own);
}

static void every_ending_is_told_replayed_and_written_as_by_submit(void **state) /* B07 B08 */
{
	(void)state;
	struct own own = own_open();
	static const char *const payloads[] = {payload, "{\"amount\":-1}", "{\"amount\":\"x\"}",
	                                       "{\"amount\":2,\"count\":7}"};
	char key[64], what[128];
	int n = 0;
	register_handlers(ibid);
	for (size_t i = 0; i < OPERATIONS; i++) {
		for (mode = MODE_COMPLETE; mode < MODES; mode++) {
			for (size_t k = 0; k < sizeof payloads / sizeof *payloads; k++) {
				bool derived = strcmp(operations[i], "order-derived") == 0;
				if (derived && (mode || k))
					continue;
				snprintf(key, sizeof key, "k-%d", n++);
				snprintf(what, sizeof what, "%s mode %d %s", operations[i], mode, payloads[k]);
				for (int time = 0; time < 3; time++)
					assert_same(what,
					            submit(ibid, "t", operations[i], derived ? NULL : key, payloads[k]),
					            submit_adopted(&own, "u", operations[i], derived ? NULL : key,
					                           payloads[k]));
			}
		}
	}
	mode = MODE_COMPLETE;
	assert_tenants_have_the_same_rows();
	own_close(&own);
}

static void a_duplicate_is_counted(void **state) /* B18 */
{
	(void)state;
	struct own own = own_open();
	own_begin(&own);
	order(&own, "order-wait", "k-1");
	own_do(&own, "commit");
	own_begin(&own);
	expect_adopt(&own, "order-wait", "k-1", payload, "replayed executed 201");
	expect_adopt(&own, "order-wait", "k-1", other_payload, "conflict 409");
	own_do(&own, "commit");
	ibid_close(ibid); /* writes what is noted */
	ibid = bed_ibid(&bed, NULL);
	assert_int_equal(bed_number(&bed, "select count from ibid.duplicate"), 2);
	assert_int_equal(rows("ibid.duplicate_seen"), 2);
	own_close(&own);
}

static void a_conflict_leaves_evidence_with_the_callers_commit(void **state) /* B04 */
{
	(void)state;
	struct own own = own_open();
	own_begin(&own);
	order(&own, "order", "k-1");
	own_do(&own, "commit");
	own_begin(&own);
	expect_adopt(&own, "order", "k-1", other_payload, "conflict 409");
	own_do(&own, "rollback");
	assert_int_equal(rows("ibid.evidence"), 0);
	own_begin(&own);
	expect_adopt(&own, "order", "k-1", other_payload, "conflict 409");
	order(&own, "order", "k-2"); /* the transaction goes on */
	expect_adopt(&own, "order", "k-1", other_payload, "conflict 409");
	own_do(&own, "commit");
	assert_int_equal(bed_number(&bed, "select count from ibid.evidence"), 2);
	assert_rows(2, 2, 2, 2);
	own_close(&own);
}

static void a_retry_is_judged_under_the_version_on_its_row(void **state) /* A03 */
{
	(void)state;
	struct own own = own_open();
	own_begin(&own);
	order(&own, "order", "k-1");
	own_do(&own, "commit");
	bed_replace(&bed, "order.yaml", "version: 1", "version: 2");
	bed_replace(&bed, "order.yaml", "fact:", "same_payload: { ignore: [/note] }\nfact:");
	struct ibid *newer = bed_ibid(&bed, NULL);
	own_begin(&own);
	struct tried tried = try_adopt_as(newer, &own, "t", "order", "k-1", payload);
	assert_string_equal(bed_say(tried.result), "replayed executed 201");
	ibid_result_free(tried.result);
	tried = try_adopt_as(newer, &own, "t", "order", "k-1", "{\"amount\":12.5,\"note\":1}");
	assert_string_equal(bed_say(tried.result), "conflict 409");
	ibid_result_free(tried.result);
	order_as(newer, &own, "t", "order", "k-2");
	order(&own, "order", "k-3"); /* a process that is not upgraded yet goes on by its own version */
	own_do(&own, "commit");
	assert_int_equal(
	    bed_number(&bed, "select sum(contract_version) from ibid.command where key <> 'k-2'"), 2);
	assert_int_equal(
	    bed_number(&bed, "select contract_version from ibid.command where key = 'k-2'"), 2);
	ibid_close(newer);
	own_close(&own);
}

/* ---- Many ----------------------------------------------------------------------------------- */

static void several_may_be_open_at_once(void **state)
{
	(void)state;
	struct own own = own_open();
	own_begin(&own);
	struct ibid_adopted *first = adopt(&own, "order", "k-1");
	struct ibid_adopted *second = adopt(&own, "order-brief", "k-1");
	expect_adopt(&own, "order", "k-1", payload, "in_progress 409"); /* by ourselves */
	expect_adopt(&own, "order-again", "k-9", "{\"amount\":0}", "rejected 422");
	emit(ibid_adopted_work(first), "one", 0);
	emit(ibid_adopted_work(second), "two", 0);
	emit(ibid_adopted_work(first), "one", 0);
	char id[64];
	snprintf(id, sizeof id, "%s", id_of(first));
	complete(first);
	expect_adopt(&own, "order", "k-1", payload, "replayed executed 201"); /* in its own eyes */
	own_do(&own, "savepoint later");
	assert_false(own_exec(&own, own.db ? "commit" : "set constraints all immediate"));
	own_do(&own, "rollback to later");
	complete(second);
	own_do(&own, "commit");
	assert_rows(0, 3, 3, 2);
	assert_int_equal(bed_number(&bed,
	                            "select count(*) from ibid.event where aggregateid = 'one' "
	                            "and cast(command_id as text) = '%s'",
	                            id),
	                 2);
	own_close(&own);
}

static void a_transaction_may_hold_a_thousand_commands(void **state)
{
	(void)state;
	struct own own = own_open();
	char key[32];
	own_begin(&own);
	for (int i = 0; i < 1000; i++) {
		snprintf(key, sizeof key, "k-%d", i);
		order(&own, "order-brief", key);
	}
	assert_rows(0, 0, 0, 0);
	own_do(&own, "commit");
	assert_rows(1000, 1000, 1000, 1000);
	own_close(&own);
}

/* ---- Races ---------------------------------------------------------------------------------- */

enum { THREADS = 8, KEYS = 25 };

struct racer {
	pthread_t thread;
	struct ibid *ibid;
	struct own own;
	int number, executed, replayed;
};

/* One try through the racer's own transaction; NULL: to be tried again. */
static struct ibid_result *race_adopted(struct racer *racer, const char *key)
{
	struct own *own = &racer->own;
	if (!own_exec(own, own->db && racer->number % 4 ? "begin immediate" : "begin"))
		return NULL; /* locked for long */
	struct tried tried = try_adopt_as(racer->ibid, own, "t", "order", key, payload);
	if (tried.adopted)
		tried.result = finish_by_mode(own, tried.adopted);
	else if (tried.code && tried.code != IBID_RETRY)
		fail_msg("%s: %s", ibid_code_name(tried.code), tried.err.text);
	own_do(own, tried.result ? "commit" : "rollback");
	return tried.result;
}

static void *race(void *user)
{
	struct racer *racer = user;
	char key[32];
	for (int i = 0; i < KEYS; i++) {
		snprintf(key, sizeof key, "k-%d", racer->number & 2 ? i : KEYS - 1 - i);
		for (bool ended = false; !ended;) {
			struct ibid_result *result = racer->number & 1
			                                 ? race_adopted(racer, key)
			                                 : submit(racer->ibid, "t", "order", key, payload);
			if (!result)
				continue;
			bool executed = ibid_result_decision(result) == IBID_DECISION_EXECUTED;
			ended = executed;
			racer->executed += executed && !ibid_result_replayed(result);
			racer->replayed += executed && ibid_result_replayed(result);
			ibid_result_free(result);
		}
	}
	return NULL;
}

static void adopters_and_submitters_race_and_each_key_has_one_effect(void **state) /* B12 */
{
	(void)state;
	struct racer racers[THREADS];
	struct ibid *second = bed_ibid(&bed, NULL); /* as another process would */
	int executed = 0, replayed = 0;
	register_handlers(ibid);
	register_handlers(second);
	for (int i = 0; i < THREADS; i++) {
		racers[i] = (struct racer){.ibid = i < 5 ? ibid : second, .number = i};
		own_open_url(&racers[i].own, bed.url);
	}
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&racers[i].thread, NULL, race, &racers[i]), 0);
	for (int i = 0; i < THREADS; i++) {
		pthread_join(racers[i].thread, NULL);
		own_close(&racers[i].own);
		executed += racers[i].executed;
		replayed += racers[i].replayed;
	}
	assert_int_equal(executed, KEYS);
	assert_int_equal(replayed, (THREADS - 1) * KEYS);
	assert_rows(KEYS, KEYS, KEYS, KEYS);
	ibid_close(second);
}

/* ---- Kills ---------------------------------------------------------------------------------- */

static void kill_between_begin_and_commit(bool finished)
{
	struct ibid *child = bed_ibid(&bed, NULL);
	struct own own = own_open();
	own_begin(&own);
	if (finished) {
		order_as(child, &own, "t", "order", "k-1");
	} else {
		struct tried tried = try_adopt_as(child, &own, "t", "order", "k-1", payload);
		own_effect(&own, "t", "k-1", id_of(tried.adopted));
	}
	kill(getpid(), SIGKILL);
}

static void a_kill_before_the_commit_leaves_nothing(void **state) /* I1 */
{
	(void)state;
	for (int finished = 0; finished < 2; finished++) {
		int status;
		pid_t pid = fork();
		assert_true(pid >= 0);
		if (pid == 0) {
			kill_between_begin_and_commit(finished);
			_exit(1);
		}
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
		assert_rows(0, 0, 0, 0);
	}
	struct own own = own_open();
	for (bool done = false; !done;) { /* a server notices a client's death in its own time */
		own_begin(&own);
		struct tried tried = try_adopt(&own, "order", "k-1", payload);
		done = tried.adopted != NULL;
		if (done)
			complete(tried.adopted);
		else
			assert_string_equal(bed_say(tried.result), "in_progress 409");
		ibid_result_free(tried.result);
		own_do(&own, "commit");
	}
	assert_rows(0, 1, 0, 1);
	own_close(&own);
}

/* One run of the caller's transaction; false: something failed, and it was rolled back. */
static bool try_order(struct ibid *on, struct own *own)
{
	struct ibid_result *result = NULL;
	own_begin(own);
	struct tried tried = try_adopt_as(on, own, "t", "order", "k-1", payload);
	bool done = tried.result != NULL;
	if (tried.adopted) {
		own_effect(own, "t", "k-1", id_of(tried.adopted));
		emit(ibid_adopted_work(tried.adopted), "o-1", 0);
		done = ibid_adopted_complete(tried.adopted, 201, body, &result, NULL) == IBID_OK;
	}
	bool ended = own_exec(own, done ? "commit" : "rollback");
	ibid_result_free(tried.result);
	ibid_result_free(result);
	ibid_adopted_free(tried.adopted);
	if (!ended) { /* the connection is lost, and the transaction with it */
		assert_false(done);
		own_close(own);
		*own = own_open();
	}
	return done;
}

static void whatever_statement_fails_the_transaction_is_run_again_and_has_one_effect(void **state)
{
	(void)state;
	unsigned failures = 0;
	fault_path("adopt");
	for (int kind = FAULT_FAIL; kind <= FAULT_LOSE; kind++) {
		struct fault opening = {.kind = (enum fault_kind)kind};
		ibid_close(bed_ibid(&bed, &(struct api_seams){.wrap = fault_set, .user = &opening}));
		for (unsigned n = 1;; n++) {
			struct fault fault = {.kind = (enum fault_kind)kind, .at = opening.points + n};
			struct own own = own_open();
			struct ibid *other = bed_ibid(&bed,
			                              &(struct api_seams){.wrap = fault_set, .user = &fault});
			int runs = 1;
			while (!try_order(other, &own))
				runs++;
			bool fired = fault.fired;
			assert_true(runs == 1 || (runs == 2 && fired)); /* some are made good at once */
			failures += (unsigned)runs - 1;
			ibid_close(other);
			own_close(&own);
			assert_rows(1, 1, 1, 1);
			tear_down(NULL);
			set_up(NULL);
			if (!fired)
				break;
		}
	}
	assert_true(failures >= 6); /* adopt, begin, finish; before and after */
}

/* ---- Mistakes ------------------------------------------------------------------------------- */

static void a_mistake_in_finishing_leaves_the_command_open(void **state)
{
	(void)state;
	struct own own = own_open();
	struct ibid_result *result = NULL;
	struct ibid_err err;
	own_begin(&own);
	order(&own, "order", "before");
	struct ibid_adopted *adopted = adopt(&own, "order", "k-1");
	assert_int_equal(ibid_adopted_complete(adopted, 404, NULL, &result, &err), IBID_INVALID);
	assert_int_equal(ibid_adopted_complete(adopted, 200, "{", &result, &err), IBID_INVALID);
	assert_int_equal(ibid_adopted_reject(adopted, "no", 422, NULL, &result, &err), IBID_INVALID);
	assert_int_equal(ibid_adopted_reject(adopted, "NO", 200, NULL, &result, &err), IBID_INVALID);
	assert_int_equal(ibid_adopted_reject(adopted, NULL, 422, NULL, &result, &err), IBID_INVALID);
	emit(ibid_adopted_work(adopted), "o-1", 1);
	emit(ibid_adopted_work(adopted), "o-1", 7); /* not the next: the first is undone, too */
	assert_int_equal(ibid_adopted_complete(adopted, 201, NULL, &result, &err), IBID_FAILED);
	assert_non_null(strstr(err.text, "VERSION_CONFLICT"));
	assert_null(result);
	own_effect(&own, "t", "k-1", "-"); /* the transaction goes on */
	end(ibid_adopted_reject(adopted, "TOO_LATE", 409, NULL, &result, &err), adopted, &result, &err,
	    "rejected 409");

	adopted = adopt(&own, "order", "k-2");
	assert_int_equal(ibid_emit(ibid_adopted_work(adopted),
	                           IBID_EVENT(.aggregate_type = "order", .aggregate_id = "1",
	                                      .type = "Unheard", .payload = "{}")),
	                 IBID_MISUSE);
	assert_int_equal(ibid_adopted_complete(adopted, 201, NULL, &result, &err), IBID_MISUSE);
	assert_non_null(strstr(err.text, "Unheard"));
	result = NULL;
	assert_int_equal(ibid_adopted_fail(adopted, "no such event", &result, &err), IBID_OK);
	ibid_result_free(result);
	result = NULL;
	assert_int_equal(ibid_adopted_fail(adopted, "again", &result, &err), IBID_MISUSE);
	assert_null(result);
	ibid_adopted_free(adopted);
	ibid_adopted_free(NULL);
	own_do(&own, "commit");
	assert_rows(2, 3, 1, 1);
	own_close(&own);
}

static void what_can_not_be_adopted_is_refused_and_nothing_is_touched(void **state)
{
	(void)state;
	struct own own = own_open();
	struct tried tried = {.code = IBID_OK};
	const struct ibid_command *command = IBID_COMMAND(.tenant = "t", .client = "c",
	                                                  .operation = "order", .key = "k",
	                                                  .payload = payload);
	expect_error(&own, "order", "k", IBID_MISUSE, "no transaction is open");
	own_begin(&own);
	expect_error(&own, "order-staged", "k", IBID_MISUSE, "ibid_stage");
	expect_error(&own, "order-upstream", "k", IBID_MISUSE, "it is run by `ibid proxy`");
	expect_error(&own, "order-natural", "k", IBID_MISUSE, "around its handler");
	expect_error(&own, "nothing", "k", IBID_NOT_FOUND, "no contract");
	expect_error(&own, "order", "", IBID_INVALID, "key");
	if (own.db) {
		assert_int_equal(
		    ibid_adopt_postgres(ibid, NULL, command, &tried.adopted, &tried.result, &tried.err),
		    IBID_MISUSE);
		assert_non_null(strstr(tried.err.text, "ibid_adopt_sqlite"));
		assert_int_equal(
		    ibid_adopt_sqlite(ibid, NULL, command, &tried.adopted, &tried.result, &tried.err),
		    IBID_MISUSE);
	} else {
		assert_int_equal(
		    ibid_adopt_sqlite(ibid, NULL, command, &tried.adopted, &tried.result, &tried.err),
		    IBID_MISUSE);
		assert_non_null(strstr(tried.err.text, "ibid_adopt_postgres"));
		assert_int_equal(
		    ibid_adopt_postgres(ibid, NULL, command, &tried.adopted, &tried.result, &tried.err),
		    IBID_MISUSE);
	}
	assert_null(tried.adopted);
	assert_null(tried.result);
	order(&own, "order", "k"); /* the transaction is as good as before */
	own_do(&own, "commit");
	assert_rows(1, 1, 1, 1);
	own_close(&own);
}

static void a_child_of_fork_is_refused(void **state)
{
	(void)state;
	struct own own = own_open();
	own_begin(&own);
	pid_t pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		struct tried tried = try_adopt(&own, "order", "k", payload);
		_exit(tried.code == IBID_MISUSE && strstr(tried.err.text, "fork") ? 0 : 1);
	}
	int status;
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	own_do(&own, "rollback");
	own_close(&own);
}

/* ---- SQLite --------------------------------------------------------------------------------- */

static void a_connection_that_checkpoints_with_an_old_library_is_refused(void **state)
{
	bool old = sqlite3_libversion_number() < 3051003;
	struct own own = own_open();
	(void)state;
	own_do(&own, "pragma wal_autocheckpoint = 1000");
	own_begin(&own);
	if (old)
		expect_error(&own, "order", "k", IBID_MISUSE, "pragma wal_autocheckpoint = 0");
	else
		order(&own, "order", "k");
	own_do(&own, "pragma wal_autocheckpoint = 0");
	order(&own, "order", "k-2");
	own_do(&own, "commit");
	assert_rows(old ? 1 : 2, old ? 1 : 2, old ? 1 : 2, old ? 1 : 2);
	own_close(&own);
}

static void a_connection_without_foreign_keys_is_refused(void **state)
{
	(void)state;
	struct own own = own_open();
	own_do(&own, "pragma foreign_keys = off");
	own_begin(&own);
	own_do(&own, "pragma foreign_keys = on"); /* does nothing in a transaction */
	expect_error(&own, "order", "k", IBID_MISUSE, "pragma foreign_keys = on");
	own_do(&own, "rollback");
	own_close(&own);
}

static void a_temporary_table_that_hides_the_stores_is_refused(void **state)
{
	(void)state;
	struct own own = own_open();
	own_do(&own, "create temp table ibid_audit as select * from ibid_audit");
	own_begin(&own);
	expect_error(&own, "order", "k", IBID_MISUSE, "a temporary table ibid_audit");
	own_do(&own, "drop table temp.ibid_audit");
	struct ibid_adopted *adopted = adopt(&own, "order", "k");
	complete(adopted);
	own_do(&own, "commit");
	assert_rows(0, 1, 0, 1);
	own_close(&own);
}

static void another_file_is_refused_and_another_name_is_not(void **state)
{
	(void)state;
	struct own other;
	char url[512], path[256];
	own_open_url(&other, "sqlite::memory:");
	own_begin(&other);
	expect_error(&other, "order", "k", IBID_MISUSE, "not the store");
	own_do(&other, "rollback");
	own_close(&other);
	snprintf(url, sizeof url, "sqlite:%s/other.db", bed.dir);
	assert_int_equal(ibid_init(IBID_OPTIONS(.store = url, .contracts = bed.contracts), NULL),
	                 IBID_OK);
	own_open_url(&other, url);
	own_begin(&other);
	expect_error(&other, "order", "k", IBID_MISUSE, "not the store");
	own_do(&other, "rollback");
	own_close(&other);
	snprintf(path, sizeof path, "%s/link.db", bed.dir);
	assert_int_equal(symlink(bed.url + strlen("sqlite:"), path), 0);
	snprintf(url, sizeof url, "sqlite:%s", path);
	own_open_url(&other, url);
	own_begin(&other);
	order(&other, "order", "k");
	own_do(&other, "commit");
	own_close(&other);
	assert_rows(1, 1, 1, 1);
}

static void what_only_a_new_transaction_can_mend_is_a_retry(void **state) /* B07 */
{
	(void)state;
	struct own own = own_open(), other = own_open();
	own_begin(&other);
	order(&other, "order", "done");
	own_do(&other, "commit");

	own_do(&own, "begin");
	own_do(&own, "select count(*) from effect");
	bed_exec(&bed, "insert into effect (tenant, key, command_id) values ('x', 'x', 'x')");
	expect_error(&own, "order", "k-1", IBID_RETRY, "begin immediate");
	expect_adopt(&own, "order", "done", payload, "replayed executed 201"); /* writes nothing */
	own_do(&own, "select count(*) from effect"); /* the transaction is as it was */
	own_do(&own, "rollback");

	own_begin(&other);
	sqlite3_busy_timeout(own.db, 0);
	own_do(&own, "begin");
	expect_error(&own, "order", "k-1", IBID_RETRY, "locked by others");
	own_do(&other, "commit");
	order(&own, "order", "k-1");
	own_do(&own, "commit");
	own_close(&own);
	own_close(&other);
}

struct hooks {
	int commits, rollbacks, updates, authorized, busy, progress, traces, pages;
	const char *deny; /* a table; NULL: none */
};

static int on_commit(void *user)
{
	((struct hooks *)user)->commits++;
	return 0;
}
static void on_rollback(void *user)
{
	((struct hooks *)user)->rollbacks++;
}
static void on_update(void *user, int action, const char *database, const char *table,
                      sqlite3_int64 rowid)
{
	(void)action, (void)database, (void)table, (void)rowid;
	((struct hooks *)user)->updates++;
}
static int on_authorize(void *user, int action, const char *first, const char *second,
                        const char *database, const char *trigger)
{
	struct hooks *hooks = user;
	(void)action, (void)second, (void)database, (void)trigger;
	hooks->authorized++;
	return hooks->deny && first && strcmp(first, hooks->deny) == 0 ? SQLITE_DENY : SQLITE_OK;
}
static int on_busy(void *user, int count)
{
	((struct hooks *)user)->busy++;
	return count < 3;
}
static int on_progress(void *user)
{
	((struct hooks *)user)->progress++;
	return 0;
}
static int on_trace(unsigned type, void *user, void *statement, void *text)
{
	(void)type, (void)statement, (void)text;
	((struct hooks *)user)->traces++;
	return 0;
}
static int on_wal(void *user, sqlite3 *db, const char *database, int pages)
{
	(void)db, (void)database;
	((struct hooks *)user)->pages = pages;
	return SQLITE_OK;
}

static void hook_up(sqlite3 *db, struct hooks *hooks)
{
	sqlite3_commit_hook(db, on_commit, hooks);
	sqlite3_rollback_hook(db, on_rollback, hooks);
	sqlite3_update_hook(db, on_update, hooks);
	sqlite3_set_authorizer(db, on_authorize, hooks);
	sqlite3_busy_handler(db, on_busy, hooks);
	sqlite3_progress_handler(db, 1, on_progress, hooks);
	sqlite3_trace_v2(db, SQLITE_TRACE_STMT, on_trace, hooks);
	sqlite3_wal_hook(db, on_wal, hooks);
}

/* Every hook is called for what the caller does now. */
static void assert_hooked(struct own *own, struct hooks *hooks)
{
	struct own other = own_open();
	*hooks = (struct hooks){.commits = 0};
	own_do(&other, "begin immediate");
	assert_false(own_exec(own, "begin immediate"));
	own_do(&other, "rollback");
	own_close(&other);
	assert_int_equal(hooks->busy, 4);
	own_do(own, "insert into effect (tenant, key, command_id) values ('x', 'x', 'x')");
	own_do(own, "begin; delete from effect where tenant = 'x'; rollback");
	assert_int_equal(hooks->commits, 1);
	assert_int_equal(hooks->rollbacks, 1);
	assert_int_equal(hooks->updates, 2);
	assert_true(hooks->authorized > 0 && hooks->progress > 0 && hooks->traces > 0);
	assert_true(hooks->pages > 0);
	assert_ptr_equal(sqlite3_commit_hook(own->db, on_commit, hooks), hooks);
	assert_ptr_equal(sqlite3_rollback_hook(own->db, on_rollback, hooks), hooks);
	assert_ptr_equal(sqlite3_update_hook(own->db, on_update, hooks), hooks);
}

static void the_callers_hooks_and_settings_stay_its_own(void **state)
{
	(void)state;
	struct own own = own_open();
	struct hooks hooks = {.commits = 0};
	hook_up(own.db, &hooks);
	own_begin(&own);
	own_do(&own, "insert into effect (n, tenant, key, command_id) values (77, 't', 'k-0', '-')");
	sqlite3_int64 rowid = sqlite3_last_insert_rowid(own.db);
	struct ibid_adopted *adopted = adopt(&own, "order", "k-1");
	emit(ibid_adopted_work(adopted), "o-1", 0);
	emit(ibid_adopted_work(adopted), "o-1", 0);
	complete(adopted);
	assert_int_equal(sqlite3_last_insert_rowid(own.db), rowid);
	expect_adopt(&own, "order", "k-1", other_payload, "conflict 409");
	assert_int_equal(hooks.commits + hooks.rollbacks, 0);
	own_do(&own, "commit");
	assert_int_equal(hooks.commits, 1);
	assert_hooked(&own, &hooks);
	assert_false(own_exec(&own, "select ibid_emit('a', 'b', 'c', '{}')")); /* no such function */
	assert_false(own_exec(&own, "select decimal_add('1', '2')"));
	own_close(&own);
}

static void an_authorizer_that_refuses_is_told_and_the_transaction_goes_on(void **state)
{
	(void)state;
	struct own own = own_open();
	struct hooks hooks = {.deny = "ibid_open_command"};
	sqlite3_set_authorizer(own.db, on_authorize, &hooks);
	own_begin(&own);
	own_effect(&own, "t", "k-0", "-");
	expect_error(&own, "order", "k-1", IBID_DENIED, "authorizer");
	hooks.deny = NULL;
	order(&own, "order", "k-1");
	own_do(&own, "commit");
	assert_rows(2, 1, 1, 1);
	own_close(&own);
}

static int interrupt(void *user)
{
	int *left = user;
	return --*left < 0;
}

/* Whatever step it hits: SQLite may roll all of it back, refuse to undo anything, or report an
 * interrupt after a statement that was done. A caller that commits all the same never commits a
 * half. */
static void an_interrupted_call_leaves_all_or_nothing(void **state)
{
	(void)state;
	struct own own = own_open();
	int retries = 0;
	for (int steps = 0; steps < 1400; steps += 5) {
		int left = steps;
		struct ibid_result *result = NULL;
		struct ibid_err err;
		char key[32];
		snprintf(key, sizeof key, "k-%d", steps);
		own_begin(&own);
		sqlite3_progress_handler(own.db, 1, interrupt, &left);
		struct tried tried = try_adopt(&own, "order", key, payload);
		enum ibid_code code = tried.code;
		if (tried.adopted) {
			emit(ibid_adopted_work(tried.adopted), key, 0);
			code = ibid_adopted_complete(tried.adopted, 201, body, &result, &err);
		}
		sqlite3_progress_handler(own.db, 0, NULL, NULL);
		assert_true(code == IBID_OK || code == IBID_RETRY);
		retries += code == IBID_RETRY;
		bool committed = !sqlite3_get_autocommit(own.db) && own_exec(&own, "commit");
		if (!sqlite3_get_autocommit(own.db))
			own_do(&own, "rollback");
		assert_true(committed || code);
		int64_t kept = rows("ibid.command");
		assert_true(code || bed_number(&bed, "select 1 from ibid.command where key = '%s'", key));
		assert_rows(0, kept, kept, kept);
		assert_int_equal(rows("ibid.command where state = 'COMPLETED'"), kept);
		assert_int_equal(rows("ibid.answer"), kept);
		ibid_result_free(result);
		ibid_adopted_free(tried.adopted);
	}
	assert_true(retries > 50);
	assert_true(rows("ibid.command") > 50);
	own_close(&own);
}

/* ---- PostgreSQL ----------------------------------------------------------------------------- */

static void a_connection_that_is_not_ready_is_refused(void **state)
{
	(void)state;
	struct own own = own_open();
	own_begin(&own);
	assert_int_equal(PQenterPipelineMode(own.conn), 1);
	expect_error(&own, "order", "k", IBID_MISUSE, "pipeline mode");
	assert_int_equal(PQexitPipelineMode(own.conn), 1);
	assert_int_equal(PQsendQuery(own.conn, "select 1"), 1);
	expect_error(&own, "order", "k", IBID_MISUSE, "a query is running");
	for (PGresult *result; (result = PQgetResult(own.conn));)
		PQclear(result);
	own_do(&own, "set client_encoding = latin1");
	expect_error(&own, "order", "k", IBID_MISUSE, "client_encoding is LATIN1");
	own_do(&own, "set client_encoding = utf8");
	struct ibid_adopted *adopted = adopt(&own, "order", "k");
	own_do(&own, "savepoint mine");
	assert_false(own_exec(&own, "select 1 / 0"));
	expect_error(&own, "order", "k-2", IBID_MISUSE, "the transaction has failed");
	struct ibid_result *result = NULL;
	struct ibid_err err;
	assert_int_equal(ibid_adopted_complete(adopted, 201, NULL, &result, &err), IBID_MISUSE);
	own_do(&own, "rollback to mine");
	complete(adopted);
	own_do(&own, "commit");
	assert_rows(0, 1, 0, 1);
	own_do(&own, "begin read only");
	expect_error(&own, "order", "k-3", IBID_MISUSE, "the transaction is read-only");
	own_do(&own, "commit");
	own_close(&own);

	own = own_open();
	own_begin(&own);
	adopted = adopt(&own, "order", "lost");
	bed_exec(&bed, "select pg_terminate_backend(%d)", PQbackendPID(own.conn));
	assert_int_equal(ibid_adopted_complete(adopted, 201, NULL, &result, &err), IBID_UNAVAILABLE);
	assert_int_equal(ibid_adopted_complete(adopted, 201, NULL, &result, &err), IBID_UNAVAILABLE);
	expect_error(&own, "order", "k", IBID_UNAVAILABLE, "lost");
	ibid_adopted_free(adopted);
	own_close(&own);
	assert_rows(0, 1, 0, 1);
}

static void another_database_is_refused(void **state)
{
	(void)state;
	struct own other;
	own_open_url(&other, getenv("IBID_TEST_PG"));
	own_begin(&other);
	expect_error(&other, "order", "k", IBID_MISUSE, "not that of the store");
	own_do(&other, "select 1"); /* the transaction goes on */
	own_do(&other, "commit");
	own_close(&other);
}

static void any_isolation_level_will_do(void **state)
{
	(void)state;
	static const char *const levels[] = {"read uncommitted", "read committed", "repeatable read",
	                                     "serializable"};
	struct own own = own_open();
	register_handlers(ibid);
	for (int i = 0; i < 4; i++) {
		char sql[64], key[32];
		bool snapshot = i >= 2;
		snprintf(sql, sizeof sql, "begin isolation level %s", levels[i]);
		snprintf(key, sizeof key, "k-%d", i);
		own_do(&own, sql);
		order(&own, "order", key);
		expect_adopt(&own, "order", key, payload, "replayed executed 201");
		own_do(&own, "commit");
		own_do(&own, sql);
		expect_adopt(&own, "order", key, payload, "replayed executed 201");
		expect_adopt(&own, "order", key, other_payload, "conflict 409");
		snprintf(key, sizeof key, "lost-%d", i);
		bed_expect(ibid, "order", key, payload, "executed 201"); /* by another, meanwhile */
		if (snapshot)
			expect_error(&own, "order", key, IBID_RETRY, "roll your transaction back");
		else
			expect_adopt(&own, "order", key, payload, "replayed executed 201");
		own_do(&own, "select 1"); /* not even then is it aborted */
		own_do(&own, snapshot ? "rollback" : "commit");
	}
	assert_rows(8, 8, 8, 8);
	own_close(&own);
}

static void a_twin_is_told_at_once(void **state) /* B05 */
{
	(void)state;
	struct own own = own_open(), other = own_open();
	register_handlers(ibid);
	own_begin(&own);
	struct ibid_adopted *adopted = adopt(&own, "order", "k-1");
	own_begin(&other);
	expect_adopt(&other, "order", "k-1", payload, "in_progress 409");
	bed_expect(ibid, "order", "k-1", payload, "in_progress 409");
	own_do(&other, "commit");
	complete(adopted);
	own_do(&own, "commit");
	own_begin(&other);
	expect_adopt(&other, "order", "k-1", payload, "replayed executed 201");
	own_do(&other, "commit");
	own_close(&own);
	own_close(&other);
}

static void count_notice(void *user, const char *message)
{
	(void)message;
	++*(int *)user;
}

static void receive_notice(void *user, const PGresult *result)
{
	(void)result;
	++*(int *)user;
}

static void the_callers_notices_stay_its_own(void **state)
{
	(void)state;
	struct own own = own_open();
	int notices = 0;
	PQsetNoticeProcessor(own.conn, count_notice, &notices);
	own_begin(&own);
	order(&own, "order", "k-1");
	own_do(&own, "do $$ begin raise notice 'x'; end $$");
	assert_int_equal(notices, 1);
	assert_ptr_equal(PQsetNoticeProcessor(own.conn, NULL, NULL), count_notice);
	PQsetNoticeReceiver(own.conn, receive_notice, &notices);
	order(&own, "order", "k-2");
	own_do(&own, "do $$ begin raise notice 'x'; end $$");
	assert_int_equal(notices, 2);
	assert_ptr_equal(PQsetNoticeReceiver(own.conn, NULL, NULL), receive_notice);
	own_do(&own, "commit");
	assert_int_equal(bed_number(&bed, "select count(*) from pg_prepared_statements"), 0);
	own_close(&own);
}

/* The test server's URL of the bed, as another role. */
static void url_of_role(char *url, size_t size, const char *role)
{
	const char *at = strchr(bed.url, '@');
	assert_non_null(at);
	snprintf(url, size, "postgres://%s%s", role, at);
}

static void a_role_uses_its_own_tenants_only(void **state)
{
	(void)state;
	char role[96], url[512];
	struct own own;
	snprintf(role, sizeof role, "app_%s", bed.database);
	bed_exec(&bed, "create role \"%s\" login in role ibid_app", role);
	bed_exec(&bed, "grant select, insert on effect to \"%s\"", role);
	bed_exec(&bed, "select ibid.grant_tenant('%s', 't')", role);
	url_of_role(url, sizeof url, role);
	own_open_url(&own, url);
	own_begin(&own);
	struct tried tried = try_adopt_as(ibid, &own, "u", "order", "k-1", payload);
	assert_int_equal(tried.code, IBID_DENIED);
	assert_non_null(strstr(tried.err.text, "has no tenant"));
	order(&own, "order", "k-1"); /* the transaction goes on */
	expect_adopt(&own, "order", "k-1", other_payload, "conflict 409");
	own_do(&own, "commit");
	assert_rows(1, 1, 1, 1);
	assert_int_equal(rows("ibid.evidence"), 1);
	own_close(&own);
	bed_exec(&bed, "drop owned by \"%s\"", role);
	bed_exec(&bed, "drop role \"%s\"", role);
}

int main(int argc, char **argv)
{
	bed_choose(argc, argv);
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
	    TEST(everything_is_in_the_callers_commit),
	    TEST(what_the_contract_keeps_of_the_payload_is_in_the_callers_commit),
	    TEST(a_rollback_undoes_everything_and_the_key_is_free),
	    TEST(a_commit_with_an_unfinished_command_is_refused),
	    TEST(releasing_the_outermost_savepoint_is_refused_like_a_commit),
	    TEST(rejections_failures_and_links_are_kept_as_the_contract_says),
	    TEST(what_was_written_is_rolled_back_before_a_rejection),
	    TEST(a_payload_that_breaks_the_fields_is_rejected_and_kept),
	    TEST(a_corrected_payload_takes_the_key_in_the_callers_transaction),
	    TEST(duplicates_are_decided_as_by_submit),
	    TEST(every_ending_is_told_replayed_and_written_as_by_submit),
	    TEST(a_duplicate_is_counted),
	    TEST(a_conflict_leaves_evidence_with_the_callers_commit),
	    TEST(a_retry_is_judged_under_the_version_on_its_row),
	    TEST(several_may_be_open_at_once),
	    TEST(a_transaction_may_hold_a_thousand_commands),
	    TEST(adopters_and_submitters_race_and_each_key_has_one_effect),
	    TEST(a_kill_before_the_commit_leaves_nothing),
	    TEST(whatever_statement_fails_the_transaction_is_run_again_and_has_one_effect),
	    TEST(a_mistake_in_finishing_leaves_the_command_open),
	    TEST(what_can_not_be_adopted_is_refused_and_nothing_is_touched),
	    TEST(a_child_of_fork_is_refused),
	};
	const struct CMUnitTest on_sqlite[] = {
	    TEST(a_connection_that_checkpoints_with_an_old_library_is_refused),
	    TEST(a_connection_without_foreign_keys_is_refused),
	    TEST(a_temporary_table_that_hides_the_stores_is_refused),
	    TEST(another_file_is_refused_and_another_name_is_not),
	    TEST(what_only_a_new_transaction_can_mend_is_a_retry),
	    TEST(the_callers_hooks_and_settings_stay_its_own),
	    TEST(an_authorizer_that_refuses_is_told_and_the_transaction_goes_on),
	    TEST(an_interrupted_call_leaves_all_or_nothing),
	};
	const struct CMUnitTest on_postgres[] = {
	    TEST(a_connection_that_is_not_ready_is_refused),
	    TEST(another_database_is_refused),
	    TEST(any_isolation_level_will_do),
	    TEST(a_twin_is_told_at_once),
	    TEST(the_callers_notices_stay_its_own),
	    TEST(a_role_uses_its_own_tenants_only),
	};
	int failed = cmocka_run_group_tests_name("adopt", tests, NULL, NULL);
	if (bed_kind == BED_SQLITE)
		failed += cmocka_run_group_tests_name("adopt, SQLite", on_sqlite, NULL, NULL);
	else
		failed += cmocka_run_group_tests_name("adopt, PostgreSQL", on_postgres, NULL, NULL);
	return failed;
}
