/* SPDX-License-Identifier: Apache-2.0 */
/* run_script.h -- the prepared statements of scripts, kept with the connection that made them. */
#ifndef STORE_SQLITE_RUN_SCRIPT_H
#define STORE_SQLITE_RUN_SCRIPT_H

struct lite_conn;

void lite_prepared_free_all(struct lite_conn *conn);

#endif
