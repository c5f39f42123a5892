/* SPDX-License-Identifier: Apache-2.0 */
/* metrics.c -- meters, and the page that tells them.
 *
 * Meters are in lists that only grow at their ends, so whoever reads one needs no lock. Additions
 * are relaxed: each number is right, and two of them may be of slightly different moments. */
#include "http/metrics.h"

#include "http/prometheus.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef atomic_uint_fast64_t counter;

/* Upper bounds in microseconds, and as they are written in seconds. */
static const struct {
	int64_t us;
	const char *text;
} bounds[] = {
    {500, "0.0005"},  {1000, "0.001"},  {2500, "0.0025"}, {5000, "0.005"},  {10000, "0.01"},
    {25000, "0.025"}, {50000, "0.05"},  {100000, "0.1"},  {250000, "0.25"}, {500000, "0.5"},
    {1000000, "1"},   {2500000, "2.5"}, {5000000, "5"},   {10000000, "10"}, {30000000, "30"},
};
enum { BOUNDS = sizeof bounds / sizeof *bounds };

struct histogram {
	counter counts[BOUNDS + 1]; /* each without those below it; the last has no bound */
	counter sum_us;
};

#define COUNT_ONE(symbol, name, meaning) +1
enum { DECISIONS = 0 IBID_DECISIONS(COUNT_ONE), UNDECIDED = DECISIONS, STATUS_CLASSES = 6 };
enum { CALL_ENDS = CALL_SILENT + 1 };
#undef COUNT_ONE

struct operation_meter {
	_Atomic(struct operation_meter *) next;
	struct histogram took;
	counter decided[DECISIONS + 1][2]; /* [..][1]: replayed */
	atomic_bool calls_out;             /* the rest is told */
	struct histogram called;
	counter calls[CALL_ENDS], inquiries[INQUIRY_OUTCOME_COUNT];
	char name[];
};

struct route_meter {
	_Atomic(struct route_meter *) next;
	struct histogram took;
	counter statuses[STATUS_CLASSES]; /* [0]: broken off without an answer; [2]: 2xx */
	const char *method;               /* behind the path; likewise owned */
	char path[];
};

struct metrics {
	_Atomic(struct operation_meter *) operations;
	_Atomic(struct route_meter *) routes;
	struct histogram store;
	atomic_int_fast64_t connections;
	counter reloads, reload_failures;
	int64_t began_us;
	struct env *env;

	/* Of the last measurement; none yet: measured_us is 0. */
	atomic_int_fast64_t measured_us, commands, in_progress, stale, unknown, open, overdue;
};

static void add(counter *to, uint64_t more)
{
	atomic_fetch_add_explicit(to, more, memory_order_relaxed);
}

static uint64_t value_of(const counter *of)
{
	return atomic_load_explicit((counter *)(uintptr_t)of, memory_order_relaxed);
}

/* ---- Life ----------------------------------------------------------------------------------- */

struct metrics *metrics_new(struct env *env)
{
	struct metrics *metrics = calloc(1, sizeof *metrics);
	if (metrics) {
		metrics->env = env;
		metrics->began_us = env_wall_us(env);
	}
	return metrics;
}

void metrics_free(struct metrics *metrics)
{
	if (!metrics)
		return;
	for (struct operation_meter *meter = metrics->operations, *next; meter; meter = next) {
		next = meter->next;
		free(meter);
	}
	for (struct route_meter *meter = metrics->routes, *next; meter; meter = next) {
		next = meter->next;
		free(meter);
	}
	free(metrics);
}

struct operation_meter *metrics_operation(struct metrics *metrics, const char *operation)
{
	_Atomic(struct operation_meter *) *at = &metrics->operations;
	size_t size = strlen(operation) + 1;
	for (struct operation_meter *meter; (meter = *at); at = &meter->next)
		if (strcmp(meter->name, operation) == 0)
			return meter;
	struct operation_meter *meter = calloc(1, sizeof *meter + size);
	if (meter) {
		memcpy(meter->name, operation, size);
		*at = meter; /* whole before anybody can see it */
	}
	return meter;
}

