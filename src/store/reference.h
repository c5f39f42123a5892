/* SPDX-License-Identifier: Apache-2.0 */
/* reference.h -- what other systems call our resources. */
#ifndef STORE_REFERENCE_H
#define STORE_REFERENCE_H

#include "base/err.h"
#include "store/row.h"

struct store;
struct tx;
struct sql_in;

/* What another system calls a resource: (tenant, source system, external id) and the one resource
 * it stands for. A resource has one id in each system that knows it. */
struct reference_row {
	const char *tenant, *source_system, *external_id, *resource_type, *resource_id;
	struct uuid command_id; /* that linked them */
	int64_t at_us;
};

/* One side of references, the other NULL. */
struct reference_filter {
	const char *tenant;
	const char *source_system, *external_id;
	const char *resource_type, *resource_id;
};

extern const struct row_shape reference_shape;

struct sql_in reference_statement(const struct reference_filter *filter);

/* ---- Verbs ---------------------------------------------------------------------------------- */

/* By external id: one at most. By resource: one for each system that knows it, by its name. */
IBID_CHECK enum ibid_code store_list_references(struct store *, struct arena *,
                                                const struct reference_filter *,
                                                struct reference_row **ret, size_t *ret_count,
                                                struct ibid_err *);

#endif
