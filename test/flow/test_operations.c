/* SPDX-License-Identifier: Apache-2.0 */
/* test_operations.c -- eight operations of a case system, each by the strategy that fits it: sent
 * again, under another key, with another meaning, by many at once, and killed at every verb, each
 * has one effect (A07). docs/strategies.md says why each has its strategy. */
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

#define FIXTURE IBID_SOURCE_DIR "/test/flow/operations"
enum { RUNNERS = 8, PAYLOAD_BYTES = 256, POINTS_MAX = 256 };

/* What a new key means for the same intent. */
enum new_key {
	LINKED,    /* to what is there */
	NO_NEW_KEY /* the key is made of the intent: another one is refused */
};

/* In texts, # is the subject: every test has its own. */
static const struct operation_case {
	const char *name, *payload;
	const char *other;    /* for the same key, another meaning */
	const char *rejected; /* for a new key, a meaning that what is there excludes; or NULL */
	enum new_key new_key;
	const char *effects; /* how often it was done */
} cases[] = {
    {"create-case", "{\"source\":\"sap\",\"number\":\"#\"}",
     "{\"source\":\"sap\",\"number\":\"#x\"}", NULL, LINKED,
     "select count(*) from kase where number = '#'"},
    {"escalate-case", "{\"case\":\"#\",\"caseVersion\":3}", "{\"case\":\"#\",\"caseVersion\":4}",
     NULL, LINKED, "select count(*) from escalation where case_id = '#' and case_version = 3"},
    {"close-case", "{\"case\":\"#\",\"reason\":\"paid\"}", "{\"case\":\"#\",\"reason\":\"waived\"}",
     "{\"case\":\"#\",\"reason\":\"waived\"}", LINKED,
     "select count(*) from kase where id = '#' and closed_reason = 'paid'"},
    {"assign-reviewer", "{\"case\":\"#\",\"reviewer\":\"ann\"}",
     "{\"case\":\"#\",\"reviewer\":\"bob\"}", NULL, LINKED,
     "select count(*) from kase where id = '#' and reviewer = 'ann'"},
    {"send-notification", "{\"case\":\"#\",\"purpose\":\"closed\",\"text\":\"hello\"}",
     "{\"case\":\"#\",\"purpose\":\"closed\",\"text\":\"bye\"}", NULL, NO_NEW_KEY,
     "select coalesce(sum(sent), 0) from provider, notification where key = id and case_id = '#'"},
    {"generate-report", "{\"period\":\"#\"}", "{\"period\":\"#x\"}", NULL, LINKED,
     "select count(*) from report where period = '#'"},
    {"increment-risk", "{\"assessment\":\"a-#\",\"case\":\"#\",\"by\":5}",
     "{\"assessment\":\"a-#\",\"case\":\"#\",\"by\":7}", NULL, NO_NEW_KEY,
     "select score / 5 from risk where case_id = '#'"},
    {"import-evidence", "{\"digest\":\"#\"}", "{\"digest\":\"#x\"}", NULL, LINKED,
     "select count(*) from evidence where digest = '#'"},
};
enum { CASES = sizeof cases / sizeof *cases };

static struct bed bed;
static struct ibid *ibid;

/* ---- Words ---------------------------------------------------------------------------------- */

static const char *fill(char *ret, size_t size, const char *text, const char *subject)
{
	size_t used = 0;
	for (; *text; text++) {
		int more = *text == '#' ? snprintf(ret + used, size - used, "%s", subject)
		                        : snprintf(ret + used, size - used, "%c", *text);
		used += (size_t)more;
		assert_true(used < size);
	}
	return ret;
}

static bool is_staged(const struct operation_case *the)
{
	return strcmp(the->name, "send-notification") == 0;
}

/* The case that some of them work on. */
static void make_case(const struct operation_case *the, const char *subject)
{
	if (strcmp(the->name, "create-case") != 0)
		bed_exec(&bed,
		         "insert into kase (tenant, id, source, number) values ('t', '%s', 'test', '%s')",
		         subject, subject);
}

