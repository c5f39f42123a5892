/* SPDX-License-Identifier: Apache-2.0 */
/* fingerprint.c -- one hash for one meaning.
 *
 * The contract's `same_payload` is applied to a copy of the payload's tree: the payload itself,
 * which the handler gets, never changes. Without `same_payload` no copy is made.
 *
 * Pointers address the payload as it was sent: an array item keeps its index, also if other items
 * are left out. With `nfc`, names are compared in NFC, so the copy is normalised while it is made
 * and only the members that remain can collide. */
#include "base/canon.h"
#include "base/instant.h"
#include "base/utf8.h"
#include "contract/payload.h"

#include <assert.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

/* ---- Memory --------------------------------------------------------------------------------- */

enum ibid_code payload_no_memory(const struct arena *arena, struct ibid_err *err)
{
	size_t cap = arena->cap ? arena->cap : ARENA_CAP_DEFAULT;
	/* Blocks double up to a megabyte, so one that hit the cap has used more than half of it. */
	if (arena->failed && arena->used > cap / 2)
		return err_set(err, IBID_LIMIT, "the payload needs more than %zu bytes of memory", cap);
	return err_set(err, IBID_NOMEM, "out of memory");
}

/* ---- Unicode -------------------------------------------------------------------------------- */

/* Below U+0300 (0xCC 0x80) nothing combines: a text without such bytes is in NFC. */
static bool surely_nfc(const char *text, size_t size)
{
	unsigned char high = 0;
	for (size_t i = 0; i < size; i++)
		high |= (unsigned char)text[i] >= 0xCC;
	return !high;
}

static bool too_many_marks(const char *text, size_t size)
{
	size_t marks = 0;
	utf8proc_int32_t point;
	for (size_t at = 0; at < size;) {
		utf8proc_ssize_t step = utf8proc_iterate((const utf8proc_uint8_t *)text + at,
		                                         (utf8proc_ssize_t)(size - at), &point);
		if (step <= 0)
			return false; /* utf8proc_map says what is wrong */
		marks = utf8proc_get_property(point)->combining_class ? marks + 1 : 0;
		if (marks > NFC_MARKS_MAX)
			return true;
		at += (size_t)step;
	}
	return false;
}

enum ibid_code text_nfc(struct arena *arena, const char **text, size_t *size, struct ibid_err *err)
{
	utf8proc_uint8_t *normal = NULL;
	if (surely_nfc(*text, *size))
		return IBID_OK;
	if (too_many_marks(*text, *size))
		return err_set(err, IBID_INVALID, "a text has more than %d combining marks in a row",
		               NFC_MARKS_MAX);
	utf8proc_ssize_t length = utf8proc_map((const utf8proc_uint8_t *)*text, (utf8proc_ssize_t)*size,
	                                       &normal, UTF8PROC_STABLE | UTF8PROC_COMPOSE);
	if (length < 0)
		return length == UTF8PROC_ERROR_NOMEM
		           ? payload_no_memory(arena, err)
		           : err_set(err, IBID_INVALID, "a text can't be put into Unicode NFC: %s",
		                     utf8proc_errmsg(length));
	enum ibid_code code = IBID_OK;
	if ((size_t)length != *size || memcmp(normal, *text, *size) != 0) {
		const char *copy = arena_strndup(arena, (const char *)normal, (size_t)length);
		if (copy) {
			*text = copy;
			*size = (size_t)length;
		} else {
			code = payload_no_memory(arena, err);
		}
	}
	free(normal);
	return code;
}

/* ---- The copy ------------------------------------------------------------------------------- */

/* A value of the copy. All values of a copy are nodes, so that each `struct json` in it is one. */
struct node {
	struct json json;                                            /* first */
	size_t place;                                                /* among its siblings, as sent */
	enum { WANTED_NOT, WANTED_ON_THE_WAY, WANTED_WHOLE } wanted; /* by `only` */
	bool ignored, renamed;
};
_Static_assert(offsetof(struct node, json) == 0, "a json of the copy is the beginning of its node");

/* The first failure stays; what comes after it does nothing of use. */
struct shaper {
	struct arena *arena;
	const struct contract_same *same;
	struct ibid_err *err;
	enum ibid_code code;
	bool renamed; /* is any member called differently in NFC? */
};

