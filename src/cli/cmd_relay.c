/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_relay.c -- bring committed events to their destinations, until it is told to stop. */
#include "cli/cli.h"
#include "cli/log_writer.h"
#include "cli/output.h"
#include "cli/process.h"
#include "http/relay_page.h"
#include "relay/fleet.h"

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

int cmd_relay(const struct args *args)
{
	struct arena arena = {0};
	struct ibid_err err = {0};
	struct settings settings;
	struct fleet *fleet = NULL;
	struct relay_page *page = NULL;
	char address[300];
	sigset_t signals;
	int taken;
	block(&signals);
	share_heap();
	enum ibid_code code = process_settings(&arena, args, &settings, &err);
	struct fleet_options options = settings_fleet(&settings, log_writer_start());
	options.only = args->values[OPT_DESTINATION];
	if (!code)
		code = fleet_start(&options, &fleet, &err);
	if (!code && settings.relay_metrics)
		code = relay_page_open(settings.relay_metrics, fleet, options.env, options.log, &page,
		                       address, &err);
	if (!code) {
		if (page)
			say("metrics at %s/metrics", address);
		say("relays to %zu destination%s; Ctrl-C ends it", fleet_count(fleet),
		    fleet_count(fleet) == 1 ? "" : "s");
		sigwait(&signals, &taken);
	}
	relay_page_close(page);
	fleet_stop(fleet);
	bool heard = log_writer_end();
	int exit = !code ? CLI_OK : heard ? say_err(&err) : CLI_ERROR;
	arena_release(&arena);
	return exit;
}
