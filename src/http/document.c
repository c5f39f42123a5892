/* SPDX-License-Identifier: Apache-2.0 */
#include "http/document.h"

#include "base/instant.h"
#include "base/obj.h"
#include "http/request.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

void add_id(struct str *out, const char *name, struct uuid id)
{
	char text[UUID_TEXT_SIZE];
	uuid_write(id, text);
	obj_text(out, name, text);
}

void add_time(struct str *out, const char *name, int64_t us)
{
	char text[INSTANT_TEXT_SIZE];
	if (!us)
		return;
	instant_write(us, text);
	obj_text(out, name, text);
}

void add_text(struct str *out, const char *name, const char *text)
{
	if (text)
		obj_text(out, name, text);
}

void add_names(struct str *out, const char *name, struct arena *arena, const char *names)
{
	obj_begin(out, name, '[');
	while (names && *names) {
		size_t size = strcspn(names, ",");
		add_text(out, NULL, arena_strndup(arena, names, size));
		names += size + (names[size] == ',');
	}
	obj_end(out, ']');
}

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
