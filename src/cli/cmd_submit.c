/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_submit.c -- bring one command to its outcome and tell it in a line and an exit code. */
#include "api/api.h"
#include "base/instant.h"
#include "cli/cli.h"
#include "cli/output.h"

#include <string.h>

static const enum cli_exit exits[] = {
    [IBID_DECISION_EXECUTED] = CLI_OK,       [IBID_DECISION_LINKED] = CLI_OK,
    [IBID_DECISION_REJECTED] = CLI_REJECTED, [IBID_DECISION_EXPIRED] = CLI_REJECTED,
    [IBID_DECISION_CONFLICT] = CLI_CONFLICT, [IBID_DECISION_IN_PROGRESS] = CLI_IN_PROGRESS,
    [IBID_DECISION_UNKNOWN] = CLI_UNKNOWN,   [IBID_DECISION_FAILED] = CLI_AGAIN,
};

/* ---- Telling -------------------------------------------------------------------------------- */

static const char *text_or_null(const char *text)
{
	return *text ? text : NULL;
}

static bool print_json(const struct ibid_result *result)
{
	struct str out = STR_INIT(OUTPUT_BYTES_MAX);
	const struct {
		const char *name, *text;
	} optional[] = {
	    {"reason", ibid_result_reason(result)},
	    {"text", ibid_result_text(result)},
	    {"resourceType", ibid_result_resource_type(result)},
	    {"resourceId", ibid_result_resource_id(result)},
	};
	obj_begin(&out, NULL, '{');
	obj_text(&out, "decision", ibid_decision_name(ibid_result_decision(result)));
	obj_int(&out, "status", ibid_result_status(result));
	obj_bool(&out, "replayed", ibid_result_replayed(result));
	if (ibid_result_correctable(result))
		obj_bool(&out, "correctable", true);
	obj_raw(&out, "body", ibid_result_body(result));
	obj_text(&out, "commandId", text_or_null(ibid_result_command_id(result)));
	for (size_t i = 0; i < sizeof optional / sizeof *optional; i++) {
		if (*optional[i].text)
			obj_text(&out, optional[i].name, optional[i].text);
	}
	if (ibid_result_replayed(result) || ibid_result_decision(result) == IBID_DECISION_CONFLICT)
		obj_int(&out, "ageMs", ibid_result_age_ms(result));
	if (ibid_result_retry_after_ms(result))
		obj_int(&out, "retryAfterMs", ibid_result_retry_after_ms(result));
	obj_end(&out, '}');
	bool ok = out_line(&out);
	str_release(&out);
	return ok;
}

static void print_conflict(const struct ibid_result *result, const char *key, const char *age)
{
	out_textf("%s%s was used for another payload; first seen %s ago, command %s", key ? "key " : "",
	          key ? key : "the key", age, ibid_result_command_id(result));
}

/* "executed   201  {...}": the decision, the status, then what this decision has to say. */
static void print_text(const struct ibid_result *result, const char *key)
{
	char age[INSTANT_TEXT_SIZE];
	enum ibid_decision decision = ibid_result_decision(result);
	bool replayed = ibid_result_replayed(result);
	const char *name = ibid_decision_name(decision), *reason = ibid_result_reason(result);
	const char *word = replayed && decision == IBID_DECISION_EXECUTED ? "replayed" : name;
	duration_write(ibid_result_age_ms(result) * 1000, age);
	out_painted(paint_of_word(word), word);
	out_textf("%*s %3d  ", 10 - (int)strlen(word) > 0 ? 10 - (int)strlen(word) : 0, "",
	          ibid_result_status(result));
	if (decision == IBID_DECISION_CONFLICT)
		print_conflict(result, key, age);
	else if (decision == IBID_DECISION_EXECUTED || decision == IBID_DECISION_LINKED)
		out_text(*reason ? "(its answer was erased)" : ibid_result_body(result));
	else
		out_textf("%s%s%s%s", reason, *reason ? ": " : "", ibid_result_text(result),
		          ibid_result_correctable(result) ? "; correct it and send it with the same key"
		                                          : "");
	if (replayed)
		out_textf("            first %s %s ago", name, age);
	out_text("\n");
}

/* ---- Sending -------------------------------------------------------------------------------- */

/* Nothing was decided. Is it worth sending the same again? */
static int tell_failure(const struct ibid_err *err, bool opened)
{
	/* A file that is no database stays none; once open, a failed read or write may pass. */
	bool passing = opened ? err->next != IBID_NEXT_NEVER : err->next == IBID_NEXT_LATER;
	if (err->code == IBID_UNKNOWN) {
		say("%s\nWhether it ran is not known: ask again with the same key.", err->text);
		return CLI_UNKNOWN;
	}
	if (!passing)
		return say_err(err);
	say("%s\nIt is safe to send it again with the same key.", err->text);
	return CLI_AGAIN;
}

static bool key_is_missing(const struct ibid *ibid, const struct args *args)
{
	const struct operation *operation = ledger_operation(ibid->ledger, args->values[OPT_OPERATION]);
	return !args->values[OPT_KEY] && operation && operation->contract->key.from == KEY_HEADER;
}

static int submit(struct ibid *ibid, const struct args *args, const struct ibid_command *command)
{
	struct ibid_err err = {0};
	struct ibid_result *result = NULL;
	if (key_is_missing(ibid, args))
		return usage_error(args->command,
		                   "--key is missing: the contract of %s takes the key from its caller",
		                   args->values[OPT_OPERATION]);
	if (ibid_submit(ibid, command, &result, &err))
		return tell_failure(&err, true);
	int exit = (int)exits[ibid_result_decision(result)];
	if (!args_has(args, OPT_JSON))
		print_text(result, args->values[OPT_KEY]);
	else if (!print_json(result))
		exit = CLI_ERROR;
	if (!out_flush() && !out_reader_ended())
		say("the command has its outcome: send the same again with the same key to read it");
	ibid_result_free(result);
	return exit;
}

int cmd_submit(const struct args *args)
{
	const char *const *values = args->values;
	struct arena arena = {0};
	struct ibid_err err = {0};
	struct ibid *ibid = NULL;
	const char *payload = NULL;
	size_t size = 0;
	int exit;
	/* Read first: a slow sender holds no connection. */
	enum ibid_code code = input_read(&arena, args->operands[0], &payload, &size, &err);
	struct sender sender = sender_of(&arena, args);
	if (code) {
		exit = say_err(&err);
	} else if (ibid_open(IBID_OPTIONS(.store = values[OPT_STORE],
	                                  .contracts = values[OPT_CONTRACTS], .connections = 2,
	                                  .key_file = args->values[OPT_KEY_FILE]),
	                     &ibid, &err)) {
		exit = tell_failure(&err, false);
	} else {
		exit = submit(ibid, args,
		              IBID_COMMAND(.tenant = sender.tenant, .operation = values[OPT_OPERATION],
		                           .key = values[OPT_KEY], .payload = payload, .payload_size = size,
		                           .client = sender.client, .actor = sender.actor,
		                           .resource = sender.resource,
		                           .correlation_id = values[OPT_CORRELATION_ID],
		                           .causation_id = values[OPT_CAUSATION_ID],
		                           .traceparent = values[OPT_TRACEPARENT],
		                           .tracestate = values[OPT_TRACESTATE]));
	}
	ibid_close(ibid);
	arena_release(&arena);
	return exit;
}
