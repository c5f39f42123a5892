/* SPDX-License-Identifier: Apache-2.0 */
/* payload.h -- what is kept of a command's payload. */
#ifndef STORE_PAYLOAD_H
#define STORE_PAYLOAD_H

#include "base/err.h"
#include "store/row.h"

struct store;
struct tx;
struct sql_in;

/* What is kept of a command's payload: JSON in canonical form, after the contract's classes. */
struct payload_row {
	const char *tenant;
	struct uuid command_id;
	const char *text; /* NULL in put_payload: keep none */
	size_t size;
};

extern const struct row_shape payload_shape;

/* Keeps it, or removes what is kept. */
struct sql_in payload_statement(const struct payload_row *row);

/* ---- Verbs ---------------------------------------------------------------------------------- */

/* Keep a payload with its command (I1), in the place of the one that was kept before. A command
 * that gives way to another takes its payload with it: put_command sees to that. */
IBID_CHECK enum ibid_code store_put_payload(struct tx *, const struct payload_row *,
                                            struct ibid_err *);

/* IBID_NOT_FOUND when none is kept. */
IBID_CHECK enum ibid_code store_get_payload(struct store *, struct arena *, const char *tenant,
                                            const struct uuid *command_id, struct payload_row *ret,
                                            struct ibid_err *);

#endif
