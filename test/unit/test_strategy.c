/* SPDX-License-Identifier: Apache-2.0 */
/* test_strategy.c -- a strategy that the engine could not enforce is refused, with the reason
 * (A07).
 */
#include "contracts.h"

#include "contract/matrix.h"
#include "contract/review.h"

enum { EDITS_MAX = 8 };
enum line {
	STRATEGY = 5,
	SCOPE = 10,
	NOTE = 18,
	STORE = 43,
	UNIQUE = 46,
	INDEX = 47,
	ROW = 48,
	EMITS = 49,
	HANDLER = 53
};

/* The good contract with some lines changed; a text of "" takes a line out. */
struct edit {
	int line;
	const char *text;
};

struct loaded {
	char dir[DIR_TEXT_MAX];
	struct contracts *contracts;
	enum ibid_code code;
	struct ibid_err err;
};

static const char *edited(const struct edit *edits, int line)
{
	for (size_t i = 0; i < EDITS_MAX && edits[i].line; i++)
		if (edits[i].line == line)
			return edits[i].text;
	return good_lines[line - 1];
}

static void load(struct loaded *loaded, const struct edit *edits)
{
	struct str out = STR_INIT(MUTANT_BYTES_MAX);
	for (int line = 1; line <= (int)COUNT(good_lines); line++)
		if (*edited(edits, line))
			str_addf(&out, "%s\n", edited(edits, line));
	*loaded = (struct loaded){.contracts = NULL};
	dir_open(loaded->dir);
	dir_write(loaded->dir, "look.sql", "select 200 as status;\n");
	dir_write(loaded->dir, "create-payment.yaml", str_text(&out));
	str_release(&out);
	loaded->code = contracts_load(loaded->dir, &loaded->contracts, &loaded->err);
}

static void loaded_close(struct loaded *loaded)
{
	contracts_free(loaded->contracts);
	dir_close(loaded->dir);
}

/* What makes each strategy complete. */
static const struct complete {
	const char *name;
	struct edit edits[EDITS_MAX];
} complete[] = {
    {"natural", {{STRATEGY, "strategy: natural\nalready: look.sql"}}},
    {"set-once", {{STRATEGY, "strategy: set-once\nalready: look.sql\nstate: look.sql"}}},
    {"unique", {{STRATEGY, "strategy: unique"}}},
    {"key", {{STRATEGY, "strategy: key"}}},
    {"version",
     {{STRATEGY, "strategy: version\nalready: look.sql\nstate: look.sql\n"
                 "guard: { version: /note, apply: newer, stale: reject }"},
      {NOTE, "  /note: { type: integer, required: true }"}}},
    {"commutative", {{STRATEGY, "strategy: commutative\nstate: look.sql"}, {EMITS, "emits: []"}}},
    {"external",
     {{STRATEGY, "strategy: external"},
      {HANDLER, "handler: callback\nstaged: { lease: 30s, recover: inquiry }"}}},
    {"none",
     {{STRATEGY, "strategy: none\nbecause: nobody counts"},
      {STORE, "  store: none"},
      {UNIQUE, ""},
      {INDEX, ""},
      {EMITS, "emits: []"}}},
};

static const struct complete *complete_of(const char *name)
{
	for (size_t i = 0; i < COUNT(complete); i++)
		if (strcmp(complete[i].name, name) == 0)
			return &complete[i];
	fail_msg("no strategy %s", name);
	return NULL;
}

/* The complete contract of a strategy with one more change is refused, for this alone. */
static void expect_refused(const char *strategy, int line, const char *text, const char *problem)
{
	struct complete changed = *complete_of(strategy);
	struct loaded loaded;
	size_t i = 0;
	while (changed.edits[i].line && changed.edits[i].line != line)
		i++;
	assert_true(i < EDITS_MAX);
	changed.edits[i] = (struct edit){line, text};
	load(&loaded, changed.edits);
	assert_int_equal(loaded.code, IBID_CONTRACT);
	assert_int_equal(contracts_problem_count(loaded.contracts), 1);
	assert_string_equal(contracts_problem(loaded.contracts, 0)->text, problem);
	loaded_close(&loaded);
}

