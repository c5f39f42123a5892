/* SPDX-License-Identifier: Apache-2.0 */
/* listener.c -- one thread, one epoll instance, a queue of clients with work.
 *
 * epoll is edge-triggered: an event marks a client readable or writable until a call returns
 * EAGAIN. Each queued client gets a bounded turn (client.c), so that a client that sends without
 * end does not starve the others. */
#include "net/listener.h"

#include "net/client.h"

#include <assert.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum {
	TICK_US = 100000,        /* precision of the clients' deadlines */
	EVENTS_MAX = 256,        /* per epoll_wait */
	ACCEPTS_MAX = 64,        /* per event */
	TURN_STEPS = 16,         /* of one client before the next client's turn */
	OUT_BYTES_MAX = 1 << 20, /* of the head of an answer */
	CROWD_US = 2000000,      /* how long a slow client may hold memory while memory is short */
	BACKLOG = 1024,
	UNSENT_BYTES = 64 << 10, /* of an answer that the kernel buffers for a slow client */
};

static int64_t now_us(const struct listener *listener)
{
	return env_steady_us(listener->options.env);
}

/* ---- The queue ------------------------------------------------------------------------------ */

static void queue_client(struct client *client)
{
	struct listener *listener = client->listener;
	if (client->queued)
		return;
	client->queued = true;
	client->next_queued = NULL;
	*listener->queue_end = client;
	listener->queue_end = &client->next_queued;
}

void listener_wake(struct listener *listener)
{
	uint64_t one = 1;
	if (!atomic_exchange(&listener->awake, true))
		(void)!write(listener->wake_fd, &one, sizeof one);
}

void client_resume_soon(struct client *client)
{
	struct listener *listener = client->listener;
	client->next_resumed = atomic_load(&listener->resumed);
	while (!atomic_compare_exchange_weak(&listener->resumed, &client->next_resumed, client))
		;
}

void client_resume(struct client *client)
{
	struct listener *listener = client->listener; /* the client may be freed once it is resumed */
	client_resume_soon(client);
	listener_wake(listener);
}

static void queue_resumed(struct listener *listener)
{
	struct client *first = NULL, *next = atomic_exchange(&listener->resumed, NULL);
	while (next) { /* reverse: first resumed, first served */
		struct client *client = next;
		next = client->next_resumed;
		client->next_resumed = first;
		first = client;
	}
	while (first) {
		struct client *client = first;
		first = client->next_resumed;
		assert(client->suspended);
		client->suspended = false;
		queue_client(client);
	}
}

/* ---- Turns ---------------------------------------------------------------------------------- */

static void accept_again(struct listener *listener);

static void end_client(struct client *client)
{
	struct listener *listener = client->listener;
	assert(!client->suspended && !client->queued); /* N2 */
	/* The client must not take part of an answer for all of it. */
	client->resets |= client->state == CLIENT_ANSWER && client->request;
	client_end_request(client, false);
	listener->lingering -= client->state == CLIENT_LINGER;
	tls_free(client->tls, !client->resets);
	if (client->resets)
		client_reset_on_close(client, true);
	close(client->fd);
	*client->at = client->next;
	if (client->next)
		client->next->at = client->at;
	str_release(&client->out);
	free(client->in);
	free(client);
	listener->count--;
	if (listener->options.ops->count)
		listener->options.ops->count(listener->options.user, -1);
	accept_again(listener);
}

static void take_turn(struct client *client)
{
	enum step step = client->cut ? STEP_GONE : STEP_ON;
	client->queued = false;
	if (client->suspended)
		return; /* resuming queues it again */
	for (int steps = 0; step == STEP_ON && !client->suspended; steps++) {
		if (steps == TURN_STEPS) {
			queue_client(client);
			return;
		}
		step = client_advance(client);
	}
	if (step == STEP_GONE && !client->suspended)
		end_client(client);
}

static void take_turns(struct listener *listener)
{
	struct client *client = listener->queue;
	listener->queue = NULL;
	listener->queue_end = &listener->queue;
	while (client) {
		struct client *next = client->next_queued;
		take_turn(client);
		client = next;
	}
}

/* ---- Accepting ------------------------------------------------------------------------------ */

static void watch(struct listener *listener, int operation, int fd, unsigned events, void *what)
{
	struct epoll_event event = {.events = events, .data.ptr = what};
	(void)!epoll_ctl(listener->epoll, operation, fd, &event);
}

