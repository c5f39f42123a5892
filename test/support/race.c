/* SPDX-License-Identifier: Apache-2.0 */
#include "support/race.h"

#include <stdio.h>
#include <string.h>

static void *submit_one(void *user)
{
	struct runner *runner = user;
	pthread_barrier_wait(runner->start);
	struct ibid_result *result = bed_submit(runner->ibid, runner->operation, runner->key,
	                                        runner->payload);
	const char *reason = ibid_result_reason(result);
	snprintf(runner->said, sizeof runner->said, "%s", bed_say(result));
	snprintf(runner->reason, sizeof runner->reason, "%s", reason ? reason : "");
	ibid_result_free(result);
	return NULL;
}

void race(struct ibid *ibid, struct runner runners[RUNNERS], const char *operation,
          const char *format)
{
	pthread_barrier_t start;
	pthread_barrier_init(&start, NULL, RUNNERS);
	for (int i = 0; i < RUNNERS; i++) {
		struct runner *runner = &runners[i];
		*runner = (struct runner){.start = &start, .ibid = ibid, .operation = operation};
		snprintf(runner->key, sizeof runner->key, "race-%d", i);
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
		snprintf(runner->payload, sizeof runner->payload, format, i);
#pragma GCC diagnostic pop
		assert_int_equal(pthread_create(&runner->thread, NULL, submit_one, runner), 0);
	}
	for (int i = 0; i < RUNNERS; i++)
		pthread_join(runners[i].thread, NULL);
	pthread_barrier_destroy(&start);
}

int race_count(const struct runner runners[RUNNERS], const char *said, const char *reason)
{
	int count = 0;
	for (int i = 0; i < RUNNERS; i++)
		count += strcmp(runners[i].said, said) == 0 && strcmp(runners[i].reason, reason) == 0;
	return count;
}
