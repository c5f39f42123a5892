/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_recover.c -- bring staged commands whose worker went silent to an outcome, and tell each. */
#include "api/api.h"
#include "cli/cli.h"
#include "cli/output.h"
#include "cli/page.h"

#include <string.h>

struct telling {
	bool json, dry_run;
	bool unknown;    /* of the commands that are told: they were UNKNOWN before */
	bool failed;     /* an output could not be built */
	size_t told;     /* commands */
	bool unresolved; /* one of them is unknown, or was left */
};

static const char *word_of(const struct telling *telling, const struct ibid_result *result)
{
	if (result)
		return ibid_decision_name(ibid_result_decision(result));
	if (!telling->dry_run)
		return "left";
	return telling->unknown ? "unknown" : "stale";
}

static bool print_json(const char *word, const char *tenant, const char *operation,
                       const char *command_id, const struct ibid_result *result, const char *text)
{
	struct str out = STR_INIT(OUTPUT_BYTES_MAX);
	obj_begin(&out, NULL, '{');
	obj_text(&out, "commandId", command_id);
	obj_text(&out, "tenant", tenant);
	obj_text(&out, "operation", operation);
	obj_text(&out, "decision", word);
	if (result)
		obj_int(&out, "status", ibid_result_status(result));
	if (*text)
		obj_text(&out, "text", text);
	obj_end(&out, '}');
	bool ok = out_line(&out);
	str_release(&out);
	return ok;
}

static void tell(void *user, const char *tenant, const char *operation, const char *command_id,
                 const struct ibid_result *result, const char *text)
{
	struct telling *telling = user;
	const char *word = word_of(telling, result);
	bool unknown = result && ibid_result_decision(result) == IBID_DECISION_UNKNOWN;
	telling->told++;
	telling->unresolved |= !telling->dry_run && (unknown || !result);
	if (telling->json) {
		telling->failed |= !print_json(word, tenant, operation, command_id, result, text);
		return;
	}
	out_painted(paint_of_word(word), word);
	out_textf("%*s %s  %s %s%s%s\n", 10 - (int)strlen(word) > 0 ? 10 - (int)strlen(word) : 0, "",
	          command_id, tenant, operation, *text ? "  " : "", text);
}

/* All of them. They come after those that are stale. */
static bool want(void *user, const char *tenant, const char *operation, const char *command_id,
                 int64_t token, int64_t since_us)
{
	struct telling *telling = user;
	(void)tenant, (void)operation, (void)command_id, (void)token, (void)since_us;
	telling->unknown = true;
	return true;
}

static int recover(struct ibid *ibid, const struct args *args, size_t limit)
{
	struct ibid_err err = {0};
	struct telling telling = {.json = args_has(args, OPT_JSON),
	                          .dry_run = args_has(args, OPT_DRY_RUN)};
	size_t count;
	if (ibid_recover(ibid,
	                 IBID_RECOVERY(.tenant = args->values[OPT_TENANT],
	                               .operation = args->values[OPT_OPERATION], .limit = limit,
	                               .dry_run = telling.dry_run, .tell = tell, .user = &telling,
	                               .unknown = args_has(args, OPT_UNKNOWN), .wanted = want),
	                 &count, &err))
		return say_err(&err);
	if (!telling.told)
		say("nothing to recover");
	if (telling.told == limit)
		say("there may be more: run it again, or with a larger --limit");
	if (telling.failed)
		return CLI_ERROR;
	return telling.unresolved ? CLI_UNKNOWN : CLI_OK;
}

int cmd_command_recover(const struct args *args)
{
	struct ibid_err err = {0};
	struct ibid *ibid = NULL;
	size_t limit;
	int exit = read_limit(args, &limit);
	if (exit)
		return exit;
	if (ibid_open(IBID_OPTIONS(.store = args->values[OPT_STORE],
	                           .contracts = args->values[OPT_CONTRACTS], .connections = 2,
	                           .key_file = args->values[OPT_KEY_FILE]),
	              &ibid, &err))
		return say_err(&err);
	exit = recover(ibid, args, limit);
	ibid_close(ibid);
	return exit;
}
