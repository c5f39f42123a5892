/* SPDX-License-Identifier: Apache-2.0 */
/* metrics.h -- what the server counts and measures, told at /metrics in Prometheus' text format.
 *
 * Counting is a few atomic additions: no lock, no memory, no system call. Numbers only grow while
 * the process lives: a reload of the contracts resets nothing. No label names a tenant, a client or
 * a key; operations and routes are as many as the contracts declare. */
#ifndef HTTP_METRICS_H
#define HTTP_METRICS_H

#include "base/str.h"
#include "net/calls.h"
#include "store/store.h"

struct metrics;
struct operation_meter;
struct route_meter;

struct metrics *metrics_new(struct env *env); /* NULL without memory */
void metrics_free(struct metrics *metrics);   /* takes NULL */

/* The meter of an operation or route: a new one, or the one that has this name already. Lives as
 * long as the metrics. NULL without memory. By one thread at a time; others may count and read
 * meanwhile. */
struct operation_meter *metrics_operation(struct metrics *metrics, const char *operation);
struct route_meter *metrics_route(struct metrics *metrics, const char *method, const char *path);

void meter_decided(struct operation_meter *meter, enum ibid_decision decision, bool replayed,
                   int64_t took_us);
void meter_undecided(struct operation_meter *meter, int64_t took_us);
/* What an inquiry at the service behind the server told: X(symbol, name). */
#define INQUIRY_OUTCOMES(X)                                                                        \
	X(INQUIRY_EXECUTED, "executed")                                                                \
	X(INQUIRY_NOT_EXECUTED, "not_executed")                                                        \
	X(INQUIRY_UNCLEAR, "unclear") /* an answer that proves nothing, or not yet */                  \
	X(INQUIRY_UNANSWERED, "unanswered")
enum inquiry_outcome {
#define INQUIRY_OUTCOME(symbol, name) symbol,
	INQUIRY_OUTCOMES(INQUIRY_OUTCOME)
#undef INQUIRY_OUTCOME
	    INQUIRY_OUTCOME_COUNT
};

/* The operation's work is done by the service behind the server: its calls are told, too. */
void meter_calls_out(struct operation_meter *meter);
void meter_call(struct operation_meter *meter, enum call_end end, int64_t took_us);
void meter_inquiry(struct operation_meter *meter, enum inquiry_outcome outcome);

void meter_request(struct route_meter *meter, int status, int64_t took_us); /* status 0: none */

void metrics_connection(struct metrics *metrics, int change);
void metrics_reloaded(struct metrics *metrics, bool good);
void metrics_store_asked(struct metrics *metrics, int64_t took_us);
void metrics_measured(struct metrics *metrics, const struct measurement *measurement);

/* What whoever asks knows better. */
struct metrics_now {
	bool store_up;
	size_t contracts, queue_tasks, queue_limit;
	bool upstream; /* there is a service behind the server */
	size_t places, places_limit;
};
void metrics_write(const struct metrics *metrics, const struct metrics_now *now, struct str *out);

#endif
