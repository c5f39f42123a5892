/* SPDX-License-Identifier: Apache-2.0 */
/* server.c -- the life of the server: opening, reloading, watching, draining.
 *
 * Threads: the listener's one reads and writes every connection; the workers's run commands; one
 * asks the store now and then whether it is there. Where there is a service behind the server, one
 * carries the calls to it, and one finds out what became of those that had no answer. The thread
 * that called server_run waits for signals. */
#include "http/server.h"

#include "http/access.h"
#include "http/connection.h"
#include "http/inquiry.h"
#include "http/listen.h"
#include "http/meters.h"
#include "http/openapi.h"
#include "http/outbox_metrics.h"
#include "http/upstream.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

enum {
	CONNECTIONS_SPARE = 2,       /* beside one for each thread of the workers */
	WATCH_PAUSE_US = 100000,     /* how soon the look at the store hears that the server ends */
	PROBE_PAUSE_US = 1000000,    /* how often the store is asked */
	MEASURE_PAUSE_US = 15000000, /* how often it says how the ledger stands */
	OUTBOX_PAUSE_US = 5000000,   /* and how the outbox does */
	SIGNAL_PAUSE_MS = 200,       /* how soon a generation without requests is closed */
	PATIENCE_US = 1000000,       /* with requests that are not whole, when it ends */
	PEM_BYTES_MAX = 1 << 20,
	TOKENS_PAGE = 100,
};

/* ---- Houses --------------------------------------------------------------------------------- */

static void generation_close(struct generation *generation)
{
	if (!generation)
		return;
	worker_pool_free(generation->workers);
	str_release(&generation->openapi);
	meters_close(generation);
	routes_release(&generation->routes);
	ibid_close(generation->ibid);
	free(generation);
}

/* Commands have ended, and may have left events. */
static void after_commands(void *user)
{
	struct server *server = user;
	listener_wake(server->listener);
	if (!server->settings->destination_count)
		return;
	pthread_mutex_lock(&server->lock);
	relays_wake(server->relays);
	pthread_mutex_unlock(&server->lock);
}

static enum ibid_code generation_open(struct server *server, struct generation **ret,
                                      struct ibid_err *err)
{
	const struct settings *settings = server->settings;
	struct generation *generation = calloc(1, sizeof *generation);
	if (!generation)
		return err_set(err, IBID_NOMEM, "out of memory");
	int64_t connections = settings->connections ? settings->connections
	                                            : settings->threads + CONNECTIONS_SPARE;
	const struct api_seams seams = {.checks_scripts = true};
	enum ibid_code code = api_open(
	    IBID_OPTIONS(.store = settings->store, .contracts = settings->contracts,
	                 .log = server->log.fn, .log_user = server->log.user,
	                 .connections = (unsigned)connections, .queue = (unsigned)settings->queue,
	                 .key_file = settings->key_file),
	    &seams, &generation->ibid, err);
	if (!code)
		code = ledger_remember(generation->ibid->ledger, settings->replay_memory_us, err);
	if (!code)
		code = routes_make(generation->ibid->ledger->contracts,
		                   settings->prefix ? settings->prefix : "", &generation->routes, err);
	if (!code)
		code = inquiry_prepare(server, generation, err);
	if (!code)
		code = openapi_make(&generation->routes, generation->ibid->ledger->contracts, settings,
		                    &generation->openapi, err);
	if (!code)
		code = meters_open(generation, server->metrics, server->upstream, err);
	if (!code)
		code = worker_pool_new(generation->ibid->ledger, (unsigned)settings->threads,
		                       (unsigned)settings->queue, &generation->workers, err);
	if (code) {
		generation_close(generation);
		return code;
	}
	worker_pool_after(generation->workers, after_commands, server);
	*ret = generation;
	return IBID_OK;
}

void server_hold(struct server *server, struct generation *generation)
{
	pthread_mutex_lock(&server->lock);
	generation->requests++;
	server->active++;
	pthread_mutex_unlock(&server->lock);
}

void server_let_go(struct server *server, struct generation *generation)
{
	pthread_mutex_lock(&server->lock);
	generation->requests--;
	server->active--;
	pthread_mutex_unlock(&server->lock);
}

