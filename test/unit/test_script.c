/* SPDX-License-Identifier: Apache-2.0 */
/* The splitter: each row is a script and either the statements it falls into, written as
 * "LINE|SQL|PARAMS" joined by newlines of "~~", or the sentence that refuses it. */
#include "base/str.h"
#include "store/script.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static const struct param_spec specs[] = {
    {"from", PARAM_TEXT},
    {"to", PARAM_TEXT},
    {"amount", PARAM_DECIMAL},
    {"n", PARAM_INTEGER},
};

struct row {
	const char *text, *split, *refused;
};

static void show(struct str *out, const struct script_statements *statements)
{
	for (size_t i = 0; i < statements->count; i++) {
		const struct script_statement *item = &statements->items[i];
		str_addf(out, "%s%d|%s|", i ? "~~" : "", item->line, item->sql);
		for (size_t k = 0; k < item->param_count; k++)
			str_addf(out, "%s%s", k ? "," : "", specs[item->params[k]].name);
	}
}

static void check_row(enum script_dialect dialect, const struct row *row)
{
	struct arena arena = {0};
	struct ibid_err err = {0};
	struct str shown = STR_INIT(1 << 20);
	struct script_statements statements = {0};
	enum ibid_code code = script_split(&arena, dialect, "f.sql", row->text, specs, 4, &statements,
	                                   &err);
	if (row->refused) {
		if (code != IBID_CONTRACT)
			fail_msg("not refused: %s", row->text);
		assert_string_equal(err.text, row->refused);
		assert_int_equal(statements.count, 0);
	} else {
		if (code)
			fail_msg("%s: %s", row->text, err.text);
		show(&shown, &statements);
		assert_string_equal(str_text(&shown), row->split);
	}
	str_release(&shown);
	arena_release(&arena);
}

static void check_rows(enum script_dialect dialect, const struct row *rows, size_t count)
{
	for (size_t i = 0; i < count; i++)
		check_row(dialect, &rows[i]);
}
#define CHECK(dialect, rows) check_rows(dialect, rows, sizeof(rows) / sizeof *(rows))

static void statements_end_at_semicolons_outside_of_quotations(void **state)
{
	static const struct row rows[] = {
	    {"select 1", "1|select 1|"},
	    {"select 1;", "1|select 1|"},
	    {";; select 1 ;;", "1|select 1|"},
	    {"\n\nselect 1;\nselect\n2;", "3|select 1|~~4|select\n2|"},
	    {"select ';', 'it''s;'; select 2", "1|select ';', 'it''s;'|~~1|select 2|"},
	    {"select \"a;\"\"b\"; select 2", "1|select \"a;\"\"b\"|~~1|select 2|"},
	    {"-- a; b\nselect 1 -- ; c\n; -- end", "2|select 1|"},
	    {"/* ; */ select /* ; :x */ 1 /* ; */; select 2", "1|select /* ; :x */ 1|~~1|select 2|"},
	    {"with x as (select 1) select * from x", "1|with x as (select 1) select * from x|"},
	    {"\xEF\xBB\xBFselect 1", "1|select 1|"},
	    {"select 1 -- :nobody", "1|select 1|"},
	};
	(void)state;
	CHECK(DIALECT_POSTGRES, rows);
	CHECK(DIALECT_SQLITE, rows);
}

static void postgres_quotations_are_read_as_the_server_reads_them(void **state)
{
	static const struct row rows[] = {
	    {"select E'a\\';b', e'\\\\'; select 2", "1|select E'a\\';b', e'\\\\'|~~1|select 2|"},
	    {"select E'a'\n 'b\\';c'; select 2", "1|select E'a'\n 'b\\';c'|~~2|select 2|"},
	    {"select E'a' -- it's\n 'b\\';c'; select 2",
	     "1|select E'a' -- it's\n 'b\\';c'|~~2|select 2|"},
	    {"select 'a\\'; select 2", "1|select 'a\\'|~~1|select 2|"},
	    {"select date'2026-01-01;'", "1|select date'2026-01-01;'|"},
	    {"do $$ begin; :x end $$; select 2", "1|do $$ begin; :x end $$|~~1|select 2|"},
	    {"do $a$ $$ ; $b$ $a$; select 2", "1|do $a$ $$ ; $b$ $a$|~~1|select 2|"},
	    {"select a$b$c; select 2", "1|select a$b$c|~~1|select 2|"},
	    {"select /* a /* b; */ c; */ 1; select 2", "1|select /* a /* b; */ c; */ 1|~~1|select 2|"},
	    {"select U&'\\0061;' ; select 2", "1|select U&'\\0061;'|~~1|select 2|"},
	};
	(void)state;
	CHECK(DIALECT_POSTGRES, rows);
}

