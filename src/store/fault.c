/* SPDX-License-Identifier: Apache-2.0 */
/* fault.c -- a store that fails, loses a commit or kills the process at its N-th verb.
 *
 * Verbs that end or lend something can't fail and are not counted. Outputs of a verb that reports a
 * fault are untouched, as after a real one: verbs run into a copy. */
#include "store/fault.h"

#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

/* ---- When and how --------------------------------------------------------------------------- */

enum fault_act fault_act(struct fault *fault)
{
	if (atomic_fetch_add(&fault->verbs, 1) + 1 != fault->at)
		return FAULT_ACT_NONE;
	atomic_store(&fault->fired, true);
	switch (fault->kind) {
	case FAULT_ERROR_BEFORE:
	case FAULT_UNKNOWN_BEFORE: return FAULT_ACT_BEFORE;
	case FAULT_ERROR_AFTER: return FAULT_ACT_AFTER;
	case FAULT_KILL_BEFORE:
		kill(getpid(), SIGKILL);
		return FAULT_ACT_BEFORE; /* not reached: nobody survives SIGKILL */
	case FAULT_KILL_AFTER: return FAULT_ACT_KILL_AFTER;
	}
	return FAULT_ACT_NONE;
}

enum ibid_code fault_unavailable(struct ibid_err *err)
{
	return err_set(err, IBID_UNAVAILABLE, "injected fault");
}

/* The verb was run and said `code`. */
enum ibid_code fault_after(enum fault_act what, enum ibid_code code, struct ibid_err *err)
{
	if (what == FAULT_ACT_KILL_AFTER)
		kill(getpid(), SIGKILL);
	return what == FAULT_ACT_AFTER ? fault_unavailable(err) : code;
}

/* ---- Set-up and endings: passed on ---------------------------------------------------------- */

static void fault_close(struct store *store)
{
	struct fault *fault = fault_of(store);
	store_close(fault->inner);
	free(fault);
}

static enum ibid_code fault_migrate(struct store *store, int *ret_from, int *ret_to,
                                    struct ibid_err *err)
{
	struct fault *fault = fault_of(store);
	int from = 0, to = 0;
	enum ibid_code code;
	FAULTY(fault, code, err, fault->inner->ops->migrate(fault->inner, &from, &to, err));
	if (!code) {
		*ret_from = from;
		*ret_to = to;
	}
	return code;
}

static enum ibid_code fault_check_schema(struct store *store, int *ret_version,
                                         struct ibid_err *err)
{
	struct fault *fault = fault_of(store);
	enum ibid_code code;
	FAULTY(fault, code, err, fault->inner->ops->check_schema(fault->inner, ret_version, err));
	return code;
}

static enum ibid_code fault_apply_schema(struct store *store, const struct schema_file *file,
                                         enum schema_state *ret, struct ibid_err *err)
{
	struct fault *fault = fault_of(store);
	enum schema_state state = SCHEMA_APPLIED;
	enum ibid_code code;
	FAULTY(fault, code, err, fault->inner->ops->apply_schema(fault->inner, file, &state, err));
	if (!code)
		*ret = state;
	return code;
}

static enum ibid_code fault_check_decimal_column(struct store *store, const char *name,
                                                 struct ibid_err *err)
{
	struct fault *fault = fault_of(store);
	enum ibid_code code;
	FAULTY(fault, code, err, fault->inner->ops->check_decimal_column(fault->inner, name, err));
	return code;
}

static enum ibid_code fault_describe_index(struct store *store, struct arena *arena,
                                           const char *name, struct index_row *ret,
                                           struct ibid_err *err)
{
	struct fault *fault = fault_of(store);
	struct index_row row;
	enum ibid_code code;
	FAULTY(fault, code, err,
	       fault->inner->ops->describe_index(fault->inner, arena, name, &row, err));
	if (!code)
		*ret = row;
	return code;
}

static enum ibid_code fault_make_script(struct store *store, const char *file, const char *text,
                                        const struct param_spec *params, size_t count,
                                        struct script **ret, struct ibid_err *err)
{
	struct fault *fault = fault_of(store);
	struct store *inner = fault->inner;
	struct script *script = NULL;
	enum ibid_code code;
	FAULTY(fault, code, err,
	       inner->ops->make_script(inner, file, text, params, count, &script, err));
	if (code)
		inner->ops->free_script(inner, script);
	else
		*ret = script;
	return code;
}

