/* SPDX-License-Identifier: Apache-2.0 */
/* fields.c -- the declared members of a payload, checked and turned into exact texts.
 *
 * One pass finds every problem (ten at most), so that a caller can correct them all at once. A
 * message has the pointer and the rule, never the value, which may be a secret. Nothing is
 * converted through a double. */
#include "base/canon.h"
#include "base/instant.h"
#include "base/number.h"
#include "base/str.h"
#include "base/utf8.h"
#include "contract/payload.h"

#include <stdint.h>
#include <string.h>

enum { PROBLEMS_MAX = 10, PROBLEMS_BYTES_MAX = 1 << 20, NAME_SHOWN_MAX = 60 };

struct check {
	struct arena *arena;
	const struct contract *contract;
	struct str why; /* "pointer rule; pointer rule" */
	size_t problems;
	bool failed; /* out of memory */
};

/* ---- Problems ------------------------------------------------------------------------------- */

/* How every rule begins: where a pointer ends that may hold blanks. */
static const char *const rule_starts[] = {
    " is missing", " is not a declared field", " is longer than ", " is beyond the range ",
    " must be ",   " must not contain ",       " has more than ",
};
static const char whole[] = "the payload", between[] = "; ", between_pointers[] = "; /";

/* The first place in `text` where a rule begins; NULL: none. */
static const char *rule_start(const char *text)
{
	const char *first = NULL;
	for (size_t i = 0; i < sizeof rule_starts / sizeof *rule_starts; i++) {
		const char *at = strstr(text, rule_starts[i]);
		if (at && (!first || at < first))
			first = at;
	}
	return first;
}

/* Append with every `byte` escaped, so that the text can be parsed again. */
static void add_escaped(struct str *out, const char *text, char byte)
{
	for (; *text; text++)
		if (*text == byte)
			str_addf(out, "\\u%04x", (unsigned)(unsigned char)byte);
		else
			str_addc(out, *text);
}

/* Names with blanks are as they are, unless they read like a rule. */
static void add_pointer(struct check *check, const char *pointer)
{
	const char *seen = strchr(pointer, ' ') ? arena_printf(check->arena, "%s ", pointer) : "";
	if (seen && (rule_start(seen) || strstr(seen, between_pointers)))
		add_escaped(&check->why, pointer, ' ');
	else
		str_adds(&check->why, *pointer ? pointer : whole);
}

/* `rule` may be NULL: what arena_printf returned. */
static void problem(struct check *check, const char *pointer, const char *rule)
{
	if (check->problems == PROBLEMS_MAX)
		return;
	if (check->problems++)
		str_adds(&check->why, between);
	add_pointer(check, pointer);
	str_addc(&check->why, ' ');
	if (rule && strstr(rule, between_pointers))
		add_escaped(&check->why, rule, ';');
	else
		str_adds(&check->why, rule ? rule : "");
}

bool fields_problem_next(const char **at, struct field_problem *ret)
{
	const char *text = *at;
	bool all = strncmp(text, whole, sizeof whole - 1) == 0;
	const char *rule = *text == '/' || all ? rule_start(text) : NULL;
	const char *end = rule ? strstr(rule, between_pointers) : NULL;
	if (!rule || (all && rule != text + sizeof whole - 1))
		return false;
	if (!end)
		end = rule + strlen(rule);
	*ret = (struct field_problem){
	    .pointer = text,
	    .pointer_size = all ? 0 : (size_t)(rule - text),
	    .rule = rule + 1,
	    .rule_size = (size_t)(end - (rule + 1)),
	};
	*at = *end ? end + sizeof between - 1 : end;
	return true;
}

static void problem_bound(struct check *check, const struct contract_field *field,
                          const char *relation, struct decimal bound)
{
	char text[DECIMAL_TEXT_MAX];
	decimal_write(bound, text);
	problem(check, field->pointer, arena_printf(check->arena, "must be %s %s", relation, text));
}

/* ---- Types ---------------------------------------------------------------------------------- */

