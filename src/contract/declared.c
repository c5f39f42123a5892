/* SPDX-License-Identifier: Apache-2.0 */
/* declared.c -- what a contract says of a success before anything runs: its answer and its events,
 * made of parameters; the rows that its script changes; and the conditions that refuse it.
 *
 * A scalar that begins with a colon is a parameter, with two colons a text that begins with one.
 * Any other scalar is a text, and `{ json: 1 }` is JSON as it stands. */
#include "base/canon.h"
#include "base/instant.h"
#include "base/json.h"
#include "contract/build.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof *(array))
#define BIT(n)       (1u << (n))
enum {
	ITEMS_MAX = 100, /* events, rules, statements */
	ROWS_MAX = 1000000,
	REASON_BYTES_MAX = 64,
	RESOURCE_BYTES_MAX = 128,
	TEMPLATE_BYTES_MAX = 256 << 10,
};

/* ---- Parameters ----------------------------------------------------------------------------- */

struct parameter {
	size_t index; /* among all values */
	enum field_type type;
	bool always; /* it is in every command */
};

static enum field_type builtin_type(enum builtin_param param)
{
	if (param == BUILTIN_payload)
		return FIELD_JSON;
	return param == BUILTIN_now ? FIELD_INSTANT : FIELD_TEXT;
}

static bool builtin_always(enum builtin_param param)
{
	return param != BUILTIN_actor && param != BUILTIN_client && param != BUILTIN_resource;
}

static bool find_parameter(const struct contract *contract, const char *name, struct parameter *ret)
{
	for (enum builtin_param i = 0; i < BUILTIN_PARAM_COUNT; i++) {
		if (strcmp(builtin_param_name(i), name) == 0) {
			*ret = (struct parameter){i, builtin_type(i), builtin_always(i)};
			return true;
		}
	}
	for (size_t i = 0; i < contract->field_count; i++) {
		const struct contract_field *field = &contract->fields[i];
		if (field->name && strcmp(field->name, name) == 0) {
			*ret = (struct parameter){BUILTIN_PARAM_COUNT + i, field->type, field->required};
			return true;
		}
	}
	return false;
}

/* Is the scalar a parameter? `*ret_text`: of a text, without the colon that escapes another. */
static bool names_parameter(const char *text, const char **ret_text)
{
	bool escaped = text[0] == ':' && text[1] == ':';
	*ret_text = text + escaped;
	return text[0] == ':' && !escaped;
}

static bool read_parameter(struct reading *reading, const char *path, const struct node *node,
                           struct parameter *ret)
{
	if (find_parameter(reading->contract, node->text + 1, ret))
		return true;
	PROBLEM_AT(reading->problems, node,
	           "%s names the parameter %s, which is neither built in nor a declared field; a text "
	           "that begins with a colon is written with two",
	           path, node->text);
	return false;
}

/* ---- Templates ------------------------------------------------------------------------------ */

struct builder {
	struct reading *reading;
	const char *path;
	struct str constant; /* since the last hole */
	struct template_piece *pieces;
	size_t count, room;
	bool bad;
};

static void add_piece(struct builder *builder, struct template_piece piece)
{
	if (builder->count == builder->room) {
		size_t room = builder->room ? 2 * builder->room : 8;
		struct template_piece *pieces = arena_array(builder->reading->arena, room, sizeof *pieces);
		if (!pieces) {
			builder->bad = true;
			return;
		}
		if (builder->count)
			memcpy(pieces, builder->pieces, builder->count * sizeof *pieces);
		builder->pieces = pieces;
		builder->room = room;
	}
	builder->pieces[builder->count++] = piece;
}

static void end_constant(struct builder *builder)
{
	struct arena *arena = builder->reading->arena;
	if (!builder->constant.size)
		return;
	add_piece(builder, (struct template_piece){.kind = PIECE_CONSTANT,
	                                           .text = arena_strndup(arena, builder->constant.data,
	                                                                 builder->constant.size)});
	str_clear(&builder->constant);
}

