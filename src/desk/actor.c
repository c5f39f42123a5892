/* SPDX-License-Identifier: Apache-2.0 */
#include "desk/actor.h"

#include "store/run.h"

static const char refused[] = "the token is not valid";

enum ibid_code actor_confirm(struct store *store, struct arena *arena, const struct token *token,
                             int64_t now_us, struct token_row *ret, struct ibid_err *err)
{
	struct token_row row;
	enum ibid_code code = store_get_token(store, arena, token->id, &row, err);
	if (code == IBID_NOT_FOUND)
		return err_set(err, IBID_DENIED, refused);
	if (code)
		return code;
	if (!token_same(&row.token.digest, &token->digest))
		return err_set(err, IBID_DENIED, refused);
	code = row_check_words(&token_shape, &row, "the token", err);
	if (code)
		return code;
	if (row.revoked_us)
		return err_set(err, IBID_DENIED, "%s: it was revoked by %s", refused, row.revoked_by);
	if (row.expires_us && now_us >= row.expires_us)
		return err_set(err, IBID_DENIED, "%s: it has expired", refused);
	*ret = row;
	return IBID_OK;
}

enum ibid_code actor_of_text(struct store *store, struct arena *arena, const char *text,
                             int64_t now_us, struct actor *ret, struct ibid_err *err)
{
	struct token token;
	struct token_row row;
	if (!token_read(text, &token))
		return err_set(err, IBID_DENIED,
		               "%s: a token is ibid_, 16 hex digits, _ and 64 hex digits, as `ibid "
		               "token create` prints it",
		               refused);
	enum ibid_code code = actor_confirm(store, arena, &token, now_us, &row, err);
	const char *id = arena_strdup(arena, token.id);
	if (!code && arena->failed)
		code = err_set(err, IBID_NOMEM, "out of memory");
	if (!code)
		*ret = (struct actor){
		    .tenant = row.tenant, .client = row.client, .token = id, .roles = row.roles};
	return code;
}

const char *actor_role(const struct actor *actor, unsigned roles)
{
	static const struct {
		enum token_role role;
		const char *name;
	} known[] = {
#define ACTOR_ROLE(symbol, name) {ROLE_##symbol, name},
	    TOKEN_ROLES(ACTOR_ROLE)
#undef ACTOR_ROLE
	};
	roles |= ROLE_ADMIN;
	for (size_t i = 0; i < sizeof known / sizeof *known; i++)
		if (actor->roles & roles & known[i].role)
			return known[i].name;
	return NULL;
}
