/* SPDX-License-Identifier: Apache-2.0 */
/* duplicates.h -- who sent a command again: noted in memory, written down beside the hot path. */
#ifndef COMMAND_DUPLICATES_H
#define COMMAND_DUPLICATES_H

#include "store/store.h"

struct duplicates;

/* Nothing runs until the first note. The store must outlive it. NULL: out of memory. */
struct duplicates *duplicates_open(struct store *store, const struct log *log);

/* Write what is noted, and stop. What can't be written now is logged as lost. Takes NULL; after a
 * fork, in the child, it only forgets. */
void duplicates_close(struct duplicates *duplicates);

/* Count one duplicate; keep it as it is, too, where `each`. Never waits for the store. */
void duplicates_note(struct duplicates *duplicates, const struct duplicate_seen_row *seen,
                     bool each);

#endif
