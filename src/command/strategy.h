/* SPDX-License-Identifier: Apache-2.0 */
/* strategy.h -- run a handler under its contract's strategy. */
#ifndef COMMAND_STRATEGY_H
#define COMMAND_STRATEGY_H

#include "command/submission.h"

/* Codes of handlers, with work->outcome complete. */
typedef enum ibid_code handler_run(struct submission *sub, struct ibid_work *work,
                                   struct ibid_err *err);

/* Run the handler, or find that it need not run: `*ret_linked`, and work->outcome is what is there.
 * Codes as `run` has them; what breaks the strategy is IBID_FAILED or IBID_REJECTED. */
enum ibid_code strategy_run(struct submission *sub, struct ibid_work *work, handler_run *run,
                            bool *ret_linked, struct ibid_err *err);

#endif
