/* SPDX-License-Identifier: Apache-2.0 */
/* test_upstream.c -- what a contract may say of work that another service does. */
#include "contracts.h"

#include "base/json.h"
#include "contract/matrix.h"
#include "contract/review.h"

static const char *const service_lines[] = {
    "command: place-order",
    "version: 1",
    "fact: an order is placed",
    "owner: orders",
    "strategy: external",
    "route: POST /orders",
    "key:",
    "  from: header",
    "  generated_by: client",
    "  scope: [client]",
    "  retain: 400d",
    "  after_expiry: refuse",
    "fields: { /sku: { type: text, required: true } }",
    "unknown_fields: keep",
    "same_payload: { context: [] }",
    "duplicates:",
    "  completed: replay",
    "  rejected: replay",
    "  rejected_other_payload: conflict",
    "  in_progress: answer",
    "  other_payload: conflict",
    "  by_source: { client: replay, service: replay, broker: skip, replay: skip, human: show }",
    "  evidence: count",
    "failures: { validation: final, business: final, server: retry }",
    "answer: { store: full }",
    "audit: { retain: 10y }",
    "emits: []",
    "covers: [order]",
    "reconciled_by: order-count",
    "corrected_by: cancel-order",
    "handler: upstream",
    "staged: { lease: 60s, recover: inquiry }",
    "upstream:",
    "  deadline: 10s",
    "  wait: 5s",
    "  without_key: refuse",
    "  conflict: keep",
    "  error: unknown",
    "  headers: [Location, ETag]",
    "  inquiry:",
    "    url: \"/orders/by-key/{external_key}\"",
    "    executed: \"status=200\"",
    "    not_executed: \"status=404\"",
    "    settle: 30s",
    "    backoff: 5s..10m",
    "    give_up: 24h",
};

/* A line that begins as `instead_of`, and everything that is indented below it, is replaced. */
struct change {
	const char *instead_of, *text; /* NULL: none; the line is left out */
};

static size_t indent_of(const char *line)
{
	return strspn(line, " ");
}

/* The index of the line that begins with `start`. */
static size_t line_of(const char *start)
{
	size_t i = 0;
	while (i < COUNT(service_lines) && strncmp(service_lines[i], start, strlen(start)) != 0)
		i++;
	if (i == COUNT(service_lines))
		fail_msg("no line begins with %s", start);
	return i;
}

/* Changes are in the order of the lines. */
static struct str service(const struct change *changes, size_t count)
{
	struct str out = STR_INIT(MUTANT_BYTES_MAX);
	for (size_t i = 0, next = 0; i < COUNT(service_lines); i++) {
		if (next == count || line_of(changes[next].instead_of) != i) {
			str_addf(&out, "%s\n", service_lines[i]);
			continue;
		}
		if (changes[next].text)
			str_addf(&out, "%s\n", changes[next].text);
		while (i + 1 < COUNT(service_lines) &&
		       indent_of(service_lines[i + 1]) > indent_of(changes[next].instead_of))
			i++;
		next++;
	}
	return out;
}

struct loaded {
	char dir[DIR_TEXT_MAX];
	struct contracts *contracts;
	enum ibid_code code;
	struct ibid_err err;
	struct str text;
};

static void load(struct loaded *loaded, const struct change *changes, size_t count)
{
	*loaded = (struct loaded){.text = service(changes, count)};
	dir_open(loaded->dir);
	dir_write(loaded->dir, "place-order.yaml", str_text(&loaded->text));
	loaded->code = contracts_load(loaded->dir, &loaded->contracts, &loaded->err);
}

static void load_one(struct loaded *loaded, const char *instead_of, const char *text)
{
	load(loaded, &(struct change){instead_of, text}, instead_of ? 1 : 0);
}

static void loaded_close(struct loaded *loaded)
{
	contracts_free(loaded->contracts);
	str_release(&loaded->text);
	dir_close(loaded->dir);
}

static const struct contract *only_contract(const struct loaded *loaded)
{
	if (loaded->code)
		fail_msg("%s", loaded->err.text);
	return contracts_at(loaded->contracts, 0);
}

/* The number of the line that holds `part`. */
static int place_of(const struct loaded *loaded, const char *part)
{
	const char *found = strstr(str_text(&loaded->text), part);
	int line = 1;
	assert_non_null(found);
	for (const char *at = str_text(&loaded->text); at < found; at++)
		line += *at == '\n';
	return line;
}

/* The one problem there is, at the line that holds `where`. */
static void expect_only(const struct loaded *loaded, const char *where, const char *text)
{
	if (loaded->code != IBID_CONTRACT)
		fail_msg("accepted, but should say: %s", text);
	const struct contract_problem *problem = contracts_problem(loaded->contracts, 0);
	assert_string_equal(problem->text, text);
	if (contracts_problem_count(loaded->contracts) != 1)
		fail_msg("also: %s", contracts_problem(loaded->contracts, 1)->text);
	assert_int_equal(problem->line, place_of(loaded, where));
}

