/* SPDX-License-Identifier: Apache-2.0 */
/* group.c -- commands in one transaction: one that comes alone, or up to GROUP_MAX.
 *
 * Where contracts declare the answers, all that is to be written is known before the scripts run:
 * claim, scripts, rows and commit are one trip. Where a script answers, or the rows that it changes
 * are to be compared, its results are read first: two trips.
 *
 * While no duplicates come, nobody looks for rows that the identities have: command_pkey finds them
 * when rows are written, all is undone, and the group starts over. That costs more than to look, so
 * after a duplicate the next groups look first. If the answer to a trip with its commit is lost,
 * the server may not have begun when somebody looks: its locks are yet to be taken. So who then
 * runs the commands again counts on command_pkey, as ever (I2), and whoever can't, has to say that
 * nobody knows (I7).
 *
 * There are no savepoints: most members succeed, and one that does not is left out when the others
 * run again. So nobody's success rests on what was undone, and a savepoint's costs are spared: a
 * subtransaction and its id for each member. What a member left for the end of the transaction is
 * checked before the next one's turn, where the database has a constraint that can be put off; or
 * a neighbour could heal what must fail. A script that sets something for the transaction runs
 * by the steps. */
#include "store/postgres/array.h"

#include <stdio.h>
#include <string.h>

enum {
	RUNS_MAX = 8,      /* then who is left runs alone */
	LOOKS = 4,         /* groups that look first after a duplicate came */
	ROW_WAIT_MS = 100, /* of several: less than the server takes to look for a deadlock */
};

/* The members that are still to be run, and where. */
struct group {
	struct pg_store *store;
	struct pg_conn *conn;
	struct arena arena;
	struct group_member *members[GROUP_MAX];
	size_t count;
	bool alone;       /* what stops the one member is its own doing */
	const char *turn; /* whose it is when all have run; nobody's: no_turn */
};

/* A script that emits nothing needs no turn. Whatever asks for the running command all the same, in
 * a function or a trigger, finds none and fails; from then on its script has its turn. */
static const char no_turn[] = "group";

static bool needs_turn(const struct group_member *member)
{
	const struct work_context *context = member->context;
	return (context->emit_count && !context->makes_events) || atomic_load(member->script->asks);
}

static void leave_out(struct group *group, size_t at)
{
	group->count--;
	memmove(group->members + at, group->members + at + 1,
	        (group->count - at) * sizeof *group->members);
}

/* ---- Claiming ------------------------------------------------------------------------------- */

/* What one member has in an array that all share. */
struct column {
	enum pg_element element;
	void (*add)(struct pg_arrays *arrays, const struct group_member *member);
};

#define COLUMN(name, kind, expression)                                                             \
	static void add_##name(struct pg_arrays *arrays, const struct group_member *member)            \
	{                                                                                              \
		expression;                                                                                \
	}                                                                                              \
	static const struct column name##_of = {kind, add_##name};
#define TEXT_COLUMN(name, member) COLUMN(name, PG_TEXT, pg_arrays_text(arrays, member))
#define INT_COLUMN(name, member)  COLUMN(name, PG_INT4, pg_arrays_int4(arrays, member))
TEXT_COLUMN(tenant, member->row.identity.tenant)
TEXT_COLUMN(operation, member->row.identity.operation)
TEXT_COLUMN(scope, member->row.identity.scope)
TEXT_COLUMN(key, member->row.identity.key)
COLUMN(id, PG_UUID, pg_arrays_uuid(arrays, &member->row.id))
INT_COLUMN(scheme, member->row.scheme)
INT_COLUMN(version, member->row.contract_version)
COLUMN(fingerprint, PG_BYTES,
       pg_arrays_bytes(arrays, member->row.fingerprint.bytes, sizeof member->row.fingerprint.bytes))
