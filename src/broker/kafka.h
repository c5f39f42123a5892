/* SPDX-License-Identifier: Apache-2.0 */
/* kafka.h -- the parts of the Kafka destination, among themselves.
 *
 * A producer of librdkafka is a channel. In transactional mode its `transactional.id` is the
 * channel's name, so that the broker fences an older holder, and a relay's channel has two
 * producers, which take turns; in idempotent mode no holder is fenced.
 *
 *   kafka_settings.c  what may be set, and what would weaken it
 *   kafka.c           destination and channel: opening, taking over, closing
 *   kafka_pair.c      two producers that take turns
 *   kafka_topics.c    does a topic exist, before anything is sent there
 *   kafka_batch.c     the records of one publish and the state of each
 *   kafka_publish.c   rounds: send, evaluate, commit or abort
 *   kafka_failure.c   what an error of Kafka's means */
#ifndef BROKER_KAFKA_H
#define BROKER_KAFKA_H

#include "broker/broker.h"

#include <librdkafka/rdkafka.h>

/* ---- Settings ------------------------------------------------------------------------------- */

struct kafka_settings {
	bool transactional;
	int64_t delivery_us;   /* how long a record may take to be acknowledged */
	rd_kafka_conf_t *conf; /* of every producer, without the settings of one channel */
};

IBID_CHECK enum ibid_code kafka_settings_read(const struct broker_options *options,
                                              struct kafka_settings *ret, struct ibid_err *err);

/* ---- Failures ------------------------------------------------------------------------------- */

/* What an error is about. Kafka refuses records in sets, and does not say which record of a set was
 * the reason. */
enum kafka_blame { BLAME_RECORD, BLAME_TOPIC, BLAME_BROKER };

struct kafka_meaning {
	rd_kafka_resp_err_t error;
	enum failure_class failure;
	enum kafka_blame blame;
	const char *reason;
};
const struct kafka_meaning *kafka_meaning(rd_kafka_resp_err_t error); /* never NULL */

bool kafka_is_fenced(rd_kafka_resp_err_t error);
bool kafka_is_purged(rd_kafka_resp_err_t error); /* refused together with other records */

/* ---- Destination and channel ---------------------------------------------------------------- */

struct kafka {
	struct broker base;
	char *name;
	struct kafka_settings settings;
	struct env *env;
	struct log log;
};

enum kafka_state {
	CHANNEL_GOOD,
	CHANNEL_FENCED, /* another holder took it over */
	CHANNEL_BROKEN, /* it has to be opened anew */
};

struct kafka_topic {
	char *name;
	rd_kafka_topic_t *handle;
	rd_kafka_resp_err_t error; /* why nothing can be sent there; NO_ERROR: it can */
	uint64_t asked;            /* in which turn of the channel's */
	bool proven;               /* a transaction of this channel's with it has gone through */
	struct kafka_topic *next;
};

struct kafka_batch;

struct kafka_channel {
	struct channel base;
	char *name;
	rd_kafka_t *producer;
	enum kafka_state state;
	struct kafka_topic *topics;
	uint64_t turn;             /* counts what is published */
	struct kafka_batch *batch; /* that delivery reports belong to; NULL: they are ignored */
	/* The last error that librdkafka reported by itself: "SASL authentication failed". */
	rd_kafka_resp_err_t complaint;
	char complaint_text[BROKER_WHY_SIZE];
};

static inline struct kafka *kafka_of(const struct kafka_channel *channel)
{
	return (struct kafka *)channel->base.broker;
}

enum { KAFKA_NAME_SIZE = 256 };

/* See struct broker_ops: with one producer, and with two. */
IBID_CHECK enum ibid_code kafka_channel_open(struct broker *base, const char *name,
                                             struct channel **ret, struct ibid_err *err);
void kafka_channel_close(struct channel *base);
IBID_CHECK enum ibid_code kafka_pair_open(struct broker *base, const char *name,
                                          struct channel **ret, struct ibid_err *err);
enum ibid_code kafka_pair_publish(struct channel *base, struct record *records, size_t count,
                                  const atomic_bool *stop, struct ibid_err *err);
