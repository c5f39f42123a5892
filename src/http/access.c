/* SPDX-License-Identifier: Apache-2.0 */
/* access.c -- tokens that were seen a moment ago, and what each of them may still send now.
 *
 * (A1) What is remembered was confirmed by the store; nobody can fill the table with what is not.
 * (A2) A pass is used only by who knows the secret, however it was found. (A3) The lock is held
 * for a few instructions: the event thread takes it. */
#include "http/access.h"
#include "http/failure.h"

#include "contract/payload.h"
#include "desk/actor.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { SECOND_US = 1000000 };

/* What a request found of its token's rate. */
struct toll {
	int64_t left;    /* so many more may be sent at once */
	int64_t wait_us; /* until this one may; 0: it may now */
};

struct pass {
	struct token token; /* no id: the place is free */
	char tenant[NAME_BYTES_MAX + 1], client[NAME_BYTES_MAX + 1];
	unsigned roles;
	int64_t expires_us;  /* by the wall clock; 0: never */
	int64_t until_us;    /* by the steady clock: then the store is asked again */
	int64_t used_us;     /* likewise: the last time */
	int64_t credit;      /* requests that may be sent at once, in millionths */
	int64_t credited_us; /* when that was so */
};

struct access {
	struct env *env;
	int64_t rate; /* requests in a second, and at once; 0: any number */
	pthread_mutex_t lock;
	struct pass passes[ACCESS_SETS][ACCESS_WAYS];
};

enum ibid_code access_new(struct env *env, int64_t rate, struct access **ret, struct ibid_err *err)
{
	struct access *access = calloc(1, sizeof *access);
	if (!access)
		return err_set(err, IBID_NOMEM, "out of memory");
	access->env = env;
	access->rate = rate;
	pthread_mutex_init(&access->lock, NULL);
	*ret = access;
	return IBID_OK;
}

void access_free(struct access *access)
{
	if (!access)
		return;
	pthread_mutex_destroy(&access->lock);
	free(access);
}

/* ---- Passes; under the lock ----------------------------------------------------------------- */

/* Ids are random hex digits: two of them choose the set. */
static struct pass *set_of(struct access *access, const char *id)
{
	char digits[3] = {id[0], id[1], 0};
	return access->passes[strtoul(digits, NULL, 16) % ACCESS_SETS];
}

static struct pass *find_pass(struct access *access, const struct token *token)
{
	struct pass *set = set_of(access, token->id);
	for (size_t i = 0; i < ACCESS_WAYS; i++)
		if (memcmp(set[i].token.id, token->id, TOKEN_ID_SIZE) == 0 &&
		    token_same(&set[i].token.digest, &token->digest)) /* A2 */
			return &set[i];
	return NULL;
}

/* The one of this token, or the one that was not used for the longest time. */
static struct pass *place_for(struct access *access, const struct token *token)
{
	struct pass *found = find_pass(access, token), *set = set_of(access, token->id), *oldest = set;
	for (size_t i = 1; i < ACCESS_WAYS; i++)
		if (set[i].used_us < oldest->used_us)
			oldest = &set[i];
	return found ? found : oldest;
}

static bool is_fresh(const struct access *access, const struct pass *pass)
{
	return env_steady_us(access->env) < pass->until_us &&
	       (!pass->expires_us || env_wall_us(access->env) < pass->expires_us);
}

/* One confirmed by the store (A1). Its credit outlives a new look at the store. */
static struct pass *put_pass(struct access *access, const struct token_row *row, int64_t asked_us)
{
	struct pass *pass = place_for(access, &row->token);
	int64_t now_us = env_steady_us(access->env);
	if (memcmp(pass->token.id, row->token.id, TOKEN_ID_SIZE) != 0) {
		pass->credit = access->rate * SECOND_US;
		pass->credited_us = now_us;
	}
	pass->token = row->token;
	snprintf(pass->tenant, sizeof pass->tenant, "%s", row->tenant);
	snprintf(pass->client, sizeof pass->client, "%s", row->client);
	pass->roles = row->roles;
	pass->expires_us = row->expires_us;
	pass->until_us = asked_us + ACCESS_KEPT_US;
	return pass;
}

