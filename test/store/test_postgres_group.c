/* SPDX-License-Identifier: Apache-2.0 */
/* Groups on PostgreSQL: what is known before a script runs is what the server would say, and a
 * group of which everything is known is one trip, with nothing lost when that is. */
#include "store/pg_fixture.h"
#include "store/postgres/postgres.h"
#include "store/proxy.h"
#include "store/script.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { P_ID, P_A, P_B, P_N, P_AMOUNT, P_FLAG, P_DAY, P_DOC, P_COUNT };

static const struct param_spec params[P_COUNT] = {
    [P_ID] = {"command_id", PARAM_UUID},
    [P_A] = {"a", PARAM_TEXT},
    [P_B] = {"b", PARAM_TEXT},
    [P_N] = {"n", PARAM_INTEGER},
    [P_AMOUNT] = {"amount", PARAM_DECIMAL},
    [P_FLAG] = {"flag", PARAM_BOOLEAN},
    [P_DAY] = {"day", PARAM_DATE},
    [P_DOC] = {"doc", PARAM_JSON},
};

static struct script_statement part_of(struct arena *arena, const char *text)
{
	struct script_statements parts;
	struct ibid_err err;
	if (script_split(arena, DIALECT_POSTGRES, "f.sql", text, params, P_COUNT, &parts, &err))
		fail_msg("%s", err.text);
	assert_int_equal(parts.count, 1);
	return parts.items[0];
}

/* ---- Known before it runs (K1) -------------------------------------------------------------- */

static const char *const known_answers[] = {
    "select 201 as status",
    "SELECT 200 AS Status , 'it''s' as resource_type,:command_id as resource_id",
    "select 0 as status, :a as resource_type, :b::text as resource_id",
    "select 999999999 as status, 'x' as resource_type, :n as resource_id",
    "select 1 as status, :n::text as resource_id, :amount::text as resource_type",
    "select 1 as status, :flag::text as resource_id",
    "select 1 as status, jsonb_build_object('row', :n, 'a', :a, 'bb', :b, 'z', 7, 'Z', 'zz') as "
    "body",
    "select 201 as status, jsonb_build_object('id', :command_id, 'amount', :amount, 'ok', :flag,\n"
    "\t'as', :flag :: text, 'deep', jsonb_build_object('b', :n::text, 'a', jsonb_build_object(\n"
    "'quote', 'say \"it\"', 'back', 'a\\b', 'ä', :amount::text))) as body, :command_id::text as "
    "resource_id",
};

static const char *const known_events[] = {
    "select ibid.emit('payment', :command_id::text, 'Paid', jsonb_build_object('amount', :amount))",
    "select  IBID.emit ( :a , :b, 'Paid', jsonb_build_object('n', :n, 'flag', :flag, 'a', :a) )",
    "select ibid.emit('p', :n::text, :a, jsonb_build_object('', :b, 'ab', 'text', 'b', 10))",
};

static const char *const texts[] = {
    "",         "plain",     "a \"quoted\" one, {braces} \\ and 'more'", "\t\n\r\b\f\x01\x1f\x7f",
    "NULL",     "null",      "\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80",     "\xe2\x80\xa8/",
    " blanks ", "{\"a\": 1}"};
static const char *const integers[] = {"0",
                                       "1",
                                       "-1",
                                       "007",
                                       "-0",
                                       "+5",
                                       "999999999999999999",
                                       "9223372036854775807",
                                       "-9223372036854775808",
                                       " 12"};
static const char *const decimals[] = {
    "0",    "0.00",        "-0.00",
    "1.10", "-12.50",      "1e2",
    "1E-3", ".5",          "12345678901234567890.123456789012345678",
    "00.1", "5.",          "+1",
    "-0.5", "100000000000"};
static const char *const booleans[] = {"true", "false", "t", "no"};

#define PICK(list) (list)[(size_t)rand() % (sizeof(list) / sizeof *(list))]

static const char *maybe(const char *text)
{
	return rand() % 8 ? text : NULL;
}

static void pick_values(const char *values[P_COUNT])
{
	values[P_ID] = rand() % 4 ? "0197aaaa-bbbb-7ccc-8ddd-00000000beef"
	                          : "0197AAAA-bbbb-7ccc-8ddd-00000000BEEF";
	values[P_A] = maybe(PICK(texts));
	values[P_B] = maybe(PICK(texts));
	values[P_N] = maybe(PICK(integers));
	values[P_AMOUNT] = maybe(PICK(decimals));
	values[P_FLAG] = maybe(PICK(booleans));
	values[P_DAY] = "2026-11-17";
	values[P_DOC] = "{}";
}

