/* SPDX-License-Identifier: Apache-2.0 */
/* crew.h -- a few threads that bring many commands to their outcomes.
 *
 * Whoever submits here does not wait: it is called when there is an outcome. A command that waits,
 * for its turn, for the group whose commit it shares, for a twin or for another try, holds no
 * thread (B05). Tenants take turns, however much one of them sends (K10). */
#ifndef LEDGER_CREW_H
#define LEDGER_CREW_H

#include "ledger/ledger.h"

struct crew;

/* Called once, on one of the crew's threads, with what ledger_submit would have given. The result
 * is the callee's to free. It must not wait: others are served behind it. */
typedef void crew_done(void *user, enum ibid_code code, struct ibid_result *result,
                       const struct ibid_err *err);

/* `tasks_max`: how many commands may be on their way; one tenant has half of that. */
IBID_CHECK enum ibid_code crew_new(struct ledger *ledger, unsigned threads, unsigned tasks_max,
                                   struct crew **ret, struct ibid_err *err);

/* Whatever is on its way is brought home first. No other thread submits to the ledger meanwhile.
 * Takes NULL. */
void crew_free(struct crew *crew);

/* IBID_BUSY: too many are on their way; nothing was done. What `command` points to lives until
 * `done` was called; `done` may be called before this returns. */
IBID_CHECK enum ibid_code crew_submit(struct crew *crew, const struct ibid_command *command,
                                      crew_done *done, void *user, struct ibid_err *err);

/* The same for a command whose contract is staged. What is held under a lease now is the callee's,
 * to be ended and freed; `staged` is NULL where `result` is a decision, or where `code` is an
 * error.
 */
typedef void crew_staged(void *user, enum ibid_code code, struct ibid_staged *staged,
                         struct ibid_result *result, const struct ibid_err *err);
IBID_CHECK enum ibid_code crew_stage(struct crew *crew, const struct ibid_command *command,
                                     crew_staged *done, void *user, struct ibid_err *err);

/* Call `call` on one of the threads, in the tenant's turn: work that waits for the store. */
typedef void crew_fn(void *user);
IBID_CHECK enum ibid_code crew_call(struct crew *crew, const char *tenant, crew_fn *call,
                                    void *user, struct ibid_err *err);

/* The same after `pause_us`, and however many are on their way: for work that has begun, and must
 * not be lost. Its number is bounded by who begins it. IBID_NOMEM. */
IBID_CHECK enum ibid_code crew_call_later(struct crew *crew, const char *tenant, int64_t pause_us,
                                          crew_fn *call, void *user, struct ibid_err *err);

/* `after` is called on a thread that has told outcomes, one or those of a whole group, and turns to
 * something else: whoever gathers them in `done` passes them on at once. Set it before anything is
 * submitted. */
void crew_after(struct crew *crew, crew_fn *after, void *user);

size_t crew_busy(struct crew *crew); /* commands on their way, now */

#endif
