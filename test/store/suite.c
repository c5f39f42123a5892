/* SPDX-License-Identifier: Apache-2.0 */
/* suite.c -- every verb's contract, in sentences. */
#include "store/suite.h"

#include "base/canon.h"
#include "store/outbox.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static const struct suite_backend *backend;

/* ---- A bed for one test --------------------------------------------------------------------- */

enum value {
	V_TENANT,
	V_REFERENCE,
	V_CUSTOMER,
	V_STATE,
	V_TEXT,
	V_TYPE,
	V_KEY,
	V_COMMAND_ID,
	V_UUID,
	V_NOW,
	V_INSTANT,
	V_INTEGER,
	V_VERSION,
	V_DECIMAL,
	V_BOOLEAN,
	V_DATE,
	V_JSON,
	V_COUNT
};

static const struct param_spec params[V_COUNT] = {
    [V_TENANT] = {"tenant", PARAM_TEXT},
    [V_REFERENCE] = {"reference", PARAM_TEXT},
    [V_CUSTOMER] = {"customer", PARAM_TEXT},
    [V_STATE] = {"state", PARAM_TEXT},
    [V_TEXT] = {"text", PARAM_TEXT},
    [V_TYPE] = {"type", PARAM_TEXT},
    [V_KEY] = {"key", PARAM_TEXT},
    [V_COMMAND_ID] = {"command_id", PARAM_UUID},
    [V_UUID] = {"uuid", PARAM_UUID},
    [V_NOW] = {"now", PARAM_INSTANT},
    [V_INSTANT] = {"instant", PARAM_INSTANT},
    [V_INTEGER] = {"integer", PARAM_INTEGER},
    [V_VERSION] = {"version", PARAM_INTEGER},
    [V_DECIMAL] = {"decimal", PARAM_DECIMAL},
    [V_BOOLEAN] = {"boolean", PARAM_BOOLEAN},
    [V_DATE] = {"date", PARAM_DATE},
    [V_JSON] = {"json", PARAM_JSON},
};

struct bed {
	struct store *store;
	const struct store_ops *ops;
	struct arena arena;
	struct ibid_err err;
	struct script *scripts[SUITE_SQL_COUNT];
};

static const int64_t now_us = INT64_C(1763200000123456);
static const char *const emits[] = {"PaymentCreated", "PaymentVoided"};

static struct bed *bed_of(void **state)
{
	return *state;
}

static void check(struct bed *bed, enum ibid_code code)
{
	if (code)
		fail_msg("%s: %s", ibid_code_name(code), bed->err.text);
}

static int open_empty(void **state)
{
	struct bed *bed = calloc(1, sizeof *bed);
	bed->store = backend->fresh();
	bed->ops = bed->store->ops;
	*state = bed;
	return 0;
}

static int open_ready(void **state)
{
	int from, to;
	enum schema_state schema;
	open_empty(state);
	struct bed *bed = bed_of(state);
	check(bed, bed->ops->migrate(bed->store, &from, &to, &bed->err));
	check(bed, bed->ops->apply_schema(bed->store,
	                                  &(struct schema_file){.name = "suite",
	                                                        .text = backend->sql[SUITE_TABLES],
	                                                        .now_us = now_us},
	                                  &schema, &bed->err));
	return 0;
}

static int close_bed(void **state)
{
	struct bed *bed = bed_of(state);
	for (size_t i = 0; i < SUITE_SQL_COUNT; i++)
		bed->ops->free_script(bed->store, bed->scripts[i]);
	store_close(bed->store);
	arena_release(&bed->arena);
	free(bed);
	return 0;
}

/* Ids that are ordered by `n`. */
static struct uuid make_id(unsigned n)
{
	struct uuid id = {{(unsigned char)(n >> 24), (unsigned char)(n >> 16), (unsigned char)(n >> 8),
	                   (unsigned char)n, 0, 0, 0x70, 0, 0x80}};
	return id;
}

static const char *id_text(struct bed *bed, struct uuid id)
{
	char *text = arena_alloc(&bed->arena, UUID_TEXT_SIZE);
	uuid_write(id, text);
	return text;
}

static struct identity identity_of(const char *key)
{
	return (struct identity){"acme", "create-payment", "web", key};
}

static const char traceparent[] = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

static struct work_context context_of(unsigned n)
{
	return (struct work_context){
	    .command_id = make_id(n),
	    .tenant = "acme",
	    .correlation_id = "corr-1",
	    .traceparent = traceparent,
	    .tracestate = "a=1",
	    .emits = emits,
	    .emit_count = 2,
	    .now_us = now_us,
	};
}

static enum ibid_code try_claim(struct bed *bed, const char *key, unsigned n, struct claim *ret)
{
	struct identity identity = identity_of(key);
	struct work_context context = context_of(n);
	return bed->ops->claim(bed->store, &bed->arena, &identity, &context, ret, &bed->err);
}

static struct claim claim(struct bed *bed, const char *key, unsigned n)
{
	struct claim claim = {.kind = CLAIM_BUSY};
	check(bed, try_claim(bed, key, n, &claim));
	return claim;
}

static struct tx *claim_free(struct bed *bed, const char *key, unsigned n)
{
	struct claim got = claim(bed, key, n);
	assert_int_equal(got.kind, CLAIM_FREE);
	assert_non_null(got.tx);
	return got.tx;
}

static struct command_row completed(const char *key, unsigned n)
{
	return (struct command_row){
	    .identity = identity_of(key),
	    .id = make_id(n),
	    .state = COMMAND_COMPLETED,
	    .scheme = 1,
	    .contract_version = 3,
	    .fingerprint = sha256(key, strlen(key)),
	    .status = 201,
	    .resource_type = "payment",
	    .resource_id = "p-1",
	    .body = "{\"id\":\"p-1\"}",
	    .body_size = 12,
	    .audit_id = make_id(n + 0x10000000),
	    .attempts = 1,
	    .client = "web",
	    .actor = "u7",
	    .created_us = now_us,
	    .finished_us = now_us + 5,
	    .expires_us = now_us + 1000000,
	};
}

static struct command_row failed(const char *key, unsigned n)
{
	struct command_row row = completed(key, n);
	row.state = COMMAND_FAILED;
	row.status = 500;
	row.reason = "HANDLER_FAILED";
	row.text = "no such table: payment";
	row.resource_type = row.resource_id = row.body = NULL;
	row.body_size = 0;
	row.audit_id = (struct uuid){{0}};
	row.correlation_id = "corr-1";
	row.causation_id = "cause-1";
	row.traceparent = traceparent;
	row.tracestate = "a=1";
	return row;
}

static struct audit_row audit_of(const struct command_row *row)
{
	return (struct audit_row){
	    .id = row->audit_id,
	    .command_id = row->id,
	    .tenant = row->identity.tenant,
	    .operation = row->identity.operation,
	    .fact = "a payment order is accepted",
	    .outcome = "executed",
	    .contract_version = row->contract_version,
	    .client = row->client,
	    .actor = row->actor,
	    .resource_type = row->resource_type,
	    .resource_id = row->resource_id,
	    .correlation_id = "corr-1",
	    .causation_id = "cause-1",
	    .traceparent = traceparent,
	    .tracestate = "a=1",
	    .fingerprint = row->fingerprint,
	    .at_us = row->finished_us,
	};
}

static struct event_row event_of(unsigned n, int ordinal, int64_t version)
{
	return (struct event_row){
	    .id = make_id(n + 0x20000000 + ((unsigned)ordinal << 16)),
	    .command_id = make_id(n),
	    .tenant = "acme",
	    .aggregate_type = "payment",
	    .aggregate_id = "p-1",
	    .type = "PaymentCreated",
	    .payload = "{\"amount\":12.5}",
	    .version = version,
	    .ordinal = ordinal,
	    .correlation_id = "corr-1",
	    .causation_id = "cause-1",
	    .traceparent = traceparent,
	    .tracestate = "a=1",
	    .at_us = now_us,
	};
}

/* Commit. Whatever a verb said before is also what the commit must come to. */
static enum ibid_code end_with(struct bed *bed, struct tx **tx, enum ibid_code said,
                               struct outcome *ret)
{
	*ret = (struct outcome){.status = 0};
	enum ibid_code code = bed->ops->commit(tx, &bed->arena, ret, &bed->err);
	assert_null(*tx);
	if (said)
		assert_int_equal(code, said);
	return code;
}

static enum ibid_code end(struct bed *bed, struct tx **tx)
{
	struct outcome outcome;
	return end_with(bed, tx, IBID_OK, &outcome);
}

/* Audit entry and row, then commit. */
static void complete_row(struct bed *bed, struct tx **tx, const struct command_row *row,
                         const struct command_row *previous)
{
	struct audit_row audit = audit_of(row);
	if (row->state == COMMAND_COMPLETED)
		check(bed, bed->ops->put_audit(*tx, &audit, &bed->err));
	check(bed, bed->ops->put_command(*tx, row, previous, &bed->err));
	check(bed, end(bed, tx));
}

static void complete(struct bed *bed, const char *key, unsigned n)
{
	struct tx *tx = claim_free(bed, key, n);
	struct command_row row = completed(key, n);
	complete_row(bed, &tx, &row, NULL);
}

static void assert_text(const char *got, const char *expected)
{
	if (!expected)
		assert_null(got);
	else
		assert_string_equal(got ? got : "(null)", expected);
}

static void assert_row(const struct command_row *got, const struct command_row *expected)
{
	assert_text(got->identity.tenant, expected->identity.tenant);
	assert_text(got->identity.operation, expected->identity.operation);
	assert_text(got->identity.scope, expected->identity.scope);
	assert_text(got->identity.key, expected->identity.key);
	assert_memory_equal(&got->id, &expected->id, sizeof got->id);
	assert_int_equal(got->state, expected->state);
	assert_int_equal(got->scheme, expected->scheme);
	assert_int_equal(got->contract_version, expected->contract_version);
	assert_memory_equal(&got->fingerprint, &expected->fingerprint, sizeof got->fingerprint);
	assert_int_equal(got->linked, expected->linked);
	assert_int_equal(got->status, expected->status);
	assert_text(got->resource_type, expected->resource_type);
	assert_text(got->resource_id, expected->resource_id);
	assert_text(got->reason, expected->reason);
	assert_text(got->text, expected->text);
	assert_text(got->body, expected->body);
	assert_int_equal(got->body_size, expected->body_size);
	assert_memory_equal(&got->audit_id, &expected->audit_id, sizeof got->audit_id);
	assert_int_equal(got->attempts, expected->attempts);
	assert_text(got->client, expected->client);
	assert_text(got->actor, expected->actor);
	assert_text(got->correlation_id, expected->correlation_id);
	assert_text(got->causation_id, expected->causation_id);
	assert_text(got->traceparent, expected->traceparent);
	assert_text(got->tracestate, expected->tracestate);
	assert_true(got->created_us == expected->created_us);
	assert_true(got->finished_us == expected->finished_us);
	assert_true(got->expires_us == expected->expires_us);
}

static int64_t count(enum suite_sql sql)
{
	return backend->number(backend->sql[sql]);
}

static void assert_counts(int64_t commands, int64_t events, int64_t audit)
{
	assert_int_equal(count(SUITE_COUNT_COMMANDS), commands);
	assert_int_equal(count(SUITE_COUNT_EVENTS), events);
	assert_int_equal(count(SUITE_COUNT_AUDIT), audit);
}

/* ---- Scripts of a bed ----------------------------------------------------------------------- */

static const struct script *script_of(struct bed *bed, enum suite_sql sql)
{
	if (!bed->scripts[sql])
		check(bed, bed->ops->make_script(bed->store, "test.sql", backend->sql[sql], params, V_COUNT,
		                                 &bed->scripts[sql], &bed->err));
	return bed->scripts[sql];
}

static void set_values(struct bed *bed, unsigned n, const char *values[V_COUNT])
{
	for (size_t i = 0; i < V_COUNT; i++)
		values[i] = NULL;
	values[V_TENANT] = "acme";
	values[V_COMMAND_ID] = id_text(bed, make_id(n));
	values[V_REFERENCE] = "r-1";
	values[V_CUSTOMER] = "c-1";
	values[V_STATE] = "PAID";
	values[V_DECIMAL] = "12.50";
	values[V_TEXT] = "note";
	values[V_TYPE] = "PaymentCreated";
	values[V_JSON] = "{\"b\":1.10,\"a\":[true,null]}";
}

static enum ibid_code run(struct bed *bed, struct tx *tx, enum suite_sql sql,
                          const char *const *values, struct outcome *ret)
{
	*ret = (struct outcome){.status = 0};
	return bed->ops->run_script(tx, &bed->arena, script_of(bed, sql), values, ret, &bed->err);
}

/* Run one script for one command and write its row when it succeeds. */
static enum ibid_code pay(struct bed *bed, const char *key, unsigned n, const char *reference,
                          const char *state, struct outcome *ret)
{
	const char *values[V_COUNT];
	set_values(bed, n, values);
	values[V_REFERENCE] = reference;
	values[V_STATE] = state;
	const struct script *script = script_of(bed, SUITE_PAY);
	struct tx *tx = claim_free(bed, key, n);
	*ret = (struct outcome){.status = 0};
	enum ibid_code code = bed->ops->run_script(tx, &bed->arena, script, values, ret, &bed->err);
	struct command_row row = completed(key, n);
	if (!code)
		complete_row(bed, &tx, &row, NULL);
	bed->ops->rollback(&tx);
	return code;
}

static const char *canonical(struct bed *bed, const char *json)
{
	struct json *value = NULL;
	struct str out = STR_INIT(1 << 20);
	check(bed, json_read(&bed->arena, json, strlen(json), 0, &value, &bed->err));
	canon_write(&out, value);
	const char *text = arena_strdup(&bed->arena, str_text(&out));
	str_release(&out);
	return text;
}

/* ---- Set-up --------------------------------------------------------------------------------- */

static void store_without_schema_is_refused_with_version_zero(void **state)
{
	struct bed *bed = bed_of(state);
	int version = 7;
	assert_int_equal(bed->ops->check_schema(bed->store, &version, &bed->err), IBID_SCHEMA);
	assert_int_equal(version, 0);
	assert_non_null(strstr(bed->err.text, "ibid init"));
}

static void migrating_twice_changes_nothing_the_second_time(void **state)
{
	struct bed *bed = bed_of(state);
	int from = -1, to = -1, version = 0;
	check(bed, bed->ops->migrate(bed->store, &from, &to, &bed->err));
	assert_int_equal(from, 0);
	assert_int_equal(to, STORE_SCHEMA);
	check(bed, bed->ops->migrate(bed->store, &from, &to, &bed->err));
	assert_int_equal(from, STORE_SCHEMA);
	assert_int_equal(to, STORE_SCHEMA);
	check(bed, bed->ops->check_schema(bed->store, &version, &bed->err));
	assert_int_equal(version, STORE_SCHEMA);
}

struct migrating {
	struct store *store;
	pthread_barrier_t *start;
	enum ibid_code code;
	int from;
	struct ibid_err err;
};

static void *migrate_in_thread(void *user)
{
	struct migrating *self = user;
	int to = 0;
	pthread_barrier_wait(self->start);
	self->code = self->store->ops->migrate(self->store, &self->from, &to, &self->err);
	return NULL;
}

static void two_migrate_at_once_and_one_does_it(void **state)
{
	struct bed *bed = bed_of(state);
	pthread_barrier_t start;
	pthread_t threads[2];
	struct migrating who[2] = {{.store = bed->store, .start = &start, .from = -1},
	                           {.store = backend->again(), .start = &start, .from = -1}};
	pthread_barrier_init(&start, NULL, 2);
	for (int i = 0; i < 2; i++)
		pthread_create(&threads[i], NULL, migrate_in_thread, &who[i]);
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	store_close(who[1].store);
	pthread_barrier_destroy(&start);
	for (int i = 0; i < 2; i++)
		if (who[i].code)
			fail_msg("%s", who[i].err.text);
	assert_int_equal(who[0].from + who[1].from, STORE_SCHEMA);
}

static void next_schema_is_accepted_and_a_newer_one_is_not(void **state)
{
	struct bed *bed = bed_of(state);
	int version = 0, from = 0, to = 0;
	assert_true(backend->exec(backend->sql[SUITE_SCHEMA_NEXT]));
	check(bed, bed->ops->check_schema(bed->store, &version, &bed->err));
	assert_int_equal(version, STORE_SCHEMA + 1);
	check(bed, bed->ops->migrate(bed->store, &from, &to, &bed->err));
	assert_int_equal(to, STORE_SCHEMA + 1);
	assert_true(backend->exec(backend->sql[SUITE_SCHEMA_NEWER]));
	assert_int_equal(bed->ops->check_schema(bed->store, &version, &bed->err), IBID_SCHEMA);
	assert_int_equal(version, STORE_SCHEMA + 2);
	assert_int_equal(bed->ops->migrate(bed->store, &from, &to, &bed->err), IBID_SCHEMA);
	assert_non_null(strstr(bed->err.text, "newer"));
}

static void schema_file_runs_once_and_a_changed_one_is_told(void **state)
{
	struct bed *bed = bed_of(state);
	const char *sql = backend->sql[SUITE_TABLES];
	enum schema_state schema = SCHEMA_APPLIED;
	check(bed,
	      bed->ops->apply_schema(
	          bed->store, &(struct schema_file){.name = "suite", .text = sql, .now_us = now_us},
	          &schema, &bed->err));
	assert_int_equal(schema, SCHEMA_ALREADY);
	check(bed, bed->ops->apply_schema(
	               bed->store,
	               &(struct schema_file){.name = "suite", .text = "select 1;", .now_us = now_us},
	               &schema, &bed->err));
	assert_int_equal(schema, SCHEMA_CHANGED);
	check(bed,
	      bed->ops->apply_schema(bed->store,
	                             &(struct schema_file){.name = "other",
	                                                   .text = "create table other (id text);\n",
	                                                   .now_us = now_us},
	                             &schema, &bed->err));
	assert_int_equal(schema, SCHEMA_APPLIED);
	assert_int_equal(backend->number("select count(*) from other"), 0);
}

static void schema_file_that_fails_leaves_nothing_and_may_run_again(void **state)
{
	struct bed *bed = bed_of(state);
	enum schema_state schema = SCHEMA_ALREADY;
	assert_int_not_equal(
	    bed->ops->apply_schema(bed->store,
	                           &(struct schema_file){.name = "half.sql",
	                                                 .text = backend->sql[SUITE_TABLES_BROKEN],
	                                                 .now_us = now_us},
	                           &schema, &bed->err),
	    IBID_OK);
	assert_int_equal(schema, SCHEMA_ALREADY);
	check(bed, bed->ops->apply_schema(bed->store,
	                                  &(struct schema_file){.name = "half.sql",
	                                                        .text = "create table half (id text);",
	                                                        .now_us = now_us},
	                                  &schema, &bed->err));
	assert_int_equal(schema, SCHEMA_APPLIED);
}

static struct contract_row contract_of(int version, const char *text)
{
	return (struct contract_row){
	    "command", "create-payment", version, sha256(text, strlen(text)), text, now_us};
}

static void contract_is_kept_once_and_another_text_is_refused(void **state)
{
	struct bed *bed = bed_of(state);
	struct contract_row one = contract_of(1, "{\"fact\":\"it's \\\"paid\\\" \xE2\x82\xAC\"}");
	struct contract_row other = contract_of(1, "{}"), two = contract_of(2, "{}"), got;
	check(bed, bed->ops->put_contract(bed->store, &one, &bed->err));
	check(bed, bed->ops->put_contract(bed->store, &one, &bed->err));
	assert_int_equal(bed->ops->put_contract(bed->store, &other, &bed->err), IBID_CONTRACT);
	check(bed, bed->ops->put_contract(bed->store, &two, &bed->err));
	check(bed, bed->ops->get_contract(bed->store, &bed->arena, "command", "create-payment", 1, &got,
	                                  &bed->err));
	assert_string_equal(got.text, one.text);
	assert_string_equal(got.kind, "command");
	assert_string_equal(got.name, "create-payment");
	assert_int_equal(got.version, 1);
	assert_true(got.at_us == now_us);
	assert_memory_equal(&got.digest, &one.digest, sizeof got.digest);
}

static void contract_that_was_never_kept_is_not_found(void **state)
{
	struct bed *bed = bed_of(state);
	struct contract_row got;
	assert_int_equal(bed->ops->get_contract(bed->store, &bed->arena, "command", "create-payment", 9,
	                                        &got, &bed->err),
	                 IBID_NOT_FOUND);
}

/* ---- Claims --------------------------------------------------------------------------------- */

static void new_identity_is_free_and_a_completed_one_is_found_whole(void **state) /* B03 */
{
	struct bed *bed = bed_of(state);
	struct command_row row = completed("k-1", 1);
	complete(bed, "k-1", 1);
	struct claim got = claim(bed, "k-1", 2);
	assert_int_equal(got.kind, CLAIM_FOUND);
	assert_row(&got.row, &row);
	bed->ops->rollback(&got.tx);
}

static void row_without_optional_parts_comes_back_without_them(void **state)
{
	struct bed *bed = bed_of(state);
	struct command_row row = completed("k-1", 1);
	row.resource_type = row.resource_id = row.client = row.actor = row.body = NULL;
	row.body_size = 0;
	row.status = 0;
	row.linked = true;
	row.identity.scope = "";
	struct identity identity = row.identity;
	struct work_context context = context_of(1);
	struct claim got;
	check(bed, bed->ops->claim(bed->store, &bed->arena, &identity, &context, &got, &bed->err));
	complete_row(bed, &got.tx, &row, NULL);
	check(bed, bed->ops->claim(bed->store, &bed->arena, &identity, &context, &got, &bed->err));
	assert_row(&got.row, &row);
	bed->ops->rollback(&got.tx);
}

