/* SPDX-License-Identifier: Apache-2.0 */
/* kafka_settings.c -- the settings of a Kafka destination, and settings that are refused.
 *
 * Our own settings are a table. librdkafka's security settings are passed on, and librdkafka checks
 * them. A setting that would make acknowledged events less durable, out of order or sent to another
 * partition is refused, also under librdkafka's name for it. */
#include "base/instant.h"
#include "broker/kafka.h"
#include "broker/secret_file.h"

#include <assert.h>
#include <openssl/crypto.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum kind { TEXT, DURATION, BYTES };

static const struct own {
	const char *name, *fallback; /* fallback NULL: it must be given */
	enum kind kind;
	int64_t least, most; /* milliseconds, bytes */
} owns[] = {
    {"brokers", NULL, TEXT, 0, 0},
    {"mode", "transactional", TEXT, 0, 0},
    {"delivery_timeout", "10s", DURATION, 1000, 300000},
    {"transaction_timeout", "60s", DURATION, 1000, 900000},
    {"linger", "1ms", DURATION, 0, 1000},
    {"compression", "none", TEXT, 0, 0},
    {"max_bytes", "1000000", BYTES, 1000, 100000000},
    {"sasl.password_file", "", TEXT, 0, 0},
};
enum {
	BROKERS,
	MODE_OF,
	DELIVERY,
	TRANSACTION,
	LINGER,
	COMPRESSION,
	MAX_BYTES,
	PASSWORD_FILE,
	OWN_COUNT,
};
static_assert(sizeof owns / sizeof *owns == OWN_COUNT, "one name for each setting");
#define OWN_NAMES                                                                                  \
	"brokers, mode, delivery_timeout, transaction_timeout, linger, compression, max_bytes, "       \
	"sasl.password_file, security.protocol, sasl.*, ssl.*"

/* Always so; a value given for one of them may only repeat it. */
static const struct fixed {
	const char *property, *value, *because;
} fixed[] = {
    {"acks", "all", "an event counts as delivered when all in-sync replicas have it"},
    {"request.required.acks", "all",
     "an event counts as delivered when all in-sync replicas have it"},
    {"enable.idempotence", "true", "without it a retry repeats or reorders records"},
    {"partitioner", "murmur2_random", "it agrees with other clients: same key, same partition"},
    {"enable.ssl.certificate.verification", "true",
     "without it anybody may pose as the broker; name the authority in ssl.ca.location"},
    {"ssl.endpoint.identification.algorithm", "https",
     "without it any certificate of the authority's would do"},
};

static const struct instead {
	const char *property, *instead;
} instead[] = {
    {"bootstrap.servers", "brokers"},
    {"metadata.broker.list", "brokers"},
    {"message.timeout.ms", "delivery_timeout"},
    {"delivery.timeout.ms", "delivery_timeout"},
    {"transaction.timeout.ms", "transaction_timeout"},
    {"linger.ms", "linger"},
    {"queue.buffering.max.ms", "linger"},
    {"compression.codec", "compression"},
    {"compression.type", "compression"},
    {"message.max.bytes", "max_bytes"},
};

/* Of every producer. Queues are short: what waits, waits in the store. */
static const struct broker_setting always[] = {
    {"acks", "all"},
    {"enable.idempotence", "true"},
    {"partitioner", "murmur2_random"},
    {"queue.buffering.max.messages", "20000"},
    {"queue.buffering.max.kbytes", "16384"},
    {"topic.metadata.propagation.max.ms", "2000"},
    {"reconnect.backoff.max.ms", "1000"},
    {"socket.keepalive.enable", "true"},
    {"log.connection.close", "false"},
};
/* Without transactions a refused record may not be overtaken by what follows it: one request at a
 * time, and the producer stops at the first refusal. Nothing times out by itself in the middle of
 * the others: kafka_publish takes everything back at once. */
static const struct broker_setting always_idempotent[] = {
    {"max.in.flight", "1"},
    {"enable.gapless.guarantee", "true"},
    {"message.timeout.ms", "0"},
};

static enum ibid_code set(const struct broker_options *options, rd_kafka_conf_t *conf,
                          const char *shown, const char *property, const char *value,
                          struct ibid_err *err)
{
	char why[256];
	if (rd_kafka_conf_set(conf, property, value, why, sizeof why) != RD_KAFKA_CONF_OK)
		return err_set(err, IBID_INVALID, "destination %s: kafka.%s: %s", options->name, shown,
		               why);
	return IBID_OK;
}

static enum ibid_code set_all(const struct broker_options *options, rd_kafka_conf_t *conf,
                              const struct broker_setting *settings, size_t count,
                              struct ibid_err *err)
{
	enum ibid_code code = IBID_OK;
	for (size_t i = 0; i < count && !code; i++)
		code = set(options, conf, settings[i].name, settings[i].name, settings[i].value, err);
	return code;
}

