/* SPDX-License-Identifier: Apache-2.0 */
/* test_contract.c -- what a contract file may say, and what it is told when it says something else.
 */
#include "contracts.h"

#include "base/instant.h"

#include <sys/stat.h>

#ifndef SOURCE_ROOT
#define SOURCE_ROOT "." /* run from the top of the source tree */
#endif

/* A directory, what loading it gave, and everything freed at the end. */
struct loaded {
	char dir[DIR_TEXT_MAX];
	struct contracts *contracts;
	enum ibid_code code;
	struct ibid_err err;
};

static void loaded_close(struct loaded *loaded)
{
	contracts_free(loaded->contracts);
	dir_close(loaded->dir);
}

static void load(struct loaded *loaded)
{
	loaded->contracts = NULL;
	loaded->code = contracts_load(loaded->dir, &loaded->contracts, &loaded->err);
}

static void load_mutant(struct loaded *loaded, int line, const char *text)
{
	dir_open(loaded->dir);
	dir_write_mutant(loaded->dir, "create-payment.yaml", line, text);
	load(loaded);
}

/* Two lines changed. */
static void load_mutant2(struct loaded *loaded, int line, const char *text, int second,
                         const char *second_text)
{
	struct str out = STR_INIT(MUTANT_BYTES_MAX);
	for (size_t i = 0; i < COUNT(good_lines); i++)
		str_addf(&out, "%s\n",
		         (int)i + 1 == line     ? text
		         : (int)i + 1 == second ? second_text
		                                : good_lines[i]);
	dir_open(loaded->dir);
	dir_write(loaded->dir, "create-payment.yaml", str_text(&out));
	str_release(&out);
	load(loaded);
}

static const struct contract *only_contract(const struct loaded *loaded)
{
	if (loaded->code)
		fail_msg("%s", loaded->err.text);
	assert_int_equal(contracts_count(loaded->contracts), 1);
	return contracts_at(loaded->contracts, 0);
}

static const struct contract_problem *find_problem(const struct contracts *contracts,
                                                   const char *text)
{
	for (size_t i = 0; i < contracts_problem_count(contracts); i++)
		if (strcmp(contracts_problem(contracts, i)->text, text) == 0)
			return contracts_problem(contracts, i);
	return NULL;
}

static void expect_problem(const struct loaded *loaded, int line, const char *text)
{
	if (loaded->code != IBID_CONTRACT)
		fail_msg("accepted, but should say: %s", text);
	const struct contract_problem *problem = find_problem(loaded->contracts, text);
	if (!problem)
		fail_msg("expected: %d: %s\n   found: %d: %s", line, text,
		         contracts_problem(loaded->contracts, 0)->line,
		         contracts_problem(loaded->contracts, 0)->text);
	if (problem->line != line)
		fail_msg("expected line %d, found %d: %s", line, problem->line, text);
}

/* ---- Good ----------------------------------------------------------------------------------- */

static void a_complete_contract_is_read_as_it_is_written(void **state)
{
	(void)state;
	struct loaded loaded;
	load_mutant(&loaded, 0, NULL);
	const struct contract *contract = only_contract(&loaded);
	assert_string_equal(contract->name, "create-payment");
	assert_string_equal(contract->file, "create-payment.yaml");
	assert_int_equal(contract->version, 1);
	assert_string_equal(contract->fact, "a payment order is accepted");
	assert_string_equal(contract->route, "POST /payments");
	assert_int_equal(contract->strategy, STRATEGY_KEY);
	assert_int_equal(contract->key.from, KEY_HEADER);
	assert_int_equal(contract->key.scope, SCOPE_CLIENT);
	assert_int_equal(contract->key.retain_us, INT64_C(400) * 86400 * 1000000);
	assert_int_equal(contract->key.after_expiry, EXPIRY_REFUSE);
	assert_false(contract->refuse_unknown_fields);
	assert_int_equal(contract->same.context, SCOPE_ACTOR);
	assert_string_equal(contract->same.ignore.items[0], "/requestedAt");
	assert_int_equal(contract->same.unordered.count, 0);
	assert_string_equal(contract->duplicates.by_source[2], "skip");
	assert_string_equal(contract->duplicates.by_source[4], "show");
	assert_true(contract->final[REFUSAL_VALIDATION]);
	assert_false(contract->final[REFUSAL_SERVER]);
	assert_int_equal(contract->answer, ANSWER_FULL);
	assert_int_equal(contract->unique_count, 1);
	assert_int_equal(contract->uniques[0].on_duplicate, UNIQUE_LINK);
	assert_string_equal(contract->uniques[0].find, "by-reference.$store.sql");
	assert_int_equal(contract->covers.count, 3);
	assert_string_equal(contract->script, "create-payment.$store.sql");
	assert_int_equal(contract->inherited.count, 0);
	assert_ptr_equal(contracts_find(loaded.contracts, "create-payment"), contract);
	assert_null(contracts_find(loaded.contracts, "create"));
	loaded_close(&loaded);
}

static void fields_become_typed_parameters_sorted_by_pointer(void **state)
{
	(void)state;
	struct loaded loaded;
	load_mutant(&loaded, 18,
	            "  /a/documentNo: { type: integer, at_least: -1, at_most: 9, as: no_ }");
	const struct contract *contract = only_contract(&loaded);
	assert_int_equal(contract->field_count, 5);
	const struct contract_field *field = contract->fields;
	assert_string_equal(field[0].pointer, "/a/documentNo");
	assert_string_equal(field[0].name, "no_");
	assert_int_equal(field[0].type, FIELD_INTEGER);
	assert_int_equal(field[0].at_least->units, -1);
	assert_false(field[0].required);
	assert_string_equal(field[1].pointer, "/amount");
	assert_int_equal(field[1].scale, 2);
	assert_non_null(field[1].above);
	assert_null(field[1].below);
	assert_string_equal(field[2].name, "currency");
	assert_int_equal(field[2].one_of.count, 3);
	assert_int_equal(field[2].scale, -1);
	assert_int_equal(field[3].max, 34);
	loaded_close(&loaded);

	load_mutant(&loaded, 18, "  /a/documentNo: { type: text }");
	assert_string_equal(only_contract(&loaded)->fields[0].name, "a_documentNo");
	loaded_close(&loaded);
}

/* A02: the scope of a key is declared, and may be made of fields. */
static void keys_may_be_made_of_fields_in_a_declared_scope(void **state)
{
	(void)state;
	struct loaded loaded;
	load_mutant(&loaded, 8, "  from: [/from, /to]\n  form: uuid");
	assert_int_equal(only_contract(&loaded)->key.from, KEY_FIELDS);
	assert_int_equal(only_contract(&loaded)->key.form, KEY_FORM_UUID);
	assert_string_equal(only_contract(&loaded)->key.fields.items[1], "/to");
	loaded_close(&loaded);
	load_mutant(&loaded, 10, "  scope: []");
	assert_int_equal(only_contract(&loaded)->key.scope, 0);
	loaded_close(&loaded);
	load_mutant(&loaded, 10, "  scope: [resource, client, actor]");
	assert_int_equal(only_contract(&loaded)->key.scope,
	                 SCOPE_CLIENT | SCOPE_ACTOR | SCOPE_RESOURCE);
	loaded_close(&loaded);
}

static void optional_answers_about_the_same_payload_are_read(void **state)
{
	(void)state;
	struct loaded loaded;
	load_mutant(&loaded, 22,
	            "  defaults: { /currency: '\"EUR\"', /count: ' 1.0 ', /tags: '[]' }\n  nfc: yes\n"
	            "  only: [/lines/*/sku]");
	const struct contract_same *same = &only_contract(&loaded)->same;
	assert_true(same->nfc);
	assert_int_equal(same->default_count, 3);
	assert_string_equal(same->defaults[0].pointer, "/count");
	assert_string_equal(same->defaults[0].json, "1");
	assert_string_equal(same->defaults[1].json, "\"EUR\"");
	assert_string_equal(same->defaults[2].json, "[]");
	assert_string_equal(same->only.items[0], "/lines/*/sku");
	loaded_close(&loaded);
}

static void in_progress_may_wait_for_a_short_time(void **state)
{
	(void)state;
	struct loaded loaded;
	load_mutant(&loaded, 29, "  in_progress: wait 2s");
	assert_int_equal(only_contract(&loaded)->duplicates.in_progress, PROGRESS_WAIT);
	assert_int_equal(only_contract(&loaded)->duplicates.wait_us, 2000000);
	loaded_close(&loaded);
	load_mutant(&loaded, 29, "  in_progress: accepted");
	assert_int_equal(only_contract(&loaded)->duplicates.in_progress, PROGRESS_ACCEPTED);
	loaded_close(&loaded);
}

