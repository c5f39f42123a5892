/* SPDX-License-Identifier: Apache-2.0 */
/* suite_script.c -- handlers in SQL, alone and in groups. */
#include "store/suite_bed.h"
#include "store/suite_tests.h"

#include <stdio.h>
#include <string.h>

/* ---- Scripts -------------------------------------------------------------------------------- */

void script_inserts_emits_and_answers(void **state) /* B02, C01 */
{
	struct bed *bed = bed_of(state);
	struct outcome outcome;
	struct event_row *events;
	size_t events_count;
	struct uuid id = make_id(1);
	char body[64];
	check(bed, pay(bed, "k-1", 1, "r-1", "PAID", &outcome));
	assert_true(outcome.found);
	assert_int_equal(outcome.status, 201);
	assert_string_equal(outcome.resource_type, "payment");
	assert_string_equal(outcome.resource_id, id_text(bed, id));
	snprintf(body, sizeof body, "{\"id\":\"%s\"}", id_text(bed, id));
	assert_string_equal(canonical(bed, outcome.body), body);
	assert_int_equal(outcome.body_size, strlen(outcome.body));
	check(bed, store_list_events(bed->store, &bed->arena, "acme", &id, 10, &events, &events_count,
	                             &bed->err));
	assert_int_equal(events_count, 1);
	assert_string_equal(events[0].type, "PaymentCreated");
	assert_string_equal(events[0].aggregate_type, "payment");
	assert_string_equal(events[0].aggregate_id, id_text(bed, id));
	assert_string_equal(events[0].correlation_id, "corr-1");
	assert_null(events[0].causation_id);
	assert_string_equal(events[0].traceparent, traceparent);
	assert_string_equal(events[0].tracestate, "a=1");
	assert_int_equal(events[0].version, 1);
	assert_int_equal(events[0].ordinal, 1);
	assert_true(events[0].at_us == now_us);
	assert_string_equal(canonical(bed, events[0].payload), "{\"amount\":12.5}");
}

void script_runs_again_for_the_next_command(void **state)
{
	struct bed *bed = bed_of(state);
	struct outcome outcome;
	char key[16], reference[16];
	for (unsigned i = 1; i <= 5; i++) {
		snprintf(key, sizeof key, "k-%u", i);
		snprintf(reference, sizeof reference, "r-%u", i);
		check(bed, pay(bed, key, i, reference, "PAID", &outcome));
		assert_string_equal(outcome.resource_id, id_text(bed, make_id(i)));
	}
	assert_int_equal(backend->number("select count(*) from payment"), 5);
}

/* Run a script alone and roll back. */
static enum ibid_code run_alone(struct bed *bed, enum suite_sql sql, const char *const *values,
                                struct outcome *ret)
{
	script_of(bed, sql);
	struct tx *tx = claim_free(bed, "alone", 99);
	enum ibid_code code = run(bed, tx, sql, values, ret);
	bed->ops->rollback(&tx);
	return code;
}

static const char *echo(struct bed *bed, const char *const *values)
{
	struct outcome outcome;
	check(bed, run_alone(bed, SUITE_ECHO, values, &outcome));
	assert_int_equal(outcome.status, 200);
	return canonical(bed, outcome.body);
}

