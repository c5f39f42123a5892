/* SPDX-License-Identifier: Apache-2.0 */
/* key.c -- the key of an intent: given by the caller, or made of values of the payload.
 *
 * A derived key is the canonical JSON array of its values, so that different lists of values give
 * different texts (["a,b"] is not ["a","b"]) and the notation does not matter. If `same_payload`
 * treats two values as the same, the key must, too: otherwise one intent would run under two keys.
 */
#include "base/canon.h"
#include "base/id.h"
#include "base/instant.h"
#include "base/utf8.h"
#include "contract/payload.h"

#include <assert.h>
#include <string.h>
#include <strings.h>
#include <utf8proc.h>

/* ---- Given texts ---------------------------------------------------------------------------- */

static bool is_control(utf8proc_int32_t point)
{
	return point < 0x20 || (point >= 0x7F && point < 0xA0);
}

static bool is_blank(utf8proc_int32_t point)
{
	if (point < 0x80)
		return point == ' ';
	utf8proc_category_t category = utf8proc_category(point);
	return category == UTF8PROC_CATEGORY_ZS || category == UTF8PROC_CATEGORY_ZL ||
	       category == UTF8PROC_CATEGORY_ZP;
}

static enum ibid_code check_characters(const char *what, const char *text, size_t size,
                                       struct ibid_err *err)
{
	for (size_t at = 0, step; at < size; at += step) {
		utf8proc_int32_t point = (unsigned char)text[at];
		step = utf8_size(text + at, size - at);
		if (!step)
			return err_set(err, IBID_INVALID, "the %s is not valid UTF-8 at byte %zu", what,
			               at + 1);
		if (step > 1)
			utf8proc_iterate((const utf8proc_uint8_t *)text + at, (utf8proc_ssize_t)step, &point);
		if (is_control(point))
			return err_set(err, IBID_INVALID, "the %s has a control character (U+%04X) at byte %zu",
			               what, (unsigned)point, at + 1);
		if ((at == 0 || at + step == size) && is_blank(point))
			return err_set(err, IBID_INVALID, "the %s %s with a blank", what,
			               at == 0 ? "starts" : "ends");
	}
	return IBID_OK;
}

static enum ibid_code check_text(const char *what, const char *text, size_t bytes_max,
                                 struct ibid_err *err)
{
	size_t size = text ? strnlen(text, bytes_max + 1) : 0;
	if (size == 0)
		return err_set(err, IBID_INVALID, "the %s is empty", what);
	if (size > bytes_max)
		return err_set(err, IBID_INVALID, "the %s is longer than %zu bytes", what, bytes_max);
	return check_characters(what, text, size, err);
}

enum ibid_code key_check(const char *key, struct ibid_err *err)
{
	return check_text("key", key, KEY_BYTES_MAX, err);
}

enum ibid_code name_check(const char *what, const char *name, struct ibid_err *err)
{
	return check_text(what, name, NAME_BYTES_MAX, err);
}

/* ---- The sender's parts --------------------------------------------------------------------- */

enum ibid_code sender_add(struct str *out, const struct contract *contract, unsigned parts,
                          const char *place, const struct sender *sender, struct ibid_err *err)
{
	/* In the order of their names, which is the canonical one. */
	const struct {
		unsigned bit;
		const char *name, *value;
	} all[] = {
	    {SCOPE_ACTOR, "actor", sender->actor},
	    {SCOPE_CLIENT, "client", sender->client},
	    {SCOPE_RESOURCE, "resource", sender->resource},
	};
	const char *before = "{";
	for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
		if (!(parts & all[i].bit))
			continue;
		if (!all[i].value || !*all[i].value)
			return err_set(err, IBID_INVALID,
			               "the contract of %s declares %s in %s, so the command must name its %s: "
			               "`ibid submit --%s`, or over HTTP as docs/http.md says",
			               contract->name, all[i].name, place, all[i].name, all[i].name);
		enum ibid_code code = name_check(all[i].name, all[i].value, err);
		if (code)
			return code;
		str_adds(out, before);
		str_add_json(out, all[i].name, strlen(all[i].name));
		str_addc(out, ':');
		str_add_json(out, all[i].value, strlen(all[i].value));
		before = ",";
	}
	str_adds(out, *before == '{' ? "{}" : "}");
	return IBID_OK;
}

