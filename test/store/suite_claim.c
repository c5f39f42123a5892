/* SPDX-License-Identifier: Apache-2.0 */
/* suite_claim.c -- who runs a command, and who waits or is told. */
#include "store/suite_bed.h"
#include "store/suite_tests.h"

#include <pthread.h>
#include <string.h>

/* ---- Claims --------------------------------------------------------------------------------- */

void new_identity_is_free_and_a_completed_one_is_found_whole(void **state) /* B03 */
{
	struct bed *bed = bed_of(state);
	struct command_row row = completed("k-1", 1);
	complete(bed, "k-1", 1);
	struct claim got = claim(bed, "k-1", 2);
	assert_int_equal(got.kind, CLAIM_FOUND);
	assert_row(&got.row, &row);
	bed->ops->rollback(&got.tx);
}

void row_without_optional_parts_comes_back_without_them(void **state)
{
	struct bed *bed = bed_of(state);
	struct command_row row = completed("k-1", 1);
	row.resource_type = row.resource_id = row.client = row.actor = row.body = NULL;
	row.body_size = 0;
	row.status = 0;
	row.linked = true;
	row.identity.scope = "";
	struct identity identity = row.identity;
	struct work_context context = context_of(1);
	struct claim got;
	check(bed, bed->ops->claim(bed->store, &bed->arena, &identity, &context, &got, &bed->err));
	complete_row(bed, &got.tx, &row, NULL);
	check(bed, bed->ops->claim(bed->store, &bed->arena, &identity, &context, &got, &bed->err));
	assert_row(&got.row, &row);
	bed->ops->rollback(&got.tx);
}

void keys_keep_quotes_unicode_and_length(void **state)
{
	static const char *const keys[] = {
	    "it's; drop table payment --",
	    "\"quoted\" \\ and %s $1 :name ?1",
	    "\xE2\x82\xAC \xF0\x9F\x92\xB8 e\xCC\x81",
	    " ",
	    "\t\n",
	    "K-1",
	    "k-1",
	};
	struct bed *bed = bed_of(state);
	char longest[1025];
	unsigned n = 1;
	memset(longest, 'x', sizeof longest - 1);
	longest[sizeof longest - 1] = '\0';
	for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++)
		complete(bed, keys[i], n++);
	complete(bed, longest, n++);
	for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
		struct claim got = claim(bed, keys[i], n);
		assert_int_equal(got.kind, CLAIM_FOUND);
		assert_string_equal(got.row.identity.key, keys[i]);
		bed->ops->rollback(&got.tx);
	}
	struct claim got = claim(bed, longest, n);
	assert_int_equal(got.kind, CLAIM_FOUND);
	bed->ops->rollback(&got.tx);
}

void each_part_of_the_identity_counts(void **state) /* I9 */
{
	static const struct identity others[] = {{"other", "create-payment", "web", "k-1"},
	                                         {"acme", "void-payment", "web", "k-1"},
	                                         {"acme", "create-payment", "app", "k-1"},
	                                         {"acme", "create-payment", "", "webk-1"},
	                                         {"acme", "create-payment", "web", "k-2"}};
	struct bed *bed = bed_of(state);
	struct work_context context = context_of(2);
	complete(bed, "k-1", 1);
	for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
		struct claim got;
		check(bed, bed->ops->claim(bed->store, &bed->arena, &others[i], &context, &got, &bed->err));
		assert_int_equal(got.kind, CLAIM_FREE);
		bed->ops->rollback(&got.tx);
	}
}

void rolled_back_claim_leaves_the_identity_free(void **state)
{
	struct bed *bed = bed_of(state);
	struct tx *tx = claim_free(bed, "k-1", 1);
	bed->ops->rollback(&tx);
	assert_null(tx);
	bed->ops->rollback(&tx);
	complete(bed, "k-1", 1);
}

struct claiming {
	struct bed *bed;
	struct store *store;
	const char *key;
	unsigned n;
	bool work; /* complete it when it is free */
	pthread_barrier_t *start;
	enum ibid_code code;
	struct claim claim;
	struct ibid_err err;
	struct arena arena;
};

static enum ibid_code complete_quietly(struct claiming *self, const struct store_ops *ops)
{
	struct command_row row = completed(self->key, self->n);
	struct audit_row audit = audit_of(&row);
	struct event_row event = event_of(self->n, 1, 0);
	struct outcome outcome;
	enum ibid_code code = ops->put_event(self->claim.tx, &event, &self->err);
	if (!code)
		code = store_put_audit(self->claim.tx, &audit, &self->err);
	if (!code)
		code = ops->put_command(self->claim.tx, &row, NULL, &self->err);
	if (!code)
		code = ops->commit(&self->claim.tx, &self->arena, &outcome, &self->err);
	return code;
}

