/* SPDX-License-Identifier: Apache-2.0 */
/* relay_page.c -- two pages by one thread. The store is asked when somebody asks for /metrics, at
 * most once a second: a relay that nobody looks at pays nothing for it. */
#include "http/relay_page.h"

#include "http/listen.h"
#include "http/outbox_metrics.h"
#include "http/prometheus.h"

#include <errno.h>
#include <microhttpd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	PAGE_BYTES_MAX = 16 << 20,
	MEASURE_PAUSE_US = 1000000,
	CONNECTIONS_MAX = 32,
	IDLE_S = 30,
};

struct relay_page {
	struct MHD_Daemon *daemon;
	struct fleet *fleet;
	struct env *env;
	struct log log;
	struct outbox_metrics *metrics;
	int64_t began_us;
	int64_t measure_us; /* not before; of the daemon's thread, like all of these */
	bool store_up;
};

static void measure(struct relay_page *page)
{
	struct ibid_err err = {0};
	int64_t now_us = env_steady_us(page->env);
	if (now_us < page->measure_us)
		return;
	page->store_up = !outbox_metrics_measure(page->metrics, fleet_store(page->fleet), &err);
	page->measure_us = env_steady_us(page->env) + MEASURE_PAUSE_US;
	if (!page->store_up)
		LOG(&page->log, IBID_LOG_WARN, "relay.not_measured", {"reason", log_text(err.text)});
}

static void write_metrics(struct relay_page *page, struct str *out)
{
	measure(page);
	outbox_metrics_note(page->metrics, page->fleet);
	outbox_metrics_write(page->metrics, out);
	prom_number(out, "ibid_store_up", "gauge", "1: the store answered, a moment ago.",
	            page->store_up);
	prom_process(out, page->began_us);
}

static enum MHD_Result answer(struct MHD_Connection *connection, unsigned status, const char *type,
                              const struct str *body)
{
	struct MHD_Response *response = MHD_create_response_from_buffer(
	    body->size, (void *)(uintptr_t)str_text(body), MHD_RESPMEM_MUST_COPY);
	if (!response)
		return MHD_NO;
	MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, type);
	MHD_add_response_header(response, MHD_HTTP_HEADER_CACHE_CONTROL, "no-store");
	if (status == MHD_HTTP_METHOD_NOT_ALLOWED)
		MHD_add_response_header(response, MHD_HTTP_HEADER_ALLOW, "GET, HEAD");
	enum MHD_Result queued = MHD_queue_response(connection, status, response);
	MHD_destroy_response(response);
	return queued;
}

static enum MHD_Result handle(void *user, struct MHD_Connection *connection, const char *url,
                              const char *method, const char *version, const char *body,
                              size_t *body_size, void **request)
{
	static const char json[] = "application/json", text[] = "text/plain; charset=utf-8";
	struct relay_page *page = user;
	struct str out = STR_INIT(PAGE_BYTES_MAX);
	unsigned status = MHD_HTTP_OK;
	const char *type = text;
	(void)version;
	(void)body;
	(void)request;
	*body_size = 0; /* nothing here takes one */
	if (strcmp(method, "GET") != 0 && strcmp(method, "HEAD") != 0) {
		status = MHD_HTTP_METHOD_NOT_ALLOWED;
		str_adds(&out, "GET or HEAD\n");
	} else if (strcmp(url, "/healthz") == 0) {
		type = json;
		str_adds(&out, "{\"status\":\"alive\"}");
	} else if (strcmp(url, "/metrics") == 0) {
		type = "text/plain; version=0.0.4; charset=utf-8";
		write_metrics(page, &out);
	} else {
		status = MHD_HTTP_NOT_FOUND;
		str_adds(&out, "there is /metrics and /healthz\n");
	}
	enum MHD_Result said = out.failed ? MHD_NO : answer(connection, status, type, &out);
	str_release(&out);
	return said;
}

static enum ibid_code start(struct relay_page *page, const char *listen, char ret_address[300],
                            struct ibid_err *err)
{
	struct sockaddr_storage storage = {0};
	struct sockaddr *to = (struct sockaddr *)&storage;
	enum ibid_code code = listen_address("relay.metrics_listen", listen, &storage, err);
	if (code)
		return code;
	errno = 0;
	page->daemon = MHD_start_daemon(
	    MHD_USE_EPOLL_INTERNAL_THREAD | (to->sa_family == AF_INET6 ? MHD_USE_IPv6 : 0), 0, NULL,
	    NULL, handle, page, MHD_OPTION_SOCK_ADDR, to, MHD_OPTION_CONNECTION_LIMIT,
	    (unsigned)CONNECTIONS_MAX, MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)IDLE_S, MHD_OPTION_END);
	if (!page->daemon)
		return err_set(err, IBID_UNAVAILABLE, "can't listen on %s: %s", listen, strerror(errno));
	const union MHD_DaemonInfo *port = MHD_get_daemon_info(page->daemon, MHD_DAEMON_INFO_BIND_PORT);
	snprintf(ret_address, 300, "http://%.*s:%u", (int)(strrchr(listen, ':') - listen), listen,
	         port ? port->port : 0);
	return IBID_OK;
}

enum ibid_code relay_page_open(const char *listen, struct fleet *fleet, struct env *env,
                               struct log log, struct relay_page **ret, char ret_address[300],
                               struct ibid_err *err)
{
	struct relay_page *page = calloc(1, sizeof *page);
	if (!page)
		return err_set(err, IBID_NOMEM, "out of memory");
	page->fleet = fleet;
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
	if (page->daemon)
		MHD_stop_daemon(page->daemon);
	outbox_metrics_free(page->metrics);
	free(page);
}
