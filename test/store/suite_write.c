/* SPDX-License-Identifier: Apache-2.0 */
/* suite_write.c -- rows of a command, and its leases. */
#include "store/suite_bed.h"
#include "store/suite_tests.h"

#include <stdio.h>

/* ---- Writing -------------------------------------------------------------------------------- */

void rolled_back_transaction_leaves_nothing(void **state) /* B02, C01, I1 */
{
	struct bed *bed = bed_of(state);
	struct outcome outcome;
	const char *values[V_COUNT];
	set_values(bed, 1, values);
	script_of(bed, SUITE_PAY);
	struct tx *tx = claim_free(bed, "k-1", 1);
	struct command_row row = completed("k-1", 1);
	struct audit_row audit = audit_of(&row);
	check(bed, run(bed, tx, SUITE_PAY, values, &outcome));
	check(bed, store_put_audit(tx, &audit, &bed->err));
	check(bed, bed->ops->put_command(tx, &row, NULL, &bed->err));
	bed->ops->rollback(&tx);
	assert_counts(0, 0, 0);
	assert_int_equal(backend->number("select count(*) from payment"), 0);
}

void committed_transaction_has_all_its_rows(void **state) /* B02, C01, I1 */
{
	struct bed *bed = bed_of(state);
	struct outcome outcome;
	check(bed, pay(bed, "k-1", 1, "r-1", "PAID", &outcome));
	assert_counts(1, 1, 1);
	assert_int_equal(backend->number("select count(*) from payment"), 1);
}

void second_row_of_an_identity_is_refused_by_the_key(void **state) /* I2 */
{
	struct bed *bed = bed_of(state);
	complete(bed, "k-1", 1);
	struct tx *tx = claim_free(bed, "k-2", 2);
	struct command_row row = completed("k-1", 2);
	struct audit_row audit = audit_of(&row);
	struct outcome outcome;
	check(bed, store_put_audit(tx, &audit, &bed->err));
	enum ibid_code code = bed->ops->put_command(tx, &row, NULL, &bed->err);
	assert_int_equal(end_with(bed, &tx, code, &outcome), IBID_RETRY);
	assert_counts(1, 0, 1);
}

void failed_row_is_replaced_by_compare_and_set(void **state) /* B07 */
{
	struct bed *bed = bed_of(state);
	struct tx *tx = claim_free(bed, "k-1", 1);
	struct command_row row = failed("k-1", 1);
	complete_row(bed, &tx, &row, NULL);
	struct claim got = claim(bed, "k-1", 2);
	assert_int_equal(got.kind, CLAIM_FOUND);
	assert_non_null(got.tx);
	assert_row(&got.row, &row);
	struct command_row next = completed("k-1", 1);
	next.attempts = 2;
	complete_row(bed, &got.tx, &next, &got.row);
	struct claim again = claim(bed, "k-1", 3);
	assert_row(&again.row, &next);
	bed->ops->rollback(&again.tx);
	assert_counts(1, 0, 1);
}

void replacing_a_row_that_has_moved_on_is_a_retry(void **state) /* I2 */
{
	struct bed *bed = bed_of(state);
	struct tx *tx = claim_free(bed, "k-1", 1);
	struct command_row row = failed("k-1", 1);
	struct outcome outcome;
	complete_row(bed, &tx, &row, NULL);
	struct claim got = claim(bed, "k-1", 2);
	struct command_row next = row, stale = got.row;
	next.attempts = 2;
	stale.attempts = 5;
	enum ibid_code code = bed->ops->put_command(got.tx, &next, &stale, &bed->err);
	assert_int_equal(end_with(bed, &got.tx, code, &outcome), IBID_RETRY);
	got = claim(bed, "k-1", 2);
	assert_row(&got.row, &row);
	bed->ops->rollback(&got.tx);
}

/* ---- Leases --------------------------------------------------------------------------------- */

const int64_t hour_us = INT64_C(3600000000);

static struct command_row staged(const char *key, unsigned n, int64_t token, int64_t lease_us)
{
	struct command_row row = failed(key, n);
	row.state = COMMAND_IN_PROGRESS;
	row.status = 0;
	row.reason = row.text = NULL;
	row.finished_us = 0;
	row.lease_token = token;
	row.lease_us = lease_us;
	return row;
}

