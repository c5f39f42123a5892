/* SPDX-License-Identifier: Apache-2.0 */
#include "command/command_json.h"

#include "base/obj.h"
#include "command/external_key.h"
#include "command/incident.h"

static bool has_ended(const struct command_row *row)
{
	return row->state == COMMAND_COMPLETED || row->state == COMMAND_REJECTED ||
	       row->state == COMMAND_FAILED;
}

static void add_whole(struct str *out, struct arena *arena, const struct command_row *row)
{
	obj_text_if(out, "externalKey", external_key_of_row(arena, row));
	obj_text_if(out, "correlationId", row->correlation_id);
	obj_text_if(out, "causationId", row->causation_id);
	obj_text_if(out, "traceparent", row->traceparent);
	obj_text_if(out, "tracestate", row->tracestate);
	if (row->body)
		obj_raw(out, "result", row->body);
}

void command_json(struct str *out, struct arena *arena, const struct command_shown *shown,
                  enum row_view view)
{
	const struct command_row *row = shown->row;
	row_add_json(out, &command_shape, row, view);
	if (has_ended(row))
		obj_int(out, "status", row->status ? row->status : 204);
	obj_text_if(out, "detail", shown->detail);
	if (incident_hides(row->reason)) {
		char id[UUID_TEXT_SIZE], incident[INCIDENT_TEXT_SIZE];
		uuid_write(row->id, id);
		incident_of(id, row->attempts, incident);
		obj_text(out, "incidentId", incident);
	}
	obj_text_if(out, "awaits", shown->awaits);
	if (shown->whole)
		add_whole(out, arena, row);
}

void command_take_origin(struct command_row *row, const struct audit_row *audit)
{
	row->correlation_id = audit->correlation_id;
	row->causation_id = audit->causation_id;
	row->traceparent = audit->traceparent;
	row->tracestate = audit->tracestate;
}
