/* SPDX-License-Identifier: Apache-2.0 */
/* proxy.c -- one thread accepts, one thread per connection forwards. */
#include "store/proxy.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { PAIRS_MAX = 64, TICK_MS = 20 };

struct pair {
	struct proxy *proxy;
	pthread_t thread;
	int client, server;
	/* The client's messages: a type byte (not for the first), a length, and so many bytes. */
	bool started;
	unsigned char head[5];
	size_t head_size;
	uint32_t left;
};

struct proxy {
	int keeper, listener, port, server_port;
	pthread_t thread;
	int stop, trick;
	int due, delivered; /* what was delayed */
	unsigned syncs;
	struct pair pairs[PAIRS_MAX];
	size_t pair_count;
};

static void must(bool ok)
{
	if (!ok)
		abort();
}

static struct sockaddr_in loopback(int port)
{
	return (struct sockaddr_in){
	    .sin_family = AF_INET,
	    .sin_port = htons((uint16_t)port),
	    .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
}

static bool stopped(const struct proxy *proxy)
{
	return __atomic_load_n(&proxy->stop, __ATOMIC_SEQ_CST);
}

static void count_byte(struct pair *pair, unsigned char byte)
{
	size_t head_size = pair->started ? 5 : 4;
	if (pair->left) {
		pair->left--;
		return;
	}
	pair->head[pair->head_size++] = byte;
	if (pair->head_size < head_size)
		return;
	uint32_t length;
	memcpy(&length, pair->head + head_size - 4, 4);
	pair->left = ntohl(length) - 4;
	if (pair->started && pair->head[0] == 'S')
		__atomic_add_fetch(&pair->proxy->syncs, 1, __ATOMIC_SEQ_CST);
	pair->started = true;
	pair->head_size = 0;
}

static bool send_all(int fd, const unsigned char *bytes, size_t size)
{
	while (size) {
		ssize_t sent = send(fd, bytes, size, MSG_NOSIGNAL);
		if (sent <= 0)
			return false;
		bytes += sent;
		size -= (size_t)sent;
	}
	return true;
}

static void sleep_a_tick(void)
{
	poll(NULL, 0, TICK_MS);
}

static void send_late(struct pair *pair, unsigned char *bytes, size_t size, size_t room)
{
	struct proxy *proxy = pair->proxy;
	shutdown(pair->client, SHUT_RDWR);
	while (!__atomic_load_n(&proxy->due, __ATOMIC_SEQ_CST) && !stopped(proxy))
		sleep_a_tick();
	must(send_all(pair->server, bytes, size));
	(void)!recv(pair->server, bytes, room, 0);
	__atomic_store_n(&proxy->delivered, 1, __ATOMIC_SEQ_CST);
}

/* True to go on. */
static bool from_client(struct pair *pair)
{
	unsigned char bytes[65536];
	ssize_t size = recv(pair->client, bytes, sizeof bytes, 0);
	if (size <= 0)
		return false;
	for (ssize_t i = 0; i < size; i++)
		count_byte(pair, bytes[i]);
	int trick = __atomic_exchange_n(&pair->proxy->trick, PROXY_PASS, __ATOMIC_SEQ_CST);
	if (trick == PROXY_DELAY) {
		send_late(pair, bytes, (size_t)size, sizeof bytes);
		return false;
	}
	if (trick == PROXY_CUT || !send_all(pair->server, bytes, (size_t)size))
		return false;
	if (trick == PROXY_PASS)
		return true;
	if (trick == PROXY_HANG_UP)
		shutdown(pair->client, SHUT_RDWR);
	(void)!recv(pair->server, bytes, sizeof bytes, 0);
	return false;
}

static bool from_server(struct pair *pair)
{
	unsigned char bytes[65536];
	ssize_t size = recv(pair->server, bytes, sizeof bytes, 0);
	return size > 0 && send_all(pair->client, bytes, (size_t)size);
}

static void *forward(void *user)
{
	struct pair *pair = user;
	bool open = true;
	while (open && !stopped(pair->proxy)) {
		struct pollfd fds[] = {{pair->client, POLLIN, 0}, {pair->server, POLLIN, 0}};
		if (poll(fds, 2, TICK_MS) <= 0)
			continue;
		if (fds[0].revents)
			open = from_client(pair);
		if (open && fds[1].revents)
			open = from_server(pair);
	}
	close(pair->client);
	close(pair->server);
	return NULL;
}

static void start_pair(struct proxy *proxy, int client)
{
	int one = 1;
	struct sockaddr_in address = loopback(proxy->server_port);
	int server = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	must(server >= 0 && proxy->pair_count < PAIRS_MAX);
	struct pair *pair = &proxy->pairs[proxy->pair_count];
	if (connect(server, (struct sockaddr *)&address, sizeof address) != 0) {
		close(server);
		close(client);
		return;
	}
	setsockopt(server, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
	setsockopt(client, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
	*pair = (struct pair){.proxy = proxy, .client = client, .server = server};
	must(pthread_create(&pair->thread, NULL, forward, pair) == 0);
	proxy->pair_count++;
}

static void *accept_all(void *user)
{
	struct proxy *proxy = user;
	while (!stopped(proxy)) {
		struct pollfd fd = {proxy->listener, POLLIN, 0};
		if (poll(&fd, 1, TICK_MS) <= 0)
			continue;
		int client = accept4(proxy->listener, NULL, NULL, SOCK_CLOEXEC);
		if (client >= 0)
			start_pair(proxy, client);
	}
	return NULL;
}

/* Several may have one port while at most one listens. */
static int bound_to(int port)
{
	int one = 1, fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct sockaddr_in address = loopback(port);
	must(fd >= 0 && setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one) == 0);
	must(bind(fd, (struct sockaddr *)&address, sizeof address) == 0);
	return fd;
}

struct proxy *proxy_new(int server_port)
{
	struct sockaddr_in address = loopback(0);
	socklen_t size = sizeof address;
	struct proxy *proxy = calloc(1, sizeof *proxy);
	must(proxy != NULL);
	proxy->server_port = server_port;
	proxy->keeper = bound_to(0);
	must(getsockname(proxy->keeper, (struct sockaddr *)&address, &size) == 0);
	proxy->port = ntohs(address.sin_port);
	proxy->listener = bound_to(proxy->port);
	must(listen(proxy->listener, 16) == 0);
	must(pthread_create(&proxy->thread, NULL, accept_all, proxy) == 0);
	return proxy;
}

int proxy_port(const struct proxy *proxy)
{
	return proxy->port;
}

void proxy_play(struct proxy *proxy, enum proxy_trick trick)
{
	__atomic_store_n(&proxy->trick, (int)trick, __ATOMIC_SEQ_CST);
}

void proxy_deliver(struct proxy *proxy)
{
	__atomic_store_n(&proxy->due, 1, __ATOMIC_SEQ_CST);
	while (!__atomic_load_n(&proxy->delivered, __ATOMIC_SEQ_CST))
		sleep_a_tick();
}

unsigned proxy_syncs(const struct proxy *proxy)
{
	return __atomic_load_n(&proxy->syncs, __ATOMIC_SEQ_CST);
}

void proxy_stop(struct proxy *proxy)
{
	__atomic_store_n(&proxy->stop, 1, __ATOMIC_SEQ_CST);
	pthread_join(proxy->thread, NULL);
	for (size_t i = 0; i < proxy->pair_count; i++)
		pthread_join(proxy->pairs[i].thread, NULL);
	close(proxy->listener);
}

void proxy_free(struct proxy *proxy)
{
	if (!stopped(proxy))
		proxy_stop(proxy);
	close(proxy->keeper);
	free(proxy);
}
