/* SPDX-License-Identifier: Apache-2.0 */
/* test_privacy.c -- payload classes and erasure through the C API: what programs that keep secrets
 * rely on (K05, K11). */
#include "support/bed.h"
#include "support/fault.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define FIXTURE IBID_SOURCE_DIR "/test/flow/privacy"

static const int64_t DAY_US = 86400000000, NOW_US = 1790000000000000;
static const char payload[] =
    "{\"secret\":\"moon-5521\",\"name\":\"Ada-9913\",\"pin\":77310042,\"seen\":\"plain\"}";
static const char *const secrets[] = {"moon-5521", "Ada-9913", "77310042"};

static struct bed bed;
static struct ibid *ibid;
static struct env_virtual clock_env;
static char key_file[128];

/* ---- Opening -------------------------------------------------------------------------------- */

/* All that was logged, in one text. */
static struct {
	pthread_mutex_t lock;
	char text[1 << 16];
	size_t size;
} logged = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void remember(void *user, enum ibid_log_level level, const char *json)
{
	size_t size = strlen(json);
	(void)user;
	(void)level;
	pthread_mutex_lock(&logged.lock);
	if (logged.size + size + 2 < sizeof logged.text) {
		memcpy(logged.text + logged.size, json, size);
		logged.size += size;
		logged.text[logged.size++] = '\n';
		logged.text[logged.size] = '\0';
	}
	pthread_mutex_unlock(&logged.lock);
}

static struct ibid *open_ibid(const struct api_seams *seams)
{
	struct ibid *opened = NULL;
	struct ibid_err err = {0};
	if (api_open(IBID_OPTIONS(.store = bed.url, .contracts = bed.contracts, .log = remember,
	                          .key_file = key_file),
	             seams, &opened, &err))
		fail_msg("open: %s", err.text);
	return opened;
}

static enum ibid_code tell(struct ibid_work *work, void *user);

static int set_up(void **state)
{
	(void)state;
	bed_open(&bed, FIXTURE);
	snprintf(key_file, sizeof key_file, "%s/keys", bed.dir);
	FILE *file = fopen(key_file, "w");
	assert_non_null(file);
	fprintf(file, "k1 0123456789abcdef0123456789abcdef0123456789abcdef0123456789ABCDEF\n");
	fclose(file);
	assert_int_equal(chmod(key_file, 0600), 0);
	logged.size = 0;
	logged.text[0] = '\0';
	env_virtual_init(&clock_env, NOW_US, 11);
	ibid = open_ibid(&(struct api_seams){.env = &clock_env.env});
	assert_int_equal(ibid_handle(ibid, "tell", tell, NULL, NULL), IBID_OK);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	ibid_close(ibid);
	bed_close(&bed);
	return 0;
}

/* ---- Words ---------------------------------------------------------------------------------- */

/* What the handler does is said by /seen. */
static enum ibid_code tell(struct ibid_work *work, void *user)
{
	const char *seen = ibid_field_text(work, "/seen"), *secret = ibid_field_text(work, "/secret");
	char text[256];
	(void)user;
	snprintf(text, sizeof text, "%s told %s, pin %s", ibid_field_text(work, "/name"), secret,
	         ibid_field_text(work, "/pin"));
	if (strcmp(seen, "fail") == 0)
		return ibid_fail(work, text);
	if (strcmp(seen, "reject") == 0)
		return ibid_reject(work, "TOLD", 422, text);
	if (ibid_emit(work, IBID_EVENT(.aggregate_type = "secret", .aggregate_id = "1", .type = "Told",
	                               .payload = "{\"told\":true}")))
		return IBID_FAILED;
	ibid_resource(work, "secret", "s-1");
	return ibid_answer(work, 201, "{\"done\":true}");
}

static enum ibid_code submit_as(struct ibid *on, const char *actor, const char *key,
                                const char *with, struct ibid_result **ret)
{
	struct ibid_err err = {0};
	enum ibid_code code = ibid_submit(on,
	                                  IBID_COMMAND(.tenant = "t", .client = "c", .actor = actor,
	                                               .operation = "tell", .key = key,
	                                               .payload = with),
	                                  ret, &err);
	if (code)
		fail_msg("submit %s: %s", key, err.text);
	return code;
}