/* ---- Good ----------------------------------------------------------------------------------- */

static void a_service_is_read_as_it_is_written(void **state)
{
	struct loaded loaded;
	(void)state;
	load_one(&loaded, NULL, NULL);
	const struct contract *contract = only_contract(&loaded);
	const struct contract_upstream *upstream = &contract->upstream;
	assert_true(upstream->given);
	assert_null(contract->script);
	assert_int_equal(contract->staged.recover, RECOVER_INQUIRY);
	assert_int_equal(upstream->deadline_us, 10000000);
	assert_int_equal(upstream->wait_us, 5000000);
	assert_int_equal(upstream->without_key, UPSTREAM_WITHOUT_KEY_REFUSE);
	assert_int_equal(upstream->conflict, UPSTREAM_CONFLICT_KEEP);
	assert_int_equal(upstream->error, UPSTREAM_ERROR_UNKNOWN);
	assert_int_equal(upstream->headers.count, 2);
	assert_string_equal(upstream->headers.items[1], "ETag");
	assert_string_equal(upstream->inquiry.url, "/orders/by-key/{external_key}");
	assert_int_equal(upstream->inquiry.executed, 200);
	assert_int_equal(upstream->inquiry.not_executed, 404);
	assert_int_equal(upstream->inquiry.settle_us, 30000000);
	assert_int_equal(upstream->inquiry.backoff_min_us, 5000000);
	assert_int_equal(upstream->inquiry.backoff_max_us, 600000000);
	assert_int_equal(upstream->inquiry.give_up_us, INT64_C(86400000000));
	assert_string_equal(contract_run_by(contract), "`ibid proxy`");
	loaded_close(&loaded);
}

static void what_may_be_left_out_has_a_meaning(void **state)
{
	static const struct change changes[] = {
	    {"strategy", "strategy: key"},
	    {"staged", "staged: { lease: 60s, recover: human }"},
	    {"upstream",
	     "upstream: { deadline: 10ms, without_key: pass, conflict: retry, error: keep }"},
	};
	struct loaded loaded;
	(void)state;
	load(&loaded, changes, COUNT(changes));
	const struct contract_upstream *upstream = &only_contract(&loaded)->upstream;
	assert_int_equal(upstream->deadline_us, 10000);
	assert_int_equal(upstream->wait_us, 10000);
	assert_int_equal(upstream->without_key, UPSTREAM_WITHOUT_KEY_PASS);
	assert_int_equal(upstream->conflict, UPSTREAM_CONFLICT_RETRY);
	assert_int_equal(upstream->error, UPSTREAM_ERROR_KEEP);
	assert_int_equal(upstream->unknown, UPSTREAM_UNKNOWN_ERROR);
	assert_int_equal(upstream->headers.count, 0);
	assert_null(upstream->inquiry.url);
	loaded_close(&loaded);
}

static void every_good_answer_is_taken(void **state)
{
	static const struct change good[] = {
	    {"  wait", "  wait: 0s"},
	    {"  wait", "  wait: 10s"},
	    {"  error", "  error: retry"},
	    {"  error", "  error: unknown\n  unknown: error"},
	    {"  error", "  error: unknown\n  unknown: accepted"},
	    {"  headers", "  headers: []"},
	    {"  headers", "  headers: [X-Request-Cost, Retry-After]"},
	    {"    settle", "    settle: 0s"},
	    {"    backoff", "    backoff: 1s..1s"},
	    {"    not_executed", "    not_executed: status=204"},
	    {"    url", "    url: /a%20b/{tenant}/{external_key}?q={command_id}&x=1"},
	    {"    url", "    url: https://orders.example:8443/by-key/{external_key}"},
	    {"    url", "    url: http://[::1]:80/{external_key}"},
	    {"staged", "staged: { lease: 11s, recover: inquiry }"},
	    {"answer", "answer: { store: status }"},
	    {"emits", "emits: []\nserialize_by: []"},
	};
	(void)state;
	for (size_t i = 0; i < COUNT(good); i++) {
		struct loaded loaded;
		load_one(&loaded, good[i].instead_of, good[i].text);
		only_contract(&loaded);
		loaded_close(&loaded);
	}
}