/* What the server says; PQclear. */
static PGresult *ask(PGconn *link, struct arena *arena, const struct script_statement *part,
                     const char *sql, const char *const *values)
{
	static const Oid oids[P_COUNT] = {2950, 25, 25, 20, 1700, 16, 1082, 3802};
	Oid types[P_COUNT];
	for (size_t i = 0; i < part->param_count; i++)
		types[i] = oids[part->params[i]];
	PGresult *result = PQexecParams(link, sql, (int)part->param_count, types,
	                                pg_script_values(arena, part, values, 0), NULL, NULL, 0);
	if (PQresultStatus(result) != PGRES_TUPLES_OK)
		fail_msg("%s: %s", sql, PQerrorMessage(link));
	assert_int_equal(PQntuples(result), 1);
	return result;
}

static void assert_same(const char *known, const char *said, const char *sql)
{
	if (!known != !said || (known && strcmp(known, said) != 0))
		fail_msg("%s: known %s, the server said %s", sql, known ? known : "NULL",
		         said ? said : "NULL");
}

static const char *said(const PGresult *result, const char *column)
{
	int at = PQfnumber(result, column);
	return at < 0 ? NULL : pg_cell(result, 0, at);
}

static bool compare_answer(PGconn *link, struct arena *arena, const char *text,
                           const char *const *values)
{
	struct script_statement part = part_of(arena, text);
	const struct pg_known *known = pg_known_read(arena, &part, params);
	struct outcome outcome;
	assert_non_null(known);
	assert_false(pg_known_emits(known));
	if (!pg_known_answer(arena, known, values, &outcome))
		return false;
	PGresult *result = ask(link, arena, &part, part.sql, values);
	assert_true(outcome.found);
	assert_int_equal(outcome.status, atoi(said(result, "status")));
	assert_same(outcome.resource_type, said(result, "resource_type"), part.sql);
	assert_same(outcome.resource_id, said(result, "resource_id"), part.sql);
	assert_same(outcome.body, said(result, "body"), part.sql);
	assert_int_equal(outcome.body_size, outcome.body ? strlen(outcome.body) : 0);
	PQclear(result);
	return true;
}

static bool compare_event(PGconn *link, struct arena *arena, const char *text,
                          const char *const *values)
{
	struct script_statement part = part_of(arena, text);
	const struct pg_known *known = pg_known_read(arena, &part, params);
	struct pg_told told;
	assert_non_null(known);
	assert_true(pg_known_emits(known));
	if (!pg_known_event(arena, known, values, &told))
		return false;
	const char *sql = arena_printf(arena, "select x[1], x[2], x[3], x[4] from (%s) as t(x)",
	                               pg_emitted_sql(arena, part.sql));
	PGresult *result = ask(link, arena, &part, sql, values);
	assert_same(told.aggregate_type, pg_cell(result, 0, 0), sql);
	assert_same(told.aggregate_id, pg_cell(result, 0, 1), sql);
	assert_same(told.type, pg_cell(result, 0, 2), sql);
	assert_same(told.payload, pg_cell(result, 0, 3), sql);
	PQclear(result);
	return true;
}

typedef bool compare_fn(PGconn *, struct arena *, const char *, const char *const *);

/* Some values are known, and some are not. */
static void compare_all(compare_fn *compare, const char *const *list, size_t count)
{
	enum { ROUNDS = 400 };
	struct store *store = fixture_fresh();
	PGconn *link = fixture_connect(fixture_url("postgres", fixture_port(), ""));
	size_t told = 0, rounds = 0;
	srand(17);
	for (size_t i = 0; i < count; i++) {
		for (int round = 0; round < ROUNDS; round++) {
			struct arena arena = {0};
			const char *values[P_COUNT];
			pick_values(values);
			told += compare(link, &arena, list[i], values);
			rounds++;
			arena_release(&arena);
		}
	}
	assert_true(told > rounds / 5 && told < rounds);
	PQfinish(link);
	store_close(store);
}

static void what_is_known_of_an_answer_is_what_the_server_says(void **state)
{
	(void)state;
	compare_all(compare_answer, known_answers, sizeof known_answers / sizeof *known_answers);
}

