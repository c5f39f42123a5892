/* SPDX-License-Identifier: Apache-2.0 */
/* problem.h -- the bodies of answers that are not the handler's: RFC 9457 problem details. */
#ifndef COMMAND_PROBLEM_H
#define COMMAND_PROBLEM_H

#include "base/arena.h"

struct problem {
	const char *type, *title; /* "/problems/key-reused" */
	int status;
	const char *detail;
	const char *code;       /* stable reason code; NULL: none */
	const char *command_id; /* NULL: none; likewise: */
	const char *incident_id;
	const char *resource_type, *resource_id;
	bool of_fields; /* the detail is what fields_check said: `errors` points into the payload */
};

/* The same problem always gives the same bytes: a replayed rejection is rebuilt from its row. */
const char *problem_body(struct arena *arena, const struct problem *problem);

#endif
