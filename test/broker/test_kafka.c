/* SPDX-License-Identifier: Apache-2.0 */
/* The Kafka destination against a real broker (C10: Kafka; C06: a result for each record). */
#include "kafka_bed.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *const idempotent[] = {"mode", "idempotent", NULL};

/* ---- Settings ------------------------------------------------------------------------------- */

static void refuses(const char *const *settings, const char *part)
{
	struct broker *broker = NULL;
	struct ibid_err err = {0};
	assert_int_equal(IBID_INVALID, bed_try_broker(settings, &broker, &err));
	assert_null(broker);
	if (!strstr(err.text, part))
		fail_msg("`%s` does not say `%s`", err.text, part);
}
#define REFUSES(part, ...)                                                                         \
	refuses((const char *const[]){"brokers", "127.0.0.1:1", __VA_ARGS__, NULL}, part)

static void weaker_settings_are_refused_with_a_reason(void **state)
{
	(void)state;
	REFUSES("kafka.acks is always all, not `1`", "acks", "1");
	REFUSES("kafka.acks is always all", "acks", "0");
	REFUSES("kafka.enable.idempotence is always true", "enable.idempotence", "false");
	REFUSES("kafka.partitioner is always murmur2_random", "partitioner", "random");
	REFUSES("anybody may pose as the broker", "enable.ssl.certificate.verification", "false");
	REFUSES("any certificate", "ssl.endpoint.identification.algorithm", "none");
	REFUSES("there is no setting kafka.retries", "retries", "0");
	REFUSES("there is no setting kafka.max.in.flight", "max.in.flight", "1000");
	REFUSES("write kafka.delivery_timeout instead", "message.timeout.ms", "1");
}

static void wrong_settings_are_named_with_what_would_be_right(void **state)
{
	(void)state;
	refuses((const char *const[]){"mode", "idempotent", NULL}, "kafka.brokers is missing");
	REFUSES("it must be transactional or idempotent", "mode", "fast");
	REFUSES("there are brokers, mode, delivery_timeout", "borkers", "x");
	REFUSES("a duration between 1000ms and 300000ms", "delivery_timeout", "soon");
	REFUSES("a duration between 1000ms", "delivery_timeout", "1ms");
	REFUSES("a number of bytes", "max_bytes", "1MB");
	REFUSES("has to outlive its records", "delivery_timeout", "60s", "transaction_timeout", "10s");
	REFUSES("kafka.compression", "compression", "brotli");
	REFUSES("kafka.security.protocol", "security.protocol", "tls");
	REFUSES("SASL mechanism", "security.protocol", "SASL_SSL", "sasl.mechanisms", "ROT13");
	REFUSES("kafka.ssl.no.such", "ssl.no.such", "1");
	REFUSES("ssl.ca.location", "security.protocol", "ssl", "ssl.ca.location", "/nonexistent");
	REFUSES("sasl.username", "security.protocol", "sasl_plaintext", "sasl.mechanisms", "PLAIN");
}

static void what_only_repeats_the_rule_is_taken(void **state)
{
	(void)state;
	const char *const more[] = {
	    "acks",        "all",  "enable.idempotence", "true",   "linger", "0",
	    "compression", "zstd", "max_bytes",          "500000", NULL};
	struct broker *broker = bed_broker("main", more);
	assert_true(broker->fences);
	broker_close(broker);
	broker = bed_broker("main", idempotent);
	assert_false(broker->fences);
	broker_close(broker);
	broker_close(NULL);
}

static void an_unreachable_broker_is_unavailable(void **state)
{
	(void)state;
	static const char *const modes[] = {"transactional", "idempotent"};
	for (size_t i = 0; i < 2; i++) {
		const char *const more[] = {"brokers", "127.0.0.1:1", "delivery_timeout", "1s", "mode",
		                            modes[i],  NULL};
		struct broker *broker = bed_broker("main", more);
		struct channel *channel = NULL;
		struct ibid_err err = {0};
		assert_int_equal(IBID_UNAVAILABLE, broker->ops->open_channel(broker, "g0", &channel, &err));
		assert_non_null(strstr(err.text, "destination main"));
		assert_null(channel);
		broker_close(broker);
	}
}

/* ---- Content -------------------------------------------------------------------------------- */

