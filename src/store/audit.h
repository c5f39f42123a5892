/* SPDX-License-Identifier: Apache-2.0 */
/* audit.h -- business evidence: one entry per accepted intent. */
#ifndef STORE_AUDIT_H
#define STORE_AUDIT_H

#include "base/err.h"
#include "store/row.h"

struct store;
struct tx;

/* Business evidence: one per accepted intent. */
struct audit_row {
	struct uuid id; /* out only: the command's */
	struct uuid command_id;
	const char *tenant, *operation, *fact, *outcome; /* outcome: "executed" or "linked" */
	int contract_version;
	const char *client, *actor, *resource_type, *resource_id; /* NULL: none */
	const char *correlation_id, *causation_id, *traceparent, *tracestate;
	struct sha256 fingerprint;
	int64_t at_us;
};

extern const struct row_shape audit_shape;

/* ---- Verbs ---------------------------------------------------------------------------------- */

IBID_CHECK enum ibid_code store_put_audit(struct tx *, const struct audit_row *, struct ibid_err *);

IBID_CHECK enum ibid_code store_list_audit(struct store *, struct arena *, const char *tenant,
                                           const struct uuid *command_id, size_t limit,
                                           struct audit_row **ret, size_t *ret_count,
                                           struct ibid_err *);

#endif