void parameters_of_every_type_arrive_exactly(void **state) /* A03: nothing is rounded */
{
	struct bed *bed = bed_of(state);
	const char *values[V_COUNT] = {NULL};
	values[V_TEXT] = "it's \"quoted\" \\ \xE2\x82\xAC :text $1 -- no comment";
	values[V_INTEGER] = "-9223372036854775808";
	values[V_DECIMAL] = "12345678901234567.89";
	values[V_BOOLEAN] = "true";
	values[V_DATE] = "2026-11-15";
	values[V_INSTANT] = "2026-11-15T09:00:00.123456Z";
	values[V_JSON] = "{\"a\":12345678901234567.89,\"b\":[null,true,\"\xE2\x82\xAC\"]}";
	values[V_UUID] = "0197a000-0000-7000-8000-00000000000a";
	assert_string_equal(echo(bed, values),
	                    "{\"boolean\":\"true\",\"date\":\"2026-11-15\","
	                    "\"decimal\":\"12345678901234567.89\","
	                    "\"instant\":\"2026-11-15T09:00:00.123456Z\","
	                    "\"integer\":\"-9223372036854775808\","
	                    "\"json\":{\"a\":12345678901234567.89,\"b\":[null,true,\"\xE2\x82\xAC\"]},"
	                    "\"text\":\"it's \\\"quoted\\\" \\\\ \xE2\x82\xAC :text $1 -- no comment\","
	                    "\"uuid\":\"0197a000-0000-7000-8000-00000000000a\"}");
}

void decimal_of_38_digits_and_the_other_extremes_arrive_exactly(void **state)
{
	struct bed *bed = bed_of(state);
	const char *values[V_COUNT] = {NULL};
	values[V_DECIMAL] = "-12345678901234567890.123456789012345678";
	values[V_INTEGER] = "9223372036854775807";
	values[V_BOOLEAN] = "false";
	values[V_TEXT] = "";
	assert_string_equal(echo(bed, values),
	                    "{\"boolean\":\"false\",\"date\":null,"
	                    "\"decimal\":\"-12345678901234567890.123456789012345678\","
	                    "\"instant\":null,\"integer\":\"9223372036854775807\",\"json\":null,"
	                    "\"text\":\"\",\"uuid\":null}");
}

void absent_values_are_null(void **state)
{
	struct bed *bed = bed_of(state);
	const char *values[V_COUNT] = {NULL};
	assert_string_equal(echo(bed, values),
	                    "{\"boolean\":null,\"date\":null,\"decimal\":null,\"instant\":null,"
	                    "\"integer\":null,\"json\":null,\"text\":null,\"uuid\":null}");
}

void amounts_are_kept_exactly(void **state)
{
	struct bed *bed = bed_of(state);
	const char *values[V_COUNT];
	struct outcome outcome;
	set_values(bed, 1, values);
	values[V_DECIMAL] = "12345678901234567.89";
	script_of(bed, SUITE_PAY);
	struct tx *tx = claim_free(bed, "k-1", 1);
	check(bed, run(bed, tx, SUITE_PAY, values, &outcome));
	check(bed, end(bed, &tx));
	assert_int_equal(
	    backend->number("select count(*) from payment where amount = '12345678901234567.89'"), 1);
	struct uuid id = make_id(1);
	struct event_row *events;
	size_t events_count;
	check(bed, store_list_events(bed->store, &bed->arena, "acme", &id, 1, &events, &events_count,
	                             &bed->err));
	assert_string_equal(canonical(bed, events[0].payload), "{\"amount\":12345678901234567.89}");
}

void rejection_carries_its_code_status_and_text(void **state)
{
	struct bed *bed = bed_of(state);
	const char *values[V_COUNT];
	struct outcome outcome;
	set_values(bed, 99, values);
	assert_int_equal(run_alone(bed, SUITE_REJECT, values, &outcome), IBID_REJECTED);
	assert_string_equal(outcome.reason, "SAME_ACCOUNT");
	assert_int_equal(outcome.status, 422);
	assert_string_equal(outcome.text, "from and to must differ");
	assert_int_equal(backend->number("select count(*) from payment"), 0);
}

void unique_index_that_was_hit_is_named(void **state) /* B09 */
{
	struct bed *bed = bed_of(state);
	struct outcome outcome;
	check(bed, pay(bed, "k-1", 1, "r-1", "PAID", &outcome));
	assert_int_equal(pay(bed, "k-2", 2, "r-1", "PAID", &outcome), IBID_DUPLICATE);
	assert_string_equal(outcome.unique, "payment_reference");
	assert_counts(1, 1, 1);
}

