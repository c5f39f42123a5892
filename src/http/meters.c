/* SPDX-License-Identifier: Apache-2.0 */
#include "http/meters.h"

#include "command/result.h"
#include "http/outbox_metrics.h"
#include "http/upstream.h"

#include <assert.h>
#include <stdlib.h>

enum { PAGE_BYTES_MAX = 16 << 20 };

enum ibid_code meters_open(struct generation *generation, struct metrics *metrics, bool passes,
                           struct ibid_err *err)
{
	const struct contracts *contracts = generation->ibid->ledger->contracts;
	size_t operations = contracts_count(contracts), routes = generation->routes.count;
	bool good = true;
	generation->operation_meters = calloc(operations + 1, sizeof *generation->operation_meters);
	generation->route_meters = calloc(routes + 2, sizeof *generation->route_meters);
	if (!generation->operation_meters || !generation->route_meters)
		return err_set(err, IBID_NOMEM, "out of memory");
	for (size_t i = 0; i < operations; i++) {
		generation->operation_meters[i] = metrics_operation(metrics,
		                                                    contracts_at(contracts, i)->name);
		good = good && generation->operation_meters[i];
		if (good && contracts_at(contracts, i)->upstream.given)
			meter_calls_out(generation->operation_meters[i]);
	}
	for (size_t i = 0; i < routes; i++) {
		const struct route *route = &generation->routes.items[i];
		generation->route_meters[i] = metrics_route(metrics, route->method, route->path);
		good = good && generation->route_meters[i];
	}
	/* What leads nowhere is one route, whatever was asked for: names from outside are no labels.
	 * Likewise what only passes through. */
	generation->route_meters[routes] = metrics_route(metrics, "any", "none");
	good = good && generation->route_meters[routes];
	if (passes) {
		generation->route_meters[routes + 1] = metrics_route(
		    metrics, generation->routes.pass->method, generation->routes.pass->path);
		good = good && generation->route_meters[routes + 1];
	}
	return good ? IBID_OK : err_set(err, IBID_NOMEM, "out of memory");
}

void meters_close(struct generation *generation)
{
	free(generation->operation_meters);
	free(generation->route_meters);
}

static struct operation_meter *operation_meter(const struct generation *generation,
                                               const struct contract *contract)
{
	const struct contracts *contracts = generation->ibid->ledger->contracts;
	size_t i = 0, count = contracts_count(contracts);
	while (i < count && contracts_at(contracts, i) != contract)
		i++;
	assert(i < count); /* a request's contract is its generation's */
	return generation->operation_meters[i];
}

void meters_command(const struct request *request, const struct ibid_result *result)
{
	meters_outcome(request->generation, request->contract, result,
	               env_steady_us(request->server->env) - request->submitted_us);
}

void meters_outcome(const struct generation *generation, const struct contract *contract,
                    const struct ibid_result *result, int64_t took_us)
{
	struct operation_meter *meter = operation_meter(generation, contract);
	if (result)
		meter_decided(meter, result->decision, result->replayed, took_us);
	else
		meter_undecided(meter, took_us);
}

void meters_call(const struct generation *generation, const struct contract *contract,
                 const struct call *call)
{
	meter_call(operation_meter(generation, contract), call->end, call->took_us);
}

void meters_inquiry(const struct generation *generation, const struct contract *contract,
                    enum inquiry_outcome outcome)
{
	meter_inquiry(operation_meter(generation, contract), outcome);
}

void meters_request(const struct request *request, int64_t took_us)
{
	const struct generation *generation = request->generation;
	size_t i = generation->routes.count;
	if (request->route == generation->routes.pass)
		i++;
	else if (request->route)
		i = (size_t)(request->route - generation->routes.items);
	meter_request(generation->route_meters[i], request->answer.status, took_us);
}

/* ---- The page ------------------------------------------------------------------------------- */

static struct metrics_now look(struct server *server)
{
	struct metrics_now now = {
	    .store_up = !atomic_load(&server->store_code),
	    .queue_limit = (size_t)server->settings->queue,
	};
	if (server->upstream) {
		now.upstream = true;
		now.places = atomic_load(&server->upstream->places[PLACE_COMMAND]);
		now.places_limit = (size_t)server->settings->upstream_calls;
	}
	pthread_mutex_lock(&server->lock);
	now.contracts = contracts_count(server->generation->ibid->ledger->contracts);
	now.queue_tasks = worker_pool_busy(server->generation->workers);
	for (struct generation *generation = server->retired; generation; generation = generation->next)
		now.queue_tasks += worker_pool_busy(generation->workers);
	pthread_mutex_unlock(&server->lock);
	return now;
}

void run_metrics(struct request *request)
{
	struct answer *answer = &request->answer;
	struct metrics_now now = look(request->server);
	struct str out = STR_INIT(PAGE_BYTES_MAX);
	metrics_write(request->server->metrics, &now, &out);
	pthread_mutex_lock(&request->server->lock);
	outbox_metrics_note(request->server->outbox, request->server->relays);
	pthread_mutex_unlock(&request->server->lock);
	outbox_metrics_write(request->server->outbox, &out);
	answer->body = out.failed ? NULL : arena_strndup(&request->arena, out.data, out.size);
	if (answer->body) {
		answer->status = 200;
		answer->type = "text/plain; version=0.0.4; charset=utf-8";
		answer->size = out.size;
	} else {
		answer_problem(answer, &request->arena, PROBLEM_UNAVAILABLE, "out of memory");
	}
	str_release(&out);
}