static void expect_same_upstream(const struct contract_upstream *a,
                                 const struct contract_upstream *b)
{
	assert_int_equal(a->given, b->given);
	assert_int_equal(a->deadline_us, b->deadline_us);
	assert_int_equal(a->wait_us, b->wait_us);
	assert_int_equal(a->unknown, b->unknown);
	assert_int_equal(a->without_key, b->without_key);
	assert_int_equal(a->conflict, b->conflict);
	assert_int_equal(a->error, b->error);
	assert_int_equal(a->headers.count, b->headers.count);
	for (size_t i = 0; i < a->headers.count; i++)
		assert_string_equal(a->headers.items[i], b->headers.items[i]);
	assert_string_equal(a->inquiry.url, b->inquiry.url);
	assert_int_equal(a->inquiry.executed, b->inquiry.executed);
	assert_int_equal(a->inquiry.not_executed, b->inquiry.not_executed);
	assert_int_equal(a->inquiry.settle_us, b->inquiry.settle_us);
	assert_int_equal(a->inquiry.backoff_min_us, b->inquiry.backoff_min_us);
	assert_int_equal(a->inquiry.backoff_max_us, b->inquiry.backoff_max_us);
	assert_int_equal(a->inquiry.give_up_us, b->inquiry.give_up_us);
}

static void the_text_of_a_service_reads_back_as_the_same_contract(void **state)
{
	static const char *const waits[] = {"  wait: 5s", "  wait: 0s", NULL};
	(void)state;
	for (size_t i = 0; i < COUNT(waits); i++) {
		struct loaded loaded;
		struct arena arena = {0};
		struct contract *again = NULL;
		struct ibid_err err = {0};
		load_one(&loaded, "  wait", waits[i]);
		const struct contract *contract = only_contract(&loaded);
		if (contract_from_text(&arena, contract->text, &again, &err))
			fail_msg("%s", err.text);
		assert_string_equal(again->text, contract->text);
		assert_memory_equal(&again->digest, &contract->digest, sizeof again->digest);
		expect_same_upstream(&again->upstream, &contract->upstream);
		arena_release(&arena);
		loaded_close(&loaded);
	}
}

/* ---- Wrong ---------------------------------------------------------------------------------- */

/* What is written, what it stands for, and what is said at the line that holds `where`. */
struct wrong {
	struct change change;
	const char *where, *text;
};

static void expect_wrong(const struct wrong *wrong, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		struct loaded loaded;
		load_one(&loaded, wrong[i].change.instead_of, wrong[i].change.text);
		expect_only(&loaded, wrong[i].where, wrong[i].text);
		loaded_close(&loaded);
	}
}

static void every_answer_left_open_is_asked_for(void **state)
{
	static const struct wrong wrong[] = {
	    {{"  deadline", NULL}, "upstream:", "upstream.deadline is missing"},
	    {{"  without_key", NULL}, "upstream:", "upstream.without_key is missing"},
	    {{"  conflict", NULL}, "upstream:", "upstream.conflict is missing"},
	    {{"  error", NULL}, "upstream:", "upstream.error is missing"},
	    {{"    url", NULL}, "inquiry:", "upstream.inquiry.url is missing"},
	    {{"    executed", NULL}, "inquiry:", "upstream.inquiry.executed is missing"},
	    {{"    not_executed", NULL}, "inquiry:", "upstream.inquiry.not_executed is missing"},
	    {{"    settle", NULL}, "inquiry:", "upstream.inquiry.settle is missing"},
	    {{"    backoff", NULL}, "inquiry:", "upstream.inquiry.backoff is missing"},
	    {{"    give_up", NULL}, "inquiry:", "upstream.inquiry.give_up is missing"},
	};
	(void)state;
	expect_wrong(wrong, COUNT(wrong));
}

static void what_belongs_together_comes_together(void **state)
{
	static const struct wrong wrong[] = {
	    {{"upstream", NULL},
	     "handler:",
	     "handler is upstream, but no `upstream` says how it is called and what its answers mean"},
	    {{"route", NULL},
	     "handler:",
	     "handler is upstream, but no `route` says which request is passed on"},
	    {{"handler", "handler: callback"},
	     "upstream:",
	     "`upstream` is given, but handler is not upstream: leave it out, or write `handler: "
	     "upstream`"},
	    {{"handler", "handler: [upstream]"}, "handler:", "handler must be one value, not a list"},
	    {{"handler", "handler: downstream"},
	     "handler:",
	     "handler is `downstream`: it must be callback, upstream, or { sql: FILE }"},
	    {{"  inquiry", NULL},
	     "staged:",
	     "staged.recover is inquiry, but no `upstream.inquiry` says where the service is asked"},
	    {{"staged", "staged: { lease: 60s, recover: { sql: by-reference.$store.sql } }"},
	     "inquiry:",
	     "`upstream.inquiry` is given, but staged.recover is not inquiry: nobody would ask"},
	    {{"upstream", "upstream: yes"},
	     "upstream: yes",
	     "upstream must be a mapping, such as { deadline: 10s, without_key: refuse, conflict: "
	     "keep, error: unknown }"},
	    {{"  inquiry", "  inquiry: yes"},
	     "inquiry: yes",
	     "upstream.inquiry must be a mapping: url, executed, not_executed, settle, backoff and "
	     "give_up"},
	    {{"  error", "  error: unknown\n  retries: 3"},
	     "retries",
	     "upstream.retries is not a member of work that another service does; known here: "
	     "deadline, wait, without_key, conflict, error, unknown, headers, inquiry"},
	};
	(void)state;
	expect_wrong(wrong, COUNT(wrong));
}

