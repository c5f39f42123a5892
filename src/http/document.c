/* SPDX-License-Identifier: Apache-2.0 */
#include "http/document.h"

#include "http/request.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

bool page_limit_read(const char *given, size_t *ret)
{
	char *end = NULL;
	*ret = given ? strtoul(given, &end, 10) : PAGE_DEFAULT;
	return !given || (isdigit((unsigned char)*given) && !*end && *ret >= 1 && *ret <= PAGE_MAX);
}

void answer_document(struct request *request, struct str *out)
{
	struct answer *answer = &request->answer;
	if (!out->failed && !request->arena.failed)
		answer->owned = str_take(out, &answer->size);
	char *fits = answer->owned ? realloc(answer->owned, answer->size + 1) : NULL;
	if (fits)
		answer->owned = fits;
	if (answer->owned)
		answer_json(answer, 200, answer->owned);
	else
		answer_problem(answer, &request->arena, PROBLEM_UNAVAILABLE, "out of memory");
	str_release(out);
}

struct store *store_of(const struct request *request)
{
	return request->generation->ibid->ledger->store;
}
