/* SPDX-License-Identifier: Apache-2.0 */
/* kafka.c -- a Kafka destination and its channels: opening, taking over, closing. */
#include "broker/kafka.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Callbacks of librdkafka ---------------------------------------------------------------- */

static void on_delivery(rd_kafka_t *producer, const rd_kafka_message_t *message, void *opaque)
{
	(void)producer;
	struct kafka_channel *channel = opaque;
	if (channel->batch)
		kafka_batch_report(channel->batch, (size_t)(uintptr_t)message->_private, message);
}

/* Only a person can mend it. */
static bool is_security(rd_kafka_resp_err_t error)
{
	return error && kafka_meaning(error)->failure == FAILURE_SECURITY;
}

static void on_error(rd_kafka_t *producer, int error, const char *text, void *opaque)
{
	(void)producer;
	struct kafka_channel *channel = opaque;
	/* librdkafka also reports what follows from a refusal ("all brokers are down"): the cause
	 * stays. */
	if (is_security(channel->complaint) && !is_security((rd_kafka_resp_err_t)error))
		return;
	channel->complaint = (rd_kafka_resp_err_t)error;
	snprintf(channel->complaint_text, sizeof channel->complaint_text, "%s", text);
}

/* On any of librdkafka's threads. */
static void on_log(const rd_kafka_t *producer, int level, const char *facility, const char *text)
{
	const struct kafka_channel *channel = rd_kafka_opaque(producer);
	enum ibid_log_level ours = level <= 4   ? IBID_LOG_WARN
	                           : level <= 6 ? IBID_LOG_INFO
	                                        : IBID_LOG_DEBUG;
	if (channel)
		LOG(&kafka_of(channel)->log, ours, "kafka.client",
		    {"destination", log_text(kafka_of(channel)->name)},
		    {"channel", log_text(channel->name)}, {"facility", log_text(facility)},
		    {"text", log_text(text)});
}

/* ---- Channels ------------------------------------------------------------------------------- */

static enum ibid_code name_producer(const struct kafka_channel *channel, rd_kafka_conf_t *conf,
                                    struct ibid_err *err)
{
	const struct kafka *kafka = kafka_of(channel);
	char name[KAFKA_NAME_SIZE], why[256];
	int size = snprintf(name, sizeof name, "ibid-%s-%s", kafka->name, channel->name);
	if (size < 0 || (size_t)size >= sizeof name)
		return err_set(err, IBID_INVALID, "destination %s: the name of channel %s is too long",
		               kafka->name, channel->name);
	const char *property = kafka->settings.transactional ? "transactional.id" : "client.id";
	if (rd_kafka_conf_set(conf, property, name, why, sizeof why) != RD_KAFKA_CONF_OK)
		return err_set(err, IBID_INVALID, "destination %s: %s", kafka->name, why);
	return IBID_OK;
}

enum ibid_code kafka_producer_new(struct kafka_channel *channel, struct ibid_err *err)
{
	char why[256];
	rd_kafka_conf_t *conf = rd_kafka_conf_dup(kafka_of(channel)->settings.conf);
	rd_kafka_conf_set_opaque(conf, channel);
	rd_kafka_conf_set_dr_msg_cb(conf, on_delivery);
	rd_kafka_conf_set_error_cb(conf, on_error);
	rd_kafka_conf_set_log_cb(conf, on_log);
	enum ibid_code code = name_producer(channel, conf, err);
	channel->producer = code ? NULL : rd_kafka_new(RD_KAFKA_PRODUCER, conf, why, sizeof why);
	if (channel->producer)
		return IBID_OK; /* which owns conf */
	rd_kafka_conf_destroy(conf);
	return code ? code
	            : err_set(err, IBID_UNAVAILABLE, "destination %s: no producer: %s",
	                      kafka_of(channel)->name, why);
}

void kafka_producer_drop(struct kafka_channel *channel)
{
	channel->batch = NULL; /* later reports are ignored */
	kafka_topics_clear(channel);
	if (channel->producer) {
		rd_kafka_purge(channel->producer, RD_KAFKA_PURGE_F_QUEUE | RD_KAFKA_PURGE_F_INFLIGHT |
		                                      RD_KAFKA_PURGE_F_NON_BLOCKING);
		rd_kafka_destroy_flags(channel->producer, RD_KAFKA_DESTROY_F_NO_CONSUMER_CLOSE);
	}
	channel->producer = NULL;
}

enum ibid_code kafka_unusable(const struct kafka_channel *channel, struct ibid_err *err)
{
	const char *name = kafka_of(channel)->name;
	if (channel->state == CHANNEL_FENCED)
		return err_set(err, IBID_FENCED, "destination %s: somebody took channel %s over", name,
		               channel->name);
	return err_set(err, IBID_UNAVAILABLE, "destination %s: channel %s has to be opened anew", name,
	               channel->name);
}

