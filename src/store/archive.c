/* SPDX-License-Identifier: Apache-2.0 */
/* archive.c -- look at files that took the place of events. */
#include "store/archive.h"

#include "store/run.h"

#define ARCHIVE(kind, column, member, ...)                                                         \
	ROW_COLUMN(kind, struct archive_row, column, member, __VA_ARGS__)
static const struct row_column columns[] = {
    ARCHIVE(TIME, at, at_us),
    ARCHIVE(TEXT, file, file),
    ARCHIVE(TEXT, range_from, range_from, .json = "from"),
    ARCHIVE(TEXT, range_to, range_to, .json = "to"),
    ARCHIVE(UUID, first_id, first_id),
    ARCHIVE(UUID, last_id, last_id),
    ARCHIVE(LONG, events, events),
    ARCHIVE(LONG, deliveries, deliveries),
    ARCHIVE(LONG, bytes, bytes),
    ARCHIVE(HASH, sha256, sha256),
    ARCHIVE(HASH, content_sha256, content_sha256),
};
const struct row_shape archive_shape = ROW_SHAPE(struct archive_row, columns);

enum ibid_code store_list_archives(struct store *store, struct arena *arena, size_t limit,
                                   struct archive_row **ret, size_t *ret_count,
                                   struct ibid_err *err)
{
	struct lookup of = {.limit = limit};
	return sql_list(store, SQL_IN(archive_list, lookup_shape, &of), arena, &archive_shape, ret,
	                ret_count, err);
}
