/* SPDX-License-Identifier: Apache-2.0 */
/* test_wal_vfs.c -- the layer that gathers a transaction's frames: fewer writes, and nothing else
 * is different, for this connection, for others, after a crash and on a disk that fails. */
#include "store/sqlite/wal_vfs.h"
#include "support/disk.h"
#include "support/scratch.h"

#include <setjmp.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static char directory[64], path[128];
static unsigned files;

/* ---- Connections ---------------------------------------------------------------------------- */

static sqlite3 *open_at(const char *file, const char *vfs)
{
	sqlite3 *db = NULL;
	if (sqlite3_open_v2(file, &db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, vfs))
		fail_msg("%s: %s", file, sqlite3_errmsg(db));
	sqlite3_busy_timeout(db, 5000);
	return db;
}

static void run(sqlite3 *db, const char *sql)
{
	if (sqlite3_exec(db, sql, NULL, NULL, NULL))
		fail_msg("%s: %s", sql, sqlite3_errmsg(db));
}

static int64_t number(sqlite3 *db, const char *sql)
{
	sqlite3_stmt *stmt = NULL;
	if (sqlite3_prepare_v2(db, sql, -1, &stmt, NULL) || sqlite3_step(stmt) != SQLITE_ROW)
		fail_msg("%s: %s", sql, sqlite3_errmsg(db));
	int64_t value = sqlite3_column_int64(stmt, 0);
	sqlite3_finalize(stmt);
	return value;
}

static const char tables[] = "pragma journal_mode = wal; pragma wal_autocheckpoint = 0;"
                             "pragma synchronous = full;"
                             "create table a (n integer primary key, text text);"
                             "create table b (n integer primary key, text text);"
                             "create table c (n integer primary key, text text);"
                             "insert into a values (0, 'first');";

/* A new file, and the gathering connection to it. */
static sqlite3 *fresh(void)
{
	snprintf(path, sizeof path, "%s/%u.db", directory, ++files);
	sqlite3 *db = open_at(path, lite_wal_vfs());
	run(db, tables);
	return db;
}

static void copy(const char *from, const char *to)
{
	char buffer[65536];
	size_t size;
	FILE *in = fopen(from, "r"), *out = fopen(to, "w");
	assert_true(in && out);
	while ((size = fread(buffer, 1, sizeof buffer, in)) > 0)
		assert_int_equal(fwrite(buffer, 1, size, out), size);
	fclose(in);
	assert_int_equal(fclose(out), 0);
}

/* What a machine finds that starts again now: the files without the index in shared memory. */
static int64_t after_crash(const char *sql)
{
	char to[160], wal[160], to_wal[176];
	snprintf(to, sizeof to, "%s.crash", path);
	snprintf(wal, sizeof wal, "%s-wal", path);
	snprintf(to_wal, sizeof to_wal, "%s-wal", to);
	copy(path, to);
	copy(wal, to_wal);
	sqlite3 *db = open_at(to, NULL);
	int64_t value = number(db, sql);
	assert_int_equal(number(db, "select integrity_check = 'ok' from pragma_integrity_check"), 1);
	sqlite3_close(db);
	return value;
}

/* This connection, another one and a machine that starts again say the same. */
static void assert_all_see(sqlite3 *db, const char *sql, int64_t expected)
{
	sqlite3 *other = open_at(path, NULL);
	assert_int_equal(number(db, sql), expected);
	assert_int_equal(number(other, sql), expected);
	assert_int_equal(after_crash(sql), expected);
	assert_int_equal(number(db, "select integrity_check = 'ok' from pragma_integrity_check"), 1);
	sqlite3_close(other);
}

static const char many_rows[] = "with recursive i (n) as (select 1 union all select n + 1 from i "
                                "where n < 2000) insert into b select n, hex(zeroblob(400)) from i";

static int good_disk(void **state)
{
	(void)state;
	disk.fail_wal_sync = disk.full = disk.cut_wal_write = false;
	return 0;
}

/* ---- Fewer writes --------------------------------------------------------------------------- */

