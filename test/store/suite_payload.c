/* SPDX-License-Identifier: Apache-2.0 */
/* suite_payload.c -- what is kept of commands, looked at, expired and erased. */
#include "store/suite_bed.h"
#include "store/suite_tests.h"

#include <stdio.h>
#include <string.h>

/* ---- Evidence and looking ------------------------------------------------------------------- */

void expired_row_gives_way_to_a_new_command_where_it_may(void **state) /* B10 */
{
	struct bed *bed = bed_of(state);
	struct identity identity = identity_of("k");
	struct work_context context = context_of(2);
	struct claim got, twin;
	complete(bed, "k", 1);
	context.now_us = completed("k", 1).expires_us - 1;
	context.runs_again = true;
	check(bed, bed->ops->claim(bed->store, &bed->arena, &identity, &context, &got, &bed->err));
	assert_int_equal(got.kind, CLAIM_FOUND);
	assert_null(got.tx); /* not yet */
	context.now_us++;
	context.runs_again = false;
	check(bed, bed->ops->claim(bed->store, &bed->arena, &identity, &context, &got, &bed->err));
	assert_int_equal(got.kind, CLAIM_FOUND);
	assert_null(got.tx); /* never */
	context.runs_again = true;
	check(bed, bed->ops->claim(bed->store, &bed->arena, &identity, &context, &got, &bed->err));
	assert_int_equal(got.kind, CLAIM_FOUND);
	assert_non_null(got.tx);
	check(bed, bed->ops->claim(bed->store, &bed->arena, &identity, &context, &twin, &bed->err));
	assert_int_equal(twin.kind, CLAIM_BUSY);
	struct command_row anew = completed("k", 2);
	anew.body = NULL;
	anew.body_size = 0;
	struct event_row event = event_of(2, 1, 0);
	check(bed, bed->ops->put_event(got.tx, &event, &bed->err));
	complete_row(bed, &got.tx, &anew, &got.row);
	got = claim(bed, "k", 3);
	anew.audit_id = got.row.audit_id;
	assert_row(&got.row, &anew); /* the old body is gone, too */
	assert_counts(1, 1, 2);
}

void duplicates_are_added_up_and_listed(void **state) /* B18 */
{
	struct bed *bed = bed_of(state);
	struct duplicate_row rows[] = {
	    {.tenant = "acme",
	     .command_id = make_id(1),
	     .first_us = now_us,
	     .last_us = now_us + 5,
	     .count = 3,
	     .unlisted = 1},
	    {.tenant = "other",
	     .command_id = make_id(1),
	     .first_us = now_us,
	     .last_us = now_us,
	     .count = 1},
	};
	struct duplicate_seen_row seen[] = {
	    {.tenant = "acme",
	     .command_id = make_id(1),
	     .at_us = now_us,
	     .client = "web",
	     .actor = "O'Hara \"\\ \xc3\xa9",
	     .decision = "executed",
	     .fingerprint = sha256("a", 1)},
	    {.tenant = "acme",
	     .command_id = make_id(1),
	     .at_us = now_us + 1,
	     .client = "",
	     .actor = "",
	     .decision = "conflict",
	     .fingerprint = sha256("b", 1)},
	};
	struct duplicate_row got;
	struct duplicate_seen_row *listed = NULL;
	struct uuid id = make_id(1);
	size_t listed_count = 0;
	check(bed, store_get_duplicates(bed->store, &bed->arena, "acme", &id, &got, &bed->err));
	assert_int_equal(got.count, 0);
	check(bed, bed->ops->put_duplicates(bed->store, rows, 2, seen, 2, &bed->err));
	rows[0].first_us -= 10;
	check(bed, bed->ops->put_duplicates(bed->store, rows, 1, NULL, 0, &bed->err));
	check(bed, store_get_duplicates(bed->store, &bed->arena, "acme", &id, &got, &bed->err));
	assert_int_equal(got.count, 6);
	assert_int_equal(got.unlisted, 2);
	assert_true(got.first_us == now_us - 10 && got.last_us == now_us + 5);
	check(bed, store_list_duplicates(bed->store, &bed->arena, "acme", &id, 10, &listed,
	                                 &listed_count, &bed->err));
	assert_int_equal(listed_count, 2);
	assert_text(listed[0].decision, "conflict"); /* the newest first */
	assert_text(listed[1].actor, seen[0].actor);
	assert_text(listed[1].client, "web");
	assert_true(listed[1].at_us == now_us);
	assert_memory_equal(&listed[1].fingerprint, &seen[0].fingerprint, sizeof(struct sha256));
	check(bed, store_list_duplicates(bed->store, &bed->arena, "acme", &id, 1, &listed,
	                                 &listed_count, &bed->err));
	assert_int_equal(listed_count, 1);
	check(bed, store_list_duplicates(bed->store, &bed->arena, "other", &id, 10, &listed,
	                                 &listed_count, &bed->err));
	assert_int_equal(listed_count, 0);
}

