/* SPDX-License-Identifier: Apache-2.0 */
#include "retry/retry.h"

static int64_t at_most(int64_t us, int64_t most_us)
{
	return us < most_us ? us : most_us;
}

/* Both are below 2^42, so doubling can't overflow before it reaches the cap. */
static int64_t ceiling_us(const struct retry_policy *policy, int attempt)
{
	int64_t cap = at_most(policy->cap_us, RETRY_PAUSE_MAX_US);
	int64_t ceiling = at_most(policy->base_us, cap);
	for (int i = 1; i < attempt && ceiling > 0 && ceiling < cap; i++)
		ceiling = at_most(2 * ceiling, cap);
	return ceiling;
}

int64_t retry_pause_from_us(const struct retry_policy *policy, int attempt, int64_t least_us,
                            uint64_t random)
{
	int64_t low = least_us > 0 ? at_most(least_us, RETRY_PAUSE_MAX_US) : 0;
	int64_t high = ceiling_us(policy, attempt), spread = low + ceiling_us(policy, 1);
	if (high < spread)
		high = at_most(spread, RETRY_PAUSE_MAX_US);
	return low + (int64_t)(random % ((uint64_t)(high - low) + 1));
}

int64_t retry_pause_us(const struct retry_policy *policy, int attempt, uint64_t random)
{
	return attempt < policy->attempts_max ? retry_pause_from_us(policy, attempt, 0, random) : -1;
}

int64_t retry_pause_at_age_us(const struct retry_policy *policy, int64_t age_us)
{
	int64_t pause = ceiling_us(policy, 1), longest = ceiling_us(policy, RETRY_ATTEMPTS_MAX);
	for (int attempt = 1; pause < longest && age_us >= pause; attempt++) {
		age_us -= pause;
		pause = ceiling_us(policy, attempt + 1);
	}
	return pause;
}
