/* SPDX-License-Identifier: Apache-2.0 */
/* known.c -- what a statement of a script gives, known before it runs.
 *
 * Most scripts end with `select 201 as status, 'payment' as resource_type, :command_id as
 * resource_id`, and emit by `select ibid.emit('payment', :command_id::text, 'PaymentCreated',
 * jsonb_build_object('amount', :amount))`. The server has nothing to add to constants, parameters
 * and objects of these. In a group such a statement is not sent; and where no other result has to
 * be read before rows can be written, a group is one trip.
 *
 * (K1) What is told is to the byte what the server would give: of a statement only the forms below,
 * of a parameter only values that the server would write as they were sent. All else is asked for.
 * (K2) jsonb_build_object means pg_catalog's. */
#include "base/str.h"
#include "store/postgres/postgres.h"
#include "store/script.h"

#include <assert.h>
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum {
	DEPTH_MAX = 8,
	MEMBERS_MAX = 50,     /* the server takes a hundred arguments */
	INTEGER_DIGITS = 9,   /* of a constant: then it is an int4 */
	INT8_DIGITS = 18,     /* whatever they are, they fit */
	DECIMAL_BYTES = 64,   /* more than ibid's have */
	TEXT_BYTES = 2 << 20, /* of a payload or a body */
};

enum value_kind { VALUE_TEXT, VALUE_INTEGER, VALUE_PARAM, VALUE_OBJECT };

struct value {
	enum value_kind kind;
	const char *text;      /* of a constant */
	size_t param;          /* of the script */
	enum param_type type;  /* the parameter's */
	bool as_text;          /* it is cast to text */
	struct value *members; /* of an object, in jsonb's order */
	size_t count;
	const char *name; /* of a member */
};

enum { EVENT_ARGUMENTS = 4 };

/* The columns of an answer, or the arguments of emit. */
enum answer_column { ANSWER_STATUS, ANSWER_BODY, ANSWER_TYPE, ANSWER_ID, ANSWER_COLUMNS };
static_assert((int)ANSWER_COLUMNS == (int)EVENT_ARGUMENTS, "they share an array");
static const char *const answer_names[ANSWER_COLUMNS] = {"status", "body", "resource_type",
                                                         "resource_id"};

struct pg_known {
	bool emits;
	const struct value *values[ANSWER_COLUMNS]; /* NULL: no such column */
};

/* ---- Reading a statement -------------------------------------------------------------------- */

struct reader {
	struct arena *arena;
	const char *at;
	const struct script_statement *part;
	const struct param_spec *params;
};

static void skip_blanks(struct reader *reader)
{
	reader->at += strspn(reader->at, " \t\r\n");
}

static bool take(struct reader *reader, const char *mark)
{
	size_t size = strlen(mark);
	skip_blanks(reader);
	if (strncmp(reader->at, mark, size) != 0)
		return false;
	reader->at += size;
	return true;
}

static bool in_word(char c)
{
	return isalnum((unsigned char)c) || c == '_' || c == '$' || (unsigned char)c >= 0x80;
}

static bool take_word(struct reader *reader, const char *word)
{
	size_t size = strlen(word);
	skip_blanks(reader);
	if (strncasecmp(reader->at, word, size) != 0 || in_word(reader->at[size]))
		return false;
	reader->at += size;
	return true;
}

/* A string constant; NULL: it is none. Two strings behind each other are more than one token. */
static const char *take_string(struct reader *reader)
{
	skip_blanks(reader);
	if (*reader->at != '\'')
		return NULL;
	const char *from = reader->at + 1;
	char *text = arena_strdup(reader->arena, from), *to = text;
	for (; text && *from; from++) {
		if (*from == '\'' && *++from != '\'') {
			*to = 0;
			reader->at = from;
			return text;
		}
		*to++ = *from;
	}
	return NULL;
}

static bool read_integer(struct reader *reader, struct value *ret)
{
	size_t size = strspn(reader->at, "0123456789");
	if (!size || size > INTEGER_DIGITS || (size > 1 && *reader->at == '0') ||
	    in_word(reader->at[size]) || reader->at[size] == '.')
		return false;
	*ret = (struct value){.kind = VALUE_INTEGER,
	                      .text = arena_strndup(reader->arena, reader->at, size)};
	reader->at += size;
	return true;
}

static bool is_readable(enum param_type type)
{
	return type == PARAM_TEXT || type == PARAM_UUID || type == PARAM_INTEGER ||
	       type == PARAM_DECIMAL || type == PARAM_BOOLEAN;
}

static bool read_param(struct reader *reader, struct value *ret)
{
	char *end;
	unsigned long nth = strtoul(reader->at + 1, &end, 10);
	if (!isdigit((unsigned char)reader->at[1]) || !nth || nth > reader->part->param_count)
		return false;
	size_t param = reader->part->params[nth - 1];
	*ret = (struct value){.kind = VALUE_PARAM, .param = param, .type = reader->params[param].type};
	reader->at = end;
	ret->as_text = take(reader, "::");
	if (ret->as_text && !take_word(reader, "text"))
		return false;
	return is_readable(ret->type);
}