static void sqlite_quotations_are_read_as_sqlite_reads_them(void **state)
{
	static const struct row rows[] = {
	    {"select [a;:x], `b;``:y`; select 2", "1|select [a;:x], `b;``:y`|~~1|select 2|"},
	    {"select 'a\\', E'b\\'; select 2", "1|select 'a\\', E'b\\'|~~1|select 2|"},
	    {"/* a /* b */ select 1", "1|select 1|"},
	    {"select x'00ff', a->>'$.b'", "1|select x'00ff', a->>'$.b'|"},
	};
	(void)state;
	CHECK(DIALECT_SQLITE, rows);
}

static void postgres_parameters_become_numbers(void **state)
{
	static const struct row rows[] = {
	    {"select :from, :to, :from", "1|select $1, $2, $1|from,to"},
	    {"select:n", "1|select $1|n"},
	    {"select :n:to", "1|select $1 $2|n,to"},
	    {"select :to; select :from", "1|select $1|to~~1|select $1|from"},
	    {"select ':from', \":to\", $$:n$$", "1|select ':from', \":to\", $$:n$$|"},
	    {"select :n::text, '1'::int", "1|select $1::text, '1'::int|n"},
	    {"select f(a := :n, b=>:to)", "1|select f(a := $1, b=>$2)|n,to"},
	    {"select a[1:n], a[:n], a[:n:2], a[1 :n]", "1|select a[1:n], a[$1], a[$1:2], a[1 :n]|n"},
	    {"select a[: n], a[:m], a[f(:n):m]", "1|select a[: n], a[:m], a[f($1):m]|n"},
	    {"select a[:n : :to], a[(:n):x]", "1|select a[$1 : $2], a[($1):x]|n,to"},
	    {"select a[b[1]:n][:n]", "1|select a[b[1]:n][$1]|n"},
	    {"select array[:n, case when true then :n end]",
	     "1|select array[$1, case when true then $1 end]|n"},
	    {"select array[[:n],[:n]], a[case when x then :n end]",
	     "1|select array[[$1],[$1]], a[case when x then $1 end]|n"},
	    {"select j ? 'a', j @> :to, j #>> '{a}', j ->> 'x'",
	     "1|select j ? 'a', j @> $1, j #>> '{a}', j ->> 'x'|to"},
	    {"select (:n)", "1|select ($1)|n"},
	};
	static const struct row refused[] = {
	    {"\nselect\n:form", NULL,
	     "f.sql:3: unknown parameter :form; declared are :from, :to, :amount, :n (did you mean "
	     ":from?)"},
	    {"select :amuont", NULL,
	     "f.sql:1: unknown parameter :amuont; declared are :from, :to, :amount, :n (did you mean "
	     ":amount?)"},
	    {"select :From", NULL,
	     "f.sql:1: unknown parameter :From; declared are :from, :to, :amount, :n (did you mean "
	     ":from?)"},
	    {"select array[:zzzz]", NULL,
	     "f.sql:1: unknown parameter :zzzz; declared are :from, :to, :amount, :n"},
	    {"select $1", NULL, "f.sql:1: $1 is not a parameter; write :name"},
	};
	(void)state;
	CHECK(DIALECT_POSTGRES, rows);
	CHECK(DIALECT_POSTGRES, refused);
}

static void sqlite_parameters_stay_as_they_are(void **state)
{
	static const struct row rows[] = {
	    {"select :from, :n, :from", "1|select :from, :n, :from|from,n"},
	    {"select [:x], :n", "1|select [:x], :n|n"},
	    {"select ?1", NULL, "f.sql:1: ?1 is not a parameter; write :name"},
	    {"select @a", NULL, "f.sql:1: @a is not a parameter; write :name"},
	    {"select $a", NULL, "f.sql:1: $a is not a parameter; write :name"},
	    {"select :x", NULL, "f.sql:1: unknown parameter :x; declared are :from, :to, :amount, :n"},
	};
	(void)state;
	CHECK(DIALECT_SQLITE, rows);
}

