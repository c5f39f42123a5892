/* SPDX-License-Identifier: Apache-2.0 */
/* store.c -- opening and closing a store on one SQLite file. */
#include "store/sqlite/lite.h"
#include "store/sqlite/path.h"

#include <stdlib.h>

static void lite_close(struct store *base)
{
	struct lite_store *store = lite_of(base);
	lite_mover_release(&store->mover);
	lite_pool_release(&store->pool);
	lite_conn_close(store->writer);
	lite_checkpointer_release(store); /* last: see there */
	gate_release(&store->gate);
	pthread_mutex_destroy(&store->running_lock);
	pthread_mutex_destroy(&store->checkpoint_lock);
	lite_file_release(store);
	free(store->path);
	free(store);
}

static const struct store_ops ops = {
    .name = "sqlite",
    .close = lite_close,
    .migrate = lite_migrate,
    .check_schema = lite_check_schema,
    .apply_schema = lite_apply_schema,
    .check_decimal_column = lite_check_decimal_column,
    .describe_index = lite_describe_index,
    .make_script = lite_make_script,
    .free_script = lite_free_script,
    .prepare_scripts = lite_prepare_scripts,
    .put = lite_put,
    .change = lite_change,
    .query = lite_query,
    .check_settled = lite_check_settled,
    .claim = lite_claim,
    .run_group = lite_run_group,
    .lanes = lite_lanes,
    .one_writer = true,
    .resolve = lite_resolve,
    .run_script = lite_run_script,
    .run_statements = lite_run_statements,
    .run_query = lite_run_query,
    .put_event = lite_put_event,
    .put_command = lite_put_command,
    .lend = lite_tx_lend,
    .commit = lite_tx_commit,
    .rollback = lite_tx_rollback,
    .adopt = lite_adopt,
    .begin_adopted = lite_begin_adopted,
    .finish_adopted = lite_finish_adopted,
    .release_adopted = lite_release_adopted,
    .renew_lease = lite_renew_lease,
    .lease_lanes = lite_lease_lanes,
    .read_lane = lite_read_lane,
    .list_held = lite_list_held,
    .settle_lane = lite_settle_lane,
    .count_outbox = lite_count_outbox,
    .measure_outbox = lite_measure_outbox,
    .list_outbox = lite_list_outbox,
    .put_duplicates = lite_put_duplicates,
    .retain_commands = lite_retain_commands,
    .retain_history = lite_retain_history,
    .next_span = lite_next_span,
    .read_span = lite_read_span,
    .drop_span = lite_drop_span,
    .restore_events = lite_restore_events,
    .erase_commands = lite_erase_commands,
    .begin_action = lite_begin_action,
    .measure = lite_measure,
    .ready = lite_ready,
    .doctor = lite_doctor,
};

static enum ibid_code store_new(const struct store_options *options, char *path,
                                struct lite_store **ret, struct ibid_err *err)
{
	struct lite_store *store = calloc(1, sizeof *store);
	if (!store) {
		free(path);
		return err_set(err, IBID_NOMEM, "out of memory");
	}
	store->base.ops = &ops;
	store->path = path;
	store->busy_ms = options->busy_ms ? options->busy_ms : LITE_BUSY_MS_DEFAULT;
	store->env = options->env;
	store->log = options->log;
	gate_init(&store->gate);
	pthread_mutex_init(&store->running_lock, NULL);
	pthread_mutex_init(&store->checkpoint_lock, NULL);
	lite_mover_init(&store->mover);
	*ret = store;
	return lite_pool_init(&store->pool,
	                      options->connections ? options->connections : LITE_READERS_DEFAULT, err);
}

/* The checkpointer is opened first and shows whether the file is a database. A file that is ours is
 * put into WAL mode, which a restored copy may have lost; one that is not yet is left as it is. */
static enum ibid_code open_file(struct lite_store *store, bool create, struct ibid_err *err)
{
	struct lite_conn_options options = {
	    .path = store->path,
	    .env = store->env,
	    .role = LITE_CHECKPOINTER,
	    .create = create,
	    .busy_ms = store->busy_ms,
	    .hook = &store->base.hook,
	};
	int version = 0;
	enum ibid_code code = lite_conn_open(&options, &store->checkpointer, err);
	if (!code)
		code = lite_schema_version(store->checkpointer, &version, err);
	if (!code && version > 0)
		code = lite_use_wal(store, err);
	if (!code)
		code = lite_file_remember(store, version > 0, err);
	if (!code)
		lite_checkpointer_look(store);
	return code;
}

enum ibid_code store_sqlite_open(const struct store_options *options, const char *path,
                                 struct store **ret, struct ibid_err *err)
{
	char *absolute = NULL;
	struct lite_store *store = NULL;
	enum ibid_code code = lite_path_resolve(path, options->create, &absolute, err);
	if (!code)
		code = store_new(options, absolute, &store, err);
	if (!code)
		code = open_file(store, options->create, err);
	if (code && store)
		lite_close(&store->base);
	else if (!code)
		*ret = &store->base;
	return code;
}
