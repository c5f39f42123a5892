/* SPDX-License-Identifier: Apache-2.0 */
/* claim.c -- take an identity, or see who has it.
 *
 * The advisory lock of the identity ends with the transaction, after its rows have become visible.
 * So whoever gains it, and looks in a later statement, sees everything its predecessor committed.
 * Two identities with one lock key only wait for each other. (I2) The primary key still arbitrates.
 */
#include "base/str.h"
#include "store/event_rule.h"
#include "store/postgres/postgres.h"

#include <string.h>

static int64_t lock_key(const struct str *text)
{
	struct sha256 hash = sha256(text->data, text->size);
	uint64_t key = 0;
	for (size_t i = 0; i < 8; i++)
		key = key << 8 | hash.bytes[i];
	return (int64_t)key;
}

int64_t pg_lock_key(const struct identity *identity)
{
	const char *const parts[] = {identity->tenant, identity->operation, identity->scope,
	                             identity->key};
	struct str text = STR_INIT(64 << 20);
	for (size_t i = 0; i < 4; i++)
		str_add(&text, parts[i], strlen(parts[i]) + (i < 3)); /* its NUL keeps the parts apart */
	int64_t key = lock_key(&text);
	str_release(&text);
	return key;
}

/* Names joined by commas. NULL without memory. */
static const char *join(struct arena *arena, const char *const *names, size_t count)
{
	struct str text = STR_INIT(1 << 20);
	for (size_t i = 0; names && i < count; i++) {
		str_adds(&text, i ? "," : "");
		str_adds(&text, names[i]);
	}
	const char *joined = text.failed ? NULL : arena_strdup(arena, str_text(&text));
	arena->failed |= text.failed;
	str_release(&text);
	return joined;
}

const char *pg_emits(struct arena *arena, const struct work_context *context)
{
	if (context->makes_events)
		return "!"; /* no type is called so: whatever a script emits is refused */
	const char **names = arena_array(arena, context->emit_count, sizeof *names);
	for (size_t i = 0; names && i < context->emit_count; i++) {
		const struct event_rule *rule = event_rule_find(context->rules, context->emits[i]);
		names[i] = rule ? arena_printf(arena, "%s:%d", rule->type, rule->version)
		                : context->emits[i];
	}
	return arena->failed ? NULL : join(arena, names, context->emit_count);
}

/* ---- Claim ---------------------------------------------------------------------------------- */

/* Whoever holds a lease waits for the lock: twins that only look at the row hold it for a moment
 * each, and a crowd of them would keep it from whoever only tries. */
enum { CALL_BEGIN, CALL_WAIT, CALL_WAIT_LOCK, CALL_LOCK, CALL_FIND, CALL_COUNT };
enum { CALL_BEGIN_NOW = CALL_WAIT_LOCK }; /* the first one of a claim that does not wait */

static enum ibid_code claimed(struct pg_store *store, struct arena *arena, struct pg_conn *conn,
                              const struct pg_call *calls, const struct work_context *context,
                              struct claim *ret, struct ibid_err *err)
{
	struct claim claim = {.kind = CLAIM_FREE};
	enum ibid_code code = IBID_OK;
	struct pg_tx *tx = NULL;
	bool gained = pg_cell_bool(calls[CALL_LOCK].result, 0, 0);
	if (PQntuples(calls[CALL_FIND].result)) {
		claim.kind = CLAIM_FOUND;
		code = pg_read_command(arena, calls[CALL_FIND].result, 0, &claim.row, err);
	}
	if (code) {
		pg_pool_give(store, conn);
		return code;
	}
	/* A completed row never changes again, unless it gives way: also seen past a twin that is only
	 * looking at it. */
	bool found = claim.kind == CLAIM_FOUND;
	bool anew = found && command_gives_way(&claim.row, context);
	bool completed = found && claim.row.state == COMMAND_COMPLETED && !anew;
	/* One in progress is nobody's but its worker's: nothing is to be held for others. */
	bool held = found && claim.row.state == COMMAND_IN_PROGRESS && !context->holds_lease;
	if (!gained && !completed && !held)
		claim = (struct claim){.kind = CLAIM_BUSY};
	if (arena->failed) {
		pg_pool_give(store, conn);
		return err_set(err, IBID_NOMEM, "out of memory");
	}
	if (!gained || completed || held)
		pg_pool_give(store, conn); /* rolls back */
	else
		code = pg_tx_new(store, conn, found && !anew ? &claim.row.id : &context->command_id, &tx,
		                 err);
	if (code)
		return code;
	claim.tx = tx ? &tx->base : NULL;
	*ret = claim;
	return IBID_OK;
}

