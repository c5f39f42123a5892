/* SPDX-License-Identifier: Apache-2.0 */
/* inquiry.h -- what became of commands that the service behind the server was sent, and whose
 * answer nobody has seen: the service is asked, as their contracts say, and never sent them again
 * (I4). */
#ifndef HTTP_INQUIRY_H
#define HTTP_INQUIRY_H

#include "http/request.h"

/* Before a generation is used. IBID_CONTRACT: a contract needs a service, and the settings name
 * none. */
IBID_CHECK enum ibid_code inquiry_prepare(const struct server *server,
                                          struct generation *generation, struct ibid_err *err);

/* What server->asked holds. NULL without memory; free takes NULL. */
struct asked *asked_new(void);
void asked_free(struct asked *asked);

/* A thread: until the server has ended. */
void *inquiry_run(void *server);

#endif
