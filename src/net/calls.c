/* SPDX-License-Identifier: Apache-2.0 */
/* calls.c -- libcurl's multi interface, driven by one thread.
 *
 * The lock guards the list of calls and the calls' flags. Only the thread calls libcurl and the
 * callbacks, without holding the lock. */
#include "net/calls.h"

#include "net/address.h"
#include "net/header.h"

#include <assert.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum {
	POLL_US = 1000000,
	ROOM_PAUSE_US = 100000,
	LINE_BYTES_MAX = 2 << 20,
	LENGTH_DIGITS_MAX = 18, /* of a length: 64 bits hold all of these */
};

struct calls {
	struct env *env;
	struct calls_options options;
	CURLM *multi;
	pthread_t thread;
	pthread_mutex_t lock;
	struct call *list; /* made, and without an end */
	int64_t ask_at_us; /* when those that wait for room ask again */
	bool ends;
};

/* ---- Headers --------------------------------------------------------------------------------- */

static enum ibid_code add_line(struct call *call, const struct str *line, struct ibid_err *err)
{
	struct curl_slist *longer = line->failed ? NULL
	                                         : curl_slist_append(call->headers, str_text(line));
	if (!longer)
		return err_set(err, IBID_NOMEM, "out of memory");
	call->headers = longer;
	return IBID_OK;
}

enum ibid_code call_add_header(struct call *call, const char *name, const char *value,
                               struct ibid_err *err)
{
	struct str line = STR_INIT(LINE_BYTES_MAX);
	if (!header_name_ok(name))
		return err_set(err, IBID_INVALID, "a header's name has bytes that HTTP does not allow");
	if (!header_value_ok(value))
		return err_set(err, IBID_INVALID, "the value of the header %s has a control character",
		               name);
	value += strspn(value, " \t");
	/* `Name:` would take the header away. */
	str_addf(&line, *value ? "%s: %s" : "%s;", name, value);
	enum ibid_code code = add_line(call, &line, err);
	str_release(&line);
	return code;
}

enum ibid_code call_leave_out(struct call *call, const char *name, struct ibid_err *err)
{
	struct str line = STR_INIT(LINE_BYTES_MAX);
	assert(header_name_ok(name));
	str_addf(&line, "%s:", name);
	enum ibid_code code = add_line(call, &line, err);
	str_release(&line);
	return code;
}

/* ---- What libcurl asks for ------------------------------------------------------------------ */

/* One line: another parser could take a carriage return within it for the end of the line. */
static bool is_plain(const char *line, size_t size)
{
	while (size && (line[size - 1] == '\n' || line[size - 1] == '\r'))
		size--;
	for (size_t i = 0; i < size; i++)
		if (((unsigned char)line[i] < ' ' && line[i] != '\t') || line[i] == 0x7f)
			return false;
	return true;
}

/* The value of a header in a line that may end with a line feed. */
static bool read_header(const char *line, size_t size, const char *name, const char **ret,
                        size_t *ret_size)
{
	size_t named = strlen(name);
	if (size <= named || line[named] != ':' || strncasecmp(line, name, named) != 0)
		return false;
	const char *value = line + named + 1, *end = line + size;
	while (value < end && strchr(" \t", *value))
		value++;
	while (end > value && strchr(" \t\r\n", end[-1]))
		end--;
	*ret = value;
	*ret_size = (size_t)(end - value);
	return true;
}

/* Two lengths are two answers to two readers, and libcurl takes one that it can't hold for none. */
static bool length_is_plain(const struct call *call, const char *line, size_t size)
{
	static const char name[] = "Content-Length";
	const char *value, *known;
	size_t digits, known_size;
	if (!read_header(line, size, name, &value, &digits))
		return true;
	for (size_t i = 0; i < digits; i++)
		if (value[i] < '0' || value[i] > '9')
			return false;
	return digits && digits <= LENGTH_DIGITS_MAX &&
	       (!call_header(call, name, &known, &known_size) ||
	        (known_size == digits && memcmp(known, value, digits) == 0));
}

static bool encoding_is_plain(const struct call *call, const char *line, size_t size)
{
	static const char name[] = "Transfer-Encoding", chunked[] = "chunked";
	const char *value, *known;
	size_t value_size, known_size;
	if (!read_header(line, size, name, &value, &value_size))
		return true;
	return !call->old && value_size == sizeof chunked - 1 &&
	       strncasecmp(value, chunked, value_size) == 0 &&
	       !call_header(call, name, &known, &known_size);
}

