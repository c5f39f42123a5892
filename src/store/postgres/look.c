/* SPDX-License-Identifier: Apache-2.0 */
/* look.c -- read commands, events, audit entries, evidence, duplicates, exceptions and references.
 * Columns are in the order
 * in which the .sql files name them. */
#include "store/postgres/postgres.h"

#include <assert.h>
#include <string.h>

enum command_column {
	COLUMN_TENANT,
	COLUMN_OPERATION,
	COLUMN_SCOPE,
	COLUMN_KEY,
	COLUMN_ID,
	COLUMN_STATE,
	COLUMN_SCHEME,
	COLUMN_CONTRACT_VERSION,
	COLUMN_FINGERPRINT,
	COLUMN_LINKED,
	COLUMN_STATUS,
	COLUMN_RESOURCE_TYPE,
	COLUMN_RESOURCE_ID,
	COLUMN_REASON,
	COLUMN_TEXT,
	COLUMN_AUDIT_ID,
	COLUMN_ATTEMPTS,
	COLUMN_CLIENT,
	COLUMN_ACTOR,
	COLUMN_CREATED,
	COLUMN_FINISHED,
	COLUMN_EXPIRES,
	COLUMN_LEASE_TOKEN,
	COLUMN_LEASE_UNTIL,
	COLUMN_STALE,
	COLUMN_CORRELATION,
	COLUMN_CAUSATION,
	COLUMN_TRACEPARENT,
	COLUMN_TRACESTATE,
	COLUMN_BODY,
	COLUMN_COUNT
};

void pg_read_command(struct arena *arena, const PGresult *result, int row, struct command_row *ret)
{
	assert(PQnfields(result) >= COLUMN_COUNT);
	*ret = (struct command_row){
	    .identity = {pg_cell_text(arena, result, row, COLUMN_TENANT),
	                 pg_cell_text(arena, result, row, COLUMN_OPERATION),
	                 pg_cell_text(arena, result, row, COLUMN_SCOPE),
	                 pg_cell_text(arena, result, row, COLUMN_KEY)},
	    .id = pg_cell_uuid(result, row, COLUMN_ID),
	    .scheme = (int)pg_cell_int(result, row, COLUMN_SCHEME),
	    .contract_version = (int)pg_cell_int(result, row, COLUMN_CONTRACT_VERSION),
	    .fingerprint = pg_cell_hash(result, row, COLUMN_FINGERPRINT),
	    .linked = pg_cell_bool(result, row, COLUMN_LINKED),
	    .status = (int)pg_cell_int(result, row, COLUMN_STATUS),
	    .resource_type = pg_cell_text(arena, result, row, COLUMN_RESOURCE_TYPE),
	    .resource_id = pg_cell_text(arena, result, row, COLUMN_RESOURCE_ID),
	    .reason = pg_cell_text(arena, result, row, COLUMN_REASON),
	    .text = pg_cell_text(arena, result, row, COLUMN_TEXT),
	    .body = pg_cell_text(arena, result, row, COLUMN_BODY),
	    .body_size = (size_t)PQgetlength(result, row, COLUMN_BODY),
	    .audit_id = pg_cell_uuid(result, row, COLUMN_AUDIT_ID),
	    .attempts = (int)pg_cell_int(result, row, COLUMN_ATTEMPTS),
	    .client = pg_cell_text(arena, result, row, COLUMN_CLIENT),
	    .actor = pg_cell_text(arena, result, row, COLUMN_ACTOR),
	    .created_us = pg_cell_int(result, row, COLUMN_CREATED),
	    .finished_us = pg_cell_int(result, row, COLUMN_FINISHED),
	    .expires_us = pg_cell_int(result, row, COLUMN_EXPIRES),
	    .lease_token = pg_cell_int(result, row, COLUMN_LEASE_TOKEN),
	    .lease_until_us = pg_cell_int(result, row, COLUMN_LEASE_UNTIL),
	    .stale = pg_cell_bool(result, row, COLUMN_STALE),
	    .correlation_id = pg_cell_text(arena, result, row, COLUMN_CORRELATION),
	    .causation_id = pg_cell_text(arena, result, row, COLUMN_CAUSATION),
	    .traceparent = pg_cell_text(arena, result, row, COLUMN_TRACEPARENT),
	    .tracestate = pg_cell_text(arena, result, row, COLUMN_TRACESTATE),
	};
	bool known = command_state_read(pg_cell(result, row, COLUMN_STATE), &ret->state);
	assert(known);
	(void)known;
}