static void expect_one(const struct operation_case *the, const char *subject)
{
	char sql[PAYLOAD_BYTES];
	int64_t effects = bed_number(&bed, "%s", fill(sql, sizeof sql, the->effects, subject));
	if (effects != 1)
		fail_msg("%s has %lld effects", the->name, (long long)effects);
}

/* ---- A worker and its provider -------------------------------------------------------------- */

/* The provider keeps keys: the same one again sends nothing. */
static void provider_sends(const char *key)
{
	bed_exec(&bed, "insert into provider (key, sent) values ('%s', 1) on conflict do nothing", key);
}

static enum ibid_code note_sent(struct ibid_work *work, void *user)
{
	const char *values[] = {ibid_work_tenant(work), ibid_work_external_key(work), user};
	static const char lite[] =
	    "insert into notification (tenant, id, case_id, purpose) values (?1, ?2, ?3, 'closed')";
	static const char pg[] =
	    "insert into notification (tenant, id, case_id, purpose) values ($1, $2, $3, 'closed')";
	sqlite3 *db = ibid_work_sqlite(work);
	if (db) {
		sqlite3_stmt *statement;
		assert_int_equal(sqlite3_prepare_v2(db, lite, -1, &statement, NULL), SQLITE_OK);
		for (int i = 0; i < 3; i++)
			sqlite3_bind_text(statement, i + 1, values[i], -1, SQLITE_TRANSIENT);
		int rc = sqlite3_step(statement);
		sqlite3_finalize(statement);
		if (rc != SQLITE_DONE)
			return ibid_fail(work, sqlite3_errmsg(db));
	} else {
		PGresult *result = PQexecParams(ibid_work_postgres(work), pg, 3, NULL, values, NULL, NULL,
		                                0);
		bool ok = PQresultStatus(result) == PGRES_COMMAND_OK;
		PQclear(result);
		if (!ok)
			return ibid_fail(work, "the insert failed");
	}
	(void)ibid_emit(work, IBID_EVENT(.aggregate_type = "case", .aggregate_id = user,
	                                 .type = "NotificationSent", .payload = "{}"));
	return ibid_answer(work, 200, NULL);
}

/* The subject, from the key ["#","closed"]. */
static void subject_of(const struct ibid_work *work, char ret[64])
{
	snprintf(ret, 64, "%.*s", (int)strcspn(ibid_work_key(work) + 2, "\""), ibid_work_key(work) + 2);
}

/* Under its stable key the provider may be asked by sending again. */
static enum ibid_code ask_provider(struct ibid_staged *staged, void *user)
{
	struct ibid_result *result = NULL;
	struct ibid_err err;
	char subject[64];
	(void)user;
	subject_of(ibid_staged_work(staged), subject);
	provider_sends(ibid_work_external_key(ibid_staged_work(staged)));
	enum ibid_code code = ibid_staged_finish(staged, note_sent, subject, &result, &err);
	ibid_result_free(result);
	return code;
}

static enum ibid_code send_staged(struct ibid *on, const char *key, const char *payload,
                                  const char *subject, struct ibid_result **ret,
                                  struct ibid_err *err)
{
	struct ibid_staged *staged = NULL;
	enum ibid_code code = ibid_stage(on,
	                                 IBID_COMMAND(.tenant = "t", .client = "c",
	                                              .operation = "send-notification", .key = key,
	                                              .payload = payload),
	                                 &staged, ret, err);
	if (code || !staged)
		return code;
	provider_sends(ibid_work_external_key(ibid_staged_work(staged)));
	code = ibid_staged_finish(staged, note_sent, (void *)subject, ret, err);
	ibid_staged_free(staged);
	return code;
}

/* ---- Sending -------------------------------------------------------------------------------- */

static enum ibid_code try_send(struct ibid *on, const struct operation_case *the, const char *key,
                               const char *text, const char *subject, char said[64],
                               struct ibid_err *err)
{
	char payload[PAYLOAD_BYTES];
	struct ibid_result *result = NULL;
	fill(payload, sizeof payload, text, subject);
	enum ibid_code code = is_staged(the) ? send_staged(on, key, payload, subject, &result, err)
	                                     : ibid_submit(on,
	                                                   IBID_COMMAND(.tenant = "t", .client = "c",
	                                                                .operation = the->name,
	                                                                .key = key, .payload = payload),
	                                                   &result, err);
	snprintf(said, 64, "%s", code ? ibid_code_name(code) : bed_say(result));
	ibid_result_free(result);
	return code;
}

