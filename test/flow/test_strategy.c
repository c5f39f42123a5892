/* SPDX-License-Identifier: Apache-2.0 */
/* test_strategy.c -- what each strategy promises of the same intent under a new key, and handlers
 * that do not keep it (A07); the scopes of postings and payments (A02). */
#include "support/race.h"

#include <libpq-fe.h>
#include <pthread.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STRATEGIES IBID_SOURCE_DIR "/test/flow/strategies"
#define SCOPES     IBID_SOURCE_DIR "/test/flow/scopes"
#define OPERATIONS IBID_SOURCE_DIR "/test/flow/operations"
static struct bed bed;
static struct ibid *ibid;

static int open_on(const char *fixture)
{
	bed_open(&bed, fixture);
	ibid = bed_ibid(&bed, NULL);
	return 0;
}

static int set_up(void **state)
{
	(void)state;
	return open_on(STRATEGIES);
}

static int set_up_scopes(void **state)
{
	(void)state;
	return open_on(SCOPES);
}

static int set_up_operations(void **state)
{
	(void)state;
	return open_on(OPERATIONS);
}

static int tear_down(void **state)
{
	(void)state;
	ibid_close(ibid);
	bed_close(&bed);
	return 0;
}

/* ---- Words ---------------------------------------------------------------------------------- */

#define FLAG(name, value) "{\"name\":\"" name "\",\"value\":\"" value "\"}"
#define CASE_AT(version, status)                                                                   \
	"{\"case\":\"c\",\"version\":" version ",\"status\":\"" status "\"}"
#define TAG(tag)    "{\"case\":\"c\",\"tag\":\"" tag "\"}"
#define MARK(value) "{\"name\":\"m\",\"value\":" value "}"

static int64_t rows(const char *table)
{
	return bed_number(&bed, "select count(*) from %s", table);
}

static void expect_rejected(const char *operation, const char *key, const char *payload,
                            const char *reason)
{
	struct ibid_result *result = bed_submit(ibid, operation, key, payload);
	const char *said = ibid_result_reason(result);
	if (strcmp(bed_say(result), "rejected 409") != 0 || !said || strcmp(said, reason) != 0)
		fail_msg("%s: %s, %s", payload, bed_say(result), said ? said : "-");
	ibid_result_free(result);
}

/* It fails as a handler's own failure does: nothing is left, and the key may be sent again. */
static void expect_broken(const char *operation, const char *key, const char *payload,
                          const char *part)
{
	struct ibid_result *result = bed_submit(ibid, operation, key, payload);
	const char *text = ibid_result_text(result);
	if (strcmp(bed_say(result), "failed 500") != 0 || !text || !strstr(text, part))
		fail_msg("%s: %s: %s", operation, bed_say(result), text ? text : "-");
	assert_string_equal(ibid_result_reason(result), "HANDLER_FAILED");
	ibid_result_free(result);
}

/* Open again with another script in a file's place; `%` in it is "ibid." or "ibid_". */
static void replace_script(const char *name, const char *text)
{
	char file[128], out[1024];
	size_t used = 0;
	bool sqlite = bed.kind == BED_SQLITE;
	snprintf(file, sizeof file, "%.*s%s%s", (int)strcspn(name, "$"), name,
	         strchr(name, '$') ? (sqlite ? "sqlite" : "postgres") : "",
	         strchr(name, '$') ? ".sql" : "");
	for (; *text; text++)
		used += (size_t)snprintf(out + used, sizeof out - used, *text == '%' ? "%s" : "%.1s",
		                         *text == '%' ? (sqlite ? "ibid_" : "ibid.") : text);
	ibid_close(ibid);
	bed_write(&bed, file, out);
	ibid = bed_ibid(&bed, NULL);
}

/* What contracts_load says of a directory with one line changed. */
static void expect_refused(const char *file, const char *from, const char *to, const char *part)
{
	struct ibid *refused = NULL;
	struct ibid_err err = {0};
	bed_replace(&bed, file, from, to);
	assert_int_equal(
	    ibid_open(IBID_OPTIONS(.store = bed.url, .contracts = bed.contracts), &refused, &err),
	    IBID_CONTRACT);
	if (!strstr(err.text, part))
		fail_msg("%s", err.text);
	bed_replace(&bed, file, to, from);
}

/* ---- natural -------------------------------------------------------------------------------- */

