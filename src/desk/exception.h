/* SPDX-License-Identifier: Apache-2.0 */
/* exception.h -- commands that only a person can bring further: why, how urgent, what may be done.
 */
#ifndef DESK_EXCEPTION_H
#define DESK_EXCEPTION_H

#include "contract/contract.h"
#include "store/store.h"

enum trouble {
	TROUBLE_HANDLER_ENDED_TRANSACTION,
	TROUBLE_STAGED_UNKNOWN, /* the reason is the row's: its worker, or recovery, gave it */
	TROUBLE_COUNT
};

/* The stable reason code, on the command's row and on its item. */
const char *trouble_reason(enum trouble trouble);

/* The item that opens together with `row`. Its id is new. */
struct exception_row trouble_exception(enum trouble trouble, struct arena *arena, struct env *env,
                                       const struct contract *contract,
                                       const struct command_row *row);

/* What a person did about an item, and how that ends it. */
struct deed {
	struct exception_end end;            /* of the item with its id */
	const struct approval_end *decision; /* NULL: nobody else was asked */
	struct action_row action;
};

/* All of it, in the transaction of what it does (I1). IBID_RETRY, from here or from commit:
 * somebody was faster. */
IBID_CHECK enum ibid_code deed_write(struct tx *tx, const struct deed *deed, struct ibid_err *err);

/* What nobody knew about the command of `row` is known by now, and the row says what: its item is
 * resolved with it (I1), by the deed of a person, or by recovery (NULL). */
IBID_CHECK enum ibid_code trouble_over(struct tx *tx, struct arena *arena,
                                       const struct command_row *row, const struct deed *deed,
                                       struct ibid_err *err);

#endif
