/* SPDX-License-Identifier: Apache-2.0 */
/* test_fingerprint.c -- A03: same meaning, same hash; other meaning, other hash.
 *
 * Examples first, one rule each; then properties over payloads that a seed makes up: whatever may
 * be written differently is, and the hash stays; whatever is changed in meaning changes it. */
#include "unit.h"

#include "base/canon.h"
#include "contract/payload.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TEXTS(...)                                                                                 \
	{                                                                                              \
		.items = (const char *[]){__VA_ARGS__},                                                    \
		.count = sizeof((const char *[]){__VA_ARGS__}) / sizeof(const char *)                      \
	}

#define E_ACUTE    "\xC3\xA9"  /* one character */
#define E_AND_MARK "e\xCC\x81" /* the same text, not in NFC */

static struct arena arena;
static struct env_virtual seeded;
static const struct sender sender = {"acme", "web", "ann", "CASE-1"};
static const struct contract plain = {.name = "create-payment", .version = 1};

static int set_up(void **state)
{
	(void)state;
	env_virtual_init(&seeded, 0, 1515);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	arena_release(&arena);
	return 0;
}

static struct json *json_of(const char *text, size_t size)
{
	struct json *json = NULL;
	struct ibid_err err = {0};
	if (json_read(&arena, text, size, 0, &json, &err))
		fail_msg("%s: %s", err.text, text);
	return json;
}

static const char *preimage(const struct contract *contract, const char *payload)
{
	const char *text = NULL;
	size_t size = 0;
	struct ibid_err err = {0};
	if (fingerprint_text(&arena, contract, &sender, json_of(payload, strlen(payload)), &text, &size,
	                     &err))
		fail_msg("%s", err.text);
	assert_int_equal(strlen(text), size);
	return text;
}

static const char *hash_sized(const struct contract *contract, const struct sender *from,
                              const char *payload, size_t size)
{
	struct sha256 hash;
	struct ibid_err err = {0};
	char *text = arena_alloc(&arena, SHA256_TEXT_SIZE);
	if (fingerprint_of(&arena, contract, from, json_of(payload, size), &hash, &err))
		fail_msg("%s: %s", err.text, payload);
	sha256_write(&hash, text);
	return text;
}

static const char *hash(const struct contract *contract, const char *payload)
{
	return hash_sized(contract, &sender, payload, strlen(payload));
}

/* What the contract makes of the payload. */
static void sees(const struct contract_same *same, const char *payload, const char *shaped)
{
	const struct contract contract = {.name = "op", .version = 1, .same = *same};
	assert_string_equal(
	    preimage(&contract, payload),
	    arena_printf(&arena,
	                 "{\"context\":{},\"operation\":\"op\",\"payload\":%s,\"scheme\":1,\"tenant\":"
	                 "\"acme\",\"version\":1}",
	                 shaped));
}

static void refuses(const struct contract *contract, const struct sender *from, const char *payload,
                    const char *text)
{
	struct sha256 before = {{1, 2, 3}}, after = before;
	struct ibid_err err = {0};
	assert_int_equal(
	    fingerprint_of(&arena, contract, from, json_of(payload, strlen(payload)), &after, &err),
	    IBID_INVALID);
	assert_string_equal(err.text, text);
	assert_memory_equal(&before, &after, sizeof before);
}

/* ---- The preimage --------------------------------------------------------------------------- */

static void the_preimage_names_everything_that_counts(void **state) /* A03 */
{
	struct contract contract = plain;
	(void)state;
	assert_string_equal(preimage(&contract, "{\"b\": 1.10, \"a\": \"x\"}"),
	                    "{\"context\":{},\"operation\":\"create-payment\",\"payload\":{\"a\":\"x\","
	                    "\"b\":1.1},\"scheme\":1,\"tenant\":\"acme\",\"version\":1}");
	contract.same.context = SCOPE_RESOURCE | SCOPE_ACTOR | SCOPE_CLIENT;
	assert_string_equal(
	    preimage(&contract, "[]"),
	    "{\"context\":{\"actor\":\"ann\",\"client\":\"web\",\"resource\":\"CASE-1\"},"
	    "\"operation\":\"create-payment\",\"payload\":[],\"scheme\":1,\"tenant\":"
	    "\"acme\",\"version\":1}");
}

static void the_fingerprint_is_the_hash_of_the_preimage(void **state) /* A03 */
{
	char expected[SHA256_TEXT_SIZE];
	const char *text = preimage(&plain, "{\"a\":1}");
	struct sha256 digest = sha256(text, strlen(text));
	(void)state;
	sha256_write(&digest, expected);
	assert_string_equal(hash(&plain, "{\"a\":1}"), expected);
	/* Rows keep it: computed with another implementation. */
	assert_string_equal(expected,
	                    "c4eca8df124ec6619422dad9d2f2685424448ea78a21f8dcbe7be3bee1d742ce");
}

