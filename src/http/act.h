/* SPDX-License-Identifier: Apache-2.0 */
/* act.h -- requests by which people act: what they send, who they are, and why it is refused. */
#ifndef HTTP_ACT_H
#define HTTP_ACT_H

#include "base/json.h"
#include "http/request.h"
#include "outbox/act.h"

/* The members of the body, which is a JSON object. NULL, and the request is answered: it is not. */
const struct json *act_body(struct request *request);

/* Answers that a member is not as it should be. Always false. */
bool act_bad_member(struct request *request, const char *name, const char *what);

/* A text without NUL. False: the request is answered. */
bool act_text(struct request *request, const struct json *member, const char **ret);

/* Who acts is the token's client, whatever a header says. */
struct actor act_actor(const struct request *request);
struct acting act_acting(const struct request *request);

/* It was not done. */
void act_not_done(struct request *request, enum ibid_code code, enum act_refusal refusal,
                  struct ibid_err *err);

#endif
