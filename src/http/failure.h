/* SPDX-License-Identifier: Apache-2.0 */
/* failure.h -- what went wrong, told to a client without the words of files and databases. */
#ifndef HTTP_FAILURE_H
#define HTTP_FAILURE_H

#include "http/request.h"

/* Nothing was decided. What the client can mend is told as it is; of anything else the client gets
 * an incident id, under which the log has the words. */
void failure_answer(struct request *request, const struct ibid_err *err);

/* The answer of a command that failed in the server, or of which nobody knows whether it was done:
 * the result's own words stay here. */
void failure_answer_outcome(struct request *request, const struct ibid_result *result);

#endif
