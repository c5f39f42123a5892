/* SPDX-License-Identifier: Apache-2.0 */
/* put.c -- what a command leaves behind: its row, its events, its audit entry, evidence,
 * human work.
 *
 * All but the evidence of a conflict only wait in the transaction's queue: errors show when it
 * travels. */
#include "store/postgres/postgres.h"

#include <string.h>

/* Copy the values into the queue's arena, where they outlive the caller's. */
enum ibid_code pg_tx_put(struct pg_tx *tx, enum pg_statement_name name, const char **values,
                         struct ibid_err *err)
{
	const struct pg_statement *statement = &pg_statements[name];
	size_t count = (size_t)statement->param_count;
	const char **copies = arena_array(&tx->arena, count, sizeof *copies);
	for (size_t i = 0; copies && i < count; i++)
		copies[i] = arena_strdup(&tx->arena, values[i]);
	if (tx->arena.failed) {
		err_set(err, IBID_NOMEM, "out of memory");
		return pg_tx_doom(tx, err, NULL);
	}
	return pg_tx_queue(tx, (struct pg_call){.statement = statement, .values = copies}, err);
}

enum ibid_code pg_put_event(struct tx *base, const struct event_row *event, struct ibid_err *err)
{
	struct pg_tx *tx = pg_tx_of(base);
	struct arena *arena = &tx->arena;
	const char *values[] = {
	    event->tenant,
	    pg_uuid(arena, &event->command_id),
	    pg_int(arena, event->ordinal),
	    event->aggregate_type,
	    event->aggregate_id,
	    event->type,
	    event->payload,
	    event->version ? pg_int(arena, event->version) : NULL,
	    event->key,
	    event->correlation_id,
	    event->causation_id,
	    pg_time(arena, event->at_us),
	    event->traceparent,
	    event->tracestate,
	    event->topic,
	    event->partition_key,
	    event->headers,
	};
	return pg_tx_put(tx, STATEMENT_EVENT_APPEND, values, err);
}

enum ibid_code pg_put_audit(struct tx *base, const struct audit_row *audit, struct ibid_err *err)
{
	struct pg_tx *tx = pg_tx_of(base);
	struct arena *arena = &tx->arena;
	const char *values[] = {
	    audit->tenant,
	    pg_uuid(arena, &audit->command_id),
	    audit->operation,
	    pg_int(arena, audit->contract_version),
	    audit->fact,
	    audit->outcome,
	    audit->client,
	    audit->actor,
	    audit->resource_type,
	    audit->resource_id,
	    audit->correlation_id,
	    audit->causation_id,
	    audit->traceparent,
	    audit->tracestate,
	    pg_hash(arena, &audit->fingerprint),
	    pg_time(arena, audit->at_us),
	};
	return pg_tx_put(tx, STATEMENT_AUDIT_INSERT, values, err);
}

static const char *uuid_or_null(struct arena *arena, const struct uuid *uuid)
{
	static const struct uuid none;
	return memcmp(uuid, &none, sizeof none) == 0 ? NULL : pg_uuid(arena, uuid);
}

enum ibid_code pg_put_body(struct pg_tx *tx, const struct command_row *row, struct ibid_err *err)
{
	const char *values[] = {
	    row->identity.tenant,
	    pg_uuid(&tx->arena, &row->id),
	    pg_int(&tx->arena, row->attempts),
	    arena_strndup(&tx->arena, row->body, row->body_size),
	};
	return pg_tx_put(tx, STATEMENT_ANSWER_INSERT, values, err);
}

static const char *int_or_null(struct arena *arena, int64_t value)
{
	return value ? pg_int(arena, value) : NULL;
}

/* Each takes as many of the values as it has parameters. */
static enum pg_statement_name statement_of(const struct command_row *row,
                                           const struct command_row *previous)
{
	if (previous)
		return STATEMENT_COMMAND_REPLACE;
	bool more = row->lease_token || row->correlation_id || row->causation_id || row->traceparent;
	return more ? STATEMENT_COMMAND_STAGE : STATEMENT_COMMAND_INSERT;
}

/* Of a command that gave way to another, whatever its runs left. */
static enum ibid_code delete_bodies(struct pg_tx *tx, const struct command_row *row,
                                    struct ibid_err *err)
{
	const char *values[] = {row->identity.tenant, pg_uuid(&tx->arena, &row->id)};
	return pg_tx_put(tx, STATEMENT_ANSWER_DELETE, values, err);
}

enum { EVIDENCE_PARAMS = 6 };

static void evidence_values(struct arena *arena, const struct key_conflict_row *evidence,
                            const char *ret[EVIDENCE_PARAMS])
{
	const char *values[EVIDENCE_PARAMS] = {
	    evidence->tenant,
	    pg_uuid(arena, &evidence->command_id),
	    pg_hash(arena, &evidence->fingerprint),
	    evidence->client,
	    evidence->actor,
	    pg_time(arena, evidence->last_us ? evidence->last_us : evidence->first_us),
	};
	memcpy(ret, values, sizeof values);
}

/* With the row of the command that it is of (I1). */
static enum ibid_code count_evidence(struct pg_tx *tx, const struct key_conflict_row *evidence,
                                     struct ibid_err *err)
{
	const char *values[EVIDENCE_PARAMS];
	evidence_values(&tx->arena, evidence, values);
	return pg_tx_put(tx, STATEMENT_EVIDENCE_COUNT, values, err);
}

