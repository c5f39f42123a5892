/* SPDX-License-Identifier: Apache-2.0 */
/* fill.c -- rows made inside the database, by INSERT ... SELECT in batches, into the real tables
 * with all their indexes and triggers.
 *
 * Nothing of it has to survive a crash, so meanwhile the server logs no page images and the file
 * has no journal; before anything is measured, both are as they always are. */
#include "fill.h"

#include "base/env.h"
#include "bench_sql.h"

#include <inttypes.h>
#include <stdio.h>

enum { BATCH = 500000 };

static void run_all(struct driver *driver, const char *const *statements)
{
	for (; *statements; statements++)
		driver_run(driver, *statements);
}

/* ---- PostgreSQL ----------------------------------------------------------------------------- */

static void postgres_before(struct driver *driver)
{
	static const char *const statements[] = {
	    "alter system set max_wal_size = '16GB'",
	    "alter system set checkpoint_timeout = '1h'",
	    "alter system set full_page_writes = off",
	    "select pg_reload_conf()",
	    "set synchronous_commit = off",
	    "set work_mem = '256MB'",
	    "select ibid_internal.make_partitions(4, now() - interval '29 days')",
	    NULL,
	};
	run_all(driver, statements);
}

static void postgres_after(struct driver *driver)
{
	static const char *const statements[] = {
	    "alter system reset max_wal_size",
	    "alter system reset checkpoint_timeout",
	    "alter system reset full_page_writes",
	    "select pg_reload_conf()",
	    "reset synchronous_commit",
	    "reset work_mem",
	    "vacuum (analyze) ibid.command",
	    "vacuum (analyze) ibid.aggregate",
	    "vacuum (analyze) ibid.event",
	    "vacuum (analyze) ibid.audit",
	    "checkpoint",
	    NULL,
	};
	run_all(driver, statements);
}

static void postgres_batch(struct driver *driver, int64_t first, int64_t last, int64_t of)
{
	const int64_t values[] = {first, last, of};
	driver_query(driver, sql_bench_postgres_fill, values, 3, NULL, NULL);
}

/* ---- SQLite --------------------------------------------------------------------------------- */

static void sqlite_before(struct driver *driver)
{
	static const char *const statements[] = {
	    "pragma journal_mode = off",
	    "pragma synchronous = off",
	    "pragma cache_size = -2000000", /* 2 GB */
	    "pragma temp_store = memory",
	    "create temp table batch (key text, id text, at_us integer)",
	    NULL,
	};
	run_all(driver, statements);
}

static void sqlite_after(struct driver *driver)
{
	static const char *const statements[] = {
	    "pragma journal_mode = wal", "pragma synchronous = full",
	    "pragma cache_size = -2000", /* as it was: 2 MB */
	    "drop table temp.batch",     "pragma temp_store = default",
	    "pragma shrink_memory",      NULL,
	};
	run_all(driver, statements);
}

static void sqlite_batch(struct driver *driver, struct env *env, int64_t first, int64_t last,
                         int64_t of)
{
	static const char *const statements[] = {sql_bench_sqlite_fill_commands,
	                                         sql_bench_sqlite_fill_aggregates,
	                                         sql_bench_sqlite_fill_events,
	                                         sql_bench_sqlite_fill_audit,
	                                         "commit",
	                                         NULL};
	const int64_t values[] = {first, last, of, env_wall_us(env)};
	driver_run(driver, "begin; delete from temp.batch");
	driver_query(driver, sql_bench_sqlite_batch, values, 4, NULL, NULL);
	run_all(driver, statements);
}

/* ---- Both ----------------------------------------------------------------------------------- */

static void put_batch(struct target *target, int64_t first, int64_t last, int64_t of)
{
	if (on_sqlite(target))
		sqlite_batch(target_admin(target), target->bench->env, first, last, of);
	else
		postgres_batch(target_admin(target), first, last, of);
}

void fill_ledger(struct target *target, int64_t rows)
{
	const struct bench *bench = target->bench;
	double began = bench_now(bench);
	target_close(target);
	(on_sqlite(target) ? sqlite_before : postgres_before)(target_admin(target));
	for (int64_t first = 1; first <= rows; first += BATCH) {
		int64_t last = first + BATCH - 1 < rows ? first + BATCH - 1 : rows;
		put_batch(target, first, last, rows);
		progress("ledger: %s, %" PRId64 " of %" PRId64 " rows after %.0f s", target->store, last,
		         rows, bench_now(bench) - began);
	}
	(on_sqlite(target) ? sqlite_after : postgres_after)(target_admin(target));
}

int64_t fill_size(struct target *target)
{
	return driver_number(target_admin(target),
	                     on_sqlite(target)
	                         ? "select page_count * page_size from pragma_page_count, "
	                           "pragma_page_size"
	                         : "select pg_database_size(current_database())");
}

struct keys {
	char (*texts)[KEY_SIZE];
	int64_t count;
};

static void keep_key(void *user, const char *text)
{
	struct keys *keys = user;
	snprintf(keys->texts[keys->count++], KEY_SIZE, "%s", text);
}

/* Where the random text is behind the last key there is none: the list is repeated. */
void fill_keys(struct target *target, int64_t count, char (*ret)[KEY_SIZE])
{
	struct keys keys = {.texts = ret};
	driver_query(target_admin(target),
	             on_sqlite(target) ? sql_bench_sqlite_keys : sql_bench_postgres_keys, &count, 1,
	             keep_key, &keys);
	if (!keys.count)
		die("ledger", "it has no keys");
	for (int64_t i = keys.count; i < count; i++)
		snprintf(ret[i], KEY_SIZE, "%s", ret[i - keys.count]);
}
