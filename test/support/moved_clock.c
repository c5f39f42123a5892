/* SPDX-License-Identifier: Apache-2.0 */
/* moved_clock.c -- the program `ibid` with a clock that a test moves.
 *
 * The tests link it with --wrap=env_system. The file named by IBID_TEST_CLOCK holds two 64-bit
 * numbers: by how many microseconds the steady and the wall clock of the process are ahead.
 * Sleeping takes its usual time, and so does everything that is no business of env's: sockets,
 * libcurl, the database. */
#include "base/env.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

struct env *__real_env_system(void);
struct env *__wrap_env_system(void);

enum { STEADY, WALL, CLOCKS };

static const int64_t *ahead_us;

static int64_t ahead(int clock)
{
	return __atomic_load_n(&ahead_us[clock], __ATOMIC_SEQ_CST);
}

static int64_t moved_wall(struct env *env)
{
	(void)env;
	return env_wall_us(__real_env_system()) + ahead(WALL);
}

static int64_t moved_steady(struct env *env)
{
	(void)env;
	return env_steady_us(__real_env_system()) + ahead(STEADY);
}

static void usual_sleep(struct env *env, int64_t us)
{
	(void)env;
	env_sleep_us(__real_env_system(), us);
}

static void usual_random(struct env *env, void *ret, size_t size)
{
	(void)env;
	env_random(__real_env_system(), ret, size);
}

/* Before main, while there is one thread. */
__attribute__((constructor)) static void map_clock(void)
{
	const char *path = getenv("IBID_TEST_CLOCK");
	int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
	void *map = fd < 0 ? MAP_FAILED
	                   : mmap(NULL, CLOCKS * sizeof *ahead_us, PROT_READ, MAP_SHARED, fd, 0);
	if (map == MAP_FAILED)
		abort(); /* a test that believes it moves the clock */
	close(fd);
	ahead_us = map;
}

struct env *__wrap_env_system(void)
{
	static struct env moved = {moved_wall, moved_steady, usual_sleep, usual_random};
	return &moved;
}
