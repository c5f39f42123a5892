/* SPDX-License-Identifier: Apache-2.0 */
/* put.c -- what a command leaves behind: its row, its events, its audit entry, evidence,
 * human work.
 *
 * All but the evidence of a conflict only wait in the transaction's queue: errors show when it
 * travels. */
#include "store/postgres/postgres.h"
#include "store/run.h"

#include <assert.h>
#include <string.h>

#define COUNT(values) (sizeof(values) / sizeof *(values))

/* Queue a statement, which takes as many of the values as it has parameters. They are copied into
 * the queue's arena, where they outlive the caller's. */
static enum ibid_code put(struct pg_tx *tx, enum pg_statement_name name, const char **values,
                          size_t given, struct ibid_err *err)
{
	const struct pg_statement *statement = &pg_statements[name];
	size_t count = (size_t)statement->param_count;
	assert(count <= given);
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
	return put(tx, STATEMENT_EVENT_APPEND, values, COUNT(values), err);
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
	return put(tx, STATEMENT_ANSWER_INSERT, values, COUNT(values), err);
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
	return put(tx, STATEMENT_ANSWER_DELETE, values, COUNT(values), err);
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
	enum ibid_code code = put(tx, statement_of(row, previous), values, COUNT(values), err);
	if (code == IBID_OK && previous && memcmp(&previous->id, &row->id, sizeof row->id) != 0)
		code = delete_bodies(tx, previous, err);
	if (code == IBID_OK && evidence_of_refused(row, previous, &evidence))
		code = sql_put(base, SQL_IN(evidence_put, key_conflict_shape, &evidence), err);
	if (code == IBID_OK && row->body)
		code = pg_put_body(tx, row, err);
	return code;
}
