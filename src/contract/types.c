/* SPDX-License-Identifier: Apache-2.0 */
/* types.c -- the types of members: text in the file, a checked value in the contract. */
#include "base/instant.h"
#include "base/json.h"
#include "contract/form.h"

#include <stdlib.h>
#include <string.h>

#define LOWER_  "abcdefghijklmnopqrstuvwxyz"
#define UPPER_  "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
#define DIGITS_ "0123456789"
const char LOWER[] = LOWER_;
const char LETTERS_[] = LOWER_ UPPER_ "_";
const char LETTERS_DIGITS_[] = LOWER_ UPPER_ DIGITS_ "_";

enum { TEXT_BYTES_MAX = 500, NAME_CHARS_MAX = 63, NUMBER_CHARS_MAX = 15 };
static const int64_t DURATION_US_MAX = INT64_C(100) * 365 * 86400 * 1000000; /* 100 years */

bool text_matches(const char *text, const char *first, const char *rest, size_t max)
{
	return *text && strchr(first, *text) && strlen(text) <= max &&
	       strspn(text + 1, rest) == strlen(text + 1);
}

const char *member_text(struct reading *reading, const struct member *member, const char *path,
                        const struct node *node)
{
	struct problems *problems = reading->problems;
	if (node->type != NODE_TEXT) {
		PROBLEM_AT(problems, node, "%s must be one value, not a %s", path,
		           node->type == NODE_LIST ? "list" : "mapping");
	} else if (node->text[0] == '\0') {
		problem_add(problems, node->file, node->line,
		            member ? member_question(reading->arena, member) : NULL, "%s is empty", path);
	} else if (strlen(node->text) > TEXT_BYTES_MAX) {
		PROBLEM_AT(problems, node, "%s is longer than %d bytes", path, TEXT_BYTES_MAX);
	} else if (strpbrk(node->text, "\n\t")) {
		PROBLEM_AT(problems, node, "%s must be one line (`>-` folds lines into one)", path);
	} else {
		return node->text;
	}
	return NULL;
}

static bool listed(const struct texts *texts, const char *text)
{
	for (size_t i = 0; i < texts->count; i++)
		if (strcmp(texts->items[i], text) == 0)
			return true;
	return false;
}

bool member_texts(struct reading *reading, const struct member *member, const char *path,
                  const struct node *node, struct texts *ret)
{
	struct texts texts = {0};
	size_t before = reading->problems->found;
	if (node->type != NODE_LIST) {
		bool scalar = node->type == NODE_TEXT && node->text[0];
		PROBLEM_AT(reading->problems, node, "%s must be a list%s%s%s", path, scalar ? ": [" : "",
		           scalar ? node->text : "", scalar ? "]" : "");
		return false;
	}
	if (node->count == 0 && (member->flags & MEMBER_SOME))
		problem_add(reading->problems, node->file, node->line,
		            member_question(reading->arena, member), "%s is empty", path);
	texts.items = arena_array(reading->arena, node->count, sizeof *texts.items);
	if (!texts.items)
		return false;
	for (const struct node *child = node->child; child; child = child->next) {
		const char *text = member_text(reading, NULL, path, child);
		if (text && listed(&texts, text))
			PROBLEM_AT(reading->problems, child, "%s lists %s twice", path, text);
		else if (text)
			texts.items[texts.count++] = text;
	}
	if (reading->problems->found != before)
		return false;
	*ret = texts;
	return true;
}

bool pointer_check(struct reading *reading, const char *path, const struct node *node, bool star)
{
	const char *text = node->type == NODE_TEXT ? node->text : node->name;
	if (text[0] != '/' || !json_pointer_ok(text)) {
		PROBLEM_AT(reading->problems, node,
		           "%s: `%s` is not a pointer to a member, such as /amount or /lines/0/sku", path,
		           text);
		return false;
	}
	for (const char *at = star ? NULL : strstr(text, "/*"); at; at = strstr(at + 1, "/*")) {
		if (at[2] != '\0' && at[2] != '/')
			continue;
		PROBLEM_AT(reading->problems, node, "%s: `%s` must be one member; `*` is not read here",
		           path, text);
		return false;
	}
	return true;
}

