/* SPDX-License-Identifier: Apache-2.0 */
#include "support/scratch.h"

#include <stdio.h>
#include <stdlib.h>

void scratch_dir(const char *prefix, char *ret, size_t size)
{
	const char *tmp = getenv("TMPDIR");
	int length = snprintf(ret, size, "%s/%s-XXXXXX", tmp && *tmp ? tmp : "/tmp", prefix);
	if (length < 0 || (size_t)length >= size)
		fprintf(stderr, "TMPDIR is too long for this test: %s\n", tmp);
	else if (!mkdtemp(ret))
		perror(ret);
	else
		return;
	exit(1);
}
