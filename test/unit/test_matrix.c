/* SPDX-License-Identifier: Apache-2.0 */
/* test_matrix.c -- the tables that reviewers ask for say what the contracts say (A05). */
#include "contracts.h"

#include "base/json.h"
#include "contract/matrix.h"

/* Two contracts that differ in every answer the tables depend on; some answers are inherited. */
struct fixture {
	char dir[DIR_TEXT_MAX];
	struct contracts *contracts;
	struct str out;
};

static const char second[] =
    "command: import-invoice\n"
    "version: 7\n"
    "fact: \"an invoice | is <booked> *once*\"\n"
    "strategy: unique\n"
    "key:\n"
    "  from: [/vendor, /invoiceNo]\n"
    "  generated_by: source-system\n"
    "  scope: []\n"
    "  retain: 90d\n"
    "  after_expiry: run-again\n"
    "unknown_fields: refuse\n"
    "same_payload: { context: [] }\n"
    "duplicates:\n"
    "  completed: replay\n"
    "  rejected: evaluate-again\n"
    "  rejected_other_payload: evaluate\n"
    "  in_progress: wait 2s\n"
    "  other_payload: conflict\n"
    "  by_source: { client: refuse, service: replay, broker: skip, replay: skip, human: show }\n"
    "  evidence: each\n"
    "failures: { validation: retry, business: final, server: final }\n"
    "answer: { store: reference }\n"
    "unique:\n"
    "  invoice_number: { on_duplicate: reject, find: by-reference.$store.sql }\n"
    "emits: [InvoiceBooked, InvoiceAccrued]\n"
    "covers: [invoice, journal]\n"
    "payload: redact\n"
    "handler: callback\n";

static const char defaults[] = "owner: finance\n"
                               "audit: { retain: 11y }\n"
                               "reconciled_by: vendor-statement\n"
                               "corrected_by: credit-note\n"
                               "same_payload: { nfc: yes }\n";

static void fixture_open(struct fixture *fixture, enum matrix_format format)
{
	struct ibid_err err = {0};
	dir_open(fixture->dir);
	dir_write_mutant(fixture->dir, "create-payment.yaml", 0, NULL);
	dir_write(fixture->dir, "import-invoice.yaml", second);
	dir_write(fixture->dir, "defaults.yaml", defaults);
	fixture->contracts = NULL;
	if (contracts_load(fixture->dir, &fixture->contracts, &err))
		fail_msg("%s", err.text);
	fixture->out = STR_INIT(1 << 20);
	matrix_write(&fixture->out, fixture->contracts, format);
	assert_false(fixture->out.failed);
}

static void fixture_close(struct fixture *fixture)
{
	str_release(&fixture->out);
	contracts_free(fixture->contracts);
	dir_close(fixture->dir);
}

static void expect_text(const struct fixture *fixture, const char *text)
{
	if (!strstr(str_text(&fixture->out), text))
		fail_msg("missing: %s\nin:\n%s", text, str_text(&fixture->out));
}

/* ---- JSON ----------------------------------------------------------------------------------- */

static struct json *read_output(const struct fixture *fixture, struct arena *arena)
{
	struct json *root = NULL;
	struct ibid_err err = {0};
	if (json_read(arena, fixture->out.data, fixture->out.size, 0, &root, &err))
		fail_msg("%s", err.text);
	return root;
}

static void expect_at(struct json *root, const char *pointer, const char *text)
{
	struct json *value = json_at(root, pointer);
	if (!value || !value->text)
		fail_msg("nothing at %s", pointer);
	assert_string_equal(value->text, text);
}

/* The row of a section with this operation and, where given, this value in `column`. */
static struct json *row_of(struct json *root, const char *section, const char *operation,
                           const char *column, const char *value)
{
	struct json *rows = json_member(root, section);
	assert_non_null(rows);
	for (struct json *row = rows->child; row; row = row->next) {
		if (strcmp(json_member(row, "operation")->text, operation) != 0)
			continue;
		if (!column || strcmp(json_member(row, column)->text, value) == 0)
			return row;
	}
	fail_msg("%s has no row for %s, %s", section, operation, value ? value : "");
	return NULL;
}

