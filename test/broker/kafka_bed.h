/* SPDX-License-Identifier: Apache-2.0 */
/* kafka_bed.h -- a Kafka broker that with-kafka started, seen from outside; topics of one's own. */
#ifndef TEST_KAFKA_BED_H
#define TEST_KAFKA_BED_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <cmocka.h>

#include "broker/broker.h"

enum { NAME_SIZE = 96 };

/* Whatever is waited for has a limit: `wait` begins as {0}. Fails the test when it is over. */
struct bed_wait {
	int64_t until_us;
};
void bed_wait(struct bed_wait *wait, const char *what);

/* HOST:PORT; exits with 77 (skipped) when there is none. `door`: "", "-sasl", "-ssl". */
const char *bed_kafka(const char *door);
void bed_kafka_do(const char *verb); /* to this broker: start, stop, kill, pause, resume */
pid_t bed_kafka_pid(void);           /* its process, to be signalled at once */

/* A new topic under a unique name. `max_bytes` NULL: the broker's. */
void bed_topic(char ret[NAME_SIZE], const char *name, int partitions, const char *max_bytes);
/* Only this user may write there, and see that it exists unless all may. */
void bed_topic_allow(const char *topic, const char *user, bool seen_by_all);

/* What a topic holds, in the order of its log. */
struct seen {
	int32_t partition;
	int64_t offset;
	char key[64];  /* "-": none */
	char id[64];   /* ce_id */
	char *headers; /* "name=value\n" each */
	char *value;   /* NULL: none */
};
struct log_of {
	struct seen *seen;
	size_t count;
};
struct log_of bed_read(const char *topic, bool committed);
void bed_log_free(struct log_of *log);
/* How far its partitions are written, or readable, taken together. */
int64_t bed_written(const char *topic, bool committed);
/* Is a transaction open that has written something? */
bool bed_is_open(const char *topic);

/* A destination; `more` is name, value, ..., NULL. Fails the test when it is refused. */
struct broker *bed_broker(const char *name, const char *const *more);
struct broker *bed_broker_in(struct env *env, const char *name, const char *const *more);
enum ibid_code bed_try_broker(const char *const *settings, struct broker **ret,
                              struct ibid_err *err);
struct channel *bed_channel(struct broker *broker, const char *name);
enum ibid_code bed_publish(struct channel *channel, struct record *records, size_t count);

/* Records e<first>.. of `aggregates` aggregates in turn; the key names the aggregate. */
struct record *bed_records(const char *topic, size_t first, size_t count, size_t aggregates);
void bed_records_free(struct record *records, size_t count);
void bed_payload(struct record *record, size_t size); /* another one, so large */

/* Every acknowledged record is where its evidence says, under its id, and nobody else is visible;
 * each aggregate's first occurrences are in the order of the batch. */
void bed_check_log(const char *topic, const struct record *records, size_t count);
void bed_check_ends(const struct record *records, size_t count, enum record_end end);

#endif
