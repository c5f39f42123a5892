/* SPDX-License-Identifier: Apache-2.0 */
#include "relay/fleet.h"

#include "contract/event.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { NAME_SIZE = 128, BUSY_MS = 5000 };

struct ship {
	struct relay relay;
	struct log log;
	pthread_t thread;
	bool sails;
	struct relay_counts counts; /* when it had ended */
};

struct fleet {
	struct arena arena;
	struct store *store;
	struct contracts *contracts;
	struct destination *destinations;
	struct ship *ships; /* one for each */
	size_t count;
	char name[NAME_SIZE];
};

/* Unique among processes, and says where to look: host, process, and a random part, because numbers
 * of processes come again. */
static void make_name(struct env *env, char ret[NAME_SIZE])
{
	char host[64] = "";
	uint32_t random;
	env_random(env, &random, sizeof random);
	(void)gethostname(host, sizeof host - 1);
	snprintf(ret, NAME_SIZE, "%s/%ld/%08x", host, (long)getpid(), random);
}

static bool has(const struct fleet *fleet, const char *name)
{
	for (size_t i = 0; i < fleet->count; i++)
		if (strcmp(fleet->destinations[i].name, name) == 0)
			return true;
	return false;
}

/* An event that nobody would bring anywhere must not wait for ever unseen. */
static enum ibid_code check_contracts(const struct fleet *fleet, struct ibid_err *err)
{
	for (size_t i = 0; i < contracts_event_count(fleet->contracts); i++) {
		const struct contract *contract = contracts_event_at(fleet->contracts, i);
		const struct texts *to = &contract->event->deliver_to;
		for (size_t k = 0; k < to->count; k++)
			if (!has(fleet, to->items[k]))
				return err_set(err, IBID_INVALID,
				               "event %s is delivered to %s, and the settings have no "
				               "relay.destinations.%s",
				               contract->name, to->items[k], to->items[k]);
	}
	return IBID_OK;
}

static void tell_unserved(const struct fleet *fleet, struct log log,
                          const struct contract *contract, const char *type)
{
	const struct event_contract *event = contracts_event(fleet->contracts, type);
	if (event && event->deliver_to.count)
		return;
	LOG(&log, IBID_LOG_WARN, "relay.unserved", {"eventType", log_text(type)},
	    {"contract", log_text(contract->name)},
	    {"reason",
	     log_text(event ? "the contract of the event delivers it to nobody: deliver_to is empty"
	                    : "the event has no contract, which would say where it is delivered")});
}

/* What is emitted and goes nowhere: as it may be meant, but who runs a relay should know. */
static void tell_all_unserved(const struct fleet *fleet, struct log log)
{
	for (size_t i = 0; i < contracts_count(fleet->contracts); i++) {
		const struct contract *contract = contracts_at(fleet->contracts, i);
		for (size_t k = 0; k < contract->emits.count; k++)
			tell_unserved(fleet, log, contract, contract->emits.items[k]);
	}
}

static void *sail(void *user)
{
	struct ship *ship = user;
	struct ibid_err err = {0};
	if (relay_run(&ship->relay, &err))
		LOG(&ship->log, IBID_LOG_ERROR, "relay.ended", {"reason", log_text(err.text)});
	return NULL;
}

static enum ibid_code launch(struct fleet *fleet, size_t at, const struct fleet_options *options,
                             struct ibid_err *err)
{
	struct ship *ship = &fleet->ships[at];
	const struct destination *destination = &fleet->destinations[at];
	ship->log = options->log;
	relay_init(&ship->relay, &(struct relay_options){
	                             .store = fleet->store,
	                             .broker = destination->broker,
	                             .contracts = fleet->contracts,
	                             .name = fleet->name,
	                             .env = options->env,
	                             .log = options->log,
	                             .lease_us = options->lease_us,
	                             .batch = options->batch,
	                             .policy = destination->retry.policy,
	                             .limits = destination->retry.limits,
	                         });
	if (pthread_create(&ship->thread, NULL, sail, ship)) {
		relay_release(&ship->relay);
		return err_set(err, IBID_NOMEM, "out of threads");
	}
	ship->sails = true;
	return IBID_OK;
}

