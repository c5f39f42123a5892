/* SPDX-License-Identifier: Apache-2.0 */
#include "load.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { TIMES_MAX = 1 << 20 };

/* ---- Programs ------------------------------------------------------------------------------- */

static void become(const char *const *words, int out, bool quiet)
{
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	dup2(out, STDOUT_FILENO);
	if (quiet)
		dup2(open("/dev/null", O_WRONLY | O_CLOEXEC), STDERR_FILENO);
	execvp(words[0], (char *const *)(uintptr_t)words);
	_exit(127);
}

struct program program_start(const char *const *words, bool quiet)
{
	struct program program;
	int ends[2];
	if (pipe2(ends, O_CLOEXEC))
		die(words[0], "no pipe");
	fflush(stdout);
	program.pid = fork();
	if (program.pid < 0)
		die(words[0], "can't start");
	if (program.pid == 0)
		become(words, ends[1], quiet);
	close(ends[1]);
	program.out = fdopen(ends[0], "r");
	if (!program.out)
		die(words[0], "out of memory");
	return program;
}

int program_wait(struct program *program)
{
	int status = 0;
	fclose(program->out);
	waitpid(program->pid, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* ---- wrk ------------------------------------------------------------------------------------ */

struct program wrk_start(const struct load_plan *plan)
{
	static const char *const kinds[] = {"first", "again", "mix"};
	char connections[16], seconds[16];
	snprintf(connections, sizeof connections, "-c%d", plan->connections);
	snprintf(seconds, sizeof seconds, "-d%ds", plan->seconds);
	static const char script[] = BENCH_LOAD "/pay.lua";
	const char *words[] = {
	    "wrk",         "-t1", connections, seconds,           "--timeout=30s", "-s", script,
	    plan->address, "--",  plan->path,  kinds[plan->kind], plan->prefix,    NULL};
	return program_start(words, false);
}

struct load wrk_end(struct program *wrk)
{
	struct load load = {0};
	char line[256];
	double seconds = 0;
	bool told = false;
	while (fgets(line, sizeof line, wrk->out))
		told |= sscanf(line, "load %lu %lu %lu %lf %lf %lf", &load.answers, &load.refused,
		               &load.broken, &seconds, &load.round.p50_us, &load.round.p99_us) == 6;
	if (program_wait(wrk) || !told || seconds <= 0)
		die("wrk", "it did not run; is it installed?");
	load.round.rate = (double)load.answers / seconds;
	return load;
}

struct load wrk_run(const struct load_plan *plan)
{
	struct program wrk = wrk_start(plan);
	return wrk_end(&wrk);
}

/* ---- pgbench -------------------------------------------------------------------------------- */

/* A line for each transaction: client, number, microseconds, ... */
static size_t read_log(const char *dir, const char *name, double *times, size_t count)
{
	char path[512], line[256];
	snprintf(path, sizeof path, "%s/%s", dir, name);
	FILE *log = fopen(path, "re");
	while (log && count < TIMES_MAX && fgets(line, sizeof line, log))
		count += sscanf(line, "%*d %*d %lf", &times[count]) == 1;
	if (log)
		fclose(log);
	unlink(path);
	return count;
}

static void read_logs(const char *dir, struct round *ret)
{
	double *times = calloc(TIMES_MAX, sizeof *times);
	DIR *logs = opendir(dir);
	size_t count = 0;
	if (!times || !logs)
		die(dir, "pgbench's times can't be read");
	for (struct dirent *entry; (entry = readdir(logs));)
		if (entry->d_name[0] != '.')
			count = read_log(dir, entry->d_name, times, count);
	closedir(logs);
	ret->p50_us = figures_percentile(times, count, 50);
	ret->p99_us = figures_percentile(times, count, 99);
	free(times);
}

struct load pgbench_run(const struct target *target, int clients, int seconds)
{
	struct load load = {0};
	char dir[] = "/tmp/ibid-pgbench-XXXXXX", program[300], count[16], time[16], prefix[64];
	char line[256];
	const char *bin = getenv("IBID_TEST_PG_BIN");
	if (!mkdtemp(dir))
		die(dir, "can't make a directory");
	snprintf(program, sizeof program, "%s%spgbench", bin ? bin : "", bin ? "/" : "");
	snprintf(count, sizeof count, "-c%d", clients);
	snprintf(time, sizeof time, "-T%d", seconds);
	snprintf(prefix, sizeof prefix, "--log-prefix=%s/log", dir);
	static const char script[] = "-f" BENCH_LOAD "/pay.pgbench";
	const char *words[] = {program, "-n",   "-Mprepared", "-j2",
	                       count,   time,   "-l",         "--sampling-rate=0.1",
	                       prefix,  script, target->url,  NULL};
	struct program pgbench = program_start(words, true);
	while (fgets(line, sizeof line, pgbench.out)) {
		(void)!sscanf(line, "number of transactions actually processed: %lu", &load.answers);
		(void)!sscanf(line, "number of failed transactions: %lu", &load.refused);
		(void)!sscanf(line, "tps = %lf (without", &load.round.rate);
	}
	if (program_wait(&pgbench) || load.round.rate <= 0)
		die("pgbench", "it did not run; is it installed?");
	read_logs(dir, &load.round);
	rmdir(dir);
	return load;
}
