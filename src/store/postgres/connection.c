/* SPDX-License-Identifier: Apache-2.0 */
/* connection.c -- open and close one connection.
 *
 * The URL may hold a password, and libpq quotes pieces of a URL that it can't read: such a message
 * is never passed on. */
#include "store/postgres/postgres.h"

#include <ctype.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- The URL -------------------------------------------------------------------------------- */

/* The parameter in the URL, or NULL. A password may hold a '?' too: the last match is in the query.
 */
static char *find_parameter(char *url, const char *name)
{
	char *found = NULL;
	for (char *at = url; (at = strstr(at, name)); at++)
		if (at > url && (at[-1] == '?' || at[-1] == '&'))
			found = at;
	return found;
}

/* Close the gap: what follows takes its place, or the '?' or '&' before it goes too. */
static void cut_parameter(char *at)
{
	char *end = strchr(at, '&');
	if (end)
		memmove(at, end + 1, strlen(end + 1) + 1);
	else
		at[-1] = '\0';
}

/* Which of two values a parameter of ours has, 0 or 1, out of the URL; -1: it is not there, -2: it
 * has another one. */
static int take_parameter(char *url, const char *name, const char *const values[2])
{
	char *at = find_parameter(url, name);
	if (!at)
		return -1;
	const char *value = at + strlen(name);
	size_t size = strcspn(value, "&");
	int which = -2;
	for (int i = 0; i < 2; i++)
		if (size == strlen(values[i]) && strncmp(value, values[i], size) == 0)
			which = i;
	cut_parameter(at);
	return which;
}

static bool url_is_valid(const char *url)
{
	char *message = NULL;
	PQconninfoOption *options = PQconninfoParse(url, &message);
	bool valid = options;
	/* libpq looks at ports only when it connects, and says the same as for a server that is away.
	 */
	for (const PQconninfoOption *option = options; option && option->keyword; option++) {
		if (strcmp(option->keyword, "port") == 0 && option->val)
			valid = strspn(option->val, "0123456789,") == strlen(option->val);
	}
	PQconninfoFree(options);
	PQfreemem(message);
	return valid;
}

enum ibid_code pg_url_read(const char *url, char **ret_url, struct pg_own *ret,
                           struct ibid_err *err)
{
	static const char *const statements[] = {"named", "unnamed"}, *const lanes[] = {"1", "2"};
	enum ibid_code code = IBID_OK;
	char *copy = strdup(url);
	if (!copy)
		return err_set(err, IBID_NOMEM, "out of memory");
	int unnamed = take_parameter(copy, "statements=", statements);
	int more = take_parameter(copy, "lanes=", lanes);
	if (unnamed < -1)
		code = err_set(err, IBID_INVALID, "the store's URL: statements must be named or unnamed");
	else if (more < -1)
		code = err_set(err, IBID_INVALID, "the store's URL: lanes must be 1 or 2");
	else if (!url_is_valid(copy))
		code = err_set(err, IBID_INVALID, "the store's URL is not a valid PostgreSQL URL");
	if (code) {
		free(copy);
		return code;
	}
	*ret_url = copy;
	*ret = (struct pg_own){.unnamed = unnamed > 0, .lanes = more < 0 ? 0 : (size_t)more + 1};
	return IBID_OK;
}

/* ---- Connecting ----------------------------------------------------------------------------- */

enum { PARAMETERS_MAX = 16 };

struct parameters {
	const char *names[PARAMETERS_MAX], *values[PARAMETERS_MAX];
	size_t count;
	char timeout[16];
};

static void add(struct parameters *p, const char *name, const char *value)
{
	p->names[p->count] = name;
	p->values[p->count++] = value;
}

static bool has_many_hosts(const char *url)
{
	const char *comma = strchr(url, ','), *query = strchr(url, '?');
	return comma && (!query || comma < query);
}

/* What stands before the URL it may override, what stands behind it it may not. */
static void fill(struct parameters *p, const char *url, int timeout_seconds)
{
	*p = (struct parameters){0};
	snprintf(p->timeout, sizeof p->timeout, "%d", timeout_seconds);
	add(p, "connect_timeout", p->timeout);
	add(p, "keepalives_idle", "30");
	add(p, "keepalives_interval", "10");
	add(p, "keepalives_count", "3");
	add(p, "tcp_user_timeout", "30000");
	if (has_many_hosts(url))
		add(p, "target_session_attrs", "read-write"); /* I7: only the primary may be believed */
	add(p, "dbname", url);
	add(p, "client_encoding", "UTF8");
	add(p, "fallback_application_name", "ibid");
}

