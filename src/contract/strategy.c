/* SPDX-License-Identifier: Apache-2.0 */
/* strategy.c -- the members of a contract that each strategy needs or excludes (A07).
 *
 * A strategy is a promise about repetitions under a new key. ibid has to be able to check that the
 * handler keeps it, so a contract without the scripts for that check is refused, with the reason.
 */
#include "contract/build.h"

#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof *(array))

static const struct strategy_needs needs[STRATEGY_COUNT] = {
    [STRATEGY_NATURAL] = {.already = true,
                          .serialize_by = true,
                          .proof = "`already` is asked before the handler, and must hold after it"},
    [STRATEGY_SET_ONCE] = {.already = true,
                           .state = true,
                           .serialize_by = true,
                           .proof = "the handler only runs where `state` finds nothing, and "
                                    "`already` must hold after it"},
    [STRATEGY_UNIQUE] = {.unique = true, .proof = "a unique index refuses the second one"},
    [STRATEGY_KEY] = {.proof = "the key alone: a new key is a new intent"},
    [STRATEGY_INBOX] = {.proof = "the message's id"},
    [STRATEGY_VERSION] = {.already = true,
                          .state = true,
                          .guard = true,
                          .serialize_by = true,
                          .proof = "the handler only runs for a version that `guard` applies, and "
                                   "`state` must show it after"},
    [STRATEGY_COMMUTATIVE] = {.state = true,
                              .serialize_by = true,
                              .silent = true,
                              .proof = "the handler is run twice, and `state` must be the same "
                                       "after both"},
    [STRATEGY_EXTERNAL] = {.staged = true,
                           .proof = "one stable key for the partner, and somebody who asks it"},
    [STRATEGY_NONE] = {.because = true, .silent = true, .proof = "nothing: the reason is written"},
};

const struct strategy_needs *contract_strategy_needs(enum contract_strategy strategy)
{
	return &needs[strategy];
}

bool contract_looks(const struct contract *contract)
{
	return needs[contract->strategy].serialize_by;
}

/* ---- Rules ---------------------------------------------------------------------------------- */

struct check {
	struct reading *reading;
	const struct contract *contract;
	const struct node *root;
	const struct strategy_needs *needs;
	const char *name; /* of the strategy */
};

static const struct node *at(const struct check *check, const char *path)
{
	const struct node *node = form_find(check->root, path);
	return node ? node : check->root;
}

#define REFUSE(check, path, ...)                                                                   \
	PROBLEM_AT((check)->reading->problems, at((check), (path)), __VA_ARGS__)

/* Members that belong to strategies: where one is needed, why; where it is not, it misleads. */
static const struct {
	const char *member;
	size_t flag; /* of strategy_needs */
	const char *why;
	bool only; /* refused where no strategy needs it */
} members[] = {
    {"already", offsetof(struct strategy_needs, already),
     "names the script that finds what is asked for where it holds already", true},
    {"state", offsetof(struct strategy_needs, state), "names the script that shows what is there",
     true},
    {"guard", offsetof(struct strategy_needs, guard), "says which versions are applied", true},
    {"because", offsetof(struct strategy_needs, because),
     "says why it does not matter how often it happens", true},
    {"unique", offsetof(struct strategy_needs, unique), "names the index that enforces it", false},
    {"staged", offsetof(struct strategy_needs, staged),
     "says how long a worker may be silent, and who then asks the partner", false},
    {"serialize_by", offsetof(struct strategy_needs, serialize_by),
     "names the row whose state is looked at, which is held meanwhile", false},
};

static bool is_needed(const struct check *check, size_t flag)
{
	return *(const bool *)((const char *)check->needs + flag);
}