static void a_callback_needs_no_script(void **state)
{
	(void)state;
	struct loaded loaded;
	load_mutant(&loaded, 53, "handler: callback");
	assert_null(only_contract(&loaded)->script);
	loaded_close(&loaded);
}

/* ---- A01: an open question is asked --------------------------------------------------------- */

/* Line to delete, line where it is missed, what is missing. */
static const struct {
	int line, missed_at;
	const char *path, *question;
} answers[] = {
    {2, 1, "version",
     "Which version of this contract is it? (a whole number; from 1 to 1000000, a new one "
     "for every change of meaning)"},
    {3, 1, "fact", "What becomes true in the business when it succeeds? (one line of text)"},
    {4, 1, "owner",
     "Which team is the source of truth for the fact and works on its exceptions? (a name of a-z, "
     "0-9 and -)"},
    {5, 1, "strategy",
     "What makes a repetition harmless? (natural | set-once | unique | key | inbox | version "
     "| commutative | external | none)"},
    {8, 7, "key.from",
     "What identifies the intent, the same on every retry and different for every new intent? "
     "(header | a list of fields such as [/source, /documentNo])"},
    {9, 7, "key.generated_by",
     "Who makes the key, before the first attempt? (a name of a-z, 0-9 and -)"},
    {10, 7, "key.scope",
     "Within what is the key unique? (a list, may be empty, of: client | actor | resource; "
     "tenant and operation are always in)"},
    {11, 7, "key.retain",
     "How long must a duplicate be recognised? (a duration such as 30d; longer than any "
     "client or partner may retry)"},
    {12, 7, "key.after_expiry",
     "What happens to a duplicate that comes after the key was forgotten? (refuse | "
     "run-again; run-again only where `unique` protects)"},
    {19, 1, "unknown_fields", NULL},
    {24, 20, "same_payload.context", NULL},
    {26, 25, "duplicates.completed", "What does a duplicate of a completed command get? (replay)"},
    {27, 25, "duplicates.rejected", NULL},
    {28, 25, "duplicates.rejected_other_payload", NULL},
    {29, 25, "duplicates.in_progress",
     "What does a duplicate get while the first one is still running? (answer "
     "| accepted | wait 2s)"},
    {30, 25, "duplicates.other_payload", NULL},
    {32, 31, "duplicates.by_source.client", NULL},
    {33, 31, "duplicates.by_source.service", NULL},
    {34, 31, "duplicates.by_source.broker", NULL},
    {35, 31, "duplicates.by_source.replay", NULL},
    {36, 31, "duplicates.by_source.human", NULL},
    {37, 25, "duplicates.evidence", NULL},
    {39, 38, "failures.validation", NULL},
    {40, 38, "failures.business", NULL},
    {41, 38, "failures.server", NULL},
    {43, 42, "answer.store", NULL},
    {45, 44, "audit.retain", NULL},
    {49, 1, "emits", NULL},
    {50, 1, "covers", "Which side effects does the key cover? (a list of texts; at least one)"},
    {51, 1, "reconciled_by", NULL},
    {52, 1, "corrected_by", NULL},
    {53, 1, "handler", "What runs? (callback | upstream | { sql: FILE })"},
};

static void every_answer_left_open_is_asked_for_at_its_place(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(answers); i++) {
		struct loaded loaded;
		char text[128];
		snprintf(text, sizeof text, "%s is missing", answers[i].path);
		load_mutant(&loaded, answers[i].line, NULL);
		expect_problem(&loaded, answers[i].missed_at, text);
		assert_int_equal(contracts_problem_count(loaded.contracts), 1);
		assert_int_equal(contracts_count(loaded.contracts), 0);
		const char *question = contracts_problem(loaded.contracts, 0)->question;
		assert_non_null(strstr(question, "?"));
		if (answers[i].question)
			assert_string_equal(question, answers[i].question);
		assert_non_null(strstr(loaded.err.text, question));
		loaded_close(&loaded);
	}
}

static size_t occurrences(const char *text, const char *part)
{
	size_t count = 0;
	for (text = strstr(text, part); text; text = strstr(text + 1, part))
		count++;
	return count;
}

/* The list above can't fall behind the table: the reference has one row per answer. */
static void no_required_answer_is_left_out_of_that_test(void **state)
{
	(void)state;
	struct str reference = STR_INIT(1 << 20);
	contract_reference(&reference);
	char *command = strndup(
	    str_text(&reference),
	    (size_t)(strstr(str_text(&reference), "### An event") - str_text(&reference)));
	assert_non_null(command);
	assert_int_equal(occurrences(command, "| yes |") + occurrences(command, "| yes, own |"),
	                 COUNT(answers) + 1); /* and `command` itself */
	free(command);
	str_release(&reference);
}

static void the_problem_is_told_as_file_line_text_and_question(void **state)
{
	(void)state;
	struct loaded loaded;
	char expected[600];
	load_mutant(&loaded, 11, NULL);
	snprintf(expected, sizeof expected,
	         "%s/create-payment.yaml:7: key.retain is missing\n"
	         "  How long must a duplicate be recognised? (a duration such as 30d; longer than any "
	         "client "
	         "or partner may retry)",
	         loaded.dir);
	assert_int_equal(loaded.code, IBID_CONTRACT);
	assert_string_equal(loaded.err.text, expected);
	loaded_close(&loaded);
}

static void all_problems_of_all_files_are_told_at_once(void **state)
{
	(void)state;
	struct loaded loaded;
	dir_open(loaded.dir);
	dir_write(loaded.dir, "a.yaml", "command: a\n");
	dir_write(loaded.dir, "b.yaml", "command: B\nversoin: 1\n");
	dir_write(loaded.dir, "c.yaml", "command: [\n");
	dir_write_mutant(loaded.dir, "d.yaml", 0, NULL);
	load(&loaded);
	assert_int_equal(loaded.code, IBID_CONTRACT);
	assert_non_null(find_problem(loaded.contracts, "version is missing"));
	assert_non_null(find_problem(loaded.contracts, "duplicates.by_source.human is missing"));
	assert_non_null(find_problem(loaded.contracts,
	                             "versoin is not a member of a command; did you mean `version`?"));
	assert_non_null(find_problem(
	    loaded.contracts, "command is `B`: a name has 1 to 63 of a-z, 0-9 and -, and begins with "
	                      "a letter"));
	assert_int_equal(contracts_count(loaded.contracts), 1);
	const struct contract_problem *last = contracts_problem(
	    loaded.contracts, contracts_problem_count(loaded.contracts) - 1);
	assert_non_null(strstr(last->file, "/c.yaml"));
	assert_non_null(strstr(last->text, "this is not YAML"));
	assert_non_null(strstr(loaded.err.text, " more)"));
	loaded_close(&loaded);
}

static void the_list_of_problems_ends_at_two_hundred_and_says_so(void **state)
{
	(void)state;
	struct loaded loaded;
	dir_open(loaded.dir);
	for (int i = 0; i < 10; i++) {
		char name[32], text[64];
		snprintf(name, sizeof name, "c%d.yaml", i);
		snprintf(text, sizeof text, "command: c%d\n", i);
		dir_write(loaded.dir, name, text);
	}
	load(&loaded);
	assert_int_equal(contracts_problem_count(loaded.contracts), 200);
	assert_int_equal(contracts_count(loaded.contracts), 0);
	assert_string_equal(contracts_problem(loaded.contracts, 199)->text,
	                    "and more: the list ends here, solve these first");
	loaded_close(&loaded);
}

/* ---- Wrong answers -------------------------------------------------------------------------- */

/* Replace a line (NULL deletes it) and be told, at a line. */
struct mutation {
	int line;
	const char *text;
	int told_at;
	const char *problem;
};

static void expect_problems(const struct mutation *mutations, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		struct loaded loaded;
		load_mutant(&loaded, mutations[i].line, mutations[i].text);
		expect_problem(&loaded, mutations[i].told_at, mutations[i].problem);
		loaded_close(&loaded);
	}
}

