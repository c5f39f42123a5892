/* SPDX-License-Identifier: Apache-2.0 */
/* duplicates.c -- count commands that came again, without a write in the caller's path.
 *
 * Callers note duplicates in a batch in memory. A thread, started by the first note, takes the
 * batch when it is old or large enough and writes it in one go; meanwhile the next one fills. A
 * batch that can't be written is kept and tried again.
 *
 * (D1) Both batches are bounded: at most COMMANDS_MAX commands and SEEN_MAX entries each.
 * (D2) Nothing is dropped silently: an entry beyond the bound is counted as not listed; a command
 * beyond it is logged as lost, as is what a close can't write. A crash loses what was not written.
 */
#include "command/duplicates.h"

#include "base/steady.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
	COMMANDS_MAX = 65536,
	SEEN_MAX = 8192,
	BUCKETS = 4096,
	LARGE = 1024,     /* notes that are written at once */
	OLD_US = 1000000, /* or after this time */
};
_Static_assert((BUCKETS & (BUCKETS - 1)) == 0, "buckets are chosen by mask");

struct batch {
	struct arena arena;
	struct duplicate_row *rows;
	size_t *next; /* of each row, in its bucket; one more than the index, 0 ends */
	size_t row_count, row_room;
	struct duplicate_seen_row *seen;
	size_t seen_count, seen_room;
	size_t buckets[BUCKETS];
	int64_t lost;
};

struct duplicates {
	struct store *store;
	struct log log;
	pid_t pid;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	pthread_t thread;
	bool running, stop;    /* under the lock */
	struct batch *filling; /* under the lock */
	struct batch *writing; /* the thread's; NULL: none */
};

/* ---- A batch -------------------------------------------------------------------------------- */

static void batch_free(struct batch *batch)
{
	if (!batch)
		return;
	arena_release(&batch->arena);
	free(batch->rows);
	free(batch->next);
	free(batch->seen);
	free(batch);
}

static bool batch_empty(const struct batch *batch)
{
	return !batch->row_count && !batch->lost;
}

static bool batch_large(const struct batch *batch)
{
	return batch->row_count + batch->seen_count >= LARGE;
}

static bool grow(void **items, size_t size, size_t room)
{
	void *larger = realloc(*items, room * size);
	if (larger)
		*items = larger;
	return larger;
}

static bool row_fits(struct batch *batch)
{
	size_t room = batch->row_room ? 2 * batch->row_room : 64;
	if (batch->row_count < batch->row_room)
		return true;
	if (batch->row_count >= COMMANDS_MAX ||
	    !grow((void **)&batch->rows, sizeof *batch->rows, room) ||
	    !grow((void **)&batch->next, sizeof *batch->next, room))
		return false;
	batch->row_room = room;
	return true;
}

static bool seen_fits(struct batch *batch)
{
	size_t room = batch->seen_room ? 2 * batch->seen_room : 64;
	if (batch->seen_count < batch->seen_room)
		return true;
	if (batch->seen_count >= SEEN_MAX || !grow((void **)&batch->seen, sizeof *batch->seen, room))
		return false;
	batch->seen_room = room;
	return true;
}

/* The row of a command, a new one where there is none; NULL: no room. The last bytes of an id are
 * random. */
static struct duplicate_row *row_of(struct batch *batch, const struct duplicate_seen_row *seen)
{
	const unsigned char *id = seen->command_id.bytes;
	size_t *bucket = &batch->buckets[(id[14] << 8 | id[15]) & (BUCKETS - 1)];
	for (size_t at = *bucket; at; at = batch->next[at - 1]) {
		struct duplicate_row *row = &batch->rows[at - 1];
		if (memcmp(&row->command_id, &seen->command_id, sizeof row->command_id) == 0 &&
		    strcmp(row->tenant, seen->tenant) == 0)
			return row;
	}
	const char *tenant = row_fits(batch) ? arena_strdup(&batch->arena, seen->tenant) : NULL;
	if (!tenant)
		return NULL;
	size_t index = batch->row_count++;
	batch->next[index] = *bucket;
	*bucket = index + 1;
	batch->rows[index] = (struct duplicate_row){.tenant = tenant,
	                                            .command_id = seen->command_id,
	                                            .first_us = seen->at_us,
	                                            .last_us = seen->at_us};
	return &batch->rows[index];
}

static bool keep_seen(struct batch *batch, const struct duplicate_seen_row *seen)
{
	struct duplicate_seen_row copy = *seen;
	copy.tenant = arena_strdup(&batch->arena, seen->tenant);
	copy.client = arena_strdup(&batch->arena, seen->client);
	copy.actor = arena_strdup(&batch->arena, seen->actor);
	copy.decision = arena_strdup(&batch->arena, seen->decision);
	if (batch->arena.failed || !seen_fits(batch))
		return false;
	batch->seen[batch->seen_count++] = copy;
	return true;
}

