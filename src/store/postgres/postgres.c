/* SPDX-License-Identifier: Apache-2.0 */
/* postgres.c -- open and close the store; its verbs are in the files beside. */
#include "store/postgres/postgres.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { CONNECTIONS_DEFAULT = 16, BUSY_MS_DEFAULT = 5000 };

static void pg_close(struct store *base)
{
	struct pg_store *store = pg_store_of(base);
	pg_pool_release(store);
	free(store->url);
	free(store);
}

static const struct store_ops postgres_ops = {
    .name = "postgres",
    .close = pg_close,
    .migrate = pg_migrate,
    .check_schema = pg_check_schema,
    .apply_schema = pg_apply_schema,
    .check_decimal_column = pg_check_decimal_column,
    .describe_index = pg_describe_index,
    .make_script = pg_make_script,
    .free_script = pg_free_script,
    .prepare_scripts = pg_prepare_scripts,
    .run_group = pg_run_group,
    .lanes = pg_lanes,
    .put = pg_put,
    .change = pg_change,
    .query = pg_query,
    .claim = pg_claim,
    .resolve = pg_resolve,
    .run_script = pg_run_script,
    .run_statements = pg_run_statements,
    .run_query = pg_run_query,
    .put_event = pg_put_event,
    .put_command = pg_put_command,
    .lend = pg_lend,
    .lock_row = pg_lock_row,
    .check_tx = pg_check_tx,
    .commit = pg_commit,
    .rollback = pg_rollback,
    .adopt = pg_adopt,
    .begin_adopted = pg_begin_adopted,
    .finish_adopted = pg_finish_adopted,
    .release_adopted = pg_release_adopted,
    .renew_lease = pg_renew_lease,
    .lease_lanes = pg_lease_lanes,
    .read_lane = pg_read_lane,
    .list_held = pg_list_held,
    .settle_lane = pg_settle_lane,
    .list_outbox = pg_list_outbox,
    .count_outbox = pg_count_outbox,
    .measure_outbox = pg_measure_outbox,
    .put_duplicates = pg_put_duplicates,
    .retain_commands = pg_retain_commands,
    .retain_history = pg_retain_history,
    .next_span = pg_next_span,
    .read_span = pg_read_span,
    .drop_span = pg_drop_span,
    .restore_events = pg_restore_events,
    .erase_commands = pg_erase_commands,
    .begin_action = pg_begin_action,
    .measure = pg_measure,
    .doctor = pg_doctor,
};

/* Is the server on this machine? */
static bool is_near(const struct pg_conn *conn)
{
	const char *host = PQhost(conn->link), *address = PQhostaddr(conn->link);
	return (host && *host == '/') ||
	       (address && (strncmp(address, "127.", 4) == 0 || strcmp(address, "::1") == 0));
}

/* A first connection, so that a wrong URL shows at once; it waits in the pool. Two groups at the
 * same time make a server busy that is elsewhere, or has processors to spare; where it shares two
 * of them with us, one group at a time is larger, and costs less for each command. */
static enum ibid_code try_connection(struct pg_store *store, struct ibid_err *err)
{
	struct pg_conn *conn = NULL;
	enum ibid_code code = pg_pool_take(store, false, &conn, err);
	if (code)
		return code;
	if (!store->own.lanes)
		store->own.lanes = is_near(conn) && sysconf(_SC_NPROCESSORS_ONLN) <= 2 ? 1 : 2;
	pg_pool_give(store, conn);
	return IBID_OK;
}

enum ibid_code store_postgres_open(const struct store_options *options, struct store **ret,
                                   struct ibid_err *err)
{
	struct pg_store *store = calloc(1, sizeof *store);
	enum ibid_code code;
	if (!store)
		return err_set(err, IBID_NOMEM, "out of memory");
	store->base.ops = &postgres_ops;
	store->env = options->env ? options->env : env_system();
	store->log = options->log;
	store->busy_ms = options->busy_ms ? options->busy_ms : BUSY_MS_DEFAULT;
	code = pg_url_read(options->url, &store->url, &store->own, err);
	if (code == IBID_OK)
		code = pg_pool_init(store,
		                    options->connections ? options->connections : CONNECTIONS_DEFAULT, err);
	if (code) {
		free(store->url);
		free(store);
		return code;
	}
	code = try_connection(store, err);
	if (code) {
		pg_close(&store->base);
		return code;
	}
	store->opened = true;
	*ret = &store->base;
	return IBID_OK;
}
