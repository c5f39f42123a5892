/* SPDX-License-Identifier: Apache-2.0 */
#include "http/outbox_metrics.h"

#include "http/prometheus.h"

#include <assert.h>
#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

enum { PIECES = 500, LABELS_BYTES_MAX = 4096 };

/* The relay to one destination: of relays that have ended, and of the present one. */
struct relay_meter {
	struct relay_meter *next;
	struct relay_counts before, latest;
	char destination[];
};

struct outbox_metrics {
	pthread_mutex_t lock; /* of all that follows */
	struct arena arena;   /* of the rows */
	struct backlog_row *rows;
	size_t count;
	bool measured;
	struct relay_meter *relays;
};

/* ---- Life ----------------------------------------------------------------------------------- */

struct outbox_metrics *outbox_metrics_new(void)
{
	struct outbox_metrics *metrics = calloc(1, sizeof *metrics);
	if (metrics)
		pthread_mutex_init(&metrics->lock, NULL);
	return metrics;
}

void outbox_metrics_free(struct outbox_metrics *metrics)
{
	if (!metrics)
		return;
	for (struct relay_meter *meter = metrics->relays, *next; meter; meter = next) {
		next = meter->next;
		free(meter);
	}
	arena_release(&metrics->arena);
	pthread_mutex_destroy(&metrics->lock);
	free(metrics);
}

/* ---- Looking -------------------------------------------------------------------------------- */

enum ibid_code outbox_metrics_measure(struct outbox_metrics *metrics, struct store *store,
                                      struct ibid_err *err)
{
	struct arena arena = {0};
	struct backlog_row *rows = NULL;
	size_t count = 0;
	enum ibid_code code = outbox_count(store, PIECES, err);
	if (!code)
		code = store->ops->measure_outbox(store, &arena, &rows, &count, err);
	if (code) {
		arena_release(&arena);
		return code;
	}
	pthread_mutex_lock(&metrics->lock);
	arena_release(&metrics->arena);
	metrics->arena = arena;
	metrics->rows = rows;
	metrics->count = count;
	metrics->measured = true;
	pthread_mutex_unlock(&metrics->lock);
	return IBID_OK;
}

/* NULL without memory: it is told the next time. */
static struct relay_meter *meter_of(struct outbox_metrics *metrics, const char *destination)
{
	struct relay_meter **at = &metrics->relays;
	size_t size = strlen(destination) + 1;
	while (*at && strcmp((*at)->destination, destination) < 0)
		at = &(*at)->next;
	if (*at && strcmp((*at)->destination, destination) == 0)
		return *at;
	struct relay_meter *meter = calloc(1, sizeof *meter + size);
	if (meter) {
		memcpy(meter->destination, destination, size);
		meter->next = *at;
		*at = meter;
	}
	return meter;
}

void outbox_metrics_note(struct outbox_metrics *metrics, struct relays *relays)
{
	pthread_mutex_lock(&metrics->lock);
	for (size_t i = 0; relays && i < relays_count(relays); i++) {
		struct relay_meter *meter = meter_of(metrics, relays_destination(relays, i));
		if (meter)
			meter->latest = relays_counts(relays, i);
	}
	pthread_mutex_unlock(&metrics->lock);
}

void outbox_metrics_ended(struct outbox_metrics *metrics)
{
	pthread_mutex_lock(&metrics->lock);
	for (struct relay_meter *meter = metrics->relays; meter; meter = meter->next) {
		relay_counts_add(&meter->before, &meter->latest);
		meter->latest = (struct relay_counts){0};
	}
	pthread_mutex_unlock(&metrics->lock);
}

/* ---- Telling -------------------------------------------------------------------------------- */

struct family {
	const char *name, *type, *help;
	size_t offset;
	bool seconds;
};

#define AT(member) offsetof(struct backlog_row, member)
static const struct family of_store[] = {
    {"ibid_outbox_backlog", "gauge",
     "Events that neither arrived at the destination nor were skipped; held ones are among them.",
     AT(backlog), false},
    {"ibid_outbox_oldest_seconds", "gauge", "The age of the oldest event of the backlog.",
     AT(oldest_us), true},
    {"ibid_outbox_held", "gauge",
     "Events that failed, and those that wait behind them in their aggregates.", AT(held), false},
    {"ibid_outbox_failed", "gauge", "Of those held: they are tried again by themselves.",
     AT(failed), false},
    {"ibid_outbox_parked", "gauge", "Of those held: a person has to decide.", AT(parked), false},
    {"ibid_outbox_written_total", "counter", "Events written for the destination.", AT(written),
     false},
    {"ibid_outbox_published_total", "counter",
     "Events that arrived, by whichever relay: up to a second's less where one was killed.",
     AT(delivered), false},
    {"ibid_outbox_lanes_leased", "gauge", "Lanes of the destination that a relay holds, of 2.",
     AT(leased), false},
    {"ibid_outbox_moved_timestamp_seconds", "gauge",
     "When a relay last got on in a lane of the destination; 0: never.", AT(moved_us), true},
};
#undef AT
static_assert(OUTBOX_LANES == 2, "the help of ibid_outbox_lanes_leased says so");

#define AT(member) offsetof(struct relay_counts, member)
static const struct family of_relay[] = {
    {"ibid_relay_published_total", "counter",
     "Events that this process brought to the destination.", AT(delivered), false},
    {"ibid_relay_recovered_total", "counter", "Of those published: they had failed before.",
     AT(recovered), false},
    {"ibid_relay_parked_total", "counter", "Events that were parked, each an exception.",
     AT(parked), false},
    {"ibid_relay_batches_total", "counter", "Batches that had an answer for each event.",
     AT(batches), false},
    {"ibid_relay_fenced_total", "counter",
     "Lanes that were lost to another relay, in the store or at the destination.", AT(fenced),
     false},
};
#undef AT