void pg_read_event(struct arena *arena, const PGresult *result, int row, struct event_row *ret)
{
	*ret = (struct event_row){
	    .id = pg_cell_uuid(result, row, 0),
	    .command_id = pg_cell_uuid(result, row, 1),
	    .tenant = pg_cell_text(arena, result, row, 2),
	    .aggregate_type = pg_cell_text(arena, result, row, 3),
	    .aggregate_id = pg_cell_text(arena, result, row, 4),
	    .type = pg_cell_text(arena, result, row, 5),
	    .payload = pg_cell_text(arena, result, row, 6),
	    .version = pg_cell_int(result, row, 7),
	    .key = pg_cell_text(arena, result, row, 8),
	    .ordinal = (int)pg_cell_int(result, row, 9),
	    .correlation_id = pg_cell_text(arena, result, row, 10),
	    .causation_id = pg_cell_text(arena, result, row, 11),
	    .traceparent = pg_cell_text(arena, result, row, 12),
	    .tracestate = pg_cell_text(arena, result, row, 13),
	    .at_us = pg_cell_int(result, row, 14),
	    .topic = pg_cell_text(arena, result, row, 15),
	    .partition_key = pg_cell_text(arena, result, row, 16),
	    .headers = pg_cell_text(arena, result, row, 17),
	};
}

static void read_event(struct arena *arena, const PGresult *result, int row, void *ret)
{
	pg_read_event(arena, result, row, ret);
}

static void read_audit(struct arena *arena, const PGresult *result, int row, void *ret)
{
	*(struct audit_row *)ret = (struct audit_row){
	    .id = pg_cell_uuid(result, row, 0),
	    .command_id = pg_cell_uuid(result, row, 1),
	    .tenant = pg_cell_text(arena, result, row, 2),
	    .operation = pg_cell_text(arena, result, row, 3),
	    .fact = pg_cell_text(arena, result, row, 4),
	    .outcome = pg_cell_text(arena, result, row, 5),
	    .contract_version = (int)pg_cell_int(result, row, 6),
	    .client = pg_cell_text(arena, result, row, 7),
	    .actor = pg_cell_text(arena, result, row, 8),
	    .resource_type = pg_cell_text(arena, result, row, 9),
	    .resource_id = pg_cell_text(arena, result, row, 10),
	    .correlation_id = pg_cell_text(arena, result, row, 11),
	    .causation_id = pg_cell_text(arena, result, row, 12),
	    .traceparent = pg_cell_text(arena, result, row, 13),
	    .tracestate = pg_cell_text(arena, result, row, 14),
	    .fingerprint = pg_cell_hash(result, row, 15),
	    .at_us = pg_cell_int(result, row, 16),
	};
}

static void read_evidence(struct arena *arena, const PGresult *result, int row, void *ret)
{
	*(struct key_conflict_row *)ret = (struct key_conflict_row){
	    .tenant = pg_cell_text(arena, result, row, 0),
	    .command_id = pg_cell_uuid(result, row, 1),
	    .fingerprint = pg_cell_hash(result, row, 2),
	    .client = pg_cell_text(arena, result, row, 3),
	    .actor = pg_cell_text(arena, result, row, 4),
	    .first_us = pg_cell_int(result, row, 5),
	    .last_us = pg_cell_int(result, row, 6),
	    .count = pg_cell_int(result, row, 7),
	};
}

