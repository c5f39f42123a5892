/* SPDX-License-Identifier: Apache-2.0 */
/* test_recent.c -- duplicates that come again and again, answered from memory as the store would
 * answer them, on both stores. What the store is asked for is counted. The clock is moved. */
#include "support/bed.h"
#include "support/looks.h"

#include "command/recent.h"
#include "retention/erase.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#define FIXTURE IBID_SOURCE_DIR "/test/flow/contracts"

static const int64_t SECOND_US = 1000000, DAY_US = 86400000000, NOW_US = 1790000000000000;
enum { KEEP_S = 5 };

static struct bed bed;
static struct ibid *ibid;
static struct env_virtual clock_env;
static atomic_int asked; /* how often the store was asked for a command */

static void on_look(void *user, enum look look, bool after, enum ibid_code code)
{
	(void)user;
	(void)look;
	(void)code;
	asked += !after;
}

static struct store *wrap(void *user, struct store *store)
{
	return looks_wrap(store, on_look, user);
}

static void write_contract(const char *name, const char *more)
{
	char file[32], text[1024];
	snprintf(file, sizeof file, "%s.yaml", name);
	snprintf(text, sizeof text,
	         "command: %s\nversion: 1\nfact: a payment\n"
	         "fields:\n"
	         "  /reference: { type: text, required: true, max: 40 }\n"
	         "  /amount: { type: decimal, required: true, above: 0, scale: 2 }\n"
	         "  /fail: { type: text }\n"
	         "emits: [Paid]\n"
	         "unique:\n"
	         "  payment_reference: { on_duplicate: link, find: pay-find.sql }\n"
	         "handler: { sql: pay.$store.sql }\n%s",
	         name, more);
	bed_write(&bed, file, text);
}

static int set_up(void **state)
{
	struct ibid_err err = {0};
	(void)state;
	bed_open_empty(&bed, FIXTURE);
	write_contract("brief", "answer: { store: reference }\nserialize_by: [/reference]\n");
	write_contract("alone", "answer: { store: reference }\n");
	write_contract("whole", "answer: { store: full }\n");
	write_contract("short", "answer: { store: reference }\n"
	                        "key: { retain: 1d, after_expiry: refuse }\n");
	write_contract("each", "answer: { store: reference }\nduplicates: { evidence: each }\n");
	bed_init(&bed);
	env_virtual_init(&clock_env, NOW_US, 7);
	ibid = bed_ibid(&bed, &(struct api_seams){.env = &clock_env.env, .wrap = wrap});
	if (ledger_remember(ibid->ledger, KEEP_S * SECOND_US, &err))
		fail_msg("%s", err.text);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	ibid_close(ibid);
	bed_close(&bed);
	return 0;
}

static const char *pay(const char *amount)
{
	static char text[128];
	snprintf(text, sizeof text, "{\"reference\":\"r-1\",\"amount\":%s}", amount);
	return text;
}

static void expect(const char *operation, const char *amount, const char *said, int asks)
{
	int before = asked;
	bed_expect(ibid, operation, "k", pay(amount), said);
	assert_int_equal(asked - before > 0, asks);
}

enum { FROM_MEMORY, FROM_STORE };

/* Without the store, and without waiting: what a submission would be told, or nothing. */
static const char *recall(const char *tenant, const char *operation, const char *key,
                          const char *payload)
{
	static char told[64];
	struct ibid_result *result = NULL;
	int before = asked;
	bool recalled = ledger_recall(ibid->ledger,
	                              IBID_COMMAND(.tenant = tenant, .client = "c", .actor = "a",
	                                           .operation = operation, .key = key,
	                                           .payload = payload),
	                              &result);
	assert_int_equal(asked, before);
	assert_int_equal(recalled, result != NULL);
	snprintf(told, sizeof told, "%s", recalled ? bed_say(result) : "");
	ibid_result_free(result);
	return told;
}

