/* SPDX-License-Identifier: Apache-2.0 */
/* forward.h -- commands whose work the service behind the server does. */
#ifndef HTTP_FORWARD_H
#define HTTP_FORWARD_H

#include "http/request.h"
#include "net/calls.h"

/* A request whose contract says `handler: upstream`. */
void forward_command(struct request *request);

/* The command is done, and the answer of this call is its answer. */
IBID_CHECK enum ibid_code forward_answer(struct ibid_staged *staged, const struct call *call,
                                         struct arena *arena, const struct contract *contract,
                                         struct ibid_result **ret, struct ibid_err *err);

#endif
