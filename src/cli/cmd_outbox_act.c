/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_outbox_act.c -- decide about an event that a destination did not take. */
#include "cli/cli.h"
#include "cli/output.h"
#include "cli/pause.h"
#include "outbox/outbox_act.h"

#include <string.h>

/* What a person may decide, and what it is called when it is done. */
enum decision { RELEASE, SKIP, CANCEL };
static const struct {
	const char *action, *past;
} decisions[] = {
    [RELEASE] = {"release", "released"},
    [SKIP] = {"skip", "skipped"},
    [CANCEL] = {"cancel", "cancelled"},
};

/* CLI_OK, or CLI_USAGE after telling. */
static int read_act(const struct args *args, enum decision decision, struct event_act *ret)
{
	*ret = (struct event_act){
	    .destination = args->values[OPT_DESTINATION],
	    .action = decisions[decision].action,
	    .reason = args->values[OPT_REASON],
	};
	if (!args->operand_count)
		return usage_error(args->command,
		                   "EVENT_ID is missing: `ibid outbox list` shows the ids of events");
	if (!uuid_read(args->operands[0], &ret->event_id))
		return usage_error(args->command,
		                   "\"%.100s\" is not the id of an event: `ibid outbox list` shows ids",
		                   args->operands[0]);
	return CLI_OK;
}

static bool print_json(struct arena *arena, const struct event_act *act,
                       const struct event_acted *acted, const char *word)
{
	struct str out = STR_INIT(OUTPUT_BYTES_MAX);
	obj_begin(&out, NULL, '{');
	obj_text(&out, "event", id_text(arena, act->event_id));
	obj_text(&out, "destination", act->destination);
	obj_text(&out, "done", word);
	obj_text(&out, "action", act->action);
	obj_text(&out, "by", act->actor->client);
	if (acted->is_held)
		obj_text(&out, "state", hold_state_name(acted->hold.state));
	if (acted->has_item)
		obj_text(&out, "exception", id_text(arena, acted->item_id));
	if (acted->arrived)
		obj_text(&out, "arrived", acted->arrived);
	if (strcmp(act->action, decisions[RELEASE].action) == 0)
		pauses_json(&out, arena, acted->pauses, acted->pause_count);
	obj_end(&out, '}');
	bool ok = out_line(&out);
	str_release(&out);
	return ok;
}

static void print_text(struct arena *arena, const struct event_act *act,
                       const struct event_acted *acted, const char *word)
{
	out_painted(paint_of_word(word), word);
	out_textf("%*s ", (int)strlen(word) < 10 ? 10 - (int)strlen(word) : 0, "");
	out_textf("%s  %s%s by %s\n", id_text(arena, act->event_id),
	          strcmp(act->action, "cancel") == 0 ? "everywhere, held at " : "at ", act->destination,
	          act->actor->client);
	if (acted->proposed)
		say("a second person has to approve it: ibid exception approve %s",
		    id_text(arena, acted->item_id));
	if (acted->arrived)
		say("it had arrived already at: %s", acted->arrived);
	for (size_t i = 0; i < acted->pause_count; i++)
		pause_say(arena, &acted->pauses[i]);
}

static int tell(const struct args *args, struct arena *arena, const struct event_act *act,
                const struct event_acted *acted, enum decision decision)
{
	const char *word = acted->proposed ? "proposed" : decisions[decision].past;
	if (args_has(args, OPT_JSON))
		return print_json(arena, act, acted, word) ? CLI_OK : CLI_ERROR;
	print_text(arena, act, acted, word);
	return CLI_OK;
}

static int act(const struct args *args, enum decision decision)
{
	struct arena arena = {0};
	struct ibid_err err = {0};
	struct store *store = NULL;
	struct actor actor = {0};
	struct event_act what;
	struct event_acted acted = {0};
	int exit = read_act(args, decision, &what);
	if (exit)
		return exit;
	enum ibid_code code = open_store(args, false, true, &store, &err);
	if (!code)
		code = find_actor(store, &arena, &actor, &err);
	what.actor = &actor;
	struct acting acting = {.store = store, .env = env_system()};
	if (!code)
		code = outbox_act(&acting, &arena, &what, &acted, &err);
	exit = code ? tell_not_done(code, &err) : tell(args, &arena, &what, &acted, decision);
	store_close(store);
	arena_release(&arena);
	return exit;
}

int cmd_outbox_release(const struct args *args)
{
	return act(args, RELEASE);
}

int cmd_outbox_skip(const struct args *args)
{
	return act(args, SKIP);
}

int cmd_outbox_cancel(const struct args *args)
{
	return act(args, CANCEL);
}