enum ibid_code pg_claim(struct store *base, struct arena *arena, const struct identity *identity,
                        const struct work_context *context, struct claim *ret, struct ibid_err *err)
{
	struct pg_store *store = pg_store_of(base);
	struct pg_conn *conn;
	const char *lock[] = {
	    pg_int(arena, pg_lock_key(identity)),
	    pg_uuid(arena, &context->command_id),
	    context->tenant,
	    context->correlation_id ? context->correlation_id : "",
	    context->causation_id ? context->causation_id : "",
	    pg_emits(arena, context),
	    pg_time(arena, context->now_us),
	    pg_int(arena, store->busy_ms),
	    pg_trace(arena, context->traceparent, context->tracestate),
	};
	const char *find[] = {identity->tenant, identity->operation, identity->scope, identity->key,
	                      context->runs_again ? pg_time(arena, context->now_us) : NULL};
	struct pg_call calls[CALL_COUNT] = {
	    [CALL_BEGIN_NOW] = PG_CALL(BEGIN),
	    [CALL_LOCK] = PG_CALL(CLAIM_LOCK, .values = lock),
	    [CALL_FIND] = PG_CALL(CLAIM_FIND, .values = find),
	};
	const char *wait[] = {pg_int(arena, store->busy_ms)};
	size_t first = CALL_BEGIN_NOW;
	if (context->holds_lease) {
		calls[CALL_BEGIN] = PG_CALL(BEGIN);
		calls[CALL_WAIT] = PG_CALL(RESOLVE_WAIT, .values = wait);
		calls[CALL_WAIT_LOCK] = PG_CALL(RESOLVE_LOCK, .values = lock);
		first = CALL_BEGIN;
	}
	if (arena->failed)
		return err_set(err, IBID_NOMEM, "out of memory");
	enum ibid_code code = pg_pool_trip(store, calls + first, CALL_COUNT - first, &conn, err);
	if (code == IBID_OK)
		code = claimed(store, arena, conn, calls, context, ret, err);
	pg_release(calls + first, CALL_COUNT - first);
	return code;
}

/* ---- A row that commands contend for -------------------------------------------------------- */

/* Every command takes one at most, before it touches a row: nobody waits here who holds what
 * another one here waits for. */
enum ibid_code pg_lock_row(struct tx *base, const char *row, struct ibid_err *err)
{
	struct pg_tx *tx = pg_tx_of(base);
	struct str text = STR_INIT(64 << 20);
	struct pg_trip trip;
	enum ibid_code code = IBID_OK;
	str_add(&text, "row", sizeof "row"); /* with its NUL: no identity has these parts */
	str_adds(&text, row);
	const char *values[] = {text.failed ? NULL : pg_int(&tx->arena, lock_key(&text))};
	str_release(&text);
	if (!values[0])
		return err_set(err, IBID_NOMEM, "out of memory");
	struct pg_call call = PG_CALL(RESOLVE_LOCK, .values = values);
	if (!pg_trip(tx->conn, &call, 1, &trip)) {
		code = pg_error(tx->conn, pg_trip_error(tx->conn, &call, 1, &trip), err);
		(void)pg_tx_doom(tx, err, NULL);
	}
	pg_release(&call, 1);
	return code;
}

/* ---- Resolve -------------------------------------------------------------------------------- */