/* One less, where one is left. */
static struct toll charge(struct access *access, struct pass *pass)
{
	int64_t now_us = env_steady_us(access->env), passed_us = now_us - pass->credited_us;
	int64_t rate = access->rate, most = rate * SECOND_US;
	pass->used_us = now_us;
	if (!rate)
		return (struct toll){.left = 0};
	pass->credit += (passed_us < SECOND_US ? passed_us : SECOND_US) * rate;
	pass->credit = pass->credit < most ? pass->credit : most;
	pass->credited_us = now_us;
	if (pass->credit < SECOND_US)
		return (struct toll){.wait_us = (SECOND_US - pass->credit + rate - 1) / rate};
	pass->credit -= SECOND_US;
	return (struct toll){.left = pass->credit / SECOND_US};
}

/* The principal is the token's, whatever the request says. */
static struct toll use_pass(struct access *access, struct pass *pass, struct request *request)
{
	struct principal *principal = &request->principal;
	principal->tenant = arena_strdup(&request->arena, pass->tenant);
	principal->client = arena_strdup(&request->arena, pass->client);
	principal->roles = pass->roles;
	if (!principal->actor)
		principal->actor = principal->client;
	return charge(access, pass);
}

/* ---- Answers -------------------------------------------------------------------------------- */

static void refuse_for(struct request *request, const char *why)
{
	answer_problem(&request->answer, &request->arena, PROBLEM_UNAUTHORIZED, "%s", why);
	answer_header(&request->answer, "WWW-Authenticate", "Bearer");
	/* Where a body is awaited that is so anyway. */
	answer_header(&request->answer, "Connection", "close");
}

/* The same for all that is wrong with a token: nobody learns from it which ones there are. */
static void refuse(struct request *request)
{
	refuse_for(request, "send a valid token: Authorization: Bearer ibid_...");
}

/* Whatever the request comes to. All that was used is there again after a second. */
static void tell_rate(struct request *request, const struct toll *toll)
{
	int64_t rate = request->server->access->rate;
	int64_t seconds = toll->wait_us ? (toll->wait_us + SECOND_US - 1) / SECOND_US : 1;
	if (!rate)
		return;
	answer_header(&request->answer, "RateLimit",
	              arena_printf(&request->arena, "\"token\";r=%lld;t=%lld", (long long)toll->left,
	                           (long long)seconds));
	answer_header(&request->answer, "RateLimit-Policy",
	              arena_printf(&request->arena, "\"token\";q=%lld;w=1", (long long)rate));
	if (toll->wait_us)
		answer_header(&request->answer, "Retry-After",
		              arena_printf(&request->arena, "%lld", (long long)seconds));
}

static void admit_role(struct request *request)
{
	request->admitted = request->principal.roles & request->route->roles;
	if (!request->admitted)
		answer_problem(&request->answer, &request->arena, PROBLEM_FORBIDDEN,
		               "this needs a token with another role");
}

/* Whose token it is, is known. May they? */
static void admit(struct request *request, const struct toll *toll)
{
	tell_rate(request, toll);
	if (request->arena.failed)
		answer_problem(&request->answer, &request->arena, PROBLEM_UNAVAILABLE, "out of memory");
	else if (toll->wait_us)
		answer_problem(&request->answer, &request->arena, PROBLEM_RATE,
		               "the token may send %lld a second",
		               (long long)request->server->access->rate);
	else
		admit_role(request);
}

/* ---- A request ------------------------------------------------------------------------------ */

/* Anybody's name can stand for this machine, and a browser that shows a page of that name then
 * sends here what the page asks for. No page has an address for a name, or one without a dot, or
 * one under localhost, unless it is of this machine. */