static void the_preimage_is_canonical_json(void **state) /* A03 */
{
	struct contract contract = plain;
	struct str out = STR_INIT(4096);
	(void)state;
	contract.same.context = SCOPE_ACTOR | SCOPE_RESOURCE;
	const char *text = preimage(&contract, "{\"z\":[1e2],\"\\u20ac\":\"\\n\"}");
	canon_write(&out, json_of(text, strlen(text)));
	assert_string_equal(str_text(&out), text);
	str_release(&out);
}

static void tenant_operation_version_and_context_count(void **state) /* A03 */
{
	struct contract other = plain;
	struct sender from = sender;
	const char *payload = "{\"a\":1}", *first = hash(&plain, payload);
	size_t size = strlen(payload);
	(void)state;
	from.tenant = "globex";
	assert_string_not_equal(first, hash_sized(&plain, &from, payload, size));
	other.version = 2;
	assert_string_not_equal(first, hash(&other, payload));
	other = plain;
	other.name = "cancel-payment";
	assert_string_not_equal(first, hash(&other, payload));
	from = sender;
	from.actor = "bob";
	assert_string_equal(first, hash_sized(&plain, &from, payload, size));
	other = plain;
	other.same.context = SCOPE_ACTOR;
	assert_string_not_equal(hash(&other, payload), hash_sized(&other, &from, payload, size));
}

static void a_declared_context_that_nobody_gave_is_refused(void **state) /* A03 */
{
	struct contract contract = plain;
	(void)state;
	contract.same.context = SCOPE_CLIENT | SCOPE_ACTOR;
	refuses(
	    &contract, &(struct sender){"acme", "", "ann", ""}, "{}",
	    "the contract of create-payment declares client in same_payload.context, so the command "
	    "must name its client: `ibid submit --client`, or over HTTP as docs/http.md says");
	refuses(&contract, &(struct sender){"acme", "web", NULL, ""}, "{}",
	        "the contract of create-payment declares actor in same_payload.context, so the command "
	        "must name its actor: `ibid submit --actor`, or over HTTP as docs/http.md says");
}

/* ---- One rule each -------------------------------------------------------------------------- */

static void form_does_not_count(void **state) /* A03 */
{
	const char *first = hash(&plain, "{\"a\":[1.1,\"\\u00e9\"],\"b\":{\"c\":100,\"d\":null}}");
	(void)state;
	assert_string_equal(first, hash(&plain, " { \"b\" : {\"d\":null, \"c\":1e2},\n\"a\":[11e-1,"
	                                        "\"" E_ACUTE "\"]}"));
	assert_string_not_equal(first, hash(&plain, "{\"a\":[1.1,\"" E_AND_MARK "\"],\"b\":{\"c\":100,"
	                                            "\"d\":null}}"));
}

static void every_digit_counts(void **state) /* A03 */
{
	(void)state;
	assert_string_not_equal(hash(&plain, "9007199254740992"), hash(&plain, "9007199254740993"));
	assert_string_not_equal(hash(&plain, "0.1"), hash(&plain, "0.1000000000000000000000000001"));
	assert_string_not_equal(hash(&plain, "1e400"), hash(&plain, "1e401"));
	assert_string_equal(hash(&plain, "1.10"), hash(&plain, "1.1"));
	assert_string_equal(hash(&plain, "-0"), hash(&plain, "0"));
}

static void types_do_not_mix(void **state) /* A03 */
{
	static const char *const values[] = {"null", "false", "0",        "\"\"",
	                                     "[]",   "{}",    "\"null\"", "\"0\"",
	                                     "[0]",  "[[]]",  "[null]",   "{\"\":null}"};
	(void)state;
	for (size_t i = 0; i < COUNT(values); i++)
		for (size_t k = 0; k < i; k++)
			assert_string_not_equal(hash(&plain, values[i]), hash(&plain, values[k]));
}

static void a_nul_is_a_character_like_others(void **state) /* A03 */
{
	const struct contract nfc = {.name = "op", .same = {.nfc = true}};
	(void)state;
	assert_string_not_equal(hash(&plain, "\"a\\u0000b\""), hash(&plain, "\"a\\u0000c\""));
	assert_string_not_equal(hash(&plain, "{\"a\\u0000b\":1}"), hash(&plain, "{\"a\\u0000c\":1}"));
	assert_string_not_equal(hash(&nfc, "\"a\\u0000" E_ACUTE "\""), hash(&nfc, "\"a\\u0000e\""));
	assert_string_equal(hash(&nfc, "\"a\\u0000" E_ACUTE "\""),
	                    hash(&nfc, "\"a\\u0000" E_AND_MARK "\""));
}

