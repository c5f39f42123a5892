/* SPDX-License-Identifier: Apache-2.0 */
/* suite_action.c -- what people do about human work, and what they pause. */
#include "store/suite_bed.h"
#include "store/suite_tests.h"

#include <pthread.h>
#include <stdio.h>

/* ---- What people do ------------------------------------------------------------------------- */

struct tx *begin_action(struct bed *bed)
{
	struct tx *tx = NULL;
	check(bed, bed->ops->begin_action(bed->store, &tx, &bed->err));
	return tx;
}

/* What the verbs said, or the commit did. */
static enum ibid_code end_action(struct bed *bed, struct tx *tx, enum ibid_code code)
{
	struct outcome outcome;
	return end_with(bed, &tx, code, &outcome);
}

static struct action_row action_of(unsigned n, const char *subject_id)
{
	return (struct action_row){
	    .tenant = "acme",
	    .id = make_id(n),
	    .at_us = now_us + n,
	    .actor = "ann",
	    .token = "0123456789abcdef",
	    .role = "operator",
	    .action = "assign",
	    .subject_type = "exception",
	    .subject_id = subject_id,
	    .reason = "it's hers ü",
	    .parameters = "{\"assignee\":\"bea\"}",
	    .approval_id = make_id(77),
	};
}

static void assert_action(const struct action_row *got, const struct action_row *expected)
{
	assert_text(got->tenant, expected->tenant);
	assert_memory_equal(&got->id, &expected->id, sizeof got->id);
	assert_true(got->at_us == expected->at_us);
	assert_text(got->actor, expected->actor);
	assert_text(got->token, expected->token);
	assert_text(got->role, expected->role);
	assert_text(got->action, expected->action);
	assert_text(got->subject_type, expected->subject_type);
	assert_text(got->subject_id, expected->subject_id);
	assert_text(got->reason, expected->reason);
	assert_text(got->parameters, expected->parameters);
	assert_memory_equal(&got->approval_id, &expected->approval_id, sizeof got->approval_id);
}

static size_t list_actions(struct bed *bed, const char *tenant, const char *subject_id,
                           struct action_row **ret)
{
	size_t got_count = 0;
	check(bed, store_list_actions(bed->store, &bed->arena, tenant, "exception", subject_id, 9, ret,
	                              &got_count, &bed->err));
	return got_count;
}

static enum ibid_code put_action(struct bed *bed, const struct action_row *row)
{
	struct tx *tx = begin_action(bed);
	return end_action(bed, tx, store_put_action(tx, row, &bed->err));
}

void actions_come_back_oldest_first_within_their_subject(void **state) /* J02 I3 I9 */
{
	struct bed *bed = bed_of(state);
	struct action_row first = action_of(1, "e-1"), second = action_of(2, "e-1"),
	                  other = action_of(3, "e-2"), foreign = action_of(4, "e-1"), *got;
	second.parameters = NULL;
	second.approval_id = (struct uuid){{0}};
	foreign.tenant = "other";
	check(bed, put_action(bed, &second));
	check(bed, put_action(bed, &first));
	check(bed, put_action(bed, &other));
	check(bed, put_action(bed, &foreign));
	assert_int_equal(list_actions(bed, "acme", "e-1", &got), 2);
	assert_action(&got[0], &first);
	assert_action(&got[1], &second);
	assert_int_equal(list_actions(bed, "other", "e-1", &got), 1);
	assert_int_equal(list_actions(bed, "other", "e-2", &got), 0);
}

static enum ibid_code assign_exception(struct bed *bed, unsigned n, const char *owner,
                                       const char *assignee)
{
	struct exception_assignment to = {
	    .tenant = "acme", .id = make_id(n), .owner = owner, .assignee = assignee};
	struct action_row action = action_of(1000 + n, "e-1");
	struct tx *tx = begin_action(bed);
	enum ibid_code code = store_assign_exception(tx, &to, &bed->err);
	if (!code)
		code = store_put_action(tx, &action, &bed->err);
	return end_action(bed, tx, code);
}

