/* SPDX-License-Identifier: Apache-2.0 */
/* relay.c -- from PostgreSQL to Kafka: how fast, how soon, with how much memory, and what it leaves
 * behind; beside it the usual publisher that claims and marks rows.
 *
 * `ibid relay` is a process of its own, as users run it, with its default settings: transactions,
 * fenced. Its rate is that of its evidence, from the second batch on. Needs tools/with-kafka. */
#include "claimer.h"
#include "load.h"

#include "base/id.h"
#include "bench_sql.h"
#include "store/outbox.h"

#include <libpq-fe.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

enum {
	EVENTS = 200000,
	AGGREGATES = 5000,
	PARTITIONS = 4,
	BATCH = 2000,          /* the relay's own, by default */
	CLAIM_SECONDS = 20,    /* at most: it need not come to an end to be measured */
	ROUNDS_MOST = 5,       /* each fills a database */
	LOOK_PAUSE_US = 20000, /* between two looks at how far the relay is */
	LOOKS_MAX = 600 * 50,  /* ten minutes */
	SMALL_BACKLOG = 10000,
	SMALL_ROUNDS = 20,
	PINNED_EVENTS = 1000000,
	WRITERS = 4,
	WRITES_A_SECOND = 1000,
	WARM_WRITES = 10000, /* the broker is a program that warms up; nobody measures these */
	WRITES = 20000,
};

struct scene {
	struct target *target;
	const char *brokers, *control, *broker_dir;
	char topic[64];
};

/* ---- Scenery -------------------------------------------------------------------------------- */

static void make_topic(struct scene *scene)
{
	static int made;
	char partitions[8];
	snprintf(scene->topic, sizeof scene->topic, "bench-%d-%d", (int)getpid(), made++);
	snprintf(partitions, sizeof partitions, "%d", PARTITIONS);
	const char *words[] = {scene->control, "topic",    scene->broker_dir,
	                       scene->topic,   partitions, NULL};
	struct program program = program_start(words, false);
	if (program_wait(&program))
		die("relay", "no topic could be made");
}

static void fill(const struct scene *scene, const char *procedure, int64_t first, int64_t last)
{
	char call[256];
	struct driver *admin = target_admin(scene->target);
	snprintf(call, sizeof call, "call %s(%lld, %lld, '%s', %d)", procedure, (long long)first,
	         (long long)last, scene->topic, AGGREGATES);
	driver_run(admin, "set synchronous_commit = off");
	driver_run(admin, call);
	driver_run(admin, "reset synchronous_commit");
}

static void settle(const struct scene *scene)
{
	struct driver *admin = target_admin(scene->target);
	driver_run(admin, "vacuum (analyze) ibid.event");
	driver_run(admin, "vacuum (analyze) outbox_event");
	driver_run(admin, "checkpoint");
}

static void set_scene(const struct bench *bench, struct scene *scene)
{
	scene->target = target_new(bench, "postgres", "relay");
	driver_run(target_admin(scene->target), sql_bench_relay_make);
	make_topic(scene);
}

/* ---- The relay ------------------------------------------------------------------------------ */

static struct program relay_start(const struct scene *scene)
{
	char brokers[256];
	snprintf(brokers, sizeof brokers, "relay.destinations.out.kafka.brokers=%s", scene->brokers);
	const char *words[] = {BENCH_IBID,    "relay",         "--store", scene->target->url,
	                       "--contracts", BENCH_CONTRACTS, brokers,   NULL};
	return program_start(words, true);
}

static void relay_stop(struct program *relay)
{
	kill(relay->pid, SIGTERM);
	if (program_wait(relay))
		die("ibid relay", "it did not end well");
}

/* The most that was resident, in kilobytes. */
static long relay_memory(const struct program *relay)
{
	char path[64], line[128];
	long kilobytes = 0;
	snprintf(path, sizeof path, "/proc/%d/status", (int)relay->pid);
	FILE *file = fopen(path, "r");
	while (file && fgets(line, sizeof line, file))
		if (strncmp(line, "VmHWM:", 6) == 0)
			kilobytes = strtol(line + 6, NULL, 10);
	if (file)
		fclose(file);
	return kilobytes;
}

