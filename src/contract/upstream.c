/* SPDX-License-Identifier: Apache-2.0 */
/* upstream.c -- work that another service does: how it is called, and what its answers mean.
 *
 * The service's change and the command's row are not one transaction. So a contract says in advance
 * which answers of the service are outcomes, which promise that nothing was done, and how the
 * outcome is found when there is no answer; and it may not declare anything that needs one
 * transaction. */
#include "base/instant.h"
#include "contract/build.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define COUNT(array) (sizeof(array) / sizeof *(array))
#define ALNUM        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
enum {
	HEADERS_MAX = 20,
	HEADER_NAME_MAX = 64,
	STATUS_DIGITS = 3,
	BACKOFF_PART_MAX = 16,
	PORT_DIGITS_MAX = 5
};
static const int64_t MILLISECOND_US = 1000, SECOND_US = 1000000;

/* ---- Durations and statuses ----------------------------------------------------------------- */

/* A duration that may be none at all. */
static void read_pause(struct reading *reading, const struct member *member, const char *path,
                       const struct node *node, void *target)
{
	if (node->type == NODE_TEXT && strcmp(node->text, "0s") == 0)
		*(int64_t *)target = 0;
	else
		type_duration.read(reading, member, path, node, target);
}

static void read_deadline(struct reading *reading, const struct member *member, const char *path,
                          const struct node *node, void *target)
{
	int64_t *deadline_us = target;
	type_duration.read(reading, member, path, node, deadline_us);
	if (*deadline_us && *deadline_us < 10 * MILLISECOND_US)
		PROBLEM_AT(reading->problems, node, "%s is `%s`: a call is given 10ms at least", path,
		           node->text);
}

/* "5s..10m" */
static bool backoff_ok(const char *text, struct contract_inquiry *ret)
{
	char least[BACKOFF_PART_MAX] = "";
	const char *dots = strstr(text, "..");
	if (!dots || (size_t)(dots - text) >= sizeof least)
		return false;
	memcpy(least, text, (size_t)(dots - text));
	return duration_read(least, &ret->backoff_min_us) &&
	       duration_read(dots + 2, &ret->backoff_max_us);
}

static void read_backoff(struct reading *reading, const struct member *member, const char *path,
                         const struct node *node, void *target)
{
	const char *text = member_text(reading, member, path, node);
	struct contract_inquiry *inquiry = target, read = {0};
	if (!text)
		return;
	if (!backoff_ok(text, &read)) {
		PROBLEM_AT(reading->problems, node,
		           "%s is `%s`: it must be the first and the longest pause, such as 5s..10m", path,
		           text);
		return;
	}
	if (read.backoff_min_us < SECOND_US)
		PROBLEM_AT(reading->problems, node, "%s is `%s`: the service is left alone for 1s at least",
		           path, text);
	if (read.backoff_min_us > read.backoff_max_us)
		PROBLEM_AT(reading->problems, node, "%s is `%s`: its first pause is longer than its last",
		           path, text);
	inquiry->backoff_min_us = read.backoff_min_us;
	inquiry->backoff_max_us = read.backoff_max_us;
}

/* "status=404" */
static void read_status(struct reading *reading, const struct member *member, const char *path,
                        const struct node *node, void *target)
{
	static const char prefix[] = "status=";
	const char *text = member_text(reading, member, path, node);
	if (!text)
		return;
	const char *digits = text + sizeof prefix - 1;
	bool named = strncmp(text, prefix, sizeof prefix - 1) == 0;
	if (named && strspn(digits, "0123456789") == STATUS_DIGITS && !digits[STATUS_DIGITS] &&
	    *digits >= '1' && *digits <= '5')
		*(int *)target = atoi(digits);
	else
		PROBLEM_AT(reading->problems, node,
		           "%s is `%s`: it must be a status from 100 to 599, such as status=%d", path, text,
		           (int)member->min);
}

/* ---- headers -------------------------------------------------------------------------------- */

/* Headers of an answer that are never kept, and why. A name that ends in - is a prefix. */
static const struct {
	const char *name, *why;
} never_kept[] = {
    {"Set-Cookie", "a cookie belongs to one caller's session and is never replayed"},
    {"Set-Cookie2", "a cookie belongs to one caller's session and is never replayed"},
    {"Connection", "it belongs to one connection"},
    {"Keep-Alive", "it belongs to one connection"},
    {"Proxy-", "it belongs to one connection"},
    {"TE", "it belongs to one connection"},
    {"Trailer", "it belongs to one connection"},
    {"Transfer-Encoding", "it belongs to one connection"},
    {"Upgrade", "it belongs to one connection"},
    {"Content-Length", "it is that of the answer that is sent"},
    {"Content-Encoding", "the answer is kept as it is read, not as it was packed"},
    {"Content-Type", "it is kept without being asked for"},
    {"Date", "it is that of the answer that is sent"},
    {"WWW-Authenticate", "whoever may not call gets no kept answer"},
    {"Idempotent-Replayed", "ibid says it itself"},
    {"Ibid-", "ibid says it itself"},
};

