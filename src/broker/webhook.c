/* SPDX-License-Identifier: Apache-2.0 */
/* webhook.c -- events as signed POSTs: CloudEvents 1.0 (HTTP, binary mode), Standard Webhooks.
 *
 * A receiver does not know channels, so it can't fence a relay that lost one (`fences` is false):
 * it deduplicates by webhook-id, and checks versions if order matters.
 *
 * (W1) At most `in_flight` requests of a destination are in flight, over all of its channels.
 * (W2) A record is sent when the one before it in its aggregate is acknowledged (I5).
 * (W3) An answer that is about the receiver ends the batch: unsent records are not tried.
 *
 * The lock guards `under_way` and the flights' `ended`; the calls' thread holds it only to set
 * them. */
#include "base/arena.h"
#include "base/steady.h"
#include "base/traceparent.h"
#include "base/utf8.h"
#include "broker/cloudevent.h"
#include "broker/ends.h"
#include "broker/setting.h"
#include "broker/webhook_answer.h"
#include "broker/webhook_secret.h"

#include <openssl/crypto.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

enum {
	URL_BYTES_MAX = 2048,
	HEADER_BYTES_MAX = 1024,
	LINE_BYTES_MAX = 16 << 10, /* a header of ours */
	BODY_BYTES_KEPT = 2048,
	BODY_BYTES_READ = 64 << 10, /* a receiver that says more is cut off */
	SAID_BYTES_MAX = 120,
	ECHO_BYTES = 32,
	CONNECT_US = 5000000,
	POLL_US = 50000,
	GRACE_US = 1000000, /* for answers on their way when everything stops */
};

struct hook_settings {
	const char *url, *secret, *secret_file, *authorities;
	int64_t deadline_us, in_flight;
	bool allow_private;
	struct setting_each headers;
};

#define AT(member) offsetof(struct hook_settings, member)
static const struct setting table[] = {
    {"url", SETTING_SECRET, AT(url), 0, 0, "an address such as https://example.com/events"},
    {"secret", SETTING_SECRET, AT(secret), 0, 0, "whsec_ and base64; or use secret_file"},
    {"secret_file", SETTING_TEXT, AT(secret_file), 0, 0, "a file of secrets, mode 600"},
    {"deadline", SETTING_DURATION, AT(deadline_us), 100000, 300000000,
     "a duration such as 15s, from 100ms to 5m"},
    {"in_flight", SETTING_NUMBER, AT(in_flight), 1, 256, "a number from 1 to 256"},
    {"allow_private", SETTING_CHOICE, AT(allow_private), 0, 0, "yes or no"},
    {"authorities", SETTING_TEXT, AT(authorities), 0, 0, "a PEM file"},
    {"headers", SETTING_EACH, AT(headers), 0, 0, "one of at most 32 headers"},
    {NULL},
};

struct hook {
	struct broker broker; /* first */
	struct env *env;
	struct arena arena;
	struct hook_settings settings;
	struct webhook_secrets secrets;
	const char *place;        /* the URL without what may be secret in it */
	const char *query, *user; /* what may; NULL: nothing */
	const char *password;
	struct calls *calls;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	int64_t under_way;
};

/* ---- Settings ------------------------------------------------------------------------------- */

static const char *part_of(struct hook *hook, CURLU *parsed, CURLUPart part)
{
	char *text = NULL;
	curl_url_get(parsed, part, &text, 0);
	const char *kept = arena_strdup(&hook->arena, text);
	curl_free(text);
	return kept;
}

static bool is_visible(const char *text)
{
	for (; *text; text++)
		if (*text <= ' ' || *text > '~')
			return false;
	return true;
}

