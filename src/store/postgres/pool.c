/* SPDX-License-Identifier: Apache-2.0 */
/* pool.c -- up to `most` connections, the last one used first.
 *
 * `open` counts the idle ones, the lent ones and those being opened, so that opening happens
 * outside the lock and still never exceeds the cap. */
#include "store/postgres/postgres.h"

#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <time.h>

enum { CONNECT_SECONDS = 10 };

enum ibid_code pg_pool_init(struct pg_store *store, unsigned most, struct ibid_err *err)
{
	pthread_condattr_t attributes;
	store->pool.most = most;
	if (pthread_mutex_init(&store->pool.lock, NULL))
		return err_set(err, IBID_NOMEM, "no mutex");
	pthread_condattr_init(&attributes);
	pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	int failed = pthread_cond_init(&store->pool.changed, &attributes);
	pthread_condattr_destroy(&attributes);
	if (failed) {
		pthread_mutex_destroy(&store->pool.lock);
		return err_set(err, IBID_NOMEM, "no condition variable");
	}
	return IBID_OK;
}

static void close_list(struct pg_conn *conn)
{
	while (conn) {
		struct pg_conn *next = conn->next;
		pg_disconnect(conn);
		conn = next;
	}
}

void pg_pool_release(struct pg_store *store)
{
	close_list(store->pool.idle);
	pthread_cond_destroy(&store->pool.changed);
	pthread_mutex_destroy(&store->pool.lock);
}

/* ---- Taking --------------------------------------------------------------------------------- */

/* The wait for a connection is real, whatever clock the tests move: other threads hold them. */
static struct timespec deadline_after(unsigned ms)
{
	struct timespec deadline;
	clock_gettime(CLOCK_MONOTONIC, &deadline);
	deadline.tv_sec += ms / 1000;
	deadline.tv_nsec += (long)(ms % 1000) * 1000000;
	if (deadline.tv_nsec >= 1000000000) {
		deadline.tv_nsec -= 1000000000;
		deadline.tv_sec++;
	}
	return deadline;
}

/* Wait for an idle connection, or for room to open one. False when neither came in time. */
static bool wait_for_one(struct pg_store *store)
{
	struct pg_pool *pool = &store->pool;
	struct timespec deadline = deadline_after(store->busy_ms);
	while (!pool->idle && pool->open >= pool->most)
		if (pthread_cond_timedwait(&pool->changed, &pool->lock, &deadline) == ETIMEDOUT)
			return pool->idle || pool->open < pool->most;
	return true;
}

/* Where one idle connection has died, the server was restarted and the others have too. */
static struct pg_conn *take_all_idle(struct pg_pool *pool)
{
	struct pg_conn *all = pool->idle;
	for (struct pg_conn *conn = all; conn; conn = conn->next)
		pool->open--;
	pool->idle = NULL;
	return all;
}

static void leave(struct pg_pool *pool)
{
	pthread_mutex_lock(&pool->lock);
	pool->open--;
	pthread_cond_signal(&pool->changed);
	pthread_mutex_unlock(&pool->lock);
}

enum ibid_code pg_pool_take(struct pg_store *store, bool fresh, struct pg_conn **ret,
                            struct ibid_err *err)
{
	struct pg_pool *pool = &store->pool;
	struct pg_conn *conn = NULL, *stale = NULL;
	pthread_mutex_lock(&pool->lock);
	if (fresh)
		stale = take_all_idle(pool);
	bool got = wait_for_one(store);
	if (got && pool->idle && !fresh) {
		conn = pool->idle;
		pool->idle = conn->next;
	} else if (got && pool->idle) { /* given back meanwhile: its place is what counts */
		stale = pool->idle;
		pool->idle = stale->next;
		stale->next = NULL;
	} else if (got) {
		pool->open++;
	}
	pthread_mutex_unlock(&pool->lock);
	close_list(stale);
	if (!got)
		return err_set(
		    err, IBID_BUSY,
		    "all %u connections to PostgreSQL were in use for %u ms; a server has more by the "
		    "setting http.connections",
		    pool->most, store->busy_ms);
	if (conn) {
		conn->next = NULL;
		*ret = conn;
		return IBID_OK;
	}
	enum ibid_code code = pg_connect(store, CONNECT_SECONDS, ret, err);
	if (code)
		leave(pool);
	/* IBID_NOT_FOUND from a verb means that a record is missing, not the database. */
	if (code == IBID_NOT_FOUND && store->opened) {
		err->code = code = IBID_UNAVAILABLE;
		err->next = err_next_of(code);
	}
	return code;
}

