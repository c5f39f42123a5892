/* SPDX-License-Identifier: Apache-2.0 */
#include "http/upstream.h"

#include "base/base64.h"
#include "base/json.h"
#include "base/obj.h"
#include "base/utf8.h"
#include "http/access.h"
#include "http/trace.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { KEPT_BYTES_MAX = 4 << 20 };

/* ---- Where it is ---------------------------------------------------------------------------- */

static enum ibid_code check_url(const char *url, struct ibid_err *err)
{
	CURLU *parsed = curl_url();
	char *scheme = NULL, *user = NULL, *query = NULL, *fragment = NULL;
	bool good = parsed && !curl_url_set(parsed, CURLUPART_URL, url, 0) &&
	            !curl_url_get(parsed, CURLUPART_SCHEME, &scheme, 0) &&
	            (strcmp(scheme, "http") == 0 || strcmp(scheme, "https") == 0) &&
	            curl_url_get(parsed, CURLUPART_USER, &user, 0) &&
	            curl_url_get(parsed, CURLUPART_QUERY, &query, 0) &&
	            curl_url_get(parsed, CURLUPART_FRAGMENT, &fragment, 0);
	curl_free(scheme);
	curl_free(user);
	curl_free(query);
	curl_free(fragment);
	curl_url_cleanup(parsed);
	return good ? IBID_OK
	            : err_set(err, IBID_INVALID,
	                      "upstream.url is `%s`: it must be the address of a service, such as "
	                      "http://127.0.0.1:3000",
	                      url);
}

enum ibid_code upstream_new(const struct settings *settings, struct env *env, struct upstream **ret,
                            struct ibid_err *err)
{
	const char *url = settings->upstream;
	if (!url)
		return IBID_OK;
	enum ibid_code code = check_url(url, err);
	if (code)
		return code;
	struct upstream *upstream = calloc(1, sizeof *upstream);
	if (!upstream)
		return err_set(err, IBID_NOMEM, "out of memory");
	size_t size = strlen(url);
	while (size && url[size - 1] == '/')
		size--;
	upstream->settings = settings;
	upstream->base = arena_strndup(&upstream->arena, url, size);
	struct calls_options options = {.authorities = settings->upstream_authorities,
	                                .connect_us = settings->upstream_connect_us};
	code = upstream->base ? calls_new(env, &options, &upstream->calls, err)
	                      : err_set(err, IBID_NOMEM, "out of memory");
	if (code)
		upstream_free(upstream);
	else
		*ret = upstream;
	return code;
}

void upstream_free(struct upstream *upstream)
{
	if (!upstream)
		return;
	calls_free(upstream->calls);
	arena_release(&upstream->arena);
	free(upstream);
}

bool upstream_take_place(struct upstream *upstream, enum place_kind kind)
{
	if (atomic_fetch_add(&upstream->places[kind], 1) < (size_t)upstream->settings->upstream_calls)
		return true;
	atomic_fetch_sub(&upstream->places[kind], 1);
	return false;
}

void upstream_leave_place(struct upstream *upstream, enum place_kind kind)
{
	atomic_fetch_sub(&upstream->places[kind], 1);
}

/* ---- What may go on ------------------------------------------------------------------------- */

static bool is_unreserved(int c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
	       c == '.' || c == '_' || c == '~';
}

/* A segment without a name: empty, or dots; to some who cut parameters off, also before these. */
static bool is_nameless(const char *segment)
{
	size_t dots = strspn(segment, ".");
	const char *end = segment + dots;
	bool ends = *end == '/' || *end == ';' || strncasecmp(end, "%3b", 3) == 0;
	return dots <= 2 && (ends || (!*end && dots));
}

/* A path that everybody reads alike: no segments without names, and nothing written as %XX that
 * could stand there by itself, or that is a slash. */
