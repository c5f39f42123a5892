/* SPDX-License-Identifier: Apache-2.0 */
/* bench.h -- what a run was asked for, and how its parts talk.
 *
 * A measuring program that can't do its work stops: there is nothing to recover, and half a table
 * would be read as a whole one. */
#ifndef BENCH_BENCH_H
#define BENCH_BENCH_H

#include "base/env.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { CALLERS_MAX = 64, CALLER_COUNTS_MAX = 8, ROUNDS_MAX = 99 };

struct bench {
	struct env *env;
	const char *const *stores; /* ends with NULL */
	double seconds;            /* of a round */
	int rounds;
	int callers[CALLER_COUNTS_MAX]; /* how many at once, one table each */
	size_t caller_counts;
	int64_t ledger_rows; /* of the large ledger */
	int64_t requests;    /* of the part `memory` */
	int64_t backlog;     /* of the part `relay`: the larger one */
	const char *way;     /* of `payments`: those whose titles have it in them; NULL: all */
	bool ordered_keys;   /* keys of commands grow with time, as UUIDv7 do; otherwise random */
};

/* Seconds of the steady clock. */
double bench_now(const struct bench *bench);

/* To the standard error: what takes long says how far it is. */
__attribute__((format(printf, 1, 2))) void progress(const char *format, ...);
__attribute__((noreturn)) void die(const char *what, const char *why);

/* The parts of a run: each prints one table. */
void part_payments(const struct bench *bench);
void part_replay(const struct bench *bench);
void part_written(const struct bench *bench);
void part_hot_rows(const struct bench *bench);
void part_ledger(const struct bench *bench);
void part_canonical(const struct bench *bench);
void part_http(const struct bench *bench);
void part_memory(const struct bench *bench);
void part_relay(const struct bench *bench);

#endif
