/* SPDX-License-Identifier: Apache-2.0 */
/* log_writer.c -- one thread writes what all others log.
 *
 * Whoever reads the standard error may stand still: a full pipe, a stopped terminal. Those who log
 * must not stand still with it, least of all the thread that all connections share. So lines wait
 * in memory, which also makes one call of many lines.
 *
 * (W1) What does not fit is dropped, counted, and told once there is room again. */
#include "cli/log_writer.h"

#include "base/str.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum {
	QUEUE_BYTES = 4 << 20,
	GATHER_US = 5000, /* after the first line that waits */
	FAREWELL_US = 1000000,
};

/* There is one standard error. */
static struct {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	struct str waiting;
	int64_t dropped;
	bool stops, over; /* the thread is to end; it has ended, or there is none */
} writer = {
    .lock = PTHREAD_MUTEX_INITIALIZER,
    .changed = PTHREAD_COND_INITIALIZER,
    .waiting = STR_INIT(QUEUE_BYTES),
};

static void put(const char *bytes, size_t size)
{
	while (size) {
		ssize_t put = write(STDERR_FILENO, bytes, size);
		if (put >= 0) {
			bytes += put;
			size -= (size_t)put;
		} else if (errno == EAGAIN) { /* somebody else made it so */
			struct pollfd fd = {STDERR_FILENO, POLLOUT, 0};
			(void)poll(&fd, 1, -1);
		} else if (errno != EINTR) {
			return; /* nobody reads it any more */
		}
	}
}

static void put_line(void *user, enum ibid_log_level level, const char *line)
{
	(void)user, (void)level;
	put(line, strlen(line));
	put("\n", 1);
}

static void put_dropped(int64_t lines)
{
	struct log log = {.fn = put_line, .env = env_system()};
	LOG(&log, IBID_LOG_WARN, "log.dropped", {"lines", log_int(lines)});
}

static void *run(void *user)
{
	(void)user;
	pthread_mutex_lock(&writer.lock);
	for (;;) {
		while (!writer.waiting.size && !writer.stops)
			pthread_cond_wait(&writer.changed, &writer.lock);
		if (!writer.waiting.size)
			break;
		if (!writer.stops) {
			pthread_mutex_unlock(&writer.lock);
			env_sleep_us(env_system(), GATHER_US);
			pthread_mutex_lock(&writer.lock);
		}
		struct str lines = writer.waiting;
		int64_t dropped = writer.dropped;
		writer.waiting = STR_INIT(QUEUE_BYTES);
		writer.dropped = 0;
		pthread_mutex_unlock(&writer.lock);
		put(lines.data, lines.size);
		str_release(&lines);
		if (dropped)
			put_dropped(dropped);
		pthread_mutex_lock(&writer.lock);
	}
	writer.over = true;
	pthread_cond_signal(&writer.changed);
	pthread_mutex_unlock(&writer.lock);
	return NULL;
}

static void add_line(void *user, enum ibid_log_level level, const char *line)
{
	size_t size = strlen(line);
	(void)user;
	if (level <= IBID_LOG_DEBUG)
		return;
	pthread_mutex_lock(&writer.lock);
	size_t before = writer.waiting.size;
	if (writer.stops || before + size + 1 >= QUEUE_BYTES) {
		writer.dropped++; /* W1 */
	} else {
		str_add(&writer.waiting, line, size);
		str_addc(&writer.waiting, '\n');
		writer.dropped += writer.waiting.failed; /* no memory */
		writer.waiting.failed = false;
	}
	if (!before)
		pthread_cond_signal(&writer.changed);
	pthread_mutex_unlock(&writer.lock);
}

struct log log_writer_start(void)
{
	pthread_t thread;
	sigset_t all, before;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before); /* signals are others' */
	bool started = !pthread_create(&thread, NULL, run, NULL);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (started)
		pthread_detach(thread);
	else
		writer.over = true;
	return (struct log){.fn = started ? add_line : put_line, .env = env_system()};
}

bool log_writer_end(void)
{
	int64_t until_us = env_wall_us(env_system()) + FAREWELL_US;
	struct timespec until = {.tv_sec = until_us / 1000000, .tv_nsec = until_us % 1000000 * 1000};
	pthread_mutex_lock(&writer.lock);
	writer.stops = true;
	pthread_cond_signal(&writer.changed);
	while (!writer.over &&
	       pthread_cond_timedwait(&writer.changed, &writer.lock, &until) != ETIMEDOUT)
		;
	bool over = writer.over;
	pthread_mutex_unlock(&writer.lock);
	return over;
}
