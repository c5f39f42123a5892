/* SPDX-License-Identifier: Apache-2.0 */
/* workers.h -- a few threads that bring many commands to their outcomes.
 *
 * Whoever submits here does not wait: it is called when there is an outcome. A command that waits,
 * for its turn, for the group whose commit it shares, for a twin or for another try, holds no
 * thread (B05). Tenants take turns, however much one of them sends (K10). */
#ifndef COMMAND_WORKER_POOL_H
#define COMMAND_WORKER_POOL_H

#include "command/ledger.h"

struct worker_pool;

/* Called once, on one of the workers's threads, with what ledger_submit would have given. The
 * result is the callee's to free. It must not wait: others are served behind it. */
typedef void worker_pool_done(void *user, enum ibid_code code, struct ibid_result *result,
                              const struct ibid_err *err);

/* `tasks_max`: how many commands may be on their way; one tenant has half of that. */
IBID_CHECK enum ibid_code worker_pool_new(struct ledger *ledger, unsigned threads,
                                          unsigned tasks_max, struct worker_pool **ret,
                                          struct ibid_err *err);

/* Whatever is on its way is brought home first. No other thread submits to the ledger meanwhile.
 * Takes NULL. */
void worker_pool_free(struct worker_pool *workers);

/* IBID_BUSY: too many are on their way; nothing was done. What `command` points to lives until
 * `done` was called; `done` may be called before this returns. */
IBID_CHECK enum ibid_code worker_pool_submit(struct worker_pool *workers,
                                             const struct ibid_command *command,
                                             worker_pool_done *done, void *user,
                                             struct ibid_err *err);

/* The same for a command whose contract is staged. What is held under a lease now is the callee's,
 * to be ended and freed; `staged` is NULL where `result` is a decision, or where `code` is an
 * error.
 */
typedef void worker_pool_staged(void *user, enum ibid_code code, struct ibid_staged *staged,
                                struct ibid_result *result, const struct ibid_err *err);
IBID_CHECK enum ibid_code worker_pool_stage(struct worker_pool *workers,
                                            const struct ibid_command *command,
                                            worker_pool_staged *done, void *user,
                                            struct ibid_err *err);

/* Call `call` on one of the threads, in the tenant's turn: work that waits for the store. */
typedef void worker_fn(void *user);
IBID_CHECK enum ibid_code worker_pool_call(struct worker_pool *workers, const char *tenant,
                                           worker_fn *call, void *user, struct ibid_err *err);

/* The same after `pause_us`, and however many are on their way: for work that has begun, and must
 * not be lost. Its number is bounded by who begins it. IBID_NOMEM. */
IBID_CHECK enum ibid_code worker_pool_call_later(struct worker_pool *workers, const char *tenant,
                                                 int64_t pause_us, worker_fn *call, void *user,
                                                 struct ibid_err *err);

/* `after` is called on a thread that has told outcomes, one or those of a whole group, and turns to
 * something else: whoever gathers them in `done` passes them on at once. Set it before anything is
 * submitted. */
void worker_pool_after(struct worker_pool *workers, worker_fn *after, void *user);

size_t worker_pool_busy(struct worker_pool *workers); /* commands on their way, now */

#endif
