/* SPDX-License-Identifier: Apache-2.0 */
/* meters.h -- which meters the requests of a generation count on. */
#ifndef HTTP_METERS_H
#define HTTP_METERS_H

#include "http/metrics.h"
#include "http/request.h"

/* Find or make the meters of its routes and operations. `passes`: there is a service behind the
 * server, and requests may go there without protection. */
IBID_CHECK enum ibid_code meters_open(struct generation *generation, struct metrics *metrics,
                                      bool passes, struct ibid_err *err);
void meters_close(struct generation *generation); /* the meters stay: others count on them, too */

/* A command that was handed to the workers has its outcome; `result` is NULL where there is none.
 */
void meters_command(const struct request *request, const struct ibid_result *result);
void meters_outcome(const struct generation *generation, const struct contract *contract,
                    const struct ibid_result *result, int64_t took_us);
/* A call to the service behind the server has its end; likewise a question about one. */
void meters_call(const struct generation *generation, const struct contract *contract,
                 const struct call *call);
void meters_inquiry(const struct generation *generation, const struct contract *contract,
                    enum inquiry_outcome outcome);

void meters_request(const struct request *request, int64_t took_us);

#endif
