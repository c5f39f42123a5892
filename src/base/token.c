/* SPDX-License-Identifier: Apache-2.0 */
#include "base/token.h"

#include <openssl/crypto.h>
#include <string.h>

static const char prefix[] = "ibid_";
enum {
	PREFIX_SIZE = sizeof prefix - 1,
	ID_DIGITS = TOKEN_ID_SIZE - 1,
	SECRET_DIGITS = 2 * TOKEN_SECRET_BYTES,
};

static bool are_digits(const char *text, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (!((text[i] >= '0' && text[i] <= '9') || (text[i] >= 'a' && text[i] <= 'f')))
			return false;
	return true;
}

static void write_digits(const unsigned char *bytes, size_t count, char *to)
{
	static const char hex[] = "0123456789abcdef";
	for (size_t i = 0; i < count; i++) {
		*to++ = hex[bytes[i] >> 4];
		*to++ = hex[bytes[i] & 15];
	}
}

struct token token_make(struct env *env, char ret_text[TOKEN_TEXT_SIZE])
{
	unsigned char random[ID_DIGITS / 2 + TOKEN_SECRET_BYTES];
	struct token token = {.id = ""};
	char *at = ret_text;
	env_random(env, random, sizeof random);
	memcpy(at, prefix, PREFIX_SIZE);
	at += PREFIX_SIZE;
	write_digits(random, ID_DIGITS / 2, at);
	memcpy(token.id, at, ID_DIGITS);
	at += ID_DIGITS;
	*at++ = '_';
	write_digits(random + ID_DIGITS / 2, TOKEN_SECRET_BYTES, at);
	token.digest = sha256(at, SECRET_DIGITS);
	at[SECRET_DIGITS] = '\0';
	OPENSSL_cleanse(random, sizeof random);
	return token;
}

bool token_id_ok(const char *text)
{
	return strlen(text) == ID_DIGITS && are_digits(text, ID_DIGITS);
}

bool token_read(const char *text, struct token *ret)
{
	const char *id = text + PREFIX_SIZE, *secret = id + ID_DIGITS + 1;
	struct token token = {.id = ""};
	if (strlen(text) != TOKEN_TEXT_SIZE - 1 || memcmp(text, prefix, PREFIX_SIZE) != 0 ||
	    !are_digits(id, ID_DIGITS) || id[ID_DIGITS] != '_' || !are_digits(secret, SECRET_DIGITS))
		return false;
	memcpy(token.id, id, ID_DIGITS);
	token.digest = sha256(secret, SECRET_DIGITS);
	*ret = token;
	return true;
}

bool token_same(const struct sha256 *a, const struct sha256 *b)
{
	return CRYPTO_memcmp(a->bytes, b->bytes, sizeof a->bytes) == 0;
}
