/* SPDX-License-Identifier: Apache-2.0 */
/* command.c -- the command's row: written once, complete; found by identity or id; listed. */
#include "store/sqlite/lite.h"

#include <string.h>

/* ---- Reading -------------------------------------------------------------------------------- */

static enum ibid_code read_row(struct lite_run *run, struct arena *arena, struct command_row *ret,
                               struct ibid_err *err)
{
	ret->identity.tenant = lite_read_text(run, arena);
	ret->identity.operation = lite_read_text(run, arena);
	ret->identity.scope = lite_read_text(run, arena);
	ret->identity.key = lite_read_text(run, arena);
	ret->id = lite_read_uuid(run);
	const char *state = lite_read_text(run, arena);
	ret->scheme = lite_read_small(run);
	ret->contract_version = lite_read_small(run);
	ret->fingerprint = lite_read_hash(run);
	ret->linked = lite_read_small(run) != 0;
	ret->status = lite_read_small(run);
	ret->resource_type = lite_read_text(run, arena);
	ret->resource_id = lite_read_text(run, arena);
	ret->reason = lite_read_text(run, arena);
	ret->text = lite_read_text(run, arena);
	ret->audit_id = lite_read_uuid(run);
	ret->attempts = lite_read_small(run);
	ret->client = lite_read_text(run, arena);
	ret->actor = lite_read_text(run, arena);
	ret->created_us = lite_read_int(run);
	ret->finished_us = lite_read_int(run);
	ret->expires_us = lite_read_int(run);
	ret->lease_token = lite_read_int(run);
	ret->lease_until_us = lite_read_int(run);
	ret->correlation_id = lite_read_text(run, arena);
	ret->causation_id = lite_read_text(run, arena);
	ret->traceparent = lite_read_text(run, arena);
	ret->tracestate = lite_read_text(run, arena);
	ret->body = lite_read_bytes(run, arena, &ret->body_size);
	if (arena->failed)
		return err_set(err, IBID_NOMEM, "out of memory");
	if (!command_state_read(state, &ret->state))
		return err_set(err, IBID_SCHEMA, "a command has the unknown state %s; upgrade ibid", state);
	return IBID_OK;
}

/* IBID_NOT_FOUND, without a text, when there is no row. */
static enum ibid_code read_one(struct lite_run *run, enum ibid_code code, struct arena *arena,
                               struct command_row *ret, struct ibid_err *err)
{
	struct command_row row = {.linked = false};
	if (lite_row(run, &code, err)) {
		code = read_row(run, arena, &row, err);
		if (!code)
			*ret = row;
	} else if (!code) {
		code = IBID_NOT_FOUND;
	}
	lite_end(run);
	return code;
}

enum ibid_code lite_find_command(struct lite_conn *conn, struct arena *arena,
                                 const struct identity *identity, struct command_row *ret,
                                 struct ibid_err *err)
{
	struct lite_run run;
	enum ibid_code code = lite_start(conn, LITE_command_get, &run, err);
	lite_bind_text(&run, identity->tenant);
	lite_bind_text(&run, identity->operation);
	lite_bind_text(&run, identity->scope);
	lite_bind_text(&run, identity->key);
	return read_one(&run, code, arena, ret, err);
}

static enum ibid_code find_by_id(struct lite_conn *conn, struct arena *arena, const char *tenant,
                                 const struct uuid *id, struct command_row *ret,
                                 struct ibid_err *err)
{
	struct lite_run run;
	enum ibid_code code = lite_start(conn, LITE_command_get_by_id, &run, err);
	lite_bind_text(&run, tenant);
	lite_bind_uuid(&run, id);
	return read_one(&run, code, arena, ret, err);
}

enum ibid_code lite_get_command(struct store *base, struct arena *arena, const char *tenant,
                                const struct uuid *id, const struct identity *identity,
                                struct command_row *ret, struct ibid_err *err)
{
	struct lite_store *store = lite_of(base);
	struct lite_conn *conn;
	enum ibid_code code = lite_reader_take(store, &conn, err);
	if (code)
		return code;
	if (id) {
		code = find_by_id(conn, arena, tenant, id, ret, err);
	} else {
		struct identity within = *identity;
		within.tenant = tenant; /* I9 */
		code = lite_find_command(conn, arena, &within, ret, err);
	}
	lite_reader_give(store, conn);
	if (!code)
		lite_mark_stale(store, ret);
	if (code == IBID_NOT_FOUND && store->stale) /* it may be found yet (I7) */
		return err_set(err, IBID_BUSY, "%s: the outcome of a commit is not known yet; ask again",
		               store->path);
	if (code == IBID_NOT_FOUND)
		err_set(err, code, "no such command");
	return code;
}

