/* SPDX-License-Identifier: Apache-2.0 */
#include "desk/exception.h"

#include "base/traceparent.h"

#include <assert.h>

#define HOUR_US (INT64_C(3600) * 1000000)

/* What each trouble calls for, where the contract does not say otherwise. */
static const struct {
	const char *reason;
	enum exception_queue queue;
	enum exception_severity severity;
	int64_t within_us;
	bool retryable;
	const char *suggestion, *actions;
} troubles[TROUBLE_COUNT] = {
    [TROUBLE_HANDLER_ENDED_TRANSACTION] =
        {
            .reason = "HANDLER_ENDED_TRANSACTION",
            .queue = QUEUE_BUSINESS,
            .severity = SEVERITY_HIGH,
            .within_us = 4 * HOUR_US,
            .retryable = false, /* what it did may be committed (I4) */
            .suggestion = "look in your tables whether the change was made, and mend the handler, "
                          "which must not commit or roll back",
            .actions = "confirm-executed,confirm-not-executed",
        },
    [TROUBLE_STAGED_UNKNOWN] =
        {
            .reason = "OUTCOME_UNKNOWN",
            .queue = QUEUE_BUSINESS,
            .severity = SEVERITY_HIGH,
            .within_us = 4 * HOUR_US,
            .retryable = false,
            .suggestion = "find out, where the work was done, whether it was",
            .actions = "confirm-executed,confirm-not-executed",
        },
};

const char *trouble_reason(enum trouble trouble)
{
	return troubles[trouble].reason;
}

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

static const char *trace_id(struct arena *arena, const char *traceparent)
{
	struct traceparent read;
	return traceparent && traceparent_read(traceparent, &read) ? arena_strdup(arena, read.trace_id)
	                                                           : NULL;
}

/* The item first: whoever holds an item may go on to its approval, and nobody the other way. */
enum ibid_code deed_write(struct tx *tx, const struct deed *deed, struct ibid_err *err)
{
	const struct store_ops *ops = tx->store->ops;
	enum ibid_code code = ops->resolve_exception(tx, &deed->end, err);
	if (!code && deed->decision)
		code = ops->decide_approval(tx, deed->decision, err);
	return code ? code : ops->put_action(tx, &deed->action, err);
}

enum ibid_code trouble_over(struct tx *tx, struct arena *arena, const struct command_row *row,
                            const struct deed *deed, struct ibid_err *err)
{
	bool executed = row->state == COMMAND_COMPLETED;
	assert(row->state != COMMAND_UNKNOWN); /* I8: what nobody knows has an open item */
	if (deed)
		return deed_write(tx, deed, err);
	struct exception_end end = {
	    .tenant = row->identity.tenant,
	    .queue = troubles[TROUBLE_STAGED_UNKNOWN].queue,
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
	return tx->store->ops->resolve_exception(tx, &end, err);
}

static enum exception_severity severity_of(enum trouble trouble, const struct contract *contract)
{
	enum exception_severity severity = troubles[trouble].severity;
	if (contract->unknown.severity)
		(void)exception_severity_read(contract->unknown.severity, &severity);
	return severity;
}

static int64_t within_us(enum trouble trouble, const struct contract *contract)
{
	return contract->unknown.sla_us ? contract->unknown.sla_us : troubles[trouble].within_us;
}

struct exception_row trouble_exception(enum trouble trouble, struct arena *arena, struct env *env,
                                       const struct contract *contract,
                                       const struct command_row *row)
{
	return (struct exception_row){
	    .tenant = row->identity.tenant,
	    .id = uuid_v7(env),
	    .queue = troubles[trouble].queue,
	    .state = EXCEPTION_OPEN,
	    .severity = severity_of(trouble, contract),
	    .subject_type = "command",
	    .subject_id = uuid_text(arena, row->id),
	    .business_key = row->identity.key,
	    .source = row->client,
	    .payload_ref = payload_ref(arena, &row->fingerprint),
	    .reason = row->reason ? row->reason : troubles[trouble].reason,
	    .detail = arena_printf(arena, "%s: %s", row->identity.operation, row->text),
	    .suggestion = troubles[trouble].suggestion,
	    .owner = contract->owner,
	    .retryable = troubles[trouble].retryable,
	    .actions = troubles[trouble].actions,
	    .needs_approval = contract->unknown.needs_approval ? troubles[trouble].actions : "",
	    .correlation_id = row->correlation_id,
	    .trace_id = trace_id(arena, row->traceparent),
	    .document_type = row->resource_type,
	    .document_id = row->resource_id,
	    .opened_us = row->finished_us,
	    .due_us = row->finished_us + within_us(trouble, contract),
	};
}