/* Until so many have arrived, by the relay's own count, which is a second behind at most. */
static void relay_await(const struct scene *scene, int64_t events)
{
	struct driver *admin = target_admin(scene->target);
	for (int look = 0; driver_number(admin, "select sum(delivered) from ibid.relay_lane") < events;
	     look++) {
		if (look == LOOKS_MAX)
			die("ibid relay", "events do not arrive");
		env_sleep_us(scene->target->bench->env, LOOK_PAUSE_US);
	}
}

/* Events a second by the evidence that was written since some moment of the wall clock, without the
 * first batch. */
static double evidence_rate(const struct scene *scene, int64_t since_us)
{
	char sql[512];
	snprintf(sql, sizeof sql,
	         "with arrived as (select at from ibid.delivery where at >= to_timestamp(%lld / 1e6)), "
	         "first as (select min(at) as at from arrived) "
	         "select (count(*) filter (where arrived.at > first.at) "
	         "/ extract(epoch from max(arrived.at) - min(first.at)))::bigint from arrived, first",
	         (long long)since_us);
	return (double)driver_number(target_admin(scene->target), sql);
}

/* ---- How fast ------------------------------------------------------------------------------- */

static void measure_rate(const struct bench *bench, struct scene *scene)
{
	int rounds = bench->rounds < ROUNDS_MOST ? bench->rounds : ROUNDS_MOST;
	double relayed[ROUNDS_MOST], claimed[ROUNDS_MOST], ratios[ROUNDS_MOST];
	long memory = 0;
	for (int i = -1; i < rounds; i++) { /* the first one warms the broker up: nobody measures it */
		progress("relay: round %d of %d", i + 1, rounds);
		set_scene(bench, scene);
		fill(scene, "bench_fill", 0, EVENTS - 1);
		fill(scene, "bench_fill_claimed", 0, EVENTS - 1);
		settle(scene);
		struct program relay = relay_start(scene);
		relay_await(scene, EVENTS);
		long most = relay_memory(&relay);
		memory = most > memory ? most : memory;
		relay_stop(&relay);
		if (driver_number(target_admin(scene->target), "select count(*) from ibid.delivery") !=
		    EVENTS)
			die("relay", "evidence is missing, or there is too much");
		double rate = evidence_rate(scene, 0);
		struct claimed got = claimers_run(scene->target, scene->brokers, OUTBOX_LANES, BATCH,
		                                  CLAIM_SECONDS);
		target_free(scene->target);
		if (i < 0)
			continue;
		relayed[i] = rate;
		claimed[i] = (double)got.events / got.seconds;
		ratios[i] = relayed[i] / claimed[i];
	}
	printf("%-44s %10.0f\n%-44s %10.0f\n%-44s %9.1fx\n%-44s %10.1f\n",
	       "ibid relay, ordered and fenced, events/s",
	       figures_percentile(relayed, (size_t)rounds, 50), "claim and mark, ordered, events/s",
	       figures_percentile(claimed, (size_t)rounds, 50), "times as many",
	       figures_percentile(ratios, (size_t)rounds, 50), "memory of the relay, at most, MiB",
	       (double)memory / 1024);
	fflush(stdout);
}

/* ---- How soon ------------------------------------------------------------------------------- */

struct written {
	char id[UUID_TEXT_SIZE];
	double at; /* when its commit was known, in seconds of the wall clock */
};

struct writer {
	const struct scene *scene;
	int number, count;
	struct written *written;
	pthread_t thread;
};

