/* SPDX-License-Identifier: Apache-2.0 */
/* tls.h -- the server side of TLS on non-blocking sockets. */
#ifndef NET_TLS_H
#define NET_TLS_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct tls_server; /* a certificate and its key */
struct tls;        /* one connection */

/* PEM texts: the server certificate first, then its intermediate certificates. IBID_INVALID,
 * IBID_NOMEM. */
IBID_CHECK enum ibid_code tls_server_new(const char *certificate, const char *key,
                                         struct tls_server **ret, struct ibid_err *err);
void tls_server_free(struct tls_server *server); /* takes NULL */

/* NULL: out of memory. The handshake happens in the first reads and writes. */
struct tls *tls_new(struct tls_server *server, int fd);

/* `clean`: send close_notify, so that the client knows that nothing is missing. Takes NULL. */
void tls_free(struct tls *tls, bool clean);

/* Like recv and send: the number of bytes, 0 at the end, -1 with errno. EAGAIN: wait until the
 * socket is readable or writable. */
ssize_t tls_read(struct tls *tls, void *to, size_t room);
ssize_t tls_write(struct tls *tls, const void *bytes, size_t size);

#endif