static bool take_url(struct hook *hook, CURLU *parsed)
{
	const char *url = hook->settings.url;
	if (strlen(url) > URL_BYTES_MAX || !is_visible(url) ||
	    curl_url_set(parsed, CURLUPART_URL, url, 0))
		return false;
	const char *scheme = part_of(hook, parsed, CURLUPART_SCHEME);
	hook->user = part_of(hook, parsed, CURLUPART_USER);
	hook->password = part_of(hook, parsed, CURLUPART_PASSWORD);
	hook->query = part_of(hook, parsed, CURLUPART_QUERY);
	if (!scheme || (strcmp(scheme, "http") != 0 && strcmp(scheme, "https") != 0) ||
	    part_of(hook, parsed, CURLUPART_FRAGMENT))
		return false;
	curl_url_set(parsed, CURLUPART_QUERY, NULL, 0);
	curl_url_set(parsed, CURLUPART_USER, NULL, 0);
	curl_url_set(parsed, CURLUPART_PASSWORD, NULL, 0);
	hook->place = part_of(hook, parsed, CURLUPART_URL);
	return hook->place != NULL;
}

static enum ibid_code check_url(struct hook *hook, struct ibid_err *err)
{
	CURLU *parsed = curl_url();
	bool good = parsed && take_url(hook, parsed);
	curl_url_cleanup(parsed);
	return good ? IBID_OK
	            : err_set(err, IBID_INVALID,
	                      "destination %s: `url` must be an address such as "
	                      "https://example.com/events, without a fragment",
	                      hook->broker.name);
}

static enum ibid_code check_secrets(struct hook *hook, struct ibid_err *err)
{
	struct hook_settings *settings = &hook->settings;
	if (!settings->secret == !settings->secret_file)
		return err_set(err, IBID_INVALID,
		               "destination %s: either `secret` or `secret_file` must be set, because "
		               "receivers know an event by its signature",
		               hook->broker.name);
	enum ibid_code code = settings->secret
	                          ? webhook_secrets_read(&hook->secrets, settings->secret, err)
	                          : webhook_secrets_load(&hook->secrets, settings->secret_file, err);
	if (code)
		return err_prefix(err, "destination %s: `%s`", hook->broker.name,
		                  settings->secret ? "secret" : "secret_file");
	if (settings->secret)
		OPENSSL_cleanse((char *)settings->secret, strlen(settings->secret)); /* our own copy */
	settings->secret = NULL;
	return IBID_OK;
}

/* Setting these headers would change what is sent, or its length. */
static const char *const ours[] = {
    "Content-Type", "Content-Length", "Host", "Connection", "Transfer-Encoding",
    "Expect",       "Upgrade",        "TE",   "Trailer",    "traceparent",
    "tracestate",   "User-Agent",     NULL};

static const char *find_header_fault(const struct broker_setting *header)
{
	size_t size = strlen(header->value);
	if (header->name[strspn(header->name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
	                                      "0123456789-_")])
		return "a header's name has letters, digits, - and _";
	if (strncasecmp(header->name, "ce-", 3) == 0 || strncasecmp(header->name, "webhook-", 8) == 0)
		return "it is set for every event";
	for (size_t i = 0; ours[i]; i++)
		if (strcasecmp(ours[i], header->name) == 0)
			return "it is set for every event";
	if (!size || size > HEADER_BYTES_MAX || *header->value == ' ' || header->value[size - 1] == ' ')
		return "its value must have 1 to 1024 bytes, and no blank at either end";
	for (size_t i = 0; i < size; i++)
		if (header->value[i] < ' ' || header->value[i] > '~')
			return "its value must be printable ASCII";
	return NULL;
}

static enum ibid_code check_headers(const struct hook *hook, struct ibid_err *err)
{
	const struct setting_each *headers = &hook->settings.headers;
	for (size_t i = 0; i < headers->count; i++) {
		const char *fault = find_header_fault(&headers->items[i]);
		if (fault)
			return err_set(err, IBID_INVALID, "destination %s: `headers.%s`: %s", hook->broker.name,
			               headers->items[i].name, fault);
	}
	return IBID_OK;
}

