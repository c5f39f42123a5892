/* SPDX-License-Identifier: Apache-2.0 */
/* duplicate.h -- commands that came again: counted, and where asked for kept one by one. */
#ifndef STORE_DUPLICATE_H
#define STORE_DUPLICATE_H

#include "base/err.h"
#include "store/row.h"

struct store;
struct tx;

/* A command that came again, with whatever payload, and was not run: counted. */
struct duplicate_row {
	const char *tenant;
	struct uuid command_id;
	int64_t first_us, last_us, count;
	int64_t unlisted; /* of those that were to be kept one by one, and are only counted */
};

/* One of them, where the contract keeps each. */
struct duplicate_seen_row {
	const char *tenant;
	struct uuid command_id;
	int64_t at_us;
	const char *client, *actor; /* "" when not given */
	const char *decision;       /* what it was told: "executed", "conflict", "expired", ... */
	struct sha256 fingerprint;
};

extern const struct row_shape duplicate_shape;
extern const struct row_shape duplicate_seen_shape;

/* ---- Verbs ---------------------------------------------------------------------------------- */

/* What is kept of the duplicates of one command: count 0 when there were none, and those that
 * were kept one by one, the newest first, at most `limit`. */
IBID_CHECK enum ibid_code store_get_duplicates(struct store *, struct arena *, const char *tenant,
                                               const struct uuid *command_id,
                                               struct duplicate_row *ret, struct ibid_err *);

IBID_CHECK enum ibid_code store_list_duplicates(struct store *, struct arena *, const char *tenant,
                                                const struct uuid *command_id, size_t limit,
                                                struct duplicate_seen_row **ret, size_t *ret_count,
                                                struct ibid_err *);

#endif