static void add_hole(struct builder *builder, const struct node *node)
{
	static const unsigned numbers = BIT(FIELD_INTEGER) | BIT(FIELD_DECIMAL);
	static const unsigned literal = BIT(FIELD_BOOLEAN) | BIT(FIELD_JSON);
	struct parameter parameter = {0};
	if (!read_parameter(builder->reading, builder->path, node, &parameter)) {
		builder->bad = true;
		return;
	}
	end_constant(builder);
	struct template_piece piece = {.kind = PIECE_TEXT, .param = parameter.index};
	if (BIT(parameter.type) & numbers)
		piece.kind = PIECE_NUMBER;
	else if (BIT(parameter.type) & literal)
		piece.kind = PIECE_JSON;
	add_piece(builder, piece);
}

static void add_scalar(struct builder *builder, const struct node *node)
{
	const char *text;
	if (names_parameter(node->text, &text))
		add_hole(builder, node);
	else
		str_add_json(&builder->constant, text, strlen(text));
}

/* { json: 1 } */
static void add_literal(struct builder *builder, const struct node *node)
{
	struct json *value = NULL;
	struct ibid_err err;
	if (node->type == NODE_TEXT &&
	    !json_read(builder->reading->arena, node->text, strlen(node->text), 0, &value, &err)) {
		canon_write(&builder->constant, value);
		return;
	}
	PROBLEM_AT(builder->reading->problems, node,
	           "%s: what `json` holds must be JSON, such as { json: 1 } or { json: 'null' }",
	           builder->path);
	builder->bad = true;
}

static void add_node(struct builder *builder, const struct node *node);

static void add_list(struct builder *builder, const struct node *list)
{
	str_addc(&builder->constant, '[');
	for (const struct node *child = list->child; child; child = child->next) {
		str_adds(&builder->constant, child == list->child ? "" : ",");
		add_node(builder, child);
	}
	str_addc(&builder->constant, ']');
}

static void add_map(struct builder *builder, const struct node *map)
{
	const struct node **sorted = nodes_by_name(map);
	builder->bad |= !sorted;
	str_addc(&builder->constant, '{');
	for (size_t i = 0; sorted && i < map->count; i++) {
		str_adds(&builder->constant, i ? "," : "");
		str_add_json(&builder->constant, sorted[i]->name, strlen(sorted[i]->name));
		str_addc(&builder->constant, ':');
		add_node(builder, sorted[i]);
	}
	str_addc(&builder->constant, '}');
	free(sorted);
}

static void add_node(struct builder *builder, const struct node *node)
{
	bool literal = node->type == NODE_MAP && node->count == 1 &&
	               strcmp(node->child->name, "json") == 0;
	if (literal)
		add_literal(builder, node->child);
	else if (node->type == NODE_TEXT)
		add_scalar(builder, node);
	else if (node->type == NODE_LIST)
		add_list(builder, node);
	else
		add_map(builder, node);
}

static void read_template(struct reading *reading, const struct member *member, const char *path,
                          const struct node *node, void *target)
{
	struct builder builder = {
	    .reading = reading, .path = path, .constant = STR_INIT(TEMPLATE_BYTES_MAX)};
	(void)member;
	add_node(&builder, node);
	end_constant(&builder);
	if (builder.constant.failed)
		PROBLEM_AT(reading->problems, node, "%s is longer than %d bytes", path, TEMPLATE_BYTES_MAX);
	else if (!builder.bad)
		*(struct template *)target = (struct template){builder.pieces, builder.count};
	str_release(&builder.constant);
}

const struct member_type type_template = {
    "JSON as YAML; \":name\" is a parameter, { json: 1 } is no text", read_template};

/* ---- One text ------------------------------------------------------------------------------- */

/* A text, or a parameter of these types that every command has. */
static bool read_value_of(struct reading *reading, const char *path, const struct node *node,
                          unsigned types, struct contract_value *ret)
{
	struct parameter parameter = {0};
	const char *text = member_text(reading, NULL, path, node);
	if (!text)
		return false;
	if (!names_parameter(text, &text)) {
		*ret = (struct contract_value){.text = text, .given = true};
		return true;
	}
	if (!read_parameter(reading, path, node, &parameter))
		return false;
	if (!parameter.always || !(types & BIT(parameter.type))) {
		PROBLEM_AT(reading->problems, node, "%s is %s, which is %s", path, text,
		           parameter.always ? "of another type" : "not in every command: require it");
		return false;
	}
	*ret = (struct contract_value){.param = parameter.index, .given = true};
	return true;
}

