/* SPDX-License-Identifier: Apache-2.0 */
/* erase.h -- forget on request. */
#ifndef RETENTION_ERASE_H
#define RETENTION_ERASE_H

#include "store/store.h"

struct erasure_report {
	struct uuid id; /* of the record */
	bool recorded;  /* false: there was nothing to erase, or it was only counted */
	bool dry_run;
	struct erasure_count count;
	int64_t left; /* commands without an outcome */
};

/* See ibid_erase. Needs no contracts. */
IBID_CHECK enum ibid_code ledger_erase(struct store *store, struct env *env,
                                       const struct ibid_erasure *erasure,
                                       struct erasure_report *ret, struct ibid_err *err);

/* {"commands":1,...}; free() it. NULL: no memory. */
char *erasure_json(const struct erasure_report *report);

#endif
