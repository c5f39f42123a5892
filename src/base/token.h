/* SPDX-License-Identifier: Apache-2.0 */
/* token.h -- bearer tokens: `ibid_<id>_<secret>`.
 *
 * The id is public: commands list and revoke a token by it. The store has only the SHA-256 of the
 * secret; a plain hash is enough, because 256 random bits can't be guessed. */
#ifndef BASE_TOKEN_H
#define BASE_TOKEN_H

#include "base/env.h"
#include "base/hash.h"

enum {
	TOKEN_ID_SIZE = 16 + 1,
	TOKEN_SECRET_BYTES = 32,
	TOKEN_TEXT_SIZE = sizeof "ibid_" - 1 + TOKEN_ID_SIZE - 1 + 1 + 2 * TOKEN_SECRET_BYTES + 1,
};

struct token {
	char id[TOKEN_ID_SIZE]; /* 16 hex digits */
	struct sha256 digest;   /* of the secret's digits */
};

/* A new token, and its text, which can't be computed from the token later. */
struct token token_make(struct env *env, char ret_text[TOKEN_TEXT_SIZE]);

/* False: `text` is not a token. Digits are lower-case: one token has one text. */
bool token_read(const char *text, struct token *ret);

bool token_id_ok(const char *text);

/* Constant time: the duration does not depend on where the digests differ. */
bool token_same(const struct sha256 *a, const struct sha256 *b);

#endif
