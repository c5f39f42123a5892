/* SPDX-License-Identifier: Apache-2.0 */
/* action.c -- what people do: evidence of it, and what waits for a second person. */
#include "store/action.h"

#include "store/run.h"

WORDS_DEFINE(approval_decision, approval_decision, APPROVAL_DECISIONS);

#define ACTION(kind, column, member, ...)                                                          \
	ROW_COLUMN(kind, struct action_row, column, member, __VA_ARGS__)
static const struct row_column action_columns[] = {
    ACTION(TEXT, tenant, tenant, .json = ""),
    ACTION(UUID, id, id),
    ACTION(TIME, at, at_us),
    ACTION(TEXT, action, action),
    ACTION(TEXT, actor, actor),
    ACTION(TEXT, role, role),
    ACTION(TEXT, token, token),
    ACTION(TEXT, subject_type, subject_type, .json = ""),
    ACTION(TEXT, subject_id, subject_id, .json = ""),
    ACTION(TEXT, reason, reason),
    ACTION(JSON, parameters, parameters),
    ACTION(UUID_OR_NULL, approval_id, approval_id),
};
const struct row_shape action_shape = ROW_SHAPE(struct action_row, action_columns);

#define APPROVAL(kind, column, member, ...)                                                        \
	ROW_COLUMN(kind, struct approval_row, column, member, __VA_ARGS__)
static const struct row_column approval_columns[] = {
    APPROVAL(TEXT, tenant, tenant, .json = ""),
    APPROVAL(UUID, id, id),
    APPROVAL(TEXT, subject_type, subject_type, .json = ""),
    APPROVAL(TEXT, subject_id, subject_id, .json = ""),
    APPROVAL(TEXT, action, action),
    APPROVAL(JSON, parameters, parameters, .json = ""), /* an answer that waits is not shown */
    APPROVAL(TEXT, proposed_by, proposed_by),
    APPROVAL(TEXT, proposed_token, proposed_token, .inside = true),
    APPROVAL(TEXT, reason, reason),
    APPROVAL(TIME, proposed_at, proposed_us),
    APPROVAL(WORD, decision, decision, .words = &approval_decision_words),
    APPROVAL(TEXT, decided_by, decided_by),
    APPROVAL(TEXT, decided_token, decided_token, .inside = true),
    APPROVAL(TEXT, decided_reason, decided_reason),
    APPROVAL(TIME_OR_NONE, decided_at, decided_us),
};
const struct row_shape approval_shape = ROW_SHAPE(struct approval_row, approval_columns);

#define DECISION(kind, column, member, ...)                                                        \
	ROW_COLUMN(kind, struct approval_end, column, member, __VA_ARGS__)
static const struct row_column decision_columns[] = {
    DECISION(TEXT, tenant, tenant),
    DECISION(UUID, id, id),
    DECISION(WORD, decision, decision, .words = &approval_decision_words),
    DECISION(TEXT, decided_by, decided_by),
    DECISION(TEXT, decided_token, decided_token),
    DECISION(TEXT, decided_reason, decided_reason),
    DECISION(TEXT, parameters, parameters),
    DECISION(TIME, decided_at, decided_us),
};
static const struct row_shape decision_shape = ROW_SHAPE(struct approval_end, decision_columns);

enum ibid_code store_put_action(struct tx *tx, const struct action_row *row, struct ibid_err *err)
{
	return sql_put(tx, SQL_IN(action_put, action_shape, row), err);
}

enum ibid_code store_put_approval(struct tx *tx, const struct approval_row *row,
                                  struct ibid_err *err)
{
	return sql_put(tx, SQL_IN(approval_put, approval_shape, row), err);
}

enum ibid_code store_decide_approval(struct tx *tx, const struct approval_end *end,
                                     struct ibid_err *err)
{
	return sql_put(tx, SQL_IN(approval_decide, decision_shape, end), err);
}

enum ibid_code store_list_actions(struct store *store, struct arena *arena, const char *tenant,
                                  const char *subject_type, const char *subject_id, size_t limit,
                                  struct action_row **ret, size_t *ret_count, struct ibid_err *err)
{
	struct lookup of = {tenant, .subject_type = subject_type, subject_id, .limit = limit};
	return sql_list(store, SQL_IN(action_list, lookup_shape, &of), arena, &action_shape, ret,
	                ret_count, err);
}

enum ibid_code store_list_approvals(struct store *store, struct arena *arena, const char *tenant,
                                    const char *subject_type, const char *subject_id, size_t limit,
                                    struct approval_row **ret, size_t *ret_count,
                                    struct ibid_err *err)
{
	struct lookup of = {tenant, .subject_type = subject_type, subject_id, .limit = limit};
	return sql_list(store, SQL_IN(approval_list, lookup_shape, &of), arena, &approval_shape, ret,
	                ret_count, err);
}
