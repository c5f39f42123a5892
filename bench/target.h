/* SPDX-License-Identifier: Apache-2.0 */
/* target.h -- a store of its own to measure on: a fresh SQLite file or PostgreSQL database, with
 * ibid's schema, the bench's tables and its contracts. */
#ifndef BENCH_TARGET_H
#define BENCH_TARGET_H

#include "bench.h"
#include "driver.h"

#include <ibid.h>

struct target {
	const struct bench *bench;
	const char *store; /* "sqlite", "postgres" */
	char url[512];
	char dir[256], path[272];            /* SQLite */
	char database[64];                   /* PostgreSQL */
	struct ibid *ibid;                   /* NULL: closed */
	struct driver *drivers[CALLERS_MAX]; /* opened when first needed */
	struct driver *admin;                /* likewise; sees what the others do */
};

bool on_sqlite(const struct target *target);

/* `name` sets databases of one run apart. */
struct target *target_new(const struct bench *bench, const char *store, const char *name);
/* Closes what is open and removes the store. */
void target_free(struct target *target);

/* The handle that ibid_submit uses, for so many callers at once: on PostgreSQL each of them has a
 * connection, and so has the thread that counts duplicates. */
void target_open(struct target *target, int callers);
void target_close(struct target *target);

/* The connection of the n-th caller that works without libibid. Not by two threads at once. */
struct driver *target_driver(struct target *target, int n);
struct driver *target_admin(struct target *target);

/* ---- What was written ----------------------------------------------------------------------- */

/* Bytes of write-ahead log since some moment: only differences mean something. SQLite: the size of
 * the WAL, which means something only between hold and release. */
int64_t target_written(struct target *target);

/* Until the release, nothing moves the WAL of an SQLite file back to its beginning: it is empty
 * now, and grows by what is written. */
void target_hold(struct target *target);
void target_release(struct target *target);

#endif