static void set_text(struct check *check, struct param *param, const char *text, size_t size)
{
	param->text = arena_strndup(check->arena, text, size);
	param->size = size;
}

static size_t characters(const char *text, size_t size)
{
	size_t count = 0;
	for (size_t i = 0; i < size; i++)
		count += ((unsigned char)text[i] & 0xC0) != 0x80;
	return count;
}

static bool is_one_of(const struct texts *allowed, const struct json *value)
{
	for (size_t i = 0; i < allowed->count; i++)
		if (strlen(allowed->items[i]) == value->size &&
		    memcmp(allowed->items[i], value->text, value->size) == 0)
			return true;
	return false;
}

static void problem_one_of(struct check *check, const struct contract_field *field)
{
	struct str rule = STR_INIT(PROBLEMS_BYTES_MAX);
	str_adds(&rule, "must be one of ");
	for (size_t i = 0; i < field->one_of.count; i++) {
		str_adds(&rule, i ? ", " : "");
		str_adds(&rule, field->one_of.items[i]);
	}
	problem(check, field->pointer, str_text(&rule));
	str_release(&rule);
}

static void check_text(struct check *check, const struct json *value, struct param *param)
{
	const struct contract_field *field = param->field;
	if (value->type != JSON_STRING)
		problem(check, field->pointer, "must be a text");
	else if (memchr(value->text, '\0', value->size))
		problem(check, field->pointer, "must not contain U+0000");
	else if (field->max && characters(value->text, value->size) > field->max)
		problem(check, field->pointer,
		        arena_printf(check->arena, "is longer than %zu characters", field->max));
	else if (field->one_of.count && !is_one_of(&field->one_of, value))
		problem_one_of(check, field);
	else
		set_text(check, param, value->text, value->size);
}

static bool within_bounds(struct check *check, const struct contract_field *field,
                          struct decimal value)
{
	if (field->above && decimal_cmp(value, *field->above) <= 0)
		problem_bound(check, field, "above", *field->above);
	else if (field->at_least && decimal_cmp(value, *field->at_least) < 0)
		problem_bound(check, field, "at least", *field->at_least);
	else if (field->below && decimal_cmp(value, *field->below) >= 0)
		problem_bound(check, field, "below", *field->below);
	else if (field->at_most && decimal_cmp(value, *field->at_most) > 0)
		problem_bound(check, field, "at most", *field->at_most);
	else
		return true;
	return false;
}

static void set_decimal(struct check *check, struct param *param, struct decimal value)
{
	char text[DECIMAL_TEXT_MAX];
	size_t size = decimal_write(value, text);
	set_text(check, param, text, size);
}

/* Digits after the point, without trailing zeros. */
static int64_t scale_of(const struct json *number)
{
	struct number parts = number_split(number->text, number->size);
	int64_t digits = (int64_t)(parts.whole_size + parts.rest_size);
	return digits > parts.point ? digits - parts.point : 0;
}

static void check_integer(struct check *check, const struct json *value, struct param *param)
{
	const struct contract_field *field = param->field;
	struct decimal exact;
	if (value->type != JSON_NUMBER || scale_of(value) > 0)
		problem(check, field->pointer, "must be an integer");
	else if (decimal_read(value->text, value->size, &exact, NULL) || exact.units < INT64_MIN ||
	         exact.units > INT64_MAX)
		problem(check, field->pointer, "is beyond the range of 64-bit integers");
	else if (within_bounds(check, field, exact))
		set_decimal(check, param, exact);
}

static void check_decimal(struct check *check, const struct json *value, struct param *param)
{
	const struct contract_field *field = param->field;
	int scale = field->scale < 0 ? DECIMAL_SCALE_MAX : field->scale;
	struct decimal exact;
	if (value->type != JSON_NUMBER)
		problem(check, field->pointer, "must be a number");
	else if (scale_of(value) > scale)
		problem(check, field->pointer,
		        arena_printf(check->arena, "has more than %d digits after the point", scale));
	else if (decimal_read(value->text, value->size, &exact, NULL))
		problem(check, field->pointer,
		        arena_printf(check->arena, "has more than %d digits", DECIMAL_DIGITS_MAX));
	else if (within_bounds(check, field, exact))
		set_decimal(check, param, exact);
}