/* NULL: it may be kept. */
static const char *why_never_kept(const char *name)
{
	for (size_t i = 0; i < COUNT(never_kept); i++) {
		size_t size = strlen(never_kept[i].name);
		bool all = never_kept[i].name[size - 1] == '-';
		if (all ? strncasecmp(name, never_kept[i].name, size) == 0
		        : strcasecmp(name, never_kept[i].name) == 0)
			return never_kept[i].why;
	}
	return NULL;
}

static bool header_ok(struct reading *reading, const char *path, const struct node *node)
{
	static const char token[] = ALNUM "!#$%&'*+-.^_`|~";
	const char *why = why_never_kept(node->text);
	if (!text_matches(node->text, token, token, HEADER_NAME_MAX))
		PROBLEM_AT(reading->problems, node, "%s: `%s` is not the name of a header", path,
		           node->text);
	else if (why)
		PROBLEM_AT(reading->problems, node, "%s lists %s: %s", path, node->text, why);
	else
		return true;
	return false;
}

/* The names differ in more than their case: member_texts has seen to the rest. */
static bool header_is_new(struct reading *reading, const char *path, const struct node *list,
                          const struct node *node)
{
	for (const struct node *other = list->child; other != node; other = other->next)
		if (strcasecmp(other->text, node->text) == 0) {
			PROBLEM_AT(reading->problems, node, "%s lists %s twice, as %s", path, node->text,
			           other->text);
			return false;
		}
	return true;
}

static void read_headers(struct reading *reading, const struct member *member, const char *path,
                         const struct node *node, void *target)
{
	struct texts names = {0};
	bool good = member_texts(reading, member, path, node, &names);
	if (names.count > HEADERS_MAX)
		PROBLEM_AT(reading->problems, node, "%s lists %zu names: at most %d are kept", path,
		           names.count, HEADERS_MAX);
	for (const struct node *child = good ? node->child : NULL; child; child = child->next)
		good = header_ok(reading, path, child) && header_is_new(reading, path, node, child) && good;
	if (good)
		*(struct texts *)target = names;
}

/* ---- inquiry.url ---------------------------------------------------------------------------- */

/* The sender, and whether the name alone identifies one command. */
static const struct {
	const char *name;
	bool finds;
} placeholders[] = {{"{external_key}", true}, {"{command_id}", true}, {"{tenant}", false}};

static const size_t no_placeholder = COUNT(placeholders);

static size_t placeholder_at(const char *text)
{
	size_t i = 0;
	while (i < COUNT(placeholders) &&
	       strncmp(text, placeholders[i].name, strlen(placeholders[i].name)) != 0)
		i++;
	return i;
}

/* The size of "host", "host:8080" or "[::1]:8080"; 0: it is none of them. */
static size_t authority_size(const char *text)
{
	bool numeric = *text == '[';
	size_t size = numeric ? 1 + strspn(text + 1, "0123456789abcdefABCDEF:.")
	                      : strspn(text, ALNUM "-._");
	if (numeric ? size < 3 || text[size++] != ']' : !isalnum((unsigned char)*text))
		return 0;
	if (text[size] != ':')
		return size;
	size_t digits = strspn(text + size + 1, "0123456789");
	return digits && digits <= PORT_DIGITS_MAX ? size + 1 + digits : 0;
}

/* Behind "http://host:port"; the text itself for a path. NULL: it is neither. */
static const char *path_of(const char *url)
{
	const char *host = strncmp(url, "https://", 8) == 0  ? url + 8
	                   : strncmp(url, "http://", 7) == 0 ? url + 7
	                                                     : NULL;
	if (!host)
		return url[0] == '/' && url[1] != '/' ? url : NULL;
	size_t size = authority_size(host);
	return size && host[size] == '/' ? host + size : NULL;
}

/* One character that may stand in a path or a query, or %41. */
static size_t character_at(const char *text)
{
	static const char plain[] = ALNUM "-._~:/?@!$&'()*+,;=";
	if (*text == '%')
		return isxdigit((unsigned char)text[1]) && isxdigit((unsigned char)text[2]) ? 3 : 0;
	return *text && strchr(plain, *text) ? 1 : 0;
}