static void expect(const char *key, const char *with, const char *expected)
{
	struct ibid_result *result = NULL;
	submit_as(ibid, "ann", key, with, &result);
	assert_string_equal(bed_say(result), expected);
	ibid_result_free(result);
}

static const char *payload_that(const char *seen)
{
	static char text[256];
	snprintf(text, sizeof text,
	         "{\"secret\":\"moon-5521\",\"name\":\"Ada-9913\",\"pin\":77310042,\"seen\":\"%s\"}",
	         seen);
	return text;
}

/* What is kept of the command, NULL when nothing is. The caller frees it. */
static char *kept_of(const char *command_id)
{
	char *text = NULL;
	size_t size = 0;
	struct ibid_err err = {0};
	enum ibid_code code = ibid_payload(ibid, "t", command_id, &text, &size, &err);
	if (code && code != IBID_NOT_FOUND)
		fail_msg("payload: %s", err.text);
	assert_int_equal(text ? strlen(text) : 0, size);
	return text;
}

static void expect_kept(const char *command_id, const char *expected)
{
	char *kept = kept_of(command_id);
	if (expected)
		assert_string_equal(kept ? kept : "(nothing)", expected);
	else
		assert_null(kept);
	ibid_free(kept);
}

/* Times that the bytes are in a file; 0 when there is none. */
static int64_t in_file(const char *path, const char *part)
{
	FILE *file = fopen(path, "rb");
	if (!file)
		return 0;
	static char bytes[8 << 20];
	size_t size = fread(bytes, 1, sizeof bytes, file);
	assert_true(size < sizeof bytes);
	fclose(file);
	int64_t found = 0;
	for (const char *at = bytes; (at = memmem(at, size - (size_t)(at - bytes), part, strlen(part)));
	     at++)
		found++;
	return found;
}

/* The whole database: the bytes of the file and its WAL, or every row of every table. */
static int64_t in_store(const char *part)
{
	char wal[300];
	const char *path = strchr(bed.url, ':') + 1;
	if (bed.kind == BED_POSTGRES)
		return bed_number(&bed,
		                  "select count(*) from (select query_to_xml(format('select * from %%s', "
		                  "oid::regclass), true, false, '')::text as rows from pg_class where "
		                  "relkind = 'r' and relnamespace in ('ibid'::regnamespace, "
		                  "'public'::regnamespace)) as tables where rows like '%%%s%%'",
		                  part);
	snprintf(wal, sizeof wal, "%s-wal", path);
	return in_file(path, part) + in_file(wal, part);
}

/* No place of the store and no log line holds a secret. */
static void assert_untold(void)
{
	assert_true(in_store("tell") > 0); /* what is there is found */
	for (size_t i = 0; i < sizeof secrets / sizeof *secrets; i++) {
		assert_int_equal(in_store(secrets[i]), 0);
		assert_null(strstr(logged.text, secrets[i]));
	}
}

static struct ibid_staged *stage(const char *key)
{
	struct ibid_staged *staged = NULL;
	struct ibid_result *result = NULL;
	struct ibid_err err = {0};
	if (ibid_stage(ibid,
	               IBID_COMMAND(.tenant = "t", .client = "c", .actor = "ann",
	                            .operation = "tell-staged", .key = key, .payload = payload),
	               &staged, &result, &err))
		fail_msg("stage: %s", err.text);
	assert_non_null(staged);
	return staged;
}

static enum ibid_code conclude(struct ibid_work *work, void *user)
{
	(void)user;
	return ibid_answer(work, 201, "{\"done\":true}");
}

/* ---- Classes -------------------------------------------------------------------------------- */

static void a_kept_payload_is_read_with_the_handles_keys(void **state) /* K05 */
{
	(void)state;
	struct ibid_result *result = NULL;
	submit_as(ibid, "ann", "k", payload, &result);
	expect_kept(ibid_result_command_id(result), "{\"name\":\"[redacted text]\",\"secret\":"
	                                            "\"moon-5521\",\"seen\":\"plain\"}");
	assert_untold();
	struct ibid_err err = {0};
	char *text = NULL;
	size_t size = 0;
	assert_int_equal(
	    ibid_payload(ibid, "other", ibid_result_command_id(result), &text, &size, &err),
	    IBID_NOT_FOUND);
	assert_int_equal(ibid_payload(ibid, "t", "nonsense", &text, &size, &err), IBID_INVALID);
	ibid_result_free(result);
}