static void a_file_that_two_readers_could_take_differently_is_refused(void **state)
{
	static const struct mutation mutations[] = {
	    {4, "owner: &o payments", 4,
	     "the anchor `&o` is not read here: write the answer out, or put it into defaults.yaml"},
	    {4, "owner: *o", 4,
	     "the alias `*o` is not read here: write the answer out, or put it into defaults.yaml"},
	    {20, "same_payload:\n  <<: { nfc: yes }", 21,
	     "the merge key `<<` is not read here: write the answers out, or put them into "
	     "defaults.yaml"},
	    {2, "version: !!int 1", 2,
	     "the tag `tag:yaml.org,2002:int` is not read here: every value is text"},
	    {49, "emits: ! [A]", 49, "the tag `!` is not read here: every value is text"},
	    {5, "strategy: key\nowner: treasury", 6, "`owner` is given twice, first in line 4"},
	    {53, "handler: callback\n---\ncommand: b", 55,
	     "a second document begins here: one file holds one contract"},
	    {53, "handler: callback\n? [a]\n: b", 54, "a member's name must be plain text"},
	    {4, "owner: \"a\\u200b\\x07\"", 4, "a value holds an invisible control character"},
	    {4, "owner: \"a\\0b\"", 4, "a value holds an invisible control character"},
	    {4, "owner: \"a\\L\"", 4, "a value holds an invisible control character"},
	};
	(void)state;
	expect_problems(mutations, COUNT(mutations));
}

static void members_that_nobody_knows_are_refused_with_the_nearest_name(void **state)
{
	static const struct mutation mutations[] = {
	    {11, "  retian: 400d", 11,
	     "key.retian is not a member of a command; did you mean `retain`?"},
	    {11, "  retian: 400d", 7, "key.retain is missing"},
	    {4, "ownr: payments", 4, "ownr is not a member of a command; did you mean `owner`?"},
	    {53, "handler: callback\nretain: 3d", 54,
	     "retain is not a member of a command; did you mean `key.retain`?"},
	    {53, "handler: callback\nkey.form: uuid", 54,
	     "key.form is one name here: write `key:` as a mapping with `form` in it"},
	    {45, "  retain: 10y\n  colour: red", 46,
	     "audit.colour is not a member of a command; known here: retain"},
	    {14, "  /from: { type: text, requird: true }", 14,
	     "fields./from.requird is not a member of a field; did you mean `required`?"},
	    {47, "  payment_reference: { on_duplicate: reject, finder: x }", 47,
	     "unique.payment_reference.finder is not a member of a unique index; did you mean `find`?"},
	    {53, "handler: { http: x }", 53,
	     "handler.http is not a member of a handler; known here: sql, rows"},
	    {53, "handler: { http: x }", 53, "handler.sql is missing"},
	};
	(void)state;
	expect_problems(mutations, COUNT(mutations));
}

static void the_first_member_names_the_kind(void **state)
{
	static const struct mutation mutations[] = {
	    {1, "effect: bank-payment", 1,
	     "`effect` is not a kind of contract that this version reads; the first member must be one "
	     "of: "
	     "command, event"},
	    {1, NULL, 1,
	     "`version` is not a kind of contract that this version reads; the first member must be "
	     "one of: "
	     "command, event"},
	    {1, "owner: payments\ncommand: create-payment", 2,
	     "`command` names the kind: it must be the first member"},
	};
	(void)state;
	/* The last one gives the owner twice as well: leave the second out. */
	expect_problems(mutations, 2);
	struct str text = mutant(4, NULL);
	struct loaded loaded;
	dir_open(loaded.dir);
	struct str moved = STR_INIT(MUTANT_BYTES_MAX);
	str_addf(&moved, "owner: payments\n%s", str_text(&text));
	dir_write(loaded.dir, "create-payment.yaml", str_text(&moved));
	load(&loaded);
	expect_problem(&loaded, mutations[2].told_at, mutations[2].problem);
	loaded_close(&loaded);
	str_release(&moved);
	str_release(&text);
}

static void wrong_values_are_refused_with_what_would_be_right(void **state)
{
	static const struct mutation mutations[] = {
	    {1, "command: Create_Payment", 1,
	     "command is `Create_Payment`: a name has 1 to 63 of a-z, 0-9 and -, and begins with a "
	     "letter"},
	    {2, "version: 0", 2, "version is `0`: it must be a whole number from 1 to 1000000"},
	    {2, "version: 01", 2, "version is `01`: it must be a whole number from 1 to 1000000"},
	    {2, "version: 1000001", 2,
	     "version is `1000001`: it must be a whole number from 1 to 1000000"},
	    {2, "version: 99999999999999999999", 2,
	     "version is `99999999999999999999`: it must be a whole number from 1 to 1000000"},
	    {2, "version: one", 2, "version is `one`: it must be a whole number from 1 to 1000000"},
	    {3, "fact:", 3, "fact is empty"},
	    {3, "fact: [a]", 3, "fact must be one value, not a list"},
	    {3, "fact: |\n  two\n  lines", 3, "fact must be one line (`>-` folds lines into one)"},
	    {4, "owner: { team: payments }", 4, "owner must be one value, not a mapping"},
	    {5, "strategy: hope", 5,
	     "strategy is `hope`: it must be one of natural, set-once, unique, key, inbox, version, "
	     "commutative, external, none"},
	    {6, "route: /payments", 6,
	     "route is `/payments`: it must be POST, PUT, PATCH or DELETE and a path, such as POST "
	     "/payments"},
	    {6, "route: POST /pay ments", 6,
	     "route is `POST /pay ments`: it must be POST, PUT, PATCH or DELETE and a path, such as "
	     "POST "
	     "/payments"},
	    {6, "route: POST /payments/{id}", 6,
	     "route POST /payments/{id}: /id must be a declared field, of type text and required"},
	    {6, "route: POST /payments/{amount}/x", 6,
	     "route POST /payments/{amount}/x: /amount must be a declared field, of type text and "
	     "required"},
	    {6, "route: POST /payments/a{from}", 6,
	     "route POST /payments/a{from}: a parameter is a whole part of the path, as in "
	     "/cases/{caseId}/notes"},
	    {6, "route: POST /payments/{from", 6,
	     "route POST /payments/{from: a parameter is a whole part of the path, as in "
	     "/cases/{caseId}/notes"},
	    {6, "route: POST /payments/from}", 6,
	     "route POST /payments/from}: a parameter is a whole part of the path, as in "
	     "/cases/{caseId}/notes"},
	    {8, "  from: body", 8,
	     "key.from is `body`: it must be header, or a list of fields such as [/source, "
	     "/documentNo]"},
	    {8, "  from: event", 8,
	     "key.from is `event`: that belongs to consumers, which this version does not read yet"},
	    {8, "  from: []", 8, "key.from is empty"},
	    {8, "  from: [from]", 8,
	     "key.from: `from` is not a pointer to a member, such as /amount or /lines/0/sku"},
	    {8, "  from: [/lines/*/sku]", 8,
	     "key.from: `/lines/*/sku` must be one member; `*` is not read here"},
	    {8, "  from: [/to, /to]", 8, "key.from lists /to twice"},
	    {10, "  scope: client", 10, "key.scope must be a list: [client]"},
	    {10, "  scope: [user]", 10,
	     "key.scope is `user`: it must be one of client, actor, resource"},
	    {11, "  retain: 400", 11,
	     "key.retain is `400`: it must be a duration such as 30d (ms, s, m, h, d, w, y)"},
	    {11, "  retain: 101y", 11, "key.retain is `101y`: more than 100y can't be promised"},
	    {11, "  retain:", 11, "key.retain is empty"},
	    {12, "  after_expiry: forget", 12,
	     "key.after_expiry is `forget`: it must be one of refuse, run-again"},
	    {13, "key_: 1\nfields:", 13, "key_ is not a member of a command; did you mean `key`?"},
	    {24, "  context: [tenant]", 24,
	     "same_payload.context is `tenant`: it must be one of client, actor, resource"},
	    {21, "  ignore: [requestedAt]", 21,
	     "same_payload.ignore: `requestedAt` is not a pointer to a member, such as /amount or "
	     "/lines/0/sku"},
	    {21, "  ignore: [/a~2]", 21,
	     "same_payload.ignore: `/a~2` is not a pointer to a member, such as /amount or "
	     "/lines/0/sku"},
	    {22, "  defaults: { /currency: EUR }", 22,
	     "same_payload.defaults./currency must be JSON in quotes, so that texts and numbers "
	     "differ: "
	     "'\"EUR\"' is a text, '1' a number"},
	    {22, "  defaults: { currency: '1' }", 22,
	     "same_payload.defaults: `currency` is not a pointer to a member, such as /amount or "
	     "/lines/0/sku"},
	    {22, "  defaults: ['1']", 22,
	     "same_payload.defaults must be a mapping of pointers to JSON values"},
	    {22, "  nfc: maybe", 22,
	     "same_payload.nfc is `maybe`: it must be one of no, yes, false, true"},
	    {26, "  completed: run", 26, "duplicates.completed is `run`: it must be replay"},
	    {29, "  in_progress: wait 31s", 29,
	     "duplicates.in_progress is `wait 31s`: a caller waits at most 30s"},
	    {29, "  in_progress: wait", 29,
	     "duplicates.in_progress is `wait`: it must be answer, accepted, or wait and a duration "
	     "such as "
	     "wait 2s"},
	    {32, "    client: run", 32,
	     "duplicates.by_source.client is `run`: it must be one of replay, skip, show, refuse"},
	    {39, "  validation: never", 39,
	     "failures.validation is `never`: it must be one of retry, final"},
	    {42, "answer: full\nanswers:", 42, "answer must be a mapping"},
	    {46, "unique: []\nuniques:", 46, "unique must be a mapping of index names to answers"},
	    {47, "  a b: { on_duplicate: reject }", 47,
	     "unique.a b is not the name of an index or constraint: a letter or _, then letters, "
	     "digits, _ "
	     "and ."},
	    {47, "  a: link", 47,
	     "unique.a must be a mapping, such as { on_duplicate: link, find: FILE }"},
	    {47, "  a: {}", 47, "unique.a.on_duplicate is missing"},
	    {47, "  a: { on_duplicate: link }", 47, "unique.a.find is missing"},
	    {49, "emits: [9Lives]", 49,
	     "emits: `9Lives` is not an event type: a letter, then letters, digits, `.`, `_`, `-`"},
	    {50, "covers: []", 50, "covers is empty"},
	    {50, "covers: [a, [b]]", 50, "covers must be one value, not a list"},
	    {53, "handler: sql", 53,
	     "handler is `sql`: it must be callback, upstream, or { sql: FILE }"},
	    {53, "handler: callback\nstaged: yes", 54,
	     "staged must be a mapping, such as { lease: 30s, recover: human }"},
	    {53, "handler: callback\nstaged: { recover: human }", 54, "staged.lease is missing"},
	    {53, "handler: callback\nstaged: { lease: 30s }", 54, "staged.recover is missing"},
	    {53, "handler: callback\nstaged: { lease: 30s, recover: again }", 54,
	     "staged.recover is `again`: it must be human, inquiry, or { sql: FILE }"},
	    {53, "handler: callback\nstaged: { lease: 30s, recover: { sql: ../x.sql } }", 54,
	     "staged.recover.sql is `../x.sql`: it must be the plain name of a file in this directory; "
	     "only $store is replaced"},
	    {53, "handler: callback\nstaged: { lease: 900ms, recover: human }", 54,
	     "staged.lease is `900ms`: a lease lasts a second at least"},
	    {53, "handler: { sql: create-payment.$store.sql }\nstaged: { lease: 30s, recover: human }",
	     54,
	     "staged commands are done by a program: they need `handler: callback` or `upstream`; a "
	     "script runs in one transaction and leaves nothing to recover"},
	    {53, "handler: { sql: ../x.sql }", 53,
	     "handler.sql is `../x.sql`: it must be the plain name of a file in this directory; only "
	     "$store "
	     "is replaced"},
	    {53, "handler: { sql: a..b.sql }", 53,
	     "handler.sql is `a..b.sql`: it must be the plain name of a file in this directory; only "
	     "$store "
	     "is replaced"},
	    {53, "handler: { sql: /etc/passwd }", 53,
	     "handler.sql is `/etc/passwd`: it must be the plain name of a file in this directory; "
	     "only "
	     "$store is replaced"},
	    {53, "handler: { sql: $home.sql }", 53,
	     "handler.sql is `$home.sql`: it must be the plain name of a file in this directory; only "
	     "$store "
	     "is replaced"},
	};
	(void)state;
	expect_problems(mutations, COUNT(mutations));
}

