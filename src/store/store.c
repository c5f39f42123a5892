/* SPDX-License-Identifier: Apache-2.0 */
/* store.c -- which backend a URL means. */
#include "store/store.h"

#include "base/str.h"

#include <string.h>
#include <strings.h>

/* ---- Opening -------------------------------------------------------------------------------- */

/* What follows the prefix; NULL when the text does not start with it. */
static const char *after(const char *text, const char *prefix)
{
	size_t size = strlen(prefix);
	return strncmp(text, prefix, size) == 0 ? text + size : NULL;
}

static const char *postgres_rest(const char *url)
{
	const char *rest = after(url, "postgres://");
	return rest ? rest : after(url, "postgresql://");
}

enum ibid_code store_open(const struct store_options *options, struct store **ret,
                          struct ibid_err *err)
{
	const char *url = options->url ? options->url : "";
	const char *path = after(url, "sqlite:");
	if (path)
		return store_sqlite_open(options, path, ret, err);
	if (postgres_rest(url))
		return store_postgres_open(options, ret, err);
	/* The URL is not repeated: what it holds is not known. */
	return err_set(err, IBID_INVALID,
	               "the store (--store, IBID_STORE or the setting store) is not a URL: write "
	               "sqlite:PATH or postgres://USER@HOST/DATABASE");
}

void store_close(struct store *store)
{
	if (store)
		store->ops->close(store);
}

/* ---- Redaction ------------------------------------------------------------------------------ */

/* Parameters after the '?': the value of each whose name ends in "password" is covered. */
static void add_query(struct str *out, const char *query)
{
	while (*query) {
		size_t size = strcspn(query, "&"), name = strcspn(query, "=&");
		bool secret = name >= 8 && name < size && strncasecmp(query + name - 8, "password", 8) == 0;
		str_add(out, query, secret ? name + 1 : size);
		if (secret)
			str_adds(out, "***");
		query += size;
		if (*query)
			str_addc(out, *query++);
	}
}

/* The last '@' ends the user information, also where a password was not escaped. */
static void add_redacted(struct str *out, const char *url, const char *rest)
{
	const char *at = strrchr(rest, '@'), *colon = strchr(rest, ':');
	const char *tail = at ? at : rest;
	size_t user = (size_t)((at && colon && colon < at ? colon : tail) - url);
	str_add(out, url, user);
	if (at && colon && colon < at)
		str_adds(out, ":***");
	size_t place = strcspn(tail, "?");
	str_add(out, tail, place);
	add_query(out, tail + place);
}

const char *store_url_redacted(struct arena *arena, const char *url)
{
	struct str out = STR_INIT(1 << 16);
	const char *rest = postgres_rest(url), *redacted = NULL;
	if (rest)
		add_redacted(&out, url, rest);
	else if (after(url, "sqlite:"))
		str_adds(&out, url);
	else
		str_adds(&out, "***");
	if (!out.failed)
		redacted = arena_strdup(arena, str_text(&out));
	str_release(&out);
	return redacted ? redacted : "***";
}
