/* SPDX-License-Identifier: Apache-2.0 */
#include "kafka_bed.h"

#include <librdkafka/rdkafka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ADMIN_MS = 20000, ALL = 400000, PATIENCE_S = 60 };

void bed_wait(struct bed_wait *wait, const char *what)
{
	int64_t now_us = env_steady_us(env_system());
	if (!wait->until_us)
		wait->until_us = now_us + PATIENCE_S * INT64_C(1000000);
	if (now_us > wait->until_us)
		fail_msg("waited %d s for %s", (int)PATIENCE_S, what);
}

/* ---- The broker ----------------------------------------------------------------------------- */

static const char *needed(const char *name)
{
	const char *value = getenv(name);
	if (!value) {
		fprintf(stderr, "%s is not set: run this under tools/with-kafka\n", name);
		exit(77);
	}
	return value;
}

const char *bed_kafka(const char *door)
{
	static char address[64];
	char path[256];
	const char *plain = needed("IBID_TEST_KAFKA");
	if (!*door)
		return plain;
	snprintf(path, sizeof path, "%s/address%s", needed("IBID_TEST_KAFKA_DIR"), door);
	FILE *file = fopen(path, "r");
	assert_non_null(file);
	assert_int_equal(1, fscanf(file, "%63s", address));
	fclose(file);
	return address;
}

void bed_kafka_do(const char *verb)
{
	char line[600];
	snprintf(line, sizeof line, "'%s' %s '%s'", needed("IBID_TEST_KAFKA_CONTROL"), verb,
	         needed("IBID_TEST_KAFKA_DIR"));
	assert_int_equal(0, system(line));
}

pid_t bed_kafka_pid(void)
{
	char path[256];
	int pid = 0;
	snprintf(path, sizeof path, "%s/pid", needed("IBID_TEST_KAFKA_DIR"));
	FILE *file = fopen(path, "r");
	assert_non_null(file);
	assert_int_equal(1, fscanf(file, "%d", &pid));
	fclose(file);
	assert_true(pid > 1);
	return pid;
}

static rd_kafka_t *client(rd_kafka_type_t type, const char *const *settings)
{
	char why[256];
	rd_kafka_conf_t *conf = rd_kafka_conf_new();
	rd_kafka_conf_set(conf, "bootstrap.servers", bed_kafka(""), NULL, 0);
	rd_kafka_conf_set(conf, "log_level", "0", NULL, 0);
	for (; settings && *settings; settings += 2)
		assert_int_equal(RD_KAFKA_CONF_OK,
		                 rd_kafka_conf_set(conf, settings[0], settings[1], why, sizeof why));
	rd_kafka_t *rk = rd_kafka_new(type, conf, why, sizeof why);
	assert_non_null(rk);
	return rk;
}

/* ---- Topics --------------------------------------------------------------------------------- */

static void wait_for_topic(rd_kafka_t *rk, const char *name, int partitions)
{
	rd_kafka_topic_t *topic = rd_kafka_topic_new(rk, name, NULL);
	struct bed_wait wait = {0};
	for (bool there = false; !there;) {
		const struct rd_kafka_metadata *metadata = NULL;
		bed_wait(&wait, "a new topic");
		if (rd_kafka_metadata(rk, 0, topic, &metadata, ADMIN_MS))
			continue;
		there = metadata->topic_cnt == 1 && !metadata->topics[0].err &&
		        metadata->topics[0].partition_cnt == partitions;
		for (int i = 0; there && i < partitions; i++)
			there = !metadata->topics[0].partitions[i].err;
		rd_kafka_metadata_destroy(metadata);
	}
	rd_kafka_topic_destroy(topic);
}

void bed_topic(char ret[NAME_SIZE], const char *name, int partitions, const char *max_bytes)
{
	static int number;
	uint32_t random;
	env_random(env_system(), &random, sizeof random);
	snprintf(ret, NAME_SIZE, "%s-%d-%08x-%d", name, (int)getpid(), random, number++);
	rd_kafka_t *rk = client(RD_KAFKA_PRODUCER, NULL);
	rd_kafka_NewTopic_t *topic = rd_kafka_NewTopic_new(ret, partitions, 1, NULL, 0);
	if (max_bytes)
		rd_kafka_NewTopic_set_config(topic, "max.message.bytes", max_bytes);
	rd_kafka_queue_t *queue = rd_kafka_queue_new(rk);
	rd_kafka_CreateTopics(rk, &topic, 1, NULL, queue);
	rd_kafka_event_t *event = rd_kafka_queue_poll(queue, ADMIN_MS);
	assert_non_null(event);
	size_t count = 0;
	const rd_kafka_topic_result_t **results = rd_kafka_CreateTopics_result_topics(
	    rd_kafka_event_CreateTopics_result(event), &count);
	assert_int_equal(1, count);
	assert_int_equal(0, rd_kafka_topic_result_error(results[0]));
	rd_kafka_event_destroy(event);
	rd_kafka_queue_destroy(queue);
	rd_kafka_NewTopic_destroy(topic);
	wait_for_topic(rk, ret, partitions);
	rd_kafka_destroy(rk);
}

