/* SPDX-License-Identifier: Apache-2.0 */
/* test_ledger.c -- one outcome per intent, through the public C API, on both stores. */
#include "support/bed.h"
#include "support/ended.h"

#include <libpq-fe.h>
#include <pthread.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define FIXTURE IBID_SOURCE_DIR "/test/flow/contracts"

static struct bed bed;
static struct ibid *ibid;

static int set_up(void **state)
{
	(void)state;
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

static int64_t rows(const char *table)
{
	return bed_number(&bed, "select count(*) from %s", table);
}

/* One effect, one event where there is one, one audit entry, one command. */
static void assert_rows(int64_t payments, int64_t events, int64_t audits, int64_t commands)
{
	assert_int_equal(rows("payment"), payments);
	assert_int_equal(rows("ibid.event"), events);
	assert_int_equal(rows("ibid.audit"), audits);
	assert_int_equal(rows("ibid.command"), commands);
}

/* ---- A callback that does what the test tells it -------------------------------------------- */

struct act {
	enum ibid_code retries_then; /* returned while `times` > 0 */
	int times;
	const char *reject; /* reason code */
	bool fail_after_effect;
	bool emit_version_gap;
	const char *event_key;
	int calls;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	bool hold, holding; /* stop inside the handler until released */
};

static void add_effect(struct ibid_work *work)
{
	sqlite3 *db = ibid_work_sqlite(work);
	PGconn *conn = ibid_work_postgres(work);
	const char *values[3] = {ibid_work_tenant(work), ibid_work_key(work),
	                         ibid_work_command_id(work)};
	if (db) {
		sqlite3_stmt *statement;
		assert_int_equal(
		    sqlite3_prepare_v2(db, "insert into effect (tenant, key, command_id) values (?, ?, ?)",
		                       -1, &statement, NULL),
		    SQLITE_OK);
		for (int i = 0; i < 3; i++)
			sqlite3_bind_text(statement, i + 1, values[i], -1, SQLITE_TRANSIENT);
		assert_int_equal(sqlite3_step(statement), SQLITE_DONE);
		sqlite3_finalize(statement);
	} else {
		PGresult *result = PQexecParams(
		    conn, "insert into effect (tenant, key, command_id) values ($1, $2, $3)", 3, NULL,
		    values, NULL, NULL, 0);
		assert_int_equal(PQresultStatus(result), PGRES_COMMAND_OK);
		PQclear(result);
	}
}

static enum ibid_code act_out(struct ibid_work *work, void *user)
{
	struct act *act = user;
	__atomic_add_fetch(&act->calls, 1, __ATOMIC_SEQ_CST);
	add_effect(work);
	if (act->hold) {
		pthread_mutex_lock(&act->lock);
		act->holding = true;
		pthread_cond_broadcast(&act->changed);
		while (act->hold)
			pthread_cond_wait(&act->changed, &act->lock);
		pthread_mutex_unlock(&act->lock);
	}
	if (act->times > 0) {
		act->times--;
		return act->retries_then;
	}
	if (act->reject)
		return ibid_reject(work, act->reject, 409, "as the test wants it");
	if (act->fail_after_effect)
		return ibid_fail(work, "the test's handler fails");
	if (act->emit_version_gap)
		assert_int_equal(
		    ibid_emit(work, IBID_EVENT(.aggregate_type = "thing", .aggregate_id = "1",
		                               .type = "Called", .payload = "{}", .version = 7)),
		    IBID_OK);
	if (act->event_key)
		assert_int_equal(
		    ibid_emit(work, IBID_EVENT(.aggregate_type = "thing", .aggregate_id = "1",
		                               .type = "Called", .payload = "{}", .key = act->event_key)),
		    IBID_OK);
	ibid_resource(work, "thing", ibid_work_command_id(work));
	return ibid_answer(work, 201, "{\"b\": 1.10, \"a\": \"\\u00e9\"}");
}

static struct act *act_new(const char *operation)
{
	static struct act act;
	act = (struct act){0};
	pthread_mutex_init(&act.lock, NULL);
	pthread_cond_init(&act.changed, NULL);
	assert_int_equal(ibid_handle(ibid, operation, act_out, &act, NULL), IBID_OK);
	return &act;
}

/* ---- Replay and conflict -------------------------------------------------------------------- */

static void
a_command_commits_its_row_change_event_and_audit_entry_together(void **state) /* B02 J04 */
{
	(void)state;
	struct ibid_result *result = bed_submit(ibid, "pay", "k-1",
	                                        "{\"reference\":\"r\",\"amount\":12.50}");
	assert_string_equal(bed_say(result), "executed 201");
	const char *id = ibid_result_command_id(result);
	assert_int_equal(
	    bed_number(&bed, "select count(*) from payment where cast(id as text) = '%s'", id), 1);
	assert_int_equal(
	    bed_number(&bed,
	               "select count(*) from ibid.command c join ibid.audit a on a.id = c.audit_id and "
	               "a.tenant = c.tenant where cast(c.id as text) = '%s' and a.actor = 'a' and "
	               "a.outcome = 'executed'",
	               id),
	    1);
	assert_int_equal(
	    bed_number(&bed,
	               "select count(*) from ibid.event where cast(command_id as text) = '%s' and "
	               "type = 'Paid' and aggregateid = 'r' and version = 1",
	               id),
	    1);
	assert_rows(1, 1, 1, 1);
	ibid_result_free(result);
}

static void a_duplicate_gets_the_first_answer_byte_for_byte_also_from_another_process(
    void **state) /* B03 A02 */
{
	(void)state;
	struct ibid_result *first = bed_submit(ibid, "pay", "k-1",
	                                       "{\"reference\":\"r\",\"amount\":12.50}");
	struct ibid_result *again = bed_submit(ibid, "pay", "k-1",
	                                       "{ \"amount\": 1.25e1, \"reference\": \"r\" }");
	assert_string_equal(bed_say(again), "replayed executed 201");
	assert_string_equal(ibid_result_body(again), ibid_result_body(first));
	assert_string_equal(ibid_result_command_id(again), ibid_result_command_id(first));
	ibid_result_free(again);

	struct ibid *other = bed_ibid(&bed, NULL);
	again = bed_submit(other, "pay", "k-1", "{\"reference\":\"r\",\"amount\":12.5}");
	assert_string_equal(bed_say(again), "replayed executed 201");
	assert_int_equal(ibid_result_body_size(again), ibid_result_body_size(first));
	assert_memory_equal(ibid_result_body(again), ibid_result_body(first),
	                    ibid_result_body_size(first));
	assert_string_equal(ibid_result_resource_id(again), ibid_result_resource_id(first));
	ibid_result_free(again);
	ibid_result_free(first);
	ibid_close(other);
	assert_rows(1, 1, 1, 1); /* J04: a retry adds none */
}

static void the_same_key_with_another_payload_is_a_conflict_with_evidence(void **state) /* B04 */
{
	(void)state;
	bed_expect(ibid, "pay", "k-1", "{\"reference\":\"r\",\"amount\":12.50}", "executed 201");
	for (int i = 0; i < 3; i++)
		bed_expect(ibid, "pay", "k-1", "{\"reference\":\"r\",\"amount\":12.51}", "conflict 409");
	bed_expect(ibid, "pay", "k-1", "{\"reference\":\"r\",\"amount\":99}", "conflict 409");
	assert_rows(1, 1, 1, 1);
	assert_int_equal(rows("ibid.evidence"), 2);
	assert_int_equal(
	    bed_number(&bed, "select max(count) from ibid.evidence where client = 'c' and actor = 'a'"),
	    3);
	bed_expect(ibid, "pay", "k-1", "{\"reference\":\"r\",\"amount\":12.50}",
	           "replayed executed 201");
}

static void what_the_contract_ignores_makes_no_conflict(void **state) /* A03 */
{
	(void)state;
	bed_expect(ibid, "pay", "k-1", "{\"reference\":\"r\",\"amount\":1,\"sentAt\":\"a\"}",
	           "executed 201");
	bed_expect(ibid, "pay", "k-1", "{\"reference\":\"r\",\"amount\":1.0,\"sentAt\":\"b\"}",
	           "replayed executed 201");
	bed_expect(ibid, "pay", "k-1", "{\"reference\":\"r\",\"amount\":1,\"other\":\"b\"}",
	           "conflict 409");
}

static void amounts_that_a_double_would_merge_are_a_conflict(void **state) /* A03 */
{
	(void)state;
	bed_expect(ibid, "pay", "k-1", "{\"reference\":\"r\",\"amount\":9007199254740992}",
	           "executed 201");
	bed_expect(ibid, "pay", "k-1", "{\"reference\":\"r\",\"amount\":9007199254740993}",
	           "conflict 409");
}

/* ---- Identity ------------------------------------------------------------------------------- */

static enum ibid_code submit_as(const char *tenant, const char *client, const char *actor,
                                const char *operation, const char *key, const char *payload,
                                const char *expected, struct ibid_err *err)
{
	struct ibid_result *result = NULL;
	*err = (struct ibid_err){0};
	enum ibid_code code = ibid_submit(ibid,
	                                  IBID_COMMAND(.tenant = tenant, .client = client,
	                                               .actor = actor, .operation = operation,
	                                               .key = key, .payload = payload),
	                                  &result, err);
	if (!code)
		assert_string_equal(bed_say(result), expected);
	ibid_result_free(result);
	return code;
}

static void
a_key_is_one_identity_per_tenant_client_and_operation(void **state) /* A02: API command */
{
	(void)state;
	struct ibid_err err;
	act_new("call");
	assert_int_equal(submit_as("t1", "c1", "a", "call", "k", "{}", "executed 201", &err), IBID_OK);
	assert_int_equal(submit_as("t2", "c1", "a", "call", "k", "{}", "executed 201", &err), IBID_OK);
	assert_int_equal(submit_as("t1", "c2", "a", "call", "k", "{}", "executed 201", &err), IBID_OK);
	assert_int_equal(submit_as("t1", "c1", "b", "call", "k", "{}", "replayed executed 201", &err),
	                 IBID_OK);
	assert_int_equal(rows("effect"), 3);
	/* The scope declares the client: leaving it out is an error, not another identity. */
	assert_int_equal(submit_as("t1", NULL, "a", "call", "k", "{}", "", &err), IBID_INVALID);
	assert_non_null(strstr(err.text, "client"));
}

static void
a_business_document_is_known_by_its_fields(void **state) /* A02: business document, A04 */
{
	(void)state;
	act_new("import-invoice");
	const char *invoice =
	    "{\"vendor\":\"V\",\"number\":\"7\",\"legalEntity\":\"DE\",\"amount\":10.00}";
	bed_expect(ibid, "import-invoice", NULL, invoice, "executed 201");
	bed_expect(ibid, "import-invoice", NULL,
	           "{\"number\":\"7\",\"vendor\":\"V\",\"amount\":10,\"legalEntity\":\"DE\"}",
	           "replayed executed 201");
	bed_expect(ibid, "import-invoice", NULL,
	           "{\"vendor\":\"V\",\"number\":\"7\",\"legalEntity\":\"DE\",\"amount\":11}",
	           "conflict 409");
	bed_expect(ibid, "import-invoice", NULL,
	           "{\"vendor\":\"V\",\"number\":\"7\",\"legalEntity\":\"FR\",\"amount\":10}",
	           "executed 201");
	assert_int_equal(rows("effect"), 2);
	struct ibid_err err;
	assert_int_equal(
	    submit_as("t", "c", "a", "import-invoice", NULL, "{\"vendor\":\"V\"}", "", &err),
	    IBID_INVALID);
}

static void
a_workflow_decision_is_known_by_task_actor_and_sequence(void **state) /* A02: workflow task */
{
	(void)state;
	struct ibid_err err;
	act_new("decide-task");
	const char *yes = "{\"taskId\":\"T1\",\"decisionSequence\":1,\"decision\":\"APPROVE\"}";
	const char *no = "{\"taskId\":\"T1\",\"decisionSequence\":1,\"decision\":\"REFUSE\"}";
	const char *later = "{\"taskId\":\"T1\",\"decisionSequence\":2,\"decision\":\"REFUSE\"}";
	assert_int_equal(submit_as("t", "c", "ann", "decide-task", NULL, yes, "executed 201", &err),
	                 IBID_OK);
	assert_int_equal(
	    submit_as("t", "c", "ann", "decide-task", NULL, yes, "replayed executed 201", &err),
	    IBID_OK);
	assert_int_equal(submit_as("t", "c", "ann", "decide-task", NULL, no, "conflict 409", &err),
	                 IBID_OK);
	assert_int_equal(submit_as("t", "c", "bob", "decide-task", NULL, no, "executed 201", &err),
	                 IBID_OK);
	assert_int_equal(submit_as("t", "c", "ann", "decide-task", NULL, later, "executed 201", &err),
	                 IBID_OK);
	assert_int_equal(rows("effect"), 3);
}

static void bad_keys_and_names_are_refused_and_leave_nothing(void **state) /* A04 */
{
	(void)state;
	struct ibid_err err;
	char longest[400];
	memset(longest, 'k', sizeof longest);
	longest[sizeof longest - 1] = '\0';
	const char *bad[] = {"", "a\nb", "\x01", longest, " k", "\xff\xfe"};
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		assert_int_equal(
		    submit_as("t", "c", "a", "pay", bad[i], "{\"reference\":\"r\",\"amount\":1}", "", &err),
		    IBID_INVALID);
		assert_int_equal(err.next, IBID_NEXT_NEVER);
	}
	assert_int_equal(submit_as("t", "c", "a", "pay", NULL, "{}", "", &err), IBID_INVALID);
	assert_int_equal(submit_as("", "c", "a", "pay", "k", "{}", "", &err), IBID_INVALID);
	assert_int_equal(submit_as("t", "c", "a", "pay", "k", "{\"a\":1,\"a\":2}", "", &err),
	                 IBID_INVALID);
	assert_non_null(strstr(err.text, "line 1, column"));
	assert_int_equal(submit_as("t", "c", "a", "no-such", "k", "{}", "", &err), IBID_NOT_FOUND);
	assert_rows(0, 0, 0, 0);
}

