/* SPDX-License-Identifier: Apache-2.0 */
/* kafka_publish.c -- send a batch in rounds: send, evaluate, commit or abort.
 *
 * Transactional: a round is one transaction. Either all of its records become visible, or it is
 * aborted, the failed records get their result, and the next round leaves them out, together with
 * the later records of their aggregates (I5).
 *
 * Idempotent: a delivered record is visible at once. A record is sent only when the one before it
 * in its aggregate is acknowledged, or is in front of it for the same partition, on a producer that
 * stops at the first refusal and that the broker knows in that partition. (From an unknown producer
 * the broker accepts any sequence number, so it would accept the set behind a refused one.) So
 * first occurrences are in order; a holder that lost the channel is not fenced.
 *
 * Kafka refuses sets of records, not single records: a record that was refused together with others
 * is *suspect* and is sent alone, until it is clear which record was the reason. */
#include "broker/kafka.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

enum {
	GRACE_US = 1000000, /* for aborting and committing, when time is up or the relay stops */
	/* Records that are on their way at once. The client needs more than a kilobyte for each besides
	 * its payload; with more of them nothing is faster. */
	FLYING_MAX = 2000,
};

struct publish {
	struct kafka_channel *channel;
	struct kafka_batch *batch;
	struct kafka_watch watch;
	int64_t alone_until_us; /* of this round: then what travelled alone so far is committed */
	bool resynced;          /* the round before this one failed only because of a gap */
	/* The one topic of this round that is not proven. The broker refuses to take a topic into a
	 * transaction without saying which, and librdkafka does not survive that: so it must be clear
	 * beforehand. NULL: all are proven. */
	const struct kafka_topic *novice;
};

static struct kafka_watch grace(const struct publish *p)
{
	return (struct kafka_watch){.env = p->watch.env,
	                            .until_us = env_steady_us(p->watch.env) + GRACE_US};
}

static bool transactional(const struct publish *p)
{
	return kafka_of(p->channel)->settings.transactional;
}

/* The channel is of no more use. */
static enum ibid_code broken(const struct publish *p, rd_kafka_resp_err_t why, const char *text,
                             struct ibid_err *err)
{
	struct ibid_err unusable = {0};
	p->channel->state = kafka_is_fenced(why) ? CHANNEL_FENCED : CHANNEL_BROKEN;
	enum ibid_code code = kafka_unusable(p->channel, &unusable);
	return err_write(err, code, "%s: %s", unusable.text, text);
}

/* ---- Sending -------------------------------------------------------------------------------- */

static void add_header(rd_kafka_headers_t *headers, const char *prefix, const char *name,
                       const char *value)
{
	char full[128];
	if (!value)
		return;
	if (*prefix) {
		snprintf(full, sizeof full, "%s%s", prefix, name);
		name = full;
	}
	rd_kafka_header_add(headers, name, -1, value, -1);
}

/* CloudEvents 1.0, Kafka binding, binary mode. Trace context is also where tracers look for it. */
static rd_kafka_headers_t *headers_of(const struct record *record)
{
	rd_kafka_headers_t *headers = rd_kafka_headers_new(8 + record->header_count);
	add_header(headers, "", "ce_specversion", "1.0");
	add_header(headers, "", "ce_id", record->id);
	add_header(headers, "", "ce_source", record->source);
	add_header(headers, "", "ce_type", record->type);
	add_header(headers, "", "ce_subject", record->subject);
	add_header(headers, "", "ce_time", record->time);
	if (record->payload)
		add_header(headers, "", "content-type", "application/json");
	for (size_t i = 0; i < record->header_count; i++) {
		const struct broker_header *header = &record->headers[i];
		add_header(headers, "ce_", header->name, header->value);
		if (strcmp(header->name, "traceparent") == 0 || strcmp(header->name, "tracestate") == 0)
			add_header(headers, "", header->name, header->value);
	}
	return headers;
}

static rd_kafka_resp_err_t produce_once(const struct publish *p, size_t index)
{
	const struct record *record = &p->batch->records[index];
	rd_kafka_headers_t *headers = headers_of(record);
	/* Copied: librdkafka may hold on to a record that we have given up. */
	rd_kafka_resp_err_t error = rd_kafka_producev(
	    p->channel->producer, RD_KAFKA_V_RKT(p->batch->flights[index].topic->handle),
	    RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY),
	    RD_KAFKA_V_KEY(record->key, record->key ? strlen(record->key) : 0),
	    RD_KAFKA_V_VALUE((void *)(uintptr_t)record->payload,
	                     record->payload ? record->payload_size : 0),
	    RD_KAFKA_V_HEADERS(headers), RD_KAFKA_V_OPAQUE((void *)(uintptr_t)index), RD_KAFKA_V_END);
	if (error)
		rd_kafka_headers_destroy(headers);
	return error;
}