/* The decision without its status: "replayed executed", "linked". */
static void expect(const struct operation_case *the, const char *key, const char *text,
                   const char *subject, const char *expected)
{
	char said[64];
	struct ibid_err err = {0};
	if (try_send(ibid, the, key, text, subject, said, &err))
		fail_msg("%s: %s", the->name, err.text);
	if (strncmp(said, expected, strlen(expected)) != 0)
		fail_msg("%s, key %s: %s", the->name, key ? key : "-", said);
}

/* Where the key is made of the payload, none is given. */
static const char *key_for(const struct operation_case *the, const char *key)
{
	return the->new_key == NO_NEW_KEY ? NULL : key;
}

static void expect_no_new_key(const struct operation_case *the, const char *subject)
{
	char said[64];
	struct ibid_err err = {0};
	assert_int_equal(try_send(ibid, the, "another", the->payload, subject, said, &err),
	                 IBID_INVALID);
	assert_non_null(strstr(err.text, "not the one that"));
}

/* ---- Tests ---------------------------------------------------------------------------------- */

static void every_operation_has_one_effect_however_it_is_repeated(void **state) /* A07 */
{
	(void)state;
	for (size_t i = 0; i < CASES; i++) {
		const struct operation_case *the = &cases[i];
		const char *key = key_for(the, "first");
		make_case(the, "s");
		expect(the, key, the->payload, "s", "executed");
		expect_one(the, "s");
		expect(the, key, the->payload, "s", "replayed executed");
		if (the->new_key == LINKED)
			expect(the, "second", the->payload, "s", "linked");
		else
			expect_no_new_key(the, "s");
		expect(the, key, the->other, "s", "conflict 409");
		if (the->rejected)
			expect(the, "third", the->rejected, "s", "rejected 409");
		expect_one(the, "s");
		bed_exec(&bed, "delete from kase");
	}
	/* One fact is told once, and each accepted intent leaves one entry. */
	assert_int_equal(bed_number(&bed, "select count(*) from ibid.event"), CASES);
	assert_int_equal(bed_number(&bed, "select count(*) from ibid.audit where outcome = 'linked'"),
	                 6);
	assert_int_equal(bed_number(&bed, "select count(*) from ibid.audit where outcome = 'executed'"),
	                 CASES);
}

struct runner {
	pthread_t thread;
	pthread_barrier_t *start;
	const struct operation_case *the;
	char key[32], said[64];
	bool given;
	struct ibid_err err;
};

static void *send_one(void *user)
{
	struct runner *runner = user;
	pthread_barrier_wait(runner->start);
	(void)try_send(ibid, runner->the, runner->given ? runner->key : NULL, runner->the->payload, "s",
	               runner->said, &runner->err);
	return NULL;
}

/* `keys`: how many different ones. */
static void race(const struct operation_case *the, int keys)
{
	struct runner runners[RUNNERS];
	pthread_barrier_t start;
	int executed = 0;
	pthread_barrier_init(&start, NULL, RUNNERS);
	for (int i = 0; i < RUNNERS; i++) {
		runners[i] = (struct runner){.start = &start, .the = the};
		runners[i].given = the->new_key != NO_NEW_KEY;
		snprintf(runners[i].key, sizeof runners[i].key, "race-%d", i % keys);
		assert_int_equal(pthread_create(&runners[i].thread, NULL, send_one, &runners[i]), 0);
	}
	for (int i = 0; i < RUNNERS; i++) {
		pthread_join(runners[i].thread, NULL);
		const char *said = runners[i].said;
		executed += strncmp(said, "executed", 8) == 0;
		bool linked = keys > 1 && strncmp(said, "linked", 6) == 0;
		bool worked_on = is_staged(the) && strncmp(said, "in_progress", 11) == 0;
		if (strncmp(said, "executed", 8) != 0 && strncmp(said, "replayed executed", 17) != 0 &&
		    !linked && !worked_on)
			fail_msg("%s: %s %s", the->name, said, runners[i].err.text);
	}
	pthread_barrier_destroy(&start);
	assert_int_equal(executed, 1);
	expect_one(the, "s");
	assert_int_equal(bed_number(&bed, "select count(*) from ibid.event"), 1);
}

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

