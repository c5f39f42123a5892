/* SPDX-License-Identifier: Apache-2.0 */
#include "command/exception.h"

#include "desk/exception.h"

#include <assert.h>
#include <string.h>

const char handler_ended_transaction[] = "HANDLER_ENDED_TRANSACTION";

static const struct retry_stop ended_transaction = {
    .queue = QUEUE_BUSINESS,
    .severity = SEVERITY_HIGH,
    .retryable = false, /* what it did may be committed (I4) */
    .actions = "confirm-executed,confirm-not-executed",
    .suggestion = "look in your tables whether the change was made, and mend the handler, which "
                  "must not commit or roll back",
};

/* Of a staged command; its worker, or recovery, gave the reason. */
static const struct retry_stop outcome_unknown = {
    .queue = QUEUE_BUSINESS,
    .severity = SEVERITY_HIGH,
    .retryable = false,
    .actions = "confirm-executed,confirm-not-executed",
    .suggestion = "find out, where the work was done, whether it was",
};

static const char *uuid_text(struct arena *arena, struct uuid id)
{
	char text[UUID_TEXT_SIZE];
	uuid_write(id, text);
	return arena_strdup(arena, text);
}

/* The payload is not kept; its fingerprint tells whether somebody has the right one. */
static const char *payload_ref(struct arena *arena, const struct sha256 *fingerprint)
{
	char text[SHA256_TEXT_SIZE];
	sha256_write(fingerprint, text);
	return arena_printf(arena, "fingerprint:%s", text);
}

struct exception_row command_exception(struct arena *arena, struct env *env,
                                       const struct contract *contract,
                                       const struct command_row *row)
{
	bool ended = strcmp(row->reason, handler_ended_transaction) == 0;
	struct retry_stop stop = ended ? ended_transaction : outcome_unknown;
	if (contract->unknown.severity)
		(void)exception_severity_read(contract->unknown.severity, &stop.severity);
	const struct exception_row about = {
	    .tenant = row->identity.tenant,
	    .subject_type = "command",
	    .subject_id = uuid_text(arena, row->id),
	    .business_key = row->identity.key,
	    .source = row->client,
	    .payload_ref = payload_ref(arena, &row->fingerprint),
	    .reason = row->reason,
	    .detail = arena_printf(arena, "%s: %s", row->identity.operation, row->text),
	    .owner = contract->owner,
	    .needs_approval = contract->unknown.needs_approval ? stop.actions : NULL,
	    .correlation_id = row->correlation_id,
	    .trace_id = exception_trace_id(arena, row->traceparent),
	    .document_type = row->resource_type,
	    .document_id = row->resource_id,
	};
	return exception_make(&about, &stop, env, row->finished_us, contract->unknown.sla_us);
}

enum ibid_code command_exception_end(struct tx *tx, struct arena *arena,
                                     const struct command_row *row,
                                     const struct action_record *by_person, struct ibid_err *err)
{
	bool executed = row->state == COMMAND_COMPLETED;
	assert(row->state != COMMAND_UNKNOWN); /* I8: an unknown outcome has an open item */
	if (by_person)
		return action_record_write(tx, by_person, err);
	const struct exception_end end = {
	    .tenant = row->identity.tenant,
	    .queue = outcome_unknown.queue,
	    .subject_type = "command",
	    .subject_id = uuid_text(arena, row->id),
	    .resolved_us = row->finished_us,
	    .resolution = executed ? "confirmed-executed" : "confirmed-not-executed",
	    .resolved_by = "recovery",
	    .note = arena_printf(arena, "found by looking: the command is %s",
	                         command_state_name(row->state)),
	};
	if (arena->failed)
		return err_set(err, IBID_NOMEM, "out of memory");
	return store_resolve_exception(tx, &end, err);
}