static void read_exception(struct arena *arena, const PGresult *result, int row, void *ret)
{
	struct exception_row *item = ret;
	*item = (struct exception_row){
	    .tenant = pg_cell_text(arena, result, row, 0),
	    .id = pg_cell_uuid(result, row, 1),
	    .subject_type = pg_cell_text(arena, result, row, 5),
	    .subject_id = pg_cell_text(arena, result, row, 6),
	    .business_key = pg_cell_text(arena, result, row, 7),
	    .source = pg_cell_text(arena, result, row, 8),
	    .payload_ref = pg_cell_text(arena, result, row, 9),
	    .reason = pg_cell_text(arena, result, row, 10),
	    .detail = pg_cell_text(arena, result, row, 11),
	    .suggestion = pg_cell_text(arena, result, row, 12),
	    .owner = pg_cell_text(arena, result, row, 13),
	    .retryable = pg_cell_bool(result, row, 14),
	    .actions = pg_cell_text(arena, result, row, 15),
	    .correlation_id = pg_cell_text(arena, result, row, 16),
	    .document_type = pg_cell_text(arena, result, row, 17),
	    .document_id = pg_cell_text(arena, result, row, 18),
	    .opened_us = pg_cell_int(result, row, 19),
	    .due_us = pg_cell_int(result, row, 20),
	    .resolved_us = pg_cell_int(result, row, 21),
	    .resolution = pg_cell_text(arena, result, row, 22),
	    .resolved_by = pg_cell_text(arena, result, row, 23),
	    .note = pg_cell_text(arena, result, row, 24),
	    .trace_id = pg_cell_text(arena, result, row, 25),
	    .needs_approval = pg_cell_text(arena, result, row, 26),
	    .assignee = pg_cell_text(arena, result, row, 27),
	    .service_answer = pg_cell_text(arena, result, row, 28),
	};
	bool known = exception_queue_read(pg_cell(result, row, 2), &item->queue) &&
	             exception_state_read(pg_cell(result, row, 3), &item->state) &&
	             exception_severity_read(pg_cell(result, row, 4), &item->severity);
	assert(known);
	(void)known;
}

static void read_duplicate(struct arena *arena, const PGresult *result, int row, void *ret)
{
	*(struct duplicate_row *)ret = (struct duplicate_row){
	    .tenant = pg_cell_text(arena, result, row, 0),
	    .command_id = pg_cell_uuid(result, row, 1),
	    .first_us = pg_cell_int(result, row, 2),
	    .last_us = pg_cell_int(result, row, 3),
	    .count = pg_cell_int(result, row, 4),
	    .unlisted = pg_cell_int(result, row, 5),
	};
}

static void read_duplicate_seen(struct arena *arena, const PGresult *result, int row, void *ret)
{
	*(struct duplicate_seen_row *)ret = (struct duplicate_seen_row){
	    .tenant = pg_cell_text(arena, result, row, 0),
	    .command_id = pg_cell_uuid(result, row, 1),
	    .at_us = pg_cell_int(result, row, 2),
	    .client = pg_cell_text(arena, result, row, 3),
	    .actor = pg_cell_text(arena, result, row, 4),
	    .decision = pg_cell_text(arena, result, row, 5),
	    .fingerprint = pg_cell_hash(result, row, 6),
	};
}

static void read_reference(struct arena *arena, const PGresult *result, int row, void *ret)
{
	*(struct reference_row *)ret = (struct reference_row){
	    .tenant = pg_cell_text(arena, result, row, 0),
	    .source_system = pg_cell_text(arena, result, row, 1),
	    .external_id = pg_cell_text(arena, result, row, 2),
	    .resource_type = pg_cell_text(arena, result, row, 3),
	    .resource_id = pg_cell_text(arena, result, row, 4),
	    .command_id = pg_cell_uuid(result, row, 5),
	    .at_us = pg_cell_int(result, row, 6),
	};
}

static void read_command(struct arena *arena, const PGresult *result, int row, void *ret)
{
	pg_read_command(arena, result, row, ret);
}

