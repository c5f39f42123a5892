/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_serve.c -- run the server until it is told to stop. */
#include "cli/cli.h"
#include "cli/log_writer.h"
#include "cli/output.h"
#include "cli/process.h"
#include "http/server.h"

#include <unistd.h>

static void tell_address(void *user, const char *address)
{
	(void)user;
	out_textf("ibid serves at %s\n", address);
	(void)out_flush();
}

static int run(const struct args *args, bool proxy)
{
	struct arena arena = {0};
	struct settings settings;
	struct ibid_err err = {0};
	bool heard = true;
	enum ibid_code code = process_settings(&arena, args, &settings, &err);
	if (!code && proxy && !settings.upstream)
		code = err_set(&err, IBID_INVALID,
		               "where is the service? give its address: --upstream http://127.0.0.1:3000");
	if (!code) {
		code = server_run(&settings, log_writer_start(), tell_address, NULL, &err);
		heard = log_writer_end();
	}
	int exit = !code ? CLI_OK : heard ? say_err(&err) : CLI_ERROR;
	if (code == IBID_BUSY)
		_exit(exit); /* threads still work with what would be released */
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
