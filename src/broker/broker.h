/* SPDX-License-Identifier: Apache-2.0 */
/* broker.h -- the destinations of events: one interface for Kafka, webhooks and files.
 *
 * A broker is one configured destination. Events of one lane are sent through one *channel*, in
 * order, a batch at a time. Opening a channel takes it over: a destination that can fence (Kafka,
 * with transactions) refuses what an earlier holder of the same channel still sends, and that
 * holder gets IBID_FENCED. A lease's token in the database does not fence a broker.
 *
 * A channel belongs to one thread; channels of one broker may be used by several at once. */
#ifndef BROKER_BROKER_H
#define BROKER_BROKER_H

#include "base/env.h"
#include "base/err.h"
#include "base/failure.h"
#include "base/log.h"

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

enum { BROKER_WHY_SIZE = 256, BROKER_PLACE_SIZE = 128 };

struct broker_header {
	const char *name, *value;
};

/* The result of one record of a batch. */
enum record_end {
	RECORD_NOT_TRIED, /* not sent, or aborted: another record failed, or the relay stops */
	RECORD_ACKED,     /* the destination acknowledged it as durable */
	RECORD_FAILED,    /* `failure` says how */
};

/* What a failure is about. */
enum record_concern {
	CONCERNS_RECORD = 0, /* this record, or unclear: other records may succeed */
	CONCERNS_SENDER,     /* perhaps the channel: several in a row confirm it */
	CONCERNS_ALL,        /* the destination refuses every record */
};

/* One event to send. The caller owns the memory it points at, until publish returns. */
struct record {
	const char *id;     /* the event's id, the same each time it is sent */
	const char *source; /* CloudEvents: where it comes from; likewise: */
	const char *type, *subject, *time;
	const char *topic;   /* NULL: the destination has one place for all */
	const char *key;     /* partition key: same key, same order */
	const char *payload; /* JSON */
	size_t payload_size;
	const struct broker_header *headers; /* extension attributes: traceparent, tenant, version... */
	size_t header_count;
	/* Records of one aggregate are in a batch in version order: after a failed one the later ones
	 * of its aggregate are RECORD_NOT_TRIED (I5). Equal numbers: the same aggregate. */
	uint64_t aggregate;

	/* Its end. */
	enum record_end end;
	enum failure_class failure;
	enum record_concern concern;
	const char *reason;            /* stable code, static: "RECORD_TOO_LARGE" */
	char why[BROKER_WHY_SIZE];     /* one clause for people */
	int64_t retry_after_us;        /* the destination asked for a pause; 0: it did not */
	char place[BROKER_PLACE_SIZE]; /* evidence: topic, URL or file name */
	int32_t partition;             /* -1: there are none; likewise: */
	int64_t offset;
	int64_t acked_us; /* wall clock */
};

struct broker;
struct channel;

struct broker_ops {
	/* Take over channel `name` (unique within the destination, stable over restarts, [a-z0-9-]).
	 * May wait for the destination, at most as long as its settings say. IBID_UNAVAILABLE: later;
	 * IBID_DENIED, IBID_INVALID: somebody must change the settings. */
	enum ibid_code (*open_channel)(struct broker *, const char *name, struct channel **ret,
	                               struct ibid_err *);

	/* Send the records in order and wait for the result of each. IBID_OK: every record has its
	 * result, good or bad. IBID_FENCED: another holder took the channel over, and nothing of this
	 * batch became visible; close the channel. IBID_UNKNOWN: the outcome of the batch is unknown
	 * (records that may have arrived are RECORD_FAILED with FAILURE_UNKNOWN): it may be sent again,
	 * under the same ids and on a newly opened channel. IBID_UNAVAILABLE: nothing became visible;
	 * the channel has to be opened anew. Returns soon after `*stop` becomes true. */
	enum ibid_code (*publish)(struct channel *, struct record *, size_t count,
	                          const atomic_bool *stop, struct ibid_err *);

	void (*close_channel)(struct channel *); /* waits for nothing; takes NULL */
	void (*close)(struct broker *);
};

struct broker {
	const struct broker_ops *ops;
	const char *name; /* of the destination */
	/* Does the destination refuse a holder that lost its channel? Otherwise only *first*
	 * occurrences are in order: consumers need a guard by version. */
	bool fences;
};
struct channel {
	struct broker *broker;
};

/* One setting of a destination, as it is written under relay.destinations.NAME.KIND. */
struct broker_setting {
	const char *name, *value;
};

struct broker_options {
	const char *name; /* of the destination: [a-z0-9-]+ */
	const struct broker_setting *settings;
	size_t setting_count;
	struct env *env;
	struct log log;
};

/* Each checks its settings: the error of IBID_INVALID names the wrong, unknown or missing setting
 * and a right value. None connects: open_channel does. */
IBID_CHECK enum ibid_code broker_kafka_open(const struct broker_options *options,
                                            struct broker **ret, struct ibid_err *err);
IBID_CHECK enum ibid_code broker_webhook_open(const struct broker_options *options,
                                              struct broker **ret, struct ibid_err *err);
IBID_CHECK enum ibid_code broker_file_open(const struct broker_options *options,
                                           struct broker **ret, struct ibid_err *err);
void broker_close(struct broker *broker); /* takes NULL */

#endif
