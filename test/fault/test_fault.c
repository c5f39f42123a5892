/* SPDX-License-Identifier: Apache-2.0 */
/* test_fault.c -- an error, a lost commit and a SIGKILL at every store verb, until none is left;
 * then the same key again. Whatever happened, there is one effect, one event and one audit entry.
 */
#include "outbox/act.h"
#include "support/bed.h"
#include "support/ended.h"

#include <signal.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <libpq-fe.h>

#define FIXTURE IBID_SOURCE_DIR "/test/flow/contracts"

static struct bed bed;

/* ---- Commands and what must be left of them ------------------------------------------------- */

struct scenario {
	const char *name, *operation, *payload;
	const char *before;     /* an earlier payload under key "k" of the same tenant; NULL: none */
	const char *before_key; /* its key; NULL: the same */
	bool older_contract;    /* the earlier one came under another contract version */
	bool lose_commit;       /* the first commit reports nothing (I7) */
	const char *expected;   /* the final answer, whether replayed or not */
	int effects, events, audits, commands;
	bool corrects; /* the earlier payload was refused, and stays as evidence */
};

static const struct scenario scenarios[] = {
    {"success", "pay", "{\"reference\":\"r\",\"amount\":1}", NULL, NULL, false, false,
     "executed 201", 1, 1, 1, 1},
    {"lost commit", "pay", "{\"reference\":\"r\",\"amount\":1}", NULL, NULL, false, true,
     "executed 201", 1, 1, 1, 1},
    {"short way", "pay-brief", "{\"reference\":\"r\",\"amount\":1}", NULL, NULL, false, false,
     "executed 201", 1, 1, 1, 1},
    {"callback", "call", "{}", NULL, NULL, false, false, "executed 200", 1, 2, 1, 1},
    {"rejection", "pay", "{\"reference\":\"r\",\"amount\":1,\"fail\":\"reject\"}", NULL, NULL,
     false, false, "rejected 422", 0, 0, 0, 1},
    {"invalid", "pay", "{\"reference\":\"r\",\"amount\":0}", NULL, NULL, false, false,
     "rejected 422", 0, 0, 0, 1},
    {"business duplicate", "pay", "{\"reference\":\"r\",\"amount\":1}",
     "{\"reference\":\"r\",\"amount\":1}", "earlier", false, false, "linked 200", 1, 1, 2, 2},
    {"replay", "pay", "{\"reference\":\"r\",\"amount\":1}", "{\"reference\":\"r\",\"amount\":1}",
     NULL, false, false, "executed 201", 1, 1, 1, 1},
    {"replay of an older contract version", "pay", "{\"reference\":\"r\",\"amount\":1}",
     "{\"reference\":\"r\",\"amount\":1}", NULL, true, false, "executed 201", 1, 1, 1, 1},
    {"payload kept", "pay-kept", "{\"reference\":\"r\",\"amount\":1}", NULL, NULL, false, false,
     "executed 201", 1, 1, 1, 1},
    {"payload kept of a rejection", "pay-kept",
     "{\"reference\":\"r\",\"amount\":1,\"fail\":\"reject\"}", NULL, NULL, false, false,
     "rejected 422", 0, 0, 0, 1},
    {"conflict", "pay", "{\"reference\":\"r\",\"amount\":2}", "{\"reference\":\"r\",\"amount\":1}",
     NULL, false, false, "conflict 409", 1, 1, 1, 1},
    {"correction", "pay-soft", "{\"reference\":\"r\",\"amount\":1}",
     "{\"reference\":\"r\",\"amount\":0}", NULL, false, false, "executed 201", 1, 1, 1, 1, true},
    {"correction that loses its commit", "pay-soft", "{\"reference\":\"r\",\"amount\":1}",
     "{\"reference\":\"r\",\"amount\":0}", NULL, false, true, "executed 201", 1, 1, 1, 1, true},
};
enum { SCENARIOS = sizeof scenarios / sizeof *scenarios, CALLBACK = 3 };