static void natural_what_holds_already_is_linked_and_not_told_again(void **state)
{
	(void)state;
	bed_expect(ibid, "set-flag", "k-1", FLAG("f", "on"), "executed 200");
	struct ibid_result *result = bed_submit(ibid, "set-flag", "k-2", FLAG("f", "on"));
	assert_string_equal(bed_say(result), "linked 200");
	assert_string_equal(ibid_result_resource_id(result), "f");
	ibid_result_free(result);
	bed_expect(ibid, "set-flag", "k-2", FLAG("f", "on"), "replayed linked 200");
	assert_int_equal(rows("ibid.event"), 1);
	bed_expect(ibid, "set-flag", "k-3", FLAG("f", "off"), "executed 200");
	bed_expect(ibid, "set-flag", "k-4", FLAG("f", "on"), "executed 200");
	assert_int_equal(rows("ibid.event"), 3);
	assert_int_equal(bed_number(&bed, "select count(*) from flag where value = 'on'"), 1);
}

static void natural_a_handler_that_misses_its_target_fails_and_leaves_nothing(void **state)
{
	(void)state;
	static const char elsewhere[] =
	    "insert into flag (tenant, name, value) values (:tenant, :name, 'elsewhere');\n"
	    "select %emit('flag', :name, 'FlagSet', '{}');\n"
	    "select 200 as status;\n";
	replace_script("set-flag.$", "select 200 as status;\n");
	expect_broken("set-flag", "k-1", FLAG("f", "on"), "`already` finds no row");
	replace_script("set-flag.$", elsewhere);
	expect_broken("set-flag", "k-1", FLAG("f", "on"), "did not do what was asked for");
	assert_int_equal(rows("flag"), 0);
	assert_int_equal(rows("ibid.event"), 0);
	assert_int_equal(rows("ibid.audit"), 0);
}

static void natural_what_already_rejects_is_the_outcome_before_and_a_failure_after(void **state)
{
	(void)state;
	replace_script("flag-is.sql",
	               "select %reject('FROZEN', 409, 'it is frozen') from flag where tenant = :tenant "
	               "and name = :name and value = 'frozen';\n"
	               "select 200 as status from flag where tenant = :tenant and name = :name and "
	               "value = :value;\n");
	bed_exec(&bed, "insert into flag (tenant, name, value) values ('t', 'f', 'frozen')");
	expect_rejected("set-flag", "k-1", FLAG("f", "on"), "FROZEN");
	bed_expect(ibid, "set-flag", "k-1", FLAG("f", "on"), "replayed rejected 409");
	expect_broken("set-flag", "k-2", FLAG("g", "frozen"), "rejects with FROZEN");
	assert_int_equal(rows("flag"), 1);
}

static void natural_a_script_that_may_only_look_can_not_change_anything(void **state)
{
	(void)state;
	replace_script("flag-is.sql",
	               "insert into flag (tenant, name, value) values (:tenant, :name, :value);\n"
	               "select 200 as status;\n");
	expect_broken("set-flag", "k-1", FLAG("f", "on"), "may only look");
	replace_script("flag-is.sql", "select %emit('flag', :name, 'FlagSet', '{}');\n"
	                              "select 200 as status;\n");
	expect_broken("set-flag", "k-2", FLAG("f", "on"), "may only look");
	assert_int_equal(rows("flag"), 0);
	assert_int_equal(rows("ibid.event"), 0);
}

/* PostgreSQL has a shorter way for commands that keep no body. */
static void natural_holds_where_no_body_is_kept(void **state)
{
	(void)state;
	bed_expect(ibid, "set-flag-briefly", "k-1", FLAG("f", "on"), "executed 200");
	bed_expect(ibid, "set-flag-briefly", "k-2", FLAG("f", "on"), "linked 200");
	assert_int_equal(rows("ibid.event"), 1);
	replace_script("set-flag.$", "select 200 as status;\n");
	expect_broken("set-flag-briefly", "k-3", FLAG("f", "off"), "`already` finds no row");
}

/* ---- By a callback -------------------------------------------------------------------------- */

struct program {
	bool lazy, ends;
	int runs;
};

static enum ibid_code run_sql(struct ibid_work *work, const char *sql)
{
	sqlite3 *db = ibid_work_sqlite(work);
	if (db)
		return sqlite3_exec(db, sql, NULL, NULL, NULL) ? ibid_fail(work, sqlite3_errmsg(db))
		                                               : IBID_OK;
	PGresult *result = PQexec(ibid_work_postgres(work), sql);
	ExecStatusType status = PQresultStatus(result);
	PQclear(result);
	return status == PGRES_COMMAND_OK ? IBID_OK : ibid_fail(work, "the statement failed");
}