static void frames_of_a_commit_arrive_as_one_write(void **state)
{
	(void)state;
	sqlite3 *db = fresh();
	for (int n = 1; n <= 3; n++) {
		char sql[200];
		snprintf(sql, sizeof sql,
		         "begin; insert into a values (%d, 'x'); insert into b values (%d, 'y');"
		         "insert into c values (%d, 'z'); commit",
		         n, n, n);
		disk.wal_writes = 0;
		run(db, sql);
		assert_int_equal(disk.wal_writes, 1);
		assert_all_see(db, "select (select count(*) from b) * 100 + (select count(*) from c)",
		               n * 101);
	}
	sqlite3_close(db);
}

static void commit_of_one_page_is_one_write(void **state)
{
	(void)state;
	sqlite3 *db = fresh();
	disk.wal_writes = 0;
	run(db, "insert into a values (1, 'x')");
	assert_int_equal(disk.wal_writes, 1);
	assert_all_see(db, "select count(*) from a", 2);
	sqlite3_close(db);
}

static void transaction_longer_than_the_buffer_is_written_in_parts(void **state)
{
	(void)state;
	sqlite3 *db = fresh();
	disk.wal_writes = 0;
	disk.wal_write_longest = 0;
	run(db, many_rows);
	/* 2000 rows of 800 bytes are at least 400 frames. */
	assert_in_range(disk.wal_writes, 400 / 16, 600 / 14);
	assert_in_range(disk.wal_write_longest, 4120, 65536);
	assert_all_see(db, "select sum(length(text)) from b", 2000 * 800);
	sqlite3_close(db);
}

static void largest_pages_are_written_as_they_come(void **state)
{
	(void)state;
	snprintf(path, sizeof path, "%s/%u.db", directory, ++files);
	sqlite3 *db = open_at(path, lite_wal_vfs());
	run(db, "pragma page_size = 65536");
	run(db, tables);
	run(db, many_rows);
	run(db, "begin; insert into a values (1, 'x'); insert into c values (1, 'y'); commit");
	assert_all_see(db, "select count(*) + (select count(*) from c) from b", 2001);
	sqlite3_close(db);
}

static void wal_that_begins_anew_is_gathered_too(void **state)
{
	(void)state;
	sqlite3 *db = fresh();
	for (int n = 1; n <= 3; n++) {
		run(db, "pragma wal_checkpoint(restart)");
		run(db, "begin; insert into a (text) values ('x'); insert into b (text) values ('y');"
		        "commit");
		disk.wal_writes = 0;
		run(db, "begin; insert into a (text) values ('x'); insert into b (text) values ('y');"
		        "commit");
		assert_int_equal(disk.wal_writes, 1);
		assert_all_see(db, "select count(*) from b", 2 * n);
	}
	sqlite3_close(db);
}

static void each_vfs_has_one_layer(void **state)
{
	(void)state;
	const char *name = lite_wal_vfs();
	assert_non_null(name);
	assert_ptr_equal(lite_wal_vfs(), name);
	assert_ptr_equal(sqlite3_vfs_find(name)->zName, name);
	sqlite3_vfs *bad = sqlite3_vfs_find(NULL);
	assert_int_equal(sqlite3_vfs_register(sqlite3_vfs_find("unix"), 1), SQLITE_OK);
	const char *other = lite_wal_vfs();
	assert_int_equal(sqlite3_vfs_register(bad, 1), SQLITE_OK);
	assert_string_not_equal(other, name);
	assert_ptr_equal(lite_wal_vfs(), name);
}

/* ---- Nothing else is different -------------------------------------------------------------- */

/* Frames that leave a small cache before the commit are read again, and overwritten in place. */
static void frames_that_were_written_early_are_read_back(void **state)
{
	(void)state;
	sqlite3 *db = fresh();
	run(db, "pragma cache_size = 10; begin");
	run(db, many_rows);
	assert_int_equal(number(db, "select sum(length(text)) from b"), 2000 * 800);
	run(db, "update b set text = text || 'x' where n % 3 = 0");
	run(db, "insert into c select n, text from b where n % 7 = 0");
	assert_int_equal(number(db, "select sum(length(text)) from b"), 2000 * 800 + 666);
	sqlite3 *other = open_at(path, NULL);
	assert_int_equal(number(other, "select count(*) from b"), 0);
	sqlite3_close(other);
	run(db, "commit");
	assert_all_see(db, "select sum(length(text)) from b", 2000 * 800 + 666);
	assert_all_see(db, "select count(*) from c", 285);
	sqlite3_close(db);
}

