/* SPDX-License-Identifier: Apache-2.0 */
/* race.h -- the same operation from several threads that start together. */
#ifndef TEST_RACE_H
#define TEST_RACE_H

#include "support/bed.h"

#include <pthread.h>

enum { RUNNERS = 8 };

struct runner {
	pthread_t thread;
	pthread_barrier_t *start;
	struct ibid *ibid;
	const char *operation;
	char key[32], payload[512];
	char said[64], reason[64]; /* of the result */
};

/* Under keys of their own; `format` is given the number of each. */
void race(struct ibid *ibid, struct runner runners[RUNNERS], const char *operation,
          const char *format);

/* How many of them heard this. */
int race_count(const struct runner runners[RUNNERS], const char *said, const char *reason);

#endif