INT_COLUMN(status, member->row.status)
TEXT_COLUMN(kept_type, member->row.resource_type)
TEXT_COLUMN(kept_id, member->row.resource_id)
TEXT_COLUMN(client, member->row.client)
TEXT_COLUMN(actor, member->row.actor)
COLUMN(at, PG_TIME, pg_arrays_time(arrays, member->row.finished_us))
COLUMN(expires, PG_TIME, pg_arrays_time_or_null(arrays, member->row.expires_us))
TEXT_COLUMN(fact, member->audit.fact)
TEXT_COLUMN(resource_type, member->audit.resource_type)
TEXT_COLUMN(resource_id, member->audit.resource_id)
TEXT_COLUMN(correlation, member->audit.correlation_id)
TEXT_COLUMN(causation, member->audit.causation_id)
TEXT_COLUMN(traceparent, member->audit.traceparent)
TEXT_COLUMN(tracestate, member->audit.tracestate)
#undef COLUMN

/* Columns of all members, as the parameters of a call. False without memory. */
static bool list_members(struct group *group, const struct column *const *columns, size_t count,
                         struct pg_call *call)
{
	struct pg_arrays arrays = PG_ARRAYS_INIT;
	for (size_t i = 0; i < count; i++) {
		pg_arrays_begin(&arrays, columns[i]->element, group->count);
		for (size_t k = 0; k < group->count; k++)
			columns[i]->add(&arrays, group->members[k]);
	}
	return pg_arrays_end(&arrays, &group->arena, call);
}
#define LIST_MEMBERS(group, columns, call)                                                         \
	list_members(group, columns, sizeof(columns) / sizeof *(columns), call)

/* The parameters of group_take and group_lock. */
static bool list_locks(struct group *group, struct pg_call *call)
{
	struct pg_arrays arrays = PG_ARRAYS_INIT;
	pg_arrays_begin(&arrays, PG_INT8, group->count);
	for (size_t i = 0; i < group->count; i++)
		pg_arrays_int8(&arrays, pg_lock_key(&group->members[i]->row.identity));
	pg_arrays_begin(&arrays, PG_INT4, 1);
	pg_arrays_int4(&arrays, group->alone ? (int32_t)group->store->busy_ms : ROW_WAIT_MS);
	return pg_arrays_end(&arrays, &group->arena, call);
}

static void note_duplicates(struct pg_store *store, bool came)
{
	int looks = store->looks;
	if (came)
		store->looks = LOOKS;
	else if (looks) /* two groups may count as one: then it takes one more */
		store->looks = looks - 1;
}

/* Those that can't be run here: told, where a look is enough, or left to run alone. */
static void sort_out(struct group *group, const struct pg_call *lock, const struct pg_call *find)
{
	bool found[GROUP_MAX] = {false}, gained[GROUP_MAX] = {false};
	for (size_t i = 0; i < group->count; i++)
		gained[i] = pg_cell_bool(lock->result, (int)i, 0);
	for (int row = 0; row < PQntuples(find->result); row++) {
		size_t at = (size_t)pg_cell_int(find->result, row, PQnfields(find->result) - 1);
		struct group_member *member = group->members[at];
		struct claim claim = {.kind = CLAIM_FOUND};
		/* A state of a newer schema is refused where the command goes alone. */
		struct ibid_err ignored;
		enum ibid_code code = pg_read_command(member->arena, find->result, row, &claim.row,
		                                      &ignored);
		if (!code && claim.row.state == COMMAND_COMPLETED)
			member->claim = claim;
		found[at] = true;
	}
	size_t count = group->count;
	for (size_t i = count; i-- > 0;) {
		if (!found[i] && !gained[i])
			group->members[i]->claim.kind = CLAIM_BUSY;
		if (found[i] || !gained[i])
			leave_out(group, i);
	}
	note_duplicates(group->store, group->count < count);
}

static const struct column *const identity_columns[] = {&tenant_of, &operation_of, &scope_of,
                                                        &key_of};

