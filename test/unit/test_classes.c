/* SPDX-License-Identifier: Apache-2.0 */
/* test_classes.c -- what is kept of a payload, what is hidden in a text, and how a text is sealed.
 */
#include "unit.h"

#include "base/keyring.h"
#include "contract/classes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static struct arena arena;

static int tear_down(void **state)
{
	(void)state;
	arena_release(&arena);
	return 0;
}

static struct json *read_json(const char *text)
{
	struct json *value = NULL;
	assert_int_equal(json_read(&arena, text, strlen(text), 0, &value, NULL), IBID_OK);
	return value;
}

/* ---- Keeping -------------------------------------------------------------------------------- */

/* "<pointer|text>": what was sealed where stays readable for the tests. */
static enum ibid_code show_seal(void *user, const char *pointer, const char *text, size_t size,
                                struct str *out, struct ibid_err *err)
{
	(void)user;
	(void)err;
	str_addf(out, "<%s|%.*s>", pointer, (int)size, text);
	return IBID_OK;
}

static enum ibid_code show_open(void *user, const char *pointer, const char *text, size_t size,
                                struct str *out, struct ibid_err *err)
{
	size_t skip = strlen(pointer) + 2;
	(void)user;
	if (size < skip + 1 || strncmp(text + 1, pointer, skip - 2) != 0)
		return err_set(err, IBID_INVALID, "not sealed for %s", pointer);
	str_add(out, text + skip, size - skip - 1);
	return IBID_OK;
}

static const struct contract_field fields[] = {
    {.pointer = "/card", .class = CLASS_ENCRYPT}, {.pointer = "/card/cvc", .class = CLASS_OMIT},
    {.pointer = "/items/1", .class = CLASS_OMIT}, {.pointer = "/mode", .class = CLASS_INHERIT},
    {.pointer = "/note", .class = CLASS_REDACT},  {.pointer = "/open", .class = CLASS_STORE},
    {.pointer = "/s~1t", .class = CLASS_OMIT},
};

static struct contract contract_of(enum field_class payload, size_t count)
{
	return (struct contract){
	    .payload = payload, .fields = (struct contract_field *)fields, .field_count = count};
}

static void expect_kept(enum field_class payload, size_t count, const char *given,
                        const char *expected)
{
	struct contract contract = contract_of(payload, count);
	const char *kept = NULL;
	size_t size = 0;
	struct ibid_err err;
	assert_int_equal(
	    payload_keep(&arena, &contract, read_json(given), show_seal, NULL, &kept, &size, &err),
	    IBID_OK);
	assert_string_equal(kept, expected);
	assert_int_equal(size, strlen(expected));
}

static void each_class_keeps_what_it_says(void **state) /* K05 */
{
	(void)state;
	static const char all[] = "{\"z\":[1e2,true,null,\"x\",{}],\"a\":{\"b\":-0.5}}";
	expect_kept(CLASS_STORE, 0, all, "{\"a\":{\"b\":-0.5},\"z\":[100,true,null,\"x\",{}]}");
	expect_kept(CLASS_REDACT, 0, all,
	            "{\"a\":{\"b\":\"[redacted number]\"},\"z\":[\"[redacted number]\",\"[redacted "
	            "boolean]\",null,\"[redacted text]\",{}]}");
	expect_kept(CLASS_ENCRYPT, 0, "{\"b\":1,\"a\":\"x\"}",
	            "\"<|{\\\"a\\\":\\\"x\\\",\\\"b\\\":1}>\"");
	expect_kept(CLASS_STORE, 0, "[]", "[]");
	expect_kept(CLASS_REDACT, 0, "\"top\"", "\"[redacted text]\"");
}

static void a_field_speaks_for_itself_and_what_lies_in_it(void **state) /* K05 */
{
	(void)state;
	static const char all[] = "{\"mode\":\"m\",\"note\":{\"x\":\"y\"},\"open\":[1,\"o\"],\"card\":{"
	                          "\"no\":\"4\",\"cvc\":7},\"s/t\":1,\"loose\":\"l\"}";
	expect_kept(
	    CLASS_STORE, COUNT(fields), all,
	    "{\"card\":\"</card|{\\\"no\\\":\\\"4\\\"}>\",\"loose\":\"l\",\"mode\":\"m\",\"note\":"
	    "{\"x\":\"[redacted text]\"},\"open\":[1,\"o\"]}");
	expect_kept(
	    CLASS_REDACT, COUNT(fields), all,
	    "{\"card\":\"</card|{\\\"no\\\":\\\"4\\\"}>\",\"loose\":\"[redacted text]\",\"mode\":"
	    "\"[redacted text]\",\"note\":{\"x\":\"[redacted text]\"},\"open\":[1,\"o\"]}");
	/* The items after one that is left out keep their places. */
	expect_kept(CLASS_STORE, COUNT(fields), "{\"items\":[1,2,3]}", "{\"items\":[1,null,3]}");
	/* A name that only begins like a declared one, or continues behind a NUL, is another. */
	expect_kept(CLASS_STORE, COUNT(fields), "{\"note2\":1,\"note\\u0000\":2,\"not\":3}",
	            "{\"not\":3,\"note\\u0000\":2,\"note2\":1}");
	expect_kept(CLASS_STORE, COUNT(fields), "{\"card\":null,\"note\":null}",
	            "{\"card\":\"</card|null>\",\"note\":null}");
}

