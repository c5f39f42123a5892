/* SPDX-License-Identifier: Apache-2.0 */
/* kafka_pair.c -- a transactional channel: two producers that take turns.
 *
 * After a commit the broker still writes markers into the partitions. Until it has done so, it
 * tells a producer that begins again under the same `transactional.id` to wait, and librdkafka then
 * waits 20 ms: longer than the rest of the transaction takes. The other producer's transaction may
 * begin at once: it is sent when the commit of the one before is decided, so its records come later
 * in every partition and become visible later (I5).
 *
 * A new holder takes both producers' ids over before it sends the first record, and stops using
 * both when one fails: so taking the channel over fences everything that the old holder can send
 * with. */
#include "broker/kafka.h"

#include <stdio.h>
#include <stdlib.h>

enum { PAIR = 2 };

struct kafka_pair {
	struct channel base;
	struct kafka_channel *producers[PAIR];
	size_t turn;
};

void kafka_pair_close(struct channel *base)
{
	struct kafka_pair *pair = (struct kafka_pair *)base;
	for (size_t i = 0; pair && i < PAIR; i++)
		kafka_channel_close(pair->producers[i] ? &pair->producers[i]->base : NULL);
	free(pair);
}

enum ibid_code kafka_pair_open(struct broker *base, const char *name, struct channel **ret,
                               struct ibid_err *err)
{
	struct kafka_pair *pair = calloc(1, sizeof *pair);
	if (!pair)
		return err_set(err, IBID_NOMEM, "out of memory");
	pair->base.broker = base;
	enum ibid_code code = IBID_OK;
	for (size_t i = 0; !code && i < PAIR; i++) {
		char own[KAFKA_NAME_SIZE];
		struct channel *producer = NULL;
		snprintf(own, sizeof own, "%s-%c", name, "ab"[i]);
		code = kafka_channel_open(base, own, &producer, err);
		pair->producers[i] = (struct kafka_channel *)producer;
	}
	if (code)
		kafka_pair_close(&pair->base);
	else
		*ret = &pair->base;
	return code;
}

/* What has happened to one has happened to the channel. */
static const struct kafka_channel *unusable(const struct kafka_pair *pair)
{
	for (size_t i = 0; i < PAIR; i++)
		if (pair->producers[i]->state != CHANNEL_GOOD)
			return pair->producers[i];
	return NULL;
}

enum ibid_code kafka_pair_publish(struct channel *base, struct record *records, size_t count,
                                  const atomic_bool *stop, struct ibid_err *err)
{
	struct kafka_pair *pair = (struct kafka_pair *)base;
	if (unusable(pair))
		return kafka_unusable(unusable(pair), err);
	struct kafka_channel *producer = pair->producers[pair->turn];
	pair->turn = (pair->turn + 1) % PAIR;
	return kafka_publish(&producer->base, records, count, stop, err);
}
