/* SPDX-License-Identifier: Apache-2.0 */
/* suite_exception.c -- human work. */
#include "store/suite_bed.h"
#include "store/suite_tests.h"

struct exception_row exception_of(unsigned n, const char *subject_id)
{
	return (struct exception_row){
	    .tenant = "acme",
	    .id = make_id(n),
	    .queue = QUEUE_BUSINESS,
	    .severity = SEVERITY_HIGH,
	    .subject_type = "command",
	    .subject_id = subject_id,
	    .business_key = "k ü 'x'",
	    .source = "web",
	    .payload_ref = "sha256:00ff",
	    .reason = "HANDLER_ENDED_TRANSACTION",
	    .detail = "the handler ended the transaction",
	    .suggestion = "look whether it was done",
	    .owner = "payments",
	    .retryable = true,
	    .actions = "confirm-executed,confirm-not-executed",
	    .needs_approval = "confirm-executed",
	    .correlation_id = "corr-1",
	    .trace_id = "0af7651916cd43dd8448eb211c80319c",
	    .document_type = "payment",
	    .document_id = "p-1",
	    .opened_us = now_us,
	    .due_us = now_us + 4000000,
	};
}

void assert_exception(const struct exception_row *got, const struct exception_row *expected)
{
	assert_text(got->tenant, expected->tenant);
	assert_memory_equal(&got->id, &expected->id, sizeof got->id);
	assert_int_equal(got->queue, expected->queue);
	assert_int_equal(got->state, expected->state);
	assert_int_equal(got->severity, expected->severity);
	assert_text(got->subject_type, expected->subject_type);
	assert_text(got->subject_id, expected->subject_id);
	assert_text(got->business_key, expected->business_key);
	assert_text(got->source, expected->source);
	assert_text(got->payload_ref, expected->payload_ref);
	assert_text(got->reason, expected->reason);
	assert_text(got->detail, expected->detail);
	assert_text(got->suggestion, expected->suggestion);
	assert_text(got->owner, expected->owner);
	assert_int_equal(got->retryable, expected->retryable);
	assert_text(got->actions, expected->actions);
	assert_text(got->correlation_id, expected->correlation_id);
	assert_text(got->document_type, expected->document_type);
	assert_text(got->document_id, expected->document_id);
	assert_true(got->opened_us == expected->opened_us);
	assert_true(got->due_us == expected->due_us);
	assert_true(got->resolved_us == expected->resolved_us);
	assert_text(got->resolution, expected->resolution);
	assert_text(got->resolved_by, expected->resolved_by);
	assert_text(got->note, expected->note);
	assert_text(got->trace_id, expected->trace_id);
	assert_text(got->needs_approval, expected->needs_approval ? expected->needs_approval : "");
	assert_text(got->assignee, expected->assignee);
}

/* In a transaction of its own, which leaves no command. */
enum ibid_code open_exception(struct bed *bed, const struct exception_row *row)
{
	struct claim got;
	struct identity identity = identity_of("unused");
	struct work_context context = context_of(1);
	check(bed, bed->ops->claim(bed->store, &bed->arena, &identity, &context, &got, &bed->err));
	enum ibid_code code = store_put_exception(got.tx, row, &bed->err);
	struct outcome outcome;
	return end_with(bed, &got.tx, code, &outcome);
}

enum ibid_code get_exception(struct bed *bed, const char *tenant, unsigned n,
                             struct exception_row *ret)
{
	struct uuid id = make_id(n);
	return store_get_exception(bed->store, &bed->arena, tenant, &id, ret, &bed->err);
}

size_t list_exceptions(struct bed *bed, const struct exception_filter *filter,
                       struct exception_row **ret)
{
	size_t got_count = 0;
	check(bed, store_list_exceptions(bed->store, &bed->arena, filter, ret, &got_count, &bed->err));
	return got_count;
}

