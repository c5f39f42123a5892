/* SPDX-License-Identifier: Apache-2.0 */
/* rules.c -- answers that are well-formed but contradict each other.
 *
 * Each rule checks for one contradiction and says why it is one. A member that could not be read is
 * zero and was reported already: rules ignore it. */
#include "contract/build.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof *(array))
#define BIT(n)       (1u << (n))

struct check {
	struct reading *reading;
	const struct contract *contract;
	const struct node *root;
};

/* The answer's place in the file, for the problem's line. */
static const struct node *at(const struct check *check, const char *path)
{
	const struct node *node = form_find(check->root, path);
	return node ? node : check->root;
}

#define REFUSE(check, path, ...)                                                                   \
	PROBLEM_AT((check)->reading->problems, at((check), (path)), __VA_ARGS__)

/* ---- Keys that identify no intent ----------------------------------------------------------- */

/* Names are compared in lower case without separators. */
struct weak_part {
	const char *reason;
	const char *names[20];
	const char *endings[8]; /* of camelCase and snake_case names, as written */
	unsigned types;         /* field types that are of this sort whatever the name */
};

static const struct weak_part weak_parts[] = {
    {"a timestamp alone is not an intent: two legitimate commands may share it and a retry has "
     "another",
     {"timestamp", "time", "date", "datetime", "now", "ts"},
     {"At", "_at", "Time", "_time", "Timestamp", "_timestamp", "Date", "_date"},
     BIT(FIELD_DATE) | BIT(FIELD_INSTANT)},
    {"a user alone is not an intent: the same user may want two things",
     {"user", "userid", "username", "actor", "actorid", "login", "loginname", "requester",
      "requesterid", "createdby", "requestedby", "submittedby"},
     {0},
     0},
    {"an offset alone is not an intent: it is a place in one log, and the same message sent again "
     "has another",
     {"offset", "messageoffset", "brokeroffset", "kafkaoffset", "partition", "position"},
     {"Offset", "_offset"},
     0},
    {"a session alone is not an intent: one session sends many commands, and a retry may come from "
     "the next",
     {"session", "sessionid", "sid", "connection", "connectionid"},
     {0},
     0},
    {"a hash of the body alone is not an intent: two legitimate commands may say the same, and a "
     "key that changes with the body finds no conflict",
     {"hash", "payloadhash", "bodyhash", "requesthash", "contenthash", "rowhash", "sha1", "sha256",
      "sha512", "md5", "digest", "checksum", "fingerprint"},
     {"Hash", "_hash", "Digest", "_digest", "Checksum", "_checksum", "Fingerprint", "_fingerprint"},
     0},
};

static bool name_listed(const struct weak_part *part, const char *name)
{
	char plain[64];
	size_t size = 0;
	for (; *name && size + 1 < sizeof plain; name++)
		if (*name != '_' && *name != '-')
			plain[size++] = (char)tolower((unsigned char)*name);
	plain[size] = '\0';
	for (size_t i = 0; i < COUNT(part->names) && part->names[i]; i++)
		if (strcmp(part->names[i], plain) == 0)
			return true;
	return false;
}

static bool name_ends(const struct weak_part *part, const char *name)
{
	size_t size = strlen(name);
	for (size_t i = 0; i < COUNT(part->endings) && part->endings[i]; i++) {
		size_t ending = strlen(part->endings[i]);
		if (size > ending && strcmp(name + size - ending, part->endings[i]) == 0)
			return true;
	}
	return false;
}

static const struct weak_part *weak_part_of(const struct contract *contract, const char *pointer)
{
	const struct contract_field *field = contract_field_at(contract, pointer);
	const char *name = strrchr(pointer, '/') + 1;
	for (size_t i = 0; i < COUNT(weak_parts); i++)
		if (name_listed(&weak_parts[i], name) || name_ends(&weak_parts[i], name) ||
		    (field && (weak_parts[i].types & BIT(field->type))))
			return &weak_parts[i];
	return NULL;
}

static void key_identifies_an_intent(const struct check *check)
{
	const struct texts *fields = &check->contract->key.fields;
	bool named[COUNT(weak_parts)] = {false};
	struct str reasons = STR_INIT(2048);
	for (size_t i = 0; i < fields->count; i++) {
		const struct weak_part *part = weak_part_of(check->contract, fields->items[i]);
		if (!part)
			goto out; /* one good part is enough */
		if (!named[part - weak_parts])
			str_addf(&reasons, "%s%s", reasons.size ? "; " : "", part->reason);
		named[part - weak_parts] = true;
	}
	if (fields->count)
		REFUSE(check, "key.from", "key.from: %s", str_text(&reasons));
out:
	str_release(&reasons);
}