static bool same_partition(const struct record *a, const struct record *b)
{
	return strcmp(a->topic, b->topic) == 0 && a->key && b->key && strcmp(a->key, b->key) == 0;
}

/* Would the broker refuse it, if the one before it had been refused? */
static bool is_expected(const struct publish *p, size_t index)
{
	size_t before = p->batch->flights[index].before;
	return before != FLIGHT_NONE &&
	       (p->batch->flights[before].arrived || p->batch->flights[before].expected) &&
	       same_partition(&p->batch->records[before], &p->batch->records[index]);
}

static rd_kafka_resp_err_t produce(const struct publish *p, size_t index)
{
	rd_kafka_resp_err_t error = RD_KAFKA_RESP_ERR__QUEUE_FULL;
	for (;;) {
		if (p->batch->flying < FLYING_MAX)
			error = produce_once(p, index);
		if (error != RD_KAFKA_RESP_ERR__QUEUE_FULL || kafka_stopped(&p->watch) ||
		    kafka_late(&p->watch))
			break;
		rd_kafka_poll(p->channel->producer, KAFKA_SLICE_MS);
	}
	if (!error) {
		struct flight *flight = &p->batch->flights[index];
		flight->state = FLIGHT_SENT;
		flight->error = RD_KAFKA_RESP_ERR_NO_ERROR;
		flight->expected = is_expected(p, index);
		p->batch->flying++;
	}
	return error;
}

/* What the client has against the open transaction; NO_ERROR: nothing. Asked by beginning another
 * one, which is refused in any case and changes nothing. */
static rd_kafka_resp_err_t trouble(const struct publish *p)
{
	rd_kafka_error_t *error = rd_kafka_begin_transaction(p->channel->producer);
	rd_kafka_resp_err_t code = rd_kafka_error_code(error);
	rd_kafka_error_destroy(error);
	return code == RD_KAFKA_RESP_ERR__STATE ? RD_KAFKA_RESP_ERR_NO_ERROR : code;
}

/* Wait for all delivery reports, or until the transaction is lost: aborting it yields the rest.
 * False: the relay stops, or the time is up. */
static bool land(const struct publish *p)
{
	while (p->batch->flying) {
		rd_kafka_flush(p->channel->producer, KAFKA_SLICE_MS);
		if (!p->batch->flying)
			break;
		if (transactional(p) && trouble(p))
			return true;
		/* A producer that stopped forgets what was handed to it at that very moment. */
		if (!transactional(p) && rd_kafka_fatal_error(p->channel->producer, NULL, 0))
			rd_kafka_purge(p->channel->producer,
			               RD_KAFKA_PURGE_F_QUEUE | RD_KAFKA_PURGE_F_NON_BLOCKING);
		if (kafka_stopped(&p->watch) || kafka_late(&p->watch))
			return false;
	}
	return true;
}

/* I5, see the top. */
static bool may_follow(const struct publish *p, size_t index)
{
	const struct flight *flight = &p->batch->flights[index];
	if (flight->before == FLIGHT_NONE)
		return true;
	const struct flight *before = &p->batch->flights[flight->before];
	if (before->state == FLIGHT_ENDED)
		return p->batch->records[flight->before].end == RECORD_ACKED;
	if (before->state == FLIGHT_DELIVERED)
		return true;
	return before->state == FLIGHT_SENT &&
	       (transactional(p) || (!flight->suspect && is_expected(p, index)));
}

static bool may_leave(const struct publish *p, size_t index)
{
	const struct flight *flight = &p->batch->flights[index];
	bool in_turn = !transactional(p) || flight->topic->proven || flight->topic == p->novice;
	return flight->state == FLIGHT_WAITING && in_turn && may_follow(p, index);
}

/* The first one in the order of the batch: what comes before it can leave. */
static void choose_novice(struct publish *p)
{
	p->novice = NULL;
	for (size_t i = 0; i < p->batch->count && !p->novice; i++)
		if (p->batch->flights[i].state == FLIGHT_WAITING && !p->batch->flights[i].topic->proven)
			p->novice = p->batch->flights[i].topic;
}

