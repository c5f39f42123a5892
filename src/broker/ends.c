/* SPDX-License-Identifier: Apache-2.0 */
#include "broker/ends.h"

#include "base/utf8.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void records_clear(struct record *records, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		struct record *record = &records[i];
		record->end = RECORD_NOT_TRIED;
		record->failure = FAILURE_TRANSIENT;
		record->concern = CONCERNS_RECORD;
		record->reason = NULL;
		record->why[0] = record->place[0] = 0;
		record->retry_after_us = record->acked_us = 0;
		record->partition = -1;
		record->offset = -1;
	}
}

/* Bytes of any origin: what is no printable text becomes a blank. */
static void make_plain(char *text)
{
	size_t size = strlen(text);
	for (size_t i = 0; i < size;) {
		size_t step = utf8_size(text + i, size - i);
		bool c1 = step == 2 && (unsigned char)text[i] == 0xc2 && (unsigned char)text[i + 1] < 0xa0;
		if (!step || c1 || (unsigned char)text[i] < ' ' || text[i] == 0x7f)
			memset(text + i, ' ', step ? step : 1);
		i += step ? step : 1;
	}
}

void record_fail(struct record *record, enum failure_class failure, const char *reason,
                 const char *format, ...)
{
	va_list args;
	record->end = RECORD_FAILED;
	record->failure = failure;
	record->reason = reason;
	va_start(args, format);
	vsnprintf(record->why, sizeof record->why, format, args);
	va_end(args);
	make_plain(record->why);
}

void record_put(struct record *record, const char *place)
{
	size_t size = strlen(place), most = sizeof record->place - 1;
	if (size > most)
		size = utf8_ok(place, size) ? utf8_fit(place, size, most) : most;
	memcpy(record->place, place, size);
	record->place[size] = 0;
}

void record_ack(struct record *record, const char *place, int64_t offset, int64_t now_us)
{
	record->end = RECORD_ACKED;
	record_put(record, place);
	record->offset = offset;
	record->acked_us = now_us;
}

struct standing {
	uint64_t aggregate;
	size_t index;
};

static int compare(const void *left, const void *right)
{
	const struct standing *a = left, *b = right;
	if (a->aggregate != b->aggregate)
		return a->aggregate < b->aggregate ? -1 : 1;
	return a->index < b->index ? -1 : a->index > b->index;
}

struct turn *records_turns(const struct record *records, size_t count)
{
	struct turn *turns = calloc(count + 1, sizeof *turns);
	struct standing *order = calloc(count + 1, sizeof *order);
	if (turns && order) {
		for (size_t i = 0; i < count; i++)
			order[i] = (struct standing){records[i].aggregate, i};
		qsort(order, count, sizeof *order, compare);
		for (size_t i = 0; i < count; i++) {
			bool last = i + 1 == count || order[i + 1].aggregate != order[i].aggregate;
			turns[order[i].index].after = last ? RECORD_NONE : order[i + 1].index;
			turns[order[i].index].first = i == 0 || order[i - 1].aggregate != order[i].aggregate;
		}
	} else {
		free(turns);
		turns = NULL;
	}
	free(order);
	return turns;
}