static void what_is_remembered_is_told_at_once_and_nothing_else(void **state) /* B03 */
{
	(void)state;
	assert_string_equal(recall("t", "brief", "k", pay("1")), "");
	expect("brief", "1", "executed 201", FROM_STORE);
	assert_string_equal(recall("t", "brief", "k", pay("1")), ""); /* nobody came again */
	expect("brief", "1", "replayed executed 201", FROM_STORE);
	assert_string_equal(recall("t", "brief", "k", pay("1.00")), "replayed executed 201");
	assert_string_equal(recall("t", "brief", "k", pay("2")), ""); /* a conflict is kept */
	assert_string_equal(recall("t", "brief", "k", "{"), "");
	assert_string_equal(recall("t", "brief", NULL, pay("1")), "");
	assert_string_equal(recall("u", "brief", "k", pay("1")), "");
	assert_string_equal(recall("t", "alone", "k", pay("1")), "");
	assert_string_equal(recall("t", "none", "k", pay("1")), "");
	assert_string_equal(recall("t", "brief", "other", pay("1")), "");
	env_virtual_advance(&clock_env, KEEP_S * SECOND_US);
	assert_string_equal(recall("t", "brief", "k", pay("1")), "");
}

static void a_storm_of_duplicates_asks_the_store_once(void **state) /* B03 B12 */
{
	static const char *const operations[] = {"brief", "alone"};
	(void)state;
	for (size_t i = 0; i < 2; i++) {
		expect(operations[i], "1", i ? "linked 200" : "executed 201", FROM_STORE);
		const char *again = i ? "replayed linked 200" : "replayed executed 201";
		expect(operations[i], "1", again, FROM_STORE);
		for (int n = 0; n < 100; n++)
			expect(operations[i], "1.00", again, FROM_MEMORY);
	}
	assert_int_equal(bed_number(&bed, "select count(*) from payment"), 1);
}

static void what_is_remembered_is_what_the_store_says(void **state) /* B03 */
{
	(void)state;
	struct ibid_result *first = bed_submit(ibid, "brief", "k", pay("1")), *stored, *remembered;
	env_virtual_advance(&clock_env, SECOND_US);
	stored = bed_submit(ibid, "brief", "k", pay("1"));
	int before = asked;
	remembered = bed_submit(ibid, "brief", "k", pay("1"));
	assert_int_equal(asked, before);
	assert_string_equal(bed_say(remembered), "replayed executed 201");
	assert_string_equal(ibid_result_command_id(remembered), ibid_result_command_id(first));
	assert_string_equal(ibid_result_resource_type(remembered), ibid_result_resource_type(stored));
	assert_string_equal(ibid_result_resource_id(remembered), ibid_result_resource_id(stored));
	assert_int_equal(ibid_result_age_ms(remembered), ibid_result_age_ms(stored));
	assert_int_equal(ibid_result_age_ms(remembered), 1000);
	ibid_result_free(first);
	ibid_result_free(stored);
	ibid_result_free(remembered);
}

static void it_is_forgotten_after_its_time(void **state)
{
	(void)state;
	expect("brief", "1", "executed 201", FROM_STORE);
	for (int n = 0; n < 3; n++) {
		expect("brief", "1", "replayed executed 201", FROM_STORE);
		env_virtual_advance(&clock_env, KEEP_S * SECOND_US - 1);
		expect("brief", "1", "replayed executed 201", FROM_MEMORY);
		env_virtual_advance(&clock_env, 1); /* from when it was read, not from when it was told */
	}
}

static void another_payload_is_a_conflict_with_evidence(void **state) /* B04 */
{
	(void)state;
	expect("brief", "1", "executed 201", FROM_STORE);
	expect("brief", "1", "replayed executed 201", FROM_STORE);
	expect("brief", "2", "conflict 409", FROM_STORE);
	expect("brief", "2", "conflict 409", FROM_STORE);
	expect("brief", "1", "replayed executed 201", FROM_MEMORY);
	assert_int_equal(bed_number(&bed, "select sum(count) from ibid.evidence"), 2);
}