static void key_field_is_usable(const struct check *check, const char *pointer)
{
	const struct contract_field *field = contract_field_at(check->contract, pointer);
	if (!field)
		REFUSE(check, "key.from", "key.from names %s, which is not a declared field", pointer);
	else if (!field->required)
		REFUSE(check, "key.from",
		       "key.from names %s, which is not required: a key can't miss a part", pointer);
	else if (field->type == FIELD_JSON)
		REFUSE(check, "key.from",
		       "key.from names %s, which is json: a key is made of single values", pointer);
	else if (field->class != CLASS_STORE && field->class != CLASS_INHERIT &&
	         check->contract->key.form == KEY_FORM_TEXT)
		REFUSE(check, "key.from",
		       "key.from names %s, whose value may not be kept as it is: `form: uuid` hides it",
		       pointer);
}

static void key_fields_are_declared(const struct check *check)
{
	const struct texts *fields = &check->contract->key.fields;
	if (!form_find(check->root, "fields"))
		return;
	for (size_t i = 0; i < fields->count; i++)
		key_field_is_usable(check, fields->items[i]);
}

static void key_form_has_fields(const struct check *check)
{
	const struct node *from = form_find(check->root, "key.from");
	if (form_find(check->root, "key.form") && from && from->type == NODE_TEXT)
		REFUSE(check, "key.form",
		       "key.form says how fields are written as a key, but key.from is %s: leave it out",
		       from->text);
}

/* ---- Guards and retention ------------------------------------------------------------------- */

static void running_again_is_protected(const struct check *check)
{
	if (check->contract->key.after_expiry == EXPIRY_RUN_AGAIN && !form_find(check->root, "unique"))
		REFUSE(check, "key.after_expiry",
		       "key.after_expiry is run-again, but no `unique` protects the fact once the key is "
		       "forgotten");
}

static void evidence_outlives_the_key(const struct check *check)
{
	const struct contract *contract = check->contract;
	if (contract->audit_retain_us && contract->audit_retain_us < contract->key.retain_us)
		REFUSE(check, "audit.retain",
		       "audit.retain is shorter than key.retain: evidence must outlive the key");
}

/* ---- Pointers and fields -------------------------------------------------------------------- */

static void nothing_is_ignored_and_only(const struct check *check)
{
	const struct contract_same *same = &check->contract->same;
	for (size_t i = 0; i < same->ignore.count; i++)
		for (size_t j = 0; j < same->only.count; j++)
			if (strcmp(same->ignore.items[i], same->only.items[j]) == 0)
				REFUSE(check, "same_payload.ignore",
				       "same_payload.ignore and same_payload.only both name %s",
				       same->only.items[j]);
}

static void listed_types_fit(const struct check *check, const char *path, const struct texts *texts,
                             unsigned types, const char *meaning)
{
	for (size_t i = 0; i < texts->count; i++) {
		const struct contract_field *field = contract_field_at(check->contract, texts->items[i]);
		if (field && !(types & BIT(field->type)))
			REFUSE(check, path, "%s names %s, which is %s: it must be %s", path, texts->items[i],
			       field_type_name(field->type), meaning);
	}
}

static void same_payload_fits_the_fields(const struct check *check)
{
	const struct contract_same *same = &check->contract->same;
	listed_types_fit(check, "same_payload.instants", &same->instants,
	                 BIT(FIELD_TEXT) | BIT(FIELD_INSTANT), "text or instant");
	listed_types_fit(check, "same_payload.unordered", &same->unordered, BIT(FIELD_JSON),
	                 "json, which holds a list");
}

static void contended_rows_are_declared(const struct check *check)
{
	const struct texts *texts = &check->contract->serialize_by;
	for (size_t i = 0; i < texts->count; i++)
		if (!contract_field_at(check->contract, texts->items[i]))
			REFUSE(check, "serialize_by", "serialize_by names %s, which is not a declared field",
			       texts->items[i]);
}

/* A parameter of the path is a member of the payload, as text (B16). */
static void route_params_are_declared(const struct check *check)
{
	const char *route = check->contract->route;
	for (const char *open = route; open && (open = strpbrk(open, "{}")); open++) {
		size_t size = strcspn(open + 1, "/{}");
		char pointer[64] = "/";
		bool whole = open[0] == '{' && size && open > route && open[-1] == '/' &&
		             open[size + 1] == '}' && (!open[size + 2] || open[size + 2] == '/');
		if (!whole || size + 2 > sizeof pointer) {
			REFUSE(check, "route",
			       "route %s: a parameter is a whole part of the path, as in "
			       "/cases/{caseId}/notes",
			       route);
			return;
		}
		strncat(pointer, open + 1, size);
		const struct contract_field *field = contract_field_at(check->contract, pointer);
		if (!field || !field->required || field->type != FIELD_TEXT)
			REFUSE(check, "route",
			       "route %s: %s must be a declared field, of type text and required", route,
			       pointer);
		open += size + 1;
	}
}