static enum ibid_code call(struct ibid_work *work, void *user)
{
	(void)user;
	const char *values[2] = {ibid_work_tenant(work), ibid_work_command_id(work)};
	sqlite3 *db = ibid_work_sqlite(work);
	bool ok;
	if (db) {
		sqlite3_stmt *statement = NULL;
		ok = sqlite3_prepare_v2(
		         db, "insert into payment (tenant, id, reference, amount) values (?1, ?2, ?2, '1')",
		         -1, &statement, NULL) == SQLITE_OK;
		for (int i = 0; ok && i < 2; i++)
			sqlite3_bind_text(statement, i + 1, values[i], -1, SQLITE_TRANSIENT);
		ok = ok && sqlite3_step(statement) == SQLITE_DONE;
		sqlite3_finalize(statement);
	} else {
		PGresult *result = PQexecParams(ibid_work_postgres(work),
		                                "insert into payment (tenant, id, reference, amount) "
		                                "values ($1, $2::uuid, $2::text, 1)",
		                                2, NULL, values, NULL, NULL, 0);
		ok = PQresultStatus(result) == PGRES_COMMAND_OK;
		PQclear(result);
	}
	if (!ok)
		return ibid_fail(work, "the insert failed");
	for (int i = 0; i < 2; i++) {
		if (ibid_emit(work, IBID_EVENT(.aggregate_type = "call", .aggregate_id = values[1],
		                               .type = "Called", .payload = "{}")))
			return IBID_FAILED;
	}
	return ibid_answer(work, 200, NULL);
}

static enum ibid_code submit(struct ibid *ibid, const char *tenant, const char *key,
                             const struct scenario *scenario, const char *payload, char said[64])
{
	struct ibid_result *result = NULL;
	struct ibid_err err = {0};
	enum ibid_code code = ibid_submit(ibid,
	                                  IBID_COMMAND(.tenant = tenant, .client = "c",
	                                               .operation = scenario->operation, .key = key,
	                                               .payload = payload),
	                                  &result, &err);
	if (code)
		snprintf(said, 64, "error %s", ibid_code_name(code));
	else
		snprintf(said, 64, "%s", bed_say(result));
	ibid_result_free(result);
	return code;
}

/* ---- Opening with faults -------------------------------------------------------------------- */

enum { TRACE_MAX = 256 };

struct faults {
	enum fault_kind kind;
	unsigned n;           /* 0: none */
	unsigned lost_commit; /* the verb that loses its answer; 0: none */
	bool ended;           /* the first commit finds that the handler ended the transaction */
	struct store *fault;  /* the wrapper, while the handle is open */
	bool fired;
	const char *trace[TRACE_MAX]; /* verbs as they were called */
	unsigned traced;
	unsigned answered; /* traced when the command had its answer: duplicates are written later */
};

static const char *const uncounted[] = {"close", "rollback", "lend", "free_script"};

static void note_verb(void *user, const char *verb, bool after, enum ibid_code code)
{
	struct faults *faults = user;
	(void)code;
	for (size_t i = 0; i < sizeof uncounted / sizeof *uncounted; i++) {
		if (strcmp(verb, uncounted[i]) == 0)
			return;
	}
	if (!after && faults->traced < TRACE_MAX)
		faults->trace[faults->traced++] = verb;
}

static struct store *wrap(void *user, struct store *store)
{
	struct faults *faults = user;
	ended_times = faults->ended;
	if (faults->ended)
		store = ended_wrap(NULL, store);
	if (faults->lost_commit)
		store = store_fault_wrap(store, FAULT_ERROR_AFTER, faults->lost_commit);
	store = store_trace_wrap(store, note_verb, faults);
	if (faults->n)
		store = faults->fault = store_fault_wrap(store, faults->kind, faults->n);
	return store;
}

