/* SPDX-License-Identifier: Apache-2.0 */
/* run.h -- one run of one of our statements: bind in order, step, read in order.
 *
 *     struct lite_run run;
 *     code = lite_start(conn, LITE_contract_get, &run, err);
 *     lite_bind_text(&run, kind);
 *     if (lite_row(&run, &code, err))
 *         row.text = lite_read_text(&run, arena);
 *     lite_end(&run);
 *
 * A failed bind is reported by the next step. After a failure the calls that follow do nothing. */
#ifndef STORE_SQLITE_RUN_H
#define STORE_SQLITE_RUN_H

#include "base/arena.h"
#include "base/hash.h"
#include "base/id.h"
#include "store/sqlite/conn.h"

struct lite_run {
	struct lite_conn *conn;
	enum lite_sql sql;
	sqlite3_stmt *stmt; /* NULL after a failed start */
	int rc;             /* of the last call: extended */
	int bound, read;
};

/* The statement, reset. Ended by lite_end, also after a failure. */
enum ibid_code lite_start(struct lite_conn *conn, enum lite_sql sql, struct lite_run *run,
                          struct ibid_err *err);

/* Text is not copied: it must live until lite_end. NULL is SQL NULL. */
void lite_bind_text(struct lite_run *run, const char *text);
void lite_bind_bytes(struct lite_run *run, const char *text, size_t size);
void lite_bind_int(struct lite_run *run, int64_t number);
void lite_bind_int_or_null(struct lite_run *run, int64_t number);           /* 0 is SQL NULL */
void lite_bind_uuid(struct lite_run *run, const struct uuid *uuid);         /* NULL is SQL NULL */
void lite_bind_uuid_or_null(struct lite_run *run, const struct uuid *uuid); /* all zero, too */
void lite_bind_hash(struct lite_run *run, const struct sha256 *hash);

/* Next row? False at the end and on failure, with `*code` set. Does nothing when `*code` is set. */
bool lite_row(struct lite_run *run, enum ibid_code *code, struct ibid_err *err);

/* Run a statement that returns no rows. On failure run->rc says which constraint it was. */
enum ibid_code lite_finish(struct lite_run *run, struct ibid_err *err);

/* Columns, from the first one on. */
const char *lite_read_text(struct lite_run *run, struct arena *arena); /* NULL for SQL NULL */
const char *lite_read_bytes(struct lite_run *run, struct arena *arena, size_t *ret_size);
int64_t lite_read_int(struct lite_run *run);
int lite_read_small(struct lite_run *run);
struct uuid lite_read_uuid(struct lite_run *run); /* all zero for SQL NULL */
struct sha256 lite_read_hash(struct lite_run *run);

void lite_end(struct lite_run *run);

/* Both for a statement that returns no rows: finish it, unless starting it failed with `code`, and
 * end it. */
enum ibid_code lite_conclude(struct lite_run *run, enum ibid_code code, struct ibid_err *err);

/* A statement without parameters: its first column, 0 without a row. */
enum ibid_code lite_number(struct lite_conn *conn, enum lite_sql sql, int64_t *ret,
                           struct ibid_err *err);
/* A statement without parameters and without a result that matters. */
enum ibid_code lite_do(struct lite_conn *conn, enum lite_sql sql, struct ibid_err *err);

#endif
