/* SPDX-License-Identifier: Apache-2.0 */
/* The Kafka destination at a broker that asks who comes: run under `with-kafka --secure`. */
#include "kafka_bed.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { COUNT = 30 };

static char authority[256], stranger[256], ssl_door[64], sasl_door[64];

static void look_around(void)
{
	const char *dir = getenv("IBID_TEST_KAFKA_DIR");
	snprintf(ssl_door, sizeof ssl_door, "%s", bed_kafka("-ssl"));
	snprintf(sasl_door, sizeof sasl_door, "%s", bed_kafka("-sasl"));
	snprintf(authority, sizeof authority, "%s/ca.pem", dir);
	snprintf(stranger, sizeof stranger, "%s/stranger.pem", dir);
	char line[900];
	snprintf(
	    line, sizeof line,
	    "openssl req -x509 -newkey rsa:2048 -nodes -keyout '%s.key' -out '%s' -subj /CN=stranger "
	    "-days 2 2>/dev/null",
	    stranger, stranger);
	if (system(line))
		exit(1);
}

static struct broker *as_user(const char *user, const char *password, const char *mode)
{
	const char *const more[] = {"brokers",
	                            sasl_door,
	                            "security.protocol",
	                            "sasl_plaintext",
	                            "sasl.mechanisms",
	                            "PLAIN",
	                            "sasl.username",
	                            user,
	                            "sasl.password",
	                            password,
	                            "delivery_timeout",
	                            "60s",
	                            "mode",
	                            mode,
	                            NULL};
	return bed_broker("main", more);
}

static struct broker *over_tls(const char *ca)
{
	const char *const more[] = {
	    "brokers", ssl_door, "security.protocol", "ssl", "ssl.ca.location", ca, "delivery_timeout",
	    "60s",     NULL};
	return bed_broker("main", more);
}

/* Who may not write to a topic: those events fail, all others go. */
static void not_allowed(const char *mode, bool seen, size_t bad_topics)
{
	char open_one[NAME_SIZE], open_two[NAME_SIZE], closed[NAME_SIZE];
	bed_topic(open_one, "open", 2, NULL);
	bed_topic(open_two, "open", 1, NULL);
	bed_topic(closed, "closed", 1, NULL);
	bed_topic_allow(closed, "bob", seen);
	struct broker *broker = as_user("alice", "alice-secret", mode);
	struct channel *channel = bed_channel(broker, closed);
	struct record *records = bed_records(open_one, 0, COUNT, 5);
	for (size_t i = 0; i < COUNT; i++) {
		bool bad = bad_topics && i % 5 == 3 && i > 10;
		records[i].topic = bad ? closed : i % 5 == 1 ? open_two : open_one;
	}
	if (bad_topics == 2)
		for (size_t i = 0; i < COUNT; i++)
			records[i].topic = closed;
	assert_int_equal(IBID_OK, bed_publish(channel, records, COUNT));
	for (size_t i = 0; i < COUNT; i++) {
		bool bad = records[i].topic == closed, first = i < 5 || (i == 13 && bad_topics == 1);
		bed_check_ends(&records[i], 1,
		               !bad    ? RECORD_ACKED
		               : first ? RECORD_FAILED
		                       : RECORD_NOT_TRIED);
		if (bad && first) {
			assert_int_equal(FAILURE_SECURITY, records[i].failure);
			assert_string_equal("TOPIC_AUTHORIZATION", records[i].reason);
			assert_non_null(strstr(records[i].why, closed));
		}
	}
	struct log_of log = bed_read(closed, true);
	assert_int_equal(0, log.count);
	bed_log_free(&log);
	bed_records_free(records, COUNT);
	broker->ops->close_channel(channel);
	broker_close(broker);
}
static void an_unauthorised_event_stops_its_aggregate_only(void **state)
{
	(void)state;
	not_allowed("transactional", false, 0);
	for (int seen = 0; seen < 2; seen++) {
		not_allowed("transactional", seen, 1);
		not_allowed("transactional", seen, 2);
	}
}
static void also_without_transactions(void **state)
{
	(void)state;
	for (int seen = 0; seen < 2; seen++) {
		not_allowed("idempotent", seen, 1);
		not_allowed("idempotent", seen, 2);
	}
}

