/* SPDX-License-Identifier: Apache-2.0 */
/* test_event.c -- an event is held to its contract when it is written, whoever emits it. */
#include "support/bed.h"

#include "command/ledger.h"
#include "contract/event.h"

#include <libpq-fe.h>
#include <sqlite3.h>
#include <stdio.h>
#include <string.h>

#define FIXTURE   IBID_SOURCE_DIR "/test/flow/events"
#define GOOD      "{\"amount\":1,\"line\":{\"no\":2},\"account\":\"A-1\"}"
#define LONG_TEXT "aaaaaaaaaabbbbbbbbbbccccccccccddddddddddeeeeeeeeee"
#define VERSION_1 "event Told version 1: "
#define TRACE     "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

static struct bed bed;
static struct ibid *ibid;

/* ---- What is told --------------------------------------------------------------------------- */

struct telling {
	const char *aggregate, *body;
};

/* In a callback: what the test wants. */
static struct telling wanted;

static enum ibid_code tell(struct ibid_work *work, void *user)
{
	(void)user;
	enum ibid_code code = ibid_emit(work, IBID_EVENT(.aggregate_type = wanted.aggregate,
	                                                 .aggregate_id = ibid_work_key(work),
	                                                 .type = "Told", .payload = wanted.body));
	/* A handler that does not look at the code fails all the same. */
	assert_true(code == IBID_OK || code == IBID_INVALID);
	return ibid_answer(work, 201, "{}");
}

/* In a script: what stands in the source under its id. */
static void write_source(const char *id, const struct telling *telling)
{
	bed_exec(&bed, "delete from source where id = '%s'", id);
	bed_exec(&bed, "insert into source (id, aggregate, body) values ('%s', '%s', '%s')", id,
	         telling->aggregate, telling->body);
}

static void open_ibid(void)
{
	struct ibid_err err;
	ibid = bed_ibid(&bed, NULL);
	assert_int_equal(ibid_handle(ibid, "call", tell, NULL, &err), IBID_OK);
}

static int set_up(void **state)
{
	(void)state;
	bed_open(&bed, FIXTURE);
	open_ibid();
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	ibid_close(ibid);
	bed_close(&bed);
	return 0;
}

/* ---- Ways to emit --------------------------------------------------------------------------- */

static const char *const operations[] = {"call", "tell", "tell-long"};
#define COUNT(array) (sizeof(array) / sizeof *(array))

static struct ibid_result *submit(const char *operation, const char *id,
                                  const struct telling *telling)
{
	char payload[64];
	snprintf(payload, sizeof payload, "{\"id\":\"%s\"}", id);
	wanted = *telling;
	write_source(id, telling);
	return bed_submit(ibid, operation, id, payload);
}

static void expect_said(const char *operation, const char *id, const struct telling *telling,
                        const char *said, const char *text)
{
	struct ibid_result *result = submit(operation, id, telling);
	const char *found = ibid_result_text(result) ? ibid_result_text(result) : "";
	if (strcmp(bed_say(result), said) != 0 || !strstr(found, text))
		fail_msg("%s %s: %s: %s; expected %s: %s", operation, telling->body, bed_say(result), found,
		         said, text);
	ibid_result_free(result);
}

static void assert_event(const char *id, const char *topic, const char *key, const char *headers)
{
	if (bed_number(&bed,
	               "select count(*) from ibid.event where aggregateid = '%s' and topic = '%s' and "
	               "partition_key = '%s' and headers = '%s'",
	               id, topic, key, headers) != 1)
		fail_msg("%s: not one event to %s, by %s, with %s", id, topic, key, headers);
}

static const char topic_1[] = "tests.ledger.events.v1",
                  headers_1[] =
                      "{\"event_version\":\"1\",\"deliver_to\":\"kafka-main,audit-file\"}";

/* ---- Violations ----------------------------------------------------------------------------- */

#define LINE "\"line\":{\"no\":2}"
#define BY(account)                                                                                \
	{                                                                                              \
		"ledger", "{\"amount\":1," LINE ",\"account\":" account "}"                                \
	}
#define KEY VERSION_1 "its partition key /account "

