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
		if (rows->count)
			memcpy(items, rows->items, rows->count * rows->size);
		rows->items = items;
		rows->room = room;
	}
	return (char *)rows->items + rows->count++ * rows->size;
}
