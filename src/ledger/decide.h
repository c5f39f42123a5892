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
	VERDICT_EXPIRED,     /* the key may not be used any more: refuse */
	VERDICT_RUN_ANEW,    /* the key is forgotten: run as a new command in the row's place */
};

/* `same`: the payload has the row's fingerprint under the row's contract version. */
enum verdict decide(const struct contract *contract, enum command_state state, bool same);

/* The same for a row whose key has outlived its retention, whatever the payload. */
enum verdict decide_expired(const struct contract *contract);

#endif