static void wrong_fields_are_refused(void **state)
{
	static const struct mutation mutations[] = {
	    {14, "  /from: text", 14, "fields./from must be a mapping, such as { type: text }"},
	    {14, "  from: { type: text, required: true }", 14,
	     "fields: `from` is not a pointer to a member, such as /amount or /lines/0/sku"},
	    {14, "  /from: { required: true }", 14, "fields./from.type is missing"},
	    {14, "  /from: { type: money }", 14,
	     "fields./from.type is `money`: it must be one of text, integer, decimal, boolean, date, "
	     "instant, "
	     "json"},
	    {18, "  /a/*: { type: text }", 18,
	     "fields: `/a/*` must be one member; `*` is not read here"},
	    {18, "  /n: { type: integer, max: 3 }", 18,
	     "fields./n.max is only for text; the type is integer"},
	    {18, "  /n: { type: integer, one_of: [a] }", 18,
	     "fields./n.one_of is only for text; the type is integer"},
	    {18, "  /n: { type: text, one_of: [] }", 18, "fields./n.one_of is empty"},
	    {18, "  /n: { type: integer, scale: 0 }", 18,
	     "fields./n.scale is only for decimals; the type is integer"},
	    {18, "  /n: { type: text, above: 0 }", 18,
	     "fields./n.above is only for numbers; the type is text"},
	    {18, "  /n: { type: date, at_most: 0 }", 18,
	     "fields./n.at_most is only for numbers; the type is date"},
	    {18, "  /n: { type: decimal, scale: 19 }", 18,
	     "fields./n.scale is `19`: it must be a whole number from 0 to 18"},
	    {18, "  /n: { type: decimal, above: 1, at_least: 1 }", 18,
	     "fields./n has both above and at_least"},
	    {18, "  /n: { type: decimal, at_least: 1, below: 1.0 }", 18,
	     "fields./n allows no value: its bounds exclude each other"},
	    {18, "  /n: { type: text, class: shred }", 18,
	     "fields./n.class is `shred`: it must be one of store, redact, encrypt, omit"},
	    {18, "  /n: { type: text, max: 0 }", 18,
	     "fields./n.max is `0`: it must be a whole number from 1 to 1000000"},
	    {18, "  /key: { type: text }", 18,
	     "fields./key would be the parameter `:key`, which is built in: give it another name with "
	     "`as`"},
	    {18, "  /a: { type: text, as: tenant }", 18,
	     "fields./a would be the parameter `:tenant`, which is built in: give it another name with "
	     "`as`"},
	    {18, "  /a-b: { type: text }", 18,
	     "fields./a-b would be the parameter `a-b`, which is not a name: give it one with `as`"},
	    {18, "  /a/b: { type: text }\n  /a_b: { type: text }", 19,
	     "fields./a_b would be the parameter `:a_b`, as /a/b is: give it another name with `as`"},
	    {18, "  /from/iban: { type: text }", 18,
	     "fields./from/iban lies inside /from, which is text"},
	    {18, "  /note: { type: text, class: store }\npayload: encrypt", 18,
	     "fields./note.class is store, but it is part of the payload, which is encrypted as a "
	     "whole"},
	    {18, "  /a: { type: json, class: omit }\n  /a/b: { type: text, class: redact }", 19,
	     "fields./a/b.class is redact, but it lies inside /a, which is left out as a whole"},
	    {18, "  /a: { type: json, class: encrypt }\n  /a/b: { type: text, class: store }", 19,
	     "fields./a/b.class is store, but it lies inside /a, which is encrypted as a whole"},
	    {19, "unknown_fields: keep\npayload: hide", 20,
	     "payload is `hide`: it must be one of store, redact, encrypt, omit"},
	    {13, "fields: [/from]\nx:", 13, "fields must be a mapping of pointers to fields"},
	};
	(void)state;
	expect_problems(mutations, COUNT(mutations));
}

/* ---- A04 and other contradictions ----------------------------------------------------------- */

#define TIMESTAMP_REASON                                                                           \
	"a timestamp alone is not an intent: two legitimate commands may share it and a retry has "    \
	"another"
#define USER_REASON "a user alone is not an intent: the same user may want two things"
#define HASH_REASON                                                                                \
	"a hash of the body alone is not an intent: two legitimate commands may say the same, and a "  \
	"key "                                                                                         \
	"that changes with the body finds no conflict"
#define SESSION_REASON                                                                             \
	"a session alone is not an intent: one session sends many commands, and a retry may come "     \
	"from the "                                                                                    \
	"next"
#define OFFSET_REASON                                                                              \
	"an offset alone is not an intent: it is a place in one log, and the same message sent again " \
	"has "                                                                                         \
	"another"