/* Close those before the present one whose last guest has gone. */
static void close_retired(struct server *server)
{
	pthread_mutex_lock(&server->lock);
	for (struct generation **at = &server->retired; *at;) {
		struct generation *generation = *at;
		if (generation->requests) {
			at = &generation->next;
			continue;
		}
		*at = generation->next;
		pthread_mutex_unlock(&server->lock);
		generation_close(generation);
		pthread_mutex_lock(&server->lock);
		at = &server->retired; /* only this thread changes the list */
	}
	pthread_mutex_unlock(&server->lock);
}

/* Where destinations are set, this process relays, too. */
static enum ibid_code start_relays(struct server *server, struct ibid_err *err)
{
	const struct relays_options options = settings_relays(server->settings, server->log);
	struct relays *relays = NULL;
	enum ibid_code code = options.setting_count ? relays_start(&options, &relays, err) : IBID_OK;
	pthread_mutex_lock(&server->lock);
	server->relays = relays;
	pthread_mutex_unlock(&server->lock);
	return code;
}

/* With the contracts that are in force now. */
static void restart_relays(struct server *server)
{
	struct ibid_err err = {0};
	pthread_mutex_lock(&server->lock);
	struct relays *before = server->relays;
	outbox_metrics_note(server->outbox, before); /* told while there is none */
	server->relays = NULL;
	pthread_mutex_unlock(&server->lock);
	relays_halt(before);
	outbox_metrics_note(server->outbox, before);
	outbox_metrics_ended(server->outbox);
	relays_stop(before);
	if (start_relays(server, &err))
		LOG(&server->log, IBID_LOG_ERROR, "serve.relay", {"reason", log_text(err.text)});
}

static void reload(struct server *server)
{
	struct generation *generation = NULL;
	struct ibid_err err = {0};
	bool good = !generation_open(server, &generation, &err);
	metrics_reloaded(server->metrics, good);
	if (!good) {
		LOG(&server->log, IBID_LOG_ERROR, "serve.reload_refused", {"reason", log_text(err.text)},
		    {"effect", log_text("the contracts stay as they were")});
		return;
	}
	pthread_mutex_lock(&server->lock);
	struct generation *before = server->generation;
	before->next = server->retired;
	server->retired = before;
	server->generation = generation;
	pthread_mutex_unlock(&server->lock);
	restart_relays(server);
	LOG(&server->log, IBID_LOG_INFO, "serve.reloaded",
	    {"contracts", log_int((int64_t)contracts_count(generation->ibid->ledger->contracts))});
}

/* ---- Where it listens ----------------------------------------------------------------------- */

static bool is_loopback(const struct sockaddr *address)
{
	if (address->sa_family == AF_INET)
		return (ntohl(((const struct sockaddr_in *)address)->sin_addr.s_addr) >> 24) == 127;
	return IN6_IS_ADDR_LOOPBACK(&((const struct sockaddr_in6 *)address)->sin6_addr);
}

static enum ibid_code read_pem(struct arena *arena, const char *file, const char **ret,
                               struct ibid_err *err)
{
	char *text = arena_alloc(arena, PEM_BYTES_MAX + 1);
	FILE *in = text ? fopen(file, "rbe") : NULL;
	if (!text)
		return err_set(err, IBID_NOMEM, "out of memory");
	if (!in)
		return err_set(err, IBID_INVALID, "%s: %s", file, strerror(errno));
	size_t size = fread(text, 1, PEM_BYTES_MAX, in);
	fclose(in);
	text[size] = 0;
	*ret = text;
	return strstr(text, "-----BEGIN ") ? IBID_OK
	                                   : err_set(err, IBID_INVALID, "%s: it is no PEM file", file);
}