void exception_comes_back_whole_within_its_tenant(void **state) /* J01, I9 */
{
	struct bed *bed = bed_of(state);
	struct exception_row row = exception_of(1, "c-1"), got, *listed;
	struct exception_row bare = {.tenant = "acme",
	                             .id = make_id(2),
	                             .queue = QUEUE_DATA_QUALITY,
	                             .severity = SEVERITY_LOW,
	                             .subject_type = "row",
	                             .subject_id = "",
	                             .reason = "NO_SUCH_VENDOR",
	                             .owner = "data",
	                             .actions = "",
	                             .opened_us = now_us};
	struct exception_filter all = {.queue = -1, .state = -1, .limit = 9};
	row.service_answer = "it went \xc3\xa4\n'wrong'";
	check(bed, open_exception(bed, &row));
	check(bed, open_exception(bed, &bare));
	check(bed, get_exception(bed, "acme", 1, &got));
	assert_exception(&got, &row);
	assert_text(got.service_answer, row.service_answer);
	check(bed, get_exception(bed, "acme", 2, &got));
	assert_exception(&got, &bare);
	assert_null(got.service_answer);
	assert_int_equal(get_exception(bed, "other", 1, &got), IBID_NOT_FOUND);
	assert_int_equal(get_exception(bed, "acme", 3, &got), IBID_NOT_FOUND);
	assert_int_equal(list_exceptions(bed, &all, &listed), 2);
	assert_exception(&listed[0], &bare);
	assert_exception(&listed[1], &row);
	assert_null(listed[1].service_answer); /* which may be long */
	all.state = EXCEPTION_OPEN;
	assert_int_equal(list_exceptions(bed, &all, &listed), 2);
	assert_exception(&listed[1], &row);
}

void exception_of_the_same_subject_is_opened_once(void **state) /* I8 */
{
	struct bed *bed = bed_of(state);
	struct exception_row row = exception_of(1, "c-1"), again = exception_of(2, "c-1"), *got;
	struct exception_filter all = {.queue = -1, .state = -1, .limit = 9};
	again.reason = "ANOTHER";
	again.owner = "somebody else";
	check(bed, open_exception(bed, &row));
	check(bed, open_exception(bed, &again));
	assert_int_equal(list_exceptions(bed, &all, &got), 1);
	assert_exception(&got[0], &row);
	/* Each part of what makes it the same counts. */
	struct exception_row tenant = again, queue = again, type = again, subject = again;
	tenant.tenant = "other";
	queue.id = make_id(3);
	queue.queue = QUEUE_SECURITY;
	type.id = make_id(4);
	type.subject_type = "effect";
	subject.id = make_id(5);
	subject.subject_id = "c-2";
	check(bed, open_exception(bed, &tenant));
	check(bed, open_exception(bed, &queue));
	check(bed, open_exception(bed, &type));
	check(bed, open_exception(bed, &subject));
	assert_int_equal(list_exceptions(bed, &all, &got), 5);
}

static struct measurement measure(struct bed *bed)
{
	struct measurement got;
	check(bed, bed->ops->measure(bed->store, &bed->arena, &got, &bed->err));
	return got;
}

void measure_counts_what_has_no_outcome(void **state) /* K01 */
{
	struct bed *bed = bed_of(state);
	struct measurement got = measure(bed);
	assert_int_equal(got.commands + got.in_progress + got.stale + got.unknown + got.open, 0);
	assert_int_equal(got.owner_count, 0);
	stage(bed, "ended", 1, 7, 1);
	stage(bed, "running", 2, 7, hour_us);
	stage(bed, "locked", 3, 7, 0);
	struct tx *tx = claim_free(bed, "lost", 4);
	struct command_row unknown = failed("lost", 4);
	unknown.state = COMMAND_UNKNOWN;
	complete_row(bed, &tx, &unknown, NULL);
	tx = claim_free(bed, "other", 5);
	struct command_row other = failed("other", 5);
	complete_row(bed, &tx, &other, NULL);
	got = measure(bed);
	assert_int_equal(got.commands, 5);
	assert_int_equal(got.in_progress, 3);
	assert_int_equal(got.stale, 1);
	assert_int_equal(got.unknown, 1);
}

