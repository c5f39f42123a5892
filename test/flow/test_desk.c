/* SPDX-License-Identifier: Apache-2.0 */
/* test_desk.c -- what a new subject gets from the desk for a row of its table and the function that
 * carries its action out: here files, of which one may be loaded again. */
#include "api/api.h"
#include "desk/action.h"
#include "desk/exception.h"
#include "support/bed.h"

#include <string.h>

#define FIXTURE IBID_SOURCE_DIR "/test/flow/contracts"

static struct bed bed;
static struct ibid *ibid;
static struct arena arena;

/* ---- The subject ---------------------------------------------------------------------------- */

static unsigned loaded;
static enum ibid_code fails; /* after it has written */

static enum ibid_code find_file(struct action *action, struct ibid_err *err)
{
	(void)err;
	action->found = arena_strdup(action->arena, action->subject_id);
	return IBID_OK;
}

/* Whatever it writes: a pause of that name. */
static enum ibid_code load(struct action *action, struct tx *tx, const struct action_record *record,
                           struct ibid_err *err)
{
	const struct pause_row row = {
	    .kind = PAUSE_EVENT,
	    .tenant = record->action.tenant,
	    .name = action->found,
	    .by = record->action.actor,
	    .reason = record->action.reason,
	    .since_us = action->now_us,
	};
	loaded++;
	enum ibid_code code = store_put_pause(tx, &row, err);
	return code || !fails ? code : err_set(err, fails, "it can't be read");
}

static const struct action_rule rules[] = {{"load", ROLE_OPERATOR, .write = load}, {0}};
static const struct action_subject files = {"file", rules, .find = find_file};
static const struct action_subject *const subjects[] = {&files, NULL};

static const struct retry_stop unreadable = {
    .queue = QUEUE_DATA_QUALITY, .severity = SEVERITY_LOW, .actions = "load,close"};

/* An item about a file of its own tenant. */
static struct uuid stop(const char *tenant, const char *needs_approval)
{
	struct store *store = ibid->ledger->store;
	struct outcome outcome;
	struct tx *tx = NULL;
	struct ibid_err err = {0};
	const struct exception_row about = {
	    .tenant = tenant,
	    .subject_type = "file",
	    .subject_id = "march.csv",
	    .reason = "UNREADABLE",
	    .owner = "books",
	    .needs_approval = needs_approval,
	};
	const struct exception_row item = exception_make(&about, &unreadable, env_system(), 1, 0);
	assert_int_equal(item.due_us - item.opened_us, INT64_C(4) * 3600 * 1000000);
	assert_int_equal(store->ops->begin_action(store, &tx, &err), IBID_OK);
	assert_int_equal(store_put_exception(tx, &item, &err), IBID_OK);
	assert_int_equal(store->ops->commit(&tx, &arena, &outcome, &err), IBID_OK);
	loaded = 0;
	fails = IBID_OK;
	return item.id;
}

/* ---- Acting --------------------------------------------------------------------------------- */

static struct action_result act(enum action_verb verb, const char *tenant, const char *who,
                                unsigned roles, struct uuid item, enum ibid_code expected)
{
	const struct actor actor = {tenant, who, "0123456789abcdef", roles};
	const struct action_request request = {
	    .verb = verb, .actor = &actor, .reason = "mended", .item = item, .action = "load"};
	const struct desk desk = {ibid->ledger->store, env_system(), subjects, NULL, NULL};
	struct action_result result;
	struct ibid_err err = {0};
	enum ibid_code code = desk_act(&desk, &arena, &request, &result, &err);
	if (code != expected)
		fail_msg("%s: %s", ibid_code_name(code), err.text);
	return result;
}

static void check(const char *tenant, int64_t written, int64_t resolved, int64_t records)
{
	assert_int_equal(
	    bed_number(&bed, "select count(*) from ibid.pause where tenant = '%s'", tenant), written);
	assert_int_equal(bed_number(&bed,
	                            "select count(*) from ibid.exception where tenant = '%s' and state "
	                            "= 'RESOLVED' and resolution = 'load' and reason = 'UNREADABLE'",
	                            tenant),
	                 resolved);
	assert_int_equal(
	    bed_number(&bed, "select count(*) from ibid.action where tenant = '%s'", tenant), records);
}