void an_open_exception_is_assigned_and_a_resolved_one_is_not(void **state) /* J01 I1 */
{
	struct bed *bed = bed_of(state);
	struct exception_row row = exception_of(1, "c-1"), other = exception_of(2, "c-2"), got, *listed;
	struct exception_filter of_bea = {
	    .tenant = "acme", .queue = -1, .state = -1, .assignee = "bea", .limit = 9};
	struct action_row *actions;
	check(bed, open_exception(bed, &row));
	check(bed, open_exception(bed, &other));
	assert_int_equal(list_exceptions(bed, &of_bea, &listed), 0);
	check(bed, assign_exception(bed, 1, NULL, "bea"));
	row.assignee = "bea";
	check(bed, get_exception(bed, "acme", 1, &got));
	assert_exception(&got, &row); /* the team stays */
	assert_int_equal(list_exceptions(bed, &of_bea, &listed), 1);
	of_bea.state = EXCEPTION_OPEN;
	assert_int_equal(list_exceptions(bed, &of_bea, &listed), 1);
	assert_exception(&listed[0], &row);
	assert_true(backend->exec(backend->sql[SUITE_RESOLVE_EXCEPTIONS]));
	assert_int_equal(assign_exception(bed, 2, "audit", NULL), IBID_RETRY);
	assert_int_equal(assign_exception(bed, 3, "audit", NULL), IBID_RETRY); /* there is none */
	assert_int_equal(list_actions(bed, "acme", "e-1", &actions), 1);       /* I1 */
}

static struct approval_row approval_of(unsigned n, const char *subject_id)
{
	return (struct approval_row){
	    .tenant = "acme",
	    .id = make_id(n),
	    .subject_type = "exception",
	    .subject_id = subject_id,
	    .action = "confirm-executed",
	    .parameters = "{\"status\":201}",
	    .proposed_by = "ann",
	    .proposed_token = "0123456789abcdef",
	    .reason = "seen on the statement",
	    .proposed_us = now_us + n,
	};
}

static enum ibid_code put_approval(struct bed *bed, const struct approval_row *row)
{
	struct tx *tx = begin_action(bed);
	return end_action(bed, tx, store_put_approval(tx, row, &bed->err));
}

static enum ibid_code decide_approval(struct bed *bed, unsigned n, enum approval_decision decision,
                                      const char *by)
{
	struct approval_end how = {.tenant = "acme",
	                           .id = make_id(n),
	                           .decision = decision,
	                           .decided_by = by,
	                           .decided_token = "fedcba9876543210",
	                           .decided_reason = "so it is",
	                           .parameters = "{}",
	                           .decided_us = now_us + 9};
	struct tx *tx = begin_action(bed);
	return end_action(bed, tx, store_decide_approval(tx, &how, &bed->err));
}

static size_t list_approvals(struct bed *bed, const char *subject_id, struct approval_row **ret)
{
	size_t got_count = 0;
	check(bed, store_list_approvals(bed->store, &bed->arena, "acme", "exception", subject_id, 9,
	                                ret, &got_count, &bed->err));
	return got_count;
}

void one_proposal_waits_per_subject_and_is_decided_once(void **state) /* J02 */
{
	struct bed *bed = bed_of(state);
	struct approval_row row = approval_of(1, "e-1"), again = approval_of(2, "e-1"),
	                    other = approval_of(3, "e-2"), *got;
	check(bed, put_approval(bed, &row));
	assert_int_equal(put_approval(bed, &again), IBID_RETRY);
	check(bed, put_approval(bed, &other));
	assert_int_equal(list_approvals(bed, "e-1", &got), 1);
	assert_text(got->action, "confirm-executed");
	assert_text(got->parameters, "{\"status\":201}");
	assert_text(got->proposed_by, "ann");
	assert_text(got->proposed_token, "0123456789abcdef");
	assert_text(got->reason, "seen on the statement");
	assert_true(got->proposed_us == row.proposed_us);
	assert_int_equal(got->decision, APPROVAL_WAITS);
	assert_null(got->decided_by);
	assert_int_not_equal(decide_approval(bed, 1, APPROVAL_APPROVED, "ann"), IBID_OK); /* herself */
	assert_int_equal(decide_approval(bed, 9, APPROVAL_DECLINED, "bob"), IBID_RETRY);
	check(bed, decide_approval(bed, 1, APPROVAL_DECLINED, "bob"));
	assert_int_equal(decide_approval(bed, 1, APPROVAL_APPROVED, "eve"), IBID_RETRY);
	check(bed, put_approval(bed, &again)); /* the first one does not wait any more */
	check(bed, decide_approval(bed, 2, APPROVAL_APPROVED, "bob"));
	assert_int_equal(list_approvals(bed, "e-1", &got), 2);
	assert_memory_equal(&got[0].id, &again.id, sizeof again.id); /* the newest first */
	assert_int_equal(got[0].decision, APPROVAL_APPROVED);
	assert_int_equal(got[1].decision, APPROVAL_DECLINED);
	assert_text(got[1].decided_by, "bob");
	assert_text(got[1].decided_token, "fedcba9876543210");
	assert_text(got[1].decided_reason, "so it is");
	assert_text(got[1].parameters, "{}");
	assert_true(got[1].decided_us == now_us + 9);
}

