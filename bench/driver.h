/* SPDX-License-Identifier: Apache-2.0 */
/* driver.h -- a connection as an application has one that knows nothing of libibid: a plain driver
 * and prepared statements. */
#ifndef BENCH_DRIVER_H
#define BENCH_DRIVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* X(name, how many parameters, sqlite, postgres): NULL where the store has no such thing. */
#define STATEMENTS(X)                                                                              \
	X(BEGIN, 0, "begin immediate", "begin")                                                        \
	X(COMMIT, 0, "commit", "commit")                                                               \
	X(PAYMENT, 6, sql_bench_payment, sql_bench_payment)                                            \
	X(EVENT, 5, sql_bench_event, sql_bench_event)                                                  \
	X(AUDIT, 5, sql_bench_audit, sql_bench_audit)                                                  \
	X(DEPOSIT, 3, sql_bench_deposit, sql_bench_deposit)                                            \
	X(API_BEGIN, 6, NULL, sql_bench_api_begin)                                                     \
	X(API_EMIT, 2, NULL, sql_bench_api_emit)                                                       \
	X(API_COMPLETE, 2, NULL, sql_bench_api_complete)                                               \
	X(API_WHOLE, 11, NULL, sql_bench_api_whole)

enum statement {
#define STATEMENT_ENUM(name, count, sqlite, postgres) STATEMENT_##name,
	STATEMENTS(STATEMENT_ENUM)
#undef STATEMENT_ENUM
	    STATEMENT_COUNT
};

struct driver;

/* `prepared`: the statements above are. */
struct driver *driver_open_sqlite(const char *path, bool prepared);
struct driver *driver_open_postgres(const char *url, bool prepared);
void driver_close(struct driver *driver); /* takes NULL */

bool driver_is_sqlite(const struct driver *driver);

/* One statement, in one round trip. `ret`, where it is given, gets the first two columns of the
 * row. */
enum { ANSWER_SIZE = 64 };
struct answer {
	char columns[2][ANSWER_SIZE];
};
void driver_step(struct driver *driver, enum statement statement, const char *const *values,
                 struct answer *ret);

/* Several in one round trip, PostgreSQL only: the answer is that of the last. */
struct call {
	enum statement statement;
	const char *const *values;
};
void driver_pipeline(struct driver *driver, const struct call *calls, size_t count,
                     struct answer *ret);

/* SQL text without parameters: run all of it; the first column of the first row as a number. */
void driver_run(struct driver *driver, const char *sql);
int64_t driver_number(struct driver *driver, const char *sql);

/* Statement text with parameters, not kept. `each` is told the first column of every row. */
typedef void row_fn(void *user, const char *text);
void driver_query(struct driver *driver, const char *sql, const int64_t *values, int count,
                  row_fn *each, void *user);

#endif
