/* SPDX-License-Identifier: Apache-2.0 */
/* matrix.h -- the tables that reviewers ask for, printed from the contracts (A05). */
#ifndef CONTRACT_MATRIX_H
#define CONTRACT_MATRIX_H

#include "base/str.h"
#include "contract/contract.h"

enum matrix_format { MATRIX_TEXT, MATRIX_MARKDOWN, MATRIX_JSON };

/* Idempotency matrix, retry policy, exception queues, failure modes, reconciliation plan, a
 * sequence diagram per flow (Mermaid) and a runbook outline. */
void matrix_write(struct str *out, const struct contracts *contracts, enum matrix_format format);

#endif
