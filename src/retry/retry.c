/* SPDX-License-Identifier: Apache-2.0 */
#include "retry/retry.h"

int64_t retry_pause_us(const struct retry_policy *policy, int attempt, uint64_t random)
{
	if (attempt >= policy->attempts_max)
		return -1;
	int64_t ceiling = policy->base_us;
	for (int i = 1; i < attempt && ceiling < policy->cap_us; i++)
		ceiling *= 2;
	if (ceiling > policy->cap_us)
		ceiling = policy->cap_us;
	return (int64_t)(random % ((uint64_t)ceiling + 1));
}
