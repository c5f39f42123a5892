/* SPDX-License-Identifier: Apache-2.0 */
#include "http/settings.h"

#include "base/instant.h"
#include "contract/payload.h"
#include "contract/yaml.h"

#include <ctype.h>
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum kind { TEXT, NUMBER, BYTES, DURATION };

struct setting {
	const char *name; /* in the file, with dots for mappings */
	enum kind kind;
	size_t offset;
	const char *otherwise; /* NULL: none */
	int64_t least, most;
	const char *meaning;
};

#define AT(member) offsetof(struct settings, member)
static const struct setting table[] = {
    {"store", TEXT, AT(store), NULL, 0, 0, "sqlite:PATH or postgres://USER@HOST/DATABASE"},
    {"contracts", TEXT, AT(contracts), NULL, 0, 0, "directory of contract files"},
    {"key_file", TEXT, AT(key_file), NULL, 0, 0, "keys of encrypted payloads"},
    {"http.listen", TEXT, AT(listen), "127.0.0.1:8080", 0, 0,
     "address and port; [::1]:8080 for IPv6; port 0 takes a free one"},
    {"http.prefix", TEXT, AT(prefix), NULL, 0, 0,
     "begins the paths of the server's own routes, such as /ibid; /problems stays"},
    {"http.tls.certificate", TEXT, AT(certificate), NULL, 0, 0, "PEM file; with http.tls.key"},
    {"http.tls.key", TEXT, AT(private_key), NULL, 0, 0, "PEM file of the certificate's key"},
    {"http.open.tenant", TEXT, AT(open_tenant), NULL, 0, 0,
     "whose are requests without a token; on loopback only"},
    {"http.open.client", TEXT, AT(open_client), "local", 0, 0, "likewise: which client they are"},
    {"http.threads", NUMBER, AT(threads), "8", 1, 256, "threads that run commands"},
    {"http.connections", NUMBER, AT(connections), "0", 0, 1000,
     "connections to PostgreSQL at most; 0: two more than threads"},
    {"http.in_progress", NUMBER, AT(in_progress), "409", 409, 425,
     "status for a command whose twin runs: 409 or 425"},
    {"http.replay_memory", DURATION, AT(replay_memory_us), "5s", 0, 60000000,
     "how long a duplicate that came is remembered: the next ones need no store, where no body is "
     "kept"},
    {"http.limits.body", BYTES, AT(body_bytes), "1MiB", 1, 4 << 20, "bytes of a request's body"},
    {"http.limits.headers", BYTES, AT(header_bytes), "32KiB", 4 << 10, 1 << 20,
     "bytes of a request's line and headers, which are 128 lines at most"},
    {"http.limits.memory", BYTES, AT(memory_bytes), "32MiB", 4 << 20, INT64_C(64) << 30,
     "bytes that bodies and answers hold together, beside what each connection has"},
    {"http.limits.connections", NUMBER, AT(connections_max), "1000", 1, 100000,
     "connections of clients at once"},
    {"http.limits.request", DURATION, AT(request_us), "30s", 1000000, 3600000000,
     "how long a client may take to send a request, and to read its answer"},
    {"http.limits.idle", DURATION, AT(idle_us), "60s", 1000000, 3600000000,
     "how long a connection may be idle"},
    {"http.limits.queue", NUMBER, AT(queue), "4096", 2, 1000000,
     "commands on their way at once; one tenant has half of that"},
    {"http.limits.rate", NUMBER, AT(rate), "0", 0, 1000000,
     "requests a second, and at once, of one token; 0: any number"},
    {"upstream.url", TEXT, AT(upstream), NULL, 0, 0,
     "the service behind this one, such as http://127.0.0.1:3000"},
    {"upstream.other", TEXT, AT(upstream_other), "safe", 0, 0,
     "requests that no contract names: safe passes GET, HEAD and OPTIONS on, all any, none none"},
    {"upstream.calls", NUMBER, AT(upstream_calls), "256", 1, 10000,
     "requests at the service at once"},
    {"upstream.connect", DURATION, AT(upstream_connect_us), "2s", 1000, 3600000000,
     "how long connecting to it may take"},
    {"upstream.deadline", DURATION, AT(upstream_deadline_us), "5m", 1000, 86400000000,
     "how long a request may take that is passed on without a contract"},
    {"upstream.authorities", TEXT, AT(upstream_authorities), NULL, 0, 0,
     "PEM file of who vouches for it; otherwise the system's"},
    {"upstream.limits.answer", BYTES, AT(answer_bytes), "1MiB", 1, 2 << 20,
     "bytes of an answer that is kept"},
    {"upstream.limits.body", BYTES, AT(pass_bytes), "1024MiB", 1, 1 << 30,
     "bytes of a body that is passed on without a contract"},
    {"relay.lease", DURATION, AT(relay_lease_us), "15s", 1000000, 3600000000,
     "after which another relay takes over from one that says nothing any more"},
    {"relay.batch", NUMBER, AT(relay_batch), "2000", 1, 100000, "events sent together at most"},
    {"relay.metrics_listen", TEXT, AT(relay_metrics), NULL, 0, 0,
     "where `ibid relay` answers /metrics and /healthz, such as 127.0.0.1:9464; otherwise nowhere"},
    {"http.drain", DURATION, AT(drain_us), "30s", 1, 3600000000,
     "how long to finish requests after SIGTERM"},
};
#undef AT
enum { SETTINGS = sizeof table / sizeof *table, FILE_BYTES_MAX = 1 << 20 };