static void a_service_needs_a_lease(void **state)
{
	static const struct change changes[] = {{"strategy", "strategy: key"}, {"staged", NULL}};
	struct loaded loaded;
	(void)state;
	load(&loaded, changes, COUNT(changes));
	expect_only(&loaded, "handler:",
	            "handler is upstream, but no `staged` says how long a call may be silent, and who "
	            "then finds out");
	loaded_close(&loaded);
}

static void times_that_contradict_each_other_are_refused(void **state)
{
	static const struct wrong wrong[] = {
	    {{"  deadline", "  deadline: 60s"},
	     "deadline:",
	     "upstream.deadline is `60s`: it must be shorter than staged.lease, or a call that is "
	     "still open is taken over"},
	    {{"  wait", "  wait: 11s"},
	     "wait:",
	     "upstream.wait is `11s`: nothing comes after the deadline, which is shorter"},
	    {{"  wait", "  wait: 0m"},
	     "wait:",
	     "upstream.wait is `0m`: it must be a duration such as 30d (ms, s, m, h, d, w, y)"},
	    {{"    settle", "    settle: 24h"},
	     "give_up:",
	     "upstream.inquiry.give_up is `24h`: it must be longer than settle, before which "
	     "not_executed is never believed"},
	    {{"    backoff", "    backoff: 5s"},
	     "backoff:",
	     "upstream.inquiry.backoff is `5s`: it must be the first and the longest pause, such as "
	     "5s..10m"},
	    {{"    backoff", "    backoff: 5s..soon"},
	     "backoff:",
	     "upstream.inquiry.backoff is `5s..soon`: it must be the first and the longest pause, such "
	     "as 5s..10m"},
	    {{"    backoff", "    backoff: 999ms..10m"},
	     "backoff:",
	     "upstream.inquiry.backoff is `999ms..10m`: the service is left alone for 1s at least"},
	    {{"    backoff", "    backoff: 10m..5s"},
	     "backoff:",
	     "upstream.inquiry.backoff is `10m..5s`: its first pause is longer than its last"},
	    {{"    backoff", "    backoff: 5s..25h"},
	     "backoff:",
	     "upstream.inquiry.backoff is `5s..25h`: its last pause is longer than give_up"},
	};
	static const struct change hasty[] = {{"  deadline", "  deadline: 9ms"},
	                                      {"  wait", "  wait: 0s"}};
	struct loaded loaded;
	(void)state;
	expect_wrong(wrong, COUNT(wrong));
	load(&loaded, hasty, COUNT(hasty));
	expect_only(&loaded, "deadline:", "upstream.deadline is `9ms`: a call is given 10ms at least");
	loaded_close(&loaded);
}

static void statuses_must_tell_apart(void **state)
{
	static const struct wrong wrong[] = {
	    {{"    executed", "    executed: status=404"},
	     "executed: status=404",
	     "upstream.inquiry.executed is `status=404`: only a 2xx can be the command's answer"},
	    {{"    not_executed", "    not_executed: status=200"},
	     "not_executed:",
	     "upstream.inquiry.not_executed is `status=200`, as executed is: then it tells nothing"},
	    {{"    not_executed", "    not_executed: status=600"},
	     "not_executed:",
	     "upstream.inquiry.not_executed is `status=600`: it must be a status from 100 to 599, such "
	     "as status=404"},
	    {{"    executed", "    executed: 200"},
	     "executed: 200",
	     "upstream.inquiry.executed is `200`: it must be a status from 100 to 599, such as "
	     "status=200"},
	    {{"    executed", "    executed: status=20"},
	     "executed: status=20",
	     "upstream.inquiry.executed is `status=20`: it must be a status from 100 to 599, such as "
	     "status=200"},
	    {{"    executed", "    executed: status=2000"},
	     "executed: status=2000",
	     "upstream.inquiry.executed is `status=2000`: it must be a status from 100 to 599, such as "
	     "status=200"},
	};
	static const struct change both[] = {{"    executed", "    executed: status=404"}};
	struct loaded loaded;
	(void)state;
	expect_wrong(wrong + 1, COUNT(wrong) - 1);
	/* 404 is what not_executed says, too. */
	load(&loaded, both, COUNT(both));
	assert_int_equal(contracts_problem_count(loaded.contracts), 2);
	assert_string_equal(contracts_problem(loaded.contracts, 0)->text, wrong[0].text);
	loaded_close(&loaded);
}

