/* SPDX-License-Identifier: Apache-2.0 */
/* pg_fixture.h -- an own database per test, on the server that IBID_TEST_PG names (see
 * tools/with-postgres). Whatever goes wrong here ends the program. */
#ifndef TEST_STORE_PG_FIXTURE_H
#define TEST_STORE_PG_FIXTURE_H

#include "store/store.h"

#include <libpq-fe.h>

/* Exits with 77 (skipped) where there is no server. */
void fixture_start(void);
void fixture_stop(void); /* drops the last database */
int fixture_port(void);

/* A new, empty database in the place of the last one. */
void fixture_database(void);

/* A URL of that database; `query` is "" or "?name=value". Valid until the next call. */
const char *fixture_url(const char *user, int port, const char *query);
const char *fixture_own_url(void); /* the superuser's, on the server itself */

struct store *fixture_store(const char *url, unsigned connections, unsigned busy_ms);
/* The same on a new database, migrated. */
struct store *fixture_fresh(void);

/* Outside of any store, as superuser. */
PGconn *fixture_connect(const char *url); /* PQfinish */
/* While it is open, no other test that knows this gives transaction ids by the ten thousand, nor
 * counts on nobody doing so: the server's programs share them. */
PGconn *fixture_own_ids(void);      /* PQfinish */
bool fixture_exec(const char *sql); /* false when refused */
int64_t fixture_number(const char *sql);

#endif
