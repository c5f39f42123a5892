/* SPDX-License-Identifier: Apache-2.0 */
/* members.c -- members of a command that have a shape of their own: key, fields, indexes, scripts.
 */
#include "base/canon.h"
#include "base/instant.h"
#include "base/json.h"
#include "contract/build.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof *(array))
enum { FILE_NAME_MAX = 120, PARAMETER_NAME_MAX = 63, INDEX_NAME_MAX = 127, MAX_CHARS = 1000000 };

/* ---- route, key.from, duplicates.in_progress ------------------------------------------------ */

static void read_route(struct reading *reading, const struct member *member, const char *path,
                       const struct node *node, void *target)
{
	static const char *const methods[] = {"POST /", "PUT /", "PATCH /", "DELETE /"};
	const char *text = member_text(reading, member, path, node);
	if (!text)
		return;
	if (strchr(text, ':') && !reading->kept) {
		PROBLEM_AT(reading->problems, node,
		           "%s is `%s`: a colon has no meaning in a path, and no request but one with that "
		           "very text would find it; a parameter is written in braces, as in "
		           "POST /cases/{caseId}/notes",
		           path, text);
		return;
	}
	for (size_t i = 0; i < COUNT(methods); i++) {
		size_t size = strlen(methods[i]);
		if (strncmp(text, methods[i], size) == 0 && !strpbrk(text + size, " ?#\\\"<>")) {
			*(const char **)target = text;
			return;
		}
	}
	PROBLEM_AT(
	    reading->problems, node,
	    "%s is `%s`: it must be POST, PUT, PATCH or DELETE and a path, such as POST /payments",
	    path, text);
}

static void read_key_fields(struct reading *reading, const struct member *member, const char *path,
                            const struct node *node, struct contract_key *key)
{
	struct texts fields = {0};
	bool good = member_texts(reading, member, path, node, &fields);
	for (const struct node *child = good ? node->child : NULL; child; child = child->next)
		good = pointer_check(reading, path, child, false) && good;
	if (!good)
		return;
	key->from = KEY_FIELDS;
	key->fields = fields;
}

static void read_key_from(struct reading *reading, const struct member *member, const char *path,
                          const struct node *node, void *target)
{
	struct member some = *member;
	some.flags |= MEMBER_SOME;
	if (node->type == NODE_LIST) {
		read_key_fields(reading, &some, path, node, target);
		return;
	}
	const char *text = member_text(reading, member, path, node);
	if (!text || strcmp(text, "header") == 0)
		return;
	if (strcmp(text, "event") == 0)
		PROBLEM_AT(reading->problems, node,
		           "%s is `event`: that belongs to consumers, which this version does not read yet",
		           path);
	else
		PROBLEM_AT(
		    reading->problems, node,
		    "%s is `%s`: it must be header, or a list of fields such as [/source, /documentNo]",
		    path, text);
}

static void read_progress(struct reading *reading, const struct member *member, const char *path,
                          const struct node *node, void *target)
{
	struct contract_duplicates *duplicates = target;
	const int64_t wait_us_max = 30 * INT64_C(1000000);
	const char *text = member_text(reading, member, path, node);
	if (!text)
		return;
	if (strcmp(text, "answer") == 0) {
		duplicates->in_progress = PROGRESS_ANSWER;
	} else if (strcmp(text, "accepted") == 0) {
		duplicates->in_progress = PROGRESS_ACCEPTED;
	} else if (strncmp(text, "wait ", 5) != 0 || !duration_read(text + 5, &duplicates->wait_us)) {
		PROBLEM_AT(
		    reading->problems, node,
		    "%s is `%s`: it must be answer, accepted, or wait and a duration such as wait 2s", path,
		    text);
	} else if (duplicates->wait_us > wait_us_max) {
		PROBLEM_AT(reading->problems, node, "%s is `%s`: a caller waits at most 30s", path, text);
	} else {
		duplicates->in_progress = PROGRESS_WAIT;
	}
}

