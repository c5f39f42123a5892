/* SPDX-License-Identifier: Apache-2.0 */
/* ordinary.c -- ordinary statements on PostgreSQL: values as its texts, rows that are read by the
 * names of their columns. */
#include "store/postgres/postgres.h"
#include "store/run.h"

#include <stdlib.h>
#include <string.h>

/* ---- Values --------------------------------------------------------------------------------- */

static const char *text_of(struct arena *arena, const struct sql_value *value)
{
	if (value->null)
		return NULL;
	switch (value->type) {
	case COLUMN_LONG: return pg_int(arena, value->number);
	case COLUMN_BOOL: return value->number ? "true" : "false";
	case COLUMN_TIME: return pg_time(arena, value->number);
	case COLUMN_TIME_OR_NONE: return pg_time_or_null(arena, value->number);
	case COLUMN_UUID: return pg_uuid(arena, &value->uuid);
	case COLUMN_HASH: return pg_hash(arena, &value->hash);
	case COLUMN_SIZED: return arena_strndup(arena, value->text, value->size);
	default: return arena_strdup(arena, value->text);
	}
}

static const char **texts_of(struct arena *arena, const struct sql_in *in)
{
	struct sql_value values[SQL_PARAMS_MAX];
	size_t count = sql_statements[in->id].count;
	const char **texts = arena_array(arena, count ? count : 1, sizeof *texts);
	if (!texts || !sql_values(in, arena, values))
		return NULL;
	for (size_t i = 0; i < count; i++)
		texts[i] = text_of(arena, &values[i]);
	return arena->failed ? NULL : texts;
}

struct pg_call pg_sql_call(struct arena *arena, const struct sql_in *in)
{
	return (struct pg_call){.statement = &pg_statements[in->id], .values = texts_of(arena, in)};
}

/* ---- Results -------------------------------------------------------------------------------- */

static const char *column_name(const struct row_source *source, int column)
{
	return PQfname(source->result, column);
}

static void read_cell(const struct row_source *source, int column, enum column_type type,
                      struct sql_value *ret)
{
	const PGresult *result = source->result;
	switch (type) {
	case COLUMN_LONG:
	case COLUMN_TIME: ret->number = pg_cell_int(result, source->row, column); break;
	case COLUMN_BOOL: ret->number = pg_cell_bool(result, source->row, column); break;
	case COLUMN_UUID: ret->uuid = pg_cell_uuid(result, source->row, column); break;
	case COLUMN_HASH: ret->hash = pg_cell_hash(result, source->row, column); break;
	default:
		ret->text = pg_cell(result, source->row, column);
		ret->size = (size_t)PQgetlength(result, source->row, column);
		break;
	}
}

static struct row_source source_of(PGresult *result, int row)
{
	return (struct row_source){
	    .result = result,
	    .row = row,
	    .columns = PQnfields(result),
	    .name = column_name,
	    .cell = read_cell,
	};
}

void pg_read_row(PGresult *result, int row, const struct row_shape *shape, struct arena *arena,
                 void *ret)
{
	struct row_source source = source_of(result, row);
	row_read(shape, &source, arena, ret);
}

void pg_sql_rows(PGresult *result, struct row_list *ret)
{
	for (int row = 0; row < PQntuples(result); row++) {
		struct row_source source = source_of(result, row);
		row_list_read(ret, &source);
	}
}

enum ibid_code pg_read_command(struct arena *arena, PGresult *result, int row,
                               struct command_row *ret, struct ibid_err *err)
{
	*ret = (struct command_row){.linked = false};
	pg_read_row(result, row, &command_shape, arena, ret);
	return row_check_words(&command_shape, ret, "a command", err);
}

/* ---- Verbs ---------------------------------------------------------------------------------- */

enum ibid_code pg_put(struct tx *base, const struct sql_in *in, struct ibid_err *err)
{
	struct pg_tx *tx = pg_tx_of(base);
	return pg_tx_queue(tx, pg_sql_call(&tx->arena, in), err);
}

enum ibid_code pg_list(struct store *base, struct pg_call call, struct row_list *ret,
                       struct ibid_err *err)
{
	enum ibid_code code = ret->arena->failed ? err_set(err, IBID_NOMEM, "out of memory")
	                                         : pg_pool_query(pg_store_of(base), &call, 1, err);
	if (!code)
		pg_sql_rows(call.result, ret);
	pg_release(&call, 1);
	return !code && ret->arena->failed ? err_set(err, IBID_NOMEM, "out of memory") : code;
}

/* A statement that is one trip; its result is the caller's to release. */
static enum ibid_code run(struct store *base, const struct sql_in *in, struct arena *arena,
                          struct pg_call *ret, struct ibid_err *err)
{
	*ret = pg_sql_call(arena, in);
	if (!ret->values)
		return err_set(err, IBID_NOMEM, "out of memory");
	return pg_pool_query(pg_store_of(base), ret, 1, err);
}

enum ibid_code pg_change(struct store *base, const struct sql_in *in, int64_t *ret_changed,
                         struct ibid_err *err)
{
	struct arena arena = {0};
	struct pg_call call = {0};
	enum ibid_code code = run(base, in, &arena, &call, err);
	if (!code)
		*ret_changed = strtoll(PQcmdTuples(call.result), NULL, 10);
	pg_release(&call, 1);
	arena_release(&arena);
	return code;
}

enum ibid_code pg_query(struct store *base, const struct sql_in *in, struct row_list *ret,
                        struct ibid_err *err)
{
	struct arena arena = {0};
	struct pg_call call = {0};
	enum ibid_code code = run(base, in, &arena, &call, err);
	if (!code)
		pg_sql_rows(call.result, ret);
	pg_release(&call, 1);
	arena_release(&arena);
	return code;
}