static void an_event_arrives_as_a_cloud_event(void **state)
{
	(void)state;
	char topic[NAME_SIZE];
	bed_topic(topic, "cloud", 1, NULL);
	struct broker *broker = bed_broker("main", NULL);
	struct channel *channel = bed_channel(broker, topic);
	struct record *records = bed_records(topic, 7, 1, 1);
	const struct broker_header headers[] = {{"traceparent", "00-aa-bb-01"}, {"tenant", "acme"}};
	records->subject = "payment/7";
	records->headers = headers;
	records->header_count = 2;
	assert_int_equal(IBID_OK, bed_publish(channel, records, 1));
	bed_check_ends(records, 1, RECORD_ACKED);
	bed_check_log(topic, records, 1);
	struct log_of log = bed_read(topic, true);
	assert_int_equal(1, log.count);
	assert_string_equal("a0", log.seen[0].key);
	assert_string_equal("{\"n\":7}", log.seen[0].value);
	assert_string_equal("ce_specversion=1.0\nce_id=e7\nce_source=/ibid/test\nce_type=Paid\n"
	                    "ce_subject=payment/7\nce_time=2026-11-16T10:00:00Z\n"
	                    "content-type=application/json\nce_traceparent=00-aa-bb-01\n"
	                    "traceparent=00-aa-bb-01\nce_tenant=acme\n",
	                    log.seen[0].headers);
	bed_log_free(&log);
	bed_records_free(records, 1);
	broker->ops->close_channel(channel);
	broker->ops->close_channel(NULL);
	broker_close(broker);
}

static void an_event_without_key_and_payload_arrives_without(void **state)
{
	(void)state;
	char topic[NAME_SIZE];
	bed_topic(topic, "bare", 2, NULL);
	struct broker *broker = bed_broker("main", NULL);
	struct channel *channel = bed_channel(broker, topic);
	struct record record = {.id = "bare", .source = "/s", .type = "Gone", .topic = topic};
	assert_int_equal(IBID_OK, bed_publish(channel, &record, 1));
	assert_int_equal(RECORD_ACKED, record.end);
	struct log_of log = bed_read(topic, true);
	assert_int_equal(1, log.count);
	assert_string_equal("-", log.seen[0].key);
	assert_null(log.seen[0].value);
	assert_string_equal("ce_specversion=1.0\nce_id=bare\nce_source=/s\nce_type=Gone\n",
	                    log.seen[0].headers);
	bed_log_free(&log);
	broker->ops->close_channel(channel);
	broker_close(broker);
}

/* As kcat, which nobody here wrote, chooses with Java's partitioner. */
static void keys_go_to_the_partitions_that_other_clients_choose(void **state)
{
	(void)state;
	char topic[NAME_SIZE], line[400];
	bed_topic(topic, "murmur", 7, NULL);
	struct broker *broker = bed_broker("main", NULL);
	struct channel *channel = bed_channel(broker, topic);
	struct record *records = bed_records(topic, 0, 20, 20);
	assert_int_equal(IBID_OK, bed_publish(channel, records, 20));
	snprintf(line, sizeof line,
	         "for n in $(seq 0 19); do echo a$n:; done | kcat -P -b %s -t %s -K: -X "
	         "topic.partitioner=murmur2",
	         bed_kafka(""), topic);
	assert_int_equal(0, system(line));
	struct log_of log = bed_read(topic, true);
	assert_int_equal(40, log.count);
	for (size_t i = 0; i < log.count; i++)
		assert_int_equal(records[strtoul(log.seen[i].key + 1, NULL, 10)].partition,
		                 log.seen[i].partition);
	bed_log_free(&log);
	bed_records_free(records, 20);
	broker->ops->close_channel(channel);
	broker_close(broker);
}

/* ---- Ends ----------------------------------------------------------------------------------- */

static void batches_in_order(const char *const *mode)
{
	enum { COUNT = 3000, BATCH = 500 };
	char topic[NAME_SIZE];
	bed_topic(topic, "order", 3, NULL);
	struct broker *broker = bed_broker("main", mode);
	struct channel *channel = bed_channel(broker, topic);
	struct record *records = bed_records(topic, 0, COUNT, 41);
	for (size_t i = 0; i < COUNT; i += BATCH)
		assert_int_equal(IBID_OK, bed_publish(channel, records + i, BATCH));
	bed_check_ends(records, COUNT, RECORD_ACKED);
	bed_check_log(topic, records, COUNT);
	assert_int_equal(IBID_OK, bed_publish(channel, records, 0));
	bed_records_free(records, COUNT);
	broker->ops->close_channel(channel);
	broker_close(broker);
}
static void results_match_the_log_of_the_broker(void **state)
{
	(void)state;
	batches_in_order(NULL);
}
static void results_match_without_transactions_too(void **state)
{
	(void)state;
	batches_in_order(idempotent);
}