/* ---- One value ------------------------------------------------------------------------------ */

static void read_text(struct reading *reading, const struct member *member, const char *path,
                      const struct node *node, void *target)
{
	const char *text = member_text(reading, member, path, node);
	if (text)
		*(const char **)target = text;
}

static void read_name(struct reading *reading, const struct member *member, const char *path,
                      const struct node *node, void *target)
{
	const char *text = member_text(reading, member, path, node);
	if (!text)
		return;
	if (text_matches(text, LOWER, LOWER_ DIGITS_ "-", NAME_CHARS_MAX))
		*(const char **)target = text;
	else
		PROBLEM_AT(reading->problems, node,
		           "%s is `%s`: a name has 1 to %d of a-z, 0-9 and -, and begins with a letter",
		           path, text, NAME_CHARS_MAX);
}

static bool number_ok(struct reading *reading, const struct member *member, const char *path,
                      const struct node *node, int64_t *ret)
{
	const char *text = member_text(reading, member, path, node);
	if (!text)
		return false;
	bool whole = text_matches(text, DIGITS_, DIGITS_, NUMBER_CHARS_MAX) &&
	             (text[0] != '0' || text[1] == '\0');
	int64_t value = whole ? strtoll(text, NULL, 10) : -1;
	if (!whole || value < member->min || value > member->max) {
		PROBLEM_AT(reading->problems, node,
		           "%s is `%s`: it must be a whole number from %lld to %lld", path, text,
		           (long long)member->min, (long long)member->max);
		return false;
	}
	*ret = value;
	return true;
}

static void read_int(struct reading *reading, const struct member *member, const char *path,
                     const struct node *node, void *target)
{
	int64_t value = 0;
	if (number_ok(reading, member, path, node, &value))
		*(int *)target = (int)value;
}

static void read_size(struct reading *reading, const struct member *member, const char *path,
                      const struct node *node, void *target)
{
	int64_t value = 0;
	if (number_ok(reading, member, path, node, &value))
		*(size_t *)target = (size_t)value;
}

static void read_decimal(struct reading *reading, const struct member *member, const char *path,
                         const struct node *node, void *target)
{
	const char *text = member_text(reading, member, path, node);
	struct decimal value;
	struct ibid_err err;
	if (!text)
		return;
	if (decimal_read(text, strlen(text), &value, &err)) {
		PROBLEM_AT(reading->problems, node, "%s is `%s`: %s", path, text, err.text);
		return;
	}
	struct decimal *copy = arena_alloc(reading->arena, sizeof *copy);
	if (copy)
		*copy = value;
	*(struct decimal **)target = copy;
}

static void read_duration(struct reading *reading, const struct member *member, const char *path,
                          const struct node *node, void *target)
{
	const char *text = member_text(reading, member, path, node);
	int64_t us = 0;
	if (!text)
		return;
	if (!duration_read(text, &us))
		PROBLEM_AT(reading->problems, node,
		           "%s is `%s`: it must be a duration such as 30d (ms, s, m, h, d, w, y)", path,
		           text);
	else if (us > DURATION_US_MAX)
		PROBLEM_AT(reading->problems, node, "%s is `%s`: more than 100y can't be promised", path,
		           text);
	else
		*(int64_t *)target = us;
}

/* ---- Choices -------------------------------------------------------------------------------- */

static const char *const flag_choices[] = {"no", "yes", "false", "true", NULL};

static int choice_index(struct reading *reading, const char *const *choices, const char *path,
                        const struct node *node, const char *text)
{
	struct str list = STR_INIT(1024);
	for (int i = 0; choices[i]; i++) {
		if (strcmp(choices[i], text) == 0) {
			str_release(&list);
			return i;
		}
		str_addf(&list, "%s%s", i ? ", " : "", choices[i]);
	}
	PROBLEM_AT(reading->problems, node, "%s is `%s`: it must be %s%s", path, text,
	           choices[1] ? "one of " : "", str_text(&list));
	str_release(&list);
	return -1;
}