static const struct {
	struct telling telling;
	const char *text;
} violations[] = {
    {{"payment", GOOD}, VERSION_1 "its aggregate is payment, and its contract says ledger"},
    {{"ledger", "{" LINE ",\"account\":\"A-1\"}"},
     VERSION_1 "/amount is missing, which its contract requires"},
    {{"ledger", "{\"amount\":null," LINE ",\"account\":\"A-1\"}"},
     VERSION_1 "/amount is missing, which its contract requires"},
    {{"ledger", "{\"amount\":1,\"line\":[2],\"account\":\"A-1\"}"},
     VERSION_1 "/line/no is missing, which its contract requires"},
    {{"ledger", "[1]"}, VERSION_1 "/amount is missing, which its contract requires"},
    {{"ledger", "{\"amount\":1," LINE ",\"account\":\"A-1\",\"note\":\"" LONG_TEXT LONG_TEXT "\"}"},
     ", and its contract allows 120"},
    {{"ledger", "{\"amount\":1," LINE "}"}, KEY "is missing"},
    {BY("null"), KEY "is missing"},
    {BY("\"\""), KEY "is an empty text"},
    {BY("true"), KEY "is neither a text nor an integer"},
    {BY("{\"id\":1}"), KEY "is neither a text nor an integer"},
    {BY("[1]"), KEY "is neither a text nor an integer"},
    {BY("1.5"), KEY "is no integer of at most 18 digits"},
    {BY("1e-1"), KEY "is no integer of at most 18 digits"},
    {BY("1000000000000000000"), KEY "is no integer of at most 18 digits"},
    {BY("-1e18"), KEY "is no integer of at most 18 digits"},
};

/* Rows that a command with this id left: of the script, of its event, of its aggregate. */
static int64_t written(const char *id)
{
	return bed_number(&bed,
	                  "select (select count(*) from told where id = '%s')"
	                  " + (select count(*) from ibid.event where aggregateid = '%s')"
	                  " + (select count(*) from ibid.aggregate where id = '%s')",
	                  id, id, id);
}

/* A01 C01 */
static void an_event_that_violates_its_contract_fails_its_command(void **state)
{
	static const struct telling good = {"ledger", GOOD};
	(void)state;
	for (size_t k = 0; k < COUNT(operations); k++) {
		for (size_t i = 0; i < COUNT(violations); i++) {
			char id[48];
			snprintf(id, sizeof id, "%s-%zu", operations[k], i);
			expect_said(operations[k], id, &violations[i].telling, "failed 500",
			            violations[i].text);
			assert_int_equal(written(id), 0);
			assert_int_equal(
			    bed_number(&bed, "select count(*) from ibid.command where state = 'FAILED'"), 1);
			/* After a repair the same key gets through. */
			expect_said(operations[k], id, &good, "executed 201", "");
			assert_event(id, topic_1, "A-1", headers_1);
			assert_int_equal(written(id), 2 + (k > 0));
		}
	}
}

/* A key of 256 bytes does not fit into the fixture's events. */
static void a_partition_key_is_at_most_255_bytes(void **state)
{
	(void)state;
	ibid_close(ibid);
	bed_replace(&bed, "told.yaml", "version: 1", "version: 2\nmax_bytes: 2000");
	bed_init(&bed);
	open_ibid();
	for (size_t k = 0; k < COUNT(operations); k++) {
		char body[512], key[257], id[48];
		memset(key, 'k', 256);
		key[256] = '\0';
		snprintf(body, sizeof body, "{\"amount\":1," LINE ",\"account\":\"%s\"}", key);
		snprintf(id, sizeof id, "%s-256", operations[k]);
		expect_said(operations[k], id, &(struct telling){"ledger", body}, "failed 500",
		            "event Told version 2: its partition key /account is longer than 255 bytes");
		key[255] = '\0';
		snprintf(body, sizeof body, "{\"amount\":1," LINE ",\"account\":\"%s\"}", key);
		snprintf(id, sizeof id, "%s-255", operations[k]);
		expect_said(operations[k], id, &(struct telling){"ledger", body}, "executed 201", "");
		assert_event(id, topic_1, key,
		             "{\"event_version\":\"2\",\"deliver_to\":\"kafka-main,audit-file\"}");
	}
}

/* ---- Where it goes -------------------------------------------------------------------------- */

