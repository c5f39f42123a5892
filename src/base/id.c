/* SPDX-License-Identifier: Apache-2.0 */
/* id.c -- UUIDs as RFC 9562 lays them out. */
#include "base/id.h"

#include <openssl/evp.h>
#include <stdlib.h>
#include <string.h>

static void stamp(struct uuid *uuid, unsigned version)
{
	uuid->bytes[6] = (unsigned char)((uuid->bytes[6] & 0x0F) | version << 4);
	uuid->bytes[8] = (unsigned char)((uuid->bytes[8] & 0x3F) | 0x80);
}

struct uuid uuid_v4(struct env *env)
{
	struct uuid uuid;
	env_random(env, uuid.bytes, sizeof uuid.bytes);
	stamp(&uuid, 4);
	return uuid;
}

struct uuid uuid_v5(struct uuid space, const char *name, size_t size)
{
	unsigned char hash[EVP_MAX_MD_SIZE];
	struct uuid uuid;
	EVP_MD_CTX *context = EVP_MD_CTX_new();
	/* A wrong deterministic id would be a second identity: stop instead. */
	if (!context || EVP_DigestInit_ex(context, EVP_sha1(), NULL) != 1 ||
	    EVP_DigestUpdate(context, space.bytes, sizeof space.bytes) != 1 ||
	    EVP_DigestUpdate(context, name, size) != 1 || EVP_DigestFinal_ex(context, hash, NULL) != 1)
		abort();
	EVP_MD_CTX_free(context);
	memcpy(uuid.bytes, hash, sizeof uuid.bytes);
	stamp(&uuid, 5);
	return uuid;
}

struct uuid uuid_v7(struct env *env)
{
	struct uuid uuid;
	int64_t now = env_wall_us(env);
	uint64_t us = now < 0 ? 0 : (uint64_t)now;
	uint64_t ms = us / 1000, fraction = us % 1000 * 4096 / 1000;
	env_random(env, uuid.bytes + 8, 8);
	for (int i = 0; i < 6; i++)
		uuid.bytes[i] = (unsigned char)(ms >> (40 - 8 * i));
	uuid.bytes[6] = (unsigned char)(fraction >> 8);
	uuid.bytes[7] = (unsigned char)fraction;
	stamp(&uuid, 7);
	return uuid;
}

static bool dash_before(size_t byte)
{
	return byte == 4 || byte == 6 || byte == 8 || byte == 10;
}

struct uuid uuid_nth(struct uuid base, unsigned n)
{
	base.bytes[14] = (unsigned char)(n >> 8);
	base.bytes[15] = (unsigned char)n;
	return base;
}

struct uuid uuid_before(struct uuid uuid)
{
	for (size_t i = sizeof uuid.bytes; i-- > 0;)
		if (uuid.bytes[i]--)
			break;
	return uuid;
}

void uuid_write(struct uuid uuid, char ret[UUID_TEXT_SIZE])
{
	static const char hex[] = "0123456789abcdef";
	char *at = ret;
	for (size_t i = 0; i < sizeof uuid.bytes; i++) {
		if (dash_before(i))
			*at++ = '-';
		*at++ = hex[uuid.bytes[i] >> 4];
		*at++ = hex[uuid.bytes[i] & 15];
	}
	*at = '\0';
}

static int hex_value(char byte)
{
	if (byte >= '0' && byte <= '9')
		return byte - '0';
	if (byte >= 'a' && byte <= 'f')
		return byte - 'a' + 10;
	if (byte >= 'A' && byte <= 'F')
		return byte - 'A' + 10;
	return -1;
}

bool uuid_read(const char *text, struct uuid *ret)
{
	struct uuid uuid;
	for (size_t i = 0; i < sizeof uuid.bytes; i++) {
		if (dash_before(i) && *text++ != '-')
			return false;
		int high = hex_value(text[0]);
		int low = high < 0 ? -1 : hex_value(text[1]); /* never looks behind the NUL */
		if (low < 0)
			return false;
		uuid.bytes[i] = (unsigned char)(high << 4 | low);
		text += 2;
	}
	if (*text)
		return false;
	*ret = uuid;
	return true;
}
