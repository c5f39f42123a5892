/* SPDX-License-Identifier: Apache-2.0 */
/* incident.h -- what a failure of the server is called to those who may not read its words.
 *
 * The words of a failed script name files, tables and indexes. They are kept on the row for
 * operators, and logged; a client gets the incident's id, which the line of the log has, too. */
#ifndef COMMAND_INCIDENT_H
#define COMMAND_INCIDENT_H

#include "store/store.h"

enum { INCIDENT_TEXT_SIZE = UUID_TEXT_SIZE + 12 };

/* Of one attempt of a command, so that every retry hears the same: "<command id>.<attempt>". */
void incident_of(const char *command_id, int attempt, char ret[INCIDENT_TEXT_SIZE]);

/* Is this the reason of a failure of the server, whose text is for operators? NULL: it is not. */
bool incident_hides(const char *reason);

/* What a client may read of the text on a row that is no success. */
const char *incident_client_text(const struct command_row *row);

#endif
