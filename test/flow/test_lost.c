/* SPDX-License-Identifier: Apache-2.0 */
/* test_lost.c -- commits whose answer is lost, for real: a proxy that drops the server's answer to
 * COMMIT, a disk that fails to sync the log. ibid_submit asks the store and tells the truth (B15,
 * I7). */
#include "store/proxy.h"
#include "support/bed.h"
#include "support/disk.h"

#include <libpq-fe.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define FIXTURE IBID_SOURCE_DIR "/test/flow/contracts"

static struct bed bed;
static struct proxy *proxy;

/* When the handler of `call` runs, the next thing on the wire, or on the disk, is the commit. */
static enum proxy_trick trick;
static bool lose; /* the next one */

static enum ibid_code lose_the_commit(struct ibid_work *work, void *user)
{
	int *calls = user;
	++*calls;
	if (lose) {
		lose = false;
		disk.fail_wal_sync = bed_kind == BED_SQLITE;
		if (proxy)
			proxy_play(proxy, trick);
	}
	if (ibid_emit(work, IBID_EVENT(.aggregate_type = "call", .aggregate_id = "1", .type = "Called",
	                               .payload = "{}")))
		return IBID_FAILED;
	return ibid_answer(work, 201, "{\"done\":true}");
}

static int set_up(void **state)
{
	(void)state;
	bed_open(&bed, FIXTURE);
	if (bed_kind == BED_POSTGRES) {
		/* The same server, reached through the proxy. */
		char through[256];
		const char *host = strstr(bed.url, "127.0.0.1:");
		assert_non_null(host);
		proxy = proxy_new(atoi(host + strlen("127.0.0.1:")));
		snprintf(through, sizeof through, "%.*s127.0.0.1:%d%s", (int)(host - bed.url), bed.url,
		         proxy_port(proxy), strchr(host, '/'));
		memcpy(bed.url, through, sizeof through);
	}
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	disk.fail_wal_sync = false;
	bed_close(&bed);
	if (proxy)
		proxy_free(proxy);
	proxy = NULL;
	return 0;
}

/* Submit through a handle of its own; what it said, and how often the handler ran. */
static int submit(const char *key, char said[64])
{
	int calls = 0;
	struct ibid *ibid = bed_ibid(&bed, NULL);
	assert_int_equal(ibid_handle(ibid, "call", lose_the_commit, &calls, NULL), IBID_OK);
	struct ibid_result *result = NULL;
	struct ibid_err err = {0};
	if (ibid_submit(ibid,
	                IBID_COMMAND(.tenant = "t", .client = "c", .operation = "call", .key = key,
	                             .payload = "{}"),
	                &result, &err))
		snprintf(said, 64, "error %s %d", ibid_code_name(err.code), (int)err.next);
	else
		snprintf(said, 64, "%s", bed_say(result));
	ibid_result_free(result);
	disk.fail_wal_sync = false;
	ibid_close(ibid);
	return calls;
}

static void assert_once(void)
{
	assert_int_equal(bed_number(&bed, "select count(*) from ibid.command"), 1);
	assert_int_equal(bed_number(&bed, "select count(*) from ibid.audit"), 1);
	assert_int_equal(bed_number(&bed, "select count(*) from ibid.event"), 1);
}

static void a_commit_that_arrived_without_an_answer_is_executed(void **state) /* B15 */
{
	(void)state;
	char said[64];
	trick = PROXY_DROP_ANSWER;
	lose = true;
	assert_int_equal(submit("k", said), 1);
	assert_string_equal(said, "executed 201");
	assert_once();
	submit("k", said);
	assert_string_equal(said, "replayed executed 201");
	assert_once();
}

static void a_commit_that_never_arrived_is_run_again(void **state) /* B15 */
{
	(void)state;
	char said[64];
	trick = PROXY_CUT;
	lose = true;
	assert_int_equal(submit("k", said), 2);
	assert_string_equal(said, "executed 201");
	assert_once();
}

/* Claim, script and commit of `pay-declared` are one trip, which takes nothing before it arrives.
 */
static bool late_at(void *user, const struct hook_point *point)
{
	bool *once = user;
	if (point->kind == HOOK_BEFORE && strcmp(point->statement, "group_take") == 0 && *once) {
		*once = false;
		proxy_play(proxy, PROXY_DELAY);
	}
	return false;
}

static struct store *late_wrap(void *user, struct store *store)
{
	static struct hook hook;
	hook = (struct hook){late_at, user};
	store->hook = &hook;
	return store;
}

static void say_pay(struct ibid *ibid, char said[64])
{
	struct ibid_result *result = NULL;
	struct ibid_err err = {0};
	if (ibid_submit(ibid,
	                IBID_COMMAND(.tenant = "t", .client = "c", .operation = "pay-declared",
	                             .key = "k", .payload = "{\"reference\":\"r\",\"amount\":1.00}"),
	                &result, &err))
		snprintf(said, 64, "error %s %d", ibid_code_name(err.code), (int)err.next);
	else
		snprintf(said, 64, "%s", bed_say(result));
	ibid_result_free(result);
}

static void what_may_still_arrive_is_unknown_where_it_can_not_be_run_again(void **state) /* B15 */
{
	(void)state;
	char said[64];
	bool once = true;
	struct ibid *ibid = NULL;
	struct ibid_err err = {0};
	struct api_seams seams = {.wrap = late_wrap, .user = &once};
	if (api_open(IBID_OPTIONS(.store = bed.url, .contracts = bed.contracts, .busy_ms = 300), &seams,
	             &ibid, &err))
		fail_msg("open: %s", err.text);
	PGconn *other = PQconnectdb(bed.url);
	PQclear(PQexec(other, "begin; lock table payment in access exclusive mode"));
	say_pay(ibid, said);
	assert_string_equal(said, "unknown 500");
	assert_false(once);
	PQclear(PQexec(other, "rollback"));
	assert_int_equal(bed_number(&bed, "select count(*) from ibid.command"), 0);
	proxy_deliver(proxy);
	assert_once();
	say_pay(ibid, said);
	assert_string_equal(said, "replayed executed 201");
	assert_once();
	PQfinish(other);
	ibid_close(ibid);
}

static void a_log_that_does_not_sync_is_unknown_and_the_retry_settles_it(void **state) /* B15 */
{
	(void)state;
	char said[64];
	/* The disk fails while ibid asks, too: nobody knows, and that is what is said. */
	lose = true;
	submit("k", said);
	assert_string_equal(said, "unknown 500");
	submit("k", said);
	if (strncmp(said, "replayed ", 9) != 0)
		assert_string_equal(said, "executed 201");
	assert_once();
	submit("k", said);
	assert_string_equal(said, "replayed executed 201");
	assert_once();
}

int main(int argc, char **argv)
{
	bed_choose(argc, argv);
	if (bed_kind == BED_SQLITE)
		disk_wrap();
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest sqlite[] = {
	    TEST(a_log_that_does_not_sync_is_unknown_and_the_retry_settles_it),
	};
	const struct CMUnitTest postgres[] = {
	    TEST(a_commit_that_arrived_without_an_answer_is_executed),
	    TEST(a_commit_that_never_arrived_is_run_again),
	    TEST(what_may_still_arrive_is_unknown_where_it_can_not_be_run_again),
	};
	return bed_kind == BED_SQLITE ? cmocka_run_group_tests_name("lost", sqlite, NULL, NULL)
	                              : cmocka_run_group_tests_name("lost", postgres, NULL, NULL);
}
