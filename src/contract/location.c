/* SPDX-License-Identifier: Apache-2.0 */
/* location.c -- the template of `answer.location`, and the values that it may name.
 *
 * A retry gets the same location as the first request. So a template may name only values that a
 * retry also has: the stored parts of the answer, and fields that have the same text in every
 * payload that counts as the same. */
#include "contract/build.h"
#include "contract/payload.h"

#include <string.h>

enum { LOCATION_BYTES_MAX = 2048, PLACEHOLDER_MAX = 63 };

static const char resource_id[] = "resource_id", command_id[] = "command_id";

/* ---- The template --------------------------------------------------------------------------- */

struct piece {
	const char *text; /* literal, or the name in braces */
	size_t size;
	bool placeholder;
};

/* The piece at `*at`, which moves behind it. False: the end, or braces that do not pair. */
static bool next_piece(const char **at, struct piece *ret)
{
	bool placeholder = **at == '{';
	const char *text = *at + placeholder;
	size_t size = strcspn(text, "{}");
	if (!**at || (placeholder ? text[size] != '}' || !size : !size))
		return false;
	*ret = (struct piece){text, size, placeholder};
	*at = text + size + placeholder;
	return true;
}

static bool is(const struct piece *piece, const char *name)
{
	return strlen(name) == piece->size && memcmp(piece->text, name, piece->size) == 0;
}

static const struct contract_field *field_of(const struct contract *contract,
                                             const struct piece *piece)
{
	for (size_t i = 0; i < contract->field_count; i++)
		if (contract->fields[i].name && is(piece, contract->fields[i].name))
			return &contract->fields[i];
	return NULL;
}

/* ---- Checking ------------------------------------------------------------------------------- */

/* What may stand in a URI reference, and braces. */
static bool characters_ok(const char *text)
{
	static const char good[] =
	    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~:/?#[]@!$&'()*+,;=%{}";
	return text[strspn(text, good)] == '\0';
}

static void read_location(struct reading *reading, const struct member *member, const char *path,
                          const struct node *node, void *target)
{
	const char *text = member_text(reading, member, path, node), *at = text;
	struct piece piece;
	if (!text)
		return;
	while (next_piece(&at, &piece))
		continue;
	bool absolute = strncmp(text, "https://", 8) == 0 || strncmp(text, "http://", 7) == 0;
	if ((*text == '/' || absolute) && !*at && characters_ok(text))
		*(const char **)target = text;
	else
		PROBLEM_AT(reading->problems, node,
		           "%s is `%s`: it must be a path or an http address with names in braces, such as "
		           "/payments/{resource_id}",
		           path, text);
}

/* Does `pattern` (with * for any segment) lead to `pointer`, or to something around it? */
static bool leads_to(const char *pattern, const char *pointer)
{
	while (*pattern) {
		if (!*pointer)
			return false;
		size_t wanted = strcspn(pattern + 1, "/"), size = strcspn(pointer + 1, "/");
		bool any = wanted == 1 && pattern[1] == '*';
		if (!any && (wanted != size || memcmp(pattern, pointer, size + 1) != 0))
			return false;
		pattern += wanted + 1;
		pointer += size + 1;
	}
	return true;
}

static bool listed(const struct texts *patterns, const char *pointer)
{
	for (size_t i = 0; i < patterns->count; i++)
		if (leads_to(patterns->items[i], pointer))
			return true;
	return false;
}

static bool has_default(const struct contract_same *same, const char *pointer)
{
	for (size_t i = 0; i < same->default_count; i++)
		if (leads_to(same->defaults[i].pointer, pointer))
			return true;
	return false;
}