/* ---- The decision table --------------------------------------------------------------------- */

static void every_state_decides_as_the_table_says(void **state) /* B01 */
{
	(void)state;
	static const struct {
		const char *operation, *state, *same, *other;
	} table[] = {
	    {"call", "ACCEPTED", "in_progress 409", "conflict 409"},
	    {"call", "IN_PROGRESS", "in_progress 409", "conflict 409"},
	    {"call", "COMPLETED", "replayed executed 201", "conflict 409"},
	    {"call", "REJECTED", "replayed rejected 409", "conflict 409"},
	    {"call", "FAILED", "executed 201", "conflict 409"},
	    {"call", "UNKNOWN", "unknown 500", "unknown 500"},
	    {"call-again", "ACCEPTED", "in_progress 202", "conflict 409"},
	    {"call-again", "IN_PROGRESS", "in_progress 202", "conflict 409"},
	    {"call-again", "COMPLETED", "replayed executed 201", "conflict 409"},
	    {"call-again", "REJECTED", "executed 201", "executed 201"},
	    {"call-again", "FAILED", "executed 201", "conflict 409"},
	    {"call-again", "UNKNOWN", "unknown 500", "unknown 500"},
	};
	for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
		for (int other = 0; other < 2; other++) {
			struct act *act = act_new(table[i].operation);
			char key[64];
			snprintf(key, sizeof key, "%s-%s-%d", table[i].operation, table[i].state, other);
			act->reject = strcmp(table[i].state, "REJECTED") == 0 ? "NO" : NULL;
			act->fail_after_effect = strcmp(table[i].state, "FAILED") == 0;
			struct ibid_result *first = bed_submit(ibid, table[i].operation, key, "{\"n\":1}");
			ibid_result_free(first);
			/* No atomic command leaves these behind; staged ones will. */
			if (strcmp(table[i].state, "ACCEPTED") == 0 ||
			    strcmp(table[i].state, "IN_PROGRESS") == 0 ||
			    strcmp(table[i].state, "UNKNOWN") == 0)
				bed_exec(&bed,
				         "update ibid.command set state = '%s', audit_id = null where key = '%s'",
				         table[i].state, key);
			assert_int_equal(
			    bed_number(&bed,
			               "select count(*) from ibid.command where key = '%s' and state = '%s'",
			               key, table[i].state),
			    1);
			act->reject = NULL;
			act->fail_after_effect = false;
			int calls = act->calls;
			const char *expected = other ? table[i].other : table[i].same;
			bed_expect(ibid, table[i].operation, key, other ? "{\"n\":2}" : "{\"n\":1.0}",
			           expected);
			assert_int_equal(act->calls - calls, strncmp(expected, "executed", 8) == 0);
		}
	}
}

