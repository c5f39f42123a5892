/* SPDX-License-Identifier: Apache-2.0 */
/* contract.c -- contract versions in use, kept so that a retry is compared under its own version.
 */
#include "store/contract.h"

#include "store/run.h"

#include <string.h>

static const struct row_column columns[] = {
    ROW_COLUMN(TEXT, struct contract_row, kind, kind),
    ROW_COLUMN(TEXT, struct contract_row, name, name),
    ROW_COLUMN(INT, struct contract_row, version, version),
    ROW_COLUMN(HASH, struct contract_row, digest, digest),
    ROW_COLUMN(TEXT, struct contract_row, text, text),
    ROW_COLUMN(TIME, struct contract_row, at, at_us),
};
const struct row_shape contract_row_shape = ROW_SHAPE(struct contract_row, columns);

enum ibid_code store_get_contract(struct store *store, struct arena *arena, const char *kind,
                                  const char *name, int version, struct contract_row *ret,
                                  struct ibid_err *err)
{
	struct contract_row of = {.kind = kind, .name = name, .version = version};
	enum ibid_code code = sql_get(store, SQL_IN(contract_get, contract_row_shape, &of), arena,
	                              &contract_row_shape, ret, "", err);
	if (code == IBID_NOT_FOUND)
		err_set(err, code, "%s %s version %d is not kept in the store", kind, name, version);
	return code;
}

/* Looking first keeps the start of a process off SQLite's writer; looking last finds what the
 * constraint decided (I2). */
enum ibid_code store_put_contract(struct store *store, const struct contract_row *row,
                                  struct ibid_err *err)
{
	struct arena arena = {0};
	struct contract_row kept;
	int64_t changed;
	enum ibid_code code = store_get_contract(store, &arena, row->kind, row->name, row->version,
	                                         &kept, err);
	if (code == IBID_NOT_FOUND) {
		code = sql_change(store, SQL_IN(contract_put, contract_row_shape, row), &changed, err);
		if (!code)
			code = store_get_contract(store, &arena, row->kind, row->name, row->version, &kept,
			                          err);
	}
	if (!code && memcmp(&kept.digest, &row->digest, sizeof kept.digest) != 0)
		code = err_set(err, IBID_CONTRACT,
		               "%s %s version %d is kept in the store with another text; give the change a "
		               "new version",
		               row->kind, row->name, row->version);
	arena_release(&arena);
	return code;
}
