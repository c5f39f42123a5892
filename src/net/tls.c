/* SPDX-License-Identifier: Apache-2.0 */
#include "net/tls.h"

#include <errno.h>
#include <limits.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <stdlib.h>

static SSL_CTX *context_of(struct tls_server *server)
{
	return (SSL_CTX *)server;
}

static SSL *ssl_of(struct tls *tls)
{
	return (SSL *)tls;
}

/* ---- The certificate ------------------------------------------------------------------------ */

/* The first certificate is the server's own, the others are intermediates. */
static bool use_certificates(SSL_CTX *context, const char *pem)
{
	BIO *text = BIO_new_mem_buf(pem, -1);
	X509 *certificate = text ? PEM_read_bio_X509_AUX(text, NULL, NULL, NULL) : NULL;
	bool good = certificate && SSL_CTX_use_certificate(context, certificate) == 1;
	X509_free(certificate);
	while (good && (certificate = PEM_read_bio_X509(text, NULL, NULL, NULL)))
		if (SSL_CTX_add0_chain_cert(context, certificate) != 1) {
			X509_free(certificate);
			good = false;
		}
	BIO_free(text);
	ERR_clear_error(); /* OpenSSL reports the end of the text as an error */
	return good;
}

/* A server must not stop to ask for a password. */
static int no_password(char *to, int room, int encrypts, void *user)
{
	(void)to, (void)room, (void)encrypts, (void)user;
	return -1;
}

static bool use_key(SSL_CTX *context, const char *pem)
{
	BIO *text = BIO_new_mem_buf(pem, -1);
	EVP_PKEY *key = text ? PEM_read_bio_PrivateKey(text, NULL, no_password, NULL) : NULL;
	bool good = key && SSL_CTX_use_PrivateKey(context, key) == 1;
	EVP_PKEY_free(key);
	BIO_free(text);
	ERR_clear_error();
	return good;
}

enum ibid_code tls_server_new(const char *certificate, const char *key, struct tls_server **ret,
                              struct ibid_err *err)
{
	SSL_CTX *context = SSL_CTX_new(TLS_server_method());
	enum ibid_code code = IBID_OK;
	if (!context)
		return err_set(err, IBID_NOMEM, "out of memory");
	SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
	SSL_CTX_set_options(context, SSL_OP_NO_RENEGOTIATION | SSL_OP_CIPHER_SERVER_PREFERENCE);
	SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
	                              SSL_MODE_RELEASE_BUFFERS);
	if (!use_certificates(context, certificate))
		code = err_set(err, IBID_INVALID, "the certificate can't be read");
	else if (!use_key(context, key))
		code = err_set(err, IBID_INVALID,
		               "the key can't be read, needs a password, or is not the certificate's");
	if (code)
		SSL_CTX_free(context);
	else
		*ret = (struct tls_server *)context;
	return code;
}

void tls_server_free(struct tls_server *server)
{
	SSL_CTX_free(context_of(server));
}

/* ---- Connections ---------------------------------------------------------------------------- */

struct tls *tls_new(struct tls_server *server, int fd)
{
	SSL *ssl = SSL_new(context_of(server));
	if (ssl && SSL_set_fd(ssl, fd) != 1) {
		SSL_free(ssl);
		ssl = NULL;
	}
	if (ssl)
		SSL_set_accept_state(ssl);
	ERR_clear_error();
	return (struct tls *)ssl;
}

void tls_free(struct tls *tls, bool clean)
{
	if (!tls)
		return;
	if (clean && SSL_is_init_finished(ssl_of(tls)))
		SSL_shutdown(ssl_of(tls));
	SSL_free(ssl_of(tls));
	ERR_clear_error();
}

/* The result of a call that transferred no bytes. */
static ssize_t failed(struct tls *tls, int result)
{
	int cause = errno;
	switch (SSL_get_error(ssl_of(tls), result)) {
	case SSL_ERROR_WANT_READ:
	case SSL_ERROR_WANT_WRITE: cause = EAGAIN; break;
	case SSL_ERROR_ZERO_RETURN: cause = 0; break;
	case SSL_ERROR_SYSCALL: cause = cause ? cause : ECONNRESET; break;
	default: cause = EPROTO; break;
	}
	ERR_clear_error();
	errno = cause;
	return cause ? -1 : 0;
}

ssize_t tls_read(struct tls *tls, void *to, size_t room)
{
	errno = 0;
	int got = SSL_read(ssl_of(tls), to, room < INT_MAX ? (int)room : INT_MAX);
	return got > 0 ? got : failed(tls, got);
}

ssize_t tls_write(struct tls *tls, const void *bytes, size_t size)
{
	errno = 0;
	int put = SSL_write(ssl_of(tls), bytes, size < INT_MAX ? (int)size : INT_MAX);
	return put > 0 ? put : failed(tls, put);
}
