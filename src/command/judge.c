/* SPDX-License-Identifier: Apache-2.0 */
/* judge.c -- what a row that is there means for a command, and what its sender hears. */
#include "base/traceparent.h"
#include "command/duplicates.h"
#include "command/incident.h"
#include "command/submission.h"

#include <string.h>

static void log_line(const struct submission *sub, enum ibid_log_level level, const char *event,
                     const char *text, const char *incident)
{
	struct sha256 hash = sha256(sub->identity.key, strlen(sub->identity.key));
	char hex[SHA256_TEXT_SIZE], id[UUID_TEXT_SIZE];
	struct traceparent trace;
	bool traced = sub->traceparent && traceparent_read(sub->traceparent, &trace);
	sha256_write(&hash, hex);
	uuid_write(sub->id, id);
	LOG(&sub->ledger->log, level, event, {"tenant", log_text(sub->identity.tenant)},
	    {"operation", log_text(sub->identity.operation)}, {"keyHash", log_text(hex)},
	    {"commandId", log_text(id)}, {"correlationId", log_text(sub->correlation_id)},
	    {"causationId", log_text(sub->causation_id)},
	    {"traceId", log_text(traced ? trace.trace_id : NULL)}, {"incidentId", log_text(incident)},
	    {"text", log_text(text)});
}

void submission_log(const struct submission *sub, enum ibid_log_level level, const char *event,
                    const char *text)
{
	log_line(sub, level, event, text, NULL);
}

void submission_log_incident(const struct submission *sub, const char *event,
                             const struct command_row *row)
{
	char id[UUID_TEXT_SIZE], incident[INCIDENT_TEXT_SIZE];
	uuid_write(row->id, id);
	incident_of(id, row->attempts, incident);
	log_line(sub, IBID_LOG_ERROR, event, row->text, incident);
}

/* ---- Judging -------------------------------------------------------------------------------- */

/* Does the payload mean the same as the one on the row, under the row's contract version? */
static enum ibid_code same_payload(struct submission *sub, const struct command_row *row, bool *ret,
                                   struct sha256 *ret_fingerprint, struct ibid_err *err)
{
	const struct contract *contract = NULL;
	enum ibid_code code = IBID_OK;
	*ret_fingerprint = sub->fingerprint;
	if (row->scheme != FINGERPRINT_SCHEME)
		return err_set(
		    err, IBID_SCHEMA,
		    "the command was fingerprinted by scheme %d, which this version does not know",
		    row->scheme);
	if (row->contract_version != sub->contract->version) {
		code = ledger_contract(sub->ledger, sub->contract->name, row->contract_version, &contract,
		                       err);
		if (!code)
			code = fingerprint_of(&sub->arena, contract, &sub->sender, sub->payload,
			                      ret_fingerprint, err);
	}
	if (!code)
		*ret = memcmp(ret_fingerprint, &row->fingerprint, sizeof row->fingerprint) == 0;
	return code;
}

enum ibid_code submission_judge(struct submission *sub, const struct command_row *row,
                                enum verdict *ret, struct sha256 *ret_fingerprint,
                                struct ibid_err *err)
{
	bool same = false;
	*ret_fingerprint = sub->fingerprint;
	if (command_expired(row, sub->now_us)) {
		*ret = decide_expired(sub->contract);
		return IBID_OK;
	}
	if (command_unbound(row)) { /* I2: nothing was accepted yet */
		*ret = VERDICT_RUN;
		return IBID_OK;
	}
	enum ibid_code code = same_payload(sub, row, &same, ret_fingerprint, err);
	if (!code)
		*ret = decide(sub->contract, row->state, same);
	return code;
}

struct key_conflict_row submission_evidence(const struct submission *sub,
                                            const struct command_row *row,
                                            const struct sha256 *fingerprint)
{
	return (struct key_conflict_row){
	    .tenant = sub->identity.tenant,
	    .command_id = row->id,
	    .fingerprint = *fingerprint,
	    .client = sub->sender.client,
	    .actor = sub->sender.actor,
	    .first_us = sub->now_us,
	    .last_us = sub->now_us,
	    .count = 1,
	};
}

/* ---- Telling -------------------------------------------------------------------------------- */

/* Since the outcome was reached: the key may be older, where the command was staged or had failed
 * before. Zero for a duplicate that arrived before the outcome and waited for it. */
static int64_t outcome_age_us(const struct submission *sub, const struct command_row *row)
{
	int64_t age_us = sub->now_us - (row->finished_us ? row->finished_us : row->created_us);
	return age_us > 0 ? age_us : 0;
}

void submission_answer_replay(struct submission *sub, const struct command_row *row)
{
	result_of_row(sub->result, row);
	sub->result->replayed = true;
	sub->result->age_us = outcome_age_us(sub, row);
}

enum ibid_code submission_locate(struct submission *sub, struct ibid_err *err)
{
	struct ibid_result *result = sub->result;
	const struct contract *contract = sub->contract;
	int version = result->contract_version;
	enum ibid_code code = IBID_OK;
	if (result->decision != IBID_DECISION_EXECUTED && result->decision != IBID_DECISION_LINKED)
		return IBID_OK;
	if (version && version != contract->version)
		code = ledger_contract(sub->ledger, contract->name, version, &contract, err);
	if (!code && contract->location)
		result->location = location_of(&result->arena, contract, sub->payload, result->resource_id,
		                               result->command_id);
	return code;
}

void submission_note(struct submission *sub, const struct command_row *row,
                     const struct sha256 *fingerprint)
{
	struct duplicate_seen_row seen = {
	    .tenant = row->identity.tenant,
	    .command_id = row->id,
	    .at_us = sub->now_us,
	    .client = sub->sender.client,
	    .actor = sub->sender.actor,
	    .decision = ibid_decision_name(sub->result->decision),
	    .fingerprint = *fingerprint,
	};
	duplicates_note(sub->ledger->duplicates, &seen,
	                sub->contract->duplicates.evidence == EVIDENCE_EACH);
}

void submission_answer(struct submission *sub, enum verdict verdict, const struct command_row *row,
                       const struct sha256 *fingerprint)
{
	static const struct uuid unseen;
	const struct uuid *id = memcmp(&row->id, &unseen, sizeof unseen) == 0 ? NULL : &row->id;
	switch (verdict) {
	case VERDICT_REPLAY: submission_answer_replay(sub, row); break;
	case VERDICT_CONFLICT:
		result_conflict(sub->result, row, sub->now_us - row->created_us);
		submission_log(sub, IBID_LOG_WARN, "command.conflict", "key reused with another payload");
		break;
	case VERDICT_IN_PROGRESS:
		result_in_progress(sub->result, id,
		                   sub->contract->duplicates.in_progress == PROGRESS_ACCEPTED);
		break;
	case VERDICT_EXPIRED:
		result_expired(sub->result, row, sub->now_us);
		submission_log(sub, IBID_LOG_WARN, "command.expired",
		               "the key is used after its retention");
		break;
	default:
		if (id)
			result_unknown_row(sub->result, row, sub->now_us,
			                   sub->contract->upstream.given ? row->text : NULL);
		else
			result_unknown(sub->result, NULL);
		break;
	}
	if (id)
		submission_note(sub, row, fingerprint);
}