/* ---- Payloads and erasure ------------------------------------------------------------------- */

static void put_payload(struct bed *bed, struct tx *tx, unsigned n, const char *text)
{
	struct payload_row row = {
	    .tenant = "acme", .command_id = make_id(n), .text = text, .size = text ? strlen(text) : 0};
	check(bed, store_put_payload(tx, &row, &bed->err));
}

static void assert_payload(struct bed *bed, const char *tenant, unsigned n, const char *expected)
{
	struct payload_row got = {.text = NULL};
	struct uuid id = make_id(n);
	enum ibid_code code = store_get_payload(bed->store, &bed->arena, tenant, &id, &got, &bed->err);
	assert_int_equal(code, expected ? IBID_OK : IBID_NOT_FOUND);
	assert_text(got.text, expected);
	if (expected)
		assert_int_equal(got.size, strlen(expected));
}

/* A completed command with an event, a conflict and a payload. */
static void complete_with_payload(struct bed *bed, const char *key, unsigned n, const char *actor)
{
	struct tx *tx = claim_free(bed, key, n);
	struct command_row row = completed(key, n);
	struct event_row event = event_of(n, 1, 0);
	row.actor = actor;
	put_payload(bed, tx, n, "{\"note\":\"secret\"}");
	check(bed, bed->ops->put_event(tx, &event, &bed->err));
	complete_row(bed, &tx, &row, NULL);
	for (int i = 0; i < 2; i++) {
		struct key_conflict_row conflict = {.tenant = "acme",
		                                    .command_id = row.id,
		                                    .fingerprint = sha256("x", 1),
		                                    .client = "web",
		                                    .actor = i ? "u9" : "u8",
		                                    .first_us = now_us + i,
		                                    .last_us = now_us + i,
		                                    .count = 1};
		check(bed, store_put_evidence(bed->store, &conflict, &bed->err));
	}
}

void payload_commits_with_its_command_or_not_at_all(void **state) /* K05, I1 */
{
	struct bed *bed = bed_of(state);
	struct tx *tx = claim_free(bed, "k", 1);
	struct command_row first = failed("k", 1), second = failed("k", 1);
	put_payload(bed, tx, 1, "{}");
	bed->ops->rollback(&tx);
	assert_payload(bed, "acme", 1, NULL);
	tx = claim_free(bed, "k", 1);
	put_payload(bed, tx, 1, "{\"a\":\"\\u0000\"}");
	complete_row(bed, &tx, &first, NULL);
	assert_payload(bed, "acme", 1, "{\"a\":\"\\u0000\"}");
	assert_payload(bed, "other", 1, NULL); /* I9 */
	assert_payload(bed, "acme", 2, NULL);
	second.attempts = 2;
	struct claim got = claim(bed, "k", 9);
	put_payload(bed, got.tx, 1, "{\"a\":2}"); /* in its place */
	complete_row(bed, &got.tx, &second, &first);
	assert_payload(bed, "acme", 1, "{\"a\":2}");
	first = second;
	second.attempts = 3;
	got = claim(bed, "k", 9);
	put_payload(bed, got.tx, 1, NULL);
	complete_row(bed, &got.tx, &second, &first);
	assert_payload(bed, "acme", 1, NULL);
}

