/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_relay.c -- bring committed events to their destinations, until it is told to stop. */
#include "cli/cli.h"
#include "cli/log_writer.h"
#include "cli/output.h"
#include "cli/process.h"
#include "http/relay_page.h"
#include "relay/relays.h"

#include <malloc.h>
#include <signal.h>

/* Signals are taken here and nowhere else: before any thread is made. */
static void block(sigset_t *ret)
{
	sigemptyset(ret);
	sigaddset(ret, SIGTERM);
	sigaddset(ret, SIGINT);
	pthread_sigmask(SIG_BLOCK, ret, NULL);
	signal(SIGPIPE, SIG_IGN);
}

/* A relay has a dozen threads, most of them its Kafka client's, and each would keep a heap of its
 * own that grows to a batch. One for all of them is a fifth less memory, and no slower: they wait
 * for the store and the broker, not for each other. */
static void share_heap(void)
{
#ifdef __GLIBC__
	mallopt(M_ARENA_MAX, 1);
#endif
}

/* Until a signal, or until the store's file is gone: IBID_GONE. */
static enum ibid_code await_end(struct relays *relays, const struct log *log,
                                const sigset_t *signals, struct ibid_err *err)
{
	const struct timespec pause = {.tv_sec = 1};
	struct store *store = relays_store(relays);
	while (sigtimedwait(signals, NULL, &pause) < 0) {
		if (!store->ops->ready || store->ops->ready(store, err) != IBID_GONE)
			continue;
		LOG(log, IBID_LOG_ERROR, "store.file_gone", {"reason", log_text(err->text)},
		    {"effect", log_text("no event is sent any more, and the relay stops")});
		return IBID_GONE;
	}
	return IBID_OK;
}

int cmd_relay(const struct args *args)
{
	struct arena arena = {0};
	struct ibid_err err = {0};
	struct settings settings;
	struct relays *relays = NULL;
	struct relay_page *page = NULL;
	char address[300];
	sigset_t signals;
	block(&signals);
	share_heap();
	enum ibid_code code = process_settings(&arena, args, &settings, &err);
	struct relays_options options = settings_relays(&settings, log_writer_start());
	options.only = args->values[OPT_DESTINATION];
	if (!code)
		code = relays_start(&options, &relays, &err);
	if (!code && settings.relay_metrics)
		code = relay_page_open(settings.relay_metrics, relays, options.env, options.log, &page,
		                       address, &err);
	if (!code) {
		if (page)
			say("metrics at %s/metrics", address);
		say("relays to %zu destination%s; Ctrl-C ends it", relays_count(relays),
		    relays_count(relays) == 1 ? "" : "s");
		code = await_end(relays, &options.log, &signals, &err);
	}
	relay_page_close(page);
	relays_stop(relays);
	bool heard = log_writer_end();
	int exit = !code ? CLI_OK : heard ? say_err(&err) : CLI_ERROR;
	arena_release(&arena);
	return exit;
}
