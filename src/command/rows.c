/* SPDX-License-Identifier: Apache-2.0 */
/* rows.c -- what a command leaves in the store, as rows: of a run, of a success, of a refusal. */
#include "command/keep.h"
#include "command/submission.h"

#include <string.h>

const struct command_row *submission_continued(const struct submission *sub,
                                               const struct command_row *previous)
{
	return sub->state == SUBMISSION_ANEW ? NULL : previous;
}

bool submission_is_finishing(const struct submission *sub)
{
	return sub->goal == GOAL_FINISH || sub->goal == GOAL_RESOLVE;
}

bool submission_holds_lease(const struct submission *sub)
{
	return sub->goal == GOAL_TAKE_OVER || submission_is_finishing(sub);
}

struct command_row submission_row(struct submission *sub, const struct command_row *previous)
{
	previous = submission_continued(sub, previous);
	return (struct command_row){
	    .identity = sub->identity,
	    .id = previous ? previous->id : sub->id,
	    .scheme = FINGERPRINT_SCHEME,
	    .contract_version = sub->contract->version,
	    .fingerprint = sub->fingerprint,
	    .attempts = previous ? previous->attempts + !submission_holds_lease(sub) : 1,
	    .client = *sub->sender.client ? sub->sender.client : NULL,
	    .actor = *sub->sender.actor ? sub->sender.actor : NULL,
	    .created_us = previous ? previous->created_us : sub->now_us,
	    .finished_us = sub->now_us,
	    .expires_us = sub->now_us + sub->contract->key.retain_us,
	    .lease_token = previous ? previous->lease_token : 0,
	    .correlation_id = *sub->correlation_id ? sub->correlation_id : NULL,
	    .causation_id = *sub->causation_id ? sub->causation_id : NULL,
	    .traceparent = sub->traceparent,
	    .tracestate = sub->tracestate,
	};
}

/* Of a success: what the contract keeps of the answer (B08). */
static void complete_row(struct command_row *row, const struct contract *contract,
                         const struct outcome *outcome, bool linked)
{
	enum answer_store store = contract->answer;
	row->state = COMMAND_COMPLETED;
	row->linked = linked;
	row->audit_id = row->id; /* one accepted intent, one entry, which says where it came from: */
	row->correlation_id = row->causation_id = row->traceparent = row->tracestate = NULL;
	if (store != ANSWER_NONE)
		row->status = outcome->status;
	if (store == ANSWER_FULL || store == ANSWER_REFERENCE) {
		row->resource_type = outcome->resource_type;
		row->resource_id = outcome->resource_id;
	}
	if (store == ANSWER_FULL) {
		row->body = outcome->body;
		row->body_size = outcome->body_size;
	}
}

static struct audit_row audit_of(const struct submission *sub, const struct command_row *row,
                                 const struct outcome *outcome)
{
	return (struct audit_row){
	    .command_id = row->id,
	    .tenant = sub->identity.tenant,
	    .operation = sub->identity.operation,
	    .fact = sub->contract->fact,
	    .outcome = row->linked ? "linked" : "executed",
	    .contract_version = sub->contract->version,
	    .client = row->client,
	    .actor = row->actor,
	    .resource_type = outcome->resource_type,
	    .resource_id = outcome->resource_id,
	    .correlation_id = *sub->correlation_id ? sub->correlation_id : NULL,
	    .causation_id = *sub->causation_id ? sub->causation_id : NULL,
	    .traceparent = sub->traceparent,
	    .tracestate = sub->tracestate,
	    .fingerprint = sub->fingerprint,
	    .at_us = sub->now_us,
	};
}

struct audit_row submission_complete(const struct submission *sub, struct command_row *row,
                                     const struct outcome *outcome, bool linked)
{
	complete_row(row, sub->contract, outcome, linked);
	return audit_of(sub, row, outcome);
}

void submission_refuse(struct submission *sub, struct command_row *row, enum refusal_class class,
                       const struct outcome *outcome)
{
	bool server = class == REFUSAL_SERVER;
	row->state = sub->contract->final[class] ? COMMAND_REJECTED : COMMAND_FAILED;
	row->status = server ? 500 : outcome->status;
	row->reason = server ? "HANDLER_FAILED" : outcome->reason;
	row->text = keep_text(sub, outcome->text);
	row->resource_type = outcome->resource_type;
	row->resource_id = outcome->resource_id;
}

void submission_unbind(const struct submission *sub, struct command_row *row,
                       const struct command_row *previous)
{
	previous = submission_continued(sub, previous);
	/* What a service or a worker may have begun is bound, and so is what was accepted before. */
	if (row->state == COMMAND_FAILED && !sub->contract->staged.lease_us &&
	    (!previous || command_unbound(previous)))
		row->scheme = SCHEME_UNBOUND;
}

void submission_set_end(const struct submission *sub, struct command_row *row)
{
	row->state = sub->end.state;
	row->reason = sub->end.reason;
	if (sub->end.status)
		row->status = sub->end.status;
	row->body = sub->end.body;
	row->body_size = row->body ? strlen(row->body) : 0;
}

struct command_row submission_kept_refusal(const struct submission *sub,
                                           const struct command_row *row)
{
	struct command_row kept = *row;
	if (sub->contract->answer != ANSWER_FULL) {
		kept.body = NULL;
		kept.body_size = 0;
	}
	return kept;
}

struct command_row submission_whole_answer(const struct command_row *row,
                                           const struct outcome *outcome)
{
	struct command_row whole = *row;
	whole.status = outcome->status;
	whole.body = outcome->body; /* none: the resource is the answer, now and later (B03) */
	whole.body_size = outcome->body_size;
	whole.resource_type = outcome->resource_type;
	whole.resource_id = outcome->resource_id;
	return whole;
}
