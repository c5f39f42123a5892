/* SPDX-License-Identifier: Apache-2.0 */
/* scratch.h -- where a test program keeps what it makes: below TMPDIR, or /tmp. */
#ifndef TEST_SCRATCH_H
#define TEST_SCRATCH_H

#include <stddef.h>

/* A new directory whose name begins with `prefix` and ends with six characters of its own; the
 * caller removes it. Ends the program where it can't be made. */
void scratch_dir(const char *prefix, char *ret, size_t size);

#endif
