/* SPDX-License-Identifier: Apache-2.0 */
/* K05: the text of tokens, and what is kept of it. */
#include "unit.h"

#include "base/token.h"

#include <string.h>

static struct token make(uint64_t seed, char text[TOKEN_TEXT_SIZE])
{
	struct env_virtual env;
	env_virtual_init(&env, 0, seed);
	return token_make(&env.env, text);
}

static void token_is_read_as_it_was_made(void **state)
{
	(void)state;
	char text[TOKEN_TEXT_SIZE];
	struct token made = make(7, text), read;
	assert_int_equal(strlen(text), 5 + 16 + 1 + 64);
	assert_true(token_read(text, &read));
	assert_string_equal(read.id, made.id);
	assert_memory_equal(read.id, text + 5, 16);
	assert_true(token_same(&read.digest, &made.digest));
	struct sha256 of_secret = sha256(text + 22, 64);
	assert_memory_equal(&made.digest, &of_secret, sizeof of_secret);
	assert_true(token_id_ok(made.id));
}

static void tokens_differ_in_id_and_secret(void **state)
{
	(void)state;
	char a[TOKEN_TEXT_SIZE], b[TOKEN_TEXT_SIZE];
	struct token first = make(7, a), second = make(8, b);
	assert_string_not_equal(first.id, second.id);
	assert_false(token_same(&first.digest, &second.digest));
}

static void every_other_text_is_no_token(void **state)
{
	(void)state;
	char text[TOKEN_TEXT_SIZE], changed[TOKEN_TEXT_SIZE + 1];
	struct token token;
	make(7, text);
	for (size_t i = 0; i < strlen(text); i++) { /* a byte that belongs nowhere */
		memcpy(changed, text, sizeof text);
		changed[i] = i % 2 ? 'G' : '-';
		assert_false(token_read(changed, &token));
		changed[i] = '\0';
		assert_false(token_read(changed, &token));
	}
	memcpy(changed, text, sizeof text);
	strcat(changed, "0");
	assert_false(token_read(changed, &token));
	assert_false(token_read("", &token));
	for (char *c = text + 5; *c; c++)
		*c = '0';
	text[21] = '_';
	assert_true(token_read(text, &token));
	text[30] = 'A';
	assert_false(token_read(text, &token));
	assert_false(token_id_ok("0123456789ABCDEF"));
	assert_false(token_id_ok("0123456789abcde"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(token_is_read_as_it_was_made),
	    cmocka_unit_test(tokens_differ_in_id_and_secret),
	    cmocka_unit_test(every_other_text_is_no_token),
	};
	return cmocka_run_group_tests_name("token", tests, NULL, NULL);
}
