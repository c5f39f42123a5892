/* SPDX-License-Identifier: Apache-2.0 */
/* keyring.h -- keys from a file, and texts encrypted with them.
 *
 * A sealed text is `ibid:v1:<key id>:<base64url>`: AES-256-GCM with a random nonce, with its place
 * (below) as authenticated data. In another place, or after any change, it can't be opened. */
#ifndef BASE_KEYRING_H
#define BASE_KEYRING_H

#include "base/env.h"
#include "base/err.h"
#include "base/id.h"
#include "base/str.h"

struct keyring;

/* Where a sealed text belongs. */
struct seal_place {
	const char *tenant;
	struct uuid command_id;
	const char *pointer; /* JSON Pointer; "": the whole document */
};

/* Read a file of `<key id> <64 hex digits>` lines; `#` begins a comment. The first key seals, all
 * of them open. IBID_NOT_FOUND: no such file; IBID_DENIED: not readable, or readable by others;
 * IBID_INVALID names file and line, never their content. */
IBID_CHECK enum ibid_code keyring_read(const char *file, struct keyring **ret,
                                       struct ibid_err *err);
void keyring_free(struct keyring *keyring); /* wipes the keys; takes NULL */

/* Append the sealed text to `out`. */
IBID_CHECK enum ibid_code keyring_seal(const struct keyring *keyring, struct env *env,
                                       const struct seal_place *place, const char *text,
                                       size_t size, struct str *out, struct ibid_err *err);

/* Append the plain text to `out`. IBID_INVALID: the keyring lacks the key, or the text is not a
 * sealed text, was changed, belongs to another place or was sealed under another key. */
IBID_CHECK enum ibid_code keyring_open(const struct keyring *keyring,
                                       const struct seal_place *place, const char *sealed,
                                       size_t size, struct str *out, struct ibid_err *err);

#endif
