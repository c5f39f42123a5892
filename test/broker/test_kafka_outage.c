/* SPDX-License-Identifier: Apache-2.0 */
/* The Kafka destination while its broker is silent, killed and started again: run under a
 * with-kafka of its own. */
#include "kafka_bed.h"

#include <pthread.h>
#include <string.h>
#include <unistd.h>

enum { COUNT = 400, AGGREGATES = 7, SECOND = 1000000 };

static const char *const modes[] = {"transactional", "idempotent"};

static struct broker *open_broker(const char *mode)
{
	const char *const more[] = {"mode", mode, "delivery_timeout", "2s", NULL};
	return bed_broker("main", more);
}

static struct channel *reopen(struct broker *broker, struct channel *channel, const char *name)
{
	broker->ops->close_channel(channel);
	return bed_channel(broker, name);
}

static void back_to_life(void)
{
	bed_kafka_do("resume");
}

/* Nothing or something may have arrived: sent again, all is there and in order. */
static void send_again(struct broker *broker, struct channel *channel, const char *topic,
                       struct record *records)
{
	channel = reopen(broker, channel, topic);
	assert_int_equal(IBID_OK, bed_publish(channel, records + COUNT, COUNT));
	bed_check_ends(records, 2 * COUNT, RECORD_ACKED);
	bed_check_log(topic, records, 2 * COUNT);
	broker->ops->close_channel(channel);
}

static void a_silent_broker_costs_no_more_than_the_deadline(void **state)
{
	(void)state;
	for (size_t i = 0; i < 2; i++) {
		char topic[NAME_SIZE];
		bed_topic(topic, "silent", 2, NULL);
		struct broker *broker = open_broker(modes[i]);
		struct channel *channel = bed_channel(broker, topic);
		struct record *records = bed_records(topic, 0, 2 * COUNT, AGGREGATES);
		assert_int_equal(IBID_OK, bed_publish(channel, records, COUNT));
		bed_kafka_do("pause");
		int64_t began_us = env_steady_us(env_system());
		enum ibid_code code = bed_publish(channel, records + COUNT, COUNT);
		int64_t took_us = env_steady_us(env_system()) - began_us;
		bool expected = code == IBID_UNAVAILABLE || code == IBID_UNKNOWN;
		for (size_t r = COUNT; r < 2 * COUNT; r++)
			expected &= records[r].end == RECORD_NOT_TRIED ||
			            (code == IBID_UNKNOWN && records[r].failure == FAILURE_UNKNOWN);
		began_us = env_steady_us(env_system());
		broker->ops->close_channel(channel);
		int64_t closing_us = env_steady_us(env_system()) - began_us;
		back_to_life();
		print_message("%s: %s after %lld ms, closed after %lld ms\n", modes[i],
		              ibid_code_name(code), (long long)took_us / 1000,
		              (long long)closing_us / 1000);
		assert_true(expected);
		assert_true(took_us < 6 * SECOND);
		send_again(broker, NULL, topic, records);
		bed_records_free(records, 2 * COUNT);
		broker_close(broker);
	}
}

struct stopper {
	atomic_bool stop;
	int64_t at_us;
};
static void *stop_soon(void *user)
{
	struct stopper *stopper = user;
	usleep(300000); /* the publisher waits by now; if not, it stops all the sooner */
	stopper->at_us = env_steady_us(env_system());
	atomic_store(&stopper->stop, true);
	return NULL;
}

static void who_stops_does_not_wait_for_a_silent_broker(void **state)
{
	(void)state;
	for (size_t i = 0; i < 2; i++) {
		char topic[NAME_SIZE];
		bed_topic(topic, "stopping", 1, NULL);
		const char *const more[] = {"mode", modes[i], "delivery_timeout", "60s", NULL};
		struct broker *broker = bed_broker("main", more);
		struct channel *channel = bed_channel(broker, topic);
		struct record *records = bed_records(topic, 0, 2 * COUNT, AGGREGATES);
		assert_int_equal(IBID_OK, bed_publish(channel, records, COUNT));
		bed_kafka_do("pause");
		struct stopper stopper = {0};
		struct ibid_err err = {0};
		pthread_t thread;
		pthread_create(&thread, NULL, stop_soon, &stopper);
		enum ibid_code code = broker->ops->publish(channel, records + COUNT, COUNT, &stopper.stop,
		                                           &err);
		pthread_join(thread, NULL);
		int64_t took_us = env_steady_us(env_system()) - stopper.at_us;
		broker->ops->close_channel(channel);
		back_to_life();
		print_message("%s: %s, %lld ms after the stop\n", modes[i], ibid_code_name(code),
		              (long long)took_us / 1000);
		assert_true(code == IBID_OK || code == IBID_UNKNOWN);
		assert_true(took_us < 3 * SECOND);
		for (size_t r = COUNT; r < 2 * COUNT; r++)
			assert_int_not_equal(RECORD_ACKED, records[r].end);
		send_again(broker, NULL, topic, records);
		bed_records_free(records, 2 * COUNT);
		broker_close(broker);
	}
}

