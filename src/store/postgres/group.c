/* SPDX-License-Identifier: Apache-2.0 */
/* group.c -- several commands in one transaction, in three trips: claim all, run all, write all.
 *
 * There are no savepoints: most members succeed, and one that does not is left out when the others
 * run again. So nobody's success rests on what was undone, and a savepoint's costs are spared: a
 * subtransaction and its id for each member. What a member left for the end of the transaction is
 * checked before the next one's turn, where the database has a constraint that can be put off; or
 * a neighbour could heal what must fail. A script that sets something for the transaction runs
 * alone. */
#include "base/str.h"
#include "store/postgres/postgres.h"

#include <stdio.h>
#include <string.h>

enum {
	RUNS_MAX = 8,      /* then who is left runs alone */
	ROW_WAIT_MS = 100, /* less than it takes the server to find a deadlock */
};

/* The members that are still to be run, and where. */
struct group {
	struct pg_store *store;
	struct pg_conn *conn;
	struct arena arena;
	struct group_member *members[GROUP_MAX];
	size_t count;
	struct pg_emitted emitted; /* what the scripts told to be written */
	const char *turn;          /* whose it is when all have run; nobody's: no_turn */
};

/* A script that only tells its events needs no turn. Whatever asks for the running command all the
 * same, in a function or a trigger, finds none and fails. */
static const char no_turn[] = "group";

static void leave_out(struct group *group, size_t at)
{
	group->count--;
	memmove(group->members + at, group->members + at + 1,
	        (group->count - at) * sizeof *group->members);
}

/* ---- Claiming ------------------------------------------------------------------------------- */

/* What one member has in an array that all share; NULL is SQL NULL. */
typedef const char *column_fn(struct arena *, const struct group_member *);

#define COLUMN(name, expression)                                                                   \
	static const char *name(struct arena *arena, const struct group_member *member)                \
	{                                                                                              \
		(void)arena;                                                                               \
		return (expression);                                                                       \
	}
COLUMN(lock_of, pg_int(arena, pg_lock_key(&member->row.identity)))
COLUMN(tenant_of, member->row.identity.tenant)
COLUMN(operation_of, member->row.identity.operation)
COLUMN(scope_of, member->row.identity.scope)
COLUMN(key_of, member->row.identity.key)
COLUMN(id_of, pg_uuid(arena, &member->row.id))
COLUMN(scheme_of, pg_int(arena, member->row.scheme))
COLUMN(version_of, pg_int(arena, member->row.contract_version))
COLUMN(fingerprint_of, pg_hash(arena, &member->row.fingerprint))
COLUMN(status_of, pg_int(arena, member->row.status))
COLUMN(kept_type_of, member->row.resource_type)
COLUMN(kept_id_of, member->row.resource_id)
COLUMN(client_of, member->row.client)
COLUMN(actor_of, member->row.actor)
COLUMN(at_of, pg_time(arena, member->row.finished_us))
COLUMN(expires_of, pg_time_or_null(arena, member->row.expires_us))
COLUMN(fact_of, member->audit.fact)
COLUMN(resource_type_of, member->audit.resource_type)
COLUMN(resource_id_of, member->audit.resource_id)
COLUMN(correlation_of, member->audit.correlation_id)
COLUMN(causation_of, member->audit.causation_id)
COLUMN(trace_of, pg_trace(arena, member->audit.traceparent, member->audit.tracestate))
#undef COLUMN

void pg_array_add(struct str *text, const char *value)
{
	str_adds(text, text->size ? "," : "{");
	str_adds(text, value ? "\"" : "null");
	for (const char *at = value; at && *at; at++) {
		if (*at == '"' || *at == '\\')
			str_addc(text, '\\');
		str_addc(text, *at);
	}
	str_adds(text, value ? "\"" : "");
}

/* One value of each member, as the text of an array. */
static const char *array_of(struct group *group, column_fn *column)
{
	struct str text = STR_INIT(64 << 20);
	for (size_t i = 0; i < group->count; i++)
		pg_array_add(&text, column(&group->arena, group->members[i]));
	str_addc(&text, '}');
	const char *array = text.failed ? NULL : arena_strndup(&group->arena, text.data, text.size);
	group->arena.failed |= text.failed;
	str_release(&text);
	return array;
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
		pg_read_command(member->arena, find->result, row, &claim.row);
		if (claim.row.state == COMMAND_COMPLETED)
			member->claim = claim;
		found[at] = true;
	}
	for (size_t i = group->count; i-- > 0;) {
		if (!found[i] && !gained[i])
			group->members[i]->claim.kind = CLAIM_BUSY;
		if (found[i] || !gained[i])
			leave_out(group, i);
	}
}

