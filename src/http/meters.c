/* SPDX-License-Identifier: Apache-2.0 */
#include "http/meters.h"

#include "http/outbox_metrics.h"
#include "http/upstream.h"
#include "ledger/result.h"

#include <assert.h>
#include <stdlib.h>

enum { PAGE_BYTES_MAX = 16 << 20 };

enum ibid_code meters_open(struct house *house, struct metrics *metrics, bool passes,
                           struct ibid_err *err)
{
	const struct contracts *contracts = house->ibid->ledger->contracts;
	size_t operations = contracts_count(contracts), routes = house->routes.count;
	bool good = true;
	house->operation_meters = calloc(operations + 1, sizeof *house->operation_meters);
	house->route_meters = calloc(routes + 2, sizeof *house->route_meters);
	if (!house->operation_meters || !house->route_meters)
		return err_set(err, IBID_NOMEM, "out of memory");
	for (size_t i = 0; i < operations; i++) {
		house->operation_meters[i] = metrics_operation(metrics, contracts_at(contracts, i)->name);
		good = good && house->operation_meters[i];
		if (good && contracts_at(contracts, i)->upstream.given)
			meter_calls_out(house->operation_meters[i]);
	}
	for (size_t i = 0; i < routes; i++) {
		const struct route *route = &house->routes.items[i];
		house->route_meters[i] = metrics_route(metrics, route->method, route->path);
		good = good && house->route_meters[i];
	}
	/* What leads nowhere is one route, whatever was asked for: names from outside are no labels.
	 * Likewise what only passes through. */
	house->route_meters[routes] = metrics_route(metrics, "any", "none");
	good = good && house->route_meters[routes];
	if (passes) {
		house->route_meters[routes + 1] = metrics_route(metrics, house->routes.pass->method,
		                                                house->routes.pass->path);
		good = good && house->route_meters[routes + 1];
	}
	return good ? IBID_OK : err_set(err, IBID_NOMEM, "out of memory");
}

void meters_close(struct house *house)
{
	free(house->operation_meters);
	free(house->route_meters);
}

static struct operation_meter *operation_meter(const struct house *house,
                                               const struct contract *contract)
{
	const struct contracts *contracts = house->ibid->ledger->contracts;
	size_t i = 0, count = contracts_count(contracts);
	while (i < count && contracts_at(contracts, i) != contract)
		i++;
	assert(i < count); /* a request's contract is its house's */
	return house->operation_meters[i];
}

void meters_command(const struct request *request, const struct ibid_result *result)
{
	meters_outcome(request->house, request->contract, result,
	               env_steady_us(request->server->env) - request->submitted_us);
}

void meters_outcome(const struct house *house, const struct contract *contract,
                    const struct ibid_result *result, int64_t took_us)
{
	struct operation_meter *meter = operation_meter(house, contract);
	if (result)
		meter_decided(meter, result->decision, result->replayed, took_us);
	else
		meter_undecided(meter, took_us);
}

void meters_call(const struct house *house, const struct contract *contract,
                 const struct call *call)
{
	meter_call(operation_meter(house, contract), call->end, call->took_us);
}

void meters_inquiry(const struct house *house, const struct contract *contract,
                    enum inquiry_outcome outcome)
{
	meter_inquiry(operation_meter(house, contract), outcome);
}

void meters_request(const struct request *request, int64_t took_us)
{
	const struct house *house = request->house;
	size_t i = house->routes.count;
	if (request->route == house->routes.pass)
		i++;
	else if (request->route)
		i = (size_t)(request->route - house->routes.items);
	meter_request(house->route_meters[i], request->answer.status, took_us);
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
	now.contracts = contracts_count(server->house->ibid->ledger->contracts);
	now.queue_tasks = crew_busy(server->house->crew);
	for (struct house *house = server->retired; house; house = house->next)
		now.queue_tasks += crew_busy(house->crew);
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
	outbox_metrics_note(request->server->outbox, request->server->fleet);
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
