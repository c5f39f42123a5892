/* SPDX-License-Identifier: Apache-2.0 */
/* outbox.c -- where an event is to go, how it stands, what it waits for; counting what is new. */
#include "store/outbox.h"

#include <string.h>
#include <strings.h>

static const char *const hold_state_names[HOLD_STATE_COUNT] = {
#define HOLD_STATE_NAME(symbol, name) name,
    HOLD_STATES(HOLD_STATE_NAME)
#undef HOLD_STATE_NAME
};

const char *hold_state_name(enum hold_state state)
{
	return hold_state_names[state];
}

bool hold_state_read(const char *name, enum hold_state *ret)
{
	for (int i = 0; i < HOLD_STATE_COUNT; i++) {
		if (strcmp(name, hold_state_names[i]) == 0) {
			*ret = (enum hold_state)i;
			return true;
		}
	}
	return false;
}

const char *event_header(const struct event_row *event, const char *name, size_t *ret_size)
{
	const char *at = event->headers;
	size_t size = strlen(name);
	while (at && (at = strchr(at, '"'))) {
		at++;
		if (strncmp(at, name, size) == 0 && strncmp(at + size, "\":\"", 3) == 0) {
			at += size + 3;
			*ret_size = strcspn(at, "\"");
			return at;
		}
		at = strchr(at, '"');
		at = at ? at + 1 : NULL;
	}
	return NULL;
}

bool event_is_for(const struct event_row *event, const char *destination)
{
	size_t left, size = strlen(destination);
	const char *at = event_header(event, "deliver_to", &left);
	const char *end = at ? at + left : NULL;
	while (at && at < end) {
		size_t name = strcspn(at, ",\"");
		if (name == size && memcmp(at, destination, size) == 0)
			return true;
		at += name + 1;
	}
	return false;
}

static const char *const outbox_state_names[OUTBOX_STATE_COUNT] = {
#define OUTBOX_STATE_NAME(symbol, name) name,
    OUTBOX_STATES(OUTBOX_STATE_NAME)
#undef OUTBOX_STATE_NAME
};

const char *outbox_state_name(enum outbox_state state)
{
	return outbox_state_names[state];
}

bool outbox_state_read(const char *name, enum outbox_state *ret)
{
	for (int i = 0; i < OUTBOX_STATE_COUNT; i++) {
		if (strcasecmp(name, outbox_state_names[i]) == 0) {
			*ret = (enum outbox_state)i;
			return true;
		}
	}
	return false;
}

const char *outbox_place_text(struct arena *arena, const struct outbox_row *row)
{
	char id[UUID_TEXT_SIZE];
	uuid_write(row->event_id, id);
	return arena_printf(arena, "%s/%s", id, row->destination);
}

bool outbox_place_read(const char *text, struct uuid *ret, const char **ret_destination)
{
	char id[UUID_TEXT_SIZE];
	size_t size = strcspn(text, "/");
	if (size != sizeof id - 1)
		return false;
	memcpy(id, text, size);
	id[size] = 0;
	*ret_destination = text[size] ? text + size + 1 : NULL;
	return uuid_read(id, ret);
}

enum ibid_code outbox_count(struct store *store, size_t pieces, struct ibid_err *err)
{
	enum { PIECE = 2000 }; /* events of each lane: some milliseconds, of SQLite's one writer, too */
	enum ibid_code code = IBID_OK;
	bool more = true;
	for (size_t i = 0; !code && more && i < pieces; i++)
		code = store->ops->count_outbox(store, PIECE, &more, err);
	return code;
}