static bool read_value(struct reader *reader, int depth, struct value *ret);

/* Shorter names first, then by their bytes. */
static int by_name(const void *a, const void *b)
{
	const char *one = ((const struct value *)a)->name, *two = ((const struct value *)b)->name;
	size_t one_size = strlen(one), two_size = strlen(two);
	if (one_size != two_size)
		return one_size < two_size ? -1 : 1;
	return memcmp(one, two, one_size);
}

static bool has_name_twice(const struct value *object)
{
	for (size_t i = 1; i < object->count; i++)
		if (strcmp(object->members[i - 1].name, object->members[i].name) == 0)
			return true;
	return false;
}

static bool read_object(struct reader *reader, int depth, struct value *ret)
{
	*ret = (struct value){.kind = VALUE_OBJECT};
	ret->members = arena_array(reader->arena, MEMBERS_MAX, sizeof *ret->members);
	if (!ret->members || !take(reader, "("))
		return false;
	do {
		const char *name = take_string(reader);
		if (!name || ret->count == MEMBERS_MAX || !take(reader, ",") ||
		    !read_value(reader, depth + 1, &ret->members[ret->count]))
			return false;
		ret->members[ret->count++].name = name;
	} while (take(reader, ","));
	qsort(ret->members, ret->count, sizeof *ret->members, by_name);
	return take(reader, ")") && !has_name_twice(ret);
}

static bool read_value(struct reader *reader, int depth, struct value *ret)
{
	skip_blanks(reader);
	if (depth > DEPTH_MAX)
		return false;
	if (*reader->at == '\'') {
		*ret = (struct value){.kind = VALUE_TEXT, .text = take_string(reader)};
		return ret->text;
	}
	if (*reader->at == '$')
		return read_param(reader, ret);
	if (take_word(reader, "jsonb_build_object"))
		return read_object(reader, depth, ret);
	return read_integer(reader, ret);
}

static struct value *next_value(struct reader *reader)
{
	struct value *value = arena_alloc(reader->arena, sizeof *value);
	return value && read_value(reader, 0, value) ? value : NULL;
}

/* Nothing stands behind it. */
static bool at_end(struct reader *reader)
{
	skip_blanks(reader);
	return !*reader->at;
}

/* ---- Emit ----------------------------------------------------------------------------------- */

static bool is_text(const struct value *value)
{
	return value->kind == VALUE_TEXT ||
	       (value->kind == VALUE_PARAM && (value->type == PARAM_TEXT || value->as_text));
}

static bool read_emit(struct reader *reader, struct pg_known *ret)
{
	ret->emits = true;
	if (!take(reader, "("))
		return false;
	for (int i = 0; i < EVENT_ARGUMENTS; i++) {
		const struct value *value = ret->values[i] = next_value(reader);
		bool last = i == EVENT_ARGUMENTS - 1;
		if (!value || !(last ? value->kind == VALUE_OBJECT : is_text(value)) ||
		    !take(reader, last ? ")" : ","))
			return false;
	}
	return at_end(reader);
}

/* ---- The answer ----------------------------------------------------------------------------- */

static bool fits(enum answer_column column, const struct value *value)
{
	switch (column) {
	case ANSWER_STATUS: return value->kind == VALUE_INTEGER;
	case ANSWER_BODY: return value->kind == VALUE_OBJECT;
	default:
		return is_text(value) || (value->kind == VALUE_PARAM &&
		                          (value->type == PARAM_UUID || value->type == PARAM_INTEGER));
	}
}

static bool read_column(struct reader *reader, struct pg_known *ret)
{
	const struct value *value = next_value(reader);
	if (!value || !take_word(reader, "as"))
		return false;
	for (int i = 0; i < ANSWER_COLUMNS; i++) {
		if (!take_word(reader, answer_names[i]))
			continue;
		bool good = !ret->values[i] && fits((enum answer_column)i, value);
		ret->values[i] = value;
		return good;
	}
	return false;
}

static bool read_answer(struct reader *reader, struct pg_known *ret)
{
	do {
		if (!read_column(reader, ret))
			return false;
	} while (take(reader, ","));
	return ret->values[ANSWER_STATUS] && at_end(reader);
}

const struct pg_known *pg_known_read(struct arena *arena, const struct script_statement *part,
                                     const struct param_spec *params)
{
	struct reader reader = {arena, part->sql, part, params};
	struct pg_known *known = arena_alloc(arena, sizeof *known);
	if (!known || !take_word(&reader, "select"))
		return NULL;
	*known = (struct pg_known){0};
	bool good = take_word(&reader, "ibid.emit") ? read_emit(&reader, known)
	                                            : read_answer(&reader, known);
	return good ? known : NULL;
}

