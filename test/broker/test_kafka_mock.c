/* SPDX-License-Identifier: Apache-2.0 */
/* The Kafka destination against librdkafka's own make-believe broker, which answers what no real
 * one can be made to answer at the right moment. Needs no Kafka. */
#include "broker/kafka_library.h"
#include "kafka_bed.h"

#include <librdkafka/rdkafka.h>
#include <librdkafka/rdkafka_mock.h>
#include <string.h>

enum {
	PRODUCE = 0,
	INIT_PRODUCER_ID = 22,
	COUNT = 40,
	AGGREGATES = 8,
	REFUSALS = 100,
	SECOND = 1000000
};

struct pretence {
	rd_kafka_t *owner;
	rd_kafka_mock_cluster_t *cluster;
	struct broker *broker;
	struct channel *channel;
};

static void open_pretence(struct pretence *ret, const char *topic)
{
	struct ibid_err err = {0};
	ret->owner = rd_kafka_new(RD_KAFKA_PRODUCER, rd_kafka_conf_new(), NULL, 0);
	ret->cluster = rd_kafka_mock_cluster_new(ret->owner, 2);
	rd_kafka_mock_topic_create(ret->cluster, topic, 2, 1);
	rd_kafka_mock_partition_set_leader(ret->cluster, topic, 0, 1);
	rd_kafka_mock_partition_set_leader(ret->cluster, topic, 1, 2);
	const char *const settings[] = {"brokers",
	                                rd_kafka_mock_cluster_bootstraps(ret->cluster),
	                                "mode",
	                                "idempotent",
	                                "delivery_timeout",
	                                "4s",
	                                "linger", /* until all of a round are there */
	                                "1s",
	                                NULL};
	if (bed_try_broker(settings, &ret->broker, &err))
		fail_msg("%s", err.text);
	ret->channel = bed_channel(ret->broker, "g0");
}

static void close_pretence(struct pretence *pretence)
{
	pretence->broker->ops->close_channel(pretence->channel);
	broker_close(pretence->broker);
	rd_kafka_mock_cluster_destroy(pretence->cluster);
	rd_kafka_destroy(pretence->owner);
}

/* Partition 0 is at the first broker, partition 1 at the second one. Records for the first are
 * sent, and their connection is lost, again and again; those for the second are refused after a
 * while, which stops the producer; and the next producer never gets as far as sending. `good`
 * requests to each go well before. */
static void fail_badly(struct pretence *pretence, size_t good)
{
	for (size_t i = 0; i < good; i++)
		for (int32_t broker = 1; broker <= 2; broker++)
			rd_kafka_mock_broker_push_request_error_rtts(pretence->cluster, broker, PRODUCE, 1,
			                                             RD_KAFKA_RESP_ERR_NO_ERROR, 0);
	rd_kafka_mock_broker_push_request_error_rtts(
	    pretence->cluster, 2, PRODUCE, 1, RD_KAFKA_RESP_ERR_OUT_OF_ORDER_SEQUENCE_NUMBER, 1000);
	for (size_t i = 0; i < REFUSALS; i++) {
		rd_kafka_mock_broker_push_request_error_rtts(pretence->cluster, 1, PRODUCE, 1,
		                                             RD_KAFKA_RESP_ERR__TRANSPORT, 0);
		rd_kafka_mock_push_request_errors(pretence->cluster, INIT_PRODUCER_ID, 1,
		                                  RD_KAFKA_RESP_ERR_COORDINATOR_LOAD_IN_PROGRESS);
	}
}

/* By those that were acknowledged. */
static int32_t partition_of(const struct record *acked, const char *key)
{
	for (size_t i = 0; i < COUNT; i++)
		if (strcmp(acked[i].key, key) == 0)
			return acked[i].partition;
	fail_msg("no record with key %s was acknowledged", key);
	return -1;
}

/* The first `acked` of the second batch arrive, one for each aggregate or none. */
static void lose_the_rest(size_t acked)
{
	struct pretence pretence;
	open_pretence(&pretence, "events");
	struct record *records = bed_records("events", 0, 2 * COUNT, AGGREGATES);
	assert_int_equal(IBID_OK, bed_publish(pretence.channel, records, COUNT));
	bed_check_ends(records, COUNT, RECORD_ACKED);
	fail_badly(&pretence, acked ? 1 : 0);
	int64_t began_us = env_steady_us(env_system());
	assert_int_equal(acked ? IBID_OK : IBID_UNKNOWN,
	                 bed_publish(pretence.channel, records + COUNT, COUNT));
	assert_true(env_steady_us(env_system()) - began_us < 10 * SECOND);
	size_t partitions[2] = {0};
	for (size_t i = 0; i < COUNT; i++)
		partitions[records[i].partition]++;
	assert_true(partitions[0] && partitions[1]);
	bed_check_ends(records + COUNT, acked, RECORD_ACKED);
	/* Those for the second broker were sent, also those behind the first of their aggregates. On a
	 * slow machine some had not left yet when the producer stopped: they were not tried. */
	size_t sent = 0, behind = 0;
	for (size_t i = COUNT + acked; i < 2 * COUNT; i++) {
		assert_int_not_equal(RECORD_ACKED, records[i].end);
		if (records[i].end != RECORD_FAILED)
			continue;
		assert_int_equal(FAILURE_UNKNOWN, records[i].failure);
		bool second = partition_of(records, records[i].key) == 1;
		sent += second;
		behind += second && i >= COUNT + acked + AGGREGATES;
	}
	assert_true(acked ? behind > 0 : sent > 0 && !behind);
	bed_records_free(records, 2 * COUNT);
	close_pretence(&pretence);
}
static void what_may_have_arrived_before_the_producer_stopped_is_unknown(void **state)
{
	(void)state;
	lose_the_rest(AGGREGATES);
}
static void without_transactions_the_first_of_an_aggregate_goes_ahead(void **state)
{
	(void)state;
	lose_the_rest(0);
}

static void the_faults_of_old_versions_are_known(void **state)
{
	(void)state;
	assert_non_null(strstr(kafka_library_fault(0x020002ff), "skip or repeat offsets"));
	assert_non_null(strstr(kafka_library_fault(0x020201ff), "lose its sequence"));
	assert_null(strstr(kafka_library_fault(0x020201ff), "offsets"));
	assert_null(kafka_library_fault(0x020300ff));
}

int main(int argc, char **argv)
{
	if (argc == 2)
		cmocka_set_test_filter(argv[1]);
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(what_may_have_arrived_before_the_producer_stopped_is_unknown),
	    cmocka_unit_test(without_transactions_the_first_of_an_aggregate_goes_ahead),
	    cmocka_unit_test(the_faults_of_old_versions_are_known),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
