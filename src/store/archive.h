/* SPDX-License-Identifier: Apache-2.0 */
/* archive.h -- what retention asks of a store about its oldest events: which may go, what they are,
 * that they go, and that they come back.
 *
 * Events go by the *span*: a month on PostgreSQL, a bounded run of rows on SQLite. Only what is
 * *done* goes: it arrived, or a person skipped or cancelled it, at every destination that it was
 * written for. A span is read as lines of JSON, one for each event with its evidence; then it is
 * dropped, if nothing in it has changed since, which its *seal* tells. */
#ifndef STORE_ARCHIVE_H
#define STORE_ARCHIVE_H

#include "store/store.h"

enum { ARCHIVE_SPAN_EVENTS_MAX = 10000, ARCHIVE_WORD_SIZE = 64, ARCHIVE_SEAL_SIZE = 256 };

/* What keeps events from going. */
struct undone_row {
	const char *destination;
	const char *state; /* UNPUBLISHED, or that of its hold */
	int64_t events, since_us;
};

struct archive_span {
	const char *store;              /* "sqlite" or "postgres" */
	char system[ARCHIVE_WORD_SIZE]; /* PostgreSQL: which server's; "": unknown */
	char part[ARCHIVE_WORD_SIZE];   /* in the store's own words; "": there is no span; so are: */
	char from[ARCHIVE_WORD_SIZE], to[ARCHIVE_WORD_SIZE];
	char name[ARCHIVE_WORD_SIZE]; /* for a file: "20260101-20260201" */
	int64_t bound;                /* SQLite: behind the last that may go */
	int64_t events;               /* that may go */
	struct undone_row *undone;
	size_t undone_count;
	bool held; /* none of it goes: of a month that is not all done */
};

struct archive_seal {
	char text[ARCHIVE_SEAL_SIZE];
};

/* A line, without its newline. */
struct archive_line {
	const char *text;
	size_t size;
	struct uuid id;
	int64_t deliveries;
};

/* A file that took the place of events. */
struct archive_row {
	int64_t at_us;
	const char *file, *range_from, *range_to;
	struct uuid first_id, last_id;
	int64_t events, deliveries, bytes;
	struct sha256 sha256, content_sha256;
};

/* Lines to be restored, one by one. `*ret_size` 0: that was all. */
typedef enum ibid_code restore_line_fn(void *user, const char **ret, size_t *ret_size,
                                       struct ibid_err *);
struct restoring {
	const char *store, *system; /* as in the span */
	struct uuid first_id, last_id;
	restore_line_fn *next;
	void *user;
};
struct restore_count {
	int64_t restored, present; /* put back, and there already */
};

extern const struct row_shape archive_shape;

/* Newest first. */
IBID_CHECK enum ibid_code store_list_archives(struct store *, struct arena *, size_t limit,
                                              struct archive_row **ret, size_t *ret_count,
                                              struct ibid_err *);

#endif
