/* SPDX-License-Identifier: Apache-2.0 */
/* statement.c -- the statements of the .sql files, and the names of all statements. */
#include "base/str.h"
#include "store/migration.h"
#include "store/postgres/postgres.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "postgres_sql.h"

const struct pg_statement pg_statements[STATEMENT_COUNT] = {
#define PG_STATEMENT_ROW(symbol, file, count)                                                      \
	[STATEMENT_##symbol] = {sql_pg_##file, NULL, STATEMENT_##symbol, count, "", #file},
    PG_STATEMENTS(PG_STATEMENT_ROW)
#undef PG_STATEMENT_ROW
#define SQL_STATEMENT_ROW(file, count, clock, demand)                                              \
	[STATEMENT_##file] = {sql_pg_##file, NULL, STATEMENT_##file, count, "", #file},
        SQL_STATEMENTS(SQL_STATEMENT_ROW)
#undef SQL_STATEMENT_ROW
};

/* ---- Names ---------------------------------------------------------------------------------- */

static uint64_t digest_bytes(const char *bytes, size_t size)
{
	struct sha256 hash = sha256(bytes, size);
	uint64_t digest = 0;
	for (size_t i = 0; i < 8; i++)
		digest = digest << 8 | hash.bytes[i];
	return digest;
}

/* The text's NUL keeps it apart from the types. */
static bool digest_of(const struct pg_statement *statement, uint64_t *ret)
{
	struct str text = STR_INIT(32 << 20);
	str_add(&text, statement->sql, strlen(statement->sql) + 1);
	for (int i = 0; statement->types && i < statement->param_count; i++)
		str_addf(&text, "%u,", statement->types[i]);
	bool good = !text.failed;
	if (good)
		*ret = digest_bytes(str_text(&text), text.size);
	str_release(&text);
	return good;
}

static void write_name(uint64_t digest, char ret[PG_NAME_SIZE])
{
	snprintf(ret, PG_NAME_SIZE, "ibid_%016" PRIx64, digest);
}

/* One digest, one id, for the whole process: two scripts with one text must not both prepare its
 * name on a connection. Nothing is ever taken out; a process sees few texts. */
static struct {
	pthread_once_t once;
	pthread_mutex_t lock;
	uint64_t own[STATEMENT_COUNT];
	char own_names[STATEMENT_COUNT][PG_NAME_SIZE];
	uint64_t *more; /* of the ids from STATEMENT_COUNT on */
	size_t count, room;
} names = {.once = PTHREAD_ONCE_INIT, .lock = PTHREAD_MUTEX_INITIALIZER};

static void name_own(void)
{
	for (size_t i = 0; i < STATEMENT_COUNT; i++) {
		names.own[i] = digest_bytes(pg_statements[i].sql, strlen(pg_statements[i].sql) + 1);
		write_name(names.own[i], names.own_names[i]);
	}
}

const char *pg_statement_name(const struct pg_statement *statement)
{
	if (*statement->name)
		return statement->name;
	pthread_once(&names.once, name_own);
	return names.own_names[statement->id];
}

static size_t find_digest(const uint64_t *digests, size_t count, uint64_t digest)
{
	size_t i = 0;
	while (i < count && digests[i] != digest)
		i++;
	return i;
}

static bool add_digest(uint64_t digest)
{
	if (names.count == names.room) {
		size_t room = names.room ? names.room * 2 : 64;
		uint64_t *more = realloc(names.more, room * sizeof *more);
		if (!more)
			return false;
		names.more = more;
		names.room = room;
	}
	names.more[names.count++] = digest;
	return true;
}

bool pg_statement_register(struct pg_statement *statement)
{
	uint64_t digest;
	if (!digest_of(statement, &digest))
		return false;
	write_name(digest, statement->name);
	pthread_once(&names.once, name_own);
	size_t id = find_digest(names.own, STATEMENT_COUNT, digest);
	if (id == STATEMENT_COUNT) {
		pthread_mutex_lock(&names.lock);
		size_t at = find_digest(names.more, names.count, digest);
		bool good = at < names.count || add_digest(digest);
		pthread_mutex_unlock(&names.lock);
		if (!good)
			return false;
		id += at;
	}
	statement->id = (unsigned)id;
	return true;
}