/* Where reading stops: at the end when all is well. */
static const char *walk_url(const char *at, bool *ret_finds)
{
	while (*at) {
		size_t index = placeholder_at(at);
		size_t size = index == no_placeholder ? character_at(at) : strlen(placeholders[index].name);
		if (!size)
			break;
		*ret_finds = *ret_finds || (index != no_placeholder && placeholders[index].finds);
		at += size;
	}
	return at;
}

static void read_url(struct reading *reading, const struct member *member, const char *path,
                     const struct node *node, void *target)
{
	const char *text = member_text(reading, member, path, node);
	bool finds = false;
	if (!text)
		return;
	const char *rest = path_of(text);
	const char *end = rest ? walk_url(rest, &finds) : NULL;
	if (!rest)
		PROBLEM_AT(reading->problems, node,
		           "%s is `%s`: it must be a path on the service, or http:// or https:// with a "
		           "host and a path, without a user, such as /orders/by-key/{external_key}",
		           path, text);
	else if (*end == '{' || *end == '}')
		PROBLEM_AT(reading->problems, node,
		           "%s is `%s`: in braces stand external_key, command_id or tenant", path, text);
	else if (*end)
		PROBLEM_AT(reading->problems, node,
		           "%s is `%s`: what stands at `%.8s` can't be part of a path or a query", path,
		           text, end);
	else if (!finds)
		PROBLEM_AT(reading->problems, node,
		           "%s is `%s`: it names no command; {external_key}, which the service gets as "
		           "Idempotency-Key, or {command_id} must be in it",
		           path, text);
	else
		*(const char **)target = text;
}

/* ---- inquiry -------------------------------------------------------------------------------- */

static const struct member_type type_pause = {"a duration such as 30s, or 0s", read_pause};
static const struct member_type type_deadline = {"a duration such as 10s", read_deadline};
static const struct member_type type_backoff = {"two durations such as 5s..10m", read_backoff};
static const struct member_type type_status = {"a status such as status=200", read_status};
static const struct member_type type_headers = {"a list of names such as [Location, ETag]",
                                                read_headers};
static const struct member_type type_url = {"a path such as /orders/by-key/{external_key}",
                                            read_url};

#define AT(member) offsetof(struct contract_inquiry, member)
/* clang-format off */
static const struct member inquiry_members[] = {
	{"url", &type_url, AT(url), MEMBER_REQUIRED,
	 "Where does the service tell what became of a call?",
	 "or an http address; external_key, command_id and tenant in braces"},
	{"executed", &type_status, AT(executed), MEMBER_REQUIRED,
	 "Which answer says that it was done?",
	 "a 2xx; that answer becomes the command's", .min = 200},
	{"not_executed", &type_status, AT(not_executed), MEMBER_REQUIRED,
	 "Which answer says that it was not?", "then the same key may try again", .min = 404},
	{"settle", &type_pause, AT(settle_us), MEMBER_REQUIRED,
	 "How long after a call may it still be carried out?",
	 "until then not_executed is not believed"},
	{"backoff", &type_backoff, 0, MEMBER_REQUIRED,
	 "How long is the pause between two inquiries, at first and at most?", "at least 1s"},
	{"give_up", &type_duration, AT(give_up_us), MEMBER_REQUIRED,
	 "After how long is a person asked instead?", "longer than settle"},
};
/* clang-format on */
#undef AT
const struct form inquiry_form = {NULL, "an inquiry", inquiry_members, COUNT(inquiry_members)};

static void check_inquiry(struct reading *reading, const struct contract_inquiry *inquiry,
                          const struct node *node)
{
	const struct node *executed = node_member(node, "executed");
	const struct node *not_executed = node_member(node, "not_executed");
	const struct node *give_up = node_member(node, "give_up");
	const struct node *backoff = node_member(node, "backoff");
	if (inquiry->executed && (inquiry->executed < 200 || inquiry->executed > 299))
		PROBLEM_AT(reading->problems, executed,
		           "upstream.inquiry.executed is `%s`: only a 2xx can be the command's answer",
		           executed->text);
	if (inquiry->executed && inquiry->executed == inquiry->not_executed)
		PROBLEM_AT(reading->problems, not_executed,
		           "upstream.inquiry.not_executed is `%s`, as executed is: then it tells nothing",
		           not_executed->text);
	if (inquiry->give_up_us && inquiry->give_up_us <= inquiry->settle_us)
		PROBLEM_AT(reading->problems, give_up,
		           "upstream.inquiry.give_up is `%s`: it must be longer than settle, before which "
		           "not_executed is never believed",
		           give_up->text);
	if (inquiry->give_up_us && inquiry->backoff_max_us > inquiry->give_up_us)
		PROBLEM_AT(reading->problems, backoff,
		           "upstream.inquiry.backoff is `%s`: its last pause is longer than give_up",
		           backoff->text);
}