static void a_handler_that_quotes_secrets_leaves_none(void **state) /* K05 */
{
	(void)state;
	expect("no", payload_that("reject"), "rejected 422");
	expect("no", payload_that("reject"), "replayed rejected 422");
	expect("broken", payload_that("fail"), "failed 500");
	expect("broken", payload_that("fail"), "failed 500");
	assert_int_equal(bed_number(&bed, "select count(*) from ibid.command where text = "
	                                  "'[redacted] told [redacted], pin [redacted]'"),
	                 2);
	assert_non_null(strstr(logged.text, "[redacted] told [redacted], pin [redacted]"));
	assert_untold();
}

static void a_staged_payload_is_kept_from_the_first_commit_on(void **state) /* K05, I1 */
{
	(void)state;
	static const char kept[] = "{\"name\":\"[redacted text]\",\"pin\":\"[redacted number]\","
	                           "\"secret\":\"moon-5521\",\"seen\":\"plain\"}";
	struct ibid_staged *staged = stage("k");
	struct ibid_result *result = NULL;
	struct ibid_err err = {0};
	char id[UUID_TEXT_SIZE];
	snprintf(id, sizeof id, "%s", ibid_work_command_id(ibid_staged_work(staged)));
	expect_kept(id, kept);
	assert_int_equal(ibid_staged_finish(staged, conclude, NULL, &result, &err), IBID_OK);
	expect_kept(id, kept);
	ibid_result_free(result);
	ibid_staged_free(staged);
	assert_untold();
}

static void what_a_silent_or_helpless_worker_knew_is_not_told(void **state) /* K05, I8 */
{
	(void)state;
	struct ibid_staged *staged = stage("lost"), *failed = stage("failed");
	struct ibid_result *result = NULL;
	struct ibid_err err = {0};
	assert_int_equal(ibid_staged_unknown(staged, "moon-5521 may be with Ada-9913", &result, &err),
	                 IBID_OK);
	assert_int_equal(bed_number(&bed, "select count(*) from ibid.exception where detail = "
	                                  "'tell-staged: [redacted] may be with [redacted]'"),
	                 1);
	expect_kept(ibid_result_command_id(result),
	            "{\"name\":\"[redacted text]\",\"pin\":\"[redacted number]\",\"secret\":"
	            "\"moon-5521\",\"seen\":\"plain\"}");
	ibid_result_free(result);
	assert_int_equal(ibid_staged_fail(failed, true, "no line to moon-5521", &result, &err),
	                 IBID_OK);
	ibid_result_free(result);
	ibid_staged_free(staged);
	ibid_staged_free(failed);
	assert_untold();
}

static void an_expired_command_takes_its_payload_with_it(void **state) /* B10 */
{
	(void)state;
	struct ibid_result *first = NULL, *second = NULL;
	submit_as(ibid, "ann", "k", payload, &first);
	env_virtual_advance(&clock_env, 10 * DAY_US);
	submit_as(ibid, "ann", "k", payload_that("later"), &second);
	assert_string_equal(bed_say(second), "executed 201");
	assert_string_not_equal(ibid_result_command_id(first), ibid_result_command_id(second));
	assert_int_equal(bed_number(&bed, "select count(*) from ibid.payload"), 1);
	expect_kept(ibid_result_command_id(second), "{\"name\":\"[redacted text]\",\"secret\":"
	                                            "\"moon-5521\",\"seen\":\"later\"}");
	ibid_result_free(first);
	ibid_result_free(second);
}

static void without_keys_a_contract_that_encrypts_does_not_open(void **state) /* K05 */
{
	(void)state;
	struct ibid *other = NULL;
	struct ibid_err err = {0};
	assert_int_equal(
	    ibid_open(IBID_OPTIONS(.store = bed.url, .contracts = bed.contracts), &other, &err),
	    IBID_CONTRACT);
	assert_non_null(strstr(err.text, "no key file was given"));
	assert_int_equal(ibid_open(IBID_OPTIONS(.store = bed.url, .contracts = bed.contracts,
	                                        .key_file = bed.contracts),
	                           &other, &err),
	                 IBID_INVALID);
	/* An old program's struct ends before the member: what lies there is not read. */
	assert_int_equal(
	    ibid_open(&(struct ibid_options){.size = offsetof(struct ibid_options, key_file),
	                                     .store = bed.url,
	                                     .contracts = bed.contracts,
	                                     .key_file = key_file},
	              &other, &err),
	    IBID_CONTRACT);
	assert_null(other);
}

