/* SPDX-License-Identifier: Apache-2.0 */
/* pg_server.h -- the PostgreSQL that was started for the tests, and whose databases they make. Ends
 * the program where something can't be done. */
#ifndef TEST_PG_SERVER_H
#define TEST_PG_SERVER_H

#include <stddef.h>

/* A statement, in the database that is there for all programs. */
void pg_server_do(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* The server's URL, with another database. */
void pg_server_url(const char *database, char *ret, size_t size);

/* The name of a database that was migrated, for those of tests to be copied from: to migrate each
 * would take most of the time of most tests. It is this program's own, and dropped when that ends.
 */
const char *pg_server_template(void);

#endif
