/* SPDX-License-Identifier: Apache-2.0 */
/* outbox.c -- the names of why an event stands in the hold. */
#include "store/outbox.h"

#include <string.h>

static const char *const hold_names[HOLD_STATE_COUNT] = {
#define HOLD_STATE_NAME(symbol, name) name,
    HOLD_STATES(HOLD_STATE_NAME)
#undef HOLD_STATE_NAME
};

const char *hold_state_name(enum hold_state state)
{
	return hold_names[state];
}

bool hold_state_read(const char *name, enum hold_state *ret)
{
	for (int i = 0; i < HOLD_STATE_COUNT; i++) {
		if (strcmp(name, hold_names[i]) == 0) {
			*ret = (enum hold_state)i;
			return true;
		}
	}
	return false;
}
