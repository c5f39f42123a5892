/* SPDX-License-Identifier: Apache-2.0 */
/* classes.c -- which values of a payload are stored, and how.
 *
 * Storing, opening and scrubbing share one walk, which knows the class of every value. A declared
 * pointer is looked up only if one can exist below the value, so that a long list in a payload
 * costs one look-up. */
#include "contract/classes.h"

#include "base/canon.h"
#include "base/instant.h"

#include <string.h>

enum { KEPT_BYTES_MAX = 64 << 20, TOKEN_BYTES_MIN = 4 };

static const char scrubbed[] = "[redacted]";

bool classes_encrypt(const struct contract *contract)
{
	bool found = contract->payload == CLASS_ENCRYPT;
	for (size_t i = 0; i < contract->field_count; i++)
		found = found || contract->fields[i].class == CLASS_ENCRYPT;
	return found && contract->payload != CLASS_OMIT;
}

bool classes_hide(const struct contract *contract)
{
	bool found = contract->payload != CLASS_STORE && contract->payload != CLASS_ENCRYPT;
	for (size_t i = 0; i < contract->field_count; i++)
		found = found || (contract->fields[i].class != CLASS_STORE &&
		                  contract->fields[i].class != CLASS_INHERIT);
	return found;
}

/* ---- Where a class holds -------------------------------------------------------------------- */

/* A value on the way down. */
struct place {
	enum field_class class;
	bool declared; /* a declared field may lie here or below */
	bool sealed;   /* inside something that is sealed as a whole */
};

static void add_segment(struct str *path, const struct json *child, size_t index)
{
	str_addc(path, '/');
	if (!child->name) {
		str_addf(path, "%zu", index);
		return;
	}
	for (size_t i = 0; i < child->name_size; i++) {
		char byte = child->name[i];
		if (byte == '~' || byte == '/')
			str_adds(path, byte == '~' ? "~0" : "~1");
		else
			str_addc(path, byte);
	}
}

/* The place at `path`, given that of its parent. */
static struct place place_at(const struct contract *contract, const struct str *path,
                             struct place above)
{
	struct place place = above;
	if (!above.declared)
		return place;
	place.declared = false;
	for (size_t i = 0; i < contract->field_count; i++) {
		const struct contract_field *field = &contract->fields[i];
		size_t size = strlen(field->pointer);
		if (size < path->size || memcmp(field->pointer, str_text(path), path->size) != 0)
			continue;
		if (size == path->size && field->class != CLASS_INHERIT)
			place.class = field->class;
		if (field->pointer[path->size] == '/')
			place.declared = true;
	}
	return place;
}

/* ---- Keeping and opening -------------------------------------------------------------------- */

struct shaping {
	struct arena *arena;
	const struct contract *contract;
	class_convert *convert;
	void *user;
	bool opening;
	struct str path;
	struct ibid_err *err;
};

static struct json *text_node(struct shaping *shaping, const char *text, size_t size)
{
	struct json *node = arena_alloc(shaping->arena, sizeof *node);
	if (node)
		*node = (struct json){
		    .type = JSON_STRING, .text = arena_strndup(shaping->arena, text, size), .size = size};
	return node;
}

/* A redacted value shows only its type. */
static const char *marker(const struct json *leaf)
{
	switch (leaf->type) {
	case JSON_STRING: return "[redacted text]";
	case JSON_NUMBER: return "[redacted number]";
	case JSON_TRUE:
	case JSON_FALSE: return "[redacted boolean]";
	default: return NULL; /* null is its own type */
	}
}

static enum ibid_code no_memory(struct shaping *shaping)
{
	return err_set(shaping->err, IBID_NOMEM, "out of memory");
}

static enum ibid_code shape(struct shaping *shaping, const struct json *value, struct place place,
                            struct json **ret);

/* Containers are copied with what becomes of their children; what is left out of a list is null,
 * so that the items after it keep their places. */
static enum ibid_code shape_children(struct shaping *shaping, const struct json *value,
                                     struct place place, struct json *copy)
{
	struct json **last = &copy->child;
	size_t size = shaping->path.size, index = 0;
	copy->child = NULL;
	copy->size = 0;
	for (const struct json *child = value->child; child; child = child->next, index++) {
		struct json *made = NULL;
		if (place.declared)
			add_segment(&shaping->path, child, index);
		struct place below = place_at(shaping->contract, &shaping->path, place);
		enum ibid_code code = shape(shaping, child, below, &made);
		shaping->path.size = size;
		if (code)
			return code;
		if (!made && value->type == JSON_OBJECT)
			continue;
		if (!made && !(made = arena_alloc(shaping->arena, sizeof *made)))
			return no_memory(shaping);
		made->name = child->name;
		made->name_size = child->name_size;
		made->next = NULL;
		*last = made;
		last = &made->next;
		copy->size++;
	}
	return IBID_OK;
}