/* libpq has no SQLSTATE for a refused connection, and its text may be in any language. So ask once
 * more, for the SQLSTATE in the place of the text. */
static enum ibid_code refusal_code(const struct parameters *p)
{
	enum ibid_code code = IBID_OK;
	PGconn *link = PQconnectStartParams(p->names, p->values, 1);
	if (!link || PQstatus(link) == CONNECTION_BAD)
		goto out;
	PQsetErrorVerbosity(link, PQERRORS_SQLSTATE);
	PostgresPollingStatusType status = PGRES_POLLING_WRITING;
	while (status == PGRES_POLLING_WRITING || status == PGRES_POLLING_READING) {
		struct pollfd fd = {PQsocket(link), status == PGRES_POLLING_READING ? POLLIN : POLLOUT, 0};
		if (poll(&fd, 1, 2000) <= 0)
			goto out;
		status = PQconnectPoll(link);
	}
	const char *text = PQerrorMessage(link);
	size_t size = strlen(text);
	while (size && isspace((unsigned char)text[size - 1]))
		size--;
	if (size > 7 && strncmp(text + size - 7, "  ", 2) == 0)
		code = pg_sqlstate_code(text + size - 5);
out:
	PQfinish(link);
	return code;
}

static enum ibid_code say_refused(struct pg_store *store, const PGconn *link,
                                  const struct parameters *p, int64_t took_us, struct ibid_err *err)
{
	const char *text = PQerrorMessage(link);
	int size = (int)strlen(text);
	/* A server that did not answer for so long won't say more now. */
	enum ibid_code code = took_us < 2000000 ? refusal_code(p) : IBID_OK;
	while (size && text[size - 1] == '\n')
		size--;
	if (code != IBID_DENIED && code != IBID_NOT_FOUND)
		code = IBID_UNAVAILABLE;
	LOG(&store->log, IBID_LOG_WARN, "store.connect_failed",
	    {"code", log_text(ibid_code_name(code))});
	return err_set(err, code, "%.*s", size, text);
}

/* A notice is for people at a terminal, and a library never prints. */
static void ignore_notice(void *user, const PGresult *result)
{
	(void)user;
	(void)result;
}

/* Our splitter reads quotations as the server does with this setting on, its default since 9.1. */
static enum ibid_code check_server(PGconn *link, struct ibid_err *err)
{
	const char *strings = PQparameterStatus(link, "standard_conforming_strings");
	if (strings && strcmp(strings, "on") != 0)
		return err_set(err, IBID_SCHEMA,
		               "standard_conforming_strings is off; set it to on for this role");
	if (!PQenterPipelineMode(link))
		return err_set(err, IBID_UNAVAILABLE, "the connection can't be pipelined");
	return IBID_OK;
}

enum ibid_code pg_connect(struct pg_store *store, int timeout_seconds, struct pg_conn **ret,
                          struct ibid_err *err)
{
	struct parameters p;
	enum ibid_code code = IBID_OK;
	struct pg_conn *conn = calloc(1, sizeof *conn);
	if (!conn)
		return err_set(err, IBID_NOMEM, "out of memory");
	fill(&p, store->url, timeout_seconds);
	conn->unnamed = store->own.unnamed;
	conn->hook = &store->base.hook;
	int64_t from_us = env_steady_us(store->env);
	conn->link = PQconnectdbParams(p.names, p.values, 1);
	if (!conn->link)
		code = err_set(err, IBID_NOMEM, "out of memory");
	else if (PQstatus(conn->link) != CONNECTION_OK)
		code = say_refused(store, conn->link, &p, env_steady_us(store->env) - from_us, err);
	else
		code = check_server(conn->link, err);
	if (code) {
		pg_disconnect(conn);
		return code;
	}
	PQsetNoticeReceiver(conn->link, ignore_notice, NULL);
	*ret = conn;
	return IBID_OK;
}

void pg_disconnect(struct pg_conn *conn)
{
	if (!conn)
		return;
	PQclear(conn->refused);
	PQfinish(conn->link);
	free(conn->prepared);
	free(conn);
}