static void read_value(struct reading *reading, const struct member *member, const char *path,
                       const struct node *node, void *target)
{
	(void)member;
	(void)read_value_of(reading, path, node, ~(BIT(FIELD_JSON) | BIT(FIELD_BOOLEAN)), target);
}

static const struct member_type type_value = {"a text, or a parameter such as \":command_id\"",
                                              read_value};

static void read_version(struct reading *reading, const struct member *member, const char *path,
                         const struct node *node, void *target)
{
	static const char digits[] = "0123456789";
	struct contract_value value = {0};
	(void)member;
	if (!read_value_of(reading, path, node, BIT(FIELD_INTEGER), &value))
		return;
	if (value.text && !text_matches(value.text, digits + 1, digits, 18))
		PROBLEM_AT(
		    reading->problems, node,
		    "%s is `%s`: it must be a whole number above 0, or a parameter that is an integer",
		    path, value.text);
	else
		*(struct contract_value *)target = value;
}

static const struct member_type type_version = {"a whole number, or a parameter that is an integer",
                                                read_version};

/* ---- answer.resource ------------------------------------------------------------------------ */

static void read_resource(struct reading *reading, const struct member *member, const char *path,
                          const struct node *node, void *target)
{
	struct contract_answer *answer = target;
	const char *type = node->type == NODE_LIST && node->count == 2
	                       ? member_text(reading, member, path, node->child)
	                       : NULL;
	if (!type || type[0] == ':' || strlen(type) > RESOURCE_BYTES_MAX) {
		PROBLEM_AT(reading->problems, node,
		           "%s must be a type and an id, such as [payment, \":command_id\"]", path);
		return;
	}
	answer->resource_type = type;
	read_value(reading, member, path, node->child->next, &answer->resource_id);
}

const struct member_type type_resource = {"a type and an id such as [payment, \":command_id\"]",
                                          read_resource};

/* ---- emits ---------------------------------------------------------------------------------- */

#define AT(member) offsetof(struct contract_emit, member)
/* clang-format off */
static const struct member emit_members[] = {
	{"aggregate_type", &type_text, AT(aggregate_type), 0,
	 "What kind of thing does it happen to?", "that of the event's contract when left out"},
	{"aggregate_id", &type_value, AT(aggregate_id), MEMBER_REQUIRED,
	 "To which of them does it happen?"},
	{"payload", &type_template, AT(payload), MEMBER_REQUIRED,
	 "What does the event say?"},
	{"version", &type_version, AT(version), 0,
	 "Which version of its aggregate is it?", "the next one when left out"},
	{"key", &type_value, AT(key), 0,
	 "Under which key is it told once?", "the command's id and its place when left out"},
};
/* clang-format on */
#undef AT
const struct form emit_form = {NULL, "an event that is declared", emit_members,
                               COUNT(emit_members)};

/* Each type once, however many events of it are declared. */
static void add_type(struct contract *contract, const char *type)
{
	for (size_t i = 0; i < contract->emits.count; i++)
		if (strcmp(contract->emits.items[i], type) == 0)
			return;
	contract->emits.items[contract->emits.count++] = type;
}

static bool check_type(struct reading *reading, const char *path, const struct node *node,
                       const char *type)
{
	if (type && event_type_ok(type))
		return true;
	if (type)
		PROBLEM_AT(reading->problems, node,
		           "%s: `%s` is not an event type: a letter, then letters, digits, `.`, `_`, `-`",
		           path, type);
	return false;
}

static void read_event(struct reading *reading, const struct node *node, struct contract *contract)
{
	char prefix[YAML_NAME_BYTES_MAX + 16];
	const struct node *body = node->child;
	if (node->count != 1 || body->type != NODE_MAP) {
		PROBLEM_AT(reading->problems, node,
		           "an item of emits must be an event type, or one with how it is made, such as "
		           "{ PaymentCreated: { aggregate_id: \":command_id\", payload: { ... } } }");
		return;
	}
	if (!check_type(reading, "emits", body, body->name))
		return;
	struct contract_emit *emit = &contract->events[contract->event_count++];
	*emit = (struct contract_emit){.type = body->name};
	snprintf(prefix, sizeof prefix, "emits.%s.", body->name);
	form_read(reading, &emit_form, prefix, body, emit);
	add_type(contract, body->name);
}

