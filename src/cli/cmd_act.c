/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_act.c -- what a person does: about human work, about an event that a destination did not
 * take, and about what is paused. Which of them it is, the command's row in main.c says. */
#include "api/api.h"
#include "api/desk.h"
#include "cli/cli.h"
#include "cli/output.h"
#include "cli/pause.h"
#include "outbox/delivery.h"

#include <stdlib.h>
#include <string.h>

/* ---- Where it is done ----------------------------------------------------------------------- */

struct opened {
	struct store *store;
	struct ibid *ibid; /* owns the store, where there is one */
	struct contracts *contracts;
	struct desk desk;
};

/* What ends a command needs the handles of contracts; a pause only looks which event types there
 * are. Both do without where no contracts are given. */
static enum ibid_code open_desk(const struct args *args, struct opened *ret, struct ibid_err *err)
{
	enum ibid_code code = IBID_OK;
	bool given = args_has(args, OPT_CONTRACTS), ends = takes_option(args->command, OPT_KEY_FILE);
	if (given && ends) {
		code = ibid_open(IBID_OPTIONS(.store = args->values[OPT_STORE],
		                              .contracts = args->values[OPT_CONTRACTS], .connections = 2,
		                              .key_file = args->values[OPT_KEY_FILE]),
		                 &ret->ibid, err);
		if (!code)
			ret->desk = desk_of(ret->ibid->ledger->store, env_system(), ret->ibid->ledger);
		return code;
	}
	if (given)
		code = load_contracts(args->values[OPT_CONTRACTS], &ret->contracts, err);
	if (!code)
		code = open_store(args, false, true, &ret->store, err);
	ret->desk = desk_of(ret->store, env_system(), NULL);
	ret->desk.contracts = ret->contracts;
	return code;
}

static void close_desk(struct opened *opened)
{
	if (opened->ibid)
		ibid_close(opened->ibid);
	store_close(opened->store);
	contracts_free(opened->contracts);
}

/* ---- Reading -------------------------------------------------------------------------------- */

static bool of_event(const struct args *args)
{
	return args->command->act.subject && strcmp(args->command->act.subject, "delivery") == 0;
}

static bool of_pause(const struct args *args)
{
	return args->command->act.subject && !of_event(args);
}

/* CLI_OK, or CLI_USAGE after telling; likewise below. */
static int read_status(const struct args *args, int *ret)
{
	const char *given = args->values[OPT_STATUS];
	char *end = NULL;
	if (!given)
		return CLI_OK;
	long status = strtol(given, &end, 10);
	if (!*given || *end || status < 200 || status > 399)
		return usage_error(args->command, "--status is a number from 200 to 399");
	*ret = (int)status;
	return CLI_OK;
}

/* JSON itself, or @FILE. */
static enum ibid_code read_answer(const struct args *args, struct arena *arena, const char **ret,
                                  struct ibid_err *err)
{
	const char *given = args->values[OPT_ANSWER];
	size_t size;
	if (!given || *given != '@') {
		*ret = given;
		return IBID_OK;
	}
	enum ibid_code code = input_read(arena, given + 1, ret, &size, err);
	if (!code && strlen(*ret) != size)
		code = err_set(err, IBID_INVALID, "%s holds a NUL byte: an answer is JSON text", given + 1);
	return code;
}

static int read_id(const struct args *args, struct uuid *ret)
{
	const char *operand = args->command->operands, *of = of_event(args) ? "event" : "exception";
	const char *list = of_event(args) ? "outbox" : "exception";
	if (!args->operand_count)
		return usage_error(args->command, "%s is missing: `ibid %s list` shows the ids of %ss",
		                   operand, list, of);
	if (!uuid_read(args->operands[0], ret))
		return usage_error(args->command,
		                   "\"%.100s\" is not the id of an %s: `ibid %s list` shows ids",
		                   args->operands[0], of, list);
	return CLI_OK;
}

static int read_subject(const struct args *args, struct arena *arena, struct action_request *ret)
{
	const char *subject = args->command->act.subject;
	const char *name = args->operand_count ? args->operands[0] : NULL;
	ret->subject_type = subject;
	if (of_pause(args)) {
		ret->subject_id = name ? name : "";
		return !name && strcmp(subject, "relay") != 0
		           ? usage_error(args->command, "name the %s", subject)
		           : CLI_OK;
	}
	int exit = read_id(args, &ret->item);
	if (!exit && of_event(args))
		ret->subject_id = delivery_name(arena, args->values[OPT_DESTINATION], &ret->item);
	return exit;
}

static int read_request(const struct args *args, struct arena *arena, struct action_request *ret)
{
	const char *const *values = args->values;
	const struct cli_act *act = &args->command->act;
	*ret = (struct action_request){
	    .verb = act->verb,
	    .reason = values[OPT_REASON],
	    .action = act->action ? act->action : values[OPT_ACTION],
	    .owner = values[OPT_OWNER],
	    .assignee = values[OPT_TO],
	    .confirmation = {.resource_type = values[OPT_RESOURCE_TYPE],
	                     .resource_id = values[OPT_RESOURCE_ID]},
	};
	int exit = read_subject(args, arena, ret);
	if (!exit && ret->verb == ACTION_ASSIGN && !ret->owner && !ret->assignee)
		exit = usage_error(args->command, "give --to NAME, --owner TEAM or both");
	return exit ? exit : read_status(args, &ret->confirmation.status);
}

