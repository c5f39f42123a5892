/* SPDX-License-Identifier: Apache-2.0 */
#include "base/env.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/random.h>
#include <time.h>

static int64_t read_clock(clockid_t id)
{
	struct timespec now;
	clock_gettime(id, &now);
	return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

static int64_t system_wall(struct env *env)
{
	(void)env;
	return read_clock(CLOCK_REALTIME);
}

static int64_t system_steady(struct env *env)
{
	(void)env;
	return read_clock(CLOCK_MONOTONIC);
}

static void system_sleep(struct env *env, int64_t us)
{
	(void)env;
	struct timespec left = {.tv_sec = us / 1000000, .tv_nsec = us % 1000000 * 1000};
	while (us > 0 && nanosleep(&left, &left) != 0 && errno == EINTR)
		;
}

enum { ENTROPY_BYTES_MAX = 256 }; /* of one call */

static void system_random(struct env *env, void *ret, size_t size)
{
	(void)env;
	for (size_t done = 0; done < size;) {
		size_t part = size - done < ENTROPY_BYTES_MAX ? size - done : ENTROPY_BYTES_MAX;
		if (getentropy((char *)ret + done, part))
			abort(); /* without randomness ids would repeat, and a repeated id is a lost command */
		done += part;
	}
}

struct env *env_system(void)
{
	static struct env system = {system_wall, system_steady, system_sleep, system_random};
	return &system;
}

static int64_t virtual_now(struct env *env)
{
	return __atomic_load_n(&((struct env_virtual *)env)->now_us, __ATOMIC_SEQ_CST);
}

static void virtual_sleep(struct env *env, int64_t us)
{
	env_virtual_advance((struct env_virtual *)env, us);
}

/* splitmix64: any seed gives a full-period stream, and threads may share the counter. */
static void virtual_random(struct env *env, void *ret, size_t size)
{
	uint64_t *state = &((struct env_virtual *)env)->state;
	unsigned char *bytes = ret;
	for (size_t i = 0; i < size;) {
		uint64_t x = __atomic_add_fetch(state, UINT64_C(0x9E3779B97F4A7C15), __ATOMIC_SEQ_CST);
		x = (x ^ (x >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
		x = (x ^ (x >> 27)) * UINT64_C(0x94D049BB133111EB);
		x ^= x >> 31;
		for (int k = 0; k < 8 && i < size; k++, i++, x >>= 8)
			bytes[i] = (unsigned char)x;
	}
}

void env_virtual_init(struct env_virtual *virtual_env, int64_t now_us, uint64_t seed)
{
	*virtual_env = (struct env_virtual){
	    .env = {virtual_now, virtual_now, virtual_sleep, virtual_random},
	    .now_us = now_us,
	    .state = seed,
	};
}

void env_virtual_advance(struct env_virtual *virtual_env, int64_t us)
{
	__atomic_add_fetch(&virtual_env->now_us, us, __ATOMIC_SEQ_CST);
}