static void an_expired_key_is_expired_also_in_memory(void **state) /* B10 */
{
	(void)state;
	expect("short", "1", "executed 201", FROM_STORE);
	env_virtual_advance(&clock_env, DAY_US - 2 * SECOND_US);
	expect("short", "1", "replayed executed 201", FROM_STORE);
	env_virtual_advance(&clock_env, SECOND_US);
	expect("short", "1", "replayed executed 201", FROM_MEMORY);
	env_virtual_advance(&clock_env, 2 * SECOND_US);
	expect("short", "1", "expired 410", FROM_STORE);
}

/* An erasure takes bodies, and must be done when it says so. */
static void a_body_is_never_remembered(void **state) /* K11 */
{
	struct ibid_err err = {0};
	struct erasure_report report;
	(void)state;
	expect("whole", "1", "executed 201", FROM_STORE);
	for (int n = 0; n < 3; n++)
		expect("whole", "1", "replayed executed 201", FROM_STORE);
	const struct ibid_erasure *erasure = IBID_ERASURE(.tenant = "t", .operation = "whole",
	                                                  .key = "k", .reason = "asked", .by = "dora");
	assert_int_equal(ledger_erase(ibid->ledger->store, &clock_env.env, erasure, &report, &err),
	                 IBID_OK);
	for (int n = 0; n < 3; n++) {
		struct ibid_result *result = bed_submit(ibid, "whole", "k", pay("1"));
		assert_string_equal(ibid_result_reason(result), "ERASED");
		assert_string_equal(ibid_result_body(result), "");
		ibid_result_free(result);
	}
}

static void what_is_not_completed_is_never_remembered(void **state) /* B01 */
{
	(void)state;
	for (int n = 0; n < 3; n++)
		bed_expect(ibid, "brief", "bad", "{\"reference\":\"r-2\",\"amount\":-1}",
		           n ? "replayed rejected 422" : "rejected 422");
	int before = asked;
	bed_expect(ibid, "brief", "bad", "{\"reference\":\"r-2\",\"amount\":-1}",
	           "replayed rejected 422");
	assert_true(asked > before);
}

static void each_duplicate_is_counted_and_kept(void **state) /* B18 */
{
	(void)state;
	expect("each", "1", "executed 201", FROM_STORE);
	expect("each", "1", "replayed executed 201", FROM_STORE);
	for (int n = 0; n < 10; n++)
		expect("each", "1", "replayed executed 201", FROM_MEMORY);
	ibid_close(ibid); /* writes what is counted */
	ibid = bed_ibid(&bed, NULL);
	assert_int_equal(bed_number(&bed, "select sum(count) from ibid.duplicate"), 11);
	assert_int_equal(bed_number(&bed, "select count(*) from ibid.duplicate_seen"), 11);
}

static void tenants_clients_and_keys_do_not_hear_of_each_other(void **state) /* I9 */
{
	(void)state;
	expect("brief", "1", "executed 201", FROM_STORE);
	expect("brief", "1", "replayed executed 201", FROM_STORE);
	static const struct {
		const char *tenant, *client, *operation, *key;
	} others[] = {{"u", "c", "brief", "k"},
	              {"t", "d", "brief", "k"},
	              {"t", "c", "alone", "k"},
	              {"t", "c", "brief", "K"}};
	for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
		struct ibid_result *result = NULL;
		struct ibid_err err = {0};
		assert_int_equal(
		    ibid_submit(ibid,
		                IBID_COMMAND(.tenant = others[i].tenant, .client = others[i].client,
		                             .operation = others[i].operation, .key = others[i].key,
		                             .payload = pay("1")),
		                &result, &err),
		    IBID_OK);
		assert_null(strstr(bed_say(result), "replayed"));
		ibid_result_free(result);
	}
}

