/* SPDX-License-Identifier: Apache-2.0 */
/* desk.h -- the desk with all subjects that people can act upon. */
#ifndef API_DESK_H
#define API_DESK_H

#include "command/ledger.h"
#include "desk/action.h"

/* `ledger` NULL: what ends a command can't be done. */
struct desk desk_of(struct store *store, struct env *env, struct ledger *ledger);

#endif
