/* SPDX-License-Identifier: Apache-2.0 */
#include "http/inquiry.h"

#include "command/staged.h"
#include "http/forward.h"
#include "http/meters.h"
#include "http/upstream.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	ROUND_US = 500000, /* between two looks for commands to ask about */
	PAUSE_US = 50000,  /* how soon the thread sees that the server has ended */
	AT_ONCE = 20,      /* commands of one operation in a round: others wait behind them */
	BUCKETS = 4096,
	ROUNDS_KEPT = 20, /* that a command may be missing, as when the store is away */
};

/* ---- What was asked -------------------------------------------------------------------------- */

/* Attempts that this process has seen to be unknown. Times are its own steady ones: clocks of other
 * machines, which wrote the rows, may be wrong.
 *
 * (Q1) An entry belongs to one attempt, named by the command's id and the attempt's lease token. A
 * retry keeps the id and sends a request of its own, which has its own time to settle: what was
 * learned about one attempt must not be believed about the next (I4).
 * (Q2) "Not executed" counts only if the service was asked after the attempt had settled. When its
 * answer arrives says nothing: the request may have been carried out in between.
 * (Q3) An attempt whose lease was taken over settles after one more lease. Clocks that are set may
 * have ended the lease while the call was being made, also by this process; the call itself ends
 * within the lease by the steady clock. */
struct asked_one {
	char id[UUID_TEXT_SIZE];
	int64_t token;
	int64_t seen_us, asked_us; /* first and last; 0: not yet asked */
	unsigned round;            /* in which it was seen last */
	struct asked_one *next;
};

struct asked {
	unsigned round;
	struct asked_one *buckets[BUCKETS];
};

static struct asked_one **find_asked(struct asked *asked, const char *id, int64_t token)
{
	size_t hash = 5381;
	for (const char *at = id; *at; at++)
		hash = hash * 33 + (unsigned char)*at;
	struct asked_one **at = &asked->buckets[hash % BUCKETS];
	while (*at && ((*at)->token != token || strcmp((*at)->id, id) != 0)) /* Q1 */
		at = &(*at)->next;
	return at;
}

/* NULL without memory. */
static struct asked_one *note_asked(struct asked *asked, const char *id, int64_t token,
                                    int64_t now_us)
{
	struct asked_one **at = find_asked(asked, id, token);
	if (!*at && (*at = calloc(1, sizeof **at))) {
		snprintf((*at)->id, sizeof(*at)->id, "%s", id);
		(*at)->token = token;
		(*at)->seen_us = now_us;
	}
	if (*at)
		(*at)->round = asked->round;
	return *at;
}

/* Those that are not unknown any more. */
static void forget_asked(struct asked *asked, bool all)
{
	for (size_t i = 0; i < BUCKETS; i++)
		for (struct asked_one **at = &asked->buckets[i]; *at;) {
			struct asked_one *one = *at;
			if (!all && asked->round - one->round <= ROUNDS_KEPT) {
				at = &one->next;
				continue;
			}
			*at = one->next;
			free(one);
		}
}

/* NULL: it was not seen before, as when its lease was taken over just now. */
static struct asked_one *asked_about(struct asked *asked, const struct ibid_staged *staged)
{
	return *find_asked(asked, ibid_work_command_id(ibid_staged_work(staged)), staged->sub.token);
}

/* The pause until the next time begins when the service was asked, however long the way to it took.
 */
static void note_answered(struct asked_one *one, struct env *env)
{
	if (one)
		one->asked_us = env_steady_us(env);
}

/* Was the attempt unknown for so long, when the service was asked, that what was sent can't be
 * carried out any more? */
static bool had_settled(const struct asked_one *one, int64_t asked_us, int64_t settle_us)
{
	return settle_us == 0 || (one && asked_us - one->seen_us >= settle_us); /* Q2 */
}

/* How the service is asked is the newest contract's word; the lease is that of the row's version.
 */
static int64_t settle_of(const struct contract *contract, const struct ibid_staged *staged)
{
	return contract->upstream.inquiry.settle_us +
	       (staged->taken_over ? staged->sub.contract->staged.lease_us : 0); /* Q3 */
}

/* ---- One inquiry ---------------------------------------------------------------------------- */

struct inquiry {
	const struct server *server;
	const struct generation *generation;
	const struct contract *contract;
};

