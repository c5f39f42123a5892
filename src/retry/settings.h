/* SPDX-License-Identifier: Apache-2.0 */
/* settings.h -- a retry policy and its limits, as people write them.
 *
 *     attempts: 8
 *     backoff: 1s..5m
 *     rate: 50/s
 *     breaker: { open_after: 5, probe_every: 30s }
 *     budget: 20%
 *
 * The reader of the file (a contract, the settings of a destination) passes the text of each
 * member; the list below has the paths. The error of a wrong text says what would be right;
 * settings that were read before do not change. */
#ifndef RETRY_SETTINGS_H
#define RETRY_SETTINGS_H

#include "base/err.h"
#include "retry/gate.h"
#include "retry/retry.h"

/* X(name, path, default, meaning): retry_policy_read_NAME reads it. */
#define RETRY_SETTINGS(X)                                                                          \
	X(attempts, "attempts", "8", "how often it is tried at most, the first time included")         \
	X(backoff, "backoff", "1s..5m", "the first pause at most, and the longest")                    \
	X(rate, "rate", "none", "how much may be sent in a second, a minute or an hour; or none")      \
	X(burst, "burst", "auto", "how much of it at once; auto: as much as a second brings")          \
	X(open_after, "breaker.open_after", "5", "failures in a row that open the breaker; or none")   \
	X(probe_every, "breaker.probe_every", "30s", "how often an open breaker lets one probe go")    \
	X(budget, "budget", "20%", "retries in the window, as a share of first tries; or none")        \
	X(budget_floor, "budget_floor", "10", "retries in the window that are always allowed")         \
	X(budget_window, "budget_window", "10s", "the time over which the budget is counted")

struct retry_settings {
	struct retry_policy policy; /* `unknown` is not a setting: the caller sets it; the
	                             * default is to inquire first */
	struct gate_limits limits;
};

/* The default of every setting. */
void retry_settings_init(struct retry_settings *settings);

/* Read one setting by its path. IBID_INVALID: the text is wrong, or there is no such setting. */
IBID_CHECK enum ibid_code retry_setting_read(const char *path, const char *text,
                                             struct retry_settings *settings, struct ibid_err *err);

/* Read each from its text. IBID_INVALID and nothing changed when it is wrong; the error begins with
 * the setting's path. */
#define RETRY_SETTING_FUNCTION(name, path, default_text, meaning)                                  \
	IBID_CHECK enum ibid_code retry_policy_read_##name(                                            \
	    const char *text, struct retry_settings *settings, struct ibid_err *err);
RETRY_SETTINGS(RETRY_SETTING_FUNCTION)
#undef RETRY_SETTING_FUNCTION

#endif