/* A04 */
static void keys_that_identify_no_intent_are_refused_with_the_reason(void **state)
{
	static const struct {
		const char *from, *reason;
	} keys[] = {
	    {"/timestamp", TIMESTAMP_REASON},
	    {"/createdAt", TIMESTAMP_REASON},
	    {"/header/requested_at", TIMESTAMP_REASON},
	    {"/valueDate", TIMESTAMP_REASON},
	    {"/userId", USER_REASON},
	    {"/user_id", USER_REASON},
	    {"/actor", USER_REASON},
	    {"/offset", OFFSET_REASON},
	    {"/partition, /offset", OFFSET_REASON},
	    {"/sessionId", SESSION_REASON},
	    {"/connection-id", SESSION_REASON},
	    {"/payloadHash", HASH_REASON},
	    {"/sha256", HASH_REASON},
	    {"/userId, /requestedAt", USER_REASON "; " TIMESTAMP_REASON},
	};
	(void)state;
	for (size_t i = 0; i < COUNT(keys); i++) {
		struct loaded loaded;
		char line[128], expected[600];
		snprintf(line, sizeof line, "  from: [%s]", keys[i].from);
		snprintf(expected, sizeof expected, "key.from: %s", keys[i].reason);
		load_mutant(&loaded, 8, line);
		expect_problem(&loaded, 8, expected);
		loaded_close(&loaded);
	}
}

/* A04: the type tells as much as the name. */
static void a_key_field_that_is_a_point_in_time_is_refused_whatever_its_name(void **state)
{
	(void)state;
	struct loaded loaded;
	load_mutant2(&loaded, 8, "  from: [/moment]", 18,
	             "  /moment: { type: instant, required: true }");
	expect_problem(&loaded, 8, "key.from: " TIMESTAMP_REASON);
	loaded_close(&loaded);
}

/* A04: a weak part beside a good one makes a fine key. */
static void a_date_beside_a_document_number_is_a_key(void **state)
{
	(void)state;
	struct loaded loaded;
	load_mutant2(&loaded, 8, "  from: [/documentNo, /documentDate]", 18,
	             "  /documentNo: { type: text, required: true }\n"
	             "  /documentDate: { type: date, required: true }");
	assert_int_equal(only_contract(&loaded)->key.fields.count, 2);
	loaded_close(&loaded);
}

static void answers_that_contradict_each_other_are_refused(void **state)
{
	static const struct mutation mutations[] = {
	    {8, "  from: header\n  form: uuid", 9,
	     "key.form says how fields are written as a key, but key.from is header: leave it out"},
	    {8, "  from: [/documentNo]", 8,
	     "key.from names /documentNo, which is not a declared field"},
	    {8, "  from: [/note]", 8,
	     "key.from names /note, which is not required: a key can't miss a part"},
	    {5, "strategy: inbox", 5,
	     "strategy is inbox: that belongs to consumers, which this version does not read yet"},
	    {45, "  retain: 30d", 45,
	     "audit.retain is shorter than key.retain: evidence must outlive the key"},
	    {22, "  only: [/amount, /requestedAt]", 21,
	     "same_payload.ignore and same_payload.only both name /requestedAt"},
	    {22, "  instants: [/amount]", 22,
	     "same_payload.instants names /amount, which is decimal: it must be text or instant"},
	    {23, "  unordered: [/note]", 23,
	     "same_payload.unordered names /note, which is text: it must be json, which holds a list"},
	    {48, "serialize_by: [/account]", 48,
	     "serialize_by names /account, which is not a declared field"},
	};
	(void)state;
	expect_problems(mutations, COUNT(mutations));
}

static void expect_without_unique(int line, const char *replacement, const char *problem)
{
	struct loaded loaded;
	struct str text = mutant(line, replacement);
	char *unique = strstr(text.data, "unique:\n"), *after = strstr(text.data, "serialize_by:");
	memmove(unique, after, strlen(after) + 1);
	dir_open(loaded.dir);
	dir_write(loaded.dir, "create-payment.yaml", text.data);
	load(&loaded);
	expect_problem(&loaded, line, problem);
	str_release(&text);
	loaded_close(&loaded);
}

static void what_needs_business_uniqueness_must_declare_it(void **state)
{
	(void)state;
	expect_without_unique(
	    12, "  after_expiry: run-again",
	    "key.after_expiry is run-again, but no `unique` protects the fact once the key "
	    "is forgotten");
	expect_without_unique(5, "strategy: unique",
	                      "strategy is unique, but no `unique` names the index that enforces it");
	struct loaded loaded;
	load_mutant(&loaded, 12, "  after_expiry: run-again");
	assert_int_equal(only_contract(&loaded)->key.after_expiry, EXPIRY_RUN_AGAIN);
	loaded_close(&loaded);
}

static void a_value_that_may_not_be_kept_is_not_a_readable_key(void **state)
{
	(void)state;
	struct loaded loaded;
	load_mutant2(&loaded, 8, "  from: [/from]", 14,
	             "  /from: { type: text, required: true, class: redact }");
	expect_problem(
	    &loaded, 8,
	    "key.from names /from, whose value may not be kept as it is: `form: uuid` hides it");
	loaded_close(&loaded);
}

/* ---- Defaults ------------------------------------------------------------------------------- */

static void defaults_answer_what_a_contract_leaves_open(void **state)
{
	(void)state;
	struct loaded loaded;
	dir_open(loaded.dir);
	dir_write_mutant(loaded.dir, "create-payment.yaml", 11, NULL);
	dir_write(loaded.dir, "defaults.yaml",
	          "owner: treasury\nkey: { retain: 500d, from: [/x] }\nsame_payload: { nfc: yes }\n");
	load(&loaded);
	const struct contract *contract = only_contract(&loaded);
	assert_string_equal(contract->owner, "payments");
	assert_int_equal(contract->key.from, KEY_HEADER);
	assert_int_equal(contract->key.retain_us, INT64_C(500) * 86400 * 1000000);
	assert_true(contract->same.nfc);
	assert_int_equal(contract->inherited.count, 2);
	assert_string_equal(contract->inherited.items[0], "key.retain");
	assert_string_equal(contract->inherited.items[1], "same_payload.nfc");
	assert_non_null(strstr(contract->text, "\"retain\":\"500d\""));
	loaded_close(&loaded);
}

static void defaults_fill_a_mapping_that_is_there_but_blank(void **state)
{
	(void)state;
	struct loaded loaded;
	dir_open(loaded.dir);
	dir_write_mutant(loaded.dir, "create-payment.yaml", 43, NULL);
	dir_write(loaded.dir, "defaults.yaml", "answer: { store: status }\n");
	load(&loaded);
	assert_int_equal(only_contract(&loaded)->answer, ANSWER_STATUS);
	loaded_close(&loaded);
}

static void what_defaults_leave_open_is_missing_in_the_contract(void **state)
{
	(void)state;
	struct loaded loaded;
	dir_open(loaded.dir);
	dir_write(loaded.dir, "c.yaml", "# a comment\ncommand: c\n");
	dir_write(loaded.dir, "defaults.yaml", "\n\nkey: { retain: 1d }\n");
	load(&loaded);
	expect_problem(&loaded, 2, "key.from is missing");
	assert_null(find_problem(loaded.contracts, "key.retain is missing"));
	assert_non_null(strstr(contracts_problem(loaded.contracts, 0)->file, "/c.yaml"));
	loaded_close(&loaded);
}

static void a_wrong_default_is_told_once_at_its_own_place(void **state)
{
	(void)state;
	struct loaded loaded;
	dir_open(loaded.dir);
	dir_write_mutant(loaded.dir, "a.yaml", 11, NULL);
	dir_write_mutant(loaded.dir, "b.yaml", 11, NULL);
	dir_write(loaded.dir, "defaults.yaml", "key:\n  retain: soon\n");
	load(&loaded);
	expect_problem(
	    &loaded, 2,
	    "key.retain is `soon`: it must be a duration such as 30d (ms, s, m, h, d, w, y)");
	assert_int_equal(contracts_problem_count(loaded.contracts), 1);
	assert_int_equal(contracts_count(loaded.contracts), 0);
	assert_non_null(strstr(contracts_problem(loaded.contracts, 0)->file, "/defaults.yaml"));
	loaded_close(&loaded);
}

static void a_staged_contract_is_read_and_says_who_finds_out(void **state) /* B06 */
{
	static const struct {
		const char *says;
		int recover;
	} cases[] = {{"human", RECOVER_HUMAN},
	             {"inquiry", RECOVER_INQUIRY},
	             {"{ sql: by-reference.$store.sql }", RECOVER_QUERY}};
	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct loaded loaded;
		char lines[160];
		snprintf(lines, sizeof lines, "handler: callback\nstaged: { lease: 30s, recover: %s }",
		         cases[i].says);
		load_mutant(&loaded, 53, lines);
		assert_int_equal(contracts_count(loaded.contracts), 1);
		const struct contract *contract = contracts_at(loaded.contracts, 0);
		assert_int_equal(contract->staged.lease_us, 30000000);
		assert_int_equal(contract->staged.recover, cases[i].recover);
		struct arena arena = {0};
		struct contract *again = NULL;
		struct ibid_err err;
		assert_int_equal(contract_from_text(&arena, contract->text, &again, &err), IBID_OK);
		assert_string_equal(again->text, contract->text);
		assert_int_equal(again->staged.recover, cases[i].recover);
		arena_release(&arena);
		loaded_close(&loaded);
	}
}