/* A05 */
static void json_holds_every_section_and_every_answer(void **state)
{
	static const char *const sections[] = {"idempotency",     "strategies",   "retry",
	                                       "exceptionQueues", "failureModes", "reconciliation",
	                                       "sequences",       "runbook"};
	(void)state;
	struct fixture fixture;
	struct arena arena = {0};
	fixture_open(&fixture, MATRIX_JSON);
	struct json *root = read_output(&fixture, &arena);
	assert_int_equal(root->size, COUNT(sections) + 2);
	assert_int_equal(json_member(root, "serviceAnswers")->size, 0); /* none has a service */
	assert_int_equal(json_member(root, "events")->size, 0);         /* and no event a contract */
	for (size_t i = 0; i < COUNT(sections); i++) {
		struct json *section = json_member(root, sections[i]);
		assert_non_null(section);
		assert_int_equal(section->type, JSON_ARRAY);
		row_of(root, sections[i], "create-payment", NULL, NULL);
		row_of(root, sections[i], "import-invoice", NULL, NULL);
	}
	expect_at(root, "/idempotency/0/keyFrom", "header");
	expect_at(root, "/idempotency/0/keyScope", "client");
	expect_at(root, "/idempotency/0/unique",
	          "payment_reference (find: by-reference.$store.sql, on_duplicate: link)");
	expect_at(root, "/strategies/0/strategy", "key");
	expect_at(root, "/strategies/1/enforcedBy", "a unique index refuses the second one");
	expect_at(root, "/strategies/1/looksAt",
	          "unique: invoice_number (find: by-reference.$store.sql, on_duplicate: reject)");
	expect_at(root, "/strategies/1/row", "none");
	expect_at(root, "/idempotency/1/fact", "an invoice | is <booked> *once*");
	expect_at(root, "/idempotency/1/owner", "finance");
	expect_at(root, "/idempotency/1/keyFrom", "/vendor, /invoiceNo");
	expect_at(root, "/idempotency/1/keyScope", "none");
	expect_at(root, "/idempotency/1/keyRetain", "90d");
	expect_at(root, "/idempotency/1/inProgress", "wait 2s");
	expect_at(root, "/idempotency/1/bySource",
	          "broker: skip, client: refuse, human: show, replay: skip, service: replay");
	expect_at(root, "/idempotency/1/covers", "invoice, journal");
	expect_at(root, "/idempotency/0/payload", "omit");
	expect_at(root, "/idempotency/1/payload", "redact");
	arena_release(&arena);
	fixture_close(&fixture);
}

/* A05 */
static void json_lists_what_was_inherited(void **state)
{
	(void)state;
	struct fixture fixture;
	struct arena arena = {0};
	fixture_open(&fixture, MATRIX_JSON);
	struct json *root = read_output(&fixture, &arena);
	assert_null(json_at(root, "/idempotency/0/inherited"));
	expect_at(root, "/idempotency/1/inherited/0", "owner");
	expect_at(root, "/idempotency/1/inherited/1", "auditRetain");
	assert_null(json_at(root, "/idempotency/1/inherited/2"));
	expect_at(root, "/reconciliation/1/inherited/0", "reconciledBy");
	arena_release(&arena);
	fixture_close(&fixture);
}

/* A05 */
static void failure_modes_follow_from_the_answers(void **state)
{
	static const struct {
		const char *operation, *failure, *behaviour;
	} modes[] = {
	    {"create-payment", "duplicate after completion",
	     "nothing runs; the first answer is replayed, byte for byte"},
	    {"import-invoice", "duplicate after completion",
	     "nothing runs; the first status and the resource it named are replayed"},
	    {"create-payment", "duplicate while the first one runs",
	     "nothing runs twice; answered at once as in progress, with when to ask again"},
	    {"import-invoice", "duplicate while the first one runs",
	     "nothing runs twice; waits up to 2s for the first answer, then in progress"},
	    {"create-payment", "same key, other payload",
	     "conflict; nothing runs; attempts are counted as evidence"},
	    {"import-invoice", "same key, other payload",
	     "conflict; nothing runs; each attempt is kept as evidence"},
	    {"create-payment", "duplicate after a rejection", "the first rejection is replayed"},
	    {"import-invoice", "duplicate after a rejection",
	     "it is evaluated again: the reason may be gone"},
	    {"create-payment", "other payload after a rejection", "conflict; nothing runs"},
	    {"import-invoice", "other payload after a rejection",
	     "the new payload is evaluated: the rejected one had no effect"},
	    {"create-payment", "same fact under a new key",
	     "payment_reference: linked to the existing document"},
	    {"import-invoice", "same fact under a new key",
	     "invoice_number: rejected with the existing document's id"},
	    {"create-payment", "invalid payload",
	     "no effect; the answer is kept and is final for its key"},
	    {"import-invoice", "invalid payload",
	     "no effect; the key is bound to no payload: the corrected one takes it, and the refused "
	     "one, kept as evidence, is a conflict from then on"},
	    {"create-payment", "server failure", "no effect; the same key may be claimed again"},
	    {"create-payment", "duplicate after expiry", "after 400d it is refused as expired"},
	    {"import-invoice", "duplicate after expiry",
	     "after 90d it runs again; `unique` prevents a second effect"},
	};
	(void)state;
	struct fixture fixture;
	struct arena arena = {0};
	fixture_open(&fixture, MATRIX_JSON);
	struct json *root = read_output(&fixture, &arena);
	for (size_t i = 0; i < COUNT(modes); i++) {
		struct json *row = row_of(root, "failureModes", modes[i].operation, "failure",
		                          modes[i].failure);
		assert_string_equal(json_member(row, "behaviour")->text, modes[i].behaviour);
	}
	row_of(root, "failureModes", "create-payment", "failure", "crash before the commit");
	row_of(root, "failureModes", "create-payment", "failure",
	       "crash after the commit, before the answer");
	row_of(root, "failureModes", "create-payment", "failure", "the commit's answer is lost");
	arena_release(&arena);
	fixture_close(&fixture);
}

