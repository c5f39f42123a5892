/* SPDX-License-Identifier: Apache-2.0 */
/* proxy.h -- a TCP proxy in a thread, that loses what a network may lose. */
#ifndef TEST_STORE_PROXY_H
#define TEST_STORE_PROXY_H

struct proxy;

enum proxy_trick {
	PROXY_PASS,
	PROXY_DROP_ANSWER, /* what the client sends next arrives; the answer is dropped, then it closes
	                    */
	PROXY_HANG_UP,     /* what the client sends next arrives; the client is cut off at once */
	PROXY_CUT,         /* what the client sends next does not arrive: both ends are closed */
	PROXY_DELAY,       /* the client is cut off at once; what it sent arrives by proxy_deliver */
};

struct proxy *proxy_new(int server_port); /* to 127.0.0.1; never NULL: aborts */
int proxy_port(const struct proxy *proxy);
void proxy_play(struct proxy *proxy, enum proxy_trick trick); /* once, with whoever sends next */
/* Let arrive what was delayed, and wait for its answer. */
void proxy_deliver(struct proxy *proxy);
/* Round trips so far: Sync messages of PostgreSQL's protocol that clients sent. */
unsigned proxy_syncs(const struct proxy *proxy);
/* Nobody listens there any more, and until proxy_free nobody else can. */
void proxy_stop(struct proxy *proxy);
void proxy_free(struct proxy *proxy);

#endif