static void defaults_may_not_answer_for_identity_fact_and_handler(void **state)
{
	static const char *const own[] = {"command", "version", "fact", "handler", "route"};
	(void)state;
	struct loaded loaded;
	dir_open(loaded.dir);
	dir_write_mutant(loaded.dir, "create-payment.yaml", 6, NULL);
	dir_write(loaded.dir, "defaults.yaml",
	          "command: c\nversion: 2\nfact: f\nhandler: callback\nroute: POST /x\nkey: { retian: "
	          "1d }\n");
	load(&loaded);
	for (size_t i = 0; i < COUNT(own); i++) {
		char text[100];
		snprintf(text, sizeof text, "%s can't be answered for all contracts: each has its own",
		         own[i]);
		expect_problem(&loaded, (int)i + 1, text);
	}
	expect_problem(&loaded, 6, "key.retian is not a member of a command; did you mean `retain`?");
	loaded_close(&loaded);
}

static void defaults_that_are_no_mapping_are_refused(void **state)
{
	(void)state;
	struct loaded loaded;
	dir_open(loaded.dir);
	dir_write_mutant(loaded.dir, "create-payment.yaml", 0, NULL);
	dir_write(loaded.dir, "defaults.yaml", "[a]\n");
	load(&loaded);
	expect_problem(&loaded, 1, "defaults must be a mapping of members to answers");
	loaded_close(&loaded);
}

/* ---- Text and digest ------------------------------------------------------------------------ */

static void expect_round_trip(const struct contract *contract)
{
	struct arena arena = {0};
	struct contract *again = NULL;
	struct ibid_err err = {0};
	if (contract_from_text(&arena, contract->text, &again, &err))
		fail_msg("%s", err.text);
	assert_string_equal(again->text, contract->text);
	assert_memory_equal(&again->digest, &contract->digest, sizeof again->digest);
	assert_string_equal(again->name, contract->name);
	assert_string_equal(again->file, "");
	assert_int_equal(again->key.retain_us, contract->key.retain_us);
	assert_int_equal(again->field_count, contract->field_count);
	for (size_t i = 0; i < again->field_count; i++) {
		assert_string_equal(again->fields[i].pointer, contract->fields[i].pointer);
		assert_string_equal(again->fields[i].name, contract->fields[i].name);
		assert_int_equal(again->fields[i].type, contract->fields[i].type);
	}
	assert_int_equal(again->inherited.count, 0);
	arena_release(&arena);
}

static void the_text_of_a_contract_reads_back_as_the_same_contract(void **state)
{
	static const struct mutation mutations[] = {
	    {0, NULL, 0, NULL},
	    {3, "fact: \"quotes \\\" and \\\\ and # and : and \\u00e4\\U0001F600 and ' too\"", 0, NULL},
	    {3, "fact: \"{not: a, mapping}\"", 0, NULL},
	    {22, "  defaults: { /currency: '\"E\\u0000UR\"', /count: '1e400' }", 0, NULL},
	    {18, "  /z: { type: text }\n  /b: { type: json }\n  \"/\\u00e4\": { type: text, as: ae }",
	     0, NULL},
	    {53, "handler: callback", 0, NULL},
	};
	(void)state;
	for (size_t i = 0; i < COUNT(mutations); i++) {
		struct loaded loaded;
		load_mutant(&loaded, mutations[i].line, mutations[i].text);
		expect_round_trip(only_contract(&loaded));
		loaded_close(&loaded);
	}
}

static void order_comments_and_style_do_not_change_the_digest(void **state)
{
	(void)state;
	struct loaded a, b, c;
	load_mutant(&a, 0, NULL);
	load_mutant2(&b, 14, "  \"/to\": {max: '34', required: \"true\", type: text} # payee", 15,
	             good_lines[13]);
	load_mutant(&c, 11, "  retain: 401d");
	assert_memory_equal(&only_contract(&a)->digest, &only_contract(&b)->digest, 32);
	assert_memory_not_equal(&only_contract(&a)->digest, &only_contract(&c)->digest, 32);
	struct sha256 expected = sha256(only_contract(&a)->text, strlen(only_contract(&a)->text));
	assert_memory_equal(&only_contract(&a)->digest, &expected, 32);
	loaded_close(&a);
	loaded_close(&b);
	loaded_close(&c);
}

static void a_stored_text_that_is_no_contract_is_an_error(void **state)
{
	static const struct {
		const char *text, *error;
	} texts[] = {
	    {"{\"command\":\"c\"}", "stored contract: version is missing"},
	    {"{",
	     "stored contract:2: this is not YAML: did not find expected node content, while parsing a "
	     "flow node"},
	    {"", "stored contract:0: it is empty"},
	    {"[]", "stored contract: a contract is a mapping of members to answers; the first member "
	           "must be one "
	           "of: command, event"},
	};
	(void)state;
	for (size_t i = 0; i < COUNT(texts); i++) {
		struct arena arena = {0};
		struct contract *contract = NULL;
		struct ibid_err err = {0};
		assert_int_equal(contract_from_text(&arena, texts[i].text, &contract, &err), IBID_CONTRACT);
		assert_string_equal(err.text, texts[i].error);
		assert_null(contract);
		arena_release(&arena);
	}
}

/* ---- Directories and files ------------------------------------------------------------------ */

static void expect_refused(const char *dir, enum ibid_code code, const char *text)
{
	struct contracts *contracts = NULL;
	struct ibid_err err = {0};
	assert_int_equal(contracts_load(dir, &contracts, &err), code);
	assert_string_equal(err.text, text);
	assert_null(contracts);
}

static void a_directory_that_is_not_one_is_told_apart(void **state)
{
	(void)state;
	char dir[DIR_TEXT_MAX], path[DIR_TEXT_MAX + 40], text[300];
	expect_refused("/nonexistent/contracts", IBID_NOT_FOUND,
	               "/nonexistent/contracts does not exist: it must be a directory of contracts");
	dir_open(dir);
	snprintf(path, sizeof path, "%s/create-payment.sqlite.sql", dir);
	snprintf(text, sizeof text, "%s is a file: it must be a directory of contracts", path);
	expect_refused(path, IBID_INVALID, text);
	snprintf(text, sizeof text, "%s holds no contract: no file there ends in .yaml", dir);
	expect_refused(dir, IBID_NOT_FOUND, text);
	dir_write(dir, "defaults.yaml", "owner: payments\n");
	snprintf(text, sizeof text,
	         "%s holds no contract: no file there ends in .yaml besides defaults.yaml", dir);
	expect_refused(dir, IBID_NOT_FOUND, text);
	if (geteuid() != 0) { /* root may read everything */
		assert_int_equal(chmod(dir, 0), 0);
		snprintf(text, sizeof text, "%s can't be read: Permission denied", dir);
		expect_refused(dir, IBID_DENIED, text);
		assert_int_equal(chmod(dir, 0700), 0);
	}
	dir_close(dir);
}

static void files_with_another_ending_are_not_silently_ignored(void **state)
{
	(void)state;
	struct loaded loaded;
	dir_open(loaded.dir);
	dir_write_mutant(loaded.dir, "create-payment.yml", 0, NULL);
	dir_write_mutant(loaded.dir, "other.YAML", 0, NULL);
	dir_write(loaded.dir, ".hidden.yaml", "{");
	load(&loaded);
	expect_problem(&loaded, 0, "it is not read under this name: rename it to create-payment.yaml");
	expect_problem(&loaded, 0, "it is not read under this name: rename it to other.yaml");
	assert_int_equal(contracts_problem_count(loaded.contracts), 2);
	loaded_close(&loaded);
}

static void two_files_may_not_declare_the_same_name_or_route(void **state)
{
	(void)state;
	struct loaded loaded;
	char text[200];
	dir_open(loaded.dir);
	dir_write_mutant(loaded.dir, "a.yaml", 0, NULL);
	dir_write_mutant(loaded.dir, "b.yaml", 2, "version: 2");
	dir_write_mutant(loaded.dir, "c.yaml", 1, "command: other-payment");
	load(&loaded);
	snprintf(text, sizeof text, "create-payment is declared twice, first in %s/a.yaml", loaded.dir);
	expect_problem(&loaded, 1, text);
	assert_non_null(strstr(find_problem(loaded.contracts, text)->file, "/b.yaml"));
	snprintf(text, sizeof text,
	         "route POST /payments leads to create-payment already, in %s/a.yaml", loaded.dir);
	expect_problem(&loaded, 6, text);
	loaded_close(&loaded);
}