static void batch_note(struct batch *batch, const struct duplicate_seen_row *seen, bool each)
{
	struct duplicate_row *row = row_of(batch, seen);
	if (!row) {
		batch->lost++;
		return;
	}
	row->count++;
	if (seen->at_us < row->first_us)
		row->first_us = seen->at_us;
	if (seen->at_us > row->last_us)
		row->last_us = seen->at_us;
	if (each && (batch->seen_count >= SEEN_MAX || !keep_seen(batch, seen)))
		row->unlisted++;
}

/* ---- The thread ----------------------------------------------------------------------------- */

static void tell(const struct duplicates *duplicates, const char *event, int64_t count,
                 const char *why)
{
	LOG(&duplicates->log, IBID_LOG_WARN, event, {"count", log_int(count)}, {"text", log_text(why)});
}

static int64_t counted(const struct batch *batch)
{
	int64_t sum = 0;
	for (size_t i = 0; i < batch->row_count; i++)
		sum += batch->rows[i].count;
	return sum;
}

/* Write the batch that is the thread's; gone when that succeeds. */
static void write_batch(struct duplicates *duplicates)
{
	struct store *store = duplicates->store;
	struct batch *batch = duplicates->writing;
	struct ibid_err err = {0};
	if (!batch)
		return;
	if (batch->lost)
		tell(duplicates, "duplicates.lost", batch->lost, "too many commands came again at once");
	batch->lost = 0;
	enum ibid_code code = store->ops->put_duplicates(store, batch->rows, batch->row_count,
	                                                 batch->seen, batch->seen_count, &err);
	if (code) {
		tell(duplicates, "duplicates.not_written", counted(batch), err.text);
		return;
	}
	batch_free(batch);
	duplicates->writing = NULL;
}

/* Until there is something to write, or to stop. A batch that failed waits as long as a new one. */
static void wait_for_work(struct duplicates *duplicates)
{
	struct timespec until = steady_after(OLD_US);
	int waited = 0;
	while (!duplicates->stop && !waited &&
	       (duplicates->writing || !batch_large(duplicates->filling)))
		waited = pthread_cond_timedwait(&duplicates->changed, &duplicates->lock, &until);
}

static void take_batch(struct duplicates *duplicates)
{
	struct batch *fresh = NULL;
	if (duplicates->writing || batch_empty(duplicates->filling))
		return;
	fresh = calloc(1, sizeof *fresh);
	if (!fresh)
		return;
	duplicates->writing = duplicates->filling;
	duplicates->filling = fresh;
}

static void *thread_main(void *user)
{
	struct duplicates *duplicates = user;
	bool stop = false;
	while (!stop) {
		pthread_mutex_lock(&duplicates->lock);
		wait_for_work(duplicates);
		stop = duplicates->stop;
		take_batch(duplicates);
		pthread_mutex_unlock(&duplicates->lock);
		write_batch(duplicates);
	}
	return NULL;
}

/* ---- Opening, closing, noting --------------------------------------------------------------- */

struct duplicates *duplicates_open(struct store *store, const struct log *log)
{
	struct duplicates *duplicates = calloc(1, sizeof *duplicates);
	struct batch *batch = calloc(1, sizeof *batch);
	if (!duplicates || !batch) {
		free(duplicates);
		free(batch);
		return NULL;
	}
	duplicates->store = store;
	duplicates->log = *log;
	duplicates->pid = getpid();
	duplicates->filling = batch;
	pthread_mutex_init(&duplicates->lock, NULL);
	steady_cond_init(&duplicates->changed);
	return duplicates;
}

/* The thread is gone: what it did not get to is written here, or told. */
static void write_rest(struct duplicates *duplicates)
{
	write_batch(duplicates);
	if (duplicates->writing) {
		tell(duplicates, "duplicates.lost",
		     counted(duplicates->writing) + counted(duplicates->filling), "closed before written");
		return;
	}
	take_batch(duplicates);
	write_batch(duplicates);
	if (duplicates->writing)
		tell(duplicates, "duplicates.lost", counted(duplicates->writing), "closed before written");
}

void duplicates_close(struct duplicates *duplicates)
{
	if (!duplicates)
		return;
	/* A child has neither the thread nor the right to the connections; the lock may be held. */
	if (duplicates->pid == getpid()) {
		if (duplicates->running) {
			pthread_mutex_lock(&duplicates->lock);
			duplicates->stop = true;
			pthread_cond_signal(&duplicates->changed);
			pthread_mutex_unlock(&duplicates->lock);
			pthread_join(duplicates->thread, NULL);
		}
		write_rest(duplicates);
		pthread_cond_destroy(&duplicates->changed);
		pthread_mutex_destroy(&duplicates->lock);
	}
	batch_free(duplicates->filling);
	batch_free(duplicates->writing);
	free(duplicates);
}

void duplicates_note(struct duplicates *duplicates, const struct duplicate_seen_row *seen,
                     bool each)
{
	pthread_mutex_lock(&duplicates->lock);
	batch_note(duplicates->filling, seen, each);
	if (!duplicates->running)
		/* Without a thread, the close writes it. */
		duplicates->running = !pthread_create(&duplicates->thread, NULL, thread_main, duplicates);
	else if (batch_large(duplicates->filling))
		pthread_cond_signal(&duplicates->changed);
	pthread_mutex_unlock(&duplicates->lock);
}