/* ---- Lists ---------------------------------------------------------------------------------- */

static const struct pg_reader command_reader = {read_command, sizeof(struct command_row)};
static const struct pg_reader event_reader = {read_event, sizeof(struct event_row)};
static const struct pg_reader audit_reader = {read_audit, sizeof(struct audit_row)};
static const struct pg_reader evidence_reader = {read_evidence, sizeof(struct key_conflict_row)};
static const struct pg_reader exception_reader = {read_exception, sizeof(struct exception_row)};
static const struct pg_reader duplicate_reader = {read_duplicate, sizeof(struct duplicate_row)};
static const struct pg_reader duplicate_seen_reader = {read_duplicate_seen,
                                                       sizeof(struct duplicate_seen_row)};
static const struct pg_reader reference_reader = {read_reference, sizeof(struct reference_row)};

enum ibid_code pg_list(struct store *base, struct arena *arena, struct pg_call call,
                       const struct pg_reader *reader, void **ret, size_t *ret_count,
                       struct ibid_err *err)
{
	if (arena->failed)
		return err_set(err, IBID_NOMEM, "out of memory");
	enum ibid_code code = pg_pool_query(pg_store_of(base), &call, 1, err);
	if (code)
		goto out;
	size_t count = (size_t)PQntuples(call.result);
	char *rows = arena_array(arena, count, reader->size);
	for (size_t i = 0; rows && i < count; i++)
		reader->read(arena, call.result, (int)i, rows + i * reader->size);
	if (arena->failed) {
		code = err_set(err, IBID_NOMEM, "out of memory");
		goto out;
	}
	*ret = rows;
	*ret_count = count;
out:
	pg_release(&call, 1);
	return code;
}

static const char *limit_text(struct arena *arena, size_t limit)
{
	return pg_int(arena, limit > INT32_MAX ? INT32_MAX : (int64_t)limit);
}

enum ibid_code pg_get_command(struct store *store, struct arena *arena, const char *tenant,
                              const struct uuid *id, const struct identity *identity,
                              struct command_row *ret, struct ibid_err *err)
{
	const char *values[4] = {tenant};
	void *rows = NULL;
	size_t count = 0;
	struct pg_call call = PG_CALL(COMMAND_GET, .values = values);
	if (id) {
		call = PG_CALL(COMMAND_GET_ID, .values = values);
		values[1] = pg_uuid(arena, id);
	} else {
		values[1] = identity->operation;
		values[2] = identity->scope;
		values[3] = identity->key;
	}
	enum ibid_code code = pg_list(store, arena, call, &command_reader, &rows, &count, err);
	if (code == IBID_OK && !count)
		code = err_set(err, IBID_NOT_FOUND, "no such command");
	if (code == IBID_OK)
		*ret = *(struct command_row *)rows;
	return code;
}

enum ibid_code pg_list_commands(struct store *store, struct arena *arena,
                                const struct command_filter *filter, struct command_row **ret,
                                size_t *ret_count, struct ibid_err *err)
{
	const char *values[] = {
	    filter->tenant,
	    filter->operation,
	    filter->key,
	    filter->state < 0 ? NULL : command_state_name((enum command_state)filter->state),
	    filter->after ? pg_uuid(arena, filter->after) : NULL,
	    limit_text(arena, filter->limit),
	    filter->client,
	};
	struct pg_call call = filter->tenant ? PG_CALL(COMMAND_LIST, .values = values)
	                                     : PG_CALL(COMMAND_LIST_ALL, .values = values + 1);
	return pg_list(store, arena, call, &command_reader, (void **)ret, ret_count, err);
}

enum ibid_code pg_list_stale(struct store *store, struct arena *arena,
                             const struct command_filter *filter, struct command_row **ret,
                             size_t *ret_count, struct ibid_err *err)
{
	const char *values[] = {filter->tenant, filter->operation, limit_text(arena, filter->limit)};
	return pg_list(store, arena, PG_CALL(COMMAND_LIST_STALE, .values = values), &command_reader,
	               (void **)ret, ret_count, err);
}

