/* SPDX-License-Identifier: Apache-2.0 */
/* fault_people.c -- verbs of human work, pauses and tokens, which fail at a chosen one. */
#include "store/fault.h"

#include <stdlib.h>

enum ibid_code fault_put_exception(struct tx *tx, const struct exception_row *row,
                                   struct ibid_err *err)
{
	struct fault *fault = fault_of(tx->store);
	enum ibid_code code;
	FAULTY(fault, code, err, fault->inner->ops->put_exception(fault_inner(tx), row, err));
	return code;
}

enum ibid_code fault_resolve_exception(struct tx *tx, const struct exception_end *end,
                                       struct ibid_err *err)
{
	struct fault *fault = fault_of(tx->store);
	enum ibid_code code;
	FAULTY(fault, code, err, fault->inner->ops->resolve_exception(fault_inner(tx), end, err));
	return code;
}

enum ibid_code fault_assign_exception(struct tx *tx, const struct exception_assignment *to,
                                      struct ibid_err *err)
{
	struct fault *fault = fault_of(tx->store);
	enum ibid_code code;
	FAULTY(fault, code, err, fault->inner->ops->assign_exception(fault_inner(tx), to, err));
	return code;
}

enum ibid_code fault_put_action(struct tx *tx, const struct action_row *row, struct ibid_err *err)
{
	struct fault *fault = fault_of(tx->store);
	enum ibid_code code;
	FAULTY(fault, code, err, fault->inner->ops->put_action(fault_inner(tx), row, err));
	return code;
}

enum ibid_code fault_put_pause(struct tx *tx, const struct pause_row *row, struct ibid_err *err)
{
	struct fault *fault = fault_of(tx->store);
	enum ibid_code code;
	FAULTY(fault, code, err, fault->inner->ops->put_pause(fault_inner(tx), row, err));
	return code;
}

enum ibid_code fault_end_pause(struct tx *tx, const struct pause_row *row, struct ibid_err *err)
{
	struct fault *fault = fault_of(tx->store);
	enum ibid_code code;
	FAULTY(fault, code, err, fault->inner->ops->end_pause(fault_inner(tx), row, err));
	return code;
}

enum ibid_code fault_put_approval(struct tx *tx, const struct approval_row *row,
                                  struct ibid_err *err)
{
	struct fault *fault = fault_of(tx->store);
	enum ibid_code code;
	FAULTY(fault, code, err, fault->inner->ops->put_approval(fault_inner(tx), row, err));
	return code;
}

enum ibid_code fault_decide_approval(struct tx *tx, const struct approval_end *end,
                                     struct ibid_err *err)
{
	struct fault *fault = fault_of(tx->store);
	enum ibid_code code;
	FAULTY(fault, code, err, fault->inner->ops->decide_approval(fault_inner(tx), end, err));
	return code;
}

enum ibid_code fault_begin_action(struct store *store, struct tx **ret, struct ibid_err *err)
{
	struct fault *fault = fault_of(store);
	struct tx *inner = NULL;
	enum ibid_code code;
	struct fault_tx *tx = calloc(1, sizeof *tx);
	if (!tx)
		return err_set(err, IBID_NOMEM, "out of memory");
	FAULTY(fault, code, err, fault->inner->ops->begin_action(fault->inner, &inner, err));
	if (code) {
		fault->inner->ops->rollback(&inner); /* begun, but nobody was told */
		free(tx);
		return code;
	}
	tx->base.store = store;
	tx->inner = inner;
	*ret = &tx->base;
	return IBID_OK;
}

enum ibid_code fault_get_exception(struct store *store, struct arena *arena, const char *tenant,
                                   const struct uuid *id, struct exception_row *ret,
                                   struct ibid_err *err)
{
	struct fault *fault = fault_of(store);
	struct exception_row row = {.tenant = NULL};
	enum ibid_code code;
	FAULTY(fault, code, err,
	       fault->inner->ops->get_exception(fault->inner, arena, tenant, id, &row, err));
	if (!code)
		*ret = row;
	return code;
}

enum ibid_code fault_list_pauses(struct store *store, struct arena *arena, const char *tenant,
                                 struct pause_row **ret, size_t *ret_count, struct ibid_err *err)
{
	FAULTY_LIST(struct pause_row, list_pauses, arena, tenant);
}

enum ibid_code fault_list_exceptions(struct store *store, struct arena *arena,
                                     const struct exception_filter *filter,
                                     struct exception_row **ret, size_t *ret_count,
                                     struct ibid_err *err)
{
	FAULTY_LIST(struct exception_row, list_exceptions, arena, filter);
}

enum ibid_code fault_list_actions(struct store *store, struct arena *arena, const char *tenant,
                                  const char *subject_type, const char *subject_id, size_t limit,
                                  struct action_row **ret, size_t *ret_count, struct ibid_err *err)
{
	FAULTY_LIST(struct action_row, list_actions, arena, tenant, subject_type, subject_id, limit);
}

enum ibid_code fault_list_approvals(struct store *store, struct arena *arena, const char *tenant,
                                    const char *subject_type, const char *subject_id, size_t limit,
                                    struct approval_row **ret, size_t *ret_count,
                                    struct ibid_err *err)
{
	FAULTY_LIST(struct approval_row, list_approvals, arena, tenant, subject_type, subject_id,
	            limit);
}

enum ibid_code fault_put_token(struct store *store, const struct token_row *row,
                               struct ibid_err *err)
{
	struct fault *fault = fault_of(store);
	enum ibid_code code;
	FAULTY(fault, code, err, fault->inner->ops->put_token(fault->inner, row, err));
	return code;
}

enum ibid_code fault_get_token(struct store *store, struct arena *arena, const char *id,
                               struct token_row *ret, struct ibid_err *err)
{
	struct fault *fault = fault_of(store);
	struct token_row row = {.tenant = NULL};
	enum ibid_code code;
	FAULTY(fault, code, err, fault->inner->ops->get_token(fault->inner, arena, id, &row, err));
	if (!code)
		*ret = row;
	return code;
}

enum ibid_code fault_list_tokens(struct store *store, struct arena *arena,
                                 const struct token_filter *filter, struct token_row **ret,
                                 size_t *ret_count, struct ibid_err *err)
{
	FAULTY_LIST(struct token_row, list_tokens, arena, filter);
}

enum ibid_code fault_revoke_token(struct store *store, const char *id, const char *by,
                                  int64_t at_us, struct ibid_err *err)
{
	struct fault *fault = fault_of(store);
	enum ibid_code code;
	FAULTY(fault, code, err, fault->inner->ops->revoke_token(fault->inner, id, by, at_us, err));
	return code;
}
