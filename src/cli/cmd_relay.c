/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_relay.c -- bring committed events to their destinations, until it is told to stop. */
#include "cli/cli.h"
#include "cli/output.h"
#include "cli/process.h"
#include "relay/fleet.h"

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

int cmd_relay(const struct args *args)
{
	struct arena arena = {0};
	struct ibid_err err = {0};
	struct settings settings;
	struct fleet *fleet = NULL;
	sigset_t signals;
	int taken;
	block(&signals);
	enum ibid_code code = process_settings(&arena, args, &settings, &err);
	struct fleet_options options = settings_fleet(&settings, process_log());
	options.only = args->values[OPT_DESTINATION];
	if (!code)
		code = fleet_start(&options, &fleet, &err);
	if (!code) {
		say("relays to %zu destination%s; Ctrl-C ends it", fleet_count(fleet),
		    fleet_count(fleet) == 1 ? "" : "s");
		sigwait(&signals, &taken);
		fleet_stop(fleet);
	}
	int exit = code ? say_err(&err) : CLI_OK;
	arena_release(&arena);
	return exit;
}