/* Brokers hear of a rule a little after it was made. */
static void wait_for_rule(rd_kafka_t *rk, const char *topic, const char *principal,
                          rd_kafka_AclOperation_t operation)
{
	rd_kafka_AclBindingFilter_t *filter = rd_kafka_AclBindingFilter_new(
	    RD_KAFKA_RESOURCE_TOPIC, topic, RD_KAFKA_RESOURCE_PATTERN_LITERAL, principal, "*",
	    operation, RD_KAFKA_ACL_PERMISSION_TYPE_ALLOW, NULL, 0);
	rd_kafka_queue_t *queue = rd_kafka_queue_new(rk);
	struct bed_wait wait = {0};
	for (size_t count = 0; count == 0;) {
		bed_wait(&wait, "a new rule");
		rd_kafka_DescribeAcls(rk, filter, NULL, queue);
		rd_kafka_event_t *event = rd_kafka_queue_poll(queue, ADMIN_MS);
		assert_non_null(event);
		assert_int_equal(0, rd_kafka_event_error(event));
		rd_kafka_DescribeAcls_result_acls(rd_kafka_event_DescribeAcls_result(event), &count);
		rd_kafka_event_destroy(event);
	}
	rd_kafka_queue_destroy(queue);
	rd_kafka_AclBinding_destroy(filter);
}

static void add_rule(const char *topic, const char *user, rd_kafka_AclOperation_t operation)
{
	char principal[64];
	snprintf(principal, sizeof principal, "User:%s", user);
	rd_kafka_t *rk = client(RD_KAFKA_PRODUCER, NULL);
	rd_kafka_AclBinding_t *rule = rd_kafka_AclBinding_new(
	    RD_KAFKA_RESOURCE_TOPIC, topic, RD_KAFKA_RESOURCE_PATTERN_LITERAL, principal, "*",
	    operation, RD_KAFKA_ACL_PERMISSION_TYPE_ALLOW, NULL, 0);
	rd_kafka_queue_t *queue = rd_kafka_queue_new(rk);
	rd_kafka_CreateAcls(rk, &rule, 1, NULL, queue);
	rd_kafka_event_t *event = rd_kafka_queue_poll(queue, ADMIN_MS);
	assert_non_null(event);
	assert_int_equal(0, rd_kafka_event_error(event));
	rd_kafka_event_destroy(event);
	rd_kafka_queue_destroy(queue);
	rd_kafka_AclBinding_destroy(rule);
	wait_for_rule(rk, topic, principal, operation);
	rd_kafka_destroy(rk);
}

void bed_topic_allow(const char *topic, const char *user, bool seen_by_all)
{
	add_rule(topic, user, RD_KAFKA_ACL_OPERATION_WRITE);
	if (seen_by_all)
		add_rule(topic, "*", RD_KAFKA_ACL_OPERATION_DESCRIBE);
}

/* ---- Reading -------------------------------------------------------------------------------- */

static int partitions_of(rd_kafka_t *rk, const char *name)
{
	const struct rd_kafka_metadata *metadata = NULL;
	rd_kafka_topic_t *topic = rd_kafka_topic_new(rk, name, NULL);
	assert_int_equal(0, rd_kafka_metadata(rk, 0, topic, &metadata, ADMIN_MS));
	int count = metadata->topics[0].partition_cnt;
	rd_kafka_metadata_destroy(metadata);
	rd_kafka_topic_destroy(topic);
	return count;
}

