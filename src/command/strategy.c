/* SPDX-License-Identifier: Apache-2.0 */
/* strategy.c -- hold a handler to what its contract says about repetitions (A07).
 *
 * The key recognises the same command. A strategy recognises the same intent under another key, by
 * looking at the state that the handler works on, before and after it.
 *
 * (S1) Whoever looks holds the row that the contract names, until its transaction ends: of two
 *      commands with one target the second one sees what the first one did.
 * (S2) What holds already is not made to hold again: no handler, no event, one audit entry.
 * (S3) A handler that did not do what its strategy says has failed, and leaves nothing. */
#include "command/strategy.h"

#include "base/json.h"
#include "command/params.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* One command under its strategy. */
struct course {
	struct submission *sub;
	struct ibid_work *work;
	handler_run *run;
	bool linked;
};

/* ---- Looking -------------------------------------------------------------------------------- */

/* S1. The fields' values name the row within its tenant, whichever operation asks. */
static enum ibid_code hold_row(const struct ibid_work *work, struct ibid_err *err)
{
	const struct store_ops *ops = work->tx->store->ops;
	const struct texts *fields = &work->contract->serialize_by;
	struct str row = STR_INIT(ARENA_CAP_DEFAULT);
	if (!ops->lock_row)
		return IBID_OK;
	str_addc(&row, '[');
	str_add_json(&row, work->identity->tenant, strlen(work->identity->tenant));
	for (size_t i = 0; i < fields->count; i++) {
		const char *value = ibid_field_text(work, fields->items[i]);
		str_addc(&row, ',');
		if (value)
			str_add_json(&row, value, strlen(value));
		else
			str_adds(&row, "null");
	}
	str_addc(&row, ']');
	enum ibid_code code = row.failed ? err_set(err, IBID_NOMEM, "out of memory")
	                                 : ops->lock_row(work->tx, str_text(&row), err);
	str_release(&row);
	return code;
}

/* Run a script that looks, beside what the handler has said. IBID_OK: `ret->found` says whether
 * there is a row. Any other code is one of a handler, and the work's outcome says why. */
static enum ibid_code look(struct ibid_work *work, const struct script *script, struct outcome *ret,
                           struct ibid_err *err)
{
	struct outcome said = work->outcome;
	work->outcome = (struct outcome){0};
	const char *const *values = params_values(work);
	enum ibid_code code = values ? work->tx->store->ops->run_query(work->tx, work->arena, script,
	                                                               values, &work->outcome, err)
	                             : err_set(err, IBID_NOMEM, "out of memory");
	if (code == IBID_OK && work->outcome.found)
		code = work_check_answer(work->arena, &work->outcome);
	else if (code == IBID_REJECTED)
		code = work_check_rejection(work->arena, &work->outcome);
	else if (code == IBID_DUPLICATE) /* SQLite: it changed something, and was stopped by that */
		code = outcome_fail(work->arena, &work->outcome,
		                    "a script that may only look violated the unique index %s",
		                    work->outcome.unique);
	if (code)
		return code;
	*ret = work->outcome;
	work->outcome = said;
	return IBID_OK;
}

static enum ibid_code already(const struct course *course, struct outcome *ret,
                              struct ibid_err *err)
{
	return look(course->work, course->sub->operation->already, ret, err);
}

static enum ibid_code state(const struct course *course, struct outcome *ret, struct ibid_err *err)
{
	return look(course->work, course->sub->operation->state, ret, err);
}

/* ---- Deciding ------------------------------------------------------------------------------- */

static enum ibid_code link_to(struct course *course, const struct outcome *there)
{
	course->work->outcome = *there; /* S2 */
	course->linked = true;
	return IBID_OK;
}

/* Refused for what is there, which the refusal names. */
static enum ibid_code refuse(struct ibid_work *work, const struct outcome *there,
                             const char *reason, const char *text)
{
	work->outcome = (struct outcome){.status = 409,
	                                 .reason = reason,
	                                 .text = text,
	                                 .resource_type = there->resource_type,
	                                 .resource_id = there->resource_id};
	return IBID_REJECTED;
}

#define BROKEN(work, ...) outcome_fail((work)->arena, &(work)->outcome, __VA_ARGS__)

static const char *strategy_of(const struct ibid_work *work)
{
	return contract_strategy_name(work->contract->strategy);
}

