/* SPDX-License-Identifier: Apache-2.0 */
/* classes.h -- what of a payload is kept, and how: as sent, by its shape, encrypted, or not.
 *
 * The contract's `payload` speaks for all members, a field's `class` for itself and what lies in
 * it. Pure functions: whoever holds keys seals and opens. */
#ifndef CONTRACT_CLASSES_H
#define CONTRACT_CLASSES_H

#include "base/json.h"
#include "base/str.h"
#include "contract/contract.h"

/* Is a key needed to keep what the contract says? */
bool classes_encrypt(const struct contract *contract);

/* Is there anything that may not be kept in clear beside a payload that is stored or sealed? */
bool classes_hide(const struct contract *contract);

/* Between a JSON text and its sealed form, which is a plain text: append the other one to `out`. */
typedef enum ibid_code class_convert(void *user, const char *pointer, const char *text, size_t size,
                                     struct str *out, struct ibid_err *err);

/* The payload as it is kept, in canonical form. The contract's class must not be omit. */
IBID_CHECK enum ibid_code payload_keep(struct arena *arena, const struct contract *contract,
                                       const struct json *payload, class_convert *seal, void *user,
                                       const char **ret, size_t *ret_size, struct ibid_err *err);

/* A kept payload with what was sealed opened again, in canonical form. */
IBID_CHECK enum ibid_code payload_open(struct arena *arena, const struct contract *contract,
                                       const struct json *kept, class_convert *open, void *user,
                                       const char **ret, size_t *ret_size, struct ibid_err *err);

/* `text` without the values that may not be kept as they are: the words of a handler or a database
 * may quote them. NULL gives NULL; the arena remembers a lack of memory. */
const char *payload_scrub(struct arena *arena, const struct contract *contract,
                          const struct json *payload, const char *text);

#endif
