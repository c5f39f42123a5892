/* SPDX-License-Identifier: Apache-2.0 */
#include "store/sqlite/sql.h"

#include "sqlite_sql.h"
#include "store/store.h"

const struct lite_sql_text lite_sql[LITE_SQL_COUNT] = {
#define LITE_SQL_TEXT(name, ...) [LITE_##name] = {#name, sql_sqlite_##name},
    SQL_STATEMENTS(LITE_SQL_TEXT) LITE_STATEMENTS(LITE_SQL_TEXT)
#undef LITE_SQL_TEXT
};

const struct migration *const lite_migrations = sqlite_migrations;
const size_t lite_migration_count = sizeof sqlite_migrations / sizeof sqlite_migrations[0];