static void *claim_in_thread(void *user)
{
	struct claiming *self = user;
	struct identity identity = identity_of(self->key);
	struct work_context context = context_of(self->n);
	const struct store_ops *ops = self->store->ops;
	if (self->start)
		pthread_barrier_wait(self->start);
	self->code = ops->claim(self->store, &self->arena, &identity, &context, &self->claim,
	                        &self->err);
	if (!self->code && self->claim.kind == CLAIM_FREE && self->work)
		self->code = complete_quietly(self, ops);
	if (!self->code)
		ops->rollback(&self->claim.tx);
	return NULL;
}

/* In progress, or not to be had within the time (SQLite between processes). */
void assert_busy(struct bed *bed, struct store *store, const char *key)
{
	struct claiming twin = {.bed = bed, .store = store, .key = key, .n = 2};
	pthread_t thread;
	pthread_create(&thread, NULL, claim_in_thread, &twin);
	pthread_join(thread, NULL);
	if (twin.code != IBID_BUSY) {
		assert_int_equal(twin.code, IBID_OK);
		assert_int_equal(twin.claim.kind, CLAIM_BUSY);
		assert_null(twin.claim.tx);
	}
	arena_release(&twin.arena);
}

void twin_of_a_running_command_is_busy(void **state) /* B05 */
{
	struct bed *bed = bed_of(state);
	struct tx *tx = claim_free(bed, "k-1", 1);
	assert_busy(bed, bed->store, "k-1");
	struct command_row row = completed("k-1", 1);
	complete_row(bed, &tx, &row, NULL);
	struct claim got = claim(bed, "k-1", 2);
	assert_int_equal(got.kind, CLAIM_FOUND);
	bed->ops->rollback(&got.tx);
}

void twin_in_another_store_on_the_database_is_busy(void **state)
{
	struct bed *bed = bed_of(state);
	struct store *other = backend->again();
	struct tx *tx = claim_free(bed, "k-1", 1);
	assert_busy(bed, other, "k-1");
	bed->ops->rollback(&tx);
	store_close(other);
}

void twin_of_a_found_row_that_is_held_is_busy(void **state)
{
	struct bed *bed = bed_of(state);
	struct tx *tx = claim_free(bed, "k-1", 1);
	struct command_row row = failed("k-1", 1);
	complete_row(bed, &tx, &row, NULL);
	struct claim got = claim(bed, "k-1", 2);
	assert_int_equal(got.kind, CLAIM_FOUND);
	assert_non_null(got.tx);
	assert_busy(bed, bed->store, "k-1");
	bed->ops->rollback(&got.tx);
}

void twenty_claims_at_once_run_one_command(void **state) /* B12 */
{
	enum { TWINS = 20 };
	struct bed *bed = bed_of(state);
	struct claiming twins[TWINS] = {{.bed = NULL}};
	pthread_t threads[TWINS];
	pthread_barrier_t start;
	pthread_barrier_init(&start, NULL, TWINS);
	for (unsigned i = 0; i < TWINS; i++) {
		twins[i] = (struct claiming){
		    .store = bed->store, .key = "k-1", .n = i + 1, .work = true, .start = &start};
		pthread_create(&threads[i], NULL, claim_in_thread, &twins[i]);
	}
	int ran = 0;
	for (int i = 0; i < TWINS; i++)
		pthread_join(threads[i], NULL);
	for (int i = 0; i < TWINS; i++) {
		if (twins[i].code && twins[i].code != IBID_BUSY)
			fail_msg("%s", twins[i].err.text);
		ran += !twins[i].code && twins[i].claim.kind == CLAIM_FREE;
		arena_release(&twins[i].arena);
	}
	pthread_barrier_destroy(&start);
	assert_int_equal(ran, 1);
	assert_counts(1, 1, 1);
}

