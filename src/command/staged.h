/* SPDX-License-Identifier: Apache-2.0 */
/* staged.h -- a command that is held under a lease, as its worker has it, and endings that only our
 * own workers give. */
#ifndef COMMAND_STAGED_H
#define COMMAND_STAGED_H

#include "command/submission.h"
#include "desk/action.h"

struct ibid_staged {
	struct submission sub;
	struct ibid_work view;
	int64_t since_us;
	/* Its lease was taken over. If the clocks are right, its worker has stopped; where one was set
	 * forward, the worker goes on for as long as the lease would have lasted. */
	bool taken_over;
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

/* End it COMPLETED: `body` is JSON, or NULL, and kept byte for byte; `status` 200..399.
 * IBID_MISUSE: it is not, and nothing was done. Otherwise as ibid_staged_finish. */
IBID_CHECK enum ibid_code staged_answer(struct ibid_staged *staged, int status, const char *body,
                                        struct ibid_result **ret, struct ibid_err *err);

/* End it REJECTED, whatever `failures` says: `status` is 400..599, `reason` a code of A-Z, 0-9 and
 * _, `text` a sentence or NULL. `body` is JSON and is what the caller hears, byte for byte, and a
 * duplicate where the contract's answer.store is full; NULL, or not kept: the usual problem.
 * IBID_MISUSE: one of them is not that, and nothing was done. */
IBID_CHECK enum ibid_code staged_refuse(struct ibid_staged *staged, int status, const char *reason,
                                        const char *text, const char *body,
                                        struct ibid_result **ret, struct ibid_err *err);

/* End it FAILED: nothing has happened outside, and the same key may be staged again. `status`,
 * `reason` and `text` as above. */
IBID_CHECK enum ibid_code staged_fail(struct ibid_staged *staged, int status, const char *reason,
                                      const char *text, struct ibid_result **ret,
                                      struct ibid_err *err);

/* Nobody knows whether it was done, for this reason. `answer` is UTF-8, or NULL: what the service
 * said, of which people who find out see what the contract's payload class allows; no client does.
 */
IBID_CHECK enum ibid_code staged_unknown(struct ibid_staged *staged, const char *reason,
                                         const char *text, const char *answer,
                                         struct ibid_result **ret, struct ibid_err *err);

/* A command that is UNKNOWN, for the desk: a person says whether it was done (confirm.c). */
extern const struct action_subject command_subject;

#endif