static void expect_failed(const struct record *record, enum failure_class failure,
                          const char *reason)
{
	assert_int_equal(RECORD_FAILED, record->end);
	assert_string_equal(reason, record->reason);
	assert_int_equal(failure, record->failure);
	assert_int_equal(-1, record->offset);
	assert_true(strlen(record->why) > 0);
}

/* Record `bad` failed; its aggregate stands still behind it, all others have arrived. */
static void expect_one_bad(const char *topic, struct record *records, size_t count, size_t bad,
                           enum failure_class failure, const char *reason)
{
	expect_failed(&records[bad], failure, reason);
	for (size_t i = 0; i < count; i++) {
		if (i == bad)
			continue;
		bool behind = i > bad && records[i].aggregate == records[bad].aggregate;
		bed_check_ends(&records[i], 1, behind ? RECORD_NOT_TRIED : RECORD_ACKED);
	}
	bed_check_log(topic, records, count);
}

static void one_too_large(const char *const *mode, const char *topic_limit, size_t size)
{
	enum { COUNT = 100, BAD = 33 };
	char topic[NAME_SIZE];
	bed_topic(topic, "large", 1, topic_limit);
	struct broker *broker = bed_broker("main", mode);
	struct channel *channel = bed_channel(broker, topic);
	struct record *records = bed_records(topic, 0, COUNT, 10);
	for (size_t i = 0; i < COUNT; i++)
		bed_payload(&records[i], 600);
	bed_payload(&records[BAD], size);
	assert_int_equal(IBID_OK, bed_publish(channel, records, COUNT));
	expect_one_bad(topic, records, COUNT, BAD, FAILURE_POISON, "RECORD_TOO_LARGE");
	/* The channel is none the worse. */
	struct record *more = bed_records(topic, COUNT, 20, 20);
	assert_int_equal(IBID_OK, bed_publish(channel, more, 20));
	bed_check_ends(more, 20, RECORD_ACKED);
	bed_records_free(more, 20);
	bed_records_free(records, COUNT);
	broker->ops->close_channel(channel);
	broker_close(broker);
}
static void an_oversized_record_stops_its_aggregate_only(void **state)
{
	(void)state;
	one_too_large(NULL, NULL, 2000000);
}
/* The broker refuses all that travel with it, and some that do not but are too many together. */
static void a_record_too_large_for_its_topic_is_found_among_its_neighbours(void **state)
{
	(void)state;
	one_too_large(NULL, "20000", 30000);
}
static void without_transactions_nothing_overtakes_a_refused_record(void **state)
{
	(void)state;
	one_too_large(idempotent, NULL, 2000000);
	one_too_large(idempotent, "20000", 30000);
}

/* Sets of records follow each other closely: the first one is refused. */
static void without_transactions_the_next_set_waits_for_the_refused_one(void **state)
{
	(void)state;
	enum { COUNT = 2000 };
	static const char *const at_once[] = {"mode", "idempotent", "linger", "0", NULL};
	char topic[NAME_SIZE];
	bed_topic(topic, "sets", 1, "600000");
	struct broker *broker = bed_broker("main", at_once);
	struct channel *channel = bed_channel(broker, topic);
	for (size_t round = 0; round < 5; round++) {
		struct record *records = bed_records(topic, round * COUNT, COUNT, 1);
		bed_payload(&records[1], 700000);
		assert_int_equal(IBID_OK, bed_publish(channel, records, COUNT));
		assert_int_equal(RECORD_ACKED, records[0].end);
		expect_failed(&records[1], FAILURE_POISON, "RECORD_TOO_LARGE");
		bed_check_ends(records + 2, COUNT - 2, RECORD_NOT_TRIED);
		bed_records_free(records, COUNT);
	}
	struct log_of log = bed_read(topic, true);
	for (size_t i = 0; i < log.count; i++)
		assert_int_equal(0, strtoul(log.seen[i].id + 1, NULL, 10) % COUNT);
	bed_log_free(&log);
	broker->ops->close_channel(channel);
	broker_close(broker);
}