static enum ibid_code set_flag(struct ibid_work *work, void *user)
{
	struct program *program = user;
	char sql[256];
	program->runs++;
	snprintf(sql, sizeof sql, "insert into flag (tenant, name, value) values ('t', '%s', '%s')",
	         ibid_field_text(work, "/name"), program->lazy ? "-" : ibid_field_text(work, "/value"));
	enum ibid_code code = run_sql(work, sql);
	if (!code && program->ends)
		code = run_sql(work, "commit; begin");
	if (!code)
		code = ibid_emit(work, IBID_EVENT(.aggregate_type = "flag", .aggregate_id = "f",
		                                  .type = "FlagSet", .payload = "{}"));
	return code ? code : ibid_answer(work, 200, NULL);
}

static void natural_holds_for_a_program_as_for_a_script(void **state)
{
	(void)state;
	struct program program = {0};
	const char *operation = "set-flag-by-program";
	assert_int_equal(ibid_handle(ibid, operation, set_flag, &program, NULL), IBID_OK);
	bed_expect(ibid, operation, "k-1", FLAG("f", "on"), "executed 200");
	bed_expect(ibid, operation, "k-2", FLAG("f", "on"), "linked 200");
	assert_int_equal(program.runs, 1);
	program.lazy = true;
	expect_broken(operation, "k-3", FLAG("g", "on"), "`already` finds no row");
	assert_int_equal(rows("flag"), 1);
	assert_int_equal(rows("ibid.event"), 1);
}

/* What it did is there, whatever `already` finds then. */
static void natural_a_program_that_ended_the_transaction_leaves_an_unknown_command(void **state)
{
	(void)state;
	struct program program = {.lazy = true, .ends = true};
	assert_int_equal(ibid_handle(ibid, "set-flag-by-program", set_flag, &program, NULL), IBID_OK);
	const char *expected = bed.kind == BED_SQLITE ? "failed 500" /* the engine keeps it from that */
	                                              : "unknown 500";
	bed_expect(ibid, "set-flag-by-program", "k-1", FLAG("f", "on"), expected);
	assert_int_equal(rows("flag"), bed.kind == BED_POSTGRES);
	assert_int_equal(rows("ibid.exception"), bed.kind == BED_POSTGRES);
}

/* ---- set-once ------------------------------------------------------------------------------- */

static void set_once_the_same_is_linked_and_another_value_is_rejected(void **state)
{
	(void)state;
	bed_expect(ibid, "fix-flag", "k-1", FLAG("f", "on"), "executed 200");
	bed_expect(ibid, "fix-flag", "k-2", FLAG("f", "on"), "linked 200");
	/* The handler would overwrite it: it is not run. */
	expect_rejected("fix-flag", "k-3", FLAG("f", "off"), "ALREADY_SET");
	bed_expect(ibid, "fix-flag", "k-3", FLAG("f", "off"), "replayed rejected 409");
	assert_int_equal(bed_number(&bed, "select count(*) from flag where value = 'on'"), 1);
	assert_int_equal(rows("ibid.event"), 1);
}

static void set_once_a_rejection_names_what_is_there(void **state)
{
	(void)state;
	bed_expect(ibid, "fix-flag", "k-1", FLAG("f", "on"), "executed 200");
	struct ibid_result *result = bed_submit(ibid, "fix-flag", "k-2", FLAG("f", "off"));
	assert_string_equal(bed_say(result), "rejected 409");
	assert_string_equal(ibid_result_resource_type(result), "flag");
	assert_string_equal(ibid_result_resource_id(result), "f");
	ibid_result_free(result);
}

static void set_once_a_handler_that_sets_nothing_or_something_else_fails(void **state)
{
	(void)state;
	replace_script("fix-flag.$", "select 200 as status;\n");
	expect_broken("fix-flag", "k-1", FLAG("f", "on"), "`already` finds no row");
	replace_script("fix-flag.$",
	               "insert into flag (tenant, name, value) values (:tenant, :name, 'other');\n"
	               "select 200 as status;\n");
	expect_broken("fix-flag", "k-1", FLAG("f", "on"), "`already` finds no row");
	assert_int_equal(rows("flag"), 0);
}

