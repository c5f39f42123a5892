/* SPDX-License-Identifier: Apache-2.0 */
/* trace.h -- what a request says of where it comes from: correlation, causation, W3C trace. */
#ifndef HTTP_TRACE_H
#define HTTP_TRACE_H

#include "base/traceparent.h"
#include "http/request.h"

/* The trace that a request brought, with a span of its own in it. */
struct request_trace {
	struct traceparent span; /* the request's: parent of all that it causes */
	char traceparent[TRACEPARENT_SIZE];
	const char *tracestate; /* NULL: none */
};

/* Read the headers. One that is malformed, or there several times, is as if it had not been sent:
 * whoever traces must not be able to break what is traced. */
void trace_read(struct request *request);

/* Say it back. */
void trace_answer(const struct request *request);

#endif
