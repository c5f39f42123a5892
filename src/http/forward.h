/* SPDX-License-Identifier: Apache-2.0 */
/* forward.h -- commands whose work the service behind the server does. */
#ifndef HTTP_FORWARD_H
#define HTTP_FORWARD_H

#include "http/request.h"
#include "net/calls.h"

/* What an answer of the service means for the command. */
enum answer_meaning {
	MEANS_DONE,    /* its answer is the command's */
	MEANS_REFUSED, /* likewise, though nothing was done */
	MEANS_AGAIN,   /* nothing was done, and the answer is not kept: the same key may try again */
	MEANS_UNKNOWN,
};

/* Which answers are outcomes. Who may not ask, or asked at a bad time, has got none (B03). */
enum answer_meaning forward_meaning(const struct contract *contract, int status);

/* Headers of an answer that is not kept, given to the one caller. */
extern const struct texts forward_unkept_headers;

/* Why a command is UNKNOWN whose service was too slow. */
#define UPSTREAM_TIMEOUT "UPSTREAM_TIMEOUT"

/* A request whose contract says `handler: upstream`. */
void forward_command(struct request *request);

/* The command is done, and the answer of this call is its answer. */
IBID_CHECK enum ibid_code forward_answer(struct ibid_staged *staged, const struct call *call,
                                         struct arena *arena, const struct contract *contract,
                                         struct ibid_result **ret, struct ibid_err *err);

#endif
