/* SPDX-License-Identifier: Apache-2.0 */
/* test_event.c -- contracts of events: every question, every wrong answer, and the rule they make.
 */
#include "contracts.h"

#include "base/json.h"
#include "contract/event.h"
#include "contract/matrix.h"
#include "contract/review.h"

static const char *const event_lines[] = {
    /* 1 */ "event: PaymentCreated",
    /* 2 */ "version: 3",
    /* 3 */ "owner: payments",
    /* 4 */ "topic: payments.payment.events.v1",
    /* 5 */ "aggregate: payment",
    /* 6 */ "partition_key: aggregate_id",
    /* 7 */ "required: [/amount, /currency]",
    /* 8 */ "max_bytes: 65536",
    /* 9 */ "order: aggregate-version",
    /* 10 */ "deliver_to: [kafka-main, audit-file]",
    /* 11 */ "on_parked:",
    /* 12 */ "  owner: treasury",
    /* 13 */ "  severity: high",
    /* 14 */ "  sla: 4h",
    /* 15 */ "  skip_needs_approval: true",
};

/* The event with one line (from 1) replaced, or left out where `text` is NULL. */
static char *event_with(size_t line, const char *text)
{
	struct str out = STR_INIT(1 << 16);
	for (size_t i = 0; i < COUNT(event_lines); i++) {
		const char *own = i + 1 == line ? text : event_lines[i];
		if (own)
			str_addf(&out, "%s\n", own);
	}
	return str_take(&out, NULL);
}

struct loaded {
	char dir[DIR_TEXT_MAX];
	struct contracts *contracts;
	enum ibid_code code;
	struct ibid_err err;
};

static void load(struct loaded *loaded)
{
	loaded->contracts = NULL;
	loaded->err = (struct ibid_err){0};
	loaded->code = contracts_load(loaded->dir, &loaded->contracts, &loaded->err);
}

static void load_event(struct loaded *loaded, size_t line, const char *text)
{
	char *event = event_with(line, text);
	dir_open(loaded->dir);
	dir_write(loaded->dir, "event.yaml", event);
	free(event);
	load(loaded);
}

static void loaded_free(struct loaded *loaded)
{
	contracts_free(loaded->contracts);
	dir_close(loaded->dir);
}

static const struct event_contract *good_event(const struct loaded *loaded)
{
	if (loaded->code)
		fail_msg("%s", loaded->err.text);
	const struct event_contract *event = contracts_event(loaded->contracts, "PaymentCreated");
	assert_non_null(event);
	return event;
}

/* ---- Good ----------------------------------------------------------------------------------- */

static void a_complete_event_is_read_as_it_is_written(void **state)
{
	(void)state;
	struct loaded loaded;
	load_event(&loaded, 0, NULL);
	const struct event_contract *event = good_event(&loaded);
	assert_int_equal(contracts_count(loaded.contracts), 0);
	assert_int_equal(contracts_event_count(loaded.contracts), 1);
	assert_null(contracts_event(loaded.contracts, "PaymentClosed"));
	assert_null(contracts_find(loaded.contracts, "PaymentCreated"));
	const struct contract *contract = contracts_event_at(loaded.contracts, 0);
	assert_ptr_equal(contract->event, event);
	assert_string_equal(contract->name, "PaymentCreated");
	assert_int_equal(contract->version, 3);
	assert_string_equal(contract->owner, "payments");
	assert_string_equal(contract->file, "event.yaml");
	assert_string_equal(contract_kind_name(contract->kind), "event");
	assert_string_equal(event->rule.type, "PaymentCreated");
	assert_int_equal(event->rule.version, 3);
	assert_string_equal(event->rule.topic, "payments.payment.events.v1");
	assert_string_equal(event->rule.aggregate, "payment");
	assert_int_equal(event->rule.partition, PARTITION_AGGREGATE_ID);
	assert_int_equal(event->rule.required_count, 2);
	assert_string_equal(event->rule.required[1], "/currency");
	assert_int_equal(event->rule.max_bytes, 65536);
	assert_string_equal(event->rule.headers,
	                    "{\"event_version\":\"3\",\"deliver_to\":\"kafka-main,audit-file\"}");
	assert_int_equal(event->order, ORDER_AGGREGATE_VERSION);
	assert_int_equal(event->deliver_to.count, 2);
	assert_string_equal(event->deliver_to.items[1], "audit-file");
	assert_string_equal(event->on_parked.owner, "treasury");
	assert_int_equal(event->on_parked.severity, SEVERITY_HIGH);
	assert_int_equal(event->on_parked.sla_us, INT64_C(4) * 3600 * 1000000);
	assert_true(event->on_parked.skip_needs_approval);
	loaded_free(&loaded);
}