static enum ibid_code claim_all(struct group *group, struct ibid_err *err)
{
	struct pg_call calls[] = {
	    PG_CALL(BEGIN),      PG_CALL(GROUP_PLAN),     PG_CALL(GROUP_LOCK),
	    PG_CALL(GROUP_FIND), PG_CALL(GROUP_PLAN_END),
	};
	enum { COUNT = sizeof calls / sizeof *calls, LOCK = 2, FIND };
	if (!list_locks(group, &calls[LOCK]) || !LIST_MEMBERS(group, identity_columns, &calls[FIND]))
		return err_set(err, IBID_NOMEM, "out of memory");
	enum ibid_code code = pg_pool_trip(group->store, calls, COUNT, &group->conn, err);
	if (!code)
		sort_out(group, &calls[LOCK], &calls[FIND]);
	pg_release(calls, COUNT);
	return code;
}

/* ---- Running -------------------------------------------------------------------------------- */

/* All calls of the run, behind those of the claim where it was not made before; a member's begin at
 * `first[i]`, with its turn where that changes, and its script's at `script[i]`. */
struct run {
	struct pg_call *calls;
	size_t count;
	size_t first[GROUP_MAX + 1], script[GROUP_MAX];
	bool settles; /* each member's calls end with group_settle; or else group_deferrable is last */
};

static const char **turn_values(struct group *group, const struct group_member *member)
{
	struct arena *arena = &group->arena;
	const struct work_context *context = member->context;
	bool turn = needs_turn(member);
	const char *next = turn ? pg_uuid(arena, &context->command_id) : no_turn;
	const char *own[] = {
	    next,
	    turn ? context->tenant : "",
	    turn && context->correlation_id ? context->correlation_id : "",
	    turn && context->causation_id ? context->causation_id : "",
	    turn ? pg_emits(arena, context) : "",
	    turn ? pg_time(arena, context->now_us) : "",
	    group->turn,
	    turn ? pg_trace(arena, context->traceparent, context->tracestate) : "",
	    turn ? "0" : "",
	};
	const char **values = arena_array(arena, sizeof own / sizeof *own, sizeof *values);
	if (values)
		memcpy(values, own, sizeof own);
	group->turn = next;
	return values;
}

enum { CLAIM_CALLS = 2 };

/* Calls that claim all, or fail: whether an identity has a row is left to command_pkey. */
static bool add_claim(struct group *group, struct run *run)
{
	struct pg_call take = PG_CALL(GROUP_TAKE);
	if (!list_locks(group, &take))
		return false;
	run->calls[run->count++] = PG_CALL(BEGIN);
	run->calls[run->count++] = take;
	return true;
}

static void add_script(struct group *group, const struct group_member *member, struct run *run)
{
	const struct script *script = member->script;
	for (size_t k = 0; k < script->parts.count; k++)
		run->calls[run->count++] = (struct pg_call){
		    .statement = &script->statements[k],
		    .values = pg_script_values(&group->arena, &script->parts.items[k], member->values),
		};
}

/* With `claims`: nothing was claimed yet. */
static bool make_run(struct group *group, bool claims, struct run *ret)
{
	struct arena *arena = &group->arena;
	size_t count = CLAIM_CALLS + 1;
	for (size_t i = 0; i < group->count; i++)
		count += 2 + group->members[i]->script->parts.count;
	*ret = (struct run){.settles = group->store->settles};
	group->turn = no_turn;
	ret->calls = arena_array(arena, count, sizeof *ret->calls);
	if (!ret->calls || (claims && !add_claim(group, ret)))
		return false;
	for (size_t i = 0; i < group->count; i++) {
		const struct group_member *member = group->members[i];
		ret->first[i] = ret->count;
		if (needs_turn(member) || group->turn != no_turn)
			ret->calls[ret->count++] = PG_CALL(GROUP_TURN, .values = turn_values(group, member));
		ret->script[i] = ret->count;
		add_script(group, member, ret);
		if (ret->settles && !group->alone)
			ret->calls[ret->count++] = PG_CALL(GROUP_SETTLE);
	}
	ret->first[group->count] = ret->count;
	if (!ret->settles && !group->alone)
		ret->calls[ret->count++] = PG_CALL(GROUP_DEFERRABLE);
	return !arena->failed;
}

