/* SPDX-License-Identifier: Apache-2.0 */
/* stage.c -- the lease of a command that is worked on outside any transaction. The file has no
 * clock of its own: time is the process's. */
#include "store/sqlite/lite.h"

static enum ibid_code renew(struct lite_conn *conn, const char *tenant, const struct uuid *id,
                            int64_t token, int64_t until_us, struct ibid_err *err)
{
	struct lite_run run;
	enum ibid_code code = lite_start(conn, LITE_lease_renew, &run, err);
	lite_bind_text(&run, tenant);
	lite_bind_uuid(&run, id);
	lite_bind_int(&run, token);
	lite_bind_int(&run, until_us);
	if (!code)
		code = lite_finish(&run, err);
	if (!code && sqlite3_changes(conn->db) != 1)
		code = err_set(err, IBID_FENCED,
		               "the lease of this command has ended and another worker has taken it over");
	lite_end(&run);
	return code;
}

enum ibid_code lite_renew_lease(struct store *base, const char *tenant, const struct uuid *id,
                                int64_t token, int64_t lease_us, struct ibid_err *err)
{
	struct lite_store *store = lite_of(base);
	struct lite_conn *conn;
	enum ibid_code code = lite_write_begin(store, lite_wait_us(store), &conn, err);
	if (code)
		return code;
	code = renew(conn, tenant, id, token, env_wall_us(store->env) + lease_us, err);
	return lite_write_end(store, code, err);
}
