/* SPDX-License-Identifier: Apache-2.0 */
/* pass.h -- requests that go to the service behind the server without protection, and their answers
 * back, in pieces: no body is ever held as a whole. */
#ifndef HTTP_PASS_H
#define HTTP_PASS_H

#include "http/request.h"

struct pass;

/* Begin, as soon as the head is read: the body follows by pass_feed. Answers the request where it
 * can't be done. */
void pass_begin(struct request *request);

/* A piece of the body: how much of it was taken. With less than all, the connection is suspended
 * until there is room. */
size_t pass_feed(struct request *request, const char *bytes, size_t size);

/* The headers of the answer that is there, and its body, in pieces. */
void pass_headers(struct request *request);
void pass_send(struct request *request);

/* The request is over, whoever ended it. Takes NULL. */
void pass_close(struct pass *pass);

#endif