struct route_meter *metrics_route(struct metrics *metrics, const char *method, const char *path)
{
	_Atomic(struct route_meter *) *at = &metrics->routes;
	size_t size = strlen(path) + 1, method_size = strlen(method) + 1;
	for (struct route_meter *meter; (meter = *at); at = &meter->next)
		if (strcmp(meter->path, path) == 0 && strcmp(meter->method, method) == 0)
			return meter;
	struct route_meter *meter = calloc(1, sizeof *meter + size + method_size);
	if (meter) {
		memcpy(meter->path, path, size);
		memcpy(meter->path + size, method, method_size);
		meter->method = meter->path + size;
		*at = meter;
	}
	return meter;
}

/* ---- Counting ------------------------------------------------------------------------------- */

static void observe(struct histogram *histogram, int64_t took_us)
{
	size_t i = 0;
	while (i < BOUNDS && took_us > bounds[i].us)
		i++;
	add(&histogram->counts[i], 1);
	add(&histogram->sum_us, took_us > 0 ? (uint64_t)took_us : 0);
}

void meter_decided(struct operation_meter *meter, enum ibid_decision decision, bool replayed,
                   int64_t took_us)
{
	size_t index = (size_t)decision < DECISIONS ? (size_t)decision : UNDECIDED;
	add(&meter->decided[index][replayed], 1);
	observe(&meter->took, took_us);
}

void meter_undecided(struct operation_meter *meter, int64_t took_us)
{
	add(&meter->decided[UNDECIDED][false], 1);
	observe(&meter->took, took_us);
}

void meter_calls_out(struct operation_meter *meter)
{
	meter->calls_out = true;
}

void meter_call(struct operation_meter *meter, enum call_end end, int64_t took_us)
{
	add(&meter->calls[end], 1);
	observe(&meter->called, took_us);
}

void meter_inquiry(struct operation_meter *meter, enum inquiry_outcome outcome)
{
	add(&meter->inquiries[outcome], 1);
}

void meter_request(struct route_meter *meter, int status, int64_t took_us)
{
	size_t class = (size_t)status / 100;
	add(&meter->statuses[class < STATUS_CLASSES ? class : 0], 1);
	observe(&meter->took, took_us);
}

void metrics_connection(struct metrics *metrics, int change)
{
	atomic_fetch_add_explicit(&metrics->connections, change, memory_order_relaxed);
}

void metrics_reloaded(struct metrics *metrics, bool good)
{
	add(good ? &metrics->reloads : &metrics->reload_failures, 1);
}

void metrics_store_asked(struct metrics *metrics, int64_t took_us)
{
	observe(&metrics->store, took_us);
}

void metrics_measured(struct metrics *metrics, const struct measurement *measurement)
{
	metrics->commands = measurement->commands;
	metrics->in_progress = measurement->in_progress;
	metrics->stale = measurement->stale;
	metrics->unknown = measurement->unknown;
	metrics->open = measurement->open;
	metrics->overdue = measurement->overdue;
	metrics->measured_us = env_wall_us(metrics->env); /* last: whoever sees it sees the others */
}

/* ---- Telling -------------------------------------------------------------------------------- */

/* `labels`: "a=\"b\"", or "" */
static void add_histogram(struct str *out, const char *name, const char *labels,
                          const struct histogram *histogram)
{
	const char *comma = *labels ? "," : "", *open = *labels ? "{" : "", *close = *labels ? "}" : "";
	uint64_t count = 0, sum_us = value_of(&histogram->sum_us);
	for (size_t i = 0; i <= BOUNDS; i++) {
		count += value_of(&histogram->counts[i]);
		str_addf(out, "%s_bucket{%s%sle=\"%s\"} %llu\n", name, labels, comma,
		         i < BOUNDS ? bounds[i].text : "+Inf", (unsigned long long)count);
	}
	str_addf(out, "%s_sum%s%s%s %llu.%06llu\n", name, open, labels, close,
	         (unsigned long long)(sum_us / 1000000), (unsigned long long)(sum_us % 1000000));
	str_addf(out, "%s_count%s%s%s %llu\n", name, open, labels, close, (unsigned long long)count);
}