static void contracts_come_sorted_by_name(void **state)
{
	(void)state;
	struct loaded loaded;
	dir_open(loaded.dir);
	dir_write_mutant(loaded.dir, "a.yaml", 0, NULL);
	struct str text = mutant(1, "command: a-payment");
	char *route = strstr(text.data, "POST /payments");
	memcpy(route, "POST /pay2ents", 14);
	dir_write(loaded.dir, "z.yaml", text.data);
	str_release(&text);
	load(&loaded);
	assert_int_equal(loaded.code, IBID_OK);
	assert_int_equal(contracts_count(loaded.contracts), 2);
	assert_string_equal(contracts_at(loaded.contracts, 0)->name, "a-payment");
	assert_string_equal(contracts_find(loaded.contracts, "create-payment")->file, "a.yaml");
	loaded_close(&loaded);
}

static void scripts_that_a_contract_names_must_exist_for_one_store_at_least(void **state)
{
	(void)state;
	struct loaded loaded;
	char text[300];
	load_mutant(&loaded, 53, "handler: { sql: missing.$store.sql }");
	snprintf(text, sizeof text,
	         "handler.sql names missing.$store.sql, but neither missing.sqlite.sql nor "
	         "missing.postgres.sql exists in %s",
	         loaded.dir);
	expect_problem(&loaded, 53, text);
	loaded_close(&loaded);
	load_mutant(&loaded, 53, "handler: { sql: missing.sql }");
	snprintf(text, sizeof text, "handler.sql names missing.sql, which does not exist in %s",
	         loaded.dir);
	expect_problem(&loaded, 53, text);
	loaded_close(&loaded);
	load_mutant(&loaded, 47, "  a: { on_duplicate: link, find: missing.sql }");
	snprintf(text, sizeof text, "unique.a.find names missing.sql, which does not exist in %s",
	         loaded.dir);
	expect_problem(&loaded, 47, text);
	loaded_close(&loaded);
}

static void a_script_is_read_for_the_store_in_use(void **state)
{
	(void)state;
	struct loaded loaded;
	struct arena arena = {0};
	const char *text = NULL;
	struct ibid_err err = {0};
	char expected[200];
	load_mutant(&loaded, 0, NULL);
	const char *script = only_contract(&loaded)->script;
	assert_int_equal(contracts_read_file(loaded.contracts, &arena, script, "sqlite", &text, &err),
	                 IBID_OK);
	assert_string_equal(text, "select 201 as status;\n");
	assert_int_equal(contracts_read_file(loaded.contracts, &arena, script, "postgres", &text, &err),
	                 IBID_NOT_FOUND);
	snprintf(expected, sizeof expected, "%s/create-payment.postgres.sql does not exist",
	         loaded.dir);
	assert_string_equal(err.text, expected);
	assert_int_equal(contracts_read_file(loaded.contracts, &arena, "../x", "sqlite", &text, &err),
	                 IBID_INVALID);
	assert_string_equal(contracts_dir(loaded.contracts), loaded.dir);
	arena_release(&arena);
	loaded_close(&loaded);
}

static void load_bytes(struct loaded *loaded, const char *bytes, size_t size)
{
	dir_open(loaded->dir);
	dir_write_bytes(loaded->dir, "create-payment.yaml", bytes, size);
	load(loaded);
}

static void files_that_are_too_large_too_deep_or_no_text_are_refused(void **state)
{
	(void)state;
	struct loaded loaded;
	struct str text = mutant(0, NULL);
	while (text.size <= 1 << 20)
		str_adds(&text, "# padding padding padding padding padding padding padding padding\n");
	load_bytes(&loaded, text.data, text.size);
	expect_problem(&loaded, 0, "it is larger than 1048576 bytes");
	loaded_close(&loaded);
	str_release(&text);

	text = STR_INIT(4096);
	str_adds(&text, "command: c\nx: ");
	for (int i = 0; i < 33; i++)
		str_addc(&text, '[');
	load_bytes(&loaded, text.data, text.size);
	expect_problem(&loaded, 2, "it is nested deeper than 32 levels");
	loaded_close(&loaded);
	str_release(&text);

	load_bytes(&loaded, "", 0);
	expect_problem(&loaded, 0, "it is empty");
	loaded_close(&loaded);
	load_bytes(&loaded, "# nothing\n", 10);
	expect_problem(&loaded, 0, "it is empty");
	loaded_close(&loaded);
	load_bytes(&loaded, "a: b\nc: \xff\xfe\n", 12);
	expect_problem(&loaded, 2, "this is not YAML: invalid leading UTF-8 octet");
	loaded_close(&loaded);
	load_bytes(&loaded, "a: b\n\0\n", 7);
	expect_problem(&loaded, 2, "this is not YAML: control characters are not allowed");
	loaded_close(&loaded);
	load_bytes(&loaded, "just words\n", 11);
	expect_problem(
	    &loaded, 1,
	    "a contract is a mapping of members to answers; the first member must be one of: "
	    "command, event");
	loaded_close(&loaded);
}

static void mappings_with_too_many_members_are_refused(void **state)
{
	(void)state;
	struct loaded loaded;
	struct str text = STR_INIT(1 << 20);
	for (int i = 0; i < 1025; i++)
		str_addf(&text, "m%d: x\n", i);
	load_bytes(&loaded, text.data, text.size);
	expect_problem(&loaded, 1025, "a mapping has more than 1024 members");
	loaded_close(&loaded);
	str_release(&text);
}

static void a_directory_with_a_contracts_name_is_refused(void **state)
{
	(void)state;
	struct loaded loaded;
	char path[DIR_TEXT_MAX + 20];
	dir_open(loaded.dir);
	snprintf(path, sizeof path, "%s/x.yaml", loaded.dir);
	assert_int_equal(mkfifo(path, 0600), 0);
	load(&loaded);
	expect_problem(&loaded, 0, "it is not a file");
	loaded_close(&loaded);
}

/* ---- Words ---------------------------------------------------------------------------------- */

static void durations_are_written_in_the_largest_whole_unit(void **state)
{
	static const char *const texts[] = {"10y", "2w",    "400d", "4h", "10m",
	                                    "2s",  "250ms", "1y",   "30d"};
	struct arena arena = {0};
	(void)state;
	for (size_t i = 0; i < COUNT(texts); i++) {
		int64_t us = 0;
		assert_true(duration_read(texts[i], &us));
		assert_string_equal(contract_duration(&arena, us), texts[i]);
	}
	assert_string_equal(contract_duration(&arena, INT64_C(365) * 86400 * 1000000), "1y");
	assert_string_equal(field_type_name(FIELD_INSTANT), "instant");
	arena_release(&arena);
}

/* The documentation holds the reference that the tables print, word for word. */
static void the_documentation_lists_every_member(void **state)
{
	(void)state;
	static char text[1 << 18];
	FILE *file = fopen(SOURCE_ROOT "/docs/contracts.md", "rb");
	assert_non_null(file);
	size_t size = fread(text, 1, sizeof text - 1, file);
	fclose(file);
	text[size] = '\0';
	struct str reference = STR_INIT(1 << 18);
	contract_reference(&reference);
	if (!strstr(text, str_text(&reference)))
		fail_msg("docs/contracts.md lacks this reference:\n%s", str_text(&reference));
	str_release(&reference);
}

