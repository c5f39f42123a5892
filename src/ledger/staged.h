/* SPDX-License-Identifier: Apache-2.0 */
/* staged.h -- a command that is held under a lease, as its worker has it. */
#ifndef LEDGER_STAGED_H
#define LEDGER_STAGED_H

#include "ledger/submission.h"

struct ibid_staged {
	struct submission sub;
	struct ibid_work view;
};

/* ledger_stage in pieces: new, prepare, the course of attempts, decided. NULL without memory. */
struct ibid_staged *staged_new(struct ledger *ledger);
IBID_CHECK enum ibid_code staged_prepare(struct ibid_staged *staged,
                                         const struct ibid_command *command, struct ibid_err *err);

/* Takes over `staged` and `result`: as ibid_stage gives them back. */
IBID_CHECK enum ibid_code staged_decided(struct ibid_staged *staged, enum ibid_code code,
                                         struct ibid_result *result,
                                         struct ibid_staged **ret_staged, struct ibid_result **ret,
                                         struct ibid_err *err);

#endif
