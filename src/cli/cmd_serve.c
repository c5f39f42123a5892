/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_serve.c -- run the server until it is told to stop. */
#include "cli/cli.h"
#include "cli/output.h"
#include "http/server.h"

#include <stdio.h>

/* One line for each thing that happens, for whoever collects logs. */
static void log_line(void *user, enum ibid_log_level level, const char *line)
{
	(void)user;
	if (level > IBID_LOG_DEBUG)
		fprintf(stderr, "%s\n", line);
}

static void tell_address(void *user, const char *address)
{
	(void)user;
	out_textf("ibid serves at %s\n", address);
	(void)out_flush();
}

/* --store and --contracts are settings like any other. */
static size_t settings_given(struct arena *arena, const struct args *args,
                             const char *ret[OPERANDS_MAX + 2])
{
	size_t count = 0;
	if (args_has(args, OPT_STORE))
		ret[count++] = arena_printf(arena, "store=%s", args->values[OPT_STORE]);
	if (args_has(args, OPT_CONTRACTS))
		ret[count++] = arena_printf(arena, "contracts=%s", args->values[OPT_CONTRACTS]);
	for (size_t i = 0; i < args->operand_count; i++)
		ret[count++] = args->operands[i];
	return count;
}

int cmd_serve(const struct args *args)
{
	struct arena arena = {0};
	struct settings settings;
	struct ibid_err err = {0};
	const char *given[OPERANDS_MAX + 2];
	size_t count = settings_given(&arena, args, given);
	struct log log = {.fn = log_line, .env = env_system()};
	enum ibid_code code = arena.failed ? err_set(&err, IBID_NOMEM, "out of memory")
	                                   : settings_read(&arena, args->values[OPT_CONFIG], given,
	                                                   count, &settings, &err);
	if (!code)
		code = server_run(&settings, log, tell_address, NULL, &err);
	int exit = code ? say_err(&err) : CLI_OK;
	arena_release(&arena);
	return exit;
}