/* Open with the faults, submit once, close. False when a fault kept it from opening. */
static bool run_once(struct faults *faults, const char *tenant, const struct scenario *scenario,
                     char said[64])
{
	struct ibid *ibid = NULL;
	struct ibid_err err = {0};
	struct api_seams seams = {.wrap = wrap, .user = faults};
	if (api_open(IBID_OPTIONS(.store = bed.url, .contracts = bed.contracts, .busy_ms = 20000),
	             &seams, &ibid, &err)) {
		faults->fired = faults->n != 0;
		snprintf(said, 64, "error %s", ibid_code_name(err.code));
		return false;
	}
	bool registered = ibid_handle(ibid, "call", call, NULL, NULL) == IBID_OK;
	if (registered)
		submit(ibid, tenant, "k", scenario, scenario->payload, said);
	if (faults->fault)
		faults->fired = store_fault_fired(faults->fault);
	faults->answered = faults->traced;
	ibid_close(ibid);
	return registered;
}

/* ---- Checking ------------------------------------------------------------------------------- */

/* The contract's version is all that differs. */
static void set_version(int version)
{
	static int now = 1;
	char from[16], to[16];
	if (version == now)
		return;
	snprintf(from, sizeof from, "version: %d", now);
	snprintf(to, sizeof to, "version: %d", version);
	bed_replace(&bed, "pay.yaml", from, to);
	now = version;
}

/* What was there before the command under test. */
static void prepare(const char *tenant, const struct scenario *scenario)
{
	char said[64];
	if (scenario->before) {
		set_version(scenario->older_contract ? 1 : 2);
		struct ibid *ibid = bed_ibid(&bed, NULL);
		submit(ibid, tenant, scenario->before_key ? scenario->before_key : "k", scenario,
		       scenario->before, said);
		assert_string_equal(said, scenario->corrects ? "rejected 422" : "executed 201");
		ibid_close(ibid);
	}
	set_version(2);
}

/* Retry the same key, as a client would, until there is an answer; then count. */
static void check(const char *tenant, const struct scenario *scenario, const char *first)
{
	struct ibid *ibid = bed_ibid(&bed, NULL);
	char said[64] = "";
	assert_int_equal(ibid_handle(ibid, "call", call, NULL, NULL), IBID_OK);
	submit(ibid, tenant, "k", scenario, scenario->payload, said);
	const char *answer = strncmp(said, "replayed ", 9) == 0 ? said + 9 : said;
	if (strcmp(answer, scenario->expected) != 0)
		print_message("%s, tenant %s: first \"%s\", then \"%s\"\n", scenario->name, tenant, first,
		              said);
	assert_string_equal(answer, scenario->expected);
	/* Nobody was told of an outcome that is not one, or of one before it was durable (I10). */
	if (strncmp(first, "error", 5) != 0 && strncmp(first, "unknown", 7) != 0 && *first) {
		assert_string_equal(strncmp(first, "replayed ", 9) == 0 ? first + 9 : first,
		                    scenario->expected);
		assert_true(answer != said || strcmp(said, "conflict 409") == 0);
	}
	assert_int_equal(bed_number(&bed, "select count(*) from payment where tenant = '%s'", tenant),
	                 scenario->effects);
	assert_int_equal(
	    bed_number(&bed, "select count(*) from ibid.event where tenant = '%s'", tenant),
	    scenario->events);
	assert_int_equal(
	    bed_number(&bed, "select count(*) from ibid.audit where tenant = '%s'", tenant),
	    scenario->audits);
	assert_int_equal(
	    bed_number(&bed, "select count(*) from ibid.command where tenant = '%s'", tenant),
	    scenario->commands);
	if (scenario->corrects) {
		submit(ibid, tenant, "k", scenario, scenario->before, said);
		assert_string_equal(said, "conflict 409"); /* late */
		assert_int_equal(
		    bed_number(&bed, "select count from ibid.evidence where tenant = '%s'", tenant), 2);
	}
	/* The payload is there with its row, and only where the contract keeps it (I1). */
	assert_int_equal(
	    bed_number(&bed, "select count(*) from ibid.payload where tenant = '%s'", tenant),
	    strcmp(scenario->operation, "pay-kept") == 0 ? scenario->commands : 0);
	ibid_close(ibid);
}