static int choice_of(struct reading *reading, const struct member *member, const char *path,
                     const struct node *node)
{
	const char *text = member_text(reading, member, path, node);
	return text ? choice_index(reading, member->choices, path, node, text) : -1;
}

static void read_flag(struct reading *reading, const struct member *member, const char *path,
                      const struct node *node, void *target)
{
	const char *text = member_text(reading, member, path, node);
	int index = text ? choice_index(reading, flag_choices, path, node, text) : -1;
	if (index >= 0)
		*(bool *)target = index % 2 == 1;
}

/* Enums without negative values are unsigned, as wide as int, with every compiler we build with. */
_Static_assert(sizeof(enum contract_strategy) == sizeof(unsigned),
               "choices are stored as unsigned");

static void read_choice(struct reading *reading, const struct member *member, const char *path,
                        const struct node *node, void *target)
{
	int index = choice_of(reading, member, path, node);
	if (index >= 0)
		*(unsigned *)target = (unsigned)index;
}

static void read_choice_flag(struct reading *reading, const struct member *member, const char *path,
                             const struct node *node, void *target)
{
	int index = choice_of(reading, member, path, node);
	if (index >= 0)
		*(bool *)target = index == 1;
}

static void read_choice_name(struct reading *reading, const struct member *member, const char *path,
                             const struct node *node, void *target)
{
	int index = choice_of(reading, member, path, node);
	if (index >= 0)
		*(const char **)target = member->choices[index];
}

/* ---- Lists ---------------------------------------------------------------------------------- */

static void read_bits(struct reading *reading, const struct member *member, const char *path,
                      const struct node *node, void *target)
{
	struct texts texts = {0};
	unsigned bits = 0;
	if (!member_texts(reading, member, path, node, &texts))
		return;
	for (size_t i = 0; i < texts.count; i++) {
		int index = choice_index(reading, member->choices, path, node, texts.items[i]);
		if (index >= 0)
			bits |= 1u << index;
	}
	*(unsigned *)target = bits;
}

static void read_texts(struct reading *reading, const struct member *member, const char *path,
                       const struct node *node, void *target)
{
	struct texts texts = {0};
	if (member_texts(reading, member, path, node, &texts))
		*(struct texts *)target = texts;
}

static void read_pointers(struct reading *reading, const struct member *member, const char *path,
                          const struct node *node, void *target)
{
	struct texts texts = {0};
	bool good = true;
	if (!member_texts(reading, member, path, node, &texts))
		return;
	for (const struct node *child = node->child; child; child = child->next)
		good = pointer_check(reading, path, child, true) && good;
	if (good)
		*(struct texts *)target = texts;
}

bool event_type_ok(const char *type)
{
	return text_matches(type, LOWER_ UPPER_, LOWER_ UPPER_ DIGITS_ "._-", EVENT_CHARS_MAX);
}

const struct member_type type_text = {"one line of text", read_text};
const struct member_type type_name = {"a name of a-z, 0-9 and -", read_name};
const struct member_type type_int = {"a whole number", read_int};
const struct member_type type_size = {"a whole number", read_size};
const struct member_type type_decimal = {"a number", read_decimal};
const struct member_type type_flag = {"yes | no", read_flag};
const struct member_type type_duration = {"a duration such as 30d", read_duration};
const struct member_type type_choice = {NULL, read_choice};
const struct member_type type_choice_flag = {NULL, read_choice_flag};
const struct member_type type_choice_name = {NULL, read_choice_name};
const struct member_type type_bits = {"a list, may be empty, of", read_bits};
const struct member_type type_texts = {"a list of texts", read_texts};
const struct member_type type_pointers = {"a list of pointers such as /amount or /lines/*/sku",
                                          read_pointers};
