/* SPDX-License-Identifier: Apache-2.0 */
/* fault.h -- what the verbs of a store that fails share. */
#ifndef STORE_FAULT_H
#define STORE_FAULT_H

#include "store/archive.h"
#include "store/outbox.h"

#include <stdatomic.h>

struct fault {
	struct store base;
	struct store_ops ops; /* with the inner store's name: callers choose their dialect by it */
	struct store *inner;
	enum fault_kind kind;
	unsigned at;
	_Atomic unsigned verbs;
	_Atomic bool fired;
};

struct fault_tx {
	struct tx base;
	struct tx *inner;
};

static inline struct fault *fault_of(struct store *store)
{
	return (struct fault *)store;
}

static inline struct tx *fault_inner(struct tx *tx)
{
	return ((struct fault_tx *)tx)->inner;
}

/* ---- When and how --------------------------------------------------------------------------- */

/* What this call of a verb has to do. */
enum fault_act { FAULT_ACT_NONE, FAULT_ACT_BEFORE, FAULT_ACT_AFTER, FAULT_ACT_KILL_AFTER };
enum fault_act fault_act(struct fault *fault);
enum ibid_code fault_unavailable(struct ibid_err *err);
/* The verb was run and said `code`. */
enum ibid_code fault_after(enum fault_act what, enum ibid_code code, struct ibid_err *err);

/* Run a verb, or not, as the moment demands. */
#define FAULTY(fault, code, err, call)                                                             \
	do {                                                                                           \
		enum fault_act what_ = fault_act(fault);                                                   \
		(code) = what_ == FAULT_ACT_BEFORE ? fault_unavailable(err)                                \
		                                   : fault_after(what_, (call), (err));                    \
	} while (0)

/* What the lists return: an array and its length. */
#define FAULTY_LIST(type, verb, ...)                                                               \
	struct fault *fault = fault_of(store);                                                         \
	type *rows = NULL;                                                                             \
	size_t count = 0;                                                                              \
	enum ibid_code code;                                                                           \
	FAULTY(fault, code, err,                                                                       \
	       fault->inner->ops->verb(fault->inner, __VA_ARGS__, &rows, &count, err));                \
	if (!code) {                                                                                   \
		*ret = rows;                                                                               \
		*ret_count = count;                                                                        \
	}                                                                                              \
	return code

/* ---- Verbs, by concept ---------------------------------------------------------------------- */

/* fault_outbox.c */
enum ibid_code fault_decide_hold(struct tx *tx, const struct hold_decision *decision,
                                 struct ibid_err *err);
enum ibid_code fault_withdraw_event(struct tx *tx, const struct withdrawal *withdrawal,
                                    struct ibid_err *err);
enum ibid_code fault_get_event(struct store *store, struct arena *arena, const char *tenant,
                               const struct uuid *id, struct event_row *ret, struct ibid_err *err);
enum ibid_code fault_lease_lanes(struct store *store, struct arena *arena,
                                 const struct lane_wish *wish, struct lane_lease **ret,
                                 size_t *ret_count, size_t *ret_share, struct ibid_err *err);
enum ibid_code fault_read_lane(struct store *store, struct arena *arena,
                               const struct lane_lease *lease, const char *cursor, size_t limit,
                               bool doubtful, struct lane_batch *ret, struct ibid_err *err);
enum ibid_code fault_list_held(struct store *store, struct arena *arena,
                               const struct lane_lease *lease, struct held_event **ret,
                               size_t *ret_count, struct ibid_err *err);
enum ibid_code fault_settle_lane(struct store *store, const struct lane_settlement *settlement,
                                 struct ibid_err *err);
enum ibid_code fault_list_lanes(struct store *store, struct arena *arena, struct lane_row **ret,
                                size_t *ret_count, struct ibid_err *err);
enum ibid_code fault_list_holds(struct store *store, struct arena *arena, const char *tenant,
                                const struct uuid *event_id, struct hold_row **ret,
                                size_t *ret_count, struct ibid_err *err);
