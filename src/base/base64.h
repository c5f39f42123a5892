/* SPDX-License-Identifier: Apache-2.0 */
/* base64.h -- base64url without padding. */
#ifndef BASE_BASE64_H
#define BASE_BASE64_H

#include "base/str.h"

void base64_add(struct str *out, const unsigned char *bytes, size_t size);

/* Into `ret`, which has room for 3/4 of `size`. False when it is not the text of any bytes. */
bool base64_read(const char *text, size_t size, unsigned char *ret, size_t *ret_size);

#endif