static void ignored_members_are_left_out(void **state) /* A03 */
{
	const struct contract_same same = {
	    .ignore = TEXTS("/at", "/meta/trace", "/lines/*/id", "/m/*/x", "/a~1b~0c")};
	(void)state;
	sees(&same, "{\"at\":1,\"a\":2,\"a/b~c\":3}", "{\"a\":2}");
	sees(&same, "{\"meta\":{\"trace\":1}}", "{\"meta\":{}}");
	sees(&same, "{\"meta\":7,\"lines\":{}}", "{\"lines\":{},\"meta\":7}");
	sees(&same, "{\"lines\":[{\"id\":1,\"q\":2},{\"id\":3},4]}", "{\"lines\":[{\"q\":2},{},4]}");
	sees(&same, "{\"m\":{\"k\":{\"x\":1},\"l\":{\"x\":2,\"y\":3}}}",
	     "{\"m\":{\"k\":{},\"l\":{\"y\":3}}}");
	sees(&same, "[1]", "[1]");
}

static void array_places_are_those_of_the_payload(void **state) /* A03 */
{
	sees(&(struct contract_same){.ignore = TEXTS("/0", "/1")}, "[\"a\",\"b\",\"c\"]", "[\"c\"]");
	sees(&(struct contract_same){.only = TEXTS("/1", "/2"), .ignore = TEXTS("/2")},
	     "[\"a\",\"b\",\"c\"]", "[\"b\"]");
	sees(&(struct contract_same){.ignore = TEXTS("/01", "/-")}, "[\"a\",\"b\"]", "[\"a\",\"b\"]");
	sees(&(struct contract_same){.ignore = TEXTS("/*")}, "[\"a\",\"b\"]", "[]");
	sees(&(struct contract_same){.ignore = TEXTS("/0"), .instants = TEXTS("/1")},
	     "[\"\",\"2026-11-15T10:00:00+01:00\"]", "[\"2026-11-15T09:00:00Z\"]");
	(void)state;
}

static void ignoring_the_whole_makes_all_payloads_the_same(void **state) /* A03 */
{
	const struct contract_same same = {.ignore = TEXTS("")};
	(void)state;
	sees(&same, "{\"a\":[1,2]}", "null");
	sees(&same, "7", "null");
}

static void only_keeps_what_it_names_and_the_way_to_it(void **state) /* A03 */
{
	const struct contract_same same = {.only = TEXTS("/a/b", "/lines/*/sku", "/whole", "/whole/x")};
	(void)state;
	sees(&same, "{\"a\":{\"b\":1,\"c\":2},\"z\":3}", "{\"a\":{\"b\":1}}");
	sees(&same, "{\"a\":{\"c\":2}}", "{\"a\":{}}");
	sees(&same, "{\"a\":7,\"z\":1}", "{\"a\":7}");
	sees(&same, "{\"lines\":[{\"sku\":\"s\",\"q\":1},{\"q\":2}]}",
	     "{\"lines\":[{\"sku\":\"s\"},{}]}");
	sees(&same, "{\"whole\":{\"x\":1,\"y\":{\"z\":2}}}", "{\"whole\":{\"x\":1,\"y\":{\"z\":2}}}");
	sees(&same, "{}", "{}");
	sees(&(struct contract_same){.only = TEXTS("/a"), .ignore = TEXTS("/a/t")},
	     "{\"a\":{\"t\":1,\"u\":2},\"b\":3}", "{\"a\":{\"u\":2}}");
	sees(&(struct contract_same){.only = TEXTS("")}, "{\"a\":1}", "{\"a\":1}");
}

static void a_missing_member_stands_for_its_default(void **state) /* A03 */
{
	struct contract_default defaults[] = {
	    {"/*", "9"},
	    {"", "9"},
	    {"/opts/mode", "\"std\""},
	    {"/lines/*/qty", "1.0"},
	    {"/opts", "{\"x\":[1]}"},
	    {"/deep/er", "0"},
	};
	const struct contract_same same = {.defaults = defaults, .default_count = COUNT(defaults)};
	(void)state;
	sees(&same, "{}", "{\"opts\":{\"mode\":\"std\",\"x\":[1]}}");
	sees(&same, "{\"opts\":{}}", "{\"opts\":{\"mode\":\"std\"}}");
	sees(&same, "{\"opts\":null}", "{\"opts\":null}");
	sees(&same, "{\"opts\":{\"mode\":null}}", "{\"opts\":{\"mode\":null}}");
	sees(&same, "{\"opts\":1,\"lines\":[{},{\"qty\":2},[],3]}",
	     "{\"lines\":[{\"qty\":1},{\"qty\":2},[],3],\"opts\":1}");
	sees(&same, "[]", "[]");
}

