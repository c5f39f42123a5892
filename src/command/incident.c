/* SPDX-License-Identifier: Apache-2.0 */
#include "command/incident.h"

#include "command/exception.h"

#include <stdio.h>
#include <string.h>

void incident_of(const char *command_id, int attempt, char ret[INCIDENT_TEXT_SIZE])
{
	snprintf(ret, INCIDENT_TEXT_SIZE, "%s.%d", command_id, attempt);
}

static bool is(const char *reason, const char *name)
{
	return reason && strcmp(reason, name) == 0;
}

bool incident_hides(const char *reason)
{
	return is(reason, "HANDLER_FAILED") || is(reason, handler_ended_transaction);
}

/* Rows of earlier versions have the index's name behind this sentence. */
static const char duplicate[] = "the same business fact exists already";

const char *incident_client_text(const struct command_row *row)
{
	if (is(row->reason, handler_ended_transaction))
		return "the server failed, and nobody knows whether it was done: a person looks into it";
	if (is(row->reason, "HANDLER_FAILED"))
		return "the server failed, and what it had done was undone; its log has the cause under "
		       "the incidentId";
	if (is(row->reason, "DUPLICATE") && row->text &&
	    strncmp(row->text, duplicate, sizeof duplicate - 1) == 0)
		return duplicate;
	return row->text;
}