/* Its two scripts do not speak of the same thing. */
static void set_once_a_state_that_does_not_show_what_was_set_fails(void **state)
{
	(void)state;
	replace_script("flag.sql", "select 200 as status from flag where name = 'nothing';\n");
	expect_broken("fix-flag", "k-1", FLAG("f", "on"), "`state` finds no row");
	assert_int_equal(rows("flag"), 0);
}

/* ---- version -------------------------------------------------------------------------------- */

static void version_only_the_next_one_is_applied(void **state)
{
	(void)state;
	bed_expect(ibid, "apply", "k-1", CASE_AT("1", "OPEN"), "executed 200");
	expect_rejected("apply", "k-3", CASE_AT("3", "CLOSED"), "VERSION_GAP");
	bed_expect(ibid, "apply", "k-2", CASE_AT("2", "HELD"), "executed 200");
	bed_expect(ibid, "apply", "k-2b", CASE_AT("2", "HELD"), "linked 200");
	expect_rejected("apply", "k-2c", CASE_AT("2", "CLOSED"), "VERSION_TAKEN");
	expect_rejected("apply", "k-1b", CASE_AT("1", "OPEN"), "STALE_VERSION");
	expect_rejected("apply", "k-0", CASE_AT("0", "OPEN"), "STALE_VERSION");
	bed_expect(ibid, "apply", "k-3b", CASE_AT("3", "CLOSED"), "executed 200");
	assert_int_equal(bed_number(&bed, "select version from projection"), 3);
}

static void version_nothing_comes_before_the_first(void **state)
{
	(void)state;
	expect_rejected("apply", "k-1", CASE_AT("0", "OPEN"), "STALE_VERSION");
	expect_rejected("apply", "k-2", CASE_AT("-1", "OPEN"), "STALE_VERSION");
	expect_rejected("overtake", "k-3", CASE_AT("0", "OPEN"), "STALE_VERSION");
	expect_rejected("apply", "k-4", CASE_AT("2", "OPEN"), "VERSION_GAP");
	assert_int_equal(rows("projection"), 0);
}

static void version_a_newer_one_may_overtake_where_the_contract_says_so(void **state)
{
	(void)state;
	bed_expect(ibid, "overtake", "k-7", CASE_AT("7", "CLOSED"), "executed 200");
	bed_expect(ibid, "overtake", "k-5", CASE_AT("5", "OPEN"), "linked 200");
	bed_expect(ibid, "overtake", "k-7b", CASE_AT("7", "CLOSED"), "linked 200");
	assert_int_equal(bed_number(&bed, "select version from projection"), 7);
	assert_int_equal(bed_number(&bed, "select count(*) from projection where status = 'CLOSED'"),
	                 1);
}

static void version_a_handler_that_makes_another_version_fails(void **state)
{
	(void)state;
	replace_script("apply.sql",
	               "insert into projection (tenant, case_id, version, status) values (:tenant, "
	               ":case, :version + 1, :status);\nselect 200 as status;\n");
	replace_script("applied.sql", "select 200 as status from projection;\n");
	expect_broken("apply", "k-1", CASE_AT("1", "OPEN"), "shows version 2, and 1 was asked for");
	replace_script("apply.sql", "select 200 as status;\n");
	expect_broken("apply", "k-1", CASE_AT("1", "OPEN"), "`already` finds no row");
	assert_int_equal(rows("projection"), 0);
}

static void version_a_state_without_a_version_fails(void **state)
{
	(void)state;
	static const char *const bodies[] = {"null",
	                                     "'[]'",
	                                     "'{}'",
	                                     "'{\"version\":\"1\"}'",
	                                     "'{\"version\":1.5}'",
	                                     "'{\"version\":0}'",
	                                     "'{\"version\":99999999999999999999}'"};
	bed_expect(ibid, "apply", "k-1", CASE_AT("1", "OPEN"), "executed 200");
	for (size_t i = 0; i < sizeof bodies / sizeof *bodies; i++) {
		char text[128], key[16];
		snprintf(text, sizeof text, "select 200 as status, %s as body;\n", bodies[i]);
		snprintf(key, sizeof key, "b-%zu", i);
		replace_script("projection.$", text);
		expect_broken("apply", key, CASE_AT("2", "HELD"), "no whole number above 0");
	}
	assert_int_equal(bed_number(&bed, "select version from projection"), 1);
}