/* ---- Scripts -------------------------------------------------------------------------------- */

/* A plain name, so that a contract can't reach outside its directory. */
static bool file_name_ok(const char *name)
{
	static const char letters[] =
	    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";
	static const char rest[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.$";
	if (!text_matches(name, letters, rest, FILE_NAME_MAX) || strstr(name, ".."))
		return false;
	const char *dollar = strchr(name, '$');
	return !dollar || (strncmp(dollar, "$store", 6) == 0 && !strchr(dollar + 1, '$'));
}

static void read_file(struct reading *reading, const struct member *member, const char *path,
                      const struct node *node, void *target)
{
	const char *text = member_text(reading, member, path, node);
	if (!text)
		return;
	if (!file_name_ok(text)) {
		PROBLEM_AT(reading->problems, node,
		           "%s is `%s`: it must be the plain name of a file in this directory; only $store "
		           "is replaced",
		           path, text);
		return;
	}
	struct script_ref *script = arena_alloc(reading->arena, sizeof *script);
	if (!script)
		return;
	*script = (struct script_ref){.path = arena_strdup(reading->arena, path),
	                              .file = text,
	                              .node = node,
	                              .next = reading->scripts};
	reading->scripts = script;
	*(const char **)target = text;
}

const struct member_type type_file = {"a file in the same directory; $store is sqlite or postgres",
                                      read_file};

static const struct member handler_members[] = {
    {"sql", &type_file, offsetof(struct contract, script), MEMBER_REQUIRED, "Which script runs?"},
    {"rows", &type_rows, offsetof(struct contract, rows), 0,
     "How many rows does each statement change, or return?", "compared before the commit"},
};
const struct form handler_form = {NULL, "a handler", handler_members, COUNT(handler_members)};

static void read_handler(struct reading *reading, const struct member *member, const char *path,
                         const struct node *node, void *target)
{
	struct contract *contract = target;
	if (node->type == NODE_MAP) {
		form_read(reading, &handler_form, "handler.", node, contract);
		return;
	}
	const char *text = member_text(reading, member, path, node);
	if (text && strcmp(text, "upstream") == 0)
		contract->upstream.given = true;
	else if (text && strcmp(text, "callback") != 0)
		PROBLEM_AT(reading->problems, node,
		           "%s is `%s`: it must be callback, upstream, or { sql: FILE }", path, text);
}

/* ---- staged --------------------------------------------------------------------------------- */

static void read_lease(struct reading *reading, const struct member *member, const char *path,
                       const struct node *node, void *target)
{
	int64_t *lease_us = target;
	const int64_t second_us = 1000000;
	type_duration.read(reading, member, path, node, lease_us);
	if (*lease_us && *lease_us < second_us)
		PROBLEM_AT(reading->problems, node, "%s is `%s`: a lease lasts a second at least", path,
		           node->text);
}

static const struct member query_members[] = {
    {"sql", &type_file, offsetof(struct contract_staged, query), MEMBER_REQUIRED,
     "Which script looks whether it was done?"},
};
static const struct form query_form = {NULL, "a recovery", query_members, COUNT(query_members)};

static void read_recover(struct reading *reading, const struct member *member, const char *path,
                         const struct node *node, void *target)
{
	struct contract_staged *staged = target;
	if (node->type == NODE_MAP) {
		staged->recover = RECOVER_QUERY;
		form_read(reading, &query_form, "staged.recover.", node, staged);
		return;
	}
	const char *text = member_text(reading, member, path, node);
	if (text && strcmp(text, "inquiry") == 0)
		staged->recover = RECOVER_INQUIRY;
	else if (text && strcmp(text, "human") != 0)
		PROBLEM_AT(reading->problems, node,
		           "%s is `%s`: it must be human, inquiry, or { sql: FILE }", path, text);
}

static const struct member_type type_lease = {"a duration such as 30s", read_lease};
static const struct member_type type_recover = {"human | inquiry | { sql: FILE }", read_recover};

/* clang-format off */
static const struct member staged_members[] = {
	{"lease", &type_lease, offsetof(struct contract_staged, lease_us), MEMBER_REQUIRED,
	 "How long may a worker be silent before the command is taken from it?",
	 "at least 1s; a worker renews it"},
	{"recover", &type_recover, 0, MEMBER_REQUIRED,
	 "Who finds out whether it was done, when a worker went silent?",
	 "a script that looks at business state, a program that asks the partner, or a person"},
};
/* clang-format on */
const struct form staged_form = {NULL, "a staged command", staged_members, COUNT(staged_members)};

static void read_staged(struct reading *reading, const struct member *member, const char *path,
                        const struct node *node, void *target)
{
	(void)member;
	if (node->type == NODE_MAP)
		form_read(reading, &staged_form, "staged.", node, target);
	else
		PROBLEM_AT(reading->problems, node,
		           "%s must be a mapping, such as { lease: 30s, recover: human }", path);
}

/* ---- guard ---------------------------------------------------------------------------------- */

static void read_pointer(struct reading *reading, const struct member *member, const char *path,
                         const struct node *node, void *target)
{
	const char *text = member_text(reading, member, path, node);
	if (text && pointer_check(reading, path, node, false))
		*(const char **)target = text;
}

static const struct member_type type_pointer = {"a pointer such as /version", read_pointer};

#define AT(member) offsetof(struct contract_guard, member)
/* clang-format off */
static const struct member guard_members[] = {
	{"version", &type_pointer, AT(version), MEMBER_REQUIRED,
	 "Which field says the version that the command makes?", "a required integer field"},
	{"apply", &type_choice, AT(apply), MEMBER_REQUIRED,
	 "Must it be the next version, or any newer one?",
	 .choices = (const char *const[]){"next", "newer", NULL}},
	{"stale", &type_choice, AT(stale), MEMBER_REQUIRED,
	 "Is one that is older than what is there linked to that, or rejected?",
	 .choices = (const char *const[]){"link", "reject", NULL}},
};
/* clang-format on */
#undef AT
const struct form guard_form = {NULL, "a version guard", guard_members, COUNT(guard_members)};

static void read_guard(struct reading *reading, const struct member *member, const char *path,
                       const struct node *node, void *target)
{
	(void)member;
	if (node->type == NODE_MAP)
		form_read(reading, &guard_form, "guard.", node, target);
	else
		PROBLEM_AT(
		    reading->problems, node,
		    "%s must be a mapping, such as { version: /version, apply: next, stale: reject }",
		    path);
}

/* ---- fields --------------------------------------------------------------------------------- */

static const char *const type_names[] = {[FIELD_TEXT] = "text",       [FIELD_INTEGER] = "integer",
                                         [FIELD_DECIMAL] = "decimal", [FIELD_BOOLEAN] = "boolean",
                                         [FIELD_DATE] = "date",       [FIELD_INSTANT] = "instant",
                                         [FIELD_JSON] = "json",       NULL};
const char *const class_names[] = {[CLASS_STORE] = "store",
                                   [CLASS_REDACT] = "redact",
                                   [CLASS_ENCRYPT] = "encrypt",
                                   [CLASS_OMIT] = "omit",
                                   NULL};

const char *field_type_name(enum field_type type)
{
	return type_names[type];
}

const char *field_class_name(enum field_class class)
{
	return class_names[class];
}

#define AT(member) offsetof(struct contract_field, member)
/* clang-format off */
static const struct member field_members[] = {
	{"type", &type_choice, AT(type), MEMBER_REQUIRED,
	 "What is it?", .choices = type_names},
	{"required", &type_flag, AT(required), 0,
	 "Must it be there?", "no when left out"},
	{"max", &type_size, AT(max), 0,
	 "How many characters may it have?", "text only", .min = 1, .max = MAX_CHARS},
	{"above", &type_decimal, AT(above), 0,
	 "What must it be greater than?", "integer and decimal only"},
	{"at_least", &type_decimal, AT(at_least), 0,
	 "What is the smallest value?", "integer and decimal only"},
	{"below", &type_decimal, AT(below), 0,
	 "What must it be less than?", "integer and decimal only"},
	{"at_most", &type_decimal, AT(at_most), 0,
	 "What is the greatest value?", "integer and decimal only"},
	{"scale", &type_int, AT(scale), 0,
	 "How many digits may follow the point?", "decimal only; 0 to 18", .min = 0, .max = DECIMAL_SCALE_MAX},
	{"one_of", &type_texts, AT(one_of), MEMBER_SOME,
	 "Which values are allowed?", "text only"},
	{"class", &type_choice, AT(class), 0,
	 "How may its value be kept?", "what `payload` says when left out", .choices = class_names},
	{"as", &type_text, AT(name), 0,
	 "What is the handler's parameter called?", "the pointer's segments joined by _ when left out"},
};
/* clang-format on */
#undef AT
const struct form field_form = {NULL, "a field", field_members, COUNT(field_members)};

/* Which restrictions make sense for which types. */
#define BIT(n) (1u << (n))
static const struct {
	const char *member;
	unsigned types;
	const char *only;
} field_limits[] = {
    {"max", BIT(FIELD_TEXT), "text"},
    {"one_of", BIT(FIELD_TEXT), "text"},
    {"scale", BIT(FIELD_DECIMAL), "decimals"},
    {"above", BIT(FIELD_INTEGER) | BIT(FIELD_DECIMAL), "numbers"},
    {"at_least", BIT(FIELD_INTEGER) | BIT(FIELD_DECIMAL), "numbers"},
    {"below", BIT(FIELD_INTEGER) | BIT(FIELD_DECIMAL), "numbers"},
    {"at_most", BIT(FIELD_INTEGER) | BIT(FIELD_DECIMAL), "numbers"},
};

static void check_range(struct reading *reading, const struct contract_field *field,
                        const struct node *node)
{
	const struct decimal *low = field->above ? field->above : field->at_least;
	const struct decimal *high = field->below ? field->below : field->at_most;
	bool open = field->above || field->below;
	if (field->above && field->at_least)
		PROBLEM_AT(reading->problems, node, "fields.%s has both above and at_least", node->name);
	if (field->below && field->at_most)
		PROBLEM_AT(reading->problems, node, "fields.%s has both below and at_most", node->name);
	if (low && high && decimal_cmp(*low, *high) >= (open ? 0 : 1))
		PROBLEM_AT(reading->problems, node,
		           "fields.%s allows no value: its bounds exclude each other", node->name);
}

static void check_limits(struct reading *reading, const struct contract_field *field,
                         const struct node *node)
{
	if (!node_member(node, "type"))
		return;
	for (size_t i = 0; i < COUNT(field_limits); i++) {
		const struct node *limit = node_member(node, field_limits[i].member);
		if (limit && !(field_limits[i].types & BIT(field->type)))
			PROBLEM_AT(reading->problems, limit, "fields.%s.%s is only for %s; the type is %s",
			           node->name, limit->name, field_limits[i].only, type_names[field->type]);
	}
	check_range(reading, field, node);
}

/* "/a/b" is "a_b"; escapes stay and make the name unusable, which asks for `as`. */
static const char *parameter_name(struct arena *arena, const char *pointer)
{
	char *name = arena_strdup(arena, pointer + 1);
	for (char *at = name; at && *at; at++)
		if (*at == '/')
			*at = '_';
	return name;
}

static void check_name(struct reading *reading, const struct contract_field *fields, size_t count,
                       const struct contract_field *field, const struct node *node)
{
	const struct node *as = node_member(node, "as");
	const struct node *where = as ? as : node;
	if (!field->name)
		return;
	if (!text_matches(field->name, LETTERS_, LETTERS_DIGITS_, PARAMETER_NAME_MAX))
		PROBLEM_AT(reading->problems, where,
		           "fields.%s would be the parameter `%s`, which is not a name: %s", node->name,
		           field->name, as ? "choose another `as`" : "give it one with `as`");
	for (enum builtin_param i = 0; i < BUILTIN_PARAM_COUNT; i++)
		if (strcmp(field->name, builtin_param_name(i)) == 0)
			PROBLEM_AT(reading->problems, where,
			           "fields.%s would be the parameter `:%s`, which is built in: give it another "
			           "name with `as`",
			           node->name, field->name);
	for (size_t i = 0; i < count; i++)
		if (fields[i].name && strcmp(field->name, fields[i].name) == 0)
			PROBLEM_AT(
			    reading->problems, where,
			    "fields.%s would be the parameter `:%s`, as %s is: give it another name with "
			    "`as`",
			    node->name, field->name, fields[i].pointer);
}

static void read_field(struct reading *reading, const struct node *node,
                       struct contract_field *field)
{
	char prefix[YAML_NAME_BYTES_MAX + 16];
	if (node->type != NODE_MAP) {
		PROBLEM_AT(reading->problems, node, "fields.%s must be a mapping, such as { type: text }",
		           node->name);
		return;
	}
	snprintf(prefix, sizeof prefix, "fields.%s.", node->name);
	form_read(reading, &field_form, prefix, node, field);
	check_limits(reading, field, node);
	if (!field->name && !node_member(node, "as"))
		field->name = parameter_name(reading->arena, node->name);
}

static void read_fields(struct reading *reading, const struct member *member, const char *path,
                        const struct node *node, void *target)
{
	struct contract *contract = target;
	(void)member;
	if (node->type != NODE_MAP) {
		PROBLEM_AT(reading->problems, node, "%s must be a mapping of pointers to fields", path);
		return;
	}
	const struct node **sorted = nodes_by_name(node);
	struct contract_field *fields = arena_array(reading->arena, node->count, sizeof *fields);
	if (!sorted || !fields) {
		reading->arena->failed = true;
		free(sorted);
		return;
	}
	size_t count = 0;
	for (size_t i = 0; i < node->count; i++) {
		struct contract_field *field = &fields[count];
		*field = (struct contract_field){
		    .pointer = sorted[i]->name, .scale = -1, .class = CLASS_INHERIT};
		if (sorted[i]->type == NODE_MAP && !pointer_check(reading, path, sorted[i], false))
			continue;
		read_field(reading, sorted[i], field);
		if (sorted[i]->type == NODE_MAP)
			check_name(reading, fields, count, field, sorted[i]);
		count++;
	}
	free(sorted);
	contract->fields = fields;
	contract->field_count = count;
}

/* ---- same_payload.defaults ------------------------------------------------------------------ */

/* JSON in a scalar, because plain YAML can't say whether 1 is a number or a text. */
static const char *default_json(struct reading *reading, const char *path, const struct node *node)
{
	struct json *value = NULL;
	struct ibid_err err;
	struct str canonical = STR_INIT(JSON_BYTES_MAX);
	if (node->type != NODE_TEXT ||
	    json_read(reading->arena, node->text, strlen(node->text), 0, &value, &err)) {
		PROBLEM_AT(reading->problems, node,
		           "%s.%s must be JSON in quotes, so that texts and numbers differ: '\"EUR\"' is a "
		           "text, '1' a number",
		           path, node->name);
		return NULL;
	}
	canon_write(&canonical, value);
	const char *json = arena_strndup(reading->arena, str_text(&canonical), canonical.size);
	reading->arena->failed |= canonical.failed;
	str_release(&canonical);
	return json;
}

static void read_defaults(struct reading *reading, const struct member *member, const char *path,
                          const struct node *node, void *target)
{
	struct contract_same *same = target;
	(void)member;
	if (node->type != NODE_MAP) {
		PROBLEM_AT(reading->problems, node, "%s must be a mapping of pointers to JSON values",
		           path);
		return;
	}
	const struct node **sorted = nodes_by_name(node);
	same->defaults = arena_array(reading->arena, node->count, sizeof *same->defaults);
	if (!sorted || !same->defaults) {
		reading->arena->failed = true;
		free(sorted);
		return;
	}
	for (size_t i = 0; i < node->count; i++) {
		struct node pointer = *sorted[i];
		pointer.type = NODE_MAP; /* the name is what is checked */
		if (pointer_check(reading, path, &pointer, true))
			same->defaults[same->default_count++] = (struct contract_default){
			    sorted[i]->name, default_json(reading, path, sorted[i])};
	}
	free(sorted);
}

/* ---- unique --------------------------------------------------------------------------------- */

#define AT(member) offsetof(struct contract_unique, member)
/* clang-format off */
static const struct member unique_members[] = {
	{"on_duplicate", &type_choice, AT(on_duplicate), MEMBER_REQUIRED,
	 "Is the same fact under a new key linked to the existing document, or rejected with its id?",
	 .choices = (const char *const[]){"link", "reject", NULL}},
	{"find", &type_file, AT(find), MEMBER_REQUIRED,
	 "Which script returns the existing document as an answer row?"},
};
/* clang-format on */
#undef AT
const struct form unique_form = {NULL, "a unique index", unique_members, COUNT(unique_members)};

static void read_unique(struct reading *reading, const struct node *node,
                        struct contract_unique *unique)
{
	char prefix[YAML_NAME_BYTES_MAX + 16];
	static const char rest[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.";
	unique->name = node->name;
	if (!text_matches(node->name, LETTERS_, rest, INDEX_NAME_MAX))
		PROBLEM_AT(reading->problems, node,
		           "unique.%s is not the name of an index or constraint: a letter or _, then "
		           "letters, digits, _ and .",
		           node->name);
	if (node->type != NODE_MAP) {
		PROBLEM_AT(reading->problems, node,
		           "unique.%s must be a mapping, such as { on_duplicate: link, find: FILE }",
		           node->name);
		return;
	}
	snprintf(prefix, sizeof prefix, "unique.%s.", node->name);
	form_read(reading, &unique_form, prefix, node, unique);
}

static void read_uniques(struct reading *reading, const struct member *member, const char *path,
                         const struct node *node, void *target)
{
	struct contract *contract = target;
	(void)member;
	if (node->type != NODE_MAP || node->count == 0) {
		PROBLEM_AT(reading->problems, node, "%s must be a mapping of index names to answers", path);
		return;
	}
	const struct node **sorted = nodes_by_name(node);
	contract->uniques = arena_array(reading->arena, node->count, sizeof *contract->uniques);
	if (!sorted || !contract->uniques) {
		reading->arena->failed = true;
		free(sorted);
		return;
	}
	for (size_t i = 0; i < node->count; i++)
		read_unique(reading, sorted[i], &contract->uniques[i]);
	contract->unique_count = node->count;
	free(sorted);
}

const struct member_type type_route = {"a method and a path such as POST /payments", read_route};
const struct member_type type_key_from = {
    "header | a list of fields such as [/source, /documentNo]", read_key_from};
const struct member_type type_progress = {"answer | accepted | wait 2s", read_progress};
const struct member_type type_handler = {"callback | upstream | { sql: FILE }", read_handler};
const struct member_type type_fields = {"a mapping of pointers such as /amount to fields",
                                        read_fields};
const struct member_type type_defaults = {
    "a mapping of pointers to JSON in quotes such as /currency: '\"EUR\"'", read_defaults};
const struct member_type type_guard = {"a mapping: version, apply and stale", read_guard};
const struct member_type type_staged = {"a mapping: lease and recover", read_staged};
const struct member_type type_unique = {"a mapping of index names to answers", read_uniques};
