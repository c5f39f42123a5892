/* SPDX-License-Identifier: Apache-2.0 */
/* declared.h -- what a contract declares of a command that a script runs: when it is refused, what
 * it answers, which events it tells, and how many rows it changes. */
#ifndef COMMAND_DECLARED_H
#define COMMAND_DECLARED_H

#include "command/work.h"
#include "store/script.h"

/* The first rule that refuses the command, before its script runs; NULL: none. */
const struct contract_reject *declared_reject(const struct contract *contract,
                                              const char *const *values);

/* Put the declared answer in the place of what the script returned, and note the declared events.
 * IBID_OK, or IBID_FAILED with work->outcome.text. */
enum ibid_code declared_succeed(struct ibid_work *work, const char *const *values);

/* Did each statement change or return as many rows as declared? IBID_OK, or IBID_FAILED with the
 * outcome's text. */
enum ibid_code declared_check_rows(struct arena *arena, const struct contract *contract,
                                   struct outcome *outcome);

/* Is any of them to be compared? */
bool declared_compares(const struct contract *contract);

/* Do the statements of its script fit what the contract declares? IBID_CONTRACT says where not. */
IBID_CHECK enum ibid_code declared_check_script(const struct contract *contract, const char *file,
                                                const struct script_statements *statements,
                                                struct ibid_err *err);

#endif