static void a_default_fills_what_only_keeps(void **state) /* A03 */
{
	struct contract_default defaults[] = {{"/a/b", "1"}};
	const struct contract_same same = {
	    .only = TEXTS("/a/b"), .defaults = defaults, .default_count = 1};
	(void)state;
	sees(&same, "{\"a\":{\"c\":2}}", "{\"a\":{\"b\":1}}");
}

static void a_broken_default_is_said_to_be_one(void **state)
{
	struct contract_default defaults[] = {{"/a", "{"}};
	struct contract contract = {.name = "op", .same = {.defaults = defaults, .default_count = 1}};
	struct ibid_err err = {0};
	struct sha256 ret;
	(void)state;
	assert_int_equal(fingerprint_of(&arena, &contract, &sender, json_of("{}", 2), &ret, &err),
	                 IBID_CONTRACT);
	assert_string_equal(err.text, "the default of /a is not JSON");
}

static void instants_are_compared_in_utc(void **state) /* A03 */
{
	struct contract_default defaults[] = {{"/due", "\"2026-01-01T01:00:00+01:00\""}};
	const struct contract_same same = {
	    .instants = TEXTS("/at", "/due", "/log/*"), .defaults = defaults, .default_count = 1};
	(void)state;
	sees(&same, "{\"at\":\"2026-11-15T10:00:00.50+01:00\",\"x\":\"2026-11-15T10:00:00+01:00\"}",
	     "{\"at\":\"2026-11-15T09:00:00.5Z\",\"due\":\"2026-01-01T00:00:00Z\","
	     "\"x\":\"2026-11-15T10:00:00+01:00\"}");
	sees(&same, "{\"at\":\"2026-11-15T10:00:00\",\"due\":5}",
	     "{\"at\":\"2026-11-15T10:00:00\",\"due\":5}");
	sees(&same, "{\"due\":0,\"log\":[\"2026-11-15T00:00:00-01:00\",\"x\"]}",
	     "{\"due\":0,\"log\":[\"2026-11-15T01:00:00Z\",\"x\"]}");
}

static void the_items_of_unordered_lists_are_a_multiset(void **state) /* A03 */
{
	const struct contract_same same = {.unordered = TEXTS("/l")};
	(void)state;
	sees(&same, "{\"l\":[3,\"b\",1,{\"k\":1},3,\"a\"]}", "{\"l\":[\"a\",\"b\",1,3,3,{\"k\":1}]}");
	sees(&same, "{\"l\":{\"b\":1,\"a\":[2,1]}}", "{\"l\":{\"a\":[2,1],\"b\":1}}");
	sees(&same, "{\"l\":[]}", "{\"l\":[]}");
	sees(&same, "{\"l\":[12,1,10]}", "{\"l\":[1,10,12]}");
	sees(&same, "{\"l\":[1],\"o\":[2,1]}", "{\"l\":[1],\"o\":[2,1]}");
	sees(&(struct contract_same){.unordered = TEXTS("")}, "[2,1]", "[1,2]");
}

static void inner_lists_are_sorted_before_outer_ones(void **state) /* A03 */
{
	const struct contract_same same = {.unordered = TEXTS("/g", "/g/*/t")};
	(void)state;
	sees(&same, "{\"g\":[{\"t\":[3,2]},{\"t\":[9,1]}]}", "{\"g\":[{\"t\":[1,9]},{\"t\":[2,3]}]}");
	sees(&same, "{\"g\":[{\"t\":[1,9]},{\"t\":[2,3]}]}", "{\"g\":[{\"t\":[1,9]},{\"t\":[2,3]}]}");
}

static void lists_are_sorted_by_what_is_left_of_their_items(void **state) /* A03 */
{
	struct contract_default defaults[] = {{"/l/*/q", "1"}};
	const struct contract_same same = {.unordered = TEXTS("/l"),
	                                   .ignore = TEXTS("/l/*/id"),
	                                   .defaults = defaults,
	                                   .default_count = 1};
	(void)state;
	sees(&same, "{\"l\":[{\"id\":1,\"q\":2},{\"id\":2}]}", "{\"l\":[{\"q\":1},{\"q\":2}]}");
}