/* At an even pace, whatever a commit takes. */
static void *write_events(void *user)
{
	struct writer *writer = user;
	struct env *env = writer->scene->target->bench->env;
	PGconn *conn = PQconnectdb(writer->scene->target->url);
	PGresult *prepared = PQprepare(conn, "write", sql_bench_relay_write, 0, NULL);
	if (PQresultStatus(prepared) != PGRES_COMMAND_OK)
		die("relay", PQerrorMessage(conn));
	PQclear(prepared);
	int64_t began_us = env_steady_us(env);
	for (int i = 0; i < writer->count; i++) {
		struct written *written = &writer->written[i];
		char aggregate[32], version[16];
		const char *values[] = {written->id, aggregate, version, writer->scene->topic};
		int64_t wait_us = began_us + (int64_t)i * WRITERS * 1000000 / WRITES_A_SECOND -
		                  env_steady_us(env);
		if (wait_us > 0)
			env_sleep_us(env, wait_us);
		uuid_write(uuid_v7(env), written->id);
		snprintf(aggregate, sizeof aggregate, "w%d-%d", writer->number, i % AGGREGATES);
		snprintf(version, sizeof version, "%d", i / AGGREGATES + 1);
		PGresult *result = PQexecPrepared(conn, "write", 4, values, NULL, NULL, 0);
		if (PQresultStatus(result) != PGRES_COMMAND_OK)
			die("relay", PQerrorMessage(conn));
		PQclear(result);
		written->at = (double)env_wall_us(env) / 1e6;
	}
	PQfinish(conn);
	return NULL;
}

static int by_id(const void *one, const void *two)
{
	return strcmp(((const struct written *)one)->id, ((const struct written *)two)->id);
}

/* From a commit to the acknowledgement, in milliseconds. */
static size_t read_times(const struct scene *scene, struct written *all, size_t count, double *ret)
{
	size_t known = 0;
	PGconn *conn = PQconnectdb(scene->target->url);
	PGresult *result = PQexec(conn, "select event_id, extract(epoch from at) from ibid.delivery");
	qsort(all, count, sizeof *all, by_id);
	for (int row = 0; row < PQntuples(result); row++) {
		struct written key = {0};
		snprintf(key.id, sizeof key.id, "%s", PQgetvalue(result, row, 0));
		const struct written *found = bsearch(&key, all, count, sizeof *all, by_id);
		if (found)
			ret[known++] = (strtod(PQgetvalue(result, row, 1), NULL) - found->at) * 1e3;
	}
	PQclear(result);
	PQfinish(conn);
	return known;
}

static void measure_latency(const struct bench *bench, struct scene *scene)
{
	enum { EACH = (WARM_WRITES + WRITES) / WRITERS, WARM = WARM_WRITES / WRITERS };
	struct writer writers[WRITERS];
	struct written *all = calloc(WRITES, sizeof *all);
	double *times = calloc(WRITES, sizeof *times);
	progress("relay: %d events at %d a second", WARM_WRITES + WRITES, WRITES_A_SECOND);
	set_scene(bench, scene);
	struct program relay = relay_start(scene);
	for (int i = 0; i < WRITERS; i++) {
		writers[i] = (struct writer){scene, i, EACH, calloc(EACH, sizeof *writers[i].written), 0};
		if (!writers[i].written || !all || !times ||
		    pthread_create(&writers[i].thread, NULL, write_events, &writers[i]))
			die("relay", "out of memory or threads");
	}
	for (int i = 0; i < WRITERS; i++) {
		pthread_join(writers[i].thread, NULL);
		memcpy(&all[i * (EACH - WARM)], &writers[i].written[WARM], (EACH - WARM) * sizeof *all);
		free(writers[i].written);
	}
	relay_await(scene, WARM_WRITES + WRITES);
	relay_stop(&relay);
	size_t known = read_times(scene, all, WRITES, times);
	if (known != WRITES)
		die("relay", "events did not arrive, or twice");
	printf("%-44s %10.1f\n%-44s %10.1f\n", "from commit to acknowledgement, p50, ms",
	       figures_percentile(times, known, 50), "p99, ms", figures_percentile(times, known, 99));
	fflush(stdout);
	free(all);
	free(times);
	target_free(scene->target);
}

/* ---- What it leaves behind ------------------------------------------------------------------ */

