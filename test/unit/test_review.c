/* SPDX-License-Identifier: Apache-2.0 */
/* test_review.c -- the checklists are asked completely and answered from contracts and facts (A08).
 */
#include "contracts.h"

#include "base/json.h"
#include "contract/review.h"

struct fixture {
	char dir[DIR_TEXT_MAX];
	struct contracts *contracts;
	struct arena arena;
	struct review_counts counts;
};

static const struct index_row good_index = {"payment", "tenant, reference", true, true, false};

static void load(struct fixture *fixture)
{
	struct ibid_err err = {0};
	contracts_free(fixture->contracts);
	fixture->contracts = NULL;
	enum ibid_code code = contracts_load(fixture->dir, &fixture->contracts, &err);
	assert_true(code == IBID_OK || code == IBID_CONTRACT);
}

static void fixture_open(struct fixture *fixture, int line, const char *text)
{
	*fixture = (struct fixture){0};
	dir_open(fixture->dir);
	dir_write(fixture->dir, "by-reference.sqlite.sql", "select 1;\n");
	dir_write_mutant(fixture->dir, "create-payment.yaml", line, text);
	load(fixture);
}

static void fixture_close(struct fixture *fixture)
{
	contracts_free(fixture->contracts);
	arena_release(&fixture->arena);
	dir_close(fixture->dir);
}

static const struct json *review(struct fixture *fixture, const struct review_live *live)
{
	struct json *root = NULL;
	struct str out = STR_INIT(1 << 22);
	review_write(&out, fixture->contracts, live, MATRIX_JSON, &fixture->counts);
	assert_false(out.failed);
	assert_int_equal(json_read(&fixture->arena, arena_strdup(&fixture->arena, str_text(&out)),
	                           out.size, 0, &root, NULL),
	                 IBID_OK);
	str_release(&out);
	return root;
}

static const char *text_of(const struct json *row, const char *name)
{
	return json_member(row, name)->text;
}

/* The first row of a question, by its id. */
static const struct json *row_of(const struct json *root, const char *id)
{
	static const char *const lists[] = {"erp", "oms", "api", "db", "ibid"};
	for (size_t i = 0; i < COUNT(lists); i++)
		for (const struct json *row = json_member(root, lists[i])->child; row; row = row->next)
			if (strcmp(text_of(row, "id"), id) == 0)
				return row;
	fail_msg("no question %s", id);
	return NULL;
}

static void expect(const struct json *root, const char *id, const char *answer, const char *why)
{
	const struct json *row = row_of(root, id);
	if (strcmp(text_of(row, "answer"), answer) != 0 || !strstr(text_of(row, "why"), why))
		fail_msg("%s: %s: %s", id, text_of(row, "answer"), text_of(row, "why"));
}

static struct contract_row kept_row(const struct fixture *fixture)
{
	return (struct contract_row){.digest = contracts_at(fixture->contracts, 0)->digest};
}

static void every_question_of_every_checklist_is_asked(void **state)
{
	static const struct {
		const char *list;
		size_t count;
	} lists[] = {{"erp", 34}, {"oms", 15}, {"api", 18}, {"db", 31}, {"ibid", 7}};
	struct fixture fixture;
	size_t total = 0;
	(void)state;
	fixture_open(&fixture, 0, NULL);
	const struct json *root = review(&fixture, NULL);
	for (size_t i = 0; i < COUNT(lists); i++) {
		size_t count = 0;
		for (const struct json *row = json_member(root, lists[i].list)->child; row; row = row->next)
			count++;
		assert_int_equal(count, lists[i].count);
		total += count;
	}
	const struct review_counts *counts = &fixture.counts;
	assert_int_equal(counts->pass + counts->fail + counts->ask + counts->not_applicable, total);
	fixture_close(&fixture);
}

/* What only a store can show is not called passed without one. */
static void without_a_store_a_person_must_look(void **state)
{
	struct fixture fixture;
	(void)state;
	fixture_open(&fixture, 0, NULL);
	const struct json *root = review(&fixture, NULL);
	expect(root, "ERP-7", "ask", "payment_reference");
	expect(root, "API-8", "ask", "--store");
	expect(root, "IBID-2", "ask", "--store");
	expect(root, "IBID-3", "ask", "create-payment.postgres.sql is missing");
	assert_int_equal(fixture.counts.fail, 0);
	fixture_close(&fixture);
}

