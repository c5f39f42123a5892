/* SPDX-License-Identifier: Apache-2.0 */
/* token.c -- bearer tokens: whose they are, what they allow, and the hash of their secrets. */
#include "store/postgres/postgres.h"

#include <string.h>

/* Run a statement that returns one row for each that it wrote. */
static enum ibid_code write_one(struct store *base, struct pg_call call, struct arena *arena,
                                bool *ret_written, struct ibid_err *err)
{
	enum ibid_code code = arena->failed ? err_set(err, IBID_NOMEM, "out of memory")
	                                    : pg_pool_query(pg_store_of(base), &call, 1, err);
	if (!code)
		*ret_written = PQntuples(call.result) == 1;
	pg_release(&call, 1);
	return code;
}

enum ibid_code pg_put_token(struct store *base, const struct token_row *row, struct ibid_err *err)
{
	struct arena arena = {0};
	const char *values[] = {
	    row->token.id,
	    row->tenant,
	    row->client,
	    token_roles_write(&arena, row->roles),
	    pg_hash(&arena, &row->token.digest),
	    pg_time(&arena, row->created_us),
	    row->created_by,
	    pg_time_or_null(&arena, row->expires_us),
	};
	bool written = false;
	enum ibid_code code = write_one(base, PG_CALL(TOKEN_PUT, .values = values), &arena, &written,
	                                err);
	if (!code && !written)
		code = err_set(err, IBID_RETRY, "there is a token %s already", row->token.id);
	arena_release(&arena);
	return code;
}

enum ibid_code pg_revoke_token(struct store *base, const char *id, const char *by, int64_t at_us,
                               struct ibid_err *err)
{
	struct arena arena = {0};
	const char *values[] = {id, pg_time(&arena, at_us), by};
	bool written = false;
	enum ibid_code code = write_one(base, PG_CALL(TOKEN_REVOKE, .values = values), &arena, &written,
	                                err);
	if (!code && !written)
		code = err_set(err, IBID_NOT_FOUND,
		               "there is no such token; `ibid token list` shows those that there are");
	arena_release(&arena);
	return code;
}

static enum ibid_code read_row(struct arena *arena, const PGresult *result, int row,
                               struct token_row *ret, struct ibid_err *err)
{
	const char *roles = pg_cell(result, row, 3);
	*ret = (struct token_row){
	    .token.digest = pg_cell_hash(result, row, 4),
	    .tenant = pg_cell_text(arena, result, row, 1),
	    .client = pg_cell_text(arena, result, row, 2),
	    .created_us = pg_cell_int(result, row, 5),
	    .created_by = pg_cell_text(arena, result, row, 6),
	    .expires_us = pg_cell_int(result, row, 7),
	    .revoked_us = pg_cell_int(result, row, 8),
	    .revoked_by = pg_cell_text(arena, result, row, 9),
	};
	strncat(ret->token.id, pg_cell(result, row, 0), sizeof ret->token.id - 1);
	if (!token_roles_read(roles, &ret->roles))
		return err_set(err, IBID_SCHEMA, "a token has the roles %s; upgrade ibid", roles);
	return IBID_OK;
}

static enum ibid_code read_rows(struct store *base, struct arena *arena, struct pg_call call,
                                struct token_row **ret, size_t *ret_count, struct ibid_err *err)
{
	enum ibid_code code = arena->failed ? err_set(err, IBID_NOMEM, "out of memory")
	                                    : pg_pool_query(pg_store_of(base), &call, 1, err);
	size_t count = code ? 0 : (size_t)PQntuples(call.result);
	struct token_row *rows = count ? arena_array(arena, count, sizeof *rows) : NULL;
	for (size_t i = 0; !code && rows && i < count; i++)
		code = read_row(arena, call.result, (int)i, &rows[i], err);
	pg_release(&call, 1);
	if (!code && arena->failed)
		code = err_set(err, IBID_NOMEM, "out of memory");
	if (!code) {
		*ret = rows;
		*ret_count = count;
	}
	return code;
}

enum ibid_code pg_get_token(struct store *base, struct arena *arena, const char *id,
                            struct token_row *ret, struct ibid_err *err)
{
	const char *values[] = {id};
	struct token_row *rows = NULL;
	size_t count = 0;
	enum ibid_code code = read_rows(base, arena, PG_CALL(TOKEN_GET, .values = values), &rows,
	                                &count, err);
	if (!code && !count)
		code = err_set(err, IBID_NOT_FOUND,
		               "there is no such token; `ibid token list` shows those that there are");
	if (!code)
		*ret = *rows;
	return code;
}

enum ibid_code pg_list_tokens(struct store *base, struct arena *arena,
                              const struct token_filter *filter, struct token_row **ret,
                              size_t *ret_count, struct ibid_err *err)
{
	const char *values[] = {filter->tenant, filter->after, pg_int(arena, (int64_t)filter->limit)};
	return read_rows(base, arena, PG_CALL(TOKEN_LIST, .values = values), ret, ret_count, err);
}
