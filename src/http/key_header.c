/* SPDX-License-Identifier: Apache-2.0 */
#include "http/key_header.h"

#include "contract/payload.h"

#include <string.h>

static const char blanks[] = " \t";

/* What is between the quotation marks, in place. */
static enum ibid_code unquote(char *text, struct ibid_err *err)
{
	char *to = text;
	const char *at = text + 1;
	for (; *at && *at != '"'; at++) {
		if (*at < ' ' || *at > '~')
			return err_set(err, IBID_INVALID,
			               "byte %zu of the quoted key is not printable ASCII, and nothing else "
			               "may stand in a quoted string (RFC 8941, 3.3.3)",
			               (size_t)(at - text));
		if (*at == '\\' && *++at != '"' && *at != '\\')
			return err_set(err, IBID_INVALID,
			               "in a quoted key a backslash stands before a quotation mark or another "
			               "backslash only");
		*to++ = *at;
	}
	if (!*at)
		return err_set(err, IBID_INVALID, "the quotation mark at the end of the key is missing");
	if (at[1])
		return err_set(err, IBID_INVALID,
		               "something follows the quoted key: an Idempotency-Key is one string, and "
		               "takes no parameters");
	*to = 0;
	return IBID_OK;
}

enum ibid_code key_header_read(struct arena *arena, const char *value, const char **ret,
                               struct ibid_err *err)
{
	value += strspn(value, blanks);
	size_t size = strlen(value);
	while (size && strchr(blanks, value[size - 1]))
		size--;
	char *key = arena_strndup(arena, value, size);
	if (!key)
		return err_set(err, IBID_NOMEM, "out of memory");
	enum ibid_code code = *key == '"' ? unquote(key, err) : IBID_OK;
	if (!code)
		code = key_check(key, err);
	if (!code)
		*ret = key;
	return code;
}
