/* SPDX-License-Identifier: Apache-2.0 */
/* recent.h -- commands that came again a moment ago: their next duplicates need no store.
 *
 * Clients that time out together come back together, and again. Only what nothing changes until it
 * expires is remembered: a row that is COMPLETED and has no body, which an erasure would take. */
#ifndef COMMAND_RECENT_H
#define COMMAND_RECENT_H

#include "base/env.h"
#include "store/store.h"

struct recent;

/* Each row is remembered for `keep_us`: a store that was restored to an earlier point may have lost
 * it. NULL without memory. */
struct recent *recent_new(struct env *env, int64_t keep_us);
void recent_free(struct recent *recent); /* takes NULL */

/* Remember a row as the store told it, if it is one of those; takes NULL for `recent`. */
void recent_keep(struct recent *recent, const struct command_row *row);

/* The row that is remembered of an identity, in the arena. False: none; so with NULL. */
bool recent_find(struct recent *recent, const struct identity *identity, struct arena *arena,
                 struct command_row *ret);

/* Is it worth while to look for a command that came with this key? Not sure, and quick. NULL: no
 * key, which is not. */
bool recent_expects(struct recent *recent, const char *key);

#endif
