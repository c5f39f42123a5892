/* SPDX-License-Identifier: Apache-2.0 */
/* The Kafka destination while its broker is silent, killed and started again: run under a
 * with-kafka of its own. */
#include "kafka_bed.h"

#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

enum { COUNT = 400, AGGREGATES = 7, SECOND = 1000000, WAITING_LOOKS = 6 };

static const char *const modes[] = {"transactional", "idempotent"};

/* In a transaction twice that, and a second for taking back. The limit has room for a busy machine,
 * and none for the deadline that a destination has by default. */
static const char deadline[] = "2s";
enum { DEADLINE_COSTS = 10 * SECOND };

static struct broker *open_broker(const char *mode, const char *timeout)
{
	const char *const more[] = {"mode", mode, "delivery_timeout", timeout, NULL};
	return bed_broker("main", more);
}

/* With time enough for a broker that has just been started. */
static void send_patiently(const char *mode, const char *topic, struct record *records)
{
	struct broker *broker = open_broker(mode, "60s");
	struct channel *channel = bed_channel(broker, topic);
	assert_int_equal(IBID_OK, bed_publish(channel, records, COUNT));
	broker->ops->close_channel(channel);
	broker_close(broker);
}

/* Nothing or something may have arrived: sent again, all is there and in order. */
static void send_again(const char *mode, const char *topic, struct record *records)
{
	send_patiently(mode, topic, records + COUNT);
	bed_check_ends(records, 2 * COUNT, RECORD_ACKED);
	bed_check_log(topic, records, 2 * COUNT);
}

static void a_silent_broker_costs_no_more_than_the_deadline(void **state)
{
	(void)state;
	for (size_t i = 0; i < 2; i++) {
		char topic[NAME_SIZE];
		bed_topic(topic, "silent", 2, NULL);
		struct record *records = bed_records(topic, 0, 2 * COUNT, AGGREGATES);
		send_patiently(modes[i], topic, records); /* what the next one needs is there then */
		struct broker *broker = open_broker(modes[i], deadline);
		struct channel *channel = bed_channel(broker, topic);
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
		bed_kafka_do("resume");
		print_message("%s: %s after %lld ms, closed after %lld ms\n", modes[i],
		              ibid_code_name(code), (long long)took_us / 1000,
		              (long long)closing_us / 1000);
		assert_true(expected);
		assert_true(took_us < DEADLINE_COSTS);
		send_again(modes[i], topic, records);
		bed_records_free(records, 2 * COUNT);
		broker_close(broker);
	}
}

/* Somebody who waits looks at the clock again and again. */
struct watched {
	struct env env; /* the machine's, and it counts who looks at the steady clock */
	atomic_size_t looks;
};
static int64_t look(struct env *env)
{
	atomic_fetch_add(&((struct watched *)env)->looks, 1);
	return env_steady_us(env_system());
}

struct stopper {
	struct watched *watched;
	size_t looks; /* by then it waits for the broker */
	atomic_bool stop;
	int64_t at_us;
};
static void *stop_when_it_waits(void *user)
{
	struct stopper *stopper = user;
	int64_t until_us = env_steady_us(env_system()) + 20 * SECOND; /* then it waits for nobody */
	while (atomic_load(&stopper->watched->looks) < stopper->looks &&
	       env_steady_us(env_system()) < until_us)
		usleep(1000);
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
		struct watched watched = {.env = *env_system()};
		watched.env.steady_us = look;
		struct broker *broker = bed_broker_in(&watched.env, "main", more);
		struct channel *channel = bed_channel(broker, topic);
		struct record *records = bed_records(topic, 0, 2 * COUNT, AGGREGATES);
		assert_int_equal(IBID_OK, bed_publish(channel, records, COUNT));
		bed_kafka_do("pause");
		struct stopper stopper = {&watched, atomic_load(&watched.looks) + WAITING_LOOKS, false, 0};
		struct ibid_err err = {0};
		pthread_t thread;
		pthread_create(&thread, NULL, stop_when_it_waits, &stopper);
		enum ibid_code code = broker->ops->publish(channel, records + COUNT, COUNT, &stopper.stop,
		                                           &err);
		pthread_join(thread, NULL);
		int64_t took_us = env_steady_us(env_system()) - stopper.at_us;
		broker->ops->close_channel(channel);
		bed_kafka_do("resume");
		print_message("%s: %s, %lld ms after the stop\n", modes[i], ibid_code_name(code),
		              (long long)took_us / 1000);
		assert_true(code == IBID_OK || code == IBID_UNKNOWN);
		assert_true(took_us < 20 * SECOND); /* not at the deadline */
		for (size_t r = COUNT; r < 2 * COUNT; r++)
			assert_int_not_equal(RECORD_ACKED, records[r].end);
		send_again(modes[i], topic, records);
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
		struct record *records = bed_records(topic, 0, 2 * COUNT, AGGREGATES);
		send_patiently(modes[i], topic, records); /* what the next one needs is there then */
		struct broker *broker = open_broker(modes[i], deadline);
		struct channel *channel = bed_channel(broker, topic);
		assert_int_equal(IBID_OK, bed_publish(channel, records, COUNT));
		bed_kafka_do("kill");
		enum ibid_code code = bed_publish(channel, records + COUNT, COUNT);
		bed_kafka_do("start");
		assert_true(code == IBID_UNAVAILABLE || code == IBID_UNKNOWN);
		broker->ops->close_channel(channel);
		send_again(modes[i], topic, records);
		bed_records_free(records, 2 * COUNT);
		broker_close(broker);
	}
}

