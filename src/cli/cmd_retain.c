/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_retain.c -- remove what has had its time. */
#include "retention/retain.h"

#include "base/instant.h"
#include "cli/cli.h"
#include "cli/output.h"

#include <signal.h>
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
	fprintf(stderr, "\r%lld emptied, %lld forgotten, %lld events ", (long long)count->tombstones,
	        (long long)count->commands, (long long)count->events);
}

/* ---- What became of events ------------------------------------------------------------------ */

static void add_archives(struct str *out, const struct archive_report *report)
{
	char hash[SHA256_TEXT_SIZE];
	obj_begin(out, "archives", '[');
	for (size_t i = 0; i < report->archive_count; i++) {
		const struct archive_manifest *archive = &report->archives[i];
		sha256_write(&archive->sha256, hash);
		obj_begin(out, NULL, '{');
		obj_text(out, "file", archive->file);
		obj_int(out, "events", archive->events);
		obj_int(out, "deliveries", archive->deliveries);
		obj_int(out, "bytes", archive->bytes);
		obj_text(out, "sha256", hash);
		obj_end(out, '}');
	}
	obj_end(out, ']');
}

static void add_held(struct str *out, struct arena *arena, const struct archive_report *report)
{
	obj_begin(out, "heldBack", '[');
	for (size_t i = 0; i < report->held_count; i++) {
		const struct held_back *held = &report->held[i];
		obj_begin(out, NULL, '{');
		if (*held->span)
			obj_text(out, "month", held->span);
		obj_text(out, "destination", held->undone.destination);
		obj_text(out, "state", held->undone.state);
		obj_int(out, "events", held->undone.events);
		obj_text(out, "since", time_text(arena, held->undone.since_us));
		obj_end(out, '}');
	}
	obj_end(out, ']');
}

static void print_events(struct arena *arena, const struct archive_report *report)
{
	for (size_t i = 0; i < report->archive_count; i++)
		out_textf("archived    %s  %lld event%s, %lld deliver%s, %lld bytes\n",
		          report->archives[i].file, (long long)report->archives[i].events,
		          plural(report->archives[i].events), (long long)report->archives[i].deliveries,
		          report->archives[i].deliveries == 1 ? "y" : "ies",
		          (long long)report->archives[i].bytes);
	for (size_t i = 0; i < report->held_count; i++) {
		const struct held_back *held = &report->held[i];
		out_textf("held back   %s%s%lld event%s %s at %s, since %s\n", held->span,
		          *held->span ? ": all of it stays for " : "", (long long)held->undone.events,
		          plural(held->undone.events), held->undone.state, held->undone.destination,
		          time_text(arena, held->undone.since_us));
	}
}

static bool print_json(const struct retention_count *count, struct archive_report *events,
                       bool dry_run, bool finished)
{
	struct str out = STR_INIT(OUTPUT_BYTES_MAX);
	obj_begin(&out, NULL, '{');
	obj_bool(&out, "dryRun", dry_run);
	obj_bool(&out, "finished", finished);
#define COUNT_JSON(name, meaning) obj_int(&out, #name, count->name);
	COUNTS(COUNT_JSON)
#undef COUNT_JSON
	add_archives(&out, events);
	add_held(&out, &events->arena, events);
	obj_end(&out, '}');
	bool ok = out_line(&out);
	str_release(&out);
	return ok;
}

static void print_text(const struct retention_count *count, struct archive_report *events,
                       bool dry_run, bool finished)
{
	out_textf("%s\n", dry_run ? "would remove" : "removed");
#define COUNT_TEXT(name, meaning) out_textf("%10lld  %s\n", (long long)count->name, meaning);
	COUNTS(COUNT_TEXT)
#undef COUNT_TEXT
	print_events(&events->arena, events);
	if (!finished)
		out_text("the time is over and there may be more: run it again\n");
}

/* Evidence is not thrown away by leaving something out. */
static int read_archive(const struct args *args)
{
	const char *dir = args->values[OPT_ARCHIVE];
	if (dir && args_has(args, OPT_NO_ARCHIVE))
		return usage_error(args->command, "--archive and --no-archive contradict each other");
	if (dir && !*dir)
		return usage_error(
		    args->command,
		    "--archive is empty: name the directory that the archives are written to");
	if (!args_has(args, OPT_EVENTS_OLDER_THAN))
		return dir || args_has(args, OPT_NO_ARCHIVE)
		           ? usage_error(args->command, "--archive goes with --events-older-than")
		           : CLI_OK;
	if (!dir && !args_has(args, OPT_NO_ARCHIVE) && !args_has(args, OPT_DRY_RUN))
		return usage_error(args->command,
		                   "--events-older-than removes the evidence of deliveries, too: say "
		                   "--archive DIR, or --no-archive to do without one");
	return CLI_OK;
}

static int read_options(const struct args *args, struct retain_options *ret)
{
	const char *const *values = args->values;
	int64_t batch = BATCH_DEFAULT, seconds = 0;
	int usage;
	if (!read_number(values[OPT_BATCH], BATCH_MAX, &batch))
		return usage_error(args->command, "--batch is a number from 1 to %d", BATCH_MAX);
	if (!read_number(values[OPT_MAX_SECONDS], SECONDS_MAX, &seconds))
		return usage_error(args->command, "--max-seconds is a number from 1 to %d", SECONDS_MAX);
	if (values[OPT_EVENTS_OLDER_THAN] &&
	    (!duration_read(values[OPT_EVENTS_OLDER_THAN], &ret->events_us) || ret->events_us <= 0))
		return usage_error(args->command, "--events-older-than is a duration such as 400d");
	usage = read_archive(args);
	if (usage)
		return usage;
	ret->archive = values[OPT_ARCHIVE];
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
	struct archive_report events = {0};
	bool finished = false, ok = true;
	options.events = &events;
	/* A file that may not grow any more is an error like a full disk, and not our end. */
	signal(SIGXFSZ, SIG_IGN);
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
		ok = print_json(&count, &events, options.dry_run, finished);
	else if (!code)
		print_text(&count, &events, options.dry_run, finished);
	store_close(store);
	contracts_free(contracts);
	archive_report_release(&events);
	if (code)
		return say_err(&err);
	return ok ? CLI_OK : CLI_ERROR;
}