static enum ibid_code claim_all(struct group *group, struct ibid_err *err)
{
	const char *lock[] = {array_of(group, lock_of), pg_int(&group->arena, ROW_WAIT_MS)};
	const char *find[] = {array_of(group, tenant_of), array_of(group, operation_of),
	                      array_of(group, scope_of), array_of(group, key_of)};
	struct pg_call calls[] = {
	    PG_CALL(BEGIN),
	    PG_CALL(GROUP_PLAN),
	    PG_CALL(GROUP_LOCK, .values = lock),
	    PG_CALL(GROUP_FIND, .values = find),
	    PG_CALL(GROUP_PLAN_END),
	};
	enum { COUNT = sizeof calls / sizeof *calls, LOCK = 2, FIND };
	if (group->arena.failed)
		return err_set(err, IBID_NOMEM, "out of memory");
	enum ibid_code code = pg_pool_trip(group->store, calls, COUNT, &group->conn, err);
	if (!code)
		sort_out(group, &calls[LOCK], &calls[FIND]);
	pg_release(calls, COUNT);
	return code;
}

/* ---- Running -------------------------------------------------------------------------------- */

/* All calls of the run; a member's begin at `first[i]`, with its turn where that changes, and its
 * script's at `script[i]`. */
struct run {
	struct pg_call *calls;
	size_t count;
	size_t first[GROUP_MAX + 1], script[GROUP_MAX];
	bool settles; /* each member's calls end with group_settle */
};

static const char **turn_values(struct group *group, const struct group_member *member)
{
	struct arena *arena = &group->arena;
	const struct work_context *context = member->context;
	bool told = member->script->told;
	const char *next = told ? no_turn : pg_uuid(arena, &context->command_id);
	const char *own[] = {
	    next,
	    told ? "" : context->tenant,
	    !told && context->correlation_id ? context->correlation_id : "",
	    !told && context->causation_id ? context->causation_id : "",
	    told ? "" : pg_emits(arena, context),
	    told ? "" : pg_time(arena, context->now_us),
	    group->turn,
	    told ? "" : pg_trace(arena, context->traceparent, context->tracestate),
	    told ? "" : "0",
	};
	const char **values = arena_array(arena, sizeof own / sizeof *own, sizeof *values);
	if (values)
		memcpy(values, own, sizeof own);
	group->turn = next;
	return values;
}