static enum ibid_code start_listener(struct server *server, struct arena *arena, char address[300],
                                     struct ibid_err *err)
{
	const struct settings *settings = server->settings;
	struct sockaddr_storage storage = {0};
	struct sockaddr *to = (struct sockaddr *)&storage;
	const char *certificate = NULL, *key = NULL;
	enum ibid_code code = listen_address("http.listen", settings->listen, &storage, err);
	if (!code && settings->certificate)
		code = read_pem(arena, settings->certificate, &certificate, err);
	if (!code && settings->certificate)
		code = read_pem(arena, settings->private_key, &key, err);
	if (code)
		return code;
	server->on_loopback = is_loopback(to);
	if (!server->on_loopback && settings->open_tenant)
		return err_set(err, IBID_INVALID,
		               "http.listen is `%s`: with http.open.tenant, which needs no token, the "
		               "server answers on loopback only",
		               settings->listen);
	struct listener_options options = {
	    .env = server->env,
	    .address = to,
	    .certificate = certificate,
	    .key = key,
	    .clients_max = (size_t)settings->connections_max,
	    .head_bytes = (size_t)settings->header_bytes,
	    .request_us = settings->request_us,
	    .idle_us = settings->idle_us,
	    .ops = &connection_ops,
	    .user = server,
	};
	struct ibid_err why;
	code = listener_open(&options, &server->listener, &why);
	if (code == IBID_INVALID)
		return err_set(err, code, "http.tls.certificate %s, http.tls.key %s: %s",
		               settings->certificate, settings->private_key, why.text);
	if (code)
		return err_set(err, code, "can't listen on %s: %s", settings->listen, why.text);
	snprintf(address, 300, "%s://%.*s:%u", certificate ? "https" : "http",
	         (int)(strrchr(settings->listen, ':') - settings->listen), settings->listen,
	         listener_port(server->listener));
	return listener_start(server->listener, err);
}

/* ---- Watching ------------------------------------------------------------------------------- */

/* Any look at the ledger shows whether the store is there. */
static enum ibid_code look_at_store(struct server *server, struct store *store,
                                    struct ibid_err *err)
{
	struct arena arena = {0};
	struct command_row row;
	struct uuid none = {0};
	enum ibid_code code = store->ops->ready ? store->ops->ready(store, err) : IBID_OK;
	if (code)
		return code;
	int64_t began_us = env_steady_us(server->env);
	code = store_get_command(store, &arena, "-", &none, NULL, &row, err);
	metrics_store_asked(server->metrics, env_steady_us(server->env) - began_us);
	arena_release(&arena);
	return code == IBID_NOT_FOUND ? IBID_OK : code;
}

void server_note_store(struct server *server, enum ibid_code code, const struct ibid_err *err)
{
	pthread_mutex_lock(&server->lock);
	enum ibid_code before = atomic_load(&server->store_code);
	if (before != IBID_GONE) { /* nothing brings that file back */
		if (code == IBID_GONE)
			server->gone = *err;
		atomic_store(&server->store_code, code);
	}
	pthread_mutex_unlock(&server->lock);
	if (code == before || before == IBID_GONE)
		return;
	if (code == IBID_GONE)
		LOG(&server->log, IBID_LOG_ERROR, "store.file_gone", {"reason", log_text(err->text)},
		    {"effect", log_text("no command is taken any more, and the server stops")});
	else
		LOG(&server->log, code ? IBID_LOG_ERROR : IBID_LOG_INFO, "serve.store",
		    {"reachable", log_text(code ? "no" : "yes")},
		    {"reason", log_text(code ? err->text : NULL)});
}

/* The numbers stay as they were where the store does not answer. */
static void measure(struct server *server, struct store *store)
{
	struct arena arena = {0};
	struct measurement measurement;
	struct ibid_err err = {0};
	if (!store->ops->measure(store, &arena, &measurement, &err))
		metrics_measured(server->metrics, &measurement);
	else
		LOG(&server->log, IBID_LOG_WARN, "serve.not_measured", {"reason", log_text(err.text)});
	arena_release(&arena);
}

static void measure_outbox(struct server *server, struct store *store)
{
	struct ibid_err err = {0};
	if (outbox_metrics_measure(server->outbox, store, &err))
		LOG(&server->log, IBID_LOG_WARN, "serve.not_measured", {"reason", log_text(err.text)});
}

/* What is due beside the look at the store. */
enum { DUE_LEDGER = 1, DUE_OUTBOX = 2 };

static void ask_store(struct server *server, unsigned due)
{
	pthread_mutex_lock(&server->lock);
	struct generation *generation = server->generation;
	generation->requests++;
	pthread_mutex_unlock(&server->lock);
	struct store *store = generation->ibid->ledger->store;
	struct ibid_err err = {0};
	enum ibid_code code = look_at_store(server, store, &err);
	server_note_store(server, code, &err);
	if (!code && due & DUE_LEDGER)
		measure(server, store);
	if (!code && due & DUE_OUTBOX)
		measure_outbox(server, store);
	pthread_mutex_lock(&server->lock);
	generation->requests--;
	pthread_mutex_unlock(&server->lock);
}