static void read_emits(struct reading *reading, const struct member *member, const char *path,
                       const struct node *node, void *target)
{
	struct contract *contract = target;
	struct texts names = {0};
	size_t declared = 0;
	for (const struct node *child = node->child; child; child = child->next)
		declared += child->type == NODE_MAP;
	if (node->type != NODE_LIST || !declared) {
		if (!member_texts(reading, member, path, node, &names))
			return;
		for (size_t i = 0; i < names.count; i++)
			(void)check_type(reading, path, node, names.items[i]);
		contract->emits = names;
		return;
	}
	if (declared != node->count || declared > ITEMS_MAX) {
		PROBLEM_AT(reading->problems, node,
		           declared > ITEMS_MAX
		               ? "%s declares more than 100 events"
		               : "%s declares how some events are made and only names others: either the "
		                 "contract makes all events of its command, or the handler does",
		           path);
		return;
	}
	contract->events = arena_array(reading->arena, declared, sizeof *contract->events);
	contract->emits.items = arena_array(reading->arena, declared, sizeof *contract->emits.items);
	for (const struct node *child = node->child; contract->emits.items && child;
	     child = child->next)
		read_event(reading, child, contract);
}

const struct member_type type_emits = {
    "a list of event types, or of { TYPE: { aggregate_id, payload } }, may be empty", read_emits};

/* ---- reject --------------------------------------------------------------------------------- */

static const char *const relation_names[] = {
    [RELATION_EQUALS] = "equals", [RELATION_NOT_EQUALS] = "not_equals",
    [RELATION_BELOW] = "below",   [RELATION_AT_MOST] = "at_most",
    [RELATION_ABOVE] = "above",   [RELATION_AT_LEAST] = "at_least",
};

static bool relation_read(const char *text, enum relation *ret)
{
	for (size_t i = 0; i < COUNT(relation_names); i++) {
		if (strcmp(relation_names[i], text) == 0) {
			*ret = (enum relation)i;
			return true;
		}
	}
	return false;
}

static const struct contract_field *read_side(struct reading *reading, const struct node *node,
                                              struct contract_value *ret)
{
	const struct contract *contract = reading->contract;
	const struct contract_field *field = contract_field_at(contract, node->text);
	if (!field)
		PROBLEM_AT(reading->problems, node, "reject.when names %s, which is not a declared field",
		           node->text);
	else
		*ret = (struct contract_value){
		    .param = BUILTIN_PARAM_COUNT + (size_t)(field - contract->fields), .given = true};
	return field;
}

/* A constant that fields_check could have let through as a value of this type. */
static bool constant_fits(enum field_type type, const char *text)
{
	struct decimal number;
	struct ibid_err err;
	size_t size = strlen(text);
	switch (type) {
	case FIELD_TEXT: return true;
	case FIELD_INTEGER:
	case FIELD_DECIMAL:
		return !decimal_read(text, size, &number, &err) &&
		       (type == FIELD_DECIMAL || number.scale == 0);
	case FIELD_BOOLEAN: return strcmp(text, "true") == 0 || strcmp(text, "false") == 0;
	case FIELD_DATE: return date_ok(text, size);
	default: return false;
	}
}

static bool read_constant(struct reading *reading, const struct node *node,
                          const struct contract_field *field, struct contract_value *ret)
{
	struct str utc = STR_INIT(256);
	const char *text = node->text;
	bool instant = field->type == FIELD_INSTANT && instant_canonical(text, strlen(text), &utc);
	if (instant)
		text = arena_strdup(reading->arena, str_text(&utc));
	str_release(&utc);
	*ret = (struct contract_value){.text = text, .given = true};
	if (instant || constant_fits(field->type, text))
		return true;
	PROBLEM_AT(reading->problems, node, "reject.when compares %s, which is %s, with `%s`",
	           field->pointer, field_type_name(field->type), text);
	return false;
}