/* ---- Failures ------------------------------------------------------------------------------- */

static void
a_retryable_failure_undoes_everything_and_may_be_claimed_again(void **state) /* B07 B02 */
{
	(void)state;
	struct act *act = act_new("call");
	act->fail_after_effect = true;
	bed_expect(ibid, "call", "k", "{}", "failed 500");
	assert_int_equal(rows("effect"), 0);
	assert_int_equal(rows("ibid.audit"), 0);
	bed_expect(ibid, "call", "k", "{}", "failed 500");
	assert_int_equal(bed_number(&bed, "select attempts from ibid.command where key = 'k'"), 2);
	struct ibid_result *failed = bed_submit(ibid, "call", "k", "{}");
	act->fail_after_effect = false;
	struct ibid_result *done = bed_submit(ibid, "call", "k", "{}");
	assert_string_equal(bed_say(done), "executed 201");
	assert_string_equal(ibid_result_command_id(done), ibid_result_command_id(failed));
	assert_int_equal(bed_number(&bed, "select count(*) from effect where command_id = '%s'",
	                            ibid_result_command_id(done)),
	                 1);
	assert_int_equal(rows("effect"), 1);
	assert_int_equal(rows("ibid.audit"), 1);
	bed_expect(ibid, "call", "k", "{}", "replayed executed 201");
	ibid_result_free(failed);
	ibid_result_free(done);
}

static void a_terminal_failure_is_a_stable_answer(void **state) /* B07 */
{
	(void)state;
	struct act *act = act_new("call-final");
	act->fail_after_effect = true;
	bed_expect(ibid, "call-final", "k", "{\"n\":1}", "rejected 500");
	act->fail_after_effect = false;
	bed_expect(ibid, "call-final", "k", "{\"n\":1}", "replayed rejected 500");
	assert_int_equal(act->calls, 1);
	assert_int_equal(rows("effect"), 0);
}

static void failure_classes_follow_the_contract(void **state) /* B03 B07 */
{
	(void)state;
	/* call-final: validation and business may be tried again. */
	struct act *act = act_new("call-final");
	bed_expect(ibid, "call-final", "v", "{\"n\":\"x\"}", "rejected 422");
	bed_expect(ibid, "call-final", "v", "{\"n\":\"x\"}", "rejected 422");
	act->reject = "NO";
	bed_expect(ibid, "call-final", "b", "{\"n\":1}", "failed 409");
	act->reject = NULL;
	bed_expect(ibid, "call-final", "b", "{\"n\":1}", "executed 201");
	/* pay: both are final, and come back byte for byte. */
	struct ibid_result *first = bed_submit(ibid, "pay", "v", "{\"reference\":\"r\",\"amount\":-1}");
	assert_string_equal(bed_say(first), "rejected 422");
	assert_string_equal(ibid_result_reason(first), "INVALID_PAYLOAD");
	assert_non_null(strstr(ibid_result_text(first), "/amount"));
	struct ibid_result *again = bed_submit(ibid, "pay", "v",
	                                       "{\"reference\":\"r\",\"amount\":-1.00}");
	assert_string_equal(bed_say(again), "replayed rejected 422");
	assert_string_equal(ibid_result_body(again), ibid_result_body(first));
	ibid_result_free(first);
	ibid_result_free(again);
	first = bed_submit(ibid, "pay", "r", "{\"reference\":\"r\",\"amount\":1,\"fail\":\"reject\"}");
	assert_string_equal(bed_say(first), "rejected 422");
	assert_string_equal(ibid_result_reason(first), "ON_REQUEST");
	again = bed_submit(ibid, "pay", "r", "{\"reference\":\"r\",\"amount\":1,\"fail\":\"reject\"}");
	assert_string_equal(bed_say(again), "replayed rejected 422");
	assert_string_equal(ibid_result_body(again), ibid_result_body(first));
	ibid_result_free(first);
	ibid_result_free(again);
	assert_int_equal(rows("payment"), 0);
}

static void a_broken_script_fails_whole_and_may_be_tried_again(void **state) /* B02 B07 */
{
	(void)state;
	struct ibid_result *result = bed_submit(
	    ibid, "pay", "k", "{\"reference\":\"r\",\"amount\":1,\"fail\":\"broken\"}");
	assert_string_equal(bed_say(result), "failed 500");
	assert_non_null(strstr(ibid_result_text(result), "pay."));
	ibid_result_free(result);
	assert_rows(0, 0, 0, 1);
	bed_exec(&bed, bed.kind == BED_SQLITE
	                   ? "drop table broken; create table broken (tenant text, id text)"
	                   : "alter table broken alter tenant drop not null");
	bed_expect(ibid, "pay", "k", "{\"reference\":\"r\",\"amount\":1,\"fail\":\"broken\"}",
	           "executed 201");
	assert_rows(1, 1, 1, 1);
}

static void deadlocks_are_retried_inside_and_never_become_an_outcome(void **state) /* B07 */
{
	(void)state;
	struct act *act = act_new("call");
	act->retries_then = IBID_RETRY;
	act->times = 3;
	bed_expect(ibid, "call", "k", "{}", "executed 201");
	assert_int_equal(act->calls, 4);
	assert_int_equal(rows("effect"), 1);

	struct ibid_err err;
	act->times = 1000;
	assert_int_equal(submit_as("t", "c", "a", "call", "k2", "{}", "", &err), IBID_BUSY);
	assert_int_equal(err.next, IBID_NEXT_LATER);
	assert_true(act->calls < 40);
	assert_int_equal(bed_number(&bed, "select count(*) from ibid.command where key = 'k2'"), 0);
	act->times = 0;
	bed_expect(ibid, "call", "k2", "{}", "executed 201");
}

/* ---- What is kept of an answer -------------------------------------------------------------- */

