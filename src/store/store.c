/* SPDX-License-Identifier: Apache-2.0 */
/* store.c -- the names of states and queues; which backend a URL means. */
#include "store/store.h"

#include "base/str.h"

#include <string.h>
#include <strings.h>

/* ---- Names ---------------------------------------------------------------------------------- */

static const char *const state_names[COMMAND_STATE_COUNT] = {
#define COMMAND_STATE_NAME(name) #name,
    COMMAND_STATES(COMMAND_STATE_NAME)
#undef COMMAND_STATE_NAME
};
#define EXCEPTION_NAME(symbol, name) name,
static const char *const queue_names[] = {EXCEPTION_QUEUES(EXCEPTION_NAME)};
static const char *const severity_names[] = {EXCEPTION_SEVERITIES(EXCEPTION_NAME)};
static const char *const exception_state_names[] = {EXCEPTION_STATES(EXCEPTION_NAME)};
#undef EXCEPTION_NAME
#define PAUSE_KIND_NAME(symbol, name) name,
static const char *const pause_kind_names[] = {PAUSE_KINDS(PAUSE_KIND_NAME)};
#undef PAUSE_KIND_NAME
static const char *const decision_names[] = {"", /* it waits */
#define APPROVAL_DECISION_NAME(name) #name,
                                             APPROVAL_DECISIONS(APPROVAL_DECISION_NAME)
#undef APPROVAL_DECISION_NAME
};

/* Its place in the list; -1 when it is not there. */
static int place_of(const char *name, const char *const *names, int count)
{
	for (int i = 0; i < count; i++) {
		if (strcmp(name, names[i]) == 0)
			return i;
	}
	return -1;
}

const char *command_state_name(enum command_state state)
{
	return state_names[state];
}

bool command_expired(const struct command_row *row, int64_t now_us)
{
	bool ended = row->state == COMMAND_COMPLETED || row->state == COMMAND_REJECTED ||
	             row->state == COMMAND_FAILED;
	return ended && row->expires_us && row->expires_us <= now_us;
}

bool command_unbound(const struct command_row *row)
{
	return row->state == COMMAND_FAILED && row->scheme == SCHEME_UNBOUND;
}

bool evidence_of_refused(const struct command_row *row, const struct command_row *previous,
                         struct key_conflict_row *ret)
{
	if (!previous || !command_unbound(previous) ||
	    memcmp(&previous->id, &row->id, sizeof row->id) != 0 ||
	    memcmp(&previous->fingerprint, &row->fingerprint, sizeof row->fingerprint) == 0)
		return false;
	*ret = (struct key_conflict_row){
	    .tenant = previous->identity.tenant,
	    .command_id = previous->id,
	    .fingerprint = previous->fingerprint,
	    .client = previous->client ? previous->client : "",
	    .actor = previous->actor ? previous->actor : "",
	    .first_us = previous->finished_us,
	    .last_us = previous->finished_us,
	    .count = 1,
	};
	return true;
}

bool command_gives_way(const struct command_row *row, const struct work_context *context)
{
	return context->runs_again && command_expired(row, context->now_us);
}

bool command_state_read(const char *name, enum command_state *ret)
{
	int place = place_of(name, state_names, COMMAND_STATE_COUNT);
	if (place >= 0)
		*ret = (enum command_state)place;
	return place >= 0;
}

const char *exception_queue_name(enum exception_queue queue)
{
	return queue_names[queue];
}

bool exception_queue_read(const char *name, enum exception_queue *ret)
{
	int place = place_of(name, queue_names, EXCEPTION_QUEUE_COUNT);
	if (place >= 0)
		*ret = (enum exception_queue)place;
	return place >= 0;
}

const char *exception_severity_name(enum exception_severity severity)
{
	return severity_names[severity];
}

bool exception_severity_read(const char *name, enum exception_severity *ret)
{
	int place = place_of(name, severity_names, EXCEPTION_SEVERITY_COUNT);
	if (place >= 0)
		*ret = (enum exception_severity)place;
	return place >= 0;
}