/* False: nothing more can be sent in this round. */
static bool send_one(const struct publish *p, size_t index)
{
	struct flight *flight = &p->batch->flights[index];
	bool alone = flight->suspect;
	if (alone && (!land(p) || env_steady_us(p->watch.env) >= p->alone_until_us))
		return false;
	rd_kafka_resp_err_t error = produce(p, index);
	enum kafka_blame whose = kafka_meaning(error)->blame;
	if (error && whose == BLAME_TOPIC)
		flight->topic->error = error; /* asked for again in the next turn */
	if (error && whose != BLAME_BROKER)
		kafka_batch_fail(p->batch, index, error); /* it has not left: its round is none the worse */
	else if (error)
		return false;
	return !alone || error || (land(p) && flight->state == FLIGHT_DELIVERED);
}

static void send_all(struct publish *p)
{
	p->alone_until_us = env_steady_us(p->watch.env) +
	                    kafka_of(p->channel)->settings.delivery_us / 2;
	for (size_t i = 0; i < p->batch->count; i++)
		if (may_leave(p, i) && !send_one(p, i))
			return;
}

static size_t count_in(const struct publish *p, enum flight_state state)
{
	size_t count = 0;
	for (size_t i = 0; i < p->batch->count; i++)
		count += p->batch->flights[i].state == state;
	return count;
}

/* ---- Judging -------------------------------------------------------------------------------- */

static bool has_own_error(const struct flight *flight)
{
	return flight->error && !kafka_is_purged(flight->error);
}

/* Give a refused record its result, or mark it as suspect where others were refused with it
 * (`shared`). `reached`: some records were delivered. False: the broker is the reason. */
static bool blame(const struct publish *p, size_t index, bool shared, bool reached)
{
	struct flight *flight = &p->batch->flights[index];
	rd_kafka_resp_err_t error = flight->error;
	switch (kafka_meaning(error)->blame) {
	case BLAME_RECORD:
		if (shared && !flight->suspect)
			flight->suspect = true;
		else
			kafka_batch_fail(p->batch, index, error);
		return true;
	case BLAME_TOPIC:
		flight->topic->error = error; /* asked for again in the next turn */
		kafka_batch_fail(p->batch, index, error);
		return true;
	case BLAME_BROKER: break;
	}
	if (!transactional(p) && flight->maybe)
		kafka_batch_lose(p->batch, index, rd_kafka_err2str(error));
	else if (reached)
		kafka_batch_fail(p->batch, index, error);
	else
		return false;
	return true;
}

/* After a round that was aborted, or stopped at a refusal. False: no record is the reason. */
static bool judge(const struct publish *p, bool reached)
{
	struct kafka_batch *batch = p->batch;
	size_t refused = 0;
	bool judged = false;
	for (size_t i = 0; i < batch->count; i++)
		refused += batch->flights[i].state == FLIGHT_SENT && has_own_error(&batch->flights[i]);
	kafka_batch_take_back(batch);
	for (size_t i = 0; i < batch->count; i++) {
		struct flight *flight = &batch->flights[i];
		if (flight->state == FLIGHT_WAITING && has_own_error(flight))
			judged |= blame(p, i, refused > 1, reached);
		flight->error = RD_KAFKA_RESP_ERR_NO_ERROR;
	}
	return judged;
}

/* ---- Transactions --------------------------------------------------------------------------- */

static enum ibid_code begin(const struct publish *p, struct ibid_err *err)
{
	rd_kafka_error_t *error = rd_kafka_begin_transaction(p->channel->producer);
	if (!error)
		return IBID_OK;
	enum ibid_code code = broken(p, rd_kafka_error_code(error), rd_kafka_error_string(error), err);
	rd_kafka_error_destroy(error);
	return code;
}

/* Nothing of the transaction becomes visible, also if this fails: then the channel is broken, and
 * the broker aborts the transaction when the channel is opened again. */
static enum ibid_code abort_transaction(const struct publish *p, struct ibid_err *err)
{
	struct kafka_watch watch = grace(p);
	for (;;) {
		rd_kafka_error_t *error = rd_kafka_abort_transaction(p->channel->producer, KAFKA_SLICE_MS);
		if (!error)
			return IBID_OK;
		bool again = rd_kafka_error_is_retriable(error) && !kafka_late(&watch);
		enum ibid_code code = IBID_OK;
		if (!again)
			code = broken(p, rd_kafka_error_code(error), rd_kafka_error_string(error), err);
		rd_kafka_error_destroy(error);
		if (!again)
			return code;
	}
}

