/* SPDX-License-Identifier: Apache-2.0 */
/* command.c -- commands: what a row means, how it is found and listed. */
#include "store/command.h"

#include "store/run.h"

#include <assert.h>
#include <string.h>

WORDS_DEFINE(command_state, command_state, COMMAND_STATES);

/* ---- Meaning -------------------------------------------------------------------------------- */

bool command_expired(const struct command_row *row, int64_t now_us)
{
	bool ended = row->state == COMMAND_COMPLETED || row->state == COMMAND_REJECTED ||
	             row->state == COMMAND_FAILED;
	return ended && row->expires_us && row->expires_us <= now_us;
}

bool command_unbound(const struct command_row *row)
{
	return row->state == COMMAND_FAILED && row->scheme == SCHEME_UNBOUND;
}

bool command_gives_way(const struct command_row *row, const struct work_context *context)
{
	return context->runs_again && command_expired(row, context->now_us);
}

bool evidence_of_refused(const struct command_row *row, const struct command_row *previous,
                         struct key_conflict_row *ret)
{
	if (!previous || !command_unbound(previous) ||
	    memcmp(&previous->id, &row->id, sizeof row->id) != 0 ||
	    memcmp(&previous->fingerprint, &row->fingerprint, sizeof row->fingerprint) == 0)
		return false;
	*ret = (struct key_conflict_row){
	    .tenant = previous->identity.tenant,
	    .command_id = previous->id,
	    .fingerprint = previous->fingerprint,
	    .client = previous->client ? previous->client : "",
	    .actor = previous->actor ? previous->actor : "",
	    .first_us = previous->finished_us,
	    .last_us = previous->finished_us,
	    .count = 1,
	};
	return true;
}

/* ---- Shapes --------------------------------------------------------------------------------- */

#define COMMAND(kind, column, member, ...)                                                         \
	ROW_COLUMN(kind, struct command_row, column, member, __VA_ARGS__)
static const struct row_column command_columns[] = {
    COMMAND(UUID, id, id),
    COMMAND(TEXT, tenant, identity.tenant, .inside = true),
    COMMAND(TEXT, operation, identity.operation),
    COMMAND(TEXT, scope, identity.scope, .inside = true),
    COMMAND(TEXT, key, identity.key),
    COMMAND(WORD, state, state, .words = &command_state_words),
    COMMAND(INT, scheme, scheme, .inside = true),
    COMMAND(INT, contract_version, contract_version, .inside = true),
    COMMAND(HASH, fingerprint, fingerprint, .inside = true),
    COMMAND(BOOL, linked, linked, .inside = true),
    COMMAND(INT, status, status, .json = ""),
    COMMAND(TEXT, resource_type, resource_type),
    COMMAND(TEXT, resource_id, resource_id),
    COMMAND(TEXT, reason, reason, .json = "code"),
    COMMAND(TEXT, text, text, .json = ""),
    COMMAND(UUID_OR_NULL, audit_id, audit_id, .inside = true),
    COMMAND(INT, attempts, attempts),
    COMMAND(TEXT, client, client),
    COMMAND(TEXT, actor, actor),
    COMMAND(TIME, created_at, created_us),
    COMMAND(TIME_OR_NONE, finished_at, finished_us),
    COMMAND(TIME_OR_NONE, expires_at, expires_us),
    COMMAND(LONG, lease_token, lease_token, .none = NONE_EMPTY, .inside = true),
    COMMAND(TIME_OR_NONE, lease_until, lease_until_us, .inside = true),
    COMMAND(BOOL, stale, stale, .inside = true),
    COMMAND(TEXT, correlation_id, correlation_id, .json = ""),
    COMMAND(TEXT, causation_id, causation_id, .json = ""),
    COMMAND(TEXT, traceparent, traceparent, .json = ""),
    COMMAND(TEXT, tracestate, tracestate, .json = ""),
    COMMAND(SIZED, body, body, .json = ""),
};
static_assert(offsetof(struct command_row, body_size) ==
                  offsetof(struct command_row, body) + sizeof(char *),
              "a sized text has its size behind it");
const struct row_shape command_shape = ROW_SHAPE(struct command_row, command_columns);

static const struct row_column identity_columns[] = {
    ROW_COLUMN(TEXT, struct identity, tenant, tenant),
    ROW_COLUMN(TEXT, struct identity, operation, operation),
    ROW_COLUMN(TEXT, struct identity, scope, scope),
    ROW_COLUMN(TEXT, struct identity, key, key),
};
const struct row_shape identity_shape = ROW_SHAPE(struct identity, identity_columns);

