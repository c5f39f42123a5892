/* SPDX-License-Identifier: Apache-2.0 */
/* token.c -- bearer tokens: whose they are, what they allow, and the hash of their secrets. */
#include "store/sqlite/lite.h"

#include <string.h>

static enum ibid_code insert(struct lite_conn *conn, struct arena *arena,
                             const struct token_row *row, struct ibid_err *err)
{
	struct lite_run run;
	enum ibid_code code = lite_start(conn, LITE_token_put, &run, err);
	lite_bind_text(&run, row->token.id);
	lite_bind_text(&run, row->tenant);
	lite_bind_text(&run, row->client);
	lite_bind_text(&run, token_roles_write(arena, row->roles));
	lite_bind_hash(&run, &row->token.digest);
	lite_bind_int(&run, row->created_us);
	lite_bind_text(&run, row->created_by);
	lite_bind_int(&run, row->expires_us);
	if (!code && arena->failed)
		code = err_set(err, IBID_NOMEM, "out of memory");
	if (!code)
		code = lite_finish(&run, err);
	if (!code && sqlite3_changes(conn->db) != 1)
		code = err_set(err, IBID_RETRY, "there is a token %s already", row->token.id);
	lite_end(&run);
	return code;
}

enum ibid_code lite_put_token(struct store *base, const struct token_row *row, struct ibid_err *err)
{
	struct lite_store *store = lite_of(base);
	struct lite_conn *conn;
	struct arena arena = {0};
	enum ibid_code code = lite_write_begin(store, lite_wait_us(store), &conn, err);
	if (!code)
		code = lite_write_end(store, insert(conn, &arena, row, err), err);
	arena_release(&arena);
	return code;
}

static enum ibid_code revoke(struct lite_conn *conn, const char *id, const char *by, int64_t at_us,
                             struct ibid_err *err)
{
	struct lite_run run;
	enum ibid_code code = lite_start(conn, LITE_token_revoke, &run, err);
	lite_bind_text(&run, id);
	lite_bind_int(&run, at_us);
	lite_bind_text(&run, by);
	if (!code)
		code = lite_finish(&run, err);
	if (!code && sqlite3_changes(conn->db) != 1)
		code = err_set(err, IBID_NOT_FOUND,
		               "there is no such token; `ibid token list` shows those that there are");
	lite_end(&run);
	return code;
}

enum ibid_code lite_revoke_token(struct store *base, const char *id, const char *by, int64_t at_us,
                                 struct ibid_err *err)
{
	struct lite_store *store = lite_of(base);
	struct lite_conn *conn;
	enum ibid_code code = lite_write_begin(store, lite_wait_us(store), &conn, err);
	if (code)
		return code;
	return lite_write_end(store, revoke(conn, id, by, at_us, err), err);
}

static enum ibid_code read_row(struct lite_run *run, struct arena *arena, struct token_row *ret,
                               struct ibid_err *err)
{
	const char *id = lite_read_text(run, arena);
	ret->tenant = lite_read_text(run, arena);
	ret->client = lite_read_text(run, arena);
	const char *roles = lite_read_text(run, arena);
	ret->token.digest = lite_read_hash(run);
	ret->created_us = lite_read_int(run);
	ret->created_by = lite_read_text(run, arena);
	ret->expires_us = lite_read_int(run);
	ret->revoked_us = lite_read_int(run);
	ret->revoked_by = lite_read_text(run, arena);
	if (arena->failed)
		return err_set(err, IBID_NOMEM, "out of memory");
	strncat(ret->token.id, id, sizeof ret->token.id - 1);
	if (!token_roles_read(roles, &ret->roles))
		return err_set(err, IBID_SCHEMA, "a token has the roles %s; upgrade ibid", roles);
	return IBID_OK;
}

static enum ibid_code read_rows(struct lite_rows *rows, struct lite_run *run, enum ibid_code code,
                                struct ibid_err *err)
{
	while (lite_row(run, &code, err)) {
		struct token_row *row = lite_rows_add(rows);
		code = row ? read_row(run, rows->arena, row, err)
		           : err_set(err, IBID_NOMEM, "out of memory");
	}
	lite_end(run);
	return code;
}

enum ibid_code lite_get_token(struct store *base, struct arena *arena, const char *id,
                              struct token_row *ret, struct ibid_err *err)
{
	struct lite_store *store = lite_of(base);
	struct lite_conn *conn;
	struct lite_run run;
	struct lite_rows rows = {.arena = arena, .size = sizeof(struct token_row)};
	enum ibid_code code = lite_reader_take(store, &conn, err);
	if (code)
		return code;
	code = lite_start(conn, LITE_token_get, &run, err);
	lite_bind_text(&run, id);
	code = read_rows(&rows, &run, code, err);
	lite_reader_give(store, conn);
	if (!code && !rows.count)
		code = err_set(err, IBID_NOT_FOUND,
		               "there is no such token; `ibid token list` shows those that there are");
	if (!code)
		*ret = *(struct token_row *)rows.items;
	return code;
}

enum ibid_code lite_list_tokens(struct store *base, struct arena *arena,
                                const struct token_filter *filter, struct token_row **ret,
                                size_t *ret_count, struct ibid_err *err)
{
	struct lite_store *store = lite_of(base);
	struct lite_conn *conn;
	struct lite_run run;
	struct lite_rows rows = {.arena = arena, .size = sizeof(struct token_row)};
	enum ibid_code code = lite_reader_take(store, &conn, err);
	if (code)
		return code;
	code = lite_start(conn, LITE_token_list, &run, err);
	lite_bind_text(&run, filter->tenant);
	lite_bind_text(&run, filter->after);
	lite_bind_int(&run, (int64_t)filter->limit);
	code = read_rows(&rows, &run, code, err);
	lite_reader_give(store, conn);
	if (!code) {
		*ret = rows.items;
		*ret_count = rows.count;
	}
	return code;
}
