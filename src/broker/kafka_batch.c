/* SPDX-License-Identifier: Apache-2.0 */
#include "base/json_shape.h"
#include "broker/cloudevent.h"
#include "broker/ends.h"
#include "broker/kafka.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static size_t slot_of(uint64_t aggregate, size_t mask)
{
	return (size_t)((aggregate * 0x9E3779B97F4A7C15u) >> 20) & mask;
}

/* Link each record with the one before and the one after it in its aggregate. */
static bool link_aggregates(struct kafka_batch *batch)
{
	size_t size = 16;
	while (size < 2 * batch->count)
		size *= 2;
	size_t *last = malloc(size * sizeof *last); /* of an aggregate so far, by its number */
	if (!last)
		return false;
	for (size_t i = 0; i < size; i++)
		last[i] = FLIGHT_NONE;
	for (size_t i = 0; i < batch->count; i++) {
		uint64_t aggregate = batch->records[i].aggregate;
		size_t at = slot_of(aggregate, size - 1);
		while (last[at] != FLIGHT_NONE && batch->records[last[at]].aggregate != aggregate)
			at = (at + 1) & (size - 1);
		batch->flights[i].before = last[at];
		batch->flights[i].after = FLIGHT_NONE;
		if (last[at] != FLIGHT_NONE)
			batch->flights[last[at]].after = i;
		last[at] = i;
	}
	free(last);
	return true;
}

static void clear_end(struct record *record)
{
	record->end = RECORD_NOT_TRIED;
	record->failure = FAILURE_TRANSIENT;
	record->reason = NULL;
	record->why[0] = 0;
	record->retry_after_us = 0;
	record->place[0] = 0;
	record->partition = -1;
	record->offset = -1;
	record->acked_us = 0;
}

static void refuse_malformed(struct kafka_batch *batch);

enum ibid_code kafka_batch_init(struct kafka_batch *batch, struct record *records, size_t count,
                                struct ibid_err *err)
{
	*batch = (struct kafka_batch){.records = records, .count = count};
	for (size_t i = 0; i < count; i++)
		clear_end(&records[i]);
	batch->flights = calloc(count ? count : 1, sizeof *batch->flights);
	if (!batch->flights || !link_aggregates(batch)) {
		kafka_batch_release(batch);
		return err_set(err, IBID_NOMEM, "out of memory");
	}
	refuse_malformed(batch);
	return IBID_OK;
}

void kafka_batch_release(struct kafka_batch *batch)
{
	free(batch->flights);
	batch->flights = NULL;
}

static void explain(struct record *record, const struct kafka_meaning *meaning,
                    rd_kafka_resp_err_t error)
{
	const char *topic = record->topic ? record->topic : "";
	if (strcmp(meaning->reason, "UNKNOWN_TOPIC") == 0)
		snprintf(record->why, sizeof record->why, "there is no topic %s", topic);
	else if (strcmp(meaning->reason, "TOPIC_AUTHORIZATION") == 0)
		snprintf(record->why, sizeof record->why, "not allowed to write to topic %s", topic);
	else if (strcmp(meaning->reason, "RECORD_TOO_LARGE") == 0)
		snprintf(record->why, sizeof record->why,
		         "%zu bytes of payload are more than the destination (max_bytes) or topic %s "
		         "(max.message.bytes) takes",
		         record->payload_size, topic);
	else
		snprintf(record->why, sizeof record->why, "topic %s: %s", topic, rd_kafka_err2str(error));
}

static void hold_later(struct kafka_batch *batch, size_t index)
{
	for (size_t i = batch->flights[index].after; i != FLIGHT_NONE; i = batch->flights[i].after)
		if (batch->flights[i].state == FLIGHT_WAITING)
			batch->flights[i].state = FLIGHT_HELD; /* I5 */
}

static struct record *end_failed(struct kafka_batch *batch, size_t index)
{
	assert(batch->flights[index].state != FLIGHT_ENDED);
	batch->flights[index].state = FLIGHT_ENDED;
	hold_later(batch, index);
	batch->records[index].end = RECORD_FAILED;
	return &batch->records[index];
}

static bool is_malformed(struct record *record)
{
	if (!cloudevent_check(record))
		return true;
	if (!record->payload || json_shape_ok(record->payload, record->payload_size))
		return false;
	record_fail(record, FAILURE_POISON, "RECORD_MALFORMED", "its payload is not JSON");
	return true;
}

/* What no reader could make sense of ends before anything is sent. */
static void refuse_malformed(struct kafka_batch *batch)
{
	for (size_t i = 0; i < batch->count; i++)
		if (batch->flights[i].state == FLIGHT_WAITING && is_malformed(&batch->records[i]))
			end_failed(batch, i);
}

void kafka_batch_fail(struct kafka_batch *batch, size_t index, rd_kafka_resp_err_t error)
{
	const struct kafka_meaning *meaning = kafka_meaning(error);
	struct record *record = end_failed(batch, index);
	record->failure = meaning->failure;
	record->reason = meaning->reason;
	explain(record, meaning, error);
}

void kafka_batch_lose(struct kafka_batch *batch, size_t index, const char *why)
{
	struct record *record = end_failed(batch, index);
	record->failure = FAILURE_UNKNOWN;
	record->reason = "OUTCOME_UNKNOWN";
	snprintf(record->why, sizeof record->why, "%s", why);
}

void kafka_batch_ack(struct kafka_batch *batch, int64_t wall_us)
{
	for (size_t i = 0; i < batch->count; i++) {
		struct flight *flight = &batch->flights[i];
		struct record *record = &batch->records[i];
		if (flight->state != FLIGHT_DELIVERED)
			continue;
		flight->state = FLIGHT_ENDED;
		record->end = RECORD_ACKED;
		record->partition = flight->partition;
		record->offset = flight->offset;
		record->acked_us = wall_us;
		snprintf(record->place, sizeof record->place, "%s", record->topic);
	}
}

void kafka_batch_lose_all(struct kafka_batch *batch, const char *why)
{
	for (size_t i = 0; i < batch->count; i++)
		if (batch->flights[i].state == FLIGHT_SENT || batch->flights[i].state == FLIGHT_DELIVERED)
			kafka_batch_lose(batch, i, why);
}

void kafka_batch_take_back(struct kafka_batch *batch)
{
	for (size_t i = 0; i < batch->count; i++)
		if (batch->flights[i].state == FLIGHT_SENT || batch->flights[i].state == FLIGHT_DELIVERED)
			batch->flights[i].state = FLIGHT_WAITING;
}

void kafka_batch_report(struct kafka_batch *batch, size_t index, const rd_kafka_message_t *message)
{
	assert(index < batch->count && batch->flying > 0);
	struct flight *flight = &batch->flights[index];
	batch->flying--;
	flight->error = message->err;
	if (rd_kafka_message_status(message) != RD_KAFKA_MSG_STATUS_NOT_PERSISTED)
		flight->maybe = true; /* for good: a later round that fails does not take it back */
	flight->partition = message->partition;
	flight->offset = message->offset;
	if (message->err)
		return;
	flight->state = FLIGHT_DELIVERED;
	flight->arrived = true;
}