static int64_t dead_tuples(const struct scene *scene, const char *where)
{
	char sql[256];
	struct driver *fresh = driver_open_postgres(scene->target->url, false);
	env_sleep_us(scene->target->bench->env, 2 * 1000000); /* counted by the server now and then */
	snprintf(sql, sizeof sql,
	         "select coalesce(sum(n_dead_tup), 0) from pg_stat_user_tables where %s", where);
	int64_t dead = driver_number(fresh, sql);
	driver_close(fresh);
	return dead;
}

static void measure_dead(const struct bench *bench, struct scene *scene)
{
	set_scene(bench, scene);
	progress("relay: %d events under a pinned snapshot", PINNED_EVENTS);
	fill(scene, "bench_fill", 0, PINNED_EVENTS - 1);
	fill(scene, "bench_fill_claimed", 0, EVENTS - 1);
	settle(scene);
	struct driver *pin = target_driver(scene->target, 0);
	driver_run(pin, "begin isolation level repeatable read; select pg_current_xact_id()");
	struct program relay = relay_start(scene);
	relay_await(scene, PINNED_EVENTS);
	relay_stop(&relay);
	int64_t ours = dead_tuples(scene, "schemaname = 'ibid'");
	struct claimed got = claimers_run(scene->target, scene->brokers, OUTBOX_LANES, BATCH,
	                                  CLAIM_SECONDS);
	int64_t theirs = dead_tuples(scene, "relname = 'outbox_event'");
	driver_run(pin, "commit");
	printf("%-44s %10lld\n%-44s %10.0f\n", "dead tuples after a million events", (long long)ours,
	       "claim and mark, dead tuples a million",
	       got.events ? (double)theirs * 1e6 / (double)got.events : 0);
	fflush(stdout);
	target_free(scene->target);
}

/* ---- With much to do ------------------------------------------------------------------------ */

static void measure_backlog(const struct bench *bench, struct scene *scene)
{
	double small[SMALL_ROUNDS];
	struct env *env = bench->env;
	progress("relay: a backlog of %d, %d times", SMALL_BACKLOG, SMALL_ROUNDS);
	set_scene(bench, scene);
	struct program relay = {0};
	for (int i = 0; i < SMALL_ROUNDS; i++) {
		int64_t first = (int64_t)i * SMALL_BACKLOG;
		fill(scene, "bench_fill", first, first + SMALL_BACKLOG - 1);
		int64_t since_us = env_wall_us(env);
		relay = relay_start(scene);
		relay_await(scene, first + SMALL_BACKLOG);
		relay_stop(&relay);
		small[i] = evidence_rate(scene, since_us);
	}
	target_free(scene->target);
	progress("relay: a backlog of %lld", (long long)bench->backlog);
	set_scene(bench, scene);
	fill(scene, "bench_fill", 0, bench->backlog - 1);
	settle(scene);
	relay = relay_start(scene);
	relay_await(scene, EVENTS);
	relay_stop(&relay);
	double rate = figures_percentile(small, SMALL_ROUNDS, 50), large = evidence_rate(scene, 0);
	printf("%-44s %10.0f\nwith a backlog of %-25lld  %10.0f\n%-44s %9.2fx\n",
	       "with a backlog of 10,000, events/s", rate, (long long)bench->backlog, large,
	       "what an event costs with the larger one", rate / large);
	fflush(stdout);
	target_free(scene->target);
}

void part_relay(const struct bench *bench)
{
	struct scene scene = {.brokers = getenv("IBID_TEST_KAFKA"),
	                      .control = getenv("IBID_TEST_KAFKA_CONTROL"),
	                      .broker_dir = getenv("IBID_TEST_KAFKA_DIR")};
	if (!scene.brokers || !scene.control || !scene.broker_dir) {
		printf("\nThe relay: left out, there is no Kafka (tools/with-kafka)\n");
		return;
	}
	printf("\nFrom PostgreSQL to Kafka: %d events of %d aggregates into %d partitions\n", EVENTS,
	       AGGREGATES, PARTITIONS);
	measure_rate(bench, &scene);
	measure_latency(bench, &scene);
	measure_dead(bench, &scene);
	measure_backlog(bench, &scene);
}