static void what_only_one_transaction_could_keep_is_not_promised(void **state)
{
	static const struct wrong wrong[] = {
	    {{"emits", "emits: [OrderPlaced]"},
	     "emits:",
	     "emits is not empty, but handler is upstream: the service tells others itself"},
	    {{"emits", "emits: []\nunique: { order_no: { on_duplicate: link, find: "
	               "by-reference.$store.sql } }"},
	     "unique:",
	     "`unique` is given, but handler is upstream: the service's tables are not looked at: "
	     "leave it out"},
	    {{"emits", "emits: []\nserialize_by: [/sku]"},
	     "serialize_by:",
	     "serialize_by names rows, but handler is upstream: the service holds its own"},
	    {{"answer", "answer: { store: full, location: \"/orders/{resource_id}\" }"},
	     "answer:",
	     "answer.location is given, but handler is upstream: the service says where, and "
	     "upstream.headers keeps its Location"},
	    {{"failures", "failures: { validation: retry, business: final, server: retry }"},
	     "failures:",
	     "failures.validation is retry, but the command is staged: its key can't be left free for "
	     "a "
	     "corrected payload; say final, and a corrected payload gets a new key"},
	    {{"answer", "answer: { store: reference }"},
	     "answer:",
	     "answer.store is reference, but handler is upstream: nothing is known of the resource; "
	     "use full, status or none"},
	};
	(void)state;
	expect_wrong(wrong, COUNT(wrong));
}

static void strategies_that_look_are_refused(void **state)
{
	static const char *const names[] = {"natural", "set-once",    "unique",
	                                    "version", "commutative", "none"};
	(void)state;
	for (size_t i = 0; i < COUNT(names); i++) {
		struct loaded loaded;
		char line[64], text[200];
		bool found = false;
		snprintf(line, sizeof line, "strategy: %s", names[i]);
		snprintf(text, sizeof text,
		         "strategy is %s, but handler is upstream: what the service holds can't be looked "
		         "at; use external or key",
		         names[i]);
		load_one(&loaded, "strategy", line);
		assert_int_equal(loaded.code, IBID_CONTRACT);
		for (size_t k = 0; k < contracts_problem_count(loaded.contracts); k++) {
			const struct contract_problem *problem = contracts_problem(loaded.contracts, k);
			assert_null(strstr(problem->text, "the command is staged"));
			if (strcmp(problem->text, text) == 0)
				found = problem->line == place_of(&loaded, "strategy:");
		}
		assert_true(found);
		loaded_close(&loaded);
	}
}

static void only_a_header_can_be_missing(void **state)
{
	static const struct change changes[] = {
	    {"key", "key: { from: [/sku], generated_by: client, scope: [client], retain: 400d, "
	            "after_expiry: refuse }"},
	    {"  without_key", "  without_key: pass"},
	};
	struct loaded loaded;
	(void)state;
	load(&loaded, changes, COUNT(changes));
	expect_only(&loaded, "without_key:",
	            "upstream.without_key is pass, but key.from is fields: a request without its key "
	            "fields is invalid");
	loaded_close(&loaded);
}

/* Never a cookie, never what belongs to one connection, never what ibid says itself. */
static void headers_that_must_not_be_replayed_are_refused(void **state)
{
	static const char *const never[] = {
	    "Set-Cookie",       "set-cookie",
	    "SET-COOKIE2",      "Connection",
	    "Keep-Alive",       "Proxy-Authenticate",
	    "proxy-connection", "TE",
	    "Trailer",          "Transfer-Encoding",
	    "Upgrade",          "Content-Length",
	    "Content-Encoding", "Date",
	    "www-authenticate", "Idempotent-Replayed",
	    "Ibid-Command-Id",  "ibid-x",
	    "Content-Type",
	};
	(void)state;
	for (size_t i = 0; i < COUNT(never); i++) {
		struct loaded loaded;
		char line[100], text[100];
		snprintf(line, sizeof line, "  headers: [ETag, %s]", never[i]);
		snprintf(text, sizeof text, "upstream.headers lists %s: ", never[i]);
		load_one(&loaded, "  headers", line);
		assert_int_equal(loaded.code, IBID_CONTRACT);
		const struct contract_problem *problem = contracts_problem(loaded.contracts, 0);
		assert_memory_equal(problem->text, text, strlen(text));
		assert_int_equal(problem->line, place_of(&loaded, "headers:"));
		loaded_close(&loaded);
	}
}

static void header_names_are_tokens_and_few(void **state)
{
	static const struct wrong wrong[] = {
	    {{"  headers", "  headers: [\"X Y\"]"},
	     "headers:",
	     "upstream.headers: `X Y` is not the name of a header"},
	    {{"  headers", "  headers: [\"X:\"]"},
	     "headers:",
	     "upstream.headers: `X:` is not the name of a header"},
	    {{"  headers", "  headers: [\u00e4]"},
	     "headers:",
	     "upstream.headers: `\u00e4` is not the name of a header"},
	    {{"  headers", "  headers: [ETag, etag]"},
	     "headers:",
	     "upstream.headers lists etag twice, as ETag"},
	    {{"  headers", "  headers: [ETag, ETag]"}, "headers:", "upstream.headers lists ETag twice"},
	    {{"  headers",
	      "  headers: [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u]"},
	     "headers:",
	     "upstream.headers lists 21 names: at most 20 are kept"},
	    {{"  headers", "  headers: ETag"}, "headers:", "upstream.headers must be a list: [ETag]"},
	};
	(void)state;
	expect_wrong(wrong, COUNT(wrong));
}