static void frames_of_a_rollback_do_not_overwrite_what_another_wrote(void **state)
{
	(void)state;
	sqlite3 *db = fresh(), *other = open_at(path, NULL);
	/* One early frame for each call: the last of them is still kept at the rollback. */
	run(db, "pragma cache_size = 10; begin; insert into a values (1, 'lost')");
	assert_int_equal(sqlite3_db_cacheflush(db), SQLITE_OK);
	run(db, "rollback");
	run(other, "insert into a values (2, 'kept')");
	assert_all_see(db, "select count(*) * 10 + max(n) from a", 22);
	run(db, "insert into a values (3, 'x')");
	assert_all_see(db, "select count(*) * 10 + max(n) from a", 33);
	sqlite3_close(other);
	sqlite3_close(db);
}

static void rolled_back_frames_are_overwritten_by_the_next_transaction(void **state)
{
	(void)state;
	sqlite3 *db = fresh();
	run(db, "pragma cache_size = 10");
	for (int n = 1; n <= 3; n++) {
		run(db, "begin");
		run(db, many_rows);
		run(db, "savepoint half; delete from b; rollback to half; rollback");
		run(db, "insert into a (text) values ('x')");
		assert_all_see(db, "select (select count(*) from a) * 10 + (select count(*) from b)",
		               (n + 1) * 10);
	}
	sqlite3_close(db);
}

static void commit_is_in_the_file_without_a_sync(void **state)
{
	(void)state;
	sqlite3 *db = fresh();
	run(db, "pragma synchronous = off; pragma cache_size = 10");
	run(db, "begin; insert into a values (1, 'x'); insert into b values (-1, 'y'); commit");
	assert_all_see(db, "select count(*) from a", 2);
	run(db, "begin");
	run(db, many_rows);
	run(db, "update b set text = 'short'; commit"); /* checksums are made anew */
	assert_all_see(db, "select count(*) from b where text = 'short'", 2001);
	sqlite3_close(db);
}

/* Then no lock tells of the end of a transaction: nothing is kept. */
static void exclusive_connection_leaves_nothing_behind_for_later(void **state)
{
	(void)state;
	sqlite3 *db = fresh();
	run(db, "pragma locking_mode = exclusive; begin; insert into a values (1, 'lost')");
	assert_int_equal(sqlite3_db_cacheflush(db), SQLITE_OK);
	run(db, "rollback; pragma locking_mode = normal; select * from b");
	sqlite3 *other = open_at(path, NULL);
	run(other, "insert into a values (2, 'kept')");
	assert_all_see(db, "select count(*) * 10 + max(n) from a", 22);
	sqlite3_close(other);
	sqlite3_close(db);
}

static void file_leaves_the_wal_and_comes_back(void **state)
{
	(void)state;
	sqlite3 *db = fresh();
	run(db, "pragma journal_mode = delete; insert into b values (1, 'x');"
	        "pragma journal_mode = wal; insert into b values (2, 'x')");
	assert_all_see(db, "select count(*) from b", 2);
	sqlite3_close(db);
}

static void two_connections_take_turns(void **state)
{
	(void)state;
	sqlite3 *one = fresh(), *two = open_at(path, lite_wal_vfs());
	run(two, "pragma wal_autocheckpoint = 0");
	for (int n = 0; n < 20; n++) {
		run(n % 2 ? one : two, "begin; insert into a (text) values ('x');"
		                       "insert into b (text) values ('y'); commit");
		assert_int_equal(number(n % 2 ? two : one, "select count(*) from b"), n + 1);
	}
	assert_all_see(one, "select count(*) from b", 20);
	sqlite3_close(two);
	sqlite3_close(one);
}

/* ---- Disks that fail ------------------------------------------------------------------------ */

