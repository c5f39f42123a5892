/* SPDX-License-Identifier: Apache-2.0 */
#include "retry/settings.h"

#include "base/instant.h"

#include <assert.h>
#include <string.h>

enum { NUMBER_MAX = BUCKET_COUNT_MAX, SHARE_MAX = 100, DURATION_CHARS_MAX = 24 };
#define SECOND_US INT64_C(1000000)
#define DAY_US    (86400 * SECOND_US)

/* ---- Texts ---------------------------------------------------------------------------------- */

static enum ibid_code refuse(struct ibid_err *err, const char *path, const char *text,
                             const char *wanted)
{
	return err_set(err, IBID_INVALID, "%s is `%.40s`: it must be %s", path, text, wanted);
}

/* The whole number that `text` begins with, without leading zeros, up to NUMBER_MAX; returns what
 * follows it, or NULL where there is no such number. */
static const char *number_at(const char *text, int64_t *ret)
{
	int64_t value = 0;
	const char *at = text;
	for (; *at >= '0' && *at <= '9'; at++) {
		value = 10 * value + (*at - '0');
		if (value > NUMBER_MAX)
			return NULL;
	}
	if (at == text || (*text == '0' && at - text > 1))
		return NULL;
	*ret = value;
	return at;
}

static enum ibid_code number_read(const char *path, const char *text, int64_t max, int64_t *ret,
                                  struct ibid_err *err)
{
	int64_t value = 0;
	const char *end = number_at(text, &value);
	if (!end || *end || value < 1 || value > max)
		return err_set(err, IBID_INVALID, "%s is `%.40s`: it must be a whole number from 1 to %lld",
		               path, text, (long long)max);
	*ret = value;
	return IBID_OK;
}

static bool none(const char *text)
{
	return strcmp(text, "none") == 0;
}

/* ---- The settings --------------------------------------------------------------------------- */

enum ibid_code retry_policy_read_attempts(const char *text, struct retry_settings *settings,
                                          struct ibid_err *err)
{
	int64_t attempts = 0;
	enum ibid_code code = number_read("attempts", text, RETRY_ATTEMPTS_MAX, &attempts, err);
	if (!code)
		settings->policy.attempts_max = (int)attempts;
	return code;
}

enum ibid_code retry_policy_read_backoff(const char *text, struct retry_settings *settings,
                                         struct ibid_err *err)
{
	char base[DURATION_CHARS_MAX];
	int64_t base_us = 0, cap_us = 0;
	const char *dots = strstr(text, "..");
	size_t size = dots ? (size_t)(dots - text) : sizeof base;
	if (size < sizeof base) {
		memcpy(base, text, size);
		base[size] = '\0';
	}
	if (size >= sizeof base || !duration_read(base, &base_us) || !duration_read(dots + 2, &cap_us))
		return refuse(err, "backoff", text,
		              "the first pause and the longest, such as 1s..5m or 200ms..30s");
	if (base_us > cap_us)
		return refuse(err, "backoff", text, "the shorter pause first");
	if (cap_us > RETRY_PAUSE_MAX_US)
		return refuse(err, "backoff", text, "pauses of at most 30d");
	settings->policy.base_us = base_us;
	settings->policy.cap_us = cap_us;
	return IBID_OK;
}

static int64_t rate_unit_us(const char *text)
{
	static const struct {
		const char *text;
		int64_t us;
	} units[] = {{"/s", SECOND_US}, {"/m", 60 * SECOND_US}, {"/h", 3600 * SECOND_US}};
	for (size_t i = 0; i < sizeof units / sizeof *units; i++)
		if (strcmp(text, units[i].text) == 0)
			return units[i].us;
	return 0;
}

enum ibid_code retry_policy_read_rate(const char *text, struct retry_settings *settings,
                                      struct ibid_err *err)
{
	int64_t count = 0;
	const char *end = none(text) ? NULL : number_at(text, &count);
	int64_t per_us = end ? rate_unit_us(end) : 0;
	if (!none(text) && (!per_us || !count))
		return refuse(
		    err, "rate", text,
		    "a whole number (1 to 1000000) per time, such as 50/s, 600/m or 1000/h; or none");
	settings->limits.rate.count = count;
	settings->limits.rate.per_us = per_us;
	return IBID_OK;
}

