/* SPDX-License-Identifier: Apache-2.0 */
/* classes.c -- what of a payload is kept, and how.
 *
 * One walk serves keeping, opening and scrubbing: it knows at every value which class holds there.
 * Declared pointers are looked up only where one can still lie below, so that a long list in a
 * payload costs one look. */
#include "contract/classes.h"

#include "base/canon.h"

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

/* All that a redacted leaf tells is its type. */
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

struct secret {
	const char *text;
	size_t size;
	struct secret *next;
};

struct scrubbing {
	struct arena *arena;
	const struct contract *contract;
	struct str path;
	struct secret *secrets; /* the longest first: one may be part of another */
	const char *text;
};

static bool is_word(char c)
{
	return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c & 0x80;
}

/* The next place of the value in the text. A short one is found all over: it is meant only where it
 * stands alone. */
static const char *find_value(const char *text, const char *from, const struct secret *secret)
{
	for (const char *at = from; (at = strstr(at, secret->text)); at++)
		if (secret->size >= TOKEN_BYTES_MIN ||
		    ((at == text || !is_word(at[-1])) && !is_word(at[secret->size])))
			return at;
	return NULL;
}

/* How much of the value a text that was cut off ends in. */
static size_t cut_off(const char *text, const struct secret *secret)
{
	size_t length = strlen(text);
	for (size_t part = secret->size; part-- > TOKEN_BYTES_MIN;)
		if (part <= length && memcmp(text + length - part, secret->text, part) == 0)
			return part;
	return 0;
}

/* Only what the text holds is remembered. */
static void add_secret(struct scrubbing *scrubbing, const char *text, size_t size)
{
	struct secret **at = &scrubbing->secrets;
	struct secret found = {text, size, NULL};
	if (!size || memchr(text, '\0', size) ||
	    (!find_value(scrubbing->text, scrubbing->text, &found) &&
	     !cut_off(scrubbing->text, &found)))
		return;
	struct secret *secret = arena_alloc(scrubbing->arena, sizeof *secret);
	found.text = arena_strndup(scrubbing->arena, text, size);
	if (!secret || !found.text)
		return;
	while (*at && (*at)->size > size)
		at = &(*at)->next;
	found.next = *at;
	*secret = found;
	*at = secret;
}

static void add_number(struct scrubbing *scrubbing, const struct json *number)
{
	struct str canonical = STR_INIT(KEPT_BYTES_MAX);
	canon_number(&canonical, number->text, number->size);
	add_secret(scrubbing, number->text, number->size);
	add_secret(scrubbing, str_text(&canonical), canonical.size);
	str_release(&canonical);
}

static void find_secrets(struct scrubbing *scrubbing, const struct json *value, struct place place)
{
	size_t size = scrubbing->path.size, index = 0;
	if (place.class == CLASS_STORE && !place.declared)
		return;
	if (place.class != CLASS_STORE && value->type == JSON_STRING)
		add_secret(scrubbing, value->text, value->size);
	else if (place.class != CLASS_STORE && value->type == JSON_NUMBER)
		add_number(scrubbing, value);
	for (const struct json *child = value->child; child; child = child->next, index++) {
		if (place.declared)
			add_segment(&scrubbing->path, child, index);
		find_secrets(scrubbing, child, place_at(scrubbing->contract, &scrubbing->path, place));
		scrubbing->path.size = size;
	}
}

static void replace_secret(struct scrubbing *scrubbing, const struct secret *secret)
{
	const char *text = scrubbing->text, *from = text;
	struct str out = STR_INIT(KEPT_BYTES_MAX);
	for (const char *at; (at = find_value(text, from, secret)); from = at + secret->size) {
		str_add(&out, from, (size_t)(at - from));
		str_adds(&out, scrubbed);
	}
	size_t cut = cut_off(from, secret);
	str_add(&out, from, strlen(from) - cut);
	str_adds(&out, cut ? scrubbed : "");
	const char *copy = arena_strndup(scrubbing->arena, str_text(&out), out.size);
	scrubbing->arena->failed |= out.failed;
	scrubbing->text = copy && !out.failed ? copy : scrubbed;
	str_release(&out);
}

const char *payload_scrub(struct arena *arena, const struct contract *contract,
                          const struct json *payload, const char *text)
{
	struct scrubbing scrubbing = {.arena = arena, .contract = contract, .text = text};
	/* Where the contract keeps nothing, only what a field says of itself is known. */
	struct place place = {.class = contract->payload == CLASS_OMIT ? CLASS_STORE
	                                                               : contract->payload,
	                      .declared = true};
	if (!text || !payload)
		return text;
	scrubbing.path = STR_INIT(KEPT_BYTES_MAX);
	find_secrets(&scrubbing, payload, place);
	for (const struct secret *secret = scrubbing.secrets; secret; secret = secret->next)
		replace_secret(&scrubbing, secret);
	arena->failed |= scrubbing.path.failed;
	str_release(&scrubbing.path);
	return scrubbing.text;
}