static void the_contract_says_what_is_kept_of_an_answer(void **state) /* B08 */
{
	(void)state;
	static const struct {
		const char *operation, *again, *body;
	} table[] = {
	    {"call", "replayed executed 201", "{\"a\":\"é\",\"b\":1.1}"},
	    {"keep-reference", "replayed executed 201", "reference"},
	    {"keep-status", "replayed executed 201", ""},
	    {"keep-none", "replayed executed 204", ""},
	};
	for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
		act_new(table[i].operation);
		struct ibid_result *first = bed_submit(ibid, table[i].operation, "k", "{}");
		assert_string_equal(bed_say(first), "executed 201");
		assert_string_equal(ibid_result_body(first), "{\"a\":\"é\",\"b\":1.1}");
		struct ibid_result *again = bed_submit(ibid, table[i].operation, "k", "{}");
		assert_string_equal(bed_say(again), table[i].again);
		char reference[128];
		snprintf(reference, sizeof reference, "{\"resourceId\":\"%s\",\"resourceType\":\"thing\"}",
		         ibid_result_command_id(first));
		assert_string_equal(ibid_result_body(again),
		                    strcmp(table[i].body, "reference") == 0 ? reference : table[i].body);
		ibid_result_free(first);
		ibid_result_free(again);
	}
	assert_int_equal(rows("ibid.answer"), 1);
	/* Rejections keep their code, whatever the strategy. */
	struct act *act = act_new("keep-none");
	act->reject = "CODE_STAYS";
	bed_expect(ibid, "keep-none", "rejected", "{}", "rejected 409");
	struct ibid_result *again = bed_submit(ibid, "keep-none", "rejected", "{}");
	assert_string_equal(bed_say(again), "replayed rejected 409");
	assert_string_equal(ibid_result_reason(again), "CODE_STAYS");
	ibid_result_free(again);
}

/* Where only a reference is kept, a store may run the whole command at once: it decides alike. */
static void
a_script_whose_body_is_not_kept_is_decided_alike(void **state) /* B01 B02 B03 B04 B08 B09 */
{
	(void)state;
	static const char paid[] = "{\"reference\":\"r\",\"amount\":12.50}";
	struct ibid_result *first = bed_submit(ibid, "pay-brief", "k-1", paid);
	char reference[128], whole[64];
	assert_string_equal(bed_say(first), "executed 201");
	snprintf(whole, sizeof whole, "{\"id\":\"%s\"}", ibid_result_command_id(first));
	assert_string_equal(ibid_result_body(first), whole);
	assert_string_equal(ibid_result_resource_id(first), ibid_result_command_id(first));
	struct ibid_result *again = bed_submit(ibid, "pay-brief", "k-1",
	                                       "{\"reference\":\"r\",\"amount\":12.5,\"sentAt\":1}");
	assert_string_equal(bed_say(again), "replayed executed 201");
	snprintf(reference, sizeof reference, "{\"resourceId\":\"%s\",\"resourceType\":\"payment\"}",
	         ibid_result_command_id(first));
	assert_string_equal(ibid_result_body(again), reference);
	assert_rows(1, 1, 1, 1);
	assert_int_equal(rows("ibid.answer"), 0);
	assert_int_equal(
	    bed_number(&bed,
	               "select count(*) from ibid.command c join ibid.audit a on a.id = c.audit_id "
	               "and a.tenant = c.tenant where c.state = 'COMPLETED' and c.attempts = 1 "
	               "and c.client = 'c' and c.actor = 'a' and a.resource_id = c.resource_id "
	               "and a.actor = 'a' and a.fingerprint = c.fingerprint and c.status = 201 "
	               "and a.fact like 'a payment is accepted, of%%'"),
	    1);
	ibid_result_free(first);
	ibid_result_free(again);
	static const struct {
		const char *key, *payload, *expected;
	} rest[] = {
	    {"k-1", "{\"reference\":\"r\",\"amount\":12.51}", "conflict 409"},
	    {"k-2", "{\"reference\":\"r\",\"amount\":1}", "linked 200"},
	    {"k-2", "{\"reference\":\"r\",\"amount\":1}", "replayed linked 200"},
	    {"k-3", "{\"reference\":\"s\",\"amount\":1,\"fail\":\"reject\"}", "rejected 422"},
	    {"k-3", "{\"reference\":\"s\",\"amount\":1,\"fail\":\"reject\"}", "replayed rejected 422"},
	    {"k-4", "{\"reference\":\"s\",\"amount\":0}", "rejected 422"},
	    {"k-5", "{\"reference\":\"s\",\"amount\":1,\"fail\":\"broken\"}", "failed 500"},
	    {"k-6", "{\"reference\":\"s\",\"amount\":1,\"fail\":\"version\"}", "rejected 409"},
	};
	for (size_t i = 0; i < sizeof rest / sizeof *rest; i++)
		bed_expect(ibid, "pay-brief", rest[i].key, rest[i].payload, rest[i].expected);
	assert_rows(1, 1, 2, 6);
	bed_exec(&bed, "%s",
	         bed.kind == BED_SQLITE
	             ? "drop table broken; create table broken (tenant text, id text)"
	             : "alter table broken alter tenant drop not null");
	bed_expect(ibid, "pay-brief", "k-5", rest[6].payload, "executed 201");
	assert_int_equal(bed_number(&bed, "select attempts from ibid.command where key = 'k-5'"), 2);
	bed_exec(&bed, "update ibid.command set state = 'UNKNOWN', audit_id = null where key = 'k-1'");
	bed_expect(ibid, "pay-brief", "k-1", paid, "unknown 500");
}

/* A script's answer that is none fails before anything is kept, whatever way it took. */
static void an_answer_that_is_none_fails_the_command(void **state) /* B02 */
{
	(void)state;
	static const char payload[] = "{\"reference\":\"r\",\"amount\":1}";
	static const struct {
		const char *last, *text;
	} answers[] = {
	    {"select 201 as status where 1 = 0", "no answer"},
	    {"select 500 as status", "200 to 399"},
	    {"select null as status", "status"},
	    {"select 201 as status, 1 as colour", "colour"},
	    {"select 'x' as resource_id", "status"},
	    {"select 201 as status, 'no json' as body", "JSON"},
	};
	for (size_t i = 0; i < sizeof answers / sizeof *answers; i++) {
		char sql[512], key[16];
		snprintf(sql, sizeof sql,
		         "insert into payment (tenant, id, reference, amount) "
		         "values (:tenant, :command_id, :reference, :amount);\n%s",
		         answers[i].last);
		snprintf(key, sizeof key, "k-%zu", i);
		bed_write(&bed, "pay.sqlite.sql", sql);
		bed_write(&bed, "pay.postgres.sql", sql);
		struct ibid *own = bed_ibid(&bed, NULL);
		struct ibid_result *result = bed_submit(own, "pay-brief", key, payload);
		assert_string_equal(bed_say(result), "failed 500");
		if (!strstr(ibid_result_text(result), answers[i].text))
			fail_msg("%s: %s", answers[i].last, ibid_result_text(result));
		ibid_result_free(result);
		ibid_close(own);
		assert_int_equal(rows("payment"), 0);
		assert_int_equal(rows("ibid.audit"), 0);
	}
	/* The last of several rows counts. */
	bed_write(&bed, "pay.sqlite.sql", "select 202 as status union all select 201 order by 1 desc");
	bed_write(&bed, "pay.postgres.sql",
	          "select 202 as status union all select 201 order by 1 desc -- the end");
	struct ibid *own = bed_ibid(&bed, NULL);
	bed_expect(own, "pay-brief", "rows", payload, "executed 201");
	bed_expect(own, "pay-brief", "rows", payload, "replayed executed 201");
	ibid_close(own);
}

/* ---- Business uniqueness -------------------------------------------------------------------- */

static void the_same_fact_under_a_new_key_is_linked_to_the_existing_document(void **state) /* B09 */
{
	(void)state;
	struct ibid_result *first = bed_submit(ibid, "pay", "k-1",
	                                       "{\"reference\":\"r\",\"amount\":1}");
	struct ibid_result *linked = bed_submit(ibid, "pay", "k-2",
	                                        "{\"reference\":\"r\",\"amount\":1}");
	assert_string_equal(bed_say(linked), "linked 200");
	assert_string_equal(ibid_result_resource_id(linked), ibid_result_resource_id(first));
	ibid_result_free(linked);
	linked = bed_submit(ibid, "pay", "k-2", "{\"reference\":\"r\",\"amount\":1}");
	assert_string_equal(bed_say(linked), "replayed linked 200");
	assert_string_equal(ibid_result_resource_id(linked), ibid_result_resource_id(first));
	ibid_result_free(linked);
	ibid_result_free(first);
	assert_rows(1, 1, 2, 2);
	assert_int_equal(bed_number(&bed, "select count(*) from ibid.audit where outcome = 'linked'"),
	                 1);
}

