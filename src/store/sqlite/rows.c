/* SPDX-License-Identifier: Apache-2.0 */
#include "store/sqlite/lite.h"

#include <string.h>

void *lite_rows_add(struct lite_rows *rows)
{
	if (rows->count == rows->room) {
		size_t room = rows->room ? rows->room * 2 : 16;
		void *items = arena_array(rows->arena, room, rows->size);
		if (!items)
			return NULL;
		if (rows->items)
			memcpy(items, rows->items, rows->count * rows->size);
		rows->items = items;
		rows->room = room;
	}
	return (char *)rows->items + rows->count++ * rows->size;
}

enum ibid_code lite_rows_read(struct lite_rows *rows, struct lite_run *run, lite_read_fn *read,
                              enum ibid_code code, struct ibid_err *err)
{
	while (lite_row(run, &code, err)) {
		void *row = lite_rows_add(rows);
		if (row)
			read(run, rows->arena, row);
		if (rows->arena->failed)
			code = err_set(err, IBID_NOMEM, "out of memory");
	}
	return code;
}