static void add_commands(struct str *out, const struct operation_meter *meter)
{
	for (size_t i = 0; i <= DECISIONS; i++) {
		for (int replayed = 0; replayed <= 1; replayed++) {
			uint64_t count = value_of(&meter->decided[i][replayed]);
			bool outcome = i == IBID_DECISION_EXECUTED || i == IBID_DECISION_REJECTED ||
			               i == IBID_DECISION_LINKED;
			if (replayed && !outcome && !count)
				continue; /* there are none that are given back */
			str_adds(out, "ibid_commands_total{");
			prom_label(out, "operation", meter->name);
			str_addf(out, ",decision=\"%s\",replayed=\"%s\"} %llu\n",
			         i == UNDECIDED ? "undecided" : ibid_decision_name((enum ibid_decision)i),
			         replayed ? "true" : "false", (unsigned long long)count);
		}
	}
}

static void write_operations(const struct metrics *metrics, struct str *out)
{
	struct str labels = STR_INIT(4096);
	prom_family(out, "ibid_commands_total", "counter",
	            "Commands by what they were told; replayed: the outcome of an earlier one. "
	            "undecided: nothing was done, the same key may be sent again.");
	for (const struct operation_meter *meter = metrics->operations; meter; meter = meter->next)
		add_commands(out, meter);
	prom_family(out, "ibid_command_seconds", "histogram",
	            "From the moment a command is taken to its outcome, waiting included.");
	for (const struct operation_meter *meter = metrics->operations; meter; meter = meter->next) {
		str_clear(&labels);
		prom_label(&labels, "operation", meter->name);
		add_histogram(out, "ibid_command_seconds", str_text(&labels), &meter->took);
	}
	out->failed |= labels.failed;
	str_release(&labels);
}

/* The calls of one operation, and what became of those without an answer. */
static void add_calls(struct str *out, const struct operation_meter *meter)
{
	static const char *const ends[CALL_ENDS] = {
	    [CALL_ANSWERED] = "answered", [CALL_NOT_SENT] = "not_sent", [CALL_SILENT] = "silent"};
	for (size_t i = 0; i < CALL_ENDS; i++) {
		str_adds(out, "ibid_upstream_calls_total{");
		prom_label(out, "operation", meter->name);
		str_addf(out, ",end=\"%s\"} %llu\n", ends[i],
		         (unsigned long long)value_of(&meter->calls[i]));
	}
}

static void add_inquiries(struct str *out, const struct operation_meter *meter)
{
	static const char *const names[] = {
#define INQUIRY_NAME(symbol, name) [symbol] = (name),
	    INQUIRY_OUTCOMES(INQUIRY_NAME)
#undef INQUIRY_NAME
	};
	for (size_t i = 0; i < INQUIRY_OUTCOME_COUNT; i++) {
		str_adds(out, "ibid_upstream_inquiries_total{");
		prom_label(out, "operation", meter->name);
		str_addf(out, ",outcome=\"%s\"} %llu\n", names[i],
		         (unsigned long long)value_of(&meter->inquiries[i]));
	}
}

static void add_call_seconds(struct str *out, const struct operation_meter *meter)
{
	struct str labels = STR_INIT(4096);
	prom_label(&labels, "operation", meter->name);
	add_histogram(out, "ibid_upstream_seconds", str_text(&labels), &meter->called);
	out->failed |= labels.failed;
	str_release(&labels);
}

static void write_upstream(const struct metrics *metrics, const struct metrics_now *now,
                           struct str *out)
{
	static const struct {
		const char *name, *type, *help;
		void (*add)(struct str *out, const struct operation_meter *meter);
	} families[] = {
	    {"ibid_upstream_calls_total", "counter",
	     "Protected requests to the service behind the server, by their end; not_sent: it can't be "
	     "reached; silent: sent, and no whole answer came.",
	     add_calls},
	    {"ibid_upstream_seconds", "histogram", "From the start of such a request to its end.",
	     add_call_seconds},
	    {"ibid_upstream_inquiries_total", "counter",
	     "Questions to the service about what became of a request without an answer; unclear: the "
	     "answer proves nothing, or not yet.",
	     add_inquiries},
	};
	if (!now->upstream)
		return;
	for (size_t i = 0; i < sizeof families / sizeof *families; i++) {
		prom_family(out, families[i].name, families[i].type, families[i].help);
		for (const struct operation_meter *meter = metrics->operations; meter; meter = meter->next)
			if (meter->calls_out)
				families[i].add(out, meter);
	}
	prom_number(out, "ibid_upstream_places", "gauge",
	            "Protected requests that are at the service or on their way.",
	            (int64_t)now->places);
	prom_number(out, "ibid_upstream_limit", "gauge", "How many may be there at once.",
	            (int64_t)now->places_limit);
}