static void members_belong_to_the_strategy(const struct check *check)
{
	for (size_t i = 0; i < COUNT(members); i++) {
		const struct node *node = form_find(check->root, members[i].member);
		bool needed = is_needed(check, members[i].flag);
		bool given = node && !(node->type == NODE_LIST && node->count == 0);
		if (needed && !given)
			REFUSE(check, "strategy", "strategy is %s, but no `%s` %s", check->name,
			       members[i].member, members[i].why);
		if (node && !needed && members[i].only)
			REFUSE(check, members[i].member,
			       "`%s` is given, but strategy is %s, which does not look at it: leave it out",
			       members[i].member, check->name);
	}
}

static void repetitions_are_silent(const struct check *check)
{
	if (check->needs->silent && check->contract->emits.count)
		REFUSE(check, "emits",
		       "emits is not empty, but strategy is %s: every repetition would tell others again",
		       check->name);
}

static void staged_work_has_a_strategy_that_waits(const struct check *check)
{
	enum contract_strategy strategy = check->contract->strategy;
	if (check->contract->upstream.given)
		return; /* another rule reports it */
	if (form_find(check->root, "staged") && strategy != STRATEGY_KEY &&
	    strategy != STRATEGY_UNIQUE && strategy != STRATEGY_EXTERNAL)
		REFUSE(check, "staged",
		       "the command is staged, but strategy is %s: what holds while its work is done "
		       "outside can't be looked at in one transaction; use external, unique or key",
		       check->name);
}

static void partner_is_asked_by_a_program(const struct check *check)
{
	const struct contract_staged *staged = &check->contract->staged;
	if (check->contract->strategy == STRATEGY_EXTERNAL && staged->lease_us &&
	    staged->recover == RECOVER_HUMAN)
		REFUSE(check, "staged.recover",
		       "staged.recover is human, but strategy is external: under a key that the partner "
		       "keeps, a program can ask: inquiry, or { sql: FILE }");
}

static void version_is_a_number_that_is_always_there(const struct check *check)
{
	const char *pointer = check->contract->guard.version;
	const struct contract_field *field = pointer ? contract_field_at(check->contract, pointer)
	                                             : NULL;
	if (!pointer)
		return;
	if (!field)
		REFUSE(check, "guard.version", "guard.version names %s, which is not a declared field",
		       pointer);
	else if (field->type != FIELD_INTEGER || !field->required)
		REFUSE(check, "guard.version",
		       "guard.version names %s: it must be a required integer, so that any two compare",
		       pointer);
}

static void what_is_not_kept_is_not_promised(const struct check *check)
{
	if (check->contract->strategy != STRATEGY_NONE)
		return;
	if (form_find(check->root, "unique"))
		REFUSE(check, "unique",
		       "`unique` guards the fact, but strategy is none: then strategy is unique");
	if (check->contract->answer != ANSWER_NONE)
		REFUSE(check, "answer.store",
		       "answer.store keeps something for duplicates, but strategy is none: it must be "
		       "none, too");
}

/* Is the answer one that could be read? */
static bool strategy_is_read(const struct check *check)
{
	const struct node *node = form_find(check->root, "strategy");
	return node && node->type == NODE_TEXT && strcmp(node->text, check->name) == 0;
}

void command_check_strategy(struct reading *reading, const struct contract *contract,
                            const struct node *root)
{
	static void (*const rules[])(const struct check *) = {
	    members_belong_to_the_strategy,           repetitions_are_silent,
	    staged_work_has_a_strategy_that_waits,    partner_is_asked_by_a_program,
	    version_is_a_number_that_is_always_there, what_is_not_kept_is_not_promised,
	};
	struct check check = {reading, contract, root, &needs[contract->strategy],
	                      contract_strategy_name(contract->strategy)};
	if (reading->kept || !strategy_is_read(&check))
		return;
	if (contract->strategy == STRATEGY_INBOX) {
		REFUSE(
		    &check, "strategy",
		    "strategy is inbox: that belongs to consumers, which this version does not read yet");
		return;
	}
	for (size_t i = 0; i < COUNT(rules); i++)
		rules[i](&check);
}
