/* SPDX-License-Identifier: Apache-2.0 */
/* test_sqlite_file.c -- the file under a store: deleted, renamed, replaced, or without room to
 * grow. */
#include "store/sqlite/lite.h"
#include "support/scratch.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cmocka.h>

static char directory[64], path[128], elsewhere[160];
static unsigned files;

static struct store *open_path(void)
{
	char url[160];
	struct store *store = NULL;
	struct ibid_err err;
	struct store_options options = {.url = url, .create = true, .env = env_system()};
	snprintf(url, sizeof url, "sqlite:%s", path);
	if (store_open(&options, &store, &err))
		fail_msg("%s", err.text);
	return store;
}

/* On a file of its own, with a first commit. Opened anew once it has a schema, as servers do. */
static enum ibid_code commit(struct store *store, const char *name, struct ibid_err *err);

static struct store *ready(void)
{
	struct ibid_err err;
	int from, to;
	snprintf(path, sizeof path, "%s/%u.db", directory, ++files);
	snprintf(elsewhere, sizeof elsewhere, "%s.elsewhere", path);
	struct store *store = open_path();
	assert_int_equal(store->ops->migrate(store, &from, &to, &err), IBID_OK);
	store_close(store);
	store = open_path();
	assert_int_equal(commit(store, "first", &err), IBID_OK);
	assert_int_equal(store->ops->ready(store, &err), IBID_OK);
	return store;
}

/* ---- What a store does ---------------------------------------------------------------------- */

static enum ibid_code commit(struct store *store, const char *name, struct ibid_err *err)
{
	const struct contract_row row = {
	    .kind = "command", .name = name, .version = 1, .text = "x", .at_us = 1};
	return store_put_contract(store, &row, err);
}

static enum ibid_code look(struct store *store, const char *name, struct ibid_err *err)
{
	struct arena arena = {0};
	struct contract_row row;
	enum ibid_code code = store_get_contract(store, &arena, "command", name, 1, &row, err);
	arena_release(&arena);
	return code;
}

/* Nothing is taken any more, whatever is at the path now. */
static void assert_gone(struct store *store, const char *name)
{
	struct ibid_err err = {.code = IBID_OK};
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(commit(store, "late", &err), IBID_GONE);
		assert_int_equal(err.next, IBID_NEXT_SAME_KEY);
		assert_non_null(strstr(err.text, name));
		assert_int_equal(look(store, "first", &err), IBID_GONE);
		assert_int_equal(store->ops->ready(store, &err), IBID_GONE);
	}
}

static void copy(const char *from, const char *to)
{
	char command[400];
	snprintf(command, sizeof command, "cp '%s' '%s'", from, to);
	assert_int_equal(system(command), 0);
}

/* ---- What may happen to it ------------------------------------------------------------------ */

static void commit_into_a_deleted_file_is_an_error(void **state)
{
	(void)state;
	struct store *store = ready();
	assert_int_equal(unlink(path), 0);
	assert_gone(store, path);
	store_close(store);
}

static void commit_into_a_renamed_file_is_an_error_also_when_it_is_back(void **state)
{
	(void)state;
	struct ibid_err err;
	struct store *store = ready();
	assert_int_equal(rename(path, elsewhere), 0);
	assert_int_equal(commit(store, "late", &err), IBID_GONE);
	assert_int_equal(rename(elsewhere, path), 0);
	assert_gone(store, path);
	store_close(store);
	store = open_path();
	assert_int_equal(look(store, "first", &err), IBID_OK);
	assert_int_equal(look(store, "late", &err), IBID_NOT_FOUND);
	store_close(store);
}

static void renaming_that_is_over_before_anybody_looks_or_writes_is_nothing(void **state)
{
	(void)state;
	struct ibid_err err;
	struct store *store = ready();
	assert_int_equal(rename(path, elsewhere), 0);
	assert_int_equal(rename(elsewhere, path), 0);
	assert_int_equal(commit(store, "late", &err), IBID_OK);
	assert_int_equal(store->ops->ready(store, &err), IBID_OK);
	store_close(store);
}

static void commit_into_a_replaced_file_is_an_error(void **state)
{
	(void)state;
	struct ibid_err err;
	struct store *store = ready();
	assert_int_equal(lite_checkpoint((struct lite_store *)store, &err), IBID_OK);
	copy(path, elsewhere);
	assert_int_equal(rename(elsewhere, path), 0);
	assert_gone(store, path);
	store_close(store);
	store = open_path(); /* what is there now is whole */
	assert_int_equal(look(store, "first", &err), IBID_OK);
	assert_int_equal(look(store, "late", &err), IBID_NOT_FOUND);
	assert_int_equal(commit(store, "late", &err), IBID_OK);
	store_close(store);
}

static void directory_that_was_renamed_takes_the_file_along(void **state)
{
	(void)state;
	char kept[sizeof directory], moved[sizeof directory + 16];
	memcpy(kept, directory, sizeof kept);
	snprintf(moved, sizeof moved, "%s.moved", directory);
	struct store *store = ready();
	assert_int_equal(rename(directory, moved), 0);
	assert_gone(store, path);
	assert_int_equal(rename(moved, kept), 0);
	store_close(store);
}