/* A05, A07 */
static void same_fact_under_a_new_key_is_what_the_strategy_makes_of_it(void **state)
{
	static const struct {
		const char *dir, *operation, *behaviour;
	} cases[] = {
	    {"operations", "assign-reviewer",
	     "linked to what is there: `already` finds it under any key"},
	    {"operations", "close-case", "linked to what is there: `already` finds it under any key"},
	    {"operations", "increment-risk", "can't be: the same fact has the same key"},
	    {"strategies", "raise-mark", "done again, which changes nothing"},
	    {"strategies", "touch", "done again, and nobody minds"},
	    {"strategies", "apply", "linked to what is there: `already` finds it under any key"},
	};
	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct fixture fixture = {.out = STR_INIT(1 << 20)};
		struct arena arena = {0};
		struct ibid_err err = {0};
		char dir[512];
		snprintf(dir, sizeof dir, "%s/test/flow/%s", SOURCE_ROOT, cases[i].dir);
		if (contracts_load(dir, &fixture.contracts, &err))
			fail_msg("%s", err.text);
		matrix_write(&fixture.out, fixture.contracts, MATRIX_JSON);
		struct json *row = row_of(read_output(&fixture, &arena), "failureModes", cases[i].operation,
		                          "failure", "same fact under a new key");
		assert_string_equal(json_member(row, "behaviour")->text, cases[i].behaviour);
		arena_release(&arena);
		str_release(&fixture.out);
		contracts_free(fixture.contracts);
	}
}

/* A05 */
static void retry_policy_queues_and_runbook_name_the_owner_and_the_next_step(void **state)
{
	(void)state;
	struct fixture fixture;
	struct arena arena = {0};
	fixture_open(&fixture, MATRIX_JSON);
	struct json *root = read_output(&fixture, &arena);
	struct json *row = row_of(root, "retry", "create-payment", "failure",
	                          "server failure before any effect");
	assert_string_equal(json_member(row, "policy")->text, "retry with the same key");
	row = row_of(root, "retry", "import-invoice", "failure", "server failure before any effect");
	assert_string_equal(json_member(row, "policy")->text, "final");
	row = row_of(root, "retry", "import-invoice", "failure", "deadlock or serialization failure");
	assert_string_equal(json_member(row, "policy")->text, "retried inside, bounded; never final");
	row_of(root, "retry", "import-invoice", "failure", "commit whose outcome is unknown");
	row = row_of(root, "exceptionQueues", "import-invoice", "queue", "reconciliation");
	assert_string_equal(json_member(row, "owner")->text, "finance");
	assert_string_equal(json_member(row, "lands")->text, "a break found by vendor-statement");
	assert_string_equal(json_member(row, "actions")->text,
	                    "correct it with credit-note; nothing is deleted");
	row = row_of(root, "exceptionQueues", "import-invoice", "queue", "dead-letter");
	assert_string_equal(json_member(row, "actions")->text,
	                    "repair; send a new intent with a new key");
	row = row_of(root, "runbook", "create-payment", "run", "ibid doctor");
	assert_non_null(row);
	row_of(root, "runbook", "create-payment", "run", "ibid contract check");
	arena_release(&arena);
	fixture_close(&fixture);
}

/* ---- Markdown ------------------------------------------------------------------------------- */

static size_t bars(const char *line, size_t size)
{
	size_t count = 0;
	for (size_t i = 0; i < size; i++) {
		if (line[i] == '\\')
			i++;
		else
			count += line[i] == '|';
	}
	return count;
}

/* A05 */
static void markdown_tables_have_as_many_cells_in_every_row(void **state)
{
	(void)state;
	struct fixture fixture;
	size_t tables = 0, expected = 0;
	fixture_open(&fixture, MATRIX_MARKDOWN);
	for (const char *line = fixture.out.data; *line; line += strcspn(line, "\n") + 1) {
		size_t size = strcspn(line, "\n");
		if (line[0] != '|') {
			expected = 0;
			continue;
		}
		tables += expected == 0;
		if (expected && bars(line, size) != expected)
			fail_msg("%.*s", (int)size, line);
		expected = bars(line, size);
	}
	assert_int_equal(tables, 7);
	expect_text(&fixture, "an invoice \\| is \\<booked> \\*once\\*");
	expect_text(&fixture, "\\* answered by defaults.yaml");
	expect_text(&fixture, "| finance\\* |");
	fixture_close(&fixture);
}