/* The verbs of an undisturbed run, and which of them is the (first) commit. */
static void trace(const struct scenario *scenario, const char *tenant, struct faults *ret)
{
	char said[64];
	*ret = (struct faults){0};
	prepare(tenant, scenario);
	assert_true(run_once(ret, tenant, scenario, said));
	check(tenant, scenario, said);
}

static unsigned commit_of(const struct faults *trace)
{
	for (unsigned i = 0; i < trace->traced; i++) {
		if (strcmp(trace->trace[i], "commit") == 0)
			return i + 1;
	}
	fail_msg("no commit in the trace");
	return 0;
}

/* ---- Which points are tried ------------------------------------------------------------------ */

struct points {
	const char *verbs[64];
	unsigned verb_count, total;
	unsigned by_verb[64];
};

static void count_point(struct points *points, const char *verb)
{
	unsigned i = 0;
	while (i < points->verb_count && strcmp(points->verbs[i], verb) != 0)
		i++;
	if (i == points->verb_count)
		points->verbs[points->verb_count++] = verb;
	points->by_verb[i]++;
	points->total++;
}

/* On PostgreSQL each point takes long: a verb's first is always tried, of the others every sixth,
 * which the seed chooses, unless IBID_TEST_WHOLE=1. */
enum { POINTS_SHARE = 6 };

static bool takes_part(const struct points *points, const char *verb, size_t index, unsigned n)
{
	const char *whole = getenv("IBID_TEST_WHOLE"), *seed = getenv("IBID_TEST_SEED");
	if (bed_kind == BED_SQLITE || (whole && strcmp(whole, "1") == 0))
		return true;
	for (unsigned i = 0; i < points->verb_count; i++)
		if (strcmp(points->verbs[i], verb) == 0)
			return (index * 7 + n + (seed ? strtoul(seed, NULL, 10) : 0)) % POINTS_SHARE == 0;
	return true;
}

/* ---- Errors --------------------------------------------------------------------------------- */

static void fail_every_verb(const struct scenario *scenario, size_t index, enum fault_kind kind,
                            struct points *points)
{
	struct faults plain, lossy = {0};
	char tenant[64], said[64];
	snprintf(tenant, sizeof tenant, "plain-%zu-%d", index, (int)kind);
	trace(scenario, tenant, &plain);
	lossy.lost_commit = scenario->lose_commit ? commit_of(&plain) : 0;
	for (unsigned n = 1;; n++) {
		struct faults faults = {.kind = kind, .n = n, .lost_commit = lossy.lost_commit};
		assert_true(n < TRACE_MAX);
		if (n <= plain.traced && !takes_part(points, plain.trace[n - 1], index, n))
			continue;
		if (n <= plain.traced)
			count_point(points, plain.trace[n - 1]);
		snprintf(tenant, sizeof tenant, "e-%zu-%d-%u", index, (int)kind, n);
		prepare(tenant, scenario);
		said[0] = '\0';
		run_once(&faults, tenant, scenario, said);
		check(tenant, scenario, said);
		if (!faults.fired) {
			assert_true(n > plain.answered);
			return;
		}
	}
}

static void an_error_at_any_verb_costs_nothing(void **state) /* B02 B15 */
{
	(void)state;
	static const enum fault_kind kinds[] = {FAULT_ERROR_BEFORE, FAULT_ERROR_AFTER,
	                                        FAULT_UNKNOWN_BEFORE};
	for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
		struct points points = {0};
		for (size_t i = 0; i < SCENARIOS; i++)
			fail_every_verb(&scenarios[i], i, kinds[k], &points);
		print_message("%u faults of kind %d at %u verbs\n", points.total, (int)kinds[k],
		              points.verb_count);
	}
}