static void every_strategy_of_a_command_can_be_declared(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(complete); i++) {
		struct loaded loaded;
		load(&loaded, complete[i].edits);
		if (loaded.code)
			fail_msg("%s: %s", complete[i].name, loaded.err.text);
		const struct contract *contract = contracts_at(loaded.contracts, 0);
		assert_string_equal(contract_strategy_name(contract->strategy), complete[i].name);
		loaded_close(&loaded);
	}
}

static void what_a_strategy_looks_with_is_read(void **state)
{
	struct loaded loaded;
	(void)state;
	load(&loaded, complete_of("version")->edits);
	const struct contract *contract = contracts_at(loaded.contracts, 0);
	assert_string_equal(contract->already, "look.sql");
	assert_string_equal(contract->state, "look.sql");
	assert_string_equal(contract->guard.version, "/note");
	assert_int_equal(contract->guard.apply, GUARD_NEWER);
	assert_int_equal(contract->guard.stale, STALE_REJECT);
	assert_true(contract_looks(contract));
	loaded_close(&loaded);
	load(&loaded, complete_of("none")->edits);
	assert_string_equal(contracts_at(loaded.contracts, 0)->because, "nobody counts");
	assert_false(contract_looks(contracts_at(loaded.contracts, 0)));
	loaded_close(&loaded);
}

static void strategy_without_what_it_needs_is_refused(void **state)
{
	static const char already[] =
	    "names the script that finds what is asked for where it holds already";
	char text[256];
	(void)state;
	snprintf(text, sizeof text, "strategy is natural, but no `already` %s", already);
	expect_refused("natural", STRATEGY, "strategy: natural", text);
	expect_refused("natural", ROW, "",
	               "strategy is natural, but no `serialize_by` names the row whose state is looked "
	               "at, which is held meanwhile");
	expect_refused("natural", ROW, "serialize_by: []",
	               "strategy is natural, but no `serialize_by` names the row whose state is looked "
	               "at, which is held meanwhile");
	snprintf(text, sizeof text, "strategy is set-once, but no `already` %s", already);
	expect_refused("set-once", STRATEGY, "strategy: set-once\nstate: look.sql", text);
	expect_refused(
	    "set-once", STRATEGY, "strategy: set-once\nalready: look.sql",
	    "strategy is set-once, but no `state` names the script that shows what is there");
	expect_refused("version", STRATEGY, "strategy: version\nalready: look.sql\nstate: look.sql",
	               "strategy is version, but no `guard` says which versions are applied");
	expect_refused("commutative", STRATEGY, "strategy: commutative",
	               "strategy is commutative, but no `state` names the script that shows what is "
	               "there");
	expect_refused(
	    "external", HANDLER, "handler: callback",
	    "strategy is external, but no `staged` says how long a worker may be silent, and "
	    "who then asks the partner");
	expect_refused("none", STRATEGY, "strategy: none",
	               "strategy is none, but no `because` says why it does not matter how often it "
	               "happens");
}

static void member_of_another_strategy_is_refused(void **state)
{
	(void)state;
	expect_refused("key", STRATEGY, "strategy: key\nalready: look.sql",
	               "`already` is given, but strategy is key, which does not look at it: leave it "
	               "out");
	expect_refused("natural", STRATEGY, "strategy: natural\nalready: look.sql\nstate: look.sql",
	               "`state` is given, but strategy is natural, which does not look at it: leave it "
	               "out");
	expect_refused(
	    "unique", STRATEGY, "strategy: unique\nbecause: why not",
	    "`because` is given, but strategy is unique, which does not look at it: leave it "
	    "out");
}