/* Some read "Content-Length : 1" or a folded line as a header, and some do not. */
static bool name_is_plain(const char *line, size_t size)
{
	size_t at = 0;
	while (at < size && header_name_byte_ok(line[at]))
		at++;
	return at == size || line[at] == ':' || (at == 0 && (*line == '\r' || *line == '\n'));
}

/* A status line may only begin a head: inside one it would hide the lines before it. */
static bool line_is_plain(const struct call *call, bool is_status, const char *line, size_t size)
{
	if (is_status)
		return !call->in_head;
	return name_is_plain(line, size) && length_is_plain(call, line, size) &&
	       encoding_is_plain(call, line, size);
}

/* The whole head: with both a length and chunks, the end of the body is ambiguous. */
static bool head_is_plain(const struct call *call)
{
	const char *value;
	size_t size;
	return !call_header(call, "Content-Length", &value, &size) ||
	       !call_header(call, "Transfer-Encoding", &value, &size);
}

static size_t on_head(char *bytes, size_t one, size_t size, void *user)
{
	struct call *call = user;
	(void)one;
	if (call->headed)
		return size; /* others read the head by now */
	bool is_status = size > 5 && memcmp(bytes, "HTTP/", 5) == 0;
	bool last = size <= 2 && (*bytes == '\r' || *bytes == '\n');
	if (!line_is_plain(call, is_status, bytes, size) || (last && !head_is_plain(call))) {
		call->ambiguous = true;
		return 0;
	}
	if (is_status) {
		str_clear(&call->answer_head); /* what came before was preliminary */
		call->old = size > 8 && memcmp(bytes, "HTTP/1.0", 8) == 0;
	} else if (is_plain(bytes, size)) {
		str_add(&call->answer_head, bytes, size);
	}
	call->too_large |= call->answer_head.failed;
	long status = 0;
	call->in_head = !last;
	curl_easy_getinfo(call->easy, CURLINFO_RESPONSE_CODE, &status);
	call->status = (int)status;
	call->headed = last && status >= 200;
	if (call->headed && call->head)
		call->head(call);
	return size;
}

static size_t on_body(char *bytes, size_t one, size_t size, void *user)
{
	struct call *call = user;
	(void)one;
	if (call->take)
		return call->take(call, bytes, size);
	if (!call->too_large && call->room && !call->room(call, call->answer.size + size)) {
		call->waits = true;
		return CURL_WRITEFUNC_PAUSE;
	}
	if (!call->too_large)
		str_add(&call->answer, bytes, size);
	call->too_large |= call->answer.failed;
	return size;
}

static size_t on_more(char *to, size_t one, size_t room, void *user)
{
	struct call *call = user;
	return call->more(call, to, one * room);
}

/* Checks the address of the connection itself: the name can't resolve to another one later. */
static curl_socket_t on_socket(void *user, curlsocktype purpose, struct curl_sockaddr *address)
{
	struct call *call = user;
	(void)purpose;
	if (!address_is_public(&address->addr)) {
		call->off_limits = !call->reachable;
		return CURL_SOCKET_BAD;
	}
	call->reachable = true;
	call->off_limits = false;
	return socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
}

/* There is a connection, and nothing was sent on it. */
static int on_ready(void *user, char *address, char *own_address, int port, int own_port)
{
	const struct call *call = user;
	(void)address, (void)own_address, (void)port, (void)own_port;
	bool late = (call->send_by_us && env_steady_us(call->env) > call->send_by_us) ||
	            (call->send_by_wall_us && env_wall_us(call->env) > call->send_by_wall_us);
	return late ? CURL_PREREQFUNC_ABORT : CURL_PREREQFUNC_OK;
}

/* Asked now and then. */
static int on_progress(void *user, curl_off_t to_come, curl_off_t came, curl_off_t to_go,
                       curl_off_t gone)
{
	const struct call *call = user;
	(void)to_come, (void)came, (void)to_go, (void)gone;
	return call->stop && atomic_load(call->stop);
}

/* ---- One call ------------------------------------------------------------------------------- */

static long milliseconds(int64_t us)
{
	return (long)(us / 1000 > 0 ? us / 1000 : 1);
}

