/* SPDX-License-Identifier: Apache-2.0 */
/* payload_schema.c -- from pointers to nested objects.
 *
 * A member that is null counts as absent, so only required ones refuse null. */
#include "http/payload_schema.h"

#include "base/obj.h"
#include "http/route.h"
#include "http/text_schema.h"

#include <string.h>

enum { NAME_ROOM = 256 }; /* what a contract may call a member */

/* The payload below one pointer. */
struct below {
	const struct contract *contract;
	const char *path;   /* whose parameters are left out; NULL: none */
	const char *prefix; /* not terminated */
	size_t size;
};

static const char name_pattern[] = "\"^" TEXT_NAME "$\"";

/* ---- One value ------------------------------------------------------------------------------ */

static void add_type(struct str *out, const char *type, bool required)
{
	if (required) {
		obj_text(out, "type", type);
		return;
	}
	obj_begin(out, "type", '[');
	obj_text(out, NULL, type);
	obj_text(out, NULL, "null");
	obj_end(out, ']');
}

static void add_any_type(struct str *out, bool required)
{
	obj_raw(out, "type",
	        required ? "[\"array\",\"boolean\",\"number\",\"object\",\"string\"]"
	                 : "[\"array\",\"boolean\",\"null\",\"number\",\"object\",\"string\"]");
}

static void add_bound(struct str *out, const char *name, const struct decimal *bound)
{
	char text[DECIMAL_TEXT_MAX];
	if (!bound)
		return;
	decimal_write(*bound, text);
	obj_raw(out, name, text);
}

static void add_bounds(struct str *out, const struct contract_field *field)
{
	add_bound(out, "exclusiveMinimum", field->above);
	add_bound(out, "minimum", field->at_least);
	add_bound(out, "exclusiveMaximum", field->below);
	add_bound(out, "maximum", field->at_most);
}

static void add_choices(struct str *out, const struct contract_field *field)
{
	if (!field->one_of.count)
		return;
	obj_begin(out, "enum", '[');
	for (size_t i = 0; i < field->one_of.count; i++)
		obj_text(out, NULL, field->one_of.items[i]);
	if (!field->required)
		obj_text(out, NULL, NULL);
	obj_end(out, ']');
}

static void add_text(struct str *out, const struct contract_field *field, const char *pattern)
{
	add_type(out, "string", field->required);
	add_choices(out, field);
	if (!field->one_of.count)
		obj_raw(out, "pattern", pattern);
	if (field->max)
		obj_int(out, "maxLength", (int64_t)field->max);
}

static void add_number(struct str *out, const struct contract_field *field)
{
	char unit[DECIMAL_SCALE_MAX + 3] = "1";
	size_t scale = field->scale < 0 ? DECIMAL_SCALE_MAX : (size_t)field->scale;
	add_type(out, "number", field->required);
	add_bounds(out, field);
	if (scale > 0) {
		memset(unit, '0', scale + 1);
		unit[1] = '.';
		unit[scale + 1] = '1';
	}
	obj_raw(out, "multipleOf", unit);
}

/* `pattern` is of texts, with quotes. */
static void add_value(struct str *out, const struct contract_field *field, const char *pattern)
{
	switch (field->type) {
	case FIELD_TEXT: add_text(out, field, pattern); break;
	case FIELD_INTEGER:
		add_type(out, "integer", field->required);
		obj_text(out, "format", "int64");
		add_bounds(out, field);
		break;
	case FIELD_DECIMAL: add_number(out, field); break;
	case FIELD_BOOLEAN: add_type(out, "boolean", field->required); break;
	case FIELD_DATE:
		add_type(out, "string", field->required);
		obj_text(out, "format", "date");
		break;
	case FIELD_INSTANT:
		add_type(out, "string", field->required);
		obj_text(out, "format", "date-time");
		break;
	case FIELD_JSON: add_any_type(out, field->required); break;
	}
}

/* ---- Pointers ------------------------------------------------------------------------------- */

/* The segment of `pointer` that follows the prefix; NULL: it does not lead there. */
static const char *segment_of(const struct below *below, const char *pointer, size_t *ret_size)
{
	size_t size = strlen(pointer);
	if (size <= below->size || memcmp(pointer, below->prefix, below->size) != 0 ||
	    pointer[below->size] != '/')
		return NULL;
	*ret_size = strcspn(pointer + below->size + 1, "/");
	return pointer + below->size + 1;
}

/* By the path; or by the query, or as a body that is no object, of what is sent on. */
static bool given_elsewhere(const struct below *below, const struct contract_field *field)
{
	static const char *const of_request[] = {"/@query", "/@body", "/@type"};
	const char *at = below->path, *name;
	size_t size;
	for (size_t i = 0; i < sizeof of_request / sizeof *of_request; i++)
		if (below->contract->upstream.given && strcmp(field->pointer, of_request[i]) == 0)
			return true;
	while (at && route_param(&at, &name, &size))
		if (strlen(field->pointer) == size + 1 && memcmp(field->pointer + 1, name, size) == 0)
			return true;
	return false;
}

