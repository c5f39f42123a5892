/* SPDX-License-Identifier: Apache-2.0 */
/* value.c -- values as PostgreSQL writes and reads them in text. */
#include "base/instant.h"
#include "store/postgres/postgres.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

const char *pg_int(struct arena *arena, int64_t value)
{
	return arena_printf(arena, "%" PRId64, value);
}

const char *pg_uuid(struct arena *arena, const struct uuid *uuid)
{
	char text[UUID_TEXT_SIZE];
	uuid_write(*uuid, text);
	return arena_strdup(arena, text);
}

const char *pg_hash(struct arena *arena, const struct sha256 *hash)
{
	char text[SHA256_TEXT_SIZE];
	sha256_write(hash, text);
	return arena_printf(arena, "\\x%s", text);
}

const char *pg_time(struct arena *arena, int64_t us)
{
	char text[INSTANT_TEXT_SIZE];
	instant_write(us, text);
	return arena_strdup(arena, text);
}

const char *pg_time_or_null(struct arena *arena, int64_t us)
{
	return us ? pg_time(arena, us) : NULL;
}

const char *pg_trace(struct arena *arena, const char *traceparent, const char *tracestate)
{
	if (!traceparent)
		return "";
	return tracestate ? arena_printf(arena, "%s %s", traceparent, tracestate) : traceparent;
}

const char *pg_cell(const PGresult *result, int row, int column)
{
	return PQgetisnull(result, row, column) ? NULL : PQgetvalue(result, row, column);
}

const char *pg_cell_text(struct arena *arena, const PGresult *result, int row, int column)
{
	return arena_strdup(arena, pg_cell(result, row, column));
}

int64_t pg_cell_int(const PGresult *result, int row, int column)
{
	return strtoll(PQgetvalue(result, row, column), NULL, 10);
}

bool pg_cell_bool(const PGresult *result, int row, int column)
{
	return PQgetvalue(result, row, column)[0] == 't';
}

struct uuid pg_cell_uuid(const PGresult *result, int row, int column)
{
	struct uuid uuid = {0};
	(void)uuid_read(PQgetvalue(result, row, column), &uuid);
	return uuid;
}

struct sha256 pg_cell_hash(const PGresult *result, int row, int column)
{
	struct sha256 hash = {0};
	(void)!sha256_read(PQgetvalue(result, row, column), &hash);
	return hash;
}
