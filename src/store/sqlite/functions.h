/* SPDX-License-Identifier: Apache-2.0 */
/* functions.h -- what scripts may call: exact decimals, and what speaks for their command. */
#ifndef STORE_SQLITE_FUNCTIONS_H
#define STORE_SQLITE_FUNCTIONS_H

#include "store/sqlite/conn.h"

/* decimal_cmp, decimal_add, decimal_sub, decimal_mul, decimal_sum. An SQLite result code. */
int lite_functions_register(sqlite3 *db);

/* ibid_emit, ibid_reject and those of work.h, most for the command that runs on the connection
 * (conn->tx). */
int lite_functions_register_work(struct lite_conn *conn);

#endif