void partial_unique_index_that_was_hit_is_named(void **state) /* B09 */
{
	struct bed *bed = bed_of(state);
	struct outcome outcome;
	check(bed, pay(bed, "k-1", 1, "r-1", "ACTIVE", &outcome));
	assert_int_equal(pay(bed, "k-2", 2, "r-2", "ACTIVE", &outcome), IBID_DUPLICATE);
	assert_string_equal(outcome.unique, "payment_one_active");
	check(bed, pay(bed, "k-3", 3, "r-3", "PAID", &outcome));
}

void failed_statement_says_where_and_why(void **state)
{
	struct bed *bed = bed_of(state);
	const char *values[V_COUNT];
	struct outcome outcome;
	set_values(bed, 99, values);
	assert_int_equal(run_alone(bed, SUITE_FAIL, values, &outcome), IBID_FAILED);
	assert_non_null(strstr(outcome.text, "test.sql"));
	assert_non_null(strstr(outcome.text, "tenant"));
	assert_int_equal(backend->number("select count(*) from payment"), 0);
}

void constraint_that_fails_at_commit_is_definite(void **state)
{
	struct bed *bed = bed_of(state);
	const char *values[V_COUNT];
	struct outcome outcome;
	set_values(bed, 1, values);
	script_of(bed, SUITE_DEFERRED);
	struct tx *tx = claim_free(bed, "k-1", 1);
	check(bed, run(bed, tx, SUITE_DEFERRED, values, &outcome));
	assert_int_equal(end_with(bed, &tx, IBID_OK, &outcome), IBID_FAILED);
	assert_non_null(outcome.text);
	assert_int_equal(backend->number("select count(*) from child"), 0);
}

static enum ibid_code emit(struct bed *bed, struct tx *tx, const char *type, const char *version,
                           const char *key, struct outcome *ret)
{
	const char *values[V_COUNT];
	set_values(bed, 1, values);
	values[V_REFERENCE] = "agg";
	values[V_TYPE] = type;
	values[V_VERSION] = version;
	values[V_KEY] = key;
	return run(bed, tx, SUITE_EMIT, values, ret);
}

void emit_in_a_script_counts_ordinals_and_versions(void **state)
{
	struct bed *bed = bed_of(state);
	struct outcome outcome;
	struct event_row *events;
	size_t events_count;
	struct uuid id = make_id(1);
	script_of(bed, SUITE_EMIT);
	struct tx *tx = claim_free(bed, "k-1", 1);
	check(bed, emit(bed, tx, "PaymentCreated", NULL, NULL, &outcome));
	check(bed, emit(bed, tx, "PaymentVoided", "2", "given", &outcome));
	check(bed, end(bed, &tx));
	check(bed, store_list_events(bed->store, &bed->arena, "acme", &id, 10, &events, &events_count,
	                             &bed->err));
	assert_int_equal(events_count, 2);
	assert_int_equal(events[0].ordinal, 1);
	assert_int_equal(events[1].ordinal, 2);
	assert_int_equal(events[1].version, 2);
	assert_string_equal(events[1].key, "given");
	assert_string_equal(canonical(bed, events[1].payload), "{\"a\":[true,null],\"b\":1.1}");
}

void emit_of_an_undeclared_type_fails(void **state)
{
	struct bed *bed = bed_of(state);
	struct outcome outcome;
	script_of(bed, SUITE_EMIT);
	struct tx *tx = claim_free(bed, "k-1", 1);
	assert_int_equal(emit(bed, tx, "Surprise", NULL, NULL, &outcome), IBID_FAILED);
	assert_non_null(strstr(outcome.text, "Surprise"));
	bed->ops->rollback(&tx);
	assert_counts(0, 0, 0);
}