static void *probe(void *user)
{
	struct server *server = user;
	int64_t ask_us = 0, measure_us = 0, outbox_us = 0;
	while (!atomic_load(&server->ended)) {
		int64_t now_us = env_steady_us(server->env);
		if (now_us >= ask_us) {
			unsigned due = (now_us >= measure_us ? DUE_LEDGER : 0) |
			               (now_us >= outbox_us ? DUE_OUTBOX : 0);
			ask_store(server, due);
			now_us = env_steady_us(server->env);
			ask_us = now_us + PROBE_PAUSE_US;
			if (due & DUE_LEDGER)
				measure_us = now_us + MEASURE_PAUSE_US;
			if (due & DUE_OUTBOX)
				outbox_us = now_us + OUTBOX_PAUSE_US;
		}
		env_sleep_us(server->env, WATCH_PAUSE_US);
	}
	return NULL;
}

/* To systemd, where that started us. */
static void notify(const char *state)
{
	const char *path = getenv("NOTIFY_SOCKET");
	struct sockaddr_un to = {.sun_family = AF_UNIX};
	size_t size = path ? strlen(path) : 0;
	if (!size || size >= sizeof to.sun_path || (*path != '/' && *path != '@'))
		return;
	memcpy(to.sun_path, path, size);
	if (*path == '@')
		to.sun_path[0] = 0;
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return;
	socklen_t length = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + size);
	(void)!sendto(fd, state, strlen(state), MSG_NOSIGNAL, (struct sockaddr *)&to, length);
	close(fd);
}

/* ---- Living --------------------------------------------------------------------------------- */

/* Until whoever began has its answer, or the time for that is over. */
static bool drain(struct server *server)
{
	int64_t until_us = env_steady_us(server->env) + server->settings->drain_us;
	pthread_mutex_lock(&server->lock);
	while (server->active && env_steady_us(server->env) < until_us) {
		pthread_mutex_unlock(&server->lock);
		env_sleep_us(server->env, WATCH_PAUSE_US / 10);
		pthread_mutex_lock(&server->lock);
	}
	size_t left = server->active;
	pthread_mutex_unlock(&server->lock);
	if (left)
		LOG(&server->log, IBID_LOG_WARN, "serve.drain_incomplete",
		    {"requests", log_int((int64_t)left)});
	return left == 0;
}

static bool store_is_gone(struct server *server)
{
	return atomic_load(&server->store_code) == IBID_GONE;
}

static void live(struct server *server, const sigset_t *signals)
{
	struct timespec pause = {.tv_nsec = SIGNAL_PAUSE_MS * 1000000L};
	for (;;) {
		int signal = sigtimedwait(signals, NULL, &pause);
		close_retired(server);
		if (signal == SIGTERM || signal == SIGINT || store_is_gone(server))
			return;
		if (signal == SIGHUP) {
			notify("RELOADING=1");
			reload(server);
			notify("READY=1");
		}
	}
}

static enum ibid_code stop(struct server *server, struct ibid_err *err)
{
	int64_t patience_us = server->settings->drain_us / 2;
	int64_t read_by_us = env_steady_us(server->env) +
	                     (patience_us < PATIENCE_US ? patience_us : PATIENCE_US);
	atomic_store(&server->stopping, true);
	notify("STOPPING=1");
	pthread_mutex_lock(&server->lock);
	size_t active = server->active;
	pthread_mutex_unlock(&server->lock);
	listener_drain(server->listener, read_by_us);
	LOG(&server->log, IBID_LOG_INFO, "serve.stopping", {"requests", log_int((int64_t)active)});
	if (drain(server))
		return IBID_OK;
	/* Connections that wait for a command can't be closed; the process ends with them. What their
	 * commands come to is the store's to say. */
	return err_set(err, IBID_BUSY, "requests were still running when the time to finish was over");
}