static enum ibid_code unavailable(const struct publish *p, rd_kafka_resp_err_t why,
                                  struct ibid_err *err)
{
	const struct kafka_channel *channel = p->channel;
	return err_set(err, IBID_UNAVAILABLE, "destination %s: nothing was delivered: %s",
	               kafka_of(channel)->name,
	               channel->complaint ? channel->complaint_text
	                                  : rd_kafka_err2str(why ? why : RD_KAFKA_RESP_ERR__TIMED_OUT));
}

/* The broker refused to add a topic to the transaction. The channel may be broken afterwards, but
 * the records of that topic are known to be the reason. */
static enum ibid_code topic_refused(struct publish *p, rd_kafka_resp_err_t why,
                                    struct ibid_err *err)
{
	kafka_batch_take_back(p->batch);
	if (!p->novice) { /* it was allowed until now: on a new channel it is found out */
		p->channel->state = CHANNEL_BROKEN;
		return unavailable(p, why, err);
	}
	for (size_t i = 0; i < p->batch->count; i++) {
		struct flight *flight = &p->batch->flights[i];
		if (flight->state != FLIGHT_WAITING || flight->topic != p->novice)
			continue;
		flight->topic->error = why; /* asked for again in the next turn */
		kafka_batch_fail(p->batch, i, why);
	}
	return IBID_OK;
}

static bool any_own_error(const struct publish *p)
{
	for (size_t i = 0; i < p->batch->count; i++)
		if (p->batch->flights[i].state == FLIGHT_SENT && has_own_error(&p->batch->flights[i]))
			return true;
	return false;
}

/* A set that was refused leaves a gap in the numbers by which the broker knows repetitions: the
 * next set fails, and aborting that one makes the client start over under a new epoch, as the same
 * owner. */
static bool is_gap(rd_kafka_resp_err_t error)
{
	return error == RD_KAFKA_RESP_ERR_OUT_OF_ORDER_SEQUENCE_NUMBER ||
	       error == RD_KAFKA_RESP_ERR_UNKNOWN_PRODUCER_ID;
}

/* Not all of the round's records were delivered. */
static enum ibid_code take_back(struct publish *p, bool landed, struct ibid_err *err)
{
	rd_kafka_resp_err_t why = trouble(p);
	enum ibid_code code = abort_transaction(p, err);
	if (landed && code != IBID_FENCED && kafka_meaning(why)->blame == BLAME_TOPIC &&
	    !any_own_error(p))
		return topic_refused(p, why, err);
	if (code || !landed) {
		kafka_batch_take_back(p->batch);
		return code ? code : unavailable(p, why, err);
	}
	if (is_gap(why) && !p->resynced) {
		p->resynced = true;
		kafka_batch_take_back(p->batch);
		return IBID_OK;
	}
	p->resynced = false;
	if (judge(p, count_in(p, FLIGHT_DELIVERED) > 0))
		return IBID_OK;
	return unavailable(p, why, err);
}

/* A commit that was asked for and did not succeed. `asked_before`: an earlier request for it may
 * have arrived. */
static enum ibid_code not_committed(struct publish *p, rd_kafka_error_t *error, bool asked_before,
                                    struct ibid_err *err)
{
	rd_kafka_resp_err_t why = rd_kafka_error_code(error);
	const char *text = rd_kafka_error_string(error);
	if (rd_kafka_error_txn_requires_abort(error) && !abort_transaction(p, err)) {
		kafka_batch_take_back(p->batch);
		return unavailable(p, why, err);
	}
	bool fenced = kafka_is_fenced(why) || p->channel->state == CHANNEL_FENCED;
	if (fenced && !asked_before)
		kafka_batch_take_back(p->batch);
	else
		kafka_batch_lose_all(p->batch, text);
	broken(p, fenced ? RD_KAFKA_RESP_ERR__FENCED : why, text, err);
	return fenced ? IBID_FENCED
	              : err_set(err, IBID_UNKNOWN,
	                        "destination %s: the outcome of a commit is not known: %s",
	                        kafka_of(p->channel)->name, text);
}

