/* SPDX-License-Identifier: Apache-2.0 */
/* hash.c -- SHA-256 from libcrypto.
 *
 * The algorithm is looked up once: with OpenSSL 3 a look-up in each call costs as much as hashing
 * a few hundred bytes. It is never released: it lives as long as the process. */
#include "base/hash.h"

#include <openssl/evp.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static EVP_MD *algorithm;

static void fetch(void)
{
	algorithm = EVP_MD_fetch(NULL, "SHA256", NULL);
}

static pthread_once_t once = PTHREAD_ONCE_INIT;

struct sha256 sha256(const void *bytes, size_t size)
{
	struct sha256 hash;
	pthread_once(&once, fetch);
	/* Without the hash two payloads could pass for the same; there is no way to go on. */
	if (!algorithm || EVP_Digest(bytes, size, hash.bytes, NULL, algorithm, NULL) != 1)
		abort();
	return hash;
}

void sha256_init(struct sha256_sum *sum)
{
	pthread_once(&once, fetch);
	sum->context = EVP_MD_CTX_new();
	if (!algorithm || !sum->context || EVP_DigestInit_ex2(sum->context, algorithm, NULL) != 1)
		abort();
}

void sha256_add(struct sha256_sum *sum, const void *bytes, size_t size)
{
	if (EVP_DigestUpdate(sum->context, bytes, size) != 1)
		abort();
}

struct sha256 sha256_end(struct sha256_sum *sum)
{
	struct sha256 hash;
	if (EVP_DigestFinal_ex(sum->context, hash.bytes, NULL) != 1)
		abort();
	sha256_release(sum);
	return hash;
}

void sha256_release(struct sha256_sum *sum)
{
	EVP_MD_CTX_free(sum->context);
	sum->context = NULL;
}

void sha256_write(const struct sha256 *hash, char ret[SHA256_TEXT_SIZE])
{
	static const char hex[] = "0123456789abcdef";
	for (size_t i = 0; i < sizeof hash->bytes; i++) {
		ret[2 * i] = hex[hash->bytes[i] >> 4];
		ret[2 * i + 1] = hex[hash->bytes[i] & 15];
	}
	ret[SHA256_TEXT_SIZE - 1] = '\0';
}

static int hex_value(char digit)
{
	if (digit >= '0' && digit <= '9')
		return digit - '0';
	digit = (char)(digit | 0x20);
	return digit >= 'a' && digit <= 'f' ? digit - 'a' + 10 : -1;
}

bool sha256_read(const char *text, struct sha256 *ret)
{
	struct sha256 hash;
	if (strlen(text) != 2 * sizeof hash.bytes)
		return false;
	for (size_t i = 0; i < sizeof hash.bytes; i++) {
		int high = hex_value(text[2 * i]), low = hex_value(text[2 * i + 1]);
		if (high < 0 || low < 0)
			return false;
		hash.bytes[i] = (unsigned char)(high << 4 | low);
	}
	*ret = hash;
	return true;
}