/* Has the server said nothing since? What it says to who did not ask is good-bye, as a rule. */
static bool is_alive(const struct pg_conn *conn)
{
	struct pollfd fd = {PQsocket(conn->link), POLLIN, 0};
	return poll(&fd, 1, 0) == 0;
}

enum ibid_code pg_pool_take_alive(struct pg_store *store, struct pg_conn **ret,
                                  struct ibid_err *err)
{
	struct pg_conn *conn = NULL;
	enum ibid_code code = pg_pool_take(store, false, &conn, err);
	if (!code && conn->rested && !is_alive(conn)) {
		conn->broken = true;
		pg_pool_give(store, conn);
		code = pg_pool_take(store, true, &conn, err);
	}
	if (!code)
		*ret = conn;
	return code;
}

/* ---- Giving back ---------------------------------------------------------------------------- */

/* P2. */
static bool bring_to_rest(struct pg_conn *conn)
{
	struct pg_call call = PG_CALL(ROLLBACK);
	struct pg_trip trip;
	if (conn->broken || PQpipelineStatus(conn->link) != PQ_PIPELINE_ON)
		return false;
	if (PQtransactionStatus(conn->link) == PQTRANS_IDLE)
		return true;
	bool done = pg_trip(conn, &call, 1, &trip);
	pg_release(&call, 1);
	return done && !conn->broken && PQtransactionStatus(conn->link) == PQTRANS_IDLE;
}

void pg_pool_give(struct pg_store *store, struct pg_conn *conn)
{
	struct pg_pool *pool = &store->pool;
	if (!conn)
		return;
	bool keep = bring_to_rest(conn) && !conn->spoiled;
	if (!keep) {
		pg_disconnect(conn);
		leave(pool);
		return;
	}
	pthread_mutex_lock(&pool->lock);
	conn->rested = true;
	conn->next = pool->idle;
	pool->idle = conn;
	pthread_cond_signal(&pool->changed);
	pthread_mutex_unlock(&pool->lock);
}

/* ---- First trips ---------------------------------------------------------------------------- */

enum ibid_code pg_pool_trip(struct pg_store *store, struct pg_call *calls, size_t count,
                            struct pg_conn **ret, struct ibid_err *err)
{
	for (bool fresh = false;; fresh = true) {
		struct pg_conn *conn = NULL;
		struct pg_trip trip;
		struct ibid_err own;
		enum ibid_code code = pg_pool_take(store, fresh, &conn, err);
		if (code)
			return code;
		assert(conn);
		bool rested = conn->rested;
		if (pg_trip(conn, calls, count, &trip)) {
			*ret = conn;
			return IBID_OK;
		}
		const PGresult *failed = pg_trip_error(conn, calls, count, &trip);
		bool lost = pg_error_is_fatal(conn, failed);
		code = pg_error(conn, failed, &own);
		conn->broken |= lost;
		pg_release(calls, count);
		pg_pool_give(store, conn);
		if (!lost || !rested || fresh) {
			*err = own;
			return code;
		}
		LOG(&store->log, IBID_LOG_WARN, "store.reconnect", {"reason", log_text(own.text)});
	}
}

enum ibid_code pg_pool_query(struct pg_store *store, struct pg_call *calls, size_t count,
                             struct ibid_err *err)
{
	struct pg_conn *conn = NULL;
	enum ibid_code code = pg_pool_trip(store, calls, count, &conn, err);
	if (code == IBID_OK)
		pg_pool_give(store, conn);
	return code;
}
