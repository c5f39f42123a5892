/* SPDX-License-Identifier: Apache-2.0 */
/* relay_page.c -- two pages by one thread. The store is asked when somebody asks for /metrics, at
 * most once a second: a relay that nobody looks at pays nothing for it. */
#include "http/relay_page.h"

#include "http/listen.h"
#include "http/outbox_metrics.h"
#include "http/prometheus.h"
#include "net/listener.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	PAGE_BYTES_MAX = 16 << 20,
	MEASURE_PAUSE_US = 1000000,
	CONNECTIONS_MAX = 32,
	HEAD_BYTES = 16 << 10,
	REQUEST_US = 30000000,
};

struct relay_page {
	struct listener *listener;
	struct relays *relays;
	struct env *env;
	struct log log;
	struct outbox_metrics *metrics;
	int64_t began_us;
	int64_t measure_us; /* not before; of the listener's thread, like all of these */
	bool store_up;
};

static void measure(struct relay_page *page)
{
	struct ibid_err err = {0};
	int64_t now_us = env_steady_us(page->env);
	if (now_us < page->measure_us)
		return;
	page->store_up = !outbox_metrics_measure(page->metrics, relays_store(page->relays), &err);
	page->measure_us = env_steady_us(page->env) + MEASURE_PAUSE_US;
	if (!page->store_up)
		LOG(&page->log, IBID_LOG_WARN, "relay.not_measured", {"reason", log_text(err.text)});
}

static void write_metrics(struct relay_page *page, struct str *out)
{
	measure(page);
	outbox_metrics_note(page->metrics, page->relays);
	outbox_metrics_write(page->metrics, out);
	prom_number(out, "ibid_store_up", "gauge", "1: the store answered, a moment ago.",
	            page->store_up);
	prom_process(out, page->began_us);
}

/* ---- A request ------------------------------------------------------------------------------ */

struct visit {
	struct relay_page *page;
	struct client *client;
	struct str body;
};

static void *begin(void *user, struct client *client)
{
	struct visit *visit = calloc(1, sizeof *visit);
	if (visit)
		*visit = (struct visit){user, client, STR_INIT(PAGE_BYTES_MAX)};
	return visit;
}

static void answer(struct visit *visit, int status, const char *type)
{
	client_answer(visit->client, status);
	client_header(visit->client, "Content-Type", type);
	client_header(visit->client, "Cache-Control", "no-store");
	if (status == 405)
		client_header(visit->client, "Allow", "GET, HEAD");
	client_send(visit->client, str_text(&visit->body), visit->body.size);
}

/* Nothing here takes a body. */
static void enter(void *user)
{
	static const char text[] = "text/plain; charset=utf-8";
	struct visit *visit = user;
	const struct head *head = client_head(visit->client);
	if (head->wrong) {
		str_addf(&visit->body, "%s\n", head->wrong);
		answer(visit, 400, text);
		return;
	}
	size_t path = strcspn(head->target, "?");
	if (strcmp(head->method, "GET") != 0 && strcmp(head->method, "HEAD") != 0) {
		str_adds(&visit->body, "GET or HEAD\n");
		answer(visit, 405, text);
	} else if (strncmp(head->target, "/healthz", path) == 0 && path == strlen("/healthz")) {
		str_adds(&visit->body, "{\"status\":\"alive\"}");
		answer(visit, 200, "application/json");
	} else if (strncmp(head->target, "/metrics", path) == 0 && path == strlen("/metrics")) {
		write_metrics(visit->page, &visit->body);
		if (visit->body.failed)
			client_break_off(visit->client);
		else
			answer(visit, 200, "text/plain; version=0.0.4; charset=utf-8");
	} else {
		str_adds(&visit->body, "there is /metrics and /healthz\n");
		answer(visit, 404, text);
	}
}

static void end(void *user, bool sent)
{
	struct visit *visit = user;
	(void)sent;
	str_release(&visit->body);
	free(visit);
}

static const struct listener_ops ops = {.begin = begin, .enter = enter, .end = end};

/* ---- Opening and closing -------------------------------------------------------------------- */

static enum ibid_code start(struct relay_page *page, const char *listen, char ret_address[300],
                            struct ibid_err *err)
{
	struct sockaddr_storage storage = {0};
	struct sockaddr *to = (struct sockaddr *)&storage;
	enum ibid_code code = listen_address("relay.metrics_listen", listen, &storage, err);
	if (code)
		return code;
	struct listener_options options = {
	    .env = page->env,
	    .address = to,
	    .clients_max = CONNECTIONS_MAX,
	    .head_bytes = HEAD_BYTES,
	    .request_us = REQUEST_US,
	    .idle_us = REQUEST_US,
	    .ops = &ops,
	    .user = page,
	};
	struct ibid_err why;
	code = listener_open(&options, &page->listener, &why);
	if (code)
		return err_set(err, code, "can't listen on %s: %s", listen, why.text);
	snprintf(ret_address, 300, "http://%.*s:%u", (int)(strrchr(listen, ':') - listen), listen,
	         listener_port(page->listener));
	return listener_start(page->listener, err);
}

enum ibid_code relay_page_open(const char *listen, struct relays *relays, struct env *env,
                               struct log log, struct relay_page **ret, char ret_address[300],
                               struct ibid_err *err)
{
	struct relay_page *page = calloc(1, sizeof *page);
	if (!page)
		return err_set(err, IBID_NOMEM, "out of memory");
	page->relays = relays;
	page->env = env;
	page->log = log;
	page->began_us = env_wall_us(env);
	page->metrics = outbox_metrics_new();
	enum ibid_code code = page->metrics ? start(page, listen, ret_address, err)
	                                    : err_set(err, IBID_NOMEM, "out of memory");
	if (code)
		relay_page_close(page);
	else
		*ret = page;
	return code;
}

void relay_page_close(struct relay_page *page)
{
	if (!page)
		return;
	listener_close(page->listener);
	outbox_metrics_free(page->metrics);
	free(page);
}