void emit_of_a_wrong_version_or_used_key_rejects(void **state)
{
	struct bed *bed = bed_of(state);
	struct outcome outcome;
	script_of(bed, SUITE_EMIT);
	struct tx *tx = claim_free(bed, "k-1", 1);
	assert_int_equal(emit(bed, tx, "PaymentCreated", "7", NULL, &outcome), IBID_REJECTED);
	assert_string_equal(outcome.reason, "VERSION_CONFLICT");
	assert_int_equal(outcome.status, 409);
	bed->ops->rollback(&tx);
	tx = claim_free(bed, "k-1", 1);
	check(bed, emit(bed, tx, "PaymentCreated", NULL, "given", &outcome));
	assert_int_equal(emit(bed, tx, "PaymentCreated", NULL, "given", &outcome), IBID_REJECTED);
	assert_string_equal(outcome.reason, "EVENT_KEY_USED");
	bed->ops->rollback(&tx);
	assert_counts(0, 0, 0);
}

void emit_for_a_found_row_uses_its_id(void **state)
{
	struct bed *bed = bed_of(state);
	struct outcome outcome;
	struct event_row *events;
	size_t events_count;
	struct uuid id = make_id(1);
	script_of(bed, SUITE_EMIT);
	struct tx *tx = claim_free(bed, "k-1", 1);
	struct command_row row = failed("k-1", 1);
	complete_row(bed, &tx, &row, NULL);
	struct claim got = claim(bed, "k-1", 2);
	check(bed, emit(bed, got.tx, "PaymentCreated", NULL, NULL, &outcome));
	check(bed, end(bed, &got.tx));
	check(bed, store_list_events(bed->store, &bed->arena, "acme", &id, 10, &events, &events_count,
	                             &bed->err));
	assert_int_equal(events_count, 1);
}

static enum ibid_code link_one(struct bed *bed, unsigned n, const char *source,
                               const char *external, const char *resource, struct outcome *ret)
{
	const char *values[V_COUNT];
	char key[16];
	set_values(bed, n, values);
	values[V_STATE] = source;
	values[V_REFERENCE] = external;
	values[V_TYPE] = "case";
	values[V_CUSTOMER] = resource;
	snprintf(key, sizeof key, "link-%u", n);
	script_of(bed, SUITE_LINK);
	struct tx *tx = claim_free(bed, key, n);
	enum ibid_code code = run(bed, tx, SUITE_LINK, values, ret);
	if (code)
		bed->ops->rollback(&tx);
	else
		code = end(bed, &tx);
	return code;
}

static struct reference_row *references(struct bed *bed, struct reference_filter filter,
                                        size_t expected)
{
	struct reference_row *rows = NULL;
	size_t count = 0;
	check(bed, store_list_references(bed->store, &bed->arena, &filter, &rows, &count, &bed->err));
	assert_int_equal(count, expected);
	return rows;
}

void references_are_listed_from_either_side(void **state) /* B17 */
{
	struct bed *bed = bed_of(state);
	struct outcome outcome;
	struct uuid id = make_id(1);
	check(bed, link_one(bed, 1, "sap", "4711", "c-1", &outcome));
	check(bed, link_one(bed, 2, "crm", "17", "c-1", &outcome));
	check(bed, link_one(bed, 3, "sap", "4712", "c-2", &outcome));
	assert_int_equal(link_one(bed, 4, "sap", "4711", "c-2", &outcome), IBID_REJECTED);
	assert_string_equal(outcome.reason, "REFERENCE_TAKEN");
	assert_int_equal(outcome.status, 409);
	const struct reference_row *rows = references(
	    bed, (struct reference_filter){"acme", "sap", "4711", NULL, NULL}, 1);
	assert_string_equal(rows->resource_type, "case");
	assert_string_equal(rows->resource_id, "c-1");
	assert_string_equal(rows->tenant, "acme");
	assert_memory_equal(&rows->command_id, &id, sizeof id);
	assert_int_equal(rows->at_us, now_us);
	rows = references(bed, (struct reference_filter){"acme", NULL, NULL, "case", "c-1"}, 2);
	assert_string_equal(rows[0].source_system, "crm");
	assert_string_equal(rows[0].external_id, "17");
	assert_string_equal(rows[1].source_system, "sap");
	references(bed, (struct reference_filter){"other", "sap", "4711", NULL, NULL}, 0);
	references(bed, (struct reference_filter){"acme", NULL, NULL, "order", "c-1"}, 0);
}

