/* SPDX-License-Identifier: Apache-2.0 */
/* keyring.c -- keys from a file, and texts encrypted with them.
 *
 * (K1) Key bytes are in the keyring and nowhere else: buffers that held them are wiped.
 * (K2) No message contains a byte of the file or of a text. */
#include "base/keyring.h"

#include "base/base64.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
	FILE_BYTES_MAX = 64 << 10,
	KEYS_MAX = 64,
	KEY_BYTES = 32,
	KEY_ID_MAX = 64,
	NONCE_BYTES = 12,
	TAG_BYTES = 16,
	PLACE_BYTES_MAX = 64 << 10,
};

static const char prefix[] = "ibid:v1:";

struct key {
	char id[KEY_ID_MAX + 1];
	unsigned char bytes[KEY_BYTES];
};

struct keyring {
	size_t count;
	struct key keys[KEYS_MAX];
};

/* ---- The file ------------------------------------------------------------------------------- */

static enum ibid_code open_file(const char *file, int *ret, struct ibid_err *err)
{
	struct stat stat;
	int fd = open(file, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	if (fd < 0 && errno == ENOENT)
		return err_set(err, IBID_NOT_FOUND, "there is no key file %s", file);
	if (fd < 0)
		return err_set(err, IBID_DENIED, "the key file %s can't be opened: %s", file,
		               strerror(errno));
	enum ibid_code code = IBID_OK;
	if (fstat(fd, &stat) != 0)
		code = err_set(err, IBID_IO, "the key file %s: %s", file, strerror(errno));
	else if (!S_ISREG(stat.st_mode))
		code = err_set(err, IBID_INVALID, "the key file %s is not a file", file);
	else if (stat.st_mode & 077)
		code = err_set(err, IBID_DENIED,
		               "the key file %s is open to others than its owner: chmod 600 it", file);
	else if (stat.st_size > FILE_BYTES_MAX)
		code = err_set(err, IBID_LIMIT, "the key file %s is longer than %d bytes", file,
		               FILE_BYTES_MAX);
	if (code)
		close(fd);
	else
		*ret = fd;
	return code;
}

static enum ibid_code read_bytes(int fd, const char *file, char *bytes, size_t *ret,
                                 struct ibid_err *err)
{
	size_t size = 0;
	while (size < FILE_BYTES_MAX) {
		ssize_t got = read(fd, bytes + size, FILE_BYTES_MAX - size);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return err_set(err, IBID_IO, "the key file %s: %s", file, strerror(errno));
		if (got == 0)
			break;
		size += (size_t)got;
	}
	*ret = size;
	return IBID_OK;
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r';
}

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c = (char)(c | 0x20);
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static bool read_hex(const char *at, size_t size, unsigned char ret[KEY_BYTES])
{
	if (size != (size_t)2 * KEY_BYTES)
		return false;
	for (size_t i = 0; i < KEY_BYTES; i++) {
		int high = hex_digit(at[2 * i]), low = hex_digit(at[2 * i + 1]);
		if (high < 0 || low < 0)
			return false;
		ret[i] = (unsigned char)(high << 4 | low);
	}
	return true;
}

static bool id_ok(const char *at, size_t size)
{
	static const char allowed[] =
	    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
	for (size_t i = 0; i < size; i++)
		if (!at[i] || !strchr(allowed, at[i]))
			return false;
	return size >= 1 && size <= KEY_ID_MAX;
}

static const struct key *find_key(const struct keyring *keyring, const char *id, size_t size)
{
	for (size_t i = 0; i < keyring->count; i++)
		if (strlen(keyring->keys[i].id) == size && memcmp(keyring->keys[i].id, id, size) == 0)
			return &keyring->keys[i];
	return NULL;
}

/* What is wrong with one line, NULL when nothing is (K2). */
static const char *read_line(struct keyring *keyring, const char *at, size_t size)
{
	while (size && is_blank(at[size - 1]))
		size--;
	for (; size && is_blank(*at); at++)
		size--;
	if (!size || *at == '#')
		return NULL;
	size_t id = 0, gap;
	while (id < size && !is_blank(at[id]))
		id++;
	for (gap = id; gap < size && is_blank(at[gap]); gap++)
		;
	struct key *key = &keyring->keys[keyring->count];
	if (!id_ok(at, id))
		return "a key id has 1 to 64 letters, digits, '.', '_' and '-'";
	if (find_key(keyring, at, id))
		return "this key id was given before";
	if (keyring->count == KEYS_MAX - 1)
		return "too many keys";
	if (!read_hex(at + gap, size - gap, key->bytes))
		return "a key is 64 hex digits behind its id";
	memcpy(key->id, at, id);
	keyring->count++;
	return NULL;
}

static enum ibid_code read_lines(struct keyring *keyring, const char *file, const char *bytes,
                                 size_t size, struct ibid_err *err)
{
	int line = 1;
	for (size_t at = 0; at < size; line++) {
		const char *end = memchr(bytes + at, '\n', size - at);
		size_t length = end ? (size_t)(end - bytes) - at : size - at;
		const char *wrong = read_line(keyring, bytes + at, length);
		if (wrong)
			return err_set(err, IBID_INVALID, "%s:%d: %s", file, line, wrong);
		at += length + 1;
	}
	return keyring->count ? IBID_OK
	                      : err_set(err, IBID_INVALID, "the key file %s holds no key", file);
}

enum ibid_code keyring_read(const char *file, struct keyring **ret, struct ibid_err *err)
{
	int fd = -1;
	size_t size = 0;
	enum ibid_code code = open_file(file, &fd, err);
	if (code)
		return code;
	struct keyring *keyring = calloc(1, sizeof *keyring);
	char *bytes = malloc(FILE_BYTES_MAX);
	code = keyring && bytes ? read_bytes(fd, file, bytes, &size, err)
	                        : err_set(err, IBID_NOMEM, "out of memory");
	if (!code)
		code = read_lines(keyring, file, bytes, size, err);
	if (bytes)
		OPENSSL_cleanse(bytes, FILE_BYTES_MAX); /* K1 */
	free(bytes);
	close(fd);
	if (code)
		keyring_free(keyring);
	else
		*ret = keyring;
	return code;
}

void keyring_free(struct keyring *keyring)
{
	if (!keyring)
		return;
	OPENSSL_cleanse(keyring, sizeof *keyring); /* K1 */
	free(keyring);
}

/* ---- Sealing -------------------------------------------------------------------------------- */

/* Tenant, command and pointer: none of them holds a NUL. */
static void place_text(struct str *out, const struct seal_place *place)
{
	char id[UUID_TEXT_SIZE];
	uuid_write(place->command_id, id);
	str_add(out, place->tenant, strlen(place->tenant) + 1);
	str_add(out, id, sizeof id);
	str_adds(out, place->pointer);
}

static bool encrypt(EVP_CIPHER_CTX *ctx, const struct key *key, const struct str *place,
                    const char *text, size_t size, unsigned char *box)
{
	int done = 0, rest = 0;
	unsigned char *sealed = box + NONCE_BYTES;
	return EVP_EncryptInit_ex(ctx, EVP_aes_256_gcm(), NULL, key->bytes, box) == 1 &&
	       EVP_EncryptUpdate(ctx, NULL, &done, (const unsigned char *)place->data,
	                         (int)place->size) == 1 &&
	       EVP_EncryptUpdate(ctx, sealed, &done, (const unsigned char *)text, (int)size) == 1 &&
	       EVP_EncryptFinal_ex(ctx, sealed + done, &rest) == 1 &&
	       EVP_CIPHER_CTX_ctrl(ctx, EVP_CTRL_GCM_GET_TAG, TAG_BYTES, sealed + size) == 1;
}

static bool decrypt(EVP_CIPHER_CTX *ctx, const struct key *key, const struct str *place,
                    unsigned char *box, size_t size, unsigned char *text)
{
	int done = 0, rest = 0;
	unsigned char *sealed = box + NONCE_BYTES;
	size_t plain = size - NONCE_BYTES - TAG_BYTES;
	return EVP_DecryptInit_ex(ctx, EVP_aes_256_gcm(), NULL, key->bytes, box) == 1 &&
	       EVP_DecryptUpdate(ctx, NULL, &done, (const unsigned char *)place->data,
	                         (int)place->size) == 1 &&
	       EVP_DecryptUpdate(ctx, text, &done, sealed, (int)plain) == 1 &&
	       EVP_CIPHER_CTX_ctrl(ctx, EVP_CTRL_GCM_SET_TAG, TAG_BYTES, sealed + plain) == 1 &&
	       EVP_DecryptFinal_ex(ctx, text + done, &rest) == 1;
}

enum ibid_code keyring_seal(const struct keyring *keyring, struct env *env,
                            const struct seal_place *place, const char *text, size_t size,
                            struct str *out, struct ibid_err *err)
{
	const struct key *key = &keyring->keys[0];
	struct str where = STR_INIT(PLACE_BYTES_MAX);
	if (size > INT_MAX / 2)
		return err_set(err, IBID_LIMIT, "a text of %zu bytes is too long to encrypt", size);
	unsigned char *box = malloc(NONCE_BYTES + size + TAG_BYTES);
	EVP_CIPHER_CTX *ctx = EVP_CIPHER_CTX_new();
	enum ibid_code code = IBID_OK;
	place_text(&where, place);
	if (!box || !ctx || where.failed) {
		code = err_set(err, IBID_NOMEM, "out of memory");
	} else {
		env_random(env, box, NONCE_BYTES);
		if (encrypt(ctx, key, &where, text, size, box)) {
			str_addf(out, "%s%s:", prefix, key->id);
			base64_add(out, box, NONCE_BYTES + size + TAG_BYTES);
		} else {
			code = err_set(err, IBID_INTERNAL, "AES-256-GCM is not to be had from libcrypto");
		}
	}
	EVP_CIPHER_CTX_free(ctx);
	free(box);
	str_release(&where);
	return code;
}

/* Split "ibid:v1:ID:DATA". */
static bool split(const char *sealed, size_t size, const char **ret_id, size_t *ret_id_size,
                  const char **ret_data)
{
	size_t head = sizeof prefix - 1;
	if (size <= head || memcmp(sealed, prefix, head) != 0)
		return false;
	const char *colon = memchr(sealed + head, ':', size - head);
	if (!colon)
		return false;
	*ret_id = sealed + head;
	*ret_id_size = (size_t)(colon - *ret_id);
	*ret_data = colon + 1;
	return true;
}

static const char *place_name(const struct seal_place *place)
{
	return *place->pointer ? place->pointer : "the payload";
}

static enum ibid_code unseal(const struct key *key, const struct seal_place *place,
                             unsigned char *box, size_t size, struct str *out, struct ibid_err *err)
{
	struct str where = STR_INIT(PLACE_BYTES_MAX);
	unsigned char *text = malloc(size);
	EVP_CIPHER_CTX *ctx = EVP_CIPHER_CTX_new();
	enum ibid_code code = IBID_OK;
	place_text(&where, place);
	if (!text || !ctx || where.failed)
		code = err_set(err, IBID_NOMEM, "out of memory");
	else if (decrypt(ctx, key, &where, box, size, text))
		str_add(out, (const char *)text, size - NONCE_BYTES - TAG_BYTES);
	else
		code = err_set(err, IBID_INVALID,
		               "the ciphertext of %s does not open: it was changed, belongs to another "
		               "command or member, or key %s is not the one it was made with",
		               place_name(place), key->id);
	if (text)
		OPENSSL_cleanse(text, size);
	EVP_CIPHER_CTX_free(ctx);
	free(text);
	str_release(&where);
	return code;
}

enum ibid_code keyring_open(const struct keyring *keyring, const struct seal_place *place,
                            const char *sealed, size_t size, struct str *out, struct ibid_err *err)
{
	const char *id = NULL, *data = NULL;
	size_t id_size = 0, box_size = 0;
	if (!split(sealed, size, &id, &id_size, &data) || !id_ok(id, id_size))
		return err_set(err, IBID_INVALID, "%s is no ciphertext of ibid", place_name(place));
	const struct key *key = find_key(keyring, id, id_size);
	if (!key)
		return err_set(err, IBID_INVALID, "key %.*s, which %s needs, is not in the key file",
		               (int)id_size, id, place_name(place));
	size_t data_size = size - (size_t)(data - sealed);
	unsigned char *box = malloc(data_size + 1);
	if (!box)
		return err_set(err, IBID_NOMEM, "out of memory");
	enum ibid_code code;
	if (data_size > INT_MAX / 2 || !base64_read(data, data_size, box, &box_size) ||
	    box_size < NONCE_BYTES + TAG_BYTES)
		code = err_set(err, IBID_INVALID, "%s is no ciphertext of ibid", place_name(place));
	else
		code = unseal(key, place, box, box_size, out, err);
	free(box);
	return code;
}