static void keys_keep_quotes_unicode_and_length(void **state)
{
	static const char *const keys[] = {
	    "it's; drop table payment --",
	    "\"quoted\" \\ and %s $1 :name ?1",
	    "\xE2\x82\xAC \xF0\x9F\x92\xB8 e\xCC\x81",
	    " ",
	    "\t\n",
	    "K-1",
	    "k-1",
	};
	struct bed *bed = bed_of(state);
	char longest[1025];
	unsigned n = 1;
	memset(longest, 'x', sizeof longest - 1);
	longest[sizeof longest - 1] = '\0';
	for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++)
		complete(bed, keys[i], n++);
	complete(bed, longest, n++);
	for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
		struct claim got = claim(bed, keys[i], n);
		assert_int_equal(got.kind, CLAIM_FOUND);
		assert_string_equal(got.row.identity.key, keys[i]);
		bed->ops->rollback(&got.tx);
	}
	struct claim got = claim(bed, longest, n);
	assert_int_equal(got.kind, CLAIM_FOUND);
	bed->ops->rollback(&got.tx);
}

static void each_part_of_the_identity_counts(void **state) /* I9 */
{
	static const struct identity others[] = {{"other", "create-payment", "web", "k-1"},
	                                         {"acme", "void-payment", "web", "k-1"},
	                                         {"acme", "create-payment", "app", "k-1"},
	                                         {"acme", "create-payment", "", "webk-1"},
	                                         {"acme", "create-payment", "web", "k-2"}};
	struct bed *bed = bed_of(state);
	struct work_context context = context_of(2);
	complete(bed, "k-1", 1);
	for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
		struct claim got;
		check(bed, bed->ops->claim(bed->store, &bed->arena, &others[i], &context, &got, &bed->err));
		assert_int_equal(got.kind, CLAIM_FREE);
		bed->ops->rollback(&got.tx);
	}
}

static void rolled_back_claim_leaves_the_identity_free(void **state)
{
	struct bed *bed = bed_of(state);
	struct tx *tx = claim_free(bed, "k-1", 1);
	bed->ops->rollback(&tx);
	assert_null(tx);
	bed->ops->rollback(&tx);
	complete(bed, "k-1", 1);
}

struct claiming {
	struct bed *bed;
	struct store *store;
	const char *key;
	unsigned n;
	bool work; /* complete it when it is free */
	pthread_barrier_t *start;
	enum ibid_code code;
	struct claim claim;
	struct ibid_err err;
	struct arena arena;
};

static enum ibid_code complete_quietly(struct claiming *self, const struct store_ops *ops)
{
	struct command_row row = completed(self->key, self->n);
	struct audit_row audit = audit_of(&row);
	struct event_row event = event_of(self->n, 1, 0);
	struct outcome outcome;
	enum ibid_code code = ops->put_event(self->claim.tx, &event, &self->err);
	if (!code)
		code = ops->put_audit(self->claim.tx, &audit, &self->err);
	if (!code)
		code = ops->put_command(self->claim.tx, &row, NULL, &self->err);
	if (!code)
		code = ops->commit(&self->claim.tx, &self->arena, &outcome, &self->err);
	return code;
}

static void *claim_in_thread(void *user)
{
	struct claiming *self = user;
	struct identity identity = identity_of(self->key);
	struct work_context context = context_of(self->n);
	const struct store_ops *ops = self->store->ops;
	if (self->start)
		pthread_barrier_wait(self->start);
	self->code = ops->claim(self->store, &self->arena, &identity, &context, &self->claim,
	                        &self->err);
	if (!self->code && self->claim.kind == CLAIM_FREE && self->work)
		self->code = complete_quietly(self, ops);
	if (!self->code)
		ops->rollback(&self->claim.tx);
	return NULL;
}

/* In progress, or not to be had within the time (SQLite between processes). */
static void assert_busy(struct bed *bed, struct store *store, const char *key)
{
	struct claiming twin = {.bed = bed, .store = store, .key = key, .n = 2};
	pthread_t thread;
	pthread_create(&thread, NULL, claim_in_thread, &twin);
	pthread_join(thread, NULL);
	if (twin.code != IBID_BUSY) {
		assert_int_equal(twin.code, IBID_OK);
		assert_int_equal(twin.claim.kind, CLAIM_BUSY);
		assert_null(twin.claim.tx);
	}
	arena_release(&twin.arena);
}

static void twin_of_a_running_command_is_busy(void **state) /* B05 */
{
	struct bed *bed = bed_of(state);
	struct tx *tx = claim_free(bed, "k-1", 1);
	assert_busy(bed, bed->store, "k-1");
	struct command_row row = completed("k-1", 1);
	complete_row(bed, &tx, &row, NULL);
	struct claim got = claim(bed, "k-1", 2);
	assert_int_equal(got.kind, CLAIM_FOUND);
	bed->ops->rollback(&got.tx);
}

static void twin_in_another_store_on_the_database_is_busy(void **state)
{
	struct bed *bed = bed_of(state);
	struct store *other = backend->again();
	struct tx *tx = claim_free(bed, "k-1", 1);
	assert_busy(bed, other, "k-1");
	bed->ops->rollback(&tx);
	store_close(other);
}

static void twin_of_a_found_row_that_is_held_is_busy(void **state)
{
	struct bed *bed = bed_of(state);
	struct tx *tx = claim_free(bed, "k-1", 1);
	struct command_row row = failed("k-1", 1);
	complete_row(bed, &tx, &row, NULL);
	struct claim got = claim(bed, "k-1", 2);
	assert_int_equal(got.kind, CLAIM_FOUND);
	assert_non_null(got.tx);
	assert_busy(bed, bed->store, "k-1");
	bed->ops->rollback(&got.tx);
}

static void twenty_claims_at_once_run_one_command(void **state) /* B12 */
{
	enum { TWINS = 20 };
	struct bed *bed = bed_of(state);
	struct claiming twins[TWINS] = {{.bed = NULL}};
	pthread_t threads[TWINS];
	pthread_barrier_t start;
	pthread_barrier_init(&start, NULL, TWINS);
	for (unsigned i = 0; i < TWINS; i++) {
		twins[i] = (struct claiming){
		    .store = bed->store, .key = "k-1", .n = i + 1, .work = true, .start = &start};
		pthread_create(&threads[i], NULL, claim_in_thread, &twins[i]);
	}
	int ran = 0;
	for (int i = 0; i < TWINS; i++)
		pthread_join(threads[i], NULL);
	for (int i = 0; i < TWINS; i++) {
		if (twins[i].code && twins[i].code != IBID_BUSY)
			fail_msg("%s", twins[i].err.text);
		ran += !twins[i].code && twins[i].claim.kind == CLAIM_FREE;
		arena_release(&twins[i].arena);
	}
	pthread_barrier_destroy(&start);
	assert_int_equal(ran, 1);
	assert_counts(1, 1, 1);
}

static void different_commands_at_once_all_run_and_versions_have_no_gap(void **state) /* I5 */
{
	enum { WRITERS = 12 };
	struct bed *bed = bed_of(state);
	static const char *const keys[WRITERS] = {"a", "b", "c", "d", "e", "f",
	                                          "g", "h", "i", "j", "k", "l"};
	struct claiming writers[WRITERS] = {{.bed = NULL}};
	pthread_t threads[WRITERS];
	pthread_barrier_t start;
	pthread_barrier_init(&start, NULL, WRITERS);
	for (unsigned i = 0; i < WRITERS; i++) {
		writers[i] = (struct claiming){
		    .store = bed->store, .key = keys[i], .n = i + 1, .work = true, .start = &start};
		pthread_create(&threads[i], NULL, claim_in_thread, &writers[i]);
	}
	for (int i = 0; i < WRITERS; i++)
		pthread_join(threads[i], NULL);
	for (int i = 0; i < WRITERS; i++) {
		if (writers[i].code)
			fail_msg("%s", writers[i].err.text);
		arena_release(&writers[i].arena);
	}
	pthread_barrier_destroy(&start);
	struct event_row *events;
	size_t events_count;
	bool seen[WRITERS] = {false};
	check(bed, bed->ops->list_events(bed->store, &bed->arena, "acme", NULL, 100, &events,
	                                 &events_count, &bed->err));
	assert_int_equal(events_count, WRITERS);
	for (size_t i = 0; i < events_count; i++) {
		assert_in_range(events[i].version, 1, WRITERS);
		assert_false(seen[events[i].version - 1]);
		seen[events[i].version - 1] = true;
	}
}

/* ---- Resolving ------------------------------------------------------------------------------ */

static struct claim resolve(struct bed *bed, const char *key, int64_t wait_us)
{
	struct identity identity = identity_of(key);
	struct claim got = {.kind = CLAIM_BUSY};
	check(bed, bed->ops->resolve(bed->store, &bed->arena, &identity, wait_us, &got, &bed->err));
	assert_null(got.tx);
	return got;
}

static void resolve_says_free_or_found(void **state) /* B15 */
{
	struct bed *bed = bed_of(state);
	struct command_row row = completed("k-1", 1);
	assert_int_equal(resolve(bed, "k-1", 1000000).kind, CLAIM_FREE);
	complete(bed, "k-1", 1);
	struct claim got = resolve(bed, "k-1", 1000000);
	assert_int_equal(got.kind, CLAIM_FOUND);
	assert_row(&got.row, &row);
	assert_int_equal(resolve(bed, "k-2", 0).kind, CLAIM_FREE);
}

static void resolve_gives_up_on_a_twin_that_stays(void **state)
{
	struct bed *bed = bed_of(state);
	struct tx *tx = claim_free(bed, "k-1", 1);
	assert_int_equal(resolve(bed, "k-1", 20000).kind, CLAIM_BUSY);
	bed->ops->rollback(&tx);
	assert_int_equal(resolve(bed, "k-1", 1000000).kind, CLAIM_FREE);
}

struct resolving {
	struct store *store;
	enum ibid_code code;
	struct claim claim;
	struct ibid_err err;
	struct arena arena;
};

static void *resolve_in_thread(void *user)
{
	struct resolving *self = user;
	struct identity identity = identity_of("k-1");
	self->code = self->store->ops->resolve(self->store, &self->arena, &identity, 10000000,
	                                       &self->claim, &self->err);
	return NULL;
}

/* Tells the other thread that the verb has begun. */
struct started {
	bool yes;
	pthread_mutex_t lock;
	pthread_cond_t changed;
};

static void note_resolve(void *user, const char *verb, bool after, enum ibid_code code)
{
	struct started *started = user;
	(void)code;
	if (after || strcmp(verb, "resolve") != 0)
		return;
	pthread_mutex_lock(&started->lock);
	started->yes = true;
	pthread_cond_signal(&started->changed);
	pthread_mutex_unlock(&started->lock);
}

static void resolve_waits_for_the_twin_and_then_finds_its_row(void **state) /* B15, I7 */
{
	struct bed *bed = bed_of(state);
	struct started started = {false, PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER};
	struct store *other = store_trace_wrap(backend->again(), note_resolve, &started);
	struct resolving waiting = {.store = other};
	struct command_row row = completed("k-1", 1);
	pthread_t thread;
	struct tx *tx = claim_free(bed, "k-1", 1);
	pthread_create(&thread, NULL, resolve_in_thread, &waiting);
	pthread_mutex_lock(&started.lock);
	while (!started.yes)
		pthread_cond_wait(&started.changed, &started.lock);
	pthread_mutex_unlock(&started.lock);
	complete_row(bed, &tx, &row, NULL);
	pthread_join(thread, NULL);
	if (waiting.code)
		fail_msg("%s", waiting.err.text);
	assert_int_equal(waiting.claim.kind, CLAIM_FOUND);
	assert_row(&waiting.claim.row, &row);
	arena_release(&waiting.arena);
	store_close(other);
}

/* ---- Writing -------------------------------------------------------------------------------- */

static void rolled_back_transaction_leaves_nothing(void **state) /* B02, C01, I1 */
{
	struct bed *bed = bed_of(state);
	struct outcome outcome;
	const char *values[V_COUNT];
	set_values(bed, 1, values);
	script_of(bed, SUITE_PAY);
	struct tx *tx = claim_free(bed, "k-1", 1);
	struct command_row row = completed("k-1", 1);
	struct audit_row audit = audit_of(&row);
	check(bed, run(bed, tx, SUITE_PAY, values, &outcome));
	check(bed, bed->ops->put_audit(tx, &audit, &bed->err));
	check(bed, bed->ops->put_command(tx, &row, NULL, &bed->err));
	bed->ops->rollback(&tx);
	assert_counts(0, 0, 0);
	assert_int_equal(backend->number("select count(*) from payment"), 0);
}

static void committed_transaction_has_all_its_rows(void **state) /* B02, C01, I1 */
{
	struct bed *bed = bed_of(state);
	struct outcome outcome;
	check(bed, pay(bed, "k-1", 1, "r-1", "PAID", &outcome));
	assert_counts(1, 1, 1);
	assert_int_equal(backend->number("select count(*) from payment"), 1);
}

static void second_row_of_an_identity_is_refused_by_the_key(void **state) /* I2 */
{
	struct bed *bed = bed_of(state);
	complete(bed, "k-1", 1);
	struct tx *tx = claim_free(bed, "k-2", 2);
	struct command_row row = completed("k-1", 2);
	struct audit_row audit = audit_of(&row);
	struct outcome outcome;
	check(bed, bed->ops->put_audit(tx, &audit, &bed->err));
	enum ibid_code code = bed->ops->put_command(tx, &row, NULL, &bed->err);
	assert_int_equal(end_with(bed, &tx, code, &outcome), IBID_RETRY);
	assert_counts(1, 0, 1);
}

static void failed_row_is_replaced_by_compare_and_set(void **state) /* B07 */
{
	struct bed *bed = bed_of(state);
	struct tx *tx = claim_free(bed, "k-1", 1);
	struct command_row row = failed("k-1", 1);
	complete_row(bed, &tx, &row, NULL);
	struct claim got = claim(bed, "k-1", 2);
	assert_int_equal(got.kind, CLAIM_FOUND);
	assert_non_null(got.tx);
	assert_row(&got.row, &row);
	struct command_row next = completed("k-1", 1);
	next.attempts = 2;
	complete_row(bed, &got.tx, &next, &got.row);
	struct claim again = claim(bed, "k-1", 3);
	assert_row(&again.row, &next);
	bed->ops->rollback(&again.tx);
	assert_counts(1, 0, 1);
}

static void replacing_a_row_that_has_moved_on_is_a_retry(void **state) /* I2 */
{
	struct bed *bed = bed_of(state);
	struct tx *tx = claim_free(bed, "k-1", 1);
	struct command_row row = failed("k-1", 1);
	struct outcome outcome;
	complete_row(bed, &tx, &row, NULL);
	struct claim got = claim(bed, "k-1", 2);
	struct command_row next = row, stale = got.row;
	next.attempts = 2;
	stale.attempts = 5;
	enum ibid_code code = bed->ops->put_command(got.tx, &next, &stale, &bed->err);
	assert_int_equal(end_with(bed, &got.tx, code, &outcome), IBID_RETRY);
	got = claim(bed, "k-1", 2);
	assert_row(&got.row, &row);
	bed->ops->rollback(&got.tx);
}

/* ---- Leases --------------------------------------------------------------------------------- */

static const int64_t hour_us = INT64_C(3600000000);

static struct command_row staged(const char *key, unsigned n, int64_t token, int64_t lease_us)
{
	struct command_row row = failed(key, n);
	row.state = COMMAND_IN_PROGRESS;
	row.status = 0;
	row.reason = row.text = NULL;
	row.finished_us = 0;
	row.lease_token = token;
	row.lease_us = lease_us;
	return row;
}

static void stage(struct bed *bed, const char *key, unsigned n, int64_t token, int64_t lease_us)
{
	struct tx *tx = claim_free(bed, key, n);
	struct command_row row = staged(key, n, token, lease_us);
	complete_row(bed, &tx, &row, NULL);
}

/* As its worker, or whoever takes it over. */
static struct claim claim_held(struct bed *bed, const char *key)
{
	struct identity identity = identity_of(key);
	struct work_context context = context_of(99);
	struct claim got = {.kind = CLAIM_BUSY};
	context.holds_lease = true;
	check(bed, bed->ops->claim(bed->store, &bed->arena, &identity, &context, &got, &bed->err));
	assert_int_equal(got.kind, CLAIM_FOUND);
	assert_non_null(got.tx);
	return got;
}

static size_t list_stale(struct bed *bed, const char *tenant, const char *operation,
                         struct command_row **ret)
{
	struct command_filter filter = {.tenant = tenant, .operation = operation, .limit = 10};
	size_t found = 0;
	check(bed, bed->ops->list_stale(bed->store, &bed->arena, &filter, ret, &found, &bed->err));
	return found;
}

static void staged_row_is_told_at_once_also_while_its_worker_finishes(void **state) /* B05 B06 */
{
	struct bed *bed = bed_of(state);
	stage(bed, "k-1", 1, 7, hour_us);
	struct claim worker = claim_held(bed, "k-1");
	struct claim twin = claim(bed, "k-1", 2);
	assert_int_equal(twin.kind, CLAIM_FOUND);
	assert_null(twin.tx);
	assert_int_equal(twin.row.state, COMMAND_IN_PROGRESS);
	assert_int_equal(twin.row.lease_token, 7);
	assert_true(twin.row.lease_until_us > 0);
	assert_false(twin.row.stale);
	bed->ops->rollback(&worker.tx);
}

static void staged_row_is_finished_under_its_token_only(void **state) /* B06 I6 */
{
	struct bed *bed = bed_of(state);
	struct outcome outcome;
	stage(bed, "k-1", 1, 7, hour_us);
	struct command_row done = completed("k-1", 1);
	done.lease_token = 7;
	struct claim got = claim_held(bed, "k-1");
	struct command_row stale = got.row;
	struct audit_row audit = audit_of(&done);
	struct event_row event = event_of(1, 1, 0);
	stale.lease_token = 6;
	check(bed, bed->ops->put_event(got.tx, &event, &bed->err));
	check(bed, bed->ops->put_audit(got.tx, &audit, &bed->err));
	enum ibid_code code = bed->ops->put_command(got.tx, &done, &stale, &bed->err);
	assert_int_equal(end_with(bed, &got.tx, code, &outcome), IBID_RETRY);
	assert_counts(1, 0, 0);

	got = claim_held(bed, "k-1");
	complete_row(bed, &got.tx, &done, &got.row);
	got = claim(bed, "k-1", 2);
	assert_row(&got.row, &done);
	assert_int_equal(got.row.lease_token, 7);
	assert_int_equal(got.row.lease_until_us, 0);
	assert_counts(1, 0, 1);
}

static void ended_lease_is_stale_and_one_without_end_is_locked(void **state) /* B06 */
{
	struct bed *bed = bed_of(state);
	struct command_row *rows = NULL;
	stage(bed, "ended", 1, 7, 1);
	stage(bed, "running", 2, 7, hour_us);
	stage(bed, "locked", 3, 7, 0);
	assert_int_equal(list_stale(bed, NULL, NULL, &rows), 1);
	assert_string_equal(rows[0].identity.key, "ended");
	assert_true(rows[0].stale);
	assert_int_equal(rows[0].lease_token, 7);
	assert_int_equal(list_stale(bed, "acme", "create-payment", &rows), 1);
	assert_int_equal(list_stale(bed, "other", NULL, &rows), 0);
	assert_int_equal(list_stale(bed, NULL, "other", &rows), 0);

	struct claim got = claim_held(bed, "locked");
	assert_false(got.row.stale);
	assert_int_equal(got.row.lease_until_us, 0);
	bed->ops->rollback(&got.tx);
	got = claim_held(bed, "ended");
	assert_true(got.row.stale);
	bed->ops->rollback(&got.tx);
}

static size_t list_unknown(struct bed *bed, const struct command_filter *filter,
                           struct command_row **ret)
{
	size_t found = 0;
	check(bed, bed->ops->list_unknown(bed->store, &bed->arena, filter, ret, &found, &bed->err));
	return found;
}

static void unknown_rows_that_were_staged_are_listed_oldest_first(void **state) /* B06 */
{
	struct bed *bed = bed_of(state);
	struct command_row *rows = NULL;
	struct command_filter filter = {.limit = 2};
	stage(bed, "running", 8, 7, hour_us);
	stage(bed, "ended", 9, 7, 1);
	for (unsigned n = 4; n >= 1; n--) {
		char key[16];
		snprintf(key, sizeof key, "k-%u", n);
		struct tx *tx = claim_free(bed, key, n);
		struct command_row row = failed(key, n);
		row.state = n == 2 ? COMMAND_FAILED : COMMAND_UNKNOWN;
		row.lease_token = n == 1 ? 0 : 7; /* the first was never staged */
		complete_row(bed, &tx, &row, NULL);
	}
	assert_int_equal(list_unknown(bed, &filter, &rows), 2);
	assert_string_equal(rows[0].identity.key, "k-3");
	assert_string_equal(rows[1].identity.key, "k-4");
	struct command_row expected = failed("k-3", 3);
	expected.state = COMMAND_UNKNOWN;
	expected.lease_token = 7;
	assert_row(&rows[0], &expected);
	assert_int_equal(rows[0].lease_token, 7);
	assert_false(rows[0].stale);
	filter.after = &rows[1].id;
	assert_int_equal(list_unknown(bed, &filter, &rows), 0);
	filter = (struct command_filter){.tenant = "acme", .operation = "create-payment", .limit = 1};
	assert_int_equal(list_unknown(bed, &filter, &rows), 1);
	filter.after = &rows[0].id;
	assert_int_equal(list_unknown(bed, &filter, &rows), 1);
	assert_string_equal(rows[0].identity.key, "k-4");
	filter = (struct command_filter){.tenant = "other", .limit = 9};
	assert_int_equal(list_unknown(bed, &filter, &rows), 0);
	filter = (struct command_filter){.operation = "other", .limit = 9};
	assert_int_equal(list_unknown(bed, &filter, &rows), 0);
}