/* Why the channel can't be opened, and whether a person has to change something first. */
static enum ibid_code refused(const struct kafka_channel *channel, rd_kafka_resp_err_t error,
                              const char *text, struct ibid_err *err)
{
	const char *name = kafka_of(channel)->name;
	if (kafka_meaning(error)->failure == FAILURE_SECURITY)
		return err_set(err, IBID_DENIED, "destination %s: %s", name, text);
	if (error == RD_KAFKA_RESP_ERR_INVALID_TRANSACTION_TIMEOUT)
		return err_set(err, IBID_INVALID,
		               "destination %s: kafka.transaction_timeout is longer than the broker's "
		               "transaction.max.timeout.ms",
		               name);
	return err_set(err, IBID_UNAVAILABLE, "destination %s: %s", name, text);
}

/* Has the client complained of what only a person can mend? It would go on trying. */
static bool complains(struct kafka_channel *channel)
{
	rd_kafka_poll(channel->producer, 0);
	return is_security(channel->complaint);
}

/* From here on the broker fences the previous holder of the channel, whose open transaction it
 * aborts. */
static enum ibid_code take_over(struct kafka_channel *channel, const struct kafka_watch *watch,
                                struct ibid_err *err)
{
	for (;;) {
		rd_kafka_error_t *error = rd_kafka_init_transactions(channel->producer, 2 * KAFKA_SLICE_MS);
		if (!error)
			return IBID_OK;
		rd_kafka_resp_err_t why = rd_kafka_error_code(error);
		bool again = rd_kafka_error_is_retriable(error) && !kafka_late(watch);
		enum ibid_code code = again ? IBID_OK
		                            : refused(channel, why, rd_kafka_error_string(error), err);
		rd_kafka_error_destroy(error);
		if (complains(channel))
			return refused(channel, channel->complaint, channel->complaint_text, err);
		if (!again)
			return channel->complaint && code == IBID_UNAVAILABLE
			           ? refused(channel, channel->complaint, channel->complaint_text, err)
			           : code;
	}
}

static enum ibid_code reach(struct kafka_channel *channel, const struct kafka_watch *watch,
                            struct ibid_err *err)
{
	for (;;) {
		const struct rd_kafka_metadata *metadata = NULL;
		rd_kafka_resp_err_t error = rd_kafka_metadata(channel->producer, 0, NULL, &metadata,
		                                              5 * KAFKA_SLICE_MS);
		if (!error) {
			rd_kafka_metadata_destroy(metadata);
			return IBID_OK;
		}
		if (complains(channel))
			return refused(channel, channel->complaint, channel->complaint_text, err);
		if (kafka_late(watch))
			return refused(channel, error,
			               channel->complaint ? channel->complaint_text : rd_kafka_err2str(error),
			               err);
	}
}

void kafka_channel_close(struct channel *base)
{
	struct kafka_channel *channel = (struct kafka_channel *)base;
	if (!channel)
		return;
	kafka_producer_drop(channel);
	free(channel->name);
	free(channel);
}

enum ibid_code kafka_channel_open(struct broker *base, const char *name, struct channel **ret,
                                  struct ibid_err *err)
{
	struct kafka *kafka = (struct kafka *)base;
	struct kafka_channel *channel = calloc(1, sizeof *channel);
	if (!channel || !(channel->name = strdup(name))) {
		free(channel);
		return err_set(err, IBID_NOMEM, "out of memory");
	}
	channel->base.broker = base;
	struct kafka_watch watch = {
	    .env = kafka->env, .until_us = env_steady_us(kafka->env) + kafka->settings.delivery_us};
	enum ibid_code code = kafka_producer_new(channel, err);
	if (!code)
		code = kafka->settings.transactional ? take_over(channel, &watch, err)
		                                     : reach(channel, &watch, err);
	if (code)
		kafka_channel_close(&channel->base);
	else
		*ret = &channel->base;
	return code;
}

/* ---- The destination ------------------------------------------------------------------------ */

static void close_kafka(struct broker *base)
{
	struct kafka *kafka = (struct kafka *)base;
	if (kafka->settings.conf)
		rd_kafka_conf_destroy(kafka->settings.conf);
	free(kafka->name);
	free(kafka);
}

static const struct broker_ops idempotent = {
    .open_channel = kafka_channel_open,
    .publish = kafka_publish,
    .close_channel = kafka_channel_close,
    .close = close_kafka,
};
static const struct broker_ops transactional = {
    .open_channel = kafka_pair_open,
    .publish = kafka_pair_publish,
    .close_channel = kafka_pair_close,
    .close = close_kafka,
};

enum ibid_code broker_kafka_open(const struct broker_options *options, struct broker **ret,
                                 struct ibid_err *err)
{
	struct kafka *kafka = calloc(1, sizeof *kafka);
	if (!kafka || !(kafka->name = strdup(options->name))) {
		free(kafka);
		return err_set(err, IBID_NOMEM, "out of memory");
	}
	kafka->env = options->env;
	kafka->log = options->log;
	enum ibid_code code = kafka_settings_read(options, &kafka->settings, err);
	if (code) {
		close_kafka(&kafka->base);
		return code;
	}
	kafka->base = (struct broker){
	    .ops = kafka->settings.transactional ? &transactional : &idempotent,
	    .name = kafka->name,
	    .fences = kafka->settings.transactional,
	};
	*ret = &kafka->base;
	return IBID_OK;
}