static void what_a_store_keeps_is_read_back_as_the_same_event(void **state)
{
	(void)state;
	struct loaded loaded;
	struct arena arena = {0};
	struct contract *again = NULL;
	struct ibid_err err;
	load_event(&loaded, 6, "partition_key: /account/id");
	const struct contract *contract = contracts_event_at(loaded.contracts, 0);
	assert_int_equal(contract_from_text(&arena, contract->text, &again, &err), IBID_OK);
	assert_int_equal(again->kind, CONTRACT_EVENT);
	assert_string_equal(again->text, contract->text);
	assert_memory_equal(&again->digest, &contract->digest, sizeof again->digest);
	assert_int_equal(again->event->rule.partition, PARTITION_PAYLOAD);
	assert_string_equal(again->event->rule.partition_pointer, "/account/id");
	arena_release(&arena);
	loaded_free(&loaded);
}

static void defaults_answer_for_events_and_commands_alike(void **state)
{
	(void)state;
	struct loaded loaded;
	dir_open(loaded.dir);
	dir_write(loaded.dir, "defaults.yaml",
	          "owner: payments\ntopic: t\naggregate: payment\npartition_key: tenant\n"
	          "max_bytes: 10\norder: aggregate-version\ndeliver_to: []\n"
	          "on_parked: { owner: treasury, severity: low, sla: 1d, "
	          "skip_needs_approval: no }\nkey: { retain: 400d }\n");
	dir_write(loaded.dir, "event.yaml",
	          "event: PaymentCreated\nversion: 1\nrequired: []\non_parked: { sla: 2d }\n");
	load(&loaded);
	const struct event_contract *event = good_event(&loaded);
	assert_string_equal(event->rule.topic, "t");
	assert_int_equal(event->rule.partition, PARTITION_TENANT);
	assert_int_equal(event->on_parked.sla_us, INT64_C(2) * 86400 * 1000000);
	assert_int_equal(event->on_parked.severity, SEVERITY_LOW);
	assert_false(event->on_parked.skip_needs_approval);
	assert_int_equal(event->deliver_to.count, 0);
	/* `key` is no question of an event's. */
	assert_null(strstr(contracts_event_at(loaded.contracts, 0)->text, "retain"));
	loaded_free(&loaded);
}

/* ---- Wrong ---------------------------------------------------------------------------------- */

static void expect_problem(const struct loaded *loaded, const char *file, int line,
                           const char *text)
{
	char path[4096];
	snprintf(path, sizeof path, "%s/%s", loaded->dir, file);
	if (loaded->code != IBID_CONTRACT)
		fail_msg("accepted, but should say: %s", text);
	for (size_t i = 0; i < contracts_problem_count(loaded->contracts); i++) {
		const struct contract_problem *problem = contracts_problem(loaded->contracts, i);
		if (strcmp(problem->text, text) == 0 && problem->line == line &&
		    strcmp(problem->file, path) == 0)
			return;
	}
	const struct contract_problem *first = contracts_problem(loaded->contracts, 0);
	fail_msg("expected: %d: %s\n   found: %s:%d: %s", line, text, first->file, first->line,
	         first->text);
}

#define TOPIC ": a topic is 1 to 249 letters, digits, `.`, `_` and `-`, and not `.` or `..`"