static struct node *node_of(struct json *json)
{
	return (struct node *)json;
}

static void *shaper_alloc(struct shaper *shaper, size_t count, size_t size)
{
	void *memory = arena_array(shaper->arena, count, size);
	if (!memory && !shaper->code)
		shaper->code = payload_no_memory(shaper->arena, shaper->err);
	return memory;
}

static void normalise(struct shaper *shaper, const char **text, size_t *size)
{
	if (*text && shaper->same->nfc && !shaper->code)
		shaper->code = text_nfc(shaper->arena, text, size, shaper->err);
}

/* NULL after a failure. */
static struct node *copy(struct shaper *shaper, const struct json *from)
{
	struct node *node = shaper_alloc(shaper, 1, sizeof *node);
	if (!node)
		return NULL;
	node->json = *from;
	node->json.child = node->json.next = NULL;
	normalise(shaper, &node->json.name, &node->json.name_size);
	if (from->type == JSON_STRING)
		normalise(shaper, &node->json.text, &node->json.size);
	node->renamed = node->json.name != from->name;
	shaper->renamed = shaper->renamed || node->renamed;
	struct json **tail = &node->json.child;
	size_t place = 0;
	for (const struct json *child = from->child; child; child = child->next) {
		struct node *twin = copy(shaper, child);
		if (!twin)
			return NULL;
		twin->place = place++;
		*tail = &twin->json;
		tail = &twin->json.next;
	}
	return node;
}

/* ---- Paths ---------------------------------------------------------------------------------- */

struct segment {
	const char *text;
	size_t size, index; /* index: SIZE_MAX when the text is none */
	bool any;
};

struct path {
	struct segment *segments;
	size_t count;
};

static size_t index_of(const char *text, size_t size)
{
	size_t index = 0;
	if (size == 0 || size > 9 || (size > 1 && *text == '0'))
		return SIZE_MAX;
	for (size_t i = 0; i < size; i++) {
		if (text[i] < '0' || text[i] > '9')
			return SIZE_MAX;
		index = index * 10 + (size_t)(text[i] - '0');
	}
	return index;
}

static void unescape(struct shaper *shaper, struct segment *segment)
{
	if (!memchr(segment->text, '~', segment->size))
		return;
	char *text = shaper_alloc(shaper, segment->size, 1);
	size_t size = 0;
	for (size_t i = 0; text && i < segment->size; i++) {
		char byte = segment->text[i];
		if (byte == '~' && i + 1 < segment->size)
			byte = segment->text[++i] == '0' ? '~' : '/';
		text[size++] = byte;
	}
	if (text) {
		segment->text = text;
		segment->size = size;
	}
}

static struct path path_read(struct shaper *shaper, const char *pointer)
{
	struct path path = {0};
	size_t count = 0;
	for (const char *p = pointer; *p; p++)
		count += *p == '/';
	path.segments = shaper_alloc(shaper, count, sizeof *path.segments);
	if (!path.segments)
		return path;
	for (; *pointer == '/'; path.count++) {
		struct segment *segment = &path.segments[path.count];
		segment->text = ++pointer;
		segment->size = strcspn(pointer, "/");
		pointer += segment->size;
		segment->any = segment->size == 1 && *segment->text == '*';
		segment->index = index_of(segment->text, segment->size);
		unescape(shaper, segment);
		normalise(shaper, &segment->text, &segment->size);
	}
	return path;
}

static bool matches(const struct segment *segment, const struct node *child)
{
	const struct json *json = &child->json;
	if (segment->any)
		return true;
	if (!json->name)
		return segment->index == child->place;
	return json->name_size == segment->size &&
	       memcmp(json->name, segment->text, segment->size) == 0;
}

/* The first node from `json` on, among siblings, that the segment names. */
static struct node *next_match(struct json *json, const struct segment *segment)
{
	while (json && !matches(segment, node_of(json)))
		json = json->next;
	return json ? node_of(json) : NULL;
}

typedef void visit_fn(struct shaper *shaper, struct node *node, const void *argument);

