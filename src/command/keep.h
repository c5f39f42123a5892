/* SPDX-License-Identifier: Apache-2.0 */
/* keep.h -- what is kept of a payload with its command, and how it is read again. */
#ifndef COMMAND_KEEP_H
#define COMMAND_KEEP_H

#include "base/keyring.h"
#include "contract/contract.h"
#include "store/store.h"

struct submission;

/* IBID_CONTRACT when a contract asks for encryption and there are no keys. */
IBID_CHECK enum ibid_code keep_check_keys(const struct contracts *contracts,
                                          const struct keyring *keys, struct ibid_err *err);

/* What is to be kept of the payload with this row. `*ret_writes` false: nothing is to be written.
 */
IBID_CHECK enum ibid_code keep_payload(struct submission *sub, const struct command_row *row,
                                       const struct command_row *previous, bool *ret_writes,
                                       struct payload_row *ret, struct ibid_err *err);

/* Write the command's row, and with it what the contract keeps of the payload (I1). Codes of
 * put_command. */
IBID_CHECK enum ibid_code keep_row(struct submission *sub, struct tx *tx,
                                   const struct command_row *row,
                                   const struct command_row *previous, struct ibid_err *err);

/* A handler's or a database's words, without values that may not be kept. In `sub->arena`. */
const char *keep_text(struct submission *sub, const char *text);

enum { SERVICE_ANSWER_BYTES_MAX = 8192 };

/* What a service said that leaves a command unknown, as people may see it who find out: cut after
 * SERVICE_ANSWER_BYTES_MAX, without values of the payload that may not be kept, sealed where the
 * payload is. In `sub->attempt`; NULL: nothing of it may be kept, or `answer` is NULL. */
const char *keep_service_answer(struct submission *sub, const struct command_row *row,
                                const char *answer);

/* The same, opened where it is sealed and a key fits; else as it is kept. NULL: there is none. */
const char *keep_read_service_answer(struct arena *arena, const struct exception_row *row,
                                     const struct keyring *keys);

/* What is kept of the payload of `row`, opened where there are keys. IBID_NOT_FOUND: nothing.
 * IBID_INVALID: a ciphertext does not open. */
IBID_CHECK enum ibid_code keep_read(struct store *store, struct arena *arena,
                                    const struct command_row *row, const struct keyring *keys,
                                    const char **ret, size_t *ret_size, struct ibid_err *err);

#endif