/* Why a retry may have another text there; NULL: it has the same. */
static const char *unstable(const struct contract *contract, const struct contract_field *field)
{
	const struct contract_same *same = &contract->same;
	if (field->type != FIELD_TEXT || !field->required)
		return "must be of type text and required";
	if (listed(&same->ignore, field->pointer) ||
	    (same->only.count && !listed(&same->only, field->pointer)))
		return "is not compared by same_payload: a retry may have another value";
	if (listed(&same->instants, field->pointer) || listed(&same->unordered, field->pointer) ||
	    has_default(same, field->pointer))
		return "may be written in several ways by same_payload: a retry may have another text";
	return NULL;
}

static void check_placeholder(struct reading *reading, const struct contract *contract,
                              const struct node *node, const struct piece *piece)
{
	const struct contract_field *field = field_of(contract, piece);
	int size = (int)(piece->size < PLACEHOLDER_MAX ? piece->size : PLACEHOLDER_MAX);
	if (is(piece, command_id))
		return;
	if (is(piece, resource_id)) {
		if (field)
			PROBLEM_AT(reading->problems, node,
			           "answer.location: {resource_id} is the answer's resource and the field %s: "
			           "give the field another name with `as`",
			           field->pointer);
		else if (contract->answer == ANSWER_STATUS || contract->answer == ANSWER_NONE)
			PROBLEM_AT(reading->problems, node,
			           "answer.location names {resource_id}, but answer.store keeps no resource: a "
			           "retry could not be told the same place");
		return;
	}
	const char *why = field ? unstable(contract, field) : NULL;
	if (!field)
		PROBLEM_AT(reading->problems, node,
		           "answer.location: there is no {%.*s}: it must be a declared field, resource_id "
		           "or command_id",
		           size, piece->text);
	else if (why)
		PROBLEM_AT(reading->problems, node, "answer.location: {%.*s}: %s %s", size, piece->text,
		           field->pointer, why);
}

void command_check_location(struct reading *reading, const struct contract *contract,
                            const struct node *root)
{
	const struct node *node = form_find(root, "answer.location");
	const char *at = contract->location;
	struct piece piece;
	while (node && at && next_piece(&at, &piece))
		if (piece.placeholder)
			check_placeholder(reading, contract, node, &piece);
}

const struct member_type type_location = {"a path such as /payments/{resource_id}", read_location};

/* ---- Filling in ----------------------------------------------------------------------------- */

static void add_encoded(struct str *out, const char *text, size_t size)
{
	static const char plain[] =
	    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~";
	for (size_t i = 0; i < size; i++)
		if (text[i] && strchr(plain, text[i]))
			str_addc(out, text[i]);
		else
			str_addf(out, "%%%02X", (unsigned)(unsigned char)text[i]);
}

/* False: there is no such value. */
static bool add_value(struct arena *arena, const struct contract *contract, struct json *payload,
                      const struct piece *piece, struct str *out)
{
	const struct contract_field *field = field_of(contract, piece);
	const struct json *value = field && payload ? json_at(payload, field->pointer) : NULL;
	struct ibid_err err;
	if (!value || value->type != JSON_STRING)
		return false;
	const char *text = value->text;
	size_t size = value->size;
	if (contract->same.nfc && text_nfc(arena, &text, &size, &err))
		return false;
	add_encoded(out, text, size);
	return size > 0;
}

const char *location_of(struct arena *arena, const struct contract *contract, struct json *payload,
                        const char *of_resource, const char *of_command)
{
	struct str out = STR_INIT(LOCATION_BYTES_MAX);
	const char *at = contract->location;
	struct piece piece;
	bool good = true;
	while (good && next_piece(&at, &piece)) {
		const char *own = is(&piece, resource_id)  ? of_resource
		                  : is(&piece, command_id) ? of_command
		                                           : NULL;
		if (!piece.placeholder)
			str_add(&out, piece.text, piece.size);
		else if (!own)
			good = add_value(arena, contract, payload, &piece, &out);
		else if ((good = *own != '\0'))
			add_encoded(&out, own, strlen(own));
	}
	const char *location = good && !out.failed ? arena_strndup(arena, out.data, out.size) : "";
	str_release(&out);
	return location ? location : "";
}