static void or_rejected_with_the_id_of_the_existing_document(void **state) /* B09 */
{
	(void)state;
	struct ibid_result *first = bed_submit(ibid, "book", "k-1",
	                                       "{\"reference\":\"r\",\"amount\":1}");
	struct ibid_result *again = bed_submit(ibid, "book", "k-2",
	                                       "{\"reference\":\"r\",\"amount\":1}");
	assert_string_equal(bed_say(again), "rejected 409");
	assert_string_equal(ibid_result_reason(again), "DUPLICATE");
	assert_string_equal(ibid_result_resource_id(again), ibid_result_command_id(first));
	assert_non_null(strstr(ibid_result_body(again), ibid_result_command_id(first)));
	ibid_result_free(again);
	again = bed_submit(ibid, "book", "k-2", "{\"reference\":\"r\",\"amount\":1}");
	assert_string_equal(bed_say(again), "replayed rejected 409");
	assert_string_equal(ibid_result_resource_id(again), ibid_result_command_id(first));
	ibid_result_free(again);
	ibid_result_free(first);
	assert_rows(1, 1, 1, 2);
}

static void uniqueness_under_a_condition_ends_with_the_condition(void **state) /* B09: partial */
{
	(void)state;
	bed_expect(ibid, "start-timer", "k-1", "{\"case\":\"C\"}", "executed 201");
	bed_expect(ibid, "start-timer", "k-2", "{\"case\":\"C\"}", "linked 200");
	bed_exec(&bed, "update timer set state = 'STOPPED'");
	bed_expect(ibid, "start-timer", "k-3", "{\"case\":\"C\"}", "executed 201");
	bed_expect(ibid, "start-timer", "k-2", "{\"case\":\"C\"}", "replayed linked 200");
	assert_int_equal(rows("timer"), 2);
}

/* ---- Events --------------------------------------------------------------------------------- */

static void versions_of_an_aggregate_are_contiguous_and_a_gap_is_rejected(void **state)
{
	(void)state;
	struct act *act = act_new("call");
	bed_expect(ibid, "pay", "k-1", "{\"reference\":\"r\",\"amount\":1}", "executed 201");
	bed_exec(&bed, "update payment set reference = 'old'");
	bed_expect(ibid, "pay", "k-2", "{\"reference\":\"r\",\"amount\":1}", "executed 201");
	assert_int_equal(
	    bed_number(&bed, "select max(version) from ibid.event where aggregateid = 'r'"), 2);
	bed_exec(&bed, "update payment set reference = 'older' where reference = 'r'");
	struct ibid_result *result = bed_submit(
	    ibid, "pay", "k-3", "{\"reference\":\"r\",\"amount\":1,\"fail\":\"version\"}");
	assert_string_equal(bed_say(result), "rejected 409");
	assert_string_equal(ibid_result_reason(result), "VERSION_CONFLICT");
	ibid_result_free(result);
	act->emit_version_gap = true;
	result = bed_submit(ibid, "call", "gap", "{}");
	assert_string_equal(bed_say(result), "rejected 409");
	assert_string_equal(ibid_result_reason(result), "VERSION_CONFLICT");
	ibid_result_free(result);
	assert_int_equal(rows("effect"), 0);
	assert_rows(2, 2, 2, 4);
}

static void an_event_key_is_used_once_per_tenant(void **state)
{
	(void)state;
	act_new("call")->event_key = "invoice-7";
	bed_expect(ibid, "call", "k-1", "{}", "executed 201");
	struct ibid_result *result = bed_submit(ibid, "call", "k-2", "{}");
	assert_string_equal(bed_say(result), "rejected 409");
	assert_string_equal(ibid_result_reason(result), "EVENT_KEY_USED");
	ibid_result_free(result);
	assert_int_equal(rows("effect"), 1);
	assert_int_equal(rows("ibid.event"), 1);
}

/* ---- Contract versions ---------------------------------------------------------------------- */

static const char pay_v2[] =
    "command: pay\n"
    "version: 2\n"
    "fact: a payment is accepted\n"
    "fields:\n"
    "  /reference: { type: text, required: true, max: 40 }\n"
    "  /amount: { type: decimal, required: true, above: 0, scale: 2 }\n"
    "  /fail: { type: text }\n"
    "same_payload: { ignore: [/other], context: [actor] }\n"
    "emits: [Paid]\n"
    "unique: { payment_reference: { on_duplicate: link, find: pay-find.sql } }\n"
    "handler: { sql: pay.$store.sql }\n";

static void
a_retry_after_a_contract_change_is_compared_under_its_own_version(void **state) /* A03 */
{
	(void)state;
	bed_expect(ibid, "pay", "k-1", "{\"reference\":\"r\",\"amount\":1,\"sentAt\":1,\"other\":1}",
	           "executed 201");
	bed_write(&bed, "pay.yaml", pay_v2);
	struct ibid *next = bed_ibid(&bed, NULL);
	bed_expect(next, "pay", "k-1", "{\"reference\":\"r\",\"amount\":1,\"sentAt\":2,\"other\":1}",
	           "replayed executed 201");
	bed_expect(next, "pay", "k-1", "{\"reference\":\"r\",\"amount\":1,\"sentAt\":1,\"other\":2}",
	           "conflict 409");
	/* And the other way round: the old process meets a row of the new version. */
	bed_expect(next, "pay", "k-2", "{\"reference\":\"s\",\"amount\":1,\"sentAt\":1,\"other\":1}",
	           "executed 201");
	bed_expect(ibid, "pay", "k-2", "{\"reference\":\"s\",\"amount\":1,\"sentAt\":1,\"other\":2}",
	           "replayed executed 201");
	bed_expect(ibid, "pay", "k-2", "{\"reference\":\"s\",\"amount\":1,\"sentAt\":2,\"other\":1}",
	           "conflict 409");
	ibid_close(next);
	assert_rows(2, 2, 2, 2);
}

static void a_contract_changed_without_a_new_version_is_refused(void **state) /* A01 */
{
	(void)state;
	struct ibid *next = NULL;
	struct ibid_err err;
	char changed[sizeof pay_v2];
	memcpy(changed, pay_v2, sizeof changed);
	strstr(changed, "version: ")[9] = '1';
	bed_write(&bed, "pay.yaml", changed);
	assert_int_equal(
	    ibid_open(IBID_OPTIONS(.store = bed.url, .contracts = bed.contracts), &next, &err),
	    IBID_CONTRACT);
	assert_non_null(strstr(err.text, "version: 2"));
}

/* ---- What a retry must never meet ---------------------------------------------------------- */

static void a_version_that_knows_commands_by_another_identity_is_refused(void **state) /* A01 A03 */
{
	(void)state;
	static const char *const changes[][3] = {
	    {"key.scope", "handler:", "key: { scope: [client, actor] }\nhandler:"},
	    {"key.from", "handler:", "key: { from: [/reference], scope: [client] }\nhandler:"},
	};
	bed_expect(ibid, "pay", "k-1", "{\"reference\":\"r\",\"amount\":1}", "executed 201");
	for (size_t i = 0; i < 2; i++) {
		struct ibid *next = NULL;
		struct ibid_err err = {0};
		bed_replace(&bed, "pay.yaml", "version: 1", "version: 2");
		bed_replace(&bed, "pay.yaml", changes[i][1], changes[i][2]);
		assert_int_equal(
		    ibid_open(IBID_OPTIONS(.store = bed.url, .contracts = bed.contracts), &next, &err),
		    IBID_CONTRACT);
		assert_non_null(strstr(err.text, changes[i][0]));
		assert_non_null(strstr(err.text, "new command name"));
		bed_replace(&bed, "pay.yaml", changes[i][2], changes[i][1]);
		bed_replace(&bed, "pay.yaml", "version: 2", "version: 1");
	}
	assert_rows(1, 1, 1, 1);
}