/* Two numbers, or two of one type that has an order, or equality at least. */
static bool comparable(const struct contract_field *left, const struct contract_field *right,
                       enum relation relation)
{
	static const unsigned numbers = BIT(FIELD_INTEGER) | BIT(FIELD_DECIMAL);
	bool both = BIT(left->type) & BIT(right->type);
	bool both_numbers = (BIT(left->type) & numbers) && (BIT(right->type) & numbers);
	bool ordered = (BIT(left->type) & (numbers | BIT(FIELD_DATE) | BIT(FIELD_INSTANT))) != 0;
	return (both || both_numbers) && left->type != FIELD_JSON &&
	       (ordered || relation <= RELATION_NOT_EQUALS);
}

static void read_when(struct reading *reading, const struct member *member, const char *path,
                      const struct node *node, void *target)
{
	struct contract_reject *reject = target;
	const struct node *items[3] = {NULL};
	size_t count = 0;
	(void)member;
	for (const struct node *child = node->type == NODE_LIST ? node->child : NULL; child;
	     child = child->next, count++)
		if (count < COUNT(items) && child->type == NODE_TEXT)
			items[count] = child;
	if (count != COUNT(items) || !items[0] || !items[1] || !items[2] ||
	    !relation_read(items[1]->text, &reject->relation)) {
		PROBLEM_AT(
		    reading->problems, node,
		    "%s must be a field, how it compares (equals, not_equals, below, at_most, above, "
		    "at_least), and a field or a constant, such as [/from, equals, /to]",
		    path);
		return;
	}
	const struct contract_field *left = read_side(reading, items[0], &reject->left), *right = left;
	if (!left)
		return;
	reject->type = left->type;
	if (items[2]->text[0] == '/')
		right = read_side(reading, items[2], &reject->right);
	else if (left->type != FIELD_JSON && !read_constant(reading, items[2], left, &reject->right))
		return;
	if (right && !comparable(left, right, reject->relation))
		PROBLEM_AT(reading->problems, node, "%s can't say whether %s %s %s: they are %s and %s",
		           path, items[0]->text, items[1]->text, items[2]->text,
		           field_type_name(left->type), field_type_name(right->type));
}

static const struct member_type type_when = {"a field, how it compares (equals, not_equals, below, "
                                             "at_most, above, at_least), and a field or "
                                             "a constant",
                                             read_when};

static void read_reason(struct reading *reading, const struct member *member, const char *path,
                        const struct node *node, void *target)
{
	static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_";
	const char *text = member_text(reading, member, path, node);
	if (text && !text_matches(text, letters, letters, REASON_BYTES_MAX))
		PROBLEM_AT(reading->problems, node,
		           "%s is `%s`: a code is letters A-Z, digits and _, such as SAME_ACCOUNT", path,
		           text);
	else if (text)
		*(const char **)target = text;
}

static const struct member_type type_reason = {"letters A-Z, digits and _ such as SAME_ACCOUNT",
                                               read_reason};

#define AT(member) offsetof(struct contract_reject, member)
/* clang-format off */
static const struct member reject_members[] = {
	{"when", &type_when, 0, MEMBER_REQUIRED,
	 "Under which condition?", "one that is absent meets none"},
	{"class", &type_choice, AT(class), MEMBER_REQUIRED,
	 "Is the payload invalid, or does a rule of the business forbid it?",
	 .choices = (const char *const[]){"validation", "business", NULL}},
	{"code", &type_reason, AT(code), MEMBER_REQUIRED,
	 "By which code does a program know it?"},
	{"status", &type_int, AT(status), MEMBER_REQUIRED,
	 "With which status is it answered?", "400 to 499", .min = 400, .max = 499},
	{"text", &type_text, AT(text), MEMBER_REQUIRED,
	 "What is a person told?"},
};
/* clang-format on */
#undef AT
const struct form reject_form = {NULL, "a rule that rejects", reject_members,
                                 COUNT(reject_members)};

