/* SPDX-License-Identifier: Apache-2.0 */
/* suite_setup.c -- schemas and contracts. */
#include "store/suite_bed.h"
#include "store/suite_tests.h"

#include <pthread.h>
#include <string.h>

void store_without_schema_is_refused_with_version_zero(void **state)
{
	struct bed *bed = bed_of(state);
	int version = 7;
	assert_int_equal(bed->ops->check_schema(bed->store, &version, &bed->err), IBID_SCHEMA);
	assert_int_equal(version, 0);
	assert_non_null(strstr(bed->err.text, "ibid init"));
}

void migrating_twice_changes_nothing_the_second_time(void **state)
{
	struct bed *bed = bed_of(state);
	int from = -1, to = -1, version = 0;
	check(bed, bed->ops->migrate(bed->store, &from, &to, &bed->err));
	assert_int_equal(from, 0);
	assert_int_equal(to, STORE_SCHEMA);
	check(bed, bed->ops->migrate(bed->store, &from, &to, &bed->err));
	assert_int_equal(from, STORE_SCHEMA);
	assert_int_equal(to, STORE_SCHEMA);
	check(bed, bed->ops->check_schema(bed->store, &version, &bed->err));
	assert_int_equal(version, STORE_SCHEMA);
}

struct migrating {
	struct store *store;
	pthread_barrier_t *start;
	enum ibid_code code;
	int from;
	struct ibid_err err;
};

static void *migrate_in_thread(void *user)
{
	struct migrating *self = user;
	int to = 0;
	pthread_barrier_wait(self->start);
	self->code = self->store->ops->migrate(self->store, &self->from, &to, &self->err);
	return NULL;
}

void two_migrate_at_once_and_one_does_it(void **state)
{
	struct bed *bed = bed_of(state);
	pthread_barrier_t start;
	pthread_t threads[2];
	be_patient(bed);
	struct migrating who[2] = {{.store = bed->store, .start = &start, .from = -1},
	                           {.store = backend->patient(), .start = &start, .from = -1}};
	pthread_barrier_init(&start, NULL, 2);
	for (int i = 0; i < 2; i++)
		pthread_create(&threads[i], NULL, migrate_in_thread, &who[i]);
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	store_close(who[1].store);
	pthread_barrier_destroy(&start);
	for (int i = 0; i < 2; i++)
		if (who[i].code)
			fail_msg("%s", who[i].err.text);
	assert_int_equal(who[0].from + who[1].from, STORE_SCHEMA);
}

void next_schema_is_accepted_and_a_newer_one_is_not(void **state)
{
	struct bed *bed = bed_of(state);
	int version = 0, from = 0, to = 0;
	assert_true(backend->exec(backend->sql[SUITE_SCHEMA_NEXT]));
	check(bed, bed->ops->check_schema(bed->store, &version, &bed->err));
	assert_int_equal(version, STORE_SCHEMA + 1);
	check(bed, bed->ops->migrate(bed->store, &from, &to, &bed->err));
	assert_int_equal(to, STORE_SCHEMA + 1);
	assert_true(backend->exec(backend->sql[SUITE_SCHEMA_NEWER]));
	assert_int_equal(bed->ops->check_schema(bed->store, &version, &bed->err), IBID_SCHEMA);
	assert_int_equal(version, STORE_SCHEMA + 2);
	assert_int_equal(bed->ops->migrate(bed->store, &from, &to, &bed->err), IBID_SCHEMA);
	assert_non_null(strstr(bed->err.text, "newer"));
}

void schema_file_runs_once_and_a_changed_one_is_told(void **state)
{
	struct bed *bed = bed_of(state);
	const char *sql = backend->sql[SUITE_TABLES];
	enum schema_state schema = SCHEMA_APPLIED;
	check(bed,
	      bed->ops->apply_schema(
	          bed->store, &(struct schema_file){.name = "suite", .text = sql, .now_us = now_us},
	          &schema, &bed->err));
	assert_int_equal(schema, SCHEMA_ALREADY);
	check(bed, bed->ops->apply_schema(
	               bed->store,
	               &(struct schema_file){.name = "suite", .text = "select 1;", .now_us = now_us},
	               &schema, &bed->err));
	assert_int_equal(schema, SCHEMA_CHANGED);
	check(bed,
	      bed->ops->apply_schema(bed->store,
	                             &(struct schema_file){.name = "other",
	                                                   .text = "create table other (id text);\n",
	                                                   .now_us = now_us},
	                             &schema, &bed->err));
	assert_int_equal(schema, SCHEMA_APPLIED);
	assert_int_equal(backend->number("select count(*) from other"), 0);
}

void schema_file_that_fails_leaves_nothing_and_may_run_again(void **state)
{
	struct bed *bed = bed_of(state);
	enum schema_state schema = SCHEMA_ALREADY;
	assert_int_not_equal(
	    bed->ops->apply_schema(bed->store,
	                           &(struct schema_file){.name = "half.sql",
	                                                 .text = backend->sql[SUITE_TABLES_BROKEN],
	                                                 .now_us = now_us},
	                           &schema, &bed->err),
	    IBID_OK);
	assert_int_equal(schema, SCHEMA_ALREADY);
	check(bed, bed->ops->apply_schema(bed->store,
	                                  &(struct schema_file){.name = "half.sql",
	                                                        .text = "create table half (id text);",
	                                                        .now_us = now_us},
	                                  &schema, &bed->err));
	assert_int_equal(schema, SCHEMA_APPLIED);
}

static struct contract_row contract_of(int version, const char *text)
{
	return (struct contract_row){
	    "command", "create-payment", version, sha256(text, strlen(text)), text, now_us};
}

void contract_is_kept_once_and_another_text_is_refused(void **state)
{
	struct bed *bed = bed_of(state);
	struct contract_row one = contract_of(1, "{\"fact\":\"it's \\\"paid\\\" \xE2\x82\xAC\"}");
	struct contract_row other = contract_of(1, "{}"), two = contract_of(2, "{}"), got;
	check(bed, store_put_contract(bed->store, &one, &bed->err));
	check(bed, store_put_contract(bed->store, &one, &bed->err));
	assert_int_equal(store_put_contract(bed->store, &other, &bed->err), IBID_CONTRACT);
	check(bed, store_put_contract(bed->store, &two, &bed->err));
	check(bed, store_get_contract(bed->store, &bed->arena, "command", "create-payment", 1, &got,
	                              &bed->err));
	assert_string_equal(got.text, one.text);
	assert_string_equal(got.kind, "command");
	assert_string_equal(got.name, "create-payment");
	assert_int_equal(got.version, 1);
	assert_true(got.at_us == now_us);
	assert_memory_equal(&got.digest, &one.digest, sizeof got.digest);
}

void contract_that_was_never_kept_is_not_found(void **state)
{
	struct bed *bed = bed_of(state);
	struct contract_row got;
	assert_int_equal(store_get_contract(bed->store, &bed->arena, "command", "create-payment", 9,
	                                    &got, &bed->err),
	                 IBID_NOT_FOUND);
}
