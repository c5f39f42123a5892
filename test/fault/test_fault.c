/* SPDX-License-Identifier: Apache-2.0 */
/* test_fault.c -- an error, a lost answer and a SIGKILL at every statement, until none is left;
 * then the same key again. Whatever happened, there is one effect, one event and one audit entry.
 */
#include "api/desk.h"
#include "support/bed.h"
#include "support/ended.h"
#include "support/fault.h"

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
    {"declared", "pay-declared", "{\"reference\":\"r\",\"amount\":1}", NULL, NULL, false, false,
     "executed 201", 1, 1, 1, 1},
    {"answers by itself", "pay-brief", "{\"reference\":\"r\",\"amount\":1}", NULL, NULL, false,
     false, "executed 201", 1, 1, 1, 1},
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
enum { SCENARIOS = sizeof scenarios / sizeof *scenarios, CALLBACK = 4 };

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

enum { TRACE_MAX = 512 };

struct met {
	char statement[40];
	enum hook_kind kind;
};

struct faults {
	struct fault fault;          /* the one that is tried; `at` 0: none */
	struct fault lost;           /* and a commit that loses its answer; `at` 0: none */
	bool ended;                  /* the first commit finds that the handler ended the transaction */
	struct met trace[TRACE_MAX]; /* the points of fault.kind, as they were met */
	unsigned traced, opened;     /* `opened`: of these, before the handle was open */
	unsigned answered; /* traced when the command had its answer: duplicates are written later */
};

static void note_point(void *user, const struct hook_point *point)
{
	struct faults *faults = user;
	if (!fault_meets(&faults->fault, point))
		return;
	assert_true(faults->traced < TRACE_MAX);
	struct met *met = &faults->trace[faults->traced++];
	snprintf(met->statement, sizeof met->statement, "%s", point->statement);
	met->kind = point->kind;
}

static struct store *wrap(void *user, struct store *store)
{
	struct faults *faults = user;
	ended_times = faults->ended;
	if (faults->ended)
		store = ended_wrap(NULL, store);
	faults->fault.tell = note_point;
	faults->fault.user = faults;
	faults->fault.also = faults->lost.at ? &faults->lost : NULL;
	return fault_set(&faults->fault, store);
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
		snprintf(said, 64, "error %s", ibid_code_name(err.code));
		return false;
	}
	faults->opened = faults->traced;
	bool registered = ibid_handle(ibid, "call", call, NULL, NULL) == IBID_OK;
	if (registered)
		submit(ibid, tenant, "k", scenario, scenario->payload, said);
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
	ibid_close(bed_ibid(&bed, NULL)); /* which keeps it */
}

