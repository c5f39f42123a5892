/* SPDX-License-Identifier: Apache-2.0 */
/* bucket.h -- a rate limit (token bucket): a number per time, and a number at once.
 *
 * Tokens are added evenly up to `burst`; each record takes one. In any period of time at most
 * `burst` records and the tokens added in it are sent. Integers throughout: frequent calls do not
 * lose tokens to rounding.
 *
 * A value without a lock: callers that share one between threads lock it. */
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

/* How many may be sent now; INT64_MAX without a limit. */
int64_t bucket_ready(const struct bucket *bucket, const struct bucket_limit *limit, int64_t now_us);

/* How long until one may be sent; 0: now. */
int64_t bucket_wait_us(const struct bucket *bucket, const struct bucket_limit *limit,
                       int64_t now_us);

/* Take up to `wanted` tokens, as many as there are now; returns how many. */
int64_t bucket_take(struct bucket *bucket, const struct bucket_limit *limit, int64_t now_us,
                    int64_t wanted);

#endif