static int try_commit(sqlite3 *db)
{
	run(db, "begin; insert into a values (1, 'x'); insert into b values (1, 'y')");
	return sqlite3_exec(db, "commit", NULL, NULL, NULL) ? sqlite3_extended_errcode(db) : 0;
}

static void assert_recovers(sqlite3 *db)
{
	good_disk(NULL);
	assert_int_equal(sqlite3_get_autocommit(db), 1);
	assert_all_see(db, "select count(*) from a", 1);
	assert_int_equal(try_commit(db), SQLITE_OK);
	assert_all_see(db, "select (select count(*) from a) * 10 + (select count(*) from b)", 21);
	sqlite3_close(db);
}

static void full_disk_is_reported_by_the_commit(void **state) /* I7 */
{
	(void)state;
	sqlite3 *db = fresh();
	disk.full = true;
	assert_int_equal(try_commit(db), SQLITE_FULL);
	assert_recovers(db);
}

static void full_disk_is_reported_without_a_sync_too(void **state) /* I7 */
{
	(void)state;
	sqlite3 *db = fresh();
	run(db, "pragma synchronous = off");
	disk.full = true;
	assert_int_equal(try_commit(db), SQLITE_FULL);
	assert_recovers(db);
}

static void write_that_is_cut_is_reported_by_the_commit(void **state) /* I7 */
{
	(void)state;
	sqlite3 *db = fresh();
	disk.cut_wal_write = true;
	assert_int_equal(try_commit(db), SQLITE_IOERR_WRITE);
	assert_recovers(db);
}

static void commit_whose_sync_failed_is_not_seen_and_can_be_repeated(void **state) /* I7 */
{
	(void)state;
	sqlite3 *db = fresh();
	disk.fail_wal_sync = true;
	assert_int_equal(try_commit(db), SQLITE_IOERR_FSYNC);
	good_disk(NULL);
	assert_int_equal(number(db, "select count(*) from a"), 1);
	assert_int_equal(try_commit(db), SQLITE_OK);
	assert_all_see(db, "select (select count(*) from a) * 10 + (select count(*) from b)", 21);
	sqlite3_close(db);
}

/* A statement that can be undone alone fails where it reads, and the transaction goes on: SQLite
 * takes the early frames of the statements before for written. */
static void full_disk_in_the_middle_loses_no_early_frame(void **state)
{
	(void)state;
	sqlite3 *db = fresh();
	run(db, "pragma cache_size = 10; pragma temp_store = memory; begin");
	run(db, many_rows);
	disk.full = true;
	assert_int_equal(sqlite3_exec(db, "insert into c select * from b", NULL, NULL, NULL),
	                 SQLITE_FULL);
	good_disk(NULL);
	assert_int_equal(sqlite3_get_autocommit(db), 0);
	assert_int_equal(number(db, "select sum(length(text)) from b"), 2000 * 800);
	run(db, "commit");
	assert_all_see(db, "select sum(length(text)) from b", 2000 * 800);
	sqlite3_close(db);
}

/* ---- Other processes ------------------------------------------------------------------------ */

/* The tables hold the same number of rows at every moment, until there are 400. */
static void watch(void)
{
	sqlite3 *db = open_at(path, NULL);
	int64_t last = 0;
	while (last < 400) {
		int64_t now = number(db, "select case when (select count(*) from b) = "
		                         "(select count(*) from c) then (select count(*) from b) end");
		if (now < last)
			_exit(1);
		last = now;
	}
	if (!number(db, "select integrity_check = 'ok' from pragma_integrity_check"))
		_exit(2);
	_exit(0);
}

static void processes_that_read_see_whole_transactions(void **state) /* I1 */
{
	pid_t children[2];
	int status;
	(void)state;
	sqlite3_close(fresh());
	fflush(stdout);
	for (int i = 0; i < 2; i++) {
		children[i] = fork();
		if (children[i] == 0)
			watch();
	}
	sqlite3 *db = open_at(path, lite_wal_vfs());
	run(db, "pragma wal_autocheckpoint = 100; pragma cache_size = 10");
	for (int n = 0; n < 400; n++)
		run(db, "begin; insert into b (text) values (hex(zeroblob(3000)));"
		        "insert into c (text) values (hex(zeroblob(3000))); commit");
	for (int i = 0; i < 2; i++) {
		assert_int_equal(waitpid(children[i], &status, 0), children[i]);
		assert_int_equal(status, 0);
	}
	sqlite3_close(db);
}