/* A field inside another one can only be there when the other is json. */
static void fields_do_not_nest(const struct check *check)
{
	const struct contract *contract = check->contract;
	for (size_t i = 0; i < contract->field_count; i++) {
		const struct contract_field *outer = &contract->fields[i];
		size_t size = strlen(outer->pointer);
		for (size_t j = 0; j < contract->field_count && outer->type != FIELD_JSON; j++) {
			const char *inner = contract->fields[j].pointer;
			if (strncmp(inner, outer->pointer, size) == 0 && inner[size] == '/')
				PROBLEM_AT(check->reading->problems, node_member(at(check, "fields"), inner),
				           "fields.%s lies inside %s, which is %s", inner, outer->pointer,
				           field_type_name(outer->type));
		}
	}
}

/* Does `field` lie inside `outer`? */
static bool lies_in(const struct contract_field *field, const struct contract_field *outer)
{
	size_t size = strlen(outer->pointer);
	return strncmp(field->pointer, outer->pointer, size) == 0 && field->pointer[size] == '/';
}

/* What is encrypted or left out as a whole has no readable part. */
static void class_fits(const struct check *check, const struct contract_field *field,
                       enum field_class around, const char *what)
{
	static const char question[] = "How may its value be kept?";
	const struct node *node = node_member(at(check, "fields"), field->pointer);
	const struct node *class = node ? node_member(node, "class") : NULL;
	bool hidden = around == CLASS_ENCRYPT && field->class == CLASS_STORE;
	bool gone = around == CLASS_OMIT && field->class != CLASS_OMIT;
	if (class && (hidden || gone))
		problem_add(check->reading->problems, class->file, class->line, question,
		            "fields.%s.class is %s, but %s, which is %s as a whole", field->pointer,
		            class_names[field->class], what, hidden ? "encrypted" : "left out");
}

static void classes_agree(const struct check *check)
{
	const struct contract *contract = check->contract;
	char what[YAML_NAME_BYTES_MAX + 32];
	for (size_t i = 0; i < contract->field_count; i++) {
		const struct contract_field *field = &contract->fields[i];
		if (field->class == CLASS_INHERIT)
			continue;
		if (contract->payload == CLASS_ENCRYPT)
			class_fits(check, field, CLASS_ENCRYPT, "it is part of the payload");
		for (size_t j = 0; j < contract->field_count; j++) {
			const struct contract_field *outer = &contract->fields[j];
			if (outer->class == CLASS_INHERIT || !lies_in(field, outer))
				continue;
			snprintf(what, sizeof what, "it lies inside %s", outer->pointer);
			class_fits(check, field, outer->class, what);
		}
	}
}

/* A script runs inside its transaction: there is nothing to stage. */
static void staged_work_is_done_outside(const struct check *check)
{
	if (check->contract->staged.lease_us && check->contract->script)
		REFUSE(check, "staged",
		       "staged commands are done by a program: they need `handler: callback` or "
		       "`upstream`; a script runs in one transaction and leaves nothing to recover");
}

/* What was done outside may have begun: only a refusal in one transaction can leave the key free.
 */
static void correction_is_atomic(const struct check *check)
{
	const struct contract *contract = check->contract;
	if (contract->staged.lease_us && !contract->final[REFUSAL_VALIDATION])
		REFUSE(
		    check, "failures.validation",
		    "failures.validation is retry, but the command is staged: its key can't be left free "
		    "for a corrected payload; say final, and a corrected payload gets a new key");
}

void command_check_rules(struct reading *reading, const struct contract *contract,
                         const struct node *root)
{
	static void (*const rules[])(const struct check *) = {
	    key_identifies_an_intent,     key_fields_are_declared,     key_form_has_fields,
	    running_again_is_protected,   evidence_outlives_the_key,   nothing_is_ignored_and_only,
	    same_payload_fits_the_fields, contended_rows_are_declared, route_params_are_declared,
	    fields_do_not_nest,           staged_work_is_done_outside, classes_agree,
	    correction_is_atomic,
	};
	struct check check = {reading, contract, root};
	for (size_t i = 0; i < COUNT(rules); i++)
		rules[i](&check);
	command_check_strategy(reading, contract, root);
	command_check_location(reading, contract, root);
	command_check_upstream(reading, contract, root);
	command_check_declared(reading, contract, root);
}