/* Whose call it is; the group's size for the one behind them. */
static size_t member_at(const struct group *group, const struct run *run, size_t call)
{
	size_t at = 0;
	while (at < group->count && call >= run->first[at + 1])
		at++;
	return at;
}

static bool has_state(const PGresult *result, const char *state)
{
	const char *own = PQresultErrorField(result, PG_DIAG_SQLSTATE);
	return own && strcmp(own, state) == 0;
}

/* What the caller of the one member is told without that it runs once more. */
static void note_own(struct group *group, const struct run *run, size_t at, const PGresult *result,
                     const struct outcome *outcome, struct ibid_err *err)
{
	struct group_member *member = group->members[0];
	size_t first = run->script[0], parts = member->script->parts.count;
	member->outcome = *outcome;
	member->code = err->code;
	if (at >= first && at < first + parts)
		member->code = pg_script_failed(member->arena, member->script, at - first, result,
		                                &member->outcome, err);
	/* It may have failed for want of a turn. */
	if (member->code != IBID_REJECTED && member->code != IBID_DUPLICATE && group->turn == no_turn)
		member->code = IBID_OK;
}

/* Whose fault it is that call `at` failed, as `err` says. IBID_OK: the others may run again, or all
 * of them, in another way. */
static enum ibid_code blame(struct group *group, const struct run *run, size_t at,
                            const PGresult *result, const struct outcome *outcome,
                            struct ibid_err *err)
{
	enum ibid_code code = err->code;
	size_t member = member_at(group, run, at);
	if (at < run->first[0]) { /* nothing was run: one is being run elsewhere */
		note_duplicates(group->store, true);
		return has_state(result, "IB009") ? IBID_OK : code;
	}
	if (member == group->count) {
		bool deferrable = has_state(result, "IB018");
		group->store->settles = group->store->settles || deferrable;
		return deferrable ? IBID_OK : code;
	}
	bool failed = code == IBID_FAILED || code == IBID_LIMIT ||
	              (code == IBID_MISUSE && at >= run->script[member]); /* its script's own words */
	if (!failed && code != IBID_REJECTED && code != IBID_DUPLICATE)
		return code;
	if (failed && !needs_turn(group->members[member]))
		atomic_store(group->members[member]->script->asks, true);
	if (group->alone && code != IBID_MISUSE)
		note_own(group, run, at, result, outcome, err);
	if (group->alone && code == IBID_DUPLICATE) /* of a command that came again, most likely */
		note_duplicates(group->store, true);
	leave_out(group, member);
	return IBID_OK;
}

/* IBID_OK: as for blame; or the connection had died in the pool, and the next run is on a good one.
 */
static enum ibid_code run_failed(struct group *group, const struct run *run,
                                 const struct pg_trip *trip, struct ibid_err *err)
{
	const PGresult *result = pg_trip_error(group->conn, run->calls, run->count, trip);
	struct outcome outcome = {0};
	bool claims = trip->done < run->first[0];
	bool fatal = pg_error_is_fatal(group->conn, result);
	enum ibid_code code = claims ? pg_error(group->conn, result, err)
	                             : pg_error_outcome(group->conn, result, group->members[0]->arena,
	                                                &outcome, err);
	if (!fatal)
		return blame(group, run, trip->done, result, &outcome, err);
	group->conn->broken = true;
	if (claims)
		note_duplicates(group->store, true); /* so it looks first */
	return claims && group->conn->rested ? IBID_OK : code;
}

/* What the server gave, of one member. False: it is no plain success. */
static bool read_member(struct group_member *member, const struct pg_call *script)
{
	size_t count = member->script->parts.count;
	struct ibid_err ignored;
	if (!member->answered &&
	    pg_read_answer(member->arena, script[count - 1].result, &member->outcome, &ignored))
		return false;
	if (pg_read_rows(member->arena, script, count, &member->outcome, &ignored))
		return false;
	return member->complete(member);
}

/* False: one is not a success, and is left out. */
static bool read_all(struct group *group, const struct run *run)
{
	for (size_t i = 0; i < group->count; i++) {
		if (read_member(group->members[i], &run->calls[run->script[i]]))
			continue;
		leave_out(group, i);
		return false;
	}
	return true;
}

