/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_reference.c -- look at external references, from either side. */
#include "cli/cli.h"
#include "cli/output.h"
#include "cli/page.h"

static enum ibid_code find(struct store *store, struct arena *arena, const void *asked, void **ret,
                           size_t *ret_count, struct ibid_err *err)
{
	const struct reference_filter *filter = asked;
	struct reference_row *rows = NULL;
	enum ibid_code code = store_list_references(store, arena, filter, &rows, ret_count, err);
	*ret = rows;
	if (code || *ret_count)
		return code;
	if (filter->external_id)
		return err_set(err, IBID_NOT_FOUND, "tenant %s has no resource that is %s of %s",
		               filter->tenant, filter->external_id, filter->source_system);
	return err_set(err, IBID_NOT_FOUND, "tenant %s has no external id of %s %s", filter->tenant,
	               filter->resource_type, filter->resource_id);
}

/* One side, the whole of it, and not both. */
static bool names_side(const struct reference_filter *filter)
{
	bool outside = filter->source_system && filter->external_id;
	bool inside = filter->resource_type && filter->resource_id;
	return outside ? !filter->resource_type && !filter->resource_id
	               : inside && !filter->source_system && !filter->external_id;
}

int cmd_reference_show(const struct args *args)
{
	static const struct listing listing = {.shape = &reference_shape, .read = find};
	struct arena arena = {0};
	struct reference_filter filter = {
	    .tenant = args->values[OPT_TENANT],
	    .source_system = args->values[OPT_SOURCE],
	    .external_id = args->values[OPT_EXTERNAL],
	    .resource_type = args->values[OPT_TYPE],
	    .resource_id = args->values[OPT_ID],
	};
	if (!names_side(&filter))
		return usage_error(
		    args->command,
		    "name the resource from outside by --source and --external, or from inside "
		    "by --type and --id");
	int exit = list_show(args, &arena, &listing, &filter, NULL);
	arena_release(&arena);
	return exit;
}