static enum ibid_code check_settings(struct hook *hook, struct ibid_err *err)
{
	const struct hook_settings *settings = &hook->settings;
	if (!settings->url)
		return err_set(err, IBID_INVALID,
		               "destination %s: `url` is missing: it must be an address such as "
		               "https://example.com/events",
		               hook->broker.name);
	enum ibid_code code = check_url(hook, err);
	if (!code)
		code = check_secrets(hook, err);
	if (!code)
		code = check_headers(hook, err);
	if (!code && settings->authorities && access(settings->authorities, R_OK) != 0)
		code = err_set(err, IBID_INVALID,
		               "destination %s: `authorities` is `%s`: it must be a PEM file that can be "
		               "read",
		               hook->broker.name, settings->authorities);
	return code;
}

/* ---- One request ---------------------------------------------------------------------------- */

/* One record on its way. */
struct flight {
	struct call call; /* first */
	struct hook *hook;
	struct record *record; /* NULL: no flight uses it */
	bool ended;
	bool headed;
	size_t read;
	struct str said;
};

static struct flight *flight_of(struct call *call)
{
	return (struct flight *)call;
}

static void on_done(struct call *call)
{
	struct flight *flight = flight_of(call);
	struct hook *hook = flight->hook;
	pthread_mutex_lock(&hook->lock);
	flight->ended = true;
	hook->under_way--;
	pthread_cond_broadcast(&hook->changed);
	pthread_mutex_unlock(&hook->lock);
}

static void on_head(struct call *call)
{
	flight_of(call)->headed = true;
}

/* The beginning of the answer's body is kept, and a little more is read so that the connection can
 * be used again. */
static size_t on_body(struct call *call, const char *bytes, size_t size)
{
	struct flight *flight = flight_of(call);
	size_t room = BODY_BYTES_KEPT - flight->said.size;
	str_add(&flight->said, bytes, size < room ? size : room);
	flight->read += size;
	return flight->read <= BODY_BYTES_READ ? size : 0;
}

static bool add_header(struct call *call, const char *name, const char *value)
{
	struct ibid_err err;
	return !call_add_header(call, name, value, &err);
}

/* CloudEvents' HTTP binding 3.1.3.2: what is not visible ASCII, and `"` and `%`, as %XX. */
static bool add_attribute(struct call *call, const char *name, const char *value)
{
	struct str header = STR_INIT(LINE_BYTES_MAX), escaped = STR_INIT(LINE_BYTES_MAX);
	str_addf(&header, "ce-%s", name);
	for (; *value; value++) {
		unsigned char c = (unsigned char)*value;
		if (c <= ' ' || c > '~' || c == '"' || c == '%')
			str_addf(&escaped, "%%%02X", c);
		else
			str_addc(&escaped, *value);
	}
	bool good = !header.failed && !escaped.failed &&
	            add_header(call, str_text(&header), str_text(&escaped));
	str_release(&header);
	str_release(&escaped);
	return good;
}

static bool add_extension(struct call *call, const struct broker_header *header)
{
	const char *value = header->value;
	struct traceparent parent;
	if (!value || !*value)
		return true;
	bool plain = (strcmp(header->name, "traceparent") == 0 && traceparent_read(value, &parent)) ||
	             (strcmp(header->name, "tracestate") == 0 && tracestate_fits(value));
	return add_attribute(call, header->name, value) &&
	       (!plain || add_header(call, header->name, value));
}

static bool add_event(struct call *call, const struct record *record)
{
	struct broker_header attributes[CLOUDEVENT_ATTRIBUTES];
	size_t count = cloudevent_attributes(record, attributes);
	bool good = true;
	for (size_t i = 0; good && i < count; i++)
		good = add_attribute(call, attributes[i].name, attributes[i].value);
	for (size_t i = 0; good && i < record->header_count; i++)
		good = add_extension(call, &record->headers[i]);
	return good;
}

