/* SPDX-License-Identifier: Apache-2.0 */
#include "retry/bucket.h"

#include <assert.h>

#define SECOND_US INT64_C(1000000)
#define HOUR_US   (3600 * SECOND_US)

static_assert(HOUR_US <= INT64_MAX / BUCKET_COUNT_MAX, "a full bucket must be a number");

static int64_t burst(const struct bucket_limit *limit)
{
	assert(limit->count > 0 && limit->count <= BUCKET_COUNT_MAX);
	assert(limit->per_us > 0 && limit->per_us <= HOUR_US);
	assert(limit->burst >= 0 && limit->burst <= BUCKET_COUNT_MAX);
	if (limit->burst)
		return limit->burst;
	int64_t second = limit->count * SECOND_US / limit->per_us;
	return second < 1 ? 1 : second < BUCKET_COUNT_MAX ? second : BUCKET_COUNT_MAX;
}

/* What is missing now. A time before the last one seen (a thread that read the clock earlier)
 * brings nothing. */
static int64_t missing(const struct bucket *bucket, const struct bucket_limit *limit,
                       int64_t now_us)
{
	int64_t flowed_us = now_us > bucket->seen_us ? now_us - bucket->seen_us : 0;
	if (flowed_us > bucket->missing / limit->count)
		return 0;
	return bucket->missing - flowed_us * limit->count;
}

int64_t bucket_ready(const struct bucket *bucket, const struct bucket_limit *limit, int64_t now_us)
{
	if (!limit->count)
		return INT64_MAX;
	int64_t level = burst(limit) * limit->per_us - missing(bucket, limit, now_us);
	return level > 0 ? level / limit->per_us : 0; /* the limit may be lower than it was */
}

int64_t bucket_wait_us(const struct bucket *bucket, const struct bucket_limit *limit,
                       int64_t now_us)
{
	if (!limit->count)
		return 0;
	int64_t level = burst(limit) * limit->per_us - missing(bucket, limit, now_us);
	int64_t lacks = limit->per_us - level;
	return lacks > 0 ? (lacks + limit->count - 1) / limit->count : 0;
}

int64_t bucket_take(struct bucket *bucket, const struct bucket_limit *limit, int64_t now_us,
                    int64_t wanted)
{
	int64_t ready = bucket_ready(bucket, limit, now_us);
	int64_t taken = wanted < ready ? wanted : ready;
	assert(wanted >= 0);
	if (!limit->count)
		return taken;
	bucket->missing = missing(bucket, limit, now_us) + taken * limit->per_us;
	if (bucket->seen_us < now_us)
		bucket->seen_us = now_us;
	return taken;
}