/* ---- Values --------------------------------------------------------------------------------- */

static bool read_bytes(const char *text, int64_t *ret)
{
	char *end;
	errno = 0;
	long long value = isdigit((unsigned char)*text) ? strtoll(text, &end, 10) : -1;
	if (value < 0 || errno || value > INT32_MAX)
		return false;
	if (strcmp(end, "KiB") == 0)
		value <<= 10;
	else if (strcmp(end, "MiB") == 0)
		value <<= 20;
	else if (*end)
		return false;
	*ret = value;
	return true;
}

static const char *const wanted[] = {
    [NUMBER] = "a whole number",
    [BYTES] = "a number of bytes such as 65536, 64KiB or 1MiB",
    [DURATION] = "a duration such as 500ms, 30s or 10m",
};

static enum ibid_code store_value(const struct setting *setting, const char *text,
                                  const char *where, void *base, struct ibid_err *err)
{
	void *target = (char *)base + setting->offset;
	int64_t value = 0;
	if (setting->kind == TEXT) {
		*(const char **)target = *text ? text : NULL;
		return IBID_OK;
	}
	bool none = setting->kind == DURATION && !setting->least && strcmp(text, "0s") == 0;
	bool good = none || (setting->kind == DURATION ? duration_read(text, &value)
	                                               : read_bytes(text, &value));
	if (setting->kind == NUMBER && good)
		good = isdigit((unsigned char)text[strlen(text) - 1]);
	if (!good)
		return err_set(err, IBID_INVALID, "%s: %s is `%s`: it must be %s", where, setting->name,
		               text, wanted[setting->kind]);
	if (value < setting->least || value > setting->most)
		return err_set(err, IBID_INVALID, "%s: %s is `%s`: it must be %s from %lld to %lld%s",
		               where, setting->name, text, wanted[setting->kind], (long long)setting->least,
		               (long long)setting->most, setting->kind == DURATION ? " microseconds" : "");
	*(int64_t *)target = value;
	return IBID_OK;
}

static const struct setting *find(const char *name, size_t size)
{
	for (size_t i = 0; i < SETTINGS; i++)
		if (strlen(table[i].name) == size && memcmp(table[i].name, name, size) == 0)
			return &table[i];
	return NULL;
}

/* relay.destinations.NAME...: the later one counts, as for every setting. */
static const char destinations[] = "relay.destinations.";

static bool is_named(const char *name)
{
	return strncmp(name, destinations, sizeof destinations - 1) == 0;
}

static enum ibid_code store_named(struct arena *arena, const char *name, const char *value,
                                  const char *where, struct settings *ret, struct ibid_err *err)
{
	const struct destination_setting setting = {
	    .name = arena_strdup(arena, name + sizeof destinations - 1),
	    .value = arena_strdup(arena, value),
	    .where = arena_strdup(arena, where),
	};
	if (!ret->destinations)
		ret->destinations = arena_array(arena, DESTINATION_SETTINGS_MAX, sizeof *ret->destinations);
	if (!ret->destinations || !setting.name || !setting.value || !setting.where)
		return err_set(err, IBID_NOMEM, "out of memory");
	size_t at = 0;
	while (at < ret->destination_count && strcmp(ret->destinations[at].name, setting.name) != 0)
		at++;
	if (at == DESTINATION_SETTINGS_MAX)
		return err_set(err, IBID_INVALID, "%s: more than %d settings of destinations", where,
		               DESTINATION_SETTINGS_MAX);
	ret->destinations[at] = setting;
	ret->destination_count += at == ret->destination_count;
	return IBID_OK;
}

/* ---- From the file -------------------------------------------------------------------------- */