static bool add_signature(const struct hook *hook, struct call *call, const struct record *record)
{
	char timestamp[24];
	struct str signature = STR_INIT(LINE_BYTES_MAX);
	snprintf(timestamp, sizeof timestamp, "%lld", (long long)(env_wall_us(hook->env) / 1000000));
	struct webhook_message message = {
	    .id = record->id, .timestamp = timestamp, .body = call->body, .body_size = call->body_size};
	bool good = webhook_sign(&hook->secrets, &message, &signature) &&
	            add_header(call, "webhook-id", record->id) &&
	            add_header(call, "webhook-timestamp", timestamp) &&
	            add_header(call, "webhook-signature", str_text(&signature));
	str_release(&signature);
	return good;
}

static bool add_headers(const struct hook *hook, struct call *call, const struct record *record)
{
	const struct setting_each *headers = &hook->settings.headers;
	struct ibid_err err;
	bool good = add_header(call, "Content-Type", "application/json") &&
	            add_header(call, "User-Agent", "ibid") && add_event(call, record) &&
	            add_signature(hook, call, record) && !call_leave_out(call, "Expect", &err);
	for (size_t i = 0; good && i < headers->count; i++)
		good = add_header(call, headers->items[i].name, headers->items[i].value);
	return good;
}

/* False: it has its end already. */
static bool flight_start(struct flight *flight, struct record *record)
{
	struct hook *hook = flight->hook;
	struct call *call = &flight->call;
	struct ibid_err err = {0};
	*flight = (struct flight){.hook = hook, .record = record, .said = STR_INIT(BODY_BYTES_KEPT)};
	if (!cloudevent_check(record))
		return false;
	*call = (struct call){.method = "POST",
	                      .url = hook->settings.url,
	                      .body = record->payload ? record->payload : "",
	                      .body_size = record->payload_size,
	                      .deadline_us = hook->settings.deadline_us,
	                      .repeatable = true, /* under the same id */
	                      .done = on_done,
	                      .head = on_head,
	                      .take = on_body};
	if (add_headers(hook, call, record) && !calls_make(hook->calls, call, &err))
		return true;
	record_fail(record, FAILURE_TRANSIENT, "OUT_OF_MEMORY", "out of memory");
	return false;
}

static void flight_clear(struct flight *flight)
{
	call_release(&flight->call);
	str_release(&flight->said);
	flight->record = NULL;
}

/* ---- What the receiver said ----------------------------------------------------------------- */

static bool holds(const struct str *text, const char *part, size_t size)
{
	return size && memmem(str_text(text), text->size, part, size);
}

static bool holds_text(const struct str *text, const char *part)
{
	return part && holds(text, part, strlen(part));
}

/* Some receivers repeat the request in their answer: such a text is not shown in failures. */
static bool holds_ours(const struct hook *hook, const struct flight *flight)
{
	const struct str *said = &flight->said;
	const struct call *call = &flight->call;
	const struct setting_each *headers = &hook->settings.headers;
	for (size_t i = 0; i < headers->count; i++)
		if (holds_text(said, headers->items[i].value))
			return true;
	return holds_text(said, "whsec_") || holds_text(said, "v1,") || holds_text(said, hook->query) ||
	       holds_text(said, hook->user) || holds_text(said, hook->password) ||
	       holds(said, call->body, call->body_size < ECHO_BYTES ? call->body_size : ECHO_BYTES);
}

/* A clause of it; nothing of a page, of bytes, or of what is ours. */
static void quote(const struct flight *flight, char ret[SAID_BYTES_MAX + 1])
{
	const struct str *said = &flight->said;
	const char *text = str_text(said);
	size_t size = said->size;
	ret[0] = 0;
	if (!size || *text == '<' || memchr(text, 0, size) || holds_ours(flight->hook, flight))
		return;
	if (size > SAID_BYTES_MAX)
		for (size = SAID_BYTES_MAX; size && (text[size] & 0xc0) == 0x80;)
			size--; /* not in the middle of a character */
	if (!utf8_ok(text, size))
		return;
	memcpy(ret, text, size);
	ret[size] = 0;
}

/* ---- A batch -------------------------------------------------------------------------------- */

