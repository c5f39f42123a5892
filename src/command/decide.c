/* SPDX-License-Identifier: Apache-2.0 */
#include "command/decide.h"

#include <assert.h>

/* A rejection is the one state where the contract has a say; it is marked here and looked up there.
 */
enum { BY_POLICY = -1 };

static const int table[COMMAND_STATE_COUNT][2] = {
    /*                        another payload    the same payload */
    [COMMAND_ACCEPTED] = {VERDICT_CONFLICT, VERDICT_IN_PROGRESS},
    [COMMAND_IN_PROGRESS] = {VERDICT_CONFLICT, VERDICT_IN_PROGRESS},
    [COMMAND_COMPLETED] = {VERDICT_CONFLICT, VERDICT_REPLAY},
    [COMMAND_REJECTED] = {BY_POLICY, BY_POLICY},
    [COMMAND_FAILED] = {VERDICT_CONFLICT, VERDICT_RUN},
    [COMMAND_UNKNOWN] = {VERDICT_UNKNOWN, VERDICT_UNKNOWN},
};

static enum verdict decide_rejected(const struct contract_duplicates *policy, bool same)
{
	if (same)
		return policy->rejected == REJECTED_EVALUATE_AGAIN ? VERDICT_RUN : VERDICT_REPLAY;
	return policy->rejected_other_payload == REJECTED_OTHER_EVALUATE ? VERDICT_RUN
	                                                                 : VERDICT_CONFLICT;
}

enum verdict decide(const struct contract *contract, enum command_state state, bool same)
{
	assert(state < COMMAND_STATE_COUNT);
	int verdict = table[state][same];
	return verdict == BY_POLICY ? decide_rejected(&contract->duplicates, same)
	                            : (enum verdict)verdict;
}

enum verdict decide_expired(const struct contract *contract)
{
	return contract->key.after_expiry == EXPIRY_RUN_AGAIN ? VERDICT_RUN_ANEW : VERDICT_EXPIRED;
}
