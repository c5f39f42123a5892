/* SPDX-License-Identifier: Apache-2.0 */
/* retain.h -- remove what has had its time, as the contracts say. */
#ifndef RETENTION_RETAIN_H
#define RETENTION_RETAIN_H

#include "contract/contract.h"
#include "retention/archive.h"
#include "store/store.h"

struct retain_options {
	size_t batch;        /* rows a transaction, at most */
	int64_t max_us;      /* stop after this time; 0: when done */
	int64_t events_us;   /* events older than that go, once they are done; 0: none */
	const char *archive; /* directory that they are archived to first; NULL: to none */
	bool dry_run;
	/* Told after every step; NULL: nobody. */
	void (*progress)(void *user, const struct retention_count *count);
	void *user;
	/* What became of events: the caller's, released by it, also after a failure; never NULL where
	 * events go. */
	struct archive_report *events;
};

/* Run retention to its end, or until the time is over (`*ret_finished` false). Steps that were
 * taken stay; whoever runs it again goes on. */
IBID_CHECK enum ibid_code ledger_retain(struct store *store, const struct contracts *contracts,
                                        struct env *env, const struct retain_options *options,
                                        struct retention_count *ret, bool *ret_finished,
                                        struct ibid_err *err);

#endif