static void set_body(CURL *easy, struct call *call)
{
	if (call->more) {
		curl_easy_setopt(easy, CURLOPT_UPLOAD, 1L);
		curl_easy_setopt(easy, CURLOPT_READFUNCTION, on_more);
		curl_easy_setopt(easy, CURLOPT_READDATA, call);
		curl_easy_setopt(easy, CURLOPT_INFILESIZE_LARGE, (curl_off_t)call->length);
	} else if (call->body) {
		curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)call->body_size);
		curl_easy_setopt(easy, CURLOPT_POSTFIELDS, call->body);
	} else if (strcmp(call->method, "HEAD") == 0) {
		curl_easy_setopt(easy, CURLOPT_NOBODY, 1L);
	}
	curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, call->method);
}

static enum ibid_code prepare(const struct calls *calls, struct call *call, struct ibid_err *err)
{
	int64_t connect_us = calls->options.connect_us < call->deadline_us ? calls->options.connect_us
	                                                                   : call->deadline_us;
	CURL *easy = curl_easy_init();
	if (!easy)
		return err_set(err, IBID_NOMEM, "out of memory");
	call->easy = easy;
	call->env = calls->env;
	call->began_us = env_steady_us(calls->env);
	call->answer_head = STR_INIT(CALL_HEAD_BYTES_MAX);
	call->answer = STR_INIT(call->answer_max);
	curl_easy_setopt(easy, CURLOPT_PRIVATE, call);
	curl_easy_setopt(easy, CURLOPT_URL, call->url);
	curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
	curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, CURL_HTTP_VERSION_1_1);
	curl_easy_setopt(easy, CURLOPT_PATH_AS_IS, 1L);
	curl_easy_setopt(easy, CURLOPT_PROXY, "");
	curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(easy, CURLOPT_FRESH_CONNECT, call->repeatable ? 0L : 1L);
	curl_easy_setopt(easy, CURLOPT_FORBID_REUSE, call->repeatable ? 0L : 1L);
	curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, milliseconds(connect_us));
	curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, milliseconds(call->deadline_us));
	curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, call->detail);
	if (calls->options.public_only) {
		curl_easy_setopt(easy, CURLOPT_OPENSOCKETFUNCTION, on_socket);
		curl_easy_setopt(easy, CURLOPT_OPENSOCKETDATA, call);
	}
	if (calls->options.authorities)
		curl_easy_setopt(easy, CURLOPT_CAINFO, calls->options.authorities);
	curl_easy_setopt(easy, CURLOPT_HTTPHEADER, call->headers);
	curl_easy_setopt(easy, CURLOPT_NOPROGRESS, call->stop ? 0L : 1L);
	curl_easy_setopt(easy, CURLOPT_XFERINFOFUNCTION, on_progress);
	curl_easy_setopt(easy, CURLOPT_XFERINFODATA, call);
	curl_easy_setopt(easy, CURLOPT_PREREQFUNCTION, on_ready);
	curl_easy_setopt(easy, CURLOPT_PREREQDATA, call);
	curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, on_head);
	curl_easy_setopt(easy, CURLOPT_HEADERDATA, call);
	curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_body);
	curl_easy_setopt(easy, CURLOPT_WRITEDATA, call);
	set_body(easy, call);
	return IBID_OK;
}

/* Was a byte of the request handed to the network? */
static bool was_sent(CURL *easy)
{
	long head = 0;
	curl_off_t body = 0;
	curl_easy_getinfo(easy, CURLINFO_REQUEST_SIZE, &head);
	curl_easy_getinfo(easy, CURLINFO_SIZE_UPLOAD_T, &body);
	return head > 0 || body > 0;
}

/* A handshake that broke off says nothing about trust: the server may be restarting. libcurl
 * distinguishes the two only in its message. */
static bool is_distrust(CURLcode code, const char *detail)
{
	switch (code) {
	case CURLE_PEER_FAILED_VERIFICATION:
	case CURLE_SSL_CERTPROBLEM:
	case CURLE_SSL_CIPHER:
	case CURLE_SSL_CACERT_BADFILE:
	case CURLE_SSL_ISSUER_ERROR:
	case CURLE_SSL_INVALIDCERTSTATUS:
	case CURLE_SSL_CLIENTCERT: return true;
	case CURLE_SSL_CONNECT_ERROR:
		return !strstr(detail, "SSL_ERROR_SYSCALL") && !strstr(detail, "unexpected eof") &&
		       !strstr(detail, "reset by peer");
	default: return false;
	}
}