static void add_value(struct str *out, const struct family *family, const char *destination,
                      const void *row)
{
	int64_t value = *(const int64_t *)((const char *)row + family->offset);
	str_addf(out, "%s{", family->name);
	prom_label(out, "destination", destination);
	str_adds(out, "} ");
	if (family->seconds)
		prom_us(out, value);
	else
		str_addf(out, "%lld", (long long)value);
	str_addc(out, '\n');
}

static void write_store(const struct outbox_metrics *metrics, struct str *out)
{
	for (size_t i = 0; i < sizeof of_store / sizeof *of_store; i++) {
		const struct family *family = &of_store[i];
		prom_family(out, family->name, family->type, family->help);
		for (size_t k = 0; k < metrics->count; k++)
			add_value(out, family, metrics->rows[k].destination, &metrics->rows[k]);
	}
}

static struct relay_counts all_of(const struct relay_meter *meter)
{
	struct relay_counts all = meter->before;
	relay_counts_add(&all, &meter->latest);
	return all;
}

static void add_classes(struct str *out, const char *name, const char *destination,
                        const int64_t counts[FAILURE_CLASS_COUNT])
{
	for (size_t i = 0; i < FAILURE_CLASS_COUNT; i++) {
		str_addf(out, "%s{", name);
		prom_label(out, "destination", destination);
		str_addf(out, ",failure=\"%s\"} %lld\n", failure_class_name((enum failure_class)i),
		         (long long)counts[i]);
	}
}

static void write_failures(const struct outbox_metrics *metrics, struct str *out)
{
	static const char failures[] = "ibid_relay_failures_total";
	static const char outages[] = "ibid_relay_outages_total";
	prom_family(out, failures, "counter", "Attempts at an event that failed, by kind of failure.");
	for (const struct relay_meter *meter = metrics->relays; meter; meter = meter->next) {
		struct relay_counts all = all_of(meter);
		add_classes(out, failures, meter->destination, all.failed);
	}
	prom_family(out, outages, "counter",
	            "Batches that failed as one, the destination being away: no event's attempt.");
	for (const struct relay_meter *meter = metrics->relays; meter; meter = meter->next) {
		struct relay_counts all = all_of(meter);
		add_classes(out, outages, meter->destination, all.outages);
	}
}

static void add_ages(struct str *out, const char *name, const char *destination,
                     const struct relay_counts *counts)
{
#define AGE_TEXT(us, text) text,
	static const char *const bounds[] = {RELAY_AGES(AGE_TEXT) "+Inf"};
#undef AGE_TEXT
	struct str labels = STR_INIT(LABELS_BYTES_MAX);
	int64_t count = 0;
	prom_label(&labels, "destination", destination);
	for (size_t i = 0; i <= RELAY_AGE_COUNT; i++) {
		count += counts->ages[i];
		str_addf(out, "%s_bucket{%s,le=\"%s\"} %lld\n", name, str_text(&labels), bounds[i],
		         (long long)count);
	}
	str_addf(out, "%s_sum{%s} ", name, str_text(&labels));
	prom_us(out, counts->age_sum_us);
	str_addf(out, "\n%s_count{%s} %lld\n", name, str_text(&labels), (long long)count);
	out->failed |= labels.failed;
	str_release(&labels);
}

static void write_ages(const struct outbox_metrics *metrics, struct str *out)
{
	static const char name[] = "ibid_relay_publish_seconds";
	prom_family(out, name, "histogram",
	            "From the moment at which an event was written to its acknowledgement.");
	for (const struct relay_meter *meter = metrics->relays; meter; meter = meter->next) {
		struct relay_counts all = all_of(meter);
		add_ages(out, name, meter->destination, &all);
	}
}

static void write_breakers(const struct outbox_metrics *metrics, struct str *out)
{
	static const char name[] = "ibid_relay_breaker";
	prom_family(out, name, "gauge",
	            "1 in the state that the destination's breaker is in; open: nothing is sent.");
	for (const struct relay_meter *meter = metrics->relays; meter; meter = meter->next)
		for (size_t i = 0; i < BREAKER_STATE_COUNT; i++) {
			str_addf(out, "%s{", name);
			prom_label(out, "destination", meter->destination);
			str_addf(out, ",state=\"%s\"} %d\n", breaker_state_name((enum breaker_state)i),
			         meter->latest.breaker[i] > 0);
		}
}

static void write_relays(const struct outbox_metrics *metrics, struct str *out)
{
	for (size_t i = 0; i < sizeof of_relay / sizeof *of_relay; i++) {
		const struct family *family = &of_relay[i];
		prom_family(out, family->name, family->type, family->help);
		for (const struct relay_meter *meter = metrics->relays; meter; meter = meter->next) {
			struct relay_counts all = all_of(meter);
			add_value(out, family, meter->destination, &all);
		}
	}
	write_failures(metrics, out);
	write_ages(metrics, out);
	write_breakers(metrics, out);
}

void outbox_metrics_write(struct outbox_metrics *metrics, struct str *out)
{
	pthread_mutex_lock(&metrics->lock);
	if (metrics->measured)
		write_store(metrics, out);
	if (metrics->relays)
		write_relays(metrics, out);
	pthread_mutex_unlock(&metrics->lock);
}
