/* SPDX-License-Identifier: Apache-2.0 */
#include "command/result.h"

#include "base/instant.h"
#include "base/str.h"
#include "command/problem.h"
#include "retry/retry.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RETRY_AFTER_US = 1000000 };

/* When to ask again what became of a command: who finds out may be a person. */
static const struct retry_policy unknown_policy = {.base_us = RETRY_AFTER_US,
                                                   .cap_us = INT64_C(300) * 1000000};

struct ibid_result *result_new(void)
{
	struct ibid_result *result = calloc(1, sizeof *result);
	if (result)
		result->body = result->resource_type = result->resource_id = result->reason = result->text =
		    result->client_text = result->cause = result->location = "";
	return result;
}

void ibid_result_free(struct ibid_result *result)
{
	if (!result)
		return;
	arena_release(&result->arena);
	free(result);
}

enum ibid_decision ibid_result_decision(const struct ibid_result *result)
{
	return result->decision;
}
bool ibid_result_replayed(const struct ibid_result *result)
{
	return result->replayed;
}
bool ibid_result_correctable(const struct ibid_result *result)
{
	return result->correctable;
}
int ibid_result_status(const struct ibid_result *result)
{
	return result->status;
}
const char *ibid_result_body(const struct ibid_result *result)
{
	return result->body;
}
size_t ibid_result_body_size(const struct ibid_result *result)
{
	return result->body_size;
}
const char *ibid_result_command_id(const struct ibid_result *result)
{
	return result->command_id;
}
const char *ibid_result_resource_type(const struct ibid_result *result)
{
	return result->resource_type;
}
const char *ibid_result_resource_id(const struct ibid_result *result)
{
	return result->resource_id;
}
const char *ibid_result_reason(const struct ibid_result *result)
{
	return result->reason;
}
const char *ibid_result_text(const struct ibid_result *result)
{
	return result->text;
}
int64_t ibid_result_age_ms(const struct ibid_result *result)
{
	return result->age_us / 1000;
}
int64_t ibid_result_retry_after_ms(const struct ibid_result *result)
{
	return result->retry_after_us / 1000;
}

const char *ibid_decision_name(enum ibid_decision decision)
{
	static const char *const names[] = {
#define DECISION_NAME(symbol, name, meaning) [symbol] = name,
	    IBID_DECISIONS(DECISION_NAME)
#undef DECISION_NAME
	};
	size_t index = (size_t)decision;
	return index < sizeof names / sizeof *names ? names[index] : "unlisted";
}

static const char *keep(struct ibid_result *result, const char *text)
{
	const char *copy = text ? arena_strdup(&result->arena, text) : NULL;
	return copy ? copy : "";
}

static void set_body(struct ibid_result *result, const char *body, size_t size)
{
	const char *copy = body ? arena_strndup(&result->arena, body, size) : NULL;
	result->body = copy ? copy : "";
	result->body_size = copy ? size : 0;
}

static void set_problem(struct ibid_result *result, struct problem problem)
{
	result->status = problem.status;
	result->text = result->client_text = keep(result, problem.detail);
	if (problem.code)
		result->reason = keep(result, problem.code);
	const char *body = problem_body(&result->arena, &problem);
	result->body = body ? body : "";
	result->body_size = strlen(result->body);
}

/* What a reference-only contract gives back: where to look. */
static void set_reference(struct ibid_result *result, const struct command_row *row)
{
	struct str out = STR_INIT(4096);
	str_adds(&out, "{\"resourceId\":");
	str_add_json(&out, row->resource_id, strlen(row->resource_id));
	str_adds(&out, ",\"resourceType\":");
	str_add_json(&out, result->resource_type, strlen(result->resource_type));
	str_addc(&out, '}');
	if (!out.failed)
		set_body(result, out.data, out.size);
	str_release(&out);
}

static void set_completed(struct ibid_result *result, const struct command_row *row)
{
	result->decision = row->linked ? IBID_DECISION_LINKED : IBID_DECISION_EXECUTED;
	result->status = row->status ? row->status : 204;
	if (row->body)
		set_body(result, row->body, row->body_size);
	else if (row->resource_id && !row->reason) /* ERASED: the answer was something else */
		set_reference(result, row);
}

static bool of_fields(const struct command_row *row)
{
	return row->text && row->reason && strcmp(row->reason, "INVALID_PAYLOAD") == 0;
}

/* The words of a failure are for the program that called, and for operators. */
static const char *detail_of(const struct command_row *row)
{
	const char *text = incident_hides(row->reason) ? row->text : incident_client_text(row);
	return text ? text : "";
}

static void set_rejected(struct ibid_result *result, const struct command_row *row)
{
	result->decision = IBID_DECISION_REJECTED;
	set_problem(result, (struct problem){
	                        .type = "/problems/rejected",
	                        .title = "The command was rejected",
	                        .status = row->status,
	                        .detail = detail_of(row),
	                        .code = row->reason,
	                        .command_id = result->command_id,
	                        .resource_type = row->resource_type,
	                        .resource_id = row->resource_id,
	                        .of_fields = of_fields(row),
	                    });
	result->own_body = row->body;
	if (row->body)
		set_body(result, row->body, row->body_size);
}

