/* SPDX-License-Identifier: Apache-2.0 */
#include "http/route.h"

#include <string.h>

static const struct route own[] = {
    {"GET", "/healthz", run_health, .open = true, .summary = "Is the process alive?"},
    {"GET", "/readyz", run_ready, .open = true,
     .summary = "Can it take commands? Says what is not ready"},
    {"GET", "/metrics", run_metrics, .open = true,
     .summary = "What the server counts and measures, in Prometheus' text format"},
    {"GET", "/problems/{problem}", run_problem, .open = true,
     .summary = "What a type of problem means"},
    {"POST", "/v1/commands/{operation}", run_operation, .takes_body = true,
     .summary = "Bring one command to its outcome"},
    {"GET", "/v1/commands", list_commands, .summary = "List commands, the newest first"},
    {"GET", "/v1/commands/{operation}/{key}", show_command,
     .summary = "Look a command up by its key"},
    {"GET", "/v1/operations/{id}", show_operation,
     .summary = "State of a command, its result, and what is awaited"},
};
enum { OWN = sizeof own / sizeof *own };

/* ---- Making --------------------------------------------------------------------------------- */

/* Is there a path that fits both? A parameter fits any segment that is not empty. */
static bool meet(const char *a, const char *b)
{
	for (;;) {
		size_t a_size = strcspn(a, "/"), b_size = strcspn(b, "/");
		bool any = *a == '{' || *b == '{';
		if (any ? !a_size || !b_size : a_size != b_size || memcmp(a, b, a_size) != 0)
			return false;
		a += a_size;
		b += b_size;
		if (!*a || !*b)
			return !*a && !*b;
		a++;
		b++;
	}
}

static enum ibid_code check_free(const struct route *routes, size_t count,
                                 const struct route *added, struct ibid_err *err)
{
	const struct contract *contract = added->contract;
	for (size_t i = 0; i < count; i++) {
		if (strcmp(routes[i].method, added->method) != 0 || !meet(routes[i].path, added->path))
			continue;
		return err_set(err, IBID_CONTRACT, "%s: route %s leads to %s already", contract->file,
		               contract->route,
		               routes[i].contract ? routes[i].contract->name : "the server itself");
	}
	return IBID_OK;
}

enum ibid_code routes_make(const struct contracts *contracts, struct routes *ret,
                           struct ibid_err *err)
{
	size_t count = contracts_count(contracts);
	struct routes routes = {0};
	struct route *items = arena_array(&routes.arena, OWN + count, sizeof *items);
	enum ibid_code code = items ? IBID_OK : err_set(err, IBID_NOMEM, "out of memory");
	if (!code)
		memcpy(items, own, sizeof own);
	routes.count = OWN;
	for (size_t i = 0; !code && i < count; i++) {
		const struct contract *contract = contracts_at(contracts, i);
		const char *space = strchr(contract->route, ' ');
		if (!space)
			continue;
		struct route route = {
		    .method = arena_strndup(&routes.arena, contract->route,
		                            (size_t)(space - contract->route)),
		    .path = space + 1,
		    .run = run_command,
		    .contract = contract,
		    .takes_body = true,
		    .summary = contract->fact,
		};
		code = route.method ? check_free(items, routes.count, &route, err)
		                    : err_set(err, IBID_NOMEM, "out of memory");
		items[routes.count++] = route;
	}
	routes.items = items;
	if (code)
		routes_release(&routes);
	else
		*ret = routes;
	return code;
}

void routes_release(struct routes *routes)
{
	arena_release(&routes->arena);
	*routes = (struct routes){0};
}

/* ---- Finding -------------------------------------------------------------------------------- */

bool route_param(const char **at, const char **ret_name, size_t *ret_size)
{
	const char *open = strchr(*at, '{');
	if (!open)
		return false;
	*ret_name = open + 1;
	*ret_size = strcspn(open + 1, "}");
	*at = open + 1 + *ret_size;
	return true;
}

static int hex(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

char *route_decode(struct arena *arena, const char *text, size_t size)
{
	char *decoded = arena_strndup(arena, text, size), *to = decoded;
	for (size_t i = 0; decoded && i < size; i++) {
		if (text[i] != '%') {
			*to++ = text[i];
			continue;
		}
		int high = i + 2 < size ? hex(text[i + 1]) : -1, low = high >= 0 ? hex(text[i + 2]) : -1;
		if (low < 0 || (high | low) == 0)
			return NULL;
		*to++ = (char)(high << 4 | low);
		i += 2;
	}
	if (decoded)
		*to = 0;
	return decoded;
}

static bool take_values(const struct route *route, const char *path, struct arena *arena,
                        const char *values[ROUTE_PARAMS_MAX])
{
	const char *pattern = route->path;
	for (size_t count = 0;;) {
		size_t size = strcspn(path, "/");
		if (*pattern == '{') {
			if (count == ROUTE_PARAMS_MAX || !(values[count++] = route_decode(arena, path, size)))
				return false;
		}
		pattern += strcspn(pattern, "/");
		path += size;
		if (!*pattern)
			return true;
		pattern++;
		path++;
	}
}

const struct route *routes_find(const struct routes *routes, const char *method, const char *path,
                                struct arena *arena, const char *values[ROUTE_PARAMS_MAX],
                                const char **ret_allow, bool *ret_bad)
{
	const struct route *found = NULL;
	const char *allow = NULL;
	for (size_t i = 0; i < routes->count && !found; i++) {
		const struct route *route = &routes->items[i];
		if (!meet(route->path, path))
			continue;
		if (strcmp(route->method, method) == 0)
			found = route;
		else
			allow = allow ? arena_printf(arena, "%s, %s", allow, route->method) : route->method;
	}
	*ret_allow = found ? NULL : allow;
	*ret_bad = found && !take_values(found, path, arena, values);
	return found;
}