enum ibid_code fault_count_outbox(struct store *store, size_t limit, bool *ret_more,
                                  struct ibid_err *err);
enum ibid_code fault_measure_outbox(struct store *store, struct arena *arena,
                                    struct backlog_row **ret, size_t *ret_count,
                                    struct ibid_err *err);
enum ibid_code fault_list_deliveries(struct store *store, struct arena *arena, const char *tenant,
                                     const struct uuid *event_id, struct delivery_row **ret,
                                     size_t *ret_count, struct ibid_err *err);
enum ibid_code fault_list_outbox(struct store *store, struct arena *arena,
                                 const struct outbox_filter *filter, struct outbox_row **ret,
                                 size_t *ret_count, struct ibid_err *err);
enum ibid_code fault_next_span(struct store *store, struct arena *arena, int64_t before_us,
                               int64_t now_us, const struct archive_span *behind,
                               struct archive_span *ret, struct ibid_err *err);
enum ibid_code fault_read_span(struct store *store, const struct archive_span *span,
                               archive_line_fn *fn, void *user, struct archive_seal *ret,
                               struct ibid_err *err);
enum ibid_code fault_drop_span(struct store *store, const struct archive_span *span,
                               const struct archive_seal *seal, const struct archive_row *row,
                               struct ibid_err *err);
enum ibid_code fault_restore_events(struct store *store, const struct restoring *restoring,
                                    struct restore_count *ret, struct ibid_err *err);
enum ibid_code fault_list_archives(struct store *store, struct arena *arena, size_t limit,
                                   struct archive_row **ret, size_t *ret_count,
                                   struct ibid_err *err);

/* fault_people.c */
enum ibid_code fault_put_exception(struct tx *tx, const struct exception_row *row,
                                   struct ibid_err *err);
enum ibid_code fault_resolve_exception(struct tx *tx, const struct exception_end *end,
                                       struct ibid_err *err);
enum ibid_code fault_assign_exception(struct tx *tx, const struct exception_assignment *to,
                                      struct ibid_err *err);
enum ibid_code fault_put_action(struct tx *tx, const struct action_row *row, struct ibid_err *err);
enum ibid_code fault_put_pause(struct tx *tx, const struct pause_row *row, struct ibid_err *err);
enum ibid_code fault_end_pause(struct tx *tx, const struct pause_row *row, struct ibid_err *err);
enum ibid_code fault_put_approval(struct tx *tx, const struct approval_row *row,
                                  struct ibid_err *err);
enum ibid_code fault_decide_approval(struct tx *tx, const struct approval_end *end,
                                     struct ibid_err *err);
enum ibid_code fault_begin_action(struct store *store, struct tx **ret, struct ibid_err *err);
enum ibid_code fault_get_exception(struct store *store, struct arena *arena, const char *tenant,
                                   const struct uuid *id, struct exception_row *ret,
                                   struct ibid_err *err);
enum ibid_code fault_list_pauses(struct store *store, struct arena *arena, const char *tenant,
                                 struct pause_row **ret, size_t *ret_count, struct ibid_err *err);
enum ibid_code fault_list_exceptions(struct store *store, struct arena *arena,
                                     const struct exception_filter *filter,
                                     struct exception_row **ret, size_t *ret_count,
                                     struct ibid_err *err);
enum ibid_code fault_list_actions(struct store *store, struct arena *arena, const char *tenant,
                                  const char *subject_type, const char *subject_id, size_t limit,
                                  struct action_row **ret, size_t *ret_count, struct ibid_err *err);
enum ibid_code fault_list_approvals(struct store *store, struct arena *arena, const char *tenant,
                                    const char *subject_type, const char *subject_id, size_t limit,
                                    struct approval_row **ret, size_t *ret_count,
                                    struct ibid_err *err);
enum ibid_code fault_put_token(struct store *store, const struct token_row *row,
                               struct ibid_err *err);
enum ibid_code fault_get_token(struct store *store, struct arena *arena, const char *id,
                               struct token_row *ret, struct ibid_err *err);