static void a_lost_commit_is_answered_as_executed_when_it_was(void **state) /* B15 */
{
	(void)state;
	const struct scenario *scenario = &scenarios[0];
	struct faults plain;
	char said[64];
	trace(scenario, "lost-plain", &plain);
	struct faults lost = {.kind = FAULT_ERROR_AFTER, .n = commit_of(&plain)};
	prepare("lost-after", scenario);
	run_once(&lost, "lost-after", scenario, said);
	assert_true(lost.fired);
	assert_string_equal(said, "executed 201"); /* not replayed, not unknown: the store was asked */
	check("lost-after", scenario, said);
	struct faults undone = {.kind = FAULT_UNKNOWN_BEFORE, .n = commit_of(&plain)};
	prepare("lost-before", scenario);
	run_once(&undone, "lost-before", scenario, said);
	assert_true(undone.fired);
	assert_string_equal(said, "executed 201");
	check("lost-before", scenario, said);
}

/* ---- Kills ---------------------------------------------------------------------------------- */

/* A separate process that submits and is killed at the n-th verb. True when it was. */
static bool run_killed(const struct faults *given, const char *tenant,
                       const struct scenario *scenario)
{
	struct faults faults = *given;
	char said[64];
	pid_t child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		run_once(&faults, tenant, scenario, said);
		_exit(0);
	}
	int status;
	assert_int_equal(waitpid(child, &status, 0), child);
	if (WIFSIGNALED(status)) {
		assert_int_equal(WTERMSIG(status), SIGKILL);
		return true;
	}
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	return false;
}

static void kill_at_every_verb(const struct scenario *scenario, size_t index, enum fault_kind kind,
                               struct points *kills)
{
	struct faults plain;
	char tenant[64], said[64];
	unsigned lost = 0;
	snprintf(tenant, sizeof tenant, "kplain-%zu-%d", index, (int)kind);
	trace(scenario, tenant, &plain);
	if (scenario->lose_commit) {
		lost = commit_of(&plain);
		snprintf(tenant, sizeof tenant, "klossy-%zu-%d", index, (int)kind);
		plain = (struct faults){.lost_commit = lost};
		prepare(tenant, scenario);
		run_once(&plain, tenant, scenario, said);
	}
	for (unsigned n = 1; n <= plain.traced; n++) {
		struct faults faults = {.kind = kind, .n = n, .lost_commit = lost};
		if (!takes_part(kills, plain.trace[n - 1], index, n))
			continue;
		snprintf(tenant, sizeof tenant, "k-%zu-%d-%u", index, (int)kind, n);
		prepare(tenant, scenario);
		assert_true(run_killed(&faults, tenant, scenario));
		count_point(kills, plain.trace[n - 1]);
		check(tenant, scenario, "");
	}
	struct faults beyond = {.kind = kind, .n = plain.traced + 1, .lost_commit = lost};
	snprintf(tenant, sizeof tenant, "k-%zu-%d-beyond", index, (int)kind);
	prepare(tenant, scenario);
	assert_false(run_killed(&beyond, tenant, scenario));
	check(tenant, scenario, "");
}

/* The first is PostgreSQL's alone. */
static const char *const expected_verbs[] = {
    "express",   "make_script", "put_contract", "get_contract", "claim",   "run_script",
    "put_event", "put_audit",   "put_command",  "commit",       "resolve", "put_evidence"};

static void a_kill_at_any_verb_costs_nothing(void **state) /* B02 B12 B15 */
{
	(void)state;
	struct points kills = {0};
	for (size_t i = 0; i < SCENARIOS; i++) {
		kill_at_every_verb(&scenarios[i], i, FAULT_KILL_BEFORE, &kills);
		kill_at_every_verb(&scenarios[i], i, FAULT_KILL_AFTER, &kills);
	}
	size_t expected = sizeof expected_verbs / sizeof *expected_verbs;
	for (size_t i = bed_kind == BED_SQLITE; i < expected; i++) {
		unsigned at = 0;
		while (at < kills.verb_count && strcmp(kills.verbs[at], expected_verbs[i]) != 0)
			at++;
		if (at == kills.verb_count)
			fail_msg("no kill at %s", expected_verbs[i]);
	}
	print_message("%u kills at %u verbs\n", kills.total, kills.verb_count);
	assert_true(kills.total >= 2 * expected);
}

