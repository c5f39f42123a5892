/* SPDX-License-Identifier: Apache-2.0 */
/* archive.h -- events that have had their time: archived, then removed; and brought back. */
#ifndef RETENTION_ARCHIVE_H
#define RETENTION_ARCHIVE_H

#include "retention/archive_file.h"
#include "store/archive.h"
#include "store/store.h"

/* What keeps events in the store, and where. */
struct held_back {
	const char *span; /* "": of the whole store; else a month, all of which stays */
	struct undone_row undone;
};

struct archive_report {
	struct arena arena; /* of what follows */
	int64_t events;     /* removed, or to be removed */
	struct archive_manifest *archives;
	size_t archive_count, archive_room;
	struct held_back *held;
	size_t held_count, held_room;
};
void archive_report_release(struct archive_report *report);

struct archive_options {
	const char *dir;   /* NULL: events are removed without an archive */
	int64_t before_us; /* when they were created */
	int64_t now_us;
	bool dry_run;
	bool (*time_is_over)(void *user); /* asked between spans */
	void (*progress)(void *user, int64_t events);
	void *user;
};

/* Remove what is old and done, span by span: written, made durable, and only then dropped. May be
 * killed at any time and run again. */
IBID_CHECK enum ibid_code ledger_archive(struct store *store, struct env *env,
                                         const struct archive_options *options,
                                         struct archive_report *ret, struct ibid_err *err);

/* The row that the store keeps of an archive, of which it has known since then. */
struct archive_row archive_row_of(const struct archive_manifest *manifest, int64_t at_us);

/* Check an archive as a whole, and then put its events back: all of them or none. */
IBID_CHECK enum ibid_code ledger_restore(struct store *store, const char *path,
                                         struct restore_count *ret, struct ibid_err *err);

#endif