static enum ibid_code read_file(struct arena *arena, const char *file, struct node **ret,
                                struct ibid_err *err)
{
	struct yaml_error wrong;
	FILE *in = fopen(file, "rbe");
	if (!in)
		return err_set(err, IBID_INVALID, "%s: %s", file, strerror(errno));
	char *bytes = arena_alloc(arena, FILE_BYTES_MAX + 1);
	size_t size = bytes ? fread(bytes, 1, FILE_BYTES_MAX + 1, in) : 0;
	bool failed = ferror(in);
	fclose(in);
	if (!bytes)
		return err_set(err, IBID_NOMEM, "out of memory");
	if (failed)
		return err_set(err, IBID_INVALID, "%s: it can't be read", file);
	enum ibid_code code = yaml_read(arena, file, bytes, size, FILE_BYTES_MAX, ret, &wrong);
	if ((code == IBID_INVALID || code == IBID_LIMIT) && wrong.line)
		return err_set(err, IBID_INVALID, "%s:%d: %s", file, wrong.line, wrong.text);
	if (code == IBID_INVALID || code == IBID_LIMIT)
		return err_set(err, IBID_INVALID, "%s: %s", file, wrong.text);
	return code ? err_set(err, IBID_NOMEM, "out of memory") : IBID_OK;
}

static enum ibid_code take_node(struct arena *arena, const struct node *node, const char *prefix,
                                struct settings *ret, struct ibid_err *err)
{
	enum ibid_code code = IBID_OK;
	for (const struct node *child = node->child; !code && child; child = child->next) {
		const char *name = arena_printf(arena, "%s%s%s", prefix, *prefix ? "." : "", child->name);
		const char *where = arena_printf(arena, "%s:%d", child->file, child->line);
		if (!name || !where)
			return err_set(err, IBID_NOMEM, "out of memory");
		const struct setting *setting = find(name, strlen(name));
		if (child->type == NODE_MAP && !setting)
			code = take_node(arena, child, name, ret, err);
		else if (is_named(name) && child->type == NODE_TEXT)
			code = store_named(arena, name, child->text, where, ret, err);
		else if (!setting)
			code = err_set(err, IBID_INVALID,
			               "%s: there is no setting %s; `ibid help settings` lists them", where,
			               name);
		else if (child->type != NODE_TEXT)
			code = err_set(err, IBID_INVALID, "%s: %s must be one value", where, name);
		else
			code = store_value(setting, child->text, where, ret, err);
	}
	return code;
}

static enum ibid_code take_file(struct arena *arena, const char *file, struct settings *ret,
                                struct ibid_err *err)
{
	struct node *root = NULL;
	enum ibid_code code = read_file(arena, file, &root, err);
	if (code)
		return code;
	if (root->type == NODE_TEXT && !*root->text)
		return IBID_OK; /* an empty file */
	if (root->type != NODE_MAP)
		return err_set(err, IBID_INVALID, "%s: it must be a mapping such as `store: sqlite:pay.db`",
		               file);
	return take_node(arena, root, "", ret, err);
}

/* ---- From the environment and the command line ---------------------------------------------- */

/* "http.limits.body" is IBID_HTTP_LIMITS_BODY. */
static void variable_of(const struct setting *setting, char ret[64])
{
	size_t size = (size_t)snprintf(ret, 64, "IBID_%s", setting->name);
	for (size_t i = 0; i < size; i++)
		ret[i] = ret[i] == '.' ? '_' : (char)toupper((unsigned char)ret[i]);
}

/* Does it begin as settings of a section do, IBID_HTTP_ and the like, and is none? */
static bool is_unknown(const char *variable, size_t size)
{
	bool section = false;
	for (size_t i = 0; i < SETTINGS; i++) {
		char known[64];
		variable_of(&table[i], known);
		size_t begins = strcspn(table[i].name, ".") + sizeof "IBID_" - 1;
		if (strlen(known) == size && memcmp(known, variable, size) == 0)
			return false;
		section |= known[begins] && strncmp(known, variable, begins + 1) == 0;
	}
	return section;
}

static enum ibid_code take_environment(struct settings *ret, struct ibid_err *err)
{
	enum ibid_code code = IBID_OK;
	for (char **at = environ; *at; at++) {
		size_t size = strcspn(*at, "=");
		if (is_unknown(*at, size))
			return err_set(err, IBID_INVALID,
			               "there is no setting for %.*s in the environment; `ibid help settings` "
			               "lists them",
			               (int)size, *at);
	}
	for (size_t i = 0; !code && i < SETTINGS; i++) {
		char variable[64];
		variable_of(&table[i], variable);
		const char *text = getenv(variable);
		if (text)
			code = store_value(&table[i], text, variable, ret, err);
	}
	return code;
}

