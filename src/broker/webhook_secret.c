/* SPDX-License-Identifier: Apache-2.0 */
/* webhook_secret.c -- the only place that holds secrets: buffers that held them are wiped. */
#include "broker/webhook_secret.h"

#include "base/base64.h"
#include "broker/secret_file.h"

#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/params.h>
#include <string.h>

enum {
	SIGNATURE_BYTES = 32,
	SIGNATURE_TEXT = 44 + 1,
	TEXT_BYTES_MAX = 88, /* base64 of WEBHOOK_SECRET_BYTES_MAX */
};
static const char prefix[] = "whsec_";
static const char blanks[] = " \t\r\n";

/* ---- Reading -------------------------------------------------------------------------------- */

/* The usual alphabet, padded or not, into the one without marks for URLs. */
static bool to_url_alphabet(char *text, size_t *size)
{
	size_t padding = 0;
	while (padding < 2 && *size && text[*size - 1] == '=') {
		padding++;
		--*size;
	}
	if (padding && (*size + padding) % 4)
		return false;
	for (size_t i = 0; i < *size; i++) {
		if (text[i] == '-' || text[i] == '_')
			return false;
		if (text[i] == '+')
			text[i] = '-';
		if (text[i] == '/')
			text[i] = '_';
	}
	return true;
}

static bool read_one(struct webhook_secrets *secrets, const char *text, size_t size)
{
	char encoded[TEXT_BYTES_MAX];
	size_t skip = sizeof prefix - 1, count = 0;
	if (size <= skip || memcmp(text, prefix, skip) != 0 || size - skip > sizeof encoded)
		return false;
	size -= skip;
	memcpy(encoded, text + skip, size);
	unsigned char bytes[TEXT_BYTES_MAX];
	bool good = to_url_alphabet(encoded, &size) && base64_read(encoded, size, bytes, &count) &&
	            count >= WEBHOOK_SECRET_BYTES_MIN && count <= WEBHOOK_SECRET_BYTES_MAX;
	if (good) {
		memcpy(secrets->bytes[secrets->count], bytes, count);
		secrets->sizes[secrets->count++] = count;
	}
	OPENSSL_cleanse(encoded, sizeof encoded);
	OPENSSL_cleanse(bytes, sizeof bytes);
	return good;
}

enum ibid_code webhook_secrets_read(struct webhook_secrets *secrets, const char *text,
                                    struct ibid_err *err)
{
	secrets->mac = EVP_MAC_fetch(NULL, "HMAC", NULL);
	if (!secrets->mac)
		return err_set(err, IBID_NOMEM, "out of memory");
	for (const char *at = text + strspn(text, blanks); *at; at += strspn(at, blanks)) {
		size_t size = strcspn(at, blanks);
		if (secrets->count == WEBHOOK_SECRETS_MAX)
			return err_set(err, IBID_INVALID, "there are more than %d secrets",
			               WEBHOOK_SECRETS_MAX);
		if (!read_one(secrets, at, size))
			return err_set(err, IBID_INVALID,
			               "secret %zu must be `whsec_` and the base64 of %d to %d bytes, such as "
			               "`echo whsec_$(head -c 32 /dev/urandom | base64)` prints",
			               secrets->count + 1, WEBHOOK_SECRET_BYTES_MIN, WEBHOOK_SECRET_BYTES_MAX);
		at += size;
	}
	return secrets->count ? IBID_OK : err_set(err, IBID_INVALID, "there is no secret in it");
}

enum ibid_code webhook_secrets_load(struct webhook_secrets *secrets, const char *file,
                                    struct ibid_err *err)
{
	char text[SECRET_FILE_SIZE];
	enum ibid_code code = secret_file_read(file, text, err);
	if (!code)
		code = webhook_secrets_read(secrets, text, err);
	OPENSSL_cleanse(text, sizeof text);
	return code;
}

void webhook_secrets_release(struct webhook_secrets *secrets)
{
	EVP_MAC_free(secrets->mac);
	OPENSSL_cleanse(secrets, sizeof *secrets);
}

/* ---- Signing -------------------------------------------------------------------------------- */

static bool sign_with(const struct webhook_secrets *secrets, size_t which,
                      const struct webhook_message *message, unsigned char ret[SIGNATURE_BYTES])
{
	char digest[] = "SHA256";
	OSSL_PARAM params[] = {
	    OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, digest, 0),
	    OSSL_PARAM_construct_end(),
	};
	const struct {
		const char *bytes;
		size_t size;
	} parts[] = {{message->id, strlen(message->id)},
	             {".", 1},
	             {message->timestamp, strlen(message->timestamp)},
	             {".", 1},
	             {message->body, message->body_size}};
	size_t size = 0;
	EVP_MAC_CTX *context = EVP_MAC_CTX_new(secrets->mac);
	bool good = context &&
	            EVP_MAC_init(context, secrets->bytes[which], secrets->sizes[which], params);
	for (size_t i = 0; good && i < sizeof parts / sizeof *parts; i++)
		good = EVP_MAC_update(context, (const unsigned char *)parts[i].bytes, parts[i].size);
	good = good && EVP_MAC_final(context, ret, &size, SIGNATURE_BYTES) && size == SIGNATURE_BYTES;
	EVP_MAC_CTX_free(context);
	return good;
}

bool webhook_sign(const struct webhook_secrets *secrets, const struct webhook_message *message,
                  struct str *out)
{
	for (size_t i = 0; i < secrets->count; i++) {
		unsigned char signature[SIGNATURE_BYTES], text[SIGNATURE_TEXT];
		if (!sign_with(secrets, i, message, signature))
			return false;
		EVP_EncodeBlock(text, signature, SIGNATURE_BYTES);
		str_addf(out, "%sv1,%s", i ? " " : "", (const char *)text);
	}
	return !out->failed;
}