/* C05: one value is one key, however it is written. */
static void topic_partition_key_and_headers_are_stored_with_the_event(void **state)
{
	static const struct {
		struct telling telling;
		const char *key;
	} keys[] = {
	    {BY("\"A-1\""), "A-1"}, {BY("\"\\u00e9 x\""), "\xc3\xa9 x"},
	    {BY("7"), "7"},         {BY("7.0"), "7"},
	    {BY("1e2"), "100"},     {BY("-0"), "0"},
	    {BY("-12"), "-12"},     {BY("999999999999999999"), "999999999999999999"},
	    {BY("\"7.0\""), "7.0"},
	};
	(void)state;
	for (size_t k = 0; k < COUNT(operations); k++)
		for (size_t i = 0; i < COUNT(keys); i++) {
			char id[48];
			snprintf(id, sizeof id, "%s-%zu", operations[k], i);
			expect_said(operations[k], id, &keys[i].telling, "executed 201", "");
			assert_event(id, topic_1, keys[i].key, headers_1);
		}
}

static void partition_by(const char *version, const char *from)
{
	char text[256];
	ibid_close(ibid);
	snprintf(text, sizeof text,
	         "event: Told\nversion: %s\ntopic: by-%s\naggregate: ledger\npartition_key: %s\n"
	         "required: []\n",
	         version, version, from);
	bed_write(&bed, "told.yaml", text);
	bed_init(&bed);
	open_ibid();
}

static void the_partition_key_is_the_aggregates_id_or_the_tenant(void **state)
{
	static const struct telling empty = {"ledger", "{}"};
	(void)state;
	partition_by("2", "aggregate_id");
	for (size_t k = 0; k < COUNT(operations); k++) {
		expect_said(operations[k], operations[k], &empty, "executed 201", "");
		assert_event(operations[k], "by-2", operations[k],
		             "{\"event_version\":\"2\",\"deliver_to\":\"kafka-main,audit-file\"}");
	}
	bed_exec(&bed, "delete from told");
	partition_by("3", "tenant");
	for (size_t k = 0; k < COUNT(operations); k++) {
		char id[48];
		snprintf(id, sizeof id, "%s-3", operations[k]);
		expect_said(operations[k], id, &empty, "executed 201", "");
		assert_event(id, "by-3", "t",
		             "{\"event_version\":\"3\",\"deliver_to\":\"kafka-main,audit-file\"}");
	}
}

/* Rolled out one by one, each process goes by the contract that it has loaded. */
static void a_process_goes_by_the_version_that_it_has_loaded(void **state)
{
	static const struct telling good = {"ledger", GOOD};
	(void)state;
	struct ibid *old = ibid, *new;
	bed_replace(&bed, "told.yaml", "version: 1", "version: 2");
	bed_replace(&bed, "told.yaml", "events.v1", "events.v2");
	bed_replace(&bed, "told.yaml", "[/amount,", "[/amount, /currency,");
	bed_init(&bed);
	open_ibid();
	new = ibid;
	for (size_t k = 0; k < COUNT(operations); k++) {
		char id[48];
		ibid = old;
		snprintf(id, sizeof id, "%s-old", operations[k]);
		expect_said(operations[k], id, &good, "executed 201", "");
		assert_event(id, topic_1, "A-1", headers_1);
		ibid = new;
		snprintf(id, sizeof id, "%s-new", operations[k]);
		expect_said(operations[k], id, &good, "failed 500",
		            "event Told version 2: /currency is missing, which its contract requires");
		expect_said(operations[k], id,
		            &(struct telling){"ledger", "{\"amount\":1,\"currency\":\"EUR\"," LINE
		                                        ",\"account\":\"A-1\"}"},
		            "executed 201", "");
		assert_event(id, "tests.ledger.events.v2", "A-1",
		             "{\"event_version\":\"2\",\"deliver_to\":\"kafka-main,audit-file\"}");
	}
	ibid_close(old);
}

