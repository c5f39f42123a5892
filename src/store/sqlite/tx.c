/* SPDX-License-Identifier: Apache-2.0 */
/* tx.c -- one command's transaction on the writer.
 *
 * It remembers why it may not commit (L3), so that a caller which goes on after an error, or a
 * callback which lost the transaction, can't make half of it durable (I1). */
#include "store/sqlite/lite.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

static void set_running(struct lite_store *store, const struct identity *identity)
{
	pthread_mutex_lock(&store->running_lock);
	store->running = identity;
	pthread_mutex_unlock(&store->running_lock);
}

static void copy_emits(struct lite_tx *tx, const struct work_context *from)
{
	const char **emits = arena_array(&tx->arena, from->emit_count, sizeof *emits);
	for (size_t i = 0; emits && i < from->emit_count; i++)
		emits[i] = arena_strdup(&tx->arena, from->emits[i]);
	tx->context.emits = emits;
}

static void copy_context(struct lite_tx *tx, const struct identity *identity,
                         const struct work_context *from)
{
	struct arena *arena = &tx->arena;
	tx->identity = (struct identity){
	    .tenant = arena_strdup(arena, identity->tenant),
	    .operation = arena_strdup(arena, identity->operation),
	    .scope = arena_strdup(arena, identity->scope),
	    .key = arena_strdup(arena, identity->key),
	};
	tx->context = *from;
	tx->context.tenant = arena_strdup(arena, from->tenant);
	tx->context.correlation_id = arena_strdup(arena, from->correlation_id);
	tx->context.causation_id = arena_strdup(arena, from->causation_id);
	tx->context.traceparent = arena_strdup(arena, from->traceparent);
	tx->context.tracestate = arena_strdup(arena, from->tracestate);
	copy_emits(tx, from);
}

static void tx_free(struct lite_tx *tx)
{
	if (!tx)
		return;
	arena_release(&tx->arena);
	free(tx);
}

enum ibid_code lite_tx_open(struct lite_store *store, const struct identity *identity,
                            const struct work_context *context, struct lite_tx **ret,
                            struct ibid_err *err)
{
	enum ibid_code code = IBID_OK;
	struct lite_tx *tx = calloc(1, sizeof *tx);
	if (tx)
		copy_context(tx, identity, context);
	if (!tx || tx->arena.failed)
		code = err_set(err, IBID_NOMEM, "out of memory");
	if (!code)
		code = lite_write_begin(store, lite_wait_us(store), &tx->conn, err);
	if (code) {
		tx_free(tx);
		return code;
	}
	tx->base.store = &store->base;
	tx->store = store;
	tx->conn->tx = tx;
	set_running(store, &tx->identity);
	*ret = tx;
	return IBID_OK;
}

enum ibid_code lite_begin_action(struct store *base, struct tx **ret, struct ibid_err *err)
{
	static const struct identity none = {.tenant = "", .operation = "", .scope = "", .key = ""};
	static const struct work_context no_command = {.tenant = ""};
	struct lite_tx *tx = NULL;
	enum ibid_code code = lite_tx_open(lite_of(base), &none, &no_command, &tx, err);
	if (!code)
		*ret = &tx->base;
	return code;
}

void lite_tx_turn(struct lite_tx *tx, const struct identity *identity,
                  const struct work_context *context)
{
	set_running(tx->store, NULL);
	tx->identity = *identity;
	tx->context = *context;
	set_running(tx->store, &tx->identity);
}

enum ibid_code lite_tx_failed(struct lite_tx *tx, enum ibid_code code, const struct ibid_err *err)
{
	if (code && !tx->doom.code) {
		tx->doom.code = code;
		tx->doom.text = arena_strdup(&tx->arena, err->text);
	}
	return code;
}

enum ibid_code lite_tx_reject(struct lite_tx *tx, const char *reason, int status, const char *text,
                              struct ibid_err *err)
{
	if (!tx->doom.code) {
		tx->doom.code = IBID_REJECTED;
		tx->doom.status = status;
		tx->doom.reason = arena_strdup(&tx->arena, reason);
		tx->doom.text = arena_strdup(&tx->arena, text);
	}
	return err_set(err, IBID_REJECTED, "%s: %s", reason, text);
}

enum ibid_code lite_tx_doom(const struct lite_tx *tx, struct arena *arena, struct outcome *ret,
                            struct ibid_err *err)
{
	const char *text = tx->doom.text ? tx->doom.text : "";
	assert(tx->doom.code);
	*ret = (struct outcome){
	    .status = tx->doom.status,
	    .reason = arena_strdup(arena, tx->doom.reason),
	    .text = arena_strdup(arena, text),
	    .unique = arena_strdup(arena, tx->doom.unique),
	};
	return err_set(err, tx->doom.code, "%s%s%s", tx->doom.reason ? tx->doom.reason : "",
	               tx->doom.reason ? ": " : "", text);
}

enum ibid_code lite_tx_ready(struct lite_tx *tx, struct ibid_err *err)
{
	if (!tx->doom.code && sqlite3_get_autocommit(tx->conn->db)) {
		err_set(err, IBID_FAILED, "a statement of the handler rolled the transaction back");
		lite_tx_failed(tx, IBID_FAILED, err);
	}
	if (tx->doom.code)
		return err_set(err, tx->doom.code, "%s", tx->doom.text ? tx->doom.text : "");
	return IBID_OK;
}

enum ibid_code lite_tx_start(struct lite_tx *tx, enum lite_sql sql, struct lite_run *run,
                             struct ibid_err *err)
{
	*run = (struct lite_run){.conn = tx->conn};
	enum ibid_code code = lite_tx_ready(tx, err);
	return code ? code : lite_start(tx->conn, sql, run, err);
}

void *lite_tx_lend(struct tx *base, bool lent)
{
	struct lite_tx *tx = lite_tx_of(base);
	tx->conn->mode = lent ? LITE_LENT : LITE_OURS;
	return tx->conn->db;
}

/* The store may be used by others from here on; the transaction's memory stays. */
static void detach(struct lite_tx *tx)
{
	tx->conn->tx = NULL;
	set_running(tx->store, NULL);
}

enum ibid_code lite_tx_commit(struct tx **base, struct arena *arena, struct outcome *ret,
                              struct ibid_err *err)
{
	struct lite_tx *tx = lite_tx_of(*base);
	*base = NULL;
	assert(tx->conn->mode == LITE_OURS);
	enum ibid_code code = lite_tx_ready(tx, err);
	detach(tx);
	if (code) {
		lite_write_rollback(tx->store);
	} else {
		code = lite_write_commit(tx->store, err);
		lite_tx_failed(tx, code, err);
	}
	if (code && code != IBID_UNKNOWN)
		code = lite_tx_doom(tx, arena, ret, err);
	tx_free(tx);
	return code;
}

void lite_tx_rollback(struct tx **base)
{
	struct lite_tx *tx = lite_tx_of(*base);
	if (!tx)
		return;
	*base = NULL;
	detach(tx);
	lite_write_rollback(tx->store);
	tx_free(tx);
}
