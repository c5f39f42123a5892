/* SPDX-License-Identifier: Apache-2.0 */
/* fault_outbox.c -- verbs of the outbox and its archives, which fail at a chosen one. */
#include "store/fault.h"

enum ibid_code fault_decide_hold(struct tx *tx, const struct hold_decision *decision,
                                 struct ibid_err *err)
{
	struct fault *fault = fault_of(tx->store);
	enum ibid_code code;
	FAULTY(fault, code, err, fault->inner->ops->decide_hold(fault_inner(tx), decision, err));
	return code;
}

enum ibid_code fault_withdraw_event(struct tx *tx, const struct withdrawal *withdrawal,
                                    struct ibid_err *err)
{
	struct fault *fault = fault_of(tx->store);
	enum ibid_code code;
	FAULTY(fault, code, err, fault->inner->ops->withdraw_event(fault_inner(tx), withdrawal, err));
	return code;
}

enum ibid_code fault_get_event(struct store *store, struct arena *arena, const char *tenant,
                               const struct uuid *id, struct event_row *ret, struct ibid_err *err)
{
	struct fault *fault = fault_of(store);
	struct event_row row = {.tenant = NULL};
	enum ibid_code code;
	FAULTY(fault, code, err,
	       fault->inner->ops->get_event(fault->inner, arena, tenant, id, &row, err));
	if (!code)
		*ret = row;
	return code;
}

enum ibid_code fault_lease_lanes(struct store *store, struct arena *arena,
                                 const struct lane_wish *wish, struct lane_lease **ret,
                                 size_t *ret_count, size_t *ret_share, struct ibid_err *err)
{
	struct fault *fault = fault_of(store);
	struct lane_lease *leases = NULL;
	size_t count = 0, share = 0;
	enum ibid_code code;
	FAULTY(fault, code, err,
	       fault->inner->ops->lease_lanes(fault->inner, arena, wish, &leases, &count, &share, err));
	if (!code) {
		*ret = leases;
		*ret_count = count;
		*ret_share = share;
	}
	return code;
}

enum ibid_code fault_read_lane(struct store *store, struct arena *arena,
                               const struct lane_lease *lease, const char *cursor, size_t limit,
                               bool doubtful, struct lane_batch *ret, struct ibid_err *err)
{
	struct fault *fault = fault_of(store);
	struct lane_batch batch = {.count = 0};
	enum ibid_code code;
	FAULTY(fault, code, err,
	       fault->inner->ops->read_lane(fault->inner, arena, lease, cursor, limit, doubtful, &batch,
	                                    err));
	if (!code)
		*ret = batch;
	return code;
}

enum ibid_code fault_list_held(struct store *store, struct arena *arena,
                               const struct lane_lease *lease, struct held_event **ret,
                               size_t *ret_count, struct ibid_err *err)
{
	FAULTY_LIST(struct held_event, list_held, arena, lease);
}

enum ibid_code fault_settle_lane(struct store *store, const struct lane_settlement *settlement,
                                 struct ibid_err *err)
{
	struct fault *fault = fault_of(store);
	enum ibid_code code;
	FAULTY(fault, code, err, fault->inner->ops->settle_lane(fault->inner, settlement, err));
	return code;
}

enum ibid_code fault_list_lanes(struct store *store, struct arena *arena, struct lane_row **ret,
                                size_t *ret_count, struct ibid_err *err)
{
	FAULTY_LIST(struct lane_row, list_lanes, arena);
}

enum ibid_code fault_list_holds(struct store *store, struct arena *arena, const char *tenant,
                                const struct uuid *event_id, struct hold_row **ret,
                                size_t *ret_count, struct ibid_err *err)
{
	FAULTY_LIST(struct hold_row, list_holds, arena, tenant, event_id);
}

enum ibid_code fault_count_outbox(struct store *store, size_t limit, bool *ret_more,
                                  struct ibid_err *err)
{
	struct fault *fault = fault_of(store);
	bool more = false;
	enum ibid_code code;
	FAULTY(fault, code, err, fault->inner->ops->count_outbox(fault->inner, limit, &more, err));
	if (!code)
		*ret_more = more;
	return code;
}

enum ibid_code fault_measure_outbox(struct store *store, struct arena *arena,
                                    struct backlog_row **ret, size_t *ret_count,
                                    struct ibid_err *err)
{
	FAULTY_LIST(struct backlog_row, measure_outbox, arena);
}

enum ibid_code fault_list_deliveries(struct store *store, struct arena *arena, const char *tenant,
                                     const struct uuid *event_id, struct delivery_row **ret,
                                     size_t *ret_count, struct ibid_err *err)
{
	FAULTY_LIST(struct delivery_row, list_deliveries, arena, tenant, event_id);
}

enum ibid_code fault_list_outbox(struct store *store, struct arena *arena,
                                 const struct outbox_filter *filter, struct outbox_row **ret,
                                 size_t *ret_count, struct ibid_err *err)
{
	FAULTY_LIST(struct outbox_row, list_outbox, arena, filter);
}

enum ibid_code fault_next_span(struct store *store, struct arena *arena, int64_t before_us,
                               int64_t now_us, const struct archive_span *behind,
                               struct archive_span *ret, struct ibid_err *err)
{
	struct fault *fault = fault_of(store);
	struct archive_span span;
	enum ibid_code code;
	FAULTY(
	    fault, code, err,
	    fault->inner->ops->next_span(fault->inner, arena, before_us, now_us, behind, &span, err));
	if (!code)
		*ret = span;
	return code;
}

enum ibid_code fault_read_span(struct store *store, const struct archive_span *span,
                               archive_line_fn *fn, void *user, struct archive_seal *ret,
                               struct ibid_err *err)
{
	struct fault *fault = fault_of(store);
	struct archive_seal seal;
	enum ibid_code code;
	FAULTY(fault, code, err,
	       fault->inner->ops->read_span(fault->inner, span, fn, user, &seal, err));
	if (!code)
		*ret = seal;
	return code;
}

enum ibid_code fault_drop_span(struct store *store, const struct archive_span *span,
                               const struct archive_seal *seal, const struct archive_row *row,
                               struct ibid_err *err)
{
	struct fault *fault = fault_of(store);
	enum ibid_code code;
	FAULTY(fault, code, err, fault->inner->ops->drop_span(fault->inner, span, seal, row, err));
	return code;
}

enum ibid_code fault_restore_events(struct store *store, const struct restoring *restoring,
                                    struct restore_count *ret, struct ibid_err *err)
{
	struct fault *fault = fault_of(store);
	struct restore_count count = {0};
	enum ibid_code code;
	FAULTY(fault, code, err,
	       fault->inner->ops->restore_events(fault->inner, restoring, &count, err));
	if (!code)
		*ret = count;
	return code;
}

enum ibid_code fault_list_archives(struct store *store, struct arena *arena, size_t limit,
                                   struct archive_row **ret, size_t *ret_count,
                                   struct ibid_err *err)
{
	struct fault *fault = fault_of(store);
	struct archive_row *rows = NULL;
	size_t count = 0;
	enum ibid_code code;
	FAULTY(fault, code, err,
	       fault->inner->ops->list_archives(fault->inner, arena, limit, &rows, &count, err));
	if (!code) {
		*ret = rows;
		*ret_count = count;
	}
	return code;
}