static void strategy_that_contradicts_other_answers_is_refused(void **state)
{
	(void)state;
	expect_refused("commutative", EMITS, "emits: [PaymentCreated]",
	               "emits is not empty, but strategy is commutative: every repetition would tell "
	               "others again");
	expect_refused("none", EMITS, "emits: [PaymentCreated]",
	               "emits is not empty, but strategy is none: every repetition would tell others "
	               "again");
	expect_refused("none", STORE, "  store: full",
	               "answer.store keeps something for duplicates, but strategy is none: it must be "
	               "none, too");
	expect_refused("none", UNIQUE,
	               "unique: { i: { on_duplicate: link, find: by-reference.$store.sql } }",
	               "`unique` guards the fact, but strategy is none: then strategy is unique");
	expect_refused(
	    "external", HANDLER, "handler: callback\nstaged: { lease: 30s, recover: human }",
	    "staged.recover is human, but strategy is external: under a key that the partner "
	    "keeps, a program can ask: inquiry, or { sql: FILE }");
	expect_refused("natural", HANDLER, "handler: callback\nstaged: { lease: 30s, recover: human }",
	               "the command is staged, but strategy is natural: what holds while its work is "
	               "done outside can't be looked at in one transaction; use external, unique or "
	               "key");
}

static void version_of_a_guard_is_a_required_integer(void **state)
{
	static const char *const fields[] = {"  /note: { type: integer }",
	                                     "  /note: { type: text, required: true }"};
	(void)state;
	for (size_t i = 0; i < COUNT(fields); i++)
		expect_refused("version", NOTE, fields[i],
		               "guard.version names /note: it must be a required integer, so that any two "
		               "compare");
	expect_refused("version", NOTE, "  /other: { type: integer, required: true }",
	               "guard.version names /note, which is not a declared field");
	expect_refused("version", STRATEGY,
	               "strategy: version\nalready: look.sql\nstate: look.sql\nguard: /note",
	               "guard must be a mapping, such as { version: /version, apply: next, stale: "
	               "reject }");
	expect_refused("version", STRATEGY,
	               "strategy: version\nalready: look.sql\nstate: look.sql\n"
	               "guard: { version: /note, apply: next }",
	               "guard.stale is missing");
	expect_refused(
	    "version", STRATEGY,
	    "strategy: version\nalready: look.sql\nstate: look.sql\n"
	    "guard: { version: note, apply: next, stale: link }",
	    "guard.version: `note` is not a pointer to a member, such as /amount or /lines/0/sku");
}

/* A store may keep a version from before the strategies were enforced: retries are compared by it.
 */
static void contract_that_a_store_keeps_is_read_by_the_rules_of_its_time(void **state)
{
	struct loaded loaded;
	struct arena arena = {0};
	struct contract *kept = NULL;
	struct ibid_err err = {0};
	(void)state;
	load(&loaded, complete_of("key")->edits);
	struct str text = STR_INIT(1 << 20);
	const char *json = contracts_at(loaded.contracts, 0)->text;
	const char *at = strstr(json, "\"strategy\":\"key\"");
	str_addf(&text, "%.*s\"strategy\":\"natural\"%s", (int)(at - json), json,
	         at + strlen("\"strategy\":\"key\""));
	assert_int_equal(contract_from_text(&arena, str_text(&text), &kept, &err), IBID_OK);
	assert_int_equal(kept->strategy, STRATEGY_NATURAL);
	str_release(&text);
	arena_release(&arena);
	loaded_close(&loaded);
}

/* ---- What reviewers see --------------------------------------------------------------------- */

static void expect_written(const char *strategy, const char *written, const char *part)
{
	if (!strstr(written, part))
		fail_msg("%s: no \"%s\" in %s", strategy, part, written);
}

