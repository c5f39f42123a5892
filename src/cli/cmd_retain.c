/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_retain.c -- remove what has had its time. */
#include "ledger/retain.h"

#include "base/instant.h"
#include "cli/cli.h"
#include "cli/output.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { BATCH_DEFAULT = 1000, BATCH_MAX = 100000, SECONDS_MAX = 86400 };

#define COUNTS(X)                                                                                  \
	X(tombstones, "commands emptied: their keys have expired")                                     \
	X(answers, "bodies")                                                                           \
	X(payloads, "payloads")                                                                        \
	X(commands, "commands forgotten: their audit period is over")                                  \
	X(evidence, "conflicts")                                                                       \
	X(duplicates, "duplicates")                                                                    \
	X(audit, "audit entries")                                                                      \
	X(events, "events")

static bool read_number(const char *given, int64_t max, int64_t *ret)
{
	int64_t number = 0;
	if (!given)
		return true;
	for (const char *c = given; *c; c++) {
		if (*c < '0' || *c > '9' || number > max)
			return false;
		number = 10 * number + (*c - '0');
	}
	*ret = number;
	return number >= 1 && number <= max;
}

/* One line that is written over, and only where a person looks. */
static void show_progress(void *user, const struct retention_count *count)
{
	(void)user;
	fprintf(stderr, "\r%lld emptied, %lld forgotten ", (long long)count->tombstones,
	        (long long)count->commands);
}

static bool print_json(const struct retention_count *count, bool dry_run, bool finished)
{
	struct str out = STR_INIT(OUTPUT_BYTES_MAX);
	obj_begin(&out, NULL, '{');
	obj_bool(&out, "dry_run", dry_run);
	obj_bool(&out, "finished", finished);
#define COUNT_JSON(name, meaning) obj_int(&out, #name, count->name);
	COUNTS(COUNT_JSON)
#undef COUNT_JSON
	obj_end(&out, '}');
	bool ok = out_line(&out);
	str_release(&out);
	return ok;
}

static void print_text(const struct retention_count *count, bool dry_run, bool finished)
{
	out_textf("%s\n", dry_run ? "would remove" : "removed");
#define COUNT_TEXT(name, meaning) out_textf("%10lld  %s\n", (long long)count->name, meaning);
	COUNTS(COUNT_TEXT)
#undef COUNT_TEXT
	if (!finished)
		out_text("the time is over and there may be more: run it again\n");
}

static int read_options(const struct args *args, struct retain_options *ret)
{
	const char *const *values = args->values;
	int64_t batch = BATCH_DEFAULT, seconds = 0;
	if (!read_number(values[OPT_BATCH], BATCH_MAX, &batch))
		return usage_error(args->command, "--batch is a number from 1 to %d", BATCH_MAX);
	if (!read_number(values[OPT_MAX_SECONDS], SECONDS_MAX, &seconds))
		return usage_error(args->command, "--max-seconds is a number from 1 to %d", SECONDS_MAX);
	if (values[OPT_EVENTS_OLDER_THAN] &&
	    (!duration_read(values[OPT_EVENTS_OLDER_THAN], &ret->events_us) || ret->events_us <= 0))
		return usage_error(args->command, "--events-older-than is a duration such as 400d");
	ret->batch = (size_t)batch;
	ret->max_us = seconds * 1000000;
	ret->dry_run = args_has(args, OPT_DRY_RUN);
	ret->progress = isatty(STDERR_FILENO) ? show_progress : NULL;
	return CLI_OK;
}

int cmd_retain(const struct args *args)
{
	struct ibid_err err = {0};
	struct contracts *contracts = NULL;
	struct store *store = NULL;
	struct retain_options options = {0};
	struct retention_count count = {0};
	bool finished = false, ok = true;
	int usage = read_options(args, &options);
	if (usage)
		return usage;
	enum ibid_code code = load_contracts(args->values[OPT_CONTRACTS], &contracts, &err);
	if (!code)
		code = open_store(args, false, true, &store, &err);
	if (!code)
		code = ledger_retain(store, contracts, env_system(), &options, &count, &finished, &err);
	if (options.progress)
		fputc('\n', stderr);
	if (!code && args_has(args, OPT_JSON))
		ok = print_json(&count, options.dry_run, finished);
	else if (!code)
		print_text(&count, options.dry_run, finished);
	store_close(store);
	contracts_free(contracts);
	if (code)
		return say_err(&err);
	return ok ? CLI_OK : CLI_ERROR;
}
