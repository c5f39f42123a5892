/* SPDX-License-Identifier: Apache-2.0 */
/* test_location.c -- answer.location: what a template may name, and what it is filled in with. */
#include "contracts.h"

#include "contract/payload.h"

struct loaded {
	char dir[DIR_TEXT_MAX];
	struct contracts *contracts;
	enum ibid_code code;
	struct ibid_err err;
};

/* The payment with these lines in place of its `answer` and of its `same_payload`. */
static void load(struct loaded *loaded, const char *answer, const char *same)
{
	struct str out = STR_INIT(MUTANT_BYTES_MAX);
	for (size_t i = 0; i < COUNT(good_lines); i++) {
		size_t line = i + 1;
		if (line == 42)
			str_addf(&out, "answer: %s\n", answer);
		else if (line == 20)
			str_addf(&out, "same_payload: %s\n", same);
		else if (line != 43 && (line < 21 || line > 24))
			str_addf(&out, "%s\n", good_lines[i]);
	}
	*loaded = (struct loaded){0};
	dir_open(loaded->dir);
	dir_write(loaded->dir, "create-payment.yaml", str_text(&out));
	str_release(&out);
	loaded->code = contracts_load(loaded->dir, &loaded->contracts, &loaded->err);
}

static void loaded_close(struct loaded *loaded)
{
	contracts_free(loaded->contracts);
	dir_close(loaded->dir);
}

static void refused(const char *answer, const char *same, const char *text)
{
	struct loaded loaded;
	load(&loaded, answer, same);
	if (loaded.code != IBID_CONTRACT)
		fail_msg("accepted, but should say: %s", text);
	assert_string_equal(contracts_problem(loaded.contracts, 0)->text, text);
	loaded_close(&loaded);
}

static void filled(const char *answer, const char *same, const char *payload, const char *resource,
                   const char *wanted)
{
	struct loaded loaded;
	struct arena arena = {0};
	struct json *json = NULL;
	struct ibid_err err;
	load(&loaded, answer, same);
	if (loaded.code)
		fail_msg("%s", loaded.err.text);
	assert_int_equal(json_read(&arena, payload, strlen(payload), 0, &json, &err), IBID_OK);
	assert_string_equal(location_of(&arena, contracts_at(loaded.contracts, 0), json, resource,
	                                "01900000-0000-7000-8000-000000000000"),
	                    wanted);
	arena_release(&arena);
	loaded_close(&loaded);
}

#define PLAIN "{ context: [] }"

static void a_template_that_is_no_address_is_refused(void **state)
{
	static const char *const wrong[] = {"payments/{from}", "/payments/{from", "/payments/from}",
	                                    "/payments/{}",    "/pay ments",      "ftp://x/{from}",
	                                    "/a\\\\b",         "/{{from}}"};
	(void)state;
	for (size_t i = 0; i < COUNT(wrong); i++) {
		char answer[200], text[300], shown[100];
		snprintf(answer, sizeof answer, "{ store: full, location: \"%s\" }", wrong[i]);
		snprintf(shown, sizeof shown, "%s", strcmp(wrong[i], "/a\\\\b") == 0 ? "/a\\b" : wrong[i]);
		snprintf(text, sizeof text,
		         "answer.location is `%s`: it must be a path or an http address with names in "
		         "braces, such as /payments/{resource_id}",
		         shown);
		refused(answer, PLAIN, text);
	}
}

