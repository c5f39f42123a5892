/* SPDX-License-Identifier: Apache-2.0 */
/* suite_event.c -- events and their versions. */
#include "store/suite_bed.h"
#include "store/suite_tests.h"

#include <stdio.h>

enum ibid_code put_events(struct bed *bed, const char *key, unsigned n,
                          const struct event_row *events, size_t events_count, struct outcome *ret)
{
	struct tx *tx = claim_free(bed, key, n);
	struct command_row row = completed(key, n);
	struct audit_row audit = audit_of(&row);
	enum ibid_code code = IBID_OK;
	for (size_t i = 0; !code && i < events_count; i++)
		code = bed->ops->put_event(tx, &events[i], &bed->err);
	if (!code)
		code = store_put_audit(tx, &audit, &bed->err);
	if (!code)
		code = bed->ops->put_command(tx, &row, NULL, &bed->err);
	return end_with(bed, &tx, code, ret);
}

void events_get_the_next_versions_and_keep_every_column(void **state) /* C01 */
{
	struct bed *bed = bed_of(state);
	struct event_row events[2] = {event_of(1, 1, 0), event_of(1, 2, 2)}, *got;
	struct outcome outcome;
	size_t got_count;
	char key[64];
	events[1].type = "PaymentVoided";
	events[1].key = "void-1 \xE2\x82\xAC";
	events[1].correlation_id = events[1].causation_id = NULL;
	events[1].traceparent = events[1].tracestate = NULL;
	check(bed, put_events(bed, "k-1", 1, events, 2, &outcome));
	struct uuid command_id = make_id(1);
	check(bed, store_list_events(bed->store, &bed->arena, "acme", &command_id, 10, &got, &got_count,
	                             &bed->err));
	assert_int_equal(got_count, 2);
	for (size_t i = 0; i < 2; i++) {
		struct uuid id = uuid_nth(command_id, (unsigned)i + 1);
		assert_memory_equal(&got[i].id, &id, sizeof id);
		assert_memory_equal(&got[i].command_id, &command_id, sizeof command_id);
		assert_string_equal(got[i].tenant, "acme");
		assert_string_equal(got[i].aggregate_type, "payment");
		assert_string_equal(got[i].aggregate_id, "p-1");
		assert_string_equal(got[i].type, events[i].type);
		assert_string_equal(canonical(bed, got[i].payload), canonical(bed, events[i].payload));
		assert_int_equal(got[i].version, i + 1);
		assert_int_equal(got[i].ordinal, i + 1);
		assert_text(got[i].correlation_id, events[i].correlation_id);
		assert_text(got[i].causation_id, events[i].causation_id);
		assert_text(got[i].traceparent, events[i].traceparent);
		assert_text(got[i].tracestate, events[i].tracestate);
		assert_true(got[i].at_us == now_us);
	}
	snprintf(key, sizeof key, "%s:1", id_text(bed, command_id));
	assert_string_equal(got[0].key, key);
	assert_string_equal(got[1].key, "void-1 \xE2\x82\xAC");
}

void version_that_is_not_the_next_rejects_and_leaves_nothing(void **state) /* C01, I5 */
{
	static const int64_t wrong[] = {1, 3, 99};
	struct bed *bed = bed_of(state);
	struct event_row first = event_of(1, 1, 1);
	struct outcome outcome;
	check(bed, put_events(bed, "k-1", 1, &first, 1, &outcome));
	for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
		struct event_row event = event_of(2, 1, wrong[i]);
		assert_int_equal(put_events(bed, "k-2", 2, &event, 1, &outcome), IBID_REJECTED);
		assert_string_equal(outcome.reason, "VERSION_CONFLICT");
		assert_int_equal(outcome.status, 409);
	}
	assert_counts(1, 1, 1);
	struct event_row next = event_of(2, 1, 2);
	check(bed, put_events(bed, "k-2", 2, &next, 1, &outcome));
}

void first_version_of_an_aggregate_is_one(void **state)
{
	struct bed *bed = bed_of(state);
	struct event_row event = event_of(1, 1, 2);
	struct outcome outcome;
	assert_int_equal(put_events(bed, "k-1", 1, &event, 1, &outcome), IBID_REJECTED);
	assert_string_equal(outcome.reason, "VERSION_CONFLICT");
}

void event_key_given_twice_rejects(void **state) /* C01 */
{
	struct bed *bed = bed_of(state);
	struct event_row first = event_of(1, 1, 0), second = event_of(2, 1, 0);
	struct outcome outcome;
	first.key = second.key = "mine";
	check(bed, put_events(bed, "k-1", 1, &first, 1, &outcome));
	assert_int_equal(put_events(bed, "k-2", 2, &second, 1, &outcome), IBID_REJECTED);
	assert_string_equal(outcome.reason, "EVENT_KEY_USED");
	assert_counts(1, 1, 1);
}

void event_keys_and_versions_belong_to_a_tenant(void **state) /* I9 */
{
	struct bed *bed = bed_of(state);
	struct event_row mine = event_of(1, 1, 1), theirs = event_of(2, 1, 1), *got;
	struct outcome outcome;
	size_t got_count;
	mine.key = theirs.key = "same";
	theirs.tenant = "other";
	check(bed, put_events(bed, "k-1", 1, &mine, 1, &outcome));
	check(bed, put_events(bed, "k-2", 2, &theirs, 1, &outcome));
	check(bed, store_list_events(bed->store, &bed->arena, "other", NULL, 10, &got, &got_count,
	                             &bed->err));
	assert_int_equal(got_count, 1);
	assert_string_equal(got[0].tenant, "other");
}

void events_and_audit_entries_can_not_be_edited_or_deleted(void **state) /* C02, I3 */
{
	struct bed *bed = bed_of(state);
	struct event_row event = event_of(1, 1, 0);
	struct outcome outcome;
	check(bed, put_events(bed, "k-1", 1, &event, 1, &outcome));
	assert_false(backend->exec(backend->sql[SUITE_EDIT_EVENT]));
	assert_false(backend->exec(backend->sql[SUITE_DELETE_EVENT]));
	assert_false(backend->exec(backend->sql[SUITE_EDIT_AUDIT]));
	assert_false(backend->exec(backend->sql[SUITE_DELETE_AUDIT]));
	assert_counts(1, 1, 1);
}