static void stop_accepting(struct listener *listener)
{
	if (listener->accepts)
		watch(listener, EPOLL_CTL_DEL, listener->fd, 0, NULL);
	listener->accepts = false;
}

static void accept_again(struct listener *listener)
{
	if (listener->accepts || listener->fd < 0 || atomic_load(&listener->draining) ||
	    listener->count >= listener->options.clients_max)
		return;
	watch(listener, EPOLL_CTL_ADD, listener->fd, EPOLLIN, listener);
	listener->accepts = true;
}

static struct client *client_new(struct listener *listener, int fd)
{
	struct client *client = calloc(1, sizeof *client);
	if (!client)
		return NULL;
	client->listener = listener;
	client->fd = fd;
	client->out = STR_INIT(OUT_BYTES_MAX);
	client->readable = client->writable = true;
	if (listener->tls && !(client->tls = tls_new(listener->tls, fd))) {
		free(client);
		return NULL;
	}
	client->next = listener->clients;
	client->at = &listener->clients;
	if (client->next)
		client->next->at = &client->next;
	listener->clients = client;
	return client;
}

static void come(struct listener *listener, int fd, const struct sockaddr_storage *address)
{
	int one = 1, unsent = UNSENT_BYTES;
	struct client *client = client_new(listener, fd);
	if (!client) {
		close(fd);
		return;
	}
	client->address = *address;
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
	setsockopt(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &unsent, sizeof unsent);
	watch(listener, EPOLL_CTL_ADD, fd, EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, client);
	client_set_deadline(client, listener->options.request_us);
	listener->count++;
	if (listener->options.ops->count)
		listener->options.ops->count(listener->options.user, 1);
	queue_client(client);
}

static void accept_some(struct listener *listener)
{
	for (int i = 0; i < ACCEPTS_MAX; i++) {
		struct sockaddr_storage address = {0};
		socklen_t size = sizeof address;
		if (listener->count >= listener->options.clients_max) {
			stop_accepting(listener); /* until a client leaves */
			return;
		}
		int fd = accept4(listener->fd, (struct sockaddr *)&address, &size,
		                 SOCK_NONBLOCK | SOCK_CLOEXEC);
		if (fd >= 0)
			come(listener, fd, &address);
		if (fd >= 0 || errno == ECONNABORTED || errno == EINTR)
			continue;
		if (errno != EAGAIN && errno != EWOULDBLOCK)
			stop_accepting(listener); /* until the next tick: descriptors may be free again */
		return;
	}
}

/* ---- Time ----------------------------------------------------------------------------------- */

static bool is_late(const struct client *client, int64_t now, bool stops)
{
	bool reads = client->state == CLIENT_HEAD || (client->state == CLIENT_BODY && !client->allowed);
	return client->until_us && (now >= client->until_us || (stops && reads));
}

static void tick(struct listener *listener)
{
	const struct listener_options *options = &listener->options;
	int64_t now = now_us(listener);
	if (now < listener->tick_us)
		return;
	listener->tick_us = now + TICK_US;
	bool drains = atomic_load(&listener->draining), crowded = false;
	if (drains && listener->fd >= 0) {
		stop_accepting(listener);
		close(listener->fd);
		listener->fd = -1;
	}
	accept_again(listener);
	bool stops = drains && now >= atomic_load(&listener->read_by_us);
	if (options->ops->crowded)
		crowded = options->ops->crowded(options->user);
	size_t cut = 0;
	for (struct client *client = listener->clients; client; client = client->next) {
		if (client->suspended || client->cut)
			continue;
		/* While memory is short, slow clients that hold memory are cut off early. */
		bool crowds = crowded && client->until_us && atomic_load(&client->holds) &&
		              now - client->since_us > CROWD_US;
		if (!crowds && !is_late(client, now, stops))
			continue;
		cut += crowds;
		client->cut = true;
		queue_client(client);
	}
	if (cut)
		options->ops->cut_off(options->user, cut);
}

/* ---- The thread ----------------------------------------------------------------------------- */

