/* SPDX-License-Identifier: Apache-2.0 */
#include "retry/budget.h"

#include <assert.h>
#include <stdbool.h>

enum { RING = BUDGET_SLOTS + 1 };

static bool unlimited(const struct budget_limit *limit)
{
	return !limit->window_us || limit->share_percent == BUDGET_UNLIMITED;
}

static int64_t slot_us(const struct budget_limit *limit)
{
	assert(limit->window_us >= BUDGET_SLOTS && limit->window_us % BUDGET_SLOTS == 0);
	assert(limit->floor >= 1 && limit->share_percent >= 0);
	return limit->window_us / BUDGET_SLOTS;
}

/* The slot of a time; a thread that read the clock earlier counts in the newest one. */
static int64_t slot_at(const struct budget *budget, const struct budget_limit *limit,
                       int64_t now_us)
{
	int64_t slot = now_us / slot_us(limit);
	assert(now_us >= 0);
	return slot > budget->slot ? slot : budget->slot;
}

static void forget_old(struct budget *budget, const struct budget_limit *limit, int64_t now_us)
{
	int64_t slot = slot_at(budget, limit, now_us);
	if (slot - budget->slot > RING)
		budget->slot = slot - RING;
	while (budget->slot < slot) {
		budget->slot++;
		budget->first[budget->slot % RING] = 0;
		budget->again[budget->slot % RING] = 0;
	}
}

/* How many retries are left as seen from `slot`, which is not before the newest. */
static int64_t left_at(const struct budget *budget, const struct budget_limit *limit, int64_t slot)
{
	int64_t first = 0, again = 0;
	for (int64_t i = slot - BUDGET_SLOTS; i <= budget->slot; i++) {
		if (i < 0)
			continue;
		again += budget->again[i % RING];
		if (i > slot - BUDGET_SLOTS)
			first += budget->first[i % RING];
	}
	int64_t left = limit->floor + first / 100 * limit->share_percent +
	               first % 100 * limit->share_percent / 100 - again;
	return left > 0 ? left : 0;
}

void budget_first(struct budget *budget, const struct budget_limit *limit, int64_t now_us,
                  int64_t count)
{
	assert(count >= 0);
	if (unlimited(limit))
		return;
	forget_old(budget, limit, now_us);
	budget->first[budget->slot % RING] += count;
}

int64_t budget_again(struct budget *budget, const struct budget_limit *limit, int64_t now_us,
                     int64_t wanted)
{
	assert(wanted >= 0);
	if (unlimited(limit))
		return wanted;
	forget_old(budget, limit, now_us);
	int64_t left = left_at(budget, limit, budget->slot);
	int64_t taken = wanted < left ? wanted : left;
	budget->again[budget->slot % RING] += taken;
	return taken;
}

int64_t budget_wait_us(const struct budget *budget, const struct budget_limit *limit,
                       int64_t now_us)
{
	if (unlimited(limit))
		return 0;
	int64_t now = slot_at(budget, limit, now_us), slot = now;
	while (!left_at(budget, limit, slot))
		slot++; /* at the latest RING later nothing counts any more, and the floor is free */
	return slot == now ? 0 : slot * slot_us(limit) - now_us;
}
