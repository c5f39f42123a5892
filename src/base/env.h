/* SPDX-License-Identifier: Apache-2.0 */
/* env.h -- the only access to time, sleep and randomness, so that tests can replace them. */
#ifndef BASE_ENV_H
#define BASE_ENV_H

#include <stddef.h>
#include <stdint.h>

/* Implementations are thread-safe. Wall time is microseconds since 1970 (UTC); steady time never
 * goes back and measures durations. */
struct env {
	int64_t (*wall_us)(struct env *env);
	int64_t (*steady_us)(struct env *env);
	void (*sleep_us)(struct env *env, int64_t us);
	void (*random)(struct env *env, void *ret, size_t size);
};

/* The machine's clock and the kernel's random source. Never freed. */
struct env *env_system(void);

/* For tests: a clock that only sleeping and explicit calls move, and random numbers from a seed. */
struct env_virtual {
	struct env env;
	int64_t now_us; /* use the functions: other threads may read */
	uint64_t state;
};
void env_virtual_init(struct env_virtual *virtual_env, int64_t now_us, uint64_t seed);
void env_virtual_advance(struct env_virtual *virtual_env, int64_t us);

static inline int64_t env_wall_us(struct env *env)
{
	return env->wall_us(env);
}
static inline int64_t env_steady_us(struct env *env)
{
	return env->steady_us(env);
}
static inline void env_sleep_us(struct env *env, int64_t us)
{
	env->sleep_us(env, us);
}
static inline void env_random(struct env *env, void *ret, size_t size)
{
	env->random(env, ret, size);
}

#endif
