/* SPDX-License-Identifier: Apache-2.0 */
/* audit.c -- look at business evidence. */
#include "store/audit.h"

#include "store/run.h"

#define AUDIT(kind, column, member, ...)                                                           \
	ROW_COLUMN(kind, struct audit_row, column, member, __VA_ARGS__)
static const struct row_column columns[] = {
    AUDIT(UUID, id, id),
    AUDIT(UUID, command_id, command_id, .json = ""),
    AUDIT(TEXT, tenant, tenant, .json = ""),
    AUDIT(TEXT, operation, operation, .json = ""),
    AUDIT(TEXT, fact, fact),
    AUDIT(TEXT, outcome, outcome),
    AUDIT(INT, contract_version, contract_version),
    AUDIT(TEXT, client, client),
    AUDIT(TEXT, actor, actor),
    AUDIT(TEXT, resource_type, resource_type),
    AUDIT(TEXT, resource_id, resource_id),
    AUDIT(TEXT, correlation_id, correlation_id),
    AUDIT(TEXT, causation_id, causation_id),
    AUDIT(TEXT, traceparent, traceparent),
    AUDIT(TEXT, tracestate, tracestate),
    AUDIT(HASH, fingerprint, fingerprint),
    AUDIT(TIME, at, at_us),
};
const struct row_shape audit_shape = ROW_SHAPE(struct audit_row, columns);

enum ibid_code store_put_audit(struct tx *tx, const struct audit_row *row, struct ibid_err *err)
{
	return sql_put(tx, SQL_IN(audit_put, audit_shape, row), err);
}

enum ibid_code store_list_audit(struct store *store, struct arena *arena, const char *tenant,
                                const struct uuid *command_id, size_t limit, struct audit_row **ret,
                                size_t *ret_count, struct ibid_err *err)
{
	struct lookup of = {.tenant = tenant, .limit = limit};
	struct sql_in in = SQL_IN(audit_list, lookup_shape, &of);
	if (command_id) {
		of.id = *command_id;
		in = SQL_IN(audit_of_command, lookup_shape, &of);
	}
	return sql_list(store, in, arena, &audit_shape, ret, ret_count, err);
}
