/* SPDX-License-Identifier: Apache-2.0 */
/* key_header.h -- the key in the value of an Idempotency-Key header. */
#ifndef HTTP_KEY_HEADER_H
#define HTTP_KEY_HEADER_H

#include "base/arena.h"
#include "base/err.h"

/* A value that begins with a quotation mark is a string of RFC 8941 (3.3.3); any other is the key
 * itself. White space around it does not count. The key is in the memory of `arena`. IBID_INVALID
 * says what is wrong with it; IBID_LIMIT: it is too long; IBID_NOMEM. */
IBID_CHECK enum ibid_code key_header_read(struct arena *arena, const char *value, const char **ret,
                                          struct ibid_err *err);

#endif