static enum ibid_code set_number(const struct broker_options *options, rd_kafka_conf_t *conf,
                                 const char *shown, const char *property, int64_t number,
                                 struct ibid_err *err)
{
	char text[24];
	snprintf(text, sizeof text, "%lld", (long long)number);
	return set(options, conf, shown, property, text, err);
}

static bool is_own(const char *name)
{
	for (size_t i = 0; i < OWN_COUNT; i++)
		if (strcmp(owns[i].name, name) == 0)
			return true;
	return false;
}

static bool passes_through(const char *name)
{
	if (is_own(name))
		return false;
	return strcmp(name, "security.protocol") == 0 || strncmp(name, "sasl.", 5) == 0 ||
	       strncmp(name, "ssl.", 4) == 0;
}

static const char *given(const struct broker_options *options, size_t own)
{
	for (size_t i = 0; i < options->setting_count; i++)
		if (strcmp(options->settings[i].name, owns[own].name) == 0)
			return options->settings[i].value;
	return owns[own].fallback;
}

/* What is written must be ours, or librdkafka's of security, and weaken nothing. */
static enum ibid_code check_name(const struct broker_options *options,
                                 const struct broker_setting *setting, struct ibid_err *err)
{
	const char *name = setting->name, *value = setting->value ? setting->value : "";
	if (is_own(name))
		return IBID_OK;
	for (size_t i = 0; i < sizeof fixed / sizeof *fixed; i++) {
		if (strcmp(fixed[i].property, name) != 0)
			continue;
		bool same = strcmp(fixed[i].value, value) == 0 ||
		            (strcmp(fixed[i].value, "all") == 0 && strcmp(value, "-1") == 0);
		return same ? IBID_OK
		            : err_set(err, IBID_INVALID,
		                      "destination %s: kafka.%s is always %s, not `%s`: %s", options->name,
		                      name, fixed[i].value, value, fixed[i].because);
	}
	for (size_t i = 0; i < sizeof instead / sizeof *instead; i++)
		if (strcmp(instead[i].property, name) == 0)
			return err_set(err, IBID_INVALID, "destination %s: write kafka.%s instead of kafka.%s",
			               options->name, instead[i].instead, name);
	if (passes_through(name))
		return IBID_OK;
	return err_set(err, IBID_INVALID,
	               "destination %s: there is no setting kafka.%s; there are " OWN_NAMES,
	               options->name, name);
}

static enum ibid_code read_number(const struct broker_options *options, size_t own, int64_t *ret,
                                  struct ibid_err *err)
{
	const struct own *setting = &owns[own];
	const char *text = given(options, own), *unit = setting->kind == BYTES ? "" : "ms";
	char *end = NULL;
	int64_t value = strtoll(text, &end, 10);
	bool good = setting->kind == BYTES ? *end == 0
	                                   : strcmp(text, "0") == 0 || duration_read(text, &value);
	if (setting->kind == DURATION)
		value /= 1000;
	if (!good || value < setting->least || value > setting->most)
		return err_set(err, IBID_INVALID,
		               "destination %s: kafka.%s is `%s`: it must be %s between %lld%s and %lld%s",
		               options->name, setting->name, text,
		               setting->kind == BYTES ? "a number of bytes" : "a duration",
		               (long long)setting->least, setting->least ? unit : "",
		               (long long)setting->most, unit);
	*ret = value;
	return IBID_OK;
}

static enum ibid_code read_mode(const struct broker_options *options, bool *ret_transactional,
                                struct ibid_err *err)
{
	const char *mode = given(options, MODE_OF);
	*ret_transactional = strcmp(mode, "transactional") == 0;
	if (!*ret_transactional && strcmp(mode, "idempotent") != 0)
		return err_set(err, IBID_INVALID,
		               "destination %s: kafka.mode is `%s`: it must be transactional or idempotent",
		               options->name, mode);
	return IBID_OK;
}

static enum ibid_code apply_times(const struct broker_options *options,
                                  struct kafka_settings *settings, struct ibid_err *err)
{
	int64_t delivery = 0, transaction = 0, linger = 0;
	enum ibid_code code = read_number(options, DELIVERY, &delivery, err);
	if (!code)
		code = read_number(options, TRANSACTION, &transaction, err);
	if (!code)
		code = read_number(options, LINGER, &linger, err);
	if (code)
		return code;
	if (settings->transactional && transaction < delivery)
		return err_set(err, IBID_INVALID,
		               "destination %s: kafka.transaction_timeout must not be shorter than "
		               "kafka.delivery_timeout: a transaction has to outlive its records",
		               options->name);
	settings->delivery_us = delivery * 1000;
	code = set_number(options, settings->conf, "linger", "linger.ms", linger, err);
	/* A broker that is silent for longer than that is asked again on another connection. */
	if (!code)
		code = set_number(options, settings->conf, "delivery_timeout", "socket.timeout.ms",
		                  delivery, err);
	if (code || !settings->transactional)
		return code;
	code = set_number(options, settings->conf, "delivery_timeout", "message.timeout.ms", delivery,
	                  err);
	if (!code)
		code = set_number(options, settings->conf, "transaction_timeout", "transaction.timeout.ms",
		                  transaction, err);
	return code;
}