void last_row_of_the_last_statement_answers(void **state)
{
	struct bed *bed = bed_of(state);
	const char *values[V_COUNT];
	struct outcome outcome;
	set_values(bed, 99, values);
	check(bed, run_alone(bed, SUITE_TWO_ROWS, values, &outcome));
	assert_true(outcome.found);
	assert_int_equal(outcome.status, 202);
	assert_null(outcome.body);
	check(bed, run_alone(bed, SUITE_NOTHING, values, &outcome));
	assert_false(outcome.found);
}

void answer_with_a_strange_column_or_without_status_fails(void **state)
{
	struct bed *bed = bed_of(state);
	const char *values[V_COUNT];
	struct outcome outcome;
	set_values(bed, 99, values);
	assert_int_equal(run_alone(bed, SUITE_STRANGE_COLUMN, values, &outcome), IBID_FAILED);
	assert_non_null(strstr(outcome.text, "colour"));
	assert_int_equal(run_alone(bed, SUITE_NO_STATUS, values, &outcome), IBID_FAILED);
	assert_non_null(strstr(outcome.text, "status"));
}

void find_script_returns_the_existing_document(void **state) /* B09 */
{
	struct bed *bed = bed_of(state);
	const char *values[V_COUNT];
	struct outcome outcome;
	check(bed, pay(bed, "k-1", 1, "r-1", "PAID", &outcome));
	set_values(bed, 99, values);
	check(bed, run_alone(bed, SUITE_FIND, values, &outcome));
	assert_true(outcome.found);
	assert_string_equal(outcome.resource_id, id_text(bed, make_id(1)));
	values[V_REFERENCE] = "nothing";
	check(bed, run_alone(bed, SUITE_FIND, values, &outcome));
	assert_false(outcome.found);
}

static enum ibid_code query(struct bed *bed, struct tx *tx, enum suite_sql sql,
                            const char *const *values, struct outcome *ret)
{
	*ret = (struct outcome){.status = 0};
	return bed->ops->run_query(tx, &bed->arena, script_of(bed, sql), values, ret, &bed->err);
}

void query_sees_what_its_transaction_did_and_lets_it_go_on(void **state) /* A07 */
{
	struct bed *bed = bed_of(state);
	const char *values[V_COUNT];
	struct outcome outcome;
	struct command_row row = completed("k-1", 1);
	set_values(bed, 1, values);
	script_of(bed, SUITE_PAY);
	script_of(bed, SUITE_FIND);
	struct tx *tx = claim_free(bed, "k-1", 1);
	check(bed, query(bed, tx, SUITE_FIND, values, &outcome));
	assert_false(outcome.found);
	check(bed, run(bed, tx, SUITE_PAY, values, &outcome));
	check(bed, query(bed, tx, SUITE_FIND, values, &outcome));
	assert_true(outcome.found);
	assert_string_equal(outcome.resource_id, id_text(bed, make_id(1)));
	complete_row(bed, &tx, &row, NULL);
	assert_int_equal(backend->number("select count(*) from payment"), 1);
	assert_counts(1, 1, 1);
}