static void take(struct log_of *log, const rd_kafka_message_t *message)
{
	struct seen *seen = &log->seen[log->count++];
	assert_true(log->count < ALL);
	*seen = (struct seen){.partition = message->partition, .offset = message->offset};
	snprintf(seen->key, sizeof seen->key, "%.*s", message->key ? (int)message->key_len : 1,
	         message->key ? (const char *)message->key : "-");
	if (message->payload) {
		seen->value = malloc(message->len + 1);
		memcpy(seen->value, message->payload, message->len);
		seen->value[message->len] = 0;
	}
	rd_kafka_headers_t *headers = NULL;
	const char *name;
	const void *value;
	size_t size, room = 0;
	FILE *out = open_memstream(&seen->headers, &room);
	if (!rd_kafka_message_headers(message, &headers))
		for (size_t i = 0; !rd_kafka_header_get_all(headers, i, &name, &value, &size); i++) {
			fprintf(out, "%s=%.*s\n", name, (int)size, (const char *)value);
			if (strcmp(name, "ce_id") == 0)
				snprintf(seen->id, sizeof seen->id, "%.*s", (int)size, (const char *)value);
		}
	fclose(out);
}

/* A partition that was just made may not know its leader yet. */
static int64_t end_of(rd_kafka_t *rk, const char *topic, int32_t partition)
{
	int64_t low, high = 0;
	struct bed_wait wait = {0};
	while (rd_kafka_query_watermark_offsets(rk, topic, partition, &low, &high, ADMIN_MS))
		bed_wait(&wait, "the end of a partition");
	return high;
}

int64_t bed_written(const char *topic, bool committed)
{
	const char *settings[] = {"group.id", "bed", "isolation.level",
	                          committed ? "read_committed" : "read_uncommitted", NULL};
	rd_kafka_t *rk = client(RD_KAFKA_CONSUMER, settings);
	int64_t sum = 0;
	for (int i = partitions_of(rk, topic); i-- > 0;)
		sum += end_of(rk, topic, i);
	rd_kafka_destroy(rk);
	return sum;
}

bool bed_is_open(const char *topic)
{
	return bed_written(topic, true) < bed_written(topic, false);
}

struct log_of bed_read(const char *topic, bool committed)
{
	const char *settings[] = {"group.id",
	                          "bed",
	                          "enable.partition.eof",
	                          "true",
	                          "isolation.level",
	                          committed ? "read_committed" : "read_uncommitted",
	                          NULL};
	struct bed_wait wait = {0};
	/* A commit is acknowledged before all partitions know of it. */
	while (committed && bed_is_open(topic))
		bed_wait(&wait, "the end of a transaction");
	rd_kafka_t *rk = client(RD_KAFKA_CONSUMER, settings);
	rd_kafka_poll_set_consumer(rk);
	int partitions = partitions_of(rk, topic), ends = 0;
	rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(partitions);
	for (int i = 0; i < partitions; i++)
		rd_kafka_topic_partition_list_add(list, topic, i)->offset = RD_KAFKA_OFFSET_BEGINNING;
	assert_int_equal(0, rd_kafka_assign(rk, list));
	rd_kafka_topic_partition_list_destroy(list);
	struct log_of log = {.seen = calloc(ALL, sizeof *log.seen)};
	while (ends < partitions) {
		bed_wait(&wait, "the end of a topic");
		rd_kafka_message_t *message = rd_kafka_consumer_poll(rk, ADMIN_MS);
		assert_non_null(message);
		if (!message->err)
			take(&log, message);
		ends += message->err == RD_KAFKA_RESP_ERR__PARTITION_EOF;
		rd_kafka_message_destroy(message);
	}
	rd_kafka_destroy(rk);
	return log;
}

void bed_log_free(struct log_of *log)
{
	for (size_t i = 0; i < log->count; i++) {
		free(log->seen[i].headers);
		free(log->seen[i].value);
	}
	free(log->seen);
}

/* ---- Destinations --------------------------------------------------------------------------- */

enum ibid_code bed_try_broker(const char *const *settings, struct broker **ret,
                              struct ibid_err *err)
{
	struct broker_setting list[16];
	size_t count = 0;
	for (; settings[2 * count]; count++)
		list[count] = (struct broker_setting){settings[2 * count], settings[2 * count + 1]};
	struct broker_options options = {
	    .name = "main", .settings = list, .setting_count = count, .env = env_system()};
	return broker_kafka_open(&options, ret, err);
}

struct broker *bed_broker(const char *name, const char *const *more)
{
	return bed_broker_in(env_system(), name, more);
}

struct broker *bed_broker_in(struct env *env, const char *name, const char *const *more)
{
	struct broker_setting list[16] = {{"brokers", bed_kafka("")}};
	size_t count = 1;
	for (size_t i = 0; more && more[i]; i += 2)
		list[strcmp(more[i], "brokers") == 0 ? 0 : count++] = (struct broker_setting){more[i],
		                                                                              more[i + 1]};
	struct broker_options options = {
	    .name = name, .settings = list, .setting_count = count, .env = env};
	struct broker *broker = NULL;
	struct ibid_err err = {0};
	if (broker_kafka_open(&options, &broker, &err))
		fail_msg("%s", err.text);
	return broker;
}

