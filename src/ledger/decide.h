/* SPDX-License-Identifier: Apache-2.0 */
/* decide.h -- what a duplicate gets: the decision table, as data. */
#ifndef LEDGER_DECIDE_H
#define LEDGER_DECIDE_H

#include "contract/contract.h"
#include "store/store.h"

enum verdict {
	VERDICT_RUN,         /* the identity may be run (again) */
	VERDICT_REPLAY,      /* give back the outcome on the row */
	VERDICT_CONFLICT,    /* one key, one fingerprint (I2): refuse, keep evidence */
	VERDICT_IN_PROGRESS, /* somebody has it: answer as the contract says */
	VERDICT_UNKNOWN,     /* nobody knows: tell the state, change nothing */
};

/* `same`: the payload has the row's fingerprint under the row's contract version. */
enum verdict decide(const struct contract *contract, enum command_state state, bool same);

#endif