/* Kafka takes any number from a producer that it has not heard of in a partition: where the first
 * set of all is refused, it would take the second. Sizes decide who travels together here. */
static void without_transactions_a_refused_first_set_is_not_overtaken(void **state)
{
	(void)state;
	enum { COUNT = 3 };
	char topic[NAME_SIZE];
	bed_topic(topic, "first", 1, "600000");
	struct broker *broker = bed_broker("main", idempotent);
	for (size_t round = 0; round < 3; round++) {
		struct channel *channel = bed_channel(broker, topic);
		struct record *records = bed_records(topic, round * COUNT, COUNT, 1);
		bed_payload(&records[1], 700000);
		bed_payload(&records[2], 400000);
		assert_int_equal(IBID_OK, bed_publish(channel, records, COUNT));
		assert_int_equal(RECORD_ACKED, records[0].end);
		expect_failed(&records[1], FAILURE_POISON, "RECORD_TOO_LARGE");
		assert_int_equal(RECORD_NOT_TRIED, records[2].end);
		bed_records_free(records, COUNT);
		broker->ops->close_channel(channel);
	}
	struct log_of log = bed_read(topic, true);
	assert_int_equal(3, log.count);
	for (size_t i = 0; i < log.count; i++)
		assert_int_equal(0, strtoul(log.seen[i].id + 1, NULL, 10) % COUNT);
	bed_log_free(&log);
	broker_close(broker);
}

static void unknown_topic(const char *const *mode)
{
	enum { COUNT = 30, BAD = 11 };
	char topic[NAME_SIZE];
	bed_topic(topic, "known", 1, NULL);
	struct broker *broker = bed_broker("main", mode);
	struct channel *channel = bed_channel(broker, topic);
	struct record *records = bed_records(topic, 0, COUNT, 5);
	records[BAD].topic = "there-is-none";
	assert_int_equal(IBID_OK, bed_publish(channel, records, COUNT));
	expect_one_bad(topic, records, COUNT, BAD, FAILURE_PERMANENT, "UNKNOWN_TOPIC");
	assert_non_null(strstr(records[BAD].why, "there-is-none"));
	records[0].topic = NULL;
	records[1].topic = "no/such name";
	assert_int_equal(IBID_OK, bed_publish(channel, records, 3));
	expect_failed(&records[0], FAILURE_PERMANENT, "INVALID_TOPIC");
	expect_failed(&records[1], FAILURE_PERMANENT, "INVALID_TOPIC");
	assert_int_equal(RECORD_ACKED, records[2].end);
	bed_records_free(records, COUNT);
	broker->ops->close_channel(channel);
	broker_close(broker);
}
static void an_unknown_topic_stops_its_aggregate_only(void **state)
{
	(void)state;
	unknown_topic(NULL);
	unknown_topic(idempotent);
}

/* An aggregate whose events go to two topics: the second waits for the first, in either mode. */
static void an_aggregate_over_two_topics_stays_in_order(void **state)
{
	(void)state;
	char limited[NAME_SIZE], free_one[NAME_SIZE];
	bed_topic(limited, "limited", 1, "5000");
	bed_topic(free_one, "free", 1, NULL);
	const char *const *modes[] = {NULL, idempotent};
	for (size_t i = 0; i < 2; i++) {
		struct broker *broker = bed_broker("main", modes[i]);
		struct channel *channel = bed_channel(broker, limited);
		struct record *records = bed_records(limited, 100 * i, 4, 1);
		records[1].topic = records[3].topic = free_one;
		bed_payload(&records[2], 9000);
		assert_int_equal(IBID_OK, bed_publish(channel, records, 4));
		bed_check_ends(records, 2, RECORD_ACKED);
		expect_failed(&records[2], FAILURE_POISON, "RECORD_TOO_LARGE");
		assert_int_equal(RECORD_NOT_TRIED, records[3].end);
		bed_records_free(records, 4);
		broker->ops->close_channel(channel);
		broker_close(broker);
	}
	struct log_of log = bed_read(free_one, true);
	assert_int_equal(2, log.count); /* never the fourth */
	bed_log_free(&log);
}