static void what_is_known_of_an_event_is_what_the_server_says(void **state)
{
	(void)state;
	compare_all(compare_event, known_events, sizeof known_events / sizeof *known_events);
}

static void what_the_server_has_to_compute_is_asked_for(void **state)
{
	static const char *const unknown[] = {
	    "select 201 as status where :a = :b",
	    "select 201 as status from generate_series(1, 2)",
	    "select 200 + 1 as status",
	    "select '201' as status",
	    "select :n as status",
	    "select 201.0 as status",
	    "select 0201 as status",
	    "select 1e2 as status",
	    "select 2010000000 as status",
	    "select 201 status",
	    "select 201 as status, 1 as other",
	    "select 201 as status, 200 as status",
	    "select 'a' as resource_type",
	    "select 201 as status, upper(:a) as resource_id",
	    "select 201 as status, :a || :b as resource_id",
	    "select 201 as status, :day as resource_id",
	    "select 201 as status, :amount as resource_id",
	    "select 201 as status, :flag as resource_id",
	    "select 201 as status, :a::uuid as resource_id",
	    "select 201 as status, :a::textual as resource_id",
	    "select 201 as status, :a::text::uuid as resource_id",
	    "select 201 as status, E'a\\n' as resource_id",
	    "select 201 as status, 'a'\n'b' as resource_id",
	    "select 201 as status, 'a' 'b' as resource_id",
	    "select 201 as status, null as resource_id",
	    "select 201 as status, $$a$$ as resource_id",
	    "select 201 as status, 'a' /* b */ as resource_id",
	    "select 201 as status -- why\n, 'a' as resource_id",
	    "select distinct 201 as status",
	    "select 201 as status limit 0",
	    "select 201 as status, :doc as body",
	    "select 201 as status, '{}' as body",
	    "select 201 as status, jsonb_build_object() as body",
	    "select 201 as status, jsonb_build_object('a') as body",
	    "select 201 as status, jsonb_build_object(:a, 1) as body",
	    "select 201 as status, jsonb_build_object('a', 1, 'a', 2) as body",
	    "select 201 as status, jsonb_build_object('a', :day) as body",
	    "select 201 as status, jsonb_build_object('a', :doc) as body",
	    "select 201 as status, jsonb_build_object('a', -1) as body",
	    "select 201 as status, jsonb_build_object('a', 1.5) as body",
	    "select 201 as status, jsonb_build_object('a', true) as body",
	    "select 201 as status, jsonb_build_object('a', now()) as body",
	    "select 201 as status, jsonb_build_object('a', 1) || '{}' as body",
	    "select 201 as status, json_build_object('a', 1) as body",
	    "select 201 as status, public.jsonb_build_object('a', 1) as body",
	    "with x as (select 1) select 201 as status",
	    "values (201)",
	    "insert into t values (201)",
	    "select ibid.emit('p', :command_id, 'Paid', jsonb_build_object('a', 1))",
	    "select ibid.emit('p', 'i', 'Paid', '{}')",
	    "select ibid.emit('p', 'i', 'Paid', :doc)",
	    "select ibid.emit('p', 'i', 'Paid', jsonb_build_object('a', 1), 3)",
	    "select ibid.emit('p', 'i', 'Paid', jsonb_build_object('a', 1)) where :n = 1",
	    "select ibid.emit('p', 'i', 'Paid', jsonb_build_object('a', 1)) as x",
	    "select ibid.emit('p', 'i', jsonb_build_object('a', 1), 'Paid')",
	    "select ibid.emit('p', 'i', 'Paid')",
	    "select ibid.reject('A', 422, 'no')",
	};
	struct arena arena = {0};
	(void)state;
	for (size_t i = 0; i < sizeof unknown / sizeof *unknown; i++) {
		struct script_statement part = part_of(&arena, unknown[i]);
		if (pg_known_read(&arena, &part, params))
			fail_msg("known: %s", unknown[i]);
	}
	arena_release(&arena);
}

static const char *object_of(struct arena *arena, size_t pairs)
{
	char *sql = arena_printf(arena, "select 201 as status, jsonb_build_object('k0', :n");
	for (size_t i = 1; i < pairs; i++)
		sql = arena_printf(arena, "%s, 'k%zu', :n", sql, i);
	return arena_printf(arena, "%s) as body", sql);
}

