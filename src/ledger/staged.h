/* SPDX-License-Identifier: Apache-2.0 */
/* staged.h -- a command that is held under a lease, as its worker has it. */
#ifndef LEDGER_STAGED_H
#define LEDGER_STAGED_H

#include "ledger/submission.h"

struct ibid_staged {
	struct submission sub;
	struct ibid_work view;
};

#endif
