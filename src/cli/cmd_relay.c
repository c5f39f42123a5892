/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_relay.c -- bring committed events to their destinations, until it is told to stop. */
#include "cli/cli.h"
#include "cli/output.h"
#include "cli/process.h"
#include "relay/fleet.h"

#include <signal.h>

static enum ibid_code start(const struct args *args, const struct settings *settings,
                            struct store *store, const struct contracts *contracts,
                            struct fleet **ret, struct ibid_err *err)
{
	return fleet_start(
	    &(struct fleet_options){
	        .store = store,
	        .contracts = contracts,
	        .settings = settings->destinations,
	        .setting_count = settings->destination_count,
	        .only = args->values[OPT_DESTINATION],
	        .lease_us = settings->relay_lease_us,
	        .batch = (size_t)settings->relay_batch,
	        .env = env_system(),
	        .log = process_log(),
	    },
	    ret, err);
}

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
	struct store *store = NULL;
	struct contracts *contracts = NULL;
	struct fleet *fleet = NULL;
	sigset_t signals;
	int taken;
	block(&signals);
	enum ibid_code code = process_settings(&arena, args, &settings, &err);
	if (!code)
		code = open_store_at(settings.store, false, true, &store, &err);
	if (!code)
		code = load_contracts(settings.contracts, &contracts, &err);
	if (!code)
		code = start(args, &settings, store, contracts, &fleet, &err);
	if (!code) {
		say("relays %zu destination%s; Ctrl-C ends it", fleet_count(fleet),
		    fleet_count(fleet) == 1 ? "" : "s");
		sigwait(&signals, &taken);
		fleet_stop(fleet);
	}
	int exit = code ? say_err(&err) : CLI_OK;
	contracts_free(contracts);
	store_close(store);
	arena_release(&arena);
	return exit;
}