/* ---- commutative ---------------------------------------------------------------------------- */

static void commutative_repetition_and_order_do_not_matter(void **state)
{
	(void)state;
	bed_expect(ibid, "tag-case", "k-1", TAG("vip"), "executed 200");
	bed_expect(ibid, "tag-case", "k-2", TAG("late"), "executed 200");
	bed_expect(ibid, "tag-case", "k-3", TAG("vip"), "executed 200");
	assert_int_equal(rows("tag"), 2);
	bed_expect(ibid, "raise-mark", "k-1", MARK("7"), "executed 200");
	bed_expect(ibid, "raise-mark", "k-2", MARK("5"), "executed 200");
	bed_expect(ibid, "raise-mark", "k-3", MARK("7"), "executed 200");
	assert_int_equal(bed_number(&bed, "select value from counter"), 7);
}

static void commutative_a_handler_that_counts_is_found_out(void **state)
{
	(void)state;
	/* Its answer is the same every time: the state is what tells. */
	replace_script("raise-mark.sql",
	               "insert into counter (tenant, name, value) values (:tenant, :name, :value) on "
	               "conflict (tenant, name) do update set value = counter.value + :value;\n"
	               "select 200 as status;\n");
	expect_broken("raise-mark", "k-1", MARK("7"), "running the handler twice");
	assert_int_equal(rows("counter"), 0);
}

static void commutative_a_handler_that_does_not_run_twice_is_found_out(void **state)
{
	(void)state;
	replace_script("tag-case.sql",
	               "insert into tag (tenant, case_id, tag) values (:tenant, :case, :tag);\n"
	               "select 200 as status;\n");
	expect_broken("tag-case", "k-1", TAG("vip"), "does not run twice");
	replace_script("tag-case.sql",
	               "select %reject('SEEN', 409, 'it was seen') from tag where tenant = :tenant and "
	               "tag = :tag;\n"
	               "insert into tag (tenant, case_id, tag) values (:tenant, :case, :tag);\n"
	               "select 200 as status;\n");
	expect_broken("tag-case", "k-1", TAG("vip"), "does not run twice");
	assert_int_equal(rows("tag"), 0);
}

static void commutative_a_state_that_shows_nothing_proves_nothing(void **state)
{
	(void)state;
	replace_script("tag-case.sql", "select 200 as status;\n");
	replace_script("tags.$", "select 200 as status from tag where tenant = :tenant;\n");
	expect_broken("tag-case", "k-1", TAG("vip"), "`state` finds no row");
}

/* ---- none ----------------------------------------------------------------------------------- */

static void none_runs_for_every_new_key_and_keeps_no_answer(void **state)
{
	(void)state;
	bed_expect(ibid, "touch", "k-1", "{\"name\":\"c\"}", "executed 200");
	bed_expect(ibid, "touch", "k-2", "{\"name\":\"c\"}", "executed 200");
	bed_expect(ibid, "touch", "k-2", "{\"name\":\"c\"}", "replayed executed 204");
	assert_int_equal(bed_number(&bed, "select value from counter"), 2);
}

static void none_a_handler_that_tells_others_fails(void **state)
{
	(void)state;
	replace_script("touch.sql", "select %emit('c', :name, 'Touched', '{}');\n"
	                            "select 200 as status;\n");
	expect_broken("touch", "k-1", "{\"name\":\"c\"}", "Touched");
	assert_int_equal(rows("ibid.event"), 0);
}

/* ---- external ------------------------------------------------------------------------------- */

static const char notice[] = "{\"case\":\"c\",\"purpose\":\"closed\",\"text\":\"hello\"}";

static struct ibid_staged *stage(struct ibid *on, const char *tenant, const char *payload)
{
	struct ibid_staged *staged = NULL;
	struct ibid_result *result = NULL;
	struct ibid_err err = {0};
	if (ibid_stage(on,
	               IBID_COMMAND(.tenant = tenant, .client = "c", .operation = "send-notification",
	                            .payload = payload),
	               &staged, &result, &err))
		fail_msg("%s", err.text);
	assert_non_null(staged);
	return staged;
}

static enum ibid_code keep_key(struct ibid_staged *staged, void *user)
{
	snprintf(user, 64, "%s", ibid_work_external_key(ibid_staged_work(staged)));
	struct ibid_result *result = NULL;
	enum ibid_code code = ibid_staged_fail(staged, true, "not sent", &result, NULL);
	ibid_result_free(result);
	return code;
}