/* Call `visit` for every node that the first `count` segments lead to from `node`. */
static void each(struct shaper *shaper, struct node *node, const struct segment *segments,
                 size_t count, visit_fn *visit, const void *argument)
{
	if (count == 0) {
		visit(shaper, node, argument);
		return;
	}
	for (struct node *child = next_match(node->json.child, segments); child;
	     child = next_match(child->json.next, segments))
		each(shaper, child, segments + 1, count - 1, visit, argument);
}

static void each_of(struct shaper *shaper, struct node *root, const struct texts *pointers,
                    visit_fn *visit)
{
	for (size_t i = 0; i < pointers->count && !shaper->code; i++) {
		struct path path = path_read(shaper, pointers->items[i]);
		each(shaper, root, path.segments, path.count, visit, NULL);
	}
}

/* ---- only, ignore --------------------------------------------------------------------------- */

/* What lies on the way is kept too, without its other members: a default may belong into it, and
 * the number of lines of an order is part of what the pointer sees. */
static void want(struct node *node, const struct segment *segments, size_t count)
{
	if (count == 0) {
		node->wanted = WANTED_WHOLE;
		return;
	}
	if (node->wanted == WANTED_NOT)
		node->wanted = WANTED_ON_THE_WAY;
	for (struct node *child = next_match(node->json.child, segments); child;
	     child = next_match(child->json.next, segments))
		want(child, segments + 1, count - 1);
}

static void ignore(struct shaper *shaper, struct node *node, const void *argument)
{
	(void)shaper;
	(void)argument;
	node->ignored = true;
}

static void leave_out(struct node *node, bool restricted)
{
	struct json **link = &node->json.child;
	restricted = restricted && node->wanted != WANTED_WHOLE;
	while (*link) {
		struct node *child = node_of(*link);
		if (child->ignored || (restricted && child->wanted == WANTED_NOT)) {
			*link = child->json.next;
			node->json.size--;
		} else {
			leave_out(child, restricted);
			link = &child->json.next;
		}
	}
}

static void select_members(struct shaper *shaper, struct node *root)
{
	const struct texts *only = &shaper->same->only;
	for (size_t i = 0; i < only->count && !shaper->code; i++) {
		struct path path = path_read(shaper, only->items[i]);
		want(root, path.segments, path.count);
	}
	each_of(shaper, root, &shaper->same->ignore, ignore);
	if (only->count || shaper->same->ignore.count)
		leave_out(root, only->count > 0);
	if (root->ignored) /* the whole payload: all payloads are the same */
		root->json = (struct json){.type = JSON_NULL};
}

/* ---- defaults ------------------------------------------------------------------------------- */

struct filling {
	const struct segment *member;
	const struct json *value;
};

static void fill_in(struct shaper *shaper, struct node *parent, const void *argument)
{
	const struct filling *filling = argument;
	const struct segment *member = filling->member;
	if (parent->json.type != JSON_OBJECT || member->any || shaper->code ||
	    next_match(parent->json.child, member))
		return;
	struct node *node = copy(shaper, filling->value);
	if (!node)
		return;
	node->json.name = member->text;
	node->json.name_size = member->size;
	node->json.next = parent->json.child;
	parent->json.child = &node->json;
	parent->json.size++;
}

static void fill_default(struct shaper *shaper, struct node *root, const char *pointer,
                         const char *text)
{
	struct path path = path_read(shaper, pointer);
	struct json *value = NULL;
	if (shaper->code || path.count == 0)
		return;
	shaper->code = json_read(shaper->arena, text, strlen(text), 0, &value, shaper->err);
	if (shaper->code == IBID_INVALID)
		shaper->code = err_set(shaper->err, IBID_CONTRACT, "the default of %s is not JSON",
		                       pointer);
	if (shaper->code)
		return;
	struct filling filling = {&path.segments[path.count - 1], value};
	each(shaper, root, path.segments, path.count - 1, fill_in, &filling);
}

static size_t depth_of(const char *pointer)
{
	size_t depth = 0;
	for (; *pointer; pointer++)
		depth += *pointer == '/';
	return depth;
}