struct ending {
	enum ibid_code then; /* what it says after it has ended the transaction */
	bool stay_outside;   /* without beginning another one */
	int calls;
};

static enum ibid_code end_the_transaction(struct ibid_work *work, void *user)
{
	struct ending *ending = user;
	PGconn *conn = ibid_work_postgres(work);
	ending->calls++;
	add_effect(work);
	if (conn) {
		PQclear(PQexec(conn, "commit"));
		if (!ending->stay_outside)
			PQclear(PQexec(conn, "begin"));
	} else {
		assert_int_equal(sqlite3_exec(ibid_work_sqlite(work), "commit", NULL, NULL, NULL),
		                 SQLITE_AUTH);
	}
	switch (ending->then) {
	case IBID_REJECTED: return ibid_reject(work, "NO", 422, "no");
	case IBID_FAILED: return ibid_fail(work, "the test's handler fails");
	case IBID_RETRY: return IBID_RETRY;
	default: return ibid_answer(work, 201, NULL);
	}
}

/* SQLite refuses it; PostgreSQL can only notice, and then nobody knows what was committed. */
static void a_handler_can_not_end_the_transaction_and_be_run_again(void **state) /* B02 */
{
	(void)state;
	struct ending ending = {.then = IBID_OK};
	bool lite = bed.kind == BED_SQLITE;
	assert_int_equal(ibid_handle(ibid, "call", end_the_transaction, &ending, NULL), IBID_OK);
	bed_expect(ibid, "call", "k", "{}", lite ? "executed 201" : "unknown 500");
	bed_expect(ibid, "call", "k", "{}", lite ? "replayed executed 201" : "unknown 500");
	assert_int_equal(ending.calls, 1);
	assert_int_equal(rows("effect"), 1);
	assert_int_equal(rows("ibid.exception"), !lite);
}

/* What it did may be committed, whatever it says afterwards. */
static void
a_handler_that_ends_the_transaction_and_fails_is_not_run_again(void **state) /* B01 B02 I8 */
{
	(void)state;
	static const struct {
		enum ibid_code then;
		const char *lite, *lite_again;
	} cases[] = {{IBID_REJECTED, "rejected 422", "replayed rejected 422"},
	             {IBID_FAILED, "failed 500", "failed 500"}};
	bool lite = bed.kind == BED_SQLITE;
	struct ending ending = {.then = IBID_OK};
	assert_int_equal(ibid_handle(ibid, "call", end_the_transaction, &ending, NULL), IBID_OK);
	for (int i = 0; i < 4; i++) {
		char key[16];
		snprintf(key, sizeof key, "k-%d", i);
		ending = (struct ending){.then = cases[i / 2].then, .stay_outside = i % 2};
		bed_expect(ibid, "call", key, "{}", lite ? cases[i / 2].lite : "unknown 500");
		bed_expect(ibid, "call", key, "{}", lite ? cases[i / 2].lite_again : "unknown 500");
		if (!lite)
			assert_int_equal(ending.calls, 1);
	}
	if (!lite) {
		ending = (struct ending){.then = IBID_RETRY};
		bed_expect(ibid, "call", "k-4", "{}", "unknown 500");
		assert_int_equal(ending.calls, 1);
	}
	assert_int_equal(rows("effect"), lite ? 0 : 5);
	assert_int_equal(rows("ibid.exception"), lite ? 0 : 5);
}

/* What was decided is told by whoever is asked; a callback runs where it is registered. */
static void without_its_callback_what_finished_is_replayed_and_nothing_runs(void **state) /* B03 */
{
	(void)state;
	struct act *act = act_new("call");
	struct ibid *other = bed_ibid(&bed, NULL);
	struct ibid_result *result = NULL;
	struct ibid_err err = {0};
	bed_expect(ibid, "call", "k-1", "{}", "executed 201");
	act->reject = "NO";
	bed_expect(ibid, "call", "k-2", "{}", "rejected 409");
	act->reject = NULL;
	act->fail_after_effect = true;
	bed_expect(ibid, "call", "k-3", "{}", "failed 500");
	bed_expect(other, "call", "k-1", "{}", "replayed executed 201");
	bed_expect(other, "call", "k-1", "{\"a\":1}", "conflict 409");
	bed_expect(other, "call", "k-2", "{}", "replayed rejected 409");
	static const char *const undone[] = {"k-3", "k-new"};
	for (size_t i = 0; i < 2; i++) {
		assert_int_equal(
		    ibid_submit(other,
		                IBID_COMMAND(.tenant = "t", .client = "c", .actor = "a",
		                             .operation = "call", .key = undone[i], .payload = "{}"),
		                &result, &err),
		    IBID_MISUSE);
		assert_non_null(strstr(err.text, "ibid_handle"));
	}
	assert_int_equal(act->calls, 3);
	assert_int_equal(rows("effect"), 1);
	assert_int_equal(rows("ibid.command"), 3);
	act->fail_after_effect = false;
	bed_expect(ibid, "call", "k-3", "{}", "executed 201"); /* nothing stands in its way */
	bed_expect(ibid, "call", "k-new", "{}", "executed 201");
	ibid_close(other);
}

/* ---- Human work ----------------------------------------------------------------------------- */