enum { RESOLVE_BEGIN, RESOLVE_WAIT, RESOLVE_LOCK, RESOLVE_FIND, RESOLVE_ROLLBACK, RESOLVE_COUNT };
enum { RETRY_PAUSE_US = 50000, CONNECT_SECONDS_MAX = 10 };

/* One look on one connection, which is closed afterwards. It rolls back before it is: the server
 * takes its time to notice a closed connection, and would hold the lock against the next claim. */
static enum ibid_code look(struct pg_conn *conn, struct arena *arena,
                           const struct identity *identity, int64_t wait_us, struct claim *ret,
                           struct ibid_err *err)
{
	int64_t wait_ms = wait_us / 1000;
	const char *wait[] = {pg_int(arena, wait_ms > 1 ? wait_ms : 1)}; /* 0 would wait for ever */
	const char *lock[] = {pg_int(arena, pg_lock_key(identity))};
	const char *find[] = {identity->tenant, identity->operation, identity->scope, identity->key,
	                      NULL};
	struct pg_call calls[RESOLVE_COUNT] = {
	    [RESOLVE_BEGIN] = PG_CALL(BEGIN),
	    [RESOLVE_WAIT] = PG_CALL(RESOLVE_WAIT, .values = wait),
	    [RESOLVE_LOCK] = PG_CALL(RESOLVE_LOCK, .values = lock),
	    [RESOLVE_FIND] = PG_CALL(CLAIM_FIND, .values = find),
	    [RESOLVE_ROLLBACK] = PG_CALL(ROLLBACK),
	};
	struct pg_trip trip;
	struct claim claim = {.kind = CLAIM_FREE};
	enum ibid_code code = IBID_OK;
	if (arena->failed)
		return err_set(err, IBID_NOMEM, "out of memory");
	if (!pg_trip(conn, calls, RESOLVE_COUNT, &trip))
		code = pg_error(conn, pg_trip_error(conn, calls, RESOLVE_COUNT, &trip), err);
	bool standby = trip.done > RESOLVE_WAIT && pg_cell_bool(calls[RESOLVE_WAIT].result, 0, 0);
	if (standby) {
		code = err_set(err, IBID_UNAVAILABLE, "not the primary: the server is in recovery");
	} else if (code == IBID_BUSY && trip.done == RESOLVE_LOCK) {
		claim.kind = CLAIM_BUSY;
		code = IBID_OK;
	} else if (code == IBID_OK && PQntuples(calls[RESOLVE_FIND].result)) {
		claim.kind = CLAIM_FOUND;
		code = pg_read_command(arena, calls[RESOLVE_FIND].result, 0, &claim.row, err);
	}
	pg_release(calls, RESOLVE_COUNT);
	if (code == IBID_OK && arena->failed)
		code = err_set(err, IBID_NOMEM, "out of memory");
	if (code == IBID_OK)
		*ret = claim;
	return code;
}

/* The pool is not asked: its connections may lead to a server that is no longer the primary, and
 * all of them may be waiting for answers like this one. */
enum ibid_code pg_resolve(struct store *base, struct arena *arena, const struct identity *identity,
                          int64_t wait_us, struct claim *ret, struct ibid_err *err)
{
	struct pg_store *store = pg_store_of(base);
	int64_t deadline_us = env_steady_us(store->env) + wait_us, left_us = wait_us;
	for (;;) {
		struct pg_conn *conn = NULL;
		int64_t seconds = left_us / 1000000 + 1;
		enum ibid_code code = pg_connect(
		    store, seconds < CONNECT_SECONDS_MAX ? (int)seconds : CONNECT_SECONDS_MAX, &conn, err);
		left_us = deadline_us - env_steady_us(store->env);
		if (code == IBID_OK)
			code = look(conn, arena, identity, left_us, ret, err);
		pg_disconnect(conn);
		left_us = deadline_us - env_steady_us(store->env);
		if (code != IBID_UNAVAILABLE || left_us <= 0)
			return code;
		env_sleep_us(store->env, left_us < RETRY_PAUSE_US ? left_us : RETRY_PAUSE_US);
		left_us = deadline_us - env_steady_us(store->env);
	}
}
