/* SPDX-License-Identifier: Apache-2.0 */
/* fault_history.c -- verbs that look at what was done, keep and forget it, which fail at a chosen
 * one. */
#include "store/fault.h"

enum ibid_code fault_get_payload(struct store *store, struct arena *arena, const char *tenant,
                                 const struct uuid *command_id, struct payload_row *ret,
                                 struct ibid_err *err)
{
	struct fault *fault = fault_of(store);
	struct payload_row row;
	enum ibid_code code;
	FAULTY(fault, code, err,
	       fault->inner->ops->get_payload(fault->inner, arena, tenant, command_id, &row, err));
	if (!code)
		*ret = row;
	return code;
}

enum ibid_code fault_erase_commands(struct store *store, const struct erasure *erasure,
                                    struct erasure_progress *progress, struct ibid_err *err)
{
	struct fault *fault = fault_of(store);
	struct erasure_progress moved = *progress;
	enum ibid_code code;
	FAULTY(fault, code, err, fault->inner->ops->erase_commands(fault->inner, erasure, &moved, err));
	if (!code)
		*progress = moved;
	return code;
}

enum ibid_code fault_list_erasures(struct store *store, struct arena *arena, const char *tenant,
                                   size_t limit, struct erasure_row **ret, size_t *ret_count,
                                   struct ibid_err *err)
{
	struct fault *fault = fault_of(store);
	struct erasure_row *rows = NULL;
	size_t count = 0;
	enum ibid_code code;
	FAULTY(
	    fault, code, err,
	    fault->inner->ops->list_erasures(fault->inner, arena, tenant, limit, &rows, &count, err));
	if (!code) {
		*ret = rows;
		*ret_count = count;
	}
	return code;
}

enum ibid_code fault_put_evidence(struct store *store, const struct key_conflict_row *row,
                                  struct ibid_err *err)
{
	struct fault *fault = fault_of(store);
	enum ibid_code code;
	FAULTY(fault, code, err, fault->inner->ops->put_evidence(fault->inner, row, err));
	return code;
}

enum ibid_code fault_put_duplicates(struct store *store, const struct duplicate_row *rows,
                                    size_t count, const struct duplicate_seen_row *seen,
                                    size_t seen_count, struct ibid_err *err)
{
	struct fault *fault = fault_of(store);
	enum ibid_code code;
	FAULTY(fault, code, err,
	       fault->inner->ops->put_duplicates(fault->inner, rows, count, seen, seen_count, err));
	return code;
}

enum ibid_code fault_get_duplicates(struct store *store, struct arena *arena, const char *tenant,
                                    const struct uuid *command_id, struct duplicate_row *ret,
                                    struct ibid_err *err)
{
	struct fault *fault = fault_of(store);
	struct duplicate_row row = {.count = 0};
	enum ibid_code code;
	FAULTY(fault, code, err,
	       fault->inner->ops->get_duplicates(fault->inner, arena, tenant, command_id, &row, err));
	if (!code)
		*ret = row;
	return code;
}

enum ibid_code fault_get_command(struct store *store, struct arena *arena, const char *tenant,
                                 const struct uuid *id, const struct identity *identity,
                                 struct command_row *ret, struct ibid_err *err)
{
	struct fault *fault = fault_of(store);
	struct command_row row = {.linked = false};
	enum ibid_code code;
	FAULTY(fault, code, err,
	       fault->inner->ops->get_command(fault->inner, arena, tenant, id, identity, &row, err));
	if (!code)
		*ret = row;
	return code;
}

enum ibid_code fault_list_commands(struct store *store, struct arena *arena,
                                   const struct command_filter *filter, struct command_row **ret,
                                   size_t *ret_count, struct ibid_err *err)
{
	FAULTY_LIST(struct command_row, list_commands, arena, filter);
}

enum ibid_code fault_list_stale(struct store *store, struct arena *arena,
                                const struct command_filter *filter, struct command_row **ret,
                                size_t *ret_count, struct ibid_err *err)
{
	FAULTY_LIST(struct command_row, list_stale, arena, filter);
}