static void unknown_row_is_held_and_ended_by_compare_and_set(void **state) /* I6 */
{
	struct bed *bed = bed_of(state);
	struct outcome outcome;
	struct tx *tx = claim_free(bed, "k-1", 1);
	struct command_row unknown = failed("k-1", 1), done = completed("k-1", 1);
	unknown.state = COMMAND_UNKNOWN;
	unknown.lease_token = done.lease_token = 7;
	complete_row(bed, &tx, &unknown, NULL);
	struct claim got = claim_held(bed, "k-1");
	struct command_row other = got.row;
	other.lease_token = 6;
	enum ibid_code code = bed->ops->put_command(got.tx, &unknown, &other, &bed->err);
	assert_int_equal(end_with(bed, &got.tx, code, &outcome), IBID_RETRY);
	got = claim_held(bed, "k-1");
	complete_row(bed, &got.tx, &done, &got.row);
	assert_counts(1, 0, 1);
}

/* Replace a row in progress by one under another token. */
static enum ibid_code take_over(struct bed *bed, const char *key, unsigned n)
{
	struct outcome outcome;
	struct claim got = claim_held(bed, key);
	struct command_row next = staged(key, n, 8, hour_us);
	enum ibid_code code = bed->ops->put_command(got.tx, &next, &got.row, &bed->err);
	return end_with(bed, &got.tx, code, &outcome);
}

static void lease_is_taken_over_only_when_it_has_ended(void **state) /* B06 I6 */
{
	struct bed *bed = bed_of(state);
	stage(bed, "ended", 1, 7, 1);
	stage(bed, "running", 2, 7, hour_us);
	stage(bed, "locked", 3, 7, 0);
	assert_int_equal(take_over(bed, "ended", 1), IBID_OK);
	assert_int_equal(take_over(bed, "running", 2), IBID_RETRY);
	assert_int_equal(take_over(bed, "locked", 3), IBID_RETRY);
	struct claim got = claim(bed, "ended", 9);
	assert_int_equal(got.row.lease_token, 8);
	assert_false(got.row.stale);
	got = claim(bed, "locked", 9);
	assert_int_equal(got.row.lease_token, 7);
}

static void lease_is_renewed_under_its_token_only(void **state) /* B06 I6 */
{
	struct bed *bed = bed_of(state);
	struct command_row *rows = NULL;
	struct uuid id = make_id(1);
	stage(bed, "k-1", 1, 7, 1);
	assert_int_equal(bed->ops->renew_lease(bed->store, "acme", &id, 6, hour_us, &bed->err),
	                 IBID_FENCED);
	assert_int_equal(bed->ops->renew_lease(bed->store, "other", &id, 7, hour_us, &bed->err),
	                 IBID_FENCED);
	assert_int_equal(list_stale(bed, NULL, NULL, &rows), 1);
	check(bed, bed->ops->renew_lease(bed->store, "acme", &id, 7, hour_us, &bed->err));
	assert_int_equal(list_stale(bed, NULL, NULL, &rows), 0);

	struct claim got = claim_held(bed, "k-1");
	struct command_row done = failed("k-1", 1);
	done.lease_token = 7;
	complete_row(bed, &got.tx, &done, &got.row);
	assert_int_equal(bed->ops->renew_lease(bed->store, "acme", &id, 7, hour_us, &bed->err),
	                 IBID_FENCED);
}

static void replaced_outcome_takes_its_body_with_it(void **state)
{
	struct bed *bed = bed_of(state);
	struct tx *tx = claim_free(bed, "k-1", 1);
	struct command_row row = failed("k-1", 1);
	row.state = COMMAND_REJECTED;
	row.body = "{\"why\":1}";
	row.body_size = 9;
	complete_row(bed, &tx, &row, NULL);
	struct claim got = claim(bed, "k-1", 2);
	assert_row(&got.row, &row);
	struct command_row next = failed("k-1", 1);
	next.attempts = 2;
	complete_row(bed, &got.tx, &next, &got.row);
	got = claim(bed, "k-1", 2);
	assert_row(&got.row, &next);
	bed->ops->rollback(&got.tx);
}

static void completed_command_without_audit_entry_can_not_be_written(void **state)
{
	struct bed *bed = bed_of(state);
	struct command_row rows[2] = {completed("k-1", 1), failed("k-1", 1)};
	struct outcome outcome;
	rows[0].audit_id = (struct uuid){{0}};
	rows[1].audit_id = make_id(9);
	for (int i = 0; i < 2; i++) {
		struct tx *tx = claim_free(bed, "k-1", 1);
		enum ibid_code code = bed->ops->put_command(tx, &rows[i], NULL, &bed->err);
		assert_int_not_equal(end_with(bed, &tx, code, &outcome), IBID_OK);
	}
	assert_counts(0, 0, 0);
}

static void second_audit_entry_of_a_command_is_refused(void **state)
{
	struct bed *bed = bed_of(state);
	struct tx *tx = claim_free(bed, "k-1", 1);
	struct command_row row = completed("k-1", 1);
	struct audit_row one = audit_of(&row), two = one;
	struct outcome outcome;
	two.id = make_id(77);
	check(bed, bed->ops->put_audit(tx, &one, &bed->err));
	enum ibid_code code = bed->ops->put_audit(tx, &two, &bed->err);
	assert_int_not_equal(end_with(bed, &tx, code, &outcome), IBID_OK);
	assert_counts(0, 0, 0);
}

static void transaction_that_failed_can_only_be_rolled_back(void **state) /* I1 */
{
	struct bed *bed = bed_of(state);
	const char *values[V_COUNT];
	struct outcome outcome;
	set_values(bed, 1, values);
	script_of(bed, SUITE_FAIL);
	struct tx *tx = claim_free(bed, "k-1", 1);
	assert_int_equal(run(bed, tx, SUITE_FAIL, values, &outcome), IBID_FAILED);
	assert_int_not_equal(end(bed, &tx), IBID_OK);
	assert_counts(0, 0, 0);
	assert_int_equal(backend->number("select count(*) from payment"), 0);
}

/* ---- Events --------------------------------------------------------------------------------- */

static enum ibid_code put_events(struct bed *bed, const char *key, unsigned n,
                                 const struct event_row *events, size_t events_count,
                                 struct outcome *ret)
{
	struct tx *tx = claim_free(bed, key, n);
	struct command_row row = completed(key, n);
	struct audit_row audit = audit_of(&row);
	enum ibid_code code = IBID_OK;
	for (size_t i = 0; !code && i < events_count; i++)
		code = bed->ops->put_event(tx, &events[i], &bed->err);
	if (!code)
		code = bed->ops->put_audit(tx, &audit, &bed->err);
	if (!code)
		code = bed->ops->put_command(tx, &row, NULL, &bed->err);
	return end_with(bed, &tx, code, ret);
}

static void events_get_the_next_versions_and_keep_every_column(void **state) /* C01 */
{
	struct bed *bed = bed_of(state);
	struct event_row events[2] = {event_of(1, 1, 0), event_of(1, 2, 2)}, *got;
	struct outcome outcome;
	size_t got_count;
	char key[64];
	events[1].type = "PaymentVoided";
	events[1].key = "void-1 \xE2\x82\xAC";
	events[1].correlation_id = events[1].causation_id = NULL;
	events[1].traceparent = events[1].tracestate = NULL;
	check(bed, put_events(bed, "k-1", 1, events, 2, &outcome));
	struct uuid command_id = make_id(1);
	check(bed, bed->ops->list_events(bed->store, &bed->arena, "acme", &command_id, 10, &got,
	                                 &got_count, &bed->err));
	assert_int_equal(got_count, 2);
	for (size_t i = 0; i < 2; i++) {
		struct uuid id = uuid_nth(command_id, (unsigned)i + 1);
		assert_memory_equal(&got[i].id, &id, sizeof id);
		assert_memory_equal(&got[i].command_id, &command_id, sizeof command_id);
		assert_string_equal(got[i].tenant, "acme");
		assert_string_equal(got[i].aggregate_type, "payment");
		assert_string_equal(got[i].aggregate_id, "p-1");
		assert_string_equal(got[i].type, events[i].type);
		assert_string_equal(canonical(bed, got[i].payload), canonical(bed, events[i].payload));
		assert_int_equal(got[i].version, i + 1);
		assert_int_equal(got[i].ordinal, i + 1);
		assert_text(got[i].correlation_id, events[i].correlation_id);
		assert_text(got[i].causation_id, events[i].causation_id);
		assert_text(got[i].traceparent, events[i].traceparent);
		assert_text(got[i].tracestate, events[i].tracestate);
		assert_true(got[i].at_us == now_us);
	}
	snprintf(key, sizeof key, "%s:1", id_text(bed, command_id));
	assert_string_equal(got[0].key, key);
	assert_string_equal(got[1].key, "void-1 \xE2\x82\xAC");
}

static void version_that_is_not_the_next_rejects_and_leaves_nothing(void **state) /* C01, I5 */
{
	static const int64_t wrong[] = {1, 3, 99};
	struct bed *bed = bed_of(state);
	struct event_row first = event_of(1, 1, 1);
	struct outcome outcome;
	check(bed, put_events(bed, "k-1", 1, &first, 1, &outcome));
	for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
		struct event_row event = event_of(2, 1, wrong[i]);
		assert_int_equal(put_events(bed, "k-2", 2, &event, 1, &outcome), IBID_REJECTED);
		assert_string_equal(outcome.reason, "VERSION_CONFLICT");
		assert_int_equal(outcome.status, 409);
	}
	assert_counts(1, 1, 1);
	struct event_row next = event_of(2, 1, 2);
	check(bed, put_events(bed, "k-2", 2, &next, 1, &outcome));
}

static void first_version_of_an_aggregate_is_one(void **state)
{
	struct bed *bed = bed_of(state);
	struct event_row event = event_of(1, 1, 2);
	struct outcome outcome;
	assert_int_equal(put_events(bed, "k-1", 1, &event, 1, &outcome), IBID_REJECTED);
	assert_string_equal(outcome.reason, "VERSION_CONFLICT");
}

static void event_key_given_twice_rejects(void **state) /* C01 */
{
	struct bed *bed = bed_of(state);
	struct event_row first = event_of(1, 1, 0), second = event_of(2, 1, 0);
	struct outcome outcome;
	first.key = second.key = "mine";
	check(bed, put_events(bed, "k-1", 1, &first, 1, &outcome));
	assert_int_equal(put_events(bed, "k-2", 2, &second, 1, &outcome), IBID_REJECTED);
	assert_string_equal(outcome.reason, "EVENT_KEY_USED");
	assert_counts(1, 1, 1);
}

static void event_keys_and_versions_belong_to_a_tenant(void **state) /* I9 */
{
	struct bed *bed = bed_of(state);
	struct event_row mine = event_of(1, 1, 1), theirs = event_of(2, 1, 1), *got;
	struct outcome outcome;
	size_t got_count;
	mine.key = theirs.key = "same";
	theirs.tenant = "other";
	check(bed, put_events(bed, "k-1", 1, &mine, 1, &outcome));
	check(bed, put_events(bed, "k-2", 2, &theirs, 1, &outcome));
	check(bed, bed->ops->list_events(bed->store, &bed->arena, "other", NULL, 10, &got, &got_count,
	                                 &bed->err));
	assert_int_equal(got_count, 1);
	assert_string_equal(got[0].tenant, "other");
}

static void events_and_audit_entries_can_not_be_edited_or_deleted(void **state) /* C02, I3 */
{
	struct bed *bed = bed_of(state);
	struct event_row event = event_of(1, 1, 0);
	struct outcome outcome;
	check(bed, put_events(bed, "k-1", 1, &event, 1, &outcome));
	assert_false(backend->exec(backend->sql[SUITE_EDIT_EVENT]));
	assert_false(backend->exec(backend->sql[SUITE_DELETE_EVENT]));
	assert_false(backend->exec(backend->sql[SUITE_EDIT_AUDIT]));
	assert_false(backend->exec(backend->sql[SUITE_DELETE_AUDIT]));
	assert_counts(1, 1, 1);
}

/* ---- Scripts -------------------------------------------------------------------------------- */

static void script_inserts_emits_and_answers(void **state) /* B02, C01 */
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
	check(bed, bed->ops->list_events(bed->store, &bed->arena, "acme", &id, 10, &events,
	                                 &events_count, &bed->err));
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

static void script_runs_again_for_the_next_command(void **state)
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

static void parameters_of_every_type_arrive_exactly(void **state) /* A03: nothing is rounded */
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

static void decimal_of_38_digits_and_the_other_extremes_arrive_exactly(void **state)
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

static void absent_values_are_null(void **state)
{
	struct bed *bed = bed_of(state);
	const char *values[V_COUNT] = {NULL};
	assert_string_equal(echo(bed, values),
	                    "{\"boolean\":null,\"date\":null,\"decimal\":null,\"instant\":null,"
	                    "\"integer\":null,\"json\":null,\"text\":null,\"uuid\":null}");
}

static void amounts_are_kept_exactly(void **state)
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
	check(bed, bed->ops->list_events(bed->store, &bed->arena, "acme", &id, 1, &events,
	                                 &events_count, &bed->err));
	assert_string_equal(canonical(bed, events[0].payload), "{\"amount\":12345678901234567.89}");
}

static void rejection_carries_its_code_status_and_text(void **state)
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

static void unique_index_that_was_hit_is_named(void **state) /* B09 */
{
	struct bed *bed = bed_of(state);
	struct outcome outcome;
	check(bed, pay(bed, "k-1", 1, "r-1", "PAID", &outcome));
	assert_int_equal(pay(bed, "k-2", 2, "r-1", "PAID", &outcome), IBID_DUPLICATE);
	assert_string_equal(outcome.unique, "payment_reference");
	assert_counts(1, 1, 1);
}

static void partial_unique_index_that_was_hit_is_named(void **state) /* B09 */
{
	struct bed *bed = bed_of(state);
	struct outcome outcome;
	check(bed, pay(bed, "k-1", 1, "r-1", "ACTIVE", &outcome));
	assert_int_equal(pay(bed, "k-2", 2, "r-2", "ACTIVE", &outcome), IBID_DUPLICATE);
	assert_string_equal(outcome.unique, "payment_one_active");
	check(bed, pay(bed, "k-3", 3, "r-3", "PAID", &outcome));
}

static void failed_statement_says_where_and_why(void **state)
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

static void constraint_that_fails_at_commit_is_definite(void **state)
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

static void emit_in_a_script_counts_ordinals_and_versions(void **state)
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
	check(bed, bed->ops->list_events(bed->store, &bed->arena, "acme", &id, 10, &events,
	                                 &events_count, &bed->err));
	assert_int_equal(events_count, 2);
	assert_int_equal(events[0].ordinal, 1);
	assert_int_equal(events[1].ordinal, 2);
	assert_int_equal(events[1].version, 2);
	assert_string_equal(events[1].key, "given");
	assert_string_equal(canonical(bed, events[1].payload), "{\"a\":[true,null],\"b\":1.1}");
}

static void emit_of_an_undeclared_type_fails(void **state)
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

static void emit_of_a_wrong_version_or_used_key_rejects(void **state)
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

static void emit_for_a_found_row_uses_its_id(void **state)
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
	check(bed, bed->ops->list_events(bed->store, &bed->arena, "acme", &id, 10, &events,
	                                 &events_count, &bed->err));
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
	check(bed,
	      bed->ops->list_references(bed->store, &bed->arena, &filter, &rows, &count, &bed->err));
	assert_int_equal(count, expected);
	return rows;
}

static void references_are_listed_from_either_side(void **state) /* B17 */
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

static void last_row_of_the_last_statement_answers(void **state)
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

static void answer_with_a_strange_column_or_without_status_fails(void **state)
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

static void find_script_returns_the_existing_document(void **state) /* B09 */
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

static void query_sees_what_its_transaction_did_and_lets_it_go_on(void **state) /* A07 */
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

static void query_that_changes_something_fails_and_leaves_nothing(void **state) /* A07 */
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
static void row_is_held_beside_other_commands(void **state) /* A07 */
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

static void script_with_transaction_control_or_unknown_parameter_is_refused(void **state)
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

static void members_of_a_group_hear_each_for_itself(void **state) /* B12 I1 */
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
		check(bed, bed->ops->get_command(bed->store, &bed->arena, "acme", &members[i]->row.id, NULL,
		                                 &row, &bed->err));
		assert_row(&row, &members[i]->row);
		assert_non_null(strstr(row.body, row.resource_id));
	}
	struct claim again = claim(bed, "k-1", 2); /* nothing is held any more */
	assert_int_equal(again.kind, CLAIM_FREE);
	bed->ops->rollback(&again.tx);
}

static void group_without_a_success_commits_nothing(void **state)
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

/* ---- Evidence and looking ------------------------------------------------------------------- */

static void expired_row_gives_way_to_a_new_command_where_it_may(void **state) /* B10 */
{
	struct bed *bed = bed_of(state);
	struct identity identity = identity_of("k");
	struct work_context context = context_of(2);
	struct claim got, twin;
	complete(bed, "k", 1);
	context.now_us = completed("k", 1).expires_us - 1;
	context.runs_again = true;
	check(bed, bed->ops->claim(bed->store, &bed->arena, &identity, &context, &got, &bed->err));
	assert_int_equal(got.kind, CLAIM_FOUND);
	assert_null(got.tx); /* not yet */
	context.now_us++;
	context.runs_again = false;
	check(bed, bed->ops->claim(bed->store, &bed->arena, &identity, &context, &got, &bed->err));
	assert_int_equal(got.kind, CLAIM_FOUND);
	assert_null(got.tx); /* never */
	context.runs_again = true;
	check(bed, bed->ops->claim(bed->store, &bed->arena, &identity, &context, &got, &bed->err));
	assert_int_equal(got.kind, CLAIM_FOUND);
	assert_non_null(got.tx);
	check(bed, bed->ops->claim(bed->store, &bed->arena, &identity, &context, &twin, &bed->err));
	assert_int_equal(twin.kind, CLAIM_BUSY);
	struct command_row anew = completed("k", 2);
	anew.body = NULL;
	anew.body_size = 0;
	struct event_row event = event_of(2, 1, 0);
	check(bed, bed->ops->put_event(got.tx, &event, &bed->err));
	complete_row(bed, &got.tx, &anew, &got.row);
	got = claim(bed, "k", 3);
	anew.audit_id = got.row.audit_id;
	assert_row(&got.row, &anew); /* the old body is gone, too */
	assert_counts(1, 1, 2);
}

static void duplicates_are_added_up_and_listed(void **state) /* B18 */
{
	struct bed *bed = bed_of(state);
	struct duplicate_row rows[] = {
	    {.tenant = "acme",
	     .command_id = make_id(1),
	     .first_us = now_us,
	     .last_us = now_us + 5,
	     .count = 3,
	     .unlisted = 1},
	    {.tenant = "other",
	     .command_id = make_id(1),
	     .first_us = now_us,
	     .last_us = now_us,
	     .count = 1},
	};
	struct duplicate_seen_row seen[] = {
	    {.tenant = "acme",
	     .command_id = make_id(1),
	     .at_us = now_us,
	     .client = "web",
	     .actor = "O'Hara \"\\ \xc3\xa9",
	     .decision = "executed",
	     .fingerprint = sha256("a", 1)},
	    {.tenant = "acme",
	     .command_id = make_id(1),
	     .at_us = now_us + 1,
	     .client = "",
	     .actor = "",
	     .decision = "conflict",
	     .fingerprint = sha256("b", 1)},
	};
	struct duplicate_row got;
	struct duplicate_seen_row *listed = NULL;
	struct uuid id = make_id(1);
	size_t listed_count = 0;
	check(bed, bed->ops->get_duplicates(bed->store, &bed->arena, "acme", &id, &got, &bed->err));
	assert_int_equal(got.count, 0);
	check(bed, bed->ops->put_duplicates(bed->store, rows, 2, seen, 2, &bed->err));
	rows[0].first_us -= 10;
	check(bed, bed->ops->put_duplicates(bed->store, rows, 1, NULL, 0, &bed->err));
	check(bed, bed->ops->get_duplicates(bed->store, &bed->arena, "acme", &id, &got, &bed->err));
	assert_int_equal(got.count, 6);
	assert_int_equal(got.unlisted, 2);
	assert_true(got.first_us == now_us - 10 && got.last_us == now_us + 5);
	check(bed, bed->ops->list_duplicates(bed->store, &bed->arena, "acme", &id, 10, &listed,
	                                     &listed_count, &bed->err));
	assert_int_equal(listed_count, 2);
	assert_text(listed[0].decision, "conflict"); /* the newest first */
	assert_text(listed[1].actor, seen[0].actor);
	assert_text(listed[1].client, "web");
	assert_true(listed[1].at_us == now_us);
	assert_memory_equal(&listed[1].fingerprint, &seen[0].fingerprint, sizeof(struct sha256));
	check(bed, bed->ops->list_duplicates(bed->store, &bed->arena, "acme", &id, 1, &listed,
	                                     &listed_count, &bed->err));
	assert_int_equal(listed_count, 1);
	check(bed, bed->ops->list_duplicates(bed->store, &bed->arena, "other", &id, 10, &listed,
	                                     &listed_count, &bed->err));
	assert_int_equal(listed_count, 0);
}

/* ---- Payloads and erasure ------------------------------------------------------------------- */

static void put_payload(struct bed *bed, struct tx *tx, unsigned n, const char *text)
{
	struct payload_row row = {
	    .tenant = "acme", .command_id = make_id(n), .text = text, .size = text ? strlen(text) : 0};
	check(bed, bed->ops->put_payload(tx, &row, &bed->err));
}

static void assert_payload(struct bed *bed, const char *tenant, unsigned n, const char *expected)
{
	struct payload_row got = {.text = NULL};
	struct uuid id = make_id(n);
	enum ibid_code code = bed->ops->get_payload(bed->store, &bed->arena, tenant, &id, &got,
	                                            &bed->err);
	assert_int_equal(code, expected ? IBID_OK : IBID_NOT_FOUND);
	assert_text(got.text, expected);
	if (expected)
		assert_int_equal(got.size, strlen(expected));
}