struct batch {
	struct hook *hook;
	struct record *records;
	size_t count;
	struct turn *turns;
	size_t *ready; /* records that may be sent, in this order: [ready_from, ready_to) */
	size_t ready_from, ready_to;
	struct flight *flights;
	size_t flight_count, flying;
	bool over; /* nothing more is sent */
	const atomic_bool *stop;
	int64_t break_off_us; /* on the steady clock; 0: it was not stopped */
	bool broken_off;
};

static enum ibid_code batch_init(struct batch *batch, struct ibid_err *err)
{
	size_t most = (size_t)batch->hook->settings.in_flight;
	batch->flight_count = batch->count < most ? batch->count : most;
	batch->turns = records_turns(batch->records, batch->count);
	batch->ready = calloc(batch->count + 1, sizeof *batch->ready);
	batch->flights = calloc(batch->flight_count + 1, sizeof *batch->flights);
	if (!batch->turns || !batch->ready || !batch->flights)
		return err_set(err, IBID_UNAVAILABLE, "out of memory");
	for (size_t i = 0; i < batch->flight_count; i++)
		batch->flights[i].hook = batch->hook;
	for (size_t i = 0; i < batch->count; i++)
		if (batch->turns[i].first)
			batch->ready[batch->ready_to++] = i;
	return IBID_OK;
}

static void batch_release(struct batch *batch)
{
	free(batch->turns);
	free(batch->ready);
	free(batch->flights);
}

/* The next of its aggregate may go (W2). */
static void move_on(struct batch *batch, const struct record *record)
{
	size_t after = batch->turns[record - batch->records].after;
	if (record->end == RECORD_ACKED && after != RECORD_NONE)
		batch->ready[batch->ready_to++] = after;
}

static void settle(struct batch *batch, struct flight *flight)
{
	char said[SAID_BYTES_MAX + 1];
	struct record *record = flight->record;
	quote(flight, said);
	struct webhook_answer answer = {.call = &flight->call,
	                                .headed = flight->headed,
	                                .said = said,
	                                .place = batch->hook->place,
	                                .now_us = env_wall_us(batch->hook->env)};
	bool go_on = webhook_conclude(record, &answer);
	if (batch->broken_off && record->end == RECORD_FAILED && record->failure == FAILURE_TRANSIENT &&
	    !flight->headed)
		records_clear(record, 1); /* the relay cancelled it, and nothing was sent */
	batch->over |= !go_on;        /* W3 */
	batch->flying--;
	move_on(batch, record);
	flight_clear(flight);
}

static void settle_ended(struct batch *batch)
{
	for (size_t i = 0; i < batch->flight_count; i++)
		if (batch->flights[i].record && batch->flights[i].ended)
			settle(batch, &batch->flights[i]);
}

static struct flight *free_flight(struct batch *batch)
{
	size_t i = 0;
	while (batch->flights[i].record)
		i++;
	return &batch->flights[i];
}

static bool may_start(const struct batch *batch)
{
	return !batch->over && batch->ready_from < batch->ready_to &&
	       batch->flying < batch->flight_count &&
	       batch->hook->under_way < batch->hook->settings.in_flight; /* W1 */
}

/* With the lock, which is let go meanwhile: its end may come before this returns. */
static void start_next(struct batch *batch)
{
	struct hook *hook = batch->hook;
	struct flight *flight = free_flight(batch);
	struct record *record = &batch->records[batch->ready[batch->ready_from++]];
	hook->under_way++;
	batch->flying++;
	pthread_mutex_unlock(&hook->lock);
	bool started = flight_start(flight, record);
	pthread_mutex_lock(&hook->lock);
	if (started)
		return;
	hook->under_way--;
	pthread_cond_broadcast(&hook->changed);
	batch->flying--;
	batch->over |= record->failure == FAILURE_TRANSIENT;
	flight_clear(flight);
}

