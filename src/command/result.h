/* SPDX-License-Identifier: Apache-2.0 */
/* result.h -- what a submit ended in, as the caller gets it. Owns its strings. */
#ifndef COMMAND_RESULT_H
#define COMMAND_RESULT_H

#include "base/arena.h"
#include "command/incident.h"
#include "store/store.h"

struct ibid_result {
	struct arena arena;
	enum ibid_decision decision;
	bool replayed;
	bool correctable; /* rejected, and the key is bound to no payload */
	int status;
	const char *body; /* never NULL; likewise the other texts */
	size_t body_size;
	bool own_body; /* of a rejection: its worker's own words, and no problem of ours */
	char command_id[UUID_TEXT_SIZE];
	const char *resource_type, *resource_id, *reason, *text;
	const char *client_text;           /* of the text: what a client over HTTP may read */
	char incident[INCIDENT_TEXT_SIZE]; /* of a failure whose words are not told; "": none */
	const char *cause;    /* why it is not known whether it was done, as the row has it; "": the
	                         row could not be read */
	const char *location; /* where what was made is found, by the contract; "": not told */
	int contract_version; /* of the row that it tells of; 0: of none */
	int attempts;         /* runs of that row that left a trace; 0: of none */
	int64_t age_us, retry_after_us;
};

/* An empty result; NULL without memory. */
struct ibid_result *result_new(void);

/* The outcome that a finished row (COMPLETED, REJECTED, FAILED) stands for. */
void result_of_row(struct ibid_result *result, const struct command_row *row);

/* Decisions that are not an outcome. */
void result_conflict(struct ibid_result *result, const struct command_row *row, int64_t age_us);
void result_expired(struct ibid_result *result, const struct command_row *row, int64_t now_us);
void result_in_progress(struct ibid_result *result, const struct uuid *id, bool accepted);
void result_unknown(struct ibid_result *result, const struct uuid *id); /* no row could be read */
/* The row is UNKNOWN: the longer it is, the later somebody should ask again. `text` NULL: nothing
 * is told but that. */
void result_unknown_row(struct ibid_result *result, const struct command_row *row, int64_t now_us,
                        const char *text);

#endif