enum ibid_code pg_list_unknown(struct store *store, struct arena *arena,
                               const struct command_filter *filter, struct command_row **ret,
                               size_t *ret_count, struct ibid_err *err)
{
	const char *values[] = {filter->tenant, filter->operation,
	                        filter->after ? pg_uuid(arena, filter->after) : NULL,
	                        limit_text(arena, filter->limit)};
	return pg_list(store, arena, PG_CALL(COMMAND_LIST_UNKNOWN, .values = values), &command_reader,
	               (void **)ret, ret_count, err);
}

enum ibid_code pg_get_event(struct store *store, struct arena *arena, const char *tenant,
                            const struct uuid *id, struct event_row *ret, struct ibid_err *err)
{
	const char *uuid = pg_uuid(arena, id);
	const char *values[] = {tenant, uuid, uuid, limit_text(arena, 1)};
	struct event_row *rows = NULL;
	size_t count = 0;
	enum ibid_code code = pg_list(store, arena, PG_CALL(EVENT_LIST_COMMAND, .values = values),
	                              &event_reader, (void **)&rows, &count, err);
	if (!code && !count)
		code = err_set(err, IBID_NOT_FOUND, "no such event");
	if (!code)
		*ret = rows[0];
	return code;
}

enum ibid_code pg_list_events(struct store *store, struct arena *arena, const char *tenant,
                              const struct uuid *command_id, size_t limit, struct event_row **ret,
                              size_t *ret_count, struct ibid_err *err)
{
	const char *limited = limit_text(arena, limit);
	struct uuid first = {{0}}, last = {{0}};
	if (command_id) {
		first = uuid_nth(*command_id, 0);
		last = uuid_nth(*command_id, EVENT_ORDINAL_MAX);
	}
	const char *of_command[] = {tenant, pg_uuid(arena, &first), pg_uuid(arena, &last), limited};
	const char *of_tenant[] = {tenant, limited};
	struct pg_call call = command_id ? PG_CALL(EVENT_LIST_COMMAND, .values = of_command)
	                                 : PG_CALL(EVENT_LIST, .values = of_tenant);
	return pg_list(store, arena, call, &event_reader, (void **)ret, ret_count, err);
}

enum ibid_code pg_list_audit(struct store *store, struct arena *arena, const char *tenant,
                             const struct uuid *command_id, size_t limit, struct audit_row **ret,
                             size_t *ret_count, struct ibid_err *err)
{
	const char *limited = limit_text(arena, limit);
	const char *of_command[] = {tenant, command_id ? pg_uuid(arena, command_id) : NULL, limited};
	const char *of_tenant[] = {tenant, limited};
	struct pg_call call = command_id ? PG_CALL(AUDIT_LIST_COMMAND, .values = of_command)
	                                 : PG_CALL(AUDIT_LIST, .values = of_tenant);
	return pg_list(store, arena, call, &audit_reader, (void **)ret, ret_count, err);
}

enum ibid_code pg_list_evidence(struct store *store, struct arena *arena, const char *tenant,
                                const struct uuid *command_id, struct key_conflict_row **ret,
                                size_t *ret_count, struct ibid_err *err)
{
	const char *values[] = {tenant, pg_uuid(arena, command_id)};
	return pg_list(store, arena, PG_CALL(EVIDENCE_LIST, .values = values), &evidence_reader,
	               (void **)ret, ret_count, err);
}

enum ibid_code pg_get_exception(struct store *store, struct arena *arena, const char *tenant,
                                const struct uuid *id, struct exception_row *ret,
                                struct ibid_err *err)
{
	const char *values[] = {tenant, pg_uuid(arena, id)};
	void *rows = NULL;
	size_t count = 0;
	enum ibid_code code = pg_list(store, arena, PG_CALL(EXCEPTION_GET, .values = values),
	                              &exception_reader, &rows, &count, err);
	if (code == IBID_OK && !count)
		code = err_set(err, IBID_NOT_FOUND, "no such exception");
	if (code == IBID_OK)
		*ret = *(struct exception_row *)rows;
	return code;
}