/* A completed command with an event, a conflict and a payload. */
static void complete_with_payload(struct bed *bed, const char *key, unsigned n, const char *actor)
{
	struct tx *tx = claim_free(bed, key, n);
	struct command_row row = completed(key, n);
	struct event_row event = event_of(n, 1, 0);
	row.actor = actor;
	put_payload(bed, tx, n, "{\"note\":\"secret\"}");
	check(bed, bed->ops->put_event(tx, &event, &bed->err));
	complete_row(bed, &tx, &row, NULL);
	for (int i = 0; i < 2; i++) {
		struct evidence_row conflict = {.tenant = "acme",
		                                .command_id = row.id,
		                                .fingerprint = sha256("x", 1),
		                                .client = "web",
		                                .actor = i ? "u9" : "u8",
		                                .first_us = now_us + i,
		                                .last_us = now_us + i,
		                                .count = 1};
		check(bed, bed->ops->put_evidence(bed->store, &conflict, &bed->err));
	}
}

static void payload_commits_with_its_command_or_not_at_all(void **state) /* K05, I1 */
{
	struct bed *bed = bed_of(state);
	struct tx *tx = claim_free(bed, "k", 1);
	struct command_row first = failed("k", 1), second = failed("k", 1);
	put_payload(bed, tx, 1, "{}");
	bed->ops->rollback(&tx);
	assert_payload(bed, "acme", 1, NULL);
	tx = claim_free(bed, "k", 1);
	put_payload(bed, tx, 1, "{\"a\":\"\\u0000\"}");
	complete_row(bed, &tx, &first, NULL);
	assert_payload(bed, "acme", 1, "{\"a\":\"\\u0000\"}");
	assert_payload(bed, "other", 1, NULL); /* I9 */
	assert_payload(bed, "acme", 2, NULL);
	second.attempts = 2;
	struct claim got = claim(bed, "k", 9);
	put_payload(bed, got.tx, 1, "{\"a\":2}"); /* in its place */
	complete_row(bed, &got.tx, &second, &first);
	assert_payload(bed, "acme", 1, "{\"a\":2}");
	first = second;
	second.attempts = 3;
	got = claim(bed, "k", 9);
	put_payload(bed, got.tx, 1, NULL);
	complete_row(bed, &got.tx, &second, &first);
	assert_payload(bed, "acme", 1, NULL);
}

static struct erasure_progress erase(struct bed *bed, struct erasure erasure)
{
	struct erasure_progress progress = {.done = false};
	erasure.tenant = "acme";
	erasure.by = "dora";
	erasure.reason = "asked";
	erasure.selection = "{}";
	erasure.now_us = now_us;
	erasure.batch = 2;
	for (int steps = 0; !progress.done; steps++) {
		assert_true(steps < 100);
		check(bed, bed->ops->erase_commands(bed->store, &erasure, &progress, &bed->err));
	}
	return progress;
}

static size_t list_erasures(struct bed *bed, const char *tenant, struct erasure_row **ret)
{
	size_t listed = 0;
	check(bed,
	      bed->ops->list_erasures(bed->store, &bed->arena, tenant, 9, ret, &listed, &bed->err));
	return listed;
}

static void erasure_leaves_what_recognises_a_duplicate_and_a_record(void **state) /* K11 */
{
	struct bed *bed = bed_of(state);
	struct uuid id = make_id(3);
	struct erasure_row *records = NULL;
	char key[8];
	for (unsigned n = 1; n <= 5; n++) {
		snprintf(key, sizeof key, "k-%u", n);
		complete_with_payload(bed, key, n, n % 2 ? "u7" : "u8");
	}
	struct erasure_progress dry = erase(
	    bed, (struct erasure){.id = make_id(90), .command_id = &id, .dry_run = true});
	assert_int_equal(dry.count.payloads, 1);
	assert_payload(bed, "acme", 3, "{\"note\":\"secret\"}");
	struct erasure_progress one = erase(bed,
	                                    (struct erasure){.id = make_id(91), .command_id = &id});
	assert_int_equal(one.count.commands, 1);
	assert_int_equal(one.count.bodies, 1);
	assert_int_equal(one.count.events, 1);
	assert_int_equal(one.count.names, 2);
	assert_payload(bed, "acme", 3, NULL);
	assert_payload(bed, "acme", 2, "{\"note\":\"secret\"}");
	struct command_row expected = completed("k-3", 3);
	struct claim got = claim(bed, "k-3", 9);
	expected.body = NULL;
	expected.body_size = 0;
	expected.reason = "ERASED";
	expected.audit_id = got.row.audit_id;
	assert_row(&got.row, &expected); /* all else is there */
	struct evidence_row *conflicts = NULL;
	size_t conflict_count = 0;
	check(bed, bed->ops->list_evidence(bed->store, &bed->arena, "acme", &id, &conflicts,
	                                   &conflict_count, &bed->err));
	assert_int_equal(conflict_count, 1); /* nothing tells the two apart any more */
	assert_int_equal(conflicts[0].count, 2);
	assert_text(conflicts[0].actor, "erased");
	assert_true(conflicts[0].first_us == now_us && conflicts[0].last_us == now_us + 1);
	assert_int_equal(list_erasures(bed, "acme", &records), 1);
	assert_memory_equal(&records[0].count, &one.count, sizeof one.count);
	assert_true(records[0].finished_us == now_us);
	assert_text(records[0].by, "dora");
	assert_int_equal(list_erasures(bed, "other", &records), 0);

	struct erasure_progress again = erase(bed,
	                                      (struct erasure){.id = make_id(92), .command_id = &id});
	assert_int_equal(again.count.commands + again.count.names, 0);
	assert_int_equal(list_erasures(bed, NULL, &records), 1);
}

static void erasure_of_an_actor_takes_its_name_everywhere(void **state) /* K11 */
{
	struct bed *bed = bed_of(state);
	struct command_row row;
	struct audit_row *audit = NULL;
	struct event_row *events = NULL;
	size_t listed = 0;
	struct uuid id = make_id(1), held = make_id(6);
	char key[8];
	for (unsigned n = 1; n <= 5; n++) {
		snprintf(key, sizeof key, "k-%u", n);
		complete_with_payload(bed, key, n, n % 2 ? "u7" : "u8");
	}
	struct tx *tx = claim_free(bed, "held", 6);
	struct command_row unknown = failed("held", 6);
	unknown.state = COMMAND_UNKNOWN;
	put_payload(bed, tx, 6, "{}");
	complete_row(bed, &tx, &unknown, NULL);
	struct erasure_progress progress = erase(bed,
	                                         (struct erasure){.id = make_id(91), .actor = "u7"});
	assert_int_equal(progress.count.commands, 3);
	assert_int_equal(progress.count.payloads, 3);
	assert_int_equal(progress.left, 1);
	assert_payload(bed, "acme", 6, "{}");
	check(bed,
	      bed->ops->get_command(bed->store, &bed->arena, "acme", &held, NULL, &row, &bed->err));
	assert_row(&row, &unknown);
	check(bed, bed->ops->get_command(bed->store, &bed->arena, "acme", &id, NULL, &row, &bed->err));
	assert_text(row.actor, "erased");
	assert_text(row.client, "erased");
	check(bed, bed->ops->list_audit(bed->store, &bed->arena, "acme", &id, 1, &audit, &listed,
	                                &bed->err));
	assert_text(audit[0].actor, "erased");
	check(bed, bed->ops->list_events(bed->store, &bed->arena, "acme", &id, 9, &events, &listed,
	                                 &bed->err));
	assert_text(events[0].payload, "{\"erased\":true}");
	id = make_id(2);
	check(bed, bed->ops->get_command(bed->store, &bed->arena, "acme", &id, NULL, &row, &bed->err));
	assert_text(row.actor, "u8");
	assert_payload(bed, "acme", 2, "{\"note\":\"secret\"}");
	progress = erase(
	    bed, (struct erasure){.id = make_id(92), .resource_type = "payment", .resource_id = "p-1"});
	assert_int_equal(progress.count.payloads, 2);
}

static struct retention_count retain(struct bed *bed, struct retention retention)
{
	struct retention_cursor cursor = {0};
	struct retention_count count = {0};
	retention.before = make_id(1000);
	retention.audit_us = "{\"create-payment\":5000000}";
	retention.audit_max_us = 5000000;
	retention.batch = 2;
	for (int steps = 0; !cursor.done; steps++) {
		assert_true(steps < 100);
		check(bed, bed->ops->retain_commands(bed->store, &bed->arena, &retention, &cursor, &count,
		                                     &bed->err));
	}
	bool more = true;
	for (int steps = 0; more; steps++) {
		assert_true(steps < 100);
		check(bed, bed->ops->retain_history(bed->store, &retention, &count, &more, &bed->err));
	}
	return count;
}

static void retention_empties_expired_rows_and_deletes_them_after_the_audit_period(void **state)
{ /* B10 */
	struct bed *bed = bed_of(state);
	static const struct retention_count nothing;
	struct duplicate_row again = {.tenant = "acme",
	                              .command_id = make_id(2),
	                              .first_us = now_us,
	                              .last_us = now_us,
	                              .count = 1};
	char key[8];
	for (unsigned n = 1; n <= 5; n++) {
		snprintf(key, sizeof key, "k-%u", n);
		complete(bed, key, n);
	}
	struct tx *tx = claim_free(bed, "held", 6);
	struct command_row unknown = failed("held", 6);
	unknown.state = COMMAND_UNKNOWN;
	complete_row(bed, &tx, &unknown, NULL);
	tx = claim_free(bed, "failed", 7);
	struct command_row row = failed("failed", 7);
	complete_row(bed, &tx, &row, NULL);
	tx = claim_free(bed, "kept", 8);
	put_payload(bed, tx, 8, "{}");
	struct command_row kept_row = failed("kept", 8);
	kept_row.text = NULL;
	complete_row(bed, &tx, &kept_row, NULL);
	complete(bed, "young", 2000); /* beyond `before` */
	check(bed, bed->ops->put_duplicates(bed->store, &again, 1, NULL, 0, &bed->err));

	struct retention_count count = retain(bed, (struct retention){.now_us = now_us + 999999});
	assert_memory_equal(&count, &nothing, sizeof count);
	count = retain(bed, (struct retention){.now_us = now_us + 1000000, .dry_run = true});
	assert_int_equal(count.tombstones, 7);
	assert_int_equal(count.answers, 5);
	assert_int_equal(count.payloads, 1);
	assert_non_null(claim(bed, "k-1", 9).row.body);
	count = retain(bed, (struct retention){.now_us = now_us + 1000000});
	assert_int_equal(count.tombstones, 7);
	assert_int_equal(count.answers, 5);
	assert_int_equal(count.payloads, 1);
	assert_int_equal(count.commands, 0);
	assert_payload(bed, "acme", 8, NULL);
	struct command_row emptied = completed("k-1", 1);
	struct claim got = claim(bed, "k-1", 9);
	emptied.body = NULL;
	emptied.body_size = 0;
	emptied.audit_id = got.row.audit_id;
	assert_row(&got.row, &emptied); /* all else is there */
	assert_non_null(claim(bed, "young", 9).row.body);

	count = retain(bed, (struct retention){.now_us = now_us + 5000005});
	assert_int_equal(count.commands, 7);
	assert_int_equal(count.duplicates, 1);
	assert_counts(2, 0, backend->number(backend->sql[SUITE_COUNT_AUDIT]));
	count = retain(bed, (struct retention){.now_us = now_us + 5000005});
	assert_memory_equal(&count, &nothing, sizeof count);
	struct command_row kept;
	struct uuid id = make_id(6);
	check(bed, bed->ops->get_command(bed->store, &bed->arena, "acme", &id, NULL, &kept, &bed->err));
	assert_row(&kept, &unknown);
}

static void evidence_is_kept_once_and_counted(void **state) /* B04, B18 */
{
	struct bed *bed = bed_of(state);
	struct evidence_row one = {.tenant = "acme",
	                           .command_id = make_id(1),
	                           .client = "web",
	                           .actor = "",
	                           .fingerprint = sha256("other", 5),
	                           .first_us = now_us,
	                           .last_us = now_us,
	                           .count = 1};
	struct evidence_row later = one, else_ = one, *got;
	size_t got_count;
	later.first_us = later.last_us = now_us + 7;
	else_.client = "app";
	else_.first_us = else_.last_us = now_us + 9;
	complete(bed, "k-1", 1);
	check(bed, bed->ops->put_evidence(bed->store, &one, &bed->err));
	check(bed, bed->ops->put_evidence(bed->store, &later, &bed->err));
	check(bed, bed->ops->put_evidence(bed->store, &else_, &bed->err));
	check(bed, bed->ops->list_evidence(bed->store, &bed->arena, "acme", &one.command_id, &got,
	                                   &got_count, &bed->err));
	assert_int_equal(got_count, 2);
	assert_int_equal(got[0].count, 2);
	assert_true(got[0].first_us == now_us);
	assert_true(got[0].last_us == now_us + 7);
	assert_string_equal(got[0].client, "web");
	assert_string_equal(got[0].actor, "");
	assert_string_equal(got[0].tenant, "acme");
	assert_memory_equal(&got[0].fingerprint, &one.fingerprint, sizeof one.fingerprint);
	assert_int_equal(got[1].count, 1);
	assert_string_equal(got[1].client, "app");
	check(bed, bed->ops->list_evidence(bed->store, &bed->arena, "other", &one.command_id, &got,
	                                   &got_count, &bed->err));
	assert_int_equal(got_count, 0);
}

static void command_is_found_by_id_and_by_identity_within_its_tenant(void **state) /* I9 */
{
	struct bed *bed = bed_of(state);
	struct command_row row = completed("k-1", 1), got;
	struct uuid id = make_id(1), none = make_id(5);
	complete(bed, "k-1", 1);
	check(bed, bed->ops->get_command(bed->store, &bed->arena, "acme", &id, NULL, &got, &bed->err));
	assert_row(&got, &row);
	check(bed, bed->ops->get_command(bed->store, &bed->arena, "acme", NULL, &row.identity, &got,
	                                 &bed->err));
	assert_row(&got, &row);
	assert_int_equal(
	    bed->ops->get_command(bed->store, &bed->arena, "other", &id, NULL, &got, &bed->err),
	    IBID_NOT_FOUND);
	assert_int_equal(bed->ops->get_command(bed->store, &bed->arena, "other", NULL, &row.identity,
	                                       &got, &bed->err),
	                 IBID_NOT_FOUND);
	assert_int_equal(
	    bed->ops->get_command(bed->store, &bed->arena, "acme", &none, NULL, &got, &bed->err),
	    IBID_NOT_FOUND);
}

/* Commands 1 to `n`, keys "k-1" to "k-n"; each third one belongs to tenant "other", each second one
 * is FAILED, each fifth one is from client "app". */
static void fill(struct bed *bed, unsigned n)
{
	for (unsigned i = 1; i <= n; i++) {
		char key[16];
		snprintf(key, sizeof key, "k-%u", i);
		struct command_row row = i % 2 ? completed(key, i) : failed(key, i);
		struct work_context context = context_of(i);
		struct claim got;
		if (i % 3 == 0)
			row.identity.tenant = context.tenant = "other";
		if (i % 5 == 0)
			row.client = "app";
		check(bed,
		      bed->ops->claim(bed->store, &bed->arena, &row.identity, &context, &got, &bed->err));
		complete_row(bed, &got.tx, &row, NULL);
	}
}

static size_t list(struct bed *bed, const struct command_filter *filter, struct command_row **ret)
{
	size_t got_count = 0;
	check(bed,
	      bed->ops->list_commands(bed->store, &bed->arena, filter, ret, &got_count, &bed->err));
	return got_count;
}

static void commands_are_listed_newest_first_page_by_page(void **state)
{
	struct bed *bed = bed_of(state);
	struct command_filter filter = {.state = -1, .limit = 4};
	struct command_row *got;
	unsigned expected = 10;
	fill(bed, 10);
	for (size_t n; (n = list(bed, &filter, &got)) > 0; filter.after = &got[n - 1].id) {
		assert_in_range(n, 1, 4);
		for (size_t i = 0; i < n; i++, expected--) {
			struct uuid id = make_id(expected);
			assert_memory_equal(&got[i].id, &id, sizeof id);
		}
	}
	assert_int_equal(expected, 0);
}

static void commands_are_listed_by_tenant_operation_key_client_and_state(void **state)
{
	struct bed *bed = bed_of(state);
	struct command_row *got;
	fill(bed, 10);
	struct command_filter tenant = {.tenant = "other", .state = -1, .limit = 100};
	assert_int_equal(list(bed, &tenant, &got), 3);
	struct uuid newest = make_id(9);
	assert_memory_equal(&got[0].id, &newest, sizeof newest);
	tenant.after = &newest;
	assert_int_equal(list(bed, &tenant, &got), 2);
	struct command_filter failures = {.state = COMMAND_FAILED, .limit = 100};
	assert_int_equal(list(bed, &failures, &got), 5);
	failures.tenant = "acme";
	assert_int_equal(list(bed, &failures, &got), 4);
	struct command_filter key = {.key = "k-6", .state = -1, .limit = 100};
	assert_int_equal(list(bed, &key, &got), 1);
	assert_string_equal(got[0].identity.tenant, "other");
	key.tenant = "acme";
	assert_int_equal(list(bed, &key, &got), 0);
	struct command_filter operation = {.operation = "create-payment", .state = -1, .limit = 100};
	assert_int_equal(list(bed, &operation, &got), 10);
	operation.operation = "other";
	assert_int_equal(list(bed, &operation, &got), 0);
	struct command_filter client = {.client = "app", .state = -1, .limit = 100};
	assert_int_equal(list(bed, &client, &got), 2);
	assert_text(got[0].client, "app");
	client.tenant = "acme";
	assert_int_equal(list(bed, &client, &got), 2);
	client.tenant = "other";
	assert_int_equal(list(bed, &client, &got), 0);
	struct command_filter none = {.state = -1, .limit = 0};
	assert_int_equal(list(bed, &none, &got), 0);
}

static void listed_command_is_whole(void **state)
{
	struct bed *bed = bed_of(state);
	struct command_row row = completed("k-1", 1), *got;
	struct command_filter all = {.state = -1, .limit = 9}, one = all;
	one.tenant = "acme";
	complete(bed, "k-1", 1);
	assert_int_equal(list(bed, &all, &got), 1);
	assert_row(&got[0], &row);
	assert_int_equal(list(bed, &one, &got), 1);
	assert_row(&got[0], &row);
}

static void audit_entries_are_listed_whole_newest_first(void **state)
{
	struct bed *bed = bed_of(state);
	struct audit_row *got;
	size_t got_count;
	struct uuid id = make_id(1);
	struct command_row row = completed("k-1", 1);
	struct audit_row expected = audit_of(&row);
	complete(bed, "k-1", 1);
	complete(bed, "k-2", 2);
	complete(bed, "k-3", 3);
	check(bed, bed->ops->list_audit(bed->store, &bed->arena, "acme", NULL, 2, &got, &got_count,
	                                &bed->err));
	assert_int_equal(got_count, 2);
	struct uuid newest = make_id(3);
	assert_memory_equal(&got[0].command_id, &newest, sizeof newest);
	check(bed, bed->ops->list_audit(bed->store, &bed->arena, "other", NULL, 9, &got, &got_count,
	                                &bed->err));
	assert_int_equal(got_count, 0);
	check(bed, bed->ops->list_audit(bed->store, &bed->arena, "acme", &id, 9, &got, &got_count,
	                                &bed->err));
	assert_int_equal(got_count, 1);
	assert_memory_equal(&got[0].id, &expected.command_id, sizeof expected.command_id);
	assert_memory_equal(&got[0].command_id, &expected.command_id, sizeof expected.command_id);
	assert_text(got[0].tenant, expected.tenant);
	assert_text(got[0].operation, expected.operation);
	assert_text(got[0].fact, expected.fact);
	assert_text(got[0].outcome, expected.outcome);
	assert_int_equal(got[0].contract_version, expected.contract_version);
	assert_text(got[0].client, expected.client);
	assert_text(got[0].actor, expected.actor);
	assert_text(got[0].resource_type, expected.resource_type);
	assert_text(got[0].resource_id, expected.resource_id);
	assert_text(got[0].correlation_id, expected.correlation_id);
	assert_text(got[0].causation_id, expected.causation_id);
	assert_text(got[0].traceparent, expected.traceparent);
	assert_text(got[0].tracestate, expected.tracestate);
	assert_memory_equal(&got[0].fingerprint, &expected.fingerprint, sizeof expected.fingerprint);
	assert_true(got[0].at_us == expected.at_us);
}

static void events_of_a_tenant_are_listed_newest_first(void **state)
{
	struct bed *bed = bed_of(state);
	struct event_row *got;
	struct outcome outcome;
	size_t got_count;
	for (unsigned i = 1; i <= 3; i++) {
		struct event_row event = event_of(i, 1, 0);
		char key[16];
		snprintf(key, sizeof key, "k-%u", i);
		check(bed, put_events(bed, key, i, &event, 1, &outcome));
	}
	check(bed, bed->ops->list_events(bed->store, &bed->arena, "acme", NULL, 2, &got, &got_count,
	                                 &bed->err));
	assert_int_equal(got_count, 2);
	assert_int_equal(got[0].version, 3);
	assert_int_equal(got[1].version, 2);
}

static void an_event_keeps_where_it_goes(void **state)
{
	struct bed *bed = bed_of(state);
	struct uuid ids[] = {make_id(1), make_id(2)};
	struct event_row placed = event_of(1, 1, 0), plain = event_of(2, 1, 0), *got;
	struct outcome outcome;
	size_t got_count;
	placed.topic = "payments.events.v1";
	placed.partition_key = "A-\xc3\xbc";
	placed.headers = "{\"event_version\":\"1\"}";
	check(bed, put_events(bed, "k-1", 1, &placed, 1, &outcome));
	check(bed, put_events(bed, "k-2", 2, &plain, 1, &outcome));
	check(bed, bed->ops->list_events(bed->store, &bed->arena, "acme", &ids[0], 2, &got, &got_count,
	                                 &bed->err));
	assert_int_equal(got_count, 1);
	assert_string_equal(got->topic, placed.topic);
	assert_string_equal(got->partition_key, placed.partition_key);
	assert_string_equal(got->headers, placed.headers);
	check(bed, bed->ops->list_events(bed->store, &bed->arena, "acme", &ids[1], 2, &got, &got_count,
	                                 &bed->err));
	assert_int_equal(got_count, 1);
	assert_null(got->topic);
	assert_string_equal(got->partition_key, plain.aggregate_id);
	assert_string_equal(got->headers, "{}");
}