static void fault_free_script(struct store *store, struct script *script)
{
	struct store *inner = fault_of(store)->inner;
	inner->ops->free_script(inner, script);
}

static enum ibid_code fault_prepare_scripts(struct store *store, const struct script_use *uses,
                                            size_t count, finding_fn *fn, void *user,
                                            struct ibid_err *err)
{
	struct fault *fault = fault_of(store);
	struct store *inner = fault->inner;
	enum ibid_code code;
	FAULTY(fault, code, err, inner->ops->prepare_scripts(inner, uses, count, fn, user, err));
	return code;
}

static void *fault_lend(struct tx *tx, bool lent)
{
	return fault_of(tx->store)->inner->ops->lend(fault_inner(tx), lent);
}

/* Free the wrapper; the inner transaction is left. */
static struct tx *unwrap(struct tx **tx)
{
	struct tx *inner = fault_inner(*tx);
	free(*tx);
	*tx = NULL;
	return inner;
}

static void fault_rollback(struct tx **tx)
{
	if (!*tx)
		return;
	const struct store_ops *ops = fault_of((*tx)->store)->inner->ops;
	struct tx *inner = unwrap(tx);
	ops->rollback(&inner);
}

/* ---- Verbs that count ----------------------------------------------------------------------- */

static enum ibid_code fault_put_contract(struct store *store, const struct contract_row *row,
                                         struct ibid_err *err)
{
	struct fault *fault = fault_of(store);
	enum ibid_code code;
	FAULTY(fault, code, err, fault->inner->ops->put_contract(fault->inner, row, err));
	return code;
}

static enum ibid_code fault_get_contract(struct store *store, struct arena *arena, const char *kind,
                                         const char *name, int version, struct contract_row *ret,
                                         struct ibid_err *err)
{
	struct fault *fault = fault_of(store);
	struct contract_row row = {0};
	enum ibid_code code;
	FAULTY(fault, code, err,
	       fault->inner->ops->get_contract(fault->inner, arena, kind, name, version, &row, err));
	if (!code)
		*ret = row;
	return code;
}

static enum ibid_code fault_claim(struct store *store, struct arena *arena,
                                  const struct identity *identity,
                                  const struct work_context *context, struct claim *ret,
                                  struct ibid_err *err)
{
	struct fault *fault = fault_of(store);
	const struct store_ops *ops = fault->inner->ops;
	struct claim claim = {.tx = NULL};
	enum ibid_code code;
	struct fault_tx *tx = calloc(1, sizeof *tx);
	if (!tx)
		return err_set(err, IBID_NOMEM, "out of memory");
	FAULTY(fault, code, err, ops->claim(fault->inner, arena, identity, context, &claim, err));
	if (!code && claim.tx) {
		tx->base.store = store;
		tx->inner = claim.tx;
		claim.tx = &tx->base;
	} else {
		ops->rollback(&claim.tx); /* claimed, but nobody was told */
		free(tx);
	}
	if (!code)
		*ret = claim;
	return code;
}

static enum ibid_code fault_resolve(struct store *store, struct arena *arena,
                                    const struct identity *identity, int64_t wait_us,
                                    struct claim *ret, struct ibid_err *err)
{
	struct fault *fault = fault_of(store);
	struct claim claim = {.tx = NULL};
	enum ibid_code code;
	FAULTY(fault, code, err,
	       fault->inner->ops->resolve(fault->inner, arena, identity, wait_us, &claim, err));
	if (!code)
		*ret = claim;
	return code;
}

static enum ibid_code fault_run_script(struct tx *tx, struct arena *arena,
                                       const struct script *script, const char *const *values,
                                       struct outcome *ret, struct ibid_err *err)
{
	struct fault *fault = fault_of(tx->store);
	struct outcome outcome = {.status = 0};
	enum ibid_code code;
	FAULTY(fault, code, err,
	       fault->inner->ops->run_script(fault_inner(tx), arena, script, values, &outcome, err));
	if (code != IBID_UNAVAILABLE)
		*ret = outcome;
	return code;
}

