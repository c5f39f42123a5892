/* SPDX-License-Identifier: Apache-2.0 */
/* http.c -- one payment over HTTP, beside what a service without ibid would do at best.
 *
 * The load is wrk's, over connections that stay, against `ibid serve` as a process of its own.
 * Beside it bare INSERTs: on PostgreSQL pgbench's with as many clients, on SQLite those of one
 * writer and of as many. wrk ends without the answers to its last requests, so what it counted may
 * be less than what was done, by a request for each connection and round; all other sums must be
 * equal. */
#include "payment.h"
#include "serve.h"

#include <math.h>
#include <stdio.h>

enum {
	SECONDS_LEAST = 2, /* of a round: tools count in whole ones, and need a moment to get going */
	ROUTE_MAX = 64,
};

/* What a way's rounds have in common. */
struct site {
	const struct serve *serve;
	enum load_kind kind;
	const char *prefix; /* of its keys, where they come again */
	uint64_t answers;   /* of all rounds */
	uint64_t rounds;
};

static void demand_good(const char *tool, const struct load *load)
{
	if (load->refused)
		die(tool, "not all answers were good ones");
	if (load->broken)
		die(tool, "connections broke");
}

/* ---- Rounds --------------------------------------------------------------------------------- */

static void note(struct site *site, const struct load *load, struct round *ret)
{
	site->answers += load->answers;
	site->rounds++;
	*ret = load->round;
}

static void path_of(const char *operation, char ret[ROUTE_MAX])
{
	snprintf(ret, ROUTE_MAX, "/v1/commands/%s", operation);
}

static void play_wrk(const struct way *way, int callers, struct round *ret)
{
	struct site *site = (struct site *)(uintptr_t)way->data;
	char path[ROUTE_MAX];
	path_of(way->operation, path);
	struct load load = wrk_run(&(struct load_plan){
	    .address = site->serve->address,
	    .path = path,
	    .kind = site->kind,
	    .prefix = site->prefix,
	    .connections = callers,
	    .seconds = (int)way->target->bench->seconds,
	});
	demand_good("wrk", &load);
	note(site, &load, ret);
}

static void play_pgbench(const struct way *way, int callers, struct round *ret)
{
	struct load load = pgbench_run(way->target, callers, (int)way->target->bench->seconds);
	demand_good("pgbench", &load);
	note((struct site *)(uintptr_t)way->data, &load, ret);
}

/* ---- Sums ----------------------------------------------------------------------------------- */

struct sums {
	uint64_t payments, events, audits, whole;
};

static uint64_t count_of(struct target *target, const char *sqlite, const char *postgres)
{
	return (uint64_t)driver_number(target_admin(target), on_sqlite(target) ? sqlite : postgres);
}

static struct sums sums_of(struct target *target)
{
	driver_run(target_admin(target), "analyze");
	return (struct sums){
	    .payments = count_of(target, "select count(*) from payment",
	                         "select count(*) from payment"),
	    .events = count_of(target, "select count(*) from ibid_event",
	                       "select count(*) from ibid.event"),
	    .audits = count_of(target, "select count(*) from ibid_audit",
	                       "select count(*) from ibid.audit"),
	    .whole = (uint64_t)payments_protected(target),
	};
}

/* Payments that were made without ibid, and answers to first requests. */
struct tally {
	uint64_t bare, first, first_unheard, again;
};

static struct tally tally_of(const struct team *team)
{
	struct tally tally = {0};
	for (size_t i = 0; i < team->count; i++) {
		const struct way *way = &team->ways[i];
		const struct site *site = way->data;
		if (!way->play)
			tally.bare += team_steps(team, i);
		else if (!way->operation)
			tally.bare += site->answers;
		else if (site->kind == LOAD_AGAIN)
			tally.again += site->answers;
		else {
			tally.first += site->answers;
			tally.first_unheard += site->rounds * (uint64_t)team->callers;
		}
	}
	return tally;
}