static void expect_not_allowed(const struct record *record)
{
	bed_check_ends(record, 1, RECORD_FAILED);
	assert_int_equal(FAILURE_SECURITY, record->failure);
	assert_string_equal("TOPIC_AUTHORIZATION", record->reason);
}

/* The refusal comes first in the batch, or for what was allowed until now: the channel may not
 * survive it, and on a new one all others go. */
static void a_refusal_does_not_keep_others_from_going(void **state)
{
	(void)state;
	char open_one[NAME_SIZE], open_two[NAME_SIZE], closed[NAME_SIZE];
	bed_topic(open_one, "open", 1, NULL);
	bed_topic(open_two, "open", 1, NULL);
	bed_topic(closed, "closed", 1, NULL);
	bed_topic_allow(closed, "bob", true);
	struct broker *broker = as_user("alice", "alice-secret", "transactional");
	struct channel *channel = bed_channel(broker, closed);
	struct record *records = bed_records(open_one, 0, COUNT, COUNT);
	for (size_t i = 0; i < COUNT; i++)
		records[i].topic = i == 0 ? closed : i % 2 ? open_one : open_two;
	assert_int_equal(IBID_OK, bed_publish(channel, records, COUNT));
	expect_not_allowed(&records[0]);
	broker->ops->close_channel(channel);
	channel = bed_channel(broker, closed);
	for (int producer = 0; producer < 2; producer++) { /* of the channel, in turn */
		assert_int_equal(IBID_OK, bed_publish(channel, records + 1, COUNT - 1));
		bed_check_ends(records + 1, COUNT - 1, RECORD_ACKED);
	}

	bed_topic_allow(open_two, "bob", true);
	assert_int_equal(IBID_UNAVAILABLE, bed_publish(channel, records + 1, COUNT - 1));
	bed_check_ends(records + 1, COUNT - 1, RECORD_NOT_TRIED);
	broker->ops->close_channel(channel);
	channel = bed_channel(broker, closed);
	assert_int_equal(IBID_OK, bed_publish(channel, records + 1, COUNT - 1));
	for (size_t i = 1; i < COUNT; i++) {
		if (i % 2)
			bed_check_ends(&records[i], 1, RECORD_ACKED);
		else
			expect_not_allowed(&records[i]);
	}
	bed_records_free(records, COUNT);
	broker->ops->close_channel(channel);
	broker_close(broker);
}

static void who_is_allowed_may(void **state)
{
	(void)state;
	char closed[NAME_SIZE];
	bed_topic(closed, "closed", 1, NULL);
	bed_topic_allow(closed, "bob", false);
	struct broker *broker = as_user("bob", "bob-secret", "transactional");
	struct channel *channel = bed_channel(broker, closed);
	struct record *records = bed_records(closed, 0, COUNT, 5);
	assert_int_equal(IBID_OK, bed_publish(channel, records, COUNT));
	bed_check_log(closed, records, COUNT);
	bed_records_free(records, COUNT);
	broker->ops->close_channel(channel);
	broker_close(broker);
}

static void denied(struct broker *broker, const char *part)
{
	struct channel *channel = NULL;
	struct ibid_err err = {0};
	int64_t began_us = env_steady_us(env_system());
	assert_int_equal(IBID_DENIED, broker->ops->open_channel(broker, "g0", &channel, &err));
	print_message("%s\n", err.text);
	assert_true(env_steady_us(env_system()) - began_us < 30000000); /* not at the deadline */
	assert_null(channel);
	if (!strstr(err.text, part))
		fail_msg("`%s` does not say `%s`", err.text, part);
	assert_null(strstr(err.text, "not-my-secret"));
	broker_close(broker);
}