static void who_stops_before_the_start_sends_nothing(void **state)
{
	(void)state;
	char topic[NAME_SIZE];
	bed_topic(topic, "stop", 1, NULL);
	struct broker *broker = bed_broker("main", NULL);
	struct channel *channel = bed_channel(broker, topic);
	struct record *records = bed_records(topic, 0, 10, 3);
	atomic_bool stop = true;
	struct ibid_err err = {0};
	assert_int_equal(IBID_OK, broker->ops->publish(channel, records, 10, &stop, &err));
	bed_check_ends(records, 10, RECORD_NOT_TRIED);
	struct log_of log = bed_read(topic, false);
	assert_int_equal(0, log.count);
	bed_log_free(&log);
	assert_int_equal(IBID_OK, bed_publish(channel, records, 10));
	bed_check_ends(records, 10, RECORD_ACKED);
	bed_records_free(records, 10);
	broker->ops->close_channel(channel);
	broker_close(broker);
}

/* ---- Zombies -------------------------------------------------------------------------------- */

enum { ZOMBIE_BATCH = 2000, ZOMBIE_AGGREGATES = 7 };

/* The other process: publishes batch after batch and says which one was refused. */
static int be_zombie(const char *topic)
{
	/* Its time goes on while it is stopped: the broker has to refuse it, and not its deadline. */
	const char *const more[] = {"delivery_timeout", "120s", "transaction_timeout", "300s", NULL};
	struct broker *broker = bed_broker("main", more);
	struct channel *channel = bed_channel(broker, topic);
	for (size_t batch = 0;; batch++) {
		struct record *records = bed_records(topic, batch * ZOMBIE_BATCH, ZOMBIE_BATCH,
		                                     ZOMBIE_AGGREGATES);
		for (size_t i = 0; i < ZOMBIE_BATCH; i++)
			bed_payload(&records[i], 300);
		struct ibid_err err = {0};
		atomic_bool stop = false;
		enum ibid_code code = broker->ops->publish(channel, records, ZOMBIE_BATCH, &stop, &err);
		if (code) {
			printf("%s %zu %d\n", ibid_code_name(code), batch, (int)records[0].end);
			code = broker->ops->publish(channel, records, 1, &stop, &err);
			printf("%s\n", ibid_code_name(code));
			fflush(stdout);
			bed_records_free(records, ZOMBIE_BATCH);
			broker->ops->close_channel(channel);
			broker_close(broker);
			return 0;
		}
		bed_records_free(records, ZOMBIE_BATCH);
	}
}

static pid_t start_zombie(const char *topic, FILE **ret_says)
{
	int ends[2];
	assert_int_equal(0, pipe2(ends, O_CLOEXEC));
	pid_t pid = fork();
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		dup2(ends[1], 1);
		execl("/proc/self/exe", "zombie", topic, (char *)NULL);
		_exit(127);
	}
	close(ends[1]);
	*ret_says = fdopen(ends[0], "r");
	return pid;
}

/* Has it written some of a batch, and not all? A batch that is written may be about to be
 * committed. A transaction that is over has left a mark in each of the two partitions. */
static bool is_amid_a_batch(const char *topic)
{
	int64_t written = bed_written(topic, false) % (ZOMBIE_BATCH + 2);
	return written > 0 && written < ZOMBIE_BATCH;
}

/* Stop it while it has a transaction open in which something was written. */
static void stop_in_transaction(pid_t pid, const char *topic)
{
	int64_t written = 0;
	for (int tries = 0; tries < 300; tries++) {
		int status;
		struct bed_wait wait = {0};
		while (bed_written(topic, false) <= written)
			bed_wait(&wait, "the zombie to write");
		kill(pid, SIGSTOP);
		assert_int_equal(pid, waitpid(pid, &status, WUNTRACED));
		assert_true(WIFSTOPPED(status));
		if (is_amid_a_batch(topic) && bed_is_open(topic))
			return;
		written = bed_written(topic, false);
		kill(pid, SIGCONT);
	}
	fail_msg("never met it in a transaction");
}