/* A figure of work that was not done, or done twice, would be worth nothing. */
static void check(struct target *target, const struct team *team, const struct serve *serve,
                  const struct serve *forgetful, uint64_t sent_before)
{
	static const char again[] = "decision=\"executed\",replayed=\"true\"";
	serve_settle(serve);
	struct tally told = tally_of(team);
	struct sums sums = sums_of(target);
	uint64_t executed = (uint64_t)serve_metric(serve, "ibid_commands_total",
	                                           "decision=\"executed\",replayed=\"false\"");
	uint64_t replayed = (uint64_t)(serve_metric(serve, "ibid_commands_total", again) +
	                               serve_metric(forgetful, "ibid_commands_total", again));
	uint64_t heard = told.first + sent_before;
	if (sums.whole != executed || sums.events != executed || sums.audits != executed)
		die("http", "a command lacks its payment, event or audit entry, or has two");
	if (sums.payments != executed + told.bare)
		die("http", "not as many payments as were made");
	if (executed < heard || executed - heard > told.first_unheard || replayed < told.again)
		die("http", "not as many payments as were answered");
	printf("%-9s %7d  answers 2xx: %lu; payments, events and audit entries of commands: %lu each\n",
	       target->store, team->callers, (unsigned long)(heard + told.again),
	       (unsigned long)executed);
}

/* ---- The ways ------------------------------------------------------------------------------- */

enum { SITES = 7, SITE_BARE = 6 };

static size_t add_bare(struct target *target, struct site *site, struct way *ret)
{
	if (!on_sqlite(target)) {
		ret[0] = (struct way){"pgbench, bare INSERT", target, .play = play_pgbench, .data = site};
		return 1;
	}
	ret[0] = (struct way){"bare INSERT, one writer", target, pay_bare, .drives = true,
	                      .callers = 1};
	ret[1] = (struct way){"bare INSERT", target, pay_bare, .drives = true};
	return 2;
}

static size_t ways_on(struct target *target, struct site sites[SITES], struct way ret[WAYS_MAX])
{
	size_t count = add_bare(target, &sites[SITE_BARE], ret);
	int first = (int)count;
	const struct way ways[] = {
	    {"HTTP", target, .play = play_wrk, .operation = "pay", .data = &sites[0]},
	    {"HTTP, serialize_by", target, .play = play_wrk, .operation = "pay-serialized",
	     .data = &sites[1]},
	    {"HTTP, replay", target, .play = play_wrk, .operation = "pay", .against = first,
	     .data = &sites[2]},
	    {"HTTP, replay, serialize_by", target, .play = play_wrk, .operation = "pay-serialized",
	     .against = first + 1, .data = &sites[3]},
	    {"HTTP, replay from store", target, .play = play_wrk, .operation = "pay", .against = first,
	     .data = &sites[4]},
	    {"HTTP, replay from store, s.", target, .play = play_wrk, .operation = "pay-serialized",
	     .against = first + 1, .data = &sites[5]},
	};
	for (size_t i = 0; i < sizeof ways / sizeof *ways; i++)
		ret[count++] = ways[i];
	return count;
}

static void compare(struct target *target, int callers)
{
	struct serve *serve = serve_start(target, NULL);
	struct serve *forgetful = serve_start(target, "http.replay_memory=0s");
	struct site sites[SITES] = {
	    {serve, LOAD_FIRST, .prefix = "-"},         {serve, LOAD_FIRST, .prefix = "-"},
	    {serve, LOAD_AGAIN, .prefix = "again"},     {serve, LOAD_AGAIN, .prefix = "again"},
	    {forgetful, LOAD_AGAIN, .prefix = "again"}, {forgetful, LOAD_AGAIN, .prefix = "again"},
	};
	struct way ways[WAYS_MAX];
	struct team team;
	struct figures figures;
	size_t count = ways_on(target, sites, ways);
	progress("http: %s, callers: %d", target->store, callers);
	serve_first(serve, "/v1/commands/pay", "again");
	serve_first(serve, "/v1/commands/pay-serialized", "again");
	team_init(&team, ways, count, callers);
	team.timed = true;
	team_measure(&team, &figures);
	figures_print(&team, &figures);
	serve_settle(forgetful);
	check(target, &team, serve, forgetful, 2 * (uint64_t)LOAD_KEYS);
	team_release(&team);
	serve_stop(forgetful);
	serve_stop(serve);
}

void part_http(const struct bench *bench)
{
	struct bench own = *bench;
	char title[64];
	int most = bench->callers[bench->caller_counts - 1];
	own.seconds = bench->seconds > SECONDS_LEAST ? ceil(bench->seconds) : SECONDS_LEAST;
	snprintf(title, sizeof title, "One payment over HTTP, rounds of %g s", own.seconds);
	figures_head(title, "per second", true);
	for (const char *const *store = bench->stores; *store; store++) {
		struct target *target = target_new(&own, *store, "http");
		compare(target, most);
		target_free(target);
	}
}