static enum ibid_code answer_with_key(struct ibid_work *work, void *user)
{
	snprintf(user, 64, "%s", ibid_work_external_key(work));
	return ibid_answer(work, 200, NULL);
}

static void external_key_is_the_same_for_every_run_of_a_command(void **state)
{
	(void)state;
	char first[64], taken[64] = "", again[64], finished[64] = "";
	size_t count = 0;
	struct ibid_result *result = NULL;
	struct ibid_staged *staged = stage(ibid, "t", notice);
	snprintf(first, sizeof first, "%s", ibid_work_external_key(ibid_staged_work(staged)));
	ibid_staged_free(staged); /* silent from here on */
	if (bed.kind == BED_SQLITE)
		bed_exec(&bed, "update ibid.command set lease_until_us = 1");
	else
		bed_exec(&bed, "update ibid.command set lease_until = 'epoch'");
	struct ibid *other = bed_ibid(&bed, NULL);
	assert_int_equal(ibid_handle_inquiry(other, "send-notification", keep_key, taken, NULL),
	                 IBID_OK);
	assert_int_equal(ibid_recover(other, IBID_RECOVERY(.limit = 1), &count, NULL), IBID_OK);
	assert_int_equal(count, 1);
	staged = stage(other, "t", notice); /* a new run */
	snprintf(again, sizeof again, "%s", ibid_work_external_key(ibid_staged_work(staged)));
	assert_int_equal(ibid_staged_finish(staged, answer_with_key, finished, &result, NULL), IBID_OK);
	ibid_result_free(result);
	ibid_staged_free(staged);
	ibid_close(other);
	assert_string_equal(taken, first);
	assert_string_equal(again, first);
	assert_string_equal(finished, first);
	/* Partners keep it: it is not made otherwise by another version. */
	assert_string_equal(first, "48d7e062-b39b-500e-8a42-d0c576dbbf94");
}

static void external_key_is_another_for_every_other_command(void **state)
{
	(void)state;
	struct ibid_staged *one = stage(ibid, "t", notice), *tenant = stage(ibid, "u", notice);
	struct ibid_staged *purpose = stage(
	    ibid, "t", "{\"case\":\"c\",\"purpose\":\"survey\",\"text\":\"hello\"}");
	const char *key = ibid_work_external_key(ibid_staged_work(one));
	assert_string_not_equal(key, ibid_work_external_key(ibid_staged_work(tenant)));
	assert_string_not_equal(key, ibid_work_external_key(ibid_staged_work(purpose)));
	assert_string_equal(key, ibid_work_external_key(ibid_staged_work(one)));
	ibid_staged_free(one);
	ibid_staged_free(tenant);
	ibid_staged_free(purpose);
}

static void external_work_is_staged_and_asked_about_by_a_program(void **state)
{
	(void)state;
	expect_refused("send-notification.yaml", "staged: { lease: 30s, recover: inquiry }",
	               "# in one transaction", "strategy is external, but no `staged`");
	expect_refused("send-notification.yaml", "recover: inquiry", "recover: human",
	               "a program can ask");
}

/* ---- Many at once --------------------------------------------------------------------------- */

static void of_many_that_set_one_thing_to_the_same_one_does(void **state) /* S1 */
{
	(void)state;
	struct runner runners[RUNNERS];
	race(ibid, runners, "set-flag", FLAG("f", "on"));
	assert_int_equal(race_count(runners, "executed 200", ""), 1);
	assert_int_equal(race_count(runners, "linked 200", ""), RUNNERS - 1);
	assert_int_equal(rows("ibid.event"), 1);
}

static void of_many_that_set_one_thing_once_differently_one_wins(void **state) /* S1 */
{
	(void)state;
	struct runner runners[RUNNERS];
	race(ibid, runners, "fix-flag", "{\"name\":\"f\",\"value\":\"v%d\"}");
	assert_int_equal(race_count(runners, "executed 200", ""), 1);
	assert_int_equal(race_count(runners, "rejected 409", "ALREADY_SET"), RUNNERS - 1);
	assert_int_equal(rows("ibid.event"), 1);
}