static struct erasure_progress erase(struct bed *bed, struct erasure erasure)
{
	struct erasure_progress progress = {.done = false};
	erasure.tenant = "acme";
	erasure.by = "dora";
	erasure.reason = "asked";
	erasure.selection = "{}";
	erasure.now_us = now_us;
	erasure.batch = 2;
	for (int steps = 0; !progress.done; steps++) {
		assert_true(steps < 100);
		check(bed, bed->ops->erase_commands(bed->store, &erasure, &progress, &bed->err));
	}
	return progress;
}

static size_t list_erasures(struct bed *bed, const char *tenant, struct erasure_row **ret)
{
	size_t listed = 0;
	check(bed, store_list_erasures(bed->store, &bed->arena, tenant, 9, ret, &listed, &bed->err));
	return listed;
}

void erasure_leaves_what_recognises_a_duplicate_and_a_record(void **state) /* K11 */
{
	struct bed *bed = bed_of(state);
	struct uuid id = make_id(3);
	struct erasure_row *records = NULL;
	char key[8];
	for (unsigned n = 1; n <= 5; n++) {
		snprintf(key, sizeof key, "k-%u", n);
		complete_with_payload(bed, key, n, n % 2 ? "u7" : "u8");
	}
	struct erasure_progress dry = erase(
	    bed, (struct erasure){.id = make_id(90), .command_id = &id, .dry_run = true});
	assert_int_equal(dry.count.payloads, 1);
	assert_payload(bed, "acme", 3, "{\"note\":\"secret\"}");
	struct erasure_progress one = erase(bed,
	                                    (struct erasure){.id = make_id(91), .command_id = &id});
	assert_int_equal(one.count.commands, 1);
	assert_int_equal(one.count.bodies, 1);
	assert_int_equal(one.count.events, 1);
	assert_int_equal(one.count.names, 2);
	assert_payload(bed, "acme", 3, NULL);
	assert_payload(bed, "acme", 2, "{\"note\":\"secret\"}");
	struct command_row expected = completed("k-3", 3);
	struct claim got = claim(bed, "k-3", 9);
	expected.body = NULL;
	expected.body_size = 0;
	expected.reason = "ERASED";
	expected.audit_id = got.row.audit_id;
	assert_row(&got.row, &expected); /* all else is there */
	struct key_conflict_row *conflicts = NULL;
	size_t conflict_count = 0;
	check(bed, store_list_evidence(bed->store, &bed->arena, "acme", &id, &conflicts,
	                               &conflict_count, &bed->err));
	assert_int_equal(conflict_count, 1); /* nothing tells the two apart any more */
	assert_int_equal(conflicts[0].count, 2);
	assert_text(conflicts[0].actor, "erased");
	assert_true(conflicts[0].first_us == now_us && conflicts[0].last_us == now_us + 1);
	assert_int_equal(list_erasures(bed, "acme", &records), 1);
	assert_memory_equal(&records[0].count, &one.count, sizeof one.count);
	assert_true(records[0].finished_us == now_us);
	assert_text(records[0].by, "dora");
	assert_int_equal(list_erasures(bed, "other", &records), 0);

	struct erasure_progress again = erase(bed,
	                                      (struct erasure){.id = make_id(92), .command_id = &id});
	assert_int_equal(again.count.commands + again.count.names, 0);
	assert_int_equal(list_erasures(bed, NULL, &records), 1);
}

