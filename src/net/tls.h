/* SPDX-License-Identifier: Apache-2.0 */
/* tls.h -- the server's side of TLS on sockets that never wait. */
#ifndef NET_TLS_H
#define NET_TLS_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct tls_server; /* a certificate and its key */
struct tls;        /* one connection */

/* PEM texts: the certificate first, then those that vouch for it. IBID_INVALID, IBID_NOMEM. */
IBID_CHECK enum ibid_code tls_server_new(const char *certificate, const char *key,
                                         struct tls_server **ret, struct ibid_err *err);
void tls_server_free(struct tls_server *server); /* takes NULL */

/* NULL without memory. The handshake is part of the first reads and writes. */
struct tls *tls_new(struct tls_server *server, int fd);
void tls_free(struct tls *tls); /* takes NULL; tells the other side, where that needs no waiting */

/* As recv and send: the bytes, 0 at the end, -1 with errno; EAGAIN: nothing can be done before the
 * socket can be read or written again. */
ssize_t tls_read(struct tls *tls, void *to, size_t room);
ssize_t tls_write(struct tls *tls, const void *bytes, size_t size);

#endif
