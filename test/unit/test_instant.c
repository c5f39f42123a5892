/* SPDX-License-Identifier: Apache-2.0 */
/* Instants, dates and durations as text. */
#include "unit.h"

#include "base/instant.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static void assert_canonical(const char *text, const char *expected)
{
	struct str out = STR_INIT(256);
	str_adds(&out, ">");
	bool ok = instant_canonical(text, strlen(text), &out);
	if (ok != (expected != NULL))
		fail_msg("%s was %s", text, ok ? "accepted" : "refused");
	assert_string_equal(out.data + 1, expected ? expected : "");
	str_release(&out);
}

/* A03 */
static void one_instant_has_one_text(void **state)
{
	(void)state;
	static const char *const cases[][2] = {
	    {"2026-11-15T10:00:00+01:00", "2026-11-15T09:00:00Z"},
	    {"2026-11-15T09:00:00Z", "2026-11-15T09:00:00Z"},
	    {"2026-11-15t09:00:00z", "2026-11-15T09:00:00Z"},
	    {"2026-11-15T09:00:00-00:00", "2026-11-15T09:00:00Z"},
	    {"2026-11-15T09:00:00.000Z", "2026-11-15T09:00:00Z"},
	    {"2026-11-15T09:00:00.1200Z", "2026-11-15T09:00:00.12Z"},
	    {"2026-11-15T09:00:00.000000000000001Z", "2026-11-15T09:00:00.000000000000001Z"},
	    {"2026-01-01T00:30:00+01:00", "2025-12-31T23:30:00Z"},
	    {"2024-02-28T23:30:00-01:00", "2024-02-29T00:30:00Z"},
	    {"2023-02-28T23:30:00-01:00", "2023-03-01T00:30:00Z"},
	    {"2100-02-28T23:59:59-00:01", "2100-03-01T00:00:59Z"},
	    {"2000-02-28T23:59:59-00:01", "2000-02-29T00:00:59Z"},
	    {"0000-01-01T00:00:00Z", "0000-01-01T00:00:00Z"},
	    {"9999-12-31T23:59:59.9Z", "9999-12-31T23:59:59.9Z"},
	    {"2026-11-15T09:00:00+23:59", "2026-11-14T09:01:00Z"},
	};
	for (size_t i = 0; i < COUNT(cases); i++)
		assert_canonical(cases[i][0], cases[i][1]);
}

static void a_leap_second_stays_one(void **state)
{
	(void)state;
	assert_canonical("2016-12-31T23:59:60Z", "2016-12-31T23:59:60Z");
	assert_canonical("2017-01-01T00:59:60.50+01:00", "2016-12-31T23:59:60.5Z");
	assert_canonical("1990-12-31T15:59:60-08:00", "1990-12-31T23:59:60Z");
}

static void texts_that_are_no_instants_are_refused(void **state)
{
	(void)state;
	static const char *const texts[] = {
	    "",
	    "2026-11-15",
	    "2026-11-15T10:00:00",
	    "2026-11-15 10:00:00Z",
	    "2026-11-15T10:00Z",
	    "2026-11-15T10:00:00.Z",
	    "2026-11-15T10:00:00,5Z",
	    "2026-11-15T10:00:00+0100",
	    "2026-11-15T10:00:00+01",
	    "2026-11-15T10:00:00+24:00",
	    "2026-11-15T10:00:00+01:60",
	    "2026-11-15T24:00:00Z",
	    "2026-11-15T10:60:00Z",
	    "2026-11-15T10:00:61Z",
	    "2026-02-29T10:00:00Z",
	    "2026-11-31T10:00:00Z",
	    "2026-13-01T10:00:00Z",
	    "2026-00-01T10:00:00Z",
	    "2026-11-00T10:00:00Z",
	    "26-11-15T10:00:00Z",
	    "+2026-11-15T10:00:00Z",
	    "2026-11-15T10:00:00Z ",
	    " 2026-11-15T10:00:00Z",
	    "2026-11-15T1a:00:00Z",
	    "0000-01-01T00:00:00+00:01",
	    "9999-12-31T23:59:59-00:01",
	};
	int64_t us = 7;
	for (size_t i = 0; i < COUNT(texts); i++) {
		assert_canonical(texts[i], NULL);
		assert_false(instant_read(texts[i], strlen(texts[i]), &us));
	}
	assert_false(instant_read("2026-11-15T10:00:00Z\0", 21, &us));
	assert_int_equal(us, 7);
}

static void every_truncation_is_refused(void **state)
{
	(void)state;
	static const char text[] = "2026-11-15T10:00:00.5+01:00";
	int64_t us;
	for (size_t size = 0; size < sizeof text - 1; size++) {
		char *copy = malloc(size + 1); /* the sanitizer sees a look beyond it */
		memcpy(copy + 1, text, size);
		assert_false(instant_read(copy + 1, size, &us));
		free(copy);
	}
	assert_true(instant_read(text, sizeof text - 1, &us));
}

