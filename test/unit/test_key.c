/* SPDX-License-Identifier: Apache-2.0 */
/* test_key.c -- keys, names and scopes: what is refused, what is one intent, what is two. */
#include "unit.h"

#include "contract/payload.h"

#include <string.h>

#define TEXTS(...)                                                                                 \
	{                                                                                              \
		.items = (const char *[]){__VA_ARGS__},                                                    \
		.count = sizeof((const char *[]){__VA_ARGS__}) / sizeof(const char *)                      \
	}

static struct arena arena;

static int tear_down(void **state)
{
	(void)state;
	arena_release(&arena);
	return 0;
}

static struct json *json_of(const char *text)
{
	struct json *json = NULL;
	struct ibid_err err = {0};
	if (json_read(&arena, text, strlen(text), 0, &json, &err))
		fail_msg("%s", err.text);
	return json;
}

static const char *derive(const struct contract *contract, const char *tenant, const char *payload)
{
	const char *key = NULL;
	struct ibid_err err = {0};
	if (key_of(&arena, contract, tenant, NULL, json_of(payload), &key, &err))
		fail_msg("%s", err.text);
	return key;
}

static void refuses(const struct contract *contract, const char *given, const char *payload,
                    const char *text)
{
	const char *key = "untouched";
	struct ibid_err err = {0};
	assert_int_equal(key_of(&arena, contract, "acme", given, json_of(payload), &key, &err),
	                 IBID_INVALID);
	assert_string_equal(err.text, text);
	assert_string_equal(key, "untouched");
}

static const struct contract api_command = {.name = "create-payment", .key = {.from = KEY_HEADER}};

static const struct contract document = {
    .name = "post-invoice",
    .key = {.from = KEY_FIELDS, .fields = TEXTS("/source", "/documentNo")},
};

static const struct contract document_uuid = {
    .name = "post-invoice",
    .key = {.from = KEY_FIELDS, .fields = TEXTS("/source", "/documentNo"), .form = KEY_FORM_UUID},
};

static const struct contract task = {
    .name = "decide-task",
    .key = {.from = KEY_FIELDS,
            .fields = TEXTS("/task", "/decision/sequence"),
            .scope = SCOPE_ACTOR},
};

/* ---- Given keys ----------------------------------------------------------------------------- */

static void bad_key(const char *key, const char *text) /* A04 */
{
	struct ibid_err err = {0};
	assert_int_equal(key_check(key, &err), IBID_INVALID);
	assert_string_equal(err.text, text);
	assert_int_equal(err.next, IBID_NEXT_NEVER);
}

static void bad_keys_are_refused_with_the_reason(void **state) /* A04 */
{
	char longest[KEY_BYTES_MAX + 2];
	(void)state;
	memset(longest, 'k', sizeof longest);
	longest[KEY_BYTES_MAX + 1] = '\0';
	bad_key(longest, "the key is longer than 255 bytes");
	longest[KEY_BYTES_MAX] = '\0';
	assert_int_equal(key_check(longest, NULL), IBID_OK);
	bad_key(NULL, "the key is empty");
	bad_key("", "the key is empty");
	bad_key("a\tb", "the key has a control character (U+0009) at byte 2");
	bad_key("a\x7f", "the key has a control character (U+007F) at byte 2");
	bad_key("a\xC2\x85z", "the key has a control character (U+0085) at byte 2");
	bad_key("ab\xFFz", "the key is not valid UTF-8 at byte 3");
	bad_key("\xC0\xAF", "the key is not valid UTF-8 at byte 1");
	bad_key("\xED\xA0\x80", "the key is not valid UTF-8 at byte 1");
	bad_key("k\xE2\x82", "the key is not valid UTF-8 at byte 2");
	bad_key(" k", "the key starts with a blank");
	bad_key("k ", "the key ends with a blank");
	bad_key(" ", "the key starts with a blank");
	bad_key("\xC2\xA0k", "the key starts with a blank");
	bad_key("k\xE3\x80\x80", "the key ends with a blank");
}

static void good_keys_may_hold_any_visible_text(void **state) /* A04 */
{
	(void)state;
	assert_int_equal(key_check("k-1", NULL), IBID_OK);
	assert_int_equal(key_check("QuoteAccepted:7f a", NULL), IBID_OK);
	assert_int_equal(key_check("\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80", NULL), IBID_OK);
}

static void names_follow_the_same_rules_with_their_own_limit(void **state) /* A02 */
{
	char longest[NAME_BYTES_MAX + 2];
	struct ibid_err err = {0};
	(void)state;
	memset(longest, 'n', sizeof longest);
	longest[NAME_BYTES_MAX + 1] = '\0';
	assert_int_equal(name_check("tenant", longest, &err), IBID_INVALID);
	assert_string_equal(err.text, "the tenant is longer than 128 bytes");
	longest[NAME_BYTES_MAX] = '\0';
	assert_int_equal(name_check("tenant", longest, &err), IBID_OK);
	assert_int_equal(name_check("actor", "", &err), IBID_INVALID);
	assert_string_equal(err.text, "the actor is empty");
}