void stage(struct bed *bed, const char *key, unsigned n, int64_t token, int64_t lease_us)
{
	struct tx *tx = claim_free(bed, key, n);
	struct command_row row = staged(key, n, token, lease_us);
	complete_row(bed, &tx, &row, NULL);
}

/* As its worker, or whoever takes it over. */
static struct claim claim_held(struct bed *bed, const char *key)
{
	struct identity identity = identity_of(key);
	struct work_context context = context_of(99);
	struct claim got = {.kind = CLAIM_BUSY};
	context.holds_lease = true;
	check(bed, bed->ops->claim(bed->store, &bed->arena, &identity, &context, &got, &bed->err));
	assert_int_equal(got.kind, CLAIM_FOUND);
	assert_non_null(got.tx);
	return got;
}

static size_t list_stale(struct bed *bed, const char *tenant, const char *operation,
                         struct command_row **ret)
{
	struct command_filter filter = {.tenant = tenant, .operation = operation, .limit = 10};
	size_t found = 0;
	check(bed, store_list_stale(bed->store, &bed->arena, &filter, ret, &found, &bed->err));
	return found;
}

void staged_row_is_told_at_once_also_while_its_worker_finishes(void **state) /* B05 B06 */
{
	struct bed *bed = bed_of(state);
	stage(bed, "k-1", 1, 7, hour_us);
	struct claim worker = claim_held(bed, "k-1");
	struct claim twin = claim(bed, "k-1", 2);
	assert_int_equal(twin.kind, CLAIM_FOUND);
	assert_null(twin.tx);
	assert_int_equal(twin.row.state, COMMAND_IN_PROGRESS);
	assert_int_equal(twin.row.lease_token, 7);
	assert_true(twin.row.lease_until_us > 0);
	assert_false(twin.row.stale);
	bed->ops->rollback(&worker.tx);
}

void staged_row_is_finished_under_its_token_only(void **state) /* B06 I6 */
{
	struct bed *bed = bed_of(state);
	struct outcome outcome;
	stage(bed, "k-1", 1, 7, hour_us);
	struct command_row done = completed("k-1", 1);
	done.lease_token = 7;
	struct claim got = claim_held(bed, "k-1");
	struct command_row stale = got.row;
	struct audit_row audit = audit_of(&done);
	struct event_row event = event_of(1, 1, 0);
	stale.lease_token = 6;
	check(bed, bed->ops->put_event(got.tx, &event, &bed->err));
	check(bed, store_put_audit(got.tx, &audit, &bed->err));
	enum ibid_code code = bed->ops->put_command(got.tx, &done, &stale, &bed->err);
	assert_int_equal(end_with(bed, &got.tx, code, &outcome), IBID_RETRY);
	assert_counts(1, 0, 0);

	got = claim_held(bed, "k-1");
	complete_row(bed, &got.tx, &done, &got.row);
	got = claim(bed, "k-1", 2);
	assert_row(&got.row, &done);
	assert_int_equal(got.row.lease_token, 7);
	assert_int_equal(got.row.lease_until_us, 0);
	assert_counts(1, 0, 1);
}

void ended_lease_is_stale_and_one_without_end_is_locked(void **state) /* B06 */
{
	struct bed *bed = bed_of(state);
	struct command_row *rows = NULL;
	stage(bed, "ended", 1, 7, 1);
	stage(bed, "running", 2, 7, hour_us);
	stage(bed, "locked", 3, 7, 0);
	assert_int_equal(list_stale(bed, NULL, NULL, &rows), 1);
	assert_string_equal(rows[0].identity.key, "ended");
	assert_true(rows[0].stale);
	assert_int_equal(rows[0].lease_token, 7);
	assert_int_equal(list_stale(bed, "acme", "create-payment", &rows), 1);
	assert_int_equal(list_stale(bed, "other", NULL, &rows), 0);
	assert_int_equal(list_stale(bed, NULL, "other", &rows), 0);

	struct claim got = claim_held(bed, "locked");
	assert_false(got.row.stale);
	assert_int_equal(got.row.lease_until_us, 0);
	bed->ops->rollback(&got.tx);
	got = claim_held(bed, "ended");
	assert_true(got.row.stale);
	bed->ops->rollback(&got.tx);
}

