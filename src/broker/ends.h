/* SPDX-License-Identifier: Apache-2.0 */
/* ends.h -- results of records, and the records of a batch that belong to one aggregate. */
#ifndef BROKER_ENDS_H
#define BROKER_ENDS_H

#include "broker/broker.h"

#define RECORD_NONE SIZE_MAX

/* Mark all records as not tried. */
void records_clear(struct record *records, size_t count);

/* `reason` is static. The text becomes one printable line. */
void record_fail(struct record *record, enum failure_class failure, const char *reason,
                 const char *format, ...) __attribute__((format(printf, 4, 5)));

void record_ack(struct record *record, const char *place, int64_t offset, int64_t now_us);

/* The place as evidence, cut if it is too long. */
void record_put(struct record *record, const char *place);

/* For each record the next one of its aggregate, or RECORD_NONE; and whether it is the first. To be
 * freed with free(). NULL: out of memory. */
struct turn {
	size_t after;
	bool first;
};
struct turn *records_turns(const struct record *records, size_t count);

#endif