static void of_many_that_make_one_version_one_does(void **state) /* S1 */
{
	(void)state;
	struct runner runners[RUNNERS];
	race(ibid, runners, "apply", "{\"case\":\"c\",\"version\":1,\"status\":\"S%d\"}");
	assert_int_equal(race_count(runners, "executed 200", ""), 1);
	assert_int_equal(race_count(runners, "rejected 409", "VERSION_TAKEN"), RUNNERS - 1);
}

static void many_that_commute_all_do_and_none_takes_another_for_its_own_repetition(void **state)
{
	(void)state;
	struct runner runners[RUNNERS];
	race(ibid, runners, "tag-case", "{\"case\":\"c\",\"tag\":\"t%d\"}");
	assert_int_equal(race_count(runners, "executed 200", ""), RUNNERS);
	race(ibid, runners, "raise-mark", "{\"name\":\"m\",\"value\":%d}");
	assert_int_equal(race_count(runners, "executed 200", ""), RUNNERS);
	assert_int_equal(rows("tag"), RUNNERS);
	assert_int_equal(bed_number(&bed, "select value from counter"), RUNNERS - 1);
}

/* ---- A02 ------------------------------------------------------------------------------------ */

#define DOCUMENT(system, document, purpose, amount)                                                \
	"{\"sourceSystem\":\"" system "\",\"documentType\":\"invoice\",\"document\":\"" document       \
	"\",\"purpose\":\"" purpose "\",\"amount\":" amount "}"

static void submit_as(const struct ibid_command *command, const char *expected)
{
	struct ibid_result *result = NULL;
	struct ibid_err err = {0};
	if (ibid_submit(ibid, command, &result, &err))
		fail_msg("%s", err.text);
	assert_string_equal(bed_say(result), expected);
	ibid_result_free(result);
}

static void a02_posting_scope_is_source_system_document_and_purpose(void **state) /* A02 */
{
	(void)state;
	const char *operation = "post-document";
	struct ibid_result *first = bed_submit(ibid, operation, NULL,
	                                       DOCUMENT("sap", "7", "posting", "10.00"));
	assert_string_equal(bed_say(first), "executed 201");
	/* The same scope: the first journal, however the amount is written. */
	struct ibid_result *again = bed_submit(ibid, operation, NULL,
	                                       DOCUMENT("sap", "7", "posting", "10.0"));
	assert_string_equal(bed_say(again), "replayed executed 201");
	assert_string_equal(ibid_result_resource_id(again), ibid_result_resource_id(first));
	ibid_result_free(first);
	ibid_result_free(again);
	bed_expect(ibid, operation, NULL, DOCUMENT("sap", "7", "posting", "11.00"), "conflict 409");
	assert_int_equal(rows("ibid.journal_group"), 1);
	/* Another purpose, document, source system or tenant: another posting. */
	bed_expect(ibid, operation, NULL, DOCUMENT("sap", "7", "reversal", "10.00"), "executed 201");
	bed_expect(ibid, operation, NULL, DOCUMENT("sap", "8", "posting", "10.00"), "executed 201");
	bed_expect(ibid, operation, NULL, DOCUMENT("dynamics", "7", "posting", "10.00"),
	           "executed 201");
	submit_as(IBID_COMMAND(.tenant = "u", .operation = operation,
	                       .payload = DOCUMENT("sap", "7", "posting", "10.00")),
	          "executed 201");
	assert_int_equal(rows("ibid.journal_group"), 5);
}

#define PAYMENT(instruction)                                                                       \
	"{\"instruction\":\"" instruction "\",\"payer\":\"DE01\",\"amount\":10.00}"
#define PAY(tenant_, client_, payer_, key_, instruction_)                                          \
	IBID_COMMAND(.tenant = tenant_, .client = client_, .resource = payer_, .key = key_,            \
	             .operation = "execute-payment", .payload = PAYMENT(instruction_))

static void a02_payment_scope_is_client_payer_and_key(void **state) /* A02 */
{
	(void)state;
	submit_as(PAY("t", "web", "DE01", "k", "p-1"), "executed 201");
	submit_as(PAY("t", "web", "DE01", "k", "p-1"), "replayed executed 201");
	submit_as(PAY("t", "web", "DE01", "k", "p-2"), "conflict 409");
	assert_int_equal(rows("payment"), 1);
	/* The same key of another client, payer or tenant is another command. */
	submit_as(PAY("t", "erp", "DE01", "k", "p-3"), "executed 201");
	submit_as(PAY("t", "web", "DE02", "k", "p-4"), "executed 201");
	submit_as(PAY("u", "web", "DE01", "k", "p-1"), "executed 201");
	assert_int_equal(rows("payment"), 4);
}