static size_t list_unknown(struct bed *bed, const struct command_filter *filter,
                           struct command_row **ret)
{
	size_t found = 0;
	check(bed, store_list_unknown(bed->store, &bed->arena, filter, ret, &found, &bed->err));
	return found;
}

void unknown_rows_that_were_staged_are_listed_oldest_first(void **state) /* B06 */
{
	struct bed *bed = bed_of(state);
	struct command_row *rows = NULL;
	struct command_filter filter = {.limit = 2};
	stage(bed, "running", 8, 7, hour_us);
	stage(bed, "ended", 9, 7, 1);
	for (unsigned n = 4; n >= 1; n--) {
		char key[16];
		snprintf(key, sizeof key, "k-%u", n);
		struct tx *tx = claim_free(bed, key, n);
		struct command_row row = failed(key, n);
		row.state = n == 2 ? COMMAND_FAILED : COMMAND_UNKNOWN;
		row.lease_token = n == 1 ? 0 : 7; /* the first was never staged */
		complete_row(bed, &tx, &row, NULL);
	}
	assert_int_equal(list_unknown(bed, &filter, &rows), 2);
	assert_string_equal(rows[0].identity.key, "k-3");
	assert_string_equal(rows[1].identity.key, "k-4");
	struct command_row expected = failed("k-3", 3);
	expected.state = COMMAND_UNKNOWN;
	expected.lease_token = 7;
	assert_row(&rows[0], &expected);
	assert_int_equal(rows[0].lease_token, 7);
	assert_false(rows[0].stale);
	filter.after = &rows[1].id;
	assert_int_equal(list_unknown(bed, &filter, &rows), 0);
	filter = (struct command_filter){.tenant = "acme", .operation = "create-payment", .limit = 1};
	assert_int_equal(list_unknown(bed, &filter, &rows), 1);
	filter.after = &rows[0].id;
	assert_int_equal(list_unknown(bed, &filter, &rows), 1);
	assert_string_equal(rows[0].identity.key, "k-4");
	filter = (struct command_filter){.tenant = "other", .limit = 9};
	assert_int_equal(list_unknown(bed, &filter, &rows), 0);
	filter = (struct command_filter){.operation = "other", .limit = 9};
	assert_int_equal(list_unknown(bed, &filter, &rows), 0);
}

void unknown_row_is_held_and_ended_by_compare_and_set(void **state) /* I6 */
{
	struct bed *bed = bed_of(state);
	struct outcome outcome;
	struct tx *tx = claim_free(bed, "k-1", 1);
	struct command_row unknown = failed("k-1", 1), done = completed("k-1", 1);
	unknown.state = COMMAND_UNKNOWN;
	unknown.lease_token = done.lease_token = 7;
	complete_row(bed, &tx, &unknown, NULL);
	struct claim got = claim_held(bed, "k-1");
	struct command_row other = got.row;
	other.lease_token = 6;
	enum ibid_code code = bed->ops->put_command(got.tx, &unknown, &other, &bed->err);
	assert_int_equal(end_with(bed, &got.tx, code, &outcome), IBID_RETRY);
	got = claim_held(bed, "k-1");
	complete_row(bed, &got.tx, &done, &got.row);
	assert_counts(1, 0, 1);
}

/* Replace a row in progress by one under another token. */
static enum ibid_code take_over(struct bed *bed, const char *key, unsigned n)
{
	struct outcome outcome;
	struct claim got = claim_held(bed, key);
	struct command_row next = staged(key, n, 8, hour_us);
	enum ibid_code code = bed->ops->put_command(got.tx, &next, &got.row, &bed->err);
	return end_with(bed, &got.tx, code, &outcome);
}

void lease_is_taken_over_only_when_it_has_ended(void **state) /* B06 I6 */
{
	struct bed *bed = bed_of(state);
	stage(bed, "ended", 1, 7, 1);
	stage(bed, "running", 2, 7, hour_us);
	stage(bed, "locked", 3, 7, 0);
	assert_int_equal(take_over(bed, "ended", 1), IBID_OK);
	assert_int_equal(take_over(bed, "running", 2), IBID_RETRY);
	assert_int_equal(take_over(bed, "locked", 3), IBID_RETRY);
	struct claim got = claim(bed, "ended", 9);
	assert_int_equal(got.row.lease_token, 8);
	assert_false(got.row.stale);
	got = claim(bed, "locked", 9);
	assert_int_equal(got.row.lease_token, 7);
}