static void what_would_end_the_transaction_or_change_the_session_is_refused(void **state)
{
	static const char *const words[] = {
	    "BEGIN",
	    "START",
	    "COMMIT",
	    "END",
	    "ROLLBACK",
	    "ABORT",
	    "SAVEPOINT",
	    "RELEASE",
	    "PREPARE",
	    "EXECUTE",
	    "DEALLOCATE",
	    "LISTEN",
	    "UNLISTEN",
	    "COPY",
	    "DISCARD",
	    "RESET",
	    "LOAD",
	    "VACUUM",
	    "CHECKPOINT",
	    "DECLARE",
	    "SET",
	    "set session",
	    "set local role",
	    "SET LOCAL SESSION AUTHORIZATION",
	    "set local \"role\" =",
	    "set local synchronous_commit =",
	    "set local ibid.tenant =",
	    "set/**/local/**/role",
	};
	static const enum script_dialect dialects[] = {DIALECT_POSTGRES, DIALECT_SQLITE};
	(void)state;
	for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
		for (size_t d = 0; d < 2; d++) {
			struct arena arena = {0};
			struct ibid_err err = {0};
			struct script_statements statements;
			const char *text = arena_printf(&arena, "select 1;\n/* x */ %s x", words[i]);
			enum ibid_code code = script_split(&arena, dialects[d], "f.sql", text, NULL, 0,
			                                   &statements, &err);
			if (code != IBID_CONTRACT || strncmp(err.text, "f.sql:2: ", 9) != 0)
				fail_msg("%s: code %d, %s", words[i], (int)code, err.text);
			arena_release(&arena);
		}
	}
	static const struct row rows[] = {
	    {"select 1; commit", NULL,
	     "f.sql:1: commit is not allowed in a script: ibid begins and ends the transaction"},
	    {"set x = 1", NULL,
	     "f.sql:1: SET is not allowed in a script: it outlives the transaction; SET LOCAL is "
	     "allowed"},
	    {"-- hidden \r commit", NULL,
	     "f.sql:1: commit is not allowed in a script: ibid begins and ends the transaction"},
	    {"set local lock_timeout = 5", "1|set local lock_timeout = 5|"},
	    {"set constraints all immediate", "1|set constraints all immediate|"},
	    {"select commit from \"begin\"", "1|select commit from \"begin\"|"},
	    {"(select 1)", "1|(select 1)|"},
	    {"create temp table t (a int)", NULL,
	     "f.sql:1: CREATE TEMPORARY is not allowed in a script: it outlives the transaction"},
	    {"create or replace temporary view v as select 1", NULL,
	     "f.sql:1: CREATE TEMPORARY is not allowed in a script: it outlives the transaction"},
	    {"create local temp table t (a int)", NULL,
	     "f.sql:1: CREATE TEMPORARY is not allowed in a script: it outlives the transaction"},
	    {"create table pg_temp.t (a int)", NULL,
	     "f.sql:1: CREATE TEMPORARY is not allowed in a script: it outlives the transaction"},
	    {"create table temp (a int)", "1|create table temp (a int)|"},
	};
	CHECK(DIALECT_POSTGRES, rows);
	static const struct row sqlite[] = {
	    {"attach 'x' as y", NULL,
	     "f.sql:1: attach is not allowed in a script: it outlives the transaction"},
	    {"detach y", NULL,
	     "f.sql:1: detach is not allowed in a script: it outlives the transaction"},
	    {"pragma x", NULL,
	     "f.sql:1: pragma is not allowed in a script: it outlives the transaction"},
	    {"create temp trigger x after insert on t begin select 1; end", NULL,
	     "f.sql:1: CREATE TRIGGER is not allowed in a script; put it into the schema file"},
	    {"create temp table t(a)", NULL,
	     "f.sql:1: CREATE TEMPORARY is not allowed in a script: it outlives the transaction"},
	    {"create table t(a)", "1|create table t(a)|"},
	};
	CHECK(DIALECT_SQLITE, sqlite);
}

