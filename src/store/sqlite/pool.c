/* SPDX-License-Identifier: Apache-2.0 */
/* pool.c -- connections that look, opened when first needed. Readers never wait for the writer. */
#include "store/sqlite/lite.h"

#include <stdlib.h>

enum ibid_code lite_pool_init(struct lite_pool *pool, size_t cap, struct ibid_err *err)
{
	pthread_mutex_init(&pool->lock, NULL);
	steady_cond_init(&pool->freed);
	pool->cap = cap;
	pool->idle = calloc(cap, sizeof(struct lite_conn *));
	return pool->idle ? IBID_OK : err_set(err, IBID_NOMEM, "out of memory");
}

void lite_pool_release(struct lite_pool *pool)
{
	for (size_t i = 0; i < pool->idle_count; i++)
		lite_conn_close(pool->idle[i]);
	free(pool->idle);
	pthread_cond_destroy(&pool->freed);
	pthread_mutex_destroy(&pool->lock);
}

/* An idle connection in `*ret`, or the right to open one (NULL there); false: none came free. */
static bool take_place(struct lite_pool *pool, int64_t wait_us, struct lite_conn **ret)
{
	struct timespec until = steady_after(wait_us);
	int failed = 0;
	bool taken = true;
	pthread_mutex_lock(&pool->lock);
	while (!pool->idle_count && pool->open_count == pool->cap && !failed)
		failed = pthread_cond_timedwait(&pool->freed, &pool->lock, &until);
	*ret = NULL;
	if (pool->idle_count)
		*ret = pool->idle[--pool->idle_count];
	else if (pool->open_count < pool->cap)
		pool->open_count++;
	else
		taken = false;
	pthread_mutex_unlock(&pool->lock);
	return taken;
}

static void give_place(struct lite_pool *pool, struct lite_conn *conn)
{
	pthread_mutex_lock(&pool->lock);
	if (conn)
		pool->idle[pool->idle_count++] = conn;
	else
		pool->open_count--;
	pthread_cond_signal(&pool->freed);
	pthread_mutex_unlock(&pool->lock);
}

enum ibid_code lite_reader_take(struct lite_store *store, struct lite_conn **ret,
                                struct ibid_err *err)
{
	struct lite_conn *conn;
	enum ibid_code code = lite_file_noted(store, err);
	if (code)
		return code;
	if (!take_place(&store->pool, lite_wait_us(store), &conn))
		return err_set(err, IBID_BUSY, "all %zu reading connections to %s are in use: try again",
		               store->pool.cap, store->path);
	if (!conn) {
		struct lite_conn_options options = {
		    .path = store->path,
		    .env = store->env,
		    .role = LITE_READER,
		    .busy_ms = store->busy_ms,
		    .hook = &store->base.hook,
		};
		code = lite_file_connect(store, &options, &conn, err);
		if (code) {
			give_place(&store->pool, NULL);
			return code;
		}
	}
	*ret = conn;
	return IBID_OK;
}

void lite_reader_give(struct lite_store *store, struct lite_conn *conn)
{
	if (conn)
		give_place(&store->pool, conn);
}