/* Outer ones first: a default may stand for the very object that another one fills. */
static void fill_defaults(struct shaper *shaper, struct node *root)
{
	const struct contract_same *same = shaper->same;
	size_t left = same->default_count;
	for (size_t depth = 0; left && !shaper->code; depth++) {
		for (size_t i = 0; i < same->default_count && !shaper->code; i++) {
			if (depth_of(same->defaults[i].pointer) != depth)
				continue;
			fill_default(shaper, root, same->defaults[i].pointer, same->defaults[i].json);
			left--;
		}
	}
}

/* ---- instants, names ------------------------------------------------------------------------ */

static void to_utc(struct shaper *shaper, struct node *node, const void *argument)
{
	struct json *json = &node->json;
	struct str utc = STR_INIT(json->size + INSTANT_TEXT_SIZE);
	(void)argument;
	if (json->type != JSON_STRING || !instant_canonical(json->text, json->size, &utc))
		return;
	char *text = shaper_alloc(shaper, utc.size + 1, 1);
	if (text) {
		memcpy(text, utc.data, utc.size);
		json->text = text;
		json->size = utc.size;
	}
	str_release(&utc);
}

static int name_order(const void *left, const void *right)
{
	const struct json *a = *(struct json *const *)left, *b = *(struct json *const *)right;
	if (a->name_size != b->name_size)
		return a->name_size < b->name_size ? -1 : 1;
	return memcmp(a->name, b->name, a->name_size);
}

static void fail_same_name(struct shaper *shaper, const struct json *member)
{
	struct str quoted = STR_INIT(512);
	size_t shown = utf8_fit(member->name, member->name_size, 60);
	str_add_json(&quoted, member->name, shown);
	shaper->code = err_set(shaper->err, IBID_INVALID,
	                       "two members of one object have the same name in Unicode NFC: %s%s",
	                       str_text(&quoted), shown < member->name_size ? "..." : "");
	str_release(&quoted);
}

/* Sorted, not compared pairwise: an object may have a million members. */
static void check_names(struct shaper *shaper, struct node *node)
{
	size_t count = 0;
	struct json **names = shaper_alloc(shaper, node->json.size, sizeof *names);
	if (!names)
		return;
	for (struct json *child = node->json.child; child; child = child->next)
		names[count++] = child;
	assert(count == node->json.size);
	qsort(names, count, sizeof *names, name_order);
	for (size_t i = 1; i < count && !shaper->code; i++)
		if (name_order(&names[i - 1], &names[i]) == 0)
			fail_same_name(shaper, names[i]);
}

static void check_renamed(struct shaper *shaper, struct node *node)
{
	bool renamed = false;
	for (struct json *child = node->json.child; child && !shaper->code; child = child->next) {
		renamed = renamed || node_of(child)->renamed;
		check_renamed(shaper, node_of(child));
	}
	if (renamed && !shaper->code)
		check_names(shaper, node);
}

/* ---- unordered ------------------------------------------------------------------------------ */

struct ranked {
	struct json *item;
	const char *bytes; /* its canonical form */
	size_t from, size;
};

static int rank_order(const void *left, const void *right)
{
	const struct ranked *a = left, *b = right;
	int order = memcmp(a->bytes, b->bytes, a->size < b->size ? a->size : b->size);
	return order ? order : (a->size > b->size) - (a->size < b->size);
}

static void rank(struct str *out, struct json *array, struct ranked *ranked)
{
	size_t count = 0;
	for (struct json *item = array->child; item; item = item->next, count++) {
		ranked[count] = (struct ranked){.item = item, .from = out->size};
		canon_write(out, item);
		ranked[count].size = out->size - ranked[count].from;
	}
	assert(count == array->size);
	for (size_t i = 0; i < count; i++)
		ranked[i].bytes = out->data + ranked[i].from;
}

static void sort_items(struct shaper *shaper, struct node *node, const void *argument)
{
	struct json *array = &node->json;
	struct str out = STR_INIT(ARENA_CAP_DEFAULT);
	(void)argument;
	if (array->type != JSON_ARRAY || array->size < 2)
		return;
	struct ranked *ranked = shaper_alloc(shaper, array->size, sizeof *ranked);
	if (!ranked)
		return;
	rank(&out, array, ranked);
	if (out.failed) {
		shaper->code = payload_no_memory(shaper->arena, shaper->err);
	} else {
		qsort(ranked, array->size, sizeof *ranked, rank_order);
		struct json **link = &array->child;
		for (size_t i = 0; i < array->size; i++, link = &(*link)->next)
			*link = ranked[i].item;
		*link = NULL;
	}
	str_release(&out);
}