static void instants_are_read_to_the_microsecond_and_cut_below(void **state)
{
	(void)state;
	static const struct {
		const char *text;
		int64_t us;
	} cases[] = {
	    {"1970-01-01T00:00:00Z", 0},
	    {"1970-01-01T00:00:00.000001Z", 1},
	    {"1970-01-01T00:00:00.0000019999Z", 1},
	    {"1970-01-01T00:00:01.5Z", 1500000},
	    {"1969-12-31T23:59:59.9Z", -100000},
	    {"1970-01-01T01:00:00+01:00", 0},
	    {"2001-09-09T01:46:40Z", INT64_C(1000000000000000)},
	    {"2016-12-31T23:59:60Z", INT64_C(1483228800000000)},
	};
	for (size_t i = 0; i < COUNT(cases); i++) {
		int64_t us = -1;
		assert_true(instant_read(cases[i].text, strlen(cases[i].text), &us));
		assert_int_equal(us, cases[i].us);
	}
}

static void instants_are_written_with_six_fraction_digits(void **state)
{
	(void)state;
	char text[INSTANT_TEXT_SIZE];
	instant_write(0, text);
	assert_string_equal(text, "1970-01-01T00:00:00.000000Z");
	instant_write(-1, text);
	assert_string_equal(text, "1969-12-31T23:59:59.999999Z");
	instant_write(INT64_C(1000000000000042), text);
	assert_string_equal(text, "2001-09-09T01:46:40.000042Z");
	instant_write(INT64_MAX, text);
	assert_string_equal(text, "294247-01-10T04:00:54.775807Z");
	instant_write(INT64_MIN, text);
	assert_string_equal(text, "-290308-12-21T19:59:05.224192Z");
}

static void instants_beyond_four_digits_are_the_nearest_with_four(void **state)
{
	(void)state;
	char text[INSTANT_TEXT_SIZE];
	instant_write(instant_clamp(INT64_MAX), text);
	assert_string_equal(text, "9999-12-31T23:59:59.999999Z");
	instant_write(instant_clamp(INT64_MIN), text);
	assert_string_equal(text, "0001-01-01T00:00:00.000000Z");
	assert_int_equal(instant_clamp(-1), -1);
}

static void instants_agree_with_the_c_library(void **state)
{
	(void)state;
	const int64_t from = INT64_C(-62167219200), to = INT64_C(253402300800); /* years 0 to 9999 */
	struct env_virtual random;
	env_virtual_init(&random, 0, 3339);
	for (int i = 0; i < 50000; i++) {
		time_t seconds = (time_t)(from + (int64_t)pick(&random, (size_t)(to - from)));
		int64_t us = (int64_t)seconds * 1000000 + (int64_t)pick(&random, 1000000), again;
		struct tm parts;
		char text[INSTANT_TEXT_SIZE], expected[64];
		assert_non_null(gmtime_r(&seconds, &parts));
		snprintf(expected, sizeof expected, "%04d-%02d-%02dT%02d:%02d:%02d.%06dZ",
		         parts.tm_year + 1900, parts.tm_mon + 1, parts.tm_mday, parts.tm_hour, parts.tm_min,
		         parts.tm_sec, (int)(us - (int64_t)seconds * 1000000));
		instant_write(us, text);
		assert_string_equal(text, expected);
		assert_true(instant_read(text, strlen(text), &again));
		assert_int_equal(again, us);
	}
}

static void only_real_dates_are_dates(void **state)
{
	(void)state;
	static const char *const good[] = {"2026-11-15", "2024-02-29", "2000-02-29", "0000-02-29",
	                                   "9999-12-31", "2026-01-31", "2026-04-30"};
	static const char *const bad[] = {"2023-02-29", "1900-02-29",  "2026-04-31", "2026-00-10",
	                                  "2026-13-01", "2026-01-00",  "2026-01-32", "2026-1-01",
	                                  "20260101",   "2026-01-01T", "",           "2026-01-1",
	                                  "2026/01/01", "-026-01-01"};
	for (size_t i = 0; i < COUNT(good); i++)
		assert_true(date_ok(good[i], strlen(good[i])));
	for (size_t i = 0; i < COUNT(bad); i++)
		if (date_ok(bad[i], strlen(bad[i])))
			fail_msg("%s is no date", bad[i]);
}

