/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_fingerprint.c -- any bytes as payload of a contract that uses every rule.
 *
 * Nothing may crash, and a payload and its canonical rewrite have one fingerprint, one key and one
 * set of fields. */
#include "base/canon.h"
#include "contract/payload.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

#define COUNT(array) (sizeof(array) / sizeof *(array))

static const struct sender sender = {"acme", "web", "ann", "CASE-1"};
static struct decimal zero, thousand = {.units = 1000};
static const char *ignore_list[] = {"/at", "/l/*/id", "/*/z", "/0"};
static const char *instants[] = {"/t", "/l/*/t", "/*"};
static const char *unordered[] = {"", "/l", "/l/*/l", "/*/*"};
static const char *only[] = {"/a", "/l/*/a", "/b/c", "/1"};
static const char *key_fields[] = {"/a", "/b/c"};
static const char *choices[] = {"EUR", "USD"};
static struct contract_default defaults[] = {
    {"/b", "{\"c\":1}"}, {"/b/c", "\"e\xCC\x81\""}, {"/l/*/a", "[2,1]"}};
static struct contract_field fields[] = {
    {.pointer = "/a", .type = FIELD_TEXT, .max = 3},
    {.pointer = "/b/c", .type = FIELD_DECIMAL, .scale = 2, .above = &zero, .at_most = &thousand},
    {.pointer = "/n", .type = FIELD_INTEGER, .at_least = &zero, .below = &thousand},
    {.pointer = "/l/0/a", .type = FIELD_JSON},
    {.pointer = "/d", .type = FIELD_DATE, .required = true},
    {.pointer = "/t", .type = FIELD_INSTANT},
    {.pointer = "/f", .type = FIELD_BOOLEAN},
    {.pointer = "/c", .type = FIELD_TEXT, .one_of = {choices, COUNT(choices)}},
};

/* The first byte of the input says which rules are on. */
static struct contract contract_of(unsigned rules)
{
	struct contract contract = {
	    .name = "fuzz",
	    .version = 1,
	    .fields = fields,
	    .field_count = COUNT(fields),
	    .refuse_unknown_fields = rules & 64,
	    .key = {.from = KEY_FIELDS,
	            .fields = {key_fields, COUNT(key_fields)},
	            .form = rules & 128 ? KEY_FORM_UUID : KEY_FORM_TEXT},
	    .same = {.nfc = rules & 1, .context = SCOPE_ACTOR},
	};
	if (rules & 2)
		contract.same.ignore = (struct texts){ignore_list, COUNT(ignore_list)};
	if (rules & 4)
		contract.same.only = (struct texts){only, COUNT(only)};
	if (rules & 8)
		contract.same.instants = (struct texts){instants, COUNT(instants)};
	if (rules & 16)
		contract.same.unordered = (struct texts){unordered, COUNT(unordered)};
	if (rules & 32) {
		contract.same.defaults = defaults;
		contract.same.default_count = COUNT(defaults);
	}
	return contract;
}

/* What ibid makes of one payload. */
struct made {
	enum ibid_code hash_code, key_code, fields_code;
	struct sha256 hash;
	const char *key, *why;
	struct params params;
};

static struct made make(struct arena *arena, const struct contract *contract, struct json *payload)
{
	struct made made = {.key = "", .why = ""};
	struct ibid_err err;
	made.hash_code = fingerprint_of(arena, contract, &sender, payload, &made.hash, &err);
	made.key_code = key_of(arena, contract, "acme", NULL, payload, &made.key, &err);
	made.fields_code = fields_check(arena, contract, payload, &made.params, &made.why, &err);
	return made;
}

static void must(bool fact, const char *what)
{
	if (!fact) {
		fprintf(stderr, "differs: %s\n", what);
		abort();
	}
}

static void compare_params(const struct params *a, const struct params *b)
{
	must(a->count == b->count, "field count");
	for (size_t i = 0; i < a->count; i++) {
		const struct param *x = &a->items[i], *y = &b->items[i];
		must(x->size == y->size && !x->text == !y->text, x->field->pointer);
		must(!x->text || memcmp(x->text, y->text, x->size) == 0, x->field->pointer);
	}
}

static void compare(const struct made *a, const struct made *b, bool unknown_refused)
{
	must(a->hash_code == b->hash_code, "hash code");
	must(memcmp(&a->hash, &b->hash, sizeof a->hash) == 0, "hash");
	must(a->key_code == b->key_code && strcmp(a->key, b->key) == 0, "key");
	must(a->fields_code == b->fields_code, "fields code");
	/* Unknown members are told in the order of the text. */
	must(unknown_refused || strcmp(a->why, b->why) == 0, "why");
	compare_params(&a->params, &b->params);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	struct arena arena = {0};
	struct str rewrite = STR_INIT(ARENA_CAP_DEFAULT);
	struct json *payload = NULL, *again = NULL;
	struct ibid_err err;
	if (size == 0 || json_read(&arena, (const char *)bytes + 1, size - 1, 0, &payload, &err))
		goto out;
	struct contract contract = contract_of(bytes[0]);
	struct made first = make(&arena, &contract, payload);
	canon_write(&rewrite, payload);
	must(!rewrite.failed, "canonical form");
	must(json_read(&arena, rewrite.data, rewrite.size, 0, &again, &err) == IBID_OK, "rewrite");
	struct made second = make(&arena, &contract, again);
	compare(&first, &second, contract.refuse_unknown_fields);
out:
	str_release(&rewrite);
	arena_release(&arena);
	return 0;
}