enum ibid_code fault_list_tokens(struct store *store, struct arena *arena,
                                 const struct token_filter *filter, struct token_row **ret,
                                 size_t *ret_count, struct ibid_err *err);
enum ibid_code fault_revoke_token(struct store *store, const char *id, const char *by,
                                  int64_t at_us, struct ibid_err *err);

/* fault_history.c */
enum ibid_code fault_get_payload(struct store *store, struct arena *arena, const char *tenant,
                                 const struct uuid *command_id, struct payload_row *ret,
                                 struct ibid_err *err);
enum ibid_code fault_erase_commands(struct store *store, const struct erasure *erasure,
                                    struct erasure_progress *progress, struct ibid_err *err);
enum ibid_code fault_list_erasures(struct store *store, struct arena *arena, const char *tenant,
                                   size_t limit, struct erasure_row **ret, size_t *ret_count,
                                   struct ibid_err *err);
enum ibid_code fault_put_evidence(struct store *store, const struct key_conflict_row *row,
                                  struct ibid_err *err);
enum ibid_code fault_put_duplicates(struct store *store, const struct duplicate_row *rows,
                                    size_t count, const struct duplicate_seen_row *seen,
                                    size_t seen_count, struct ibid_err *err);
enum ibid_code fault_get_duplicates(struct store *store, struct arena *arena, const char *tenant,
                                    const struct uuid *command_id, struct duplicate_row *ret,
                                    struct ibid_err *err);
enum ibid_code fault_get_command(struct store *store, struct arena *arena, const char *tenant,
                                 const struct uuid *id, const struct identity *identity,
                                 struct command_row *ret, struct ibid_err *err);
enum ibid_code fault_list_commands(struct store *store, struct arena *arena,
                                   const struct command_filter *filter, struct command_row **ret,
                                   size_t *ret_count, struct ibid_err *err);
enum ibid_code fault_list_stale(struct store *store, struct arena *arena,
                                const struct command_filter *filter, struct command_row **ret,
                                size_t *ret_count, struct ibid_err *err);
enum ibid_code fault_list_unknown(struct store *store, struct arena *arena,
                                  const struct command_filter *filter, struct command_row **ret,
                                  size_t *ret_count, struct ibid_err *err);
enum ibid_code fault_list_events(struct store *store, struct arena *arena, const char *tenant,
                                 const struct uuid *command_id, size_t limit,
                                 struct event_row **ret, size_t *ret_count, struct ibid_err *err);
enum ibid_code fault_list_audit(struct store *store, struct arena *arena, const char *tenant,
                                const struct uuid *command_id, size_t limit, struct audit_row **ret,
                                size_t *ret_count, struct ibid_err *err);
enum ibid_code fault_list_evidence(struct store *store, struct arena *arena, const char *tenant,
                                   const struct uuid *command_id, struct key_conflict_row **ret,
                                   size_t *ret_count, struct ibid_err *err);
enum ibid_code fault_list_duplicates(struct store *store, struct arena *arena, const char *tenant,
                                     const struct uuid *command_id, size_t limit,
                                     struct duplicate_seen_row **ret, size_t *ret_count,
                                     struct ibid_err *err);
enum ibid_code fault_list_references(struct store *store, struct arena *arena,
                                     const struct reference_filter *filter,
                                     struct reference_row **ret, size_t *ret_count,
                                     struct ibid_err *err);
enum ibid_code fault_measure(struct store *store, struct arena *arena, struct measurement *ret,
                             struct ibid_err *err);
enum ibid_code fault_ready(struct store *store, struct ibid_err *err);
enum ibid_code fault_doctor(struct store *store, finding_fn *fn, void *user, struct ibid_err *err);
enum ibid_code fault_retain_commands(struct store *store, struct arena *arena,
                                     const struct retention *retention,
                                     struct retention_cursor *cursor, struct retention_count *ret,
                                     struct ibid_err *err);
enum ibid_code fault_retain_history(struct store *store, const struct retention *retention,
                                    struct retention_count *ret, bool *ret_more,
                                    struct ibid_err *err);

#endif
