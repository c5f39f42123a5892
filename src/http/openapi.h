/* SPDX-License-Identifier: Apache-2.0 */
/* openapi.h -- what the server can be asked and what it answers, as an OpenAPI 3.1 document. */
#ifndef HTTP_OPENAPI_H
#define HTTP_OPENAPI_H

#include "base/str.h"
#include "http/route.h"
#include "http/settings.h"

/* Write it for these routes. The same routes, contracts and settings give the same bytes. The
 * caller releases `*ret`. */
IBID_CHECK enum ibid_code openapi_make(const struct routes *routes,
                                       const struct contracts *contracts,
                                       const struct settings *settings, struct str *ret,
                                       struct ibid_err *err);

/* What outbox.c shows, among the schemas. */
void add_outbox_schemas(struct str *out);

#endif
