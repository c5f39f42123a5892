/* SPDX-License-Identifier: Apache-2.0 */
/* server.h -- `ibid serve`: the ledger over HTTP.
 *
 * One thread reads and writes all connections and never waits for a store; a workers of others
 * brings commands to their outcomes. A request that waits is a suspended connection, not a thread.
 */
#ifndef HTTP_SERVER_H
#define HTTP_SERVER_H

#include "base/log.h"
#include "http/settings.h"

/* Serve until SIGTERM or SIGINT; on SIGHUP read the contracts again. `ready` is called once with
 * the address that clients use. IBID_OK after a clean end: every request that was whole was
 * answered. IBID_BUSY: some are still running; the settings and all else that they use must stay as
 * they are until the process has ended. */
typedef void server_ready(void *user, const char *address);
IBID_CHECK enum ibid_code server_run(const struct settings *settings, struct log log,
                                     server_ready *ready, void *user, struct ibid_err *err);

#endif