/* ---- Human work ----------------------------------------------------------------------------- */

static struct exception_row exception_of(unsigned n, const char *subject_id)
{
	return (struct exception_row){
	    .tenant = "acme",
	    .id = make_id(n),
	    .queue = QUEUE_BUSINESS,
	    .severity = SEVERITY_HIGH,
	    .subject_type = "command",
	    .subject_id = subject_id,
	    .business_key = "k ü 'x'",
	    .source = "web",
	    .payload_ref = "sha256:00ff",
	    .reason = "HANDLER_ENDED_TRANSACTION",
	    .detail = "the handler ended the transaction",
	    .suggestion = "look whether it was done",
	    .owner = "payments",
	    .retryable = true,
	    .actions = "confirm-executed,confirm-not-executed",
	    .needs_approval = "confirm-executed",
	    .correlation_id = "corr-1",
	    .trace_id = "0af7651916cd43dd8448eb211c80319c",
	    .document_type = "payment",
	    .document_id = "p-1",
	    .opened_us = now_us,
	    .due_us = now_us + 4000000,
	};
}

static void assert_exception(const struct exception_row *got, const struct exception_row *expected)
{
	assert_text(got->tenant, expected->tenant);
	assert_memory_equal(&got->id, &expected->id, sizeof got->id);
	assert_int_equal(got->queue, expected->queue);
	assert_int_equal(got->state, expected->state);
	assert_int_equal(got->severity, expected->severity);
	assert_text(got->subject_type, expected->subject_type);
	assert_text(got->subject_id, expected->subject_id);
	assert_text(got->business_key, expected->business_key);
	assert_text(got->source, expected->source);
	assert_text(got->payload_ref, expected->payload_ref);
	assert_text(got->reason, expected->reason);
	assert_text(got->detail, expected->detail);
	assert_text(got->suggestion, expected->suggestion);
	assert_text(got->owner, expected->owner);
	assert_int_equal(got->retryable, expected->retryable);
	assert_text(got->actions, expected->actions);
	assert_text(got->correlation_id, expected->correlation_id);
	assert_text(got->document_type, expected->document_type);
	assert_text(got->document_id, expected->document_id);
	assert_true(got->opened_us == expected->opened_us);
	assert_true(got->due_us == expected->due_us);
	assert_true(got->resolved_us == expected->resolved_us);
	assert_text(got->resolution, expected->resolution);
	assert_text(got->resolved_by, expected->resolved_by);
	assert_text(got->note, expected->note);
	assert_text(got->trace_id, expected->trace_id);
	assert_text(got->needs_approval, expected->needs_approval ? expected->needs_approval : "");
	assert_text(got->assignee, expected->assignee);
}

/* In a transaction of its own, which leaves no command. */
static enum ibid_code open_exception(struct bed *bed, const struct exception_row *row)
{
	struct claim got;
	struct identity identity = identity_of("unused");
	struct work_context context = context_of(1);
	check(bed, bed->ops->claim(bed->store, &bed->arena, &identity, &context, &got, &bed->err));
	enum ibid_code code = bed->ops->put_exception(got.tx, row, &bed->err);
	struct outcome outcome;
	return end_with(bed, &got.tx, code, &outcome);
}

static enum ibid_code get_exception(struct bed *bed, const char *tenant, unsigned n,
                                    struct exception_row *ret)
{
	struct uuid id = make_id(n);
	return bed->ops->get_exception(bed->store, &bed->arena, tenant, &id, ret, &bed->err);
}

static size_t list_exceptions(struct bed *bed, const struct exception_filter *filter,
                              struct exception_row **ret)
{
	size_t got_count = 0;
	check(bed,
	      bed->ops->list_exceptions(bed->store, &bed->arena, filter, ret, &got_count, &bed->err));
	return got_count;
}

static void exception_comes_back_whole_within_its_tenant(void **state) /* J01, I9 */
{
	struct bed *bed = bed_of(state);
	struct exception_row row = exception_of(1, "c-1"), got, *listed;
	struct exception_row bare = {.tenant = "acme",
	                             .id = make_id(2),
	                             .queue = QUEUE_DATA_QUALITY,
	                             .severity = SEVERITY_LOW,
	                             .subject_type = "row",
	                             .subject_id = "",
	                             .reason = "NO_SUCH_VENDOR",
	                             .owner = "data",
	                             .actions = "",
	                             .opened_us = now_us};
	struct exception_filter all = {.queue = -1, .state = -1, .limit = 9};
	check(bed, open_exception(bed, &row));
	check(bed, open_exception(bed, &bare));
	check(bed, get_exception(bed, "acme", 1, &got));
	assert_exception(&got, &row);
	check(bed, get_exception(bed, "acme", 2, &got));
	assert_exception(&got, &bare);
	assert_int_equal(get_exception(bed, "other", 1, &got), IBID_NOT_FOUND);
	assert_int_equal(get_exception(bed, "acme", 3, &got), IBID_NOT_FOUND);
	assert_int_equal(list_exceptions(bed, &all, &listed), 2);
	assert_exception(&listed[0], &bare);
	assert_exception(&listed[1], &row);
	all.state = EXCEPTION_OPEN;
	assert_int_equal(list_exceptions(bed, &all, &listed), 2);
	assert_exception(&listed[1], &row);
}

static void exception_of_the_same_subject_is_opened_once(void **state) /* I8 */
{
	struct bed *bed = bed_of(state);
	struct exception_row row = exception_of(1, "c-1"), again = exception_of(2, "c-1"), *got;
	struct exception_filter all = {.queue = -1, .state = -1, .limit = 9};
	again.reason = "ANOTHER";
	again.owner = "somebody else";
	check(bed, open_exception(bed, &row));
	check(bed, open_exception(bed, &again));
	assert_int_equal(list_exceptions(bed, &all, &got), 1);
	assert_exception(&got[0], &row);
	/* Each part of what makes it the same counts. */
	struct exception_row tenant = again, queue = again, type = again, subject = again;
	tenant.tenant = "other";
	queue.id = make_id(3);
	queue.queue = QUEUE_SECURITY;
	type.id = make_id(4);
	type.subject_type = "effect";
	subject.id = make_id(5);
	subject.subject_id = "c-2";
	check(bed, open_exception(bed, &tenant));
	check(bed, open_exception(bed, &queue));
	check(bed, open_exception(bed, &type));
	check(bed, open_exception(bed, &subject));
	assert_int_equal(list_exceptions(bed, &all, &got), 5);
}

static struct measurement measure(struct bed *bed)
{
	struct measurement got;
	check(bed, bed->ops->measure(bed->store, &bed->arena, &got, &bed->err));
	return got;
}

static void measure_counts_what_has_no_outcome(void **state) /* K01 */
{
	struct bed *bed = bed_of(state);
	struct measurement got = measure(bed);
	assert_int_equal(got.commands + got.in_progress + got.stale + got.unknown + got.open, 0);
	assert_int_equal(got.owner_count, 0);
	stage(bed, "ended", 1, 7, 1);
	stage(bed, "running", 2, 7, hour_us);
	stage(bed, "locked", 3, 7, 0);
	struct tx *tx = claim_free(bed, "lost", 4);
	struct command_row unknown = failed("lost", 4);
	unknown.state = COMMAND_UNKNOWN;
	complete_row(bed, &tx, &unknown, NULL);
	tx = claim_free(bed, "other", 5);
	struct command_row other = failed("other", 5);
	complete_row(bed, &tx, &other, NULL);
	got = measure(bed);
	assert_int_equal(got.commands, 5);
	assert_int_equal(got.in_progress, 3);
	assert_int_equal(got.stale, 1);
	assert_int_equal(got.unknown, 1);
}

static void measure_counts_open_work_by_owner(void **state) /* K01 J01 */
{
	struct bed *bed = bed_of(state);
	struct exception_row resolved = exception_of(1, "c-1"), late = exception_of(2, "c-2"),
	                     never = exception_of(3, "c-3"), other = exception_of(4, "c-4");
	check(bed, open_exception(bed, &resolved));
	assert_true(backend->exec(backend->sql[SUITE_RESOLVE_EXCEPTIONS]));
	late.due_us = 1;
	never.due_us = 0;
	other.tenant = "other";
	other.owner = "audit";
	other.due_us = INT64_C(4102444800000000); /* 2100 */
	check(bed, open_exception(bed, &other));
	check(bed, open_exception(bed, &late));
	check(bed, open_exception(bed, &never));
	struct measurement got = measure(bed);
	assert_int_equal(got.open, 3);
	assert_int_equal(got.overdue, 1);
	assert_int_equal(got.owner_count, 2);
	assert_text(got.owners[0].owner, "payments");
	assert_int_equal(got.owners[0].open, 2);
	assert_int_equal(got.owners[0].overdue, 1);
	assert_text(got.owners[1].owner, "audit");
	assert_int_equal(got.owners[1].open, 1);
	assert_int_equal(got.owners[1].overdue, 0);
}

static void exception_of_a_resolved_subject_is_opened_anew(void **state) /* I8 */
{
	struct bed *bed = bed_of(state);
	struct exception_row row = exception_of(1, "c-1"), again = exception_of(2, "c-1"), *got;
	struct exception_filter filter = {.tenant = "acme", .queue = -1, .state = -1, .limit = 9};
	check(bed, open_exception(bed, &row));
	assert_true(backend->exec(backend->sql[SUITE_RESOLVE_EXCEPTIONS]));
	check(bed, open_exception(bed, &again));
	assert_int_equal(list_exceptions(bed, &filter, &got), 2);
	filter.state = EXCEPTION_OPEN;
	assert_int_equal(list_exceptions(bed, &filter, &got), 1);
	assert_exception(&got[0], &again);
	filter.state = EXCEPTION_RESOLVED;
	assert_int_equal(list_exceptions(bed, &filter, &got), 1);
	row.state = EXCEPTION_RESOLVED;
	row.resolved_us = now_us;
	row.resolution = "confirm-executed";
	row.resolved_by = "ann";
	row.note = "seen on the statement";
	assert_exception(&got[0], &row);
}

static enum ibid_code resolve_exception(struct bed *bed, const struct exception_end *how,
                                        bool commits)
{
	struct claim got;
	struct identity identity = identity_of("unused");
	struct work_context context = context_of(1);
	struct outcome outcome;
	check(bed, bed->ops->claim(bed->store, &bed->arena, &identity, &context, &got, &bed->err));
	enum ibid_code code = bed->ops->resolve_exception(got.tx, how, &bed->err);
	if (commits)
		return end_with(bed, &got.tx, code, &outcome);
	bed->ops->rollback(&got.tx);
	return code;
}

static void exception_is_resolved_with_what_ends_its_trouble(void **state) /* I1 I8 */
{
	struct bed *bed = bed_of(state);
	struct exception_row row = exception_of(1, "c-1"), others[4], got;
	for (unsigned i = 0; i < 4; i++)
		others[i] = exception_of(2 + i, i == 3 ? "c-2" : "c-1");
	others[0].tenant = "other";
	others[1].queue = QUEUE_SECURITY;
	others[2].subject_type = "effect";
	struct exception_end how = {.tenant = "acme",
	                            .queue = row.queue,
	                            .subject_type = row.subject_type,
	                            .subject_id = "c-1",
	                            .resolved_us = now_us + 1,
	                            .resolution = "confirmed-executed",
	                            .resolved_by = "recovery",
	                            .note = "found by looking"};
	check(bed, resolve_exception(bed, &how, true)); /* there is none: that is success */
	check(bed, open_exception(bed, &row));
	for (unsigned i = 0; i < 4; i++)
		check(bed, open_exception(bed, &others[i]));
	check(bed, resolve_exception(bed, &how, false));
	check(bed, get_exception(bed, "acme", 1, &got));
	assert_exception(&got, &row); /* rolled back */
	check(bed, resolve_exception(bed, &how, true));
	how.resolution = "confirmed-not-executed";
	how.note = NULL;
	check(bed, resolve_exception(bed, &how, true)); /* it stays as it was resolved */
	row.state = EXCEPTION_RESOLVED;
	row.resolved_us = now_us + 1;
	row.resolution = "confirmed-executed";
	row.resolved_by = "recovery";
	row.note = "found by looking";
	check(bed, get_exception(bed, "acme", 1, &got));
	assert_exception(&got, &row);
	for (unsigned i = 0; i < 4; i++) {
		check(bed, get_exception(bed, others[i].tenant, 2 + i, &got));
		assert_exception(&got, &others[i]);
	}
}

/* ---- What people do ------------------------------------------------------------------------- */

static struct tx *begin_action(struct bed *bed)
{
	struct tx *tx = NULL;
	check(bed, bed->ops->begin_action(bed->store, &tx, &bed->err));
	return tx;
}

/* What the verbs said, or the commit did. */
static enum ibid_code end_action(struct bed *bed, struct tx *tx, enum ibid_code code)
{
	struct outcome outcome;
	return end_with(bed, &tx, code, &outcome);
}

static struct action_row action_of(unsigned n, const char *subject_id)
{
	return (struct action_row){
	    .tenant = "acme",
	    .id = make_id(n),
	    .at_us = now_us + n,
	    .actor = "ann",
	    .token = "0123456789abcdef",
	    .role = "operator",
	    .action = "assign",
	    .subject_type = "exception",
	    .subject_id = subject_id,
	    .reason = "it's hers ü",
	    .parameters = "{\"assignee\":\"bea\"}",
	    .approval_id = make_id(77),
	};
}

static void assert_action(const struct action_row *got, const struct action_row *expected)
{
	assert_text(got->tenant, expected->tenant);
	assert_memory_equal(&got->id, &expected->id, sizeof got->id);
	assert_true(got->at_us == expected->at_us);
	assert_text(got->actor, expected->actor);
	assert_text(got->token, expected->token);
	assert_text(got->role, expected->role);
	assert_text(got->action, expected->action);
	assert_text(got->subject_type, expected->subject_type);
	assert_text(got->subject_id, expected->subject_id);
	assert_text(got->reason, expected->reason);
	assert_text(got->parameters, expected->parameters);
	assert_memory_equal(&got->approval_id, &expected->approval_id, sizeof got->approval_id);
}

static size_t list_actions(struct bed *bed, const char *tenant, const char *subject_id,
                           struct action_row **ret)
{
	size_t got_count = 0;
	check(bed, bed->ops->list_actions(bed->store, &bed->arena, tenant, "exception", subject_id, 9,
	                                  ret, &got_count, &bed->err));
	return got_count;
}

static enum ibid_code put_action(struct bed *bed, const struct action_row *row)
{
	struct tx *tx = begin_action(bed);
	return end_action(bed, tx, bed->ops->put_action(tx, row, &bed->err));
}

static void actions_come_back_oldest_first_within_their_subject(void **state) /* J02 I3 I9 */
{
	struct bed *bed = bed_of(state);
	struct action_row first = action_of(1, "e-1"), second = action_of(2, "e-1"),
	                  other = action_of(3, "e-2"), foreign = action_of(4, "e-1"), *got;
	second.parameters = NULL;
	second.approval_id = (struct uuid){{0}};
	foreign.tenant = "other";
	check(bed, put_action(bed, &second));
	check(bed, put_action(bed, &first));
	check(bed, put_action(bed, &other));
	check(bed, put_action(bed, &foreign));
	assert_int_equal(list_actions(bed, "acme", "e-1", &got), 2);
	assert_action(&got[0], &first);
	assert_action(&got[1], &second);
	assert_int_equal(list_actions(bed, "other", "e-1", &got), 1);
	assert_int_equal(list_actions(bed, "other", "e-2", &got), 0);
}

static enum ibid_code assign_exception(struct bed *bed, unsigned n, const char *owner,
                                       const char *assignee)
{
	struct exception_assignment to = {
	    .tenant = "acme", .id = make_id(n), .owner = owner, .assignee = assignee};
	struct action_row action = action_of(1000 + n, "e-1");
	struct tx *tx = begin_action(bed);
	enum ibid_code code = bed->ops->assign_exception(tx, &to, &bed->err);
	if (!code)
		code = bed->ops->put_action(tx, &action, &bed->err);
	return end_action(bed, tx, code);
}

static void an_open_exception_is_assigned_and_a_resolved_one_is_not(void **state) /* J01 I1 */
{
	struct bed *bed = bed_of(state);
	struct exception_row row = exception_of(1, "c-1"), other = exception_of(2, "c-2"), got, *listed;
	struct exception_filter of_bea = {
	    .tenant = "acme", .queue = -1, .state = -1, .assignee = "bea", .limit = 9};
	struct action_row *actions;
	check(bed, open_exception(bed, &row));
	check(bed, open_exception(bed, &other));
	assert_int_equal(list_exceptions(bed, &of_bea, &listed), 0);
	check(bed, assign_exception(bed, 1, NULL, "bea"));
	row.assignee = "bea";
	check(bed, get_exception(bed, "acme", 1, &got));
	assert_exception(&got, &row); /* the team stays */
	assert_int_equal(list_exceptions(bed, &of_bea, &listed), 1);
	of_bea.state = EXCEPTION_OPEN;
	assert_int_equal(list_exceptions(bed, &of_bea, &listed), 1);
	assert_exception(&listed[0], &row);
	assert_true(backend->exec(backend->sql[SUITE_RESOLVE_EXCEPTIONS]));
	assert_int_equal(assign_exception(bed, 2, "audit", NULL), IBID_RETRY);
	assert_int_equal(assign_exception(bed, 3, "audit", NULL), IBID_RETRY); /* there is none */
	assert_int_equal(list_actions(bed, "acme", "e-1", &actions), 1);       /* I1 */
}

static struct approval_row approval_of(unsigned n, const char *subject_id)
{
	return (struct approval_row){
	    .tenant = "acme",
	    .id = make_id(n),
	    .subject_type = "exception",
	    .subject_id = subject_id,
	    .action = "confirm-executed",
	    .parameters = "{\"status\":201}",
	    .proposed_by = "ann",
	    .proposed_token = "0123456789abcdef",
	    .reason = "seen on the statement",
	    .proposed_us = now_us + n,
	};
}

static enum ibid_code put_approval(struct bed *bed, const struct approval_row *row)
{
	struct tx *tx = begin_action(bed);
	return end_action(bed, tx, bed->ops->put_approval(tx, row, &bed->err));
}

static enum ibid_code decide_approval(struct bed *bed, unsigned n, enum approval_decision decision,
                                      const char *by)
{
	struct approval_end how = {.tenant = "acme",
	                           .id = make_id(n),
	                           .decision = decision,
	                           .decided_by = by,
	                           .decided_token = "fedcba9876543210",
	                           .decided_reason = "so it is",
	                           .parameters = "{}",
	                           .decided_us = now_us + 9};
	struct tx *tx = begin_action(bed);
	return end_action(bed, tx, bed->ops->decide_approval(tx, &how, &bed->err));
}

static size_t list_approvals(struct bed *bed, const char *subject_id, struct approval_row **ret)
{
	size_t got_count = 0;
	check(bed, bed->ops->list_approvals(bed->store, &bed->arena, "acme", "exception", subject_id, 9,
	                                    ret, &got_count, &bed->err));
	return got_count;
}

static void one_proposal_waits_per_subject_and_is_decided_once(void **state) /* J02 */
{
	struct bed *bed = bed_of(state);
	struct approval_row row = approval_of(1, "e-1"), again = approval_of(2, "e-1"),
	                    other = approval_of(3, "e-2"), *got;
	check(bed, put_approval(bed, &row));
	assert_int_equal(put_approval(bed, &again), IBID_RETRY);
	check(bed, put_approval(bed, &other));
	assert_int_equal(list_approvals(bed, "e-1", &got), 1);
	assert_text(got->action, "confirm-executed");
	assert_text(got->parameters, "{\"status\":201}");
	assert_text(got->proposed_by, "ann");
	assert_text(got->proposed_token, "0123456789abcdef");
	assert_text(got->reason, "seen on the statement");
	assert_true(got->proposed_us == row.proposed_us);
	assert_int_equal(got->decision, APPROVAL_WAITS);
	assert_null(got->decided_by);
	assert_int_not_equal(decide_approval(bed, 1, APPROVAL_APPROVED, "ann"), IBID_OK); /* herself */
	assert_int_equal(decide_approval(bed, 9, APPROVAL_DECLINED, "bob"), IBID_RETRY);
	check(bed, decide_approval(bed, 1, APPROVAL_DECLINED, "bob"));
	assert_int_equal(decide_approval(bed, 1, APPROVAL_APPROVED, "eve"), IBID_RETRY);
	check(bed, put_approval(bed, &again)); /* the first one does not wait any more */
	check(bed, decide_approval(bed, 2, APPROVAL_APPROVED, "bob"));
	assert_int_equal(list_approvals(bed, "e-1", &got), 2);
	assert_memory_equal(&got[0].id, &again.id, sizeof again.id); /* the newest first */
	assert_int_equal(got[0].decision, APPROVAL_APPROVED);
	assert_int_equal(got[1].decision, APPROVAL_DECLINED);
	assert_text(got[1].decided_by, "bob");
	assert_text(got[1].decided_token, "fedcba9876543210");
	assert_text(got[1].decided_reason, "so it is");
	assert_text(got[1].parameters, "{}");
	assert_true(got[1].decided_us == now_us + 9);
}

static enum ibid_code end_item(struct bed *bed, unsigned n, const struct uuid *approval)
{
	struct uuid id = make_id(n);
	struct exception_end how = {.tenant = "acme",
	                            .id = &id,
	                            .approval = approval,
	                            .resolved_us = now_us + 5,
	                            .resolution = "confirm-executed",
	                            .resolved_by = "ann",
	                            .note = "seen"};
	struct tx *tx = begin_action(bed);
	return end_action(bed, tx, bed->ops->resolve_exception(tx, &how, &bed->err));
}

static const char *propose_for(struct bed *bed, unsigned item, unsigned n)
{
	char *id = arena_alloc(&bed->arena, UUID_TEXT_SIZE);
	uuid_write(make_id(item), id);
	struct approval_row row = approval_of(n, id);
	check(bed, put_approval(bed, &row));
	return id;
}