void measure_counts_open_work_by_owner(void **state) /* K01 J01 */
{
	struct bed *bed = bed_of(state);
	struct exception_row resolved = exception_of(1, "c-1"), late = exception_of(2, "c-2"),
	                     never = exception_of(3, "c-3"), other = exception_of(4, "c-4");
	check(bed, open_exception(bed, &resolved));
	assert_true(backend->exec(backend->sql[SUITE_RESOLVE_EXCEPTIONS]));
	late.due_us = 1;
	never.due_us = 0;
	other.tenant = "other";
	other.owner = "audit";
	other.due_us = INT64_C(4102444800000000); /* 2100 */
	check(bed, open_exception(bed, &other));
	check(bed, open_exception(bed, &late));
	check(bed, open_exception(bed, &never));
	struct measurement got = measure(bed);
	assert_int_equal(got.open, 3);
	assert_int_equal(got.overdue, 1);
	assert_int_equal(got.owner_count, 2);
	assert_text(got.owners[0].owner, "payments");
	assert_int_equal(got.owners[0].open, 2);
	assert_int_equal(got.owners[0].overdue, 1);
	assert_text(got.owners[1].owner, "audit");
	assert_int_equal(got.owners[1].open, 1);
	assert_int_equal(got.owners[1].overdue, 0);
}

void exception_of_a_resolved_subject_is_opened_anew(void **state) /* I8 */
{
	struct bed *bed = bed_of(state);
	struct exception_row row = exception_of(1, "c-1"), again = exception_of(2, "c-1"), *got;
	struct exception_filter filter = {.tenant = "acme", .queue = -1, .state = -1, .limit = 9};
	check(bed, open_exception(bed, &row));
	assert_true(backend->exec(backend->sql[SUITE_RESOLVE_EXCEPTIONS]));
	check(bed, open_exception(bed, &again));
	assert_int_equal(list_exceptions(bed, &filter, &got), 2);
	filter.state = EXCEPTION_OPEN;
	assert_int_equal(list_exceptions(bed, &filter, &got), 1);
	assert_exception(&got[0], &again);
	filter.state = EXCEPTION_RESOLVED;
	assert_int_equal(list_exceptions(bed, &filter, &got), 1);
	row.state = EXCEPTION_RESOLVED;
	row.resolved_us = now_us;
	row.resolution = "confirm-executed";
	row.resolved_by = "ann";
	row.note = "seen on the statement";
	assert_exception(&got[0], &row);
}

enum ibid_code resolve_exception(struct bed *bed, const struct exception_end *how, bool commits)
{
	struct claim got;
	struct identity identity = identity_of("unused");
	struct work_context context = context_of(1);
	struct outcome outcome;
	check(bed, bed->ops->claim(bed->store, &bed->arena, &identity, &context, &got, &bed->err));
	enum ibid_code code = store_resolve_exception(got.tx, how, &bed->err);
	if (commits)
		return end_with(bed, &got.tx, code, &outcome);
	bed->ops->rollback(&got.tx);
	return code;
}

void exception_is_resolved_with_what_ends_its_trouble(void **state) /* I1 I8 */
{
	struct bed *bed = bed_of(state);
	struct exception_row row = exception_of(1, "c-1"), others[4], got;
	for (unsigned i = 0; i < 4; i++)
		others[i] = exception_of(2 + i, i == 3 ? "c-2" : "c-1");
	others[0].tenant = "other";
	others[1].queue = QUEUE_SECURITY;
	others[2].subject_type = "effect";
	struct exception_end how = {.tenant = "acme",
	                            .queue = row.queue,
	                            .subject_type = row.subject_type,
	                            .subject_id = "c-1",
	                            .resolved_us = now_us + 1,
	                            .resolution = "confirmed-executed",
	                            .resolved_by = "recovery",
	                            .note = "found by looking"};
	check(bed, resolve_exception(bed, &how, true)); /* there is none: that is success */
	check(bed, open_exception(bed, &row));
	for (unsigned i = 0; i < 4; i++)
		check(bed, open_exception(bed, &others[i]));
	check(bed, resolve_exception(bed, &how, false));
	check(bed, get_exception(bed, "acme", 1, &got));
	assert_exception(&got, &row); /* rolled back */
	check(bed, resolve_exception(bed, &how, true));
	how.resolution = "confirmed-not-executed";
	how.note = NULL;
	check(bed, resolve_exception(bed, &how, true)); /* it stays as it was resolved */
	row.state = EXCEPTION_RESOLVED;
	row.resolved_us = now_us + 1;
	row.resolution = "confirmed-executed";
	row.resolved_by = "recovery";
	row.note = "found by looking";
	check(bed, get_exception(bed, "acme", 1, &got));
	assert_exception(&got, &row);
	for (unsigned i = 0; i < 4; i++) {
		check(bed, get_exception(bed, others[i].tenant, 2 + i, &got));
		assert_exception(&got, &others[i]);
	}
}
