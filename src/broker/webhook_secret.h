/* SPDX-License-Identifier: Apache-2.0 */
/* webhook_secret.h -- signatures of Standard Webhooks: HMAC-SHA256 of "id.timestamp.body", one for
 * each secret, so that a secret can be replaced without interruption. */
#ifndef BROKER_WEBHOOK_SECRET_H
#define BROKER_WEBHOOK_SECRET_H

#include "base/err.h"
#include "base/str.h"

#include <openssl/evp.h>

enum {
	WEBHOOK_SECRETS_MAX = 8,
	WEBHOOK_SECRET_BYTES_MIN = 24,
	WEBHOOK_SECRET_BYTES_MAX = 64,
};

struct webhook_secrets {
	EVP_MAC *mac;
	size_t count;
	size_t sizes[WEBHOOK_SECRETS_MAX];
	unsigned char bytes[WEBHOOK_SECRETS_MAX][WEBHOOK_SECRET_BYTES_MAX];
};

/* Read `whsec_<base64>`, several separated by blanks or line ends. Messages contain none of it. */
IBID_CHECK enum ibid_code webhook_secrets_read(struct webhook_secrets *secrets, const char *text,
                                               struct ibid_err *err);
/* The same from a file that only its owner can read. */
IBID_CHECK enum ibid_code webhook_secrets_load(struct webhook_secrets *secrets, const char *file,
                                               struct ibid_err *err);
void webhook_secrets_release(struct webhook_secrets *secrets);

/* What is signed. */
struct webhook_message {
	const char *id, *timestamp, *body;
	size_t body_size;
};

/* Append "v1,<base64>" for each secret, separated by blanks. False: out of memory. */
bool webhook_sign(const struct webhook_secrets *secrets, const struct webhook_message *message,
                  struct str *out);

#endif