static void what_was_proposed_lapses_with_its_exception(void **state) /* I1 J02 */
{
	struct bed *bed = bed_of(state);
	struct exception_row row = exception_of(1, "c-1"), second = exception_of(2, "c-2"),
	                     third = exception_of(3, "c-3"), got;
	struct exception_end of_subject = {.tenant = "acme",
	                                   .queue = QUEUE_BUSINESS,
	                                   .subject_type = "command",
	                                   .subject_id = "c-3",
	                                   .resolved_us = now_us,
	                                   .resolution = "confirmed-executed",
	                                   .resolved_by = "recovery"};
	struct approval_row *approvals;
	struct uuid kept = make_id(12);
	check(bed, open_exception(bed, &row));
	check(bed, open_exception(bed, &second));
	check(bed, open_exception(bed, &third));
	const char *first_id = propose_for(bed, 1, 11), *second_id = propose_for(bed, 2, 12),
	           *third_id = propose_for(bed, 3, 13);
	check(bed, end_item(bed, 1, NULL));
	assert_int_equal(end_item(bed, 1, NULL), IBID_RETRY); /* it is not open any more */
	check(bed, get_exception(bed, "acme", 1, &got));
	assert_int_equal(got.state, EXCEPTION_RESOLVED);
	assert_text(got.resolved_by, "ann");
	assert_int_equal(list_approvals(bed, first_id, &approvals), 1);
	assert_int_equal(approvals->decision, APPROVAL_LAPSED);
	assert_text(approvals->decided_by, "ann");
	assert_null(approvals->parameters);
	check(bed, end_item(bed, 2, &kept)); /* that one is decided otherwise */
	assert_int_equal(list_approvals(bed, second_id, &approvals), 1);
	assert_int_equal(approvals->decision, APPROVAL_WAITS);
	check(bed, resolve_exception(bed, &of_subject, true));
	assert_int_equal(list_approvals(bed, third_id, &approvals), 1);
	assert_int_equal(approvals->decision, APPROVAL_LAPSED);
	assert_text(approvals->decided_by, "recovery");
}

static void exception_commits_with_its_command_or_not_at_all(void **state) /* I1 */
{
	struct bed *bed = bed_of(state);
	struct exception_row row = exception_of(1, "c-1"), *got;
	struct exception_filter all = {.queue = -1, .state = -1, .limit = 9};
	struct command_row unknown = failed("k-1", 1);
	unknown.state = COMMAND_UNKNOWN;
	struct tx *tx = claim_free(bed, "k-1", 1);
	check(bed, bed->ops->put_command(tx, &unknown, NULL, &bed->err));
	check(bed, bed->ops->put_exception(tx, &row, &bed->err));
	bed->ops->rollback(&tx);
	assert_counts(0, 0, 0);
	assert_int_equal(list_exceptions(bed, &all, &got), 0);
	tx = claim_free(bed, "k-1", 1);
	check(bed, bed->ops->put_command(tx, &unknown, NULL, &bed->err));
	check(bed, bed->ops->put_exception(tx, &row, &bed->err));
	check(bed, end(bed, &tx));
	assert_counts(1, 0, 0);
	assert_int_equal(list_exceptions(bed, &all, &got), 1);
}

static void exception_without_reason_or_owner_can_not_be_opened(void **state) /* I8 */
{
	struct bed *bed = bed_of(state);
	struct exception_row nobody = exception_of(1, "c-1"), no_reason = nobody, *got;
	struct exception_filter all = {.queue = -1, .state = -1, .limit = 9};
	nobody.owner = "";
	no_reason.reason = "";
	assert_int_not_equal(open_exception(bed, &nobody), IBID_OK);
	assert_int_not_equal(open_exception(bed, &no_reason), IBID_OK);
	assert_int_equal(list_exceptions(bed, &all, &got), 0);
}

static void exceptions_are_listed_newest_first_page_by_page(void **state) /* J01 */
{
	struct bed *bed = bed_of(state);
	static const int states[] = {-1, EXCEPTION_OPEN};
	static const char *const tenants[] = {NULL, "acme"};
	for (unsigned n = 1; n <= 10; n++) {
		char subject[16];
		snprintf(subject, sizeof subject, "c-%u", n);
		struct exception_row row = exception_of(n, subject);
		if (n % 2)
			row.tenant = "other";
		check(bed, open_exception(bed, &row));
	}
	for (size_t k = 0; k < 4; k++) {
		struct exception_filter filter = {
		    .tenant = tenants[k % 2], .queue = -1, .state = states[k / 2], .limit = 4};
		struct exception_row *got;
		unsigned expected = 10;
		for (size_t n; (n = list_exceptions(bed, &filter, &got)) > 0; filter.after = &got[n - 1].id)
			for (size_t i = 0; i < n; i++, expected -= filter.tenant ? 2 : 1) {
				struct uuid id = make_id(expected);
				assert_in_range(n, 1, 4);
				assert_memory_equal(&got[i].id, &id, sizeof id);
			}
		assert_int_equal(expected, 0);
	}
}

static void exceptions_are_listed_by_queue_state_owner_and_subject(void **state) /* J01 */
{
	struct bed *bed = bed_of(state);
	struct exception_row row = exception_of(1, "c-1"), *got;
	check(bed, open_exception(bed, &row));
	row.id = make_id(2);
	row.queue = QUEUE_SECURITY;
	row.owner = "guards";
	check(bed, open_exception(bed, &row));
	row.id = make_id(3);
	row.tenant = "other";
	row.subject_type = "effect";
	row.subject_id = "e-1";
	check(bed, open_exception(bed, &row));
	static const int states[] = {-1, EXCEPTION_OPEN};
	for (size_t k = 0; k < 2; k++) {
		const struct exception_filter every = {.queue = -1, .state = states[k], .limit = 9};
		struct exception_filter filter = every;
		assert_int_equal(list_exceptions(bed, &filter, &got), 3);
		filter.queue = QUEUE_SECURITY;
		assert_int_equal(list_exceptions(bed, &filter, &got), 2);
		filter.tenant = "acme";
		assert_int_equal(list_exceptions(bed, &filter, &got), 1);
		filter.queue = QUEUE_DEAD_LETTER;
		assert_int_equal(list_exceptions(bed, &filter, &got), 0);
		filter = every;
		filter.owner = "guards";
		assert_int_equal(list_exceptions(bed, &filter, &got), 2);
		filter = every;
		filter.subject_type = "command";
		filter.subject_id = "c-1";
		assert_int_equal(list_exceptions(bed, &filter, &got), 2);
		filter.subject_type = "effect";
		assert_int_equal(list_exceptions(bed, &filter, &got), 0);
		filter = every;
		filter.limit = 0;
		assert_int_equal(list_exceptions(bed, &filter, &got), 0);
	}
	struct exception_filter resolved = {.queue = -1, .state = EXCEPTION_RESOLVED, .limit = 9};
	assert_int_equal(list_exceptions(bed, &resolved, &got), 0);
}

static void every_queue_and_severity_is_kept(void **state) /* J01: five queues */
{
	struct bed *bed = bed_of(state);
	assert_int_equal(EXCEPTION_QUEUE_COUNT, 5);
	for (unsigned q = 0; q < EXCEPTION_QUEUE_COUNT; q++) {
		for (unsigned s = 0; s < EXCEPTION_SEVERITY_COUNT; s++) {
			unsigned n = 1 + q * EXCEPTION_SEVERITY_COUNT + s;
			char subject[16];
			snprintf(subject, sizeof subject, "c-%u", n);
			struct exception_row row = exception_of(n, subject), got;
			row.queue = (enum exception_queue)q;
			row.severity = (enum exception_severity)s;
			check(bed, open_exception(bed, &row));
			check(bed, get_exception(bed, "acme", n, &got));
			assert_exception(&got, &row);
		}
	}
}

struct opening {
	struct bed *bed;
	unsigned n;
	enum ibid_code code;
};

static void *open_in_thread(void *user)
{
	struct opening *self = user;
	struct store *store = self->bed->store;
	struct arena arena = {0};
	struct ibid_err err;
	struct outcome outcome;
	struct claim got = {.tx = NULL};
	char key[16];
	snprintf(key, sizeof key, "k-%u", self->n);
	struct identity identity = identity_of(key);
	struct work_context context = context_of(self->n);
	struct exception_row row = exception_of(self->n, "c-1");
	self->code = store->ops->claim(store, &arena, &identity, &context, &got, &err);
	if (!self->code)
		self->code = store->ops->put_exception(got.tx, &row, &err);
	if (!self->code)
		self->code = store->ops->commit(&got.tx, &arena, &outcome, &err);
	store->ops->rollback(&got.tx);
	arena_release(&arena);
	return NULL;
}

static void exception_opened_by_many_at_once_is_one(void **state) /* I8 */
{
	struct bed *bed = bed_of(state);
	enum { THREADS = 8 };
	pthread_t threads[THREADS];
	struct opening openings[THREADS];
	struct exception_row *got;
	struct exception_filter all = {.queue = -1, .state = -1, .limit = 9};
	for (unsigned i = 0; i < THREADS; i++) {
		openings[i] = (struct opening){.bed = bed, .n = i + 1};
		assert_int_equal(pthread_create(&threads[i], NULL, open_in_thread, &openings[i]), 0);
	}
	for (unsigned i = 0; i < THREADS; i++) {
		pthread_join(threads[i], NULL);
		assert_int_equal(openings[i].code, IBID_OK);
	}
	assert_int_equal(list_exceptions(bed, &all, &got), 1);
}

/* ---- Indexes and the doctor ------------------------------------------------------------------ */

static struct index_row index_of(struct bed *bed, const char *name)
{
	struct index_row row = {0};
	check(bed, bed->ops->describe_index(bed->store, &bed->arena, name, &row, &bed->err));
	return row;
}

/* A08 */
static void index_is_described_as_it_is(void **state)
{
	struct bed *bed = bed_of(state);
	struct index_row row = index_of(bed, "payment_reference");
	assert_text(row.table, "payment");
	assert_text(row.columns, "tenant, reference");
	assert_true(row.unique && row.valid && !row.partial);
	row = index_of(bed, "payment_one_active");
	assert_text(row.columns, "tenant, customer");
	assert_true(row.unique && row.valid && row.partial);
	assert_true(backend->exec("create index payment_note on payment (note)"));
	row = index_of(bed, "payment_note");
	assert_text(row.columns, "note");
	assert_true(!row.unique && row.valid && !row.partial);
	static const char *const none[] = {"payment", "PAYMENT_NOTE", "payment_not", "", "'; --"};
	for (size_t i = 0; i < sizeof none / sizeof *none; i++)
		assert_int_equal(
		    bed->ops->describe_index(bed->store, &bed->arena, none[i], &row, &bed->err),
		    IBID_NOT_FOUND);
}

struct findings {
	int worst;
	bool schema_refused;
};

static void note_finding(void *user, enum finding_level level, const char *what, const char *advice)
{
	struct findings *findings = user;
	assert_non_null(what);
	assert_non_null(advice);
	if (level != FINDING_OK)
		assert_true(*advice);
	if ((int)level > findings->worst)
		findings->worst = (int)level;
	findings->schema_refused |= level == FINDING_REFUSE && strstr(what, "schema");
}

static void doctor_refuses_a_store_without_schema_only(void **state)
{
	struct bed *bed = bed_of(state);
	struct findings before = {-1, false}, after = {-1, false};
	int from, to;
	check(bed, bed->ops->doctor(bed->store, note_finding, &before, &bed->err));
	assert_true(before.schema_refused);
	check(bed, bed->ops->migrate(bed->store, &from, &to, &bed->err));
	check(bed, bed->ops->doctor(bed->store, note_finding, &after, &bed->err));
	assert_in_range(after.worst, FINDING_OK, FINDING_WARN);
}

#define EMPTY(name) cmocka_unit_test_setup_teardown(name, open_empty, close_bed)
#define READY(name) cmocka_unit_test_setup_teardown(name, open_ready, close_bed)

/* ---- In a transaction of the caller's ------------------------------------------------------- */

/* As the contract below makes it. */
static struct identity adopted_identity(const char *key)
{
	return (struct identity){"acme", "create-payment", "[\"web\"]", key};
}

/* Where an engine decides by itself, it reads this. */
static void keep_contract(struct bed *bed)
{
	static const char text[] =
	    "{\"answer\":{\"store\":\"full\"},\"command\":\"create-payment\",\"emits\":["
	    "\"PaymentCreated\"],\"fact\":\"a payment order is accepted\",\"failures\":{\"business\":"
	    "\"final\",\"server\":\"retry\",\"validation\":\"final\"},\"fields\":{},\"key\":{"
	    "\"after_expiry\":\"refuse\",\"from\":\"header\",\"retain\":\"1d\",\"scope\":[\"client\"]},"
	    "\"same_payload\":{\"context\":[]},\"unknown_fields\":\"keep\",\"version\":3}";
	check(bed, bed->ops->put_contract(bed->store,
	                                  &(struct contract_row){.kind = "command",
	                                                         .name = "create-payment",
	                                                         .version = 3,
	                                                         .digest = sha256(text, strlen(text)),
	                                                         .text = text,
	                                                         .at_us = now_us},
	                                  &bed->err));
}

/* What the ledger would say, where the engine does not decide. */
static enum ibid_code plan_by_state(void *user, const struct command_row *found, struct plan *ret,
                                    struct ibid_err *err)
{
	(void)err;
	ret->verdict = found ? VERDICT_REPLAY : VERDICT_RUN;
	ret->row = *(const struct command_row *)user;
	return IBID_OK;
}

static struct begun begin_adopted(struct bed *bed, struct tx *tx, const char *key, unsigned n)
{
	struct command_row row = completed(key, n);
	struct begun begun;
	row.identity = adopted_identity(key);
	row.state = COMMAND_IN_PROGRESS;
	row.audit_id = (struct uuid){{0}};
	row.body = NULL;
	struct beginning beginning = {
	    .identity = row.identity,
	    .payload = "{\"amount\":12.5}",
	    .contract_version = 3,
	    .client = "web",
	    .actor = "u7",
	    .correlation_id = "corr-1",
	    .plan = plan_by_state,
	    .user = &row,
	};
	check(bed, bed->ops->begin_adopted(tx, &bed->arena, &beginning, &begun, &bed->err));
	return begun;
}

static enum ibid_code finish_adopted(struct bed *bed, struct tx *tx, const struct begun *begun,
                                     int64_t version)
{
	struct command_row row = completed(begun->row.identity.key, 1);
	row.identity = begun->row.identity;
	row.id = row.audit_id = begun->row.id;
	struct audit_row audit = audit_of(&row);
	struct event_row event = event_of(1, 1, version);
	struct outcome outcome = {
	    .status = row.status,
	    .body = row.body,
	    .body_size = row.body_size,
	    .resource_type = row.resource_type,
	    .resource_id = row.resource_id,
	    .found = true,
	};
	event.command_id = row.id;
	struct finishing ending = {
	    .row = &row,
	    .previous = &begun->row,
	    .outcome = &outcome,
	    .audit = &audit,
	    .events = &event,
	    .event_count = 1,
	};
	return bed->ops->finish_adopted(tx, &ending, &bed->err);
}

static void adopted_command_is_whole_in_the_callers_commit(void **state)
{
	struct bed *bed = bed_of(state);
	void *own = backend->connect();
	struct tx *tx = NULL;
	struct command_row row;
	keep_contract(bed);
	assert_true(backend->run(own, "begin"));
	check(bed, bed->ops->adopt(bed->store, own, &tx, &bed->err));
	struct begun begun = begin_adopted(bed, tx, "k-1", 1);
	assert_int_equal(begun.verdict, VERDICT_RUN);
	assert_int_equal(begun.row.state, COMMAND_IN_PROGRESS);
	assert_counts(0, 0, 0);
	check(bed, finish_adopted(bed, tx, &begun, 1));
	assert_int_equal(finish_adopted(bed, tx, &begun, 2), IBID_MISUSE); /* once */
	assert_int_equal(begin_adopted(bed, tx, "k-1", 2).verdict, VERDICT_REPLAY);
	bed->ops->release_adopted(&tx);
	assert_null(tx);
	bed->ops->release_adopted(&tx);
	assert_true(backend->run(own, "commit"));
	assert_counts(1, 1, 1);
	check(bed, bed->ops->get_command(bed->store, &bed->arena, "acme", &begun.row.id, NULL, &row,
	                                 &bed->err));
	assert_int_equal(row.state, COMMAND_COMPLETED);
	assert_text(row.body, "{\"id\":\"p-1\"}");
	assert_text(row.resource_id, "p-1");
	assert_memory_equal(&row.audit_id, &begun.row.id, sizeof row.audit_id);
	assert_true(backend->run(own, "begin"));
	check(bed, bed->ops->adopt(bed->store, own, &tx, &bed->err));
	begun = begin_adopted(bed, tx, "k-1", 3);
	assert_int_equal(begun.verdict, VERDICT_REPLAY);
	assert_text(begun.row.body, "{\"id\":\"p-1\"}");
	bed->ops->release_adopted(&tx);
	assert_true(backend->run(own, "commit"));
	backend->disconnect(own);
}

static void adopted_command_that_is_unfinished_can_not_be_committed(void **state)
{
	struct bed *bed = bed_of(state);
	void *own = backend->connect();
	struct tx *tx = NULL;
	keep_contract(bed);
	for (int refused_event = 0; refused_event < 2; refused_event++) {
		assert_true(backend->run(own, "begin"));
		check(bed, bed->ops->adopt(bed->store, own, &tx, &bed->err));
		struct begun begun = begin_adopted(bed, tx, "k-1", 1);
		if (refused_event) {
			assert_int_equal(finish_adopted(bed, tx, &begun, 7), IBID_FAILED);
			assert_non_null(strstr(bed->err.text, "VERSION_CONFLICT"));
		}
		bed->ops->release_adopted(&tx);
		assert_false(backend->run(own, "commit"));
		(void)backend->run(own, "rollback");
		assert_counts(0, 0, 0);
	}
	backend->disconnect(own);
}

static void connection_without_a_transaction_is_not_adopted(void **state)
{
	struct bed *bed = bed_of(state);
	void *own = backend->connect();
	struct tx *tx = NULL;
	assert_int_equal(bed->ops->adopt(bed->store, own, &tx, &bed->err), IBID_MISUSE);
	assert_int_equal(bed->ops->adopt(bed->store, NULL, &tx, &bed->err), IBID_MISUSE);
	assert_null(tx);
	backend->disconnect(own);
}

/* ---- Tokens --------------------------------------------------------------------------------- */

static struct token_row token_of(unsigned n, const char *tenant)
{
	struct token_row row = {
	    .tenant = tenant,
	    .client = "web ü",
	    .roles = ROLE_CLIENT | ROLE_ADMIN,
	    .created_by = "ann",
	    .created_us = now_us + n,
	    .expires_us = now_us + 4000000,
	};
	snprintf(row.token.id, sizeof row.token.id, "%016x", 99 - n); /* ids tell nothing about age */
	row.token.digest = sha256(row.token.id, TOKEN_ID_SIZE - 1);
	return row;
}

static void put_token(struct bed *bed, const struct token_row *row)
{
	check(bed, bed->ops->put_token(bed->store, row, &bed->err));
}

static struct token_row get_token(struct bed *bed, const char *id)
{
	struct token_row row;
	check(bed, bed->ops->get_token(bed->store, &bed->arena, id, &row, &bed->err));
	return row;
}

static void assert_token(const struct token_row *got, const struct token_row *expected)
{
	assert_text(got->token.id, expected->token.id);
	assert_memory_equal(&got->token.digest, &expected->token.digest, sizeof got->token.digest);
	assert_text(got->tenant, expected->tenant);
	assert_text(got->client, expected->client);
	assert_int_equal(got->roles, expected->roles);
	assert_text(got->created_by, expected->created_by);
	assert_true(got->created_us == expected->created_us);
	assert_true(got->expires_us == expected->expires_us);
	assert_true(got->revoked_us == expected->revoked_us);
	assert_text(got->revoked_by, expected->revoked_by);
}

static void token_comes_back_whole_and_its_id_is_taken(void **state) /* K05 */
{
	struct bed *bed = bed_of(state);
	struct token_row row = token_of(1, "acme"), bare = token_of(2, "other"), got;
	bare.roles = ROLE_OPERATOR;
	bare.expires_us = 0;
	put_token(bed, &row);
	put_token(bed, &bare);
	got = get_token(bed, row.token.id);
	assert_token(&got, &row);
	got = get_token(bed, bare.token.id);
	assert_token(&got, &bare);
	struct token_row taken = bare;
	memcpy(taken.token.id, row.token.id, sizeof taken.token.id);
	assert_int_equal(bed->ops->put_token(bed->store, &taken, &bed->err), IBID_RETRY);
	got = get_token(bed, row.token.id);
	assert_token(&got, &row);
	assert_int_equal(bed->ops->get_token(bed->store, &bed->arena, "", &got, &bed->err),
	                 IBID_NOT_FOUND);
}

static void token_is_revoked_once_and_for_good(void **state) /* K05 */
{
	struct bed *bed = bed_of(state);
	struct token_row row = token_of(1, "acme"), other = token_of(2, "acme"), got;
	const char *id = row.token.id;
	put_token(bed, &row);
	put_token(bed, &other);
	row.revoked_us = now_us + 7;
	row.revoked_by = "ben";
	check(bed, bed->ops->revoke_token(bed->store, id, "ben", now_us + 7, &bed->err));
	check(bed, bed->ops->revoke_token(bed->store, id, "eve", now_us + 8, &bed->err));
	got = get_token(bed, id);
	assert_token(&got, &row);
	got = get_token(bed, other.token.id);
	assert_token(&got, &other);
	assert_int_equal(
	    bed->ops->revoke_token(bed->store, "0000000000000000", "ben", now_us, &bed->err),
	    IBID_NOT_FOUND);
}

static size_t list_tokens(struct bed *bed, struct token_filter filter, struct token_row **ret)
{
	size_t listed = 0;
	check(bed, bed->ops->list_tokens(bed->store, &bed->arena, &filter, ret, &listed, &bed->err));
	return listed;
}