/* A connection for each lane that may be at work at once, and one to lease them. */
static enum ibid_code open_ledger(struct fleet *fleet, const struct fleet_options *options,
                                  struct ibid_err *err)
{
	const struct store_options store = {
	    .url = options->store,
	    .connections = (unsigned)((OUTBOX_LANES + 1) * fleet->count),
	    .busy_ms = BUSY_MS,
	    .env = options->env,
	    .log = options->log,
	};
	int version;
	enum ibid_code code = contracts_load(options->contracts, &fleet->contracts, err);
	if (!code)
		code = store_open(&store, &fleet->store, err);
	return code ? code : fleet->store->ops->check_schema(fleet->store, &version, err);
}

static enum ibid_code open_all(struct fleet *fleet, const struct fleet_options *options,
                               struct ibid_err *err)
{
	enum ibid_code code = destinations_open(&fleet->arena, options->settings,
	                                        options->setting_count, options->env, options->log,
	                                        &fleet->destinations, &fleet->count, err);
	if (code)
		return code;
	if (options->only && !has(fleet, options->only))
		return err_set(
		    err, IBID_INVALID,
		    "there is no destination %s in the settings: write relay.destinations.%s.KIND "
		    "(docs/destinations.md)",
		    options->only, options->only);
	if (!fleet->count)
		return err_set(err, IBID_INVALID,
		               "there is no destination: give one, such as "
		               "relay.destinations.out.file.path=events.ndjson");
	fleet->ships = arena_array(&fleet->arena, fleet->count, sizeof *fleet->ships);
	if (!fleet->ships)
		return err_set(err, IBID_NOMEM, "out of memory");
	code = open_ledger(fleet, options, err);
	return code ? code : check_contracts(fleet, err);
}

enum ibid_code fleet_start(const struct fleet_options *options, struct fleet **ret,
                           struct ibid_err *err)
{
	struct fleet *fleet = calloc(1, sizeof *fleet);
	if (!fleet)
		return err_set(err, IBID_NOMEM, "out of memory");
	make_name(options->env, fleet->name);
	enum ibid_code code = open_all(fleet, options, err);
	if (!code)
		tell_all_unserved(fleet, options->log);
	for (size_t i = 0; !code && i < fleet->count; i++)
		if (!options->only || strcmp(options->only, fleet->destinations[i].name) == 0)
			code = launch(fleet, i, options, err);
	if (code)
		fleet_stop(fleet);
	else
		*ret = fleet;
	return code;
}

void fleet_halt(struct fleet *fleet)
{
	if (!fleet)
		return;
	for (size_t i = 0; fleet->ships && i < fleet->count; i++)
		if (fleet->ships[i].sails)
			relay_stop(&fleet->ships[i].relay);
	for (size_t i = 0; fleet->ships && i < fleet->count; i++) {
		if (!fleet->ships[i].sails)
			continue;
		pthread_join(fleet->ships[i].thread, NULL);
		fleet->ships[i].counts = relay_counts(&fleet->ships[i].relay);
		fleet->ships[i].sails = false;
		relay_release(&fleet->ships[i].relay);
	}
}

void fleet_stop(struct fleet *fleet)
{
	if (!fleet)
		return;
	fleet_halt(fleet);
	destinations_close(fleet->destinations, fleet->count);
	contracts_free(fleet->contracts);
	store_close(fleet->store);
	arena_release(&fleet->arena);
	free(fleet);
}

void fleet_wake(struct fleet *fleet)
{
	for (size_t i = 0; fleet && i < fleet->count; i++)
		if (fleet->ships[i].sails)
			relay_wake(&fleet->ships[i].relay);
}

size_t fleet_count(const struct fleet *fleet)
{
	return fleet->count;
}

const char *fleet_destination(const struct fleet *fleet, size_t at)
{
	return fleet->destinations[at].name;
}

struct relay_counts fleet_counts(struct fleet *fleet, size_t at)
{
	return fleet->ships[at].sails ? relay_counts(&fleet->ships[at].relay) : fleet->ships[at].counts;
}

struct store *fleet_store(const struct fleet *fleet)
{
	return fleet->store;
}