/* A token that is good now, among those of all tenants. */
static bool has_token(struct store *store, int64_t now_us)
{
	struct arena arena = {0};
	struct token_filter filter = {.limit = TOKENS_PAGE};
	struct token_row *rows = NULL;
	struct ibid_err ignored;
	size_t count = TOKENS_PAGE;
	bool found = false;
	while (!found && count == TOKENS_PAGE) {
		if (store_list_tokens(store, &arena, &filter, &rows, &count, &ignored))
			found = true; /* nobody knows */
		for (size_t i = 0; !found && i < count; i++)
			found = !rows[i].revoked_us && (!rows[i].expires_us || rows[i].expires_us > now_us);
		if (!found && count)
			filter.after = rows[count - 1].token.id;
	}
	arena_release(&arena);
	return found;
}

/* Where every answer would be a 401. */
static void tell_nobody_admitted(const struct server *server)
{
	if ((server->on_loopback && server->settings->open_tenant) ||
	    has_token(server->generation->ibid->ledger->store, env_wall_us(server->env)))
		return;
	LOG(&server->log, IBID_LOG_WARN, "serve.nobody_admitted",
	    {"reason", log_text("requests need a token, and the store has none that is valid: each is "
	                        "answered with 401")},
	    {"advice", log_text("ibid token create --store URL --tenant TENANT --client CLIENT; or, on "
	                        "loopback only, http.open.tenant=TENANT")});
}

/* One that serves nobody, whole or half-built. */
static void server_free(struct server *server)
{
	upstream_free(server->upstream);
	asked_free(server->asked);
	generation_close(server->generation);
	access_free(server->access);
	metrics_free(server->metrics);
	outbox_metrics_free(server->outbox);
	pthread_mutex_destroy(&server->lock);
	free(server);
}

enum ibid_code server_run(const struct settings *settings, struct log log, server_ready *ready,
                          void *user, struct ibid_err *err)
{
	struct server *server = calloc(1, sizeof *server);
	struct arena arena = {0};
	pthread_t prober, inquirer;
	char address[300];
	sigset_t signals;
	if (!server)
		return err_set(err, IBID_NOMEM, "out of memory");
	server->settings = settings;
	server->memory.bytes = (size_t)settings->memory_bytes;
	server->log = log;
	server->env = env_system();
	sigemptyset(&signals);
	sigaddset(&signals, SIGTERM);
	sigaddset(&signals, SIGINT);
	sigaddset(&signals, SIGHUP);
	pthread_sigmask(SIG_BLOCK, &signals, NULL);
	signal(SIGPIPE, SIG_IGN);
	pthread_mutex_init(&server->lock, NULL);
	server->metrics = metrics_new(server->env);
	server->outbox = outbox_metrics_new();
	enum ibid_code code = server->metrics && server->outbox
	                          ? IBID_OK
	                          : err_set(err, IBID_NOMEM, "out of memory");
	if (!code)
		code = access_new(server->env, settings->rate, &server->access, err);
	if (!code)
		code = upstream_new(settings, server->env, &server->upstream, err);
	if (!code && server->upstream && !(server->asked = asked_new()))
		code = err_set(err, IBID_NOMEM, "out of memory");
	if (!code)
		code = generation_open(server, &server->generation, err);
	if (!code)
		code = start_relays(server, err);
	if (!code)
		code = start_listener(server, &arena, address, err);
	if (code) {
		relays_stop(server->relays);
		server_free(server);
		arena_release(&arena);
		return code;
	}
	bool probed = !pthread_create(&prober, NULL, probe, server);
	bool inquires = server->upstream && !pthread_create(&inquirer, NULL, inquiry_run, server);
	tell_nobody_admitted(server);
	LOG(&server->log, IBID_LOG_INFO, "serve.ready", {"address", log_text(address)});
	notify("READY=1");
	ready(user, address);
	live(server, &signals);
	code = stop(server, err);
	atomic_store(&server->ended, true);
	pthread_mutex_lock(&server->lock);
	struct relays *relays = server->relays;
	server->relays = NULL; /* a thread of the workers may still want to wake it */
	pthread_mutex_unlock(&server->lock);
	relays_stop(relays);
	if (code)
		return code; /* with everything as it is, and in use: the caller ends the process */
	if (probed)
		pthread_join(prober, NULL);
	if (inquires)
		pthread_join(inquirer, NULL);
	listener_close(server->listener);
	close_retired(server);
	if (store_is_gone(server)) {
		*err = server->gone;
		code = IBID_GONE;
	}
	server_free(server);
	arena_release(&arena);
	return code;
}
