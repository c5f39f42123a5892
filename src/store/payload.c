/* SPDX-License-Identifier: Apache-2.0 */
/* payload.c -- what is kept of a payload: one text per command. */
#include "store/payload.h"

#include "store/run.h"

#include <assert.h>

static const struct row_column columns[] = {
    ROW_COLUMN(TEXT, struct payload_row, tenant, tenant),
    ROW_COLUMN(UUID, struct payload_row, command_id, command_id),
    ROW_COLUMN(SIZED, struct payload_row, payload, text),
};
static_assert(offsetof(struct payload_row, size) ==
                  offsetof(struct payload_row, text) + sizeof(char *),
              "a sized text has its size behind it");
const struct row_shape payload_shape = ROW_SHAPE(struct payload_row, columns);

struct sql_in payload_statement(const struct payload_row *row)
{
	return row->text ? SQL_IN(payload_put, payload_shape, row)
	                 : SQL_IN(payload_delete, payload_shape, row);
}

enum ibid_code store_put_payload(struct tx *tx, const struct payload_row *row, struct ibid_err *err)
{
	return sql_put(tx, payload_statement(row), err);
}

enum ibid_code store_get_payload(struct store *store, struct arena *arena, const char *tenant,
                                 const struct uuid *command_id, struct payload_row *ret,
                                 struct ibid_err *err)
{
	struct lookup of = {.tenant = tenant, .id = *command_id};
	return sql_get(store, SQL_IN(payload_get, lookup_shape, &of), arena, &payload_shape, ret,
	               "no payload is kept of this command", err);
}