static void texts_and_names_are_compared_in_nfc(void **state) /* A03 */
{
	struct contract_default defaults[] = {{"/d" E_AND_MARK, "\"" E_AND_MARK "\""}};
	const struct contract_same same = {.nfc = true,
	                                   .ignore = TEXTS("/x" E_ACUTE),
	                                   .only = TEXTS("/" E_AND_MARK, "/x" E_ACUTE),
	                                   .defaults = defaults,
	                                   .default_count = 1};
	(void)state;
	sees(&same, "{\"" E_AND_MARK "\":\"" E_AND_MARK "\",\"y\":1}",
	     "{\"d" E_ACUTE "\":\"" E_ACUTE "\",\"" E_ACUTE "\":\"" E_ACUTE "\"}");
	sees(&same, "{\"" E_ACUTE "\":1,\"x" E_AND_MARK "\":2,\"d" E_AND_MARK "\":3}",
	     "{\"d" E_ACUTE "\":\"" E_ACUTE "\",\"" E_ACUTE "\":1}");
	sees(&(struct contract_same){.nfc = true}, "\"\xE1\x84\x80\xE1\x85\xA1\"", "\"\xEA\xB0\x80\"");
	sees(&(struct contract_same){.nfc = true}, "\"\xE2\x84\xAB\"", "\"\xC3\x85\"");
}

static void names_that_become_one_in_nfc_are_refused(void **state) /* A03 */
{
	const struct contract contract = {.name = "op", .same = {.nfc = true}};
	const struct contract ignoring = {.name = "op",
	                                  .same = {.nfc = true, .ignore = TEXTS("/o/" E_ACUTE)}};
	const char *payload = "{\"o\":{\"" E_ACUTE "\":1,\"b\":2,\"" E_AND_MARK "\":1}}";
	(void)state;
	refuses(&contract, &sender, payload,
	        "two members of one object have the same name in Unicode NFC: \"" E_ACUTE "\"");
	hash(&plain, payload);
	assert_string_equal(hash(&ignoring, payload), hash(&ignoring, "{\"o\":{\"b\":2}}"));
	hash(&contract, "{\"" E_ACUTE "\":1,\"o\":{\"" E_AND_MARK "\":1}}");
}

static void a_tower_of_marks_is_refused_not_sorted(void **state) /* A03 */
{
	const struct contract contract = {.name = "op", .same = {.nfc = true}};
	struct str text = STR_INIT(1 << 16);
	(void)state;
	str_adds(&text, "\"a");
	for (int i = 0; i < NFC_MARKS_MAX / 2; i++)
		str_adds(&text, "\xCC\x81\xCC\xA3");
	str_adds(&text, "\"");
	hash(&contract, str_text(&text));
	text.size--;
	str_adds(&text, "\xCC\x81\"");
	refuses(&contract, &sender, str_text(&text),
	        "a text has more than 128 combining marks in a row");
	str_release(&text);
}

static struct contract rich_contract(void);

static void the_payload_is_not_changed(void **state) /* A03 */
{
	struct contract rich = rich_contract();
	const char *text = "{\"at\":\"2026-11-15T10:00:00+01:00\",\"l\":[3,2,1],\"t\":\"" E_AND_MARK
	                   "\",\"v\":1}";
	struct json *payload = json_of(text, strlen(text));
	struct str before = STR_INIT(4096), after = STR_INIT(4096);
	struct sha256 ret;
	(void)state;
	canon_write(&before, payload);
	assert_int_equal(fingerprint_of(&arena, &rich, &sender, payload, &ret, NULL), IBID_OK);
	canon_write(&after, payload);
	assert_string_equal(str_text(&before), str_text(&after));
	str_release(&before);
	str_release(&after);
}

static void too_little_memory_is_said_to_be_the_limit(void **state)
{
	struct contract rich = rich_contract();
	struct arena small = {.cap = 8192};
	struct str text = STR_INIT(1 << 16);
	struct ibid_err err = {0};
	struct sha256 ret;
	(void)state;
	str_adds(&text, "[0");
	for (int i = 0; i < 1000; i++)
		str_adds(&text, ",0");
	str_adds(&text, "]");
	assert_int_equal(
	    fingerprint_of(&small, &rich, &sender, json_of(text.data, text.size), &ret, &err),
	    IBID_LIMIT);
	assert_string_equal(err.text, "the payload needs more than 8192 bytes of memory");
	arena_release(&small);
	str_release(&text);
}

/* ---- Properties ----------------------------------------------------------------------------- */