enum ibid_code fault_list_unknown(struct store *store, struct arena *arena,
                                  const struct command_filter *filter, struct command_row **ret,
                                  size_t *ret_count, struct ibid_err *err)
{
	FAULTY_LIST(struct command_row, list_unknown, arena, filter);
}

enum ibid_code fault_list_events(struct store *store, struct arena *arena, const char *tenant,
                                 const struct uuid *command_id, size_t limit,
                                 struct event_row **ret, size_t *ret_count, struct ibid_err *err)
{
	FAULTY_LIST(struct event_row, list_events, arena, tenant, command_id, limit);
}

enum ibid_code fault_list_audit(struct store *store, struct arena *arena, const char *tenant,
                                const struct uuid *command_id, size_t limit, struct audit_row **ret,
                                size_t *ret_count, struct ibid_err *err)
{
	FAULTY_LIST(struct audit_row, list_audit, arena, tenant, command_id, limit);
}

enum ibid_code fault_list_evidence(struct store *store, struct arena *arena, const char *tenant,
                                   const struct uuid *command_id, struct key_conflict_row **ret,
                                   size_t *ret_count, struct ibid_err *err)
{
	FAULTY_LIST(struct key_conflict_row, list_evidence, arena, tenant, command_id);
}

enum ibid_code fault_list_duplicates(struct store *store, struct arena *arena, const char *tenant,
                                     const struct uuid *command_id, size_t limit,
                                     struct duplicate_seen_row **ret, size_t *ret_count,
                                     struct ibid_err *err)
{
	FAULTY_LIST(struct duplicate_seen_row, list_duplicates, arena, tenant, command_id, limit);
}

enum ibid_code fault_list_references(struct store *store, struct arena *arena,
                                     const struct reference_filter *filter,
                                     struct reference_row **ret, size_t *ret_count,
                                     struct ibid_err *err)
{
	FAULTY_LIST(struct reference_row, list_references, arena, filter);
}

enum ibid_code fault_measure(struct store *store, struct arena *arena, struct measurement *ret,
                             struct ibid_err *err)
{
	struct fault *fault = fault_of(store);
	struct measurement got = {0};
	enum ibid_code code;
	FAULTY(fault, code, err, fault->inner->ops->measure(fault->inner, arena, &got, err));
	if (!code)
		*ret = got;
	return code;
}

enum ibid_code fault_ready(struct store *store, struct ibid_err *err)
{
	struct fault *fault = fault_of(store);
	enum ibid_code code;
	FAULTY(fault, code, err, fault->inner->ops->ready(fault->inner, err));
	return code;
}

enum ibid_code fault_doctor(struct store *store, finding_fn *fn, void *user, struct ibid_err *err)
{
	struct fault *fault = fault_of(store);
	enum ibid_code code;
	FAULTY(fault, code, err, fault->inner->ops->doctor(fault->inner, fn, user, err));
	return code;
}

enum ibid_code fault_retain_commands(struct store *store, struct arena *arena,
                                     const struct retention *retention,
                                     struct retention_cursor *cursor, struct retention_count *ret,
                                     struct ibid_err *err)
{
	struct fault *fault = fault_of(store);
	struct retention_cursor moved = *cursor;
	struct retention_count counted = *ret;
	enum ibid_code code;
	FAULTY(
	    fault, code, err,
	    fault->inner->ops->retain_commands(fault->inner, arena, retention, &moved, &counted, err));
	if (!code) {
		*cursor = moved;
		*ret = counted;
	}
	return code;
}

enum ibid_code fault_retain_history(struct store *store, const struct retention *retention,
                                    struct retention_count *ret, bool *ret_more,
                                    struct ibid_err *err)
{
	struct fault *fault = fault_of(store);
	struct retention_count counted = *ret;
	bool more = false;
	enum ibid_code code;
	FAULTY(fault, code, err,
	       fault->inner->ops->retain_history(fault->inner, retention, &counted, &more, err));
	if (!code) {
		*ret = counted;
		*ret_more = more;
	}
	return code;
}