static void a_wrong_password_is_denied_at_once(void **state)
{
	(void)state;
	denied(as_user("alice", "not-my-secret", "transactional"), "uthentication");
	denied(as_user("alice", "not-my-secret", "idempotent"), "uthentication");
}

static void write_file(const char *path, const char *text, mode_t mode)
{
	FILE *file = fopen(path, "w");
	assert_non_null(file);
	fputs(text, file);
	assert_int_equal(0, fclose(file));
	assert_int_equal(0, chmod(path, mode));
}

static void expect_refused(enum ibid_code code, const char *const *settings, const char *part)
{
	struct broker *broker = NULL;
	struct ibid_err err = {0};
	assert_int_equal(code, bed_try_broker(settings, &broker, &err));
	assert_null(broker);
	if (!strstr(err.text, part))
		fail_msg("`%s` does not say `%s`", err.text, part);
	assert_null(strstr(err.text, "alice-secret"));
}

static void a_password_may_stand_in_a_file_of_its_owner(void **state)
{
	(void)state;
	char path[256];
	snprintf(path, sizeof path, "%s/password", getenv("IBID_TEST_KAFKA_DIR"));
	const char *const more[] = {"brokers",
	                            sasl_door,
	                            "security.protocol",
	                            "sasl_plaintext",
	                            "sasl.username",
	                            "alice",
	                            "sasl.mechanisms",
	                            "PLAIN",
	                            "delivery_timeout",
	                            "60s",
	                            "mode",
	                            "transactional",
	                            "sasl.password_file",
	                            path,
	                            NULL,
	                            NULL,
	                            NULL};
	expect_refused(IBID_INVALID, more, "kafka.sasl.password_file: there is no file");
	write_file(path, "alice-secret\n", 0644);
	expect_refused(IBID_DENIED, more, "chmod 600");
	write_file(path, "\n", 0600);
	expect_refused(IBID_INVALID, more, "there is no password in");
	write_file(path, "alice-secret\n", 0600);
	struct broker *broker = bed_broker("main", more);
	struct channel *channel = bed_channel(broker, "g0");
	broker->ops->close_channel(channel);
	broker_close(broker);
	const char *both[sizeof more / sizeof *more];
	memcpy(both, more, sizeof more);
	both[14] = "sasl.password";
	both[15] = "alice-secret";
	expect_refused(IBID_INVALID, both, "only one may be set");
	write_file(path, "not-my-secret\n", 0600);
	denied(bed_broker("main", more), "uthentication");
}

static void events_travel_over_tls_to_who_can_prove_it(void **state)
{
	(void)state;
	char topic[NAME_SIZE];
	bed_topic(topic, "tls", 1, NULL);
	struct broker *broker = over_tls(authority);
	struct channel *channel = bed_channel(broker, topic);
	struct record *records = bed_records(topic, 0, COUNT, 5);
	assert_int_equal(IBID_OK, bed_publish(channel, records, COUNT));
	bed_check_log(topic, records, COUNT);
	bed_records_free(records, COUNT);
	broker->ops->close_channel(channel);
	broker_close(broker);
	denied(over_tls(stranger), "certificate");
}

int main(int argc, char **argv)
{
	bed_kafka("");
	if (argc == 2)
		cmocka_set_test_filter(argv[1]);
	look_around();
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(who_is_allowed_may),
	    cmocka_unit_test(an_unauthorised_event_stops_its_aggregate_only),
	    cmocka_unit_test(also_without_transactions),
	    cmocka_unit_test(a_refusal_does_not_keep_others_from_going),
	    cmocka_unit_test(a_wrong_password_is_denied_at_once),
	    cmocka_unit_test(a_password_may_stand_in_a_file_of_its_owner),
	    cmocka_unit_test(events_travel_over_tls_to_who_can_prove_it),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