static void an_inquiry_goes_to_one_place_about_one_command(void **state)
{
	static const struct {
		const char *url, *why;
	} cases[] = {
	    {"orders/{external_key}", "it must be a path on the service"},
	    {"//evil.example/{external_key}", "it must be a path on the service"},
	    {"ftp://orders.example/{external_key}", "it must be a path on the service"},
	    {"http:///{external_key}", "it must be a path on the service"},
	    {"http://[]/{external_key}", "it must be a path on the service"},
	    {"http://[::1/{external_key}", "it must be a path on the service"},
	    {"http://orders.example:/{external_key}", "it must be a path on the service"},
	    {"http://orders.example:80x/{external_key}", "it must be a path on the service"},
	    {"http://me:secret@orders.example/{external_key}", "without a user"},
	    {"http://{external_key}.example/x", "it must be a path on the service"},
	    {"http://orders.example?{external_key}", "it must be a path on the service"},
	    {"/orders/{order}", "in braces stand external_key, command_id or tenant"},
	    {"/orders/{key", "in braces stand"},
	    {"/orders/key}{external_key}", "in braces stand"},
	    {"/orders/{external_key}#top", "what stands at `#top` can't be part"},
	    {"/orders/{external_key} x", "what stands at ` x` can't be part"},
	    {"/orders/{external_key}%zz", "what stands at `%zz` can't be part"},
	    {"/orders/{external_key}\\\\x", "can't be part"},
	    {"/orders/{external_key}\\x01", "invisible control character"},
	    {"/orders/{tenant}", "it names no command"},
	};
	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct loaded loaded;
		char line[128];
		snprintf(line, sizeof line, "    url: \"%s\"", cases[i].url);
		load_one(&loaded, "    url", line);
		assert_int_equal(loaded.code, IBID_CONTRACT);
		const struct contract_problem *problem = contracts_problem(loaded.contracts, 0);
		if (!strstr(problem->text, cases[i].why))
			fail_msg("%s: %s", cases[i].url, problem->text);
		assert_int_equal(contracts_problem_count(loaded.contracts), 1);
		assert_int_equal(problem->line, place_of(&loaded, "url:"));
		loaded_close(&loaded);
	}
}

/* A service is one operation's own: nobody inherits where to send what. */
static void defaults_may_not_name_a_service(void **state)
{
	struct loaded loaded;
	(void)state;
	load_one(&loaded, NULL, NULL);
	contracts_free(loaded.contracts);
	loaded.contracts = NULL;
	dir_write(loaded.dir, "defaults.yaml", "upstream: { deadline: 10s }\n");
	assert_int_equal(contracts_load(loaded.dir, &loaded.contracts, &loaded.err), IBID_CONTRACT);
	assert_string_equal(contracts_problem(loaded.contracts, 0)->text,
	                    "upstream can't be answered for all contracts: each has its own");
	loaded_close(&loaded);
}

/* A store that has kept a contract compares its digest with the file's: what was kept before there
 * were services must be the same text today. */
static void contracts_without_a_service_keep_their_text(void **state)
{
	static const char expected[] =
	    "8be45b3fdd38c5c3dcaee2be3b1c5776855d042a87ae1fa50578419740de8615";
	char dir[DIR_TEXT_MAX], digest[65] = "";
	struct contracts *contracts = NULL;
	struct ibid_err err = {0};
	(void)state;
	dir_open(dir);
	dir_write_mutant(dir, "create-payment.yaml", 0, NULL);
	assert_int_equal(contracts_load(dir, &contracts, &err), IBID_OK);
	const struct contract *contract = contracts_at(contracts, 0);
	assert_false(contract->upstream.given);
	assert_null(strstr(contract->text, "upstream"));
	for (size_t i = 0; i < 32; i++)
		snprintf(digest + 2 * i, 3, "%02x", ((const unsigned char *)&contract->digest)[i]);
	assert_string_equal(digest, expected);
	contracts_free(contracts);
	dir_close(dir);
}

/* ---- Matrix and review ---------------------------------------------------------------------- */

static struct json *read_json(struct arena *arena, struct str *out)
{
	struct json *root = NULL;
	assert_false(out->failed);
	assert_int_equal(
	    json_read(arena, arena_strdup(arena, str_text(out)), out->size, 0, &root, NULL), IBID_OK);
	str_release(out);
	return root;
}

static const char *text_of(const struct json *row, const char *name)
{
	return json_member(row, name)->text;
}

