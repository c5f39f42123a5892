/* SPDX-License-Identifier: Apache-2.0 */
/* command_json.h -- a command as people see it, by the server and on the command line. */
#ifndef COMMAND_COMMAND_JSON_H
#define COMMAND_COMMAND_JSON_H

#include "store/store.h"

struct command_shown {
	const struct command_row *row;
	const char *detail; /* what the reader may read of the row's text; NULL: nothing; likewise: */
	const char *awaits; /* what it waits for */
	bool whole;         /* not in a list: with its result, and where it came from */
};

/* Members, without braces. */
void command_json(struct str *out, struct arena *arena, const struct command_shown *shown,
                  enum row_view view);

/* Of a command that is completed, the audit entry says where it came from. */
void command_take_origin(struct command_row *row, const struct audit_row *audit);

#endif
