/* SPDX-License-Identifier: Apache-2.0 */
#include "command/problem.h"

#include "base/str.h"
#include "contract/payload.h"

#include <string.h>

enum { PROBLEM_BYTES_MAX = 16 << 20 };

static void add_member(struct str *out, const char *name, const char *value)
{
	if (!value)
		return;
	str_addc(out, out->size > 1 ? ',' : '{');
	str_add_json(out, name, strlen(name));
	str_addc(out, ':');
	str_add_json(out, value, strlen(value));
}

/* One for each wrong member. Derived from the text, which is what is kept: so a replay has the
 * same.
 */
static void add_errors(struct str *out, const char *text)
{
	struct str errors = STR_INIT(PROBLEM_BYTES_MAX);
	struct field_problem problem;
	bool good = *text;
	while (good && *text) {
		str_adds(&errors, errors.size ? ",{\"detail\":" : "{\"detail\":");
		good = fields_problem_next(&text, &problem);
		if (!good)
			break;
		str_add_json(&errors, problem.rule, problem.rule_size);
		str_adds(&errors, ",\"pointer\":");
		str_add_json(&errors, problem.pointer, problem.pointer_size);
		str_addc(&errors, '}');
	}
	if (good) {
		str_adds(out, ",\"errors\":[");
		str_add(out, errors.data, errors.size);
		str_addc(out, ']');
	}
	out->failed |= errors.failed;
	str_release(&errors);
}

const char *problem_body(struct arena *arena, const struct problem *problem)
{
	struct str out = STR_INIT(PROBLEM_BYTES_MAX);
	/* In canonical order. */
	add_member(&out, "code", problem->code);
	add_member(&out, "commandId", problem->command_id);
	add_member(&out, "detail", problem->detail);
	if (problem->of_fields)
		add_errors(&out, problem->detail);
	add_member(&out, "incidentId", problem->incident_id);
	add_member(&out, "resourceId", problem->resource_id);
	add_member(&out, "resourceType", problem->resource_type);
	str_addf(&out, "%c\"status\":%d", out.size ? ',' : '{', problem->status);
	add_member(&out, "title", problem->title);
	add_member(&out, "type", problem->type);
	str_addc(&out, '}');
	const char *body = out.failed ? NULL : arena_strndup(arena, out.data, out.size);
	str_release(&out);
	return body;
}