static void check_boolean(struct check *check, const struct json *value, struct param *param)
{
	if (value->type == JSON_TRUE)
		set_text(check, param, "true", 4);
	else if (value->type == JSON_FALSE)
		set_text(check, param, "false", 5);
	else
		problem(check, param->field->pointer, "must be true or false");
}

/* PostgreSQL has no year 0, so that a handler could not be given it. */
static bool in_year_0(const char *date)
{
	return strncmp(date, "0000", 4) == 0;
}

static void check_date(struct check *check, const struct json *value, struct param *param)
{
	if (value->type == JSON_STRING && date_ok(value->text, value->size) && !in_year_0(value->text))
		set_text(check, param, value->text, value->size);
	else
		problem(check, param->field->pointer, "must be a date (YYYY-MM-DD)");
}

static void check_instant(struct check *check, const struct json *value, struct param *param)
{
	struct str utc = STR_INIT(value->size + INSTANT_TEXT_SIZE);
	if (value->type == JSON_STRING && instant_canonical(value->text, value->size, &utc) &&
	    !in_year_0(str_text(&utc)))
		set_text(check, param, str_text(&utc), utc.size);
	else
		problem(check, param->field->pointer, "must be a date and time with a zone (RFC 3339)");
	check->failed = check->failed || utc.failed;
	str_release(&utc);
}

static bool holds_nul(const struct json *value)
{
	if (value->name && memchr(value->name, '\0', value->name_size))
		return true;
	if (value->type == JSON_STRING)
		return memchr(value->text, '\0', value->size) != NULL;
	for (const struct json *child = value->child; child; child = child->next)
		if (holds_nul(child))
			return true;
	return false;
}

static void check_json(struct check *check, const struct json *value, struct param *param)
{
	struct str text = STR_INIT(ARENA_CAP_DEFAULT);
	if (holds_nul(value)) /* jsonb refuses the escape too */
		problem(check, param->field->pointer, "must not contain U+0000");
	else
		canon_write(&text, value);
	if (text.size && !text.failed)
		set_text(check, param, text.data, text.size);
	check->failed = check->failed || text.failed;
	str_release(&text);
}

typedef void check_fn(struct check *check, const struct json *value, struct param *param);

static check_fn *const checks[] = {
    [FIELD_TEXT] = check_text,       [FIELD_INTEGER] = check_integer,
    [FIELD_DECIMAL] = check_decimal, [FIELD_BOOLEAN] = check_boolean,
    [FIELD_DATE] = check_date,       [FIELD_INSTANT] = check_instant,
    [FIELD_JSON] = check_json,
};

static void check_field(struct check *check, struct json *payload, struct param *param)
{
	const struct json *value = json_at(payload, param->field->pointer);
	if (value && value->type != JSON_NULL)
		checks[param->field->type](check, value, param);
	else if (param->field->required)
		problem(check, param->field->pointer, "is missing");
}

/* ---- Undeclared members --------------------------------------------------------------------- */

enum standing { UNKNOWN, ABOVE_DECLARED, DECLARED };

static enum standing standing_of(const struct contract *contract, const struct str *path)
{
	enum standing standing = UNKNOWN;
	for (size_t i = 0; i < contract->field_count; i++) {
		const char *pointer = contract->fields[i].pointer;
		size_t size = strlen(pointer);
		if (size < path->size || memcmp(pointer, str_text(path), path->size) != 0)
			continue;
		if (size == path->size)
			return DECLARED;
		if (pointer[path->size] == '/')
			standing = ABOVE_DECLARED;
	}
	return standing;
}