static void a02_payment_instruction_has_one_execution_whatever_the_scope(void **state) /* A02 */
{
	(void)state;
	struct ibid_result *result = NULL;
	submit_as(PAY("t", "web", "DE01", "k", "p-1"), "executed 201");
	assert_int_equal(ibid_submit(ibid, PAY("t", "erp", "DE01", "k", "p-1"), &result, NULL),
	                 IBID_OK);
	assert_string_equal(bed_say(result), "linked 200");
	assert_string_equal(ibid_result_resource_type(result), "bank-execution");
	assert_int_equal(bed_number(&bed, "select count(*) from payment where reference = '%s'",
	                            ibid_result_resource_id(result)),
	                 1);
	ibid_result_free(result);
	assert_int_equal(rows("payment"), 1);
}

static void a02_payment_without_a_part_of_its_scope_is_refused(void **state) /* A02 */
{
	(void)state;
	struct ibid_result *result = NULL;
	struct ibid_err err = {0};
	assert_int_equal(ibid_submit(ibid, PAY("t", "web", NULL, "k", "p-1"), &result, &err),
	                 IBID_INVALID);
	assert_non_null(strstr(err.text, "resource"));
	assert_int_equal(rows("payment"), 0);
}

int main(int argc, char **argv)
{
	bed_choose(argc, argv);
#define TEST(name)   cmocka_unit_test_setup_teardown(name, set_up, tear_down)
#define STAGED(name) cmocka_unit_test_setup_teardown(name, set_up_operations, tear_down)
#define SCOPE(name)  cmocka_unit_test_setup_teardown(name, set_up_scopes, tear_down)
	const struct CMUnitTest tests[] = {
	    TEST(natural_what_holds_already_is_linked_and_not_told_again),
	    TEST(natural_a_handler_that_misses_its_target_fails_and_leaves_nothing),
	    TEST(natural_what_already_rejects_is_the_outcome_before_and_a_failure_after),
	    TEST(natural_a_script_that_may_only_look_can_not_change_anything),
	    TEST(natural_holds_where_no_body_is_kept),
	    TEST(natural_holds_for_a_program_as_for_a_script),
	    TEST(natural_a_program_that_ended_the_transaction_leaves_an_unknown_command),
	    TEST(set_once_the_same_is_linked_and_another_value_is_rejected),
	    TEST(set_once_a_rejection_names_what_is_there),
	    TEST(set_once_a_handler_that_sets_nothing_or_something_else_fails),
	    TEST(set_once_a_state_that_does_not_show_what_was_set_fails),
	    TEST(version_only_the_next_one_is_applied),
	    TEST(version_nothing_comes_before_the_first),
	    TEST(version_a_newer_one_may_overtake_where_the_contract_says_so),
	    TEST(version_a_handler_that_makes_another_version_fails),
	    TEST(version_a_state_without_a_version_fails),
	    TEST(commutative_repetition_and_order_do_not_matter),
	    TEST(commutative_a_handler_that_counts_is_found_out),
	    TEST(commutative_a_handler_that_does_not_run_twice_is_found_out),
	    TEST(commutative_a_state_that_shows_nothing_proves_nothing),
	    TEST(none_runs_for_every_new_key_and_keeps_no_answer),
	    TEST(none_a_handler_that_tells_others_fails),
	    STAGED(external_key_is_the_same_for_every_run_of_a_command),
	    STAGED(external_key_is_another_for_every_other_command),
	    STAGED(external_work_is_staged_and_asked_about_by_a_program),
	    TEST(of_many_that_set_one_thing_to_the_same_one_does),
	    TEST(of_many_that_set_one_thing_once_differently_one_wins),
	    TEST(of_many_that_make_one_version_one_does),
	    TEST(many_that_commute_all_do_and_none_takes_another_for_its_own_repetition),
	    SCOPE(a02_posting_scope_is_source_system_document_and_purpose),
	    SCOPE(a02_payment_scope_is_client_payer_and_key),
	    SCOPE(a02_payment_instruction_has_one_execution_whatever_the_scope),
	    SCOPE(a02_payment_without_a_part_of_its_scope_is_refused),
	};
	return cmocka_run_group_tests_name("strategy", tests, NULL, NULL);
}