static enum ibid_code seal(struct shaping *shaping, const struct json *value, struct place place,
                           struct json **ret)
{
	struct str plain = STR_INIT(KEPT_BYTES_MAX), sealed = STR_INIT(2 * (size_t)KEPT_BYTES_MAX);
	struct json *inner = NULL;
	char *pointer = arena_strndup(shaping->arena, str_text(&shaping->path), shaping->path.size);
	place.sealed = true;
	enum ibid_code code = pointer ? shape(shaping, value, place, &inner) : no_memory(shaping);
	if (!code) {
		canon_write(&plain, inner);
		code = plain.failed ? no_memory(shaping)
		                    : shaping->convert(shaping->user, pointer, str_text(&plain), plain.size,
		                                       &sealed, shaping->err);
	}
	if (!code && (sealed.failed || !(*ret = text_node(shaping, str_text(&sealed), sealed.size))))
		code = no_memory(shaping);
	str_release(&plain);
	str_release(&sealed);
	return code;
}

static enum ibid_code open_sealed(struct shaping *shaping, const struct json *value,
                                  struct json **ret)
{
	struct str plain = STR_INIT(KEPT_BYTES_MAX);
	char *pointer = arena_strndup(shaping->arena, str_text(&shaping->path), shaping->path.size);
	enum ibid_code code;
	if (!pointer)
		return no_memory(shaping);
	if (value->type != JSON_STRING)
		return err_set(shaping->err, IBID_INVALID, "%s is no ciphertext of ibid",
		               *pointer ? pointer : "the payload");
	code = shaping->convert(shaping->user, pointer, value->text, value->size, &plain, shaping->err);
	if (!code && plain.failed)
		code = no_memory(shaping);
	if (!code)
		code = json_read(shaping->arena, str_text(&plain), plain.size, KEPT_BYTES_MAX, ret,
		                 shaping->err);
	str_release(&plain);
	return code;
}

/* `*ret` stays NULL where nothing is kept of the value. */
static enum ibid_code shape(struct shaping *shaping, const struct json *value, struct place place,
                            struct json **ret)
{
	bool container = value->type == JSON_OBJECT || value->type == JSON_ARRAY;
	if (place.class == CLASS_OMIT && !shaping->opening)
		return IBID_OK;
	if (place.class == CLASS_ENCRYPT && !place.sealed)
		return shaping->opening ? open_sealed(shaping, value, ret)
		                        : seal(shaping, value, place, ret);
	if (place.class == CLASS_REDACT && !shaping->opening && !container && marker(value)) {
		*ret = text_node(shaping, marker(value), strlen(marker(value)));
		return *ret ? IBID_OK : no_memory(shaping);
	}
	struct json *copy = arena_alloc(shaping->arena, sizeof *copy);
	if (!copy)
		return no_memory(shaping);
	*copy = *value;
	*ret = copy;
	return container ? shape_children(shaping, value, place, copy) : IBID_OK;
}

static enum ibid_code shape_all(struct shaping *shaping, const struct json *value, const char **ret,
                                size_t *ret_size)
{
	struct json *shaped = NULL;
	struct str text = STR_INIT(2 * (size_t)KEPT_BYTES_MAX);
	struct place place = {.class = shaping->contract->payload, .declared = true};
	shaping->path = STR_INIT(KEPT_BYTES_MAX);
	enum ibid_code code = shape(shaping, value, place, &shaped);
	if (!code) {
		canon_write(&text, shaped);
		const char *copy = text.failed ? NULL
		                               : arena_strndup(shaping->arena, str_text(&text), text.size);
		if (copy && !shaping->arena->failed && !shaping->path.failed) {
			*ret = copy;
			*ret_size = text.size;
		} else {
			code = no_memory(shaping);
		}
	}
	str_release(&text);
	str_release(&shaping->path);
	return code;
}

enum ibid_code payload_keep(struct arena *arena, const struct contract *contract,
                            const struct json *payload, class_convert *convert, void *user,
                            const char **ret, size_t *ret_size, struct ibid_err *err)
{
	struct shaping shaping = {
	    .arena = arena, .contract = contract, .convert = convert, .user = user, .err = err};
	return shape_all(&shaping, payload, ret, ret_size);
}

enum ibid_code payload_open(struct arena *arena, const struct contract *contract,
                            const struct json *kept, class_convert *convert, void *user,
                            const char **ret, size_t *ret_size, struct ibid_err *err)
{
	struct shaping shaping = {.arena = arena,
	                          .contract = contract,
	                          .convert = convert,
	                          .user = user,
	                          .opening = true,
	                          .err = err};
	return shape_all(&shaping, kept, ret, ret_size);
}

/* ---- Scrubbing ------------------------------------------------------------------------------ */

/* Every byte of the text that belongs to a value is marked, then each run of marks becomes one
 * word: values may overlap, and one may be part of another. */
struct scrubbing {
	const struct contract *contract;
	struct str path;
	const char *text;
	size_t size;
	bool *marks; /* one per byte of the text */
	bool found;
};

static void mark(struct scrubbing *scrubbing, size_t from, size_t size)
{
	memset(scrubbing->marks + from, true, size);
	scrubbing->found = true;
}

static bool is_word(char c)
{
	return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c & 0x80;
}