void erasure_of_an_actor_takes_its_name_everywhere(void **state) /* K11 */
{
	struct bed *bed = bed_of(state);
	struct command_row row;
	struct audit_row *audit = NULL;
	struct event_row *events = NULL;
	size_t listed = 0;
	struct uuid id = make_id(1), held = make_id(6);
	char key[8];
	for (unsigned n = 1; n <= 5; n++) {
		snprintf(key, sizeof key, "k-%u", n);
		complete_with_payload(bed, key, n, n % 2 ? "u7" : "u8");
	}
	struct tx *tx = claim_free(bed, "held", 6);
	struct command_row unknown = failed("held", 6);
	unknown.state = COMMAND_UNKNOWN;
	put_payload(bed, tx, 6, "{}");
	complete_row(bed, &tx, &unknown, NULL);
	struct erasure_progress progress = erase(bed,
	                                         (struct erasure){.id = make_id(91), .actor = "u7"});
	assert_int_equal(progress.count.commands, 3);
	assert_int_equal(progress.count.payloads, 3);
	assert_int_equal(progress.left, 1);
	assert_payload(bed, "acme", 6, "{}");
	check(bed, store_get_command(bed->store, &bed->arena, "acme", &held, NULL, &row, &bed->err));
	assert_row(&row, &unknown);
	check(bed, store_get_command(bed->store, &bed->arena, "acme", &id, NULL, &row, &bed->err));
	assert_text(row.actor, "erased");
	assert_text(row.client, "erased");
	check(bed,
	      store_list_audit(bed->store, &bed->arena, "acme", &id, 1, &audit, &listed, &bed->err));
	assert_text(audit[0].actor, "erased");
	check(bed,
	      store_list_events(bed->store, &bed->arena, "acme", &id, 9, &events, &listed, &bed->err));
	assert_text(events[0].payload, "{\"erased\":true}");
	id = make_id(2);
	check(bed, store_get_command(bed->store, &bed->arena, "acme", &id, NULL, &row, &bed->err));
	assert_text(row.actor, "u8");
	assert_payload(bed, "acme", 2, "{\"note\":\"secret\"}");
	progress = erase(
	    bed, (struct erasure){.id = make_id(92), .resource_type = "payment", .resource_id = "p-1"});
	assert_int_equal(progress.count.payloads, 2);
}

static struct retention_count retain(struct bed *bed, struct retention retention)
{
	struct retention_cursor cursor = {0};
	struct retention_count count = {0};
	retention.before = make_id(1000);
	retention.audit_us = "{\"create-payment\":5000000}";
	retention.audit_max_us = 5000000;
	retention.batch = 2;
	for (int steps = 0; !cursor.done; steps++) {
		assert_true(steps < 100);
		check(bed, bed->ops->retain_commands(bed->store, &bed->arena, &retention, &cursor, &count,
		                                     &bed->err));
	}
	bool more = true;
	for (int steps = 0; more; steps++) {
		assert_true(steps < 100);
		check(bed, bed->ops->retain_history(bed->store, &retention, &count, &more, &bed->err));
	}
	return count;
}

void retention_empties_expired_rows_and_deletes_them_after_the_audit_period(void **state)
{ /* B10 */
	struct bed *bed = bed_of(state);
	static const struct retention_count nothing;
	struct duplicate_row again = {.tenant = "acme",
	                              .command_id = make_id(2),
	                              .first_us = now_us,
	                              .last_us = now_us,
	                              .count = 1};
	char key[8];
	for (unsigned n = 1; n <= 5; n++) {
		snprintf(key, sizeof key, "k-%u", n);
		complete(bed, key, n);
	}
	struct tx *tx = claim_free(bed, "held", 6);
	struct command_row unknown = failed("held", 6);
	unknown.state = COMMAND_UNKNOWN;
	complete_row(bed, &tx, &unknown, NULL);
	tx = claim_free(bed, "failed", 7);
	struct command_row row = failed("failed", 7);
	complete_row(bed, &tx, &row, NULL);
	tx = claim_free(bed, "kept", 8);
	put_payload(bed, tx, 8, "{}");
	struct command_row kept_row = failed("kept", 8);
	kept_row.text = NULL;
	complete_row(bed, &tx, &kept_row, NULL);
	complete(bed, "young", 2000); /* beyond `before` */
	check(bed, bed->ops->put_duplicates(bed->store, &again, 1, NULL, 0, &bed->err));

	struct retention_count count = retain(bed, (struct retention){.now_us = now_us + 999999});
	assert_memory_equal(&count, &nothing, sizeof count);
	count = retain(bed, (struct retention){.now_us = now_us + 1000000, .dry_run = true});
	assert_int_equal(count.tombstones, 7);
	assert_int_equal(count.answers, 5);
	assert_int_equal(count.payloads, 1);
	assert_non_null(claim(bed, "k-1", 9).row.body);
	count = retain(bed, (struct retention){.now_us = now_us + 1000000});
	assert_int_equal(count.tombstones, 7);
	assert_int_equal(count.answers, 5);
	assert_int_equal(count.payloads, 1);
	assert_int_equal(count.commands, 0);
	assert_payload(bed, "acme", 8, NULL);
	struct command_row emptied = completed("k-1", 1);
	struct claim got = claim(bed, "k-1", 9);
	emptied.body = NULL;
	emptied.body_size = 0;
	emptied.audit_id = got.row.audit_id;
	assert_row(&got.row, &emptied); /* all else is there */
	assert_non_null(claim(bed, "young", 9).row.body);

	count = retain(bed, (struct retention){.now_us = now_us + 5000005});
	assert_int_equal(count.commands, 7);
	assert_int_equal(count.duplicates, 1);
	assert_counts(2, 0, backend->number(backend->sql[SUITE_COUNT_AUDIT]));
	count = retain(bed, (struct retention){.now_us = now_us + 5000005});
	assert_memory_equal(&count, &nothing, sizeof count);
	struct command_row kept;
	struct uuid id = make_id(6);
	check(bed, store_get_command(bed->store, &bed->arena, "acme", &id, NULL, &kept, &bed->err));
	assert_row(&kept, &unknown);
}