/* `*ret_whole`: all that are in the group have succeeded, and the transaction is open. */
static enum ibid_code run_all(struct group *group, bool claims, bool *ret_whole,
                              struct ibid_err *err)
{
	struct run run;
	struct pg_trip trip;
	enum ibid_code code = IBID_OK;
	*ret_whole = false;
	if (!make_run(group, claims, &run))
		return err_set(err, IBID_NOMEM, "out of memory");
	if (claims)
		code = pg_pool_take(group->store, false, &group->conn, err);
	if (code)
		return code;
	if (!pg_trip(group->conn, run.calls, run.count, &trip))
		code = run_failed(group, &run, &trip, err);
	else
		*ret_whole = read_all(group, &run);
	pg_release(run.calls, run.count);
	return code;
}

/* ---- Writing -------------------------------------------------------------------------------- */

static enum ibid_code queue_events(struct group *group, struct pg_tx *tx, struct ibid_err *err)
{
	struct pg_call call = PG_CALL(GROUP_EVENTS);
	bool any = false;
	for (size_t i = 0; i < group->count; i++)
		any |= group->members[i]->event_count > 0;
	if (!any)
		return IBID_OK;
	return pg_group_events(&group->arena, group->members, group->count, &call)
	           ? pg_tx_queue(tx, call, err)
	           : err_set(err, IBID_NOMEM, "out of memory");
}

/* By the verbs of one command. */
static enum ibid_code queue_member(struct tx *tx, const struct group_member *member,
                                   struct ibid_err *err)
{
	enum ibid_code code = IBID_OK;
	for (size_t i = 0; !code && i < member->event_count; i++)
		code = pg_put_event(tx, &member->events[i], err);
	if (!code)
		code = store_put_audit(tx, &member->audit, err);
	return code ? code : pg_put_command(tx, &member->row, NULL, err);
}

static enum ibid_code queue_rows(struct group *group, struct pg_tx *tx, struct ibid_err *err)
{
	/* In the order of group_write's parameters. */
	static const struct column *const columns[] = {
	    &tenant_of,      &operation_of,     &scope_of,       &key_of,         &id_of,
	    &scheme_of,      &version_of,       &fingerprint_of, &status_of,      &kept_type_of,
	    &kept_id_of,     &client_of,        &actor_of,       &at_of,          &expires_of,
	    &fact_of,        &resource_type_of, &resource_id_of, &correlation_of, &causation_of,
	    &traceparent_of, &tracestate_of,
	};
	struct pg_call write = PG_CALL(GROUP_WRITE);
	if (!LIST_MEMBERS(group, columns, &write))
		return err_set(err, IBID_NOMEM, "out of memory");
	enum ibid_code code = pg_tx_queue(tx, PG_CALL(GROUP_PLAN), err);
	if (!code)
		code = queue_events(group, tx, err);
	if (!code)
		code = pg_tx_queue(tx, write, err);
	for (size_t i = 0; !code && i < group->count; i++)
		if (group->members[i]->row.body)
			code = pg_put_body(tx, &group->members[i]->row, err);
	return code;
}

/* Write the rows and commit, in one trip; what is `ahead` goes with it. */
static enum ibid_code write_all(struct group *group, struct pg_ahead *ahead, struct outcome *ret,
                                struct ibid_err *err)
{
	struct pg_tx *tx;
	const struct uuid *last = &group->members[group->count - 1]->context->command_id;
	enum ibid_code code = pg_tx_new(group->store, group->conn, last, &tx, err);
	group->conn = NULL;
	if (code)
		return code;
	snprintf(tx->command_id, sizeof tx->command_id, "%s", group->turn); /* for the guard */
	tx->ahead = ahead;
	struct tx *open = &tx->base;
	code = group->alone ? queue_member(open, group->members[0], err) : queue_rows(group, tx, err);
	if (!code)
		code = pg_commit(&open, group->members[0]->arena, ret, err);
	pg_rollback(&open);
	for (size_t i = 0; !code && i < group->count; i++)
		group->members[i]->done = true;
	return code;
}

