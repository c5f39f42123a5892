/* SPDX-License-Identifier: Apache-2.0 */
/* params.h -- the named parameters that a handler script may use: the built-in ones, then the
 * contract's fields. One list, so that what a script is checked against is what it is given. */
#ifndef COMMAND_PARAMS_H
#define COMMAND_PARAMS_H

#include "command/work.h"

/* What make_script needs. With `contract` NULL, what is known of a command whose payload is not:
 * the sender, the key and the command's id. */
IBID_CHECK enum ibid_code params_specs(struct arena *arena, const struct contract *contract,
                                       struct param_spec **ret, size_t *ret_count,
                                       struct ibid_err *err);

/* The values for one command, in the same order, of which the script of a NULL contract takes the
 * first; NULL without memory. */
const char *const *params_values(const struct ibid_work *work);

#endif