static void what_was_sealed_is_opened_where_it_belongs(void **state) /* K05 */
{
	(void)state;
	struct contract contract = contract_of(CLASS_STORE, COUNT(fields));
	const char *opened = NULL;
	size_t size = 0;
	struct ibid_err err;
	/* A text of the sender's that looks like one is left alone. */
	assert_int_equal(
	    payload_open(&arena, &contract,
	                 read_json("{\"card\":\"</card|{\\\"no\\\":4}>\",\"loose\":\"<|1>\"}"),
	                 show_open, NULL, &opened, &size, &err),
	    IBID_OK);
	assert_string_equal(opened, "{\"card\":{\"no\":4},\"loose\":\"<|1>\"}");
	assert_int_equal(payload_open(&arena, &contract, read_json("{\"card\":7}"), show_open, NULL,
	                              &opened, &size, &err),
	                 IBID_INVALID);
	assert_int_equal(payload_open(&arena, &contract, read_json("{\"card\":\"</x|1>\"}"), show_open,
	                              NULL, &opened, &size, &err),
	                 IBID_INVALID);
}

static void only_contracts_that_keep_something_need_keys(void **state)
{
	(void)state;
	struct contract contract = contract_of(CLASS_OMIT, COUNT(fields));
	assert_false(classes_encrypt(&contract));
	contract.payload = CLASS_REDACT;
	assert_true(classes_encrypt(&contract));
	contract.field_count = 0;
	assert_false(classes_encrypt(&contract));
	contract.payload = CLASS_ENCRYPT;
	assert_true(classes_encrypt(&contract));
}

/* ---- Scrubbing ------------------------------------------------------------------------------ */

static void expect_scrubbed(enum field_class payload, const char *given, const char *text,
                            const char *expected)
{
	struct contract contract = contract_of(payload, COUNT(fields));
	const char *got = payload_scrub(&arena, &contract, read_json(given), text);
	if (expected)
		assert_string_equal(got, expected);
	else
		assert_null(got);
}

static void texts_lose_the_values_that_may_not_be_kept(void **state) /* K05 */
{
	(void)state;
	static const char all[] = "{\"note\":\"n-1234\",\"open\":\"o-1234\",\"card\":{\"no\":49298811,"
	                          "\"cvc\":\"123\"},\"loose\":\"l-1234\",\"s/t\":1.50}";
	expect_scrubbed(CLASS_OMIT, all, "n-1234 o-1234 49298811 l-1234 1.50 1.5 (123) 1234",
	                "[redacted] o-1234 [redacted] l-1234 [redacted] [redacted] ([redacted]) 1234");
	expect_scrubbed(CLASS_REDACT, all, "o-1234 l-1234", "o-1234 [redacted]");
	expect_scrubbed(CLASS_OMIT, all, NULL, NULL);
	expect_scrubbed(CLASS_OMIT, "{\"note\":\"\"}", "nothing", "nothing");
	/* The longer one first; and what was cut off at the end of a text. */
	expect_scrubbed(CLASS_OMIT, "{\"note\":\"abcd\",\"card\":\"abcdefgh\"}", "abcdefgh abcd",
	                "[redacted] [redacted]");
	expect_scrubbed(CLASS_OMIT, "{\"note\":\"secretary\"}", "it was secreta", "it was [redacted]");
	expect_scrubbed(CLASS_OMIT, "{\"note\":\"a\"}", "a cat: a", "[redacted] cat: [redacted]");
	/* As a document in a text has it. */
	expect_scrubbed(CLASS_OMIT, "{\"note\":\"sa\\\"y\\n\"}", "{\"n\":\"sa\\\"y\\n\"} sa\"y\n.",
	                "{\"n\":\"[redacted]\"} [redacted].");
	/* As handlers get a point in time, and as databases write it. */
	expect_scrubbed(CLASS_OMIT, "{\"note\":\"2026-01-02T10:11:12.50+01:00\"}",
	                "2026-01-02T09:11:12.5Z, 2026-01-02 09:11:12.5+00, 2026-01-02 09:11:12",
	                "[redacted]Z, [redacted]+00, [redacted]");
	/* Names are secret inside what is not kept in clear; the contract's own are not. */
	expect_scrubbed(
	    CLASS_OMIT, "{\"s/t\":{\"anna\":1},\"note\":{\"bert\":2},\"card\":{\"cvc\":\"x-99\"}}",
	    "anna of s/t, bert of note, cvc of card", "[redacted] of s/t, bert of note, cvc of card");
}

