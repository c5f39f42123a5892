/* SPDX-License-Identifier: Apache-2.0 */
/* bench.c -- what protection costs: the same work bare, unprotected and protected, side by side.
 *
 * This file reads what is asked for and runs the parts; rounds.c is how all of them measure. */
#include "bench.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct part {
	const char *name;
	void (*run)(const struct bench *bench);
	const char *about;
} parts[] = {
    {"payments", part_payments, "one payment: bare, unprotected, ibid_submit, SQL API, replay"},
    {"replay", part_replay, "that a replay writes nothing"},
    {"written", part_written, "bytes of write-ahead log per command"},
    {"hot", part_hot_rows, "one UPDATE over 200 hot rows"},
    {"ledger", part_ledger, "a small ledger against a large one"},
    {"canonical", part_canonical, "canonical form and fingerprints"},
    {"http", part_http, "one payment over HTTP (wrk), beside pgbench and bare INSERTs"},
    {"memory", part_memory, "the server's memory over a million requests"},
    {"relay", part_relay, "from PostgreSQL to Kafka, beside claiming and marking rows"},
};
enum { PARTS = sizeof parts / sizeof *parts };

/* ---- Talk ----------------------------------------------------------------------------------- */

double bench_now(const struct bench *bench)
{
	return (double)env_steady_us(bench->env) / 1e6;
}

void progress(const char *format, ...)
{
	va_list args;
	va_start(args, format);
	fputs("bench: ", stderr);
	vfprintf(stderr, format, args);
	fputc('\n', stderr);
	va_end(args);
}

void die(const char *what, const char *why)
{
	progress("%s: %s", what, why);
	exit(1);
}

static void usage(FILE *out)
{
	fputs(
	    "usage: tools/with-postgres tools/with-kafka build-bench/bench/bench      (or: make "
	    "bench)\n"
	    "\n"
	    "Measures on both stores what protection costs. Tables go to the standard output,\n"
	    "progress to the standard error. It takes no arguments; the environment says what to do:\n"
	    "\n"
	    "  BENCH_ONLY=PART,...     these parts only\n"
	    "  BENCH_STORE=NAME        sqlite or postgres only\n"
	    "  BENCH_CALLERS=N,...     callers at once (1,8,32; at most 64)\n"
	    "  BENCH_WAY=TEXT          of the part payments: ways with this in their titles\n"
	    "  BENCH_SECONDS=S         length of a round (0.5; of the part http whole seconds, 2 at "
	    "least)\n"
	    "  BENCH_ROUNDS=N          rounds (11)\n"
	    "  BENCH_KEYS=KIND         keys of commands: random (UUIDv4) or ordered (UUIDv7)\n"
	    "  BENCH_ROWS=N            rows of the large ledger (10000000: 12 GB of disk a store)\n"
	    "  BENCH_REQUESTS=N        requests of the part memory (1000000)\n"
	    "  BENCH_BACKLOG=N         events of the larger backlog of the part relay (5000000)\n"
	    "\n"
	    "parts\n",
	    out);
	for (int i = 0; i < PARTS; i++)
		fprintf(out, "  %-10s  %s\n", parts[i].name, parts[i].about);
}

/* ---- What is asked for ---------------------------------------------------------------------- */

__attribute__((noreturn)) static void refuse(const char *name, const char *value,
                                             const char *wanted)
{
	fprintf(stderr, "bench: %s=%s: %s\n\n", name, value, wanted);
	usage(stderr);
	exit(2);
}

static double number_asked(const char *name, double otherwise, double least, double most)
{
	const char *text = getenv(name);
	char *end, wanted[96];
	if (!text)
		return otherwise;
	double value = strtod(text, &end);
	snprintf(wanted, sizeof wanted, "a number from %g to %.0f is needed", least, most);
	if (end == text || *end || !(value >= least && value <= most))
		refuse(name, text, wanted);
	return value;
}

static void read_callers(struct bench *bench)
{
	const char *text = getenv("BENCH_CALLERS");
	const char *at = text ? text : "1,8,32";
	for (;;) {
		char *end;
		long value = strtol(at, &end, 10);
		if (end == at || (*end && *end != ',') || value < 1 || value > CALLERS_MAX ||
		    bench->caller_counts == CALLER_COUNTS_MAX)
			refuse("BENCH_CALLERS", text,
			       "up to 8 numbers from 1 to 64 are needed, such as 1,8,32");
		bench->callers[bench->caller_counts++] = (int)value;
		if (!*end)
			return;
		at = end + 1;
	}
}

static void read_stores(struct bench *bench)
{
	static const char *const stores[] = {"sqlite", "postgres", NULL};
	static const char *const only_sqlite[] = {"sqlite", NULL};
	const char *text = getenv("BENCH_STORE");
	if (!text)
		bench->stores = stores;
	else if (strcmp(text, "sqlite") == 0)
		bench->stores = only_sqlite;
	else if (strcmp(text, "postgres") == 0)
		bench->stores = stores + 1;
	else
		refuse("BENCH_STORE", text, "sqlite or postgres is needed");
}

static void read_keys(struct bench *bench)
{
	const char *text = getenv("BENCH_KEYS");
	bench->ordered_keys = text && strcmp(text, "ordered") == 0;
	if (text && !bench->ordered_keys && strcmp(text, "random") != 0)
		refuse("BENCH_KEYS", text, "random or ordered is needed");
}

static int part_called(const char *name, size_t size)
{
	for (int i = 0; i < PARTS; i++) {
		if (strlen(parts[i].name) == size && strncmp(parts[i].name, name, size) == 0)
			return i;
	}
	return -1;
}

static void read_parts(bool wanted[PARTS])
{
	const char *text = getenv("BENCH_ONLY");
	for (int i = 0; i < PARTS; i++)
		wanted[i] = !text;
	for (const char *at = text; at;) {
		size_t size = strcspn(at, ",");
		int part = part_called(at, size);
		if (part < 0)
			refuse("BENCH_ONLY", text, "names of parts are needed");
		wanted[part] = true;
		at = at[size] ? at + size + 1 : NULL;
	}
}

int main(int argc, char **argv)
{
	struct bench bench = {.env = env_system(), .way = getenv("BENCH_WAY")};
	bool wanted[PARTS];
	bool help = argc == 2 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0);
	if (argc > 1) {
		if (!help)
			fprintf(stderr, "bench: %s is not known: it takes no arguments\n\n", argv[1]);
		usage(help ? stdout : stderr);
		return help ? 0 : 2;
	}
	bench.seconds = number_asked("BENCH_SECONDS", 0.5, 0.01, 3600);
	bench.rounds = (int)number_asked("BENCH_ROUNDS", 11, 1, ROUNDS_MAX);
	bench.ledger_rows = (int64_t)number_asked("BENCH_ROWS", 1e7, 1e4, 1e9);
	bench.requests = (int64_t)number_asked("BENCH_REQUESTS", 1e6, 1e4, 1e9);
	bench.backlog = (int64_t)number_asked("BENCH_BACKLOG", 5e6, 2e5, 1e8);
	read_callers(&bench);
	read_stores(&bench);
	read_keys(&bench);
	read_parts(wanted);
	printf("%d rounds of %g s, %s keys. Rates are medians of rounds, ratios medians of the ratios\n"
	       "to the round beside it, with the lowest and the highest of each.\n",
	       bench.rounds, bench.seconds, bench.ordered_keys ? "ordered" : "random");
	for (int i = 0; i < PARTS; i++) {
		if (wanted[i])
			parts[i].run(&bench);
	}
	return 0;
}