/* Inner lists first: the order of the outer ones is that of their items' final form. */
static void sort_lists(struct shaper *shaper, struct node *root)
{
	const struct texts *pointers = &shaper->same->unordered;
	size_t depth = 0;
	for (size_t i = 0; i < pointers->count; i++)
		if (depth_of(pointers->items[i]) > depth)
			depth = depth_of(pointers->items[i]);
	for (size_t level = depth + 1; level-- > 0 && !shaper->code;) {
		for (size_t i = 0; i < pointers->count; i++)
			if (depth_of(pointers->items[i]) == level)
				each_of(shaper, root, &(struct texts){&pointers->items[i], 1}, sort_items);
	}
}

/* ---- The whole ------------------------------------------------------------------------------ */

static bool as_it_is(const struct contract_same *same)
{
	return !same->only.count && !same->ignore.count && !same->default_count &&
	       !same->instants.count && !same->unordered.count && !same->nfc;
}

/* The payload as the contract sees it; the payload itself where it takes it as it is. */
static enum ibid_code shape(struct arena *arena, const struct contract_same *same,
                            const struct json *payload, const struct json **ret,
                            struct ibid_err *err)
{
	struct shaper shaper = {.arena = arena, .same = same, .err = err};
	if (as_it_is(same)) {
		*ret = payload;
		return IBID_OK;
	}
	struct node *root = copy(&shaper, payload);
	if (shaper.code)
		return shaper.code;
	select_members(&shaper, root);
	fill_defaults(&shaper, root);
	each_of(&shaper, root, &same->instants, to_utc);
	if (shaper.renamed)
		check_renamed(&shaper, root);
	sort_lists(&shaper, root);
	if (!shaper.code)
		*ret = &root->json;
	return shaper.code;
}

/* Members are written in canonical order, so that the whole is canonical where its parts are. */
static enum ibid_code add_preimage(struct str *out, struct arena *arena,
                                   const struct contract *contract, const struct sender *sender,
                                   const struct json *payload, struct ibid_err *err)
{
	char number[64];
	const struct json *shaped = NULL;
	enum ibid_code code = shape(arena, &contract->same, payload, &shaped, err);
	if (code)
		return code;
	str_adds(out, "{\"context\":");
	code = sender_add(out, contract, contract->same.context, "same_payload.context", sender, err);
	if (code)
		return code;
	str_adds(out, ",\"operation\":");
	str_add_json(out, contract->name, strlen(contract->name));
	str_adds(out, ",\"payload\":");
	canon_write(out, shaped);
	snprintf(number, sizeof number, ",\"scheme\":%d,\"tenant\":", FINGERPRINT_SCHEME);
	str_adds(out, number);
	str_add_json(out, sender->tenant, strlen(sender->tenant));
	snprintf(number, sizeof number, ",\"version\":%d}", contract->version);
	str_adds(out, number);
	return out->failed ? payload_no_memory(arena, err) : IBID_OK;
}

enum ibid_code fingerprint_of(struct arena *arena, const struct contract *contract,
                              const struct sender *sender, struct json *payload, struct sha256 *ret,
                              struct ibid_err *err)
{
	struct str out = STR_INIT(ARENA_CAP_DEFAULT);
	enum ibid_code code = add_preimage(&out, arena, contract, sender, payload, err);
	if (!code)
		*ret = sha256(out.data, out.size);
	str_release(&out);
	return code;
}

enum ibid_code fingerprint_text(struct arena *arena, const struct contract *contract,
                                const struct sender *sender, struct json *payload, const char **ret,
                                size_t *ret_size, struct ibid_err *err)
{
	struct str out = STR_INIT(ARENA_CAP_DEFAULT);
	enum ibid_code code = add_preimage(&out, arena, contract, sender, payload, err);
	const char *text = code ? NULL : arena_strndup(arena, out.data, out.size);
	if (text) {
		*ret = text;
		*ret_size = out.size;
	} else if (!code) {
		code = payload_no_memory(arena, err);
	}
	str_release(&out);
	return code;
}