static enum ibid_code fault_run_query(struct tx *tx, struct arena *arena,
                                      const struct script *script, const char *const *values,
                                      struct outcome *ret, struct ibid_err *err)
{
	struct fault *fault = fault_of(tx->store);
	struct outcome outcome = {.status = 0};
	enum ibid_code code;
	FAULTY(fault, code, err,
	       fault->inner->ops->run_query(fault_inner(tx), arena, script, values, &outcome, err));
	if (code != IBID_UNAVAILABLE)
		*ret = outcome;
	return code;
}

static enum ibid_code fault_put_event(struct tx *tx, const struct event_row *event,
                                      struct ibid_err *err)
{
	struct fault *fault = fault_of(tx->store);
	enum ibid_code code;
	FAULTY(fault, code, err, fault->inner->ops->put_event(fault_inner(tx), event, err));
	return code;
}

static enum ibid_code fault_put_audit(struct tx *tx, const struct audit_row *row,
                                      struct ibid_err *err)
{
	struct fault *fault = fault_of(tx->store);
	enum ibid_code code;
	FAULTY(fault, code, err, fault->inner->ops->put_audit(fault_inner(tx), row, err));
	return code;
}

static enum ibid_code fault_put_command(struct tx *tx, const struct command_row *row,
                                        const struct command_row *previous, struct ibid_err *err)
{
	struct fault *fault = fault_of(tx->store);
	enum ibid_code code;
	FAULTY(fault, code, err, fault->inner->ops->put_command(fault_inner(tx), row, previous, err));
	return code;
}

static enum ibid_code fault_lock_row(struct tx *tx, const char *row, struct ibid_err *err)
{
	struct fault *fault = fault_of(tx->store);
	enum ibid_code code;
	FAULTY(fault, code, err, fault->inner->ops->lock_row(fault_inner(tx), row, err));
	return code;
}

static enum ibid_code fault_put_payload(struct tx *tx, const struct payload_row *row,
                                        struct ibid_err *err)
{
	struct fault *fault = fault_of(tx->store);
	enum ibid_code code;
	FAULTY(fault, code, err, fault->inner->ops->put_payload(fault_inner(tx), row, err));
	return code;
}

static enum ibid_code fault_check_tx(struct tx *tx, struct ibid_err *err)
{
	struct fault *fault = fault_of(tx->store);
	enum ibid_code code;
	FAULTY(fault, code, err, fault->inner->ops->check_tx(fault_inner(tx), err));
	return code;
}

/* It ends in a commit, and fails like one. */
static enum ibid_code fault_express(struct store *store, struct arena *arena,
                                    const struct express *express, struct claim *ret,
                                    struct outcome *ret_outcome, bool *ret_done,
                                    struct ibid_err *err)
{
	struct fault *fault = fault_of(store);
	struct claim claim = {0};
	struct outcome outcome = {0};
	bool done = false;
	enum fault_act what = fault_act(fault);
	if (what == FAULT_ACT_BEFORE)
		return fault->kind == FAULT_UNKNOWN_BEFORE ? err_set(err, IBID_UNKNOWN, "injected fault")
		                                           : fault_unavailable(err);
	enum ibid_code code = fault->inner->ops->express(fault->inner, arena, express, &claim, &outcome,
	                                                 &done, err);
	code = fault_after(what, code, err);
	if (what == FAULT_ACT_AFTER)
		return err_set(err, IBID_UNKNOWN, "injected fault");
	*ret = claim;
	*ret_outcome = outcome;
	*ret_done = done;
	return code;
}

/* Likewise, for all members at once. */
static enum ibid_code fault_run_group(struct store *store, struct group_member **members,
                                      size_t count, struct ibid_err *err)
{
	struct fault *fault = fault_of(store);
	enum fault_act what = fault_act(fault);
	if (what == FAULT_ACT_BEFORE)
		return fault->kind == FAULT_UNKNOWN_BEFORE ? err_set(err, IBID_UNKNOWN, "injected fault")
		                                           : fault_unavailable(err);
	enum ibid_code code = fault->inner->ops->run_group(fault->inner, members, count, err);
	code = fault_after(what, code, err);
	for (size_t i = 0; what == FAULT_ACT_AFTER && i < count; i++)
		members[i]->done = false;
	return what == FAULT_ACT_AFTER ? err_set(err, IBID_UNKNOWN, "injected fault") : code;
}

