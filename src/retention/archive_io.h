/* SPDX-License-Identifier: Apache-2.0 */
/* archive_io.h -- what those who write archives and those who read them share. */
#ifndef RETENTION_ARCHIVE_IO_H
#define RETENTION_ARCHIVE_IO_H

#include "retention/archive_file.h"

#include <errno.h>

/* What `number` (an errno) means for whoever wanted to do `what` with `path`. */
enum ibid_code archive_failed(struct ibid_err *err, int number, const char *what, const char *path);

/* One object, indented for people, and a newline. NULL without memory. */
char *archive_manifest_text(const struct archive_manifest *manifest);

#endif
