/* SPDX-License-Identifier: Apache-2.0 */
/* access.h -- who sends a request, and may they?
 *
 * A request is admitted by its token, or, without one, as the settings say for loopback. Whatever
 * is wrong with a token, the answer is the same. Tokens that the store has confirmed are remembered
 * for ACCESS_KEPT_US: that is how long a revoked one may still be used. */
#ifndef HTTP_ACCESS_H
#define HTTP_ACCESS_H

#include "http/request.h"

enum {
	ACCESS_KEPT_US = 5000000,
	ACCESS_SETS = 256, /* tokens that are remembered: so many times ... */
	ACCESS_WAYS = 8,   /* ... so many */
};

struct access;

IBID_CHECK enum ibid_code access_new(struct env *env, int64_t rate, struct access **ret,
                                     struct ibid_err *err);
void access_free(struct access *access); /* takes NULL */

/* The head is read. Admits the request, answers it, or neither: then the store must be asked, by
 * access_ask. Never waits. */
void access_check(struct request *request);

/* Is this the value of an Authorization header that holds one of our tokens, valid or not? */
bool access_is_token(const char *authorization);

/* On the event thread, with a request that was neither admitted nor answered, before its body is
 * read: suspends it. It is resumed admitted or answered. */
void access_ask(struct request *request);

#endif