static enum ibid_code take_given(struct arena *arena, const char *given, struct settings *ret,
                                 struct ibid_err *err)
{
	const char *equals = strchr(given, '=');
	const struct setting *setting = equals ? find(given, (size_t)(equals - given)) : NULL;
	if (!equals)
		return err_set(err, IBID_INVALID, "`%s` is no setting: write NAME=VALUE", given);
	if (is_named(given)) {
		const char *name = arena_strndup(arena, given, (size_t)(equals - given));
		return name ? store_named(arena, name, equals + 1, "the command line", ret, err)
		            : err_set(err, IBID_NOMEM, "out of memory");
	}
	if (!setting)
		return err_set(err, IBID_INVALID,
		               "there is no setting %.*s; `ibid help settings` lists them",
		               (int)(equals - given), given);
	return store_value(setting, equals + 1, "the command line", ret, err);
}

static enum ibid_code check(const struct settings *settings, struct ibid_err *err)
{
	const char *missing = !settings->store ? "store" : !settings->contracts ? "contracts" : NULL;
	if (missing)
		return err_set(err, IBID_INVALID,
		               "no %s: give --%s, set %s, or write the setting `%s` into the file of "
		               "--config; `ibid help settings` says what it is",
		               missing, missing, settings->store ? "IBID_CONTRACTS" : "IBID_STORE",
		               missing);
	if (!settings->certificate != !settings->private_key)
		return err_set(err, IBID_INVALID,
		               "http.tls.certificate and http.tls.key go together: %s is missing",
		               settings->certificate ? "http.tls.key" : "http.tls.certificate");
	if (settings->in_progress != 409 && settings->in_progress != 425)
		return err_set(err, IBID_INVALID, "http.in_progress must be 409 or 425");
	if (settings->prefix && (*settings->prefix != '/' || strpbrk(settings->prefix, " {}?#%") ||
	                         settings->prefix[strlen(settings->prefix) - 1] == '/'))
		return err_set(
		    err, IBID_INVALID,
		    "http.prefix is `%s`: it must be a path such as /ibid, without a slash at its "
		    "end",
		    settings->prefix);
	if ((settings->open_tenant && strlen(settings->open_tenant) > NAME_BYTES_MAX) ||
	    (settings->open_client && strlen(settings->open_client) > NAME_BYTES_MAX))
		return err_set(err, IBID_INVALID,
		               "http.open.tenant and http.open.client have %d bytes at most",
		               NAME_BYTES_MAX);
	static const char *const other[] = {"safe", "all", "none", NULL};
	for (const char *const *at = other; settings->upstream_other; at++) {
		if (!*at)
			return err_set(err, IBID_INVALID,
			               "upstream.other is `%s`: it must be safe, all or none",
			               settings->upstream_other);
		if (strcmp(*at, settings->upstream_other) == 0)
			break;
	}
	return IBID_OK;
}

enum ibid_code settings_read(struct arena *arena, const char *file, const char *const *given,
                             size_t given_count, struct settings *ret, struct ibid_err *err)
{
	enum ibid_code code = IBID_OK;
	*ret = (struct settings){0};
	for (size_t i = 0; !code && i < SETTINGS; i++)
		if (table[i].otherwise)
			code = store_value(&table[i], table[i].otherwise, "the defaults", ret, err);
	if (!code && file)
		code = take_file(arena, file, ret, err);
	if (!code)
		code = take_environment(ret, err);
	for (size_t i = 0; !code && i < given_count; i++)
		code = take_given(arena, given[i], ret, err);
	return code ? code : check(ret, err);
}

enum ibid_code settings_of_file(struct arena *arena, const char *file, struct settings *ret,
                                struct ibid_err *err)
{
	*ret = (struct settings){0};
	return take_file(arena, file, ret, err);
}

void settings_describe(struct str *out)
{
	for (size_t i = 0; i < SETTINGS; i++) {
		char variable[64];
		variable_of(&table[i], variable);
		str_addf(out, "  %-24s  %s%s%s%s\n  %-24s  %s\n", table[i].name, table[i].meaning,
		         table[i].otherwise ? " (" : "", table[i].otherwise ? table[i].otherwise : "",
		         table[i].otherwise ? ")" : "", "", variable);
	}
	str_addf(out, "  %-24s  %s\n", "relay.destinations.NAME...",
	         "where events go, and how: docs/destinations.md");
}

struct relays_options settings_relays(const struct settings *settings, struct log log)
{
	return (struct relays_options){
	    .store = settings->store,
	    .contracts = settings->contracts,
	    .settings = settings->destinations,
	    .setting_count = settings->destination_count,
	    .lease_us = settings->relay_lease_us,
	    .batch = (size_t)settings->relay_batch,
	    .env = env_system(),
	    .log = log,
	};
}