/* ---- Unknown commands ----------------------------------------------------------------------- */

static int64_t count_of(const char *rows, const char *tenant)
{
	return bed_number(&bed, "select count(*) from %s and tenant = '%s'", rows, tenant);
}

/* The UNKNOWN row and its exception are both there or both not, also after a retry: a command whose
 * trouble was not recorded runs again. */
static void check_unknown(const char *tenant, const char *first)
{
	int64_t unknown = count_of("ibid.command where state = 'UNKNOWN'", tenant);
	char said[64] = "";
	assert_int_equal(count_of("ibid.exception where state = 'OPEN'", tenant), unknown);
	if (strncmp(first, "unknown", 7) == 0)
		assert_int_equal(unknown, 1);
	struct faults none = {0};
	assert_true(run_once(&none, tenant, &scenarios[CALLBACK], said));
	const char *executed = strncmp(first, "executed", 8) == 0 ? "replayed executed 200"
	                                                          : "executed 200";
	assert_string_equal(said, unknown ? "unknown 500" : executed);
	assert_int_equal(count_of("ibid.exception where state = 'OPEN'", tenant), unknown);
	assert_int_equal(count_of("ibid.command where 1 = 1", tenant), 1);
}

static void
an_unknown_command_and_its_exception_survive_every_fault_together(void **state) /* B01 I1 I8 */
{
	(void)state;
	static const enum fault_kind kinds[] = {FAULT_ERROR_BEFORE, FAULT_ERROR_AFTER,
	                                        FAULT_UNKNOWN_BEFORE, FAULT_KILL_BEFORE,
	                                        FAULT_KILL_AFTER};
	struct faults plain = {.ended = true};
	char said[64] = "";
	bool seen = false;
	set_version(2);
	assert_true(run_once(&plain, "u-plain", &scenarios[CALLBACK], said));
	assert_string_equal(said, "unknown 500");
	check_unknown("u-plain", said);
	for (unsigned i = 0; i < plain.traced; i++)
		seen = seen || strcmp(plain.trace[i], "put_exception") == 0;
	assert_true(seen);
	for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
		for (unsigned n = 1; n <= plain.traced; n++) {
			struct faults faults = {.kind = kinds[i], .n = n, .ended = true};
			char tenant[64];
			snprintf(tenant, sizeof tenant, "u-%zu-%u", i, n);
			said[0] = '\0';
			if (kinds[i] == FAULT_KILL_BEFORE || kinds[i] == FAULT_KILL_AFTER)
				assert_true(run_killed(&faults, tenant, &scenarios[CALLBACK]));
			else
				run_once(&faults, tenant, &scenarios[CALLBACK], said);
			check_unknown(tenant, said);
		}
	}
}

/* ---- What a person says of them ------------------------------------------------------------- */

/* Say that the tenant's one command was not done. */
static enum ibid_code act_on(struct ibid *ibid, const char *tenant, struct acted *ret)
{
	struct store *store = ibid->ledger->store;
	struct exception_filter filter = {.tenant = tenant, .queue = -1, .state = -1, .limit = 2};
	struct exception_row *items = NULL;
	struct arena arena = {0};
	struct ibid_err err = {0};
	size_t count = 0;
	struct actor actor = {
	    .tenant = tenant, .client = "olga", .token = "0123456789abcdef", .roles = ROLE_OPERATOR};
	struct acting acting = {.store = store, .env = env_system(), .ledger = ibid->ledger};
	enum ibid_code code = store->ops->list_exceptions(store, &arena, &filter, &items, &count, &err);
	if (!code && count == 1) {
		struct act act = {.kind = ACT_RESOLVE,
		                  .actor = &actor,
		                  .id = items->id,
		                  .reason = "not booked",
		                  .action = "confirm-not-executed"};
		code = exception_act(&acting, &arena, &act, ret, &err);
	}
	arena_release(&arena);
	return code;
}

