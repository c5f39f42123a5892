/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_act.c -- act on human work: assign it, resolve it, agree or not with what another proposes.
 */
#include "api/api.h"
#include "cli/cli.h"
#include "cli/output.h"
#include "cli/pause.h"
#include "outbox/act.h"

#include <stdlib.h>
#include <string.h>

/* What the acts are called when they are done. */
static const char *const pasts[] = {
#define ACT_PAST(symbol, verb, past, roles) [symbol] = past,
    ACTS(ACT_PAST)
#undef ACT_PAST
};

/* A store, and the contracts where they were given. */
struct office {
	struct store *store;
	struct ibid *ibid; /* owns the store, where there is one */
};

static enum ibid_code open_office(const struct args *args, struct office *ret, struct ibid_err *err)
{
	if (!args_has(args, OPT_CONTRACTS))
		return open_store(args, false, true, &ret->store, err);
	enum ibid_code code = ibid_open(
	    IBID_OPTIONS(.store = args->values[OPT_STORE], .contracts = args->values[OPT_CONTRACTS],
	                 .connections = 2, .key_file = args->values[OPT_KEY_FILE]),
	    &ret->ibid, err);
	if (!code)
		ret->store = ret->ibid->ledger->store;
	return code;
}

static void close_office(struct office *office)
{
	if (office->ibid)
		ibid_close(office->ibid);
	else
		store_close(office->store);
}

/* ---- Reading -------------------------------------------------------------------------------- */

/* CLI_OK, or CLI_USAGE after telling. */
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

/* CLI_OK, or CLI_USAGE after telling. */
static int read_act(const struct args *args, enum act_kind kind, struct act *ret)
{
	const char *const *values = args->values;
	*ret = (struct act){
	    .kind = kind,
	    .reason = values[OPT_REASON],
	    .owner = values[OPT_OWNER],
	    .assignee = values[OPT_TO],
	    .action = values[OPT_ACTION],
	    .confirmation = {.resource_type = values[OPT_RESOURCE_TYPE],
	                     .resource_id = values[OPT_RESOURCE_ID]},
	};
	if (!args->operand_count)
		return usage_error(args->command,
		                   "ID is missing: `ibid exception list` shows the ids of exceptions");
	if (!uuid_read(args->operands[0], &ret->id))
		return usage_error(
		    args->command,
		    "\"%.100s\" is not the id of an exception: `ibid exception list` shows ids",
		    args->operands[0]);
	if (kind == ACT_ASSIGN && !ret->owner && !ret->assignee)
		return usage_error(args->command, "give --to NAME, --owner TEAM or both");
	return read_status(args, &ret->confirmation.status);
}

/* ---- Telling -------------------------------------------------------------------------------- */

static bool print_json(struct arena *arena, const struct act *act, const struct acted *acted,
                       const char *word)
{
	struct str out = STR_INIT(OUTPUT_BYTES_MAX);
	obj_begin(&out, NULL, '{');
	obj_text(&out, "id", id_text(arena, act->id));
	obj_text(&out, "done", word);
	obj_text(&out, "action", acted->action);
	obj_text(&out, "by", act->actor->client);
	obj_text(&out, "state", exception_state_name(acted->item.state));
	obj_text(&out, "owner", acted->item.owner);
	obj_text(&out, "assignee", acted->item.assignee);
	if (acted->arrived)
		obj_text(&out, "arrived", acted->arrived);
	if (acted->pause_count)
		pauses_json(&out, arena, acted->pauses, acted->pause_count);
	obj_end(&out, '}');
	bool ok = out_line(&out);
	str_release(&out);
	return ok;
}

static void print_text(struct arena *arena, const struct act *act, const struct acted *acted,
                       const char *word)
{
	const struct exception_row *item = &acted->item;
	out_painted(paint_of_word(word), word);
	out_textf("%*s ", (int)strlen(word) < 10 ? 10 - (int)strlen(word) : 0, "");
	if (act->kind == ACT_ASSIGN)
		out_textf("%s  to %s%s%s\n", id_text(arena, act->id), item->owner,
		          item->assignee ? ", " : "", item->assignee ? item->assignee : "");
	else
		out_textf("%s  %s by %s\n", id_text(arena, act->id), acted->action, act->actor->client);
	if (acted->proposed)
		say("a second person has to approve it: ibid exception approve %s",
		    id_text(arena, act->id));
	if (acted->arrived)
		say("it had arrived already at: %s", acted->arrived);
	for (size_t i = 0; i < acted->pause_count; i++)
		pause_say(arena, &acted->pauses[i]);
}

static int tell(const struct args *args, struct arena *arena, const struct act *act,
                const struct acted *acted)
{
	const char *word = acted->proposed ? "proposed" : pasts[act->kind];
	if (args_has(args, OPT_JSON))
		return print_json(arena, act, acted, word) ? CLI_OK : CLI_ERROR;
	print_text(arena, act, acted, word);
	return CLI_OK;
}

/* ---- Acting --------------------------------------------------------------------------------- */

static int act(const struct args *args, enum act_kind kind)
{
	struct arena arena = {0};
	struct ibid_err err = {0};
	struct office office = {0};
	struct actor actor = {0};
	struct act what;
	struct acted acted = {0};
	int exit = read_act(args, kind, &what);
	if (exit)
		return exit;
	enum ibid_code code = read_answer(args, &arena, &what.confirmation.body, &err);
	if (!code)
		code = open_office(args, &office, &err);
	if (!code)
		code = find_actor(office.store, &arena, &actor, &err);
	what.actor = &actor;
	struct acting acting = {.store = office.store,
	                        .env = env_system(),
	                        .ledger = office.ibid ? office.ibid->ledger : NULL};
	if (!code)
		code = exception_act(&acting, &arena, &what, &acted, &err);
	exit = code ? tell_not_done(code, &err) : tell(args, &arena, &what, &acted);
	close_office(&office);
	arena_release(&arena);
	return exit;
}

int cmd_exception_assign(const struct args *args)
{
	return act(args, ACT_ASSIGN);
}

int cmd_exception_resolve(const struct args *args)
{
	return act(args, ACT_RESOLVE);
}

int cmd_exception_approve(const struct args *args)
{
	return act(args, ACT_APPROVE);
}

int cmd_exception_decline(const struct args *args)
{
	return act(args, ACT_DECLINE);
}