const char *exception_state_name(enum exception_state state)
{
	return exception_state_names[state];
}

bool exception_state_read(const char *name, enum exception_state *ret)
{
	int place = place_of(name, exception_state_names, EXCEPTION_STATE_COUNT);
	if (place >= 0)
		*ret = (enum exception_state)place;
	return place >= 0;
}

const char *approval_decision_name(enum approval_decision decision)
{
	return decision == APPROVAL_WAITS ? NULL : decision_names[decision];
}

bool approval_decision_read(const char *name, enum approval_decision *ret)
{
	int place = place_of(name ? name : "", decision_names, APPROVAL_DECISION_COUNT);
	if (place >= 0)
		*ret = (enum approval_decision)place;
	return place >= 0;
}

const char *pause_kind_name(enum pause_kind kind)
{
	return pause_kind_names[kind];
}

bool pause_kind_read(const char *name, enum pause_kind *ret)
{
	int place = place_of(name, pause_kind_names, PAUSE_KIND_COUNT);
	if (place >= 0)
		*ret = (enum pause_kind)place;
	return place >= 0;
}

/* ---- Opening -------------------------------------------------------------------------------- */

/* What follows the prefix; NULL when the text does not start with it. */
static const char *after(const char *text, const char *prefix)
{
	size_t size = strlen(prefix);
	return strncmp(text, prefix, size) == 0 ? text + size : NULL;
}

static const char *postgres_rest(const char *url)
{
	const char *rest = after(url, "postgres://");
	return rest ? rest : after(url, "postgresql://");
}

enum ibid_code store_open(const struct store_options *options, struct store **ret,
                          struct ibid_err *err)
{
	const char *url = options->url ? options->url : "";
	const char *path = after(url, "sqlite:");
	if (path)
		return store_sqlite_open(options, path, ret, err);
	if (postgres_rest(url))
		return store_postgres_open(options, ret, err);
	/* The URL is not repeated: what it holds is not known. */
	return err_set(err, IBID_INVALID,
	               "the store (--store, IBID_STORE or the setting store) is not a URL: write "
	               "sqlite:PATH or postgres://USER@HOST/DATABASE");
}

void store_close(struct store *store)
{
	if (store)
		store->ops->close(store);
}

/* ---- Redaction ------------------------------------------------------------------------------ */

/* Parameters after the '?': the value of each whose name ends in "password" is covered. */
static void add_query(struct str *out, const char *query)
{
	while (*query) {
		size_t size = strcspn(query, "&"), name = strcspn(query, "=&");
		bool secret = name >= 8 && name < size && strncasecmp(query + name - 8, "password", 8) == 0;
		str_add(out, query, secret ? name + 1 : size);
		if (secret)
			str_adds(out, "***");
		query += size;
		if (*query)
			str_addc(out, *query++);
	}
}

/* The last '@' ends the user information, also where a password was not escaped. */
static void add_redacted(struct str *out, const char *url, const char *rest)
{
	const char *at = strrchr(rest, '@'), *colon = strchr(rest, ':');
	const char *tail = at ? at : rest;
	size_t user = (size_t)((at && colon && colon < at ? colon : tail) - url);
	str_add(out, url, user);
	if (at && colon && colon < at)
		str_adds(out, ":***");
	size_t place = strcspn(tail, "?");
	str_add(out, tail, place);
	add_query(out, tail + place);
}

const char *store_url_redacted(struct arena *arena, const char *url)
{
	struct str out = STR_INIT(1 << 16);
	const char *rest = postgres_rest(url), *redacted = NULL;
	if (rest)
		add_redacted(&out, url, rest);
	else if (after(url, "sqlite:"))
		str_adds(&out, url);
	else
		str_adds(&out, "***");
	if (!out.failed)
		redacted = arena_strdup(arena, str_text(&out));
	str_release(&out);
	return redacted ? redacted : "***";
}