static const struct json *service_row(const struct json *root, const char *answer)
{
	for (const struct json *row = json_member(root, "serviceAnswers")->child; row; row = row->next)
		if (strcmp(text_of(row, "answer"), answer) == 0)
			return row;
	fail_msg("no row for a service that %s", answer);
	return NULL;
}

static void expect_row(const struct json *root, const char *answer, const char *kept,
                       const char *retry)
{
	const struct json *row = service_row(root, answer);
	assert_string_equal(text_of(row, "kept"), kept);
	assert_string_equal(text_of(row, "retry"), retry);
}

#define ASKED                                                                                      \
	": it is unknown; nothing is passed on; the service is asked at "                              \
	"/orders/by-key/{external_key} "                                                               \
	"whether it was done, and after 1d a person is"

static void the_matrix_says_what_every_answer_of_the_service_means(void **state)
{
	struct loaded loaded;
	struct arena arena = {0};
	struct str out = STR_INIT(1 << 20);
	(void)state;
	load_one(&loaded, NULL, NULL);
	only_contract(&loaded);
	matrix_write(&out, loaded.contracts, MATRIX_JSON);
	const struct json *root = read_json(&arena, &out);
	expect_row(root, "answers 2xx or 3xx", "completed; headers: Content-Type, Location, ETag",
	           "nothing runs; the first answer is replayed, byte for byte");
	expect_row(root, "answers 401, 403, 407, 408, 425, 429 or 503", "nothing",
	           "it is passed on again");
	expect_row(root, "answers 409", "a rejection, with the answer",
	           "the first rejection is replayed");
	expect_row(root, "answers another 4xx", "a rejection, with the answer",
	           "the first rejection is replayed");
	expect_row(root, "answers another 5xx", "unknown", "502" ASKED);
	expect_row(root, "can't be reached: nothing was sent", "nothing", "it is passed on again");
	expect_row(root, "gives no answer within 10s, or a broken one", "unknown",
	           "504, or 502 for a broken one" ASKED);
	expect_row(root, "takes longer than 5s", "in progress",
	           "202, and where to look for the outcome");
	expect_row(root, "gets no request without a key: it is refused", "nothing",
	           "there is none: 400 before anything is passed on");
	const char *diagram = text_of(json_member(root, "sequences")->child, "mermaid");
	assert_non_null(strstr(diagram, "ibid->>service: the request as it came"));
	assert_null(strstr(diagram, "ibid->>store: business change"));
	arena_release(&arena);
	loaded_close(&loaded);
}

static void the_matrix_follows_the_policy(void **state)
{
	static const struct change changes[] = {
	    {"strategy", "strategy: key"},
	    {"failures", "failures: { validation: final, business: retry, server: retry }"},
	    {"staged", "staged: { lease: 60s, recover: human }"},
	    {"upstream", "upstream: { deadline: 10s, wait: 0s, without_key: pass, conflict: retry, "
	                 "error: retry, unknown: accepted }"},
	};
	struct loaded loaded;
	struct arena arena = {0};
	struct str out = STR_INIT(1 << 20);
	(void)state;
	load(&loaded, changes, COUNT(changes));
	only_contract(&loaded);
	matrix_write(&out, loaded.contracts, MATRIX_JSON);
	const struct json *root = read_json(&arena, &out);
	static const char promise[] = "nothing: it is taken as a promise that nothing was done";
	assert_string_equal(text_of(service_row(root, "answers 2xx or 3xx"), "kept"),
	                    "completed; headers: Content-Type");
	expect_row(root, "answers 409", promise, "it is passed on again");
	expect_row(root, "answers another 5xx", promise, "it is passed on again");
	expect_row(root, "answers another 4xx", "nothing: failures.business is retry",
	           "it is passed on again");
	expect_row(root, "gives no answer within 10s, or a broken one", "unknown",
	           "202: it is unknown; nothing is passed on; it becomes unknown, and a person finds "
	           "out whether it was done");
	expect_row(root, "is called", "in progress", "202 at once, and where to look for the outcome");
	expect_row(root, "gets a request without a key", "nothing",
	           "there is none: a repetition is passed on without protection");
	arena_release(&arena);
	loaded_close(&loaded);
}

static void a_matrix_without_a_service_does_not_speak_of_one(void **state)
{
	char dir[DIR_TEXT_MAX];
	struct contracts *contracts = NULL;
	struct ibid_err err = {0};
	struct str out = STR_INIT(1 << 20);
	(void)state;
	dir_open(dir);
	dir_write_mutant(dir, "create-payment.yaml", 0, NULL);
	assert_int_equal(contracts_load(dir, &contracts, &err), IBID_OK);
	matrix_write(&out, contracts, MATRIX_MARKDOWN);
	assert_null(strstr(str_text(&out), "Answers of the service"));
	str_release(&out);
	contracts_free(contracts);
	dir_close(dir);
}

