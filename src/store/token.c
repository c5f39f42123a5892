/* SPDX-License-Identifier: Apache-2.0 */
/* token.c -- bearer tokens: whose they are, what they allow, and the hash of their secrets. */
#include "store/token.h"

#include "store/run.h"

#include <string.h>

static const char *const role_names[] = {TOKEN_ROLES(WORDS_TEXT)};
static struct words roles = {role_names, sizeof role_names / sizeof *role_names, {NULL}};

const char *token_roles_write(struct arena *arena, unsigned bits)
{
	return words_join(&roles, arena, bits);
}

bool token_roles_read(const char *text, unsigned *ret)
{
	return words_read(&roles, text, ret);
}

#define TOKEN(kind, column, member, ...)                                                           \
	ROW_COLUMN(kind, struct token_row, column, member, __VA_ARGS__)
static const struct row_column columns[] = {
    TOKEN(CHARS, id, token.id),
    TOKEN(TEXT, tenant, tenant),
    TOKEN(TEXT, client, client),
    TOKEN(BITS, roles, roles, .words = &roles),
    TOKEN(HASH, digest, token.digest, .json = ""),
    TOKEN(TIME, created_at, created_us),
    TOKEN(TEXT, created_by, created_by),
    TOKEN(TIME_OR_NONE, expires_at, expires_us),
    TOKEN(TIME_OR_NONE, revoked_at, revoked_us),
    TOKEN(TEXT, revoked_by, revoked_by),
};
const struct row_shape token_shape = ROW_SHAPE(struct token_row, columns);

static const struct row_column filter_columns[] = {
    ROW_COLUMN(TEXT, struct token_filter, tenant, tenant),
    ROW_COLUMN(TEXT, struct token_filter, after, after),
    ROW_COLUMN(SIZE, struct token_filter, limit, limit),
};
static const struct row_shape filter_shape = ROW_SHAPE(struct token_filter, filter_columns);

static const char missing[] =
    "there is no such token; `ibid token list` shows those that there are";

/* An id that is no token's, for a look-up. */
static struct token_row with_id(const char *id)
{
	struct token_row row = {.roles = 0};
	strncat(row.token.id, id, sizeof row.token.id - 1);
	return row;
}

enum ibid_code store_put_token(struct store *store, const struct token_row *row,
                               struct ibid_err *err)
{
	int64_t changed;
	return sql_change(store, SQL_IN(token_put, token_shape, row), &changed, err);
}

enum ibid_code store_get_token(struct store *store, struct arena *arena, const char *id,
                               struct token_row *ret, struct ibid_err *err)
{
	struct token_row of = with_id(id);
	return sql_get(store, SQL_IN(token_get, token_shape, &of), arena, &token_shape, ret, missing,
	               err);
}

enum ibid_code store_list_tokens(struct store *store, struct arena *arena,
                                 const struct token_filter *filter, struct token_row **ret,
                                 size_t *ret_count, struct ibid_err *err)
{
	return sql_list(store, SQL_IN(token_list, filter_shape, filter), arena, &token_shape, ret,
	                ret_count, err);
}

enum ibid_code store_revoke_token(struct store *store, const char *id, const char *by,
                                  int64_t at_us, struct ibid_err *err)
{
	struct token_row of = with_id(id);
	int64_t changed = 0;
	of.revoked_by = by;
	of.revoked_us = at_us;
	enum ibid_code code = sql_change(store, SQL_IN(token_revoke, token_shape, &of), &changed, err);
	if (!code && !changed)
		code = err_set(err, IBID_NOT_FOUND, "%s", missing);
	return code;
}
