/* SPDX-License-Identifier: Apache-2.0 */
/* token.h -- the bearer tokens of the server: whose they are and what they allow. */
#ifndef STORE_TOKEN_H
#define STORE_TOKEN_H

#include "base/err.h"
#include "base/token.h"
#include "store/row.h"

struct store;
struct tx;

/* What a token allows: X(symbol, name). */
#define TOKEN_ROLES(X)                                                                             \
	X(CLIENT, "client")     /* send commands, and look at its own client's */                      \
	X(OPERATOR, "operator") /* look at all of the tenant's, and work on its exceptions */          \
	X(APPROVER, "approver") /* decide what waits for a person */                                   \
	X(ADMIN, "admin")       /* set up */
enum token_role_place {
#define TOKEN_ROLE_PLACE(symbol, name) ROLE_PLACE_##symbol,
	TOKEN_ROLES(TOKEN_ROLE_PLACE)
#undef TOKEN_ROLE_PLACE
};
enum token_role {
#define TOKEN_ROLE_BIT(symbol, name) ROLE_##symbol = 1 << ROLE_PLACE_##symbol,
	TOKEN_ROLES(TOKEN_ROLE_BIT)
#undef TOKEN_ROLE_BIT
};

/* As the stores keep them: names joined by commas, each of them known and at least one. */
const char *token_roles_write(struct arena *arena, unsigned roles);
bool token_roles_read(const char *text, unsigned *ret);

/* A bearer token of the server. */
struct token_row {
	struct token token;
	const char *tenant, *client; /* whose it is: what enters the scope of keys */
	unsigned roles;
	const char *created_by;
	int64_t created_us, expires_us; /* expires 0: never */
	int64_t revoked_us;             /* out: 0: it is not */
	const char *revoked_by;         /* out: NULL: it is not */
};

struct token_filter {
	const char *tenant; /* NULL: all */
	const char *after;  /* keyset page: tokens older than the one of this id; NULL: the newest */
	size_t limit;
};

extern const struct row_shape token_shape;

/* ---- Verbs ---------------------------------------------------------------------------------- */

/* Keep a new token. IBID_RETRY: its id is taken, and nothing was kept. */
IBID_CHECK enum ibid_code store_put_token(struct store *, const struct token_row *,
                                          struct ibid_err *);

/* Whoever's it is, also when it is revoked or expired. IBID_NOT_FOUND. */
IBID_CHECK enum ibid_code store_get_token(struct store *, struct arena *, const char *id,
                                          struct token_row *ret, struct ibid_err *);

/* Newest first. An `after` that is no token's gives nothing. */
IBID_CHECK enum ibid_code store_list_tokens(struct store *, struct arena *,
                                            const struct token_filter *, struct token_row **ret,
                                            size_t *ret_count, struct ibid_err *);

/* From now on, for good. One that is revoked already stays as it is: that is success.
 * IBID_NOT_FOUND. */
IBID_CHECK enum ibid_code store_revoke_token(struct store *, const char *id, const char *by,
                                             int64_t at_us, struct ibid_err *);

#endif
