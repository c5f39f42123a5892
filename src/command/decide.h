/* SPDX-License-Identifier: Apache-2.0 */
/* decide.h -- what a duplicate gets: the decision table, as data. */
#ifndef COMMAND_DECIDE_H
#define COMMAND_DECIDE_H

#include "contract/contract.h"
#include "store/store.h"

/* `same`: the payload has the row's fingerprint under the row's contract version. */
enum verdict decide(const struct contract *contract, enum command_state state, bool same);

/* The same for a row whose key has outlived its retention, whatever the payload. */
enum verdict decide_expired(const struct contract *contract);

#endif