static enum ibid_code act_once(struct faults *faults, const char *tenant, struct acted *ret)
{
	struct ibid *ibid = NULL;
	struct ibid_err err = {0};
	struct api_seams seams = {.wrap = wrap, .user = faults};
	enum ibid_code code = api_open(
	    IBID_OPTIONS(.store = bed.url, .contracts = bed.contracts, .busy_ms = 20000), &seams, &ibid,
	    &err);
	if (code)
		return code;
	code = act_on(ibid, tenant, ret);
	ibid_close(ibid);
	return code;
}

static void act_disturbed(struct faults *faults, const char *tenant)
{
	struct acted acted = {0};
	bool kills = faults->kind == FAULT_KILL_BEFORE || faults->kind == FAULT_KILL_AFTER;
	int status = 0;
	if (!kills) {
		(void)!act_once(faults, tenant, &acted);
		return;
	}
	pid_t child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		(void)!act_once(faults, tenant, &acted);
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

/* Said again, it is done, or was: once, with its evidence. */
static void check_acted(const char *tenant)
{
	struct faults none = {0};
	struct acted acted = {0};
	enum ibid_code code = act_once(&none, tenant, &acted);
	if (code != IBID_OK)
		assert_int_equal(acted.refusal, REFUSED_RESOLVED);
	assert_int_equal(count_of("ibid.exception where state = 'RESOLVED'", tenant), 1);
	assert_int_equal(count_of("ibid.command where state = 'FAILED'", tenant), 1);
	assert_int_equal(count_of("ibid.action where 1 = 1", tenant), 1);
}

static void what_a_person_says_is_done_once_with_its_evidence_whatever_fails(void **state) /* I1 */
{
	(void)state;
	static const enum fault_kind kinds[] = {FAULT_ERROR_BEFORE, FAULT_ERROR_AFTER,
	                                        FAULT_UNKNOWN_BEFORE, FAULT_KILL_BEFORE,
	                                        FAULT_KILL_AFTER};
	struct faults plain = {0};
	struct acted acted = {0};
	char said[64] = "";
	set_version(2);
	struct faults ends = {.ended = true};
	assert_true(run_once(&ends, "a-plain", &scenarios[CALLBACK], said));
	assert_string_equal(said, "unknown 500");
	assert_int_equal(act_once(&plain, "a-plain", &acted), IBID_OK);
	check_acted("a-plain");
	for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
		for (unsigned n = 1; n <= plain.traced; n++) {
			struct faults faults = {.kind = kinds[i], .n = n}, lost = {.ended = true};
			char tenant[64];
			snprintf(tenant, sizeof tenant, "a-%zu-%u", i, n);
			assert_true(run_once(&lost, tenant, &scenarios[CALLBACK], said));
			act_disturbed(&faults, tenant);
			check_acted(tenant);
		}
	}
}

/* ---- Setting up ----------------------------------------------------------------------------- */

static struct bed fresh;

static enum ibid_code init_with(struct faults *faults, struct ibid_err *err)
{
	struct api_seams seams = {.wrap = wrap, .user = faults};
	struct init_report report;
	return api_init(IBID_OPTIONS(.store = fresh.url, .contracts = fresh.contracts), &seams, &report,
	                err);
}

static void open_fresh(void)
{
	static const char *const contracts[] = {"pay.yaml", NULL};
	bed_open_empty(&fresh, FIXTURE);
	bed_keep_contracts(&fresh, contracts);
}