static enum ibid_code commit(struct publish *p, struct ibid_err *err)
{
	struct kafka_watch stopping = {0};
	for (bool asked_before = false;; asked_before = true) {
		rd_kafka_error_t *error = rd_kafka_commit_transaction(p->channel->producer,
		                                                      2 * KAFKA_SLICE_MS);
		if (!error) {
			for (size_t i = 0; i < p->batch->count; i++)
				if (p->batch->flights[i].state == FLIGHT_DELIVERED)
					p->batch->flights[i].topic->proven = true;
			kafka_batch_ack(p->batch, env_wall_us(p->watch.env));
			return IBID_OK;
		}
		if (kafka_stopped(&p->watch) && !stopping.env)
			stopping = grace(p);
		bool late = kafka_late(&p->watch) || (stopping.env && kafka_late(&stopping));
		bool again = rd_kafka_error_is_retriable(error) && !late;
		enum ibid_code code = again ? IBID_OK : not_committed(p, error, asked_before, err);
		rd_kafka_error_destroy(error);
		if (!again)
			return code;
	}
}

static enum ibid_code transactional_round(struct publish *p, struct ibid_err *err)
{
	enum ibid_code code = begin(p, err);
	if (code)
		return code;
	send_all(p);
	bool landed = land(p);
	if (landed && !count_in(p, FLIGHT_SENT))
		return commit(p, err);
	return take_back(p, landed, err);
}

static bool sendable(const struct publish *p)
{
	for (size_t i = 0; i < p->batch->count; i++)
		if (may_leave(p, i))
			return true;
	return false;
}

/* ---- Without transactions ------------------------------------------------------------------- */

/* Give up what is still on its way. What may have arrived is unknown, the rest was not sent. */
static void give_up(struct publish *p)
{
	struct kafka_watch watch = grace(p);
	/* Waiting for it would be without limit: a connection may be busy with a name to look up. */
	rd_kafka_purge(p->channel->producer, RD_KAFKA_PURGE_F_QUEUE | RD_KAFKA_PURGE_F_INFLIGHT |
	                                         RD_KAFKA_PURGE_F_NON_BLOCKING);
	while (p->batch->flying && !kafka_late(&watch))
		rd_kafka_flush(p->channel->producer, KAFKA_SLICE_MS);
	kafka_batch_ack(p->batch, env_wall_us(p->watch.env));
	for (size_t i = 0; i < p->batch->count; i++) {
		struct flight *flight = &p->batch->flights[i];
		bool reported = flight->error != RD_KAFKA_RESP_ERR_NO_ERROR;
		if (flight->state == FLIGHT_SENT && (flight->maybe || !reported))
			kafka_batch_lose(p->batch, i, "it was sent, and nobody said that it arrived");
	}
	kafka_batch_take_back(p->batch);
	p->channel->state = CHANNEL_BROKEN; /* the next request would leave a gap */
}

static bool any(const struct publish *p, enum record_end end, enum failure_class failure)
{
	for (size_t i = 0; i < p->batch->count; i++)
		if (p->batch->records[i].end == end &&
		    (end != RECORD_FAILED || p->batch->records[i].failure == failure))
			return true;
	return false;
}

static enum ibid_code gave_up(struct publish *p, struct ibid_err *err)
{
	give_up(p);
	if (any(p, RECORD_FAILED, FAILURE_UNKNOWN))
		return err_set(err, IBID_UNKNOWN, "destination %s: Kafka did not acknowledge in time",
		               kafka_of(p->channel)->name);
	return unavailable(p, RD_KAFKA_RESP_ERR__TIMED_OUT, err);
}

/* Records that an earlier round may have written, and no later one has: their outcome is unknown.
 */
static enum ibid_code own_up(struct publish *p, enum ibid_code code, struct ibid_err *err)
{
	bool lost = false;
	for (size_t i = 0; i < p->batch->count; i++) {
		const struct flight *flight = &p->batch->flights[i];
		bool open = flight->state == FLIGHT_WAITING || flight->state == FLIGHT_HELD;
		if (!open || !flight->maybe)
			continue;
		kafka_batch_lose(p->batch, i, "it was sent, and nobody said that it arrived");
		lost = true;
	}
	if (!lost || code != IBID_UNAVAILABLE)
		return code;
	return err_set(err, IBID_UNKNOWN, "destination %s: Kafka did not acknowledge in time",
	               kafka_of(p->channel)->name);
}

/* This mode does not fence, so a new producer takes nothing over. */
static enum ibid_code renew(struct publish *p, struct ibid_err *err)
{
	kafka_producer_drop(p->channel);
	enum ibid_code code = kafka_producer_new(p->channel, err);
	p->channel->batch = p->batch;
	p->channel->state = code ? CHANNEL_BROKEN : CHANNEL_GOOD;
	for (size_t i = 0; i < p->batch->count; i++)
		p->batch->flights[i].arrived = p->batch->flights[i].expected = false;
	return code;
}

