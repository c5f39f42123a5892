/* SPDX-License-Identifier: Apache-2.0 */
/* sql.h -- the statements and migrations of this backend, embedded from sql/ and migrations/.
 */
#ifndef STORE_SQLITE_SQL_H
#define STORE_SQLITE_SQL_H

#include "store/migration.h"
#include "store/sql_ids.h"

#include <stddef.h>

enum lite_sql {
#define LITE_SQL_ENUM(name, ...) LITE_##name,
	SQL_STATEMENTS(LITE_SQL_ENUM) /* first: the ids are those of enum sql_id */
	LITE_STATEMENTS(LITE_SQL_ENUM)
#undef LITE_SQL_ENUM
	    LITE_SQL_COUNT
};

struct lite_sql_text {
	const char *name, *sql;
};

extern const struct lite_sql_text lite_sql[LITE_SQL_COUNT];

extern const struct migration *const lite_migrations; /* in order */
extern const size_t lite_migration_count;

#endif
