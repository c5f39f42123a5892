/* SPDX-License-Identifier: Apache-2.0 */
/* reference.c -- what other systems call our resources: one external id, one resource. */
#include "store/run.h"
#include "store/sqlite/work.h"

#include <string.h>

static enum ibid_code list(struct lite_tx *tx, const struct reference_filter *filter,
                           struct row_list *ret, struct ibid_err *err)
{
	struct sql_in in = reference_statement(filter);
	*ret = (struct row_list){.arena = &tx->arena, .shape = &reference_shape};
	return lite_run_sql(tx->conn, &in, ret, err);
}

/* ---- ibid_link_reference(source_system, external_id, resource_type, resource_id) ------------- */

static enum ibid_code check_names(struct lite_tx *tx, sqlite3_value **values, struct ibid_err *err)
{
	static const char *const names[] = {"source system", "external id", "resource type",
	                                    "resource id"};
	enum ibid_code code = IBID_OK;
	for (int i = 0; !code && i < 4; i++)
		code = lite_work_name(tx, values[i], names[i], "BAD_REFERENCE", err);
	return code;
}

static enum ibid_code insert(struct lite_tx *tx, const struct reference_row *row, bool *ret_new,
                             struct ibid_err *err)
{
	struct sql_in in = SQL_IN(reference_put, reference_shape, row);
	enum ibid_code code = lite_run_sql(tx->conn, &in, NULL, err);
	*ret_new = !code && sqlite3_changes(tx->conn->db) > 0;
	return code;
}

static enum ibid_code taken(struct lite_tx *tx, const struct reference_row *row,
                            const struct reference_row *seen, struct ibid_err *err)
{
	char *text = arena_printf(&tx->arena, "%s of %s is %s %s already", row->external_id,
	                          row->source_system, seen->resource_type, seen->resource_id);
	return lite_tx_reject(tx, "REFERENCE_TAKEN", 409, text ? text : "", err);
}

static enum ibid_code linked(struct lite_tx *tx, const struct reference_row *row,
                             const struct row_list *others, struct ibid_err *err)
{
	const struct reference_row *seen = others->items;
	const char *external_id = "";
	for (size_t i = 0; i < others->count; i++)
		if (strcmp(seen[i].source_system, row->source_system) == 0)
			external_id = seen[i].external_id;
	char *text = arena_printf(&tx->arena, "%s %s is %s of %s already", row->resource_type,
	                          row->resource_id, external_id, row->source_system);
	return lite_tx_reject(tx, "RESOURCE_LINKED", 409, text ? text : "", err);
}

/* One of the two sides is linked already. */
static enum ibid_code judge(struct lite_tx *tx, const struct reference_row *row,
                            struct ibid_err *err)
{
	struct row_list rows;
	struct reference_filter filter = {.tenant = row->tenant,
	                                  .source_system = row->source_system,
	                                  .external_id = row->external_id,
	                                  .resource_type = row->resource_type,
	                                  .resource_id = row->resource_id};
	enum ibid_code code = list(tx, &filter, &rows, err);
	if (code)
		return code;
	if (rows.count) {
		const struct reference_row *seen = rows.items;
		bool same = strcmp(seen->resource_type, row->resource_type) == 0 &&
		            strcmp(seen->resource_id, row->resource_id) == 0;
		return same ? IBID_OK : taken(tx, row, seen, err);
	}
	filter.external_id = NULL;
	code = list(tx, &filter, &rows, err);
	return code ? code : linked(tx, row, &rows, err);
}

enum ibid_code lite_link_reference(struct lite_tx *tx, struct lite_work_args args,
                                   struct str *answer, struct ibid_err *err)
{
	bool added = false;
	(void)answer;
	enum ibid_code code = check_names(tx, args.values, err);
	if (code)
		return code;
	struct reference_row row = {
	    .tenant = tx->context.tenant,
	    .source_system = lite_work_text(args.values[0]),
	    .external_id = lite_work_text(args.values[1]),
	    .resource_type = lite_work_text(args.values[2]),
	    .resource_id = lite_work_text(args.values[3]),
	    .command_id = tx->context.command_id,
	    .at_us = tx->context.now_us,
	};
	code = insert(tx, &row, &added, err);
	return code || added ? code : judge(tx, &row, err);
}

/* ---- ibid_find_reference(source_system, external_id), ibid_find_external(type, id) ----------- */

static void add_pair(struct str *out, const char *a, const char *a_text, const char *b,
                     const char *b_text)
{
	str_addf(out, "{\"%s\":", a);
	str_add_json(out, a_text, strlen(a_text));
	str_addf(out, ",\"%s\":", b);
	str_add_json(out, b_text, strlen(b_text));
	str_addc(out, '}');
}

enum ibid_code lite_find_reference(struct lite_tx *tx, struct lite_work_args args,
                                   struct str *answer, struct ibid_err *err)
{
	struct row_list rows;
	struct reference_filter filter = {.tenant = tx->context.tenant,
	                                  .source_system = lite_work_text(args.values[0]),
	                                  .external_id = lite_work_text(args.values[1])};
	if (!filter.source_system || !filter.external_id)
		return IBID_OK;
	enum ibid_code code = list(tx, &filter, &rows, err);
	const struct reference_row *row = rows.items;
	if (!code && rows.count)
		add_pair(answer, "resource_type", row->resource_type, "resource_id", row->resource_id);
	return code;
}

enum ibid_code lite_find_external(struct lite_tx *tx, struct lite_work_args args,
                                  struct str *answer, struct ibid_err *err)
{
	struct row_list rows;
	struct reference_filter filter = {.tenant = tx->context.tenant,
	                                  .resource_type = lite_work_text(args.values[0]),
	                                  .resource_id = lite_work_text(args.values[1])};
	enum ibid_code code = list(tx, &filter, &rows, err);
	const struct reference_row *items = rows.items;
	if (code)
		return code;
	str_addc(answer, '[');
	for (size_t i = 0; i < rows.count; i++) {
		if (i)
			str_addc(answer, ',');
		add_pair(answer, "source_system", items[i].source_system, "external_id",
		         items[i].external_id);
	}
	str_addc(answer, ']');
	return IBID_OK;
}