static bool is_called_locally(struct request *request)
{
	static const char reserved[] = ".localhost";
	char name[NAME_BYTES_MAX + 1];
	struct in_addr address;
	bool several;
	const char *host = request_header(request, "Host", &several);
	size_t size = host ? strcspn(host, ":") : 0, tail = sizeof reserved - 1;
	if (!host || *host == '[' || !memchr(host, '.', size))
		return true;
	if (size > tail && strncasecmp(host + size - tail, reserved, tail) == 0)
		return true;
	if (size >= sizeof name)
		return false;
	memcpy(name, host, size);
	name[size] = '\0';
	return inet_pton(AF_INET, name, &address) == 1;
}

static void admit_open(struct request *request)
{
	const struct settings *settings = request->server->settings;
	struct principal *principal = &request->principal;
	if (!request->server->on_loopback || !settings->open_tenant || request->route->proven) {
		refuse(request);
		return;
	}
	if (!is_called_locally(request)) {
		refuse_for(request, "without a token the server answers who calls it by its address or as "
		                    "localhost, and Host is another name: send a token, or call it so");
		return;
	}
	principal->tenant = settings->open_tenant;
	principal->client = settings->open_client;
	principal->roles = ROLE_CLIENT | ROLE_OPERATOR;
	if (!principal->actor)
		principal->actor = principal->client;
	admit_role(request);
}

static void admit_known(struct request *request)
{
	struct access *access = request->server->access;
	struct toll toll = {0};
	pthread_mutex_lock(&access->lock);
	struct pass *pass = find_pass(access, &request->token);
	bool known = pass && is_fresh(access, pass);
	if (known)
		toll = use_pass(access, pass, request);
	pthread_mutex_unlock(&access->lock);
	if (known)
		admit(request, &toll);
}

/* "Bearer", blanks, a token's text. */
static bool read_bearer(const char *given, struct token *ret)
{
	static const char scheme[] = "Bearer ";
	if (strncasecmp(given, scheme, sizeof scheme - 1) != 0)
		return false;
	given += sizeof scheme - 1;
	return token_read(given + strspn(given, " "), ret);
}

bool access_is_token(const char *authorization)
{
	struct token token;
	return read_bearer(authorization, &token);
}

/* In front of a service, Authorization may be the service's: then ours is Proxy-Authorization, or
 * there is none. */
static const char *find_token(struct request *request, bool *ret_several)
{
	const char *given = request_header(request, "Authorization", ret_several);
	if (!request->server->upstream || (given && access_is_token(given)))
		return given;
	return request_header(request, "Proxy-Authorization", ret_several);
}

void access_check(struct request *request)
{
	bool several, many;
	const char *given = find_token(request, &several);
	const char *actor = request_header(request, "Ibid-Actor", &many);
	request->principal.actor = actor && *actor ? actor : NULL;
	if (request->route->open)
		request->admitted = true;
	else if (!given && !several)
		admit_open(request);
	else if (!given || !read_bearer(given, &request->token))
		refuse(request);
	else
		admit_known(request);
}

/* On one of the workers's threads. */
static void ask_store(void *user)
{
	struct request *request = user;
	struct access *access = request->server->access;
	struct store *store = request->generation->ibid->ledger->store;
	struct token_row row;
	struct ibid_err err = {0};
	int64_t asked_us = env_steady_us(access->env);
	enum ibid_code code = actor_confirm(store, &request->arena, &request->token,
	                                    env_wall_us(access->env), &row, &err);
	if (!code) {
		pthread_mutex_lock(&access->lock);
		struct toll toll = use_pass(access, put_pass(access, &row, asked_us), request);
		pthread_mutex_unlock(&access->lock);
		admit(request, &toll);
	} else if (code == IBID_DENIED) {
		refuse(request);
	} else {
		failure_answer(request, &err);
	}
	request_answered(request);
}

void access_ask(struct request *request)
{
	request_hand_on(request, ask_store);
}
