/* SPDX-License-Identifier: Apache-2.0 */
/* event.c -- the outbox: an event is the next version of its aggregate, and never edited (I3, I5).
 */
#include "base/instant.h"
#include "store/outbox.h"
#include "store/sqlite/lite.h"

#include <inttypes.h>
#include <stdio.h>

enum { KEY_DEFAULT_SIZE = UUID_TEXT_SIZE + 12 };

/* ---- Writing -------------------------------------------------------------------------------- */

/* Where an event comes in its aggregate, and which lane both are in. */
struct place {
	int64_t version, lane;
};

/* FNV-1a. The NUL is in, and keeps texts apart. */
static uint64_t add_text(uint64_t hash, const char *text)
{
	do
		hash = (hash ^ (unsigned char)*text) * UINT64_C(0x100000001b3);
	while (*text++);
	return hash;
}

/* Of an aggregate that is new. The last bits of an FNV hash hang on few of the text's: they are
 * spread first. */
static int64_t lane_of(const struct event_row *event)
{
	uint64_t hash = add_text(UINT64_C(0xcbf29ce484222325), event->tenant);
	hash = add_text(add_text(hash, event->aggregate_type), event->aggregate_id);
	uint32_t spread = (uint32_t)hash * UINT32_C(0x9e3779b1);
	return (int64_t)((uint64_t)spread * OUTBOX_LANES >> 32);
}

static void bind_aggregate(struct lite_run *run, const struct event_row *event)
{
	lite_bind_text(run, event->tenant);
	lite_bind_text(run, event->aggregate_type);
	lite_bind_text(run, event->aggregate_id);
}

/* The version stays 0 where there is a head already. */
static enum ibid_code new_place(struct lite_tx *tx, const struct event_row *event,
                                struct place *ret, struct ibid_err *err)
{
	struct lite_run run;
	int64_t lane = lane_of(event);
	enum ibid_code code = lite_start(tx->conn, LITE_aggregate_new, &run, err);
	bind_aggregate(&run, event);
	lite_bind_int(&run, lane);
	code = lite_conclude(&run, code, err);
	if (!code && sqlite3_changes(tx->conn->db))
		*ret = (struct place){.version = 1, .lane = lane};
	return code;
}

static enum ibid_code place_after(struct lite_tx *tx, const struct event_row *event,
                                  struct place *ret, struct ibid_err *err)
{
	struct lite_run run;
	enum ibid_code code = lite_start(tx->conn, LITE_aggregate_next, &run, err);
	bind_aggregate(&run, event);
	if (lite_row(&run, &code, err)) {
		ret->version = lite_read_int(&run);
		ret->lane = lite_read_int(&run);
		code = lite_finish(&run, err);
	}
	lite_end(&run);
	return code;
}

static enum ibid_code next_place(struct lite_tx *tx, const struct event_row *event,
                                 struct place *ret, struct ibid_err *err)
{
	enum ibid_code code = new_place(tx, event, ret, err);
	if (!code && !ret->version)
		code = place_after(tx, event, ret, err);
	if (code || event->version == 0 || event->version == ret->version)
		return code;
	char *text = arena_printf(
	    &tx->arena, "%s %s is at version %" PRId64 "; the event asks for %" PRId64,
	    event->aggregate_type, event->aggregate_id, ret->version - 1, event->version);
	return lite_tx_reject(tx, "VERSION_CONFLICT", 409, text ? text : "", err);
}

static enum ibid_code take_key(struct lite_tx *tx, const struct event_row *event,
                               const struct uuid *id, struct ibid_err *err)
{
	struct lite_run run;
	enum ibid_code code = lite_start(tx->conn, LITE_event_key_put, &run, err);
	lite_bind_text(&run, event->tenant);
	lite_bind_text(&run, event->key);
	lite_bind_uuid(&run, id);
	if (!code)
		code = lite_finish(&run, err);
	bool used = !code && sqlite3_changes(tx->conn->db) == 0;
	lite_end(&run);
	if (!used)
		return code;
	return lite_tx_reject(tx, "EVENT_KEY_USED", 409, "an event with this key exists already", err);
}

static enum ibid_code insert(struct lite_tx *tx, const struct event_row *event,
                             const struct uuid *id, const char *key, const struct place *place,
                             struct ibid_err *err)
{
	struct lite_run run;
	enum ibid_code code = lite_start(tx->conn, LITE_event_put, &run, err);
	lite_bind_uuid(&run, id);
	lite_bind_text(&run, event->aggregate_type);
	lite_bind_text(&run, event->aggregate_id);
	lite_bind_text(&run, event->type);
	lite_bind_text(&run, event->payload);
	lite_bind_text(&run, event->tenant);
	lite_bind_int(&run, place->version);
	lite_bind_text(&run, key);
	lite_bind_uuid(&run, &event->command_id);
	lite_bind_int(&run, event->ordinal);
	lite_bind_text(&run, event->correlation_id);
	lite_bind_text(&run, event->causation_id);
	lite_bind_text(&run, event->traceparent);
	lite_bind_text(&run, event->tracestate);
	lite_bind_int(&run, event->at_us);
	lite_bind_text(&run, event->topic);
	lite_bind_text(&run, event->partition_key ? event->partition_key : event->aggregate_id);
	lite_bind_text(&run, event->headers ? event->headers : "{}");
	lite_bind_int(&run, place->lane);
	return lite_conclude(&run, code, err);
}

static enum ibid_code append(struct lite_tx *tx, const struct event_row *event,
                             struct ibid_err *err)
{
	struct uuid id = uuid_nth(event->command_id, (unsigned)event->ordinal);
	char command[UUID_TEXT_SIZE], key[KEY_DEFAULT_SIZE];
	struct place place = {.version = 0};
	enum ibid_code code = next_place(tx, event, &place, err);
	if (!code && event->key)
		code = take_key(tx, event, &id, err);
	uuid_write(event->command_id, command);
	snprintf(key, sizeof key, "%s:%d", command, event->ordinal);
	if (!code)
		code = insert(tx, event, &id, event->key ? event->key : key, &place, err);
	return code;
}

enum ibid_code lite_put_event(struct tx *base, const struct event_row *event, struct ibid_err *err)
{
	struct lite_tx *tx = lite_tx_of(base);
	enum lite_mode mode = tx->conn->mode;
	enum ibid_code code = lite_tx_ready(tx, err);
	if (code)
		return code;
	tx->conn->mode = LITE_OURS; /* a script may be in the middle of a statement */
	code = lite_tx_failed(tx, append(tx, event, err), err);
	tx->conn->mode = mode;
	if (!code && event->ordinal > tx->ordinal)
		tx->ordinal = event->ordinal;
	return code;
}

/* ---- Reading -------------------------------------------------------------------------------- */
