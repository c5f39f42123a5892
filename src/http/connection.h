/* SPDX-License-Identifier: Apache-2.0 */
/* connection.h -- what the listener calls: requests are read and answered. */
#ifndef HTTP_CONNECTION_H
#define HTTP_CONNECTION_H

#include "http/request.h"

/* Their user is the server. */
extern const struct listener_ops connection_ops;

#endif
