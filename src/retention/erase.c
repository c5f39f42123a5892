/* SPDX-License-Identifier: Apache-2.0 */
/* erase.c -- forget on request, step by step.
 *
 * Each step is a transaction of its own that removes and records: a run may be cut off anywhere,
 * and whoever runs it again erases what is left. The record names the selection, but no person: an
 * actor stands in it by a digest, with which "was this one erased?" can be answered. */
#include "retention/erase.h"

#include "base/str.h"
#include "contract/payload.h"

#include <string.h>

enum { BATCH_DEFAULT = 1000, BATCH_MAX = 100000, REASON_BYTES_MAX = 1000, COLLISIONS_MAX = 10 };

static struct ibid_erasure erasure_of(const struct ibid_erasure *given)
{
	struct ibid_erasure erasure = {0};
	memcpy(&erasure, given, given->size < sizeof erasure ? given->size : sizeof erasure);
	if (!erasure.batch)
		erasure.batch = BATCH_DEFAULT;
	if (erasure.batch > BATCH_MAX)
		erasure.batch = BATCH_MAX;
	return erasure;
}

static bool given(const char *text)
{
	return text && *text;
}

/* One way to select, and that one whole. */
static enum ibid_code check_selection(const struct ibid_erasure *erasure, struct ibid_err *err)
{
	int ways = given(erasure->command_id) + given(erasure->key) + given(erasure->resource_id) +
	           given(erasure->actor);
	bool halves = given(erasure->key) != given(erasure->operation) ||
	              given(erasure->resource_id) != given(erasure->resource_type) ||
	              (erasure->scope && !given(erasure->key));
	if (ways != 1 || halves)
		return err_set(err, IBID_INVALID,
		               "say whose data it is in one way: a command's id, operation and key, a "
		               "resource's type and id, or an actor");
	return IBID_OK;
}

static enum ibid_code check_words(const struct ibid_erasure *erasure, struct ibid_err *err)
{
	enum ibid_code code = name_check("tenant", erasure->tenant ? erasure->tenant : "", err);
	if (!code)
		code = name_check("by", erasure->by ? erasure->by : "", err);
	if (!code && given(erasure->actor))
		code = name_check("actor", erasure->actor, err);
	if (!code && (!given(erasure->reason) || strlen(erasure->reason) > REASON_BYTES_MAX))
		code = err_set(err, IBID_INVALID, "an erasure needs a reason of 1 to %d bytes",
		               REASON_BYTES_MAX);
	return code;
}

/* ---- What it is about ----------------------------------------------------------------------- */

static enum ibid_code find_by_key(struct store *store, struct arena *arena,
                                  const struct ibid_erasure *erasure, struct uuid *ret,
                                  struct ibid_err *err)
{
	struct command_filter filter = {.tenant = erasure->tenant,
	                                .operation = erasure->operation,
	                                .key = erasure->key,
	                                .state = -1,
	                                .limit = 2};
	struct command_row *rows = NULL, row;
	size_t count = 0;
	if (erasure->scope) {
		struct identity identity = {erasure->tenant, erasure->operation, erasure->scope,
		                            erasure->key};
		enum ibid_code code = store_get_command(store, arena, erasure->tenant, NULL, &identity,
		                                        &row, err);
		if (!code)
			*ret = row.id;
		return code;
	}
	enum ibid_code code = store_list_commands(store, arena, &filter, &rows, &count, err);
	if (code)
		return code;
	if (!count)
		return err_set(err, IBID_NOT_FOUND, "tenant %s has no command %s with this key",
		               erasure->tenant, erasure->operation);
	if (count > 1)
		return err_set(
		    err, IBID_INVALID,
		    "several senders used key %s: say whose command is meant by the scope (--scope, "
		    "such as client=web)",
		    erasure->key);
	*ret = rows[0].id;
	return IBID_OK;
}

static enum ibid_code find_by_id(struct store *store, struct arena *arena,
                                 const struct ibid_erasure *erasure, struct uuid *ret,
                                 struct ibid_err *err)
{
	struct command_row row;
	if (!uuid_read(erasure->command_id, ret))
		return err_set(err, IBID_INVALID,
		               "\"%.100s\" is not the id of a command; `ibid command list` shows ids",
		               erasure->command_id);
	enum ibid_code code = store_get_command(store, arena, erasure->tenant, ret, NULL, &row, err);
	if (code == IBID_NOT_FOUND)
		return err_set(err, code, "tenant %s has no such command", erasure->tenant);
	return code;
}

static void add_member(struct str *out, const char *name, const char *value)
{
	str_addf(out, "%s\"%s\":", out->size > 1 ? "," : "", name);
	str_add_json(out, value, strlen(value));
}

