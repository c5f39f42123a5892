/* SPDX-License-Identifier: Apache-2.0 */
#include "store/sqlite/unique.h"

#include <string.h>

static const char *after(const char *text, const char *prefix)
{
	size_t size = strlen(prefix);
	return strncmp(text, prefix, size) == 0 ? text + size : NULL;
}

/* An index on expressions has no columns to list, so SQLite names it: index 'name', quotes doubled.
 */
static const char *quoted_name(struct arena *arena, const char *quoted)
{
	char *name = arena_strdup(arena, quoted), *to = name;
	for (const char *from = quoted; name && *from; from++) {
		if (*from == '\'' && *++from != '\'')
			break;
		*to++ = *from;
	}
	if (name)
		*to = '\0';
	return name;
}

static enum ibid_code by_columns(struct lite_conn *conn, struct arena *arena, const char *columns,
                                 const char **ret, struct ibid_err *err)
{
	struct lite_run run;
	enum ibid_code code = lite_start(conn, LITE_unique_by_columns, &run, err);
	lite_bind_text(&run, columns);
	if (lite_row(&run, &code, err))
		*ret = lite_read_text(&run, arena);
	lite_end(&run);
	return code;
}

enum ibid_code lite_unique_name(struct lite_conn *conn, struct arena *arena, const char *message,
                                const char **ret, struct ibid_err *err)
{
	const char *what = after(message, "UNIQUE constraint failed: ");
	const char *index = what ? after(what, "index '") : NULL;
	*ret = index ? quoted_name(arena, index) : NULL;
	return what && !index ? by_columns(conn, arena, what, ret, err) : IBID_OK;
}