void lease_is_renewed_under_its_token_only(void **state) /* B06 I6 */
{
	struct bed *bed = bed_of(state);
	struct command_row *rows = NULL;
	struct uuid id = make_id(1);
	stage(bed, "k-1", 1, 7, 1);
	assert_int_equal(bed->ops->renew_lease(bed->store, "acme", &id, 6, hour_us, &bed->err),
	                 IBID_FENCED);
	assert_int_equal(bed->ops->renew_lease(bed->store, "other", &id, 7, hour_us, &bed->err),
	                 IBID_FENCED);
	assert_int_equal(list_stale(bed, NULL, NULL, &rows), 1);
	check(bed, bed->ops->renew_lease(bed->store, "acme", &id, 7, hour_us, &bed->err));
	assert_int_equal(list_stale(bed, NULL, NULL, &rows), 0);

	struct claim got = claim_held(bed, "k-1");
	struct command_row done = failed("k-1", 1);
	done.lease_token = 7;
	complete_row(bed, &got.tx, &done, &got.row);
	assert_int_equal(bed->ops->renew_lease(bed->store, "acme", &id, 7, hour_us, &bed->err),
	                 IBID_FENCED);
}

void replaced_outcome_takes_its_body_with_it(void **state)
{
	struct bed *bed = bed_of(state);
	struct tx *tx = claim_free(bed, "k-1", 1);
	struct command_row row = failed("k-1", 1);
	row.state = COMMAND_REJECTED;
	row.body = "{\"why\":1}";
	row.body_size = 9;
	complete_row(bed, &tx, &row, NULL);
	struct claim got = claim(bed, "k-1", 2);
	assert_row(&got.row, &row);
	struct command_row next = failed("k-1", 1);
	next.attempts = 2;
	complete_row(bed, &got.tx, &next, &got.row);
	got = claim(bed, "k-1", 2);
	assert_row(&got.row, &next);
	bed->ops->rollback(&got.tx);
}

void completed_command_without_audit_entry_can_not_be_written(void **state)
{
	struct bed *bed = bed_of(state);
	struct command_row rows[2] = {completed("k-1", 1), failed("k-1", 1)};
	struct outcome outcome;
	rows[0].audit_id = (struct uuid){{0}};
	rows[1].audit_id = make_id(9);
	for (int i = 0; i < 2; i++) {
		struct tx *tx = claim_free(bed, "k-1", 1);
		enum ibid_code code = bed->ops->put_command(tx, &rows[i], NULL, &bed->err);
		assert_int_not_equal(end_with(bed, &tx, code, &outcome), IBID_OK);
	}
	assert_counts(0, 0, 0);
}

void second_audit_entry_of_a_command_is_refused(void **state)
{
	struct bed *bed = bed_of(state);
	struct tx *tx = claim_free(bed, "k-1", 1);
	struct command_row row = completed("k-1", 1);
	struct audit_row one = audit_of(&row), two = one;
	struct outcome outcome;
	two.id = make_id(77);
	check(bed, store_put_audit(tx, &one, &bed->err));
	enum ibid_code code = store_put_audit(tx, &two, &bed->err);
	assert_int_not_equal(end_with(bed, &tx, code, &outcome), IBID_OK);
	assert_counts(0, 0, 0);
}

void transaction_that_failed_can_only_be_rolled_back(void **state) /* I1 */
{
	struct bed *bed = bed_of(state);
	const char *values[V_COUNT];
	struct outcome outcome;
	set_values(bed, 1, values);
	script_of(bed, SUITE_FAIL);
	struct tx *tx = claim_free(bed, "k-1", 1);
	assert_int_equal(run(bed, tx, SUITE_FAIL, values, &outcome), IBID_FAILED);
	assert_int_not_equal(end(bed, &tx), IBID_OK);
	assert_counts(0, 0, 0);
	assert_int_equal(backend->number("select count(*) from payment"), 0);
}
