/* SPDX-License-Identifier: Apache-2.0 */
/* memory.c -- the server's memory while many requests pass through it.
 *
 * First executions, retries and conflicts in a mix, until there were as many as were asked for.
 * What is resident is looked at all along: memory that is kept for each request, or leaks, shows as
 * growth from the first tenth on, when caches, pools and threads are what they will be. */
#include "serve.h"

#include <signal.h>

enum {
	CONNECTIONS = 32,
	HOURS = 3600, /* the load ends when it is told to */
	LOOK_PAUSE_US = 100000,
	GROWTH_PERCENT = 10, /* that is allowed, ... */
	GROWTH_MIB = 4,      /* ... and what a small process may have on top */
};

static const double mib = 1 << 20;

static double requests_of(const struct serve *serve)
{
	return serve_metric(serve, "ibid_http_requests_total", "/v1/commands/{operation}\"");
}

static double resident_of(const struct serve *serve)
{
	return serve_metric(serve, "process_resident_memory_bytes", NULL) / mib;
}

struct course {
	double tenth, half, end, highest; /* MiB */
};

static struct course watch(const struct bench *bench, const struct serve *serve, double requests)
{
	struct course course = {0};
	for (double done = 0; done < requests; env_sleep_us(bench->env, LOOK_PAUSE_US)) {
		done = requests_of(serve);
		double now = resident_of(serve);
		if (done >= 0.1 * requests && course.tenth == 0)
			course.tenth = now;
		if (done >= 0.5 * requests && course.half == 0)
			course.half = now;
		if (now > course.highest)
			course.highest = now;
		course.end = now;
	}
	return course;
}

static void run(struct target *target)
{
	const struct bench *bench = target->bench;
	struct serve *serve = serve_start(target, NULL);
	progress("memory: %s, requests: %.0f", target->store, (double)bench->requests);
	serve_first(serve, "/v1/commands/pay-serialized", "mix");
	struct program wrk = wrk_start(&(struct load_plan){
	    .address = serve->address,
	    .path = "/v1/commands/pay-serialized",
	    .kind = LOAD_MIX,
	    .prefix = "mix",
	    .connections = CONNECTIONS,
	    .seconds = HOURS,
	});
	struct course course = watch(bench, serve, (double)bench->requests);
	kill(wrk.pid, SIGINT);
	struct load load = wrk_end(&wrk);
	serve_settle(serve);
	double conflicts = serve_metric(serve, "ibid_commands_total", "decision=\"conflict\"");
	printf("%-9s %10lu %10lu %10.1f %10.1f %10.1f %10.1f\n", target->store,
	       (unsigned long)load.answers, (unsigned long)load.refused, course.tenth, course.half,
	       course.end, course.highest);
	fflush(stdout);
	if (load.broken || (double)load.refused > conflicts ||
	    conflicts - (double)load.refused > CONNECTIONS)
		die("memory", "there were other answers than 2xx and conflicts");
	if (course.end > course.tenth * (1 + GROWTH_PERCENT / 100.0) + GROWTH_MIB)
		die("memory", "the server grows with the number of requests");
	serve_stop(serve);
}

void part_memory(const struct bench *bench)
{
	printf(
	    "\nMemory of the server over %.0f requests: MiB resident after 10, 50 and 100 %%, and at "
	    "most;\nmore than %d %% and %d MiB of growth from the first to the last fails\n"
	    "%-9s %10s %10s %10s %10s %10s %10s\n",
	    (double)bench->requests, GROWTH_PERCENT, GROWTH_MIB, "store", "answers", "conflicts",
	    "10 %", "50 %", "100 %", "highest");
	for (const char *const *store = bench->stores; *store; store++) {
		struct target *target = target_new(bench, *store, "memory");
		run(target);
		target_free(target);
	}
}