/* Run the handler. A callback that ended the transaction is found out before anything else is said
 * of it: what it did may be there for good. */
static enum ibid_code run(const struct course *course, struct ibid_work *work, struct ibid_err *err)
{
	enum ibid_code code = course->run(course->sub, work, err);
	if (code || course->sub->script)
		return code;
	return submission_check_undo(work, IBID_OK, err);
}

/* The same look after the handler: a rejection is then the handler's fault (S3). */
static enum ibid_code look_after(const struct course *course, const struct script *script,
                                 const char *member, struct outcome *ret, struct ibid_err *err)
{
	struct ibid_work *work = course->work;
	enum ibid_code code = look(work, script, ret, err);
	if (code == IBID_REJECTED)
		return BROKEN(work, "strategy is %s, but after the handler `%s` rejects with %s: %s",
		              strategy_of(work), member, work->outcome.reason,
		              work->outcome.text ? work->outcome.text : "");
	if (code == IBID_OK && !ret->found)
		return BROKEN(work,
		              "strategy is %s, but after the handler `%s` finds no row: the handler did "
		              "not do what was asked for",
		              strategy_of(work), member);
	return code;
}

static enum ibid_code run_and_reach(const struct course *course, struct ibid_err *err)
{
	struct outcome there = {0};
	enum ibid_code code = run(course, course->work, err);
	if (!code)
		code = look_after(course, course->sub->operation->already, "already", &there, err);
	return code;
}

/* ---- Strategies ----------------------------------------------------------------------------- */

static enum ibid_code run_plain(struct course *course, struct ibid_err *err)
{
	return course->run(course->sub, course->work, err);
}

static enum ibid_code run_natural(struct course *course, struct ibid_err *err)
{
	struct outcome there = {0};
	enum ibid_code code = already(course, &there, err);
	if (code)
		return code;
	return there.found ? link_to(course, &there) : run_and_reach(course, err);
}

static enum ibid_code run_set_once(struct course *course, struct ibid_err *err)
{
	struct outcome there = {0}, set = {0};
	enum ibid_code code = already(course, &there, err);
	if (!code)
		code = state(course, &set, err);
	if (code)
		return code;
	if (there.found)
		return link_to(course, &there);
	if (set.found)
		return refuse(course->work, &set, "ALREADY_SET", "it is set already, to something else");
	code = run_and_reach(course, err);
	if (!code)
		code = look_after(course, course->sub->operation->state, "state", &set, err);
	return code;
}

/* The whole number under `version` in the body of what is there; 0 where nothing is. */
static enum ibid_code version_of(struct ibid_work *work, const struct outcome *there, int64_t *ret,
                                 struct ibid_err *err)
{
	struct json *body = NULL, *version = NULL;
	char *end = "";
	*ret = 0;
	if (!there->found)
		return IBID_OK;
	if (there->body &&
	    json_read(work->arena, there->body, there->body_size, 0, &body, err) == IBID_OK)
		version = json_member(body, "version");
	errno = 0;
	if (version && version->type == JSON_NUMBER)
		*ret = strtoll(version->text, &end, 10);
	if (*ret > 0 && !*end && !errno)
		return IBID_OK;
	return BROKEN(work, "strategy is version, but the body of `state` has no whole number above 0 "
	                    "as its member version");
}

/* Is it at, before or too far beyond what is there? IBID_OK and not linked: it is applied. */
static enum ibid_code judge_version(struct course *course, int64_t asked, int64_t present,
                                    const struct outcome *there, bool *ret_apply,
                                    struct ibid_err *err)
{
	struct ibid_work *work = course->work;
	const struct contract_guard *guard = &work->contract->guard;
	struct outcome same = {0};
	const char *text = arena_printf(work->arena, "version %lld is there, %lld was asked for",
	                                (long long)present, (long long)asked);
	*ret_apply = false;
	if (asked == present && there->found) {
		enum ibid_code code = already(course, &same, err);
		if (code)
			return code;
		return same.found ? link_to(course, &same)
		                  : refuse(work, there, "VERSION_TAKEN",
		                           "that version is there already, and says something else");
	}
	if (asked < present && guard->stale == STALE_LINK)
		return link_to(course, there);
	if (asked <= present)
		return refuse(work, there, "STALE_VERSION", text);
	if (asked > present + 1 && guard->apply == GUARD_NEXT)
		return refuse(work, there, "VERSION_GAP", text);
	*ret_apply = true;
	return IBID_OK;
}