static void tokens_are_listed_newest_first_page_by_page(void **state) /* K05 */
{
	struct bed *bed = bed_of(state);
	struct token_row rows[5], *listed = NULL;
	for (unsigned n = 0; n < 5; n++) {
		rows[n] = token_of(n, n == 2 ? "other" : "acme");
		rows[n].created_us = now_us + n / 2; /* two of them at one instant */
		put_token(bed, &rows[n]);
	}
	static const unsigned order[] = {4, 2, 3, 0, 1};
	assert_int_equal(list_tokens(bed, (struct token_filter){.limit = 9}, &listed), 5);
	for (size_t i = 0; i < 5; i++)
		assert_token(&listed[i], &rows[order[i]]);
	const char *after = NULL;
	for (size_t i = 0; i < 5; i++) {
		struct token_filter page = {.after = after, .limit = 1};
		assert_int_equal(list_tokens(bed, page, &listed), 1);
		assert_token(&listed[0], &rows[order[i]]);
		after = listed[0].token.id;
	}
	assert_int_equal(list_tokens(bed, (struct token_filter){.after = after, .limit = 1}, &listed),
	                 0);
	assert_int_equal(
	    list_tokens(bed, (struct token_filter){.tenant = "other", .limit = 9}, &listed), 1);
	assert_token(&listed[0], &rows[2]);
	assert_int_equal(list_tokens(bed, (struct token_filter){.after = "-", .limit = 9}, &listed), 0);
}

/* ---- Outbox --------------------------------------------------------------------------------- */

/* One event that goes somewhere, of a command of its own. */
static void send_event(struct bed *bed, unsigned n, const char *aggregate_id)
{
	struct event_row event = event_of(n, 1, 0);
	struct outcome outcome;
	char key[32];
	event.aggregate_id = aggregate_id;
	event.topic = "payments";
	event.partition_key = "acme";
	event.headers = "{\"event_version\":\"1\"}";
	snprintf(key, sizeof key, "send-%u", n);
	check(bed, put_events(bed, key, n, &event, 1, &outcome));
}

struct leased {
	struct lane_lease *items;
	size_t count, share;
};

static struct leased lease(struct bed *bed, const char *destination, const char *relay,
                           int64_t lease_us)
{
	struct lane_wish wish = {.destination = destination, .relay = relay, .lease_us = lease_us};
	struct leased got = {.items = NULL};
	check(bed, bed->ops->lease_lanes(bed->store, &bed->arena, &wish, &got.items, &got.count,
	                                 &got.share, &bed->err));
	return got;
}

/* All lanes of a destination, by lane, for an hour. */
static void lease_all(struct bed *bed, const char *destination, const char *relay,
                      struct lane_lease ret[OUTBOX_LANES])
{
	struct leased got = lease(bed, destination, relay, hour_us);
	bool seen[OUTBOX_LANES] = {false};
	assert_int_equal(got.count, OUTBOX_LANES);
	for (size_t i = 0; i < got.count; i++) {
		int lane = got.items[i].lane;
		assert_in_range(lane, 0, OUTBOX_LANES - 1);
		assert_false(seen[lane]);
		seen[lane] = true;
		ret[lane] = got.items[i];
	}
}

/* All lanes, from a relay that holds them for a moment only. `ret` has no lease to speak of. */
static void take_all(struct bed *bed, const char *destination, struct lane_lease ret[OUTBOX_LANES])
{
	enum { TRIES = 5000, LEASE_US = 1000 };
	static unsigned names;
	for (int tries = 0; tries < TRIES; tries++) {
		char name[32];
		/* A new one each time: the one before is gone, or holds its lanes a moment longer. */
		snprintf(name, sizeof name, "taker-%u", ++names);
		struct leased got = lease(bed, destination, name, LEASE_US);
		if (got.count == OUTBOX_LANES) {
			for (size_t i = 0; i < got.count; i++)
				ret[got.items[i].lane] = got.items[i];
			return;
		}
		env_sleep_us(env_system(), INT64_C(2) * LEASE_US);
	}
	fail_msg("the lanes of %s did not come free", destination);
}

static enum ibid_code settle(struct bed *bed, const struct lane_lease *lane,
                             struct lane_settlement settlement)
{
	settlement.lease = lane;
	return bed->ops->settle_lane(bed->store, &settlement, &bed->err);
}

static struct lane_batch read_lane(struct bed *bed, const struct lane_lease *lane,
                                   const char *cursor, size_t limit)
{
	struct lane_batch batch;
	check(bed, bed->ops->read_lane(bed->store, &bed->arena, lane, cursor, limit, false, &batch,
	                               &bed->err));
	assert_true(batch.count <= limit);
	assert_non_null(batch.cursor);
	return batch;
}

static struct lane_batch read_doubtful(struct bed *bed, const struct lane_lease *lane,
                                       const char *cursor)
{
	struct lane_batch batch;
	check(bed,
	      bed->ops->read_lane(bed->store, &bed->arena, lane, cursor, 100, true, &batch, &bed->err));
	return batch;
}

/* The lane that an aggregate's events are in. */
static const struct lane_lease *lane_of(struct bed *bed, const struct lane_lease *lanes,
                                        const char *aggregate_id)
{
	for (int i = 0; i < OUTBOX_LANES; i++) {
		struct lane_batch batch = read_lane(bed, &lanes[i], "", 100);
		for (size_t k = 0; k < batch.count; k++)
			if (strcmp(batch.events[k].event.aggregate_id, aggregate_id) == 0)
				return &lanes[i];
	}
	fail_msg("no lane has events of %s", aggregate_id);
	return NULL;
}

static size_t list_lanes(struct bed *bed, struct lane_row **ret)
{
	size_t found = 0;
	check(bed, bed->ops->list_lanes(bed->store, &bed->arena, ret, &found, &bed->err));
	return found;
}

static size_t list_held(struct bed *bed, const struct lane_lease *lane, struct held_event **ret)
{
	size_t found = 0;
	check(bed, bed->ops->list_held(bed->store, &bed->arena, lane, ret, &found, &bed->err));
	return found;
}

static size_t list_deliveries(struct bed *bed, const char *tenant, struct uuid event_id,
                              struct delivery_row **ret)
{
	size_t found = 0;
	check(bed, bed->ops->list_deliveries(bed->store, &bed->arena, tenant, &event_id, ret, &found,
	                                     &bed->err));
	return found;
}

static struct delivery_row delivery_of(const struct event_row *event)
{
	return (struct delivery_row){
	    .tenant = event->tenant,
	    .event_id = event->id,
	    .place = "payments",
	    .partition = 3,
	    .offset = INT64_C(5000000000),
	    .at_us = now_us,
	};
}

static struct hold_row hold_of(const struct event_row *event, enum hold_state state)
{
	struct hold_row hold = {
	    .tenant = event->tenant,
	    .event_id = event->id,
	    .aggregate_type = event->aggregate_type,
	    .aggregate_id = event->aggregate_id,
	    .version = event->version,
	    .state = state,
	    .since_us = now_us,
	};
	if (state != HOLD_WAITS) {
		hold.attempts = 2;
		hold.failure = FAILURE_CAPACITY;
		hold.reason = "HTTP_503";
		hold.why = "it said 'später'";
		hold.next_us = now_us + 7;
	}
	return hold;
}

static void assert_event(struct bed *bed, const struct event_row *got,
                         const struct event_row *expected)
{
	assert_memory_equal(&got->id, &expected->id, sizeof got->id);
	assert_memory_equal(&got->command_id, &expected->command_id, sizeof got->command_id);
	assert_text(got->tenant, expected->tenant);
	assert_text(got->aggregate_type, expected->aggregate_type);
	assert_text(got->aggregate_id, expected->aggregate_id);
	assert_text(got->type, expected->type);
	assert_text(canonical(bed, got->payload), canonical(bed, expected->payload));
	assert_int_equal(got->version, expected->version);
	assert_text(got->key, expected->key);
	assert_int_equal(got->ordinal, expected->ordinal);
	assert_text(got->correlation_id, expected->correlation_id);
	assert_text(got->causation_id, expected->causation_id);
	assert_text(got->traceparent, expected->traceparent);
	assert_text(got->tracestate, expected->tracestate);
	assert_true(got->at_us == expected->at_us);
	assert_text(got->topic, expected->topic);
	assert_text(got->partition_key, expected->partition_key);
	assert_text(canonical(bed, got->headers), canonical(bed, expected->headers));
}

static void assert_hold(const struct hold_row *got, const struct hold_row *expected)
{
	assert_text(got->tenant, expected->tenant);
	assert_memory_equal(&got->event_id, &expected->event_id, sizeof got->event_id);
	assert_text(got->aggregate_type, expected->aggregate_type);
	assert_text(got->aggregate_id, expected->aggregate_id);
	assert_int_equal(got->version, expected->version);
	assert_int_equal(got->state, expected->state);
	assert_int_equal(got->attempts, expected->attempts);
	assert_text(got->reason, expected->reason);
	assert_text(got->why, expected->why);
	if (expected->reason)
		assert_int_equal(got->failure, expected->failure);
	assert_true(got->next_us == expected->next_us);
	assert_true(got->since_us == expected->since_us);
}

static void relays_share_the_lanes_of_a_destination(void **state) /* C03 I6 */
{
	struct bed *bed = bed_of(state);
	struct lane_lease lanes[OUTBOX_LANES];
	lease_all(bed, "kafka", "a", lanes);
	for (int i = 0; i < OUTBOX_LANES; i++) {
		assert_string_equal(lanes[i].destination, "kafka");
		assert_string_equal(lanes[i].cursor, "");
		assert_true(lanes[i].token > 0);
	}
	struct leased got = lease(bed, "kafka", "a", hour_us);
	assert_int_equal(got.count, 0);
	assert_int_equal(got.share, 4);
	got = lease(bed, "kafka", "b", hour_us); /* nothing is free, but it has said that it is there */
	assert_int_equal(got.count, 0);
	assert_int_equal(got.share, 2);
	got = lease(bed, "kafka", "a", hour_us);
	assert_int_equal(got.count, 0);
	assert_int_equal(got.share, 2);

	for (int i = 0; i < OUTBOX_LANES; i++)
		check(bed, settle(bed, &lanes[i], (struct lane_settlement){.lease_us = -1}));
	got = lease(bed, "kafka", "b", hour_us);
	assert_int_equal(got.count, 2); /* its share, and not all that are free */
	for (size_t i = 0; i < got.count; i++)
		assert_true(got.items[i].token > lanes[got.items[i].lane].token);
	got = lease(bed, "kafka", "b", hour_us);
	assert_int_equal(got.count, 0); /* what it holds counts */
	got = lease(bed, "kafka", "c", hour_us);
	assert_int_equal(got.share, 2); /* of three relays: no lane is left over */
	assert_int_equal(got.count, 2);
	got = lease(bed, "kafka", "a", hour_us);
	assert_int_equal(got.count, 0);
	lease_all(bed, "hook", "b", lanes); /* each destination for itself */
}

static void share_grows_when_a_relay_is_gone(void **state) /* C03 */
{
	struct bed *bed = bed_of(state);
	struct lane_lease lanes[OUTBOX_LANES];
	struct leased got = lease(bed, "kafka", "a", 1000);
	assert_int_equal(got.count, 4);
	take_all(bed, "kafka", lanes);
	for (size_t i = 0; i < got.count; i++)
		assert_true(lanes[got.items[i].lane].token > got.items[i].token);
}

static void lanes_are_listed_by_destination(void **state)
{
	struct bed *bed = bed_of(state);
	struct lane_lease lanes[OUTBOX_LANES], others[OUTBOX_LANES];
	struct lane_row *rows = NULL;
	assert_int_equal(list_lanes(bed, &rows), 0);
	lease_all(bed, "kafka", "a", lanes);
	lease_all(bed, "Hook", "b", others);
	check(bed, settle(bed, &lanes[1], (struct lane_settlement){.lease_us = -1}));
	assert_int_equal(list_lanes(bed, &rows), 8);
	for (int i = 0; i < 8; i++) {
		assert_string_equal(rows[i].destination, i < 4 ? "Hook" : "kafka");
		assert_int_equal(rows[i].lane, i % 4);
		assert_text(rows[i].relay, i < 4 ? "b" : i == 5 ? NULL : "a");
		assert_true((rows[i].lease_until_us > 0) == (i != 5));
		assert_true(rows[i].token == (i < 4 ? others : lanes)[i % 4].token);
		assert_int_equal(rows[i].moved_us, 0);
		assert_int_equal(rows[i].delivered, 0);
	}
}

struct leasing {
	pthread_t thread;
	struct store *store;
	char name[16];
	struct lane_lease *items;
	size_t count, share;
	struct arena arena;
	enum ibid_code code;
	struct ibid_err err;
};

static void *lease_in_thread(void *user)
{
	struct leasing *self = user;
	struct lane_wish wish = {.destination = "kafka", .relay = self->name, .lease_us = hour_us};
	self->code = self->store->ops->lease_lanes(self->store, &self->arena, &wish, &self->items,
	                                           &self->count, &self->share, &self->err);
	return NULL;
}

static void lanes_leased_by_many_at_once_go_to_one_each(void **state) /* I6 */
{
	enum { RELAYS = 8 };
	struct bed *bed = bed_of(state);
	struct store *other = backend->again();
	struct leasing relays[RELAYS] = {{.store = NULL}};
	unsigned taken[OUTBOX_LANES] = {0};
	for (unsigned i = 0; i < RELAYS; i++) {
		relays[i].store = i % 2 ? other : bed->store;
		snprintf(relays[i].name, sizeof relays[i].name, "relay-%u", i);
		assert_int_equal(pthread_create(&relays[i].thread, NULL, lease_in_thread, &relays[i]), 0);
	}
	for (size_t i = 0; i < RELAYS; i++)
		pthread_join(relays[i].thread, NULL);
	for (size_t i = 0; i < RELAYS; i++) {
		if (relays[i].code)
			fail_msg("%s: %s", relays[i].name, relays[i].err.text);
		for (size_t k = 0; k < relays[i].count; k++)
			taken[relays[i].items[k].lane]++;
	}
	for (size_t i = 0; i < RELAYS; i++) { /* whatever one left because another looked at it */
		struct leased got = lease(bed, "kafka", relays[i].name, hour_us);
		for (size_t k = 0; k < got.count; k++)
			taken[got.items[k].lane]++;
		arena_release(&relays[i].arena);
	}
	for (size_t i = 0; i < OUTBOX_LANES; i++)
		assert_int_equal(taken[i], 1);
	store_close(other);
}

static void lanes_hold_each_aggregate_whole_and_in_order(void **state) /* C03 I5 */
{
	enum { AGGREGATES = 24, ROUNDS = 3 };
	struct bed *bed = bed_of(state);
	struct lane_lease lanes[OUTBOX_LANES];
	struct event_row *kept;
	int64_t versions[AGGREGATES] = {0};
	size_t kept_count, found = 0;
	char name[16];
	for (unsigned n = 0; n < AGGREGATES * ROUNDS; n++) {
		snprintf(name, sizeof name, "p-%u", n % AGGREGATES);
		send_event(bed, n + 1, name);
	}
	lease_all(bed, "kafka", "a", lanes);
	for (int i = 0; i < OUTBOX_LANES; i++) {
		struct lane_batch batch = read_lane(bed, &lanes[i], "", 100);
		assert_true(batch.count > 0); /* they spread */
		assert_false(batch.more);
		for (size_t k = 0; k < batch.count; k++) {
			const struct event_row *event = &batch.events[k].event;
			int64_t *version = &versions[atoi(event->aggregate_id + 2)];
			assert_false(batch.events[k].early);
			assert_int_equal(event->version, *version + 1);
			*version = event->version;
			check(bed, bed->ops->list_events(bed->store, &bed->arena, "acme", &event->command_id, 2,
			                                 &kept, &kept_count, &bed->err));
			assert_int_equal(kept_count, 1);
			assert_event(bed, event, &kept[0]);
			found++;
		}
		assert_int_equal(read_lane(bed, &lanes[i], batch.cursor, 100).count, 0);
	}
	assert_int_equal(found, AGGREGATES * ROUNDS);
}

static void lane_is_read_on_from_its_cursor(void **state) /* C03 */
{
	struct bed *bed = bed_of(state);
	struct lane_lease lanes[OUTBOX_LANES];
	for (unsigned n = 1; n <= 5; n++)
		send_event(bed, n, "p-1");
	lease_all(bed, "kafka", "a", lanes);
	const struct lane_lease *lane = lane_of(bed, lanes, "p-1");
	struct lane_batch first = read_lane(bed, lane, "", 2);
	assert_int_equal(first.count, 2);
	assert_true(first.more);
	struct lane_batch second = read_lane(bed, lane, first.cursor, 3);
	assert_int_equal(second.count, 3);
	assert_int_equal(second.events[0].event.version, 3);
	assert_int_equal(second.events[2].event.version, 5);

	struct lane_batch none = read_lane(bed, lane, second.cursor, 3);
	assert_int_equal(none.count, 0);
	assert_false(none.more);
	send_event(bed, 6, "p-1");
	struct lane_batch last = read_lane(bed, lane, none.cursor, 3);
	assert_int_equal(last.count, 1);
	assert_int_equal(last.events[0].event.version, 6);
	assert_int_equal(read_lane(bed, lane, first.cursor, 9).count,
	                 4); /* a cursor may be used again */
}

static void events_without_a_topic_or_a_commit_are_not_read(void **state) /* C03 I1 */
{
	struct bed *bed = bed_of(state);
	struct lane_lease lanes[OUTBOX_LANES];
	struct event_row silent = event_of(1, 1, 0), undone = event_of(2, 1, 0);
	struct outcome outcome;
	check(bed, put_events(bed, "silent", 1, &silent, 1, &outcome));
	struct tx *tx = claim_free(bed, "undone", 2);
	undone.topic = "payments";
	check(bed, bed->ops->put_event(tx, &undone, &bed->err));
	bed->ops->rollback(&tx);
	send_event(bed, 3, "p-1");
	lease_all(bed, "kafka", "a", lanes);
	struct lane_batch batch = read_lane(bed, lane_of(bed, lanes, "p-1"), "", 9);
	assert_int_equal(batch.count, 1);
	assert_int_equal(batch.events[0].event.version, 2);
}

static void event_that_is_committed_late_is_not_passed_over(void **state) /* C03: no skipping */
{
	struct bed *bed = bed_of(state);
	struct lane_lease lanes[OUTBOX_LANES];
	struct event_row late = event_of(2, 1, 0);
	struct command_row row = completed("late", 2);
	late.topic = "payments";
	late.aggregate_id = "p-1";
	lease_all(bed, "kafka", "a", lanes);
	send_event(bed, 1, "p-1");
	const struct lane_lease *lane = lane_of(bed, lanes, "p-1");
	struct tx *tx = claim_free(bed, "late", 2);
	check(bed, bed->ops->put_event(tx, &late, &bed->err));
	if (!bed->ops->one_writer) /* one that has begun later, and is there earlier */
		for (unsigned n = 3; n < 20; n++) {
			char name[16];
			snprintf(name, sizeof name, "q-%u", n);
			send_event(bed, n, name);
		}
	struct lane_batch before = read_lane(bed, lane, "", 100);
	for (size_t i = 1; i < before.count; i++)
		assert_string_not_equal(before.events[i].event.aggregate_id, "p-1");
	complete_row(bed, &tx, &row, NULL);
	struct lane_batch after = read_lane(bed, lane, before.cursor, 100);
	assert_int_equal(after.count, 1);
	assert_string_equal(after.events[0].event.aggregate_id, "p-1");
	assert_int_equal(after.events[0].event.version, 2);
}

static void cursor_is_found_again_by_the_next_holder(void **state) /* C03 */
{
	struct bed *bed = bed_of(state);
	struct lane_lease lanes[OUTBOX_LANES], next[OUTBOX_LANES];
	struct lane_row *rows;
	send_event(bed, 1, "p-1");
	lease_all(bed, "kafka", "a", lanes);
	const struct lane_lease *lane = lane_of(bed, lanes, "p-1");
	struct lane_batch batch = read_lane(bed, lane, "", 9);
	check(bed, settle(bed, lane, (struct lane_settlement){.cursor = batch.cursor}));
	list_lanes(bed, &rows);
	assert_true(rows[lane->lane].moved_us > 0);
	assert_string_equal(rows[lane->lane].relay, "a");
	for (int i = 0; i < OUTBOX_LANES; i++)
		check(bed, settle(bed, &lanes[i], (struct lane_settlement){.lease_us = -1}));

	lease_all(bed, "kafka", "a", next);
	for (int i = 0; i < OUTBOX_LANES; i++)
		assert_string_equal(next[i].cursor, i == lane->lane ? batch.cursor : "");
	send_event(bed, 2, "p-1");
	batch = read_lane(bed, &next[lane->lane], next[lane->lane].cursor, 9);
	assert_int_equal(batch.count, 1);
	assert_int_equal(batch.events[0].event.version, 2);
}

static void lease_of_a_lane_is_prolonged_also_when_it_has_ended(void **state) /* I6 */
{
	struct bed *bed = bed_of(state);
	struct lane_lease lanes[OUTBOX_LANES];
	struct lane_row *rows;
	take_all(bed, "kafka", lanes);
	check(bed, settle(bed, &lanes[2], (struct lane_settlement){.lease_us = hour_us}));
	list_lanes(bed, &rows);
	assert_true(rows[2].lease_until_us > rows[1].lease_until_us + hour_us / 2);
	for (int tries = 0;; tries++) { /* the others are free; this one stays */
		char name[16];
		assert_true(tries < 5000);
		snprintf(name, sizeof name, "b-%d", tries);
		struct leased got = lease(bed, "kafka", name, 1000);
		for (size_t i = 0; i < got.count; i++)
			assert_int_not_equal(got.items[i].lane, 2);
		if (got.count == 3)
			break;
		env_sleep_us(env_system(), 2000);
	}
	check(bed, settle(bed, &lanes[2], (struct lane_settlement){.lease_us = 0}));
}

