/* SPDX-License-Identifier: Apache-2.0 */
/* adopt.c -- commands in a transaction of the caller's: one door for each engine. */
#include "api/api.h"

enum ibid_code ibid_adopt_sqlite(struct ibid *ibid, struct sqlite3 *db,
                                 const struct ibid_command *command,
                                 struct ibid_adopted **ret_adopted, struct ibid_result **ret,
                                 struct ibid_err *err)
{
	struct ibid_err spare;
	return ledger_adopt(ibid->ledger, "sqlite", db, command, ret_adopted, ret, err_or(err, &spare));
}

enum ibid_code ibid_adopt_postgres(struct ibid *ibid, struct pg_conn *conn,
                                   const struct ibid_command *command,
                                   struct ibid_adopted **ret_adopted, struct ibid_result **ret,
                                   struct ibid_err *err)
{
	struct ibid_err spare;
	return ledger_adopt(ibid->ledger, "postgres", conn, command, ret_adopted, ret,
	                    err_or(err, &spare));
}