static void write_routes(const struct metrics *metrics, struct str *out)
{
	static const char *const classes[STATUS_CLASSES] = {"none", "1xx", "2xx", "3xx", "4xx", "5xx"};
	struct str labels = STR_INIT(16384);
	prom_family(out, "ibid_http_requests_total", "counter",
	            "Requests that ended, by route and class of status; none: broken off before.");
	for (const struct route_meter *meter = metrics->routes; meter; meter = meter->next) {
		for (size_t i = 0; i < STATUS_CLASSES; i++) {
			if (i == 1)
				continue; /* never given */
			str_adds(out, "ibid_http_requests_total{");
			prom_label(out, "route", meter->path);
			str_addc(out, ',');
			prom_label(out, "method", meter->method);
			str_addf(out, ",code=\"%s\"} %llu\n", classes[i],
			         (unsigned long long)value_of(&meter->statuses[i]));
		}
	}
	prom_family(out, "ibid_http_request_seconds", "histogram",
	            "From the first line of a request to the last byte of its answer.");
	for (const struct route_meter *meter = metrics->routes; meter; meter = meter->next) {
		str_clear(&labels);
		prom_label(&labels, "route", meter->path);
		str_addc(&labels, ',');
		prom_label(&labels, "method", meter->method);
		add_histogram(out, "ibid_http_request_seconds", str_text(&labels), &meter->took);
	}
	out->failed |= labels.failed;
	str_release(&labels);
}

static void write_measurement(const struct metrics *metrics, struct str *out)
{
	int64_t measured_us = metrics->measured_us;
	if (!measured_us)
		return;
	prom_number(out, "ibid_in_progress_commands", "gauge",
	            "Staged commands that a worker holds, in the store.", metrics->in_progress);
	prom_number(out, "ibid_stale_commands", "gauge",
	            "Of those in progress: the lease has ended, the worker went silent.",
	            metrics->stale);
	prom_number(out, "ibid_unknown_commands", "gauge",
	            "Commands of which nobody knows whether they ran, in the store.", metrics->unknown);
	prom_number(out, "ibid_open_exceptions", "gauge", "Items of human work that are open.",
	            metrics->open);
	prom_number(out, "ibid_overdue_exceptions", "gauge",
	            "Of those open: nobody resolved them in time.", metrics->overdue);
	prom_number(out, "ibid_ledger_commands", "gauge",
	            "Commands in the store: a cheap estimate where they are many.", metrics->commands);
	prom_seconds(out, "ibid_ledger_measured_timestamp_seconds",
	             "When the store was last asked for the numbers of the ledger.", measured_us);
}

void metrics_write(const struct metrics *metrics, const struct metrics_now *now, struct str *out)
{
	write_operations(metrics, out);
	write_routes(metrics, out);
	write_upstream(metrics, now, out);
	prom_number(out, "ibid_http_connections", "gauge", "Connections of clients.",
	            metrics->connections);
	prom_number(out, "ibid_queue_tasks", "gauge",
	            "Commands and look-ups on their way, waiting or running.",
	            (int64_t)now->queue_tasks);
	prom_number(out, "ibid_queue_limit", "gauge",
	            "How many may be on their way at once; one tenant has half of that.",
	            (int64_t)now->queue_limit);
	prom_number(out, "ibid_store_up", "gauge",
	            "1: the store answered and could take commands, a moment ago.", now->store_up);
	prom_family(out, "ibid_store_seconds", "histogram",
	            "One look-up in the store, tried every second, failed ones included.");
	add_histogram(out, "ibid_store_seconds", "", &metrics->store);
	prom_number(out, "ibid_contracts", "gauge", "Contracts in force.", (int64_t)now->contracts);
	prom_number(out, "ibid_contracts_reloads_total", "counter",
	            "Reloads that put contracts in force.", (int64_t)value_of(&metrics->reloads));
	prom_number(out, "ibid_contracts_reload_failures_total", "counter",
	            "Reloads that were refused: the contracts before stayed in force.",
	            (int64_t)value_of(&metrics->reload_failures));
	write_measurement(metrics, out);
	prom_process(out, metrics->began_us);
}