static void file_that_is_gone_before_a_connection_is_opened_is_told_then(void **state)
{
	(void)state;
	struct ibid_err err = {.code = IBID_OK};
	store_close(ready());
	struct store *store = open_path();
	copy(path, elsewhere);
	assert_int_equal(rename(elsewhere, path), 0);
	assert_int_equal(look(store, "first", &err), IBID_GONE); /* by the first reader */
	store_close(store);
	store = open_path();
	assert_int_equal(unlink(path), 0);
	assert_int_equal(commit(store, "late", &err), IBID_GONE);
	store_close(store);
}

static void wal_or_shared_memory_that_is_gone_is_told_by_the_regular_look(void **state)
{
	(void)state;
	static const char *const endings[] = {"-wal", "-shm"};
	for (size_t i = 0; i < 2; i++) {
		char name[sizeof path + 8];
		struct store *store = ready();
		struct ibid_err err;
		snprintf(name, sizeof name, "%s%s", path, endings[i]);
		assert_int_equal(unlink(name), 0);
		assert_int_equal(store->ops->ready(store, &err), IBID_GONE);
		assert_gone(store, name);
		store_close(store);
	}
}

static void store_that_another_closes_beside_it_is_there(void **state)
{
	(void)state;
	struct ibid_err err;
	struct store *store = ready(), *other = open_path();
	assert_int_equal(commit(other, "other", &err), IBID_OK);
	store_close(other);
	assert_int_equal(store->ops->ready(store, &err), IBID_OK);
	assert_int_equal(commit(store, "own", &err), IBID_OK);
	assert_int_equal(look(store, "other", &err), IBID_OK);
	store_close(store);
}

static enum ibid_code adopt(struct store *store, sqlite3 *db)
{
	struct tx *tx = NULL;
	struct ibid_err err;
	enum ibid_code code = store->ops->adopt(store, db, &tx, &err);
	if (!code)
		store->ops->release_adopted(&tx);
	return code;
}

static void connection_to_a_file_that_is_gone_is_not_adopted(void **state)
{
	(void)state;
	sqlite3 *db = NULL;
	struct store *store = ready();
	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	assert_int_equal(sqlite3_exec(db, "pragma foreign_keys = on; begin", NULL, NULL, NULL),
	                 SQLITE_OK);
	assert_int_equal(adopt(store, db), IBID_OK);
	copy(path, elsewhere);
	assert_int_equal(rename(elsewhere, path), 0);
	assert_int_equal(adopt(store, db), IBID_GONE);
	store_close(store);
	store = open_path(); /* on the other file, by the same name */
	assert_int_equal(adopt(store, db), IBID_MISUSE);
	sqlite3_close(db);
	store_close(store);
}

/* ---- A limit -------------------------------------------------------------------------------- */

static void limit_files(rlim_t bytes)
{
	struct rlimit limit;
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
	limit.rlim_cur = bytes < limit.rlim_max ? bytes : limit.rlim_max;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

/* The system writes up to the limit, and then says EFBIG. */
static void limit_on_the_size_of_files_is_a_full_disk(void **state)
{
	(void)state;
	struct ibid_err err = {.code = IBID_OK};
	struct store *store = ready();
	for (rlim_t bytes = 32; bytes < 30000; bytes += 1999) {
		limit_files(bytes);
		enum ibid_code code = commit(store, "late", &err);
		enum ibid_code told = store->ops->ready(store, &err);
		limit_files(RLIM_INFINITY);
		assert_int_equal(code, IBID_FULL);
		assert_int_equal(told, IBID_FULL);
		assert_int_equal(store->ops->ready(store, &err), IBID_OK);
		assert_int_equal(look(store, "late", &err), IBID_NOT_FOUND);
	}
	assert_int_equal(commit(store, "late", &err), IBID_OK);
	assert_int_equal(look(store, "late", &err), IBID_OK);
	store_close(store);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(commit_into_a_deleted_file_is_an_error),
	    cmocka_unit_test(commit_into_a_renamed_file_is_an_error_also_when_it_is_back),
	    cmocka_unit_test(renaming_that_is_over_before_anybody_looks_or_writes_is_nothing),
	    cmocka_unit_test(commit_into_a_replaced_file_is_an_error),
	    cmocka_unit_test(directory_that_was_renamed_takes_the_file_along),
	    cmocka_unit_test(file_that_is_gone_before_a_connection_is_opened_is_told_then),
	    cmocka_unit_test(wal_or_shared_memory_that_is_gone_is_told_by_the_regular_look),
	    cmocka_unit_test(store_that_another_closes_beside_it_is_there),
	    cmocka_unit_test(connection_to_a_file_that_is_gone_is_not_adopted),
	    cmocka_unit_test(limit_on_the_size_of_files_is_a_full_disk),
	};
	char command[128];
	signal(SIGXFSZ, SIG_IGN);
	scratch_dir("ibid-file", directory, sizeof directory);
	int failed = cmocka_run_group_tests_name("sqlite-file", tests, NULL, NULL);
	snprintf(command, sizeof command, "rm -rf %s", directory);
	return system(command) != 0 || failed;
}
