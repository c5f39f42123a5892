/* SPDX-License-Identifier: Apache-2.0 */
/* test_fault_outbox_act.c -- an error, a lost answer and a SIGKILL at every statement of a person's
 * decision about a parked event; then the same again. Whatever happened, it is decided
 * once: what is held, the item and the evidence say the same (I1, J02). */
#include "api/desk.h"
#include "outbox/delivery.h"
#include "support/bed.h"
#include "support/fault.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define FIXTURE IBID_SOURCE_DIR "/test/flow/contracts"

static struct bed bed;

static int64_t count_of(const char *rows, const char *tenant)
{
	return bed_number(&bed, "select count(*) from %s and tenant = '%s'", rows, tenant);
}

static struct store *open_store(void)
{
	const struct store_options options = {
	    .url = bed.url, .connections = 2, .busy_ms = 20000, .env = env_system()};
	struct store *store = NULL;
	struct ibid_err err = {0};
	if (store_open(&options, &store, &err))
		fail_msg("%s", err.text);
	return store;
}

/* ---- A parked event ------------------------------------------------------------------------- */

static struct event_row emit(const char *tenant, struct store *store, struct arena *arena)
{
	struct ibid *ibid = bed_ibid(&bed, NULL);
	struct ibid_result *result = NULL;
	struct ibid_err err = {0};
	struct event_row *events = NULL;
	size_t count = 0;
	assert_int_equal(
	    ibid_submit(ibid,
	                IBID_COMMAND(.tenant = tenant, .client = "c", .operation = "pay", .key = "k",
	                             .payload = "{\"reference\":\"r\",\"amount\":1}"),
	                &result, &err),
	    IBID_OK);
	ibid_result_free(result);
	ibid_close(ibid);
	assert_int_equal(store_list_events(store, arena, tenant, NULL, 9, &events, &count, &err),
	                 IBID_OK);
	assert_int_equal(count, 1);
	return events[0];
}

/* The destination has the tenant's name, so that each has lanes of its own. */
static struct uuid park(const char *tenant)
{
	struct store *store = open_store();
	struct arena arena = {0};
	struct ibid_err err = {0};
	const struct lane_wish wish = {tenant, "relay", 60000000};
	struct lane_lease *leases = NULL;
	size_t count = 0, share = 0;
	struct event_row event = emit(tenant, store, &arena);
	char id[UUID_TEXT_SIZE];
	uuid_write(event.id, id);
	assert_int_equal(store->ops->lease_lanes(store, &arena, &wish, &leases, &count, &share, &err),
	                 IBID_OK);
	const struct hold_row hold = {
	    .tenant = tenant,
	    .event_id = event.id,
	    .aggregate_type = event.aggregate_type,
	    .aggregate_id = event.aggregate_id,
	    .version = event.version,
	    .state = HOLD_PARKED,
	    .attempts = 3,
	    .reason = "PERMANENT_FAILURE",
	    .why = "it can't",
	    .since_us = 1,
	};
	const struct exception_row item = {
	    .tenant = tenant,
	    .id = uuid_v7(env_system()),
	    .queue = QUEUE_DEAD_LETTER,
	    .severity = SEVERITY_HIGH,
	    .subject_type = "delivery",
	    .subject_id = arena_printf(&arena, "%s/%s", tenant, id),
	    .reason = "PERMANENT_FAILURE",
	    .owner = "relay",
	    .actions = "release,skip,cancel",
	    .opened_us = 1,
	    .due_us = 2,
	};
	const struct lane_settlement settlement = {.lease = &leases[0],
	                                           .holds = &hold,
	                                           .hold_count = 1,
	                                           .exceptions = &item,
	                                           .exception_count = 1};
	assert_int_equal(store->ops->settle_lane(store, &settlement, &err), IBID_OK);
	arena_release(&arena);
	store_close(store);
	return event.id;
}

/* ---- Deciding ------------------------------------------------------------------------------- */

static enum ibid_code skip_event(const char *tenant, struct uuid event, struct fault *fault,
                                 struct action_result *ret)
{
	const struct actor actor = {
	    .tenant = tenant, .client = "olga", .token = "0123456789abcdef", .roles = ROLE_OPERATOR};
	struct store *store = fault_set(fault, open_store());
	struct arena arena = {0};
	struct ibid_err err = {0};
	const struct desk desk = desk_of(store, env_system(), NULL);
	const struct action_request request = {.verb = ACTION_DO,
	                                       .actor = &actor,
	                                       .subject_type = delivery_subject.type,
	                                       .subject_id = delivery_name(&arena, tenant, &event),
	                                       .action = "skip",
	                                       .reason = "nobody needs it"};
	enum ibid_code code = desk_act(&desk, &arena, &request, ret, &err);
	arena_release(&arena);
	store_close(store);
	return code;
}

static void skip_disturbed(const char *tenant, struct uuid event, struct fault *fault)
{
	struct action_result result;
	int status = 0;
	pid_t child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		(void)!skip_event(tenant, event, fault, &result);
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	if (fault->kind == FAULT_KILL)
		assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	else
		assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void check_decided(const char *tenant, struct uuid event)
{
	struct action_result result = {0};
	struct fault none = {.at = 0};
	bed_settle(&bed);
	int64_t before = count_of("ibid.action where 1 = 1", tenant);
	/* All of it or nothing. */
	assert_int_equal(count_of("ibid.delivery_hold where state = 'SKIPPED'", tenant), before);
	assert_int_equal(count_of("ibid.exception where state = 'RESOLVED'", tenant), before);
	enum ibid_code code = skip_event(tenant, event, &none, &result);
	assert_int_equal(code, before ? IBID_REJECTED : IBID_OK);
	assert_int_equal(result.refusal, before ? REFUSED_RESOLVED : REFUSED_NOT);
	assert_int_equal(result.hold.state, HOLD_SKIPPED);
	assert_int_equal(count_of("ibid.delivery_hold where state = 'SKIPPED'", tenant), 1);
	assert_int_equal(count_of("ibid.exception where state = 'RESOLVED'", tenant), 1);
	assert_int_equal(count_of("ibid.action where action = 'skip'", tenant), 1);
}

static void a_decision_is_made_once_with_its_evidence_whatever_fails(void **state) /* C04 J02 I1 */
{
	(void)state;
	unsigned faults = 0;
	fault_path("decision");
	for (int kind = 0; kind < FAULT_KINDS; kind++) {
		struct action_result result;
		struct fault plain = {.kind = (enum fault_kind)kind};
		char tenant[64];
		snprintf(tenant, sizeof tenant, "plain-%d", kind);
		assert_int_equal(skip_event(tenant, park(tenant), &plain, &result), IBID_OK);
		for (unsigned n = 1; n <= plain.points; n++, faults++) {
			struct fault fault = {.kind = (enum fault_kind)kind, .at = n};
			snprintf(tenant, sizeof tenant, "d-%d-%u", kind, n);
			struct uuid event = park(tenant);
			skip_disturbed(tenant, event, &fault);
			check_decided(tenant, event);
		}
	}
	assert_int_equal(fault_count(), faults);
	assert_true(faults >= 5 * 8);
}

static int set_up(void **state)
{
	(void)state;
	bed_open(&bed, FIXTURE);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	bed_close(&bed);
	return 0;
}

int main(int argc, char **argv)
{
	bed_choose(argc, argv);
	static const struct CMUnitTest tests[] = {
	    cmocka_unit_test(a_decision_is_made_once_with_its_evidence_whatever_fails),
	};
	return cmocka_run_group_tests(tests, set_up, tear_down);
}