void evidence_is_kept_once_and_counted(void **state) /* B04, B18 */
{
	struct bed *bed = bed_of(state);
	struct key_conflict_row one = {.tenant = "acme",
	                               .command_id = make_id(1),
	                               .client = "web",
	                               .actor = "",
	                               .fingerprint = sha256("other", 5),
	                               .first_us = now_us,
	                               .last_us = now_us,
	                               .count = 1};
	struct key_conflict_row later = one, else_ = one, *got;
	size_t got_count;
	later.first_us = later.last_us = now_us + 7;
	else_.client = "app";
	else_.first_us = else_.last_us = now_us + 9;
	complete(bed, "k-1", 1);
	check(bed, store_put_evidence(bed->store, &one, &bed->err));
	check(bed, store_put_evidence(bed->store, &later, &bed->err));
	check(bed, store_put_evidence(bed->store, &else_, &bed->err));
	check(bed, store_list_evidence(bed->store, &bed->arena, "acme", &one.command_id, &got,
	                               &got_count, &bed->err));
	assert_int_equal(got_count, 2);
	assert_int_equal(got[0].count, 2);
	assert_true(got[0].first_us == now_us);
	assert_true(got[0].last_us == now_us + 7);
	assert_string_equal(got[0].client, "web");
	assert_string_equal(got[0].actor, "");
	assert_string_equal(got[0].tenant, "acme");
	assert_memory_equal(&got[0].fingerprint, &one.fingerprint, sizeof one.fingerprint);
	assert_int_equal(got[1].count, 1);
	assert_string_equal(got[1].client, "app");
	check(bed, store_list_evidence(bed->store, &bed->arena, "other", &one.command_id, &got,
	                               &got_count, &bed->err));
	assert_int_equal(got_count, 0);
}

void command_is_found_by_id_and_by_identity_within_its_tenant(void **state) /* I9 */
{
	struct bed *bed = bed_of(state);
	struct command_row row = completed("k-1", 1), got;
	struct uuid id = make_id(1), none = make_id(5);
	complete(bed, "k-1", 1);
	check(bed, store_get_command(bed->store, &bed->arena, "acme", &id, NULL, &got, &bed->err));
	assert_row(&got, &row);
	check(bed,
	      store_get_command(bed->store, &bed->arena, "acme", NULL, &row.identity, &got, &bed->err));
	assert_row(&got, &row);
	assert_int_equal(
	    store_get_command(bed->store, &bed->arena, "other", &id, NULL, &got, &bed->err),
	    IBID_NOT_FOUND);
	assert_int_equal(
	    store_get_command(bed->store, &bed->arena, "other", NULL, &row.identity, &got, &bed->err),
	    IBID_NOT_FOUND);
	assert_int_equal(
	    store_get_command(bed->store, &bed->arena, "acme", &none, NULL, &got, &bed->err),
	    IBID_NOT_FOUND);
}