static void durations_are_whole_numbers_with_one_unit(void **state)
{
	(void)state;
	static const struct {
		const char *text;
		int64_t us;
	} good[] = {{"250ms", 250000},
	            {"2s", 2000000},
	            {"10m", 600000000},
	            {"4h", INT64_C(14400000000)},
	            {"30d", INT64_C(2592000000000)},
	            {"2w", INT64_C(1209600000000)},
	            {"10y", INT64_C(315360000000000)},
	            {"9223372036854s", INT64_C(9223372036854000000)}};
	static const char *const bad[] = {"",
	                                  "5",
	                                  "s",
	                                  "0s",
	                                  "-1s",
	                                  "+1s",
	                                  "1.5s",
	                                  "1 s",
	                                  " 1s",
	                                  "1s ",
	                                  "1h30m",
	                                  "1S",
	                                  "1us",
	                                  "1M",
	                                  "1sm",
	                                  "0x10s",
	                                  "1min",
	                                  "ms",
	                                  "9223372036855s",
	                                  "99999999999999999999s",
	                                  "292472y"};
	for (size_t i = 0; i < COUNT(good); i++) {
		int64_t us = 0;
		assert_true(duration_read(good[i].text, &us));
		assert_int_equal(us, good[i].us);
	}
	for (size_t i = 0; i < COUNT(bad); i++) {
		int64_t us = 7;
		if (duration_read(bad[i], &us))
			fail_msg("%s is no duration", bad[i]);
		assert_int_equal(us, 7);
	}
}

static void durations_are_rounded_to_the_unit_that_is_shown(void **state)
{
	(void)state;
	const int64_t SECOND_US = 1000000, MINUTE_US = 60 * SECOND_US;
	const int64_t HOUR_US = 60 * MINUTE_US, DAY_US = 24 * HOUR_US;
	const struct {
		int64_t us;
		const char *text;
	} cases[] = {
	    {INT64_MIN, "0 s"},
	    {-1, "0 s"},
	    {0, "0 s"},
	    {49999, "0 s"},
	    {50000, "0.1 s"},
	    {949999, "0.9 s"},
	    {950000, "1 s"},
	    {3 * SECOND_US, "3 s"},
	    {59 * SECOND_US + 499999, "59 s"},
	    {59 * SECOND_US + 500000, "1 min"},
	    {MINUTE_US, "1 min"},
	    {90 * SECOND_US, "1 min 30 s"},
	    {2 * MINUTE_US - 1, "2 min"},
	    {9 * MINUTE_US + 59 * SECOND_US, "9 min 59 s"},
	    {10 * MINUTE_US - 1, "10 min"},
	    {10 * MINUTE_US + 29 * SECOND_US, "10 min"},
	    {10 * MINUTE_US + 30 * SECOND_US, "11 min"},
	    {59 * MINUTE_US + 29 * SECOND_US, "59 min"},
	    {59 * MINUTE_US + 30 * SECOND_US, "1 h"},
	    {HOUR_US, "1 h"},
	    {HOUR_US + 29 * SECOND_US, "1 h"},
	    {HOUR_US + 30 * SECOND_US, "1 h 1 min"},
	    {2 * HOUR_US - 30 * SECOND_US, "2 h"},
	    {4 * HOUR_US - 1, "4 h"},
	    {10 * HOUR_US - MINUTE_US, "9 h 59 min"},
	    {10 * HOUR_US - 1, "10 h"},
	    {23 * HOUR_US + 29 * MINUTE_US, "23 h"},
	    {23 * HOUR_US + 30 * MINUTE_US, "1 d"},
	    {DAY_US, "1 d"},
	    {DAY_US + 6 * HOUR_US, "1 d 6 h"},
	    {10 * DAY_US - HOUR_US, "9 d 23 h"},
	    {10 * DAY_US - 1, "10 d"},
	    {400 * DAY_US, "400 d"},
	    {INT64_MAX, "106751991 d"},
	};
	char text[INSTANT_TEXT_SIZE];
	for (size_t i = 0; i < COUNT(cases); i++) {
		duration_write(cases[i].us, text);
		assert_string_equal(text, cases[i].text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(one_instant_has_one_text),
	    cmocka_unit_test(a_leap_second_stays_one),
	    cmocka_unit_test(texts_that_are_no_instants_are_refused),
	    cmocka_unit_test(every_truncation_is_refused),
	    cmocka_unit_test(instants_are_read_to_the_microsecond_and_cut_below),
	    cmocka_unit_test(instants_are_written_with_six_fraction_digits),
	    cmocka_unit_test(instants_beyond_four_digits_are_the_nearest_with_four),
	    cmocka_unit_test(instants_agree_with_the_c_library),
	    cmocka_unit_test(only_real_dates_are_dates),
	    cmocka_unit_test(durations_are_whole_numbers_with_one_unit),
	    cmocka_unit_test(durations_are_rounded_to_the_unit_that_is_shown),
	};
	return cmocka_run_group_tests_name("instant", tests, NULL, NULL);
}