static void an_object_that_the_server_refuses_is_not_known(void **state) /* K1 */
{
	struct arena arena = {0};
	const char *values[P_COUNT] = {[P_N] = "1"};
	(void)state;
	fixture_database();
	PGconn *link = fixture_connect(fixture_own_url());
	for (size_t pairs = 49; pairs <= 51; pairs++) {
		struct script_statement part = part_of(&arena, object_of(&arena, pairs));
		Oid types[] = {20};
		PGresult *result = PQexecParams(link, part.sql, 1, types,
		                                pg_script_values(&arena, &part, values, 0), NULL, NULL, 0);
		bool taken = PQresultStatus(result) == PGRES_TUPLES_OK;
		PQclear(result);
		assert_int_equal(taken, pairs <= 50);
		assert_int_equal(taken, !!pg_known_read(&arena, &part, params));
	}
	PQfinish(link);
	arena_release(&arena);
}

/* Emit is called for rows that are left out afterwards; what is told is not. */
static void an_emit_whose_rows_are_chosen_is_not_told(void **state)
{
	static const char *const told[] = {
	    "",
	    " where :n = 1",
	    " from t",
	    " from order_line, \"t\" where offset_of > limits and x <> 'y'",
	};
	static const char *const not_told[] = {
	    " from generate_series(1, 5) as g offset 2",
	    " from t limit 2\noffset 2",
	    " from t\tOFFSET(2)",
	    " from t group by 1",
	    " from t order by 1",
	    " from t fetch first row only",
	    " from t having true",
	    " where true union all select null",
	    " from t intersect select null",
	    " from t except select null",
	    " as id",
	};
	struct arena arena = {0};
	(void)state;
	for (size_t i = 0; i < sizeof told / sizeof *told; i++)
		assert_non_null(pg_emitted_sql(
		    &arena, arena_printf(&arena, "select ibid.emit('t', 'i', 'E', '{}')%s", told[i])));
	for (size_t i = 0; i < sizeof not_told / sizeof *not_told; i++)
		if (pg_emitted_sql(&arena, arena_printf(&arena, "select ibid.emit('t', 'i', 'E', '{}')%s",
		                                        not_told[i])))
			fail_msg("told: %s", not_told[i]);
	arena_release(&arena);
}

/* ---- Groups --------------------------------------------------------------------------------- */

static const char known_script[] =
    "insert into t (id, a) values (:command_id, :a);\n"
    "select ibid.emit('t', :command_id::text, 'Told', jsonb_build_object('amount', :amount));\n"
    "select 201 as status, 't' as resource_type, :command_id as resource_id;";
static const char asking_script[] =
    "insert into t (id, a) values (:command_id, :a);\n"
    "select ibid.emit('t', :command_id::text, 'Told', jsonb_build_object('amount', :amount));\n"
    "select 200 + 1 as status, 't' as resource_type, :command_id as resource_id;";

enum { MEMBERS = 3 };

struct played {
	struct group_member member; /* first */
	struct work_context context;
	const char *values[P_COUNT];
};

struct stage {
	struct proxy *proxy;
	struct store *direct, *store;
	struct script *known, *asking;
	struct arena arena;
	struct played played[MEMBERS];
	unsigned keys;
};

static bool complete(struct group_member *member)
{
	member->row.status = member->outcome.status;
	member->row.resource_type = member->outcome.resource_type;
	member->row.resource_id = member->outcome.resource_id;
	member->row.body = member->outcome.body;
	member->row.body_size = member->outcome.body_size;
	member->audit = (struct audit_row){
	    .id = member->row.id,
	    .command_id = member->row.id,
	    .tenant = "acme",
	    .operation = "pay",
	    .fact = "paid",
	    .outcome = "executed",
	    .contract_version = 1,
	    .at_us = member->row.created_us,
	};
	return member->outcome.found;
}

static void play_script(struct store *store, const char *text, struct script **ret)
{
	struct ibid_err err;
	if (store->ops->make_script(store, "f.sql", text, params, P_COUNT, ret, &err))
		fail_msg("%s", err.text);
}

static struct stage stage_new(void)
{
	struct stage stage = {.direct = fixture_fresh(), .proxy = proxy_new(fixture_port())};
	stage.store = fixture_store(
	    fixture_url("postgres", proxy_port(stage.proxy), "?sslmode=disable&gssencmode=disable"), 4,
	    1500);
	assert_true(fixture_exec("create table t (id uuid primary key, a text unique)"));
	play_script(stage.store, known_script, &stage.known);
	play_script(stage.store, asking_script, &stage.asking);
	return stage;
}

