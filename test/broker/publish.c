/* SPDX-License-Identifier: Apache-2.0 */
/* publish.c -- a destination on its own: records come in as JSON lines, their ends go out.
 *
 *     broker-publish KIND CHANNELS ENDS_FD [NAME=VALUE...] < records
 *
 * A blank line ends a batch. Batches go to CHANNELS threads, each with a channel of its own, in
 * turn. SIGTERM is the stop of a relay. */
#include "base/json.h"
#include "base/obj.h"
#include "broker/broker.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SETTINGS_MAX = 64, HEADERS_MAX = 16, LINE_BYTES_MAX = 64 << 20, CHANNELS_MAX = 64 };

static atomic_bool stop;
static struct broker *broker;
static int ends_fd;
static pthread_mutex_t in = PTHREAD_MUTEX_INITIALIZER, out = PTHREAD_MUTEX_INITIALIZER;

static void on_term(int number)
{
	(void)number;
	atomic_store(&stop, true);
}

static const char *text_of(const struct json *object, const char *name)
{
	const struct json *member = json_member(object, name);
	return member && member->type == JSON_STRING ? member->text : NULL;
}

static void read_headers(struct arena *arena, const struct json *object, struct record *record)
{
	const struct json *headers = json_member(object, "headers");
	struct broker_header *to = arena_array(arena, HEADERS_MAX, sizeof *to);
	record->headers = to;
	for (const struct json *at = headers ? headers->child : NULL; at; at = at->next)
		to[record->header_count++] = (struct broker_header){at->name, at->text};
}

static void read_record(struct arena *arena, const char *line, size_t size, struct record *ret)
{
	struct ibid_err err;
	struct json *root;
	if (json_read(arena, line, size, LINE_BYTES_MAX, &root, &err)) {
		fprintf(stderr, "publish: %s\n", err.text);
		exit(2);
	}
	const struct json *payload = json_member(root, "payload"),
	                  *aggregate = json_member(root, "aggregate");
	*ret = (struct record){.id = text_of(root, "id"),
	                       .source = text_of(root, "source"),
	                       .type = text_of(root, "type"),
	                       .subject = text_of(root, "subject"),
	                       .time = text_of(root, "time"),
	                       .payload = payload ? payload->text : NULL,
	                       .payload_size = payload ? payload->size : 0,
	                       .aggregate = aggregate ? strtoull(aggregate->text, NULL, 10) : 0};
	read_headers(arena, root, ret);
}

/* The records up to the next blank line; 0: there are no more. */
static size_t read_batch(struct arena *arena, struct record **ret)
{
	char *line = NULL;
	size_t room = 0, count = 0, most = 0;
	struct record *records = NULL;
	ssize_t size;
	pthread_mutex_lock(&in);
	while ((size = getline(&line, &room, stdin)) > 1) {
		if (count == most) {
			most = most ? 2 * most : 64;
			struct record *more = realloc(records, most * sizeof *records);
			if (!more)
				abort();
			records = more;
		}
		read_record(arena, line, (size_t)size, &records[count++]);
	}
	pthread_mutex_unlock(&in);
	free(line);
	*ret = records;
	return count;
}

static void say(const struct str *text)
{
	pthread_mutex_lock(&out);
	for (size_t at = 0; at < text->size;) {
		ssize_t wrote = write(ends_fd, text->data + at, text->size - at);
		if (wrote < 0)
			exit(3);
		at += (size_t)wrote;
	}
	pthread_mutex_unlock(&out);
}

static void add_end(struct str *text, const struct record *record)
{
	static const char *const ends[] = {"not-tried", "acked", "failed"};
	obj_begin(text, NULL, '{');
	obj_text(text, "id", record->id);
	obj_text(text, "end", ends[record->end]);
	if (record->end == RECORD_FAILED) {
		obj_text(text, "class", failure_class_name(record->failure));
		obj_text(text, "reason", record->reason);
		obj_text(text, "why", record->why);
		obj_int(text, "retry_after_us", record->retry_after_us);
	}
	obj_text(text, "place", record->place);
	obj_int(text, "partition", record->partition);
	obj_int(text, "offset", record->offset);
	obj_int(text, "acked_us", record->acked_us);
	obj_end(text, '}');
	str_addc(text, '\n');
}

static void add_code(struct str *text, const char *what, enum ibid_code code,
                     const struct ibid_err *err)
{
	obj_begin(text, NULL, '{');
	obj_text(text, what, ibid_code_name(code));
	obj_text(text, "error", code ? err->text : NULL);
	obj_end(text, '}');
	str_addc(text, '\n');
}

static void tell_code(const char *what, enum ibid_code code, const struct ibid_err *err)
{
	struct str text = STR_INIT(1 << 20);
	add_code(&text, what, code, err);
	say(&text);
	str_release(&text);
}

/* Batches of several channels do not mix in what is told of them. */
static void tell_batch(const struct record *records, size_t count, enum ibid_code code,
                       const struct ibid_err *err)
{
	struct str text = STR_INIT(LINE_BYTES_MAX);
	for (size_t i = 0; i < count; i++)
		add_end(&text, &records[i]);
	add_code(&text, "batch", code, err);
	say(&text);
	str_release(&text);
}

static void *carry(void *user)
{
	struct channel *channel = NULL;
	struct ibid_err err = {0};
	enum ibid_code code = broker->ops->open_channel(broker, user, &channel, &err);
	if (code) {
		tell_code("channel", code, &err);
		return NULL;
	}
	for (;;) {
		struct arena arena = {0};
		struct record *records;
		size_t count = read_batch(&arena, &records);
		if (count) {
			code = broker->ops->publish(channel, records, count, &stop, &err);
			tell_batch(records, count, code, &err);
		}
		free(records);
		arena_release(&arena);
		if (!count)
			break;
	}
	broker->ops->close_channel(channel);
	return NULL;
}

static enum ibid_code open_broker(int argc, char **argv, struct ibid_err *err)
{
	struct broker_setting settings[SETTINGS_MAX];
	struct broker_options options = {.name = "tests", .settings = settings, .env = env_system()};
	for (int i = 4; i < argc && options.setting_count < SETTINGS_MAX; i++) {
		char *value = strchr(argv[i], '=');
		*value++ = 0;
		settings[options.setting_count++] = (struct broker_setting){argv[i], value};
	}
	return strcmp(argv[1], "webhook") == 0 ? broker_webhook_open(&options, &broker, err)
	                                       : broker_file_open(&options, &broker, err);
}

int main(int argc, char **argv)
{
	struct ibid_err err = {0};
	pthread_t threads[CHANNELS_MAX];
	size_t channels = argc > 3 ? strtoul(argv[2], NULL, 10) : 0;
	if (!channels || channels > CHANNELS_MAX)
		return 2;
	ends_fd = (int)strtol(argv[3], NULL, 10);
	sigaction(SIGTERM, &(struct sigaction){.sa_handler = on_term}, NULL);
	enum ibid_code code = open_broker(argc, argv, &err);
	if (code) {
		tell_code("open", code, &err);
		return 1;
	}
	for (size_t i = 0; i < channels; i++)
		pthread_create(&threads[i], NULL, carry, "lane");
	for (size_t i = 0; i < channels; i++)
		pthread_join(threads[i], NULL);
	broker_close(broker);
	return 0;
}
