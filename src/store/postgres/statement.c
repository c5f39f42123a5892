/* SPDX-License-Identifier: Apache-2.0 */
/* statement.c -- the statements of the .sql files, by name. */
#include "store/migration.h"
#include "store/postgres/postgres.h"

#include "postgres_sql.h"

const struct pg_statement pg_statements[STATEMENT_COUNT] = {
#define PG_STATEMENT_ROW(symbol, file, count)                                                      \
	[STATEMENT_##symbol] = {sql_pg_##file, NULL, STATEMENT_##symbol, count},
    PG_STATEMENTS(PG_STATEMENT_ROW)
#undef PG_STATEMENT_ROW
};

const char *const pg_express_finish = sql_pg_express_finish;

/* Ids are handed out for the whole process, not per store, so that a name means one text for as
 * long as the process lives, whatever connection it is used on. */
unsigned pg_statement_ids(size_t count)
{
	static unsigned next = STATEMENT_COUNT;
	return __atomic_fetch_add(&next, (unsigned)count, __ATOMIC_RELAXED);
}