/* What a relay looks up for an event that was written before. */
static void an_old_version_is_found_by_whoever_delivers_its_events(void **state)
{
	(void)state;
	const struct event_contract *event = NULL;
	struct ibid_err err;
	ibid_close(ibid);
	bed_replace(&bed, "told.yaml", "version: 1", "version: 2\ndeliver_to: []");
	bed_init(&bed);
	open_ibid();
	assert_int_equal(ledger_event(ibid->ledger, "Told", 2, &event, &err), IBID_OK);
	assert_int_equal(event->deliver_to.count, 0);
	for (int again = 0; again < 2; again++) {
		assert_int_equal(ledger_event(ibid->ledger, "Told", 1, &event, &err), IBID_OK);
		assert_int_equal(event->rule.version, 1);
		assert_int_equal(event->deliver_to.count, 2);
		assert_string_equal(event->deliver_to.items[0], "kafka-main");
		assert_string_equal(event->on_parked.owner, "tests");
		assert_int_equal(event->on_parked.severity, SEVERITY_HIGH);
		assert_int_equal(event->on_parked.sla_us, INT64_C(4) * 3600 * 1000000);
		assert_true(event->on_parked.skip_needs_approval);
	}
	assert_int_equal(ledger_event(ibid->ledger, "Told", 3, &event, &err), IBID_NOT_FOUND);
	assert_int_equal(ledger_event(ibid->ledger, "tell", 1, &event, &err), IBID_NOT_FOUND);
}

static void without_any_contract_of_an_event_they_go_nowhere(void **state)
{
	static const char *const kept[] = {"call.yaml", "tell.yaml", "tell-long.yaml", NULL};
	static const struct telling any = {"thing", "[1]"};
	(void)state;
	ibid_close(ibid);
	bed_keep_contracts(&bed, kept);
	bed_init(&bed);
	open_ibid();
	for (size_t k = 0; k < COUNT(operations); k++)
		expect_said(operations[k], operations[k], &any, "executed 201", "");
	assert_int_equal(bed_number(&bed, "select count(*) from ibid.event where topic is null and "
	                                  "partition_key = aggregateid and headers = '{}'"),
	                 COUNT(operations));
}

/* ---- In a transaction of the caller's ------------------------------------------------------- */

struct own {
	sqlite3 *db;
	PGconn *conn;
};

static void own_do(struct own *own, const char *sql)
{
	if (own->db) {
		assert_int_equal(sqlite3_exec(own->db, sql, NULL, NULL, NULL), SQLITE_OK);
	} else {
		PGresult *result = PQexec(own->conn, sql);
		assert_int_equal(PQresultStatus(result), PGRES_COMMAND_OK);
		PQclear(result);
	}
}

static struct own own_open(void)
{
	struct own own = {.db = NULL};
	if (bed.kind == BED_SQLITE) {
		assert_int_equal(sqlite3_open(bed.url + strlen("sqlite:"), &own.db), SQLITE_OK);
		own_do(&own, "pragma foreign_keys = on");
		own_do(&own, "pragma wal_autocheckpoint = 0");
	} else {
		own.conn = PQconnectdb(bed.url);
		assert_int_equal(PQstatus(own.conn), CONNECTION_OK);
	}
	return own;
}

static void own_close(struct own *own)
{
	sqlite3_close(own->db);
	PQfinish(own->conn);
}

static struct ibid_adopted *adopt(struct own *own, const char *key)
{
	struct ibid_adopted *adopted = NULL;
	struct ibid_result *result = NULL;
	struct ibid_err err;
	const struct ibid_command *command = IBID_COMMAND(.tenant = "t", .client = "c",
	                                                  .operation = "call", .key = key,
	                                                  .payload = "{}", .traceparent = TRACE);
	enum ibid_code code = own->db
	                          ? ibid_adopt_sqlite(ibid, own->db, command, &adopted, &result, &err)
	                          : ibid_adopt_postgres(ibid, own->conn, command, &adopted, &result,
	                                                &err);
	if (code || !adopted)
		fail_msg("adopt: %s", code ? err.text : bed_say(result));
	return adopted;
}

static enum ibid_code emit_adopted(struct ibid_adopted *adopted, const struct telling *telling)
{
	struct ibid_work *work = ibid_adopted_work(adopted);
	return ibid_emit(work, IBID_EVENT(.aggregate_type = telling->aggregate,
	                                  .aggregate_id = ibid_work_key(work), .type = "Told",
	                                  .payload = telling->body));
}