static void settlement_under_a_lost_lease_writes_nothing(void **state) /* I6 */
{
	struct bed *bed = bed_of(state);
	struct lane_lease old[OUTBOX_LANES], lanes[OUTBOX_LANES];
	struct exception_filter all = {.queue = -1, .state = -1, .limit = 9};
	struct exception_row exception = exception_of(1, "e-1"), *exceptions;
	struct delivery_row *deliveries;
	struct held_event *held;
	struct lane_row *rows;
	send_event(bed, 1, "p-1");
	send_event(bed, 2, "p-1");
	take_all(bed, "kafka", old);
	const struct lane_lease *lane = lane_of(bed, old, "p-1");
	struct lane_batch batch = read_lane(bed, lane, "", 9);
	struct delivery_row delivery = delivery_of(&batch.events[0].event);
	struct hold_row hold = hold_of(&batch.events[1].event, HOLD_FAILED);
	take_all(bed, "kafka", lanes);
	struct lane_settlement whole = {
	    .cursor = batch.cursor,
	    .lease_us = hour_us,
	    .deliveries = &delivery,
	    .delivery_count = 1,
	    .holds = &hold,
	    .hold_count = 1,
	    .exceptions = &exception,
	    .exception_count = 1,
	};
	assert_int_equal(settle(bed, lane, whole), IBID_FENCED);
	assert_int_equal(list_deliveries(bed, "acme", delivery.event_id, &deliveries), 0);
	assert_int_equal(list_held(bed, &lanes[lane->lane], &held), 0);
	assert_int_equal(list_exceptions(bed, &all, &exceptions), 0);
	list_lanes(bed, &rows);
	assert_int_equal(rows[lane->lane].delivered, 0);
	assert_int_equal(rows[lane->lane].moved_us, 0);
	take_all(bed, "kafka", old); /* and the lease was not prolonged */
	assert_string_equal(old[lane->lane].cursor, "");

	check(bed, settle(bed, &old[lane->lane], whole));
	assert_int_equal(list_deliveries(bed, "acme", delivery.event_id, &deliveries), 1);
	assert_int_equal(list_held(bed, &old[lane->lane], &held), 1);
	assert_int_equal(list_exceptions(bed, &all, &exceptions), 1);
	list_lanes(bed, &rows);
	assert_int_equal(rows[lane->lane].delivered, 1);
}

static void settlement_is_all_or_nothing(void **state) /* I1 */
{
	struct bed *bed = bed_of(state);
	struct lane_lease lanes[OUTBOX_LANES];
	struct exception_row exception = exception_of(1, "e-1");
	struct delivery_row *deliveries;
	struct held_event *held;
	struct lane_row *rows;
	send_event(bed, 1, "p-1");
	send_event(bed, 2, "p-1");
	lease_all(bed, "kafka", "a", lanes);
	const struct lane_lease *lane = lane_of(bed, lanes, "p-1");
	struct lane_batch batch = read_lane(bed, lane, "", 9);
	struct delivery_row delivery = delivery_of(&batch.events[0].event);
	struct hold_row hold = hold_of(&batch.events[1].event, HOLD_PARKED);
	exception.owner = ""; /* which no store keeps */
	assert_int_not_equal(settle(bed, lane,
	                            (struct lane_settlement){.cursor = batch.cursor,
	                                                     .deliveries = &delivery,
	                                                     .delivery_count = 1,
	                                                     .holds = &hold,
	                                                     .hold_count = 1,
	                                                     .exceptions = &exception,
	                                                     .exception_count = 1}),
	                     IBID_OK);
	assert_int_equal(list_deliveries(bed, "acme", delivery.event_id, &deliveries), 0);
	assert_int_equal(list_held(bed, lane, &held), 0);
	list_lanes(bed, &rows);
	assert_int_equal(rows[lane->lane].moved_us, 0);
	check(bed, settle(bed, lane, (struct lane_settlement){.lease_us = 0})); /* it goes on */
}

static void settlement_that_is_sent_again_counts_once(void **state) /* I7: its commit was unknown */
{
	struct bed *bed = bed_of(state);
	struct lane_lease lanes[OUTBOX_LANES];
	struct delivery_row *deliveries;
	struct held_event *held;
	struct lane_row *rows;
	send_event(bed, 1, "p-1");
	send_event(bed, 2, "p-1");
	lease_all(bed, "kafka", "a", lanes);
	const struct lane_lease *lane = lane_of(bed, lanes, "p-1");
	struct lane_batch batch = read_lane(bed, lane, "", 9);
	struct delivery_row delivery = delivery_of(&batch.events[0].event);
	struct hold_row hold = hold_of(&batch.events[1].event, HOLD_FAILED);
	for (int i = 0; i < 2; i++)
		check(bed, settle(bed, lane,
		                  (struct lane_settlement){.cursor = batch.cursor,
		                                           .deliveries = &delivery,
		                                           .delivery_count = 1,
		                                           .holds = &hold,
		                                           .hold_count = 1}));
	assert_int_equal(list_deliveries(bed, "acme", delivery.event_id, &deliveries), 1);
	assert_int_equal(list_held(bed, lane, &held), 1);
	list_lanes(bed, &rows);
	assert_int_equal(rows[lane->lane].delivered, 1);
}

static void what_has_evidence_is_left_out_where_it_is_doubtful(void **state) /* C03 */
{
	struct bed *bed = bed_of(state);
	struct lane_lease lanes[OUTBOX_LANES], others[OUTBOX_LANES];
	struct delivery_row deliveries[3];
	for (unsigned n = 1; n <= 3; n++)
		send_event(bed, n, "p-1");
	lease_all(bed, "kafka", "a", lanes);
	lease_all(bed, "hook", "a", others);
	const struct lane_lease *lane = lane_of(bed, lanes, "p-1");
	struct lane_batch batch = read_lane(bed, lane, "", 9);
	for (size_t i = 0; i < 3; i++)
		deliveries[i] = delivery_of(&batch.events[i].event);
	check(bed, settle(bed, lane,
	                  (struct lane_settlement){.deliveries = deliveries, .delivery_count = 2}));
	struct lane_batch left = read_doubtful(bed, lane, "");
	assert_int_equal(left.count, 1);
	assert_int_equal(left.events[0].event.version, 3);
	assert_int_equal(read_doubtful(bed, &others[lane->lane], "").count, 3);
	assert_int_equal(read_lane(bed, lane, "", 9).count, 3);

	check(bed, settle(bed, lane,
	                  (struct lane_settlement){.deliveries = &deliveries[2], .delivery_count = 1}));
	left = read_doubtful(bed, lane, "");
	assert_int_equal(left.count, 0);
	/* The cursor is behind what was left out: nobody reads it again. */
	assert_int_equal(read_lane(bed, lane, left.cursor, 9).count, 0);
}

static void held_events_are_listed_by_aggregate_and_version(void **state) /* C03 I5 I8 */
{
	enum { AGGREGATES = 9 };
	struct bed *bed = bed_of(state);
	struct lane_lease lanes[OUTBOX_LANES];
	struct lane_batch batch = {.count = 0};
	struct hold_row holds[2 * AGGREGATES];
	struct held_event *held;
	const struct lane_lease *lane = NULL;
	char name[16];
	for (unsigned n = 0; n < 2 * AGGREGATES; n++) {
		snprintf(name, sizeof name, "p-%u", AGGREGATES - n % AGGREGATES);
		send_event(bed, n + 1, name);
	}
	lease_all(bed, "kafka", "a", lanes);
	for (int i = 0; i < OUTBOX_LANES; i++) { /* one that has several aggregates */
		struct lane_batch found = read_lane(bed, &lanes[i], "", 100);
		if (found.count > batch.count) {
			batch = found;
			lane = &lanes[i];
		}
	}
	assert_true(batch.count >= 6);
	for (size_t i = 0; i < batch.count; i++) {
		const struct event_row *event = &batch.events[i].event;
		holds[i] = hold_of(event, event->version == 1 ? HOLD_FAILED : HOLD_WAITS);
	}
	check(bed,
	      settle(bed, lane, (struct lane_settlement){.holds = holds, .hold_count = batch.count}));
	assert_int_equal(list_held(bed, lane, &held), batch.count);
	for (size_t i = 0; i < batch.count; i++) {
		size_t at = 0;
		while (memcmp(&holds[at].event_id, &held[i].hold.event_id, sizeof(struct uuid)) != 0)
			assert_true(++at < batch.count);
		assert_hold(&held[i].hold, &holds[at]);
		assert_event(bed, &held[i].event, &batch.events[at].event);
		assert_int_equal(held[i].hold.version, i % 2 + 1);
		if (i % 2)
			assert_string_equal(held[i].hold.aggregate_id, held[i - 1].hold.aggregate_id);
		else if (i)
			assert_true(strcmp(held[i].hold.aggregate_id, held[i - 1].hold.aggregate_id) > 0);
	}
	for (int i = 0; i < OUTBOX_LANES; i++)
		if (&lanes[i] != lane)
			assert_int_equal(list_held(bed, &lanes[i], &held), 0);
}

static void hold_is_replaced_and_left(void **state) /* C03 I8 */
{
	struct bed *bed = bed_of(state);
	struct lane_lease lanes[OUTBOX_LANES], others[OUTBOX_LANES];
	struct held_event *held;
	send_event(bed, 1, "p-1");
	send_event(bed, 2, "p-1");
	lease_all(bed, "kafka", "a", lanes);
	lease_all(bed, "hook", "a", others);
	const struct lane_lease *lane = lane_of(bed, lanes, "p-1");
	const struct lane_lease *other = &others[lane->lane];
	struct lane_batch batch = read_lane(bed, lane, "", 9);
	struct hold_row holds[2] = {hold_of(&batch.events[0].event, HOLD_FAILED),
	                            hold_of(&batch.events[1].event, HOLD_WAITS)};
	struct lane_settlement both = {.holds = holds, .hold_count = 2};
	check(bed, settle(bed, lane, both));
	check(bed, settle(bed, other, both));

	for (int i = 0; i < HOLD_STATE_COUNT; i++) {
		holds[0] = hold_of(&batch.events[0].event, (enum hold_state)i);
		holds[0].failure = FAILURE_POISON;
		holds[0].attempts = i;
		check(bed, settle(bed, lane, (struct lane_settlement){.holds = holds, .hold_count = 1}));
		assert_int_equal(list_held(bed, lane, &held), 2);
		assert_hold(&held[0].hold, &holds[0]);
		assert_hold(&held[1].hold, &holds[1]);
	}
	struct delivery_row gone = delivery_of(&batch.events[0].event);
	gone.was_held = true;
	check(bed,
	      settle(bed, lane, (struct lane_settlement){.deliveries = &gone, .delivery_count = 1}));
	assert_int_equal(list_held(bed, lane, &held), 1);
	assert_hold(&held[0].hold, &holds[1]);
	assert_int_equal(list_held(bed, other, &held), 2); /* each destination has its own */
}

static void evidence_of_an_event_is_listed_oldest_first_and_never_edited(void **state) /* C03 I3 */
{
	struct bed *bed = bed_of(state);
	struct lane_lease lanes[OUTBOX_LANES], others[OUTBOX_LANES];
	struct delivery_row *got;
	send_event(bed, 1, "p-1");
	lease_all(bed, "kafka", "a", lanes);
	lease_all(bed, "hook", "a", others);
	const struct lane_lease *lane = lane_of(bed, lanes, "p-1");
	const struct lane_lease *other = &others[lane->lane];
	struct lane_batch batch = read_lane(bed, lane, "", 9);
	struct delivery_row late = delivery_of(&batch.events[0].event), early = late;
	late.at_us = now_us + 1;
	early.place = "https://example.com/ü";
	early.partition = -1;
	early.offset = -1;
	check(bed,
	      settle(bed, lane, (struct lane_settlement){.deliveries = &late, .delivery_count = 1}));
	check(bed,
	      settle(bed, other, (struct lane_settlement){.deliveries = &early, .delivery_count = 1}));
	assert_int_equal(list_deliveries(bed, "acme", late.event_id, &got), 2);
	assert_text(got[0].tenant, "acme");
	assert_text(got[0].destination, "hook");
	assert_true(got[0].token == other->token);
	assert_text(got[0].place, early.place);
	assert_int_equal(got[0].partition, -1);
	assert_true(got[0].offset == -1);
	assert_true(got[0].at_us == now_us);
	assert_memory_equal(&got[1].event_id, &late.event_id, sizeof late.event_id);
	assert_text(got[1].destination, "kafka");
	assert_true(got[1].token == lane->token);
	assert_text(got[1].place, "payments");
	assert_int_equal(got[1].partition, 3);
	assert_true(got[1].offset == INT64_C(5000000000));
	assert_true(got[1].at_us == now_us + 1);
	assert_int_equal(list_deliveries(bed, "other", late.event_id, &got), 0);
	assert_int_equal(list_deliveries(bed, "acme", make_id(9), &got), 0);

	assert_false(backend->exec(backend->sql[SUITE_EDIT_DELIVERY]));
	assert_false(backend->exec(backend->sql[SUITE_DELETE_DELIVERY]));
	assert_int_equal(list_deliveries(bed, "acme", late.event_id, &got), 2);
}

static void exception_of_a_settlement_is_opened_once(void **state) /* I8 */
{
	struct bed *bed = bed_of(state);
	struct lane_lease lanes[OUTBOX_LANES];
	struct exception_row rows[2] = {exception_of(1, "e-1"), exception_of(2, "e-2")}, *got;
	struct exception_row again = exception_of(3, "e-1");
	struct exception_filter all = {.queue = -1, .state = -1, .limit = 9};
	again.reason = "ANOTHER";
	lease_all(bed, "kafka", "a", lanes);
	check(bed, settle(bed, &lanes[0],
	                  (struct lane_settlement){.exceptions = rows, .exception_count = 2}));
	check(bed, settle(bed, &lanes[1],
	                  (struct lane_settlement){.exceptions = &again, .exception_count = 1}));
	assert_int_equal(list_exceptions(bed, &all, &got), 2);
	assert_exception(&got[0], &rows[1]);
	assert_exception(&got[1], &rows[0]);
}

int suite_run(const char *name, const struct suite_backend *with)
{
	static const struct CMUnitTest tests[] = {
	    EMPTY(store_without_schema_is_refused_with_version_zero),
	    EMPTY(migrating_twice_changes_nothing_the_second_time),
	    EMPTY(two_migrate_at_once_and_one_does_it),
	    READY(next_schema_is_accepted_and_a_newer_one_is_not),
	    READY(schema_file_runs_once_and_a_changed_one_is_told),
	    READY(schema_file_that_fails_leaves_nothing_and_may_run_again),
	    READY(contract_is_kept_once_and_another_text_is_refused),
	    READY(contract_that_was_never_kept_is_not_found),
	    READY(new_identity_is_free_and_a_completed_one_is_found_whole),
	    READY(row_without_optional_parts_comes_back_without_them),
	    READY(keys_keep_quotes_unicode_and_length),
	    READY(each_part_of_the_identity_counts),
	    READY(rolled_back_claim_leaves_the_identity_free),
	    READY(twin_of_a_running_command_is_busy),
	    READY(twin_in_another_store_on_the_database_is_busy),
	    READY(twin_of_a_found_row_that_is_held_is_busy),
	    READY(twenty_claims_at_once_run_one_command),
	    READY(different_commands_at_once_all_run_and_versions_have_no_gap),
	    READY(resolve_says_free_or_found),
	    READY(resolve_gives_up_on_a_twin_that_stays),
	    READY(resolve_waits_for_the_twin_and_then_finds_its_row),
	    READY(rolled_back_transaction_leaves_nothing),
	    READY(committed_transaction_has_all_its_rows),
	    READY(second_row_of_an_identity_is_refused_by_the_key),
	    READY(failed_row_is_replaced_by_compare_and_set),
	    READY(replacing_a_row_that_has_moved_on_is_a_retry),
	    READY(staged_row_is_told_at_once_also_while_its_worker_finishes),
	    READY(staged_row_is_finished_under_its_token_only),
	    READY(ended_lease_is_stale_and_one_without_end_is_locked),
	    READY(unknown_rows_that_were_staged_are_listed_oldest_first),
	    READY(unknown_row_is_held_and_ended_by_compare_and_set),
	    READY(lease_is_taken_over_only_when_it_has_ended),
	    READY(lease_is_renewed_under_its_token_only),
	    READY(replaced_outcome_takes_its_body_with_it),
	    READY(completed_command_without_audit_entry_can_not_be_written),
	    READY(second_audit_entry_of_a_command_is_refused),
	    READY(transaction_that_failed_can_only_be_rolled_back),
	    READY(events_get_the_next_versions_and_keep_every_column),
	    READY(version_that_is_not_the_next_rejects_and_leaves_nothing),
	    READY(first_version_of_an_aggregate_is_one),
	    READY(event_key_given_twice_rejects),
	    READY(event_keys_and_versions_belong_to_a_tenant),
	    READY(events_and_audit_entries_can_not_be_edited_or_deleted),
	    READY(script_inserts_emits_and_answers),
	    READY(script_runs_again_for_the_next_command),
	    READY(parameters_of_every_type_arrive_exactly),
	    READY(decimal_of_38_digits_and_the_other_extremes_arrive_exactly),
	    READY(absent_values_are_null),
	    READY(amounts_are_kept_exactly),
	    READY(rejection_carries_its_code_status_and_text),
	    READY(unique_index_that_was_hit_is_named),
	    READY(partial_unique_index_that_was_hit_is_named),
	    READY(failed_statement_says_where_and_why),
	    READY(constraint_that_fails_at_commit_is_definite),
	    READY(emit_in_a_script_counts_ordinals_and_versions),
	    READY(emit_of_an_undeclared_type_fails),
	    READY(emit_of_a_wrong_version_or_used_key_rejects),
	    READY(emit_for_a_found_row_uses_its_id),
	    READY(references_are_listed_from_either_side),
	    READY(last_row_of_the_last_statement_answers),
	    READY(answer_with_a_strange_column_or_without_status_fails),
	    READY(find_script_returns_the_existing_document),
	    READY(query_sees_what_its_transaction_did_and_lets_it_go_on),
	    READY(query_that_changes_something_fails_and_leaves_nothing),
	    READY(row_is_held_beside_other_commands),
	    READY(script_with_transaction_control_or_unknown_parameter_is_refused),
	    READY(members_of_a_group_hear_each_for_itself),
	    READY(group_without_a_success_commits_nothing),
	    READY(expired_row_gives_way_to_a_new_command_where_it_may),
	    READY(duplicates_are_added_up_and_listed),
	    READY(retention_empties_expired_rows_and_deletes_them_after_the_audit_period),
	    READY(payload_commits_with_its_command_or_not_at_all),
	    READY(erasure_leaves_what_recognises_a_duplicate_and_a_record),
	    READY(erasure_of_an_actor_takes_its_name_everywhere),
	    READY(evidence_is_kept_once_and_counted),
	    READY(command_is_found_by_id_and_by_identity_within_its_tenant),
	    READY(commands_are_listed_newest_first_page_by_page),
	    READY(commands_are_listed_by_tenant_operation_key_client_and_state),
	    READY(listed_command_is_whole),
	    READY(audit_entries_are_listed_whole_newest_first),
	    READY(events_of_a_tenant_are_listed_newest_first),
	    READY(an_event_keeps_where_it_goes),
	    READY(exception_comes_back_whole_within_its_tenant),
	    READY(measure_counts_what_has_no_outcome),
	    READY(measure_counts_open_work_by_owner),
	    READY(exception_of_the_same_subject_is_opened_once),
	    READY(exception_of_a_resolved_subject_is_opened_anew),
	    READY(exception_is_resolved_with_what_ends_its_trouble),
	    READY(exception_commits_with_its_command_or_not_at_all),
	    READY(actions_come_back_oldest_first_within_their_subject),
	    READY(an_open_exception_is_assigned_and_a_resolved_one_is_not),
	    READY(one_proposal_waits_per_subject_and_is_decided_once),
	    READY(what_was_proposed_lapses_with_its_exception),
	    READY(exception_without_reason_or_owner_can_not_be_opened),
	    READY(exceptions_are_listed_newest_first_page_by_page),
	    READY(exceptions_are_listed_by_queue_state_owner_and_subject),
	    READY(every_queue_and_severity_is_kept),
	    READY(exception_opened_by_many_at_once_is_one),
	    READY(index_is_described_as_it_is),
	    READY(token_comes_back_whole_and_its_id_is_taken),
	    READY(token_is_revoked_once_and_for_good),
	    READY(tokens_are_listed_newest_first_page_by_page),
	    READY(relays_share_the_lanes_of_a_destination),
	    READY(share_grows_when_a_relay_is_gone),
	    READY(lanes_are_listed_by_destination),
	    READY(lanes_leased_by_many_at_once_go_to_one_each),
	    READY(lanes_hold_each_aggregate_whole_and_in_order),
	    READY(lane_is_read_on_from_its_cursor),
	    READY(events_without_a_topic_or_a_commit_are_not_read),
	    READY(event_that_is_committed_late_is_not_passed_over),
	    READY(cursor_is_found_again_by_the_next_holder),
	    READY(lease_of_a_lane_is_prolonged_also_when_it_has_ended),
	    READY(settlement_under_a_lost_lease_writes_nothing),
	    READY(settlement_is_all_or_nothing),
	    READY(settlement_that_is_sent_again_counts_once),
	    READY(what_has_evidence_is_left_out_where_it_is_doubtful),
	    READY(held_events_are_listed_by_aggregate_and_version),
	    READY(hold_is_replaced_and_left),
	    READY(evidence_of_an_event_is_listed_oldest_first_and_never_edited),
	    READY(exception_of_a_settlement_is_opened_once),
	    READY(adopted_command_is_whole_in_the_callers_commit),
	    READY(adopted_command_that_is_unfinished_can_not_be_committed),
	    READY(connection_without_a_transaction_is_not_adopted),
	    EMPTY(doctor_refuses_a_store_without_schema_only),
	};
	backend = with;
	return cmocka_run_group_tests_name(name, tests, NULL, NULL);
}