/* A05 */
static void every_flow_has_a_sequence_diagram_with_its_events(void **state)
{
	(void)state;
	struct fixture fixture;
	fixture_open(&fixture, MATRIX_MARKDOWN);
	expect_text(&fixture, "### create-payment\n\n```mermaid\nsequenceDiagram\n");
	expect_text(&fixture, "    client->>ibid: create-payment, key from header\n"
	                      "    ibid->>store: begin, claim tenant, operation, client, key\n");
	expect_text(&fixture, "        ibid->>store: event PaymentCreated to the outbox\n");
	expect_text(&fixture, "    client->>ibid: import-invoice, key from fields\n"
	                      "    ibid->>store: begin, claim tenant, operation, key\n");
	expect_text(&fixture, "        ibid->>store: event InvoiceBooked to the outbox\n"
	                      "        ibid->>store: event InvoiceAccrued to the outbox\n");
	expect_text(&fixture, "    else the fact exists under another key\n");
	expect_text(&fixture, "    end\n```\n");
	fixture_close(&fixture);
}

/* ---- Text ----------------------------------------------------------------------------------- */

/* A05 */
static void text_fits_a_terminal_and_marks_what_was_inherited(void **state)
{
	(void)state;
	struct fixture fixture;
	fixture_open(&fixture, MATRIX_TEXT);
	for (const char *line = fixture.out.data; *line; line += strcspn(line, "\n") + 1) {
		size_t size = strcspn(line, "\n");
		if (size > 100 || (size && line[size - 1] == ' '))
			fail_msg("%zu columns: %.*s", size, (int)size, line);
	}
	expect_text(&fixture, "* answered by defaults.yaml\n");
	expect_text(&fixture, "  Owner                               finance*\n");
	expect_text(&fixture, "  Owner                               payments\n");
	expect_text(&fixture, "Reconciliation plan\n===================\n");
	fixture_close(&fixture);
}

static void a_long_answer_is_wrapped_and_nothing_of_it_is_lost(void **state)
{
	(void)state;
	struct fixture fixture;
	struct str line = STR_INIT(1000);
	struct ibid_err err = {0};
	str_adds(&line, "fact:");
	for (int i = 0; i < 40; i++)
		str_addf(&line, " w%02d\xc3\xa4", i);
	str_addf(&line, " %0120d", 7);
	dir_open(fixture.dir);
	dir_write_mutant(fixture.dir, "create-payment.yaml", 3, str_text(&line));
	fixture.contracts = NULL;
	if (contracts_load(fixture.dir, &fixture.contracts, &err))
		fail_msg("%s", err.text);
	fixture.out = STR_INIT(1 << 20);
	matrix_write(&fixture.out, fixture.contracts, MATRIX_TEXT);
	for (int i = 0; i < 40; i++) {
		char word[16];
		snprintf(word, sizeof word, "w%02d\xc3\xa4", i);
		expect_text(&fixture, word);
	}
	expect_text(&fixture, "07\n");
	assert_null(strstr(str_text(&fixture.out), "answered by defaults.yaml"));
	str_release(&line);
	fixture_close(&fixture);
}

static void a_matrix_that_does_not_fit_its_cap_says_so(void **state)
{
	(void)state;
	struct fixture fixture;
	fixture_open(&fixture, MATRIX_TEXT);
	struct str small = STR_INIT(100);
	matrix_write(&small, fixture.contracts, MATRIX_JSON);
	assert_true(small.failed);
	str_release(&small);
	fixture_close(&fixture);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(json_holds_every_section_and_every_answer),
	    cmocka_unit_test(json_lists_what_was_inherited),
	    cmocka_unit_test(failure_modes_follow_from_the_answers),
	    cmocka_unit_test(same_fact_under_a_new_key_is_what_the_strategy_makes_of_it),
	    cmocka_unit_test(retry_policy_queues_and_runbook_name_the_owner_and_the_next_step),
	    cmocka_unit_test(markdown_tables_have_as_many_cells_in_every_row),
	    cmocka_unit_test(every_flow_has_a_sequence_diagram_with_its_events),
	    cmocka_unit_test(text_fits_a_terminal_and_marks_what_was_inherited),
	    cmocka_unit_test(a_long_answer_is_wrapped_and_nothing_of_it_is_lost),
	    cmocka_unit_test(a_matrix_that_does_not_fit_its_cap_says_so),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