static enum ibid_code start_list(struct lite_conn *conn, const struct command_filter *filter,
                                 int64_t now_us, struct lite_run *run, struct ibid_err *err)
{
	(void)now_us;
	enum lite_sql sql = filter->tenant ? LITE_command_list : LITE_command_list_all;
	enum ibid_code code = lite_start(conn, sql, run, err);
	if (filter->tenant)
		lite_bind_text(run, filter->tenant);
	lite_bind_text(run, filter->operation);
	lite_bind_text(run, filter->key);
	lite_bind_text(run, filter->state < 0 ? NULL
	                                      : command_state_name((enum command_state)filter->state));
	lite_bind_uuid(run, filter->after);
	lite_bind_int(run, (int64_t)filter->limit);
	lite_bind_text(run, filter->client);
	return code;
}

static enum ibid_code start_stale(struct lite_conn *conn, const struct command_filter *filter,
                                  int64_t now_us, struct lite_run *run, struct ibid_err *err)
{
	enum ibid_code code = lite_start(conn, LITE_command_list_stale, run, err);
	lite_bind_text(run, filter->tenant);
	lite_bind_text(run, filter->operation);
	lite_bind_int(run, now_us);
	lite_bind_int(run, (int64_t)filter->limit);
	return code;
}

static enum ibid_code start_unknown(struct lite_conn *conn, const struct command_filter *filter,
                                    int64_t now_us, struct lite_run *run, struct ibid_err *err)
{
	(void)now_us;
	enum ibid_code code = lite_start(conn, LITE_command_list_unknown, run, err);
	lite_bind_text(run, filter->tenant);
	lite_bind_text(run, filter->operation);
	lite_bind_uuid(run, filter->after);
	lite_bind_int(run, (int64_t)filter->limit);
	return code;
}

typedef enum ibid_code list_start(struct lite_conn *, const struct command_filter *, int64_t now_us,
                                  struct lite_run *, struct ibid_err *);

static enum ibid_code list(struct store *base, struct arena *arena,
                           const struct command_filter *filter, list_start *start,
                           struct command_row **ret, size_t *ret_count, struct ibid_err *err)
{
	struct lite_store *store = lite_of(base);
	struct lite_conn *conn;
	struct lite_run run;
	struct lite_rows rows = {.arena = arena, .size = sizeof(struct command_row)};
	enum ibid_code code = lite_reader_take(store, &conn, err);
	if (code)
		return code;
	code = start(conn, filter, env_wall_us(store->env), &run, err);
	while (lite_row(&run, &code, err)) {
		struct command_row *row = lite_rows_add(&rows);
		code = row ? read_row(&run, arena, row, err) : err_set(err, IBID_NOMEM, "out of memory");
		if (!code)
			lite_mark_stale(store, row);
	}
	lite_end(&run);
	lite_reader_give(store, conn);
	if (!code) {
		*ret = rows.items;
		*ret_count = rows.count;
	}
	return code;
}

enum ibid_code lite_list_commands(struct store *store, struct arena *arena,
                                  const struct command_filter *filter, struct command_row **ret,
                                  size_t *ret_count, struct ibid_err *err)
{
	return list(store, arena, filter, start_list, ret, ret_count, err);
}

enum ibid_code lite_list_stale(struct store *store, struct arena *arena,
                               const struct command_filter *filter, struct command_row **ret,
                               size_t *ret_count, struct ibid_err *err)
{
	return list(store, arena, filter, start_stale, ret, ret_count, err);
}

enum ibid_code lite_list_unknown(struct store *store, struct arena *arena,
                                 const struct command_filter *filter, struct command_row **ret,
                                 size_t *ret_count, struct ibid_err *err)
{
	return list(store, arena, filter, start_unknown, ret, ret_count, err);
}

/* ---- Writing -------------------------------------------------------------------------------- */