static void api_command_takes_the_key_of_its_caller(void **state) /* A02 API command, A04 */
{
	const char *key = NULL;
	char given[] = "k-1";
	(void)state;
	assert_int_equal(key_of(&arena, &api_command, "acme", given, json_of("{}"), &key, NULL),
	                 IBID_OK);
	given[0] = 'x'; /* the key outlives the text it was read from */
	assert_string_equal(key, "k-1");
	refuses(
	    &api_command, NULL, "{}",
	    "the key is missing: the caller of create-payment makes one for each intent and sends it "
	    "(header Idempotency-Key, or --key)");
	refuses(&api_command, "", "{}", "the key is empty");
}

/* ---- Derived keys --------------------------------------------------------------------------- */

static void business_document_is_named_by_its_values(void **state) /* A02 business document, A04 */
{
	(void)state;
	assert_string_equal(
	    derive(&document, "acme", "{\"documentNo\":\"D-7\",\"x\":1,\"source\":\"sap\"}"),
	    "[\"sap\",\"D-7\"]");
	assert_string_equal(
	    derive(&document, "acme", "{\"documentNo\":true,\"source\":\"a\\\"b\\u0000\"}"),
	    "[\"a\\\"b\\u0000\",true]");
}

static void number_notation_does_not_make_another_key(void **state) /* A04 */
{
	const char *key = derive(&document, "acme", "{\"source\":\"s\",\"documentNo\":1.10}");
	(void)state;
	assert_string_equal(key, "[\"s\",1.1]");
	assert_string_equal(key, derive(&document, "acme", "{\"source\":\"s\",\"documentNo\":11e-1}"));
	assert_string_not_equal(key,
	                        derive(&document, "acme", "{\"source\":\"s\",\"documentNo\":\"1.1\"}"));
	assert_string_not_equal(
	    derive(&document, "acme", "{\"source\":\"s\",\"documentNo\":9007199254740992}"),
	    derive(&document, "acme", "{\"source\":\"s\",\"documentNo\":9007199254740993}"));
}

static void values_never_run_into_each_other(void **state) /* A04 */
{
	(void)state;
	assert_string_not_equal(
	    derive(&document, "acme", "{\"source\":\"a\\\",\\\"b\",\"documentNo\":\"c\"}"),
	    derive(&document, "acme", "{\"source\":\"a\",\"documentNo\":\"b\\\",\\\"c\"}"));
}

static void a_key_without_all_its_values_is_refused(void **state) /* A04 */
{
	(void)state;
	refuses(&document, NULL, "{\"source\":\"s\"}",
	        "/documentNo is missing: the key of post-invoice is made of it");
	refuses(&document, NULL, "{\"source\":null,\"documentNo\":1}",
	        "/source is missing: the key of post-invoice is made of it");
	refuses(&document, NULL, "{\"source\":[1],\"documentNo\":1}",
	        "/source is an array: the key of post-invoice needs a text, a number, true or false");
	refuses(&document, NULL, "{\"source\":\"s\",\"documentNo\":{}}",
	        "/documentNo is an object: the key of post-invoice needs a text, a number, true or "
	        "false");
	refuses(&document, NULL, "{\"source\":\"\",\"documentNo\":\"\"}",
	        "the key of post-invoice is empty: there is nothing in /source");
	assert_string_equal(derive(&document, "acme", "{\"source\":\"\",\"documentNo\":\"D\"}"),
	                    "[\"\",\"D\"]");
	assert_string_equal(derive(&document, "acme", "{\"source\":\"s\",\"documentNo\":\"\"}"),
	                    "[\"s\",\"\"]");
}

static void a_key_given_as_well_must_be_the_derived_one(void **state) /* A04 */
{
	const char *payload = "{\"source\":\"s\",\"documentNo\":1}", *key = NULL;
	(void)state;
	assert_int_equal(key_of(&arena, &document, "acme", "[\"s\",1]", json_of(payload), &key, NULL),
	                 IBID_OK);
	assert_string_equal(key, "[\"s\",1]");
	refuses(&document, "[\"s\",2]", payload,
	        "the given key is not the one that the contract of post-invoice makes of the payload: "
	        "leave the key out");
	char upper[64];
	const char *uuid = derive(&document_uuid, "acme", payload);
	for (size_t i = 0; i <= strlen(uuid); i++)
		upper[i] = uuid[i] >= 'a' && uuid[i] <= 'f' ? (char)(uuid[i] - 32) : uuid[i];
	assert_string_not_equal(upper, uuid);
	assert_int_equal(key_of(&arena, &document_uuid, "acme", upper, json_of(payload), &key, NULL),
	                 IBID_OK);
	assert_string_equal(key, uuid);
}

