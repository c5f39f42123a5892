/* SPDX-License-Identifier: Apache-2.0 */
#include "http/memory_limit.h"

const char memory_short_text[] =
    "other requests hold all of http.limits.memory, which bodies and answers share; nothing was "
    "done";

bool memory_hold(struct memory_limit *limit, size_t *held, size_t bytes)
{
	size_t wanted = bytes > MEMORY_SMALL_BYTES ? bytes : 0;
	if (wanted <= *held) {
		if (wanted < *held)
			atomic_fetch_sub(&limit->held, *held - wanted);
		*held = wanted;
		return true;
	}
	size_t all = atomic_load(&limit->held), others;
	do {
		others = all - *held;
		if (others && (wanted > limit->bytes || others > limit->bytes - wanted)) {
			atomic_store(&limit->reached, true);
			return false;
		}
	} while (!atomic_compare_exchange_weak(&limit->held, &all, others + wanted));
	*held = wanted;
	return true;
}

bool memory_was_short(struct memory_limit *limit)
{
	return atomic_exchange(&limit->reached, false);
}