/* What is written has its own reasons not to be: a deferred constraint, an event's version. */
static enum ibid_code write_failed(struct group *group, const struct outcome *outcome,
                                   struct ibid_err *err)
{
	struct group_member *member = group->members[0];
	bool own = err->code == IBID_REJECTED || err->code == IBID_DUPLICATE ||
	           err->code == IBID_FAILED;
	if (!group->alone || !own)
		return err->code;
	member->code = err->code;
	member->outcome = *outcome;
	group->count = 0;
	return IBID_OK;
}

/* ---- At once -------------------------------------------------------------------------------- */

/* Is everything known that a run would give? */
static bool is_known(const struct group *group)
{
	for (size_t i = 0; i < group->count; i++)
		if (!group->members[i]->answered || group->members[i]->compares)
			return false;
	return true;
}

/* Scripts, rows and commit are one trip, and so is the claim where it was not made before.
 * `*ret_whole`: all have run; `*ret_over`: and it is committed. */
static enum ibid_code run_known(struct group *group, bool claims, bool *ret_whole, bool *ret_over,
                                struct ibid_err *err)
{
	struct run run;
	struct outcome outcome = {0};
	enum ibid_code code = IBID_OK;
	if (!make_run(group, claims, &run))
		return err_set(err, IBID_NOMEM, "out of memory");
	if (claims)
		code = pg_pool_take_alive(group->store, &group->conn, err);
	if (code)
		return code;
	struct pg_ahead ahead = {run.calls, run.count, run.count};
	code = write_all(group, &ahead, &outcome, err);
	*ret_over = !code;
	*ret_whole = ahead.done == ahead.count;
	if (code && !*ret_whole)
		code = blame(group, &run, ahead.done, run.calls[ahead.done].result, &outcome, err);
	else if (code)
		code = write_failed(group, &outcome, err);
	pg_release(run.calls, run.count);
	return code;
}

/* One transaction. `*ret_over`: committed, or nobody is left. */
static enum ibid_code run_once(struct group *group, bool *ret_over, struct ibid_err *err)
{
	bool whole = false, over = false, at_once = !group->store->looks;
	struct outcome outcome = {0};
	enum ibid_code code = at_once ? IBID_OK : claim_all(group, err);
	if (!code && group->count && is_known(group)) {
		code = run_known(group, at_once, &whole, &over, err);
	} else if (!code && group->count) {
		code = run_all(group, at_once, &whole, err);
		if (!code && whole) {
			code = write_all(group, NULL, &outcome, err);
			over = !code;
			if (code)
				code = write_failed(group, &outcome, err);
		}
	}
	if (at_once && whole && code == IBID_RETRY) { /* of those that nobody looked for, most likely */
		note_duplicates(group->store, true);
		code = IBID_OK;
	}
	*ret_over = over || (!code && !group->count);
	pg_pool_give(group->store, group->conn); /* rolls back */
	group->conn = NULL;
	return code;
}

size_t pg_lanes(const struct store *store)
{
	return ((const struct pg_store *)store)->own.lanes;
}

/* Versions and keys that events bring along are compared one by one, by the verbs of one command.
 */
static bool fits(const struct group_member *member, bool alone)
{
	for (size_t i = 0; !alone && i < member->event_count; i++)
		if (member->events[i].version || member->events[i].key)
			return false;
	return !member->script->leaves_state && !member->script->sets;
}

enum ibid_code pg_run_group(struct store *base, struct group_member **members, size_t count,
                            struct ibid_err *err)
{
	struct group group = {.store = pg_store_of(base)};
	enum ibid_code code = IBID_OK;
	bool over = false;
	for (size_t i = 0; i < count; i++)
		if (fits(members[i], count == 1))
			group.members[group.count++] = members[i];
	group.alone = count == 1;
	for (int run = 0; !code && !over && group.count && run < RUNS_MAX; run++) {
		code = run_once(&group, &over, err);
		arena_release(&group.arena);
	}
	return code;
}
