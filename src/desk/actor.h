/* SPDX-License-Identifier: Apache-2.0 */
/* actor.h -- who acts: a token, compared with what the store keeps of it.
 *
 * The server does it for its requests, the command line for the person who runs it. A name given in
 * an option can be forged; the token authenticates the caller. */
#ifndef DESK_ACTOR_H
#define DESK_ACTOR_H

#include "store/store.h"

/* The holder of a valid token. */
struct actor {
	const char *tenant, *client;
	const char *token; /* its id, which is public */
	unsigned roles;    /* enum token_role */
};

/* Is the token known, not revoked and not expired, and does its holder know the secret? IBID_DENIED
 * says what is wrong with it only to who knows the secret. */
IBID_CHECK enum ibid_code actor_confirm(struct store *store, struct arena *arena,
                                        const struct token *token, int64_t now_us,
                                        struct token_row *ret, struct ibid_err *err);

/* The same from a token's text. */
IBID_CHECK enum ibid_code actor_of_text(struct store *store, struct arena *arena, const char *text,
                                        int64_t now_us, struct actor *ret, struct ibid_err *err);

/* The role that lets the actor do what any of `roles` may; an admin may all. NULL: none. */
const char *actor_role(const struct actor *actor, unsigned roles);

#endif
