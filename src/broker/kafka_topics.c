/* SPDX-License-Identifier: Apache-2.0 */
/* kafka_topics.c -- check that a topic exists before anything is sent to it.
 *
 * librdkafka would hold records for an unknown topic, in case it appears, and keep the transaction
 * open. Asking first costs a round trip per topic and channel, and only the records of that topic
 * fail. */
#include "broker/kafka.h"

#include <stdlib.h>
#include <string.h>

enum { SETTLE_US = 1000000 }; /* a topic that is just being made, or moved */

static void free_topic(struct kafka_topic *topic)
{
	if (!topic)
		return;
	if (topic->handle)
		rd_kafka_topic_destroy(topic->handle);
	free(topic->name);
	free(topic);
}

void kafka_topics_clear(struct kafka_channel *channel)
{
	while (channel->topics) {
		struct kafka_topic *next = channel->topics->next;
		free_topic(channel->topics);
		channel->topics = next;
	}
}

static struct kafka_topic *add_topic(struct kafka_channel *channel, const char *name)
{
	struct kafka_topic *topic = calloc(1, sizeof *topic);
	if (!topic || !(topic->name = strdup(name))) {
		free_topic(topic);
		return NULL;
	}
	topic->error = RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART;
	topic->next = channel->topics;
	channel->topics = topic;
	return topic;
}

/* One question. NO_ERROR: `topic->error` is the broker's answer. */
static rd_kafka_resp_err_t ask(struct kafka_channel *channel, struct kafka_topic *topic)
{
	const struct rd_kafka_metadata *metadata = NULL;
	rd_kafka_resp_err_t error = rd_kafka_metadata(channel->producer, 0, topic->handle, &metadata,
	                                              5 * KAFKA_SLICE_MS);
	if (error)
		return error;
	topic->error = metadata->topic_cnt == 1 ? metadata->topics[0].err
	                                        : RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART;
	rd_kafka_metadata_destroy(metadata);
	return RD_KAFKA_RESP_ERR_NO_ERROR;
}

static bool settled(rd_kafka_resp_err_t error)
{
	return !error || error == RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED ||
	       error == RD_KAFKA_RESP_ERR_TOPIC_EXCEPTION;
}

static enum ibid_code ask_until_settled(struct kafka_channel *channel, struct kafka_topic *topic,
                                        const struct kafka_watch *watch, struct ibid_err *err)
{
	int64_t settle_by_us = env_steady_us(watch->env) + SETTLE_US;
	for (;;) {
		rd_kafka_resp_err_t error = ask(channel, topic);
		if (!error && (settled(topic->error) || env_steady_us(watch->env) >= settle_by_us))
			return IBID_OK;
		if (kafka_stopped(watch) || kafka_late(watch))
			return err_set(err, IBID_UNAVAILABLE, "no word of topic %s from Kafka: %s", topic->name,
			               rd_kafka_err2str(error ? error : topic->error));
		rd_kafka_poll(channel->producer, error ? 0 : KAFKA_SLICE_MS);
	}
}

enum ibid_code kafka_topic_find(struct kafka_channel *channel, const char *name,
                                const struct kafka_watch *watch, struct kafka_topic **ret,
                                struct ibid_err *err)
{
	struct kafka_topic *topic = channel->topics;
	while (topic && strcmp(topic->name, name) != 0)
		topic = topic->next;
	if (topic && (!topic->error || topic->asked == channel->turn)) {
		*ret = topic;
		return IBID_OK;
	}
	if (!topic)
		topic = add_topic(channel, name);
	if (!topic)
		return err_set(err, IBID_NOMEM, "out of memory");
	topic->asked = channel->turn;
	if (!topic->handle)
		topic->handle = rd_kafka_topic_new(channel->producer, name, NULL);
	if (!topic->handle) { /* longer than a name may be, or empty */
		topic->error = RD_KAFKA_RESP_ERR_TOPIC_EXCEPTION;
		*ret = topic;
		return IBID_OK;
	}
	enum ibid_code code = ask_until_settled(channel, topic, watch, err);
	if (!code)
		*ret = topic;
	return code;
}