static void a_template_names_what_a_retry_has_too(void **state)
{
	static const char from[] = "{ store: full, location: \"/p/{from}\" }";
	(void)state;
	refused("{ store: full, location: \"/p/{id}\" }", PLAIN,
	        "answer.location: there is no {id}: it must be a declared field, resource_id or "
	        "command_id");
	refused("{ store: full, location: \"/p/{amount}\" }", PLAIN,
	        "answer.location: {amount}: /amount must be of type text and required");
	refused("{ store: full, location: \"/p/{note}\" }", PLAIN,
	        "answer.location: {note}: /note must be of type text and required");
	static const char *const uncompared[] = {"{ context: [], ignore: [/from] }",
	                                         "{ context: [], ignore: [/*] }",
	                                         "{ context: [], only: [/to, /from/x] }"};
	for (size_t i = 0; i < COUNT(uncompared); i++)
		refused(from, uncompared[i],
		        "answer.location: {from}: /from is not compared by same_payload: a retry may have "
		        "another value");
	static const char *const loose[] = {"{ context: [], instants: [/from] }",
	                                    "{ context: [], defaults: { /from: '\"A\"' } }"};
	for (size_t i = 0; i < COUNT(loose); i++)
		refused(from, loose[i],
		        "answer.location: {from}: /from may be written in several ways by same_payload: a "
		        "retry may have another text");
	filled(from, "{ context: [], only: [/from] }", "{\"from\":\"A\"}", "", "/p/A");
	filled(from, "{ context: [], ignore: [/from/x, /fro, /*/a] }", "{\"from\":\"A\"}", "", "/p/A");
}

static void a_resource_that_is_not_kept_is_not_named(void **state)
{
	static const char *const stores[] = {"status", "none"};
	char answer[100];
	(void)state;
	for (size_t i = 0; i < COUNT(stores); i++) {
		snprintf(answer, sizeof answer, "{ store: %s, location: \"/p/{resource_id}\" }", stores[i]);
		refused(answer, PLAIN,
		        "answer.location names {resource_id}, but answer.store keeps no resource: a retry "
		        "could not be told the same place");
		snprintf(answer, sizeof answer, "{ store: %s, location: \"/p/{command_id}\" }", stores[i]);
		filled(answer, PLAIN, "{}", "", "/p/01900000-0000-7000-8000-000000000000");
	}
	filled("{ store: reference, location: \"/p/{resource_id}\" }", PLAIN, "{}", "7", "/p/7");
}

static void values_are_percent_encoded(void **state)
{
	static const char answer[] =
	    "{ store: full, location: \"https://a.example/{from}/x?to={to}\" }";
	(void)state;
	filled(answer, PLAIN, "{\"from\":\"A-Z_a.z~9\",\"to\":\"a/b?c#d e%{}\\r\\n\\u0000\\u00e9\"}",
	       "", "https://a.example/A-Z_a.z~9/x?to=a%2Fb%3Fc%23d%20e%25%7B%7D%0D%0A%00%C3%A9");
}

static void one_text_in_two_notations_is_one_place(void **state)
{
	static const char answer[] = "{ store: full, location: \"/p/{from}\" }";
	(void)state;
	filled(answer, "{ context: [], nfc: yes }", "{\"from\":\"e\\u0301\"}", "", "/p/%C3%A9");
	filled(answer, "{ context: [], nfc: yes }", "{\"from\":\"\\u00e9\"}", "", "/p/%C3%A9");
}

static void without_a_value_there_is_no_place(void **state)
{
	static const char answer[] = "{ store: full, location: \"/p/{from}/{resource_id}\" }";
	char payload[2100] = "{\"from\":\"";
	(void)state;
	filled(answer, PLAIN, "{\"from\":\"A\"}", "7", "/p/A/7");
	filled(answer, PLAIN, "{\"from\":\"A\"}", "", "");
	filled(answer, PLAIN, "{\"from\":\"\"}", "7", "");
	filled(answer, PLAIN, "{}", "7", "");
	memset(payload + 9, 'x', 2050);
	memcpy(payload + 2059, "\"}", 3);
	filled(answer, PLAIN, payload, "7", ""); /* longer than any header should be */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(a_template_that_is_no_address_is_refused),
	    cmocka_unit_test(a_template_names_what_a_retry_has_too),
	    cmocka_unit_test(a_resource_that_is_not_kept_is_not_named),
	    cmocka_unit_test(values_are_percent_encoded),
	    cmocka_unit_test(one_text_in_two_notations_is_one_place),
	    cmocka_unit_test(without_a_value_there_is_no_place),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