static enum ibid_code idempotent_round(struct publish *p, struct ibid_err *err)
{
	send_all(p);
	if (!land(p))
		return gave_up(p, err);
	rd_kafka_resp_err_t fatal = rd_kafka_fatal_error(p->channel->producer, NULL, 0);
	bool reached = count_in(p, FLIGHT_DELIVERED) > 0;
	kafka_batch_ack(p->batch, env_wall_us(p->watch.env));
	if (fatal)
		p->channel->state = CHANNEL_BROKEN;
	bool judged = judge(p, reached);
	return judged || reached || !sendable(p) ? IBID_OK : unavailable(p, fatal, err);
}

/* ---- A batch -------------------------------------------------------------------------------- */

static enum ibid_code find_topics(struct publish *p, struct ibid_err *err)
{
	struct kafka_topic *topic = NULL;
	for (size_t i = 0; i < p->batch->count; i++) {
		const char *name = p->batch->records[i].topic;
		enum ibid_code code = IBID_OK;
		if (!topic || !name || strcmp(topic->name, name) != 0)
			code = kafka_topic_find(p->channel, name ? name : "", &p->watch, &topic, err);
		if (code)
			return code;
		p->batch->flights[i].topic = topic;
		if (topic->error && p->batch->flights[i].state == FLIGHT_WAITING)
			kafka_batch_fail(p->batch, i, topic->error);
	}
	return IBID_OK;
}

/* Each round ends records, or finds suspects, or is the last one. */
static enum ibid_code rounds(struct publish *p, struct ibid_err *err)
{
	enum ibid_code code = IBID_OK;
	for (;;) {
		choose_novice(p);
		if (code || !sendable(p) || kafka_stopped(&p->watch))
			return code;
		bool some = count_in(p, FLIGHT_ENDED) > 0;
		if (kafka_late(&p->watch))
			return some ? IBID_OK : unavailable(p, RD_KAFKA_RESP_ERR__TIMED_OUT, err);
		if (p->channel->state != CHANNEL_GOOD && transactional(p) && some)
			return IBID_OK; /* the others go on a new channel */
		if (p->channel->state != CHANNEL_GOOD) {
			code = transactional(p) ? kafka_unusable(p->channel, err) : renew(p, err);
			if (!code)
				code = find_topics(p, err);
		}
		if (!code)
			code = transactional(p) ? transactional_round(p, err) : idempotent_round(p, err);
	}
}

/* Records that are not delivered in time end by themselves in a transaction, and then others may
 * have to go again; otherwise they are given up. */
static int64_t time_for(const struct kafka_settings *settings)
{
	return settings->transactional ? 2 * settings->delivery_us : settings->delivery_us;
}

enum ibid_code kafka_publish(struct channel *base, struct record *records, size_t count,
                             const atomic_bool *stop, struct ibid_err *err)
{
	struct kafka_channel *channel = (struct kafka_channel *)base;
	struct kafka *kafka = kafka_of(channel);
	struct kafka_batch batch;
	enum ibid_code code = kafka_batch_init(&batch, records, count, err);
	if (code)
		return code;
	struct publish p = {
	    .channel = channel,
	    .batch = &batch,
	    .watch = {.env = kafka->env,
	              .stop = stop,
	              .until_us = env_steady_us(kafka->env) + time_for(&kafka->settings)},
	};
	if (channel->state != CHANNEL_GOOD)
		code = kafka->settings.transactional ? kafka_unusable(channel, err) : renew(&p, err);
	channel->turn++;
	channel->complaint = RD_KAFKA_RESP_ERR_NO_ERROR;
	channel->batch = &batch;
	if (!code)
		code = find_topics(&p, err);
	if (!code)
		code = rounds(&p, err);
	channel->batch = NULL;
	if (!kafka->settings.transactional)
		code = own_up(&p, code, err);
	/* Records that have their result keep it; a relay that stops does not wait for the others. */
	if ((code == IBID_UNAVAILABLE || code == IBID_UNKNOWN) &&
	    any(&p, RECORD_ACKED, FAILURE_TRANSIENT))
		code = IBID_OK;
	if (code == IBID_UNAVAILABLE && kafka_stopped(&p.watch))
		code = IBID_OK;
	if (batch.flying) /* reports may still come: not for the next batch */
		channel->state = channel->state == CHANNEL_FENCED ? CHANNEL_FENCED : CHANNEL_BROKEN;
	kafka_batch_release(&batch);
	return code;
}
