/* SPDX-License-Identifier: Apache-2.0 */
/* connection.h -- libmicrohttpd's callbacks: connections come and go, requests are read and
 * answered. */
#ifndef HTTP_CONNECTION_H
#define HTTP_CONNECTION_H

#include "http/request.h"

void connection_change(void *server, struct MHD_Connection *connection, void **ret_visitor,
                       enum MHD_ConnectionNotificationCode code);
void *connection_begin(void *server, const char *uri, struct MHD_Connection *connection);
enum { HEADERS_MAX = 128 }; /* lines of a request */

enum MHD_Result connection_handle(void *server, struct MHD_Connection *connection, const char *url,
                                  const char *method, const char *version, const char *upload,
                                  size_t *upload_size, void **ret_request);
void connection_end(void *server, struct MHD_Connection *connection, void **request,
                    enum MHD_RequestTerminationCode code);

/* End connections whose clients take longer than they may, or than there is time while the server
 * stops; with `look`, also of those that are gone. */
void connection_end_slow(struct server *server, bool look);

/* Take what those still send who were refused, so that the answer reaches them. One thread calls
 * this, now and then; `all`: let them go at once. */
void connection_see_off(struct server *server, bool all);

#endif