/* Append the segment that leads to the child; with `shown`, cut and escaped for people. */
static void add_segment(struct str *path, const struct json *child, size_t index, bool shown)
{
	str_addc(path, '/');
	if (!child->name) {
		str_addf(path, "%zu", index);
		return;
	}
	size_t size = shown ? utf8_fit(child->name, child->name_size, NAME_SHOWN_MAX)
	                    : child->name_size;
	for (size_t i = 0; i < size; i++) {
		unsigned char byte = (unsigned char)child->name[i];
		if (byte == '~' || byte == '/')
			str_adds(path, byte == '~' ? "~0" : "~1");
		else if (shown && (byte < 0x20 || byte == 0x7F))
			str_addf(path, "\\u%04x", byte);
		else
			str_addc(path, (char)byte);
	}
	if (size < child->name_size)
		str_adds(path, "...");
}

static void problem_unknown(struct check *check, const struct str *parent, const struct json *child,
                            size_t index)
{
	struct str pointer = STR_INIT(parent->size + 8 * NAME_SHOWN_MAX);
	str_add(&pointer, str_text(parent), parent->size);
	add_segment(&pointer, child, index, true);
	problem(check, str_text(&pointer), "is not a declared field");
	check->failed = check->failed || pointer.failed;
	str_release(&pointer);
}

static bool is_container(const struct json *value)
{
	return value->type == JSON_OBJECT || value->type == JSON_ARRAY;
}

/* `path` leads to `value`, which is ABOVE_DECLARED: so `path` is not longer than a declared
 * pointer, whatever the payload holds. */
static void refuse_unknown(struct check *check, const struct json *value, struct str *path)
{
	size_t size = path->size, index = 0;
	for (const struct json *child = value->child; child; child = child->next, index++) {
		if (check->problems == PROBLEMS_MAX)
			return;
		add_segment(path, child, index, false);
		enum standing standing = standing_of(check->contract, path);
		if (standing == ABOVE_DECLARED && is_container(child))
			refuse_unknown(check, child, path);
		else if (standing == ABOVE_DECLARED && child->type != JSON_NULL)
			problem(check, str_text(path), "must be an object");
		path->size = size;
		if (standing == UNKNOWN)
			problem_unknown(check, path, child, index);
	}
}

static void check_unknown(struct check *check, const struct json *payload)
{
	struct str path = STR_INIT(ARENA_CAP_DEFAULT);
	if (standing_of(check->contract, &path) != DECLARED)
		refuse_unknown(check, payload, &path);
	check->failed = check->failed || path.failed;
	str_release(&path);
}

/* ---- The whole ------------------------------------------------------------------------------ */

static enum ibid_code finish(struct check *check, const struct params *params, struct params *ret,
                             const char **ret_why, struct ibid_err *err)
{
	const char *why = NULL;
	if (check->problems && !check->why.failed)
		why = arena_strndup(check->arena, check->why.data, check->why.size);
	if (check->failed || check->why.failed || check->arena->failed)
		return payload_no_memory(check->arena, err);
	if (check->problems) {
		*ret_why = why;
		return err_set(err, IBID_REJECTED, "%s", why);
	}
	*ret = *params;
	return IBID_OK;
}

enum ibid_code fields_check(struct arena *arena, const struct contract *contract,
                            struct json *payload, struct params *ret, const char **ret_why,
                            struct ibid_err *err)
{
	struct check check = {.arena = arena, .contract = contract};
	struct params params = {.count = contract->field_count};
	check.why = STR_INIT(PROBLEMS_BYTES_MAX);
	params.items = arena_array(arena, params.count, sizeof *params.items);
	if (payload->type != JSON_OBJECT) {
		problem(&check, "", "must be a JSON object");
	} else if (params.items) {
		for (size_t i = 0; i < params.count; i++) {
			params.items[i].field = &contract->fields[i];
			check_field(&check, payload, &params.items[i]);
		}
		if (contract->refuse_unknown_fields)
			check_unknown(&check, payload);
	}
	enum ibid_code code = finish(&check, &params, ret, ret_why, err);
	str_release(&check.why);
	return code;
}
