/* SPDX-License-Identifier: Apache-2.0 */
/* work.h -- one running command as its handler sees it: what came in, and what it says of it. */
#ifndef COMMAND_WORK_H
#define COMMAND_WORK_H

#include "contract/payload.h"
#include "store/store.h"

enum {
	EVENTS_MAX = 1000, /* per command */
	ANSWER_BYTES_MAX = 4 << 20,
	EVENT_BYTES_MAX = 1 << 20,
	REASON_BYTES_MAX = 64,
	TEXT_BYTES_MAX = 2000,
};

struct ibid_work {
	struct arena *arena; /* of the attempt */
	struct tx *tx;
	const struct contract *contract;
	const struct identity *identity;
	const struct sender *sender;
	struct params params;
	const char *payload; /* canonical */
	struct uuid id;
	char command_id[UUID_TEXT_SIZE], now[40];
	int64_t now_us;
	const char *correlation_id, *causation_id, *traceparent, *tracestate; /* NULL: none */
	const struct event_rules *rules;
	void *connection;

	/* What the handler said. */
	struct event_row *events;
	size_t event_count;
	bool answered;
	struct outcome outcome;
	struct ibid_err failure; /* code IBID_OK: none */
};

/* Add an event, whose payload is in canonical form; `value` is what was read of it, NULL where it
 * was not. IBID_OK, or the code of work->failure. */
enum ibid_code work_note_event(struct ibid_work *work, const struct ibid_event *event,
                               const char *payload, struct json *value);

/* What the handler's return code and words add up to: IBID_OK, IBID_REJECTED, IBID_DUPLICATE,
 * IBID_RETRY or IBID_FAILED, with work->outcome complete. */
enum ibid_code work_result(struct ibid_work *work, enum ibid_code returned);

/* Check what a handler answered, and bring its body into canonical form unless it is exact.
 * IBID_OK, or IBID_FAILED with outcome->text. Used for callbacks and scripts alike. */
enum ibid_code work_check_answer(struct arena *arena, struct outcome *outcome);
enum ibid_code work_check_rejection(struct arena *arena, struct outcome *outcome);

/* May it be the reason of what is not a success? */
bool work_reason_ok(const char *reason);

/* The sentence of a failure, where it is one that can be kept. */
const char *work_text_or(const char *text, const char *otherwise);

/* Put the reason of a failure where the ledger looks for it. Returns IBID_FAILED. */
enum ibid_code outcome_fail(struct arena *arena, struct outcome *outcome, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