/* What was there before the command under test. */
static void prepare(const char *tenant, const struct scenario *scenario)
{
	char said[64];
	fault_path(scenario->name);
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

/* The points of a run in which nothing else is disturbed. */
static void trace(const struct scenario *scenario, const char *tenant, struct faults *faults)
{
	char said[64];
	prepare(tenant, scenario);
	assert_true(run_once(faults, tenant, scenario, said));
	check(tenant, scenario, said);
}

/* A fault by which the commit of the command has an unknown outcome, and happened or did not. */
static struct fault at_commit(const struct scenario *scenario, const char *tenant, bool happens)
{
	static const enum hook_kind lite[] = {HOOK_BEFORE, HOOK_AFTER}, pg[] = {HOOK_FLUSH, HOOK_SENT};
	enum hook_kind kind = (bed_kind == BED_SQLITE ? lite : pg)[happens];
	struct faults plain = {.fault = {.kind = kind == HOOK_BEFORE ? FAULT_FAIL : FAULT_LOSE}};
	trace(scenario, tenant, &plain);
	for (unsigned i = plain.opened; i < plain.traced; i++)
		if (strcmp(plain.trace[i].statement, "commit") == 0 && plain.trace[i].kind == kind)
			return (struct fault){.kind = plain.fault.kind, .at = i + 1};
	fail_msg("no commit in the trace");
	return (struct fault){.at = 0};
}

/* ---- Which points are tried ------------------------------------------------------------------ */

struct points {
	struct met known[512];
	unsigned known_count, total;
};

static bool is_known(const struct points *points, const struct met *met)
{
	for (unsigned i = 0; i < points->known_count; i++)
		if (points->known[i].kind == met->kind &&
		    strcmp(points->known[i].statement, met->statement) == 0)
			return true;
	return false;
}

static void count_point(struct points *points, const struct met *met)
{
	if (!is_known(points, met))
		points->known[points->known_count++] = *met;
	points->total++;
}

/* Where a sample is taken, a statement's first of each kind is always in it. */
static bool takes_part(const struct points *points, const struct met *met, size_t index, unsigned n)
{
	return !is_known(points, met) || fault_takes_part(index * 7 + n, 6);
}

/* ---- Errors --------------------------------------------------------------------------------- */

/* What is met when nothing but the scenario's own commit is lost. */
static struct faults trace_plain(const struct scenario *scenario, size_t index,
                                 enum fault_kind kind)
{
	struct faults plain = {.fault = {.kind = kind}};
	char tenant[64];
	snprintf(tenant, sizeof tenant, "commit-%zu-%d", index, (int)kind);
	if (scenario->lose_commit)
		plain.lost = at_commit(scenario, tenant, true);
	struct faults faults = plain;
	snprintf(tenant, sizeof tenant, "plain-%zu-%d", index, (int)kind);
	trace(scenario, tenant, &faults);
	faults.lost = plain.lost; /* to be used again */
	return faults;
}

static void fail_every_statement(const struct scenario *scenario, size_t index,
                                 enum fault_kind kind, struct points *points)
{
	struct faults plain = trace_plain(scenario, index, kind);
	char tenant[64], said[64];
	for (unsigned n = 1;; n++) {
		struct faults faults = {.fault = {.kind = kind, .at = n}, .lost = plain.lost};
		if (n <= plain.traced && !takes_part(points, &plain.trace[n - 1], index, n))
			continue;
		if (n <= plain.traced)
			count_point(points, &plain.trace[n - 1]);
		snprintf(tenant, sizeof tenant, "e-%zu-%d-%u", index, (int)kind, n);
		prepare(tenant, scenario);
		said[0] = '\0';
		run_once(&faults, tenant, scenario, said);
		check(tenant, scenario, said);
		if (!faults.fault.fired) {
			assert_true(n > plain.answered);
			return;
		}
	}
}

static void an_error_at_any_statement_costs_nothing(void **state) /* B02 B15 */
{
	(void)state;
	for (int kind = FAULT_FAIL; kind <= FAULT_LOSE; kind++) {
		struct points points = {.total = 0};
		for (size_t i = 0; i < SCENARIOS; i++)
			fail_every_statement(&scenarios[i], i, (enum fault_kind)kind, &points);
		print_message("%u faults of kind %d at %u points\n", points.total, kind,
		              points.known_count);
	}
}

static void a_lost_commit_is_answered_as_executed_when_it_was(void **state) /* B15 */
{
	(void)state;
	const struct scenario *scenario = &scenarios[0];
	char said[64];
	struct faults lost = {.fault = at_commit(scenario, "lost-plain", true)};
	prepare("lost-after", scenario);
	run_once(&lost, "lost-after", scenario, said);
	assert_true(lost.fault.fired);
	assert_string_equal(said, "executed 201"); /* not replayed, not unknown: the store was asked */
	check("lost-after", scenario, said);
	struct faults undone = {.fault = at_commit(scenario, "undone-plain", false)};
	prepare("lost-before", scenario);
	run_once(&undone, "lost-before", scenario, said);
	assert_true(undone.fault.fired);
	assert_string_equal(said, "executed 201");
	check("lost-before", scenario, said);
}

/* ---- Kills ---------------------------------------------------------------------------------- */

/* A separate process that submits and is killed at the n-th point. True when it was. */
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

static void kill_at_every_statement(const struct scenario *scenario, size_t index,
                                    struct points *kills)
{
	struct faults plain = trace_plain(scenario, index, FAULT_KILL);
	char tenant[64];
	for (unsigned n = 1; n <= plain.traced; n++) {
		struct faults faults = {.fault = {.kind = FAULT_KILL, .at = n}, .lost = plain.lost};
		if (!takes_part(kills, &plain.trace[n - 1], index, n))
			continue;
		snprintf(tenant, sizeof tenant, "k-%zu-%u", index, n);
		prepare(tenant, scenario);
		assert_true(run_killed(&faults, tenant, scenario));
		count_point(kills, &plain.trace[n - 1]);
		check(tenant, scenario, "");
	}
	struct faults beyond = {.fault = {.kind = FAULT_KILL, .at = plain.traced + 1},
	                        .lost = plain.lost};
	snprintf(tenant, sizeof tenant, "k-%zu-beyond", index);
	prepare(tenant, scenario);
	assert_false(run_killed(&beyond, tenant, scenario));
	check(tenant, scenario, "");
}

static const char *const lite_statements[] = {
    "contract_get", "begin",  "command_get", "script",       "event_put",   "audit_put",
    "command_put",  "commit", "rollback",    "evidence_put", "payload_put", "command_replace"};
static const char *const pg_statements_met[] = {
    "contract_get", "group_lock",   "claim_find",     "script",
    "event_append", "audit_put",    "command_insert", "commit",
    "resolve_lock", "evidence_put", "payload_put",    "command_replace"};

static void a_kill_at_any_statement_costs_nothing(void **state) /* B02 B12 B15 */
{
	(void)state;
	enum { EXPECTED = sizeof lite_statements / sizeof *lite_statements };
	const char *const *expected = bed_kind == BED_SQLITE ? lite_statements : pg_statements_met;
	struct points kills = {.total = 0};
	for (size_t i = 0; i < SCENARIOS; i++)
		kill_at_every_statement(&scenarios[i], i, &kills);
	for (size_t i = 0; i < EXPECTED; i++) {
		struct met met = {.kind = HOOK_AFTER};
		snprintf(met.statement, sizeof met.statement, "%s", expected[i]);
		if (!is_known(&kills, &met))
			fail_msg("no kill at %s", expected[i]);
	}
	print_message("%u kills at %u points\n", kills.total, kills.known_count);
	assert_true(kills.total >= 2 * EXPECTED);
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
	bed_settle(&bed);
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
	char said[64] = "";
	set_version(2);
	fault_path("unknown");
	for (int kind = 0; kind < FAULT_KINDS; kind++) {
		struct faults plain = {.fault = {.kind = (enum fault_kind)kind}, .ended = true};
		bool seen = false;
		char tenant[64];
		snprintf(tenant, sizeof tenant, "u-plain-%d", kind);
		assert_true(run_once(&plain, tenant, &scenarios[CALLBACK], said));
		assert_string_equal(said, "unknown 500");
		check_unknown(tenant, said);
		for (unsigned i = 0; i < plain.traced; i++)
			seen = seen || strncmp(plain.trace[i].statement, "exception_", 10) == 0;
		assert_true(seen);
		for (unsigned n = 1; n <= plain.traced; n++) {
			struct faults faults = {.fault = {.kind = (enum fault_kind)kind, .at = n},
			                        .ended = true};
			snprintf(tenant, sizeof tenant, "u-%d-%u", kind, n);
			said[0] = '\0';
			if (kind == FAULT_KILL)
				assert_true(run_killed(&faults, tenant, &scenarios[CALLBACK]));
			else
				run_once(&faults, tenant, &scenarios[CALLBACK], said);
			check_unknown(tenant, said);
		}
	}
}

/* ---- What a person says of them ------------------------------------------------------------- */

/* Say that the tenant's one command was not done. */
static enum ibid_code act_on(struct ibid *ibid, const char *tenant, struct action_result *ret)
{
	struct store *store = ibid->ledger->store;
	struct exception_filter filter = {.tenant = tenant, .queue = -1, .state = -1, .limit = 2};
	struct exception_row *items = NULL;
	struct arena arena = {0};
	struct ibid_err err = {0};
	size_t count = 0;
	struct actor actor = {
	    .tenant = tenant, .client = "olga", .token = "0123456789abcdef", .roles = ROLE_OPERATOR};
	const struct desk desk = desk_of(store, env_system(), ibid->ledger);
	enum ibid_code code = store_list_exceptions(store, &arena, &filter, &items, &count, &err);
	if (!code && count == 1) {
		const struct action_request request = {.verb = ACTION_DO,
		                                       .actor = &actor,
		                                       .item = items->id,
		                                       .reason = "not booked",
		                                       .action = "confirm-not-executed"};
		code = desk_act(&desk, &arena, &request, ret, &err);
	}
	arena_release(&arena);
	return code;
}

static enum ibid_code act_once(struct faults *faults, const char *tenant, struct action_result *ret)
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
	struct action_result result = {0};
	int status = 0;
	if (faults->fault.kind != FAULT_KILL) {
		(void)!act_once(faults, tenant, &result);
		return;
	}
	pid_t child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		(void)!act_once(faults, tenant, &result);
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

/* Said again, it is done, or was: once, with its evidence. */
static void check_acted(const char *tenant)
{
	struct faults none = {0};
	struct action_result result = {0};
	bed_settle(&bed);
	enum ibid_code code = act_once(&none, tenant, &result);
	if (code != IBID_OK)
		assert_int_equal(result.refusal, REFUSED_RESOLVED);
	assert_int_equal(count_of("ibid.exception where state = 'RESOLVED'", tenant), 1);
	assert_int_equal(count_of("ibid.command where state = 'FAILED'", tenant), 1);
	assert_int_equal(count_of("ibid.action where 1 = 1", tenant), 1);
}

static void what_a_person_says_is_done_once_with_its_evidence_whatever_fails(void **state) /* I1 */
{
	(void)state;
	char said[64] = "";
	set_version(2);
	fault_path("person");
	for (int kind = 0; kind < FAULT_KINDS; kind++) {
		struct faults plain = {.fault = {.kind = (enum fault_kind)kind}}, ends = {.ended = true};
		struct action_result result = {0};
		char tenant[64];
		snprintf(tenant, sizeof tenant, "a-plain-%d", kind);
		assert_true(run_once(&ends, tenant, &scenarios[CALLBACK], said));
		assert_string_equal(said, "unknown 500");
		assert_int_equal(act_once(&plain, tenant, &result), IBID_OK);
		check_acted(tenant);
		for (unsigned n = 1; n <= plain.traced; n++) {
			struct faults faults = {.fault = {.kind = (enum fault_kind)kind, .at = n}};
			struct faults lost = {.ended = true};
			snprintf(tenant, sizeof tenant, "a-%d-%u", kind, n);
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

/* Disturb one init at its n-th point; afterwards a plain one succeeds and a command runs once.
 * False when there was no such point. An init goes on where the store itself makes good what was
 * lost, or gives a connection up that can't be rolled back. */
static bool init_disturbed(enum fault_kind kind, unsigned n)
{
	struct faults faults = {.fault = {.kind = kind, .at = n}};
	struct ibid_err err = {0};
	unsigned before = fault_count();
	int status = 0;
	open_fresh();
	pid_t child = fork();
	assert_true(child >= 0);
	if (child == 0)
		_exit(init_with(&faults, &err) == IBID_OK ? 0 : 1);
	assert_int_equal(waitpid(child, &status, 0), child);
	bool fired = fault_count() > before;
	bed_init(&fresh);
	struct ibid *ibid = bed_ibid(&fresh, NULL);
	bed_expect(ibid, "pay", "k", "{\"reference\":\"r\",\"amount\":1}", "executed 201");
	bed_expect(ibid, "pay", "k", "{\"reference\":\"r\",\"amount\":1}", "replayed executed 201");
	assert_int_equal(bed_number(&fresh, "select count(*) from payment"), 1);
	ibid_close(ibid);
	bed_close(&fresh);
	if (kind == FAULT_KILL && fired)
		assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	else
		assert_true(WIFEXITED(status));
	if (!fired || (kind == FAULT_FAIL && bed_kind == BED_SQLITE))
		assert_int_equal(WEXITSTATUS(status), fired);
	return fired;
}

static void an_init_that_fails_or_is_killed_at_any_statement_can_be_repeated(void **state)
{
	(void)state;
	static const char *const statements[] = {"schema_exists", "schema_file_put", "decimal_column",
	                                         "contract_get", "contract_put"};
	fault_path("init");
	for (int kind = 0; kind < FAULT_KINDS; kind++) {
		struct faults plain = {.fault = {.kind = (enum fault_kind)kind}};
		struct points points = {.total = 0};
		struct ibid_err err = {0};
		open_fresh();
		assert_int_equal(init_with(&plain, &err), IBID_OK);
		bed_close(&fresh);
		for (unsigned n = 1; n <= plain.traced; n++) {
			if (!takes_part(&points, &plain.trace[n - 1], 0, n))
				continue;
			count_point(&points, &plain.trace[n - 1]);
			assert_true(init_disturbed((enum fault_kind)kind, n));
		}
		for (size_t i = 0; i < sizeof statements / sizeof *statements; i++) {
			struct met met = {.kind = kind == FAULT_FAIL ? HOOK_BEFORE : HOOK_AFTER};
			snprintf(met.statement, sizeof met.statement, "%s", statements[i]);
			if (!is_known(&points, &met))
				fail_msg("init does not run %s", statements[i]);
		}
		assert_false(init_disturbed((enum fault_kind)kind, plain.traced + 1));
	}
}

static int set_up(void **state)
{
	(void)state;
	static const char *const contracts[] = {"pay.yaml",
	                                        "pay-brief.yaml",
	                                        "pay-declared.yaml",
	                                        "pay-kept.yaml",
	                                        "pay-soft.yaml",
	                                        "call.yaml",
	                                        NULL};
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
	    cmocka_unit_test(an_error_at_any_statement_costs_nothing),
	    cmocka_unit_test(a_kill_at_any_statement_costs_nothing),
	    cmocka_unit_test(an_unknown_command_and_its_exception_survive_every_fault_together),
	    cmocka_unit_test(what_a_person_says_is_done_once_with_its_evidence_whatever_fails),
	    cmocka_unit_test(an_init_that_fails_or_is_killed_at_any_statement_can_be_repeated),
	};
	return cmocka_run_group_tests_name("fault", tests, set_up, tear_down);
}