/* ---- Erasure -------------------------------------------------------------------------------- */

enum { MANY = 25, BATCH = 4 };

static void submit_many(void)
{
	for (int i = 0; i < MANY; i++) {
		char key[16];
		struct ibid_result *result = NULL;
		snprintf(key, sizeof key, "k-%d", i);
		submit_as(ibid, i % 5 ? "ann" : "bob", key, payload_that(i % 3 ? "plain" : "reject"),
		          &result);
		ibid_result_free(result);
	}
}

static enum ibid_code erase(struct ibid *on, const char *actor, char **ret, struct ibid_err *err)
{
	return ibid_erase(on,
	                  IBID_ERASURE(.tenant = "t", .actor = actor, .by = "dora", .reason = "asked",
	                               .batch = BATCH),
	                  ret, err);
}

static void assert_forgotten(void)
{
	assert_int_equal(bed_number(&bed, "select count(*) from ibid.command where actor = 'ann'"), 0);
	assert_int_equal(bed_number(&bed, "select count(*) from ibid.audit where actor = 'ann'"), 0);
	assert_int_equal(bed_number(&bed, "select count(*) from ibid.command where actor = 'erased' "
	                                  "and text is not null"),
	                 0);
	assert_int_equal(
	    bed_number(&bed, "select count(*) from ibid.payload as p join ibid.command as c on c.id = "
	                     "p.command_id where c.actor = 'erased'"),
	    0);
	assert_int_equal(
	    bed_number(&bed, "select count(*) from ibid.event as e join ibid.command as c on c.id = "
	                     "e.command_id where c.actor = 'erased' and e.payload like '%%told%%'"),
	    0);
	assert_int_equal(bed_number(&bed, "select count(*) from ibid.payload"), MANY / 5);
	assert_int_equal(bed_number(&bed, "select count(*) from ibid.command"), MANY);
}

/* In a process that is killed, or fails, at its n-th statement. False when there is none. */
static bool erase_in_child(enum fault_kind kind, unsigned n)
{
	unsigned before = fault_count();
	int64_t start = bed_mark(&bed);
	fflush(NULL);
	pid_t child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		struct fault fault = {.kind = kind, .at = n};
		struct ibid_err err = {0};
		char *told = NULL;
		struct ibid *other = NULL;
		if (api_open(
		        IBID_OPTIONS(.store = bed.url, .contracts = bed.contracts, .key_file = key_file),
		        &(struct api_seams){.wrap = fault_set, .user = &fault}, &other, &err))
			_exit(1);
		_exit(erase(other, "ann", &told, &err) ? 1 : 0);
	}
	int status = 0;
	assert_int_equal(waitpid(child, &status, 0), child);
	bed_settle_since(&bed, start);
	if (fault_count() > before)
		return true;
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	return false;
}

static void an_erasure_that_is_killed_anywhere_is_finished_by_the_next(void **state) /* K11 */
{
	(void)state;
	unsigned cut_off = 0;
	fault_path("erasure");
	for (int i = 0; i < FAULT_KINDS; i++) {
		if (i) {
			bed_close(&bed);
			ibid_close(ibid);
			set_up(NULL);
		}
		submit_many();
		for (unsigned n = 1; erase_in_child((enum fault_kind)i, n); n++)
			cut_off++;
		assert_forgotten();
		assert_int_equal(bed_number(&bed, "select sum(commands) from ibid.erasure"),
		                 MANY - MANY / 5);
	}
	assert_true(cut_off > 10);
}

