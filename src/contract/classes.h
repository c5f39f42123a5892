/* SPDX-License-Identifier: Apache-2.0 */
/* classes.h -- which values of a payload are stored, and how: as sent, by shape, encrypted, or not.
 *
 * The contract's `payload` is the class of all members, a field's `class` that of the field and the
 * values inside it. Pure functions: the caller, which has the keys, seals and opens texts. */
#ifndef CONTRACT_CLASSES_H
#define CONTRACT_CLASSES_H

#include "base/json.h"
#include "base/str.h"
#include "contract/contract.h"

/* Does the contract need a key, to encrypt what it stores? */
bool classes_encrypt(const struct contract *contract);

/* Are there values that may not be stored in clear in other places, such as texts? */
bool classes_hide(const struct contract *contract);

/* Seals a JSON text, or opens a sealed one: appends the result to `out`. */
typedef enum ibid_code class_convert(void *user, const char *pointer, const char *text, size_t size,
                                     struct str *out, struct ibid_err *err);

/* The payload as it is stored, in canonical form. The contract's class must not be omit. */
IBID_CHECK enum ibid_code payload_keep(struct arena *arena, const struct contract *contract,
                                       const struct json *payload, class_convert *seal, void *user,
                                       const char **ret, size_t *ret_size, struct ibid_err *err);

/* A stored payload with its sealed values opened, in canonical form. */
IBID_CHECK enum ibid_code payload_open(struct arena *arena, const struct contract *contract,
                                       const struct json *kept, class_convert *open, void *user,
                                       const char **ret, size_t *ret_size, struct ibid_err *err);

/* `text` without the values that may not be stored in clear: a message of a handler or a database
 * may quote them. NULL gives NULL; the arena remembers a lack of memory. */
const char *payload_scrub(struct arena *arena, const struct contract *contract,
                          const struct json *payload, const char *text);

#endif