enum ibid_code pg_get_payload(struct store *store, struct arena *arena, const char *tenant,
                              const struct uuid *command_id, struct payload_row *ret,
                              struct ibid_err *err)
{
	const char *values[] = {tenant, pg_uuid(arena, command_id)};
	struct pg_call call = PG_CALL(PAYLOAD_GET, .values = values);
	enum ibid_code code = arena->failed ? err_set(err, IBID_NOMEM, "out of memory")
	                                    : pg_pool_query(pg_store_of(store), &call, 1, err);
	if (!code && !PQntuples(call.result))
		code = err_set(err, IBID_NOT_FOUND, "no payload is kept of this command");
	struct payload_row row = {.tenant = arena_strdup(arena, tenant), .command_id = *command_id};
	if (!code)
		row.text = pg_cell_text(arena, call.result, 0, 0);
	pg_release(&call, 1);
	if (!code && arena->failed)
		code = err_set(err, IBID_NOMEM, "out of memory");
	if (!code) {
		row.size = strlen(row.text);
		*ret = row;
	}
	return code;
}

enum ibid_code pg_list_exceptions(struct store *store, struct arena *arena,
                                  const struct exception_filter *filter, struct exception_row **ret,
                                  size_t *ret_count, struct ibid_err *err)
{
	const char *values[] = {
	    filter->tenant,
	    filter->queue < 0 ? NULL : exception_queue_name((enum exception_queue)filter->queue),
	    filter->state < 0 ? NULL : exception_state_name((enum exception_state)filter->state),
	    filter->owner,
	    filter->subject_type,
	    filter->subject_id,
	    filter->after ? pg_uuid(arena, filter->after) : NULL,
	    limit_text(arena, filter->limit),
	    filter->assignee,
	};
	return pg_list(store, arena, PG_CALL(EXCEPTION_LIST, .values = values), &exception_reader,
	               (void **)ret, ret_count, err);
}

enum ibid_code pg_get_duplicates(struct store *store, struct arena *arena, const char *tenant,
                                 const struct uuid *command_id, struct duplicate_row *ret,
                                 struct ibid_err *err)
{
	const char *values[] = {tenant, pg_uuid(arena, command_id)};
	void *rows = NULL;
	size_t count = 0;
	enum ibid_code code = pg_list(store, arena, PG_CALL(DUPLICATE_GET, .values = values),
	                              &duplicate_reader, &rows, &count, err);
	if (code == IBID_OK)
		*ret = count ? *(struct duplicate_row *)rows : (struct duplicate_row){.count = 0};
	return code;
}

enum ibid_code pg_list_duplicates(struct store *store, struct arena *arena, const char *tenant,
                                  const struct uuid *command_id, size_t limit,
                                  struct duplicate_seen_row **ret, size_t *ret_count,
                                  struct ibid_err *err)
{
	const char *values[] = {tenant, pg_uuid(arena, command_id), limit_text(arena, limit)};
	return pg_list(store, arena, PG_CALL(DUPLICATE_SEEN_LIST, .values = values),
	               &duplicate_seen_reader, (void **)ret, ret_count, err);
}

enum ibid_code pg_list_references(struct store *store, struct arena *arena,
                                  const struct reference_filter *filter, struct reference_row **ret,
                                  size_t *ret_count, struct ibid_err *err)
{
	const char *external[] = {filter->tenant, filter->source_system, filter->external_id};
	const char *resource[] = {filter->tenant, filter->resource_type, filter->resource_id};
	struct pg_call call = filter->external_id ? PG_CALL(REFERENCE_BY_EXTERNAL, .values = external)
	                                          : PG_CALL(REFERENCE_BY_RESOURCE, .values = resource);
	return pg_list(store, arena, call, &reference_reader, (void **)ret, ret_count, err);
}
