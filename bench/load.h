/* SPDX-License-Identifier: Apache-2.0 */
/* load.h -- load tools that are not ours: wrk for HTTP, pgbench for bare INSERTs. */
#ifndef BENCH_LOAD_H
#define BENCH_LOAD_H

#include "rounds.h"

#include <stdio.h>
#include <sys/types.h>

/* What a tool says of its run. */
struct load {
	uint64_t answers; /* that it got */
	uint64_t refused; /* of these: not 2xx, or a transaction that failed */
	uint64_t broken;  /* requests without an answer: connections that broke, timeouts */
	struct round round;
};

enum load_kind { LOAD_FIRST, LOAD_AGAIN, LOAD_MIX }; /* see load/pay.lua */

struct load_plan {
	const char *address, *path; /* http://HOST:PORT, /PATH */
	enum load_kind kind;
	const char *prefix; /* of the keys that were sent before */
	int connections, seconds;
};

/* How many keys LOAD_AGAIN and LOAD_MIX send again. */
enum { LOAD_KEYS = 512 };

/* A program that runs, and what it prints. */
struct program {
	pid_t pid;
	FILE *out;
};
/* It ends with us. `quiet`: what it says on the standard error is dropped. */
struct program program_start(const char *const *words, bool quiet);
/* Its exit code, -1 when it did not exit by itself. */
int program_wait(struct program *program);

struct program wrk_start(const struct load_plan *plan);
struct load wrk_end(struct program *wrk); /* waits for its end; SIGINT makes that now */
struct load wrk_run(const struct load_plan *plan);

/* Payments by bare INSERTs into a PostgreSQL target, a connection each. */
struct load pgbench_run(const struct target *target, int clients, int seconds);

#endif