static enum ibid_code run_version(struct course *course, struct ibid_err *err)
{
	struct ibid_work *work = course->work;
	struct outcome there = {0};
	int64_t asked = 0, present = 0;
	bool apply = false;
	bool given = ibid_field_int64(work, work->contract->guard.version, &asked);
	assert(given); /* the contract's rules: a required integer */
	(void)given;
	enum ibid_code code = state(course, &there, err);
	if (!code)
		code = version_of(work, &there, &present, err);
	if (!code)
		code = judge_version(course, asked, present, &there, &apply, err);
	if (code || !apply)
		return code;
	code = run_and_reach(course, err);
	if (!code)
		code = look_after(course, course->sub->operation->state, "state", &there, err);
	if (!code)
		code = version_of(work, &there, &present, err);
	if (!code && present != asked)
		code = BROKEN(work,
		              "strategy is version, but after the handler `state` shows version %lld, and "
		              "%lld was asked for",
		              (long long)present, (long long)asked);
	return code;
}

static bool same_text(const char *a, const char *b)
{
	return a && b ? strcmp(a, b) == 0 : a == b;
}

/* Bodies are in canonical form. */
static bool same_outcome(const struct outcome *a, const struct outcome *b)
{
	return a->status == b->status && a->body_size == b->body_size &&
	       same_text(a->resource_type, b->resource_type) &&
	       same_text(a->resource_id, b->resource_id) && same_text(a->body, b->body);
}

/* Once more, for the proof; the first run has given the answer. */
static enum ibid_code run_again(const struct course *course, struct ibid_err *err)
{
	struct ibid_work *work = course->work, twin = *work;
	twin.outcome = (struct outcome){0};
	twin.answered = false;
	enum ibid_code code = run(course, &twin, err);
	switch (code) {
	case IBID_REJECTED:
	case IBID_DUPLICATE:
	case IBID_FAILED:
		return BROKEN(work, "strategy is commutative, but the handler does not run twice: %s",
		              code == IBID_DUPLICATE ? twin.outcome.unique
		              : twin.outcome.text    ? twin.outcome.text
		                                     : "");
	case IBID_MISUSE: work->outcome = twin.outcome; return code;
	default: return code;
	}
}

static enum ibid_code run_commutative(struct course *course, struct ibid_err *err)
{
	const struct script *script = course->sub->operation->state;
	struct outcome once = {0}, twice = {0};
	enum ibid_code code = run(course, course->work, err);
	if (!code)
		code = look_after(course, script, "state", &once, err);
	if (!code)
		code = run_again(course, err);
	if (!code)
		code = look_after(course, script, "state", &twice, err);
	if (!code && !same_outcome(&once, &twice))
		code = BROKEN(course->work,
		              "strategy is commutative, but running the handler twice does not leave the "
		              "state that running it once does");
	return code;
}

enum ibid_code strategy_run(struct submission *sub, struct ibid_work *work, handler_run *handler,
                            bool *ret_linked, struct ibid_err *err)
{
	static enum ibid_code (*const runs[STRATEGY_COUNT])(struct course *, struct ibid_err *) = {
	    [STRATEGY_NATURAL] = run_natural,
	    [STRATEGY_SET_ONCE] = run_set_once,
	    [STRATEGY_UNIQUE] = run_plain,
	    [STRATEGY_KEY] = run_plain,
	    [STRATEGY_INBOX] = run_plain,
	    [STRATEGY_VERSION] = run_version,
	    [STRATEGY_COMMUTATIVE] = run_commutative,
	    [STRATEGY_EXTERNAL] = run_plain,
	    [STRATEGY_NONE] = run_plain,
	};
	struct course course = {.sub = sub, .work = work, .run = handler};
	if (sub->by_person) { /* nothing runs: a person says what became of it */
		*ret_linked = false;
		return run_plain(&course, err);
	}
	enum ibid_code code = contract_looks(work->contract) ? hold_row(work, err) : IBID_OK;
	if (!code)
		code = runs[work->contract->strategy](&course, err);
	*ret_linked = course.linked;
	return code;
}
