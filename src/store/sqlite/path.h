/* SPDX-License-Identifier: Apache-2.0 */
/* path.h -- which file a store URL means, and what is wrong with it in words. */
#ifndef STORE_SQLITE_PATH_H
#define STORE_SQLITE_PATH_H

#include "base/err.h"

#include <stdbool.h>

/* The absolute path, freed with free(): a later chdir() must not lead new connections to another
 * file, and ":memory:" or "file:..." are plain names. Codes and messages as store_open promises. */
IBID_CHECK enum ibid_code lite_path_resolve(const char *path, bool create, char **ret,
                                            struct ibid_err *err);

#endif
