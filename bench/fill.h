/* SPDX-License-Identifier: Apache-2.0 */
/* fill.h -- a ledger that has run for a month. */
#ifndef BENCH_FILL_H
#define BENCH_FILL_H

#include "target.h"

/* Put completed payments into a store that has one (the model): commands, their events, aggregates
 * and audit entries, but no payment rows. The handle is closed meanwhile. */
void fill_ledger(struct target *target, int64_t rows);

/* How large the store is, in bytes. */
int64_t fill_size(struct target *target);

/* Keys of payments that are there, at random; `ret` has room for `count` of them. */
enum { KEY_SIZE = 40 };
void fill_keys(struct target *target, int64_t count, char (*ret)[KEY_SIZE]);

#endif