void query_that_changes_something_fails_and_leaves_nothing(void **state) /* A07 */
{
	static const enum suite_sql changing[] = {SUITE_PAY, SUITE_EMIT};
	struct bed *bed = bed_of(state);
	const char *values[V_COUNT];
	struct outcome outcome;
	set_values(bed, 1, values);
	for (size_t i = 0; i < sizeof changing / sizeof *changing; i++) {
		script_of(bed, changing[i]);
		struct tx *tx = claim_free(bed, "k-1", 1);
		assert_int_equal(query(bed, tx, changing[i], values, &outcome), IBID_FAILED);
		assert_non_null(strstr(outcome.text, "may only look"));
		bed->ops->rollback(&tx);
	}
	assert_int_equal(backend->number("select count(*) from payment"), 0);
	assert_counts(0, 0, 0);
}

/* A backend without the verb lets nobody in who could ask for the row. */
void row_is_held_beside_other_commands(void **state) /* A07 */
{
	struct bed *bed = bed_of(state);
	struct command_row row = completed("k-1", 1);
	struct tx *tx = claim_free(bed, "k-1", 1);
	if (!bed->ops->lock_row) {
		assert_busy(bed, bed->store, "k-2");
	} else {
		check(bed, bed->ops->lock_row(tx, "r", &bed->err));
		check(bed, bed->ops->lock_row(tx, "r", &bed->err)); /* it has it */
		struct tx *other = claim_free(bed, "k-2", 2);
		check(bed, bed->ops->lock_row(other, "s", &bed->err));
		bed->ops->rollback(&other);
	}
	complete_row(bed, &tx, &row, NULL);
}

void script_with_transaction_control_or_unknown_parameter_is_refused(void **state)
{
	struct bed *bed = bed_of(state);
	struct script *script = NULL;
	static const enum suite_sql refused[] = {SUITE_COMMIT, SUITE_UNKNOWN_PARAM};
	for (size_t i = 0; i < 2; i++) {
		assert_int_equal(bed->ops->make_script(bed->store, "test.sql", backend->sql[refused[i]],
		                                       params, V_COUNT, &script, &bed->err),
		                 IBID_CONTRACT);
		assert_non_null(strstr(bed->err.text, "test.sql:"));
		assert_null(script);
	}
}

struct told {
	enum finding_level level;
	const char *what;
	size_t count;
};

static void hear(void *user, enum finding_level level, const char *what, const char *advice)
{
	struct told *told = user;
	assert_null(advice);
	assert_non_null(strstr(what, told->what));
	assert_int_equal(level, told->level);
	told->count++;
}

/* What is told of one script: nothing, or once `what`. */
static void assert_prepared(struct bed *bed, const char *text, bool answers, const char *what,
                            enum finding_level level)
{
	struct script_use use = {.answer = answers ? SCRIPT_ANSWERS : SCRIPT_MAY_ANSWER};
	struct script *script = NULL;
	struct told told = {level, what ? what : "", 0};
	check(bed,
	      bed->ops->make_script(bed->store, "test.sql", text, params, V_COUNT, &script, &bed->err));
	use.script = script;
	check(bed, bed->ops->prepare_scripts(bed->store, &use, 1, hear, &told, &bed->err));
	assert_int_equal(told.count, what ? 1 : 0);
	bed->ops->free_script(bed->store, script);
}

void scripts_that_would_not_run_are_told_and_nothing_of_them_is_run(void **state)
{
	struct bed *bed = bed_of(state);
	static const char makes[] = "create table scratch (id text);\ninsert into scratch values "
	                            "('x');\nselect 201 as status;\n";
	assert_prepared(bed, backend->sql[SUITE_PAY], true, NULL, FINDING_OK);
	assert_prepared(bed, backend->sql[SUITE_FAIL], true, NULL, FINDING_OK); /* the value is wrong */
	assert_prepared(bed, backend->sql[SUITE_STRANGE_COLUMN], true, "test.sql:1: the answer has a",
	                FINDING_REFUSE);
	assert_prepared(bed, backend->sql[SUITE_NO_STATUS], true, "the answer has no column status",
	                FINDING_REFUSE);
	assert_prepared(bed, "select 1;\n\nselect 200 as status\nfrom missing_table;\n", true,
	                "missing_table", FINDING_REFUSE);
	assert_prepared(bed, "select 200 as status;\nselec 1;\n", false,
	                "test.sql:2: ", FINDING_REFUSE);
	assert_prepared(bed, "delete from payment;\n", true, "test.sql:1: the script's last statement",
	                FINDING_REFUSE);
	assert_prepared(bed, "delete from payment;\n", false, NULL, FINDING_OK);
	assert_prepared(bed, makes, true, "test.sql:2: can't be checked", FINDING_WARN);
	assert_prepared(bed, makes, true, "test.sql:2: can't be checked", FINDING_WARN);
	assert_counts(0, 0, 0);
	assert_int_equal(backend->number("select count(*) from payment"), 0);
	complete(bed, "k", 1); /* the connection goes on as it was */
}

