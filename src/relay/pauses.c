/* SPDX-License-Identifier: Apache-2.0 */
#include "relay/pauses.h"

#include "relay/notice.h"

#include <string.h>

void pauses_init(struct pauses *pauses, const char *destination, const struct log *log)
{
	*pauses = (struct pauses){.destination = destination, .log = log, .now = {.all = true}};
	pthread_mutex_init(&pauses->lock, NULL);
}

void pauses_release(struct pauses *pauses)
{
	paused_release(&pauses->now);
	pthread_mutex_destroy(&pauses->lock);
}

void paused_release(struct paused *copy)
{
	arena_release(&copy->arena);
	*copy = (struct paused){.all = true};
}

bool paused_has_type(const struct paused *copy, const char *tenant, const char *type)
{
	for (size_t i = 0; i < copy->count; i++)
		if (strcmp(copy->types[i].name, type) == 0 && strcmp(copy->types[i].tenant, tenant) == 0)
			return true;
	return false;
}

/* ---- Reading -------------------------------------------------------------------------------- */

/* Of the rows those that concern the destination stay, in their order: what stops it, then event
 * types. Returns how many. */
static size_t sort_out(struct paused *paused, struct pause_row *rows, size_t count,
                       const char *destination)
{
	size_t kept = 0;
	for (size_t i = 0; i < count; i++) {
		if (rows[i].kind == PAUSE_DESTINATION && strcmp(rows[i].name, destination) != 0)
			continue;
		paused->all |= rows[i].kind != PAUSE_EVENT;
		paused->count += rows[i].kind == PAUSE_EVENT;
		rows[kept++] = rows[i];
	}
	paused->types = rows + (kept - paused->count);
	return kept;
}

static bool same(const struct pauses *pauses, const struct pause_row *rows, size_t count)
{
	bool same = pauses->row_count == count;
	for (size_t i = 0; same && i < count; i++)
		same = notice_same_pause(&pauses->rows[i], &rows[i]);
	return same;
}

static enum ibid_code read_now(struct pauses *pauses, struct store *store, struct pauses_news *ret,
                               struct ibid_err *err)
{
	const struct notice notice = {pauses->log, pauses->destination};
	struct paused read = {.version = pauses->version + 1};
	struct pause_row *rows = NULL;
	size_t count = 0;
	enum ibid_code code = store_list_pauses(store, &read.arena, NULL, &rows, &count, err);
	if (!code)
		count = sort_out(&read, rows, count, pauses->destination);
	ret->changed = !code && (!pauses->version || !same(pauses, rows, count));
	ret->resumed = ret->changed && pauses->version && pauses->now.all && !read.all;
	if (!ret->changed) {
		arena_release(&read.arena);
		return code;
	}
	read.resumed = pauses->now.resumed + ret->resumed;
	notice_pauses(&notice, pauses->rows, pauses->row_count, rows, count);
	arena_release(&pauses->now.arena);
	pauses->now = read;
	pauses->rows = rows;
	pauses->row_count = count;
	pauses->version = read.version;
	return IBID_OK;
}

/* Whoever reads keeps others from it meanwhile: what was read earlier never replaces what was read
 * later. */
enum ibid_code pauses_read(struct pauses *pauses, struct store *store, struct pauses_news *ret,
                           struct ibid_err *err)
{
	pthread_mutex_lock(&pauses->lock);
	enum ibid_code code = read_now(pauses, store, ret, err);
	pthread_mutex_unlock(&pauses->lock);
	return code;
}

bool pauses_any(struct pauses *pauses)
{
	pthread_mutex_lock(&pauses->lock);
	bool any = pauses->row_count > 0;
	pthread_mutex_unlock(&pauses->lock);
	return any;
}

/* ---- Copies --------------------------------------------------------------------------------- */

bool paused_is_old(const struct paused *copy, struct pauses *pauses)
{
	return copy->version != pauses->version;
}

void paused_renew(struct paused *copy, struct pauses *pauses)
{
	paused_release(copy);
	pthread_mutex_lock(&pauses->lock);
	const struct paused *now = &pauses->now;
	struct pause_row *types = arena_array(&copy->arena, now->count + 1, sizeof *types);
	for (size_t i = 0; types && i < now->count; i++)
		types[i] = (struct pause_row){.kind = PAUSE_EVENT,
		                              .tenant = arena_strdup(&copy->arena, now->types[i].tenant),
		                              .name = arena_strdup(&copy->arena, now->types[i].name)};
	if (!copy->arena.failed) {
		copy->all = now->all;
		copy->types = types;
		copy->count = now->count;
		copy->version = now->version;
		copy->resumed = now->resumed;
	}
	pthread_mutex_unlock(&pauses->lock);
}