static void every_wrong_answer_is_told_with_its_line(void **state)
{
	static const struct {
		size_t at;
		const char *line;
		int where;
		const char *text;
	} wrong[] = {
	    {1, "event: 9lives", 1,
	     "event is `9lives`: an event type is a letter, then letters, digits, `.`, `_`, `-`, at "
	     "most 127"},
	    {2, "version: 0", 2, "version is `0`: it must be a whole number from 1 to 1000000"},
	    {3, "owner: The Team", 3,
	     "owner is `The Team`: a name has 1 to 63 of a-z, 0-9 and -, and begins with a letter"},
	    {4, "topic: a/b", 4, "topic is `a/b`" TOPIC},
	    {4, "topic: ..", 4, "topic is `..`" TOPIC},
	    {4, "topic: \"payments events\"", 4, "topic is `payments events`" TOPIC},
	    {4, "topic: [a]", 4, "topic must be one value, not a list"},
	    {6, "partition_key: account", 6,
	     "partition_key is `account`: it must be aggregate_id, tenant, or a pointer into the "
	     "payload such as /account"},
	    {6, "partition_key: /lines/*/sku", 6,
	     "partition_key: `/lines/*/sku` must be one member; `*` is not read here"},
	    {6, "partition_key: /a~2", 6,
	     "partition_key: `/a~2` is not a pointer to a member, such as /amount or /lines/0/sku"},
	    {7, "required: [amount]", 7,
	     "required: `amount` is not a pointer to a member, such as /amount or /lines/0/sku"},
	    {7, "required: [/lines/*/sku]", 7,
	     "required: `/lines/*/sku` must be one member; `*` is not read here"},
	    {8, "max_bytes: 0", 8, "max_bytes is `0`: it must be a whole number from 1 to 1048576"},
	    {8, "max_bytes: 1048577", 8,
	     "max_bytes is `1048577`: it must be a whole number from 1 to 1048576"},
	    {8, "max_bytes: 64k", 8, "max_bytes is `64k`: it must be a whole number from 1 to 1048576"},
	    {9, "order: none", 9, "order is `none`: it must be aggregate-version"},
	    {10, "deliver_to: [kafka_main]", 10,
	     "deliver_to: `kafka_main` is not the name of a destination: a-z, 0-9 and -, at most 63"},
	    {13, "  severity: fatal", 13,
	     "on_parked.severity is `fatal`: it must be one of low, medium, high, critical"},
	    {14, "  sla: 4 hours", 14,
	     "on_parked.sla is `4 hours`: it must be a duration such as 30d (ms, s, m, h, d, w, y)"},
	    {15, "  skip_needs_approval: perhaps", 15,
	     "on_parked.skip_needs_approval is `perhaps`: it must be one of no, yes, false, true"},
	    {9, "order: aggregate-version\nretries: 3", 10,
	     "retries is not a member of an event; known here: event, version, owner, topic, "
	     "aggregate, partition_key, required, max_bytes, order, deliver_to, on_parked"},
	    {8, "max_byte: 1", 8, "max_byte is not a member of an event; did you mean `max_bytes`?"},
	    {15, "  skip_approval: yes", 15,
	     "on_parked.skip_approval is not a member of an event; known here: owner, severity, sla, "
	     "skip_needs_approval"},
	};
	(void)state;
	for (size_t i = 0; i < COUNT(wrong); i++) {
		struct loaded loaded;
		load_event(&loaded, wrong[i].at, wrong[i].line);
		expect_problem(&loaded, "event.yaml", wrong[i].where, wrong[i].text);
		loaded_free(&loaded);
	}
}

/* A01: what is left open is refused with the question it leaves open. */
static void every_question_must_be_answered(void **state)
{
	static const struct {
		size_t line;
		const char *member;
		int where;
	} questions[] = {
	    {2, "version", 1},
	    {3, "owner", 1},
	    {4, "topic", 1},
	    {5, "aggregate", 1},
	    {6, "partition_key", 1},
	    {7, "required", 1},
	    {8, "max_bytes", 1},
	    {9, "order", 1},
	    {10, "deliver_to", 1},
	    {12, "on_parked.owner", 11},
	    {13, "on_parked.severity", 11},
	    {14, "on_parked.sla", 11},
	    {15, "on_parked.skip_needs_approval", 11},
	};
	(void)state;
	for (size_t i = 0; i < COUNT(questions); i++) {
		struct loaded loaded;
		char text[128];
		load_event(&loaded, questions[i].line, NULL);
		snprintf(text, sizeof text, "%s is missing", questions[i].member);
		expect_problem(&loaded, "event.yaml", questions[i].where, text);
		assert_non_null(contracts_problem(loaded.contracts, 0)->question);
		loaded_free(&loaded);
	}
}

static void what_each_event_has_of_its_own_is_no_default(void **state)
{
	(void)state;
	struct loaded loaded;
	load_event(&loaded, 0, NULL);
	contracts_free(loaded.contracts);
	dir_write(loaded.dir, "defaults.yaml",
	          "required: [/a]\nversion: 1\ntopics: x\non_parked: { slas: 1h }\n");
	load(&loaded);
	expect_problem(&loaded, "defaults.yaml", 1,
	               "required can't be answered for all contracts: each has its own");
	expect_problem(&loaded, "defaults.yaml", 2,
	               "version can't be answered for all contracts: each has its own");
	expect_problem(&loaded, "defaults.yaml", 4,
	               "on_parked.slas is not a member of an event; did you mean `sla`?");
	loaded_free(&loaded);
}

/* ---- In a directory ------------------------------------------------------------------------- */

static void an_event_is_declared_once(void **state)
{
	(void)state;
	struct loaded loaded;
	char text[4200];
	load_event(&loaded, 0, NULL);
	contracts_free(loaded.contracts);
	char *twin = event_with(2, "version: 4");
	dir_write(loaded.dir, "twin.yaml", twin);
	free(twin);
	load(&loaded);
	snprintf(text, sizeof text, "PaymentCreated is declared twice, first in %s/event.yaml",
	         loaded.dir);
	expect_problem(&loaded, "twin.yaml", 1, text);
	loaded_free(&loaded);
}

enum { EMITS_LINE = 49 };

static void write_command(const struct loaded *loaded, const char *emits)
{
	dir_write_mutant(loaded->dir, "create-payment.yaml", EMITS_LINE, emits);
}