static void read_inquiry(struct reading *reading, const struct member *member, const char *path,
                         const struct node *node, void *target)
{
	(void)member;
	if (node->type != NODE_MAP) {
		PROBLEM_AT(reading->problems, node,
		           "%s must be a mapping: url, executed, not_executed, settle, backoff and give_up",
		           path);
		return;
	}
	form_read(reading, &inquiry_form, "upstream.inquiry.", node, target);
	check_inquiry(reading, target, node);
}

/* ---- upstream ------------------------------------------------------------------------------- */

static const struct member_type type_inquiry = {"a mapping: url, executed, not_executed and more",
                                                read_inquiry};

#define AT(member)   offsetof(struct contract_upstream, member)
#define CHOICES(...) ((const char *const[]){__VA_ARGS__, NULL})
/* clang-format off */
static const struct member upstream_members[] = {
	{"deadline", &type_deadline, AT(deadline_us), MEMBER_REQUIRED,
	 "How long may one call take?", "at least 10ms, shorter than staged.lease"},
	{"wait", &type_pause, AT(wait_us), 0,
	 "How long does a caller wait for it, before it hears 202 and where to look?",
	 "as long as the deadline when left out; 0s for not at all"},
	{"without_key", &type_choice, AT(without_key), MEMBER_REQUIRED,
	 "Is a request without a key refused, or passed on without protection?",
	 "pass only where the key comes from the header", .choices = CHOICES("refuse", "pass")},
	{"conflict", &type_choice, AT(conflict), MEMBER_REQUIRED,
	 "Is a 409 of the service an outcome, or may the same key try again?",
	 .choices = CHOICES("keep", "retry")},
	{"error", &type_choice, AT(error), MEMBER_REQUIRED,
	 "Is a 5xx of the service an outcome, a promise that nothing was done, or does nobody know?",
	 "a 503 is always a retry", .choices = CHOICES("keep", "retry", "unknown")},
	{"unknown", &type_choice, AT(unknown), 0,
	 "Does a caller hear an error or 202 while nobody knows whether it was done?",
	 "error when left out: 504 after the deadline, else 502; many clients take 202 for success",
	 .choices = CHOICES("error", "accepted")},
	{"headers", &type_headers, AT(headers), 0,
	 "Which headers of its answer are kept and replayed beside Content-Type?",
	 "none when left out; at most 20"},
	{"inquiry", &type_inquiry, AT(inquiry), 0,
	 "How is the service asked what became of a call?", "required by recover: inquiry"},
};
/* clang-format on */
#undef CHOICES
#undef AT
const struct form upstream_form = {NULL, "work that another service does", upstream_members,
                                   COUNT(upstream_members)};

static void read_upstream(struct reading *reading, const struct member *member, const char *path,
                          const struct node *node, void *target)
{
	struct contract_upstream *upstream = target;
	(void)member;
	if (node->type != NODE_MAP) {
		PROBLEM_AT(reading->problems, node,
		           "%s must be a mapping, such as { deadline: 10s, without_key: refuse, conflict: "
		           "keep, error: unknown }",
		           path);
		return;
	}
	form_read(reading, &upstream_form, "upstream.", node, upstream);
	if (!node_member(node, "wait"))
		upstream->wait_us = upstream->deadline_us;
}

const struct member_type type_upstream = {"a mapping: deadline, without_key, conflict and more",
                                          read_upstream};

const char *contract_run_by(const struct contract *contract)
{
	return contract->upstream.given ? "`ibid proxy`" : "a program that calls ibid_stage";
}

/* ---- Rules ---------------------------------------------------------------------------------- */

struct check {
	struct reading *reading;
	const struct contract *contract;
	const struct node *root;
};

/* The answer's place in the file, for the problem's line. */
static const struct node *at(const struct check *check, const char *path)
{
	const struct node *node = form_find(check->root, path);
	return node ? node : check->root;
}

#define REFUSE(check, path, ...)                                                                   \
	PROBLEM_AT((check)->reading->problems, at((check), (path)), __VA_ARGS__)

static void what_the_service_needs_is_said(const struct check *check)
{
	static const struct {
		const char *member, *why;
	} needed[] = {
	    {"upstream", "says how it is called and what its answers mean"},
	    {"staged", "says how long a call may be silent, and who then finds out"},
	    {"route", "says which request is passed on"},
	};
	for (size_t i = 0; i < COUNT(needed); i++)
		if (!form_find(check->root, needed[i].member))
			REFUSE(check, "handler", "handler is upstream, but no `%s` %s", needed[i].member,
			       needed[i].why);
}