bool pg_known_emits(const struct pg_known *known)
{
	return known->emits;
}

/* ---- Telling -------------------------------------------------------------------------------- */

static bool is_uuid(const char *text)
{
	struct uuid uuid;
	char again[UUID_TEXT_SIZE];
	if (!uuid_read(text, &uuid))
		return false;
	uuid_write(uuid, again);
	return strcmp(again, text) == 0;
}

/* As the server writes it: no leading zeros, no exponent, no negative zero. */
static bool is_number(const char *text, bool decimal)
{
	const char *at = text + (*text == '-');
	size_t whole = strspn(at, "0123456789");
	size_t after = decimal && at[whole] == '.' ? strspn(at + whole + 1, "0123456789") : 0;
	size_t size = whole + (after ? after + 1 : 0);
	if (!whole || (whole > 1 && *at == '0') || at[size] || size > DECIMAL_BYTES ||
	    (!decimal && whole > INT8_DIGITS))
		return false;
	return at == text || strpbrk(at, "123456789");
}

/* Does the server write it as it was sent? */
static bool is_plain(enum param_type type, const char *text)
{
	switch (type) {
	case PARAM_TEXT: return true;
	case PARAM_UUID: return is_uuid(text);
	case PARAM_INTEGER: return is_number(text, false);
	case PARAM_DECIMAL: return is_number(text, true);
	case PARAM_BOOLEAN: return strcmp(text, "true") == 0 || strcmp(text, "false") == 0;
	default: return false;
	}
}

static bool add_json(struct str *json, const struct value *value, const char *const *values);

static bool add_object(struct str *json, const struct value *object, const char *const *values)
{
	str_addc(json, '{');
	for (size_t i = 0; i < object->count; i++) {
		const struct value *member = &object->members[i];
		str_adds(json, i ? ", " : "");
		str_add_json(json, member->name, strlen(member->name));
		str_adds(json, ": ");
		if (!add_json(json, member, values))
			return false;
	}
	str_addc(json, '}');
	return true;
}

/* As jsonb writes it. */
static bool add_json(struct str *json, const struct value *value, const char *const *values)
{
	if (value->kind == VALUE_OBJECT)
		return add_object(json, value, values);
	const char *text = value->kind == VALUE_PARAM ? values[value->param] : value->text;
	bool quoted = is_text(value) || (value->kind == VALUE_PARAM && value->type == PARAM_UUID);
	if (!text)
		str_adds(json, "null");
	else if (value->kind == VALUE_PARAM && !is_plain(value->type, text))
		return false;
	else if (quoted)
		str_add_json(json, text, strlen(text));
	else
		str_adds(json, text);
	return true;
}

/* In the arena; SQL NULL is NULL. */
static bool tell(struct arena *arena, const struct value *value, const char *const *values,
                 const char **ret)
{
	*ret = NULL;
	if (value->kind == VALUE_OBJECT) {
		struct str json = STR_INIT(TEXT_BYTES);
		bool good = add_json(&json, value, values) && !json.failed;
		if (good)
			*ret = arena_strndup(arena, json.data, json.size);
		str_release(&json);
		return good && *ret;
	}
	const char *text = value->kind == VALUE_PARAM ? values[value->param] : value->text;
	if (!text)
		return true;
	if (value->kind == VALUE_PARAM && !is_plain(value->type, text))
		return false;
	*ret = arena_strdup(arena, text);
	return *ret;
}

bool pg_known_answer(struct arena *arena, const struct pg_known *known, const char *const *values,
                     struct outcome *ret)
{
	const char *texts[ANSWER_COLUMNS] = {NULL};
	assert(!known->emits);
	for (int i = 0; i < ANSWER_COLUMNS; i++)
		if (known->values[i] && !tell(arena, known->values[i], values, &texts[i]))
			return false;
	*ret = (struct outcome){
	    .found = true,
	    .status = atoi(texts[ANSWER_STATUS]),
	    .body = texts[ANSWER_BODY],
	    .body_size = texts[ANSWER_BODY] ? strlen(texts[ANSWER_BODY]) : 0,
	    .resource_type = texts[ANSWER_TYPE],
	    .resource_id = texts[ANSWER_ID],
	};
	return true;
}

bool pg_known_event(struct arena *arena, const struct pg_known *known, const char *const *values,
                    struct pg_told *ret)
{
	const char *texts[EVENT_ARGUMENTS];
	assert(known->emits);
	for (int i = 0; i < EVENT_ARGUMENTS; i++)
		if (!tell(arena, known->values[i], values, &texts[i]))
			return false;
	*ret = (struct pg_told){texts[0], texts[1], texts[2], texts[3]};
	return true;
}