/* `ibid serve` has metrics; a program with a C callback has those that it makes. */
static void metrics_are_named_where_the_server_counts(void **state)
{
	static const char *const ids[] = {"API-16", "API-17", "DB-31"};
	static const char counted[] = "ibid_commands_total{operation=\"create-payment\"";
	struct fixture fixture;
	(void)state;
	fixture_open(&fixture, 0, NULL);
	const struct json *root = review(&fixture, NULL);
	expect(root, "API-16", "pass", counted);
	expect(root, "API-17", "ask", counted);
	expect(root, "DB-31", "pass", counted);
	expect(root, "OMS-13", "ask", "ibid_outbox_backlog");
	fixture_close(&fixture);
	fixture_open(&fixture, 53, "handler: callback");
	root = review(&fixture, NULL);
	for (size_t i = 0; i < COUNT(ids); i++)
		expect(root, ids[i], "ask", "`handler: callback`");
	fixture_close(&fixture);
}

static void live_schema_answers_for_the_declared_index(void **state)
{
	static const struct {
		struct index_row index;
		const char *answer, *why;
	} cases[] = {
	    {{"payment", "tenant, reference", true, true, false},
	     "pass",
	     "payment (tenant, reference)"},
	    {{"payment", "tenant, reference", true, true, true}, "pass", "its condition"},
	    {{0}, "fail", "no index or constraint of that name: create it"},
	    {{"payment", "reference", false, true, false}, "fail", "is not unique"},
	    {{"payment", "reference", true, false, false}, "fail", "is invalid"},
	};
	static const char *const ids[] = {"ERP-7", "OMS-8", "API-8", "DB-13", "DB-14", "DB-15"};
	struct fixture fixture;
	(void)state;
	fixture_open(&fixture, 0, NULL);
	struct contract_row kept = kept_row(&fixture);
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct review_live live = {"sqlite", &kept, &cases[i].index};
		const struct json *root = review(&fixture, &live);
		for (size_t k = 0; k < COUNT(ids); k++)
			expect(root, ids[k], cases[i].answer, cases[i].why);
		assert_int_equal(fixture.counts.fail > 0, strcmp(cases[i].answer, "fail") == 0);
	}
	fixture_close(&fixture);
}

static void retention_shorter_than_the_replay_window_fails(void **state)
{
	static const struct {
		const char *line, *answer, *why;
	} cases[] = {
	    {"  retain: 30d\n  replay_window: 90d", "fail",
	     "key.retain is 30d, but key.replay_window is 90d"},
	    {"  retain: 90d\n  replay_window: 90d", "pass", "key.replay_window: 90d"},
	    {"  retain: 30d", "ask", "key.replay_window"},
	};
	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct fixture fixture;
		fixture_open(&fixture, 11, cases[i].line);
		const struct json *root = review(&fixture, NULL);
		expect(root, "API-11", cases[i].answer, cases[i].why);
		expect(root, "DB-20", cases[i].answer, cases[i].why);
		fixture_close(&fixture);
	}
}

static void retention_shorter_than_the_wait_fails(void **state)
{
	struct fixture fixture;
	(void)state;
	fixture_open(&fixture, 29, "  in_progress: wait 20s");
	expect(review(&fixture, NULL), "API-11", "ask", "400d");
	struct str text = mutant(29, "  in_progress: wait 20s");
	memcpy(strstr(text.data, "retain: 400d"), "retain: 19s ", strlen("retain: 19s "));
	dir_write(fixture.dir, "create-payment.yaml", text.data);
	str_release(&text);
	load(&fixture);
	expect(review(&fixture, NULL), "API-11", "fail", "may wait 20s");
	fixture_close(&fixture);
}

static void contract_that_the_store_keeps_otherwise_fails(void **state)
{
	struct fixture fixture;
	(void)state;
	fixture_open(&fixture, 0, NULL);
	struct contract_row kept = kept_row(&fixture), other = {0};
	struct review_live live = {"sqlite", &kept, &good_index};
	expect(review(&fixture, &live), "IBID-2", "pass", "version 1");
	live.kept = &other;
	expect(review(&fixture, &live), "IBID-2", "fail", "new version");
	live.kept = NULL;
	expect(review(&fixture, &live), "IBID-2", "ask", "contract apply");
	fixture_close(&fixture);
}

static void script_that_the_store_lacks_fails(void **state)
{
	struct fixture fixture;
	(void)state;
	fixture_open(&fixture, 0, NULL);
	struct contract_row kept = kept_row(&fixture);
	struct review_live live = {"sqlite", &kept, &good_index};
	expect(review(&fixture, &live), "IBID-3", "pass", "for sqlite");
	live.store = "postgres";
	expect(review(&fixture, &live), "IBID-3", "fail", "create-payment.postgres.sql is missing");
	fixture_close(&fixture);
}

