/* SPDX-License-Identifier: Apache-2.0 */
/* failure.c -- answers to what the server, its scripts or its store failed at. */
#include "http/failure.h"

#include "command/problem.h"
#include "http/forward.h"

#include <string.h>

static void put(struct request *request, enum problem_kind kind, struct problem problem)
{
	struct answer *answer = &request->answer;
	problem.type = arena_printf(&request->arena, "/problems/%s", problem_infos[kind].slug);
	problem.title = problem_infos[kind].title;
	const char *body = problem_body(&request->arena, &problem);
	answer->status = problem.status;
	answer->type = "application/problem+json";
	answer->body = body ? body : "{}";
	answer->size = strlen(answer->body);
}

/* ---- Nothing was decided -------------------------------------------------------------------- */

static void answer_incident(struct request *request, enum problem_kind kind, const char *detail,
                            const struct ibid_err *err)
{
	char id[UUID_TEXT_SIZE];
	uuid_write(uuid_v7(request->server->env), id);
	LOG(&request->server->log, kind == PROBLEM_INTERNAL ? IBID_LOG_ERROR : IBID_LOG_WARN,
	    "http.failure", {"incidentId", log_text(id)}, {"method", log_text(request->method)},
	    {"route", log_text(request->route ? request->route->path : NULL)},
	    {"operation", log_text(request->contract ? request->contract->name : NULL)},
	    {"tenant", log_text(request->principal.tenant)},
	    {"code", log_text(ibid_code_name(err->code))}, {"text", log_text(err->text)});
	put(request, kind,
	    (struct problem){
	        .status = problem_infos[kind].status, .detail = detail, .incident_id = id});
	if (kind == PROBLEM_UNAVAILABLE)
		answer_header(&request->answer, "Retry-After", "1");
}

void failure_answer(struct request *request, const struct ibid_err *err)
{
	enum problem_kind kind;
	if (err->code == IBID_GONE)
		server_note_store(request->server, err->code, err);
	switch (err->code) {
	case IBID_INVALID: kind = PROBLEM_BAD_REQUEST; break;
	case IBID_LIMIT: kind = PROBLEM_TOO_LARGE; break;
	case IBID_NOT_FOUND: kind = PROBLEM_NOT_FOUND; break;
	case IBID_BUSY:
	case IBID_UNAVAILABLE:
	case IBID_IO:
	case IBID_FULL:
	case IBID_GONE:
	case IBID_NOMEM:
		answer_incident(request, PROBLEM_UNAVAILABLE,
		                "the server or its store has no room or no time now; send the same again "
		                "later, with the same key",
		                err);
		return;
	default:
		answer_incident(request, PROBLEM_INTERNAL,
		                "the server failed; its log has the cause under the incidentId", err);
		return;
	}
	answer_problem(&request->answer, &request->arena, kind, "%s", err->text);
}

/* ---- The outcome of a command --------------------------------------------------------------- */

/* Of a service's work, clients must not take an unknown outcome for done. */
static void answer_unknown(struct request *request, const struct ibid_result *result)
{
	const struct contract_upstream *upstream = &request->contract->upstream;
	bool error = upstream->given && upstream->unknown == UPSTREAM_UNKNOWN_ERROR;
	bool late = error && strcmp(result->cause, UPSTREAM_TIMEOUT) == 0;
	enum problem_kind kind = error ? PROBLEM_UPSTREAM_UNKNOWN : PROBLEM_UNKNOWN;
	put(request, kind,
	    (struct problem){
	        .status = late ? 504 : problem_infos[kind].status,
	        .detail = result->client_text,
	        .code = error && *result->cause ? result->cause : "OUTCOME_UNKNOWN",
	        .command_id = result->command_id,
	        .incident_id = *result->incident ? result->incident : NULL,
	    });
}

void failure_answer_outcome(struct request *request, const struct ibid_result *result)
{
	enum problem_kind kind = result->decision == IBID_DECISION_REJECTED ? PROBLEM_REJECTED
	                                                                    : PROBLEM_FAILED;
	if (result->decision == IBID_DECISION_UNKNOWN) {
		answer_unknown(request, result);
		return;
	}
	put(request, kind,
	    (struct problem){
	        .status = result->status,
	        .detail = result->client_text,
	        .code = result->reason,
	        .command_id = result->command_id,
	        .incident_id = *result->incident ? result->incident : NULL,
	    });
}