static void stage_free(struct stage *stage)
{
	stage->store->ops->free_script(stage->store, stage->known);
	stage->store->ops->free_script(stage->store, stage->asking);
	store_close(stage->store);
	store_close(stage->direct);
	proxy_free(stage->proxy);
	arena_release(&stage->arena);
}

/* A member with a key of its own, unless one is given. */
static void set_member(struct stage *stage, size_t at, const struct script *script, const char *key)
{
	static const char *const emits[] = {"Told"};
	struct env *env = env_system();
	struct played *played = &stage->played[at];
	*played = (struct played){
	    .context = {.command_id = uuid_v7(env),
	                .tenant = "acme",
	                .emits = emits,
	                .emit_count = 1,
	                .now_us = env_wall_us(env)},
	};
	const char *own = arena_printf(&stage->arena, "k-%u", stage->keys++);
	played->values[P_ID] = pg_uuid(&stage->arena, &played->context.command_id);
	played->values[P_A] = own;
	played->values[P_AMOUNT] = "12.50";
	played->member = (struct group_member){
	    .context = &played->context,
	    .script = script,
	    .values = played->values,
	    .arena = &stage->arena,
	    .row = {.identity = {"acme", "pay", "", key ? key : own},
	            .id = played->context.command_id,
	            .audit_id = played->context.command_id,
	            .state = COMMAND_COMPLETED,
	            .scheme = 1,
	            .contract_version = 1,
	            .attempts = 1,
	            .created_us = played->context.now_us,
	            .finished_us = played->context.now_us},
	    .complete = complete,
	};
}

static void set_all(struct stage *stage, const struct script *script)
{
	for (size_t i = 0; i < MEMBERS; i++)
		set_member(stage, i, script, NULL);
}

static enum ibid_code run_all(struct stage *stage)
{
	struct group_member *members[MEMBERS];
	struct ibid_err err;
	for (size_t i = 0; i < MEMBERS; i++)
		members[i] = &stage->played[i].member;
	return stage->store->ops->run_group(stage->store, members, MEMBERS, &err);
}

static void assert_done(const struct stage *stage, const char *pattern)
{
	for (size_t i = 0; i < MEMBERS; i++)
		assert_int_equal(stage->played[i].member.done, pattern[i] == '+');
}

/* Each has its row, its event, its audit entry and what its script did (I1). */
static void assert_effects(int64_t count)
{
	assert_int_equal(fixture_number("select count(*) from t"), count);
	assert_int_equal(fixture_number("select count(*) from ibid.command join t using (id)"), count);
	assert_int_equal(fixture_number("select count(*) from ibid.event join t on t.id = command_id"),
	                 count);
	assert_int_equal(fixture_number("select count(*) from ibid.audit join t on t.id = command_id"),
	                 count);
	assert_int_equal(fixture_number("select count(*) from ibid.command"), count);
	assert_int_equal(fixture_number("select count(*) from ibid.event"), count);
}

static unsigned trips_of(struct stage *stage, const struct script *script)
{
	set_all(stage, script);
	unsigned from = proxy_syncs(stage->proxy);
	assert_int_equal(run_all(stage), IBID_OK);
	assert_done(stage, "+++");
	return proxy_syncs(stage->proxy) - from;
}

static void a_group_of_which_everything_is_known_is_one_trip(void **state)
{
	struct stage stage = stage_new();
	(void)state;
	assert_int_equal(trips_of(&stage, stage.known), 1);
	assert_int_equal(trips_of(&stage, stage.asking), 2);
	assert_int_equal(trips_of(&stage, stage.known), 1);
	assert_effects(9);
	/* One that has to be asked for is asked for with all others. */
	set_all(&stage, stage.known);
	stage.played[1].values[P_AMOUNT] = "1e2";
	unsigned from = proxy_syncs(stage.proxy);
	assert_int_equal(run_all(&stage), IBID_OK);
	assert_int_equal(proxy_syncs(stage.proxy) - from, 2);
	assert_done(&stage, "+++");
	assert_effects(12);
	assert_int_equal(fixture_number("select count(*) from ibid.event where payload = "
	                                "'{\"amount\": 12.50}'"),
	                 11);
	assert_int_equal(
	    fixture_number("select count(*) from ibid.event where payload = '{\"amount\": 100}'"), 1);
	stage_free(&stage);
}