/* A number is kept as "[-]DIGITSeEXPONENT", digits without zeros at either end (or "0e0"). */
static const char *some_number(void)
{
	char text[64] = "", *at = text;
	size_t digits = 1 + pick(&seeded, 24);
	if (pick(&seeded, 8) == 0)
		return "0e0";
	if (pick(&seeded, 2))
		*at++ = '-';
	for (size_t i = 0; i < digits; i++)
		*at++ = (char)(i == 0 || i + 1 == digits ? '1' + pick(&seeded, 9)
		                                         : '0' + pick(&seeded, 10));
	snprintf(at, 16, "e%d", (int)pick(&seeded, 40) - 20);
	return arena_strdup(&arena, text);
}

static const char *some_text(size_t *ret_size)
{
	static const char *const pieces[] = {"a",
	                                     "b",
	                                     "Z",
	                                     "0",
	                                     " ",
	                                     "\"",
	                                     "\\",
	                                     "/",
	                                     "~",
	                                     "*",
	                                     "\n",
	                                     "\x7f",
	                                     "\xC3\xA9",
	                                     "\xE2\x82\xAC",
	                                     "\xF0\x9F\x98\x80",
	                                     "\xEF\xBF\xBD",
	                                     ""};
	char text[64];
	size_t size = 0;
	for (size_t left = pick(&seeded, 9); left > 0; left--) {
		const char *piece = pieces[pick(&seeded, COUNT(pieces))];
		size_t length = *piece ? strlen(piece) : 1; /* "" is U+0000 */
		memcpy(text + size, piece, length);
		size += length;
	}
	*ret_size = size;
	return arena_strndup(&arena, text, size);
}

static bool has_name(const struct json *object, const char *name, size_t size)
{
	for (const struct json *m = object->child; m; m = m->next)
		if (m->name_size == size && memcmp(m->name, name, size) == 0)
			return true;
	return false;
}

static struct json *some_value(int depth);

static void add_child(struct json *parent, struct json *child)
{
	if (parent->type == JSON_OBJECT) {
		do
			child->name = some_text(&child->name_size);
		while (has_name(parent, child->name, child->name_size));
	}
	child->next = parent->child;
	parent->child = child;
	parent->size++;
}

static struct json *some_value(int depth)
{
	struct json *value = arena_alloc(&arena, sizeof *value);
	value->type = (enum json_type)pick(&seeded, depth > 0 ? 7 : 5);
	if (depth == 4)
		value->type = JSON_OBJECT;
	if (value->type == JSON_NUMBER) {
		value->text = some_number();
		value->size = strlen(value->text);
	} else if (value->type == JSON_STRING) {
		value->text = some_text(&value->size);
	} else if (value->type >= JSON_ARRAY) {
		for (size_t left = pick(&seeded, depth == 4 ? 8 : 5); left > 0; left--)
			add_child(value, some_value(depth - 1));
	}
	return value;
}

static void blanks(struct str *out)
{
	while (pick(&seeded, 4) == 0)
		str_addc(out, " \t\r\n"[pick(&seeded, 4)]);
}

/* Any JSON spelling of the text. */
static void write_text(struct str *out, const char *text, size_t size)
{
	str_addc(out, '"');
	for (size_t i = 0; i < size; i++) {
		unsigned char byte = (unsigned char)text[i];
		if (byte < 0x20 || byte == '"' || byte == '\\' || (byte < 0x80 && pick(&seeded, 3) == 0))
			str_addf(out, pick(&seeded, 2) ? "\\u%04x" : "\\u%04X", byte);
		else
			str_addc(out, (char)byte);
	}
	str_addc(out, '"');
}

/* Any JSON spelling of the number. */
static void write_number(struct str *out, const char *text)
{
	if (*text == '-')
		str_addc(out, *text++);
	size_t digits = strcspn(text, "e"), whole = pick(&seeded, digits + 1);
	long exponent = strtol(text + digits + 1, NULL, 10) + (long)(digits - whole);
	if (*text == '0')
		exponent = (long)pick(&seeded, 9) - 4;
	if (whole == 0)
		str_addc(out, '0');
	str_add(out, text, whole);
	if (whole < digits || pick(&seeded, 2)) {
		str_addc(out, '.');
		str_add(out, text + whole, digits - whole);
		size_t zeros = pick(&seeded, 3) + (whole == digits);
		while (zeros-- > 0)
			str_addc(out, '0');
	}
	if (exponent != 0 || pick(&seeded, 2))
		str_addf(out, "%c%s%0*ld", pick(&seeded, 2) ? 'e' : 'E',
		         exponent < 0 ? "-" : (pick(&seeded, 2) ? "+" : ""), (int)pick(&seeded, 4),
		         labs(exponent));
}

