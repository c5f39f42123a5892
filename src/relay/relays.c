/* SPDX-License-Identifier: Apache-2.0 */
#include "relay/relays.h"

#include "contract/event.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { NAME_SIZE = 128, BUSY_MS = 5000 };

struct relay_thread {
	struct relay relay;
	struct log log;
	pthread_t thread;
	bool running;
	struct relay_counts counts; /* when it had ended */
};

struct relays {
	struct arena arena;
	struct store *store;
	struct contracts *contracts;
	struct destination *destinations;
	struct relay_thread *threads; /* one for each */
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

static bool has(const struct relays *relays, const char *name)
{
	for (size_t i = 0; i < relays->count; i++)
		if (strcmp(relays->destinations[i].name, name) == 0)
			return true;
	return false;
}

/* An event that nobody would bring anywhere must not wait for ever unseen. */
static enum ibid_code check_contracts(const struct relays *relays, struct ibid_err *err)
{
	for (size_t i = 0; i < contracts_event_count(relays->contracts); i++) {
		const struct contract *contract = contracts_event_at(relays->contracts, i);
		const struct texts *to = &contract->event->deliver_to;
		for (size_t k = 0; k < to->count; k++)
			if (!has(relays, to->items[k]))
				return err_set(err, IBID_INVALID,
				               "event %s is delivered to %s, and the settings have no "
				               "relay.destinations.%s",
				               contract->name, to->items[k], to->items[k]);
	}
	return IBID_OK;
}

static void tell_unserved(const struct relays *relays, struct log log,
                          const struct contract *contract, const char *type)
{
	const struct event_contract *event = contracts_event(relays->contracts, type);
	if (event && event->deliver_to.count)
		return;
	LOG(&log, IBID_LOG_WARN, "relay.unserved", {"eventType", log_text(type)},
	    {"contract", log_text(contract->name)},
	    {"reason",
	     log_text(event ? "the contract of the event delivers it to nobody: deliver_to is empty"
	                    : "the event has no contract, which would say where it is delivered")});
}

/* What is emitted and goes nowhere: as it may be meant, but who runs a relay should know. */
static void tell_all_unserved(const struct relays *relays, struct log log)
{
	for (size_t i = 0; i < contracts_count(relays->contracts); i++) {
		const struct contract *contract = contracts_at(relays->contracts, i);
		for (size_t k = 0; k < contract->emits.count; k++)
			tell_unserved(relays, log, contract, contract->emits.items[k]);
	}
}

static void *run_thread(void *user)
{
	struct relay_thread *thread = user;
	struct ibid_err err = {0};
	if (relay_run(&thread->relay, &err))
		LOG(&thread->log, IBID_LOG_ERROR, "relay.ended", {"reason", log_text(err.text)});
	return NULL;
}

static enum ibid_code start_thread(struct relays *relays, size_t at,
                                   const struct relays_options *options, struct ibid_err *err)
{
	struct relay_thread *thread = &relays->threads[at];
	const struct destination *destination = &relays->destinations[at];
	thread->log = options->log;
	relay_init(&thread->relay, &(struct relay_options){
	                               .store = relays->store,
	                               .broker = destination->broker,
	                               .contracts = relays->contracts,
	                               .name = relays->name,
	                               .env = options->env,
	                               .log = options->log,
	                               .lease_us = options->lease_us,
	                               .batch = options->batch,
	                               .policy = destination->retry.policy,
	                               .limits = destination->retry.limits,
	                           });
	if (pthread_create(&thread->thread, NULL, run_thread, thread)) {
		relay_release(&thread->relay);
		return err_set(err, IBID_NOMEM, "out of threads");
	}
	thread->running = true;
	return IBID_OK;
}

/* A connection for each lane that may be at work at once, and one to lease them. */
static enum ibid_code open_ledger(struct relays *relays, const struct relays_options *options,
                                  struct ibid_err *err)
{
	const struct store_options store = {
	    .url = options->store,
	    .connections = (unsigned)((OUTBOX_LANES + 1) * relays->count),
	    .busy_ms = BUSY_MS,
	    .env = options->env,
	    .log = options->log,
	};
	int version;
	enum ibid_code code = contracts_load(options->contracts, &relays->contracts, err);
	if (!code)
		code = store_open(&store, &relays->store, err);
	return code ? code : relays->store->ops->check_schema(relays->store, &version, err);
}

static enum ibid_code open_all(struct relays *relays, const struct relays_options *options,
                               struct ibid_err *err)
{
	enum ibid_code code = destinations_open(&relays->arena, options->settings,
	                                        options->setting_count, options->env, options->log,
	                                        &relays->destinations, &relays->count, err);
	if (code)
		return code;
	if (options->only && !has(relays, options->only))
		return err_set(
		    err, IBID_INVALID,
		    "there is no destination %s in the settings: write relay.destinations.%s.KIND "
		    "(docs/destinations.md)",
		    options->only, options->only);
	if (!relays->count)
		return err_set(err, IBID_INVALID,
		               "there is no destination: give one, such as "
		               "relay.destinations.out.file.path=events.ndjson");
	relays->threads = arena_array(&relays->arena, relays->count, sizeof *relays->threads);
	if (!relays->threads)
		return err_set(err, IBID_NOMEM, "out of memory");
	code = open_ledger(relays, options, err);
	return code ? code : check_contracts(relays, err);
}

enum ibid_code relays_start(const struct relays_options *options, struct relays **ret,
                            struct ibid_err *err)
{
	struct relays *relays = calloc(1, sizeof *relays);
	if (!relays)
		return err_set(err, IBID_NOMEM, "out of memory");
	make_name(options->env, relays->name);
	enum ibid_code code = open_all(relays, options, err);
	if (!code)
		tell_all_unserved(relays, options->log);
	for (size_t i = 0; !code && i < relays->count; i++)
		if (!options->only || strcmp(options->only, relays->destinations[i].name) == 0)
			code = start_thread(relays, i, options, err);
	if (code)
		relays_stop(relays);
	else
		*ret = relays;
	return code;
}

void relays_halt(struct relays *relays)
{
	if (!relays)
		return;
	for (size_t i = 0; relays->threads && i < relays->count; i++)
		if (relays->threads[i].running)
			relay_stop(&relays->threads[i].relay);
	for (size_t i = 0; relays->threads && i < relays->count; i++) {
		if (!relays->threads[i].running)
			continue;
		pthread_join(relays->threads[i].thread, NULL);
		relays->threads[i].counts = relay_counts(&relays->threads[i].relay);
		relays->threads[i].running = false;
		relay_release(&relays->threads[i].relay);
	}
}

void relays_stop(struct relays *relays)
{
	if (!relays)
		return;
	relays_halt(relays);
	destinations_close(relays->destinations, relays->count);
	contracts_free(relays->contracts);
	store_close(relays->store);
	arena_release(&relays->arena);
	free(relays);
}

void relays_wake(struct relays *relays)
{
	for (size_t i = 0; relays && i < relays->count; i++)
		if (relays->threads[i].running)
			relay_wake(&relays->threads[i].relay);
}

size_t relays_count(const struct relays *relays)
{
	return relays->count;
}

const char *relays_destination(const struct relays *relays, size_t at)
{
	return relays->destinations[at].name;
}

struct relay_counts relays_counts(struct relays *relays, size_t at)
{
	return relays->threads[at].running ? relay_counts(&relays->threads[at].relay)
	                                   : relays->threads[at].counts;
}

struct store *relays_store(const struct relays *relays)
{
	return relays->store;
}
