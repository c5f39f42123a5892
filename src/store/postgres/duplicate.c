/* SPDX-License-Identifier: Apache-2.0 */
/* duplicate.c -- write down in one statement which commands came again: the rows travel as JSON. */
#include "base/str.h"
#include "store/postgres/postgres.h"

#include <string.h>

enum { BATCH_BYTES_MAX = 256 << 20 };

static void add_text(struct str *out, const char *name, const char *value)
{
	str_addf(out, ",\"%s\":", name);
	str_add_json(out, value, strlen(value));
}

static void add_command(struct str *out, const char *tenant, const struct uuid *id)
{
	char text[UUID_TEXT_SIZE];
	uuid_write(*id, text);
	str_adds(out, out->size > 1 ? ",{" : "{");
	str_addf(out, "\"command_id\":\"%s\"", text);
	add_text(out, "tenant", tenant);
}

static const char *counts_text(struct arena *arena, const struct duplicate_row *rows, size_t count)
{
	struct str out = STR_INIT(BATCH_BYTES_MAX);
	str_addc(&out, '[');
	for (size_t i = 0; i < count; i++) {
		add_command(&out, rows[i].tenant, &rows[i].command_id);
		add_text(&out, "first_at", pg_time(arena, rows[i].first_us));
		add_text(&out, "last_at", pg_time(arena, rows[i].last_us));
		str_addf(&out, ",\"count\":%lld,\"unlisted\":%lld}", (long long)rows[i].count,
		         (long long)rows[i].unlisted);
	}
	str_addc(&out, ']');
	arena->failed |= out.failed;
	const char *text = arena_strndup(arena, str_text(&out), out.size);
	str_release(&out);
	return text;
}

static const char *seen_text(struct arena *arena, const struct duplicate_seen_row *rows,
                             size_t count)
{
	struct str out = STR_INIT(BATCH_BYTES_MAX);
	char hash[SHA256_TEXT_SIZE];
	str_addc(&out, '[');
	for (size_t i = 0; i < count; i++) {
		sha256_write(&rows[i].fingerprint, hash);
		add_command(&out, rows[i].tenant, &rows[i].command_id);
		add_text(&out, "at", pg_time(arena, rows[i].at_us));
		add_text(&out, "client", rows[i].client);
		add_text(&out, "actor", rows[i].actor);
		add_text(&out, "decision", rows[i].decision);
		add_text(&out, "fingerprint", hash);
		str_addc(&out, '}');
	}
	str_addc(&out, ']');
	arena->failed |= out.failed;
	const char *text = arena_strndup(arena, str_text(&out), out.size);
	str_release(&out);
	return text;
}

enum ibid_code pg_put_duplicates(struct store *base, const struct duplicate_row *rows, size_t count,
                                 const struct duplicate_seen_row *seen, size_t seen_count,
                                 struct ibid_err *err)
{
	struct arena arena = {0};
	const char *values[] = {counts_text(&arena, rows, count), seen_text(&arena, seen, seen_count)};
	struct pg_call call = PG_CALL(DUPLICATE_PUT, .values = values);
	enum ibid_code code = arena.failed ? err_set(err, IBID_NOMEM, "out of memory")
	                                   : pg_pool_query(pg_store_of(base), &call, 1, err);
	pg_release(&call, 1);
	arena_release(&arena);
	return code;
}