/* {"actorSha256":"..."}: no name, and no key, which the sender chose. */
static const char *selection_text(struct arena *arena, const struct ibid_erasure *erasure,
                                  const struct uuid *command_id)
{
	struct str out = STR_INIT(8192);
	char text[SHA256_TEXT_SIZE];
	str_addc(&out, '{');
	if (command_id) {
		uuid_write(*command_id, text);
		add_member(&out, "command", text);
	} else if (given(erasure->actor)) {
		struct sha256 digest = sha256(erasure->actor, strlen(erasure->actor));
		sha256_write(&digest, text);
		add_member(&out, "actorSha256", text);
	} else {
		add_member(&out, "resourceType", erasure->resource_type);
		add_member(&out, "resourceId", erasure->resource_id);
	}
	str_addc(&out, '}');
	const char *copy = out.failed ? NULL : arena_strdup(arena, str_text(&out));
	arena->failed |= !copy;
	str_release(&out);
	return copy;
}

/* ---- Running -------------------------------------------------------------------------------- */

/* A step that met a deadlock is taken again. */
static enum ibid_code take_step(struct store *store, const struct erasure *erasure,
                                struct erasure_progress *progress, struct ibid_err *err)
{
	enum ibid_code code = IBID_RETRY;
	for (int turn = 0; code == IBID_RETRY && turn < COLLISIONS_MAX; turn++)
		code = store->ops->erase_commands(store, erasure, progress, err);
	if (code == IBID_RETRY)
		return err_set(err, IBID_BUSY, "deadlocks kept the erasure from going on: run it again");
	return code;
}

static enum ibid_code run(struct store *store, struct erasure *erasure, struct erasure_report *ret,
                          struct ibid_err *err)
{
	struct erasure_progress progress = {0};
	enum ibid_code code = IBID_OK;
	while (!code && !progress.done)
		code = take_step(store, erasure, &progress, err);
	if (code)
		return code;
	*ret = (struct erasure_report){
	    .id = erasure->id,
	    .recorded = !erasure->dry_run && progress.count.commands + progress.count.names > 0,
	    .dry_run = erasure->dry_run,
	    .count = progress.count,
	    .left = progress.left,
	};
	return IBID_OK;
}

enum ibid_code ledger_erase(struct store *store, struct env *env, const struct ibid_erasure *asked,
                            struct erasure_report *ret, struct ibid_err *err)
{
	struct ibid_erasure wanted = erasure_of(asked);
	struct arena arena = {0};
	struct uuid command_id;
	bool one = given(wanted.command_id) || given(wanted.key);
	enum ibid_code code = check_words(&wanted, err);
	if (!code)
		code = check_selection(&wanted, err);
	if (!code && one)
		code = given(wanted.key) ? find_by_key(store, &arena, &wanted, &command_id, err)
		                         : find_by_id(store, &arena, &wanted, &command_id, err);
	if (!code) {
		struct erasure erasure = {
		    .tenant = wanted.tenant,
		    .id = uuid_v7(env),
		    .command_id = one ? &command_id : NULL,
		    .resource_type = given(wanted.resource_type) ? wanted.resource_type : NULL,
		    .resource_id = given(wanted.resource_id) ? wanted.resource_id : NULL,
		    .actor = given(wanted.actor) ? wanted.actor : NULL,
		    .by = wanted.by,
		    .reason = wanted.reason,
		    .selection = selection_text(&arena, &wanted, one ? &command_id : NULL),
		    .now_us = env_wall_us(env),
		    .batch = wanted.batch,
		    .dry_run = wanted.dry_run,
		};
		code = arena.failed ? err_set(err, IBID_NOMEM, "out of memory")
		                    : run(store, &erasure, ret, err);
	}
	arena_release(&arena);
	return code;
}

char *erasure_json(const struct erasure_report *report)
{
	struct str out = STR_INIT(4096);
	char id[UUID_TEXT_SIZE];
	uuid_write(report->id, id);
	str_addf(&out, "{\"dryRun\":%s", report->dry_run ? "true" : "false");
#define ADD_COUNT(name, meaning)                                                                   \
	str_addf(&out, ",\"" #name "\":%lld", (long long)report->count.name);
	ERASURE_COUNTS(ADD_COUNT)
#undef ADD_COUNT
	str_addf(&out, ",\"left\":%lld", (long long)report->left);
	str_addf(&out, report->recorded ? ",\"erasure\":\"%s\"}" : ",\"erasure\":null}", id);
	size_t size;
	char *text = str_take(&out, &size);
	str_release(&out);
	return text;
}