/* Commands 1 to `n`, keys "k-1" to "k-n"; each third one belongs to tenant "other", each second one
 * is FAILED, each fifth one is from client "app". */
static void fill(struct bed *bed, unsigned n)
{
	for (unsigned i = 1; i <= n; i++) {
		char key[16];
		snprintf(key, sizeof key, "k-%u", i);
		struct command_row row = i % 2 ? completed(key, i) : failed(key, i);
		struct work_context context = context_of(i);
		struct claim got;
		if (i % 3 == 0)
			row.identity.tenant = context.tenant = "other";
		if (i % 5 == 0)
			row.client = "app";
		check(bed,
		      bed->ops->claim(bed->store, &bed->arena, &row.identity, &context, &got, &bed->err));
		complete_row(bed, &got.tx, &row, NULL);
	}
}

static size_t list(struct bed *bed, const struct command_filter *filter, struct command_row **ret)
{
	size_t got_count = 0;
	check(bed, store_list_commands(bed->store, &bed->arena, filter, ret, &got_count, &bed->err));
	return got_count;
}

void commands_are_listed_newest_first_page_by_page(void **state)
{
	struct bed *bed = bed_of(state);
	struct command_filter filter = {.state = -1, .limit = 4};
	struct command_row *got;
	unsigned expected = 10;
	fill(bed, 10);
	for (size_t n; (n = list(bed, &filter, &got)) > 0; filter.after = &got[n - 1].id) {
		assert_in_range(n, 1, 4);
		for (size_t i = 0; i < n; i++, expected--) {
			struct uuid id = make_id(expected);
			assert_memory_equal(&got[i].id, &id, sizeof id);
		}
	}
	assert_int_equal(expected, 0);
}

void commands_are_listed_by_tenant_operation_key_client_and_state(void **state)
{
	struct bed *bed = bed_of(state);
	struct command_row *got;
	fill(bed, 10);
	struct command_filter tenant = {.tenant = "other", .state = -1, .limit = 100};
	assert_int_equal(list(bed, &tenant, &got), 3);
	struct uuid newest = make_id(9);
	assert_memory_equal(&got[0].id, &newest, sizeof newest);
	tenant.after = &newest;
	assert_int_equal(list(bed, &tenant, &got), 2);
	struct command_filter failures = {.state = COMMAND_FAILED, .limit = 100};
	assert_int_equal(list(bed, &failures, &got), 5);
	failures.tenant = "acme";
	assert_int_equal(list(bed, &failures, &got), 4);
	struct command_filter key = {.key = "k-6", .state = -1, .limit = 100};
	assert_int_equal(list(bed, &key, &got), 1);
	assert_string_equal(got[0].identity.tenant, "other");
	key.tenant = "acme";
	assert_int_equal(list(bed, &key, &got), 0);
	struct command_filter operation = {.operation = "create-payment", .state = -1, .limit = 100};
	assert_int_equal(list(bed, &operation, &got), 10);
	operation.operation = "other";
	assert_int_equal(list(bed, &operation, &got), 0);
	struct command_filter client = {.client = "app", .state = -1, .limit = 100};
	assert_int_equal(list(bed, &client, &got), 2);
	assert_text(got[0].client, "app");
	client.tenant = "acme";
	assert_int_equal(list(bed, &client, &got), 2);
	client.tenant = "other";
	assert_int_equal(list(bed, &client, &got), 0);
	struct command_filter none = {.state = -1, .limit = 0};
	assert_int_equal(list(bed, &none, &got), 0);
}

void listed_command_is_whole(void **state)
{
	struct bed *bed = bed_of(state);
	struct command_row row = completed("k-1", 1), *got;
	struct command_filter all = {.state = -1, .limit = 9}, one = all;
	one.tenant = "acme";
	complete(bed, "k-1", 1);
	assert_int_equal(list(bed, &all, &got), 1);
	assert_row(&got[0], &row);
	assert_int_equal(list(bed, &one, &got), 1);
	assert_row(&got[0], &row);
}

