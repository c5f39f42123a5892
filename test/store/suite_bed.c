/* SPDX-License-Identifier: Apache-2.0 */
/* suite_bed.c -- a store for one test, and what tests write into it. */
#include "store/suite_bed.h"

#include "base/canon.h"

#include <stdlib.h>
#include <string.h>

const struct suite_backend *backend;

/* ---- A bed for one test --------------------------------------------------------------------- */

const struct param_spec params[V_COUNT] = {
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

const int64_t now_us = INT64_C(1763200000123456);

static const char *const emits[] = {"PaymentCreated", "PaymentVoided"};

struct bed *bed_of(void **state)
{
	return *state;
}

void check(struct bed *bed, enum ibid_code code)
{
	if (code)
		fail_msg("%s: %s", ibid_code_name(code), bed->err.text);
}

static struct bed *open_bed(struct store *store)
{
	struct bed *bed = calloc(1, sizeof *bed);
	bed->store = store;
	bed->ops = store->ops;
	return bed;
}

int open_empty(void **state)
{
	*state = open_bed(backend->fresh());
	return 0;
}

int open_ready(void **state)
{
	enum schema_state schema;
	struct bed *bed = *state = open_bed(backend->migrated());
	check(bed, bed->ops->apply_schema(bed->store,
	                                  &(struct schema_file){.name = "suite",
	                                                        .text = backend->sql[SUITE_TABLES],
	                                                        .now_us = now_us},
	                                  &schema, &bed->err));
	return 0;
}

int close_bed(void **state)
{
	struct bed *bed = bed_of(state);
	for (size_t i = 0; i < SUITE_SQL_COUNT; i++)
		bed->ops->free_script(bed->store, bed->scripts[i]);
	store_close(bed->store);
	arena_release(&bed->arena);
	free(bed);
	return 0;
}

void be_patient(struct bed *bed)
{
	struct store *store = backend->patient();
	store_close(bed->store);
	bed->store = store;
}

/* Ids that are ordered by `n`. */
struct uuid make_id(unsigned n)
{
	struct uuid id = {{(unsigned char)(n >> 24), (unsigned char)(n >> 16), (unsigned char)(n >> 8),
	                   (unsigned char)n, 0, 0, 0x70, 0, 0x80}};
	return id;
}

const char *id_text(struct bed *bed, struct uuid id)
{
	char *text = arena_alloc(&bed->arena, UUID_TEXT_SIZE);
	uuid_write(id, text);
	return text;
}

struct identity identity_of(const char *key)
{
	return (struct identity){"acme", "create-payment", "web", key};
}

const char traceparent[] = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

struct work_context context_of(unsigned n)
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

struct claim claim(struct bed *bed, const char *key, unsigned n)
{
	struct claim claim = {.kind = CLAIM_BUSY};
	check(bed, try_claim(bed, key, n, &claim));
	return claim;
}

struct tx *claim_free(struct bed *bed, const char *key, unsigned n)
{
	struct claim got = claim(bed, key, n);
	assert_int_equal(got.kind, CLAIM_FREE);
	assert_non_null(got.tx);
	return got.tx;
}

struct command_row completed(const char *key, unsigned n)
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

struct command_row failed(const char *key, unsigned n)
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

struct audit_row audit_of(const struct command_row *row)
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

struct event_row event_of(unsigned n, int ordinal, int64_t version)
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
enum ibid_code end_with(struct bed *bed, struct tx **tx, enum ibid_code said, struct outcome *ret)
{
	*ret = (struct outcome){.status = 0};
	enum ibid_code code = bed->ops->commit(tx, &bed->arena, ret, &bed->err);
	assert_null(*tx);
	if (said)
		assert_int_equal(code, said);
	return code;
}

enum ibid_code end(struct bed *bed, struct tx **tx)
{
	struct outcome outcome;
	return end_with(bed, tx, IBID_OK, &outcome);
}

/* Audit entry and row, then commit. */
void complete_row(struct bed *bed, struct tx **tx, const struct command_row *row,
                  const struct command_row *previous)
{
	struct audit_row audit = audit_of(row);
	if (row->state == COMMAND_COMPLETED)
		check(bed, store_put_audit(*tx, &audit, &bed->err));
	check(bed, bed->ops->put_command(*tx, row, previous, &bed->err));
	check(bed, end(bed, tx));
}

void complete(struct bed *bed, const char *key, unsigned n)
{
	struct tx *tx = claim_free(bed, key, n);
	struct command_row row = completed(key, n);
	complete_row(bed, &tx, &row, NULL);
}

void assert_text(const char *got, const char *expected)
{
	if (!expected)
		assert_null(got);
	else
		assert_string_equal(got ? got : "(null)", expected);
}

void assert_row(const struct command_row *got, const struct command_row *expected)
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

int64_t count(enum suite_sql sql)
{
	return backend->number(backend->sql[sql]);
}

void assert_counts(int64_t commands, int64_t events, int64_t audit)
{
	assert_int_equal(count(SUITE_COUNT_COMMANDS), commands);
	assert_int_equal(count(SUITE_COUNT_EVENTS), events);
	assert_int_equal(count(SUITE_COUNT_AUDIT), audit);
}

/* ---- Scripts of a bed ----------------------------------------------------------------------- */

const struct script *script_of(struct bed *bed, enum suite_sql sql)
{
	if (!bed->scripts[sql])
		check(bed, bed->ops->make_script(bed->store, "test.sql", backend->sql[sql], params, V_COUNT,
		                                 &bed->scripts[sql], &bed->err));
	return bed->scripts[sql];
}

void set_values(struct bed *bed, unsigned n, const char *values[V_COUNT])
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

enum ibid_code run(struct bed *bed, struct tx *tx, enum suite_sql sql, const char *const *values,
                   struct outcome *ret)
{
	*ret = (struct outcome){.status = 0};
	return bed->ops->run_script(tx, &bed->arena, script_of(bed, sql), values, ret, &bed->err);
}

/* Run one script for one command and write its row when it succeeds. */
enum ibid_code pay(struct bed *bed, const char *key, unsigned n, const char *reference,
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

const char *canonical(struct bed *bed, const char *json)
{
	struct json *value = NULL;
	struct str out = STR_INIT(1 << 20);
	check(bed, json_read(&bed->arena, json, strlen(json), 0, &value, &bed->err));
	canon_write(&out, value);
	const char *text = arena_strdup(&bed->arena, str_text(&out));
	str_release(&out);
	return text;
}