/* A payload whose derived text key has exactly `size` bytes. */
static const char *payload_of_key_size(size_t size)
{
	char *value = arena_alloc(&arena, size);
	memset(value, 'v', size - strlen("[\"\",1]"));
	return arena_printf(&arena, "{\"source\":\"%s\",\"documentNo\":1}", value);
}

static void a_long_text_key_is_refused_and_a_uuid_is_not(void **state) /* A04 */
{
	(void)state;
	assert_int_equal(strlen(derive(&document, "acme", payload_of_key_size(KEY_BYTES_MAX))),
	                 KEY_BYTES_MAX);
	refuses(&document, NULL, payload_of_key_size(KEY_BYTES_MAX + 1),
	        "the key of post-invoice would have 256 bytes, 255 are allowed: `form: uuid` in its "
	        "contract makes keys of any values short");
	assert_int_equal(strlen(derive(&document_uuid, "acme", payload_of_key_size(KEY_BYTES_MAX + 1))),
	                 36);
}

static void a_uuid_key_is_stable_for_all_time(void **state) /* A04 */
{
	/* Computed with another implementation of RFC 9562. */
	(void)state;
	assert_string_equal(
	    derive(&document_uuid, "acme", "{\"source\":\"sap\",\"documentNo\":\"D-7\"}"),
	    "437fd4df-7587-5b38-8671-0dc827942435");
}

static void a_uuid_key_depends_on_tenant_operation_and_values(void **state) /* A04 */
{
	const char *payload = "{\"source\":\"sap\",\"documentNo\":\"D-7\"}";
	const char *key = derive(&document_uuid, "acme", payload);
	struct contract other = document_uuid;
	(void)state;
	other.name = "post-credit-note";
	assert_string_equal(key, derive(&document_uuid, "acme", payload));
	assert_string_not_equal(key, derive(&document_uuid, "globex", payload));
	assert_string_not_equal(key, derive(&other, "acme", payload));
	assert_string_not_equal(
	    key, derive(&document_uuid, "acme", "{\"source\":\"sap\",\"documentNo\":\"D-8\"}"));
}

static void texts_are_one_key_in_nfc_where_declared(void **state) /* A04 */
{
	const char *composed = "{\"source\":\"caf\xC3\xA9\",\"documentNo\":1}";
	const char *split = "{\"source\":\"cafe\xCC\x81\",\"documentNo\":1}";
	struct contract nfc = document;
	(void)state;
	assert_string_not_equal(derive(&document, "acme", composed), derive(&document, "acme", split));
	nfc.same.nfc = true;
	assert_string_equal(derive(&nfc, "acme", composed), "[\"caf\xC3\xA9\",1]");
	assert_string_equal(derive(&nfc, "acme", composed), derive(&nfc, "acme", split));
}

static void one_instant_is_one_key_where_declared(void **state) /* A04 */
{
	const char *utc = "{\"source\":\"s\",\"documentNo\":\"2026-11-15T09:00:00Z\"}";
	const char *berlin = "{\"source\":\"s\",\"documentNo\":\"2026-11-15T10:00:00+01:00\"}";
	struct contract same = document, typed = document;
	struct contract_field field = {.pointer = "/documentNo", .type = FIELD_INSTANT};
	(void)state;
	same.same.instants = (struct texts)TEXTS("/documentNo");
	typed.fields = &field;
	typed.field_count = 1;
	assert_string_not_equal(derive(&document, "acme", utc), derive(&document, "acme", berlin));
	assert_string_equal(derive(&same, "acme", utc), derive(&same, "acme", berlin));
	assert_string_equal(derive(&typed, "acme", utc), derive(&typed, "acme", berlin));
	assert_string_equal(derive(&same, "acme", "{\"source\":\"s\",\"documentNo\":\"today\"}"),
	                    "[\"s\",\"today\"]");
}

/* ---- Scope ---------------------------------------------------------------------------------- */

static void scope_is_empty_unless_declared(void **state) /* A02 */
{
	const char *scope = NULL;
	(void)state;
	assert_int_equal(
	    scope_of(&arena, &api_command, &(struct sender){"acme", "web", "u7", ""}, &scope, NULL),
	    IBID_OK);
	assert_string_equal(scope, "");
}