/* ---- While batches are under way ------------------------------------------------------------- */

enum {
	STAGE = 100,     /* batches that may go until the broker is hurt: more than there is time for */
	QUIET = 2,       /* batches before that */
	AFTER = 6,       /* and after it */
	KILOBYTE = 1024, /* of payload: a batch is more than one request to each partition */
};

/* Sends what it may, as a relay does: what has no good end is sent again, on a channel that is
 * opened anew. */
struct publisher {
	struct broker *broker;
	struct record *records;
	const char *topic;
	atomic_size_t may, done; /* batches */
	atomic_size_t troubles;
	atomic_bool stop, end;
	int64_t longest_us; /* publish */
	struct channel *channel;
};

static bool all_acked(const struct record *records)
{
	for (size_t i = 0; i < COUNT; i++)
		if (records[i].end != RECORD_ACKED)
			return false;
	return true;
}

static enum ibid_code publish_next(struct publisher *publisher, struct record *records,
                                   struct ibid_err *err)
{
	const struct broker_ops *ops = publisher->broker->ops;
	enum ibid_code code = IBID_OK;
	if (!publisher->channel)
		code = ops->open_channel(publisher->broker, publisher->topic, &publisher->channel, err);
	if (code)
		return code;
	int64_t began_us = env_steady_us(env_system());
	code = ops->publish(publisher->channel, records, COUNT, &publisher->stop, err);
	int64_t took_us = env_steady_us(env_system()) - began_us;
	publisher->longest_us = took_us > publisher->longest_us ? took_us : publisher->longest_us;
	return code;
}

static void *publish_all(void *user)
{
	struct publisher *publisher = user;
	const struct broker_ops *ops = publisher->broker->ops;
	while (!atomic_load(&publisher->end)) {
		size_t batch = atomic_load(&publisher->done);
		if (batch >= atomic_load(&publisher->may)) {
			usleep(200);
			continue;
		}
		struct ibid_err err = {0};
		struct record *records = publisher->records + batch * COUNT;
		enum ibid_code code = publish_next(publisher, records, &err);
		if (!code && all_acked(records)) {
			atomic_store(&publisher->done, batch + 1);
			continue;
		}
		print_message("batch %zu: %s: %s\n", batch, ibid_code_name(code), err.text);
		atomic_fetch_add(&publisher->troubles, 1);
		ops->close_channel(publisher->channel);
		publisher->channel = NULL;
	}
	ops->close_channel(publisher->channel);
	return NULL;
}

static void wait_for(const char *what, const atomic_size_t *counter, size_t number)
{
	struct bed_wait wait = {0};
	while (atomic_load(counter) < number) {
		bed_wait(&wait, what);
		usleep(200);
	}
}

/* The broker is hurt in the middle of a batch, and back only when somebody has noticed. */
static void hurt(struct publisher *publisher, int number, const char *cure)
{
	pid_t pid = bed_kafka_pid();
	size_t before = atomic_load(&publisher->done);
	atomic_store(&publisher->may, before + STAGE);
	wait_for("quiet batches", &publisher->done, before + QUIET);
	size_t troubles = atomic_load(&publisher->troubles);
	assert_int_equal(0, kill(pid, number));
	assert_true(atomic_load(&publisher->done) < before + STAGE); /* it was in the middle */
	wait_for("trouble", &publisher->troubles, troubles + 1);
	size_t after = atomic_load(&publisher->done) + AFTER;
	atomic_store(&publisher->may, after);
	bed_kafka_do(cure);
	wait_for("batches after the trouble", &publisher->done, after);
}

static void batches_go_on_in_order_over_kills_and_pauses(void **state)
{
	(void)state;
	enum { BATCHES = 2 * (STAGE + AFTER) };
	for (size_t i = 0; i < 2; i++) {
		static char topic[NAME_SIZE];
		bed_topic(topic, "through", 2, NULL);
		static struct publisher publisher; /* its thread may outlive a test that fails */
		publisher = (struct publisher){
		    .broker = open_broker(modes[i], deadline),
		    .records = bed_records(topic, 0, BATCHES * COUNT, AGGREGATES),
		    .topic = topic,
		};
		for (size_t r = 0; r < BATCHES * COUNT; r++)
			bed_payload(&publisher.records[r], KILOBYTE);
		pthread_t thread;
		pthread_create(&thread, NULL, publish_all, &publisher);
		hurt(&publisher, SIGSTOP, "resume");
		hurt(&publisher, SIGKILL, "start");
		atomic_store(&publisher.end, true);
		pthread_join(thread, NULL);
		print_message("%s: %zu batches, %zu troubles, the longest took %lld ms\n", modes[i],
		              atomic_load(&publisher.done), atomic_load(&publisher.troubles),
		              (long long)publisher.longest_us / 1000);
		assert_true(publisher.longest_us < DEADLINE_COSTS);
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