static void event_of_two_owners_has_none(void **state)
{
	struct fixture fixture;
	(void)state;
	fixture_open(&fixture, 0, NULL);
	expect(review(&fixture, NULL), "IBID-4", "pass", "owned by payments");
	struct str text = mutant(1, "command: import-payment");
	memcpy(strstr(text.data, "owner: payments"), "owner: treasury", strlen("owner: treasury"));
	memcpy(strstr(text.data, "POST /payments"), "POST /PAYMENTS", strlen("POST /PAYMENTS"));
	dir_write(fixture.dir, "import-payment.yaml", text.data);
	str_release(&text);
	load(&fixture);
	assert_int_equal(contracts_count(fixture.contracts), 2);
	expect(review(&fixture, NULL), "IBID-4", "fail", "PaymentCreated has no single owner");
	fixture_close(&fixture);
}

/* An unanswered or contradicted question is a failure of the review, with the question. */
static void problems_of_the_contracts_fail_with_their_question(void **state)
{
	static const struct {
		int line;
		const char *text, *question, *why;
	} cases[] = {
	    {4, NULL, "Which team", "owner is missing"},
	    {45, "  retain: 30d", "free of contradictions?", "evidence must outlive the key"},
	    {12, "  after_expiry: refuse\n  form: text", "free of contradictions?", "key.form"},
	};
	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct fixture fixture;
		fixture_open(&fixture, cases[i].line, cases[i].text);
		const struct json *root = review(&fixture, NULL);
		expect(root, "IBID-1", "fail", cases[i].why);
		assert_non_null(strstr(text_of(row_of(root, "IBID-1"), "question"), cases[i].question));
		assert_string_equal(text_of(row_of(root, "IBID-1"), "operation"), "create-payment.yaml");
		assert_int_equal(fixture.counts.fail, 1);
		fixture_close(&fixture);
	}
}

static void running_again_needs_the_index_and_not_only_its_name(void **state)
{
	struct fixture fixture;
	(void)state;
	fixture_open(&fixture, 12, "  after_expiry: run-again");
	struct contract_row kept = kept_row(&fixture);
	struct review_live live = {"sqlite", &kept, &good_index};
	expect(review(&fixture, NULL), "DB-21", "ask", "payment_reference");
	expect(review(&fixture, &live), "DB-21", "pass", "payment_reference");
	live.indexes = &(struct index_row){0};
	expect(review(&fixture, &live), "DB-21", "fail", "payment_reference");
	fixture_close(&fixture);
}

/* What a callback does can't be seen; a script works inside the transaction. */
static void callback_is_left_to_a_person(void **state)
{
	static const char *const ids[] = {"API-7", "DB-9", "DB-11", "DB-12", "ERP-16", "OMS-9"};
	struct fixture fixture;
	(void)state;
	fixture_open(&fixture, 53, "handler: callback");
	const struct json *root = review(&fixture, NULL);
	for (size_t i = 0; i < COUNT(ids); i++)
		expect(root, ids[i], "ask", "callback's code");
	fixture_close(&fixture);
	fixture_open(&fixture, 0, NULL);
	root = review(&fixture, NULL);
	expect(root, "DB-11", "pass", "no: ");
	expect(root, "OMS-9", "not applicable", "inside the database");
	fixture_close(&fixture);
}

/* Work that is done outside is not called atomic, and its rows may become stale. */
static void staged_command_is_asked_about_its_recovery(void **state)
{
	struct fixture fixture;
	(void)state;
	fixture_open(&fixture, 53, "handler: callback\nstaged: { lease: 30s, recover: inquiry }");
	const struct json *root = review(&fixture, NULL);
	expect(root, "DB-9", "ask", "second transaction");
	expect(root, "DB-10", "pass", "recover: inquiry");
	expect(root, "DB-11", "ask", "IN_PROGRESS");
	expect(root, "DB-29", "ask", "`ibid command recover`, and how often? A lease ends after 30s");
	expect(root, "ERP-17", "pass", "UNKNOWN");
	expect(root, "ERP-18", "pass", "asks the partner");
	expect(root, "ERP-19", "pass", "fenced");
	fixture_close(&fixture);
	fixture_open(&fixture, 53, "handler: callback\nstaged: { lease: 30s, recover: human }");
	root = review(&fixture, NULL);
	expect(root, "DB-29", "ask", "recover: human");
	expect(root, "ERP-18", "ask", "callback's code");
	fixture_close(&fixture);
	fixture_open(&fixture, 0, NULL);
	expect(review(&fixture, NULL), "DB-29", "pass", "there are none");
	fixture_close(&fixture);
}

