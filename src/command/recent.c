/* SPDX-License-Identifier: Apache-2.0 */
/* recent.c -- a table with one place for each hash: who comes takes the place of who was there.
 *
 * (R1) The table and each of its rows are bounded, whatever comes. */
#include "command/recent.h"

#include "command/group.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { PLACES = 4096, LOCKS = 16, ROW_BYTES_MAX = 512 };

struct remembered {
	struct arena arena;
	struct command_row row;
	int64_t until_us; /* steady */
};

struct recent {
	struct env *env;
	int64_t keep_us;
	pthread_mutex_t locks[LOCKS]; /* of every sixteenth place */
	struct remembered *places[PLACES];
	_Atomic int64_t expected[PLACES]; /* by the hash of a key alone: until when (steady) */
};

static void forget(struct remembered *remembered)
{
	if (!remembered)
		return;
	arena_release(&remembered->arena);
	free(remembered);
}

struct recent *recent_new(struct env *env, int64_t keep_us)
{
	struct recent *recent = calloc(1, sizeof *recent);
	if (!recent)
		return NULL;
	recent->env = env;
	recent->keep_us = keep_us;
	for (size_t i = 0; i < LOCKS; i++)
		pthread_mutex_init(&recent->locks[i], NULL);
	return recent;
}

void recent_free(struct recent *recent)
{
	if (!recent)
		return;
	for (size_t i = 0; i < PLACES; i++)
		forget(recent->places[i]);
	for (size_t i = 0; i < LOCKS; i++)
		pthread_mutex_destroy(&recent->locks[i]);
	free(recent);
}

static size_t place_of(const struct identity *identity)
{
	const char *values[] = {identity->operation, identity->scope, identity->key};
	return group_contention(identity->tenant, values, sizeof values / sizeof *values) % PLACES;
}

static size_t place_of_key(const char *key)
{
	return group_contention(key, NULL, 0) % PLACES;
}

static bool same_identity(const struct identity *one, const struct identity *two)
{
	return strcmp(one->key, two->key) == 0 && strcmp(one->tenant, two->tenant) == 0 &&
	       strcmp(one->operation, two->operation) == 0 && strcmp(one->scope, two->scope) == 0;
}

/* What a replay is made of, and nothing that tells of a person. */
static struct command_row copy_of(struct arena *arena, const struct command_row *row)
{
	return (struct command_row){
	    .identity = {arena_strdup(arena, row->identity.tenant),
	                 arena_strdup(arena, row->identity.operation),
	                 arena_strdup(arena, row->identity.scope),
	                 arena_strdup(arena, row->identity.key)},
	    .id = row->id,
	    .state = row->state,
	    .scheme = row->scheme,
	    .contract_version = row->contract_version,
	    .fingerprint = row->fingerprint,
	    .linked = row->linked,
	    .status = row->status,
	    .resource_type = arena_strdup(arena, row->resource_type),
	    .resource_id = arena_strdup(arena, row->resource_id),
	    .audit_id = row->audit_id,
	    .attempts = row->attempts,
	    .created_us = row->created_us,
	    .finished_us = row->finished_us,
	    .expires_us = row->expires_us,
	};
}

static struct remembered *remember(const struct recent *recent, const struct command_row *row)
{
	struct remembered *remembered = calloc(1, sizeof *remembered);
	if (!remembered)
		return NULL;
	arena_init(&remembered->arena, ROW_BYTES_MAX);
	remembered->row = copy_of(&remembered->arena, row);
	remembered->until_us = env_steady_us(recent->env) + recent->keep_us;
	if (!remembered->arena.failed)
		return remembered;
	forget(remembered);
	return NULL;
}

void recent_keep(struct recent *recent, const struct command_row *row)
{
	bool lasts = row->state == COMMAND_COMPLETED && !row->body && !row->reason && !row->text;
	struct remembered *now = recent && lasts ? remember(recent, row) : NULL;
	if (!now)
		return;
	size_t place = place_of(&row->identity);
	recent->expected[place_of_key(row->identity.key)] = now->until_us;
	pthread_mutex_lock(&recent->locks[place % LOCKS]);
	struct remembered *before = recent->places[place];
	recent->places[place] = now;
	pthread_mutex_unlock(&recent->locks[place % LOCKS]);
	forget(before);
}

bool recent_find(struct recent *recent, const struct identity *identity, struct arena *arena,
                 struct command_row *ret)
{
	if (!recent)
		return false;
	size_t place = place_of(identity);
	int64_t now_us = env_steady_us(recent->env);
	pthread_mutex_lock(&recent->locks[place % LOCKS]);
	const struct remembered *there = recent->places[place];
	bool found = there && now_us < there->until_us && same_identity(&there->row.identity, identity);
	if (found)
		*ret = copy_of(arena, &there->row);
	pthread_mutex_unlock(&recent->locks[place % LOCKS]);
	return found && !arena->failed;
}

bool recent_expects(struct recent *recent, const char *key)
{
	return recent && key && env_steady_us(recent->env) < recent->expected[place_of_key(key)];
}