static enum ibid_code end_item(struct bed *bed, unsigned n, const struct uuid *approval)
{
	struct uuid id = make_id(n);
	struct exception_end how = {.tenant = "acme",
	                            .id = &id,
	                            .approval = approval,
	                            .resolved_us = now_us + 5,
	                            .resolution = "confirm-executed",
	                            .resolved_by = "ann",
	                            .note = "seen"};
	struct tx *tx = begin_action(bed);
	return end_action(bed, tx, store_resolve_exception(tx, &how, &bed->err));
}

static const char *propose_for(struct bed *bed, unsigned item, unsigned n)
{
	char *id = arena_alloc(&bed->arena, UUID_TEXT_SIZE);
	uuid_write(make_id(item), id);
	struct approval_row row = approval_of(n, id);
	check(bed, put_approval(bed, &row));
	return id;
}

void what_was_proposed_lapses_with_its_exception(void **state) /* I1 J02 */
{
	struct bed *bed = bed_of(state);
	struct exception_row row = exception_of(1, "c-1"), second = exception_of(2, "c-2"),
	                     third = exception_of(3, "c-3"), got;
	struct exception_end of_subject = {.tenant = "acme",
	                                   .queue = QUEUE_BUSINESS,
	                                   .subject_type = "command",
	                                   .subject_id = "c-3",
	                                   .resolved_us = now_us,
	                                   .resolution = "confirmed-executed",
	                                   .resolved_by = "recovery"};
	struct approval_row *approvals;
	struct uuid kept = make_id(12);
	check(bed, open_exception(bed, &row));
	check(bed, open_exception(bed, &second));
	check(bed, open_exception(bed, &third));
	const char *first_id = propose_for(bed, 1, 11), *second_id = propose_for(bed, 2, 12),
	           *third_id = propose_for(bed, 3, 13);
	check(bed, end_item(bed, 1, NULL));
	assert_int_equal(end_item(bed, 1, NULL), IBID_RETRY); /* it is not open any more */
	check(bed, get_exception(bed, "acme", 1, &got));
	assert_int_equal(got.state, EXCEPTION_RESOLVED);
	assert_text(got.resolved_by, "ann");
	assert_int_equal(list_approvals(bed, first_id, &approvals), 1);
	assert_int_equal(approvals->decision, APPROVAL_LAPSED);
	assert_text(approvals->decided_by, "ann");
	assert_null(approvals->parameters);
	check(bed, end_item(bed, 2, &kept)); /* that one is decided otherwise */
	assert_int_equal(list_approvals(bed, second_id, &approvals), 1);
	assert_int_equal(approvals->decision, APPROVAL_WAITS);
	check(bed, resolve_exception(bed, &of_subject, true));
	assert_int_equal(list_approvals(bed, third_id, &approvals), 1);
	assert_int_equal(approvals->decision, APPROVAL_LAPSED);
	assert_text(approvals->decided_by, "recovery");
}

