/* SPDX-License-Identifier: Apache-2.0 */
/* exception.h -- the exception of a command whose outcome is unknown: how it opens, and how it ends
 * when the outcome is found. */
#ifndef COMMAND_EXCEPTION_H
#define COMMAND_EXCEPTION_H

#include "contract/contract.h"
#include "desk/action.h"

/* The reason on the row of a command whose handler committed or rolled back. */
extern const char handler_ended_transaction[];

/* The item that opens together with `row`, which is UNKNOWN. Its id is new. */
struct exception_row command_exception(struct arena *arena, struct env *env,
                                       const struct contract *contract,
                                       const struct command_row *row);

/* The outcome is known by now, and `row` has it: its item is resolved with it (I1), by the action
 * of a person, or by recovery (NULL). */
IBID_CHECK enum ibid_code command_exception_end(struct tx *tx, struct arena *arena,
                                                const struct command_row *row,
                                                const struct action_record *by_person,
                                                struct ibid_err *err);

#endif