static void an_erased_command_replays_without_its_body(void **state) /* K11, B03 */
{
	(void)state;
	struct ibid_result *result = NULL;
	struct ibid_err err = {0};
	char *told = NULL;
	submit_as(ibid, "ann", "k", payload, &result);
	assert_int_equal(
	    ibid_erase(ibid,
	               IBID_ERASURE(.tenant = "t", .command_id = ibid_result_command_id(result),
	                            .by = "dora", .reason = "asked"),
	               &told, &err),
	    IBID_OK);
	assert_non_null(
	    strstr(told, "\"commands\":1,\"payloads\":1,\"bodies\":1,\"texts\":0,\"events\":1,"));
	expect_kept(ibid_result_command_id(result), NULL);
	ibid_free(told);
	ibid_result_free(result);
	submit_as(ibid, "ann", "k", payload, &result);
	assert_string_equal(bed_say(result), "replayed executed 201");
	assert_string_equal(ibid_result_body(result), "");
	assert_string_equal(ibid_result_reason(result), "ERASED");
	assert_string_equal(ibid_result_resource_id(result), "s-1");
	ibid_result_free(result);
	expect("k", payload_that("another"), "conflict 409");
	assert_int_equal(
	    ibid_erase(ibid, IBID_ERASURE(.tenant = "t", .by = "dora", .reason = "asked"), &told, &err),
	    IBID_INVALID);
	assert_int_equal(ibid_erase(ibid,
	                            IBID_ERASURE(.tenant = "t", .operation = "tell", .key = "none",
	                                         .by = "dora", .reason = "asked"),
	                            &told, &err),
	                 IBID_NOT_FOUND);
}

/* Commands that fail and are sent again, in every state that an erasure may meet them in. */
static atomic_bool over;

static void *keep_sending(void *user)
{
	const char *actor = user;
	for (int i = 0; !atomic_load(&over); i++) {
		char key[32];
		struct ibid_result *result = NULL;
		struct ibid_err err = {0};
		snprintf(key, sizeof key, "%s-%d", actor, i / 2 % 8);
		const char *with = "{\"secret\":\"moon-5521\",\"name\":\"Ada-9913\",\"pin\":77310042,"
		                   "\"seen\":\"fail\"}";
		if (ibid_submit(ibid,
		                IBID_COMMAND(.tenant = "t", .client = "c", .actor = "ann",
		                             .operation = "tell", .key = key, .payload = with),
		                &result, &err) == IBID_OK &&
		    ibid_result_decision(result) != IBID_DECISION_FAILED)
			atomic_store(&over, true); /* looked at below */
		ibid_result_free(result);
	}
	return NULL;
}

static void an_erasure_beside_running_commands_disturbs_neither(void **state) /* K11 */
{
	(void)state;
	pthread_t threads[3];
	static char *names[] = {"a", "b", "c"};
	struct ibid_err err = {0};
	atomic_store(&over, false);
	for (size_t i = 0; i < 3; i++)
		pthread_create(&threads[i], NULL, keep_sending, names[i]);
	for (int i = 0; i < 40; i++) {
		char *told = NULL;
		if (erase(ibid, "ann", &told, &err))
			fail_msg("erase: %s", err.text);
		ibid_free(told);
	}
	assert_false(atomic_load(&over));
	atomic_store(&over, true);
	for (size_t i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
	char *told = NULL;
	assert_int_equal(erase(ibid, "ann", &told, &err), IBID_OK);
	ibid_free(told);
	assert_int_equal(bed_number(&bed, "select count(*) from ibid.payload"), 0);
	assert_int_equal(bed_number(&bed,
	                            "select count(*) from ibid.command where actor = 'ann' or text "
	                            "is not null or state <> 'FAILED'"),
	                 0);
	assert_untold();
}

int main(int argc, char **argv)
{
	bed_choose(argc, argv);
#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
	    CASE(a_kept_payload_is_read_with_the_handles_keys),
	    CASE(a_handler_that_quotes_secrets_leaves_none),
	    CASE(a_staged_payload_is_kept_from_the_first_commit_on),
	    CASE(what_a_silent_or_helpless_worker_knew_is_not_told),
	    CASE(an_expired_command_takes_its_payload_with_it),
	    CASE(without_keys_a_contract_that_encrypts_does_not_open),
	    CASE(an_erased_command_replays_without_its_body),
	    CASE(an_erasure_that_is_killed_anywhere_is_finished_by_the_next),
	    CASE(an_erasure_beside_running_commands_disturbs_neither),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
