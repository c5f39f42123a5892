/* SPDX-License-Identifier: Apache-2.0 */
/* payload_schema.h -- the declared fields of a contract as JSON Schema. */
#ifndef HTTP_PAYLOAD_SCHEMA_H
#define HTTP_PAYLOAD_SCHEMA_H

#include "base/str.h"
#include "contract/contract.h"

/* The payload as member `name` of what is written. Parameters of `path` (NULL: none) are given by
 * that and left out. `*ret_required`: some member must be there. */
void payload_schema(struct str *out, const char *name, const struct contract *contract,
                    const char *path, bool *ret_required);

/* One field that is given by a path. */
void param_schema(struct str *out, const char *name, const struct contract_field *field);

#endif
