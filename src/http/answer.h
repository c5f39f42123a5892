/* SPDX-License-Identifier: Apache-2.0 */
/* answer.h -- what a request is answered with, before it becomes bytes on a wire. */
#ifndef HTTP_ANSWER_H
#define HTTP_ANSWER_H

#include "base/arena.h"
#include "base/err.h"

struct ibid_result;

enum { ANSWER_HEADERS_MAX = 32 };

struct answer {
	int status; /* 0: there is none yet */
	const char *type;
	const char *body; /* NULL: none */
	size_t size;
	struct {
		const char *name, *value;
	} headers[ANSWER_HEADERS_MAX];
	size_t header_count;
	struct ibid_result *result; /* whose memory the body is; NULL: it is the request's */
	char *owned;                /* or this, which is freed with the answer */
};

void answer_header(struct answer *answer, const char *name, const char *value);

/* Every kind of problem that the server tells, with its documentation: X(symbol, slug, status,
 * title, meaning). Those that the ledger makes (problem.h) are among them. */
#define HTTP_PROBLEMS(X)                                                                           \
	X(PROBLEM_BAD_REQUEST, "bad-request", 400, "The request can't be understood",                  \
	  "The body, a header or a parameter is not what it must be. Nothing was done. Mend the "      \
	  "request; "                                                                                  \
	  "sending it again as it is gives the same answer.")                                          \
	X(PROBLEM_KEY_MISSING, "key-missing", 400, "The Idempotency-Key header is missing",            \
	  "The operation needs an Idempotency-Key: one for each intent, the same for each retry.")     \
	X(PROBLEM_KEY_INVALID, "key-invalid", 400, "The Idempotency-Key header is not valid",          \
	  "A key is 1 to 255 bytes of text without control characters, bare or as a quoted string of " \
	  "printable ASCII, in one header, with no blank at its beginning or end and no parameters; "  \
	  "the detail says what is wrong. Nothing was done.")                                          \
	X(PROBLEM_UNAUTHORIZED, "unauthorized", 401, "Who is asking?",                                 \
	  "The request has no valid token. Answers of this kind are never stored.")                    \
	X(PROBLEM_FORBIDDEN, "forbidden", 403, "The token does not allow this",                        \
	  "The token is valid, but not for this. Answers of this kind are never stored.")              \
	X(PROBLEM_NOT_FOUND, "not-found", 404, "There is nothing here",                                \
	  "No route, operation, command or resource of this name that the caller may see.")            \
	X(PROBLEM_METHOD, "method-not-allowed", 405, "The method is not allowed here",                 \
	  "The Allow header lists the methods of this path.")                                          \
	X(PROBLEM_TOO_LARGE, "too-large", 413, "The request is too large",                             \
	  "Body, key or another part exceeds a limit; the detail says which. Nothing was done.")       \
	X(PROBLEM_MEDIA_TYPE, "media-type", 415, "The body must be application/json",                  \
	  "Commands are JSON. Nothing was done.")                                                      \
	X(PROBLEM_RATE, "rate-limited", 429, "Too many requests",                                      \
	  "The token's rate is used up. Nothing was done; Retry-After says when to send the same "     \
	  "again.")                                                                                    \
	X(PROBLEM_INTERNAL, "internal", 500, "The server has a defect",                                \
	  "Its log has the cause under the incidentId of the answer. The same key may be sent again.") \
	X(PROBLEM_UPSTREAM, "upstream", 502, "The service behind the server did not answer",           \
	  "The request was passed on without protection, and no answer came. It may have been "        \
	  "carried "                                                                                   \
	  "out.")                                                                                      \
	X(PROBLEM_ANSWER_TOO_LARGE, "answer-too-large", 502, "The answer was too large to be kept",    \
	  "The service behind the server has answered the command, once; the detail says with which "  \
	  "status. "                                                                                   \
	  "Every retry gets this answer; look at the service for what it made.")                       \
	X(PROBLEM_UPSTREAM_UNKNOWN, "upstream-unknown", 502,                                           \
	  "Whether the service carried out the request is not known",                                  \
	  "The request was sent to the service behind the server. No whole answer came (in time: "     \
	  "504), "                                                                                     \
	  "or one that does not say whether anything was done. Nothing is sent again before that is "  \
	  "known: "                                                                                    \
	  "until then the same key gets this answer. Location leads to the operation, Retry-After "    \
	  "says when to ask again.")                                                                   \
	X(PROBLEM_UNAVAILABLE, "unavailable", 503, "The command can't be taken now",                   \
	  "Too many commands wait, the store can't be reached, or the server is stopping. Nothing "    \
	  "was "                                                                                       \
	  "done; Retry-After says when to send the same again, with the same key.")                    \
	X(PROBLEM_KEY_REUSED, "key-reused", 409, "Idempotency key reused with another payload",        \
	  "The key belongs to a command with another payload. Nothing was done, and the attempt was "  \
	  "kept "                                                                                      \
	  "as evidence. Use a new key for a new intent.")                                              \
	X(PROBLEM_IN_PROGRESS, "in-progress", 409, "The same command is being processed",              \
	  "The first request with this key has no outcome yet. Retry-After says when to ask again.")   \
	X(PROBLEM_KEY_EXPIRED, "key-expired", 410, "The idempotency key has expired",                  \
	  "The command was answered so long ago that its key is no longer kept for retries.")          \
	X(PROBLEM_REJECTED, "rejected", 422, "The command was rejected",                               \
	  "A business rule or the check of the payload refused it, for good: a retry gets the same "   \
	  "answer. "                                                                                   \
	  "`code` is stable; the status is the rule's own.")                                           \
	X(PROBLEM_INVALID_PAYLOAD, "invalid-payload", 422,                                             \
	  "The payload is invalid: send it corrected with the same key",                               \
	  "A check of the payload refused it, and nothing was done. The key is free for the "          \
	  "corrected "                                                                                 \
	  "payload; waiting does not help. The first payload that is accepted binds the key: then "    \
	  "the "                                                                                       \
	  "refused one is a conflict.")                                                                \
	X(PROBLEM_FAILED, "failed", 500, "The command failed and may be sent again with the same key", \
	  "What it did was undone. The same key tries again. Of a failure of the server the log has "  \
	  "the cause, "                                                                                \
	  "under the incidentId of the answer.")                                                       \
	X(PROBLEM_EXCEPTION_RESOLVED, "exception-resolved", 409, "The exception is resolved already",  \
	  "Somebody, or recovery, was faster; the detail says who, and how it ended. Nothing was "     \
	  "done.")                                                                                     \
	X(PROBLEM_ALREADY_PROPOSED, "already-proposed", 409, "Something is proposed already",          \
	  "One proposal at a time waits for a second person. Nothing was done.")                       \
	X(PROBLEM_NOTHING_PROPOSED, "nothing-proposed", 409, "Nothing is proposed",                    \
	  "There is nothing to approve or to decline, or somebody has decided it. Nothing was done.")  \
	X(PROBLEM_SECOND_PERSON, "second-person", 403, "A second person has to approve it",            \
	  "Who proposed an action can't approve it, whichever token they use. Nothing was done.")      \
	X(PROBLEM_ACTION_NOT_ALLOWED, "action-not-allowed", 422, "The exception does not allow this",  \
	  "The detail lists the actions that it allows. Nothing was done.")                            \
	X(PROBLEM_NOT_HELD, "not-held", 409, "There is nothing to decide about the event there",       \
	  "The event arrived at the destination, or goes there by itself.")                            \
	X(PROBLEM_NO_CHANGE, "no-change", 409, "It is so already",                                     \
	  "What is paused can't be paused again, nor resumed what is not paused; the detail says "     \
	  "since when and by whom it is. Nothing was done.")                                           \
	X(PROBLEM_UNKNOWN, "outcome-unknown", 202, "Whether the command ran is not known",             \
	  "Location leads to the operation; it is resolved there. Nothing is run again meanwhile.")

enum problem_kind {
#define HTTP_PROBLEM_ENUM(symbol, slug, status, title, meaning) symbol,
	HTTP_PROBLEMS(HTTP_PROBLEM_ENUM)
#undef HTTP_PROBLEM_ENUM
	    PROBLEM_KINDS
};

struct problem_info {
	const char *slug;
	int status;
	const char *title, *meaning;
};
extern const struct problem_info problem_infos[PROBLEM_KINDS];

/* Answer with a problem. The detail is one sentence for the person who reads it. */
void answer_problem(struct answer *answer, struct arena *arena, enum problem_kind kind,
                    const char *format, ...) __attribute__((format(printf, 4, 5)));

/* A JSON document that lives in `arena`. */
void answer_json(struct answer *answer, int status, const char *json);

#endif