/* The limit of the test program ends this if they never come. */
static void await_commands(int64_t count)
{
	while (fixture_number("select count(*) from ibid.command") < count)
		env_sleep_us(env_system(), 5000);
}

static void assert_resolved(struct stage *stage, enum claim_kind kind)
{
	for (size_t i = 0; i < MEMBERS; i++) {
		struct claim claim;
		struct ibid_err err;
		assert_int_equal(stage->store->ops->resolve(stage->store, &stage->arena,
		                                            &stage->played[i].member.row.identity, 5000000,
		                                            &claim, &err),
		                 IBID_OK);
		assert_int_equal(claim.kind, kind);
	}
}

/* (I7) The one trip holds the commit: whoever loses its answer does not know. */
static void the_lost_answer_of_a_group_is_unknown(void **state)
{
	static const struct {
		enum proxy_trick trick;
		enum claim_kind found;
	} tricks[] = {
	    {PROXY_DROP_ANSWER, CLAIM_FOUND}, {PROXY_HANG_UP, CLAIM_FOUND}, {PROXY_CUT, CLAIM_FREE}};
	(void)state;
	for (size_t i = 0; i < sizeof tricks / sizeof *tricks; i++) {
		struct stage stage = stage_new();
		assert_int_equal(trips_of(&stage, stage.known), 1);
		set_all(&stage, stage.known);
		proxy_play(stage.proxy, tricks[i].trick);
		assert_int_equal(run_all(&stage), IBID_UNKNOWN);
		assert_done(&stage, "---");
		if (tricks[i].found == CLAIM_FOUND)
			await_commands(2 * MEMBERS); /* who hung up did not wait for the server */
		assert_resolved(&stage, tricks[i].found);
		assert_effects(tricks[i].found == CLAIM_FOUND ? 2 * MEMBERS : MEMBERS);
		stage_free(&stage);
	}
}

/* (I2) The server may read the trip when somebody has looked for its rows, found none and run them
 * again: then those are there. */
static void a_trip_that_arrives_late_does_nothing_twice(void **state)
{
	struct stage stage = stage_new();
	(void)state;
	assert_int_equal(trips_of(&stage, stage.known), 1);
	set_all(&stage, stage.known);
	proxy_play(stage.proxy, PROXY_DELAY);
	assert_int_equal(run_all(&stage), IBID_UNKNOWN);
	assert_resolved(&stage, CLAIM_FREE);
	for (size_t i = 0; i < MEMBERS; i++)
		set_member(&stage, i, stage.known, stage.played[i].member.row.identity.key);
	assert_int_equal(run_all(&stage), IBID_OK);
	assert_done(&stage, "+++");
	assert_effects(2 * MEMBERS);
	proxy_deliver(stage.proxy);
	assert_effects(2 * MEMBERS);
	stage_free(&stage);
}

static void a_connection_that_died_at_rest_is_not_unknown(void **state)
{
	struct stage stage = stage_new();
	(void)state;
	assert_int_equal(trips_of(&stage, stage.known), 1);
	assert_true(fixture_exec("select pg_terminate_backend(pid, 5000) from pg_stat_activity where "
	                         "datname = current_database() and pid <> pg_backend_pid()"));
	set_all(&stage, stage.known);
	assert_int_equal(run_all(&stage), IBID_OK);
	assert_done(&stage, "+++");
	assert_effects(2 * MEMBERS);
	stage_free(&stage);
}

static void who_fails_in_the_one_trip_is_left_out(void **state)
{
	struct stage stage = stage_new();
	(void)state;
	assert_int_equal(trips_of(&stage, stage.known), 1);
	set_all(&stage, stage.known);
	stage.played[1].values[P_A] = "k-0"; /* is there */
	assert_int_equal(run_all(&stage), IBID_OK);
	assert_done(&stage, "+-+");
	assert_int_equal(stage.played[1].member.claim.kind, CLAIM_FREE);
	assert_effects(MEMBERS + 2);
	/* An event that its contract does not declare: nobody has to run for that to be known. */
	set_all(&stage, stage.known);
	stage.played[0].context.emit_count = 0;
	unsigned from = proxy_syncs(stage.proxy);
	assert_int_equal(run_all(&stage), IBID_OK);
	assert_int_equal(proxy_syncs(stage.proxy) - from, 1);
	assert_done(&stage, "-++");
	assert_effects(MEMBERS + 4);
	stage_free(&stage);
}

