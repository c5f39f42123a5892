/* SPDX-License-Identifier: Apache-2.0 */
/* A04: identifiers, random, derived and ordered; and the hash that fingerprints are made of. */
#include "unit.h"

#include "base/hash.h"
#include "base/id.h"

#include <string.h>

static const int64_t rfc_time_us = INT64_C(1645557742000000); /* 2022-02-22T19:22:22Z */

static void write_v7_at(int64_t now_us, char ret[UUID_TEXT_SIZE])
{
	struct env_virtual env;
	env_virtual_init(&env, now_us, 7);
	uuid_write(uuid_v7(&env.env), ret);
}

/* A04: RFC 9562 appendix A.4, and Python's uuid5. */
static void the_same_name_gives_the_same_id(void **state)
{
	(void)state;
	struct uuid dns;
	char text[UUID_TEXT_SIZE];
	assert_true(uuid_read("6ba7b810-9dad-11d1-80b4-00c04fd430c8", &dns));
	uuid_write(uuid_v5(dns, "www.example.com", 15), text);
	assert_string_equal(text, "2ed6657d-e927-568b-95e1-2665a8aea6a2");
	uuid_write(uuid_v5(dns, "python.org", 10), text);
	assert_string_equal(text, "886313e1-3b8a-5372-9b90-0c9aee199e5d");
	uuid_write(uuid_v5(dns, "", 0), text);
	assert_string_equal(text, "4ebd0208-8328-5d69-8c44-ec50939c0967");
}

/* A04 */
static void names_and_spaces_that_differ_give_different_ids(void **state)
{
	(void)state;
	struct uuid one = {{1}}, two = {{2}};
	struct uuid ids[] = {uuid_v5(one, "a", 1), uuid_v5(two, "a", 1), uuid_v5(one, "b", 1),
	                     uuid_v5(one, "a\0", 2)};
	for (size_t i = 0; i < COUNT(ids); i++)
		for (size_t k = 0; k < i; k++)
			assert_memory_not_equal(&ids[i], &ids[k], sizeof *ids);
}

static void random_ids_differ_and_say_their_version(void **state)
{
	(void)state;
	struct env_virtual env;
	struct uuid last = {{0}};
	unsigned char set[16] = {0}, clear[16];
	memset(clear, 0xFF, sizeof clear);
	env_virtual_init(&env, 0, 4);
	for (int i = 0; i < 1000; i++) {
		struct uuid id = uuid_v4(&env.env);
		assert_memory_not_equal(&id, &last, sizeof id);
		for (size_t k = 0; k < 16; k++) {
			set[k] |= id.bytes[k];
			clear[k] &= id.bytes[k];
		}
		last = id;
	}
	for (size_t k = 0; k < 16; k++) { /* every bit takes both values, but for version and variant */
		assert_int_equal(set[k], k == 6 ? 0x4F : k == 8 ? 0xBF : 0xFF);
		assert_int_equal(clear[k], k == 6 ? 0x40 : k == 8 ? 0x80 : 0x00);
	}
}

/* RFC 9562 appendix A.6 for the milliseconds. */
static void time_ordered_ids_begin_with_the_time(void **state)
{
	(void)state;
	char text[UUID_TEXT_SIZE];
	write_v7_at(rfc_time_us, text);
	assert_memory_equal(text, "017f22e2-79b0-7000-", 19);
	assert_non_null(strchr("89ab", text[19]));
	write_v7_at(rfc_time_us + 250, text);
	assert_memory_equal(text, "017f22e2-79b0-7400-", 19);
	write_v7_at(rfc_time_us + 999, text);
	assert_memory_equal(text, "017f22e2-79b0-7ffb-", 19);
	write_v7_at(rfc_time_us + 1000, text);
	assert_memory_equal(text, "017f22e2-79b1-7000-", 19);
	write_v7_at(-5, text);
	assert_memory_equal(text, "00000000-0000-7000-", 19);
}

static void time_ordered_ids_sort_by_the_microsecond(void **state)
{
	(void)state;
	struct env_virtual env;
	char last[UUID_TEXT_SIZE] = "", text[UUID_TEXT_SIZE];
	env_virtual_init(&env, rfc_time_us, 1);
	for (int i = 0; i < 5000; i++) {
		uuid_write(uuid_v7(&env.env), text);
		assert_true(strcmp(last, text) < 0);
		strcpy(last, text);
		env_virtual_advance(&env, 1);
	}
}

static void time_ordered_ids_of_one_microsecond_differ(void **state)
{
	(void)state;
	struct env_virtual env;
	env_virtual_init(&env, rfc_time_us, 1);
	struct uuid a = uuid_v7(&env.env), b = uuid_v7(&env.env);
	assert_memory_equal(&a, &b, 8);
	assert_memory_not_equal(&a, &b, sizeof a);
}

static void ids_are_read_in_either_case_and_written_in_lower(void **state)
{
	(void)state;
	struct uuid id;
	char text[UUID_TEXT_SIZE];
	assert_true(uuid_read("2ED6657D-e927-568B-95e1-2665A8AEA6A2", &id));
	assert_int_equal(id.bytes[0], 0x2E);
	assert_int_equal(id.bytes[15], 0xA2);
	uuid_write(id, text);
	assert_string_equal(text, "2ed6657d-e927-568b-95e1-2665a8aea6a2");
}

static void texts_that_are_no_ids_are_refused(void **state)
{
	(void)state;
	static const char good[] = "2ed6657d-e927-568b-95e1-2665a8aea6a2";
	struct uuid id = {{9}};
	char text[40];
	for (size_t size = 0; size < 36; size++) {
		memcpy(text, good, size);
		text[size] = '\0';
		assert_false(uuid_read(text, &id));
		strcpy(text, good);
		text[size] = text[size] == '-' ? '0' : '-';
		assert_false(uuid_read(text, &id));
		text[size] = 'g';
		assert_false(uuid_read(text, &id));
	}
	assert_false(uuid_read("2ed6657d-e927-568b-95e1-2665a8aea6a2 ", &id));
	assert_false(uuid_read("{2ed6657d-e927-568b-95e1-2665a8aea6a2}", &id));
	assert_false(uuid_read("2ed6657de927568b95e12665a8aea6a2", &id));
	assert_int_equal(id.bytes[0], 9);
}

/* FIPS 180-4's examples. */
static void sha256_is_the_standard_one(void **state)
{
	(void)state;
	char text[SHA256_TEXT_SIZE];
	static const char two_blocks[] = "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq";
	struct sha256 hash = sha256("abc", 3);
	sha256_write(&hash, text);
	assert_string_equal(text, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
	hash = sha256(two_blocks, sizeof two_blocks - 1);
	sha256_write(&hash, text);
	assert_string_equal(text, "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
	hash = sha256("", 0);
	sha256_write(&hash, text);
	assert_string_equal(text, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(the_same_name_gives_the_same_id),
	    cmocka_unit_test(names_and_spaces_that_differ_give_different_ids),
	    cmocka_unit_test(random_ids_differ_and_say_their_version),
	    cmocka_unit_test(time_ordered_ids_begin_with_the_time),
	    cmocka_unit_test(time_ordered_ids_sort_by_the_microsecond),
	    cmocka_unit_test(time_ordered_ids_of_one_microsecond_differ),
	    cmocka_unit_test(ids_are_read_in_either_case_and_written_in_lower),
	    cmocka_unit_test(texts_that_are_no_ids_are_refused),
	    cmocka_unit_test(sha256_is_the_standard_one),
	};
	return cmocka_run_group_tests_name("id", tests, NULL, NULL);
}