/* A topic's max.message.bytes limits what travels together, so the two limits are one setting. */
static enum ibid_code apply_sizes(const struct broker_options *options, rd_kafka_conf_t *conf,
                                  struct ibid_err *err)
{
	int64_t bytes = 0;
	enum ibid_code code = read_number(options, MAX_BYTES, &bytes, err);
	if (!code)
		code = set_number(options, conf, "max_bytes", "message.max.bytes", bytes, err);
	if (!code)
		code = set_number(options, conf, "max_bytes", "batch.size", bytes, err);
	return code;
}

/* The password as librdkafka takes it, out of a file: without the end of its line. */
static enum ibid_code apply_password(const struct broker_options *options, rd_kafka_conf_t *conf,
                                     struct ibid_err *err)
{
	const char *file = given(options, PASSWORD_FILE), *name = owns[PASSWORD_FILE].name;
	char text[SECRET_FILE_SIZE];
	struct ibid_err why = {0};
	if (!*file)
		return IBID_OK;
	for (size_t i = 0; i < options->setting_count; i++)
		if (strcmp(options->settings[i].name, "sasl.password") == 0)
			return err_set(
			    err, IBID_INVALID,
			    "destination %s: of kafka.sasl.password and kafka.%s only one may be set",
			    options->name, name);
	enum ibid_code code = secret_file_read(file, text, &why);
	if (code)
		return err_write(err, code, "destination %s: kafka.%s: %s", options->name, name, why.text);
	text[strcspn(text, "\r\n")] = 0;
	code = *text
	           ? set(options, conf, name, "sasl.password", text, err)
	           : err_set(err, IBID_INVALID, "destination %s: kafka.%s: there is no password in %s",
	                     options->name, name, file);
	OPENSSL_cleanse(text, sizeof text);
	return code;
}

/* librdkafka checks some settings only when a producer is made. Without brokers it connects to
 * nobody. */
static enum ibid_code try_producer(const struct broker_options *options,
                                   const rd_kafka_conf_t *conf, struct ibid_err *err)
{
	const char *left_out[] = {"bootstrap.servers"};
	char why[256];
	rd_kafka_conf_t *copy = rd_kafka_conf_dup_filter(conf, 1, left_out);
	rd_kafka_conf_set(copy, "log_level", "0", NULL, 0);
	rd_kafka_t *producer = rd_kafka_new(RD_KAFKA_PRODUCER, copy, why, sizeof why);
	if (!producer) {
		rd_kafka_conf_destroy(copy);
		return err_set(err, IBID_INVALID, "destination %s: kafka: %s", options->name, why);
	}
	rd_kafka_destroy(producer);
	return IBID_OK;
}

static enum ibid_code apply(const struct broker_options *options, struct kafka_settings *settings,
                            struct ibid_err *err)
{
	rd_kafka_conf_t *conf = settings->conf;
	enum ibid_code code = IBID_OK;
	for (size_t i = 0; i < options->setting_count && !code; i++)
		code = check_name(options, &options->settings[i], err);
	if (!code && (!given(options, BROKERS) || !*given(options, BROKERS)))
		code = err_set(err, IBID_INVALID,
		               "destination %s: kafka.brokers is missing: HOST:PORT, several with commas",
		               options->name);
	if (!code)
		code = read_mode(options, &settings->transactional, err);
	if (!code)
		code = set_all(options, conf, always, sizeof always / sizeof *always, err);
	if (!code && !settings->transactional)
		code = set_all(options, conf, always_idempotent,
		               sizeof always_idempotent / sizeof *always_idempotent, err);
	if (!code)
		code = apply_times(options, settings, err);
	if (!code)
		code = apply_sizes(options, conf, err);
	if (!code)
		code = set(options, conf, "brokers", "bootstrap.servers", given(options, BROKERS), err);
	if (!code)
		code = set(options, conf, "compression", "compression.codec", given(options, COMPRESSION),
		           err);
	for (size_t i = 0; i < options->setting_count && !code; i++)
		if (passes_through(options->settings[i].name))
			code = set(options, conf, options->settings[i].name, options->settings[i].name,
			           options->settings[i].value, err);
	if (!code)
		code = apply_password(options, conf, err);
	return code ? code : try_producer(options, conf, err);
}

enum ibid_code kafka_settings_read(const struct broker_options *options, struct kafka_settings *ret,
                                   struct ibid_err *err)
{
	struct kafka_settings settings = {.conf = rd_kafka_conf_new()};
	enum ibid_code code = apply(options, &settings, err);
	if (code)
		rd_kafka_conf_destroy(settings.conf);
	else
		*ret = settings;
	return code;
}