static void events_of_who_is_left_out_are_left_out(void **state)
{
	struct stage stage = stage_new();
	struct script *two = NULL;
	static const char *const first[] = {"Told", "Never"}, *const both[] = {"Told", "Twice"};
	(void)state;
	play_script(stage.store,
	            "insert into t (id, a) values (:command_id, :a);\n"
	            "select ibid.emit('t', :command_id::text, 'Told', jsonb_build_object('n', 1));\n"
	            "select ibid.emit('t', :command_id::text, 'Twice', jsonb_build_object('n', 2));\n"
	            "select 201 as status;",
	            &two);
	set_all(&stage, two);
	for (size_t i = 0; i < MEMBERS; i++) {
		stage.played[i].context.emits = i == 1 ? first : both;
		stage.played[i].context.emit_count = 2;
	}
	assert_int_equal(run_all(&stage), IBID_OK);
	assert_done(&stage, "+-+");
	assert_int_equal(fixture_number("select count(*) from ibid.event"), 4);
	assert_int_equal(fixture_number("select count(*) from ibid.event e where not exists (select "
	                                "from ibid.command c where c.id = e.command_id)"),
	                 0);
	stage.store->ops->free_script(stage.store, two);
	stage_free(&stage);
}

/* What stands for the transaction is gone: whatever a script did to it, nothing is committed, and
 * nobody is told that it was done. */
static void a_group_whose_mark_is_gone_is_not_committed(void **state)
{
	static const char *const ends[] = {"201", "200 + 1"}; /* in one trip, in two */
	(void)state;
	for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
		struct stage stage = stage_new();
		struct script *wipes = NULL;
		assert_true(fixture_exec("create function wipe(a text) returns text language sql as $$ "
		                         "select set_config('ibid.command_id', '', true) || a $$"));
		play_script(stage.store,
		            arena_printf(&stage.arena,
		                         "insert into t (id, a) values (:command_id, wipe(:a));\n"
		                         "select %s as status;",
		                         ends[i]),
		            &wipes);
		set_all(&stage, stage.known);
		set_member(&stage, MEMBERS - 1, wipes, NULL);
		assert_int_equal(run_all(&stage), IBID_MISUSE);
		assert_done(&stage, "---");
		assert_effects(0);
		stage.store->ops->free_script(stage.store, wipes);
		stage_free(&stage);
	}
}

static void a_duplicate_in_the_one_trip_is_found(void **state) /* I2 */
{
	struct stage stage = stage_new();
	(void)state;
	assert_int_equal(trips_of(&stage, stage.known), 1);
	set_all(&stage, stage.known);
	set_member(&stage, 2, stage.known, "k-0");
	assert_int_equal(run_all(&stage), IBID_OK);
	assert_done(&stage, "++-");
	assert_int_equal(stage.played[2].member.claim.kind, CLAIM_FOUND);
	assert_effects(MEMBERS + 2);
	assert_int_equal(trips_of(&stage, stage.known), 2); /* the next ones look first */
	assert_effects(2 * MEMBERS + 2);
	stage_free(&stage);
}

static void a_constraint_that_comes_later_and_can_be_put_off_is_seen(void **state)
{
	struct stage stage = stage_new();
	(void)state;
	assert_int_equal(trips_of(&stage, stage.known), 1);
	assert_true(fixture_exec("create table parent (a text primary key)"));
	assert_true(fixture_exec("insert into parent select a from t"));
	assert_true(fixture_exec("insert into parent values ('k-3'), ('k-5')"));
	assert_true(fixture_exec("alter table t add foreign key (a) references parent deferrable "
	                         "initially deferred"));
	set_all(&stage, stage.known);
	assert_int_equal(run_all(&stage), IBID_OK);
	assert_done(&stage, "+-+"); /* k-4 has no parent, and is the only one to fail */
	assert_effects(MEMBERS + 2);
	stage_free(&stage);
}

/* Others of the group are the known one's. */
static enum ibid_code run_with(struct stage *stage, const char *text, const char *b)
{
	struct script *script;
	play_script(stage->store, text, &script);
	set_all(stage, stage->known);
	set_member(stage, 1, script, NULL);
	stage->played[1].values[P_B] = b;
	enum ibid_code code = run_all(stage);
	stage->store->ops->free_script(stage->store, script);
	return code;
}

