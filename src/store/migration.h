/* SPDX-License-Identifier: Apache-2.0 */
/* migration.h -- a numbered step of a store's schema, embedded from migrations/NNN_name.sql. A step
 * may be several files: rows with one version, in the order of their names. */
#ifndef STORE_MIGRATION_H
#define STORE_MIGRATION_H

struct migration {
	int version;
	const char *name, *sql;
};

#endif
