/* SPDX-License-Identifier: Apache-2.0 */
/* migration.h -- one numbered step of a store's schema, embedded from migrations/NNN_name.sql. */
#ifndef STORE_MIGRATION_H
#define STORE_MIGRATION_H

struct migration {
	int version;
	const char *name, *sql;
};

#endif