/* A fresh bed for each: the events are counted. */
static void race_all(int keys)
{
	for (size_t i = 0; i < CASES; i++) {
		make_case(&cases[i], "s");
		race(&cases[i], keys);
		tear_down(NULL);
		set_up(NULL);
	}
}

static void of_eight_with_one_key_one_is_executed(void **state) /* A07 B12 */
{
	(void)state;
	race_all(1);
}

static void of_eight_with_keys_of_their_own_one_is_executed(void **state) /* A07 B09 */
{
	(void)state;
	race_all(RUNNERS);
}

/* ---- Faults --------------------------------------------------------------------------------- */

/* True when the fault was met. */
static bool send_faulty(const struct operation_case *the, const char *subject, struct fault at)
{
	struct ibid *own = bed_ibid(&bed, &(struct api_seams){.wrap = fault_set, .user = &at});
	struct ibid_err err = {0};
	char said[64];
	(void)try_send(own, the, key_for(the, subject), the->payload, subject, said, &err);
	bool fired = at.fired;
	ibid_close(own);
	return fired;
}

/* In a process of its own. False when it came to its end. */
static bool send_killed(const struct operation_case *the, const char *subject, struct fault at)
{
	int64_t start = bed_mark(&bed);
	pid_t child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		struct ibid *own = NULL;
		struct ibid_err err = {0};
		char said[64] = "";
		struct api_seams seams = {.wrap = fault_set, .user = &at};
		if (api_open(IBID_OPTIONS(.store = bed.url, .contracts = bed.contracts, .busy_ms = 20000),
		             &seams, &own, &err))
			_exit(1);
		bool done = !try_send(own, the, key_for(the, subject), the->payload, subject, said, &err);
		ibid_close(own);
		_exit(done ? 0 : 1);
	}
	int status;
	assert_int_equal(waitpid(child, &status, 0), child);
	bed_settle_since(&bed, start);
	if (WIFSIGNALED(status)) {
		assert_int_equal(WTERMSIG(status), SIGKILL);
		return true;
	}
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	return false;
}

/* What a killed worker left has a lease, which is moved into the past. */
static void recover_staged(void)
{
	size_t count;
	struct ibid_err err = {0};
	if (bed.kind == BED_SQLITE)
		bed_exec(&bed, "update ibid.command set lease_until_us = 1 where lease_until_us > 0");
	else
		bed_exec(&bed,
		         "update ibid.command set lease_until = 'epoch' where lease_until is not null");
	if (ibid_recover(ibid, IBID_RECOVERY(.limit = 10), &count, &err))
		fail_msg("%s", err.text);
}

/* Opening changes nothing that a command has done. */
static unsigned points_of_opening(enum fault_kind kind)
{
	struct fault fault = {.kind = kind};
	ibid_close(bed_ibid(&bed, &(struct api_seams){.wrap = fault_set, .user = &fault}));
	return fault.points;
}

static void open_with_inquiry(void)
{
	ibid = bed_ibid(&bed, NULL);
	assert_int_equal(ibid_handle_inquiry(ibid, "send-notification", ask_provider, NULL, NULL),
	                 IBID_OK);
}

