/* SPDX-License-Identifier: Apache-2.0 */
/* exception.h -- items of human work, as they open together with what stopped (I8). */
#ifndef DESK_EXCEPTION_H
#define DESK_EXCEPTION_H

#include "retry/reason.h"
#include "store/store.h"

/* The item that opens for what stopped. `about`: its tenant, subject, reason and owner, and
 * whatever else is known of it. `stop`: what a person is told, a row of the concept's table.
 * `within_us`: until when it is due, as its contract says; 0: four hours. Its id is new. */
struct exception_row exception_make(const struct exception_row *about,
                                    const struct retry_stop *stop, struct env *env, int64_t now_us,
                                    int64_t within_us);

/* It is open, and somebody was to have looked after it before now. */
bool exception_overdue(const struct exception_row *row, int64_t now_us);

/* What its trace is called; NULL: it has none. */
const char *exception_trace_id(struct arena *arena, const char *traceparent);

/* The newest that the filter finds. `*ret` is NULL where there is none. */
IBID_CHECK enum ibid_code exception_newest(struct store *store, struct arena *arena,
                                           struct exception_filter filter,
                                           const struct exception_row **ret, struct ibid_err *err);

/* What people did about an item, the oldest first, and what they proposed, the newest first. */
struct exception_history {
	struct action_row *actions;
	struct approval_row *approvals;
	size_t action_count, approval_count;
};
IBID_CHECK enum ibid_code exception_history(struct store *store, struct arena *arena,
                                            const struct exception_row *item,
                                            struct exception_history *ret, struct ibid_err *err);

/* The proposal that waits for a second person; NULL: none does. */
const struct approval_row *exception_proposal(const struct exception_history *history);

/* What a list leaves out. */
struct exception_more {
	const char *external_key;   /* how a partner knows its command; NULL: no partner does */
	const char *service_answer; /* opened; NULL: none */
	struct exception_history history;
};

/* An object; `more` NULL: in a list. */
void exception_json(struct str *out, const struct exception_row *row,
                    const struct exception_more *more, int64_t now_us, enum row_view view);

#endif
