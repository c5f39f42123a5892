/* SPDX-License-Identifier: Apache-2.0 */
/* attempt.h -- one attempt of a submission: what it is made of, and the paths that it may take. */
#ifndef COMMAND_ATTEMPT_H
#define COMMAND_ATTEMPT_H

#include "command/submission.h"

/* How an attempt ended, beside errors. */
enum step {
	STEP_DONE,
	STEP_AGAIN,
	STEP_COLLIDED,
	STEP_LOOK_LATER, /* for what a twin does meanwhile */
	STEP_QUEUED,     /* in a group, without a thread */
};
enum { ATTEMPT_LOOK_PAUSE_US = 20000 }; /* between two looks for it */

/* ---- Its parts: attempt.c ------------------------------------------------------------------- */

/* The work of a handler, for the command `id`. Without `tx`: it has no transaction of its own. */
void attempt_work(struct ibid_work *work, struct submission *sub, struct tx *tx, struct uuid id);

/* The identity was claimed, or somebody has it: bring it to an outcome. Takes the transaction that
 * it commits; the caller rolls back what is left in `claim`. */
IBID_CHECK enum ibid_code attempt_meet(struct submission *sub, struct claim *claim, enum step *ret,
                                       struct ibid_err *err);

/* Remember what an attempt ended in, beyond its transaction: the next one records it. */
void attempt_postpone(struct submission *sub, enum ibid_code code, const struct outcome *outcome);

/* It is durable: an outcome for the caller, or a lease for the worker. */
void attempt_answer(struct submission *sub, const struct command_row *row);

/* The commit did not report success (`err` says why): ask the store, and believe what it says (I7).
 * Where the handler's answer was lost with the commit's, the caller hears what was kept of it. */
IBID_CHECK enum ibid_code attempt_resolve(struct submission *sub, const struct command_row *answer,
                                          bool answer_lost, enum step *ret, struct ibid_err *err);

/* ---- Its paths: attempt_paths.c ------------------------------------------------------------- */

/* In a group where it may, or by the steps. STEP_QUEUED: it waits for others, and attempt_served is
 * next when `sub->told` was called. */
IBID_CHECK enum ibid_code attempt_path(struct submission *sub, enum step *ret,
                                       struct ibid_err *err);

/* What the group made of it; alone: run it now, and go. */
IBID_CHECK enum ibid_code attempt_served(struct submission *sub, enum group_part part,
                                         enum step *ret, struct ibid_err *err);

/* Claim, run, write and commit, one after the other. */
IBID_CHECK enum ibid_code attempt_steps(struct submission *sub, enum step *ret,
                                        struct ibid_err *err);

#endif