static void times_fit_into_each_other(const struct check *check)
{
	const struct contract_upstream *upstream = &check->contract->upstream;
	int64_t lease_us = check->contract->staged.lease_us;
	if (lease_us && upstream->deadline_us >= lease_us)
		REFUSE(check, "upstream.deadline",
		       "upstream.deadline is `%s`: it must be shorter than staged.lease, or a call that is "
		       "still open is taken over",
		       at(check, "upstream.deadline")->text);
	if (upstream->deadline_us && upstream->wait_us > upstream->deadline_us)
		REFUSE(check, "upstream.wait",
		       "upstream.wait is `%s`: nothing comes after the deadline, which is shorter",
		       at(check, "upstream.wait")->text);
}

static void somebody_can_be_asked(const struct check *check)
{
	bool asks = check->contract->staged.recover == RECOVER_INQUIRY;
	const struct node *inquiry = form_find(check->root, "upstream.inquiry");
	const struct node *upstream = form_find(check->root, "upstream");
	if (asks && !inquiry && upstream && upstream->type == NODE_MAP)
		REFUSE(check, "staged.recover",
		       "staged.recover is inquiry, but no `upstream.inquiry` says where the service is "
		       "asked");
	if (!asks && inquiry && check->contract->staged.lease_us)
		REFUSE(check, "upstream.inquiry",
		       "`upstream.inquiry` is given, but staged.recover is not inquiry: nobody would ask");
}

/* The service's change is not in our transaction, and what it changed is not in our tables. */
static void nothing_is_promised_for_the_service(const struct check *check)
{
	const struct contract *contract = check->contract;
	if (contract->emits.count)
		REFUSE(check, "emits",
		       "emits is not empty, but handler is upstream: the service tells others itself");
	if (contract->unique_count)
		REFUSE(check, "unique",
		       "`unique` is given, but handler is upstream: the service's tables are not looked "
		       "at: leave it out");
	if (contract->serialize_by.count)
		REFUSE(check, "serialize_by",
		       "serialize_by names rows, but handler is upstream: the service holds its own");
	if (contract->location)
		REFUSE(check, "answer.location",
		       "answer.location is given, but handler is upstream: the service says where, and "
		       "upstream.headers keeps its Location");
	if (contract->answer == ANSWER_REFERENCE)
		REFUSE(check, "answer.store",
		       "answer.store is reference, but handler is upstream: nothing is known of the "
		       "resource; use full, status or none");
}

static void strategy_needs_no_look(const struct check *check)
{
	enum contract_strategy strategy = check->contract->strategy;
	const struct node *node = form_find(check->root, "strategy");
	const char *name = contract_strategy_name(strategy);
	/* An unreadable answer has its own problem. */
	if (!node || node->type != NODE_TEXT || strcmp(node->text, name) != 0)
		return;
	if (strategy != STRATEGY_KEY && strategy != STRATEGY_EXTERNAL && strategy != STRATEGY_INBOX)
		REFUSE(check, "strategy",
		       "strategy is %s, but handler is upstream: what the service holds can't be looked "
		       "at; use external or key",
		       name);
}

static void only_a_header_can_be_left_out(const struct check *check)
{
	const struct contract *contract = check->contract;
	if (contract->upstream.without_key == UPSTREAM_WITHOUT_KEY_PASS &&
	    contract->key.from != KEY_HEADER)
		REFUSE(check, "upstream.without_key",
		       "upstream.without_key is pass, but key.from is fields: a request without its key "
		       "fields is invalid");
}

/* Is the handler one that could be read? */
static bool handler_is_read(const struct check *check)
{
	const struct node *node = form_find(check->root, "handler");
	return node && (node->type == NODE_MAP || strcmp(node->text, "callback") == 0);
}

void command_check_upstream(struct reading *reading, const struct contract *contract,
                            const struct node *root)
{
	static void (*const rules[])(const struct check *) = {
	    what_the_service_needs_is_said, times_fit_into_each_other,
	    somebody_can_be_asked,          nothing_is_promised_for_the_service,
	    strategy_needs_no_look,         only_a_header_can_be_left_out,
	};
	struct check check = {reading, contract, root};
	if (!contract->upstream.given) {
		if (form_find(root, "upstream") && handler_is_read(&check))
			REFUSE(&check, "upstream",
			       "`upstream` is given, but handler is not upstream: leave it out, or write "
			       "`handler: upstream`");
		return;
	}
	for (size_t i = 0; i < COUNT(rules); i++)
		rules[i](&check);
}