/* ---- Keyrings ------------------------------------------------------------------------------- */

static struct keyring *keyring_of(const char *text)
{
	char path[] = "/tmp/ibid-keys-XXXXXX";
	struct keyring *keyring = NULL;
	struct ibid_err err = {0};
	int fd = mkstemp(path);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	close(fd);
	if (keyring_read(path, &keyring, &err))
		fail_msg("%s", err.text);
	unlink(path);
	return keyring;
}

#define HEX_A "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define HEX_B "BBBBBBBBBBBBBBBBbbbbbbbbbbbbbbbbBBBBBBBBBBBBBBBBbbbbbbbbbbbbbbbb"

static void a_sealed_text_opens_in_its_place_only(void **state) /* K05 */
{
	(void)state;
	struct env_virtual env;
	struct keyring *keyring = keyring_of("k " HEX_A "\n"), *other = keyring_of("k " HEX_B "\n");
	struct seal_place here = {.tenant = "t", .command_id = {{1}}, .pointer = "/a"};
	struct ibid_err err;
	env_virtual_init(&env, 0, 5);
	for (size_t size = 0; size < 40; size++) {
		struct str sealed = STR_INIT(4096), opened = STR_INIT(4096);
		static const char text[] = "a text of forty bytes, cut here or there";
		assert_int_equal(keyring_seal(keyring, &env.env, &here, text, size, &sealed, &err),
		                 IBID_OK);
		assert_int_equal(strncmp(sealed.data, "ibid:v1:k:", 10), 0);
		assert_int_equal(keyring_open(keyring, &here, sealed.data, sealed.size, &opened, &err),
		                 IBID_OK);
		assert_int_equal(opened.size, size);
		assert_memory_equal(str_text(&opened), text, size);
		struct seal_place elsewhere[] = {here, here, here};
		elsewhere[0].tenant = "u";
		elsewhere[1].command_id.bytes[15] = 1;
		elsewhere[2].pointer = "";
		for (size_t i = 0; i < 3; i++)
			assert_int_equal(
			    keyring_open(keyring, &elsewhere[i], sealed.data, sealed.size, &opened, &err),
			    IBID_INVALID);
		assert_int_equal(keyring_open(other, &here, sealed.data, sealed.size, &opened, &err),
		                 IBID_INVALID);
		/* Any change of any digit, and any other length. */
		for (size_t i = 0; i < sealed.size; i++) {
			char was = sealed.data[i];
			sealed.data[i] = was == 'A' ? 'B' : 'A';
			assert_int_equal(keyring_open(keyring, &here, sealed.data, sealed.size, &opened, &err),
			                 IBID_INVALID);
			sealed.data[i] = was;
			assert_int_equal(keyring_open(keyring, &here, sealed.data, i, &opened, &err),
			                 IBID_INVALID);
		}
		assert_int_equal(opened.size, size);
		str_release(&sealed);
		str_release(&opened);
	}
	keyring_free(keyring);
	keyring_free(other);
}

static void the_same_text_is_never_sealed_alike(void **state)
{
	(void)state;
	struct keyring *keyring = keyring_of("# a comment\n\n  k.1_x-Y \t" HEX_A "  \r\nold " HEX_B);
	struct seal_place here = {.tenant = "t", .pointer = ""};
	struct str one = STR_INIT(4096), two = STR_INIT(4096);
	struct ibid_err err;
	assert_int_equal(keyring_seal(keyring, env_system(), &here, "x", 1, &one, &err), IBID_OK);
	assert_int_equal(keyring_seal(keyring, env_system(), &here, "x", 1, &two, &err), IBID_OK);
	assert_string_not_equal(one.data, two.data);
	assert_int_equal(strncmp(one.data, "ibid:v1:k.1_x-Y:", 16), 0);
	str_release(&one);
	str_release(&two);
	keyring_free(keyring);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_teardown(name, tear_down)
	const struct CMUnitTest tests[] = {
	    CASE(each_class_keeps_what_it_says),
	    CASE(a_field_speaks_for_itself_and_what_lies_in_it),
	    CASE(what_was_sealed_is_opened_where_it_belongs),
	    CASE(only_contracts_that_keep_something_need_keys),
	    CASE(texts_lose_the_values_that_may_not_be_kept),
	    CASE(a_sealed_text_opens_in_its_place_only),
	    CASE(the_same_text_is_never_sealed_alike),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