static void payload_that_is_kept_as_sent_is_asked_about(void **state)
{
	static const struct {
		const char *payload, *answer, *why;
	} cases[] = {
	    {"", "pass", "payload: omit; redact: /note"},
	    {"payload: redact\n", "pass", "payload: redact; redact: /note; kept for 400d"},
	    {"payload: encrypt\n", "pass", "payload: encrypt"},
	    {"payload: store\n", "ask", "payload: store; redact: /note; all else is kept as sent"},
	};
	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct fixture fixture;
		char line[64];
		snprintf(line, sizeof line, "%sunknown_fields: keep", cases[i].payload);
		fixture_open(&fixture, 19, line);
		expect(review(&fixture, NULL), "IBID-6", cases[i].answer, cases[i].why);
		fixture_close(&fixture);
	}
}

static void other_payload_that_is_evaluated_after_a_rejection_is_told(void **state)
{
	struct fixture fixture;
	(void)state;
	fixture_open(&fixture, 28, "  rejected_other_payload: evaluate");
	expect(review(&fixture, NULL), "DB-7", "pass", "after a rejection it is evaluated");
	fixture_close(&fixture);
}

static void a_correction_that_takes_the_key_is_told(void **state)
{
	struct fixture fixture;
	(void)state;
	fixture_open(&fixture, 39, "  validation: retry");
	expect(review(&fixture, NULL), "DB-7", "pass",
	       "the correction of an invalid one takes the key");
	fixture_close(&fixture);
}

/* Retention is there, and somebody has to run it. */
static void growth_is_bounded_by_whoever_runs_retention(void **state)
{
	struct fixture fixture;
	(void)state;
	fixture_open(&fixture, 0, NULL);
	const struct json *root = review(&fixture, NULL);
	expect(root, "DB-23", "ask", "`ibid retain` empties commands after 400d");
	expect(root, "OMS-15", "ask", "--events-older-than");
	fixture_close(&fixture);
}

static void failures_come_first_in_tables_for_people(void **state)
{
	struct fixture fixture;
	(void)state;
	fixture_open(&fixture, 0, NULL);
	struct review_live live = {"sqlite", NULL, &(struct index_row){0}};
	for (int format = MATRIX_TEXT; format <= MATRIX_MARKDOWN; format++) {
		struct str out = STR_INIT(1 << 22);
		review_write(&out, fixture.contracts, &live, (enum matrix_format)format, &fixture.counts);
		assert_false(out.failed);
		const char *title = format == MATRIX_TEXT ? "Fails the review\n" : "## Fails the review\n";
		assert_memory_equal(out.data, title, strlen(title));
		assert_non_null(strstr(out.data, "for a person to answer"));
		str_release(&out);
	}
	fixture_close(&fixture);
}

/* The documentation holds the questions that the table asks, word for word. */
static void the_documentation_lists_every_question(void **state)
{
	static char text[1 << 16];
	(void)state;
	FILE *file = fopen(SOURCE_ROOT "/docs/review.md", "rb");
	assert_non_null(file);
	size_t size = fread(text, 1, sizeof text - 1, file);
	fclose(file);
	text[size] = '\0';
	struct str reference = STR_INIT(1 << 16);
	review_reference(&reference);
	if (!strstr(text, str_text(&reference)))
		fail_msg("docs/review.md lacks this list:\n%s", str_text(&reference));
	str_release(&reference);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(every_question_of_every_checklist_is_asked),
	    cmocka_unit_test(without_a_store_a_person_must_look),
	    cmocka_unit_test(metrics_are_named_where_the_server_counts),
	    cmocka_unit_test(live_schema_answers_for_the_declared_index),
	    cmocka_unit_test(retention_shorter_than_the_replay_window_fails),
	    cmocka_unit_test(retention_shorter_than_the_wait_fails),
	    cmocka_unit_test(contract_that_the_store_keeps_otherwise_fails),
	    cmocka_unit_test(script_that_the_store_lacks_fails),
	    cmocka_unit_test(event_of_two_owners_has_none),
	    cmocka_unit_test(problems_of_the_contracts_fail_with_their_question),
	    cmocka_unit_test(running_again_needs_the_index_and_not_only_its_name),
	    cmocka_unit_test(callback_is_left_to_a_person),
	    cmocka_unit_test(staged_command_is_asked_about_its_recovery),
	    cmocka_unit_test(payload_that_is_kept_as_sent_is_asked_about),
	    cmocka_unit_test(other_payload_that_is_evaluated_after_a_rejection_is_told),
	    cmocka_unit_test(a_correction_that_takes_the_key_is_told),
	    cmocka_unit_test(growth_is_bounded_by_whoever_runs_retention),
	    cmocka_unit_test(failures_come_first_in_tables_for_people),
	    cmocka_unit_test(the_documentation_lists_every_question),
	};
	return cmocka_run_group_tests_name("review", tests, NULL, NULL);
}
