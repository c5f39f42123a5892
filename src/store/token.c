/* SPDX-License-Identifier: Apache-2.0 */
/* token.c -- roles of tokens as the stores keep them: names joined by commas. */
#include "store/store.h"

#include <string.h>

static const char *const names[] = {
#define TOKEN_ROLE_NAME(symbol, name) name,
    TOKEN_ROLES(TOKEN_ROLE_NAME)
#undef TOKEN_ROLE_NAME
};
enum { ROLES = sizeof names / sizeof *names };

const char *token_roles_write(struct arena *arena, unsigned roles)
{
	const char *text = NULL;
	for (unsigned i = 0; i < ROLES; i++) {
		if (roles & 1U << i)
			text = text ? arena_printf(arena, "%s,%s", text, names[i]) : names[i];
	}
	return text ? text : "";
}

bool token_roles_read(const char *text, unsigned *ret)
{
	unsigned roles = 0;
	for (;;) {
		size_t size = strcspn(text, ",");
		unsigned i = 0;
		while (i < ROLES && (strlen(names[i]) != size || memcmp(names[i], text, size) != 0))
			i++;
		if (i == ROLES)
			return false;
		roles |= 1U << i;
		text += size;
		if (!*text)
			break;
		text++;
	}
	*ret = roles;
	return true;
}