static void note_event(struct listener *listener, const struct epoll_event *event)
{
	if (!event->data.ptr) {
		uint64_t count;
		(void)!read(listener->wake_fd, &count, sizeof count);
		atomic_store(&listener->awake, false); /* before the list of resumed clients is read */
	} else if (event->data.ptr == listener) {
		accept_some(listener);
	} else {
		struct client *client = event->data.ptr;
		bool broken = event->events & (EPOLLERR | EPOLLHUP);
		/* TLS may need to write before it can read, and the reverse. */
		bool both = broken || client->tls;
		client->hung |= (event->events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0;
		client->readable |= both || (event->events & (EPOLLIN | EPOLLRDHUP));
		client->writable |= both || (event->events & EPOLLOUT);
		queue_client(client);
	}
}

static void *live(void *user)
{
	struct listener *listener = user;
	struct epoll_event events[EVENTS_MAX];
	while (!atomic_load(&listener->closing)) {
		int count = epoll_wait(listener->epoll, events, EVENTS_MAX,
		                       listener->queue ? 0 : TICK_US / 1000);
		for (int i = 0; i < count; i++)
			note_event(listener, &events[i]);
		queue_resumed(listener);
		tick(listener);
		take_turns(listener);
	}
	return NULL;
}

/* ---- Opening and closing -------------------------------------------------------------------- */

static enum ibid_code listen_at(struct listener *listener, struct ibid_err *err)
{
	const struct sockaddr *address = listener->options.address;
	int one = 1;
	socklen_t size = address->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6)
	                                                : sizeof(struct sockaddr_in);
	listener->fd = socket(address->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (listener->fd < 0 || setsockopt(listener->fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one) ||
	    (address->sa_family == AF_INET6 &&
	     setsockopt(listener->fd, IPPROTO_IPV6, IPV6_V6ONLY, &one, sizeof one)) ||
	    bind(listener->fd, address, size) || listen(listener->fd, BACKLOG))
		return err_set(err, IBID_UNAVAILABLE, "%s", strerror(errno));
	return IBID_OK;
}

enum ibid_code listener_open(const struct listener_options *options, struct listener **ret,
                             struct ibid_err *err)
{
	struct listener *listener = calloc(1, sizeof *listener);
	if (!listener)
		return err_set(err, IBID_NOMEM, "out of memory");
	listener->options = *options;
	listener->queue_end = &listener->queue;
	listener->fd = -1;
	listener->epoll = epoll_create1(EPOLL_CLOEXEC);
	listener->wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	enum ibid_code code = IBID_OK;
	if (listener->epoll < 0 || listener->wake_fd < 0)
		code = err_set(err, IBID_UNAVAILABLE, "%s", strerror(errno));
	if (!code && options->certificate)
		code = tls_server_new(options->certificate, options->key, &listener->tls, err);
	if (!code)
		code = listen_at(listener, err);
	if (!code) {
		watch(listener, EPOLL_CTL_ADD, listener->wake_fd, EPOLLIN, NULL);
		accept_again(listener);
	}
	if (code)
		listener_close(listener);
	else
		*ret = listener;
	return code;
}

enum ibid_code listener_start(struct listener *listener, struct ibid_err *err)
{
	listener->has_thread = !pthread_create(&listener->thread, NULL, live, listener);
	return listener->has_thread ? IBID_OK
	                            : err_set(err, IBID_UNAVAILABLE, "no thread can be started");
}

uint16_t listener_port(const struct listener *listener)
{
	struct sockaddr_in6 address = {0}; /* the port is at the same place in both families */
	socklen_t size = sizeof address;
	if (getsockname(listener->fd, (struct sockaddr *)&address, &size))
		return 0;
	return ntohs(address.sin6_port);
}

void listener_drain(struct listener *listener, int64_t read_by_us)
{
	shutdown(listener->fd, SHUT_RDWR); /* refuses connections at once; the thread closes it */
	atomic_store(&listener->read_by_us, read_by_us);
	atomic_store(&listener->draining, true);
	listener_wake(listener);
}

void listener_close(struct listener *listener)
{
	if (!listener)
		return;
	atomic_store(&listener->closing, true);
	if (listener->has_thread) {
		listener_wake(listener);
		pthread_join(listener->thread, NULL);
	}
	if (listener->fd >= 0)
		close(listener->fd);
	listener->fd = -1;
	for (struct client *client = listener->clients, *next; client; client = next) {
		next = client->next;
		client->queued = false;
		end_client(client);
	}
	if (listener->epoll >= 0)
		close(listener->epoll);
	if (listener->wake_fd >= 0)
		close(listener->wake_fd);
	tls_server_free(listener->tls);
	free(listener);
}
