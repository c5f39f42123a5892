/* SPDX-License-Identifier: Apache-2.0 */
/* pauses.h -- what is paused, as a relay knows it.
 *
 * The relay reads it about once a second, and ten times a second while something is paused, so that
 * it goes on at once when that is resumed, in whatever process. Each lane has a copy of its own,
 * and compares one number with each step. Until it was read for the first time, all is paused. */
#ifndef RELAY_PAUSES_H
#define RELAY_PAUSES_H

#include "base/log.h"
#include "store/store.h"

#include <pthread.h>
#include <stdatomic.h>

/* What concerns one destination. */
struct paused {
	struct arena arena;
	bool all;                      /* nothing is sent */
	const struct pause_row *types; /* of events that are not sent */
	size_t count;
	uint64_t version; /* of what it is a copy; 0: of nothing yet */
	uint64_t resumed; /* how often the destination went on as a whole */
};

struct pauses {
	const char *destination;
	const struct log *log;
	pthread_mutex_t lock; /* of what follows, but for its number */
	struct paused now;
	const struct pause_row *rows; /* that say so: what stops all first, then the types; likewise */
	size_t row_count;
	_Atomic uint64_t version;
};

/* `log` outlives it: whatever is paused or resumed is said there, once. */
void pauses_init(struct pauses *pauses, const char *destination, const struct log *log);
void pauses_release(struct pauses *pauses);

/* What has changed since it was read before. */
struct pauses_news {
	bool changed; /* lanes have something to learn */
	bool resumed; /* the destination goes on as a whole, which stood still */
};

/* Read what is paused. */
IBID_CHECK enum ibid_code pauses_read(struct pauses *pauses, struct store *store,
                                      struct pauses_news *ret, struct ibid_err *err);

/* Was anything paused when it was read? */
bool pauses_any(struct pauses *pauses);

/* Is the copy older than what was read? Cheap. */
bool paused_is_old(const struct paused *copy, struct pauses *pauses);

/* Make it new. Without memory all is paused, and the copy stays old. */
void paused_renew(struct paused *copy, struct pauses *pauses);
void paused_release(struct paused *copy);

bool paused_has_type(const struct paused *copy, const char *tenant, const char *type);

#endif
