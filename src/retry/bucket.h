/* SPDX-License-Identifier: Apache-2.0 */
/* bucket.h -- a rate limit: so many in a time, and at most so many at once.
 *
 * Tokens flow in evenly up to the burst; each thing sent takes one. In no stretch of time go more
 * than `burst` and what flowed in meanwhile. Whole numbers throughout: nothing is rounded away,
 * however often it is asked.
 *
 * A value without a lock: whoever shares one between threads locks it. */
#ifndef RETRY_BUCKET_H
#define RETRY_BUCKET_H

#include <stdint.h>

enum { BUCKET_COUNT_MAX = 1000000 }; /* of a rate, and of a burst */

struct bucket_limit {
	int64_t count;  /* tokens... 0: no limit */
	int64_t per_us; /* ...in this time: at most an hour */
	int64_t burst;  /* 0: as many as a second brings, at least 1 */
};

struct bucket {      /* all zero: full at any time */
	int64_t missing; /* from full, in token times per_us: one microsecond brings `count` */
	int64_t seen_us; /* steady time */
};

/* How many may go now; all of int64_t where there is no limit. */
int64_t bucket_ready(const struct bucket *bucket, const struct bucket_limit *limit, int64_t now_us);

/* How long until one may go; 0: now. */
int64_t bucket_wait_us(const struct bucket *bucket, const struct bucket_limit *limit,
                       int64_t now_us);

/* Take as many of the wanted as may go now; returns how many. */
int64_t bucket_take(struct bucket *bucket, const struct bucket_limit *limit, int64_t now_us,
                    int64_t wanted);

#endif