static void read_rejects(struct reading *reading, const struct member *member, const char *path,
                         const struct node *node, void *target)
{
	struct contract *contract = target;
	(void)member;
	if (node->type != NODE_LIST || node->count > ITEMS_MAX) {
		PROBLEM_AT(reading->problems, node, "%s must be a list of at most %d rules", path,
		           ITEMS_MAX);
		return;
	}
	contract->rejects = arena_array(reading->arena, node->count, sizeof *contract->rejects);
	for (const struct node *child = node->child; contract->rejects && child; child = child->next) {
		struct contract_reject *reject = &contract->rejects[contract->reject_count];
		*reject = (struct contract_reject){0};
		if (child->type != NODE_MAP) {
			PROBLEM_AT(reading->problems, child,
			           "an item of reject must be a mapping: when, class, code, status and text");
			continue;
		}
		contract->reject_count++;
		form_read(reading, &reject_form, "reject.", child, reject);
	}
}

const struct member_type type_rejects = {"a list of rules: when, class, code, status and text",
                                         read_rejects};

/* ---- handler.rows --------------------------------------------------------------------------- */

static bool read_row_count(const char *text, int64_t *ret)
{
	static const char digits[] = "0123456789";
	if (strcmp(text, "any") == 0) {
		*ret = ROWS_ANY;
		return true;
	}
	bool whole = text_matches(text, digits, digits, 7) && (text[0] != '0' || !text[1]);
	*ret = whole ? strtoll(text, NULL, 10) : 0;
	return whole && *ret <= ROWS_MAX;
}

static void read_rows(struct reading *reading, const struct member *member, const char *path,
                      const struct node *node, void *target)
{
	struct contract_rows rows = {0};
	bool good = node->type == NODE_LIST && node->count > 0 && node->count <= ITEMS_MAX;
	(void)member;
	rows.items = arena_array(reading->arena, good ? node->count : 1, sizeof *rows.items);
	for (const struct node *child = good ? node->child : NULL; rows.items && good && child;
	     child = child->next)
		good = child->type == NODE_TEXT && read_row_count(child->text, &rows.items[rows.count++]);
	if (good)
		*(struct contract_rows *)target = rows;
	else
		PROBLEM_AT(reading->problems, node,
		           "%s must be a list with a number of rows, or any, for each statement of the "
		           "script, such as [1, any]",
		           path);
}

const struct member_type type_rows = {
    "a list with a number or any for each statement, such as [1, any]", read_rows};

/* ---- Together ------------------------------------------------------------------------------- */

struct check {
	struct reading *reading;
	const struct contract *contract;
	const struct node *root;
};

static const struct node *at(const struct check *check, const char *path)
{
	const struct node *node = form_find(check->root, path);
	return node ? node : check->root;
}

/* A callback and a service answer and tell by themselves, and check what they want. */
static void only_scripts_leave_it_to_the_contract(const struct check *check)
{
	static const char *const paths[] = {"answer.status", "reject"};
	if (check->contract->script || !form_find(check->root, "handler"))
		return;
	for (size_t i = 0; i < COUNT(paths); i++)
		if (form_find(check->root, paths[i]))
			PROBLEM_AT(check->reading->problems, at(check, paths[i]),
			           "%s is for `handler: { sql: FILE }`: any other handler does that itself",
			           paths[i]);
	if (check->contract->events)
		PROBLEM_AT(
		    check->reading->problems, at(check, "emits"),
		    "emits says how events are made, which is for `handler: { sql: FILE }`: any other "
		    "handler makes them itself, and emits names their types");
}

static void an_answer_has_a_status(const struct check *check)
{
	static const char *const paths[] = {"answer.body", "answer.resource"};
	for (size_t i = 0; i < COUNT(paths) && !form_find(check->root, "answer.status"); i++)
		if (form_find(check->root, paths[i]))
			PROBLEM_AT(check->reading->problems, at(check, paths[i]),
			           "%s is given, but no answer.status: a declared answer needs one", paths[i]);
}

void command_check_declared(struct reading *reading, const struct contract *contract,
                            const struct node *root)
{
	struct check check = {reading, contract, root};
	only_scripts_leave_it_to_the_contract(&check);
	an_answer_has_a_status(&check);
}