static void statements_that_may_change_the_session_are_marked(void **state)
{
	static const struct {
		const char *text;
		bool marked;
	} rows[] = {
	    {"select set_config('search_path', 'x', false)", true},
	    {"select \"set_config\"('search_path', 'x', false)", true},
	    {"select a, SET_CONFIG('search_path', 'x', false) from t", true},
	    {"do $$ begin null; end $$", true},
	    {"/* x */ call p()", true},
	    {"select 1 as a into temp t", true},
	    {"create table if not exists pg_temp.t (a int)", true},
	    {"update pg_settings set setting = 'off'", true},
	    {"select pg_advisory_lock(1)", true},
	    {"select pg_advisory_xact_lock(1)", false},
	    {"insert into t values (1) on conflict do nothing", false},
	    {"select 'set_config', role, session -- do: temp\nfrom t", false},
	};
	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct arena arena = {0};
		struct ibid_err err = {0};
		struct script_statements statements;
		const char *text = arena_printf(&arena, "%s; select 1", rows[i].text);
		assert_int_equal(
		    script_split(&arena, DIALECT_POSTGRES, "f.sql", text, NULL, 0, &statements, &err),
		    IBID_OK);
		if (statements.items[0].leaves_state != rows[i].marked)
			fail_msg("%s", rows[i].text);
		assert_false(statements.items[1].leaves_state);
		arena_release(&arena);
	}
}

static void what_the_engine_would_read_differently_is_refused(void **state)
{
	static const struct row both[] = {
	    {"", NULL, "f.sql:1: the script has no statement"},
	    {" -- x\n/* y */ ;;", NULL, "f.sql:1: the script has no statement"},
	    {"select 1;\nselect 'a\n\n", NULL, "f.sql:2: this ' is never closed"},
	    {"\nselect \"a''", NULL, "f.sql:2: this \" is never closed"},
	    {"\n\n/* a\n* /", NULL, "f.sql:3: this comment is never closed"},
	    {"select\n(1;select 2)", NULL, "f.sql:2: ( is never closed"},
	    {"select 1)", NULL, "f.sql:1: ) closes nothing"},
	    {"select 1e'\\'' ", NULL, "f.sql:1: a number runs into '"},
	};
	static const struct row postgres[] = {
	    {"select\n$a$ x $b$ $$", NULL, "f.sql:2: this $a$ is never closed"},
	    {"select E'\\'", NULL, "f.sql:1: this ' is never closed"},
	    {"/* a /* b */ select 1", NULL, "f.sql:1: this comment is never closed"},
	    {"select a[1", NULL, "f.sql:1: [ is never closed"},
	    {"select (a]", NULL, "f.sql:1: ] closes nothing"},
	};
	static const struct row sqlite[] = {
	    {"select [a", NULL, "f.sql:1: this [ is never closed"},
	    {"select `a", NULL, "f.sql:1: this ` is never closed"},
	};
	(void)state;
	CHECK(DIALECT_POSTGRES, both);
	CHECK(DIALECT_SQLITE, both);
	CHECK(DIALECT_POSTGRES, postgres);
	CHECK(DIALECT_SQLITE, sqlite);
}

static void nesting_has_a_limit(void **state)
{
	char text[2000] = "select ";
	struct arena arena = {0};
	struct ibid_err err = {0};
	struct script_statements statements;
	(void)state;
	memset(text + 7, '(', 1000);
	text[1007] = '\0';
	assert_int_equal(
	    script_split(&arena, DIALECT_POSTGRES, "f.sql", text, NULL, 0, &statements, &err),
	    IBID_CONTRACT);
	assert_string_equal(err.text, "f.sql:1: nested more than 256 deep");
	arena_release(&arena);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(statements_end_at_semicolons_outside_of_quotations),
	    cmocka_unit_test(postgres_quotations_are_read_as_the_server_reads_them),
	    cmocka_unit_test(sqlite_quotations_are_read_as_sqlite_reads_them),
	    cmocka_unit_test(postgres_parameters_become_numbers),
	    cmocka_unit_test(sqlite_parameters_stay_as_they_are),
	    cmocka_unit_test(what_would_end_the_transaction_or_change_the_session_is_refused),
	    cmocka_unit_test(statements_that_may_change_the_session_are_marked),
	    cmocka_unit_test(what_the_engine_would_read_differently_is_refused),
	    cmocka_unit_test(nesting_has_a_limit),
	};
	return cmocka_run_group_tests_name("script", tests, NULL, NULL);
}