void exception_commits_with_its_command_or_not_at_all(void **state) /* I1 */
{
	struct bed *bed = bed_of(state);
	struct exception_row row = exception_of(1, "c-1"), *got;
	struct exception_filter all = {.queue = -1, .state = -1, .limit = 9};
	struct command_row unknown = failed("k-1", 1);
	unknown.state = COMMAND_UNKNOWN;
	struct tx *tx = claim_free(bed, "k-1", 1);
	check(bed, bed->ops->put_command(tx, &unknown, NULL, &bed->err));
	check(bed, store_put_exception(tx, &row, &bed->err));
	bed->ops->rollback(&tx);
	assert_counts(0, 0, 0);
	assert_int_equal(list_exceptions(bed, &all, &got), 0);
	tx = claim_free(bed, "k-1", 1);
	check(bed, bed->ops->put_command(tx, &unknown, NULL, &bed->err));
	check(bed, store_put_exception(tx, &row, &bed->err));
	check(bed, end(bed, &tx));
	assert_counts(1, 0, 0);
	assert_int_equal(list_exceptions(bed, &all, &got), 1);
}

void exception_without_reason_or_owner_can_not_be_opened(void **state) /* I8 */
{
	struct bed *bed = bed_of(state);
	struct exception_row nobody = exception_of(1, "c-1"), no_reason = nobody, *got;
	struct exception_filter all = {.queue = -1, .state = -1, .limit = 9};
	nobody.owner = "";
	no_reason.reason = "";
	assert_int_not_equal(open_exception(bed, &nobody), IBID_OK);
	assert_int_not_equal(open_exception(bed, &no_reason), IBID_OK);
	assert_int_equal(list_exceptions(bed, &all, &got), 0);
}

void exceptions_are_listed_newest_first_page_by_page(void **state) /* J01 */
{
	struct bed *bed = bed_of(state);
	static const int states[] = {-1, EXCEPTION_OPEN};
	static const char *const tenants[] = {NULL, "acme"};
	for (unsigned n = 1; n <= 10; n++) {
		char subject[16];
		snprintf(subject, sizeof subject, "c-%u", n);
		struct exception_row row = exception_of(n, subject);
		if (n % 2)
			row.tenant = "other";
		check(bed, open_exception(bed, &row));
	}
	for (size_t k = 0; k < 4; k++) {
		struct exception_filter filter = {
		    .tenant = tenants[k % 2], .queue = -1, .state = states[k / 2], .limit = 4};
		struct exception_row *got;
		unsigned expected = 10;
		for (size_t n; (n = list_exceptions(bed, &filter, &got)) > 0; filter.after = &got[n - 1].id)
			for (size_t i = 0; i < n; i++, expected -= filter.tenant ? 2 : 1) {
				struct uuid id = make_id(expected);
				assert_in_range(n, 1, 4);
				assert_memory_equal(&got[i].id, &id, sizeof id);
			}
		assert_int_equal(expected, 0);
	}
}

void exceptions_are_listed_by_queue_state_owner_and_subject(void **state) /* J01 */
{
	struct bed *bed = bed_of(state);
	struct exception_row row = exception_of(1, "c-1"), *got;
	check(bed, open_exception(bed, &row));
	row.id = make_id(2);
	row.queue = QUEUE_SECURITY;
	row.owner = "guards";
	check(bed, open_exception(bed, &row));
	row.id = make_id(3);
	row.tenant = "other";
	row.subject_type = "effect";
	row.subject_id = "e-1";
	check(bed, open_exception(bed, &row));
	static const int states[] = {-1, EXCEPTION_OPEN};
	for (size_t k = 0; k < 2; k++) {
		const struct exception_filter every = {.queue = -1, .state = states[k], .limit = 9};
		struct exception_filter filter = every;
		assert_int_equal(list_exceptions(bed, &filter, &got), 3);
		filter.queue = QUEUE_SECURITY;
		assert_int_equal(list_exceptions(bed, &filter, &got), 2);
		filter.tenant = "acme";
		assert_int_equal(list_exceptions(bed, &filter, &got), 1);
		filter.queue = QUEUE_DEAD_LETTER;
		assert_int_equal(list_exceptions(bed, &filter, &got), 0);
		filter = every;
		filter.owner = "guards";
		assert_int_equal(list_exceptions(bed, &filter, &got), 2);
		filter = every;
		filter.subject_type = "command";
		filter.subject_id = "c-1";
		assert_int_equal(list_exceptions(bed, &filter, &got), 2);
		filter.subject_type = "effect";
		assert_int_equal(list_exceptions(bed, &filter, &got), 0);
		filter = every;
		filter.limit = 0;
		assert_int_equal(list_exceptions(bed, &filter, &got), 0);
	}
	struct exception_filter resolved = {.queue = -1, .state = EXCEPTION_RESOLVED, .limit = 9};
	assert_int_equal(list_exceptions(bed, &resolved, &got), 0);
}