/* Disturb one init at its n-th verb; afterwards a plain one succeeds and a command runs once. */
static bool init_disturbed(enum fault_kind kind, unsigned n)
{
	struct faults faults = {.kind = kind, .n = n};
	struct ibid_err err = {0};
	int status = 0;
	open_fresh();
	pid_t child = fork();
	assert_true(child >= 0);
	if (child == 0)
		_exit(init_with(&faults, &err) == IBID_OK ? 0 : 1);
	assert_int_equal(waitpid(child, &status, 0), child);
	bed_init(&fresh);
	struct ibid *ibid = bed_ibid(&fresh, NULL);
	bed_expect(ibid, "pay", "k", "{\"reference\":\"r\",\"amount\":1}", "executed 201");
	bed_expect(ibid, "pay", "k", "{\"reference\":\"r\",\"amount\":1}", "replayed executed 201");
	assert_int_equal(bed_number(&fresh, "select count(*) from payment"), 1);
	ibid_close(ibid);
	bed_close(&fresh);
	return WIFSIGNALED(status) ? WTERMSIG(status) == SIGKILL
	                           : WIFEXITED(status) && WEXITSTATUS(status) == 1;
}

static void an_init_that_fails_or_is_killed_at_any_verb_can_be_repeated(void **state)
{
	(void)state;
	static const enum fault_kind kinds[] = {FAULT_ERROR_BEFORE, FAULT_ERROR_AFTER,
	                                        FAULT_KILL_BEFORE, FAULT_KILL_AFTER};
	static const char *const verbs[] = {"migrate",        "apply_schema", "check_decimal_column",
	                                    "get_contract",   "put_contract", "make_script",
	                                    "prepare_scripts"};
	struct faults plain = {0};
	struct ibid_err err = {0};
	open_fresh();
	assert_int_equal(init_with(&plain, &err), IBID_OK);
	bed_close(&fresh);
	for (size_t i = 0; i < sizeof verbs / sizeof *verbs; i++) {
		bool seen = false;
		for (unsigned k = 0; k < plain.traced; k++)
			seen = seen || strcmp(plain.trace[k], verbs[i]) == 0;
		if (!seen)
			fail_msg("init does not call %s", verbs[i]);
	}
	for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
		for (unsigned n = 1; n <= plain.traced; n++)
			assert_true(init_disturbed(kinds[i], n));
		assert_false(init_disturbed(kinds[i], plain.traced + 1));
	}
}

static int set_up(void **state)
{
	(void)state;
	static const char *const contracts[] = {"pay.yaml",      "pay-brief.yaml", "pay-kept.yaml",
	                                        "pay-soft.yaml", "call.yaml",      NULL};
	bed_open_empty(&bed, FIXTURE);
	bed_keep_contracts(&bed, contracts);
	/* A killed client's server may take a moment to notice: the retry waits for it. */
	bed_replace(&bed, "defaults.yaml", "in_progress: answer", "in_progress: wait 20s");
	bed_init(&bed);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	bed_close(&bed);
	return 0;
}

/* STORE [PATTERN]: the tests whose names match it, or with `!` before it the others. */
int main(int argc, char **argv)
{
	bed_choose(argc, argv);
	if (argc > 2 && *argv[2] == '!')
		cmocka_set_skip_filter(argv[2] + 1);
	else if (argc > 2)
		cmocka_set_test_filter(argv[2]);
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(a_lost_commit_is_answered_as_executed_when_it_was),
	    cmocka_unit_test(an_error_at_any_verb_costs_nothing),
	    cmocka_unit_test(a_kill_at_any_verb_costs_nothing),
	    cmocka_unit_test(an_unknown_command_and_its_exception_survive_every_fault_together),
	    cmocka_unit_test(what_a_person_says_is_done_once_with_its_evidence_whatever_fails),
	    cmocka_unit_test(an_init_that_fails_or_is_killed_at_any_verb_can_be_repeated),
	};
	return cmocka_run_group_tests_name("fault", tests, set_up, tear_down);
}
