/* SPDX-License-Identifier: Apache-2.0 */
/* listen.h -- where a server listens, as a setting says it. */
#ifndef HTTP_LISTEN_H
#define HTTP_LISTEN_H

#include "base/err.h"

#include <sys/socket.h>

/* "HOST:PORT" or "[HOST]:PORT". IBID_INVALID names the setting. */
IBID_CHECK enum ibid_code listen_address(const char *setting, const char *listen,
                                         struct sockaddr_storage *ret, struct ibid_err *err);

#endif