/* A segment of dots would lead somewhere else. */
static void add_escaped(struct str *out, const char *value)
{
	if (strcmp(value, ".") == 0 || strcmp(value, "..") == 0) {
		out->failed = true;
		return;
	}
	char *escaped = curl_easy_escape(NULL, value, (int)strlen(value));
	if (escaped)
		str_adds(out, escaped);
	else
		out->failed = true;
	curl_free(escaped);
}

static const char *value_of(const struct ibid_work *work, const char *name, size_t size)
{
	const struct {
		const char *name, *value;
	} values[] = {
	    {"external_key", ibid_work_external_key(work)},
	    {"command_id", ibid_work_command_id(work)},
	    {"tenant", ibid_work_tenant(work)},
	};
	for (size_t i = 0; i < sizeof values / sizeof *values; i++)
		if (strlen(values[i].name) == size && memcmp(values[i].name, name, size) == 0)
			return values[i].value;
	return "";
}

/* The contract's URL with its placeholders filled in. NULL without memory. */
static char *url_of(const struct inquiry *inquiry, const struct ibid_work *work)
{
	struct str out = STR_INIT(16 << 10);
	const char *at = inquiry->contract->upstream.inquiry.url;
	if (*at == '/')
		str_adds(&out, inquiry->server->upstream->base);
	while (*at) {
		size_t plain = strcspn(at, "{"), name;
		str_add(&out, at, plain);
		at += plain;
		if (!*at)
			break;
		name = strcspn(++at, "}");
		add_escaped(&out, value_of(work, at, name));
		at += name + (at[name] == '}');
	}
	return str_take(&out, NULL);
}

static enum inquiry_outcome outcome_of(const struct inquiry *inquiry,
                                       const struct ibid_staged *staged, const struct call *call)
{
	const struct contract_inquiry *terms = &inquiry->contract->upstream.inquiry;
	const struct asked_one *one = asked_about(inquiry->server->asked, staged);
	if (call->end != CALL_ANSWERED)
		return INQUIRY_UNANSWERED;
	if (call->status == terms->executed)
		return INQUIRY_EXECUTED;
	if (call->status == terms->not_executed &&
	    had_settled(one, call->began_us, settle_of(inquiry->contract, staged)))
		return INQUIRY_NOT_EXECUTED;
	return INQUIRY_UNCLEAR;
}

static enum ibid_code record(const struct inquiry *inquiry, struct ibid_staged *staged,
                             const struct call *call, struct ibid_err *err)
{
	enum inquiry_outcome outcome = outcome_of(inquiry, staged, call);
	struct arena arena = {0};
	struct ibid_result *result = NULL;
	enum ibid_code code = IBID_OK; /* it stays unknown */
	meters_inquiry(inquiry->generation, inquiry->contract, outcome);
	if (outcome == INQUIRY_EXECUTED)
		code = forward_answer(staged, call, &arena, inquiry->contract, &result, err);
	else if (outcome == INQUIRY_NOT_EXECUTED)
		code = staged_fail(staged, 500, "NOT_DONE",
		                   "the service says that it was not carried out: the same key tries again",
		                   &result, err);
	ibid_result_free(result);
	arena_release(&arena);
	return code;
}

/* See ibid_inquirer. */
static enum ibid_code inquire(struct ibid_staged *staged, void *user)
{
	const struct inquiry *inquiry = user;
	const struct server *server = inquiry->server;
	struct ibid_err err = {0};
	char *url = url_of(inquiry, ibid_staged_work(staged));
	struct call call = {
	    .method = "GET",
	    .url = url,
	    .deadline_us = inquiry->contract->upstream.deadline_us,
	    .answer_max = (size_t)server->settings->answer_bytes,
	    .stop = &server->stopping,
	};
	enum ibid_code code = url ? calls_wait(server->upstream->calls, &call, &err) : IBID_NOMEM;
	note_answered(asked_about(server->asked, staged), server->env);
	if (!code)
		code = record(inquiry, staged, &call, &err);
	LOG(&server->log, IBID_LOG_INFO, "upstream.inquiry",
	    {"operation", log_text(inquiry->contract->name)},
	    {"commandId", log_text(ibid_work_command_id(ibid_staged_work(staged)))},
	    {"status", log_int(call.end == CALL_ANSWERED ? call.status : 0)},
	    {"reason", log_text(code        ? err.text
	                        : *call.why ? call.why
	                                    : NULL)});
	call_release(&call);
	free(url);
	return code;
}

