/* SPDX-License-Identifier: Apache-2.0 */
/* serve.h -- `ibid serve` on a target, as a process of its own. */
#ifndef BENCH_SERVE_H
#define BENCH_SERVE_H

#include "load.h"

struct serve {
	struct program program;
	char address[64]; /* http://127.0.0.1:PORT */
	int port;
	struct env *env;
};

/* Requests need no token: they are those of the tenant "acme". It writes its log, a line for each
 * request, to where nobody reads it. `setting`: one more; NULL: none. */
struct serve *serve_start(const struct target *target, const char *setting);
void serve_stop(struct serve *serve); /* it finishes what it has begun */

/* Send the payments LOAD_AGAIN sends again, for the first time. */
void serve_first(const struct serve *serve, const char *path, const char *prefix);

/* The sum of a metric's samples whose labels hold all of `label`; NULL: any. */
double serve_metric(const struct serve *serve, const char *name, const char *label);

/* Until nothing is on its way any more: a load tool leaves without its last answers. */
void serve_settle(const struct serve *serve);

#endif
