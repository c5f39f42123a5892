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
    .put_contract = pg_put_contract,
    .get_contract = pg_get_contract,
    .make_script = pg_make_script,
    .free_script = pg_free_script,
    .prepare_scripts = pg_prepare_scripts,
    .express = pg_express,
    .run_group = pg_run_group,
    .lanes = pg_lanes,
    .claim = pg_claim,
    .resolve = pg_resolve,
    .run_script = pg_run_script,
    .run_query = pg_run_query,
    .put_event = pg_put_event,
    .put_audit = pg_put_audit,
    .put_command = pg_put_command,
    .put_exception = pg_put_exception,
    .resolve_exception = pg_resolve_exception,
    .put_payload = pg_put_payload,
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
    .list_stale = pg_list_stale,
    .list_unknown = pg_list_unknown,
    .lease_lanes = pg_lease_lanes,
    .read_lane = pg_read_lane,
    .list_held = pg_list_held,
    .settle_lane = pg_settle_lane,
    .decide_hold = pg_decide_hold,
    .withdraw_event = pg_withdraw_event,
    .list_holds = pg_list_holds,
    .list_lanes = pg_list_lanes,
    .count_outbox = pg_count_outbox,
    .measure_outbox = pg_measure_outbox,
    .list_deliveries = pg_list_deliveries,
    .list_outbox = pg_list_outbox,
    .get_event = pg_get_event,
    .put_evidence = pg_put_evidence,
    .put_duplicates = pg_put_duplicates,
    .get_duplicates = pg_get_duplicates,
    .list_duplicates = pg_list_duplicates,
    .retain_commands = pg_retain_commands,
    .retain_history = pg_retain_history,
    .next_span = pg_next_span,
    .read_span = pg_read_span,
    .drop_span = pg_drop_span,
    .restore_events = pg_restore_events,
    .list_archives = pg_list_archives,
    .erase_commands = pg_erase_commands,
    .list_erasures = pg_list_erasures,
    .get_command = pg_get_command,
    .list_commands = pg_list_commands,
    .list_events = pg_list_events,
    .list_audit = pg_list_audit,
    .list_evidence = pg_list_evidence,
    .get_exception = pg_get_exception,
    .get_payload = pg_get_payload,
    .list_exceptions = pg_list_exceptions,
    .begin_action = pg_begin_action,
    .assign_exception = pg_assign_exception,
    .put_action = pg_put_action,
    .put_pause = pg_put_pause,
    .end_pause = pg_end_pause,
    .list_pauses = pg_list_pauses,
    .put_approval = pg_put_approval,
    .decide_approval = pg_decide_approval,
    .list_actions = pg_list_actions,
    .list_approvals = pg_list_approvals,
    .list_references = pg_list_references,
    .put_token = pg_put_token,
    .get_token = pg_get_token,
    .list_tokens = pg_list_tokens,
    .revoke_token = pg_revoke_token,
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
