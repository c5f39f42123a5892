/* SPDX-License-Identifier: Apache-2.0 */
#include "api/desk.h"

#include "command/staged.h"
#include "outbox/delivery.h"
#include "outbox/pause.h"

struct desk desk_of(struct store *store, struct env *env, struct ledger *ledger)
{
	static const struct action_subject *const subjects[] = {
	    &command_subject,
	    &delivery_subject,
	    &pause_subjects[PAUSE_RELAY],
	    &pause_subjects[PAUSE_DESTINATION],
	    &pause_subjects[PAUSE_EVENT],
	    NULL,
	};
	return (struct desk){.store = store,
	                     .env = env,
	                     .subjects = subjects,
	                     .ledger = ledger,
	                     .contracts = ledger ? ledger->contracts : NULL};
}