/* Why there is no answer, without libcurl's own terms. */
static const char *reason_of(const struct call *call, CURLcode code)
{
	if (call->ambiguous)
		return "the head of the answer can be read in two ways";
	switch (code) {
	case CURLE_COULDNT_RESOLVE_HOST: return "the name of the host can't be resolved";
	case CURLE_COULDNT_CONNECT: return "no connection can be made";
	case CURLE_OPERATION_TIMEDOUT: return "the time for it was over";
	case CURLE_GOT_NOTHING: return "the connection was closed without an answer";
	case CURLE_PARTIAL_FILE: return "the connection was closed amid the answer";
	case CURLE_SEND_ERROR: return "the connection broke while the request was sent";
	case CURLE_RECV_ERROR: return "the connection broke before the answer had come";
	case CURLE_WEIRD_SERVER_REPLY:
	case CURLE_UNSUPPORTED_PROTOCOL: return "what came back is not HTTP/1.1";
	case CURLE_WRITE_ERROR: return "the answer can't be passed on";
	default: return curl_easy_strerror(code);
	}
}

static void conclude(const struct calls *calls, struct call *call, CURLcode code)
{
	call->took_us = env_steady_us(calls->env) - call->began_us;
	if (code == CURLE_OK) {
		call->end = CALL_ANSWERED;
	} else {
		call->end = was_sent(call->easy) ? CALL_SILENT : CALL_NOT_SENT;
		call->timed_out = code == CURLE_OPERATION_TIMEDOUT;
		snprintf(call->why, sizeof call->why, "%s", reason_of(call, code));
		call->distrusted = call->end == CALL_NOT_SENT && is_distrust(code, call->detail);
	}
	call->off_limits = call->off_limits && call->end == CALL_NOT_SENT;
	curl_easy_cleanup(call->easy);
	call->easy = NULL;
}

void call_release(struct call *call)
{
	str_release(&call->answer_head);
	str_release(&call->answer);
	curl_slist_free_all(call->headers);
	call->headers = NULL;
}

bool call_header(const struct call *call, const char *name, const char **ret, size_t *ret_size)
{
	bool found = false;
	for (const char *at = str_text(&call->answer_head); *at;) {
		size_t line = strcspn(at, "\r\n");
		found |= read_header(at, line, name, ret, ret_size);
		at += line;
		at += strspn(at, "\r\n");
	}
	return found;
}

/* ---- The thread ----------------------------------------------------------------------------- */

static void unlink_call(struct calls *calls, const struct call *call)
{
	struct call **at = &calls->list;
	while (*at != call)
		at = &(*at)->next;
	*at = call->next;
}

static void end_call(struct calls *calls, struct call *call, CURLcode code)
{
	curl_multi_remove_handle(calls->multi, call->easy);
	pthread_mutex_lock(&calls->lock);
	unlink_call(calls, call);
	pthread_mutex_unlock(&calls->lock);
	conclude(calls, call, code);
	call->done(call); /* it is the owner's from here on */
}

/* Handle one request of another thread. True: there was one, call again. */
static bool serve_one(struct calls *calls)
{
	int64_t now_us = env_steady_us(calls->env);
	struct call *call;
	pthread_mutex_lock(&calls->lock);
	for (call = calls->list; call; call = call->next)
		if (call->adding || call->going_on || call->breaking_off ||
		    (call->late_at_us && call->late_at_us <= now_us))
			break;
	if (!call) {
		pthread_mutex_unlock(&calls->lock);
		return false;
	}
	bool adding = call->adding, breaking_off = call->breaking_off, going_on = call->going_on;
	bool late = call->late_at_us && call->late_at_us <= now_us;
	call->adding = call->going_on = false;
	if (late)
		call->late_at_us = 0;
	pthread_mutex_unlock(&calls->lock);
	if (adding)
		curl_multi_add_handle(calls->multi, call->easy);
	if (late)
		call->late(call);
	if (breaking_off)
		end_call(calls, call, CURLE_ABORTED_BY_CALLBACK);
	else if (going_on)
		curl_easy_pause(call->easy, CURLPAUSE_CONT);
	return true;
}

static void collect_ended(struct calls *calls)
{
	CURLMsg *message;
	int left;
	while ((message = curl_multi_info_read(calls->multi, &left))) {
		struct call *call = NULL;
		CURLcode code = message->data.result; /* gone with the handle */
		if (message->msg != CURLMSG_DONE)
			continue;
		curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, (char **)&call);
		end_call(calls, call, code);
	}
}

