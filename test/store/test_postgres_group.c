/* SPDX-License-Identifier: Apache-2.0 */
/* Groups on PostgreSQL: one whose answers are declared is one trip, with nothing lost when that is.
 */
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

/* ---- Groups --------------------------------------------------------------------------------- */

static const char known_script[] = "insert into t (id, a) values (:command_id, :a);";
static const char asking_script[] =
    "insert into t (id, a) values (:command_id, :a);\n"
    "select ibid.emit('t', :command_id::text, 'Told', jsonb_build_object('amount', :amount));\n"
    "select 200 + 1 as status, 't' as resource_type, :command_id as resource_id;";

enum { MEMBERS = 3 };

struct played {
	struct group_member member; /* first */
	struct work_context context;
	struct event_row events[2];
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

/* The contract's part of it: all but what the asking script does itself. */
static void declare(struct stage *stage, struct played *played)
{
	struct group_member *member = &played->member;
	played->context.makes_events = true;
	for (size_t i = 0; i < 2; i++)
		played->events[i] = (struct event_row){
		    .command_id = played->context.command_id,
		    .tenant = "acme",
		    .aggregate_type = "t",
		    .aggregate_id = played->values[P_ID],
		    .type = i ? "Twice" : "Told",
		    .payload = "{\"amount\":12.5}",
		    .ordinal = (int)i + 1,
		    .at_us = played->context.now_us,
		};
	member->events = played->events;
	member->event_count = 1;
	member->answered = true;
	member->outcome = (struct outcome){
	    .status = 201, .resource_type = "t", .resource_id = played->values[P_ID], .found = true};
	assert_true(complete(member));
	(void)stage;
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
	if (script != stage->asking)
		declare(stage, played);
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

static void a_group_whose_answers_are_declared_is_one_trip(void **state)
{
	struct stage stage = stage_new();
	(void)state;
	assert_int_equal(trips_of(&stage, stage.known), 1);
	assert_int_equal(trips_of(&stage, stage.asking), 2);
	assert_int_equal(trips_of(&stage, stage.known), 1);
	assert_effects(9);
	/* One that has to be asked for is asked for with all others. */
	set_all(&stage, stage.known);
	set_member(&stage, 1, stage.asking, NULL);
	unsigned from = proxy_syncs(stage.proxy);
	assert_int_equal(run_all(&stage), IBID_OK);
	assert_int_equal(proxy_syncs(stage.proxy) - from, 2);
	assert_done(&stage, "+++");
	assert_effects(12);
	assert_int_equal(fixture_number("select count(*) from ibid.event where payload = "
	                                "'{\"amount\":12.5}'"),
	                 8);
	assert_int_equal(
	    fixture_number("select count(*) from ibid.event where payload = '{\"amount\": 12.50}'"), 4);
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
	/* One whose event has a version of its own goes by the steps. */
	set_all(&stage, stage.known);
	stage.played[0].events[0].version = 1;
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
	(void)state;
	assert_int_equal(trips_of(&stage, stage.known), 1);
	set_all(&stage, stage.known);
	for (size_t i = 0; i < MEMBERS; i++)
		stage.played[i].member.event_count = 2;
	stage.played[1].values[P_A] = "k-0"; /* is there */
	assert_int_equal(run_all(&stage), IBID_OK);
	assert_done(&stage, "+-+");
	assert_int_equal(fixture_number("select count(*) from ibid.event"), MEMBERS + 4);
	assert_int_equal(fixture_number("select count(*) from ibid.event e where not exists (select "
	                                "from ibid.command c where c.id = e.command_id)"),
	                 0);
	stage_free(&stage);
}

static bool changed_one_row(struct group_member *member)
{
	assert_int_equal(member->outcome.row_count, 1);
	return member->outcome.rows[0] == 1;
}

/* Before anything is committed, and by who knows how many they should be. */
static void rows_that_are_declared_are_compared_first(void **state)
{
	struct stage stage = stage_new();
	struct script *some = NULL;
	(void)state;
	play_script(stage.store, "insert into t (id, a) select :command_id, :a where :n > 0;", &some);
	for (int rows = 1; rows >= 0; rows--) {
		set_all(&stage, some);
		for (size_t i = 0; i < MEMBERS; i++) {
			stage.played[i].values[P_N] = i == 1 && !rows ? "0" : "1";
			stage.played[i].member.compares = true;
			stage.played[i].member.complete = changed_one_row;
		}
		assert_int_equal(run_all(&stage), IBID_OK);
		assert_done(&stage, rows ? "+++" : "+-+");
		assert_effects(rows ? 3 : 5);
	}
	stage.store->ops->free_script(stage.store, some);
	stage_free(&stage);
}

/* ---- A group of one ------------------------------------------------------------------------- */

static enum ibid_code run_one(struct stage *stage, const struct script *script, const char *key)
{
	struct group_member *member = &stage->played[0].member;
	struct ibid_err err;
	set_member(stage, 0, script, key);
	return stage->store->ops->run_group(stage->store, &member, 1, &err);
}

static void one_that_is_alone_is_told_what_stopped_it(void **state)
{
	struct stage stage = stage_new();
	const struct group_member *member = &stage.played[0].member;
	struct script *script;
	(void)state;
	unsigned from = proxy_syncs(stage.proxy);
	assert_int_equal(run_one(&stage, stage.known, "one"), IBID_OK);
	assert_true(member->done);
	assert_int_equal(proxy_syncs(stage.proxy) - from, 1);
	assert_effects(1);

	play_script(stage.store, "insert into t (id, a) values (:command_id, 'k-0');", &script);
	assert_int_equal(run_one(&stage, script, NULL), IBID_OK);
	assert_false(member->done);
	assert_int_equal(member->code, IBID_DUPLICATE);
	assert_string_equal(member->outcome.unique, "t_a_key");
	stage.store->ops->free_script(stage.store, script);

	play_script(stage.store,
	            "insert into t (id, a) values (:command_id, :a);\n"
	            "select ibid.reject('NO', 409, 'not today');",
	            &script);
	assert_int_equal(run_one(&stage, script, NULL), IBID_OK);
	assert_false(member->done);
	assert_int_equal(member->code, IBID_REJECTED);
	assert_string_equal(member->outcome.reason, "NO");
	assert_int_equal(member->outcome.status, 409);
	stage.store->ops->free_script(stage.store, script);

	assert_int_equal(run_one(&stage, stage.known, "one"), IBID_OK);
	assert_false(member->done);
	assert_int_equal(member->claim.kind, CLAIM_FOUND);
	assert_effects(1);
	stage_free(&stage);
}

static void a_version_that_is_not_the_next_stops_one_that_is_alone(void **state) /* C02 */
{
	struct stage stage = stage_new();
	struct group_member *member = &stage.played[0].member;
	struct ibid_err err;
	(void)state;
	set_member(&stage, 0, stage.known, NULL);
	stage.played[0].events[0].version = 2;
	assert_int_equal(stage.store->ops->run_group(stage.store, &member, 1, &err), IBID_OK);
	assert_false(member->done);
	assert_int_equal(member->code, IBID_REJECTED);
	assert_string_equal(member->outcome.reason, "VERSION_CONFLICT");
	assert_effects(0);
	stage_free(&stage);
}

/* It is not known to need one: what fails for want of it goes by the steps, once. */
static void a_script_that_asks_for_its_command_is_told_it_from_then_on(void **state)
{
	struct stage stage = stage_new();
	const struct group_member *member = &stage.played[0].member;
	struct script *script;
	(void)state;
	assert_true(fixture_exec("create function mine() returns uuid language sql as $$ select "
	                         "current_setting('ibid.command_id')::uuid $$"));
	play_script(stage.store, "insert into t (id, a) values (mine(), :a);", &script);
	assert_int_equal(run_one(&stage, script, NULL), IBID_OK);
	assert_false(member->done);
	assert_int_equal(member->code, IBID_OK);
	assert_effects(0);
	assert_int_equal(run_one(&stage, script, NULL), IBID_OK);
	assert_true(member->done);
	assert_effects(1);
	stage.store->ops->free_script(stage.store, script);
	stage_free(&stage);
}

/* ---- What may go wrong ---------------------------------------------------------------------- */

/* What stands for the transaction is gone: whatever a script did to it, nothing is committed, and
 * nobody is told that it was done. */
static void a_group_whose_mark_is_gone_is_not_committed(void **state)
{
	(void)state;
	for (int trips = 1; trips <= 2; trips++) {
		struct stage stage = stage_new();
		struct script *wipes = NULL;
		assert_true(fixture_exec("create function wipe(a text) returns text language sql as $$ "
		                         "select set_config('ibid.command_id', '', true) || a $$"));
		play_script(stage.store, "insert into t (id, a) values (:command_id, wipe(:a));", &wipes);
		set_all(&stage, stage.known);
		set_member(&stage, MEMBERS - 1, wipes, NULL);
		stage.played[0].member.compares = trips == 2;
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

/* Its contract makes the events: nobody's turn, or its own, and neither lets it emit. */
static void an_emit_beside_declared_events_is_refused(void **state)
{
	static const char text[] = "insert into t (id, a) values (:command_id, :a);\n"
	                           "select ibid.emit('t', :a, 'Told', '{}');";
	struct stage stage = stage_new();
	struct script *script;
	(void)state;
	play_script(stage.store, text, &script);
	for (int i = 0; i < 2; i++) {
		set_all(&stage, stage.known);
		set_member(&stage, 1, script, NULL);
		assert_int_equal(run_all(&stage), IBID_OK);
		assert_done(&stage, "+-+");
		assert_effects(2 * (i + 1));
	}
	stage.store->ops->free_script(stage.store, script);
	stage_free(&stage);
}

/* postgres_fdw says so of another server. */
static void an_error_that_names_a_lost_connection_is_no_lost_commit(void **state)
{
	static const char text[] = "insert into t (id, a) values (:command_id, :a);\n"
	                           "select lose(:b);";
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
	                           "select pg_terminate_backend(pg_backend_pid());";
	struct stage stage = stage_new();
	(void)state;
	assert_int_equal(run_with(&stage, text, NULL), IBID_UNKNOWN);
	assert_done(&stage, "---");
	assert_effects(0);
	stage_free(&stage);
}

static void a_declared_body_is_kept_byte_for_byte(void **state) /* B08 */
{
	static const char body[] = "{\"b\":\"a \\\"b\\\"\",\"a\":1.50}";
	struct stage stage = stage_new();
	struct group_member *member = &stage.played[1].member;
	(void)state;
	set_all(&stage, stage.known);
	member->outcome.body = body;
	member->outcome.body_size = sizeof body - 1;
	assert_true(complete(member));
	assert_int_equal(run_all(&stage), IBID_OK);
	assert_done(&stage, "+++");
	assert_int_equal(fixture_number("select count(*) from ibid.answer where body = "
	                                "'{\"b\":\"a \\\"b\\\"\",\"a\":1.50}'"),
	                 1);
	assert_effects(3);
	stage_free(&stage);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(a_group_whose_answers_are_declared_is_one_trip),
	    cmocka_unit_test(the_lost_answer_of_a_group_is_unknown),
	    cmocka_unit_test(a_trip_that_arrives_late_does_nothing_twice),
	    cmocka_unit_test(a_connection_that_died_at_rest_is_not_unknown),
	    cmocka_unit_test(who_fails_in_the_one_trip_is_left_out),
	    cmocka_unit_test(events_of_who_is_left_out_are_left_out),
	    cmocka_unit_test(a_group_whose_mark_is_gone_is_not_committed),
	    cmocka_unit_test(a_duplicate_in_the_one_trip_is_found),
	    cmocka_unit_test(rows_that_are_declared_are_compared_first),
	    cmocka_unit_test(one_that_is_alone_is_told_what_stopped_it),
	    cmocka_unit_test(a_version_that_is_not_the_next_stops_one_that_is_alone),
	    cmocka_unit_test(a_script_that_asks_for_its_command_is_told_it_from_then_on),
	    cmocka_unit_test(an_emit_beside_declared_events_is_refused),
	    cmocka_unit_test(an_error_that_names_a_lost_connection_is_no_lost_commit),
	    cmocka_unit_test(a_script_that_ends_the_connection_leaves_it_unknown),
	    cmocka_unit_test(a_declared_body_is_kept_byte_for_byte),
	    cmocka_unit_test(a_constraint_that_comes_later_and_can_be_put_off_is_seen),
	};
	fixture_start();
	int failed = cmocka_run_group_tests_name("postgres group", tests, NULL, NULL);
	fixture_stop();
	return failed;
}