/* ---- Groups --------------------------------------------------------------------------------- */

struct sharing {
	struct group_member member; /* first */
	struct identity identity;
	struct work_context context;
	const char *values[V_COUNT];
	bool refuses; /* what `complete` says */
};

static bool complete_sharing(struct group_member *member)
{
	member->row.status = member->outcome.status;
	member->row.resource_type = member->outcome.resource_type;
	member->row.resource_id = member->outcome.resource_id;
	member->row.body = member->outcome.body;
	member->row.body_size = member->outcome.body_size;
	member->audit = audit_of(&member->row);
	return !((struct sharing *)member)->refuses;
}

static void share(struct bed *bed, struct sharing *sharing, enum suite_sql sql, const char *key,
                  unsigned n)
{
	*sharing = (struct sharing){.identity = identity_of(key), .context = context_of(n)};
	set_values(bed, n, sharing->values);
	sharing->values[V_REFERENCE] = key;
	sharing->values[V_CUSTOMER] = key;
	sharing->member = (struct group_member){
	    .context = &sharing->context,
	    .script = script_of(bed, sql),
	    .values = sharing->values,
	    .arena = &bed->arena,
	    .row = completed(key, n),
	    .complete = complete_sharing,
	};
	sharing->member.row.audit_id = sharing->member.row.id;
	sharing->member.row.finished_us = sharing->member.row.created_us;
}

void members_of_a_group_hear_each_for_itself(void **state) /* B12 I1 */
{
	struct bed *bed = bed_of(state);
	enum { PAID, REJECTED, FOUND, FAILED_BEFORE, REFUSED, FAILING, PAID_TOO, COUNT };
	static const enum suite_sql scripts[COUNT] = {SUITE_PAY, SUITE_REJECT, SUITE_PAY, SUITE_PAY,
	                                              SUITE_PAY, SUITE_FAIL,   SUITE_PAY};
	struct sharing sharing[COUNT];
	struct group_member *members[COUNT];
	complete(bed, "k-2", 50);
	struct tx *tx = claim_free(bed, "k-3", 51);
	struct command_row before = failed("k-3", 51);
	check(bed, bed->ops->put_command(tx, &before, NULL, &bed->err));
	check(bed, end(bed, &tx));
	for (unsigned i = 0; i < COUNT; i++) {
		char key[16];
		snprintf(key, sizeof key, "k-%u", i);
		share(bed, &sharing[i], scripts[i], arena_strdup(&bed->arena, key), i + 1);
		members[i] = &sharing[i].member;
	}
	sharing[REFUSED].refuses = true;
	check(bed, bed->ops->run_group(bed->store, members, COUNT, &bed->err));
	for (size_t i = 0; i < COUNT; i++) {
		assert_int_equal(members[i]->done, i == PAID || i == PAID_TOO);
		assert_int_equal(members[i]->claim.kind, i == FOUND ? CLAIM_FOUND : CLAIM_FREE);
		assert_null(members[i]->claim.tx);
	}
	struct command_row there = completed("k-2", 50), row;
	assert_row(&members[FOUND]->claim.row, &there);
	assert_int_equal(backend->number("select count(*) from payment"), 2);
	assert_counts(4, 2, 3);
	for (size_t i = PAID; i <= PAID_TOO; i += PAID_TOO) {
		check(bed, store_get_command(bed->store, &bed->arena, "acme", &members[i]->row.id, NULL,
		                             &row, &bed->err));
		assert_row(&row, &members[i]->row);
		assert_non_null(strstr(row.body, row.resource_id));
	}
	struct claim again = claim(bed, "k-1", 2); /* nothing is held any more */
	assert_int_equal(again.kind, CLAIM_FREE);
	bed->ops->rollback(&again.tx);
}