static void bind_row(struct lite_run *run, const struct command_row *row, int64_t now_us)
{
	lite_bind_text(run, row->identity.tenant);
	lite_bind_text(run, row->identity.operation);
	lite_bind_text(run, row->identity.scope);
	lite_bind_text(run, row->identity.key);
	lite_bind_uuid(run, &row->id);
	lite_bind_text(run, command_state_name(row->state));
	lite_bind_int(run, row->scheme);
	lite_bind_int(run, row->contract_version);
	lite_bind_hash(run, &row->fingerprint);
	lite_bind_int(run, row->linked);
	lite_bind_int(run, row->status);
	lite_bind_text(run, row->resource_type);
	lite_bind_text(run, row->resource_id);
	lite_bind_text(run, row->reason);
	lite_bind_text(run, row->text);
	lite_bind_uuid_or_null(run, &row->audit_id);
	lite_bind_int(run, row->attempts);
	lite_bind_text(run, row->client);
	lite_bind_text(run, row->actor);
	lite_bind_int(run, row->created_us);
	lite_bind_int(run, row->finished_us);
	lite_bind_int(run, row->expires_us);
	lite_bind_int_or_null(run, row->lease_token);
	lite_bind_int_or_null(run, row->lease_us ? now_us + row->lease_us : 0);
	lite_bind_text(run, row->correlation_id);
	lite_bind_text(run, row->causation_id);
	lite_bind_text(run, row->traceparent);
	lite_bind_text(run, row->tracestate);
}

static enum ibid_code taken(struct ibid_err *err)
{
	return err_set(
	    err, IBID_RETRY,
	    "another transaction has written this command meanwhile: nothing was changed; send "
	    "it again with the same key"); /* I2 */
}

static enum ibid_code insert(struct lite_conn *conn, const struct command_row *row, int64_t now_us,
                             struct ibid_err *err)
{
	struct lite_run run;
	enum ibid_code code = lite_start(conn, LITE_command_put, &run, err);
	bind_row(&run, row, now_us);
	if (!code)
		code = lite_finish(&run, err);
	if (code && run.rc == SQLITE_CONSTRAINT_PRIMARYKEY)
		code = taken(err);
	lite_end(&run);
	return code;
}

static enum ibid_code replace(struct lite_conn *conn, const struct command_row *row, int64_t now_us,
                              const struct command_row *previous, struct ibid_err *err)
{
	struct lite_run run;
	enum ibid_code code = lite_start(conn, LITE_command_replace, &run, err);
	bind_row(&run, row, now_us);
	lite_bind_uuid(&run, &previous->id);
	lite_bind_text(&run, command_state_name(previous->state));
	lite_bind_int(&run, previous->attempts);
	lite_bind_int_or_null(&run, previous->lease_token);
	lite_bind_int(&run, now_us);
	if (!code)
		code = lite_finish(&run, err);
	if (!code && sqlite3_changes(conn->db) != 1)
		code = taken(err);
	lite_end(&run);
	return code;
}

static enum ibid_code put_body(struct lite_conn *conn, const struct command_row *row,
                               struct ibid_err *err)
{
	struct lite_run run;
	enum ibid_code code = lite_start(conn, LITE_answer_put, &run, err);
	lite_bind_text(&run, row->identity.tenant);
	lite_bind_uuid(&run, &row->id);
	lite_bind_bytes(&run, row->body, row->body_size);
	return lite_conclude(&run, code, err);
}

static enum ibid_code delete_body(struct lite_conn *conn, const struct command_row *row,
                                  struct ibid_err *err)
{
	struct lite_run run;
	enum ibid_code code = lite_start(conn, LITE_answer_delete, &run, err);
	lite_bind_text(&run, row->identity.tenant);
	lite_bind_uuid(&run, &row->id);
	return lite_conclude(&run, code, err);
}

/* Of a command that gave way to another; one that is run again keeps its own. */
static enum ibid_code forget_payload(struct lite_conn *conn, const struct command_row *row,
                                     const struct command_row *previous, struct ibid_err *err)
{
	if (memcmp(&previous->id, &row->id, sizeof row->id) == 0)
		return IBID_OK;
	struct payload_row payload = {.tenant = row->identity.tenant, .command_id = previous->id};
	return lite_keep_payload(conn, &payload, err);
}

enum ibid_code lite_put_command(struct tx *base, const struct command_row *row,
                                const struct command_row *previous, struct ibid_err *err)
{
	struct lite_tx *tx = lite_tx_of(base);
	struct key_conflict_row evidence;
	enum ibid_code code = lite_tx_ready(tx, err);
	if (code)
		return code;
	int64_t now_us = env_wall_us(tx->store->env);
	code = previous ? replace(tx->conn, row, now_us, previous, err)
	                : insert(tx->conn, row, now_us, err);
	if (!code && previous)
		code = delete_body(tx->conn, previous, err);
	if (!code && previous)
		code = forget_payload(tx->conn, row, previous, err);
	if (!code && evidence_of_refused(row, previous, &evidence))
		code = lite_count_evidence(tx->conn, &evidence, err);
	if (!code && row->body)
		code = put_body(tx->conn, row, err);
	return lite_tx_failed(tx, code, err);
}