enum ibid_code scope_of(struct arena *arena, const struct contract *contract,
                        const struct sender *sender, const char **ret, struct ibid_err *err)
{
	/* Three names, each byte escaped to two at most: control characters are refused. */
	struct str out = STR_INIT(3 * (2 * NAME_BYTES_MAX + 16));
	const char *scope = NULL;
	if (!contract->key.scope) {
		*ret = "";
		return IBID_OK;
	}
	enum ibid_code code = sender_add(&out, contract, contract->key.scope, "key.scope", sender, err);
	if (code)
		goto out;
	if (!out.failed)
		scope = arena_strndup(arena, out.data, out.size);
	if (scope)
		*ret = scope;
	else
		code = payload_no_memory(arena, err);
out:
	str_release(&out);
	return code;
}

/* ---- Derived keys --------------------------------------------------------------------------- */

static bool texts_hold(const struct texts *texts, const char *text)
{
	for (size_t i = 0; i < texts->count; i++)
		if (strcmp(texts->items[i], text) == 0)
			return true;
	return false;
}

static bool is_instant(const struct contract *contract, const char *pointer)
{
	for (size_t i = 0; i < contract->field_count; i++)
		if (contract->fields[i].type == FIELD_INSTANT &&
		    strcmp(contract->fields[i].pointer, pointer) == 0)
			return true;
	return texts_hold(&contract->same.instants, pointer);
}

/* False, and nothing appended, when the text is no instant. */
static bool add_instant(struct str *out, const struct json *value)
{
	struct str utc = STR_INIT(value->size + INSTANT_TEXT_SIZE);
	bool is = instant_canonical(value->text, value->size, &utc);
	if (is)
		str_add_json(out, str_text(&utc), utc.size);
	out->failed = out->failed || utc.failed;
	str_release(&utc);
	return is;
}

static enum ibid_code add_string(struct str *out, struct arena *arena,
                                 const struct contract *contract, const char *pointer,
                                 const struct json *value, struct ibid_err *err)
{
	const char *text = value->text;
	size_t size = value->size;
	if (is_instant(contract, pointer) && add_instant(out, value))
		return IBID_OK;
	if (contract->same.nfc) {
		enum ibid_code code = text_nfc(arena, &text, &size, err);
		if (code)
			return code;
	}
	str_add_json(out, text, size);
	return IBID_OK;
}

static enum ibid_code add_value(struct str *out, struct arena *arena,
                                const struct contract *contract, const char *pointer,
                                const struct json *value, struct ibid_err *err)
{
	if (!value || value->type == JSON_NULL)
		return err_set(err, IBID_INVALID, "%s is missing: the key of %s is made of it", pointer,
		               contract->name);
	switch (value->type) {
	case JSON_STRING: return add_string(out, arena, contract, pointer, value, err);
	case JSON_ARRAY:
	case JSON_OBJECT:
		return err_set(err, IBID_INVALID,
		               "%s is an %s: the key of %s needs a text, a number, true or false", pointer,
		               value->type == JSON_ARRAY ? "array" : "object", contract->name);
	default: canon_write(out, value); return IBID_OK;
	}
}

/* The canonical JSON array of the declared values. */
static enum ibid_code add_values(struct str *out, struct arena *arena,
                                 const struct contract *contract, struct json *payload,
                                 struct ibid_err *err)
{
	bool empty = true;
	str_addc(out, '[');
	for (size_t i = 0; i < contract->key.fields.count; i++) {
		const char *pointer = contract->key.fields.items[i];
		const struct json *value = json_at(payload, pointer);
		if (i)
			str_addc(out, ',');
		enum ibid_code code = add_value(out, arena, contract, pointer, value, err);
		if (code)
			return code;
		empty = empty && value->type == JSON_STRING && value->size == 0;
	}
	str_addc(out, ']');
	if (empty)
		return err_set(err, IBID_INVALID, "the key of %s is empty: there is nothing in %s",
		               contract->name,
		               contract->key.fields.count ? contract->key.fields.items[0] : "key.from");
	return out->failed ? payload_no_memory(arena, err) : IBID_OK;
}