enum ibid_code retry_policy_read_burst(const char *text, struct retry_settings *settings,
                                       struct ibid_err *err)
{
	if (strcmp(text, "auto") == 0) {
		settings->limits.rate.burst = 0;
		return IBID_OK;
	}
	return number_read("burst", text, NUMBER_MAX, &settings->limits.rate.burst, err);
}

enum ibid_code retry_policy_read_open_after(const char *text, struct retry_settings *settings,
                                            struct ibid_err *err)
{
	int64_t failures = 0;
	enum ibid_code code = none(text)
	                          ? IBID_OK
	                          : number_read("breaker.open_after", text, NUMBER_MAX, &failures, err);
	if (!code)
		settings->limits.breaker.open_after = (int)failures;
	return code;
}

enum ibid_code retry_policy_read_probe_every(const char *text, struct retry_settings *settings,
                                             struct ibid_err *err)
{
	int64_t every_us = 0;
	if (!duration_read(text, &every_us) || every_us > DAY_US)
		return refuse(err, "breaker.probe_every", text, "a duration up to 1d, such as 30s");
	settings->limits.breaker.probe_every_us = every_us;
	return IBID_OK;
}

enum ibid_code retry_policy_read_budget(const char *text, struct retry_settings *settings,
                                        struct ibid_err *err)
{
	int64_t share = 0;
	const char *end = none(text) ? NULL : number_at(text, &share);
	if (!none(text) && (!end || strcmp(end, "%") != 0 || share > SHARE_MAX))
		return refuse(err, "budget", text, "a share from 0% to 100%, such as 20%; or none");
	settings->limits.budget.share_percent = none(text) ? BUDGET_UNLIMITED : (int)share;
	return IBID_OK;
}

enum ibid_code retry_policy_read_budget_floor(const char *text, struct retry_settings *settings,
                                              struct ibid_err *err)
{
	return number_read("budget_floor", text, NUMBER_MAX, &settings->limits.budget.floor, err);
}

enum ibid_code retry_policy_read_budget_window(const char *text, struct retry_settings *settings,
                                               struct ibid_err *err)
{
	int64_t window_us = 0;
	if (!duration_read(text, &window_us) || window_us < SECOND_US || window_us > 3600 * SECOND_US)
		return refuse(err, "budget_window", text, "a duration from 1s to 1h, such as 10s");
	settings->limits.budget.window_us = window_us;
	return IBID_OK;
}

/* ---- All of them ---------------------------------------------------------------------------- */

static const struct setting {
	const char *path, *default_text;
	enum ibid_code (*read)(const char *text, struct retry_settings *settings, struct ibid_err *err);
} table[] = {
#define RETRY_SETTING_ROW(name, path, default_text, meaning)                                       \
	{path, default_text, retry_policy_read_##name},
    RETRY_SETTINGS(RETRY_SETTING_ROW)
#undef RETRY_SETTING_ROW
};
enum { SETTINGS = sizeof table / sizeof *table };

void retry_settings_init(struct retry_settings *settings)
{
	struct ibid_err err;
	*settings = (struct retry_settings){0};
	for (size_t i = 0; i < SETTINGS; i++) {
		enum ibid_code code = table[i].read(table[i].default_text, settings, &err);
		assert(code == IBID_OK); /* a default is a text that may be written */
		(void)code;
	}
}

enum ibid_code retry_setting_read(const char *path, const char *text,
                                  struct retry_settings *settings, struct ibid_err *err)
{
	for (size_t i = 0; i < SETTINGS; i++)
		if (strcmp(path, table[i].path) == 0)
			return table[i].read(text, settings, err);
#define RETRY_SETTING_NAME(name, setting, default_text, meaning) " " setting
	return err_set(err, IBID_INVALID, "there is no setting `%.40s`; there are:%s", path,
	               RETRY_SETTINGS(RETRY_SETTING_NAME));
#undef RETRY_SETTING_NAME
}