static bool path_is_plain(const char *path)
{
	if (*path != '/')
		return false;
	for (const char *at = path; *at; at++) {
		if ((unsigned char)*at <= ' ' || *at == '\\' || *at == 0x7f)
			return false;
		if (*at == '/' && is_nameless(at + 1))
			return false;
		if (*at != '%')
			continue;
		char code[3] = {at[1], at[1] ? at[2] : 0, 0};
		char *end;
		long byte = strtol(code, &end, 16);
		if (end != code + 2 || is_unreserved((int)byte) || byte < ' ' || byte == '/' ||
		    byte == '\\' || byte == 0x7f)
			return false;
	}
	return true;
}

static bool is_word(const char *word, size_t size, const char *const *words)
{
	for (; *words; words++)
		if (strlen(*words) == size && strncasecmp(word, *words, size) == 0)
			return true;
	return false;
}

/* What a header `Connection` names is taken out on the way: only what belongs to the connection
 * may be, and nothing that the service must see. */
static bool options_are_plain(const char *value)
{
	static const char *const plain[] = {"close", "keep-alive", "te", "", NULL};
	while (*value) {
		value += strspn(value, " \t,");
		size_t size = strcspn(value, " \t,");
		if (!is_word(value, size, plain))
			return false;
		value += size;
	}
	return true;
}

bool upstream_check_request(struct request *request)
{
	bool many, upgrades;
	const char *connection = request_header(request, "Connection", &many);
	const char *upgrade = request_header(request, "Upgrade", &upgrades);
	const char *wrong = NULL;
	if (request->method[strspn(request->method, "ABCDEFGHIJKLMNOPQRSTUVWXYZ-")])
		wrong = "a method is written in capital letters";
	else if (!path_is_plain(request->path) || strchr(request->uri, '#'))
		wrong = "the path has empty or dot segments, or needless escapes: the service could read "
		        "it differently";
	else if (many || (connection && !options_are_plain(connection)))
		wrong = "Connection may only say close, keep-alive or TE";
	else if (upgrade || upgrades)
		wrong = "a connection can't be upgraded here";
	if (wrong)
		answer_problem(&request->answer, &request->arena, PROBLEM_BAD_REQUEST, "%s", wrong);
	return !wrong;
}

/* ---- Headers -------------------------------------------------------------------------------- */

/* Of one connection only, or made anew for the next; and what would change a request's meaning
 * behind our back. */
static const char *const dropped[] = {"Connection",
                                      "Keep-Alive",
                                      "Proxy-Connection",
                                      "Proxy-Authenticate",
                                      "Proxy-Authorization",
                                      "TE",
                                      "Trailer",
                                      "Transfer-Encoding",
                                      "Upgrade",
                                      "HTTP2-Settings",
                                      "Content-Length",
                                      NULL};
static const char *const dropped_of_kept[] = {"Accept-Encoding", "Range", "Idempotency-Key",
                                              "Ibid-Client-Key", NULL};
static const char *const dropped_of_request[] = {"Host",
                                                 "Expect",
                                                 "X-Forwarded-For",
                                                 "X-Forwarded-Host",
                                                 "X-Forwarded-Proto",
                                                 "X-HTTP-Method",
                                                 "X-HTTP-Method-Override",
                                                 "X-Method-Override",
                                                 "X-Original-URL",
                                                 "X-Rewrite-URL",
                                                 "Ibid-Command-Id",
                                                 "Ibid-Client-Key",
                                                 NULL};

/* Does the service say of this header that it is for the connection only? */
static bool is_option(const struct call *call, const char *name, size_t size)
{
	const char *options;
	size_t left;
	if (!call_header(call, "Connection", &options, &left))
		return false;
	for (const char *end = options + left; options < end;) {
		while (options < end && strchr(" \t,", *options))
			options++;
		const char *from = options;
		while (options < end && !strchr(" \t,", *options))
			options++;
		if ((size_t)(options - from) == size && strncasecmp(from, name, size) == 0)
			return true;
	}
	return false;
}