/* Every key that is a UUID depends on this value: it may never change. */
static const struct uuid ibid_space = {{0xd1, 0xe4, 0xec, 0xa4, 0x2e, 0xc8, 0x44, 0x14, 0x94, 0xd1,
                                        0xeb, 0x1b, 0x0f, 0xea, 0xc5, 0x71}};

/* UUIDv5 of the values, in a name space of its own for every tenant and operation. */
static enum ibid_code uuid_key(struct arena *arena, const struct contract *contract,
                               const char *tenant, const struct str *values, const char **ret,
                               struct ibid_err *err)
{
	struct str space = STR_INIT(ARENA_CAP_DEFAULT);
	str_addc(&space, '[');
	str_add_json(&space, tenant, strlen(tenant));
	str_addc(&space, ',');
	str_add_json(&space, contract->name, strlen(contract->name));
	str_addc(&space, ']');
	char *key = space.failed ? NULL : arena_alloc(arena, UUID_TEXT_SIZE);
	if (key) {
		struct uuid inner = uuid_v5(ibid_space, space.data, space.size);
		uuid_write(uuid_v5(inner, values->data, values->size), key);
		*ret = key;
	}
	str_release(&space);
	return key ? IBID_OK : payload_no_memory(arena, err);
}

static enum ibid_code text_key(struct arena *arena, const struct contract *contract,
                               const struct str *values, const char **ret, struct ibid_err *err)
{
	if (values->size > KEY_BYTES_MAX)
		return err_set(err, IBID_INVALID,
		               "the key of %s would have %zu bytes, %d are allowed: `form: uuid` in its "
		               "contract makes keys of any values short",
		               contract->name, values->size, KEY_BYTES_MAX);
	const char *key = arena_strndup(arena, values->data, values->size);
	if (!key)
		return payload_no_memory(arena, err);
	*ret = key;
	return IBID_OK;
}

static enum ibid_code derived_key(struct arena *arena, const struct contract *contract,
                                  const char *tenant, struct json *payload, const char **ret,
                                  struct ibid_err *err)
{
	struct str values = STR_INIT(ARENA_CAP_DEFAULT);
	enum ibid_code code = add_values(&values, arena, contract, payload, err);
	if (!code && contract->key.form == KEY_FORM_UUID)
		code = uuid_key(arena, contract, tenant, &values, ret, err);
	else if (!code)
		code = text_key(arena, contract, &values, ret, err);
	str_release(&values);
	return code;
}

static enum ibid_code given_key(struct arena *arena, const struct contract *contract,
                                const char *given, const char **ret, struct ibid_err *err)
{
	if (!given)
		return err_set(
		    err, IBID_INVALID,
		    "the key is missing: the caller of %s makes one for each intent and sends it "
		    "(header Idempotency-Key, or --key)",
		    contract->name);
	enum ibid_code code = key_check(given, err);
	if (code)
		return code;
	const char *key = arena_strdup(arena, given);
	if (!key)
		return payload_no_memory(arena, err);
	*ret = key;
	return IBID_OK;
}

enum ibid_code key_of(struct arena *arena, const struct contract *contract, const char *tenant,
                      const char *given, struct json *payload, const char **ret,
                      struct ibid_err *err)
{
	const char *key = NULL;
	if (contract->key.from == KEY_HEADER)
		return given_key(arena, contract, given, ret, err);
	enum ibid_code code = derived_key(arena, contract, tenant, payload, &key, err);
	if (code)
		return code;
	assert(key);
	bool uuid = contract->key.form == KEY_FORM_UUID; /* hexadecimal digits have no case */
	if (given && (uuid ? strcasecmp(given, key) : strcmp(given, key)) != 0)
		return err_set(err, IBID_INVALID,
		               "the given key is not the one that the contract of %s makes of the payload: "
		               "leave the key out",
		               contract->name);
	*ret = key;
	return IBID_OK;
}