/* Nothing was accepted under the key: it takes the corrected payload. Waiting helps nobody. */
static void set_correctable(struct ibid_result *result, const struct command_row *row)
{
	result->decision = IBID_DECISION_REJECTED;
	result->correctable = true;
	set_problem(result, (struct problem){
	                        .type = "/problems/invalid-payload",
	                        .title = "The payload is invalid: send it corrected with the same key",
	                        .status = row->status,
	                        .detail = row->text ? row->text : "",
	                        .code = row->reason,
	                        .command_id = result->command_id,
	                        .of_fields = of_fields(row),
	                    });
}

static void set_failed(struct ibid_result *result, const struct command_row *row)
{
	result->decision = IBID_DECISION_FAILED;
	result->retry_after_us = RETRY_AFTER_US;
	set_problem(result, (struct problem){
	                        .type = "/problems/failed",
	                        .title = "The command failed and may be sent again with the same key",
	                        .status = row->status,
	                        .detail = detail_of(row),
	                        .code = row->reason,
	                        .command_id = result->command_id,
	                        .of_fields = of_fields(row),
	                    });
}

void result_of_row(struct ibid_result *result, const struct command_row *row)
{
	uuid_write(row->id, result->command_id);
	result->contract_version = row->contract_version;
	result->attempts = row->attempts;
	result->resource_type = keep(result, row->resource_type);
	result->resource_id = keep(result, row->resource_id);
	result->reason = keep(result, row->reason);
	result->text = keep(result, row->text);
	switch (row->state) {
	case COMMAND_REJECTED: set_rejected(result, row); break;
	case COMMAND_FAILED:
		if (command_unbound(row))
			set_correctable(result, row);
		else
			set_failed(result, row);
		break;
	case COMMAND_UNKNOWN: result_unknown_row(result, row, row->finished_us, row->text); break;
	default: set_completed(result, row); break;
	}
	if (incident_hides(row->reason)) {
		result->client_text = incident_client_text(row);
		incident_of(result->command_id, row->attempts, result->incident);
	}
}

void result_conflict(struct ibid_result *result, const struct command_row *row, int64_t age_us)
{
	char age[INSTANT_TEXT_SIZE], detail[512];
	uuid_write(row->id, result->command_id);
	duration_write(age_us, age);
	snprintf(detail, sizeof detail, "key %s was first used %s ago for a different payload",
	         row->identity.key, age);
	result->decision = IBID_DECISION_CONFLICT;
	result->age_us = age_us;
	set_problem(result, (struct problem){
	                        .type = "/problems/key-reused",
	                        .title = "Idempotency key reused with another payload",
	                        .status = 409,
	                        .detail = detail,
	                        .code = "KEY_REUSED",
	                        .command_id = result->command_id,
	                    });
}

void result_expired(struct ibid_result *result, const struct command_row *row, int64_t now_us)
{
	char ago[INSTANT_TEXT_SIZE], detail[512];
	uuid_write(row->id, result->command_id);
	duration_write(now_us - row->expires_us, ago);
	snprintf(detail, sizeof detail,
	         "key %s expired %s ago: nothing was done; if this is a new intent, send it with a new "
	         "key",
	         row->identity.key, ago);
	result->decision = IBID_DECISION_EXPIRED;
	result->age_us = now_us - row->created_us;
	set_problem(result, (struct problem){
	                        .type = "/problems/key-expired",
	                        .title = "The idempotency key has expired",
	                        .status = 410,
	                        .detail = detail,
	                        .code = "KEY_EXPIRED",
	                        .command_id = result->command_id,
	                    });
}

void result_in_progress(struct ibid_result *result, const struct uuid *id, bool accepted)
{
	if (id)
		uuid_write(*id, result->command_id);
	result->decision = IBID_DECISION_IN_PROGRESS;
	result->retry_after_us = RETRY_AFTER_US;
	set_problem(
	    result,
	    (struct problem){
	        .type = "/problems/in-progress",
	        .title = "The same command is being processed",
	        .status = accepted ? 202 : 409,
	        .detail =
	            "the first request with this key has no outcome yet: send the same again later",
	        .code = "IN_PROGRESS",
	        .command_id = id ? result->command_id : NULL,
	    });
}

void result_unknown(struct ibid_result *result, const struct uuid *id)
{
	if (id)
		uuid_write(*id, result->command_id);
	result->decision = IBID_DECISION_UNKNOWN;
	result->retry_after_us = RETRY_AFTER_US;
	set_problem(
	    result,
	    (struct problem){
	        .type = "/problems/outcome-unknown",
	        .title = "Whether the command ran is not known",
	        .status = 500,
	        .detail =
	            "its outcome could not be read: send the same again with the same key, or wait "
	            "until it was resolved",
	        .code = "OUTCOME_UNKNOWN",
	        .command_id = id ? result->command_id : NULL,
	    });
}

void result_unknown_row(struct ibid_result *result, const struct command_row *row, int64_t now_us,
                        const char *text)
{
	int64_t age_us = now_us - row->finished_us; /* by another machine's clock: it may be ahead */
	result_unknown(result, &row->id);
	result->retry_after_us = retry_pause_at_age_us(&unknown_policy, age_us);
	result->cause = keep(result, row->reason);
	if (text)
		result->text = result->client_text = keep(result, text);
}