/* Of three new ones, one that has a row and one that is in use: who is what, whatever came before.
 */
static void share_with_duplicates(struct bed *bed, const char *used, const char *held, unsigned n)
{
	enum { NEW = 3, USED = NEW, HELD, COUNT };
	struct sharing sharing[COUNT];
	struct group_member *members[COUNT];
	int64_t payments = backend->number("select count(*) from payment");
	size_t count = 0;
	for (unsigned i = 0; i < NEW; i++) {
		const char *key = arena_printf(&bed->arena, "new-%u-%u", n, i);
		share(bed, &sharing[count], SUITE_PAY, key, 100 * n + i + 1);
		members[count] = &sharing[count].member;
		count++;
	}
	for (unsigned i = USED; i <= HELD; i++) {
		const char *key = i == USED ? used : held;
		if (!key)
			continue;
		share(bed, &sharing[count], SUITE_PAY, key, 100 * n + i + 1);
		members[count] = &sharing[count].member;
		count++;
	}
	check(bed, bed->ops->run_group(bed->store, members, count, &bed->err));
	for (size_t i = 0; i < count; i++) {
		enum claim_kind wanted = i < NEW                                ? CLAIM_FREE
		                         : members[i]->row.identity.key == used ? CLAIM_FOUND
		                                                                : CLAIM_BUSY;
		assert_int_equal(members[i]->claim.kind, wanted);
		assert_int_equal(members[i]->done, i < NEW);
	}
	assert_int_equal(backend->number("select count(*) from payment"), payments + NEW);
}

void duplicates_in_a_group_are_told_whatever_came_before(void **state) /* B12 I2 */
{
	struct bed *bed = bed_of(state);
	struct tx *tx = NULL;
	/* Where there is one writer, who holds an identity keeps all others out. */
	const char *held = bed->ops->one_writer ? NULL : "held";
	complete(bed, "used", 90);
	if (held)
		tx = claim_free(bed, held, 91);
	static const struct {
		bool used, held;
	} rounds[] = {{0, 0}, {1, 0}, {0, 0}, {0, 0}, {0, 0}, {0, 0}, {0, 0}, {0, 1},
	              {0, 1}, {0, 0}, {1, 1}, {0, 0}, {0, 0}, {0, 0}, {0, 0}, {1, 0}};
	for (unsigned i = 0; i < sizeof rounds / sizeof *rounds; i++)
		share_with_duplicates(bed, rounds[i].used ? "used" : NULL, rounds[i].held ? held : NULL, i);
	if (tx)
		bed->ops->rollback(&tx);
}

void group_without_a_success_commits_nothing(void **state)
{
	struct bed *bed = bed_of(state);
	struct sharing sharing[2];
	struct group_member *members[2] = {&sharing[0].member, &sharing[1].member};
	share(bed, &sharing[0], SUITE_REJECT, "k-1", 1);
	share(bed, &sharing[1], SUITE_DEFERRED, "k-2", 2);
	check(bed, bed->ops->run_group(bed->store, members, 2, &bed->err));
	assert_false(members[0]->done);
	assert_false(members[1]->done);
	assert_counts(0, 0, 0);
	assert_int_equal(backend->number("select count(*) from payment"), 0);
}