/* ---- What is shown -------------------------------------------------------------------------- */

/* One that is done, or proposed. */
struct done {
	const struct args *args;
	struct arena *arena;
	const struct action_request *request;
	const struct action_result *result;
	const char *word; /* "released" */
};

static void item_json(struct str *out, const struct done *done)
{
	const struct action_result *result = done->result;
	obj_id(out, "id", result->item.id);
	obj_text(out, "action", result->action);
	obj_text(out, "by", done->request->actor->client);
	obj_text(out, "state", exception_state_name(result->item.state));
	obj_text(out, "owner", result->item.owner);
	obj_text_if(out, "assignee", result->item.assignee);
	if (result->arrived)
		names_json(out, "arrivedAt", result->arrived);
	if (result->pause_count)
		row_add_list(out, "paused", &pause_shape, result->pauses, result->pause_count, ROW_WHOLE);
}

static void pause_done_json(struct str *out, const struct done *done)
{
	const struct pause_row *row = &done->result->pause;
	obj_text(out, "kind", pause_kind_name(row->kind));
	obj_text_if(out, "name", *row->name ? row->name : NULL);
	obj_text_if(out, "tenant", *row->tenant ? row->tenant : NULL);
	obj_text(out, "by", done->request->actor->client);
}

static bool print_json(const struct done *done)
{
	struct str out = STR_INIT(OUTPUT_BYTES_MAX);
	obj_begin(&out, NULL, '{');
	obj_text(&out, "done", done->word);
	if (of_pause(done->args))
		pause_done_json(&out, done);
	else if (of_event(done->args))
		delivery_done_json(&out, done->request->actor, &done->request->item,
		                   done->args->values[OPT_DESTINATION], done->result, ROW_WHOLE);
	else
		item_json(&out, done);
	obj_end(&out, '}');
	bool ok = out_line(&out);
	str_release(&out);
	return ok;
}

static void print_subject(const struct done *done)
{
	struct arena *arena = done->arena;
	const struct action_request *request = done->request;
	const struct action_result *result = done->result;
	const struct pause_row *pause = &result->pause;
	const struct exception_row *item = &result->item;
	const char *id = id_text(arena, request->item), *by = request->actor->client;
	if (of_pause(done->args))
		out_textf("%s%s%s  by %s\n", pause_text(arena, pause->kind, pause->name),
		          *pause->tenant ? " of tenant " : "", pause->tenant, by);
	else if (of_event(done->args))
		out_textf("%s  %s%s by %s\n", id,
		          strcmp(request->action, "cancel") == 0 ? "everywhere, held at " : "at ",
		          done->args->values[OPT_DESTINATION], by);
	else if (request->verb == ACTION_ASSIGN)
		out_textf("%s  to %s%s%s\n", id, item->owner, item->assignee ? ", " : "",
		          item->assignee ? item->assignee : "");
	else
		out_textf("%s  %s by %s\n", id, result->action, by);
}

static bool print_text(const struct done *done)
{
	const struct action_result *result = done->result;
	int size = (int)strlen(done->word);
	out_painted(paint_of_word(done->word), done->word);
	out_textf("%*s ", size < 10 ? 10 - size : 0, "");
	print_subject(done);
	if (result->proposed)
		say("a second person has to approve it: ibid exception approve %s",
		    id_text(done->arena, result->item.id));
	if (result->arrived)
		say("it had arrived already at: %s", result->arrived);
	for (size_t i = 0; i < result->pause_count; i++)
		pause_say(done->arena, &result->pauses[i]);
	return true;
}

static int print_not_done(enum ibid_code code, const struct ibid_err *err)
{
	(void)say_err(err);
	return code == IBID_REJECTED  ? CLI_REJECTED
	       : code == IBID_UNKNOWN ? CLI_UNKNOWN
	       : code == IBID_BUSY    ? CLI_AGAIN
	                              : CLI_ERROR;
}

/* ---- Acting --------------------------------------------------------------------------------- */

/* `actor`: room for who that is. */
static int act(const struct args *args, struct arena *arena, struct action_request *request,
               struct actor *actor)
{
	struct ibid_err err = {0};
	struct opened opened = {0};
	struct action_result result = {0};
	request->actor = actor;
	enum ibid_code code = read_answer(args, arena, &request->confirmation.body, &err);
	if (!code)
		code = open_desk(args, &opened, &err);
	if (!code)
		code = find_actor(opened.desk.store, arena, actor, &err);
	if (!code)
		code = desk_act(&opened.desk, arena, request, &result, &err);
	const char *word = result.proposed ? "proposed" : args->command->act.past;
	const struct done done = {args, arena, request, &result, word};
	int exit = code ? print_not_done(code, &err)
	           : (args_has(args, OPT_JSON) ? print_json : print_text)(&done) ? CLI_OK
	                                                                         : CLI_ERROR;
	close_desk(&opened);
	return exit;
}

int cmd_act(const struct args *args)
{
	struct arena arena = {0};
	struct actor actor = {0};
	struct action_request request;
	int exit = read_request(args, &arena, &request);
	if (!exit)
		exit = act(args, &arena, &request, &actor);
	arena_release(&arena);
	return exit;
}