static void shuffle(struct json *parent)
{
	const struct json *items[64];
	struct json **link = &parent->child;
	size_t count = 0;
	for (struct json *child = parent->child; child; child = child->next)
		items[count++] = child;
	for (size_t left = count; left > 0; left--) {
		size_t i = pick(&seeded, left);
		*link = (struct json *)(uintptr_t)items[i];
		link = &(*link)->next;
		items[i] = items[left - 1];
	}
	*link = NULL;
}

/* Any JSON spelling of the value. */
static void write_any(struct str *out, struct json *value)
{
	static const char *const words[] = {"null", "false", "true"};
	blanks(out);
	switch (value->type) {
	case JSON_NUMBER: write_number(out, value->text); break;
	case JSON_STRING: write_text(out, value->text, value->size); break;
	case JSON_ARRAY:
	case JSON_OBJECT:
		if (value->type == JSON_OBJECT)
			shuffle(value);
		str_addc(out, value->type == JSON_OBJECT ? '{' : '[');
		blanks(out);
		for (struct json *child = value->child; child; child = child->next) {
			if (child != value->child)
				str_addc(out, ',');
			blanks(out);
			if (child->name) {
				write_text(out, child->name, child->name_size);
				blanks(out);
				str_addc(out, ':');
			}
			write_any(out, child);
		}
		str_addc(out, value->type == JSON_OBJECT ? '}' : ']');
		break;
	default: str_adds(out, words[value->type]); break;
	}
	blanks(out);
}

static const char *hash_any(const struct contract *contract, struct json *value)
{
	struct str out = STR_INIT(1 << 20);
	write_any(&out, value);
	assert_false(out.failed);
	const char *text = hash_sized(contract, &sender, out.data, out.size);
	str_release(&out);
	return text;
}

static void any_spelling_has_the_same_hash(void **state) /* A03 */
{
	(void)state;
	for (int round = 0; round < 2000; round++) {
		struct json *value = some_value(4);
		const char *first = hash_any(&plain, value);
		for (int again = 0; again < 3; again++)
			assert_string_equal(first, hash_any(&plain, value));
		arena_release(&arena);
	}
}

static size_t count_values(const struct json *value)
{
	size_t count = 1;
	for (const struct json *child = value->child; child; child = child->next)
		count += count_values(child);
	return count;
}

static struct json *nth(struct json *value, size_t *n, struct json *parent,
                        struct json **ret_parent)
{
	if ((*n)-- == 0) {
		*ret_parent = parent;
		return value;
	}
	for (struct json *child = value->child; child; child = child->next) {
		struct json *found = nth(child, n, value, ret_parent);
		if (found)
			return found;
	}
	return NULL;
}

static void change_number(struct json *value)
{
	char *text = arena_strndup(&arena, value->text, value->size + 1);
	char *digit = text + (*text == '-') + pick(&seeded, strcspn(text, "e") - (*text == '-'));
	*digit = *digit == '9' ? '8' : (char)(*digit + 1);
	value->text = text;
}

static void change_text(const char **text, size_t *size)
{
	char *longer = arena_strndup(&arena, *text, *size + 1);
	size_t at = pick(&seeded, *size + 1);
	/* "#" is in no text, so that one more is always another text; not within a character. */
	while (at < *size && ((unsigned char)(*text)[at] & 0xC0) == 0x80)
		at++;
	memmove(longer + at + 1, longer + at, *size - at);
	longer[at] = '#';
	*text = longer;
	(*size)++;
}

static void remove_child(struct json *parent, struct json *child)
{
	struct json **link = &parent->child;
	while (*link != child)
		link = &(*link)->next;
	*link = child->next;
	parent->size--;
}

/* One change of meaning somewhere in the tree. */
static void change(struct json *root)
{
	size_t n = pick(&seeded, count_values(root));
	struct json *parent = NULL, *value = nth(root, &n, NULL, &parent);
	size_t way = pick(&seeded, 4);
	if (way == 0 && parent) {
		remove_child(parent, value);
	} else if (way == 1 && value->name) {
		change_text(&value->name, &value->name_size);
	} else if (way == 2 && value->type != JSON_OBJECT) {
		struct json inner = *value;
		struct json *item = arena_alloc(&arena, sizeof *item);
		*item = (struct json){
		    .type = inner.type, .text = inner.text, .size = inner.size, .child = inner.child};
		value->type = JSON_ARRAY;
		value->text = NULL;
		value->child = item;
		value->size = 1;
	} else {
		switch (value->type) {
		case JSON_NULL: value->type = JSON_FALSE; break;
		case JSON_FALSE: value->type = JSON_TRUE; break;
		case JSON_TRUE: value->type = JSON_NULL; break;
		case JSON_NUMBER: change_number(value); break;
		case JSON_STRING: change_text(&value->text, &value->size); break;
		default: add_child(value, some_value(1)); break;
		}
	}
}