static void a_broker_that_was_killed_between_two_batches_is_found_again(void **state)
{
	(void)state;
	for (size_t i = 0; i < 2; i++) {
		char topic[NAME_SIZE];
		bed_topic(topic, "killed", 2, NULL);
		struct broker *broker = open_broker(modes[i]);
		struct channel *channel = bed_channel(broker, topic);
		struct record *records = bed_records(topic, 0, 2 * COUNT, AGGREGATES);
		assert_int_equal(IBID_OK, bed_publish(channel, records, COUNT));
		bed_kafka_do("kill");
		enum ibid_code code = bed_publish(channel, records + COUNT, COUNT);
		bed_kafka_do("start");
		assert_true(code == IBID_UNAVAILABLE || code == IBID_UNKNOWN);
		send_again(broker, channel, topic, records);
		bed_records_free(records, 2 * COUNT);
		broker_close(broker);
	}
}

struct publisher {
	struct broker *broker;
	struct record *records;
	const char *topic;
	size_t batches;
	atomic_size_t done;
	size_t troubles;
};

/* As a relay does: what has no good end is sent again, on a channel that is opened anew. */
static void *publish_all(void *user)
{
	struct publisher *publisher = user;
	struct broker *broker = publisher->broker;
	struct channel *channel = NULL;
	for (size_t batch = 0; batch < publisher->batches;) {
		struct ibid_err err = {0};
		atomic_bool stop = false;
		struct record *records = publisher->records + batch * COUNT;
		enum ibid_code code = IBID_OK;
		if (!channel)
			code = broker->ops->open_channel(broker, publisher->topic, &channel, &err);
		if (!code)
			code = broker->ops->publish(channel, records, COUNT, &stop, &err);
		bool all = !code;
		for (size_t i = 0; all && i < COUNT; i++)
			all = records[i].end == RECORD_ACKED;
		if (all) {
			batch++;
			atomic_store(&publisher->done, batch);
			continue;
		}
		publisher->troubles++;
		broker->ops->close_channel(channel);
		channel = NULL;
	}
	broker->ops->close_channel(channel);
	return NULL;
}

static void wait_until(struct publisher *publisher, size_t batches)
{
	while (atomic_load(&publisher->done) < batches)
		usleep(200);
}

static void batches_go_on_in_order_over_kills_and_pauses(void **state)
{
	(void)state;
	enum { BATCHES = 60 };
	for (size_t i = 0; i < 2; i++) {
		char topic[NAME_SIZE];
		bed_topic(topic, "through", 2, NULL);
		struct publisher publisher = {.broker = open_broker(modes[i]),
		                              .records = bed_records(topic, 0, BATCHES * COUNT, AGGREGATES),
		                              .topic = topic,
		                              .batches = BATCHES};
		pthread_t thread;
		pthread_create(&thread, NULL, publish_all, &publisher);
		for (size_t at = 10; at < BATCHES; at += 20) {
			wait_until(&publisher, at);
			bed_kafka_do("kill");
			bed_kafka_do("start");
			wait_until(&publisher, at + 10);
			bed_kafka_do("pause");
			usleep(2 * SECOND + SECOND / 2); /* past its deadline */
			bed_kafka_do("resume");
		}
		pthread_join(thread, NULL);
		print_message("%s: %zu batches, %zu troubles\n", modes[i], (size_t)BATCHES,
		              publisher.troubles);
		bed_check_log(topic, publisher.records, BATCHES * COUNT);
		bed_records_free(publisher.records, BATCHES * COUNT);
		broker_close(publisher.broker);
	}
}

int main(int argc, char **argv)
{
	bed_kafka("");
	if (argc == 2)
		cmocka_set_test_filter(argv[1]);
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(a_silent_broker_costs_no_more_than_the_deadline),
	    cmocka_unit_test(who_stops_does_not_wait_for_a_silent_broker),
	    cmocka_unit_test(a_broker_that_was_killed_between_two_batches_is_found_again),
	    cmocka_unit_test(batches_go_on_in_order_over_kills_and_pauses),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