enum ibid_code inquiry_prepare(const struct server *server, struct generation *generation,
                               struct ibid_err *err)
{
	const struct contracts *contracts = generation->ibid->ledger->contracts;
	enum ibid_code code = IBID_OK;
	for (size_t i = 0; !code && i < contracts_count(contracts); i++) {
		const struct contract *contract = contracts_at(contracts, i);
		if (!contract->upstream.given)
			continue;
		if (!server->upstream)
			return err_set(err, IBID_CONTRACT,
			               "%s: its work is done by the service behind the server: give its "
			               "address, as in `ibid proxy --upstream http://127.0.0.1:3000`",
			               contract->file);
		if (contract->staged.recover != RECOVER_INQUIRY)
			continue;
		struct inquiry *inquiry = arena_alloc(&generation->routes.arena, sizeof *inquiry);
		if (!inquiry)
			return err_set(err, IBID_NOMEM, "out of memory");
		*inquiry = (struct inquiry){
		    .server = server, .generation = generation, .contract = contract};
		code = ibid_handle_inquiry(generation->ibid, contract->name, inquire, inquiry, err);
	}
	return code;
}

/* ---- All of them ---------------------------------------------------------------------------- */

/* How often a recovery script looks again. */
static const struct contract_inquiry of_scripts = {.backoff_min_us = INT64_C(5000000),
                                                   .backoff_max_us = INT64_C(600000000),
                                                   .give_up_us = INT64_C(86400000000)};

struct round {
	struct server *server;
	const struct contract_inquiry *terms;
};

/* The longer it has been unknown, the more seldom it is asked about. */
static bool is_due(void *user, const char *tenant, const char *operation, const char *command_id,
                   int64_t token, int64_t since_us)
{
	struct round *round = user;
	struct env *env = round->server->env;
	const struct contract_inquiry *terms = round->terms;
	int64_t age_us = env_wall_us(env) - since_us, pause_us = age_us / 2;
	int64_t now_us = env_steady_us(env);
	struct asked_one *one = note_asked(round->server->asked, command_id, token, now_us);
	(void)tenant, (void)operation;
	if (!one || age_us > terms->give_up_us || atomic_load(&round->server->stopping))
		return false;
	if (pause_us < terms->backoff_min_us)
		pause_us = terms->backoff_min_us;
	if (pause_us > terms->backoff_max_us)
		pause_us = terms->backoff_max_us;
	if (one->asked_us && now_us - one->asked_us < pause_us)
		return false;
	one->asked_us = now_us;
	return true;
}

static void look_round(struct server *server, struct generation *generation)
{
	struct ledger *ledger = generation->ibid->ledger;
	for (size_t i = 0; i < contracts_count(ledger->contracts); i++) {
		const struct contract *contract = contracts_at(ledger->contracts, i);
		bool by_script = !contract->upstream.inquiry.url;
		struct round round = {server, by_script ? &of_scripts : &contract->upstream.inquiry};
		struct ibid_err err = {0};
		size_t count = 0;
		if (!contract->upstream.given || atomic_load(&server->stopping))
			continue;
		if (ledger_recover(ledger,
		                   IBID_RECOVERY(.operation = contract->name, .limit = AT_ONCE,
		                                 .unknown = true, .wanted = is_due, .user = &round),
		                   &count, &err))
			LOG(&server->log, IBID_LOG_WARN, "upstream.not_recovered",
			    {"operation", log_text(contract->name)}, {"reason", log_text(err.text)});
	}
}

void *inquiry_run(void *user)
{
	struct server *server = user;
	int64_t next_us = 0;
	while (!atomic_load(&server->ended)) {
		if (env_steady_us(server->env) >= next_us) {
			pthread_mutex_lock(&server->lock);
			struct generation *generation = server->generation;
			generation->requests++;
			pthread_mutex_unlock(&server->lock);
			server->asked->round++;
			look_round(server, generation);
			forget_asked(server->asked, false);
			pthread_mutex_lock(&server->lock);
			generation->requests--;
			pthread_mutex_unlock(&server->lock);
			next_us = env_steady_us(server->env) + ROUND_US;
		}
		env_sleep_us(server->env, PAUSE_US);
	}
	return NULL;
}

struct asked *asked_new(void)
{
	return calloc(1, sizeof(struct asked));
}

void asked_free(struct asked *asked)
{
	if (asked)
		forget_asked(asked, true);
	free(asked);
}