static void any_change_of_meaning_has_another_hash(void **state) /* A03 */
{
	(void)state;
	for (int round = 0; round < 5000; round++) {
		struct json *value = some_value(4);
		const char *first = hash_any(&plain, value);
		change(value);
		assert_string_not_equal(first, hash_any(&plain, value));
		arena_release(&arena);
	}
}

static struct contract rich_contract(void)
{
	static struct contract_default defaults[] = {{"/a", "1"}, {"/b/*/a", "[]"}};
	static const char *ignore_list[] = {"/Z", "/*/Z"}, *instants[] = {"/at", "/*/a"};
	static const char *unordered[] = {"/l", "/*", "/*/*", "/v/*/*"};
	return (struct contract){
	    .name = "rich",
	    .version = 7,
	    .same = {.ignore = {ignore_list, COUNT(ignore_list)},
	             .instants = {instants, COUNT(instants)},
	             .unordered = {unordered, COUNT(unordered)},
	             .defaults = defaults,
	             .default_count = COUNT(defaults),
	             .nfc = true,
	             .context = SCOPE_ACTOR},
	};
}

static void shuffle_lists(struct json *value, int depth)
{
	if (value->type == JSON_ARRAY && (depth == 1 || depth == 2))
		shuffle(value);
	for (struct json *child = value->child; child; child = child->next)
		shuffle_lists(child, depth + 1);
}

static void what_the_contract_ignores_has_the_same_hash(void **state) /* A03 */
{
	struct contract rich = rich_contract();
	(void)state;
	for (int round = 0; round < 2000; round++) {
		struct json *value = some_value(4), *noise = some_value(3);
		const char *first = hash_any(&rich, value);
		shuffle_lists(value, 0);
		if (!has_name(value, "Z", 1)) {
			add_child(value, noise);
			noise->name = "Z";
			noise->name_size = 1;
		}
		assert_string_equal(first, hash_any(&rich, value));
		arena_release(&arena);
	}
}

static void a_rich_contract_with_no_matching_pointer_sees_every_change(void **state) /* A03 */
{
	struct contract_default defaults[] = {{"/#/a", "1"}};
	const struct contract contract = {.name = "create-payment",
	                                  .version = 1,
	                                  .same = {.ignore = TEXTS("/##"),
	                                           .instants = TEXTS("/##"),
	                                           .unordered = TEXTS("/##"),
	                                           .defaults = defaults,
	                                           .default_count = 1,
	                                           .nfc = true}};
	(void)state;
	for (int round = 0; round < 2000; round++) {
		struct json *value = some_value(4);
		const char *first = hash_any(&contract, value);
		assert_string_equal(first, hash_any(&plain, value)); /* the copy says what the tree says */
		change(value);
		assert_string_not_equal(first, hash_any(&contract, value));
		arena_release(&arena);
	}
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
	    TEST(the_preimage_names_everything_that_counts),
	    TEST(the_fingerprint_is_the_hash_of_the_preimage),
	    TEST(the_preimage_is_canonical_json),
	    TEST(tenant_operation_version_and_context_count),
	    TEST(a_declared_context_that_nobody_gave_is_refused),
	    TEST(form_does_not_count),
	    TEST(every_digit_counts),
	    TEST(types_do_not_mix),
	    TEST(a_nul_is_a_character_like_others),
	    TEST(ignored_members_are_left_out),
	    TEST(array_places_are_those_of_the_payload),
	    TEST(ignoring_the_whole_makes_all_payloads_the_same),
	    TEST(only_keeps_what_it_names_and_the_way_to_it),
	    TEST(a_missing_member_stands_for_its_default),
	    TEST(a_default_fills_what_only_keeps),
	    TEST(a_broken_default_is_said_to_be_one),
	    TEST(instants_are_compared_in_utc),
	    TEST(the_items_of_unordered_lists_are_a_multiset),
	    TEST(inner_lists_are_sorted_before_outer_ones),
	    TEST(lists_are_sorted_by_what_is_left_of_their_items),
	    TEST(texts_and_names_are_compared_in_nfc),
	    TEST(names_that_become_one_in_nfc_are_refused),
	    TEST(a_tower_of_marks_is_refused_not_sorted),
	    TEST(the_payload_is_not_changed),
	    TEST(too_little_memory_is_said_to_be_the_limit),
	    TEST(any_spelling_has_the_same_hash),
	    TEST(any_change_of_meaning_has_another_hash),
	    TEST(what_the_contract_ignores_has_the_same_hash),
	    TEST(a_rich_contract_with_no_matching_pointer_sees_every_change),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