/* Tells each commit through the pipe, until it is killed. */
static void write_and_tell(int out)
{
	sqlite3 *db = open_at(path, lite_wal_vfs());
	run(db, "pragma cache_size = 10");
	for (;;) {
		run(db, "begin; insert into b (text) values (hex(zeroblob(9000)));"
		        "insert into c (text) values (hex(zeroblob(9000))); commit");
		if (write(out, "c", 1) != 1)
			_exit(1);
	}
}

static void killed_writer_loses_nothing_that_it_told(void **state) /* I10 */
{
	int64_t told = 0;
	(void)state;
	sqlite3_close(fresh());
	for (int round = 0; round < 8; round++) {
		int ends[2];
		char c;
		assert_int_equal(pipe(ends), 0);
		fflush(stdout);
		pid_t child = fork();
		if (child == 0)
			write_and_tell(ends[1]);
		close(ends[1]);
		for (int n = 0; n < 10 + round; n++, told++)
			assert_int_equal(read(ends[0], &c, 1), 1);
		kill(child, SIGKILL);
		while (read(ends[0], &c, 1) == 1)
			told++;
		close(ends[0]);
		assert_int_equal(waitpid(child, NULL, 0), child);
		sqlite3 *db = open_at(path, lite_wal_vfs());
		int64_t found = number(db, "select count(*) from b");
		assert_in_range(found, told, told + 1);
		assert_int_equal(number(db, "select count(*) from c"), found);
		assert_int_equal(number(db, "select integrity_check = 'ok' from pragma_integrity_check"),
		                 1);
		told = found;
		sqlite3_close(db);
	}
}

#define BAD_DISK(name) cmocka_unit_test_teardown(name, good_disk)

int main(void)
{
	static const struct CMUnitTest tests[] = {
	    cmocka_unit_test(frames_of_a_commit_arrive_as_one_write),
	    cmocka_unit_test(commit_of_one_page_is_one_write),
	    cmocka_unit_test(transaction_longer_than_the_buffer_is_written_in_parts),
	    cmocka_unit_test(largest_pages_are_written_as_they_come),
	    cmocka_unit_test(wal_that_begins_anew_is_gathered_too),
	    cmocka_unit_test(each_vfs_has_one_layer),
	    cmocka_unit_test(frames_that_were_written_early_are_read_back),
	    cmocka_unit_test(frames_of_a_rollback_do_not_overwrite_what_another_wrote),
	    cmocka_unit_test(rolled_back_frames_are_overwritten_by_the_next_transaction),
	    cmocka_unit_test(commit_is_in_the_file_without_a_sync),
	    cmocka_unit_test(exclusive_connection_leaves_nothing_behind_for_later),
	    cmocka_unit_test(file_leaves_the_wal_and_comes_back),
	    cmocka_unit_test(two_connections_take_turns),
	    BAD_DISK(full_disk_is_reported_by_the_commit),
	    BAD_DISK(full_disk_is_reported_without_a_sync_too),
	    BAD_DISK(write_that_is_cut_is_reported_by_the_commit),
	    BAD_DISK(commit_whose_sync_failed_is_not_seen_and_can_be_repeated),
	    BAD_DISK(full_disk_in_the_middle_loses_no_early_frame),
	    cmocka_unit_test(processes_that_read_see_whole_transactions),
	    cmocka_unit_test(killed_writer_loses_nothing_that_it_told),
	};
	char command[128];
	scratch_dir("ibid-wal", directory, sizeof directory);
	disk_wrap();
	int failed = cmocka_run_group_tests_name("wal-vfs", tests, NULL, NULL);
	snprintf(command, sizeof command, "rm -rf %s", directory);
	return system(command) != 0 || failed;
}
