/* SPDX-License-Identifier: Apache-2.0 */
/* cloudevent.h -- a record as CloudEvents 1.0: the attributes of an event, and its JSON form. */
#ifndef BROKER_CLOUDEVENT_H
#define BROKER_CLOUDEVENT_H

#include "base/str.h"
#include "broker/broker.h"

enum { CLOUDEVENT_ID_BYTES_MAX = 256, CLOUDEVENT_ATTRIBUTES = 6 };

/* The attributes of a record other than the extensions, `specversion` first; attributes without a
 * value are left out. Returns how many. */
size_t cloudevent_attributes(const struct record *record,
                             struct broker_header ret[CLOUDEVENT_ATTRIBUTES]);

/* Can the record be sent? False: it was marked as failed, as poison. */
bool cloudevent_check(struct record *record);

/* The event as one line of JSON, newline included. False: nothing was added, and the record has
 * failed: its payload is not JSON, or is too large. */
bool cloudevent_line(struct record *record, struct str *out);

#endif