static void where_events_have_contracts_every_emitted_one_has(void **state)
{
	(void)state;
	struct loaded loaded;
	char text[4400];
	load_event(&loaded, 0, NULL);
	contracts_free(loaded.contracts);
	write_command(&loaded, "emits: [PaymentCreated, PaymentClosed]");
	load(&loaded);
	snprintf(text, sizeof text,
	         "emits names PaymentClosed, which has no contract in %s, as other events have: add "
	         "one that begins with `event: PaymentClosed`",
	         loaded.dir);
	expect_problem(&loaded, "create-payment.yaml", EMITS_LINE, text);
	assert_int_equal(contracts_problem_count(loaded.contracts), 1);
	contracts_free(loaded.contracts);
	write_command(&loaded, "emits: [PaymentCreated]");
	load(&loaded);
	good_event(&loaded);
	loaded_free(&loaded);
}

static void without_any_event_contract_emitted_ones_need_none(void **state)
{
	(void)state;
	struct loaded loaded;
	dir_open(loaded.dir);
	write_command(&loaded, "emits: [PaymentCreated, PaymentClosed]");
	load(&loaded);
	assert_int_equal(loaded.code, IBID_OK);
	assert_int_equal(contracts_event_count(loaded.contracts), 0);
	loaded_free(&loaded);
}

/* One mistake is one problem: a broken event is not missing, too. */
static void an_event_with_a_mistake_is_not_told_to_be_missing(void **state)
{
	(void)state;
	struct loaded loaded;
	load_event(&loaded, 0, NULL);
	contracts_free(loaded.contracts);
	write_command(&loaded, "emits: [PaymentCreated, PaymentClosed]");
	dir_write(loaded.dir, "closed.yaml", "event: PaymentClosed\nversion: x\n");
	load(&loaded);
	for (size_t i = 0; i < contracts_problem_count(loaded.contracts); i++)
		assert_null(strstr(contracts_problem(loaded.contracts, i)->text, "emits names"));
	loaded_free(&loaded);
}

/* A05 */
static void the_matrix_lists_events_and_who_has_the_parked_ones(void **state)
{
	static const char *const parts[] = {
	    ("\"events\":[{\"event\":\"PaymentCreated\",\"version\":\"3\",\"owner\":\"payments\","
	     "\"topic\":\"payments.payment.events.v1\""),
	    "\"required\":\"/amount, /currency\"",
	    "\"deliverTo\":\"kafka-main, audit-file\"",
	    "\"queue\":\"dead-letter\",\"owner\":\"treasury\"",
	    "severity high",
	    "within 4h",
	    "a second person's approval"};
	(void)state;
	struct loaded loaded;
	struct str out = STR_INIT(1 << 20);
	load_event(&loaded, 0, NULL);
	matrix_write(&out, loaded.contracts, MATRIX_JSON);
	assert_false(out.failed);
	for (size_t i = 0; i < COUNT(parts); i++)
		if (!strstr(str_text(&out), parts[i]))
			fail_msg("%s\nis not in\n%s", parts[i], str_text(&out));
	str_release(&out);
	loaded_free(&loaded);
}

static void the_review_knows_the_owner_of_an_event(void **state)
{
	(void)state;
	struct loaded loaded;
	struct review_counts counts;
	struct str out = STR_INIT(1 << 20);
	load_event(&loaded, 3, "owner: treasury");
	contracts_free(loaded.contracts);
	write_command(&loaded, "emits: [PaymentCreated]");
	load(&loaded);
	review_write(&out, loaded.contracts, NULL, MATRIX_JSON, &counts);
	assert_non_null(strstr(str_text(&out), "PaymentCreated is owned by treasury"));
	str_release(&out);
	loaded_free(&loaded);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(a_complete_event_is_read_as_it_is_written),
	    cmocka_unit_test(what_a_store_keeps_is_read_back_as_the_same_event),
	    cmocka_unit_test(defaults_answer_for_events_and_commands_alike),
	    cmocka_unit_test(every_wrong_answer_is_told_with_its_line),
	    cmocka_unit_test(every_question_must_be_answered),
	    cmocka_unit_test(what_each_event_has_of_its_own_is_no_default),
	    cmocka_unit_test(an_event_is_declared_once),
	    cmocka_unit_test(where_events_have_contracts_every_emitted_one_has),
	    cmocka_unit_test(without_any_event_contract_emitted_ones_need_none),
	    cmocka_unit_test(an_event_with_a_mistake_is_not_told_to_be_missing),
	    cmocka_unit_test(the_matrix_lists_events_and_who_has_the_parked_ones),
	    cmocka_unit_test(the_review_knows_the_owner_of_an_event),
	};
	return cmocka_run_group_tests_name("event", tests, NULL, NULL);
}