#define FILTER(kind, member, ...)                                                                  \
	ROW_COLUMN(kind, struct command_filter, member, member, __VA_ARGS__)
static const struct row_column filter_columns[] = {
    FILTER(TEXT, tenant),
    FILTER(TEXT, operation),
    FILTER(TEXT, key),
    FILTER(TEXT, client),
    FILTER(WORD, state, .words = &command_state_words),
    FILTER(UUID_AT, after),
    FILTER(SIZE, limit),
};
static const struct row_shape filter_shape = ROW_SHAPE(struct command_filter, filter_columns);

static const struct row_column conflict_columns[] = {
    ROW_COLUMN(TEXT, struct key_conflict_row, tenant, tenant, .json = ""),
    ROW_COLUMN(UUID, struct key_conflict_row, command_id, command_id, .json = ""),
    ROW_COLUMN(HASH, struct key_conflict_row, fingerprint, fingerprint),
    ROW_COLUMN(TEXT, struct key_conflict_row, client, client, .none = NONE_EMPTY),
    ROW_COLUMN(TEXT, struct key_conflict_row, actor, actor, .none = NONE_EMPTY),
    ROW_COLUMN(TIME_OR_NONE, struct key_conflict_row, first_at, first_us),
    ROW_COLUMN(TIME, struct key_conflict_row, last_at, last_us),
    ROW_COLUMN(LONG, struct key_conflict_row, count, count),
};
const struct row_shape key_conflict_shape = ROW_SHAPE(struct key_conflict_row, conflict_columns);

static const struct row_column tenant_columns[] = {
    ROW_COLUMN(TEXT, struct tenant_row, tenant, tenant),
    ROW_COLUMN(LONG, struct tenant_row, commands, commands),
    ROW_COLUMN(LONG, struct tenant_row, open_exceptions, open_exceptions),
};
const struct row_shape tenant_shape = ROW_SHAPE(struct tenant_row, tenant_columns);

/* ---- Verbs ---------------------------------------------------------------------------------- */

enum ibid_code store_get_command(struct store *store, struct arena *arena, const char *tenant,
                                 const struct uuid *id, const struct identity *identity,
                                 struct command_row *ret, struct ibid_err *err)
{
	struct lookup by_id = {.tenant = tenant};
	struct identity within = {.tenant = tenant};
	struct sql_in in = SQL_IN(command_get, identity_shape, &within);
	if (id) {
		by_id.id = *id;
		in = SQL_IN(command_get_by_id, lookup_shape, &by_id);
	} else {
		within = *identity;
		within.tenant = tenant; /* I9 */
	}
	enum ibid_code code = sql_get(store, in, arena, &command_shape, ret, "no such command", err);
	if (code == IBID_NOT_FOUND && store->ops->check_settled)
		return store->ops->check_settled(store, code, err);
	return code;
}

enum ibid_code store_list_commands(struct store *store, struct arena *arena,
                                   const struct command_filter *filter, struct command_row **ret,
                                   size_t *ret_count, struct ibid_err *err)
{
	struct sql_in in = filter->tenant ? SQL_IN(command_list, filter_shape, filter)
	                                  : SQL_IN(command_list_all, filter_shape, filter);
	return sql_list(store, in, arena, &command_shape, ret, ret_count, err);
}

enum ibid_code store_list_stale(struct store *store, struct arena *arena,
                                const struct command_filter *filter, struct command_row **ret,
                                size_t *ret_count, struct ibid_err *err)
{
	return sql_list(store, SQL_IN(command_list_stale, filter_shape, filter), arena, &command_shape,
	                ret, ret_count, err);
}

enum ibid_code store_list_unknown(struct store *store, struct arena *arena,
                                  const struct command_filter *filter, struct command_row **ret,
                                  size_t *ret_count, struct ibid_err *err)
{
	return sql_list(store, SQL_IN(command_list_unknown, filter_shape, filter), arena,
	                &command_shape, ret, ret_count, err);
}

enum ibid_code store_put_evidence(struct store *store, const struct key_conflict_row *row,
                                  struct ibid_err *err)
{
	int64_t changed;
	return sql_change(store, SQL_IN(evidence_put, key_conflict_shape, row), &changed, err);
}

enum ibid_code store_list_evidence(struct store *store, struct arena *arena, const char *tenant,
                                   const struct uuid *command_id, struct key_conflict_row **ret,
                                   size_t *ret_count, struct ibid_err *err)
{
	struct lookup of = {.tenant = tenant, .id = *command_id};
	return sql_list(store, SQL_IN(evidence_list, lookup_shape, &of), arena, &key_conflict_shape,
	                ret, ret_count, err);
}