static void scope_is_the_canonical_object_of_its_parts(void **state) /* A02 API command */
{
	struct contract contract = api_command;
	const char *scope = NULL;
	(void)state;
	contract.key.scope = SCOPE_RESOURCE | SCOPE_CLIENT | SCOPE_ACTOR;
	assert_int_equal(scope_of(&arena, &contract, &(struct sender){"acme", "web", "u\"7", "CASE-1"},
	                          &scope, NULL),
	                 IBID_OK);
	assert_string_equal(scope, "{\"actor\":\"u\\\"7\",\"client\":\"web\",\"resource\":\"CASE-1\"}");
}

static void the_longest_names_fit_into_a_scope(void **state) /* A02 */
{
	struct contract contract = api_command;
	char name[NAME_BYTES_MAX + 1];
	const char *scope = NULL;
	(void)state;
	memset(name, '"', sizeof name);
	name[NAME_BYTES_MAX] = '\0';
	contract.key.scope = SCOPE_RESOURCE | SCOPE_CLIENT | SCOPE_ACTOR;
	assert_int_equal(
	    scope_of(&arena, &contract, &(struct sender){"acme", name, name, name}, &scope, NULL),
	    IBID_OK);
	assert_int_equal(strlen(scope), strlen("{\"actor\":\"\",\"client\":\"\",\"resource\":\"\"}") +
	                                    3 * 2 * (size_t)NAME_BYTES_MAX);
}

static void
workflow_task_is_decided_once_per_actor_and_sequence(void **state) /* A02 workflow task */
{
	const char *first = NULL, *second = NULL;
	(void)state;
	assert_string_equal(derive(&task, "acme", "{\"task\":\"T-1\",\"decision\":{\"sequence\":2}}"),
	                    "[\"T-1\",2]");
	assert_int_equal(scope_of(&arena, &task, &(struct sender){"acme", "", "ann", ""}, &first, NULL),
	                 IBID_OK);
	assert_int_equal(
	    scope_of(&arena, &task, &(struct sender){"acme", "", "bob", ""}, &second, NULL), IBID_OK);
	assert_string_equal(first, "{\"actor\":\"ann\"}");
	assert_string_not_equal(first, second);
}

static void a_declared_part_that_nobody_gave_is_named(void **state) /* A02 */
{
	const char *scope = "untouched";
	struct ibid_err err = {0};
	(void)state;
	assert_int_equal(scope_of(&arena, &task, &(struct sender){"acme", "web", "", ""}, &scope, &err),
	                 IBID_INVALID);
	assert_string_equal(err.text,
	                    "the contract of decide-task declares actor in key.scope, so the command "
	                    "must name its actor: `ibid submit --actor`, or over HTTP as docs/http.md "
	                    "says");
	assert_int_equal(
	    scope_of(&arena, &task, &(struct sender){"acme", "web", "a\nb", ""}, &scope, &err),
	    IBID_INVALID);
	assert_string_equal(err.text, "the actor has a control character (U+000A) at byte 2");
	assert_string_equal(scope, "untouched");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_teardown(bad_keys_are_refused_with_the_reason, tear_down),
	    cmocka_unit_test_teardown(good_keys_may_hold_any_visible_text, tear_down),
	    cmocka_unit_test_teardown(names_follow_the_same_rules_with_their_own_limit, tear_down),
	    cmocka_unit_test_teardown(api_command_takes_the_key_of_its_caller, tear_down),
	    cmocka_unit_test_teardown(business_document_is_named_by_its_values, tear_down),
	    cmocka_unit_test_teardown(number_notation_does_not_make_another_key, tear_down),
	    cmocka_unit_test_teardown(values_never_run_into_each_other, tear_down),
	    cmocka_unit_test_teardown(a_key_without_all_its_values_is_refused, tear_down),
	    cmocka_unit_test_teardown(a_key_given_as_well_must_be_the_derived_one, tear_down),
	    cmocka_unit_test_teardown(a_long_text_key_is_refused_and_a_uuid_is_not, tear_down),
	    cmocka_unit_test_teardown(a_uuid_key_is_stable_for_all_time, tear_down),
	    cmocka_unit_test_teardown(a_uuid_key_depends_on_tenant_operation_and_values, tear_down),
	    cmocka_unit_test_teardown(texts_are_one_key_in_nfc_where_declared, tear_down),
	    cmocka_unit_test_teardown(one_instant_is_one_key_where_declared, tear_down),
	    cmocka_unit_test_teardown(scope_is_empty_unless_declared, tear_down),
	    cmocka_unit_test_teardown(scope_is_the_canonical_object_of_its_parts, tear_down),
	    cmocka_unit_test_teardown(the_longest_names_fit_into_a_scope, tear_down),
	    cmocka_unit_test_teardown(workflow_task_is_decided_once_per_actor_and_sequence, tear_down),
	    cmocka_unit_test_teardown(a_declared_part_that_nobody_gave_is_named, tear_down),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
