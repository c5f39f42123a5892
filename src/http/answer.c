/* SPDX-License-Identifier: Apache-2.0 */
#include "http/answer.h"

#include "base/utf8.h"
#include "command/problem.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { DETAIL_MAX = 1024 };

const struct problem_info problem_infos[PROBLEM_KINDS] = {
#define HTTP_PROBLEM_INFO(symbol, slug, status, title, meaning)                                    \
	[symbol] = {slug, status, title, meaning},
    HTTP_PROBLEMS(HTTP_PROBLEM_INFO)
#undef HTTP_PROBLEM_INFO
};

void answer_header(struct answer *answer, const char *name, const char *value)
{
	assert(answer->header_count < ANSWER_HEADERS_MAX);
	answer->headers[answer->header_count].name = name;
	answer->headers[answer->header_count++].value = value;
}

void answer_problem(struct answer *answer, struct arena *arena, enum problem_kind kind,
                    const char *format, ...)
{
	const struct problem_info *info = &problem_infos[kind];
	char detail[DETAIL_MAX];
	va_list args;
	va_start(args, format);
	vsnprintf(detail, sizeof detail, format, args);
	va_end(args);
	utf8_mend(detail); /* it may hold what a client sent, and was cut */
	struct problem problem = {
	    .type = arena_printf(arena, "/problems/%s", info->slug),
	    .title = info->title,
	    .status = info->status,
	    .detail = detail,
	};
	const char *body = problem_body(arena, &problem);
	answer->status = info->status;
	answer->type = "application/problem+json";
	answer->body = body ? body : "{}";
	answer->size = strlen(answer->body);
	if (kind == PROBLEM_UNAVAILABLE)
		answer_header(answer, "Retry-After", "1");
}

void answer_json(struct answer *answer, int status, const char *json)
{
	answer->status = status;
	answer->type = "application/json";
	answer->body = json;
	answer->size = strlen(json);
}
