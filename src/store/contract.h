/* SPDX-License-Identifier: Apache-2.0 */
/* contract.h -- the contracts that a store keeps, each version once. */
#ifndef STORE_CONTRACT_H
#define STORE_CONTRACT_H

#include "base/err.h"
#include "store/row.h"

struct store;
struct tx;

struct contract_row {
	const char *kind, *name;
	int version;
	struct sha256 digest;
	const char *text;
	int64_t at_us;
};

extern const struct row_shape contract_row_shape;

/* ---- Verbs ---------------------------------------------------------------------------------- */

/* Keep a contract. Kept already with the same digest: success. With another: IBID_CONTRACT. */
IBID_CHECK enum ibid_code store_put_contract(struct store *, const struct contract_row *,
                                             struct ibid_err *);

/* Version 0 asks for the newest. IBID_NOT_FOUND when it was never kept. */
IBID_CHECK enum ibid_code store_get_contract(struct store *, struct arena *, const char *kind,
                                             const char *name, int version,
                                             struct contract_row *ret, struct ibid_err *);

#endif