static void an_emit_is_no_answer(void **state)
{
	static const char text[] =
	    "insert into t (id, a) values (:command_id, :a);\n"
	    "select ibid.emit(:b, :command_id::text, 'Told', jsonb_build_object('amount', :amount));";
	static const char *const types[] = {"201-orders", "t", NULL};
	struct stage stage = stage_new();
	(void)state;
	for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
		assert_int_equal(run_with(&stage, text, types[i]), IBID_OK);
		assert_done(&stage, "+-+");
		assert_effects(2 * ((int64_t)i + 1));
	}
	stage_free(&stage);
}

/* postgres_fdw says so of another server. */
static void an_error_that_names_a_lost_connection_is_no_lost_commit(void **state)
{
	static const char text[] = "insert into t (id, a) values (:command_id, :a);\n"
	                           "select lose(:b);\nselect 201 as status;";
	static const char *const states[] = {"08001", "08006", "57P03"};
	struct stage stage = stage_new();
	(void)state;
	assert_true(fixture_exec("create function lose(state text) returns void language plpgsql as "
	                         "$$begin raise exception 'lost' using errcode = state; end$$"));
	for (size_t i = 0; i < sizeof states / sizeof *states; i++) {
		assert_int_equal(run_with(&stage, text, states[i]), IBID_UNAVAILABLE);
		assert_done(&stage, "---");
		assert_effects(0);
	}
	stage_free(&stage);
}

static void a_script_that_ends_the_connection_leaves_it_unknown(void **state) /* I7 */
{
	static const char text[] = "insert into t (id, a) values (:command_id, :a);\n"
	                           "select pg_terminate_backend(pg_backend_pid());\n"
	                           "select 201 as status;";
	struct stage stage = stage_new();
	(void)state;
	assert_int_equal(run_with(&stage, text, NULL), IBID_UNKNOWN);
	assert_done(&stage, "---");
	assert_effects(0);
	stage_free(&stage);
}

static void a_known_body_is_kept_as_the_server_would_write_it(void **state) /* B08 */
{
	static const char text[] =
	    "insert into t (id, a) values (:command_id, :a);\n"
	    "select 201 as status, jsonb_build_object('longer', :b, 'id', :command_id) as body;";
	struct stage stage = stage_new();
	(void)state;
	assert_int_equal(run_with(&stage, text, "a \"b\""), IBID_OK);
	assert_done(&stage, "+++");
	assert_int_equal(fixture_number("select count(*) from ibid.answer where body = "
	                                "jsonb_build_object('longer', 'a \"b\"', 'id', command_id)"
	                                "::text"),
	                 1);
	assert_int_equal(fixture_number("select count(*) from ibid.command join t using (id)"), 3);
	assert_int_equal(fixture_number("select count(*) from ibid.event"), 2);
	stage_free(&stage);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(what_is_known_of_an_answer_is_what_the_server_says),
	    cmocka_unit_test(what_is_known_of_an_event_is_what_the_server_says),
	    cmocka_unit_test(what_the_server_has_to_compute_is_asked_for),
	    cmocka_unit_test(an_object_that_the_server_refuses_is_not_known),
	    cmocka_unit_test(an_emit_whose_rows_are_chosen_is_not_told),
	    cmocka_unit_test(a_group_of_which_everything_is_known_is_one_trip),
	    cmocka_unit_test(the_lost_answer_of_a_group_is_unknown),
	    cmocka_unit_test(a_trip_that_arrives_late_does_nothing_twice),
	    cmocka_unit_test(a_connection_that_died_at_rest_is_not_unknown),
	    cmocka_unit_test(who_fails_in_the_one_trip_is_left_out),
	    cmocka_unit_test(events_of_who_is_left_out_are_left_out),
	    cmocka_unit_test(a_group_whose_mark_is_gone_is_not_committed),
	    cmocka_unit_test(a_duplicate_in_the_one_trip_is_found),
	    cmocka_unit_test(an_emit_is_no_answer),
	    cmocka_unit_test(an_error_that_names_a_lost_connection_is_no_lost_commit),
	    cmocka_unit_test(a_script_that_ends_the_connection_leaves_it_unknown),
	    cmocka_unit_test(a_known_body_is_kept_as_the_server_would_write_it),
	    cmocka_unit_test(a_constraint_that_comes_later_and_can_be_put_off_is_seen),
	};
	fixture_start();
	int failed = cmocka_run_group_tests_name("postgres group", tests, NULL, NULL);
	fixture_stop();
	return failed;
}
