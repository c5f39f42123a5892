/* SPDX-License-Identifier: Apache-2.0 */
/* trace.c -- a store that tells what is asked of another.
 *
 * Its transactions wrap those of the inner store, so that every verb on them passes here, too. */
#include "store/outbox.h"

#include <stdlib.h>

struct trace {
	struct store base;
	struct store_ops ops; /* with the inner store's name: callers choose their dialect by it */
	struct store *inner;
	store_trace_fn *fn;
	void *user;
};

struct trace_tx {
	struct tx base;
	struct tx *inner;
};

static struct trace *trace_of(struct store *store)
{
	return (struct trace *)store;
}

static struct tx *inner_of(struct tx *tx)
{
	return ((struct trace_tx *)tx)->inner;
}

static void before(const struct trace *trace, const char *verb)
{
	trace->fn(trace->user, verb, false, IBID_OK);
}

static enum ibid_code after(const struct trace *trace, const char *verb, enum ibid_code code)
{
	trace->fn(trace->user, verb, true, code);
	return code;
}

/* Tell, ask the inner store, tell again. The arguments start with the inner store or transaction.
 */
#define TRACED(trace, verb, ...)                                                                   \
	(before((trace), #verb), after((trace), #verb, (trace)->inner->ops->verb(__VA_ARGS__)))

static void trace_close(struct store *store)
{
	struct trace *trace = trace_of(store);
	before(trace, "close");
	store_close(trace->inner);
	after(trace, "close", IBID_OK);
	free(trace);
}

static enum ibid_code trace_migrate(struct store *store, int *ret_from, int *ret_to,
                                    struct ibid_err *err)
{
	struct trace *trace = trace_of(store);
	return TRACED(trace, migrate, trace->inner, ret_from, ret_to, err);
}

static enum ibid_code trace_check_schema(struct store *store, int *ret_version,
                                         struct ibid_err *err)
{
	struct trace *trace = trace_of(store);
	return TRACED(trace, check_schema, trace->inner, ret_version, err);
}

static enum ibid_code trace_apply_schema(struct store *store, const struct schema_file *file,
                                         enum schema_state *ret, struct ibid_err *err)
{
	struct trace *trace = trace_of(store);
	return TRACED(trace, apply_schema, trace->inner, file, ret, err);
}

static enum ibid_code trace_check_decimal_column(struct store *store, const char *name,
                                                 struct ibid_err *err)
{
	struct trace *trace = trace_of(store);
	return TRACED(trace, check_decimal_column, trace->inner, name, err);
}

static enum ibid_code trace_describe_index(struct store *store, struct arena *arena,
                                           const char *name, struct index_row *ret,
                                           struct ibid_err *err)
{
	struct trace *trace = trace_of(store);
	return TRACED(trace, describe_index, trace->inner, arena, name, ret, err);
}

static enum ibid_code trace_put_contract(struct store *store, const struct contract_row *row,
                                         struct ibid_err *err)
{
	struct trace *trace = trace_of(store);
	return TRACED(trace, put_contract, trace->inner, row, err);
}

static enum ibid_code trace_get_contract(struct store *store, struct arena *arena, const char *kind,
                                         const char *name, int version, struct contract_row *ret,
                                         struct ibid_err *err)
{
	struct trace *trace = trace_of(store);
	return TRACED(trace, get_contract, trace->inner, arena, kind, name, version, ret, err);
}

static enum ibid_code trace_make_script(struct store *store, const char *file, const char *text,
                                        const struct param_spec *params, size_t count,
                                        struct script **ret, struct ibid_err *err)
{
	struct trace *trace = trace_of(store);
	return TRACED(trace, make_script, trace->inner, file, text, params, count, ret, err);
}

static void trace_free_script(struct store *store, struct script *script)
{
	struct trace *trace = trace_of(store);
	before(trace, "free_script");
	trace->inner->ops->free_script(trace->inner, script);
	after(trace, "free_script", IBID_OK);
}

static enum ibid_code trace_prepare_scripts(struct store *store, const struct script_use *uses,
                                            size_t count, finding_fn *fn, void *user,
                                            struct ibid_err *err)
{
	struct trace *trace = trace_of(store);
	return TRACED(trace, prepare_scripts, trace->inner, uses, count, fn, user, err);
}

static enum ibid_code trace_claim(struct store *store, struct arena *arena,
                                  const struct identity *identity,
                                  const struct work_context *context, struct claim *ret,
                                  struct ibid_err *err)
{
	struct trace *trace = trace_of(store);
	struct trace_tx *tx = calloc(1, sizeof *tx);
	if (!tx)
		return err_set(err, IBID_NOMEM, "out of memory");
	enum ibid_code code = TRACED(trace, claim, trace->inner, arena, identity, context, ret, err);
	if (!code && ret->tx) {
		tx->base.store = store;
		tx->inner = ret->tx;
		ret->tx = &tx->base;
	} else {
		free(tx);
	}
	return code;
}

static enum ibid_code trace_resolve(struct store *store, struct arena *arena,
                                    const struct identity *identity, int64_t wait_us,
                                    struct claim *ret, struct ibid_err *err)
{
	struct trace *trace = trace_of(store);
	return TRACED(trace, resolve, trace->inner, arena, identity, wait_us, ret, err);
}

static enum ibid_code trace_run_script(struct tx *tx, struct arena *arena,
                                       const struct script *script, const char *const *values,
                                       struct outcome *ret, struct ibid_err *err)
{
	struct trace *trace = trace_of(tx->store);
	return TRACED(trace, run_script, inner_of(tx), arena, script, values, ret, err);
}

static enum ibid_code trace_run_query(struct tx *tx, struct arena *arena,
                                      const struct script *script, const char *const *values,
                                      struct outcome *ret, struct ibid_err *err)
{
	struct trace *trace = trace_of(tx->store);
	return TRACED(trace, run_query, inner_of(tx), arena, script, values, ret, err);
}

static enum ibid_code trace_put_event(struct tx *tx, const struct event_row *event,
                                      struct ibid_err *err)
{
	struct trace *trace = trace_of(tx->store);
	return TRACED(trace, put_event, inner_of(tx), event, err);
}

static enum ibid_code trace_put_audit(struct tx *tx, const struct audit_row *row,
                                      struct ibid_err *err)
{
	struct trace *trace = trace_of(tx->store);
	return TRACED(trace, put_audit, inner_of(tx), row, err);
}

static enum ibid_code trace_put_command(struct tx *tx, const struct command_row *row,
                                        const struct command_row *previous, struct ibid_err *err)
{
	struct trace *trace = trace_of(tx->store);
	return TRACED(trace, put_command, inner_of(tx), row, previous, err);
}

static enum ibid_code trace_put_exception(struct tx *tx, const struct exception_row *row,
                                          struct ibid_err *err)
{
	struct trace *trace = trace_of(tx->store);
	return TRACED(trace, put_exception, inner_of(tx), row, err);
}

static enum ibid_code trace_resolve_exception(struct tx *tx, const struct exception_end *end,
                                              struct ibid_err *err)
{
	struct trace *trace = trace_of(tx->store);
	return TRACED(trace, resolve_exception, inner_of(tx), end, err);
}

static enum ibid_code trace_assign_exception(struct tx *tx, const struct exception_assignment *to,
                                             struct ibid_err *err)
{
	struct trace *trace = trace_of(tx->store);
	return TRACED(trace, assign_exception, inner_of(tx), to, err);
}

static enum ibid_code trace_put_action(struct tx *tx, const struct action_row *row,
                                       struct ibid_err *err)
{
	struct trace *trace = trace_of(tx->store);
	return TRACED(trace, put_action, inner_of(tx), row, err);
}

static enum ibid_code trace_put_pause(struct tx *tx, const struct pause_row *row,
                                      struct ibid_err *err)
{
	struct trace *trace = trace_of(tx->store);
	return TRACED(trace, put_pause, inner_of(tx), row, err);
}

static enum ibid_code trace_end_pause(struct tx *tx, const struct pause_row *row,
                                      struct ibid_err *err)
{
	struct trace *trace = trace_of(tx->store);
	return TRACED(trace, end_pause, inner_of(tx), row, err);
}

static enum ibid_code trace_put_approval(struct tx *tx, const struct approval_row *row,
                                         struct ibid_err *err)
{
	struct trace *trace = trace_of(tx->store);
	return TRACED(trace, put_approval, inner_of(tx), row, err);
}

static enum ibid_code trace_decide_approval(struct tx *tx, const struct approval_end *end,
                                            struct ibid_err *err)
{
	struct trace *trace = trace_of(tx->store);
	return TRACED(trace, decide_approval, inner_of(tx), end, err);
}

static enum ibid_code trace_decide_hold(struct tx *tx, const struct hold_decision *decision,
                                        struct ibid_err *err)
{
	struct trace *trace = trace_of(tx->store);
	return TRACED(trace, decide_hold, inner_of(tx), decision, err);
}

static enum ibid_code trace_withdraw_event(struct tx *tx, const struct withdrawal *withdrawal,
                                           struct ibid_err *err)
{
	struct trace *trace = trace_of(tx->store);
	return TRACED(trace, withdraw_event, inner_of(tx), withdrawal, err);
}

static enum ibid_code trace_begin_action(struct store *store, struct tx **ret, struct ibid_err *err)
{
	struct trace *trace = trace_of(store);
	struct tx *inner = NULL;
	struct trace_tx *tx = calloc(1, sizeof *tx);
	if (!tx)
		return err_set(err, IBID_NOMEM, "out of memory");
	enum ibid_code code = TRACED(trace, begin_action, trace->inner, &inner, err);
	if (code) {
		free(tx);
		return code;
	}
	tx->base.store = store;
	tx->inner = inner;
	*ret = &tx->base;
	return IBID_OK;
}

static enum ibid_code trace_lock_row(struct tx *tx, const char *row, struct ibid_err *err)
{
	struct trace *trace = trace_of(tx->store);
	return TRACED(trace, lock_row, inner_of(tx), row, err);
}

static enum ibid_code trace_put_payload(struct tx *tx, const struct payload_row *row,
                                        struct ibid_err *err)
{
	struct trace *trace = trace_of(tx->store);
	return TRACED(trace, put_payload, inner_of(tx), row, err);
}

static enum ibid_code trace_get_payload(struct store *store, struct arena *arena,
                                        const char *tenant, const struct uuid *command_id,
                                        struct payload_row *ret, struct ibid_err *err)
{
	struct trace *trace = trace_of(store);
	return TRACED(trace, get_payload, trace->inner, arena, tenant, command_id, ret, err);
}

static enum ibid_code trace_erase_commands(struct store *store, const struct erasure *erasure,
                                           struct erasure_progress *progress, struct ibid_err *err)
{
	struct trace *trace = trace_of(store);
	return TRACED(trace, erase_commands, trace->inner, erasure, progress, err);
}

static enum ibid_code trace_list_erasures(struct store *store, struct arena *arena,
                                          const char *tenant, size_t limit,
                                          struct erasure_row **ret, size_t *ret_count,
                                          struct ibid_err *err)
{
	struct trace *trace = trace_of(store);
	return TRACED(trace, list_erasures, trace->inner, arena, tenant, limit, ret, ret_count, err);
}

static enum ibid_code trace_check_tx(struct tx *tx, struct ibid_err *err)
{
	struct trace *trace = trace_of(tx->store);
	return TRACED(trace, check_tx, inner_of(tx), err);
}

static void *trace_lend(struct tx *tx, bool lent)
{
	struct trace *trace = trace_of(tx->store);
	before(trace, "lend");
	void *handle = trace->inner->ops->lend(inner_of(tx), lent);
	after(trace, "lend", IBID_OK);
	return handle;
}

static enum ibid_code trace_express(struct store *store, struct arena *arena,
                                    const struct express *express, struct claim *ret,
                                    struct outcome *ret_outcome, bool *ret_done,
                                    struct ibid_err *err)
{
	struct trace *trace = trace_of(store);
	return TRACED(trace, express, trace->inner, arena, express, ret, ret_outcome, ret_done, err);
}

static enum ibid_code trace_run_group(struct store *store, struct group_member **members,
                                      size_t count, struct ibid_err *err)
{
	struct trace *trace = trace_of(store);
	return TRACED(trace, run_group, trace->inner, members, count, err);
}

static size_t trace_lanes(const struct store *store)
{
	const struct trace *trace = (const struct trace *)store;
	return trace->inner->ops->lanes(trace->inner);
}

static enum ibid_code trace_commit(struct tx **tx, struct arena *arena, struct outcome *ret,
                                   struct ibid_err *err)
{
	struct trace *trace = trace_of((*tx)->store);
	struct tx *inner = inner_of(*tx);
	free(*tx);
	*tx = NULL;
	return TRACED(trace, commit, &inner, arena, ret, err);
}

static void trace_rollback(struct tx **tx)
{
	if (!*tx)
		return;
	struct trace *trace = trace_of((*tx)->store);
	struct tx *inner = inner_of(*tx);
	free(*tx);
	*tx = NULL;
	before(trace, "rollback");
	trace->inner->ops->rollback(&inner);
	after(trace, "rollback", IBID_OK);
}

static enum ibid_code trace_adopt(struct store *store, void *connection, struct tx **ret,
                                  struct ibid_err *err)
{
	struct trace *trace = trace_of(store);
	struct trace_tx *tx = calloc(1, sizeof *tx);
	if (!tx)
		return err_set(err, IBID_NOMEM, "out of memory");
	enum ibid_code code = TRACED(trace, adopt, trace->inner, connection, &tx->inner, err);
	tx->base.store = store;
	if (code)
		free(tx);
	else
		*ret = &tx->base;
	return code;
}

static enum ibid_code trace_begin_adopted(struct tx *tx, struct arena *arena,
                                          const struct beginning *beginning, struct begun *ret,
                                          struct ibid_err *err)
{
	struct trace *trace = trace_of(tx->store);
	return TRACED(trace, begin_adopted, inner_of(tx), arena, beginning, ret, err);
}

static enum ibid_code trace_finish_adopted(struct tx *tx, const struct finishing *ending,
                                           struct ibid_err *err)
{
	struct trace *trace = trace_of(tx->store);
	return TRACED(trace, finish_adopted, inner_of(tx), ending, err);
}

static void trace_release_adopted(struct tx **tx)
{
	if (!*tx)
		return;
	struct trace *trace = trace_of((*tx)->store);
	struct tx *inner = inner_of(*tx);
	free(*tx);
	*tx = NULL;
	before(trace, "release_adopted");
	trace->inner->ops->release_adopted(&inner);
	after(trace, "release_adopted", IBID_OK);
}

static enum ibid_code trace_renew_lease(struct store *store, const char *tenant,
                                        const struct uuid *id, int64_t token, int64_t lease_us,
                                        struct ibid_err *err)
{
	struct trace *trace = trace_of(store);
	return TRACED(trace, renew_lease, trace->inner, tenant, id, token, lease_us, err);
}

static enum ibid_code trace_list_stale(struct store *store, struct arena *arena,
                                       const struct command_filter *filter,
                                       struct command_row **ret, size_t *ret_count,
                                       struct ibid_err *err)
{
	struct trace *trace = trace_of(store);
	return TRACED(trace, list_stale, trace->inner, arena, filter, ret, ret_count, err);
}

static enum ibid_code trace_list_unknown(struct store *store, struct arena *arena,
                                         const struct command_filter *filter,
                                         struct command_row **ret, size_t *ret_count,
                                         struct ibid_err *err)
{
	struct trace *trace = trace_of(store);
	return TRACED(trace, list_unknown, trace->inner, arena, filter, ret, ret_count, err);
}

static enum ibid_code trace_lease_lanes(struct store *store, struct arena *arena,
                                        const struct lane_wish *wish, struct lane_lease **ret,
                                        size_t *ret_count, size_t *ret_share, struct ibid_err *err)
{
	struct trace *trace = trace_of(store);
	return TRACED(trace, lease_lanes, trace->inner, arena, wish, ret, ret_count, ret_share, err);
}

static enum ibid_code trace_read_lane(struct store *store, struct arena *arena,
                                      const struct lane_lease *lease, const char *cursor,
                                      size_t limit, bool doubtful, struct lane_batch *ret,
                                      struct ibid_err *err)
{
	struct trace *trace = trace_of(store);
	return TRACED(trace, read_lane, trace->inner, arena, lease, cursor, limit, doubtful, ret, err);
}

static enum ibid_code trace_list_held(struct store *store, struct arena *arena,
                                      const struct lane_lease *lease, struct held_event **ret,
                                      size_t *ret_count, struct ibid_err *err)
{
	struct trace *trace = trace_of(store);
	return TRACED(trace, list_held, trace->inner, arena, lease, ret, ret_count, err);
}

static enum ibid_code trace_settle_lane(struct store *store,
                                        const struct lane_settlement *settlement,
                                        struct ibid_err *err)
{
	struct trace *trace = trace_of(store);
	return TRACED(trace, settle_lane, trace->inner, settlement, err);
}

static enum ibid_code trace_list_pauses(struct store *store, struct arena *arena,
                                        const char *tenant, struct pause_row **ret,
                                        size_t *ret_count, struct ibid_err *err)
{
	struct trace *trace = trace_of(store);
	return TRACED(trace, list_pauses, trace->inner, arena, tenant, ret, ret_count, err);
}

static enum ibid_code trace_list_lanes(struct store *store, struct arena *arena,
                                       struct lane_row **ret, size_t *ret_count,
                                       struct ibid_err *err)
{
	struct trace *trace = trace_of(store);
	return TRACED(trace, list_lanes, trace->inner, arena, ret, ret_count, err);
}

static enum ibid_code trace_list_holds(struct store *store, struct arena *arena, const char *tenant,
                                       const struct uuid *event_id, struct hold_row **ret,
                                       size_t *ret_count, struct ibid_err *err)
{
	struct trace *trace = trace_of(store);
	return TRACED(trace, list_holds, trace->inner, arena, tenant, event_id, ret, ret_count, err);
}

static enum ibid_code trace_get_event(struct store *store, struct arena *arena, const char *tenant,
                                      const struct uuid *id, struct event_row *ret,
                                      struct ibid_err *err)
{
	struct trace *trace = trace_of(store);
	return TRACED(trace, get_event, trace->inner, arena, tenant, id, ret, err);
}

static enum ibid_code trace_count_outbox(struct store *store, size_t limit, bool *ret_more,
                                         struct ibid_err *err)
{
	struct trace *trace = trace_of(store);
	return TRACED(trace, count_outbox, trace->inner, limit, ret_more, err);
}

static enum ibid_code trace_measure_outbox(struct store *store, struct arena *arena,
                                           struct backlog_row **ret, size_t *ret_count,
                                           struct ibid_err *err)
{
	struct trace *trace = trace_of(store);
	return TRACED(trace, measure_outbox, trace->inner, arena, ret, ret_count, err);
}

static enum ibid_code trace_list_deliveries(struct store *store, struct arena *arena,
                                            const char *tenant, const struct uuid *event_id,
                                            struct delivery_row **ret, size_t *ret_count,
                                            struct ibid_err *err)
{
	struct trace *trace = trace_of(store);
	return TRACED(trace, list_deliveries, trace->inner, arena, tenant, event_id, ret, ret_count,
	              err);
}

static enum ibid_code trace_list_outbox(struct store *store, struct arena *arena,
                                        const struct outbox_filter *filter, struct outbox_row **ret,
                                        size_t *ret_count, struct ibid_err *err)
{
	struct trace *trace = trace_of(store);
	return TRACED(trace, list_outbox, trace->inner, arena, filter, ret, ret_count, err);
}

static enum ibid_code trace_put_evidence(struct store *store, const struct key_conflict_row *row,
                                         struct ibid_err *err)
{
	struct trace *trace = trace_of(store);
	return TRACED(trace, put_evidence, trace->inner, row, err);
}

static enum ibid_code trace_put_duplicates(struct store *store, const struct duplicate_row *rows,
                                           size_t count, const struct duplicate_seen_row *seen,
                                           size_t seen_count, struct ibid_err *err)
{
	struct trace *trace = trace_of(store);
	return TRACED(trace, put_duplicates, trace->inner, rows, count, seen, seen_count, err);
}

static enum ibid_code trace_get_duplicates(struct store *store, struct arena *arena,
                                           const char *tenant, const struct uuid *command_id,
                                           struct duplicate_row *ret, struct ibid_err *err)
{
	struct trace *trace = trace_of(store);
	return TRACED(trace, get_duplicates, trace->inner, arena, tenant, command_id, ret, err);
}

static enum ibid_code trace_list_duplicates(struct store *store, struct arena *arena,
                                            const char *tenant, const struct uuid *command_id,
                                            size_t limit, struct duplicate_seen_row **ret,
                                            size_t *ret_count, struct ibid_err *err)
{
	struct trace *trace = trace_of(store);
	return TRACED(trace, list_duplicates, trace->inner, arena, tenant, command_id, limit, ret,
	              ret_count, err);
}

static enum ibid_code trace_get_command(struct store *store, struct arena *arena,
                                        const char *tenant, const struct uuid *id,
                                        const struct identity *identity, struct command_row *ret,
                                        struct ibid_err *err)
{
	struct trace *trace = trace_of(store);
	return TRACED(trace, get_command, trace->inner, arena, tenant, id, identity, ret, err);
}

static enum ibid_code trace_list_commands(struct store *store, struct arena *arena,
                                          const struct command_filter *filter,
                                          struct command_row **ret, size_t *ret_count,
                                          struct ibid_err *err)
{
	struct trace *trace = trace_of(store);
	return TRACED(trace, list_commands, trace->inner, arena, filter, ret, ret_count, err);
}

static enum ibid_code trace_list_events(struct store *store, struct arena *arena,
                                        const char *tenant, const struct uuid *command_id,
                                        size_t limit, struct event_row **ret, size_t *ret_count,
                                        struct ibid_err *err)
{
	struct trace *trace = trace_of(store);
	return TRACED(trace, list_events, trace->inner, arena, tenant, command_id, limit, ret,
	              ret_count, err);
}

static enum ibid_code trace_list_audit(struct store *store, struct arena *arena, const char *tenant,
                                       const struct uuid *command_id, size_t limit,
                                       struct audit_row **ret, size_t *ret_count,
                                       struct ibid_err *err)
{
	struct trace *trace = trace_of(store);
	return TRACED(trace, list_audit, trace->inner, arena, tenant, command_id, limit, ret, ret_count,
	              err);
}

static enum ibid_code trace_list_evidence(struct store *store, struct arena *arena,
                                          const char *tenant, const struct uuid *command_id,
                                          struct key_conflict_row **ret, size_t *ret_count,
                                          struct ibid_err *err)
{
	struct trace *trace = trace_of(store);
	return TRACED(trace, list_evidence, trace->inner, arena, tenant, command_id, ret, ret_count,
	              err);
}

static enum ibid_code trace_get_exception(struct store *store, struct arena *arena,
                                          const char *tenant, const struct uuid *id,
                                          struct exception_row *ret, struct ibid_err *err)
{
	struct trace *trace = trace_of(store);
	return TRACED(trace, get_exception, trace->inner, arena, tenant, id, ret, err);
}

static enum ibid_code trace_list_exceptions(struct store *store, struct arena *arena,
                                            const struct exception_filter *filter,
                                            struct exception_row **ret, size_t *ret_count,
                                            struct ibid_err *err)
{
	struct trace *trace = trace_of(store);
	return TRACED(trace, list_exceptions, trace->inner, arena, filter, ret, ret_count, err);
}

static enum ibid_code trace_list_references(struct store *store, struct arena *arena,
                                            const struct reference_filter *filter,
                                            struct reference_row **ret, size_t *ret_count,
                                            struct ibid_err *err)
{
	struct trace *trace = trace_of(store);
	return TRACED(trace, list_references, trace->inner, arena, filter, ret, ret_count, err);
}

static enum ibid_code trace_list_actions(struct store *store, struct arena *arena,
                                         const char *tenant, const char *subject_type,
                                         const char *subject_id, size_t limit,
                                         struct action_row **ret, size_t *ret_count,
                                         struct ibid_err *err)
{
	struct trace *trace = trace_of(store);
	return TRACED(trace, list_actions, trace->inner, arena, tenant, subject_type, subject_id, limit,
	              ret, ret_count, err);
}

static enum ibid_code trace_list_approvals(struct store *store, struct arena *arena,
                                           const char *tenant, const char *subject_type,
                                           const char *subject_id, size_t limit,
                                           struct approval_row **ret, size_t *ret_count,
                                           struct ibid_err *err)
{
	struct trace *trace = trace_of(store);
	return TRACED(trace, list_approvals, trace->inner, arena, tenant, subject_type, subject_id,
	              limit, ret, ret_count, err);
}

static enum ibid_code trace_put_token(struct store *store, const struct token_row *row,
                                      struct ibid_err *err)
{
	struct trace *trace = trace_of(store);
	return TRACED(trace, put_token, trace->inner, row, err);
}

static enum ibid_code trace_get_token(struct store *store, struct arena *arena, const char *id,
                                      struct token_row *ret, struct ibid_err *err)
{
	struct trace *trace = trace_of(store);
	return TRACED(trace, get_token, trace->inner, arena, id, ret, err);
}

static enum ibid_code trace_list_tokens(struct store *store, struct arena *arena,
                                        const struct token_filter *filter, struct token_row **ret,
                                        size_t *ret_count, struct ibid_err *err)
{
	struct trace *trace = trace_of(store);
	return TRACED(trace, list_tokens, trace->inner, arena, filter, ret, ret_count, err);
}

static enum ibid_code trace_revoke_token(struct store *store, const char *id, const char *by,
                                         int64_t at_us, struct ibid_err *err)
{
	struct trace *trace = trace_of(store);
	return TRACED(trace, revoke_token, trace->inner, id, by, at_us, err);
}

static enum ibid_code trace_measure(struct store *store, struct arena *arena,
                                    struct measurement *ret, struct ibid_err *err)
{
	struct trace *trace = trace_of(store);
	return TRACED(trace, measure, trace->inner, arena, ret, err);
}

static enum ibid_code trace_ready(struct store *store, struct ibid_err *err)
{
	struct trace *trace = trace_of(store);
	return TRACED(trace, ready, trace->inner, err);
}

static enum ibid_code trace_doctor(struct store *store, finding_fn *fn, void *user,
                                   struct ibid_err *err)
{
	struct trace *trace = trace_of(store);
	return TRACED(trace, doctor, trace->inner, fn, user, err);
}

static enum ibid_code trace_retain_commands(struct store *store, struct arena *arena,
                                            const struct retention *retention,
                                            struct retention_cursor *cursor,
                                            struct retention_count *ret, struct ibid_err *err)
{
	struct trace *trace = trace_of(store);
	return TRACED(trace, retain_commands, trace->inner, arena, retention, cursor, ret, err);
}

static enum ibid_code trace_retain_history(struct store *store, const struct retention *retention,
                                           struct retention_count *ret, bool *ret_more,
                                           struct ibid_err *err)
{
	struct trace *trace = trace_of(store);
	return TRACED(trace, retain_history, trace->inner, retention, ret, ret_more, err);
}

static enum ibid_code trace_next_span(struct store *store, struct arena *arena, int64_t before_us,
                                      int64_t now_us, const struct archive_span *behind,
                                      struct archive_span *ret, struct ibid_err *err)
{
	struct trace *trace = trace_of(store);
	return TRACED(trace, next_span, trace->inner, arena, before_us, now_us, behind, ret, err);
}

static enum ibid_code trace_read_span(struct store *store, const struct archive_span *span,
                                      archive_line_fn *fn, void *user, struct archive_seal *ret,
                                      struct ibid_err *err)
{
	struct trace *trace = trace_of(store);
	return TRACED(trace, read_span, trace->inner, span, fn, user, ret, err);
}

static enum ibid_code trace_drop_span(struct store *store, const struct archive_span *span,
                                      const struct archive_seal *seal,
                                      const struct archive_row *row, struct ibid_err *err)
{
	struct trace *trace = trace_of(store);
	return TRACED(trace, drop_span, trace->inner, span, seal, row, err);
}

static enum ibid_code trace_restore_events(struct store *store, const struct restoring *restoring,
                                           struct restore_count *ret, struct ibid_err *err)
{
	struct trace *trace = trace_of(store);
	return TRACED(trace, restore_events, trace->inner, restoring, ret, err);
}

static enum ibid_code trace_list_archives(struct store *store, struct arena *arena, size_t limit,
                                          struct archive_row **ret, size_t *ret_count,
                                          struct ibid_err *err)
{
	struct trace *trace = trace_of(store);
	return TRACED(trace, list_archives, trace->inner, arena, limit, ret, ret_count, err);
}

static const struct store_ops trace_ops = {
    .close = trace_close,
    .migrate = trace_migrate,
    .check_schema = trace_check_schema,
    .apply_schema = trace_apply_schema,
    .check_decimal_column = trace_check_decimal_column,
    .describe_index = trace_describe_index,
    .put_contract = trace_put_contract,
    .get_contract = trace_get_contract,
    .make_script = trace_make_script,
    .free_script = trace_free_script,
    .prepare_scripts = trace_prepare_scripts,
    .claim = trace_claim,
    .resolve = trace_resolve,
    .run_script = trace_run_script,
    .run_query = trace_run_query,
    .put_event = trace_put_event,
    .put_audit = trace_put_audit,
    .put_command = trace_put_command,
    .put_exception = trace_put_exception,
    .resolve_exception = trace_resolve_exception,
    .begin_action = trace_begin_action,
    .assign_exception = trace_assign_exception,
    .put_action = trace_put_action,
    .put_pause = trace_put_pause,
    .end_pause = trace_end_pause,
    .list_pauses = trace_list_pauses,
    .put_approval = trace_put_approval,
    .decide_approval = trace_decide_approval,
    .decide_hold = trace_decide_hold,
    .withdraw_event = trace_withdraw_event,
    .list_actions = trace_list_actions,
    .list_approvals = trace_list_approvals,
    .put_payload = trace_put_payload,
    .get_payload = trace_get_payload,
    .erase_commands = trace_erase_commands,
    .list_erasures = trace_list_erasures,
    .lend = trace_lend,
    .lock_row = trace_lock_row,
    .check_tx = trace_check_tx,
    .express = trace_express,
    .run_group = trace_run_group,
    .lanes = trace_lanes,
    .commit = trace_commit,
    .rollback = trace_rollback,
    .adopt = trace_adopt,
    .begin_adopted = trace_begin_adopted,
    .finish_adopted = trace_finish_adopted,
    .release_adopted = trace_release_adopted,
    .renew_lease = trace_renew_lease,
    .list_stale = trace_list_stale,
    .list_unknown = trace_list_unknown,
    .lease_lanes = trace_lease_lanes,
    .read_lane = trace_read_lane,
    .list_held = trace_list_held,
    .settle_lane = trace_settle_lane,
    .list_lanes = trace_list_lanes,
    .list_holds = trace_list_holds,
    .count_outbox = trace_count_outbox,
    .measure_outbox = trace_measure_outbox,
    .list_deliveries = trace_list_deliveries,
    .list_outbox = trace_list_outbox,
    .get_event = trace_get_event,
    .put_evidence = trace_put_evidence,
    .put_duplicates = trace_put_duplicates,
    .get_duplicates = trace_get_duplicates,
    .list_duplicates = trace_list_duplicates,
    .retain_commands = trace_retain_commands,
    .retain_history = trace_retain_history,
    .next_span = trace_next_span,
    .read_span = trace_read_span,
    .drop_span = trace_drop_span,
    .restore_events = trace_restore_events,
    .list_archives = trace_list_archives,
    .get_command = trace_get_command,
    .list_commands = trace_list_commands,
    .list_events = trace_list_events,
    .list_audit = trace_list_audit,
    .list_evidence = trace_list_evidence,
    .get_exception = trace_get_exception,
    .list_exceptions = trace_list_exceptions,
    .list_references = trace_list_references,
    .put_token = trace_put_token,
    .get_token = trace_get_token,
    .list_tokens = trace_list_tokens,
    .revoke_token = trace_revoke_token,
    .measure = trace_measure,
    .ready = trace_ready,
    .doctor = trace_doctor,
};

struct store *store_trace_wrap(struct store *inner, store_trace_fn *fn, void *user)
{
	struct trace *trace = calloc(1, sizeof *trace);
	if (!trace)
		abort(); /* used by tests and tools only */
	trace->ops = trace_ops;
	trace->ops.name = inner->ops->name;
	trace->ops.one_writer = inner->ops->one_writer;
	if (!inner->ops->express)
		trace->ops.express = NULL;
	if (!inner->ops->lock_row)
		trace->ops.lock_row = NULL;
	if (!inner->ops->check_tx)
		trace->ops.check_tx = NULL;
	if (!inner->ops->ready)
		trace->ops.ready = NULL;
	trace->base.ops = &trace->ops;
	trace->inner = inner;
	trace->fn = fn;
	trace->user = user;
	return &trace->base;
}
