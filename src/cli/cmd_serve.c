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

enum { NAMED = 3 };

/* --store, --contracts and --upstream are settings like any other. */
static size_t settings_given(struct arena *arena, const struct args *args,
                             const char *ret[OPERANDS_MAX + NAMED])
{
	static const struct {
		enum option option;
		const char *setting;
	} named[NAMED] = {
	    {OPT_STORE, "store"}, {OPT_CONTRACTS, "contracts"}, {OPT_UPSTREAM, "upstream.url"}};
	size_t count = 0;
	for (size_t i = 0; i < NAMED; i++)
		if (args_has(args, named[i].option))
			ret[count++] = arena_printf(arena, "%s=%s", named[i].setting,
			                            args->values[named[i].option]);
	for (size_t i = 0; i < args->operand_count; i++)
		ret[count++] = args->operands[i];
	return count;
}

static int run(const struct args *args, bool proxy)
{
	struct arena arena = {0};
	struct settings settings;
	struct ibid_err err = {0};
	const char *given[OPERANDS_MAX + NAMED];
	size_t count = settings_given(&arena, args, given);
	struct log log = {.fn = log_line, .env = env_system()};
	enum ibid_code code = arena.failed ? err_set(&err, IBID_NOMEM, "out of memory")
	                                   : settings_read(&arena, args->values[OPT_CONFIG], given,
	                                                   count, &settings, &err);
	if (!code && proxy && !settings.upstream)
		code = err_set(&err, IBID_INVALID,
		               "where is the service? give its address: --upstream http://127.0.0.1:3000");
	if (!code)
		code = server_run(&settings, log, tell_address, NULL, &err);
	int exit = code ? say_err(&err) : CLI_OK;
	arena_release(&arena);
	return exit;
}

int cmd_serve(const struct args *args)
{
	return run(args, false);
}

int cmd_proxy(const struct args *args)
{
	return run(args, true);
}
