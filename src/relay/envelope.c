/* SPDX-License-Identifier: Apache-2.0 */
#include "relay/envelope.h"

#include "base/instant.h"

#include <inttypes.h>
#include <string.h>

bool envelope_is_for(const struct event_row *event, const char *destination)
{
	return event_is_for(event, destination);
}

/* FNV-1a; the NULs keep the three apart. */
uint64_t envelope_aggregate(const char *tenant, const char *type, const char *id)
{
	const char *const parts[] = {tenant, type, id};
	uint64_t hash = 14695981039346656037U;
	for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
		for (const char *at = parts[i];; at++) {
			hash = (hash ^ (unsigned char)*at) * 1099511628211U;
			if (!*at)
				break;
		}
	return hash;
}

enum { HEADERS_MAX = 9 };

/* Extension attributes, those that there are. */
static size_t list_headers(struct arena *arena, const struct event_row *event,
                           struct broker_header ret[HEADERS_MAX])
{
	size_t size = 0, count = 0;
	const char *version = event_header(event, "event_version", &size);
	const struct broker_header all[HEADERS_MAX] = {
	    {"tenant", event->tenant},
	    {"aggregatetype", event->aggregate_type},
	    {"aggregateversion", arena_printf(arena, "%" PRId64, event->version)},
	    {"eventversion", version ? arena_strndup(arena, version, size) : NULL},
	    {"eventkey", event->key},
	    {"correlationid", event->correlation_id},
	    {"causationid", event->causation_id},
	    {"traceparent", event->traceparent},
	    {"tracestate", event->tracestate},
	};
	for (size_t i = 0; i < HEADERS_MAX; i++)
		if (all[i].value)
			ret[count++] = all[i];
	return count;
}

bool envelope_make(struct arena *arena, const struct event_row *event, struct record *ret)
{
	char id[UUID_TEXT_SIZE], time[INSTANT_TEXT_SIZE];
	struct broker_header *headers = arena_array(arena, HEADERS_MAX, sizeof *headers);
	if (!headers)
		return false;
	uuid_write(event->id, id);
	instant_write(event->at_us, time);
	*ret = (struct record){
	    .id = arena_strdup(arena, id),
	    .source = arena_printf(arena, "/ibid/%s/%s", event->tenant, event->aggregate_type),
	    .type = event->type,
	    .subject = event->aggregate_id,
	    .time = arena_strdup(arena, time),
	    .topic = event->topic,
	    .key = event->partition_key,
	    .payload = event->payload,
	    .payload_size = strlen(event->payload),
	    .headers = headers,
	    .header_count = list_headers(arena, event, headers),
	    .aggregate = envelope_aggregate(event->tenant, event->aggregate_type, event->aggregate_id),
	    .partition = -1,
	    .offset = -1,
	};
	return !arena->failed;
}
