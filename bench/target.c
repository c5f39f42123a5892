/* SPDX-License-Identifier: Apache-2.0 */
#include "target.h"

#include <libpq-fe.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

bool on_sqlite(const struct target *target)
{
	return strcmp(target->store, "sqlite") == 0;
}

/* ---- Leaving nothing behind ----------------------------------------------------------------- */

/* A large ledger has gigabytes: they go also when a run dies or is stopped. PostgreSQL's go with
 * the server that tools/with-postgres made. */
enum { LEFTOVERS_MAX = 4 };
static struct leftover {
	char files[3][288], dir[256];
} leftovers[LEFTOVERS_MAX];

static void remove_leftover(struct leftover *leftover)
{
	if (!leftover->dir[0])
		return;
	for (int i = 0; i < 3; i++)
		unlink(leftover->files[i]);
	rmdir(leftover->dir);
	leftover->dir[0] = 0;
}

static void remove_leftovers(void)
{
	for (int i = 0; i < LEFTOVERS_MAX; i++)
		remove_leftover(&leftovers[i]);
}

static void stopped(int number)
{
	remove_leftovers();
	_exit(128 + number);
}

static void clean_up_at_exit(void)
{
	static bool arranged;
	struct sigaction action = {.sa_handler = stopped};
	if (arranged)
		return;
	arranged = true;
	atexit(remove_leftovers);
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGHUP, &action, NULL);
}

static struct leftover *leftover_of(const char *dir)
{
	for (int i = 0; i < LEFTOVERS_MAX; i++) {
		if (strcmp(leftovers[i].dir, dir) == 0)
			return &leftovers[i];
	}
	die(dir, "too many stores at once");
}

static void note_leftover(const struct target *target)
{
	static const char *const ends[3] = {"", "-wal", "-shm"};
	struct leftover *leftover = leftover_of("");
	clean_up_at_exit();
	for (int i = 0; i < 3; i++)
		snprintf(leftover->files[i], sizeof leftover->files[i], "%s%s", target->path, ends[i]);
	snprintf(leftover->dir, sizeof leftover->dir, "%s", target->dir);
}

/* ---- Making and removing -------------------------------------------------------------------- */

static void make_file(struct target *target)
{
	const char *tmp = getenv("TMPDIR");
	snprintf(target->dir, sizeof target->dir, "%s/ibid-bench-XXXXXX", tmp ? tmp : "/tmp");
	if (!mkdtemp(target->dir))
		die(target->dir, "can't make a directory");
	snprintf(target->path, sizeof target->path, "%s/bench.db", target->dir);
	snprintf(target->url, sizeof target->url, "sqlite:%s", target->path);
	note_leftover(target);
}

static void on_server(const char *format, const char *database)
{
	char sql[128];
	struct driver *server = driver_open_postgres(getenv("IBID_TEST_PG"), false);
	snprintf(sql, sizeof sql, format, database);
	driver_run(server, sql);
	driver_close(server);
}

static void make_database(struct target *target, const char *name)
{
	const char *base = getenv("IBID_TEST_PG");
	if (!base || !strrchr(base, '/'))
		die("IBID_TEST_PG", "not set; run through tools/with-postgres");
	snprintf(target->database, sizeof target->database, "ibid_bench_%s", name);
	snprintf(target->url, sizeof target->url, "%.*s/%s", (int)(strrchr(base, '/') - base), base,
	         target->database);
	on_server("create database %s", target->database);
}

struct target *target_new(const struct bench *bench, const char *store, const char *name)
{
	struct target *target = calloc(1, sizeof *target);
	struct ibid_err err = {0};
	if (!target)
		die("target", "out of memory");
	target->bench = bench;
	target->store = store;
	if (on_sqlite(target))
		make_file(target);
	else
		make_database(target, name);
	if (ibid_init(IBID_OPTIONS(.store = target->url, .contracts = BENCH_CONTRACTS), &err))
		die(target->url, err.text);
	return target;
}

void target_free(struct target *target)
{
	target_close(target);
	for (int i = 0; i < CALLERS_MAX; i++)
		driver_close(target->drivers[i]);
	driver_close(target->admin);
	if (on_sqlite(target))
		remove_leftover(leftover_of(target->dir));
	else
		on_server("drop database %s with (force)", target->database);
	free(target);
}

/* ---- Opening and closing -------------------------------------------------------------------- */

void target_open(struct target *target, int callers)
{
	struct ibid_err err = {0};
	target_close(target);
	if (ibid_open(IBID_OPTIONS(.store = target->url, .contracts = BENCH_CONTRACTS, .busy_ms = 60000,
	                           .connections = (unsigned)callers + 1),
	              &target->ibid, &err))
		die(target->url, err.text);
}

void target_close(struct target *target)
{
	ibid_close(target->ibid);
	target->ibid = NULL;
}

static struct driver *driver_of(const struct target *target, bool prepared)
{
	return on_sqlite(target) ? driver_open_sqlite(target->path, prepared)
	                         : driver_open_postgres(target->url, prepared);
}

struct driver *target_driver(struct target *target, int n)
{
	if (!target->drivers[n])
		target->drivers[n] = driver_of(target, true);
	return target->drivers[n];
}

struct driver *target_admin(struct target *target)
{
	if (!target->admin)
		target->admin = driver_of(target, false);
	return target->admin;
}

/* ---- What was written ----------------------------------------------------------------------- */

static int64_t size_of_wal(const struct target *target)
{
	char path[288];
	struct stat status;
	snprintf(path, sizeof path, "%s-wal", target->path);
	return stat(path, &status) ? 0 : (int64_t)status.st_size;
}

int64_t target_written(struct target *target)
{
	if (on_sqlite(target))
		return size_of_wal(target);
	return driver_number(target_admin(target),
	                     "select pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::bigint");
}

void target_hold(struct target *target)
{
	if (!on_sqlite(target))
		return;
	if (driver_number(target_admin(target), "pragma wal_checkpoint(truncate)") != 0)
		die(target->path, "its WAL can't be emptied");
	driver_run(target_admin(target), "begin; select count(*) from sqlite_schema");
}

void target_release(struct target *target)
{
	if (on_sqlite(target))
		driver_run(target_admin(target), "commit");
}
