/* SPDX-License-Identifier: Apache-2.0 */
/* contract.c -- keep contract versions: written once, never changed. */
#include "store/postgres/postgres.h"

#include <string.h>

enum ibid_code pg_put_contract(struct store *base, const struct contract_row *contract,
                               struct ibid_err *err)
{
	struct arena arena = {0};
	const char *version = pg_int(&arena, contract->version);
	const char *put[] = {contract->kind, contract->name,
	                     version,        pg_hash(&arena, &contract->digest),
	                     contract->text, pg_time(&arena, contract->at_us)};
	const char *get[] = {contract->kind, contract->name, version};
	struct pg_call calls[] = {PG_CALL(CONTRACT_PUT, .values = put),
	                          PG_CALL(CONTRACT_GET, .values = get)};
	enum ibid_code code = arena.failed ? err_set(err, IBID_NOMEM, "out of memory")
	                                   : pg_pool_query(pg_store_of(base), calls, 2, err);
	if (code == IBID_OK) {
		struct sha256 kept = pg_cell_hash(calls[1].result, 0, 0);
		if (memcmp(&kept, &contract->digest, sizeof kept) != 0)
			code = err_set(err, IBID_CONTRACT,
			               "%s %s version %d is kept in the store with another text; give the "
			               "change a new version",
			               contract->kind, contract->name, contract->version);
	}
	pg_release(calls, 2);
	arena_release(&arena);
	return code;
}

enum ibid_code pg_get_contract(struct store *base, struct arena *arena, const char *kind,
                               const char *name, int version, struct contract_row *ret,
                               struct ibid_err *err)
{
	const char *values[] = {kind, name, pg_int(arena, version)};
	struct pg_call call = PG_CALL(CONTRACT_GET, .values = values);
	enum ibid_code code = arena->failed ? err_set(err, IBID_NOMEM, "out of memory")
	                                    : pg_pool_query(pg_store_of(base), &call, 1, err);
	if (code)
		goto out;
	if (!PQntuples(call.result)) {
		code = err_set(err, IBID_NOT_FOUND, "%s %s version %d is not kept in the store", kind, name,
		               version);
		goto out;
	}
	struct contract_row row = {
	    .kind = arena_strdup(arena, kind),
	    .name = arena_strdup(arena, name),
	    .version = (int)pg_cell_int(call.result, 0, 3),
	    .digest = pg_cell_hash(call.result, 0, 0),
	    .text = pg_cell_text(arena, call.result, 0, 1),
	    .at_us = pg_cell_int(call.result, 0, 2),
	};
	if (arena->failed)
		code = err_set(err, IBID_NOMEM, "out of memory");
	else
		*ret = row;
out:
	pg_release(&call, 1);
	return code;
}
