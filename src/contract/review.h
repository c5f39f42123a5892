/* SPDX-License-Identifier: Apache-2.0 */
/* review.h -- the review checklists, answered from the contracts and the live schema (A08).
 *
 * A question passes with its evidence, fails with advice, does not apply, or is left to a person:
 * a question that the contracts and the schema can't answer never passes. */
#ifndef CONTRACT_REVIEW_H
#define CONTRACT_REVIEW_H

#include "base/str.h"
#include "contract/contract.h"
#include "contract/matrix.h"
#include "store/store.h"

/* What a store says about one contract. */
struct review_live {
	const char *store;               /* "sqlite", "postgres" */
	const struct contract_row *kept; /* under this version; NULL: none */
	const struct index_row *indexes; /* one per `unique`; a NULL table: no index of that name */
	const char *scripts;             /* why its scripts would not run there; NULL: they would */
};

struct review_counts {
	size_t pass, fail, ask, not_applicable;
};

/* Answer every question for every contract. `lives` has one entry per contract of the set, or is
 * NULL: no store was asked. Problems of the set, which may come from a contracts_load that failed,
 * are failures, too. */
void review_write(struct str *out, const struct contracts *contracts,
                  const struct review_live *lives, enum matrix_format format,
                  struct review_counts *ret);

/* Every question, as Markdown tables, by checklist. */
void review_reference(struct str *out);

#endif