/* Is the field at `index` the first that leads to its segment? */
static bool leads_first(const struct below *below, size_t index, struct below *ret)
{
	const struct contract_field *fields = below->contract->fields;
	size_t size, other_size;
	const char *segment = segment_of(below, fields[index].pointer, &size);
	if (!segment || given_elsewhere(below, &fields[index]))
		return false;
	for (size_t i = 0; i < index; i++) {
		const char *other = segment_of(below, fields[i].pointer, &other_size);
		if (other && other_size == size && memcmp(other, segment, size) == 0)
			return false;
	}
	*ret = *below;
	ret->prefix = fields[index].pointer;
	ret->size = below->size + 1 + size;
	return true;
}

/* The member's name: without ~0 and ~1. */
static void name_of(const struct below *child, const struct below *parent, char ret[NAME_ROOM])
{
	size_t used = 0;
	for (size_t i = parent->size + 1; i < child->size && used + 1 < NAME_ROOM; i++) {
		char byte = child->prefix[i];
		if (byte == '~')
			byte = child->prefix[++i] == '0' ? '~' : '/';
		ret[used++] = byte;
	}
	ret[used] = '\0';
}

static const struct contract_field *field_at(const struct below *below)
{
	for (size_t i = 0; i < below->contract->field_count; i++) {
		const struct contract_field *field = &below->contract->fields[i];
		if (strlen(field->pointer) == below->size &&
		    memcmp(field->pointer, below->prefix, below->size) == 0)
			return field;
	}
	return NULL;
}

/* Does any field below have to be there? */
static bool needed(const struct below *below)
{
	size_t size;
	for (size_t i = 0; i < below->contract->field_count; i++) {
		const struct contract_field *field = &below->contract->fields[i];
		if (field->required && segment_of(below, field->pointer, &size) &&
		    !given_elsewhere(below, field))
			return true;
	}
	return false;
}

/* A segment that is a number leads to a member or to an item: which, the payload says. */
static bool has_items(const struct below *below)
{
	size_t size;
	for (size_t i = 0; i < below->contract->field_count; i++) {
		const char *segment = segment_of(below, below->contract->fields[i].pointer, &size);
		if (segment && size && strspn(segment, "0123456789") == size)
			return true;
	}
	return false;
}

static bool has_children(const struct below *below)
{
	size_t size;
	for (size_t i = 0; i < below->contract->field_count; i++)
		if (segment_of(below, below->contract->fields[i].pointer, &size))
			return true;
	return false;
}

/* ---- Objects -------------------------------------------------------------------------------- */

static void add_node(struct str *out, const char *name, const struct below *below);

static void add_members(struct str *out, const struct below *below)
{
	struct below child;
	char name[NAME_ROOM];
	obj_begin(out, "properties", '{');
	for (size_t i = 0; i < below->contract->field_count; i++)
		if (leads_first(below, i, &child)) {
			name_of(&child, below, name);
			add_node(out, name, &child);
		}
	obj_end(out, '}');
	if (!needed(below))
		return;
	obj_begin(out, "required", '[');
	for (size_t i = 0; i < below->contract->field_count; i++) {
		if (!leads_first(below, i, &child))
			continue;
		const struct contract_field *field = field_at(&child);
		name_of(&child, below, name);
		if ((field && field->required) || needed(&child))
			obj_text(out, NULL, name);
	}
	obj_end(out, ']');
}

static void add_container(struct str *out, const struct below *below,
                          const struct contract_field *field)
{
	bool must = needed(below) || !below->size;
	if (has_items(below)) {
		add_any_type(out, must || (field && field->required));
		return;
	}
	if (field && !must)
		add_any_type(out, field->required);
	else if (must || below->contract->refuse_unknown_fields)
		add_type(out, "object", must); /* otherwise something else is kept like other members */
	add_members(out, below);
	if (below->contract->refuse_unknown_fields && !field)
		obj_bool(out, "additionalProperties", false);
}

/* Does the contract's own route say it, as a part of the resource that the contract asks for? */
static bool is_of_resource(const struct below *below)
{
	const char *at = below->contract->route, *name;
	size_t size;
	while (contract_asks_resource(below->contract) && route_param(&at, &name, &size))
		if (below->size == size + 1 && memcmp(below->prefix + 1, name, size) == 0)
			return true;
	return false;
}

static void add_node(struct str *out, const char *name, const struct below *below)
{
	const struct contract_field *field = field_at(below);
	obj_begin(out, name, '{');
	if (field && !has_children(below))
		add_value(out, field, is_of_resource(below) ? name_pattern : "\"" TEXT_PATTERN "\"");
	else
		add_container(out, below, field);
	obj_end(out, '}');
}

void payload_schema(struct str *out, const char *name, const struct contract *contract,
                    const char *path, bool *ret_required)
{
	struct below all = {.contract = contract, .path = path, .prefix = ""};
	add_node(out, name, &all);
	*ret_required = needed(&all);
}

void param_schema(struct str *out, const char *name, const struct contract_field *field)
{
	obj_begin(out, name, '{');
	if (field)
		add_value(out, field, name_pattern); /* it names the resource */
	obj_int(out, "minLength", 1);            /* an empty segment is another path */
	obj_end(out, '}');
}