static void it_is_carried_out_with_its_record_and_the_end_of_its_exception(void **state) /* I1 I8 */
{
	(void)state;
	struct uuid item = stop("one", NULL);
	struct action_result result = act(ACTION_DO, "one", "olga", ROLE_OPERATOR, item, IBID_OK);
	assert_string_equal(result.action, "load");
	assert_int_equal(result.item.state, EXCEPTION_RESOLVED);
	assert_int_equal(loaded, 1);
	check("one", 1, 1, 1);
	result = act(ACTION_DO, "one", "oleg", ROLE_OPERATOR, item, IBID_REJECTED);
	assert_int_equal(result.refusal, REFUSED_RESOLVED);
	assert_int_equal(loaded, 1);
}

static void who_has_no_role_of_its_row_does_nothing(void **state)
{
	(void)state;
	struct uuid item = stop("role", NULL);
	const unsigned roles[] = {ROLE_APPROVER, ROLE_CLIENT, 0};
	for (size_t i = 0; i < sizeof roles / sizeof *roles; i++)
		assert_int_equal(act(ACTION_DO, "role", "web", roles[i], item, IBID_REJECTED).refusal,
		                 REFUSED_ROLE);
	assert_int_equal(loaded, 0);
	check("role", 0, 0, 0);
}

static void what_its_function_could_not_do_leaves_no_trace(void **state) /* I1 */
{
	(void)state;
	struct uuid item = stop("fails", NULL);
	fails = IBID_FAILED;
	act(ACTION_DO, "fails", "olga", ROLE_OPERATOR, item, IBID_FAILED);
	fails = IBID_RETRY;
	act(ACTION_DO, "fails", "olga", ROLE_OPERATOR, item, IBID_BUSY);
	assert_int_equal(loaded, 2);
	check("fails", 0, 0, 0);
	fails = IBID_OK;
	act(ACTION_DO, "fails", "olga", ROLE_OPERATOR, item, IBID_OK);
	check("fails", 1, 1, 1);
}

static void what_needs_a_second_person_is_done_when_that_one_approves(void **state)
{
	(void)state;
	struct uuid item = stop("two", "load");
	struct action_result result = act(ACTION_DO, "two", "olga", ROLE_OPERATOR, item, IBID_OK);
	assert_true(result.proposed);
	assert_int_equal(loaded, 0);
	check("two", 0, 0, 1);
	result = act(ACTION_DO, "two", "oleg", ROLE_OPERATOR, item, IBID_REJECTED);
	assert_int_equal(result.refusal, REFUSED_WAITING);
	result = act(ACTION_APPROVE, "two", "olga", ROLE_ADMIN, item, IBID_REJECTED);
	assert_int_equal(result.refusal, REFUSED_SAME_PERSON);
	result = act(ACTION_APPROVE, "two", "anna", ROLE_APPROVER, item, IBID_OK);
	assert_string_equal(result.action, "load");
	assert_int_equal(loaded, 1);
	check("two", 1, 1, 2);
	assert_int_equal(
	    bed_number(&bed, "select count(*) from ibid.approval where tenant = 'two' and decision "
	                     "= 'APPROVED' and decided_by = 'anna'"),
	    1);
}

static int set_up(void **state)
{
	(void)state;
	bed_open(&bed, FIXTURE);
	ibid = bed_ibid(&bed, NULL);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	arena_release(&arena);
	ibid_close(ibid);
	bed_close(&bed);
	return 0;
}

int main(int argc, char **argv)
{
	bed_choose(argc, argv);
	static const struct CMUnitTest tests[] = {
	    cmocka_unit_test(it_is_carried_out_with_its_record_and_the_end_of_its_exception),
	    cmocka_unit_test(who_has_no_role_of_its_row_does_nothing),
	    cmocka_unit_test(what_its_function_could_not_do_leaves_no_trace),
	    cmocka_unit_test(what_needs_a_second_person_is_done_when_that_one_approves),
	};
	return cmocka_run_group_tests(tests, set_up, tear_down);
}