void different_commands_at_once_all_run_and_versions_have_no_gap(void **state) /* I5 */
{
	enum { WRITERS = 12 };
	struct bed *bed = bed_of(state);
	static const char *const keys[WRITERS] = {"a", "b", "c", "d", "e", "f",
	                                          "g", "h", "i", "j", "k", "l"};
	struct claiming writers[WRITERS] = {{.bed = NULL}};
	pthread_t threads[WRITERS];
	pthread_barrier_t start;
	be_patient(bed);
	pthread_barrier_init(&start, NULL, WRITERS);
	for (unsigned i = 0; i < WRITERS; i++) {
		writers[i] = (struct claiming){
		    .store = bed->store, .key = keys[i], .n = i + 1, .work = true, .start = &start};
		pthread_create(&threads[i], NULL, claim_in_thread, &writers[i]);
	}
	for (int i = 0; i < WRITERS; i++)
		pthread_join(threads[i], NULL);
	for (int i = 0; i < WRITERS; i++) {
		if (writers[i].code)
			fail_msg("%s", writers[i].err.text);
		arena_release(&writers[i].arena);
	}
	pthread_barrier_destroy(&start);
	struct event_row *events;
	size_t events_count;
	bool seen[WRITERS] = {false};
	check(bed, store_list_events(bed->store, &bed->arena, "acme", NULL, 100, &events, &events_count,
	                             &bed->err));
	assert_int_equal(events_count, WRITERS);
	for (size_t i = 0; i < events_count; i++) {
		assert_in_range(events[i].version, 1, WRITERS);
		assert_false(seen[events[i].version - 1]);
		seen[events[i].version - 1] = true;
	}
}

/* ---- Resolving ------------------------------------------------------------------------------ */

static struct claim resolve(struct bed *bed, const char *key, int64_t wait_us)
{
	struct identity identity = identity_of(key);
	struct claim got = {.kind = CLAIM_BUSY};
	check(bed, bed->ops->resolve(bed->store, &bed->arena, &identity, wait_us, &got, &bed->err));
	assert_null(got.tx);
	return got;
}

void resolve_says_free_or_found(void **state) /* B15 */
{
	struct bed *bed = bed_of(state);
	struct command_row row = completed("k-1", 1);
	assert_int_equal(resolve(bed, "k-1", 1000000).kind, CLAIM_FREE);
	complete(bed, "k-1", 1);
	struct claim got = resolve(bed, "k-1", 1000000);
	assert_int_equal(got.kind, CLAIM_FOUND);
	assert_row(&got.row, &row);
	assert_int_equal(resolve(bed, "k-2", 0).kind, CLAIM_FREE);
}

void resolve_gives_up_on_a_twin_that_stays(void **state)
{
	struct bed *bed = bed_of(state);
	struct tx *tx = claim_free(bed, "k-1", 1);
	assert_int_equal(resolve(bed, "k-1", 20000).kind, CLAIM_BUSY);
	bed->ops->rollback(&tx);
	assert_int_equal(resolve(bed, "k-1", 1000000).kind, CLAIM_FREE);
}

struct resolving {
	struct store *store;
	enum ibid_code code;
	struct claim claim;
	struct ibid_err err;
	struct arena arena;
};

static void *resolve_in_thread(void *user)
{
	struct resolving *self = user;
	struct identity identity = identity_of("k-1");
	self->code = self->store->ops->resolve(self->store, &self->arena, &identity, 10000000,
	                                       &self->claim, &self->err);
	return NULL;
}

/* Tells the other thread that the verb has begun. */
struct started {
	struct hook hook;
	bool yes;
	pthread_mutex_t lock;
	pthread_cond_t changed;
};

static bool note_start(void *user, const struct hook_point *point)
{
	struct started *started = user;
	(void)point;
	pthread_mutex_lock(&started->lock);
	started->yes = true;
	pthread_cond_signal(&started->changed);
	pthread_mutex_unlock(&started->lock);
	return false;
}

void resolve_waits_for_the_twin_and_then_finds_its_row(void **state) /* B15, I7 */
{
	struct bed *bed = bed_of(state);
	struct started started = {.lock = PTHREAD_MUTEX_INITIALIZER,
	                          .changed = PTHREAD_COND_INITIALIZER,
	                          .hook = {note_start, &started}};
	struct store *other = backend->again();
	struct resolving waiting = {.store = other};
	struct command_row row = completed("k-1", 1);
	pthread_t thread;
	struct tx *tx = claim_free(bed, "k-1", 1);
	other->hook = &started.hook;
	pthread_create(&thread, NULL, resolve_in_thread, &waiting);
	pthread_mutex_lock(&started.lock);
	while (!started.yes)
		pthread_cond_wait(&started.changed, &started.lock);
	pthread_mutex_unlock(&started.lock);
	complete_row(bed, &tx, &row, NULL);
	pthread_join(thread, NULL);
	if (waiting.code)
		fail_msg("%s", waiting.err.text);
	assert_int_equal(waiting.claim.kind, CLAIM_FOUND);
	assert_row(&waiting.claim.row, &row);
	arena_release(&waiting.arena);
	store_close(other);
}
