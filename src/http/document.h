/* SPDX-License-Identifier: Apache-2.0 */
/* document.h -- what the documents that requests look at are made of. */
#ifndef HTTP_DOCUMENT_H
#define HTTP_DOCUMENT_H

#include "base/arena.h"
#include "base/id.h"
#include "base/str.h"

#include <stdbool.h>
#include <stdint.h>

struct request;

enum { DOCUMENT_BYTES_MAX = 16 << 20, PAGE_DEFAULT = 50, PAGE_MAX = 1000 };

/* `limit` of a query; NULL: PAGE_DEFAULT. */
bool page_limit_read(const char *given, size_t *ret);

/* Answer with what was written, which is released. */
void answer_document(struct request *request, struct str *out);

struct store *store_of(const struct request *request);

#endif
