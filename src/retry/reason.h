/* SPDX-License-Identifier: Apache-2.0 */
/* reason.h -- why work goes on, waits or stops: one list for codes, texts and what people may do.
 *
 * Codes are stable: they are kept with the work, searched for and alerted on. Work that stops (F03,
 * I8) also has a queue, a severity, a suggestion and allowed actions. These are defaults of the
 * policy; the contract has the owner and the due time, and may name another queue (data-quality,
 * for wrong master data). */
#ifndef RETRY_REASON_H
#define RETRY_REASON_H

#include "store/store.h"

/* Work that goes on without a person: X(symbol, code, meaning). */
#define RETRY_COURSES(X)                                                                           \
	X(DONE_BEFORE, "DONE_BEFORE", "the other side has it already: it is done")                     \
	X(TRANSIENT_FAILURE, "TRANSIENT_FAILURE", "nothing was done; it is tried again")               \
	X(CAPACITY_FAILURE, "CAPACITY_FAILURE", "the other side is busy; it is tried again, slower")   \
	X(OUTCOME_UNKNOWN, "OUTCOME_UNKNOWN", "sent, and nobody knows whether it was done")            \
	X(BREAKER_OPEN, "BREAKER_OPEN", "the other side failed too often in a row; work waits")        \
	X(RATE_LIMITED, "RATE_LIMITED", "as much as allowed was sent; work waits")                     \
	X(BUDGET_SPENT, "BUDGET_SPENT", "too much of what is sent is repetition; work waits longer")

/* Work that stopped: X(symbol, code, queue, severity, retryable, actions, meaning, suggestion).
 * Retryable: repeating it unchanged is safe and may help. Actions: the likeliest first. */
#define RETRY_STOPS(X)                                                                             \
	X(ATTEMPTS_EXHAUSTED, "ATTEMPTS_EXHAUSTED", DEAD_LETTER, HIGH, true, "release,skip,cancel",    \
	  "it failed as often as it may be tried",                                                     \
	  "see whether the other side works again, then release it")                                   \
	X(CAPACITY_EXHAUSTED, "CAPACITY_EXHAUSTED", DEAD_LETTER, MEDIUM, true, "release,skip,cancel",  \
	  "the other side was busy as often as it may be tried",                                       \
	  "lower the rate or ask for more room there, then release it")                                \
	X(OUTCOME_STILL_UNKNOWN, "OUTCOME_STILL_UNKNOWN", DEAD_LETTER, HIGH, true,                     \
	  "release,skip,cancel", "it was sent as often as it may be, and never answered",              \
	  "look for its id on the other side: skip it if it is there, else release it")                \
	X(PERMANENT_FAILURE, "PERMANENT_FAILURE", DEAD_LETTER, HIGH, false, "release,skip,cancel",     \
	  "it fails every time until something is changed",                                            \
	  "mend the settings, the schema or the code, then release it")                                \
	X(BUSINESS_REFUSAL, "BUSINESS_REFUSAL", BUSINESS, MEDIUM, false, "release,cancel,skip",        \
	  "a rule of the business refuses it",                                                         \
	  "resolve what the rule refuses and release it, or cancel it")                                \
	X(ACCESS_DENIED, "ACCESS_DENIED", SECURITY, HIGH, false, "release,skip,cancel",                \
	  "credentials, permissions or a certificate do not allow it",                                 \
	  "renew the credential or grant the permission, then release it")                             \
	X(CONFLICT, "CONFLICT", DEAD_LETTER, HIGH, false, "cancel,release,skip",                       \
	  "its id is in use for something else, or somebody else changed or owns it",                  \
	  "find out who used the id or changed it before anything is sent again")                      \
	X(POISON, "POISON", DEAD_LETTER, MEDIUM, false, "skip,cancel,release",                         \
	  "it can't be read or written at all",                                                        \
	  "mend what made it; release it only where a limit or a reader was changed")

enum retry_reason {
#define RETRY_COURSE_ENUM(symbol, code, meaning) RETRY_##symbol,
#define RETRY_STOP_ENUM(symbol, code, queue, severity, retryable, actions, meaning, suggestion)    \
	RETRY_##symbol,
	RETRY_COURSES(RETRY_COURSE_ENUM) RETRY_STOPS(RETRY_STOP_ENUM)
#undef RETRY_COURSE_ENUM
#undef RETRY_STOP_ENUM
	    RETRY_REASON_COUNT
};

/* The exception of work that stopped. */
struct retry_stop {
	enum exception_queue queue;
	enum exception_severity severity;
	bool retryable;
	const char *actions; /* as struct exception_row has them */
	const char *suggestion;
};

const char *retry_reason_code(enum retry_reason reason);
const char *retry_reason_meaning(enum retry_reason reason);           /* one clause */
const struct retry_stop *retry_reason_stop(enum retry_reason reason); /* NULL: it does not stop */

#endif