static size_t fault_lanes(const struct store *store)
{
	const struct fault *fault = (const struct fault *)store;
	return fault->inner->ops->lanes(fault->inner);
}

static enum ibid_code fault_commit(struct tx **tx, struct arena *arena, struct outcome *ret,
                                   struct ibid_err *err)
{
	struct fault *fault = fault_of((*tx)->store);
	const struct store_ops *ops = fault->inner->ops;
	struct tx *inner = unwrap(tx);
	enum fault_act what = fault_act(fault);
	if (what == FAULT_ACT_BEFORE) {
		ops->rollback(&inner);
		if (fault->kind == FAULT_UNKNOWN_BEFORE)
			return err_set(err, IBID_UNKNOWN, "injected fault");
		return fault_unavailable(err);
	}
	enum ibid_code code = fault_after(what, ops->commit(&inner, arena, ret, err), err);
	return what == FAULT_ACT_AFTER ? err_set(err, IBID_UNKNOWN, "injected fault") : code;
}

static void fault_release_adopted(struct tx **tx)
{
	if (!*tx)
		return;
	const struct store_ops *ops = fault_of((*tx)->store)->inner->ops;
	struct tx *inner = unwrap(tx);
	ops->release_adopted(&inner);
}

static enum ibid_code fault_adopt(struct store *store, void *connection, struct tx **ret,
                                  struct ibid_err *err)
{
	struct fault *fault = fault_of(store);
	const struct store_ops *ops = fault->inner->ops;
	struct tx *inner = NULL;
	enum ibid_code code;
	FAULTY(fault, code, err, ops->adopt(fault->inner, connection, &inner, err));
	struct fault_tx *tx = code ? NULL : calloc(1, sizeof *tx);
	if (!code && !tx)
		code = err_set(err, IBID_NOMEM, "out of memory");
	if (code) {
		ops->release_adopted(&inner);
		return code;
	}
	tx->base.store = store;
	tx->inner = inner;
	*ret = &tx->base;
	return IBID_OK;
}

static enum ibid_code fault_begin_adopted(struct tx *tx, struct arena *arena,
                                          const struct beginning *beginning, struct begun *ret,
                                          struct ibid_err *err)
{
	struct fault *fault = fault_of(tx->store);
	struct begun begun = {.verdict = VERDICT_RUN};
	enum ibid_code code;
	FAULTY(fault, code, err,
	       fault->inner->ops->begin_adopted(fault_inner(tx), arena, beginning, &begun, err));
	if (!code)
		*ret = begun;
	return code;
}

static enum ibid_code fault_finish_adopted(struct tx *tx, const struct finishing *ending,
                                           struct ibid_err *err)
{
	struct fault *fault = fault_of(tx->store);
	enum ibid_code code;
	FAULTY(fault, code, err, fault->inner->ops->finish_adopted(fault_inner(tx), ending, err));
	return code;
}

static enum ibid_code fault_renew_lease(struct store *store, const char *tenant,
                                        const struct uuid *id, int64_t token, int64_t lease_us,
                                        struct ibid_err *err)
{
	struct fault *fault = fault_of(store);
	enum ibid_code code;
	FAULTY(fault, code, err,
	       fault->inner->ops->renew_lease(fault->inner, tenant, id, token, lease_us, err));
	return code;
}