static void matrix_says_how_each_strategy_is_enforced(void **state) /* A05 */
{
	static const struct {
		const char *strategy, *part;
	} expected[] = {
	    {"natural", "\"looksAt\":\"already: look.sql, unique: "},
	    {"set-once", "already: look.sql, state: look.sql"},
	    {"version", "guard: apply: newer, stale: reject, version: /note"},
	    {"version", "\"row\":\"/from\""},
	    {"commutative", "\"enforcedBy\":\"the handler is run twice, and `state` must be the same "},
	    {"external", "staged: lease: 30s, recover: inquiry"},
	    {"none", "because: nobody counts"},
	    {"natural", "what is asked for holds already"},
	};
	(void)state;
	for (size_t i = 0; i < COUNT(expected); i++) {
		struct loaded loaded;
		struct str out = STR_INIT(1 << 20);
		load(&loaded, complete_of(expected[i].strategy)->edits);
		matrix_write(&out, loaded.contracts, MATRIX_JSON);
		expect_written(expected[i].strategy, str_text(&out), expected[i].part);
		str_release(&out);
		loaded_close(&loaded);
	}
}

static void review_says_whether_a_strategy_has_what_it_needs(void **state) /* A08 */
{
	static const struct {
		const char *strategy, *part;
	} expected[] = {
	    {"natural", "strategy: natural; `already` is asked before the handler"},
	    {"commutative", "look.sql is the same after a repetition"},
	    {"none", "strategy: none, because nobody counts: is that so?"},
	    {"external", "is ibid_work_external_key what the partner gets?"},
	    {"unique", "is the index there?"},
	};
	(void)state;
	for (size_t i = 0; i < COUNT(expected); i++) {
		struct complete changed = *complete_of(expected[i].strategy);
		struct loaded loaded;
		struct review_counts counts;
		struct str out = STR_INIT(1 << 20);
		if (strcmp(changed.name, "commutative") == 0) {
			changed.edits[2] = (struct edit){UNIQUE, ""};
			changed.edits[3] = (struct edit){INDEX, ""};
		}
		load(&loaded, changed.edits);
		review_write(&out, loaded.contracts, NULL, MATRIX_JSON, &counts);
		expect_written(changed.name, str_text(&out), expected[i].part);
		str_release(&out);
		loaded_close(&loaded);
	}
}

static void review_looks_for_the_scripts_of_a_strategy(void **state) /* A08 */
{
	static const struct edit edits[EDITS_MAX] = {
	    {STRATEGY, "strategy: natural\nalready: by-reference.$store.sql"},
	    {UNIQUE, ""},
	    {INDEX, ""}};
	struct loaded loaded;
	struct review_counts counts;
	struct str out = STR_INIT(1 << 20);
	struct index_row none = {0};
	(void)state;
	load(&loaded, edits);
	review_write(&out, loaded.contracts, &(struct review_live){.store = "sqlite", .indexes = &none},
	             MATRIX_JSON, &counts);
	expect_written("natural", str_text(&out),
	               "by-reference.sqlite.sql is missing: write it, or use another store");
	str_release(&out);
	loaded_close(&loaded);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(every_strategy_of_a_command_can_be_declared),
	    cmocka_unit_test(what_a_strategy_looks_with_is_read),
	    cmocka_unit_test(strategy_without_what_it_needs_is_refused),
	    cmocka_unit_test(member_of_another_strategy_is_refused),
	    cmocka_unit_test(strategy_that_contradicts_other_answers_is_refused),
	    cmocka_unit_test(version_of_a_guard_is_a_required_integer),
	    cmocka_unit_test(contract_that_a_store_keeps_is_read_by_the_rules_of_its_time),
	    cmocka_unit_test(matrix_says_how_each_strategy_is_enforced),
	    cmocka_unit_test(review_says_whether_a_strategy_has_what_it_needs),
	    cmocka_unit_test(review_looks_for_the_scripts_of_a_strategy),
	};
	return cmocka_run_group_tests_name("strategy", tests, NULL, NULL);
}
