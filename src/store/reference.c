/* SPDX-License-Identifier: Apache-2.0 */
/* reference.c -- look at what other systems call our resources. */
#include "store/reference.h"

#include "store/run.h"

static const struct row_column columns[] = {
    ROW_COLUMN(TEXT, struct reference_row, tenant, tenant),
    ROW_COLUMN(TEXT, struct reference_row, source_system, source_system),
    ROW_COLUMN(TEXT, struct reference_row, external_id, external_id),
    ROW_COLUMN(TEXT, struct reference_row, resource_type, resource_type),
    ROW_COLUMN(TEXT, struct reference_row, resource_id, resource_id),
    ROW_COLUMN(UUID, struct reference_row, command_id, command_id),
    ROW_COLUMN(TIME, struct reference_row, at, at_us),
};
const struct row_shape reference_shape = ROW_SHAPE(struct reference_row, columns);

static const struct row_column filter_columns[] = {
    ROW_COLUMN(TEXT, struct reference_filter, tenant, tenant),
    ROW_COLUMN(TEXT, struct reference_filter, source_system, source_system),
    ROW_COLUMN(TEXT, struct reference_filter, external_id, external_id),
    ROW_COLUMN(TEXT, struct reference_filter, resource_type, resource_type),
    ROW_COLUMN(TEXT, struct reference_filter, resource_id, resource_id),
};
static const struct row_shape filter_shape = ROW_SHAPE(struct reference_filter, filter_columns);

struct sql_in reference_statement(const struct reference_filter *filter)
{
	return filter->external_id ? SQL_IN(reference_by_external, filter_shape, filter)
	                           : SQL_IN(reference_by_resource, filter_shape, filter);
}

enum ibid_code store_list_references(struct store *store, struct arena *arena,
                                     const struct reference_filter *filter,
                                     struct reference_row **ret, size_t *ret_count,
                                     struct ibid_err *err)
{
	return sql_list(store, reference_statement(filter), arena, &reference_shape, ret, ret_count,
	                err);
}