static const struct store_ops fault_ops = {
    .close = fault_close,
    .migrate = fault_migrate,
    .check_schema = fault_check_schema,
    .apply_schema = fault_apply_schema,
    .check_decimal_column = fault_check_decimal_column,
    .describe_index = fault_describe_index,
    .put_contract = fault_put_contract,
    .get_contract = fault_get_contract,
    .make_script = fault_make_script,
    .free_script = fault_free_script,
    .prepare_scripts = fault_prepare_scripts,
    .claim = fault_claim,
    .resolve = fault_resolve,
    .run_script = fault_run_script,
    .run_query = fault_run_query,
    .put_event = fault_put_event,
    .put_audit = fault_put_audit,
    .put_command = fault_put_command,
    .put_exception = fault_put_exception,
    .resolve_exception = fault_resolve_exception,
    .begin_action = fault_begin_action,
    .assign_exception = fault_assign_exception,
    .put_action = fault_put_action,
    .put_pause = fault_put_pause,
    .end_pause = fault_end_pause,
    .list_pauses = fault_list_pauses,
    .put_approval = fault_put_approval,
    .decide_approval = fault_decide_approval,
    .decide_hold = fault_decide_hold,
    .withdraw_event = fault_withdraw_event,
    .list_actions = fault_list_actions,
    .list_approvals = fault_list_approvals,
    .put_payload = fault_put_payload,
    .get_payload = fault_get_payload,
    .erase_commands = fault_erase_commands,
    .list_erasures = fault_list_erasures,
    .lend = fault_lend,
    .lock_row = fault_lock_row,
    .check_tx = fault_check_tx,
    .express = fault_express,
    .run_group = fault_run_group,
    .lanes = fault_lanes,
    .commit = fault_commit,
    .rollback = fault_rollback,
    .adopt = fault_adopt,
    .begin_adopted = fault_begin_adopted,
    .finish_adopted = fault_finish_adopted,
    .release_adopted = fault_release_adopted,
    .renew_lease = fault_renew_lease,
    .list_stale = fault_list_stale,
    .list_unknown = fault_list_unknown,
    .lease_lanes = fault_lease_lanes,
    .read_lane = fault_read_lane,
    .list_held = fault_list_held,
    .settle_lane = fault_settle_lane,
    .list_lanes = fault_list_lanes,
    .list_holds = fault_list_holds,
    .count_outbox = fault_count_outbox,
    .measure_outbox = fault_measure_outbox,
    .list_deliveries = fault_list_deliveries,
    .list_outbox = fault_list_outbox,
    .get_event = fault_get_event,
    .put_evidence = fault_put_evidence,
    .put_duplicates = fault_put_duplicates,
    .get_duplicates = fault_get_duplicates,
    .list_duplicates = fault_list_duplicates,
    .retain_commands = fault_retain_commands,
    .retain_history = fault_retain_history,
    .next_span = fault_next_span,
    .read_span = fault_read_span,
    .drop_span = fault_drop_span,
    .restore_events = fault_restore_events,
    .list_archives = fault_list_archives,
    .get_command = fault_get_command,
    .list_commands = fault_list_commands,
    .list_events = fault_list_events,
    .list_audit = fault_list_audit,
    .list_evidence = fault_list_evidence,
    .get_exception = fault_get_exception,
    .list_exceptions = fault_list_exceptions,
    .list_references = fault_list_references,
    .put_token = fault_put_token,
    .get_token = fault_get_token,
    .list_tokens = fault_list_tokens,
    .revoke_token = fault_revoke_token,
    .measure = fault_measure,
    .ready = fault_ready,
    .doctor = fault_doctor,
};

struct store *store_fault_wrap(struct store *inner, enum fault_kind kind, unsigned n)
{
	struct fault *fault = calloc(1, sizeof *fault);
	if (!fault)
		abort(); /* used by tests only */
	fault->ops = fault_ops;
	fault->ops.name = inner->ops->name;
	fault->ops.one_writer = inner->ops->one_writer;
	if (!inner->ops->express)
		fault->ops.express = NULL;
	if (!inner->ops->lock_row)
		fault->ops.lock_row = NULL;
	if (!inner->ops->check_tx)
		fault->ops.check_tx = NULL;
	if (!inner->ops->ready)
		fault->ops.ready = NULL;
	fault->base.ops = &fault->ops;
	fault->inner = inner;
	fault->kind = kind;
	fault->at = n;
	return &fault->base;
}

bool store_fault_fired(const struct store *store)
{
	return atomic_load(&((const struct fault *)store)->fired);
}

unsigned store_fault_verbs(const struct store *store)
{
	return atomic_load(&((const struct fault *)store)->verbs);
}
