/* SPDX-License-Identifier: Apache-2.0 */
/* Retry policies as people write them. */
#include "unit.h"

#include "retry/settings.h"

#include <string.h>

#define SECOND_US INT64_C(1000000)

static void assert_refused(const char *path, const char *text, const char *why)
{
	struct retry_settings settings, before;
	struct ibid_err err = {0};
	retry_settings_init(&settings);
	before = settings;
	if (retry_setting_read(path, text, &settings, &err) != IBID_INVALID)
		fail_msg("%s: %s was accepted", path, text);
	if (!strstr(err.text, path) || !strstr(err.text, why))
		fail_msg("%s: %s was refused with: %s", path, text, err.text);
	assert_memory_equal(&settings, &before, sizeof before);
}

static void read_one(struct retry_settings *settings, const char *path, const char *text)
{
	struct ibid_err err = {0};
	if (retry_setting_read(path, text, settings, &err))
		fail_msg("%s: %s was refused: %s", path, text, err.text);
}

static void a_policy_is_read_as_it_is_written(void **state) /* F02 */
{
	(void)state;
	struct retry_settings settings;
	retry_settings_init(&settings);
	read_one(&settings, "attempts", "5");
	read_one(&settings, "backoff", "200ms..2h");
	read_one(&settings, "burst", "7");
	read_one(&settings, "rate", "600/m");
	read_one(&settings, "breaker.open_after", "3");
	read_one(&settings, "breaker.probe_every", "5s");
	read_one(&settings, "budget", "35%");
	read_one(&settings, "budget_floor", "2");
	read_one(&settings, "budget_window", "1m");
	assert_int_equal(settings.policy.attempts_max, 5);
	assert_int_equal(settings.policy.base_us, 200000);
	assert_int_equal(settings.policy.cap_us, 7200 * SECOND_US);
	assert_int_equal(settings.limits.rate.count, 600);
	assert_int_equal(settings.limits.rate.per_us, 60 * SECOND_US);
	assert_int_equal(settings.limits.rate.burst, 7);
	assert_int_equal(settings.limits.breaker.open_after, 3);
	assert_int_equal(settings.limits.breaker.probe_every_us, 5 * SECOND_US);
	assert_int_equal(settings.limits.budget.share_percent, 35);
	assert_int_equal(settings.limits.budget.floor, 2);
	assert_int_equal(settings.limits.budget.window_us, 60 * SECOND_US);
}

static void what_is_not_written_has_its_default(void **state)
{
	(void)state;
	struct retry_settings settings;
	retry_settings_init(&settings);
	assert_int_equal(settings.policy.attempts_max, 8);
	assert_int_equal(settings.policy.base_us, SECOND_US);
	assert_int_equal(settings.policy.cap_us, 300 * SECOND_US);
	assert_int_equal(settings.policy.unknown, RETRY_INQUIRE);
	assert_int_equal(settings.limits.rate.count, 0);
	assert_int_equal(settings.limits.breaker.open_after, 5);
	assert_int_equal(settings.limits.breaker.probe_every_us, 30 * SECOND_US);
	assert_int_equal(settings.limits.budget.share_percent, 20);
	assert_int_equal(settings.limits.budget.floor, 10);
	assert_int_equal(settings.limits.budget.window_us, 10 * SECOND_US);
}

static void limits_may_be_switched_off_and_on(void **state)
{
	(void)state;
	struct retry_settings settings;
	struct gate gate = {0};
	retry_settings_init(&settings);
	read_one(&settings, "rate", "1/h");
	assert_int_equal(settings.limits.rate.per_us, 3600 * SECOND_US);
	read_one(&settings, "rate", "none");
	read_one(&settings, "breaker.open_after", "none");
	read_one(&settings, "budget", "none");
	for (int i = 0; i < 100; i++)
		breaker_failed(&gate.breaker, &settings.limits.breaker, FAILURE_TRANSIENT, i);
	assert_int_equal(gate_ask(&gate, &settings.limits, 5, 0, 100000).again, 100000);
	read_one(&settings, "budget", "0%");
	assert_int_equal(gate_ask(&gate, &settings.limits, 5, 0, 100000).again, 10);
	read_one(&settings, "rate", "1000000/s");
	read_one(&settings, "burst", "1000000");
	read_one(&settings, "burst", "auto");
	assert_int_equal(settings.limits.rate.burst, 0);
}

static void wrong_texts_are_refused_with_what_would_be_right(void **state)
{
	(void)state;
	static const struct {
		const char *path, *why, *texts[16];
	} cases[] = {
	    {"attempts",
	     "a whole number from 1 to 1000",
	     {"", "0", "-1", "+1", " 1", "1 ", "08", "1.0", "1001", "ten", "99999999999999999999"}},
	    {"backoff",
	     "such as 1s..5m",
	     {"", "1s", "..", "1s..", "..5m", "1s...5m", "1s-5m", "1s .. 5m", "1..5", "0s..5m",
	      "1s..5m..1h", "1s..5x", "111111111111111111111111111111s..5m"}},
	    {"backoff", "the shorter pause first", {"5m..1s"}},
	    {"backoff", "at most 30d", {"1s..31d", "1s..10y", "9223372036854s..9223372036854s"}},
	    {"rate",
	     "such as 50/s",
	     {"", "50", "/s", "0/s", "-5/s", "50/d", "50/sec", "50 /s", "1000001/s", "5.5/s", "off"}},
	    {"burst", "a whole number from 1 to 1000000", {"", "0", "1000001", "none"}},
	    {"breaker.open_after", "a whole number from 1", {"", "0", "-3", "ten"}},
	    {"breaker.probe_every", "such as 30s", {"", "30", "0s", "2d", "none"}},
	    {"budget", "such as 20%", {"", "20", "%", "101%", "-1%", "20 %", "20%%", "0.2"}},
	    {"budget_floor", "a whole number from 1", {"", "0", "none"}},
	    {"budget_window", "from 1s to 1h", {"", "500ms", "2h", "10"}},
	    {"retries", "there is no setting", {"5"}},
	};
	for (size_t i = 0; i < COUNT(cases); i++)
		for (size_t j = 0; j < COUNT(cases[i].texts) && cases[i].texts[j]; j++)
			assert_refused(cases[i].path, cases[i].texts[j], cases[i].why);
}

static void an_unknown_setting_is_answered_with_all_there_are(void **state)
{
	(void)state;
#define RETRY_SETTING_CHECK(name, path, default_text, meaning)                                     \
	assert_refused("breaker", "10", " " path);
	RETRY_SETTINGS(RETRY_SETTING_CHECK)
#undef RETRY_SETTING_CHECK
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(a_policy_is_read_as_it_is_written),
	    cmocka_unit_test(what_is_not_written_has_its_default),
	    cmocka_unit_test(limits_may_be_switched_off_and_on),
	    cmocka_unit_test(wrong_texts_are_refused_with_what_would_be_right),
	    cmocka_unit_test(an_unknown_setting_is_answered_with_all_there_are),
	};
	return cmocka_run_group_tests_name("retry settings", tests, NULL, NULL);
}