struct channel *bed_channel(struct broker *broker, const char *name)
{
	struct channel *channel = NULL;
	struct ibid_err err = {0};
	if (broker->ops->open_channel(broker, name, &channel, &err))
		fail_msg("%s", err.text);
	return channel;
}

enum ibid_code bed_publish(struct channel *channel, struct record *records, size_t count)
{
	atomic_bool stop = false;
	struct ibid_err err = {0};
	enum ibid_code code = channel->broker->ops->publish(channel, records, count, &stop, &err);
	if (code)
		print_message("publish: %s: %s\n", ibid_code_name(code), err.text);
	return code;
}

/* ---- Records -------------------------------------------------------------------------------- */

static char *text(const char *format, size_t number)
{
	char *ret = NULL;
	if (asprintf(&ret, format, number) < 0)
		abort();
	return ret;
}

struct record *bed_records(const char *topic, size_t first, size_t count, size_t aggregates)
{
	struct record *records = calloc(count, sizeof *records);
	for (size_t i = 0; i < count; i++) {
		size_t number = first + i;
		struct record *record = &records[i];
		*record = (struct record){
		    .id = text("e%zu", number),
		    .source = "/ibid/test",
		    .type = "Paid",
		    .time = "2026-11-16T10:00:00Z",
		    .topic = topic,
		    .key = text("a%zu", number % aggregates),
		    .payload = text("{\"n\":%zu}", number),
		    .aggregate = number % aggregates,
		};
		record->payload_size = strlen(record->payload);
	}
	return records;
}

void bed_records_free(struct record *records, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		free((void *)(uintptr_t)records[i].id);
		free((void *)(uintptr_t)records[i].key);
		free((void *)(uintptr_t)records[i].payload);
	}
	free(records);
}

void bed_payload(struct record *record, size_t size)
{
	char *payload = malloc(size + 1);
	memset(payload, 'x', size);
	payload[0] = payload[size - 1] = '"';
	payload[size] = 0;
	free((void *)(uintptr_t)record->payload);
	record->payload = payload;
	record->payload_size = size;
}

/* ---- Checking ------------------------------------------------------------------------------- */

static const struct seen *at(const struct log_of *log, int32_t partition, int64_t offset)
{
	for (size_t i = 0; i < log->count; i++)
		if (log->seen[i].partition == partition && log->seen[i].offset == offset)
			return &log->seen[i];
	return NULL;
}

/* Records of bed_records are numbered without gaps. */
static size_t index_of(const struct record *records, size_t count, const char *id)
{
	size_t index = strtoull(id + 1, NULL, 10) - strtoull(records[0].id + 1, NULL, 10);
	assert_true(index < count);
	assert_string_equal(records[index].id, id);
	return index;
}

/* First occurrences of each aggregate in the order of the batch; acknowledged only. */
static void check_order(const struct log_of *log, const struct record *records, size_t count)
{
	int64_t *last = calloc(count + 1, sizeof *last); /* by aggregate's first record */
	bool *met = calloc(count + 1, sizeof *met);
	for (size_t i = 0; i < count; i++)
		last[i] = -1;
	for (size_t i = 0; i < log->count; i++) {
		size_t index = index_of(records, count, log->seen[i].id);
		assert_int_not_equal(RECORD_NOT_TRIED, records[index].end);
		if (met[index])
			continue;
		met[index] = true;
		size_t first = 0;
		while (records[first].aggregate != records[index].aggregate)
			first++;
		assert_true((int64_t)index > last[first]);
		last[first] = (int64_t)index;
	}
	free(last);
	free(met);
}

void bed_check_log(const char *topic, const struct record *records, size_t count)
{
	struct log_of log = bed_read(topic, true);
	for (size_t i = 0; i < count; i++) {
		if (records[i].end != RECORD_ACKED)
			continue;
		const struct seen *seen = at(&log, records[i].partition, records[i].offset);
		assert_non_null(seen);
		assert_string_equal(records[i].id, seen->id);
		assert_string_equal(topic, records[i].place);
		assert_true(records[i].acked_us > 0);
	}
	check_order(&log, records, count);
	bed_log_free(&log);
}

void bed_check_ends(const struct record *records, size_t count, enum record_end end)
{
	for (size_t i = 0; i < count; i++)
		if (records[i].end != end)
			fail_msg("record %zu: end %d, not %d: %s %s", i, (int)records[i].end, (int)end,
			         records[i].reason ? records[i].reason : "", records[i].why);
}