void every_queue_and_severity_is_kept(void **state) /* J01: five queues */
{
	struct bed *bed = bed_of(state);
	assert_int_equal(EXCEPTION_QUEUE_COUNT, 5);
	for (unsigned q = 0; q < EXCEPTION_QUEUE_COUNT; q++) {
		for (unsigned s = 0; s < EXCEPTION_SEVERITY_COUNT; s++) {
			unsigned n = 1 + q * EXCEPTION_SEVERITY_COUNT + s;
			char subject[16];
			snprintf(subject, sizeof subject, "c-%u", n);
			struct exception_row row = exception_of(n, subject), got;
			row.queue = (enum exception_queue)q;
			row.severity = (enum exception_severity)s;
			check(bed, open_exception(bed, &row));
			check(bed, get_exception(bed, "acme", n, &got));
			assert_exception(&got, &row);
		}
	}
}

struct opening {
	struct bed *bed;
	unsigned n;
	enum ibid_code code;
};

static void *open_in_thread(void *user)
{
	struct opening *self = user;
	struct store *store = self->bed->store;
	struct arena arena = {0};
	struct ibid_err err;
	struct outcome outcome;
	struct claim got = {.tx = NULL};
	char key[16];
	snprintf(key, sizeof key, "k-%u", self->n);
	struct identity identity = identity_of(key);
	struct work_context context = context_of(self->n);
	struct exception_row row = exception_of(self->n, "c-1");
	self->code = store->ops->claim(store, &arena, &identity, &context, &got, &err);
	if (!self->code)
		self->code = store_put_exception(got.tx, &row, &err);
	if (!self->code)
		self->code = store->ops->commit(&got.tx, &arena, &outcome, &err);
	store->ops->rollback(&got.tx);
	arena_release(&arena);
	return NULL;
}

void exception_opened_by_many_at_once_is_one(void **state) /* I8 */
{
	struct bed *bed = bed_of(state);
	enum { THREADS = 8 };
	pthread_t threads[THREADS];
	struct opening openings[THREADS];
	struct exception_row *got;
	struct exception_filter all = {.queue = -1, .state = -1, .limit = 9};
	be_patient(bed);
	for (unsigned i = 0; i < THREADS; i++) {
		openings[i] = (struct opening){.bed = bed, .n = i + 1};
		assert_int_equal(pthread_create(&threads[i], NULL, open_in_thread, &openings[i]), 0);
	}
	for (unsigned i = 0; i < THREADS; i++) {
		pthread_join(threads[i], NULL);
		assert_int_equal(openings[i].code, IBID_OK);
	}
	assert_int_equal(list_exceptions(bed, &all, &got), 1);
}

/* ---- What is paused ------------------------------------------------------------------------- */

static struct pause_row pause_of(enum pause_kind kind, const char *name)
{
	return (struct pause_row){
	    .kind = kind,
	    .tenant = kind == PAUSE_EVENT ? "acme" : "",
	    .name = name,
	    .by = "ann",
	    .reason = "it's too fast ü",
	    .since_us = now_us,
	};
}

static size_t list_pauses(struct bed *bed, const char *tenant, struct pause_row **ret)
{
	size_t found = 0;
	check(bed, store_list_pauses(bed->store, &bed->arena, tenant, ret, &found, &bed->err));
	return found;
}

/* With an action of its own: they commit together (I1). */
static enum ibid_code put_pause(struct bed *bed, const struct pause_row *row, unsigned n)
{
	struct action_row action = action_of(n, "p-1");
	struct tx *tx = begin_action(bed);
	enum ibid_code code = store_put_pause(tx, row, &bed->err);
	if (!code)
		code = store_put_action(tx, &action, &bed->err);
	return end_action(bed, tx, code);
}

static enum ibid_code end_pause(struct bed *bed, const struct pause_row *row, unsigned n)
{
	struct action_row action = action_of(n, "p-1");
	struct tx *tx = begin_action(bed);
	enum ibid_code code = store_end_pause(tx, row, &bed->err);
	if (!code)
		code = store_put_action(tx, &action, &bed->err);
	return end_action(bed, tx, code);
}