/* The table has fewer places than there are keys here: each one's place is taken. */
static void keys_that_share_a_place_are_told_apart(void **state) /* I2 */
{
	enum { KEYS_KEPT = 100000 };
	struct recent *recent = recent_new(&clock_env.env, SECOND_US);
	struct arena arena = {0};
	struct command_row found;
	(void)state;
	for (int n = 0; n < KEYS_KEPT; n++) {
		char key[16], other[16];
		snprintf(key, sizeof key, "k-%d", n);
		snprintf(other, sizeof other, "o-%d", n);
		recent_keep(recent, &(struct command_row){.identity = {"t", "brief", "c", key},
		                                          .state = COMMAND_COMPLETED});
		assert_true(
		    recent_find(recent, &(struct identity){"t", "brief", "c", key}, &arena, &found));
		assert_string_equal(found.identity.key, key);
		assert_false(
		    recent_find(recent, &(struct identity){"t", "brief", "c", other}, &arena, &found));
		arena_release(&arena);
	}
	recent_free(recent);
}

/* ---- Threads -------------------------------------------------------------------------------- */

enum { THREADS = 4, TURNS = 300, KEYS = 40 };

static void *storm(void *user)
{
	unsigned seed = (unsigned)(uintptr_t)user;
	for (int n = 0; n < TURNS; n++) {
		char key[16], payload[96];
		seed = seed * 1103515245 + 12345;
		unsigned at = seed / 65536 % KEYS;
		snprintf(key, sizeof key, "k-%u", at);
		snprintf(payload, sizeof payload, "{\"reference\":\"r-%u\",\"amount\":%u}", at, at + 1);
		struct ibid_result *result = NULL;
		struct ibid_err err = {0};
		if (ibid_submit(ibid,
		                IBID_COMMAND(.tenant = "t", .client = "c", .operation = "brief", .key = key,
		                             .payload = payload),
		                &result, &err))
			return "an error";
		const char *said = bed_say(result);
		bool good = strstr(said, "executed 201") || strstr(said, "in_progress");
		ibid_result_free(result);
		if (!good)
			return "another answer";
	}
	return NULL;
}

static void storm_from_all_sides(void)
{
	pthread_t threads[THREADS];
	for (size_t i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, storm, (void *)(uintptr_t)(i + 1)), 0);
	for (size_t i = 0; i < THREADS; i++) {
		void *wrong = NULL;
		pthread_join(threads[i], &wrong);
		if (wrong)
			fail_msg("%s", (const char *)wrong);
	}
}

static void many_threads_have_one_effect_for_each_key(void **state) /* B12 */
{
	(void)state;
	storm_from_all_sides();
	assert_int_equal(bed_number(&bed, "select count(*) from payment"), KEYS);
	int before = asked;
	storm_from_all_sides(); /* of keys that all came again: none of them shares its place */
	assert_int_equal(asked, before);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
	    TEST(what_is_remembered_is_told_at_once_and_nothing_else),
	    TEST(a_storm_of_duplicates_asks_the_store_once),
	    TEST(what_is_remembered_is_what_the_store_says),
	    TEST(it_is_forgotten_after_its_time),
	    TEST(another_payload_is_a_conflict_with_evidence),
	    TEST(an_expired_key_is_expired_also_in_memory),
	    TEST(a_body_is_never_remembered),
	    TEST(what_is_not_completed_is_never_remembered),
	    TEST(each_duplicate_is_counted_and_kept),
	    TEST(tenants_clients_and_keys_do_not_hear_of_each_other),
	    TEST(keys_that_share_a_place_are_told_apart),
	    TEST(many_threads_have_one_effect_for_each_key),
	};
	bed_choose(argc, argv);
	return cmocka_run_group_tests_name("recent", tests, NULL, NULL);
}