/* What is declared of a success and of refusals (SURFACE: answer, emits, reject, handler.rows). */
static void declared_values_are_refused_where_they_can_not_be_made(void **state)
{
	(void)state;
	static const struct {
		int line; /* of the good contract that is replaced */
		const char *text;
		int at;
		const char *problem;
	} cases[] = {
	    {43, "  { store: full, body: { a: \":amount\" } }", 43,
	     "answer.body is given, but no answer.status: a declared answer needs one"},
	    {43, "  { store: full, status: 404 }", 43,
	     "answer.status is `404`: it must be a whole number from 200 to 399"},
	    {43, "  { store: full, status: 201, body: { a: [\":amuont\"] } }", 43,
	     "answer.body names the parameter :amuont, which is neither built in nor a declared field; "
	     "a "
	     "text that begins with a colon is written with two"},
	    {43, "  { store: full, status: 201, body: { a: { json: [1] } } }", 43,
	     "answer.body: what `json` holds must be JSON, such as { json: 1 } or { json: 'null' }"},
	    {43, "  { store: full, status: 201, resource: [payment] }", 43,
	     "answer.resource must be a type and an id, such as [payment, \":command_id\"]"},
	    {43, "  { store: full, status: 201, resource: [payment, \":note\"] }", 43,
	     "answer.resource is :note, which is not in every command: require it"},
	    {49, "emits: [Other, { PaymentCreated: { aggregate_id: a, payload: {} } }]", 49,
	     "emits declares how some events are made and only names others: either the contract makes "
	     "all events of its command, or the handler does"},
	    {49, "emits: [{ PaymentCreated: { aggregate_type: p, payload: {} } }]", 49,
	     "emits.PaymentCreated.aggregate_id is missing"},
	    {49, "emits: [{ Payment: { aggregate_id: \":payload\", payload: {} } }]", 49,
	     "emits.Payment.aggregate_id is :payload, which is of another type"},
	    {49, "emits: [{ Payment: { aggregate_id: a, payload: {} } }]", 49,
	     "emits.Payment.aggregate_type is missing, and Payment has no contract that says it"},
	    {49, "emits: [{ Payment: { aggregate_id: a, payload: {}, version: \":amount\" } }]", 49,
	     "emits.Payment.version is :amount, which is of another type"},
	    {49, "emits: [{ 1Payment: { aggregate_id: a, payload: {} } }]", 49,
	     "emits: `1Payment` is not an event type: a letter, then letters, digits, `.`, `_`, `-`"},
	    {48, "reject: [{ when: [/from, is, /to], class: business, code: A, status: 409, text: t }]",
	     48,
	     "reject.when must be a field, how it compares (equals, not_equals, below, at_most, above, "
	     "at_least), and a field or a constant, such as [/from, equals, /to]"},
	    {48,
	     "reject: [{ when: [/from, equals, /two], class: business, code: A, status: 409, text: t "
	     "}]",
	     48, "reject.when names /two, which is not a declared field"},
	    {48,
	     "reject: [{ when: [/from, above, /to], class: business, code: A, status: 409, text: t }]",
	     48, "reject.when can't say whether /from above /to: they are text and text"},
	    {48,
	     "reject: [{ when: [/amount, above, much], class: business, code: A, status: 409, text: t "
	     "}]",
	     48, "reject.when compares /amount, which is decimal, with `much`"},
	    {48, "reject: [{ when: [/from, equals, x], class: server, code: A, status: 409, text: t }]",
	     48, "reject.class is `server`: it must be one of validation, business"},
	    {48,
	     "reject: [{ when: [/from, equals, x], class: business, code: a, status: 409, text: t }]",
	     48, "reject.code is `a`: a code is letters A-Z, digits and _, such as SAME_ACCOUNT"},
	    {53, "handler: { sql: create-payment.$store.sql, rows: [1, some] }", 53,
	     "handler.rows must be a list with a number of rows, or any, for each statement of the "
	     "script, such as [1, any]"},
	};
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct loaded loaded;
		load_mutant(&loaded, cases[i].line, cases[i].text);
		expect_problem(&loaded, cases[i].at, cases[i].problem);
		loaded_close(&loaded);
	}
}

static void only_scripts_leave_answers_and_events_to_their_contract(void **state)
{
	(void)state;
	struct loaded loaded;
	load_mutant2(&loaded, 43, "  { store: full, status: 201 }", 53, "handler: callback");
	expect_problem(&loaded, 43,
	               "answer.status is for `handler: { sql: FILE }`: any other handler does that "
	               "itself");
	loaded_close(&loaded);
	load_mutant2(&loaded, 49,
	             "emits: [{ Payment: { aggregate_type: p, aggregate_id: a, payload: {} } }]", 53,
	             "handler: callback");
	expect_problem(
	    &loaded, 49,
	    "emits says how events are made, which is for `handler: { sql: FILE }`: any other "
	    "handler makes them itself, and emits names their types");
	loaded_close(&loaded);
}

/* What the store keeps says the same. */
static void declared_values_survive_the_text_of_the_contract(void **state)
{
	(void)state;
	struct loaded loaded;
	struct arena arena = {0};
	struct contract *again = NULL;
	struct ibid_err err;
	load_mutant2(&loaded, 43,
	             "  { store: full, status: 201, body: [\":amount\", \"::x\", { json: 1.50 }] }", 49,
	             "emits: [{ P: { aggregate_type: p, aggregate_id: \":from\", payload: { b: "
	             "\":note\" } } }]");
	const struct contract *contract = only_contract(&loaded);
	assert_int_equal(contract_from_text(&arena, contract->text, &again, &err), IBID_OK);
	assert_string_equal(again->text, contract->text);
	assert_int_equal(again->success.status, 201);
	assert_int_equal(again->success.body.count, 3);
	assert_string_equal(again->success.body.pieces[0].text, "[");
	assert_string_equal(again->success.body.pieces[2].text, ",\":x\",1.5]");
	assert_int_equal(again->event_count, 1);
	assert_int_equal(again->emits.count, 1);
	assert_string_equal(again->emits.items[0], "P");
	arena_release(&arena);
	loaded_close(&loaded);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(a_complete_contract_is_read_as_it_is_written),
	    cmocka_unit_test(fields_become_typed_parameters_sorted_by_pointer),
	    cmocka_unit_test(keys_may_be_made_of_fields_in_a_declared_scope),
	    cmocka_unit_test(optional_answers_about_the_same_payload_are_read),
	    cmocka_unit_test(in_progress_may_wait_for_a_short_time),
	    cmocka_unit_test(a_callback_needs_no_script),
	    cmocka_unit_test(every_answer_left_open_is_asked_for_at_its_place),
	    cmocka_unit_test(no_required_answer_is_left_out_of_that_test),
	    cmocka_unit_test(the_problem_is_told_as_file_line_text_and_question),
	    cmocka_unit_test(all_problems_of_all_files_are_told_at_once),
	    cmocka_unit_test(the_list_of_problems_ends_at_two_hundred_and_says_so),
	    cmocka_unit_test(a_file_that_two_readers_could_take_differently_is_refused),
	    cmocka_unit_test(members_that_nobody_knows_are_refused_with_the_nearest_name),
	    cmocka_unit_test(the_first_member_names_the_kind),
	    cmocka_unit_test(wrong_values_are_refused_with_what_would_be_right),
	    cmocka_unit_test(wrong_fields_are_refused),
	    cmocka_unit_test(keys_that_identify_no_intent_are_refused_with_the_reason),
	    cmocka_unit_test(a_key_field_that_is_a_point_in_time_is_refused_whatever_its_name),
	    cmocka_unit_test(a_date_beside_a_document_number_is_a_key),
	    cmocka_unit_test(answers_that_contradict_each_other_are_refused),
	    cmocka_unit_test(what_needs_business_uniqueness_must_declare_it),
	    cmocka_unit_test(a_value_that_may_not_be_kept_is_not_a_readable_key),
	    cmocka_unit_test(defaults_answer_what_a_contract_leaves_open),
	    cmocka_unit_test(defaults_fill_a_mapping_that_is_there_but_blank),
	    cmocka_unit_test(what_defaults_leave_open_is_missing_in_the_contract),
	    cmocka_unit_test(a_wrong_default_is_told_once_at_its_own_place),
	    cmocka_unit_test(a_staged_contract_is_read_and_says_who_finds_out),
	    cmocka_unit_test(defaults_may_not_answer_for_identity_fact_and_handler),
	    cmocka_unit_test(defaults_that_are_no_mapping_are_refused),
	    cmocka_unit_test(the_text_of_a_contract_reads_back_as_the_same_contract),
	    cmocka_unit_test(order_comments_and_style_do_not_change_the_digest),
	    cmocka_unit_test(a_stored_text_that_is_no_contract_is_an_error),
	    cmocka_unit_test(a_directory_that_is_not_one_is_told_apart),
	    cmocka_unit_test(files_with_another_ending_are_not_silently_ignored),
	    cmocka_unit_test(two_files_may_not_declare_the_same_name_or_route),
	    cmocka_unit_test(contracts_come_sorted_by_name),
	    cmocka_unit_test(scripts_that_a_contract_names_must_exist_for_one_store_at_least),
	    cmocka_unit_test(a_script_is_read_for_the_store_in_use),
	    cmocka_unit_test(files_that_are_too_large_too_deep_or_no_text_are_refused),
	    cmocka_unit_test(mappings_with_too_many_members_are_refused),
	    cmocka_unit_test(a_directory_with_a_contracts_name_is_refused),
	    cmocka_unit_test(durations_are_written_in_the_largest_whole_unit),
	    cmocka_unit_test(declared_values_are_refused_where_they_can_not_be_made),
	    cmocka_unit_test(only_scripts_leave_answers_and_events_to_their_contract),
	    cmocka_unit_test(declared_values_survive_the_text_of_the_contract),
	    cmocka_unit_test(the_documentation_lists_every_member),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