static void
an_unknown_command_has_one_open_exception_with_owner_and_reason(void **state) /* B01 J01 I8 */
{
	(void)state;
	struct ibid *ending = bed_ibid(&bed, &(struct api_seams){.wrap = ended_wrap});
	struct act act = {0};
	assert_int_equal(ibid_handle(ending, "call", act_out, &act, NULL), IBID_OK);
	struct ibid_result *result = NULL;
	struct ibid_err err = {0};
	ended_times = 1;
	assert_int_equal(
	    ibid_submit(
	        ending,
	        IBID_COMMAND(.tenant = "t", .client = "shop", .actor = "a", .operation = "call",
	                     .key = "k-1", .payload = "{}", .correlation_id = "corr-9",
	                     .traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"),
	        &result, &err),
	    IBID_OK);
	assert_string_equal(bed_say(result), "unknown 500");
	assert_int_equal(
	    bed_number(&bed,
	               "select count(*) from ibid.exception e join ibid.command c on c.tenant = "
	               "e.tenant and cast(c.id as text) = e.subject_id and c.reason = e.reason and "
	               "c.state = 'UNKNOWN' where e.tenant = 't' and e.state = 'OPEN' and "
	               "e.queue = 'business' and e.severity = 'high' and e.subject_type = 'command' "
	               "and e.subject_id = '%s' and e.business_key = 'k-1' and e.source = 'shop' and "
	               "e.owner = 'tests' and e.reason = 'HANDLER_ENDED_TRANSACTION' and "
	               "e.detail = 'call: the handler ended the transaction' and not "
	               "cast(e.retryable as boolean) and e.correlation_id = 'corr-9' and "
	               "e.trace_id = '0af7651916cd43dd8448eb211c80319c' and "
	               "e.suggestion <> '' and e.actions <> '' and e.payload_ref like "
	               "'fingerprint:________________________________________________________________'",
	               ibid_result_command_id(result)),
	    1);
	ibid_result_free(result);
	/* Whoever asks again hears the same and makes no more work, with whatever payload. */
	for (int i = 0; i < 3; i++) {
		assert_int_equal(
		    ibid_submit(ending,
		                IBID_COMMAND(.tenant = "t", .client = "shop", .operation = "call",
		                             .key = "k-1", .payload = i ? "{}" : "{\"n\":1}"),
		                &result, &err),
		    IBID_OK);
		assert_string_equal(bed_say(result), "unknown 500");
		ibid_result_free(result);
	}
	assert_int_equal(act.calls, 1);
	assert_int_equal(rows("ibid.exception"), 1);
	/* Another command is other work; one that runs is none. */
	ended_times = 1;
	bed_expect(ending, "call", "k-2", "{}", "unknown 500");
	bed_expect(ending, "call", "k-3", "{}", "executed 201");
	assert_int_equal(rows("ibid.exception"), 2);
	ibid_close(ending);
}

static void rejections_failures_and_conflicts_open_no_exception(void **state) /* B01 */
{
	(void)state;
	struct act *act = act_new("call");
	act->reject = "NO";
	bed_expect(ibid, "call", "k-1", "{}", "rejected 409");
	bed_expect(ibid, "call", "k-1", "{\"n\":1}", "conflict 409");
	act->reject = NULL;
	act->fail_after_effect = true;
	bed_expect(ibid, "call", "k-2", "{}", "failed 500");
	assert_int_equal(rows("ibid.exception"), 0);
}

static enum ibid_code speak_badly(struct ibid_work *work, void *user)
{
	switch (*(int *)user) {
	case 0: return ibid_reject(work, "NO", 422, "\xff\xfe");
	case 1: ibid_resource(work, "thing", "\xff"); return ibid_answer(work, 200, NULL);
	case 2:
		ibid_emit(work, IBID_EVENT(.aggregate_type = "t", .aggregate_id = "\xff", .type = "Called",
		                           .payload = "{}"));
		return ibid_answer(work, 200, NULL);
	default: return ibid_fail(work, "\xff");
	}
}

static void texts_that_are_not_utf_8_fail_the_command(void **state)
{
	(void)state;
	for (int i = 0; i < 4; i++) {
		char key[16];
		snprintf(key, sizeof key, "k-%d", i);
		assert_int_equal(ibid_handle(ibid, "call", speak_badly, &i, NULL), IBID_OK);
		struct ibid_result *result = bed_submit(ibid, "call", key, "{}");
		assert_string_equal(bed_say(result), "failed 500");
		char *canonical = NULL;
		size_t size;
		assert_int_equal(ibid_canonical(ibid_result_body(result), ibid_result_body_size(result),
		                                &canonical, &size, NULL),
		                 IBID_OK);
		ibid_free(canonical);
		ibid_result_free(result);
	}
}

static void a_find_script_that_finds_nothing_fails_and_does_not_go_round(void **state) /* B09 */
{
	(void)state;
	bed_write(&bed, "pay-find.sql", "select 200 as status where 1 = 0");
	struct ibid *own = bed_ibid(&bed, NULL);
	bed_expect(own, "pay", "k-1", "{\"reference\":\"r\",\"amount\":1}", "executed 201");
	struct ibid_result *result = bed_submit(own, "pay", "k-2",
	                                        "{\"reference\":\"r\",\"amount\":1}");
	assert_string_equal(bed_say(result), "failed 500");
	assert_non_null(strstr(ibid_result_text(result), "payment_reference"));
	assert_non_null(strstr(ibid_result_text(result), "find"));
	ibid_result_free(result);
	ibid_close(own);
}

static void a_handle_from_before_a_fork_is_refused(void **state)
{
	(void)state;
	bed_expect(ibid, "pay", "k-1", "{\"reference\":\"r\",\"amount\":1}", "executed 201");
	pid_t child = fork();
	if (child == 0) {
		struct ibid_result *result = NULL;
		_exit(
		    ibid_submit(ibid,
		                IBID_COMMAND(.tenant = "t", .client = "c", .operation = "pay", .key = "k-1",
		                             .payload = "{\"reference\":\"r\",\"amount\":1}"),
		                &result, NULL) == IBID_MISUSE
		        ? 0
		        : 1);
	}
	int status;
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	bed_expect(ibid, "pay", "k-1", "{\"reference\":\"r\",\"amount\":1}", "replayed executed 201");
}

static void init_refuses_a_column_that_would_round_money_and_leaves_nothing(void **state)
{
	(void)state;
	struct bed fresh;
	struct ibid_err err = {0};
	const char *schema = bed.kind == BED_SQLITE ? "schema.sqlite.sql" : "schema.postgres.sql";
	bed_open_empty(&fresh, FIXTURE);
	if (bed.kind == BED_SQLITE)
		bed_replace(&fresh, schema, "amount text not null,\n  primary key (tenant, id)\n) strict",
		            "amount numeric not null,\n  primary key (tenant, id)\n)");
	else
		bed_replace(&fresh, schema, "amount numeric not null", "amount double precision not null");
	assert_int_equal(
	    ibid_init(IBID_OPTIONS(.store = fresh.url, .contracts = fresh.contracts), &err),
	    IBID_CONTRACT);
	assert_non_null(strstr(err.text, "would round"));
	/* Mended as the message says, it works. */
	if (bed.kind == BED_SQLITE)
		bed_replace(&fresh, schema, "amount numeric not null", "amount text not null");
	else
		bed_replace(&fresh, schema, "amount double precision not null", "amount numeric not null");
	bed_init(&fresh);
	bed_close(&fresh);
}

static void init_reads_the_scripts(void **state)
{
	(void)state;
	struct ibid_err err = {0};
	bed_write(&bed, "pay-find.sql", "select 200 as status, :nobody as resource_id");
	assert_int_equal(ibid_init(IBID_OPTIONS(.store = bed.url, .contracts = bed.contracts), &err),
	                 IBID_CONTRACT);
	assert_non_null(strstr(err.text, "pay-find.sql:1"));
}

/* ---- Concurrency ---------------------------------------------------------------------------- */

enum { TWINS = 20, ROUNDS = 10 };

struct twin {
	pthread_t thread;
	pthread_barrier_t *barrier;
	const char *operation;
	char key[32];
	char said[64];
	char body[128];
};

static void *run_twin(void *user)
{
	struct twin *twin = user;
	char payload[96];
	struct ibid_result *result = NULL;
	struct ibid_err err = {0};
	snprintf(payload, sizeof payload, "{\"reference\":\"%s\",\"amount\":5}", twin->key);
	pthread_barrier_wait(twin->barrier);
	if (ibid_submit(ibid,
	                IBID_COMMAND(.tenant = "t", .client = "c", .actor = "a",
	                             .operation = twin->operation, .key = twin->key,
	                             .payload = payload),
	                &result, &err)) {
		snprintf(twin->said, sizeof twin->said, "%.60s", err.text);
		return NULL;
	}
	snprintf(twin->said, sizeof twin->said, "%s", bed_say(result));
	snprintf(twin->body, sizeof twin->body, "%s", ibid_result_body(result));
	ibid_result_free(result);
	return NULL;
}

static void twenty_identical_requests_at_once_have_one_effect(void **state) /* B12 */
{
	(void)state;
	for (int round = 0; round < ROUNDS; round++) {
		struct twin twins[TWINS] = {0};
		pthread_barrier_t barrier;
		const char *body = NULL;
		int executed = 0;
		pthread_barrier_init(&barrier, NULL, TWINS);
		for (int i = 0; i < TWINS; i++) {
			twins[i].barrier = &barrier;
			twins[i].operation = round % 2 ? "pay-brief" : "pay";
			snprintf(twins[i].key, sizeof twins[i].key, "round-%d", round);
			assert_int_equal(pthread_create(&twins[i].thread, NULL, run_twin, &twins[i]), 0);
		}
		for (int i = 0; i < TWINS; i++)
			pthread_join(twins[i].thread, NULL);
		for (int i = 0; i < TWINS; i++) {
			bool first = strcmp(twins[i].said, "executed 201") == 0;
			bool replay = strcmp(twins[i].said, "replayed executed 201") == 0;
			executed += first;
			if (!first && !replay)
				assert_string_equal(twins[i].said, "in_progress 409");
			if (replay || (first && round % 2 == 0)) { /* of pay-brief a reference is kept */
				if (body)
					assert_string_equal(twins[i].body, body);
				body = twins[i].body;
			}
		}
		assert_int_equal(executed, 1);
		pthread_barrier_destroy(&barrier);
		assert_rows(round + 1, round + 1, round + 1, round + 1);
	}
}

struct waiter {
	pthread_t thread;
	char said[64];
};

/* Asserting is the main thread's business: a failed assertion jumps. */
static void *submit_and_note(void *user)
{
	struct waiter *waiter = user;
	struct ibid_result *result = NULL;
	struct ibid_err err = {0};
	if (ibid_submit(ibid,
	                IBID_COMMAND(.tenant = "t", .client = "c", .operation = "call-wait", .key = "k",
	                             .payload = "{}"),
	                &result, &err))
		snprintf(waiter->said, sizeof waiter->said, "%.60s", err.text);
	else
		snprintf(waiter->said, sizeof waiter->said, "%s", bed_say(result));
	ibid_result_free(result);
	return NULL;
}

static void a_twin_may_wait_for_the_first_and_gets_its_answer(void **state) /* B01 B12 */
{
	(void)state;
	struct waiter first = {0}, second = {0};
	struct act *act = act_new("call-wait");
	act->hold = true;
	assert_int_equal(pthread_create(&first.thread, NULL, submit_and_note, &first), 0);
	pthread_mutex_lock(&act->lock);
	while (!act->holding)
		pthread_cond_wait(&act->changed, &act->lock);
	pthread_mutex_unlock(&act->lock);
	assert_int_equal(pthread_create(&second.thread, NULL, submit_and_note, &second), 0);
	pthread_mutex_lock(&act->lock);
	act->hold = false;
	pthread_cond_broadcast(&act->changed);
	pthread_mutex_unlock(&act->lock);
	pthread_join(first.thread, NULL);
	pthread_join(second.thread, NULL);
	assert_string_equal(first.said, "executed 201");
	assert_string_equal(second.said, "replayed executed 201");
	assert_int_equal(rows("effect"), 1);
	assert_int_equal(act->calls, 1);
}

/* ---- Processes ------------------------------------------------------------------------------ */

enum { PROCESSES = 4, KEYS = 25 };

/* Submits every key; the exit status is the number that it executed itself, 100 on an error. */
static int process_main(int gate)
{
	int executed = 0;
	char byte;
	struct ibid *own = NULL;
	if (ibid_open(IBID_OPTIONS(.store = bed.url, .contracts = bed.contracts, .busy_ms = 20000),
	              &own, NULL) ||
	    read(gate, &byte, 1) < 0)
		return 100;
	for (int i = 0; i < KEYS; i++) {
		char key[32], payload[96];
		struct ibid_result *result = NULL;
		struct ibid_err err = {0};
		snprintf(key, sizeof key, "p-%d", i);
		snprintf(payload, sizeof payload, "{\"reference\":\"%s\",\"amount\":5}", key);
		if (ibid_submit(own,
		                IBID_COMMAND(.tenant = "t", .client = "c", .actor = "a", .operation = "pay",
		                             .key = key, .payload = payload),
		                &result, &err)) {
			print_message("process: %s\n", err.text);
			return 100;
		}
		enum ibid_decision decision = ibid_result_decision(result);
		if (decision != IBID_DECISION_EXECUTED && decision != IBID_DECISION_IN_PROGRESS)
			return 100;
		executed += decision == IBID_DECISION_EXECUTED && !ibid_result_replayed(result);
		ibid_result_free(result);
	}
	ibid_close(own);
	return executed;
}

static void four_processes_with_the_same_keys_have_one_effect_each(void **state) /* B12 */
{
	(void)state;
	pid_t children[PROCESSES];
	int gate[2], executed = 0;
	assert_int_equal(pipe(gate), 0);
	for (int i = 0; i < PROCESSES; i++) {
		children[i] = fork();
		if (children[i] == 0) {
			close(gate[1]);
			_exit(process_main(gate[0]));
		}
	}
	close(gate[0]);
	close(gate[1]); /* opens the gate for all */
	for (int i = 0; i < PROCESSES; i++) {
		int status;
		assert_int_equal(waitpid(children[i], &status, 0), children[i]);
		assert_true(WIFEXITED(status));
		assert_int_not_equal(WEXITSTATUS(status), 100);
		executed += WEXITSTATUS(status);
	}
	assert_int_equal(executed, KEYS);
	assert_rows(KEYS, KEYS, KEYS, KEYS);
}

int main(int argc, char **argv)
{
	bed_choose(argc, argv);
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
	    TEST(a_command_commits_its_row_change_event_and_audit_entry_together),
	    TEST(a_duplicate_gets_the_first_answer_byte_for_byte_also_from_another_process),
	    TEST(the_same_key_with_another_payload_is_a_conflict_with_evidence),
	    TEST(what_the_contract_ignores_makes_no_conflict),
	    TEST(amounts_that_a_double_would_merge_are_a_conflict),
	    TEST(a_key_is_one_identity_per_tenant_client_and_operation),
	    TEST(a_business_document_is_known_by_its_fields),
	    TEST(a_workflow_decision_is_known_by_task_actor_and_sequence),
	    TEST(bad_keys_and_names_are_refused_and_leave_nothing),
	    TEST(every_state_decides_as_the_table_says),
	    TEST(a_retryable_failure_undoes_everything_and_may_be_claimed_again),
	    TEST(a_terminal_failure_is_a_stable_answer),
	    TEST(failure_classes_follow_the_contract),
	    TEST(a_broken_script_fails_whole_and_may_be_tried_again),
	    TEST(deadlocks_are_retried_inside_and_never_become_an_outcome),
	    TEST(the_contract_says_what_is_kept_of_an_answer),
	    TEST(a_script_whose_body_is_not_kept_is_decided_alike),
	    TEST(an_answer_that_is_none_fails_the_command),
	    TEST(the_same_fact_under_a_new_key_is_linked_to_the_existing_document),
	    TEST(or_rejected_with_the_id_of_the_existing_document),
	    TEST(uniqueness_under_a_condition_ends_with_the_condition),
	    TEST(versions_of_an_aggregate_are_contiguous_and_a_gap_is_rejected),
	    TEST(an_event_key_is_used_once_per_tenant),
	    TEST(a_retry_after_a_contract_change_is_compared_under_its_own_version),
	    TEST(a_contract_changed_without_a_new_version_is_refused),
	    TEST(a_version_that_knows_commands_by_another_identity_is_refused),
	    TEST(a_handler_can_not_end_the_transaction_and_be_run_again),
	    TEST(a_handler_that_ends_the_transaction_and_fails_is_not_run_again),
	    TEST(without_its_callback_what_finished_is_replayed_and_nothing_runs),
	    TEST(an_unknown_command_has_one_open_exception_with_owner_and_reason),
	    TEST(rejections_failures_and_conflicts_open_no_exception),
	    TEST(texts_that_are_not_utf_8_fail_the_command),
	    TEST(a_find_script_that_finds_nothing_fails_and_does_not_go_round),
	    TEST(a_handle_from_before_a_fork_is_refused),
	    TEST(init_refuses_a_column_that_would_round_money_and_leaves_nothing),
	    TEST(init_reads_the_scripts),
	    TEST(twenty_identical_requests_at_once_have_one_effect),
	    TEST(a_twin_may_wait_for_the_first_and_gets_its_answer),
	    TEST(four_processes_with_the_same_keys_have_one_effect_each),
	};
	return cmocka_run_group_tests_name("ledger", tests, NULL, NULL);
}