static void assert_pause(const struct pause_row *got, const struct pause_row *expected)
{
	assert_int_equal(got->kind, expected->kind);
	assert_text(got->tenant, expected->tenant);
	assert_text(got->name, expected->name);
	assert_int_equal(got->source, expected->source);
	assert_text(got->by, expected->by);
	assert_text(got->reason, expected->reason);
	assert_true(got->since_us == expected->since_us);
	assert_text(got->item_tenant, expected->item_tenant);
}

void pauses_come_back_whole_to_whom_they_concern(void **state) /* K07 I9 */
{
	struct bed *bed = bed_of(state);
	struct pause_row event = pause_of(PAUSE_EVENT, "Paid"), foreign = event,
	                 there = pause_of(PAUSE_DESTINATION, "kafka-main"),
	                 whole = pause_of(PAUSE_RELAY, ""), *got;
	foreign.tenant = "other";
	there.source = PAUSE_BY_RELAY;
	there.item_tenant = "acme";
	assert_int_equal(list_pauses(bed, NULL, &got), 0);
	check(bed, put_pause(bed, &event, 1));
	check(bed, put_pause(bed, &foreign, 2));
	check(bed, put_pause(bed, &there, 3));
	check(bed, put_pause(bed, &whole, 4));
	assert_int_equal(list_pauses(bed, "acme", &got), 3);
	assert_pause(&got[0], &whole);
	assert_pause(&got[1], &there);
	assert_pause(&got[2], &event);
	assert_int_equal(list_pauses(bed, NULL, &got), 4);
	assert_pause(&got[3], &foreign);
}

void a_pause_begins_once_and_ends_once_with_its_action(void **state) /* K07 I1 */
{
	struct bed *bed = bed_of(state);
	struct pause_row row = pause_of(PAUSE_DESTINATION, "kafka-main"), again = row,
	                 other = pause_of(PAUSE_DESTINATION, "kafka"), *got;
	struct action_row *actions;
	again.by = "bea";
	check(bed, put_pause(bed, &row, 1));
	assert_int_equal(put_pause(bed, &again, 2), IBID_RETRY);
	assert_int_equal(end_pause(bed, &other, 3), IBID_RETRY);
	assert_int_equal(list_pauses(bed, NULL, &got), 1);
	assert_pause(&got[0], &row);
	check(bed, end_pause(bed, &again, 4));
	assert_int_equal(end_pause(bed, &row, 5), IBID_RETRY);
	assert_int_equal(list_pauses(bed, NULL, &got), 0);
	assert_int_equal(list_actions(bed, "acme", "p-1", &actions), 2); /* I1 */
	check(bed, put_pause(bed, &again, 6));
}

static void *pause_in_thread(void *user)
{
	struct opening *self = user;
	struct store *store = self->bed->store;
	struct arena arena = {0};
	struct ibid_err err;
	struct outcome outcome;
	struct tx *tx = NULL;
	struct pause_row row = pause_of(PAUSE_RELAY, "");
	self->code = store->ops->begin_action(store, &tx, &err);
	if (!self->code)
		self->code = store_put_pause(tx, &row, &err);
	if (!self->code)
		self->code = store->ops->commit(&tx, &arena, &outcome, &err);
	store->ops->rollback(&tx);
	arena_release(&arena);
	return NULL;
}

void of_many_who_pause_at_once_one_does(void **state) /* K07 */
{
	struct bed *bed = bed_of(state);
	enum { THREADS = 8 };
	pthread_t threads[THREADS];
	struct opening openings[THREADS];
	struct pause_row *got;
	unsigned done = 0;
	be_patient(bed);
	for (unsigned i = 0; i < THREADS; i++) {
		openings[i] = (struct opening){.bed = bed, .n = i + 1};
		assert_int_equal(pthread_create(&threads[i], NULL, pause_in_thread, &openings[i]), 0);
	}
	for (unsigned i = 0; i < THREADS; i++) {
		pthread_join(threads[i], NULL);
		done += openings[i].code == IBID_OK;
		assert_true(openings[i].code == IBID_OK || openings[i].code == IBID_RETRY);
	}
	assert_int_equal(done, 1);
	assert_int_equal(list_pauses(bed, NULL, &got), 1);
}