bool upstream_drops(const struct call *call, const char *name, size_t size)
{
	return is_word(name, size, dropped) || is_option(call, name, size);
}

struct heading {
	struct request *request;
	struct call *call;
	bool keeps;
	bool type, accept; /* the client said it */
	enum ibid_code code;
	struct ibid_err *err;
};

/* `value` may be NULL: there was no memory for it. */
static void add_line(struct heading *heading, const char *name, const char *value)
{
	if (!value && !heading->code)
		heading->code = err_set(heading->err, IBID_NOMEM, "out of memory");
	if (!heading->code)
		heading->code = call_add_header(heading->call, name, value, heading->err);
}

static void leave_out(struct heading *heading, const char *name)
{
	if (!heading->code)
		heading->code = call_leave_out(heading->call, name, heading->err);
}

/* A token of ours is not the service's business, however it is written down. */
static bool is_ours(const char *authorization)
{
	const char *at = authorization;
	while (at && (at = strstr(at, "ibid_"))) {
		if (at == authorization || !isalnum((unsigned char)at[-1]))
			return true;
		at++;
	}
	return false;
}

static void add_header(struct heading *heading, const char *name, const char *value)
{
	const struct request *request = heading->request;
	size_t size = strlen(name);
	heading->type |= strcasecmp(name, "Content-Type") == 0;
	heading->accept |= strcasecmp(name, "Accept") == 0;
	/* X_A is X-A to many a service. */
	if (is_word(name, size, dropped) || is_word(name, size, dropped_of_request) ||
	    strchr(name, '_'))
		return;
	if (strcasecmp(name, "Authorization") == 0 && is_ours(value))
		return;
	if (strcasecmp(name, "traceparent") == 0 && request->trace)
		return; /* its parent is our span */
	/* What is kept is given to whoever asks again, whatever they can unpack. The key that the
	 * service gets is made of the client's and whose it is: others may use the same. */
	if (heading->keeps &&
	    (is_word(name, size, dropped_of_kept) || strncasecmp(name, "If-", 3) == 0))
		return;
	add_line(heading, name, value);
}

/* Who asked, and for what: the service sees only us. */
static void add_forwarded(struct heading *heading)
{
	struct request *request = heading->request;
	const struct sockaddr *from = client_address(request->client);
	char address[INET6_ADDRSTRLEN] = "unknown";
	bool many;
	const char *before = request_header(request, "X-Forwarded-For", &many);
	const char *host = request_header(request, "Host", &many);
	if (from->sa_family == AF_INET)
		inet_ntop(AF_INET, &((const struct sockaddr_in *)from)->sin_addr, address, sizeof address);
	else if (from->sa_family == AF_INET6)
		inet_ntop(AF_INET6, &((const struct sockaddr_in6 *)from)->sin6_addr, address,
		          sizeof address);
	add_line(
	    heading, "X-Forwarded-For",
	    arena_printf(&request->arena, "%s%s%s", before ? before : "", before ? ", " : "", address));
	add_line(heading, "X-Forwarded-Proto",
	         request->server->settings->certificate ? "https" : "http");
	if (host)
		add_line(heading, "X-Forwarded-Host", host);
}

enum ibid_code upstream_add_headers(struct request *request, bool keeps, struct call *call,
                                    struct ibid_err *err)
{
	struct heading heading = {.request = request, .call = call, .keeps = keeps, .err = err};
	const struct head *head = client_head(request->client);
	for (size_t i = 0; i < head->count; i++)
		add_header(&heading, head->fields[i].name, head->fields[i].value);
	/* What libcurl would make up. */
	if (!heading.type)
		leave_out(&heading, "Content-Type");
	if (!heading.accept)
		leave_out(&heading, "Accept");
	leave_out(&heading, "Expect");
	add_line(&heading, "Via", "1.1 ibid");
	if (request->trace)
		add_line(&heading, "traceparent", request->trace->traceparent);
	add_forwarded(&heading);
	return heading.code;
}

