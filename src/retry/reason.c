/* SPDX-License-Identifier: Apache-2.0 */
#include "retry/reason.h"

#include <assert.h>

static const struct {
	const char *code, *meaning;
	bool stops;
	struct retry_stop stop;
} reasons[RETRY_REASON_COUNT] = {
#define RETRY_COURSE_ROW(symbol, name, text) [RETRY_##symbol] = {.code = (name), .meaning = (text)},
#define RETRY_STOP_ROW(symbol, name, which, how, again, may, text, advice)                         \
	[RETRY_##symbol] = {.code = (name),                                                            \
	                    .meaning = (text),                                                         \
	                    .stops = true,                                                             \
	                    .stop = {.queue = QUEUE_##which,                                           \
	                             .severity = SEVERITY_##how,                                       \
	                             .retryable = (again),                                             \
	                             .actions = (may),                                                 \
	                             .suggestion = (advice)}},
    RETRY_COURSES(RETRY_COURSE_ROW) RETRY_STOPS(RETRY_STOP_ROW)
#undef RETRY_COURSE_ROW
#undef RETRY_STOP_ROW
};

const char *retry_reason_code(enum retry_reason reason)
{
	assert(reason < RETRY_REASON_COUNT);
	return reasons[reason].code;
}

const char *retry_reason_meaning(enum retry_reason reason)
{
	assert(reason < RETRY_REASON_COUNT);
	return reasons[reason].meaning;
}

const struct retry_stop *retry_reason_stop(enum retry_reason reason)
{
	assert(reason < RETRY_REASON_COUNT);
	return reasons[reason].stops ? &reasons[reason].stop : NULL;
}
