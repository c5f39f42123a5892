/* SPDX-License-Identifier: Apache-2.0 */
/* retain.c -- remove what has had its time, step by step.
 *
 * Two periods, from the contract: after key.retain a command keeps its identity and loses its body;
 * after audit.retain, too, it goes. Each step is a transaction of its own, so that a run may be
 * stopped or killed at any time and started again, also beside another one. */
#include "retention/retain.h"

#include "base/str.h"

#include <assert.h>
#include <string.h>

enum {
	PERIODS_BYTES_MAX = 16 << 20,
	COLLISIONS_MAX = 20, /* of one step, with another run or with the work */
};

/* No UUIDv7 of that time or later is smaller. */
static struct uuid first_id(int64_t us)
{
	struct uuid id = {{0}};
	uint64_t ms = us > 0 ? (uint64_t)(us / 1000) : 0;
	for (size_t i = 0; i < 6; i++)
		id.bytes[i] = (unsigned char)(ms >> (8 * (5 - i)));
	return id;
}

/* {"create-payment":315360000000000,...}, the longest audit period and the shortest key's. */
static enum ibid_code read_periods(struct arena *arena, const struct contracts *contracts,
                                   struct retention *ret, int64_t *ret_key_min_us,
                                   struct ibid_err *err)
{
	struct str out = STR_INIT(PERIODS_BYTES_MAX);
	int64_t key_min = INT64_MAX;
	str_addc(&out, '{');
	for (size_t i = 0; i < contracts_count(contracts); i++) {
		const struct contract *contract = contracts_at(contracts, i);
		str_adds(&out, i ? "," : "");
		str_add_json(&out, contract->name, strlen(contract->name));
		str_addf(&out, ":%lld", (long long)contract->audit_retain_us);
		if (contract->audit_retain_us > ret->audit_max_us)
			ret->audit_max_us = contract->audit_retain_us;
		if (contract->key.retain_us < key_min)
			key_min = contract->key.retain_us;
	}
	str_addc(&out, '}');
	ret->audit_us = out.failed ? NULL : arena_strdup(arena, str_text(&out));
	str_release(&out);
	if (!ret->audit_us)
		return err_set(err, IBID_NOMEM, "out of memory");
	*ret_key_min_us = key_min;
	return IBID_OK;
}

/* One run. */
struct run {
	struct store *store;
	struct env *env;
	const struct retain_options *options;
	struct retention retention;
	int64_t until_us; /* steady; 0: no end */
};

static bool time_is_over(const struct run *run)
{
	return run->until_us && env_steady_us(run->env) >= run->until_us;
}

static void tell(const struct run *run, const struct retention_count *count)
{
	if (run->options->progress)
		run->options->progress(run->options->user, count);
}

/* A step that met another one in a deadlock was undone, and is taken again. */
static enum ibid_code take_step(const struct run *run, struct arena *arena,
                                struct retention_cursor *cursor, struct retention_count *ret,
                                struct ibid_err *err)
{
	struct store *store = run->store;
	enum ibid_code code = IBID_RETRY;
	for (int turn = 0; code == IBID_RETRY && turn < COLLISIONS_MAX; turn++)
		code = store->ops->retain_commands(store, arena, &run->retention, cursor, ret, err);
	if (code == IBID_RETRY)
		return err_set(err, IBID_BUSY, "deadlocks kept retention from going on: run it again");
	return code;
}

static enum ibid_code retain_commands(const struct run *run, struct retention_count *ret,
                                      struct ibid_err *err)
{
	struct arena arenas[2] = {{0}, {0}}; /* of the cursor before a step and after it, in turn */
	struct retention_cursor cursor = {0};
	enum ibid_code code = IBID_OK;
	for (size_t turn = 0; !code && !cursor.done && !time_is_over(run); turn++) {
		struct arena *arena = &arenas[turn % 2];
		const char *tenant = arena_strdup(arena, cursor.tenant);
		if (cursor.tenant && !tenant)
			code = err_set(err, IBID_NOMEM, "out of memory");
		cursor.tenant = tenant;
		arena_release(&arenas[(turn + 1) % 2]);
		if (!code)
			code = take_step(run, arena, &cursor, ret, err);
		if (!code)
			tell(run, ret);
	}
	arena_release(&arenas[0]);
	arena_release(&arenas[1]);
	return code;
}

static enum ibid_code retain_history(const struct run *run, struct retention_count *ret,
                                     struct ibid_err *err)
{
	enum ibid_code code = IBID_OK;
	for (bool more = true; !code && more && !time_is_over(run);) {
		code = IBID_RETRY;
		for (int turn = 0; code == IBID_RETRY && turn < COLLISIONS_MAX; turn++)
			code = run->store->ops->retain_history(run->store, &run->retention, ret, &more, err);
		if (code == IBID_RETRY)
			code = err_set(err, IBID_BUSY, "deadlocks kept retention from going on: run it again");
		if (!code)
			tell(run, ret);
	}
	return code;
}

/* ---- Events --------------------------------------------------------------------------------- */

/* What the archive asks about its run. */
struct events_run {
	const struct run *run;
	struct retention_count *count;
};

static bool events_time_is_over(void *user)
{
	const struct events_run *events = user;
	return time_is_over(events->run);
}

static void tell_events(void *user, int64_t removed)
{
	struct events_run *events = user;
	events->count->events = removed;
	tell(events->run, events->count);
}

static enum ibid_code retain_events(const struct run *run, struct retention_count *ret,
                                    struct ibid_err *err)
{
	struct events_run events = {run, ret};
	const struct retain_options *options = run->options;
	struct archive_options archive = {
	    .dir = options->archive,
	    .before_us = run->retention.now_us - options->events_us,
	    .now_us = run->retention.now_us,
	    .dry_run = options->dry_run,
	    .time_is_over = events_time_is_over,
	    .progress = tell_events,
	    .user = &events,
	};
	if (!options->events_us)
		return IBID_OK;
	assert(options->events);
	enum ibid_code code = ledger_archive(run->store, run->env, &archive, options->events, err);
	ret->events = options->events->events;
	return code;
}

enum ibid_code ledger_retain(struct store *store, const struct contracts *contracts,
                             struct env *env, const struct retain_options *options,
                             struct retention_count *ret, bool *ret_finished, struct ibid_err *err)
{
	struct arena arena = {0};
	struct retention_count count = {0};
	int64_t key_min_us = 0, now_us = env_wall_us(env);
	struct run run = {
	    .store = store,
	    .env = env,
	    .options = options,
	    .retention = {.now_us = now_us, .batch = options->batch, .dry_run = options->dry_run},
	    .until_us = options->max_us ? env_steady_us(env) + options->max_us : 0,
	};
	if (!contracts_count(contracts))
		return err_set(err, IBID_CONTRACT,
		               "the directory has no contracts, which say what is kept");
	enum ibid_code code = read_periods(&arena, contracts, &run.retention, &key_min_us, err);
	run.retention.before = first_id(now_us - key_min_us);
	if (!code)
		code = retain_commands(&run, &count, err);
	if (!code)
		code = retain_events(&run, &count, err);
	if (!code)
		code = retain_history(&run, &count, err);
	arena_release(&arena);
	if (!code) {
		*ret = count;
		*ret_finished = !time_is_over(&run);
	}
	return code;
}