static void expect_review(const struct change *changes, size_t count, const char *list,
                          const char *id, const char *answer, const char *why)
{
	struct loaded loaded;
	struct arena arena = {0};
	struct review_counts counts;
	struct str out = STR_INIT(1 << 22);
	load(&loaded, changes, count);
	only_contract(&loaded);
	review_write(&out, loaded.contracts, NULL, MATRIX_JSON, &counts);
	const struct json *row = json_member(read_json(&arena, &out), list)->child;
	while (row && strcmp(text_of(row, "id"), id) != 0)
		row = row->next;
	assert_non_null(row);
	if (strcmp(text_of(row, "answer"), answer) != 0 || !strstr(text_of(row, "why"), why))
		fail_msg("%s: %s: %s", id, text_of(row, "answer"), text_of(row, "why"));
	arena_release(&arena);
	loaded_close(&loaded);
}

static void the_review_asks_where_the_contract_takes_something_for_granted(void **state)
{
	static const struct {
		struct change change;
		const char *list, *id, *answer, *why;
	} cases[] = {
	    {{"  error", "  error: unknown"}, "ibid", "IBID-7", "pass", "upstream.error: unknown"},
	    {{"  error", "  error: unknown"}, "erp", "ERP-19", "pass", "nothing is run again"},
	    {{"  error", "  error: unknown"},
	     "erp",
	     "ERP-18",
	     "pass",
	     "/orders/by-key/{external_key} is asked"},
	    {{"  error", "  error: unknown\n  unknown: accepted"},
	     "api",
	     "API-15",
	     "ask",
	     "look at the clients: do they take the 202 for success"},
	    {{"  error", "  error: retry"}, "ibid", "IBID-7", "ask", "upstream.error: retry"},
	    {{"  error", "  error: retry"}, "erp", "ERP-19", "ask", "upstream.error: retry"},
	    {{"  conflict", "  conflict: retry"}, "ibid", "IBID-7", "ask", "upstream.conflict: retry"},
	    {{"  conflict", "  conflict: retry"}, "erp", "ERP-19", "ask", "upstream.conflict: retry"},
	    {{"  conflict", "  conflict: retry"}, "api", "API-9", "pass", "2xx, 3xx and 4xx but 409"},
	    {{"  error", "  error: keep"}, "ibid", "IBID-7", "ask", "a failure that would pass"},
	    {{"  error", "  error: keep"}, "db", "DB-19", "ask", "a failure that would pass"},
	    {{"  error", "  error: keep"}, "api", "API-9", "pass", "with 409 and 5xx, byte for byte"},
	    {{"  error", "  error: unknown"},
	     "api",
	     "API-9",
	     "pass",
	     "never 401, 403, 407, 408, 425, 429, 5xx and 503"},
	    {{"  without_key", "  without_key: pass"}, "erp", "ERP-1", "ask", "without protection"},
	    {{"  without_key", "  without_key: refuse"}, "erp", "ERP-1", "pass", "is refused"},
	    {{"  error", "  error: unknown"},
	     "api",
	     "API-7",
	     "ask",
	     "the service's change is in neither"},
	};
	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++)
		expect_review(&cases[i].change, 1, cases[i].list, cases[i].id, cases[i].answer,
		              cases[i].why);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(a_service_is_read_as_it_is_written),
	    cmocka_unit_test(what_may_be_left_out_has_a_meaning),
	    cmocka_unit_test(every_good_answer_is_taken),
	    cmocka_unit_test(the_text_of_a_service_reads_back_as_the_same_contract),
	    cmocka_unit_test(every_answer_left_open_is_asked_for),
	    cmocka_unit_test(what_belongs_together_comes_together),
	    cmocka_unit_test(a_service_needs_a_lease),
	    cmocka_unit_test(times_that_contradict_each_other_are_refused),
	    cmocka_unit_test(statuses_must_tell_apart),
	    cmocka_unit_test(what_only_one_transaction_could_keep_is_not_promised),
	    cmocka_unit_test(strategies_that_look_are_refused),
	    cmocka_unit_test(only_a_header_can_be_missing),
	    cmocka_unit_test(headers_that_must_not_be_replayed_are_refused),
	    cmocka_unit_test(header_names_are_tokens_and_few),
	    cmocka_unit_test(an_inquiry_goes_to_one_place_about_one_command),
	    cmocka_unit_test(defaults_may_not_name_a_service),
	    cmocka_unit_test(contracts_without_a_service_keep_their_text),
	    cmocka_unit_test(the_matrix_says_what_every_answer_of_the_service_means),
	    cmocka_unit_test(the_matrix_follows_the_policy),
	    cmocka_unit_test(a_matrix_without_a_service_does_not_speak_of_one),
	    cmocka_unit_test(the_review_asks_where_the_contract_takes_something_for_granted),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
