/* SPDX-License-Identifier: Apache-2.0 */
/* command.h -- from a request to a command, and from an outcome to an answer: for whoever runs it.
 */
#ifndef HTTP_COMMAND_H
#define HTTP_COMMAND_H

#include "http/request.h"

/* A member of the payload that never comes from the body; no value: it is not there. */
struct extra {
	const char *name, *value;
};

/* Into request->key, where the contract takes it from the header. False: the request is answered.
 */
bool command_read_key(struct request *request);

/* The parameters of the path, at most `room`. How many there are. */
size_t command_params(struct request *request, struct extra *ret, size_t room);

/* The payload is an object with the extras and the members of `text`, which must be one too. False:
 * the request is answered. */
bool command_join(struct request *request, const char *text, size_t size,
                  const struct extra *extras, size_t count);

bool command_is_json(const char *type);

/* What the ledger is given; it points into the request. */
struct ibid_command command_of(struct request *request);

/* The same outcome gives the same bytes, whoever asks, and whenever (B03). */
void command_answer(struct request *request, struct ibid_result *result);

#endif