static void disturb_everywhere(const struct operation_case *the, size_t index, enum fault_kind kind)
{
	unsigned opening = points_of_opening(kind), n = opening;
	bool met = true;
	fault_path(the->name);
	while (met) {
		char subject[64], said[64];
		struct ibid_err err = {0};
		assert_true(++n < opening + POINTS_MAX);
		if (!fault_takes_part(index + n, 2))
			continue;
		snprintf(subject, sizeof subject, "k-%zu-%d-%u", index, (int)kind, n);
		make_case(the, subject);
		ibid_close(ibid); /* nothing that is open survives a fork */
		struct fault at = {.kind = kind, .at = n};
		met = kind == FAULT_KILL ? send_killed(the, subject, at) : send_faulty(the, subject, at);
		open_with_inquiry();
		if (is_staged(the))
			recover_staged();
		if (try_send(ibid, the, key_for(the, subject), the->payload, subject, said, &err))
			fail_msg("%s, fault %d at %u: %s", the->name, (int)kind, n, err.text);
		const char *answer = strncmp(said, "replayed ", 9) == 0 ? said + 9 : said;
		if (strncmp(answer, "executed", 8) != 0)
			fail_msg("%s, fault %d at %u: %s", the->name, (int)kind, n, said);
		expect_one(the, subject);
	}
	assert_true(n > opening + 3); /* it did go through the statements of a command */
}

static void
of_a_command_killed_at_any_statement_and_sent_again_one_effect_is_left(void **state) /* A07 */
{
	(void)state;
	for (size_t i = 0; i < CASES; i++) {
		disturb_everywhere(&cases[i], i, FAULT_KILL);
	}
}

static void
of_a_command_disturbed_at_any_statement_and_sent_again_one_effect_is_left(void **state) /* A07 */
{
	(void)state;
	for (size_t i = 0; i < CASES; i++) {
		disturb_everywhere(&cases[i], i, FAULT_FAIL);
		disturb_everywhere(&cases[i], i, FAULT_LOSE);
	}
}

/* The contract, the handler and a lie. */
static void an_increment_that_says_it_commutes_is_found_out(void **state) /* A07 */
{
	(void)state;
	struct ibid_err err = {0};
	ibid_close(ibid);
	bed_replace(&bed, "increment-risk.yaml", "version: 1", "version: 2");
	bed_replace(&bed, "increment-risk.yaml", "strategy: key",
	            "strategy: commutative\nstate: score.sql\nserialize_by: [/case]");
	bed_write(&bed, "score.sql",
	          "select 200 as status, 'score' as resource_type, cast(score as text) as resource_id "
	          "from risk where tenant = :tenant and case_id = :case;\n");
	struct ibid *refused = NULL;
	assert_int_equal(
	    ibid_open(IBID_OPTIONS(.store = bed.url, .contracts = bed.contracts), &refused, &err),
	    IBID_CONTRACT);
	assert_non_null(strstr(err.text, "every repetition would tell others again"));
	bed_replace(&bed, "increment-risk.yaml", "emits: [RiskRaised]", "emits: []");
	const char *name = bed.kind == BED_SQLITE ? "increment-risk.sqlite.sql"
	                                          : "increment-risk.postgres.sql";
	bed_write(&bed, name,
	          "insert into risk (tenant, case_id, score) values (:tenant, :case, :by)\n"
	          "  on conflict (tenant, case_id) do update set score = risk.score + :by;\n"
	          "select 200 as status;\n");
	ibid = bed_ibid(&bed, NULL);
	struct ibid_result *result = bed_submit(ibid, "increment-risk", NULL,
	                                        "{\"assessment\":\"a\",\"case\":\"s\",\"by\":5}");
	assert_string_equal(bed_say(result), "failed 500");
	assert_non_null(strstr(ibid_result_text(result), "running the handler twice"));
	ibid_result_free(result);
	assert_int_equal(bed_number(&bed, "select count(*) from risk"), 0);
}

int main(int argc, char **argv)
{
	bed_choose(argc, argv);
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
	    TEST(every_operation_has_one_effect_however_it_is_repeated),
	    TEST(of_eight_with_one_key_one_is_executed),
	    TEST(of_eight_with_keys_of_their_own_one_is_executed),
	    TEST(of_a_command_killed_at_any_statement_and_sent_again_one_effect_is_left),
	    TEST(of_a_command_disturbed_at_any_statement_and_sent_again_one_effect_is_left),
	    TEST(an_increment_that_says_it_commutes_is_found_out),
	};
	return cmocka_run_group_tests_name("operations", tests, NULL, NULL);
}