/* ---- What is kept --------------------------------------------------------------------------- */

static void keep_header(struct arena *arena, struct str *out, const struct call *call,
                        const char *name)
{
	const char *value;
	size_t size;
	if (!call_header(call, name, &value, &size) || !utf8_ok(value, size) ||
	    is_option(call, name, strlen(name)))
		return;
	obj_text(out, name, arena_strndup(arena, value, size));
}

static void keep_bytes(struct str *out, const struct str *body)
{
	str_adds(out, ",\"base64\":\"");
	base64_add(out, (const unsigned char *)body->data, body->size);
	str_addc(out, '"');
}

static void keep_head(struct arena *arena, struct str *out, const struct call *call,
                      const struct texts *headers)
{
	obj_begin(out, NULL, '{');
	obj_begin(out, "headers", '{');
	keep_header(arena, out, call, "Content-Type");
	keep_header(arena, out, call, "Content-Encoding"); /* though it was not asked for */
	for (size_t i = 0; i < headers->count; i++)
		keep_header(arena, out, call, headers->items[i]);
	obj_end(out, '}');
}

/* {"headers":{...},"text":"..."}; bytes that are no text, or too long as one, stand under "base64";
 * of an answer that is too large only that it was. */
const char *upstream_keep(struct arena *arena, const struct call *call, const struct texts *headers)
{
	struct str out = STR_INIT(KEPT_BYTES_MAX);
	const struct str *body = &call->answer;
	bool text = utf8_ok(str_text(body), body->size);
	keep_head(arena, &out, call, headers);
	if (call->too_large) {
		obj_bool(&out, "tooLarge", true);
		obj_int(&out, "status", call->status);
	} else if (text) {
		str_adds(&out, ",\"text\":");
		str_add_json(&out, str_text(body), body->size);
		if (out.failed) { /* escapes: up to six bytes for one */
			str_release(&out);
			out = STR_INIT(KEPT_BYTES_MAX);
			keep_head(arena, &out, call, headers);
			keep_bytes(&out, body);
		}
	} else {
		keep_bytes(&out, body);
	}
	obj_end(&out, '}');
	const char *kept = out.failed ? NULL : arena_strndup(arena, out.data, out.size);
	str_release(&out);
	return kept;
}

static bool show_bytes(struct arena *arena, const struct json *base64, struct answer *answer)
{
	unsigned char *bytes = arena_alloc(arena, base64->size + 1);
	answer->body = (char *)bytes;
	return bytes && base64_read(base64->text, base64->size, bytes, &answer->size);
}

bool upstream_show(struct arena *arena, const char *kept, size_t size, struct answer *answer)
{
	struct json *root = NULL;
	struct ibid_err err = {0};
	if (json_read(arena, kept, size, 0, &root, &err))
		return false;
	const struct json *headers = json_member(root, "headers"), *text = json_member(root, "text");
	const struct json *base64 = json_member(root, "base64");
	if (!headers || headers->type != JSON_OBJECT)
		return false;
	if (json_member(root, "tooLarge")) {
		const struct json *status = json_member(root, "status");
		answer_problem(answer, arena, PROBLEM_ANSWER_TOO_LARGE,
		               "the service answered %s; what it said has more than "
		               "upstream.limits.answer bytes, or its headers more than %d",
		               status && status->type == JSON_NUMBER ? status->text : "",
		               CALL_HEAD_BYTES_MAX);
		return true;
	}
	answer->type = NULL;
	for (const struct json *header = headers->child; header; header = header->next) {
		if (strcmp(header->name, "Content-Type") == 0)
			answer->type = header->text;
		else
			answer_header(answer, header->name, header->text);
	}
	answer->body = text ? text->text : NULL;
	answer->size = text ? text->size : 0;
	if (base64 && !show_bytes(arena, base64, answer))
		return false;
	if (!answer->size)
		answer->body = NULL;
	return true;
}
