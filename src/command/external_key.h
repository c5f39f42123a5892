/* SPDX-License-Identifier: Apache-2.0 */
/* external_key.h -- the key under which a partner knows a command: one for each identity, the same
 * in every retry, and no other client's or tenant's. */
#ifndef COMMAND_EXTERNAL_KEY_H
#define COMMAND_EXTERNAL_KEY_H

#include "store/store.h"

/* In `arena`; NULL without memory. */
const char *external_key(struct arena *arena, const struct identity *identity);

/* Of a command whose work is done outside, and which a partner may therefore have seen: by its row,
 * whatever its state. NULL: it is none. */
const char *external_key_of_row(struct arena *arena, const struct command_row *row);

/* Likewise of the command that an exception is about. `*ret` NULL: it is about none, or that is not
 * kept any more. */
IBID_CHECK enum ibid_code external_key_of_exception(struct store *store, struct arena *arena,
                                                    const struct exception_row *row,
                                                    const char **ret, struct ibid_err *err);

#endif