void kafka_pair_close(struct channel *base);

/* Create a producer for a channel that has none. Does not wait. */
IBID_CHECK enum ibid_code kafka_producer_new(struct kafka_channel *channel, struct ibid_err *err);
/* Discards the records that are not sent yet. */
void kafka_producer_drop(struct kafka_channel *channel);

/* The error of an unusable channel: IBID_FENCED or IBID_UNAVAILABLE. */
enum ibid_code kafka_unusable(const struct kafka_channel *channel, struct ibid_err *err);

/* ---- Waiting -------------------------------------------------------------------------------- */

struct kafka_watch {
	struct env *env;
	const atomic_bool *stop; /* NULL: it can't be stopped */
	int64_t until_us;        /* on the steady clock */
};
enum { KAFKA_SLICE_MS = 100 }; /* between two checks of `stop` */

static inline bool kafka_stopped(const struct kafka_watch *watch)
{
	return watch->stop && atomic_load_explicit(watch->stop, memory_order_relaxed);
}
static inline bool kafka_late(const struct kafka_watch *watch)
{
	return env_steady_us(watch->env) >= watch->until_us;
}

/* ---- Topics --------------------------------------------------------------------------------- */

/* The topic, which exists or has an error. Asks the broker if necessary, once a turn.
 * IBID_UNAVAILABLE: there was no answer in time. */
IBID_CHECK enum ibid_code kafka_topic_find(struct kafka_channel *channel, const char *name,
                                           const struct kafka_watch *watch,
                                           struct kafka_topic **ret, struct ibid_err *err);
void kafka_topics_clear(struct kafka_channel *channel);

/* ---- The records of one publish ------------------------------------------------------------- */

/* The states of a record: WAITING -> SENT -> DELIVERED -> ENDED (it has its result), or back to
 * WAITING when its round was aborted. HELD: an earlier record of its aggregate failed, it is not
 * sent (I5). */
enum flight_state { FLIGHT_WAITING, FLIGHT_SENT, FLIGHT_DELIVERED, FLIGHT_HELD, FLIGHT_ENDED };

struct flight {
	enum flight_state state;
	rd_kafka_resp_err_t error; /* of its delivery */
	bool maybe;                /* it may have been written, in this round or an earlier one */
	bool suspect;              /* it was refused together with others: it is sent alone */
	bool arrived;              /* by the producer that the channel has now */
	bool expected; /* behind a delivered record: the broker checks its sequence number */
	struct kafka_topic *topic;
	size_t before, after; /* of the same aggregate; FLIGHT_NONE: none */
	int32_t partition;
	int64_t offset;
};
#define FLIGHT_NONE SIZE_MAX

struct kafka_batch {
	struct record *records;
	struct flight *flights;
	size_t count;
	size_t flying; /* without a delivery report */
};

IBID_CHECK enum ibid_code kafka_batch_init(struct kafka_batch *batch, struct record *records,
                                           size_t count, struct ibid_err *err);
void kafka_batch_release(struct kafka_batch *batch);

/* Result: RECORD_FAILED with this error. Later records of its aggregate are held. */
void kafka_batch_fail(struct kafka_batch *batch, size_t index, rd_kafka_resp_err_t error);
/* All that were delivered end as RECORD_ACKED. */
void kafka_batch_ack(struct kafka_batch *batch, int64_t wall_us);
/* Result: RECORD_FAILED, FAILURE_UNKNOWN. Later records of its aggregate are held. */
void kafka_batch_lose(struct kafka_batch *batch, size_t index, const char *why);
/* The same for all records that are sent or delivered. */
void kafka_batch_lose_all(struct kafka_batch *batch, const char *why);
/* All records that are sent or delivered are WAITING again: their round was aborted. */
void kafka_batch_take_back(struct kafka_batch *batch);

/* A delivery report for record `index`. */
void kafka_batch_report(struct kafka_batch *batch, size_t index, const rd_kafka_message_t *message);

/* ---- Publishing ----------------------------------------------------------------------------- */

enum ibid_code kafka_publish(struct channel *base, struct record *records, size_t count,
                             const atomic_bool *stop, struct ibid_err *err);

#endif
