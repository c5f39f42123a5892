/* SPDX-License-Identifier: Apache-2.0 */
/* contract.c -- contract versions in use, kept so that a retry is compared under its own version.
 */
#include "store/sqlite/lite.h"

#include <string.h>

static enum ibid_code find(struct lite_conn *conn, struct arena *arena, const char *kind,
                           const char *name, int version, struct contract_row *ret,
                           struct ibid_err *err)
{
	struct lite_run run;
	bool found = false;
	enum ibid_code code = lite_start(conn, LITE_contract_get, &run, err);
	lite_bind_text(&run, kind);
	lite_bind_text(&run, name);
	lite_bind_int(&run, version);
	if (lite_row(&run, &code, err)) {
		found = true;
		ret->kind = lite_read_text(&run, arena);
		ret->name = lite_read_text(&run, arena);
		ret->version = lite_read_small(&run);
		ret->digest = lite_read_hash(&run);
		ret->text = lite_read_text(&run, arena);
		ret->at_us = lite_read_int(&run);
	}
	lite_end(&run);
	if (!code && arena->failed)
		code = err_set(err, IBID_NOMEM, "out of memory");
	if (!code && !found)
		code = err_set(err, IBID_NOT_FOUND, "%s %s version %d is not in the store", kind, name,
		               version);
	return code;
}

enum ibid_code lite_get_contract(struct store *base, struct arena *arena, const char *kind,
                                 const char *name, int version, struct contract_row *ret,
                                 struct ibid_err *err)
{
	struct lite_store *store = lite_of(base);
	struct lite_conn *conn;
	struct contract_row row = {0};
	enum ibid_code code = lite_reader_take(store, &conn, err);
	if (code)
		return code;
	code = find(conn, arena, kind, name, version, &row, err);
	lite_reader_give(store, conn);
	if (!code)
		*ret = row;
	return code;
}

static enum ibid_code insert(struct lite_store *store, const struct contract_row *row,
                             struct ibid_err *err)
{
	struct lite_conn *conn;
	struct lite_run run;
	enum ibid_code code = lite_write_begin(store, lite_wait_us(store), &conn, err);
	if (code)
		return code;
	code = lite_start(conn, LITE_contract_put, &run, err);
	lite_bind_text(&run, row->kind);
	lite_bind_text(&run, row->name);
	lite_bind_int(&run, row->version);
	lite_bind_hash(&run, &row->digest);
	lite_bind_text(&run, row->text);
	lite_bind_int(&run, row->at_us);
	return lite_write_end(store, lite_conclude(&run, code, err), err);
}

/* Looking first keeps the start of a process off the writer; looking last finds what the constraint
 * decided (I2). */
enum ibid_code lite_put_contract(struct store *base, const struct contract_row *row,
                                 struct ibid_err *err)
{
	struct arena arena = {0};
	struct contract_row kept;
	enum ibid_code code = lite_get_contract(base, &arena, row->kind, row->name, row->version, &kept,
	                                        err);
	if (code == IBID_NOT_FOUND) {
		code = insert(lite_of(base), row, err);
		if (!code)
			code = lite_get_contract(base, &arena, row->kind, row->name, row->version, &kept, err);
	}
	if (!code && memcmp(&kept.digest, &row->digest, sizeof kept.digest) != 0)
		code = err_set(err, IBID_CONTRACT,
		               "%s %s version %d is in the store with another text; give it a new version",
		               row->kind, row->name, row->version);
	arena_release(&arena);
	return code;
}