static void an_adopted_command_is_not_completed_with_a_violation(void **state)
{
	(void)state;
	struct own own = own_open();
	for (size_t i = 0; i < COUNT(violations); i++) {
		struct ibid_result *result = NULL;
		struct ibid_err err;
		own_do(&own, "begin");
		struct ibid_adopted *adopted = adopt(&own, "k");
		assert_int_equal(emit_adopted(adopted, &violations[i].telling), IBID_INVALID);
		assert_int_equal(ibid_adopted_complete(adopted, 201, "{}", &result, &err), IBID_INVALID);
		assert_non_null(strstr(err.text, violations[i].text));
		ibid_adopted_free(adopted);
		own_do(&own, "rollback");
	}
	assert_int_equal(bed_number(&bed, "select count(*) from ibid.command"), 0);
	own_close(&own);
}

static void an_adopted_commands_event_is_stored_with_where_it_goes(void **state)
{
	static const struct telling good = {"ledger", GOOD};
	(void)state;
	struct own own = own_open();
	struct ibid_result *result = NULL;
	struct ibid_err err;
	own_do(&own, "begin");
	struct ibid_adopted *adopted = adopt(&own, "k");
	assert_int_equal(emit_adopted(adopted, &good), IBID_OK);
	assert_int_equal(ibid_adopted_complete(adopted, 201, "{}", &result, &err), IBID_OK);
	ibid_result_free(result);
	ibid_adopted_free(adopted);
	own_do(&own, "commit");
	assert_event("k", topic_1, "A-1", headers_1);
	assert_int_equal(
	    bed_number(&bed, "select count(*) from ibid.event where traceparent = '" TRACE "'"), 1);
	own_close(&own);
}

/* On PostgreSQL the functions of the SQL API write it: by the newest contract that is kept. */
static void on_postgres_an_adopted_command_goes_by_the_newest_kept(void **state)
{
	static const struct telling good = {"ledger", GOOD};
	(void)state;
	bed_replace(&bed, "told.yaml", "version: 1", "version: 2");
	bed_replace(&bed, "told.yaml", "[/amount,", "[/amount, /currency,");
	bed_init(&bed);
	struct own own = own_open();
	struct ibid_result *result = NULL;
	struct ibid_err err;
	own_do(&own, "begin");
	struct ibid_adopted *adopted = adopt(&own, "k");
	assert_int_equal(emit_adopted(adopted, &good), IBID_OK);
	assert_int_equal(ibid_adopted_complete(adopted, 201, "{}", &result, &err), IBID_FAILED);
	assert_non_null(strstr(err.text, "event Told version 2: /currency is missing"));
	ibid_adopted_free(adopted);
	own_do(&own, "rollback");
	own_close(&own);
}

/* ---- Keeping -------------------------------------------------------------------------------- */

static void a_changed_contract_of_an_event_needs_a_new_version(void **state)
{
	(void)state;
	struct ibid *other = NULL;
	struct ibid_err err;
	bed_replace(&bed, "told.yaml", "events.v1", "events.v2");
	assert_int_equal(
	    ibid_open(IBID_OPTIONS(.store = bed.url, .contracts = bed.contracts), &other, &err),
	    IBID_CONTRACT);
	assert_non_null(strstr(err.text, "told.yaml: version 1 of Told was changed after it was put to "
	                                 "use; events tell the version they were written under"));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
	    TEST(an_event_that_violates_its_contract_fails_its_command),
	    TEST(a_partition_key_is_at_most_255_bytes),
	    TEST(topic_partition_key_and_headers_are_stored_with_the_event),
	    TEST(the_partition_key_is_the_aggregates_id_or_the_tenant),
	    TEST(a_process_goes_by_the_version_that_it_has_loaded),
	    TEST(an_old_version_is_found_by_whoever_delivers_its_events),
	    TEST(without_any_contract_of_an_event_they_go_nowhere),
	    TEST(an_adopted_command_is_not_completed_with_a_violation),
	    TEST(an_adopted_commands_event_is_stored_with_where_it_goes),
	    TEST(a_changed_contract_of_an_event_needs_a_new_version),
	};
	const struct CMUnitTest on_postgres[] = {
	    TEST(on_postgres_an_adopted_command_goes_by_the_newest_kept)};
	bed_choose(argc, argv);
	int failed = cmocka_run_group_tests_name("event", tests, NULL, NULL);
	if (bed_kind == BED_POSTGRES)
		failed += cmocka_run_group_tests_name("event, on PostgreSQL", on_postgres, NULL, NULL);
	return failed;
}