static void a_zombie_is_fenced_by_the_broker_and_nothing_of_it_is_seen(void **state)
{
	(void)state;
	char topic[NAME_SIZE], word[32], after[32];
	bed_topic(topic, "zombie", 2, NULL);
	FILE *says;
	pid_t pid = start_zombie(topic, &says);
	stop_in_transaction(pid, topic);

	struct broker *broker = bed_broker("main", NULL);
	struct channel *channel = bed_channel(broker, topic); /* takes over */
	assert_false(bed_is_open(topic));
	struct record *records = bed_records(topic, 10000000, 50, 5);
	assert_int_equal(IBID_OK, bed_publish(channel, records, 50));
	kill(pid, SIGCONT);

	size_t refused = 0, visible = 0;
	int end = 0, status;
	assert_int_equal(4, fscanf(says, "%31s %zu %d %31s", word, &refused, &end, after));
	fclose(says);
	assert_int_equal(pid, waitpid(pid, &status, 0));
	assert_string_equal("fenced", word);
	assert_string_equal("fenced", after);
	assert_int_not_equal(RECORD_ACKED, end);
	struct log_of log = bed_read(topic, true);
	for (size_t i = 0; i < log.count; i++) {
		unsigned long number = strtoul(log.seen[i].id + 1, NULL, 10);
		assert_true(number >= 10000000 || number < refused * ZOMBIE_BATCH);
		visible += number < 10000000;
	}
	assert_int_equal(refused * ZOMBIE_BATCH, visible);
	assert_int_equal(50, log.count - visible);
	bed_log_free(&log);
	/* It was there: a reader of everything sees it. */
	log = bed_read(topic, false);
	assert_true(log.count > visible + 50);
	bed_log_free(&log);
	/* The new owner is not disturbed. */
	assert_int_equal(IBID_OK, bed_publish(channel, records, 50));
	bed_records_free(records, 50);
	broker->ops->close_channel(channel);
	broker_close(broker);
}

static void who_opens_a_channel_again_fences_the_one_before(void **state)
{
	(void)state;
	char topic[NAME_SIZE];
	bed_topic(topic, "twice", 1, NULL);
	struct broker *broker = bed_broker("main", NULL);
	struct channel *first = bed_channel(broker, topic), *other = bed_channel(broker, "other");
	struct record *records = bed_records(topic, 0, 20, 3);
	assert_int_equal(IBID_OK, bed_publish(first, records, 10));
	struct channel *second = bed_channel(broker, topic);
	assert_int_equal(IBID_FENCED, bed_publish(first, records + 10, 10));
	bed_check_ends(records + 10, 10, RECORD_NOT_TRIED);
	assert_int_equal(IBID_OK, bed_publish(second, records + 10, 10));
	bed_check_log(topic, records, 20);
	struct record *others = bed_records(topic, 100, 1, 1);
	assert_int_equal(IBID_OK, bed_publish(other, others, 1)); /* another channel: not concerned */
	bed_records_free(others, 1);
	bed_records_free(records, 20);
	broker->ops->close_channel(first);
	broker->ops->close_channel(second);
	broker->ops->close_channel(other);
	broker_close(broker);
}

int main(int argc, char **argv)
{
	if (argc == 2 && strcmp(argv[0], "zombie") == 0)
		return be_zombie(argv[1]);
	bed_kafka("");
	if (argc == 2)
		cmocka_set_test_filter(argv[1]);
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(weaker_settings_are_refused_with_a_reason),
	    cmocka_unit_test(wrong_settings_are_named_with_what_would_be_right),
	    cmocka_unit_test(what_only_repeats_the_rule_is_taken),
	    cmocka_unit_test(an_unreachable_broker_is_unavailable),
	    cmocka_unit_test(an_event_arrives_as_a_cloud_event),
	    cmocka_unit_test(an_event_without_key_and_payload_arrives_without),
	    cmocka_unit_test(keys_go_to_the_partitions_that_other_clients_choose),
	    cmocka_unit_test(results_match_the_log_of_the_broker),
	    cmocka_unit_test(results_match_without_transactions_too),
	    cmocka_unit_test(an_oversized_record_stops_its_aggregate_only),
	    cmocka_unit_test(a_record_too_large_for_its_topic_is_found_among_its_neighbours),
	    cmocka_unit_test(without_transactions_nothing_overtakes_a_refused_record),
	    cmocka_unit_test(without_transactions_the_next_set_waits_for_the_refused_one),
	    cmocka_unit_test(without_transactions_a_refused_first_set_is_not_overtaken),
	    cmocka_unit_test(an_unknown_topic_stops_its_aggregate_only),
	    cmocka_unit_test(an_aggregate_over_two_topics_stays_in_order),
	    cmocka_unit_test(who_stops_before_the_start_sends_nothing),
	    cmocka_unit_test(who_opens_a_channel_again_fences_the_one_before),
	    cmocka_unit_test(a_zombie_is_fenced_by_the_broker_and_nothing_of_it_is_seen),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
