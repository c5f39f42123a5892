/* SPDX-License-Identifier: Apache-2.0 */
/* traceparent.h -- W3C trace context: the trace that a request belongs to, and its parent span.
 *
 * "00-<trace id>-<parent id>-<flags>". Of a higher version the parts that version 00 knows are
 * read, and written as version 00. */
#ifndef BASE_TRACEPARENT_H
#define BASE_TRACEPARENT_H

#include "base/env.h"

#include <stdbool.h>

enum {
	TRACE_ID_SIZE = 32 + 1, /* hex digits and a NUL; likewise: */
	SPAN_ID_SIZE = 16 + 1,
	TRACEPARENT_SIZE = 55 + 1,
	TRACESTATE_BYTES_MAX = 512,
};

struct traceparent {
	char trace_id[TRACE_ID_SIZE], parent_id[SPAN_ID_SIZE];
	unsigned flags;
};

/* False: not a traceparent. Upper case and ids of zeros only are invalid. */
bool traceparent_read(const char *text, struct traceparent *ret);

void traceparent_write(const struct traceparent *traceparent, char ret[TRACEPARENT_SIZE]);

/* A new span in the same trace: its id takes the place of the parent's. */
void traceparent_descend(struct traceparent *traceparent, struct env *env);

/* Can it be kept and passed on: printable ASCII, and not too long? */
bool tracestate_fits(const char *text);

#endif
