/* SPDX-License-Identifier: Apache-2.0 */
/* command.c -- the command's row: written once, complete; found by identity or id; listed. */
#include "store/run.h"
#include "store/sqlite/lite.h"

#include <string.h>

enum ibid_code lite_find_command(struct lite_conn *conn, struct arena *arena,
                                 const struct identity *identity, struct command_row *ret,
                                 struct ibid_err *err)
{
	struct sql_in in = SQL_IN(command_get, identity_shape, identity);
	struct row_list rows = {.arena = arena, .shape = &command_shape};
	enum ibid_code code = lite_run_sql(conn, &in, &rows, err);
	if (!code && arena->failed)
		code = err_set(err, IBID_NOMEM, "out of memory");
	if (!code && !rows.count)
		return IBID_NOT_FOUND;
	if (!code)
		code = row_check_words(&command_shape, rows.items, "a command", err);
	if (!code)
		*ret = *(struct command_row *)rows.items;
	return code;
}

typedef enum ibid_code list_start(struct lite_conn *, const struct command_filter *, int64_t now_us,
                                  struct lite_run *, struct ibid_err *);

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

enum ibid_code lite_count_evidence(struct lite_conn *conn, const struct key_conflict_row *row,
                                   struct ibid_err *err)
{
	struct sql_in in = SQL_IN(evidence_put, key_conflict_shape, row);
	return lite_run_sql(conn, &in, NULL, err);
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
	struct sql_in in = payload_statement(&payload);
	return lite_run_sql(conn, &in, NULL, err);
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
