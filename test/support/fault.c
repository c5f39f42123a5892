/* SPDX-License-Identifier: Apache-2.0 */
#include "support/fault.h"

#include "support/bed.h"

#include <assert.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* ---- Counting ------------------------------------------------------------------------------- */

enum { POINTS_MAX = 16384, POINT_SIZE = 160 };

/* Children write to the same memory. */
static struct counted {
	pthread_mutex_t lock;
	pid_t owner;
	char path[64];
	const char *engine;
	unsigned acted, distinct, of_kind[FAULT_KINDS];
	char points[POINTS_MAX][POINT_SIZE];
} * counted;

static void print_points(void)
{
	if (getpid() != counted->owner || !counted->acted)
		return;
	printf("points %s %u (fail %u, lose %u, kill %u), %u faults\n", counted->engine,
	       counted->distinct, counted->of_kind[FAULT_FAIL], counted->of_kind[FAULT_LOSE],
	       counted->of_kind[FAULT_KILL], counted->acted);
	fflush(stdout);
}

static void share_counts(void)
{
	pthread_mutexattr_t attributes;
	counted = mmap(NULL, sizeof *counted, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
	               0);
	assert(counted != MAP_FAILED);
	pthread_mutexattr_init(&attributes);
	pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
	pthread_mutex_init(&counted->lock, &attributes);
	pthread_mutexattr_destroy(&attributes);
	counted->owner = getpid();
	atexit(print_points);
}

void fault_path(const char *name)
{
	if (!counted)
		share_counts();
	snprintf(counted->path, sizeof counted->path, "%s", name);
}

bool fault_takes_part(unsigned long point, unsigned share)
{
	const char *whole = getenv("IBID_TEST_WHOLE"), *seed = getenv("IBID_TEST_SEED");
	if (bed_kind == BED_SQLITE || (whole && strcmp(whole, "1") == 0))
		return true;
	return (point + (seed ? strtoul(seed, NULL, 10) : 0)) % share == 0;
}

unsigned fault_count(void)
{
	return counted->acted;
}

static void count(const struct fault *fault, const struct hook_point *point)
{
	char text[POINT_SIZE];
	unsigned i = 0;
	assert(counted); /* fault_path was called */
	pthread_mutex_lock(&counted->lock);
	snprintf(text, sizeof text, "%s|%s|%d|%d", counted->path, point->statement, (int)point->kind,
	         (int)fault->kind);
	while (i < counted->distinct && strcmp(counted->points[i], text) != 0)
		i++;
	assert(i < POINTS_MAX);
	if (i == counted->distinct) {
		memcpy(counted->points[counted->distinct++], text, sizeof text);
		counted->of_kind[fault->kind]++;
	}
	counted->engine = point->engine;
	counted->acted++;
	pthread_mutex_unlock(&counted->lock);
}

/* ---- Acting --------------------------------------------------------------------------------- */

/* A statement that is not sent yet is no place for a kill where it travels with others: the flush
 * is. */
bool fault_meets(const struct fault *fault, const struct hook_point *point)
{
	bool before = point->kind == HOOK_BEFORE;
	if (fault->statement && strcmp(fault->statement, point->statement) != 0)
		return false;
	switch (fault->kind) {
	case FAULT_FAIL: return before;
	case FAULT_LOSE: return !before;
	case FAULT_KILL: return !before || strcmp(point->engine, "sqlite") == 0;
	case FAULT_KINDS: break;
	}
	return false;
}

static bool acts(struct fault *fault, const struct hook_point *point)
{
	if (fault->tell)
		fault->tell(fault->user, point);
	if (!fault_meets(fault, point) || atomic_fetch_add(&fault->points, 1) + 1 != fault->at)
		return false;
	atomic_store(&fault->fired, true);
	count(fault, point);
	if (fault->kind == FAULT_KILL)
		kill(getpid(), SIGKILL);
	return true;
}

static bool at_point(void *user, const struct hook_point *point)
{
	struct fault *fault = user;
	bool fails = acts(fault, point);
	return fault->also && at_point(fault->also, point) ? true : fails;
}

struct store *fault_set(void *user, struct store *store)
{
	struct fault *fault = user;
	fault->hook = (struct hook){at_point, fault};
	store->hook = &fault->hook;
	return store;
}