static bool make_run(struct group *group, struct run *ret)
{
	struct arena *arena = &group->arena;
	size_t count = 1;
	for (size_t i = 0; i < group->count; i++)
		count += 2 + group->members[i]->script->parts.count;
	*ret = (struct run){.settles = group->store->settles};
	group->turn = no_turn;
	ret->calls = arena_array(arena, count, sizeof *ret->calls);
	for (size_t i = 0; ret->calls && i < group->count; i++) {
		const struct group_member *member = group->members[i];
		const struct script *script = member->script;
		ret->first[i] = ret->count;
		if (!script->told || group->turn != no_turn)
			ret->calls[ret->count++] = PG_CALL(GROUP_TURN, .values = turn_values(group, member));
		ret->script[i] = ret->count;
		for (size_t k = 0; k < script->parts.count; k++)
			ret->calls[ret->count++] = (struct pg_call){
			    .statement = script->told ? &script->told[k] : &script->statements[k],
			    .values = pg_script_values(arena, &script->parts.items[k], member->values, 0),
			};
		if (ret->settles)
			ret->calls[ret->count++] = PG_CALL(GROUP_SETTLE);
	}
	if (ret->calls) {
		ret->first[group->count] = ret->count;
		ret->calls[ret->count++] = PG_CALL(GROUP_DEFERRABLE);
	}
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

/* IBID_OK: one is left out, and the others may run again. */
static enum ibid_code run_failed(struct group *group, const struct run *run,
                                 const struct pg_trip *trip, struct ibid_err *err)
{
	const PGresult *result = pg_trip_error(group->conn, run->calls, run->count, trip);
	struct outcome ignored;
	enum ibid_code code = pg_error_outcome(group->conn, result, &group->arena, &ignored, err);
	size_t at = member_at(group, run, trip->done);
	if (pg_error_is_fatal(group->conn, result)) {
		group->conn->broken = true;
		return code;
	}
	bool own = code == IBID_REJECTED || code == IBID_DUPLICATE || code == IBID_FAILED ||
	           code == IBID_LIMIT ||
	           (code == IBID_MISUSE && at < group->count &&
	            trip->done >= run->script[at]); /* its script's own words */
	if (!own || at == group->count)
		return code;
	leave_out(group, at);
	return IBID_OK;
}

/* The events of one member. False: one of them is no good. */
static bool read_events(struct group *group, const struct run *run, size_t at)
{
	const struct group_member *member = group->members[at];
	const struct script *script = member->script;
	group->emitted.last = 0;
	for (size_t k = 0; script->told && k < script->parts.count; k++)
		if (script->told[k].sql != script->statements[k].sql &&
		    !pg_emitted_read(&group->arena, member->context, run->calls[run->script[at] + k].result,
		                     &group->emitted))
			return false;
	return true;
}

/* Read the answers. False: one is not a success, and is left out. */
static bool read_answers(struct group *group, const struct run *run)
{
	struct ibid_err ignored;
	group->emitted = (struct pg_emitted){.end = &group->emitted.first};
	for (size_t i = 0; i < group->count; i++) {
		struct group_member *member = group->members[i];
		const PGresult *result =
		    run->calls[run->script[i] + member->script->parts.count - 1].result;
		if (!read_events(group, run, i) ||
		    pg_read_answer(member->arena, result, 0, &member->outcome, &ignored) ||
		    !member->complete(member)) {
			leave_out(group, i);
			return false;
		}
	}
	return true;
}

/* `*ret_whole`: all that are in the group have succeeded, and the transaction is open. */
static enum ibid_code run_all(struct group *group, bool *ret_whole, struct ibid_err *err)
{
	struct run run;
	struct pg_trip trip;
	enum ibid_code code = IBID_OK;
	*ret_whole = false;
	if (!make_run(group, &run))
		return err_set(err, IBID_NOMEM, "out of memory");
	if (!pg_trip(group->conn, run.calls, run.count, &trip)) {
		code = run_failed(group, &run, &trip, err);
	} else if (pg_cell_bool(run.calls[run.count - 1].result, 0, 0) && !run.settles) {
		group->store->settles = true;
	} else {
		*ret_whole = read_answers(group, &run);
	}
	pg_release(run.calls, run.count);
	return code;
}

/* ---- Writing -------------------------------------------------------------------------------- */

/* In the order of group_write's parameters. */
static column_fn *const written[] = {
    tenant_of,  operation_of,     scope_of,       key_of,         id_of,
    scheme_of,  version_of,       fingerprint_of, status_of,      kept_type_of,
    kept_id_of, client_of,        actor_of,       at_of,          expires_of,
    fact_of,    resource_type_of, resource_id_of, correlation_of, causation_of,
    trace_of,
};

static enum ibid_code queue_events(struct group *group, struct pg_tx *tx, struct ibid_err *err)
{
	const char **values = pg_emitted_values(&group->arena, &group->emitted);
	return values ? pg_tx_queue(tx, PG_CALL(GROUP_EVENTS, .values = values), err)
	              : err_set(err, IBID_NOMEM, "out of memory");
}

static enum ibid_code queue_rows(struct group *group, struct pg_tx *tx, struct ibid_err *err)
{
	enum { COUNT = sizeof written / sizeof *written };
	const char **values = arena_array(&group->arena, COUNT, sizeof *values);
	for (size_t i = 0; values && i < COUNT; i++)
		values[i] = array_of(group, written[i]);
	if (group->arena.failed)
		return err_set(err, IBID_NOMEM, "out of memory");
	enum ibid_code code = pg_tx_queue(tx, PG_CALL(GROUP_PLAN), err);
	if (!code && group->emitted.count)
		code = queue_events(group, tx, err);
	if (!code)
		code = pg_tx_queue(tx, PG_CALL(GROUP_WRITE, .values = values), err);
	for (size_t i = 0; !code && i < group->count; i++)
		if (group->members[i]->row.body)
			code = pg_put_body(tx, &group->members[i]->row, err);
	return code;
}

static enum ibid_code write_all(struct group *group, struct ibid_err *err)
{
	struct pg_tx *tx;
	struct outcome ignored = {0};
	const struct uuid *last = &group->members[group->count - 1]->context->command_id;
	enum ibid_code code = pg_tx_new(group->store, group->conn, last, &tx, err);
	group->conn = NULL;
	if (code)
		return code;
	snprintf(tx->command_id, sizeof tx->command_id, "%s", group->turn); /* for the guard */
	code = queue_rows(group, tx, err);
	struct tx *open = &tx->base;
	if (!code)
		code = pg_commit(&open, &group->arena, &ignored, err);
	pg_rollback(&open);
	for (size_t i = 0; !code && i < group->count; i++)
		group->members[i]->done = true;
	return code;
}

/* One transaction. `*ret_over`: committed, or nobody is left. */
static enum ibid_code run_once(struct group *group, bool *ret_over, struct ibid_err *err)
{
	bool whole = false;
	enum ibid_code code = claim_all(group, err);
	*ret_over = !code && group->count == 0;
	if (!code && group->count)
		code = run_all(group, &whole, err);
	if (!code && whole) {
		code = write_all(group, err);
		*ret_over = !code;
	}
	pg_pool_give(group->store, group->conn); /* rolls back */
	group->conn = NULL;
	return code;
}

enum ibid_code pg_run_group(struct store *base, struct group_member **members, size_t count,
                            struct ibid_err *err)
{
	struct group group = {.store = pg_store_of(base)};
	enum ibid_code code = IBID_OK;
	bool over = false;
	for (size_t i = 0; i < count; i++)
		if (!members[i]->script->leaves_state && !members[i]->script->sets)
			group.members[group.count++] = members[i];
	for (int run = 0; !code && !over && group.count && run < RUNS_MAX; run++) {
		code = run_once(&group, &over, err);
		arena_release(&group.arena);
	}
	return code;
}