/* A short value would match everywhere in a text: it counts only as a separate word. */
static bool is_meant(const struct scrubbing *scrubbing, size_t from, size_t size)
{
	const char *text = scrubbing->text;
	return size >= TOKEN_BYTES_MIN ||
	       ((from == 0 || !is_word(text[from - 1])) && !is_word(text[from + size]));
}

/* Where a text was cut off, it may end in the beginning of the value. */
static void mark_cut(struct scrubbing *scrubbing, const char *value, size_t size)
{
	size_t part = size - 1 < scrubbing->size ? size - 1 : scrubbing->size;
	for (; part >= TOKEN_BYTES_MIN; part--) {
		if (memcmp(scrubbing->text + scrubbing->size - part, value, part) == 0) {
			mark(scrubbing, scrubbing->size - part, part);
			return;
		}
	}
}

static void mark_value(struct scrubbing *scrubbing, const char *value, size_t size)
{
	if (!size || memchr(value, '\0', size))
		return;
	for (const char *at = scrubbing->text; (at = strstr(at, value)); at += size) {
		size_t from = (size_t)(at - scrubbing->text);
		if (is_meant(scrubbing, from, size))
			mark(scrubbing, from, size);
	}
	mark_cut(scrubbing, value, size);
}

static void mark_number(struct scrubbing *scrubbing, const struct json *number)
{
	struct str canonical = STR_INIT(KEPT_BYTES_MAX);
	canon_number(&canonical, number->text, number->size);
	mark_value(scrubbing, number->text, number->size);
	mark_value(scrubbing, str_text(&canonical), canonical.size);
	str_release(&canonical);
}

/* As a handler has it, as a document in its words would have it, and where it is a point in time,
 * as handlers get that: in UTC; databases write it with a space. */
static void mark_text(struct scrubbing *scrubbing, const char *text, size_t size)
{
	struct str other = STR_INIT(2 * (size_t)KEPT_BYTES_MAX);
	mark_value(scrubbing, text, size);
	str_add_json(&other, text, size);
	if (other.size > size + 2) {
		other.data[--other.size] = '\0';
		mark_value(scrubbing, other.data + 1, other.size - 1);
	}
	str_clear(&other);
	if (instant_canonical(text, size, &other) && !other.failed) {
		other.data[--other.size] = '\0'; /* the zone may be written in another way */
		mark_value(scrubbing, other.data, other.size);
		*strchr(other.data, 'T') = ' ';
		mark_value(scrubbing, other.data, other.size);
	}
	str_release(&other);
}

/* Inside encrypted and omitted values the names of members are hidden, too, unless the contract
 * declares them. */
static bool hides_names(struct place place)
{
	return (place.class == CLASS_ENCRYPT || place.class == CLASS_OMIT) && !place.declared;
}

static void mark_values(struct scrubbing *scrubbing, const struct json *value, struct place place)
{
	size_t size = scrubbing->path.size, index = 0;
	if (place.class == CLASS_STORE && !place.declared)
		return;
	if (place.class != CLASS_STORE && value->type == JSON_STRING)
		mark_text(scrubbing, value->text, value->size);
	else if (place.class != CLASS_STORE && value->type == JSON_NUMBER)
		mark_number(scrubbing, value);
	for (const struct json *child = value->child; child; child = child->next, index++) {
		if (child->name && hides_names(place))
			mark_text(scrubbing, child->name, child->name_size);
		if (place.declared)
			add_segment(&scrubbing->path, child, index);
		mark_values(scrubbing, child, place_at(scrubbing->contract, &scrubbing->path, place));
		scrubbing->path.size = size;
	}
}

static const char *without_marked(struct arena *arena, const struct scrubbing *scrubbing)
{
	struct str out = STR_INIT(KEPT_BYTES_MAX);
	for (size_t i = 0; i < scrubbing->size; i++) {
		if (!scrubbing->marks[i])
			str_addc(&out, scrubbing->text[i]);
		else if (i == 0 || !scrubbing->marks[i - 1])
			str_adds(&out, scrubbed);
	}
	const char *copy = out.failed ? NULL : arena_strndup(arena, str_text(&out), out.size);
	arena->failed |= !copy;
	str_release(&out);
	return copy ? copy : scrubbed;
}

const char *payload_scrub(struct arena *arena, const struct contract *contract,
                          const struct json *payload, const char *text)
{
	/* Where the contract keeps nothing, only what a field says of itself is known. */
	struct place place = {.class = contract->payload == CLASS_OMIT ? CLASS_STORE
	                                                               : contract->payload,
	                      .declared = true};
	if (!text || !payload)
		return text;
	struct scrubbing scrubbing = {.contract = contract, .text = text, .size = strlen(text)};
	scrubbing.path = STR_INIT(KEPT_BYTES_MAX);
	scrubbing.marks = arena_array(arena, scrubbing.size + 1, sizeof *scrubbing.marks);
	if (!scrubbing.marks)
		return scrubbed;
	mark_values(&scrubbing, payload, place);
	arena->failed |= scrubbing.path.failed;
	str_release(&scrubbing.path);
	return scrubbing.found ? without_marked(arena, &scrubbing) : text;
}