/* Nothing new is sent from now on; what is on its way has a moment for its answer. */
static void look_at_stop(struct batch *batch)
{
	int64_t now_us = env_steady_us(env_system());
	if (!batch->break_off_us && atomic_load(batch->stop)) {
		batch->over = true;
		batch->break_off_us = now_us + GRACE_US;
	}
	if (!batch->break_off_us || batch->broken_off || now_us < batch->break_off_us)
		return;
	batch->broken_off = true;
	for (size_t i = 0; i < batch->flight_count; i++)
		if (batch->flights[i].record)
			calls_break_off(batch->hook->calls, &batch->flights[i].call);
}

static void fly(struct batch *batch)
{
	struct hook *hook = batch->hook;
	pthread_mutex_lock(&hook->lock);
	for (;;) {
		settle_ended(batch);
		look_at_stop(batch);
		if (may_start(batch)) {
			start_next(batch);
			continue;
		}
		if (!batch->flying && (batch->over || batch->ready_from == batch->ready_to))
			break;
		struct timespec until = steady_after(POLL_US);
		pthread_cond_timedwait(&hook->changed, &hook->lock, &until);
	}
	pthread_mutex_unlock(&hook->lock);
}

/* ---- The destination ------------------------------------------------------------------------ */

static struct hook *hook_of(struct broker *broker)
{
	return (struct hook *)broker;
}

static enum ibid_code hook_publish(struct channel *channel, struct record *records, size_t count,
                                   const atomic_bool *stop, struct ibid_err *err)
{
	struct batch batch = {
	    .hook = hook_of(channel->broker), .records = records, .count = count, .stop = stop};
	records_clear(records, count);
	enum ibid_code code = batch_init(&batch, err);
	if (!code)
		fly(&batch);
	batch_release(&batch);
	return code;
}

static enum ibid_code hook_open_channel(struct broker *broker, const char *name,
                                        struct channel **ret, struct ibid_err *err)
{
	struct channel *channel = calloc(1, sizeof *channel);
	(void)name;
	if (!channel)
		return err_set(err, IBID_UNAVAILABLE, "out of memory");
	channel->broker = broker;
	*ret = channel;
	return IBID_OK;
}

static void hook_close_channel(struct channel *channel)
{
	free(channel);
}

static void hook_close(struct broker *broker)
{
	struct hook *hook = hook_of(broker);
	calls_free(hook->calls);
	webhook_secrets_release(&hook->secrets);
	pthread_cond_destroy(&hook->changed);
	pthread_mutex_destroy(&hook->lock);
	arena_release(&hook->arena);
	free(hook);
}

static const struct broker_ops hook_ops = {.open_channel = hook_open_channel,
                                           .publish = hook_publish,
                                           .close_channel = hook_close_channel,
                                           .close = hook_close};

static enum ibid_code start_calls(struct hook *hook, struct ibid_err *err)
{
	const struct hook_settings *settings = &hook->settings;
	struct calls_options options = {.authorities = settings->authorities,
	                                .connect_us = CONNECT_US,
	                                .public_only = !settings->allow_private};
	return calls_new(hook->env, &options, &hook->calls, err);
}

enum ibid_code broker_webhook_open(const struct broker_options *options, struct broker **ret,
                                   struct ibid_err *err)
{
	struct hook *hook = calloc(1, sizeof *hook);
	if (!hook)
		return err_set(err, IBID_NOMEM, "out of memory");
	hook->broker = (struct broker){.ops = &hook_ops, .name = options->name, .fences = false};
	hook->env = options->env;
	hook->settings.deadline_us = 15000000;
	hook->settings.in_flight = 8;
	pthread_mutex_init(&hook->lock, NULL);
	steady_cond_init(&hook->changed);
	enum ibid_code code = settings_fill(options, table, &hook->arena, &hook->settings, err);
	if (!code)
		code = check_settings(hook, err);
	if (!code)
		hook->broker.name = arena_strdup(&hook->arena, options->name);
	if (!code && hook->arena.failed)
		code = err_set(err, IBID_NOMEM, "out of memory");
	if (!code)
		code = start_calls(hook, err);
	if (code)
		hook_close(&hook->broker);
	else
		*ret = &hook->broker;
	return code;
}