/* True: some wait for room. */
static bool ask_for_room(struct calls *calls)
{
	int64_t now_us = env_steady_us(calls->env);
	bool due = now_us >= calls->ask_at_us, some = false;
	if (due)
		calls->ask_at_us = now_us + ROOM_PAUSE_US;
	pthread_mutex_lock(&calls->lock);
	for (struct call *call = calls->list; call; call = call->next) {
		some |= call->waits;
		call->going_on |= due && call->waits;
		call->waits &= !due;
	}
	pthread_mutex_unlock(&calls->lock);
	return some;
}

/* Until the next one is late, or asks for room. */
static int poll_ms(struct calls *calls, bool some_wait)
{
	int64_t now_us = env_steady_us(calls->env), wait_us = some_wait ? ROOM_PAUSE_US : POLL_US;
	pthread_mutex_lock(&calls->lock);
	for (const struct call *call = calls->list; call; call = call->next)
		if (call->late_at_us && call->late_at_us - now_us < wait_us)
			wait_us = call->late_at_us - now_us;
	pthread_mutex_unlock(&calls->lock);
	return wait_us > 0 ? (int)((wait_us + 999) / 1000) : 0;
}

static bool is_over(struct calls *calls)
{
	pthread_mutex_lock(&calls->lock);
	bool over = calls->ends;
	pthread_mutex_unlock(&calls->lock);
	return over;
}

static void *carry(void *user)
{
	struct calls *calls = user;
	while (!is_over(calls)) {
		int running;
		bool some_wait = ask_for_room(calls);
		while (serve_one(calls))
			continue;
		curl_multi_perform(calls->multi, &running);
		collect_ended(calls);
		curl_multi_poll(calls->multi, NULL, 0, poll_ms(calls, some_wait), NULL);
	}
	return NULL;
}

enum ibid_code calls_new(struct env *env, const struct calls_options *options, struct calls **ret,
                         struct ibid_err *err)
{
	struct calls *calls = calloc(1, sizeof *calls);
	if (!calls || curl_global_init(CURL_GLOBAL_DEFAULT)) {
		free(calls);
		return err_set(err, IBID_NOMEM, "out of memory");
	}
	calls->env = env;
	calls->options = *options;
	pthread_mutex_init(&calls->lock, NULL);
	calls->multi = curl_multi_init();
	if (!calls->multi || pthread_create(&calls->thread, NULL, carry, calls)) {
		curl_multi_cleanup(calls->multi);
		pthread_mutex_destroy(&calls->lock);
		free(calls);
		return err_set(err, IBID_NOMEM, "can't start a thread");
	}
	*ret = calls;
	return IBID_OK;
}

void calls_free(struct calls *calls)
{
	if (!calls)
		return;
	pthread_mutex_lock(&calls->lock);
	calls->ends = true;
	pthread_mutex_unlock(&calls->lock);
	curl_multi_wakeup(calls->multi);
	pthread_join(calls->thread, NULL);
	while (calls->list)
		end_call(calls, calls->list, CURLE_ABORTED_BY_CALLBACK);
	curl_multi_cleanup(calls->multi);
	pthread_mutex_destroy(&calls->lock);
	free(calls);
}

/* ---- From other threads --------------------------------------------------------------------- */

enum ibid_code calls_make(struct calls *calls, struct call *call, struct ibid_err *err)
{
	enum ibid_code code = prepare(calls, call, err);
	if (code)
		return code;
	pthread_mutex_lock(&calls->lock);
	call->adding = true;
	call->late_at_us = call->late ? call->began_us + call->late_us : 0;
	call->next = calls->list;
	calls->list = call;
	pthread_mutex_unlock(&calls->lock);
	curl_multi_wakeup(calls->multi);
	return IBID_OK;
}

static void ask(struct calls *calls, const struct call *wanted, bool break_off)
{
	bool found = false;
	pthread_mutex_lock(&calls->lock);
	for (struct call *call = calls->list; call; call = call->next) {
		if (call != wanted)
			continue;
		found = true;
		if (break_off)
			call->breaking_off = true;
		else
			call->going_on = true;
	}
	pthread_mutex_unlock(&calls->lock);
	if (found)
		curl_multi_wakeup(calls->multi);
}

void calls_go_on(struct calls *calls, struct call *call)
{
	ask(calls, call, false);
}

void calls_break_off(struct calls *calls, struct call *call)
{
	ask(calls, call, true);
}

enum ibid_code calls_wait(struct calls *calls, struct call *call, struct ibid_err *err)
{
	enum ibid_code code = prepare(calls, call, err);
	if (!code)
		conclude(calls, call, curl_easy_perform(call->easy));
	return code;
}