void audit_entries_are_listed_whole_newest_first(void **state)
{
	struct bed *bed = bed_of(state);
	struct audit_row *got;
	size_t got_count;
	struct uuid id = make_id(1);
	struct command_row row = completed("k-1", 1);
	struct audit_row expected = audit_of(&row);
	complete(bed, "k-1", 1);
	complete(bed, "k-2", 2);
	complete(bed, "k-3", 3);
	check(bed,
	      store_list_audit(bed->store, &bed->arena, "acme", NULL, 2, &got, &got_count, &bed->err));
	assert_int_equal(got_count, 2);
	struct uuid newest = make_id(3);
	assert_memory_equal(&got[0].command_id, &newest, sizeof newest);
	check(bed,
	      store_list_audit(bed->store, &bed->arena, "other", NULL, 9, &got, &got_count, &bed->err));
	assert_int_equal(got_count, 0);
	check(bed,
	      store_list_audit(bed->store, &bed->arena, "acme", &id, 9, &got, &got_count, &bed->err));
	assert_int_equal(got_count, 1);
	assert_memory_equal(&got[0].id, &expected.command_id, sizeof expected.command_id);
	assert_memory_equal(&got[0].command_id, &expected.command_id, sizeof expected.command_id);
	assert_text(got[0].tenant, expected.tenant);
	assert_text(got[0].operation, expected.operation);
	assert_text(got[0].fact, expected.fact);
	assert_text(got[0].outcome, expected.outcome);
	assert_int_equal(got[0].contract_version, expected.contract_version);
	assert_text(got[0].client, expected.client);
	assert_text(got[0].actor, expected.actor);
	assert_text(got[0].resource_type, expected.resource_type);
	assert_text(got[0].resource_id, expected.resource_id);
	assert_text(got[0].correlation_id, expected.correlation_id);
	assert_text(got[0].causation_id, expected.causation_id);
	assert_text(got[0].traceparent, expected.traceparent);
	assert_text(got[0].tracestate, expected.tracestate);
	assert_memory_equal(&got[0].fingerprint, &expected.fingerprint, sizeof expected.fingerprint);
	assert_true(got[0].at_us == expected.at_us);
}

void events_of_a_tenant_are_listed_newest_first(void **state)
{
	struct bed *bed = bed_of(state);
	struct event_row *got;
	struct outcome outcome;
	size_t got_count;
	for (unsigned i = 1; i <= 3; i++) {
		struct event_row event = event_of(i, 1, 0);
		char key[16];
		snprintf(key, sizeof key, "k-%u", i);
		check(bed, put_events(bed, key, i, &event, 1, &outcome));
	}
	check(bed,
	      store_list_events(bed->store, &bed->arena, "acme", NULL, 2, &got, &got_count, &bed->err));
	assert_int_equal(got_count, 2);
	assert_int_equal(got[0].version, 3);
	assert_int_equal(got[1].version, 2);
}

void an_event_keeps_where_it_goes(void **state)
{
	struct bed *bed = bed_of(state);
	struct uuid ids[] = {make_id(1), make_id(2)};
	struct event_row placed = event_of(1, 1, 0), plain = event_of(2, 1, 0), *got;
	struct outcome outcome;
	size_t got_count;
	placed.topic = "payments.events.v1";
	placed.partition_key = "A-\xc3\xbc";
	placed.headers = "{\"event_version\":\"1\"}";
	check(bed, put_events(bed, "k-1", 1, &placed, 1, &outcome));
	check(bed, put_events(bed, "k-2", 2, &plain, 1, &outcome));
	check(bed, store_list_events(bed->store, &bed->arena, "acme", &ids[0], 2, &got, &got_count,
	                             &bed->err));
	assert_int_equal(got_count, 1);
	assert_string_equal(got->topic, placed.topic);
	assert_string_equal(got->partition_key, placed.partition_key);
	assert_string_equal(got->headers, placed.headers);
	check(bed, store_list_events(bed->store, &bed->arena, "acme", &ids[1], 2, &got, &got_count,
	                             &bed->err));
	assert_int_equal(got_count, 1);
	assert_null(got->topic);
	assert_string_equal(got->partition_key, plain.aggregate_id);
	assert_string_equal(got->headers, "{}");
}
