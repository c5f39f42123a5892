/* SPDX-License-Identifier: Apache-2.0 */
/* secret_file.h -- a secret in a file that only its owner can read. */
#ifndef BROKER_SECRET_FILE_H
#define BROKER_SECRET_FILE_H

#include "base/err.h"

enum { SECRET_FILE_SIZE = 4096 };

/* The whole text of the file. The caller wipes it; no message contains any of it. IBID_INVALID,
 * IBID_DENIED: there is no such file, it can't be read, or others could read it too. */
IBID_CHECK enum ibid_code secret_file_read(const char *file, char ret[SECRET_FILE_SIZE],
                                           struct ibid_err *err);

#endif