enum ibid_code pg_put_command(struct tx *base, const struct command_row *row,
                              const struct command_row *previous, struct ibid_err *err)
{
	struct pg_tx *tx = pg_tx_of(base);
	struct arena *arena = &tx->arena;
	const char *audit_id = uuid_or_null(arena, &row->audit_id);
	if ((row->state == COMMAND_COMPLETED) != (audit_id != NULL)) {
		err_set(err, IBID_MISUSE, "completed commands, and only they, have an audit entry");
		return pg_tx_doom(tx, err, NULL);
	}
	const char *values[] = {
	    row->identity.tenant,
	    row->identity.operation,
	    row->identity.scope,
	    row->identity.key,
	    pg_uuid(arena, &row->id),
	    command_state_name(row->state),
	    pg_int(arena, row->scheme),
	    pg_int(arena, row->contract_version),
	    pg_hash(arena, &row->fingerprint),
	    row->linked ? "true" : "false",
	    pg_int(arena, row->status),
	    row->resource_type,
	    row->resource_id,
	    row->reason,
	    row->text,
	    audit_id,
	    pg_int(arena, row->attempts),
	    row->client,
	    row->actor,
	    pg_time(arena, row->created_us),
	    pg_time_or_null(arena, row->finished_us),
	    pg_time_or_null(arena, row->expires_us),
	    int_or_null(arena, row->lease_token),
	    int_or_null(arena, row->lease_us),
	    row->correlation_id,
	    row->causation_id,
	    row->traceparent,
	    row->tracestate,
	    previous ? command_state_name(previous->state) : NULL,
	    previous ? pg_int(arena, previous->attempts) : NULL,
	    previous ? int_or_null(arena, previous->lease_token) : NULL,
	    previous ? pg_uuid(arena, &previous->id) : NULL,
	};
	struct key_conflict_row evidence;
	enum ibid_code code = pg_tx_put(tx, statement_of(row, previous), values, err);
	if (code == IBID_OK && previous && memcmp(&previous->id, &row->id, sizeof row->id) != 0)
		code = delete_bodies(tx, previous, err);
	if (code == IBID_OK && evidence_of_refused(row, previous, &evidence))
		code = count_evidence(tx, &evidence, err);
	if (code == IBID_OK && row->body)
		code = pg_put_body(tx, row, err);
	return code;
}

enum ibid_code pg_put_payload(struct tx *base, const struct payload_row *row, struct ibid_err *err)
{
	struct pg_tx *tx = pg_tx_of(base);
	const char *values[] = {row->tenant, pg_uuid(&tx->arena, &row->command_id), row->text};
	return pg_tx_put(tx, row->text ? STATEMENT_PAYLOAD_PUT : STATEMENT_PAYLOAD_DELETE, values, err);
}

void pg_exception_values(struct arena *arena, const struct exception_row *row,
                         const char *ret[PG_EXCEPTION_PARAMS])
{
	const char *values[PG_EXCEPTION_PARAMS] = {
	    row->tenant,
	    pg_uuid(arena, &row->id),
	    exception_queue_name(row->queue),
	    exception_severity_name(row->severity),
	    row->subject_type,
	    row->subject_id,
	    row->business_key,
	    row->source,
	    row->payload_ref,
	    row->reason,
	    row->detail,
	    row->suggestion,
	    row->owner,
	    row->retryable ? "true" : "false",
	    row->actions,
	    row->correlation_id,
	    row->document_type,
	    row->document_id,
	    pg_time(arena, row->opened_us),
	    pg_time_or_null(arena, row->due_us),
	    row->trace_id,
	    row->needs_approval ? row->needs_approval : "",
	    row->service_answer,
	};
	memcpy(ret, values, sizeof values);
}

enum ibid_code pg_put_exception(struct tx *base, const struct exception_row *row,
                                struct ibid_err *err)
{
	struct pg_tx *tx = pg_tx_of(base);
	const char *values[PG_EXCEPTION_PARAMS];
	pg_exception_values(&tx->arena, row, values);
	return pg_tx_put(tx, STATEMENT_EXCEPTION_INSERT, values, err);
}

static enum ibid_code end_item(struct pg_tx *tx, const struct exception_end *end,
                               struct ibid_err *err)
{
	const char *values[] = {
	    end->tenant,
	    pg_uuid(&tx->arena, end->id),
	    pg_time(&tx->arena, end->resolved_us),
	    end->resolution,
	    end->resolved_by,
	    end->note,
	    end->approval ? pg_uuid(&tx->arena, end->approval) : NULL,
	};
	return pg_tx_put(tx, STATEMENT_EXCEPTION_END, values, err);
}

enum ibid_code pg_resolve_exception(struct tx *base, const struct exception_end *end,
                                    struct ibid_err *err)
{
	struct pg_tx *tx = pg_tx_of(base);
	if (end->id)
		return end_item(tx, end, err);
	const char *values[] = {
	    end->tenant,
	    exception_queue_name(end->queue),
	    end->subject_type,
	    end->subject_id,
	    pg_time(&tx->arena, end->resolved_us),
	    end->resolution,
	    end->resolved_by,
	    end->note,
	};
	return pg_tx_put(tx, STATEMENT_EXCEPTION_RESOLVE, values, err);
}

enum ibid_code pg_put_evidence(struct store *base, const struct key_conflict_row *evidence,
                               struct ibid_err *err)
{
	struct arena arena = {0};
	const char *values[EVIDENCE_PARAMS];
	evidence_values(&arena, evidence, values);
	struct pg_call call = PG_CALL(EVIDENCE_COUNT, .values = values);
	enum ibid_code code = arena.failed ? err_set(err, IBID_NOMEM, "out of memory")
	                                   : pg_pool_query(pg_store_of(base), &call, 1, err);
	pg_release(&call, 1);
	arena_release(&arena);
	return code;
}
