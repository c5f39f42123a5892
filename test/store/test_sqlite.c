/* SPDX-License-Identifier: Apache-2.0 */
/* test_sqlite.c -- the suite on SQLite, and what only SQLite has to prove: files that can't be
 * opened, disks that fail or fill up, commits of unknown outcome, processes that share a file. */
#include "store/archive.h"
#include "store/outbox.h"
#include "store/run.h"
#include "store/sqlite/lite.h"
#include "store/sqlite/sql.h"
#include "store/suite.h"
#include "support/disk.h"
#include "support/fault.h"
#include "support/scratch.h"

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static char directory[64], path[128];
static unsigned files;

/* ---- The suite's backend -------------------------------------------------------------------- */

#define PAYMENT                                                                                    \
	"insert into payment (id, tenant, reference, customer, state, amount, note)\n"                 \
	"values (:command_id, :tenant, :reference, :customer, :state, :decimal, :text);\n"

static const char *const sql[SUITE_SQL_COUNT] = {
    [SUITE_TABLES] =
        "create table payment (\n"
        "  id text primary key, tenant text not null, reference text, customer text, state text,\n"
        "  amount text, note text\n"
        ") strict;\n"
        "create unique index payment_reference on payment (tenant, reference);\n"
        "create unique index payment_one_active on payment (tenant, customer)\n"
        "  where state = 'ACTIVE';\n"
        "create table child (id text primary key,\n"
        "  payment text references payment (id) deferrable initially deferred) strict;\n",
    [SUITE_TABLES_BROKEN] = "create table half (id text);\n\ncreate tabel broken (id text);\n",
    [SUITE_PAY] = PAYMENT "select ibid_emit('payment', :command_id, 'PaymentCreated',\n"
                          "  json_object('amount', json(:decimal)));\n"
                          "select 201 as status, json_object('id', :command_id) as body,\n"
                          "  'payment' as resource_type, :command_id as resource_id;\n",
    [SUITE_REJECT] = PAYMENT "select ibid_reject('SAME_ACCOUNT', 422, 'from and to must differ')\n"
                             "where :tenant = :tenant;\nselect 201 as status;\n",
    [SUITE_FAIL] = PAYMENT "insert into payment (id, tenant) values ('x', null);\n"
                           "select 201 as status;\n",
    [SUITE_EMIT] = "select ibid_emit('payment', :reference, :type, :json, :version, :key);\n"
                   "select 200 as status;\n",
    [SUITE_LINK] = "select ibid_link_reference(:state, :reference, :type, :customer);\n"
                   "select 200 as status;\n",
    [SUITE_ECHO] = "select 200 as status, json_object('text', :text,\n"
                   "  'integer', cast(:integer as text), 'decimal', :decimal,\n"
                   "  'boolean', case :boolean when 1 then 'true' when 0 then 'false' end,\n"
                   "  'date', :date, 'instant', :instant, 'json', json(:json),\n"
                   "  'uuid', :uuid) as body;\n",
    [SUITE_NOTHING] = "update payment set note = :text where id = '-';\n",
    [SUITE_TWO_ROWS] = "select 200 as status union all select 202 order by 1;\n",
    [SUITE_STRANGE_COLUMN] = "select 200 as status, 1 as colour;\n",
    [SUITE_NO_STATUS] = "select '{}' as body;\n",
    [SUITE_FIND] = "select 200 as status, 'payment' as resource_type, id as resource_id\n"
                   "from payment where tenant = :tenant and reference = :reference;\n",
    [SUITE_DEFERRED] = "insert into child (id, payment) values (:text, 'missing');\n"
                       "select 201 as status;\n",
    [SUITE_COMMIT] = "select 1;\ncommit;\nselect 200 as status;\n",
    [SUITE_UNKNOWN_PARAM] = "select :nobody as status;\n",
    [SUITE_EDIT_EVENT] = "update ibid_event set payload = '{}'",
    [SUITE_DELETE_EVENT] = "delete from ibid_event",
    [SUITE_EDIT_AUDIT] = "update ibid_audit set actor = 'nobody'",
    [SUITE_DELETE_AUDIT] = "delete from ibid_audit",
    [SUITE_EDIT_DELIVERY] = "update ibid_delivery set place = 'elsewhere'",
    [SUITE_DELETE_DELIVERY] = "delete from ibid_delivery",
    [SUITE_ODD_TIMES] = "drop trigger ibid_event_is_never_edited;\n"
                        "update ibid_event set created_us = case version\n"
                        "  when 1 then 9223372036854775807 when 2 then -9223372036854775808\n"
                        "  when 3 then 9223372036854775806 else created_us end",
    [SUITE_RESOLVE_EXCEPTIONS] =
        "update ibid_exception set state = 'RESOLVED', resolved_us = 1763200000123456, "
        "resolution = 'confirm-executed', resolved_by = 'ann', note = 'seen on the statement'",
    [SUITE_SCHEMA_NEXT] = "insert into ibid_schema (version, name, at_us)\n"
                          "select max(version) + 1, 'next', 0 from ibid_schema",
    [SUITE_SCHEMA_NEWER] = "insert into ibid_schema (version, name, at_us)\n"
                           "select max(version) + 1, 'newer', 0 from ibid_schema",
    [SUITE_COUNT_COMMANDS] = "select count(*) from ibid_command",
    [SUITE_COUNT_EVENTS] = "select count(*) from ibid_event",
    [SUITE_COUNT_AUDIT] = "select count(*) from ibid_audit",
};

static enum ibid_code try_open_with(unsigned busy_ms, const char *url, bool create,
                                    struct store **ret, struct ibid_err *err)
{
	struct store_options options = {
	    .url = url,
	    .create = create,
	    .connections = 8,
	    .busy_ms = busy_ms,
	    .env = env_system(),
	};
	return store_open(&options, ret, err);
}

static enum ibid_code try_open(const char *url, bool create, struct store **ret,
                               struct ibid_err *err)
{
	return try_open_with(SUITE_BUSY_MS, url, create, ret, err);
}

static struct store *open_path_with(unsigned busy_ms, bool create)
{
	char url[160];
	struct store *store = NULL;
	struct ibid_err err;
	snprintf(url, sizeof url, "sqlite:%s", path);
	if (try_open_with(busy_ms, url, create, &store, &err))
		fail_msg("%s", err.text);
	return store;
}

static struct store *open_path(bool create)
{
	return open_path_with(SUITE_BUSY_MS, create);
}

static struct store *fresh(void)
{
	snprintf(path, sizeof path, "%s/%u.db", directory, ++files);
	return open_path(true);
}

static struct store *migrated(void)
{
	struct store *store = fresh();
	struct ibid_err err;
	int from, to;
	if (store->ops->migrate(store, &from, &to, &err))
		fail_msg("%s", err.text);
	return store;
}

static struct store *again(void)
{
	return open_path(false);
}

static struct store *patient(void)
{
	return open_path_with(SUITE_PATIENT_MS, false);
}

static sqlite3 *open_raw(void)
{
	sqlite3 *db = NULL;
	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	sqlite3_busy_timeout(db, 5000);
	return db;
}

static bool exec(const char *text)
{
	sqlite3 *db = open_raw();
	int rc = sqlite3_exec(db, text, NULL, NULL, NULL);
	sqlite3_close(db);
	return rc == SQLITE_OK;
}

static int64_t number(const char *text)
{
	sqlite3 *db = open_raw();
	sqlite3_stmt *stmt = NULL;
	if (sqlite3_prepare_v2(db, text, -1, &stmt, NULL) || sqlite3_step(stmt) != SQLITE_ROW)
		fail_msg("%s: %s", text, sqlite3_errmsg(db));
	int64_t value = sqlite3_column_int64(stmt, 0);
	sqlite3_finalize(stmt);
	sqlite3_close(db);
	return value;
}

static void *connect_own(void)
{
	sqlite3 *db = open_raw();
	assert_int_equal(sqlite3_exec(db, "pragma foreign_keys = on", NULL, NULL, NULL), SQLITE_OK);
	return db;
}

static bool run_own(void *db, const char *text)
{
	return sqlite3_exec(db, text, NULL, NULL, NULL) == SQLITE_OK;
}

static void disconnect_own(void *db)
{
	assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

static const struct suite_backend sqlite = {
    .fresh = fresh,
    .migrated = migrated,
    .again = again,
    .patient = patient,
    .exec = exec,
    .number = number,
    .sql = sql,
    .connect = connect_own,
    .run = run_own,
    .disconnect = disconnect_own,
};

/* ---- Opening -------------------------------------------------------------------------------- */

static void assert_refused(const char *url, bool create, enum ibid_code expected, const char *text)
{
	struct store *store = NULL;
	struct ibid_err err = {.code = IBID_OK};
	enum ibid_code code = try_open(url, create, &store, &err);
	if (!code)
		store_close(store);
	if (code != expected || !strstr(err.text, text))
		fail_msg("%s: %s: %s", url, ibid_code_name(code), err.text);
}

static void write_file(const char *name, const char *bytes, size_t size)
{
	snprintf(path, sizeof path, "%s/%s", directory, name);
	FILE *file = fopen(path, "w");
	assert_non_null(file);
	assert_int_equal(fwrite(bytes, 1, size, file), size);
	fclose(file);
}

static void url_of_another_kind_is_invalid(void **state)
{
	(void)state;
	assert_refused("", false, IBID_INVALID, "sqlite:PATH");
	assert_refused("pay.db", true, IBID_INVALID, "postgres://");
	assert_refused("mysql://root:secret@host/db", true, IBID_INVALID, "sqlite:PATH");
	assert_refused("sqlite:", true, IBID_INVALID, "names no file");
}

static void missing_file_is_not_found_and_not_created(void **state)
{
	char url[160];
	(void)state;
	snprintf(path, sizeof path, "%s/missing.db", directory);
	snprintf(url, sizeof url, "sqlite:%s", path);
	assert_refused(url, false, IBID_NOT_FOUND, "ibid init");
	assert_int_equal(access(path, F_OK), -1);
}

static void missing_directory_is_not_found(void **state)
{
	char url[160];
	(void)state;
	snprintf(url, sizeof url, "sqlite:%s/no/such/pay.db", directory);
	assert_refused(url, true, IBID_NOT_FOUND, "does not exist");
	write_file("plain", "x", 1);
	snprintf(url, sizeof url, "sqlite:%s/plain/pay.db", directory);
	assert_refused(url, true, IBID_NOT_FOUND, "plain");
}

static void directory_is_not_a_database(void **state)
{
	char url[160];
	(void)state;
	snprintf(url, sizeof url, "sqlite:%s", directory);
	assert_refused(url, true, IBID_IO, "is a directory");
	snprintf(url, sizeof url, "sqlite:%s/", directory);
	assert_refused(url, true, IBID_IO, "is a directory");
	assert_refused("sqlite:/dev/null", true, IBID_IO, "not a regular file");
}

static void file_that_is_not_a_database_is_refused_and_left_alone(void **state)
{
	static const char text[] = "this is a letter, not a database; it has more than a hundred bytes "
	                           "so that the header of a database would fit into it easily.";
	char url[160], kept[sizeof text];
	(void)state;
	write_file("letter.txt", text, sizeof text);
	snprintf(url, sizeof url, "sqlite:%s", path);
	assert_refused(url, true, IBID_IO, "not an SQLite database");
	assert_refused(url, false, IBID_IO, "not an SQLite database");
	FILE *file = fopen(path, "r");
	assert_int_equal(fread(kept, 1, sizeof kept, file), sizeof kept);
	assert_memory_equal(kept, text, sizeof text);
	fclose(file);
}

static void foreign_database_keeps_its_journal_mode_until_it_is_ours(void **state)
{
	int from, to, version;
	struct ibid_err err;
	(void)state;
	snprintf(path, sizeof path, "%s/foreign.db", directory);
	assert_true(exec("create table t (id text)"));
	struct store *store = open_path(false);
	assert_int_equal(store->ops->check_schema(store, &version, &err), IBID_SCHEMA);
	store_close(store);
	assert_int_equal(number("select journal_mode = 'delete' from pragma_journal_mode"), 1);
	store = open_path(false);
	assert_int_equal(store->ops->migrate(store, &from, &to, &err), IBID_OK);
	store_close(store);
	assert_int_equal(number("select journal_mode = 'wal' from pragma_journal_mode"), 1);
	assert_true(exec("pragma journal_mode = delete"));
	store_close(open_path(false));
	assert_int_equal(number("select journal_mode = 'wal' from pragma_journal_mode"), 1);
}

static void names_that_mean_something_to_sqlite_are_plain_files(void **state)
{
	static const char *const names[] = {":memory:", "file:x.db?mode=memory", "a'b\"c"};
	char old[4096];
	(void)state;
	assert_non_null(getcwd(old, sizeof old));
	assert_int_equal(chdir(directory), 0);
	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
		char url[160];
		struct store *store = NULL;
		struct ibid_err err;
		int from, to;
		snprintf(url, sizeof url, "sqlite:%s", names[i]);
		assert_int_equal(try_open(url, true, &store, &err), IBID_OK);
		assert_int_equal(chdir("/"), 0);
		assert_int_equal(store->ops->migrate(store, &from, &to, &err), IBID_OK);
		store_close(store);
		assert_int_equal(chdir(directory), 0);
		assert_int_equal(access(names[i], F_OK), 0);
	}
	assert_int_equal(chdir(old), 0);
}

/* The child's exit status: 0 when everything in it held. */
static int in_child(void (*body)(void))
{
	int status = -1;
	fflush(stdout);
	pid_t child = fork();
	if (child == 0) {
		body();
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	return status;
}

static void as_nobody(void)
{
	static const struct {
		const char *name;
		bool create;
		const char *text;
	} denied[] = {
	    {"shut/pay.db", true, "no permission"},
	    {"readonly.db", false, "no permission to write"},
	    {"unreadable.db", false, "no permission to read"},
	    {"locked/pay.db", false, "no permission to write in the directory"},
	    {"locked/new.db", true, "no permission to write in the directory"},
	};
	if (getuid() == 0 && setuid(65534) != 0)
		_exit(99);
	for (size_t i = 0; i < sizeof denied / sizeof denied[0]; i++) {
		char url[160];
		struct store *store = NULL;
		struct ibid_err err = {.code = IBID_OK};
		snprintf(url, sizeof url, "sqlite:%s/%s", directory, denied[i].name);
		enum ibid_code code = try_open(url, denied[i].create, &store, &err);
		if (code != IBID_DENIED || !strstr(err.text, denied[i].text)) {
			print_error("%s: %s: %s\n", url, ibid_code_name(code), err.text);
			_exit((int)i + 1);
		}
	}
}

static void missing_permission_is_denied_and_says_which(void **state)
{
	char name[160];
	(void)state;
	static const char *const made[] = {"shut/pay.db", "locked/pay.db", "readonly.db",
	                                   "unreadable.db"};
	assert_int_equal(chmod(directory, 0755), 0);
	for (size_t i = 0; i < 2; i++) {
		snprintf(name, sizeof name, "%s/%s", directory, i ? "locked" : "shut");
		assert_int_equal(mkdir(name, 0755), 0);
	}
	for (size_t i = 0; i < sizeof made / sizeof made[0]; i++) {
		snprintf(path, sizeof path, "%s/%s", directory, made[i]);
		assert_true(exec("create table t (id text)"));
		assert_int_equal(chmod(path, i == 3 ? 0000 : i == 2 ? 0444 : 0666), 0);
	}
	snprintf(name, sizeof name, "%s/shut", directory);
	assert_int_equal(chmod(name, 0000), 0);
	assert_int_equal(in_child(as_nobody), 0);
	assert_int_equal(chmod(name, 0755), 0);
}

/* ---- Every statement ------------------------------------------------------------------------ */

static const char *source_directory;

static void every_statement_prepares_and_every_file_is_listed(void **state)
{
	struct ibid_err err;
	int from, to;
	(void)state;
	struct store *store = fresh();
	assert_int_equal(store->ops->migrate(store, &from, &to, &err), IBID_OK);
	sqlite3 *db = open_raw();
	for (size_t i = 0; i < LITE_SQL_COUNT; i++) {
		sqlite3_stmt *stmt = NULL;
		const char *tail = NULL;
		if (sqlite3_prepare_v2(db, lite_sql[i].sql, -1, &stmt, &tail))
			fail_msg("%s.sql: %s", lite_sql[i].name, sqlite3_errmsg(db));
		if (strspn(tail, " \n") != strlen(tail))
			fail_msg("%s.sql holds more than one statement", lite_sql[i].name);
		char header[128];
		int size = snprintf(header, sizeof header, "-- %s", lite_sql[i].name);
		if (strncmp(lite_sql[i].sql, header, (size_t)size) != 0)
			fail_msg("%s.sql does not start with its name", lite_sql[i].name);
		sqlite3_finalize(stmt);
	}
	sqlite3_close(db);
	store_close(store);
	size_t on_disk = 0;
	DIR *dir = opendir(source_directory);
	assert_non_null(dir);
	for (struct dirent *entry; (entry = readdir(dir));) {
		const char *dot = strrchr(entry->d_name, '.');
		on_disk += dot && strcmp(dot, ".sql") == 0;
	}
	closedir(dir);
	assert_int_equal(on_disk, LITE_SQL_COUNT - SQL_COUNT);
}

/* ---- A bed for commands --------------------------------------------------------------------- */

static const char *const emits[] = {"PaymentCreated"};

static struct uuid make_id(unsigned n)
{
	return (struct uuid){{0, 0, (unsigned char)(n >> 8), (unsigned char)n, 0, 0, 0x70, 0, 0x80}};
}

static struct store *ready(void)
{
	int from, to;
	enum schema_state schema;
	struct ibid_err err = {.code = IBID_OK};
	struct store *store = fresh();
	if (store->ops->migrate(store, &from, &to, &err) ||
	    store->ops->apply_schema(
	        store, &(struct schema_file){.name = "suite", .text = sql[SUITE_TABLES], .now_us = 1},
	        &schema, &err))
		fail_msg("%s", err.text);
	return store;
}

static struct identity identity_of(const char *key)
{
	return (struct identity){"acme", "pay", "", key};
}

static enum ibid_code claim(struct store *store, struct arena *arena, const char *key, unsigned n,
                            struct claim *ret, struct ibid_err *err)
{
	struct identity identity = identity_of(key);
	struct work_context context = {
	    .command_id = make_id(n), .tenant = "acme", .emits = emits, .emit_count = 1, .now_us = 1};
	return store->ops->claim(store, arena, &identity, &context, ret, err);
}

static struct tx *claim_free(struct store *store, const char *key, unsigned n)
{
	struct arena arena = {0};
	struct claim got = {.kind = CLAIM_BUSY};
	struct ibid_err err = {.code = IBID_OK};
	if (claim(store, &arena, key, n, &got, &err))
		fail_msg("%s", err.text);
	assert_int_equal(got.kind, CLAIM_FREE);
	arena_release(&arena);
	return got.tx;
}

/* Audit entry and row with a body of `body_size`, then commit. */
static enum ibid_code complete(struct tx **tx, const char *key, unsigned n, size_t body_size,
                               struct ibid_err *err)
{
	struct arena arena = {0};
	const struct store_ops *ops = (*tx)->store->ops;
	struct outcome outcome;
	char *body = arena_alloc(&arena, body_size + 1);
	memset(body, '1', body_size);
	struct command_row row = {.identity = identity_of(key),
	                          .id = make_id(n),
	                          .state = COMMAND_COMPLETED,
	                          .scheme = 1,
	                          .status = 201,
	                          .audit_id = make_id(n + 5000),
	                          .attempts = 1,
	                          .body = body,
	                          .body_size = body_size,
	                          .created_us = 1,
	                          .finished_us = 1,
	                          .expires_us = 2};
	struct audit_row audit = {.id = row.audit_id,
	                          .command_id = row.id,
	                          .tenant = "acme",
	                          .operation = "pay",
	                          .fact = "paid",
	                          .outcome = "executed",
	                          .at_us = 1};
	enum ibid_code code = store_put_audit(*tx, &audit, err);
	if (!code)
		code = ops->put_command(*tx, &row, NULL, err);
	if (!code)
		code = ops->commit(tx, &arena, &outcome, err);
	ops->rollback(tx);
	arena_release(&arena);
	return code;
}

static enum claim_kind resolve(struct store *store, const char *key)
{
	struct arena arena = {0};
	struct identity identity = identity_of(key);
	struct claim got = {.kind = CLAIM_BUSY};
	struct ibid_err err = {.code = IBID_OK};
	if (store->ops->resolve(store, &arena, &identity, 1000000, &got, &err))
		fail_msg("%s", err.text);
	arena_release(&arena);
	return got.kind;
}

/* ---- The WAL -------------------------------------------------------------------------------- */

enum { PAGE = 4096, FRAME = PAGE + 24, COMMIT_PAGES = 100, COMMITS = 2000 };

static void write_pages(struct store *store, unsigned n)
{
	struct ibid_err err;
	char key[16];
	snprintf(key, sizeof key, "w-%u", n);
	struct tx *tx = claim_free(store, key, n);
	if (complete(&tx, key, n, COMMIT_PAGES * PAGE, &err))
		fail_msg("%s", err.text);
}

static int64_t file_size(const char *suffix)
{
	char name[160];
	struct stat info;
	snprintf(name, sizeof name, "%s%s", path, suffix);
	return stat(name, &info) == 0 ? (int64_t)info.st_size : -1;
}

static void await_moves(struct store *store)
{
	struct lite_mover *mover = &lite_of(store)->mover;
	for (bool wanted = true; wanted;) {
		pthread_mutex_lock(&mover->lock);
		wanted = mover->wanted;
		pthread_mutex_unlock(&mover->lock);
		usleep(1000);
	}
}

/* A commit waits for nothing but itself: a move of the WAL that stands still stops nobody. */
static void commit_does_not_wait_for_the_wal_to_be_moved(void **state)
{
	(void)state;
	struct store *store = ready();
	pthread_mutex_lock(&lite_of(store)->checkpoint_lock);
	for (unsigned n = 1; n <= 60; n++)
		write_pages(store, n);
	assert_true(file_size("-wal") > 60 * COMMIT_PAGES * FRAME);
	pthread_mutex_unlock(&lite_of(store)->checkpoint_lock);
	await_moves(store);
	write_pages(store, 61); /* at the beginning of the WAL: all of it was moved */
	int64_t before = file_size("-wal");
	for (unsigned n = 62; n <= 90; n++)
		write_pages(store, n);
	assert_int_equal(file_size("-wal"), before);
	store_close(store);
}

struct writing {
	struct store *store;
	_Atomic unsigned next;
	_Atomic bool anew;
};

static void *write_on(void *user)
{
	struct writing *writing = user;
	_Atomic int *pages = &lite_of(writing->store)->wal_pages;
	for (unsigned n; !writing->anew && (n = ++writing->next) <= COMMITS;) {
		int before = *pages;
		write_pages(writing->store, n);
		writing->anew |= *pages < before;
	}
	return NULL;
}

static void wal_begins_anew_under_writers_that_never_pause(void **state)
{
	enum { WRITERS = 3 };
	struct writing writing = {.anew = false};
	pthread_t threads[WRITERS];
	(void)state;
	store_close(ready());
	writing.store = patient(); /* a thread can't report that it gave up waiting */
	for (size_t i = 0; i < WRITERS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, write_on, &writing), 0);
	for (size_t i = 0; i < WRITERS; i++)
		pthread_join(threads[i], NULL);
	assert_true(writing.anew);
	store_close(writing.store);
}

static int64_t wal_of(unsigned commits)
{
	return (int64_t)commits * COMMIT_PAGES * FRAME;
}

static bool truncates(sqlite3 *db)
{
	sqlite3_exec(db, "select count(*) from sqlite_schema", NULL, NULL, NULL); /* it is a WAL's */
	return !sqlite3_wal_checkpoint_v2(db, NULL, SQLITE_CHECKPOINT_TRUNCATE, NULL, NULL);
}

/* In a child, where cmocka would go on with the next test. */
#define MUST(what)                                                                                 \
	do {                                                                                           \
		if (!(what)) {                                                                             \
			fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #what);                     \
			_exit(1);                                                                              \
		}                                                                                          \
	} while (0)

/* The disk tells of an error once: what follows may succeed, and means nothing (K3). The number of
 * commits in the end. */
static unsigned lose_a_sync(void)
{
	unsigned n = 0;
	struct ibid_err err;
	struct store *store = again();
	disk.fail_file_sync = true;
	while (!lite_of(store)->unsynced && n < 200) {
		write_pages(store, ++n);
		await_moves(store);
	}
	disk.fail_file_sync = false;
	MUST(lite_of(store)->unsynced);
	MUST(lite_checkpoint(lite_of(store), &err) == IBID_IO);
	lite_checkpoint_truncate(lite_of(store));
	for (unsigned last = n + 60; n < last;)
		write_pages(store, ++n);
	await_moves(store);
	store_close(store);
	MUST(file_size("-wal") > wal_of(n));
	/* The next store on it, as after a reload, knows of it; one that does not can do no harm. */
	sqlite3 *db = open_raw();
	store = again();
	MUST(lite_of(store)->unsynced);
	MUST(lite_checkpoint(lite_of(store), &err) == IBID_IO);
	lite_of(store)->unsynced = false;
	for (unsigned last = n + 100; n < last;)
		write_pages(store, ++n);
	await_moves(store);
	store_close(store);
	MUST(!truncates(db));
	sqlite3_close(db);
	MUST(file_size("-wal") > wal_of(n));
	return n;
}

static void wal_is_kept_when_the_file_can_not_be_synced(void **state)
{
	int says[2], ends[2];
	unsigned n = 0;
	(void)state;
	store_close(ready());
	assert_int_equal(pipe(says), 0);
	assert_int_equal(pipe(ends), 0);
	pid_t child = fork();
	if (child == 0) {
		close(ends[1]);
		n = lose_a_sync();
		(void)!write(says[1], &n, sizeof n);
		(void)!read(ends[0], &n, sizeof n); /* until the other end is closed */
		_exit(0);
	}
	close(says[1]);
	close(ends[0]);
	assert_int_equal(read(says[0], &n, sizeof n), sizeof n);
	/* While that process is there, no other one begins the WAL anew, not even by closing. */
	sqlite3 *db = open_raw();
	assert_false(truncates(db));
	assert_int_equal(sqlite3_close(db), SQLITE_OK);
	assert_true(file_size("-wal") > wal_of(n));
	close(ends[1]);
	assert_int_equal(waitpid(child, NULL, 0), child);
	close(says[0]);
	/* All of it is moved when the file is opened next. */
	struct store *store = again();
	assert_int_equal(number("select count(*) from ibid_answer"), n);
	store_close(store);
	assert_int_equal(file_size("-wal"), -1);
	assert_int_equal(number("select count(*) from ibid_answer"), n);
}

/* While a reader holds on to an old page, a checkpoint moves what it may and does not sync. */
static void wal_is_kept_when_what_was_moved_can_not_be_synced(void **state)
{
	(void)state;
	struct store *store = ready();
	write_pages(store, 999);
	sqlite3 *db = open_raw();
	assert_int_equal(sqlite3_exec(db, "begin; select count(*) from ibid_answer", NULL, NULL, NULL),
	                 SQLITE_OK);
	disk.fail_file_sync = true;
	for (unsigned n = 1000; n < 1200 && !lite_of(store)->unsynced; n++) {
		write_pages(store, n);
		await_moves(store);
	}
	disk.fail_file_sync = false;
	assert_true(lite_of(store)->unsynced);
	sqlite3_close(db);
	store_close(store);
	assert_true(file_size("-wal") > 0);
}

/* ---- A file system that fails --------------------------------------------------------------- */

static int good_disk(void **state)
{
	(void)state;
	disk.fail_wal_sync = disk.fail_file_sync = disk.full = false;
	return 0;
}

static void
commit_whose_sync_fails_is_unknown_and_resolves_to_one_outcome(void **state) /* B15, I7 */
{
	struct ibid_err err = {.code = IBID_OK};
	(void)state;
	struct store *store = ready();
	struct tx *tx = claim_free(store, "k-1", 1);
	disk.fail_wal_sync = true;
	assert_int_equal(complete(&tx, "k-1", 1, 10, &err), IBID_UNKNOWN);
	assert_int_equal(err.next, IBID_NEXT_SAME_KEY);
	disk.fail_wal_sync = false;
	enum claim_kind kind = resolve(store, "k-1");
	assert_int_not_equal(kind, CLAIM_BUSY);
	if (kind == CLAIM_FREE) {
		tx = claim_free(store, "k-1", 1);
		assert_int_equal(complete(&tx, "k-1", 1, 10, &err), IBID_OK);
	}
	store_close(store);
	assert_int_equal(number("select count(*) from ibid_command"), 1);
	assert_int_equal(number("select count(*) from ibid_audit"), 1);
}

static void copy_file(const char *from, const char *to)
{
	char bytes[4096];
	FILE *in = fopen(from, "r"), *out = fopen(to, "w");
	assert_non_null(in);
	assert_non_null(out);
	for (size_t n; (n = fread(bytes, 1, sizeof bytes, in)) > 0;)
		assert_int_equal(fwrite(bytes, 1, n, out), n);
	fclose(in);
	fclose(out);
}

/* Commands that a machine would find if it lost its power now: database and WAL, without the memory
 * that processes share. */
static int64_t commands_after_power_loss(void)
{
	char copy[140], wal[160], copy_wal[160], kept[sizeof path];
	snprintf(copy, sizeof copy, "%s.copy", path);
	snprintf(wal, sizeof wal, "%s-wal", path);
	snprintf(copy_wal, sizeof copy_wal, "%s-wal", copy);
	copy_file(path, copy);
	copy_file(wal, copy_wal);
	memcpy(kept, path, sizeof path);
	memcpy(path, copy, sizeof path);
	int64_t commands = number("select count(*) from ibid_command");
	memcpy(path, kept, sizeof path);
	unlink(copy);
	return commands;
}

static void what_resolve_said_stays_true_after_a_power_loss(void **state) /* I7 */
{
	struct ibid_err err = {.code = IBID_OK};
	(void)state;
	struct store *store = ready();
	struct tx *tx = claim_free(store, "k-1", 1);
	disk.fail_wal_sync = true;
	assert_int_equal(complete(&tx, "k-1", 1, 10, &err), IBID_UNKNOWN);
	disk.fail_wal_sync = false;
	/* The danger is real: recovery would take the frames for committed. */
	assert_int_equal(commands_after_power_loss(), 1);
	enum claim_kind kind = resolve(store, "k-1");
	assert_int_equal(commands_after_power_loss(), kind == CLAIM_FOUND ? 1 : 0);
	store_close(store);
}

static void resolve_on_a_disk_that_still_fails_says_so(void **state) /* I7 */
{
	struct ibid_err err = {.code = IBID_OK};
	struct arena arena = {0};
	struct identity identity = identity_of("k-1");
	struct claim got;
	(void)state;
	struct store *store = ready();
	struct tx *tx = claim_free(store, "k-1", 1);
	disk.fail_wal_sync = true;
	assert_int_equal(complete(&tx, "k-1", 1, 10, &err), IBID_UNKNOWN);
	assert_int_not_equal(store->ops->resolve(store, &arena, &identity, 100000, &got, &err),
	                     IBID_OK);
	disk.fail_wal_sync = false;
	assert_int_not_equal(resolve(store, "k-1"), CLAIM_BUSY);
	store_close(store);
	arena_release(&arena);
}

static void full_disk_while_a_command_runs_is_definite(void **state)
{
	struct ibid_err err = {.code = IBID_OK};
	(void)state;
	struct store *store = ready();
	struct tx *tx = claim_free(store, "k-1", 1);
	disk.full = true;
	/* Larger than the page cache, so that an insert has to write. */
	enum ibid_code code = complete(&tx, "k-1", 1, 8 << 20, &err);
	disk.full = false;
	assert_int_equal(code, IBID_FULL);
	assert_int_equal(err.next, IBID_NEXT_LATER);
	assert_int_equal(number("select count(*) from ibid_command"), 0);
	tx = claim_free(store, "k-1", 1);
	assert_int_equal(complete(&tx, "k-1", 1, 10, &err), IBID_OK);
	store_close(store);
}

/* The frame that commits is the last that is written, and there was no room for all of it. */
static void full_disk_at_commit_is_definite(void **state)
{
	struct ibid_err err = {.code = IBID_OK};
	(void)state;
	struct store *store = ready();
	struct tx *tx = claim_free(store, "k-1", 1);
	assert_int_equal(store->ops->ready(store, &err), IBID_OK);
	disk.full = true;
	assert_int_equal(complete(&tx, "k-1", 1, 10, &err), IBID_FULL);
	assert_int_equal(err.next, IBID_NEXT_LATER);
	assert_int_equal(commands_after_power_loss(), 0);
	for (unsigned i = 0; i < 2; i++)
		assert_int_equal(store->ops->ready(store, &err), IBID_FULL);
	disk.full = false;
	assert_int_equal(store->ops->ready(store, &err), IBID_OK); /* nobody has written meanwhile */
	assert_int_equal(number("select count(*) from ibid_command"), 0);
	tx = claim_free(store, "k-1", 1);
	assert_int_equal(complete(&tx, "k-1", 1, 10, &err), IBID_OK);
	store_close(store);
	assert_int_equal(number("select count(*) from ibid_command"), 1);
}

static enum ibid_code get(struct store *store, const char *key, struct ibid_err *err)
{
	struct arena arena = {0};
	struct identity identity = identity_of(key);
	struct command_row row;
	enum ibid_code code = store_get_command(store, &arena, identity.tenant, NULL, &identity, &row,
	                                        err);
	arena_release(&arena);
	return code;
}

static void command_is_not_missed_before_its_commit_is_settled(void **state) /* I7 */
{
	struct ibid_err err = {.code = IBID_OK};
	(void)state;
	store_close(ready());
	struct store *store = again(); /* as a server has it: the WAL is not recovered meanwhile */
	struct tx *tx = claim_free(store, "k-1", 1);
	disk.fail_wal_sync = true;
	assert_int_equal(complete(&tx, "k-1", 1, 10, &err), IBID_UNKNOWN);
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(get(store, "k-1", &err), IBID_BUSY);
		assert_int_not_equal(store->ops->ready(store, &err), IBID_OK);
	}
	disk.fail_wal_sync = false;
	disk.full = true;
	assert_int_equal(store->ops->ready(store, &err), IBID_FULL);
	assert_int_equal(get(store, "k-1", &err), IBID_BUSY);
	disk.full = false;
	assert_int_equal(store->ops->ready(store, &err), IBID_OK); /* settles it */
	assert_int_equal(get(store, "k-1", &err), IBID_NOT_FOUND);
	assert_int_equal(commands_after_power_loss(), 0);
	store_close(store);
}

/* ---- Scripts and callbacks on SQLite -------------------------------------------------------- */

/* Run one script text for a new command, commit when it succeeds. */
static enum ibid_code run_text(struct store *store, unsigned n, const char *text,
                               struct outcome *ret, struct arena *arena)
{
	struct script *script = NULL;
	struct ibid_err err = {.code = IBID_OK};
	char key[16];
	*ret = (struct outcome){.status = 0};
	if (store->ops->make_script(store, "t.sql", text, NULL, 0, &script, &err)) {
		ret->text = arena_strdup(arena, err.text);
		return err.code;
	}
	snprintf(key, sizeof key, "k-%u", n);
	struct tx *tx = claim_free(store, key, n);
	enum ibid_code code = store->ops->run_script(tx, arena, script, NULL, ret, &err);
	if (!code)
		code = store->ops->commit(&tx, arena, ret, &err);
	store->ops->rollback(&tx);
	store->ops->free_script(store, script);
	return code;
}

static void assert_body(struct store *store, unsigned n, const char *expression,
                        const char *expected)
{
	struct arena arena = {0};
	struct outcome outcome;
	char text[512];
	struct script *script = NULL;
	struct ibid_err err;
	snprintf(text, sizeof text, "select 200 as status, %s as body;", expression);
	assert_int_equal(store->ops->make_script(store, "t.sql", text, NULL, 0, &script, &err),
	                 IBID_OK);
	struct tx *tx = claim_free(store, "body", n);
	enum ibid_code code = store->ops->run_script(tx, &arena, script, NULL, &outcome, &err);
	if (code)
		fail_msg("%s: %s", expression, err.text);
	if (expected)
		assert_string_equal(outcome.body, expected);
	else
		assert_null(outcome.body);
	store->ops->rollback(&tx);
	store->ops->free_script(store, script);
	arena_release(&arena);
}

static void decimals_calculate_exactly(void **state)
{
	(void)state;
	struct store *store = ready();
	assert_body(store, 1, "decimal_add('12345678901234567.89', '0.01')", "12345678901234567.9");
	assert_body(store, 1, "decimal_sub('1', 1)", "0");
	assert_body(store, 1, "decimal_mul('1.10', '-3')", "-3.3");
	assert_body(store, 1, "decimal_cmp('-5', '0')", "-1");
	assert_body(store, 1, "decimal_cmp('1.0', 1)", "0");
	assert_body(store, 1, "decimal_cmp('10', '9')", "1");
	assert_body(store, 1, "decimal_add(null, '1')", NULL);
	assert_body(store, 1,
	            "(select decimal_sum(v) from (select '0.1' v union all select '0.2'"
	            " union all select null union all select 3))",
	            "3.3");
	assert_body(store, 1, "(select decimal_sum(v) from (select null v))", NULL);
	assert_body(store, 1,
	            "(select group_concat(s, ' ') from (select decimal_sum(v) over (order by v rows 1"
	            " preceding) s from (select '1.5' v union all select '2' union all select '4')))",
	            "1.5 3.5 6");
	store_close(store);
}

static void wrong_decimals_fail_with_a_reason(void **state)
{
	static const struct {
		const char *sql, *text;
	} wrong[] = {
	    {"select 200 as status, decimal_add(0.1, '1') as body;", "REAL"},
	    {"select 200 as status, decimal_add('1x', '1') as body;", "decimal_add"},
	    {"select 200 as status, decimal_sum(x'31') as body;", "decimal_sum"},
	    {"select 200 as status, decimal_mul('1e30', '1e30') as body;", "digits"},
	    {"select 200 as status, 0.5 as body;", "body"},
	    {"select '200' as status;", "status is not a number"},
	};
	struct arena arena = {0};
	struct outcome outcome;
	(void)state;
	struct store *store = ready();
	for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
		assert_int_equal(run_text(store, 1, wrong[i].sql, &outcome, &arena), IBID_FAILED);
		if (!strstr(outcome.text, wrong[i].text))
			fail_msg("%s: %s", wrong[i].sql, outcome.text);
	}
	arena_release(&arena);
	store_close(store);
}

static void emitted_payload_is_kept_in_canonical_form(void **state)
{
	struct arena arena = {0};
	struct outcome outcome;
	(void)state;
	struct store *store = ready();
	assert_int_equal(
	    run_text(store, 1,
	             "select ibid_emit('payment', 7, 'PaymentCreated', "
	             "'{ \"b\": 1.10, \"a\": 12345678901234567.890 }'); select 200 as status;",
	             &outcome, &arena),
	    IBID_OK);
	assert_int_equal(number("select payload = '{\"a\":12345678901234567.89,\"b\":1.1}'"
	                        " and aggregateid = '7' from ibid_event"),
	                 1);
	store_close(store);
	arena_release(&arena);
}

static void column_that_would_round_a_decimal_is_refused(void **state)
{
	struct ibid_err err;
	(void)state;
	struct store *store = ready();
	assert_int_equal(store->ops->check_decimal_column(store, "amount", &err), IBID_OK);
	assert_true(exec("create table fee (id text, amount numeric)"));
	assert_int_equal(store->ops->check_decimal_column(store, "amount", &err), IBID_CONTRACT);
	assert_non_null(strstr(err.text, "fee.amount"));
	store_close(store);
}

static void scripts_can_not_end_the_transaction_or_touch_the_ledger(void **state) /* I1, I3 */
{
	static const char *const refused[] = {
	    "insert into ibid_command (tenant) values ('x');",
	    "update ibid_aggregate set version = 0;",
	    "delete from ibid_event_key;",
	    "drop table ibid_event;",
	    "drop trigger ibid_event_is_never_edited;",
	    "alter table ibid_audit add column x text;",
	    "create temp table ibid_command (id text);",
	    "create trigger sly after insert on payment begin delete from ibid_answer; end;",
	    "create table ibid_mine (id text);",
	    "pragma foreign_keys = off;",
	    "attach ':memory:' as other;",
	    "savepoint s;",
	    "rollback;",
	    "insert into child (id) values ('a'); insert or rollback into child (id) values ('a');",
	    "select ibid_reject('lower', 422, 'x');",
	    "select ibid_reject('FINE', 200, 'x');",
	    "select ibid_emit('payment', 'p', 'PaymentCreated', '{\"a\":1,\"a\":2}');",
	    "select ibid_emit('payment', '', 'PaymentCreated', '{}');",
	    "select ibid_emit('payment', 'p', 'PaymentCreated', '{}', -1);",
	    "select ibid_emit('payment', 'p', 'PaymentCreated', '{}', 0, '');",
	    "select ibid_link_reference(cast(x'ff' as text), '1', 'case', 'c');",
	    "select ibid_post('s', '[');",
	    "select ibid_post('s', '[{\"account\":\"a\",\"account\":\"b\"}]');",
	    "select ibid_post('s', '[]', '2026-02-30');",
	    "select ibid_post('s', '[]', null, cast(x'ff' as text));",
	    "select ibid_move('m', 'x', 'A', '{', 1);",
	    "select ibid_move('m', 'x', 'A', null, '1');",
	    "select ibid_move(null, 'x', 'A');",
	    "select ibid_move('m', cast(x'ff' as text), 'A');",
	    "select ibid_define_machine('m', '[[\"\",\"A\"]]');",
	    "insert into ibid_machine_move values ('m', '', 'A');",
	    "delete from ibid_journal_line;",
	    "create view v as select ibid_post(null, '[]') as x; select * from v;",
	};
	struct arena arena = {0};
	struct outcome outcome;
	(void)state;
	struct store *store = ready();
	for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
		enum ibid_code code = run_text(store, 1, refused[i], &outcome, &arena);
		if (code != IBID_FAILED && code != IBID_CONTRACT && code != IBID_DUPLICATE)
			fail_msg("%s: %s", refused[i], ibid_code_name(code));
	}
	assert_int_equal(number("select count(*) from child"), 0);
	assert_int_equal(number("select count(*) from ibid_event"), 0);
	store_close(store);
	arena_release(&arena);
}

static void indexes_that_sqlite_describes_by_columns_are_named(void **state) /* B09 */
{
	static const struct {
		const char *table, *insert, *unique;
	} cases[] = {
	    {"create table a (x text, y text); create unique index a_xy on a (x, y)",
	     "insert into a values ('1', '2');", "a_xy"},
	    {"create table b (x text primary key)", "insert into b values ('1');",
	     "sqlite_autoindex_b_1"},
	    {"create table c (x text primary key) without rowid", "insert into c values ('1');",
	     "sqlite_autoindex_c_1"},
	    {"create table d (x text); create unique index d_lower on d (lower(x))",
	     "insert into d values ('A');", "d_lower"},
	    {"create table e (x text unique); create unique index e_x on e (x)",
	     "insert into e values ('1');", "e_x,sqlite_autoindex_e_1"},
	    {"create table \"odd.name, x\" (\"a.b, c\" text); create unique index odd on \"odd.name, "
	     "x\" "
	     "(\"a.b, c\")",
	     "insert into \"odd.name, x\" values ('1');", "odd"},
	    {"create table f (x text, y text, z text); create unique index f_x on f (x) where z is "
	     "null;"
	     " create unique index f_xy on f (x, y)",
	     "insert into f values ('1', '2', 'z');", "f_xy"},
	};
	struct arena arena = {0};
	struct outcome outcome;
	unsigned n = 1;
	(void)state;
	struct store *store = ready();
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		assert_true(exec(cases[i].table));
		assert_int_equal(run_text(store, n++, cases[i].insert, &outcome, &arena), IBID_OK);
		assert_int_equal(run_text(store, n++, cases[i].insert, &outcome, &arena), IBID_DUPLICATE);
		assert_string_equal(outcome.unique, cases[i].unique);
	}
	assert_true(exec("create table g (x integer primary key)"));
	assert_int_equal(run_text(store, n++, "insert into g values (1);", &outcome, &arena), IBID_OK);
	assert_int_equal(run_text(store, n++, "insert into g values (1);", &outcome, &arena),
	                 IBID_FAILED);
	assert_non_null(strstr(outcome.text, "g.x"));
	store_close(store);
	arena_release(&arena);
}

static void lent_handle_can_not_end_the_transaction(void **state) /* I1 */
{
	struct ibid_err err;
	struct arena arena = {0};
	struct outcome outcome;
	(void)state;
	struct store *store = ready();
	struct tx *tx = claim_free(store, "k-1", 1);
	sqlite3 *db = store->ops->lend(tx, true);
	assert_int_equal(sqlite3_exec(db, "commit", NULL, NULL, NULL), SQLITE_AUTH);
	assert_int_equal(sqlite3_exec(db, "rollback", NULL, NULL, NULL), SQLITE_AUTH);
	assert_int_equal(
	    sqlite3_exec(db, "insert into payment (id, tenant) values ('a', 't')", NULL, NULL, NULL),
	    SQLITE_OK);
	store->ops->lend(tx, false);
	assert_int_equal(store->ops->commit(&tx, &arena, &outcome, &err), IBID_OK);
	assert_int_equal(number("select count(*) from payment"), 1);
	store_close(store);
	arena_release(&arena);
}

static void assert_fails(struct store *store, const char *text, const char *expected)
{
	struct arena arena = {0};
	struct outcome outcome;
	enum ibid_code code = run_text(store, 1, text, &outcome, &arena);
	if (code != IBID_FAILED || !outcome.text || !strstr(outcome.text, expected))
		fail_msg("%s: %s: %s", text, ibid_code_name(code), outcome.text ? outcome.text : "");
	arena_release(&arena);
}

static void status_that_is_no_small_integer_fails(void **state)
{
	static const char *const wrong[] = {
	    "4294967497", /* 201 in its low 32 bits */
	    "-4294967095", "2147483648", "9223372036854775807", "201.0",
	    "'201x'",      "x'323031'",  "9223372036854775808", /* a REAL */
	    "null",
	};
	char text[128];
	(void)state;
	struct store *store = ready();
	for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
		snprintf(text, sizeof text, "select %s as status;", wrong[i]);
		assert_fails(store, text, "the answer's status is not a number");
	}
	store_close(store);
}

static void temporary_objects_are_refused(void **state)
{
	static const char *const refused[] = {
	    "create temp table payment as select * from main.payment",
	    "create table temp.payment (id text)",
	    "create temp table if not exists scratch (id text)",
	    "create temp view payment as select 1 as id",
	    "create temp trigger sly after insert on main.payment begin select 1; end",
	    "create virtual table temp.payment using fts5(id)",
	    "create virtual table temp.payment using rtree(id, a, b)",
	};
	struct arena arena = {0};
	struct outcome outcome;
	struct ibid_err err;
	enum schema_state schema;
	char text[160];
	(void)state;
	struct store *store = ready();
	for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
		snprintf(text, sizeof text, "%s; select 200 as status;", refused[i]);
		enum ibid_code code = run_text(store, 1, text, &outcome, &arena);
		if (code != IBID_FAILED && code != IBID_CONTRACT)
			fail_msg("%s: %s", refused[i], ibid_code_name(code));
		struct tx *tx = claim_free(store, "lent", 2);
		sqlite3 *db = store->ops->lend(tx, true);
		if (sqlite3_exec(db, refused[i], NULL, NULL, NULL) != SQLITE_AUTH)
			fail_msg("a callback, %s: %s", refused[i], sqlite3_errmsg(db));
		store->ops->lend(tx, false);
		store->ops->rollback(&tx);
	}
	/* The splitter knows the word TEMP; only the authorizer knows what a name means. */
	assert_fails(store, refused[1], "temporary tables");
	struct schema_file temp = {.name = "temp", .text = refused[0], .now_us = 1};
	assert_int_equal(store->ops->apply_schema(store, &temp, &schema, &err), IBID_CONTRACT);
	assert_non_null(strstr(err.text, "temporary"));
	/* The real table is what the next command sees, and altering it is no temporary matter. */
	assert_int_equal(
	    run_text(store, 3, "insert into payment (id, tenant) values ('a', 't');", &outcome, &arena),
	    IBID_OK);
	assert_int_equal(number("select count(*) from payment"), 1);
	struct schema_file alter = {.name = "alter",
	                            .text = "alter table child rename to kid;\n"
	                                    "alter table kid rename column payment to parent;\n"
	                                    "alter table kid add column x text;\n"
	                                    "alter table kid drop column x;\n"
	                                    "drop table kid;\n",
	                            .now_us = 1};
	if (store->ops->apply_schema(store, &alter, &schema, &err))
		fail_msg("%s", err.text);
	store_close(store);
	arena_release(&arena);
}

#define EVENT_COLUMNS                                                                              \
	"aggregatetype, aggregateid, type, tenant, version, key, command_id, ordinal, partition_key, " \
	"created_us"
#define AUDIT_COLUMNS                                                                              \
	"tenant, id, command_id, operation, outcome, contract_version, fingerprint, at_us"

static void evidence_can_not_be_replaced(void **state) /* I3 */
{
	static const char *const refused[] = {
	    "insert or replace into ibid_audit (fact, " AUDIT_COLUMNS
	    ") select 'forged', " AUDIT_COLUMNS " from ibid_audit",
	    "replace into ibid_event (seq, id, payload, " EVENT_COLUMNS ") select seq, "
	    "'00000000-0000-0000-0000-000000000000', '\"forged\"', " EVENT_COLUMNS " from ibid_event",
	    "replace into ibid_event (seq, id, payload, " EVENT_COLUMNS ") select null, id, "
	    "'\"forged\"', " EVENT_COLUMNS " from ibid_event",
	    /* What NEW.seq is before SQLite has chosen one: it must not be taken. */
	    "insert into ibid_event (seq, id, payload, " EVENT_COLUMNS ") select -1, "
	    "'ffffffff-0000-0000-0000-000000000000', payload, " EVENT_COLUMNS
	    " from ibid_event limit 1",
	    "replace into ibid_delivery (tenant, event_id, destination, token, at_us, place) "
	    "select tenant, event_id, destination, token, at_us, 'forged' from ibid_delivery",
	    /* Not even with what an erasure may do. */
	    "begin; insert into ibid_erasing (command_id) select command_id from ibid_event; "
	    "update ibid_event set payload = '{\"erased\":true}', lane = lane + 1; commit",
	};
	struct arena arena = {0};
	struct outcome outcome;
	struct ibid_err err;
	(void)state;
	struct store *store = ready();
	struct tx *tx = claim_free(store, "k-1", 1);
	assert_int_equal(complete(&tx, "k-1", 1, 10, &err), IBID_OK);
	for (unsigned n = 2; n < 4; n++) {
		char text[160];
		snprintf(text, sizeof text,
		         "select ibid_emit('payment', 'p', 'PaymentCreated', '{}'); "
		         "select 200 as status, %u as resource_id;",
		         n);
		assert_int_equal(run_text(store, n, text, &outcome, &arena), IBID_OK);
	}
	assert_true(
	    exec("insert into ibid_delivery (tenant, event_id, destination, token, at_us, place) "
	         "select tenant, id, 'kafka', 1, 1, 'payments' from ibid_event"));
	for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++)
		if (exec(refused[i]))
			fail_msg("not refused: %s", refused[i]);
	store_close(store);
	assert_int_equal(number("select count(*) from ibid_delivery where place = 'payments'"), 2);
	assert_int_equal(number("select count(*) from ibid_audit where fact = 'paid'"), 1);
	assert_int_equal(number("select count(*) from ibid_event where payload = '{}'"), 2);
	assert_int_equal(number("select min(seq) from ibid_event"), 1);
	arena_release(&arena);
}

static void lent_handle_can_not_write_the_ledger(void **state) /* I3 */
{
	static const char *const refused[] = {
	    "insert into ibid_fence (one, count) values (1, 1)",
	    "update ibid_aggregate set version = 7",
	    "delete from ibid_command",
	    "replace into ibid_schema (version, name, at_us) values (99, 'x', 0)",
	    "drop trigger ibid_audit_is_never_edited",
	    "drop table ibid_audit",
	    "alter table ibid_audit add column x text",
	    "create trigger sly after insert on ibid_event begin select 1; end",
	    "create table ibid_mine (id text)",
	};
	struct arena arena = {0};
	struct outcome outcome;
	struct ibid_err err;
	struct event_row event = {.tenant = "acme",
	                          .command_id = make_id(1),
	                          .ordinal = 1,
	                          .aggregate_type = "payment",
	                          .aggregate_id = "p",
	                          .type = "PaymentCreated",
	                          .payload = "{}",
	                          .at_us = 1};
	(void)state;
	struct store *store = ready();
	struct tx *tx = claim_free(store, "k-1", 1);
	sqlite3 *db = store->ops->lend(tx, true);
	for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++)
		if (sqlite3_exec(db, refused[i], NULL, NULL, NULL) != SQLITE_AUTH)
			fail_msg("not refused: %s", refused[i]);
	/* What a callback may: look, nest, write its own tables, emit. */
	assert_int_equal(sqlite3_exec(db,
	                              "select count(*) from ibid_event; savepoint ibid_s;"
	                              "insert into payment (id, tenant) values ('a', 't');"
	                              "release ibid_s; pragma table_info(payment)",
	                              NULL, NULL, NULL),
	                 SQLITE_OK);
	if (store->ops->put_event(tx, &event, &err))
		fail_msg("%s", err.text);
	store->ops->lend(tx, false);
	assert_int_equal(store->ops->commit(&tx, &arena, &outcome, &err), IBID_OK);
	assert_int_equal(number("select count(*) from ibid_event"), 1);
	store_close(store);
	arena_release(&arena);
}

static void texts_that_are_not_utf8_are_refused(void **state)
{
	static const char *const wrong[] = {
	    "select ibid_emit(cast(x'fffe' as text), 'p', 'PaymentCreated', '{}');",
	    "select ibid_emit('payment', cast(x'70c0' as text), 'PaymentCreated', '{}');",
	    "select ibid_emit('payment', 'p', cast(x'eda080' as text), '{}');",
	    "select ibid_emit('payment', 'p', 'PaymentCreated', cast(x'22ff22' as text));",
	    "select ibid_emit('payment', 'p', 'PaymentCreated', '{}', 0, cast(x'f5' as text));",
	    "select ibid_emit('payment', 'p' || char(0) || 'q', 'PaymentCreated', '{}');",
	    "select ibid_reject('NO', 422, cast(x'fffe' as text));",
	    "select ibid_reject(cast(x'4e00ff' as text), 422, 'x');",
	};
	(void)state;
	struct store *store = ready();
	for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
		assert_fails(store, wrong[i], "UTF-8");
	assert_int_equal(number("select count(*) from ibid_event"), 0);
	store_close(store);
}

static void emitted_texts_have_limits(void **state)
{
	/* replace(hex(zeroblob(n)), '00', x) is x, n times. */
	static const struct {
		const char *sql, *text; /* NULL: still fine */
	} cases[] = {
	    {"ibid_emit(replace(hex(zeroblob(256)), '00', 'a'), 'p', 'PaymentCreated', '{}')", "255"},
	    {"ibid_emit('payment', replace(hex(zeroblob(128)), '00', 'ä'), 'PaymentCreated', '{}')",
	     "255"},
	    {"ibid_emit('payment', 'p', 'PaymentCreated', '{}', 0, hex(zeroblob(128)))", "255"},
	    {"ibid_emit('payment', 'p', 'PaymentCreated', '\"' || hex(zeroblob(524288)) || '\"')",
	     "1048576"},
	    {"ibid_emit(replace(hex(zeroblob(255)), '00', 'a'), replace(hex(zeroblob(255)), '00', 'b'),"
	     " 'PaymentCreated', '\"' || hex(zeroblob(524287)) || '\"', 1,"
	     " replace(hex(zeroblob(255)), '00', 'c'))",
	     NULL},
	};
	struct arena arena = {0};
	struct outcome outcome;
	char text[512];
	(void)state;
	struct store *store = ready();
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		snprintf(text, sizeof text, "select %s; select 200 as status;", cases[i].sql);
		if (cases[i].text)
			assert_fails(store, text, cases[i].text);
		else if (run_text(store, 1, text, &outcome, &arena))
			fail_msg("%s: %s", text, outcome.text);
	}
	assert_int_equal(number("select length(payload) from ibid_event"), 1048576);
	store_close(store);
	arena_release(&arena);
}

static void callback_that_loses_the_transaction_commits_nothing(void **state) /* I1 */
{
	struct ibid_err err;
	(void)state;
	struct store *store = ready();
	assert_true(exec("insert into payment (id, tenant) values ('a', 't')"));
	struct tx *tx = claim_free(store, "k-1", 1);
	sqlite3 *db = store->ops->lend(tx, true);
	assert_int_not_equal(sqlite3_exec(db,
	                                  "insert or rollback into payment (id, tenant) values "
	                                  "('a', 't')",
	                                  NULL, NULL, NULL),
	                     SQLITE_OK);
	/* Without a transaction this would commit by itself. */
	assert_int_not_equal(
	    sqlite3_exec(db, "insert into payment (id, tenant) values ('b', 't')", NULL, NULL, NULL),
	    SQLITE_OK);
	store->ops->lend(tx, false);
	assert_int_not_equal(complete(&tx, "k-1", 1, 10, &err), IBID_OK);
	assert_int_equal(number("select count(*) from payment"), 1);
	assert_int_equal(number("select count(*) from ibid_audit"), 0);
	tx = claim_free(store, "k-1", 1);
	assert_int_equal(complete(&tx, "k-1", 1, 10, &err), IBID_OK);
	store_close(store);
}

static void schema_file_says_where_it_is_wrong(void **state)
{
	enum schema_state schema;
	struct ibid_err err;
	(void)state;
	struct store *store = ready();
	assert_int_equal(
	    store->ops->apply_schema(store,
	                             &(struct schema_file){.name = "schema.sqlite.sql",
	                                                   .text = sql[SUITE_TABLES_BROKEN],
	                                                   .now_us = 1},
	                             &schema, &err),
	    IBID_CONTRACT);
	assert_non_null(strstr(err.text, "schema.sqlite.sql:3: "));
	assert_int_equal(
	    store->ops->apply_schema(store,
	                             &(struct schema_file){.name = "s.sql",
	                                                   .text = "create table x (id text);\ncommit;",
	                                                   .now_us = 1},
	                             &schema, &err),
	    IBID_CONTRACT);
	assert_non_null(strstr(err.text, "s.sql:2: transaction control"));
	assert_int_equal(number("select count(*) from sqlite_schema where name in ('x', 'half')"), 0);
	store_close(store);
}

/* ---- Files shared by processes -------------------------------------------------------------- */

static void migrate_in_child(void)
{
	struct ibid_err err;
	struct store *store = NULL;
	char url[160];
	int from, to;
	snprintf(url, sizeof url, "sqlite:%s", path);
	if (try_open_with(SUITE_PATIENT_MS, url, true, &store, &err) ||
	    store->ops->migrate(store, &from, &to, &err)) {
		print_error("%s\n", err.text);
		_exit(1);
	}
	store_close(store);
}

static void processes_migrate_at_once_and_all_succeed(void **state)
{
	enum { PROCESSES = 6 };
	pid_t children[PROCESSES];
	(void)state;
	snprintf(path, sizeof path, "%s/%u.db", directory, ++files);
	fflush(stdout);
	for (int i = 0; i < PROCESSES; i++) {
		children[i] = fork();
		if (children[i] == 0) {
			migrate_in_child();
			_exit(0);
		}
	}
	for (int i = 0; i < PROCESSES; i++) {
		int status = -1;
		assert_int_equal(waitpid(children[i], &status, 0), children[i]);
		assert_int_equal(status, 0);
	}
	assert_int_equal(number("select count(*) from ibid_schema"), STORE_SCHEMA);
}

static void killed_inside_a_transaction(void)
{
	struct ibid_err err;
	struct store *store = NULL;
	char url[160];
	snprintf(url, sizeof url, "sqlite:%s", path);
	if (try_open(url, false, &store, &err))
		_exit(1);
	struct tx *tx = claim_free(store, "k-1", 1);
	(void)tx;
	kill(getpid(), SIGKILL);
}

static void process_that_dies_inside_a_transaction_leaves_the_identity_free(void **state) /* B02 */
{
	struct ibid_err err;
	(void)state;
	store_close(ready());
	assert_true(WIFSIGNALED(in_child(killed_inside_a_transaction)));
	struct store *store = again();
	struct tx *tx = claim_free(store, "k-1", 1);
	assert_int_equal(complete(&tx, "k-1", 1, 10, &err), IBID_OK);
	store_close(store);
}

static void another_process_that_holds_the_file_is_waited_for_and_then_busy(void **state)
{
	struct ibid_err err;
	struct arena arena = {0};
	struct claim got;
	(void)state;
	struct store *store = ready();
	sqlite3 *db = open_raw();
	assert_int_equal(sqlite3_exec(db, "begin immediate", NULL, NULL, NULL), SQLITE_OK);
	assert_int_equal(claim(store, &arena, "k-1", 1, &got, &err), IBID_BUSY);
	assert_int_equal(err.next, IBID_NEXT_LATER);
	assert_int_equal(resolve(store, "k-1"), CLAIM_BUSY);
	sqlite3_close(db);
	struct tx *tx = claim_free(store, "k-1", 1);
	store->ops->rollback(&tx);
	store_close(store);
	arena_release(&arena);
}

static void completed_command_is_answered_while_the_writer_is_held(void **state) /* B03 */
{
	struct ibid_err err;
	struct arena arena = {0};
	struct claim got;
	(void)state;
	struct store *store = ready();
	struct tx *tx = claim_free(store, "k-1", 1);
	assert_int_equal(complete(&tx, "k-1", 1, 10, &err), IBID_OK);
	tx = claim_free(store, "k-2", 2);
	assert_int_equal(claim(store, &arena, "k-1", 3, &got, &err), IBID_OK);
	assert_int_equal(got.kind, CLAIM_FOUND);
	assert_null(got.tx);
	store->ops->rollback(&tx);
	store_close(store);
	arena_release(&arena);
}

static void wal_is_moved_into_the_file_and_gone_after_closing(void **state)
{
	struct ibid_err err;
	(void)state;
	struct store *store = ready();
	for (unsigned n = 1; n <= 60; n++) {
		char key[16];
		snprintf(key, sizeof key, "k-%u", n);
		struct tx *tx = claim_free(store, key, n);
		assert_int_equal(complete(&tx, key, n, 800000, &err), IBID_OK);
		await_moves(store);
	}
	/* 48 MB went through it. */
	assert_in_range(file_size("-wal"), 1, 24 << 20);
	store_close(store);
	assert_int_equal(file_size("-wal"), -1);
	assert_int_equal(number("select count(*) from ibid_command"), 60);
}

static void unprepared_file_says_that_it_has_no_schema(void **state)
{
	struct ibid_err err;
	struct arena arena = {0};
	struct claim got;
	(void)state;
	struct store *store = fresh();
	assert_int_equal(claim(store, &arena, "k-1", 1, &got, &err), IBID_SCHEMA);
	assert_non_null(strstr(err.text, "ibid init"));
	store_close(store);
	arena_release(&arena);
}

/* ---- Lanes ---------------------------------------------------------------------------------- */

static void emit_for(struct store *store, unsigned n, const char *aggregate_id)
{
	struct arena arena = {0};
	struct outcome outcome;
	char text[200];
	snprintf(text, sizeof text,
	         "select ibid_emit('payment', '%s', 'PaymentCreated', '{}');\nselect 200 as status;",
	         aggregate_id);
	assert_int_equal(run_text(store, n, text, &outcome, &arena), IBID_OK);
	arena_release(&arena);
}

static void aggregate_keeps_the_lane_of_its_first_event(void **state) /* I5 */
{
	enum { AGGREGATES = 64 };
	char name[16], text[160];
	unsigned n = 0;
	(void)state;
	struct store *store = ready();
	for (unsigned i = 0; i < AGGREGATES; i++) {
		snprintf(name, sizeof name, "new-%u", i);
		snprintf(text, sizeof text,
		         "insert into ibid_aggregate (tenant, type, id, version) "
		         "values ('acme', 'payment', 'old-%u', 7)",
		         i);
		assert_true(exec(text)); /* as schema 1 has written it */
		emit_for(store, ++n, name);
		emit_for(store, ++n, name);
		snprintf(name, sizeof name, "old-%u", i);
		emit_for(store, ++n, name);
	}
	store_close(store);
	assert_int_equal(number("select count(*) from ibid_event where aggregateid glob 'old-*'\n"
	                        "and lane = 0"),
	                 AGGREGATES);
	assert_int_equal(number("select count(*) from ibid_event as e join ibid_aggregate as a\n"
	                        "on a.tenant = e.tenant and a.type = e.aggregatetype\n"
	                        "and a.id = e.aggregateid and a.lane = e.lane"),
	                 AGGREGATES * 3);
	/* Each lane has about a quarter. */
	assert_int_equal(number("select count(*) from (select lane from ibid_aggregate\n"
	                        "where id glob 'new-*' group by lane having count(*) > 64 / 8)"),
	                 OUTBOX_LANES);
}

/* Events of one aggregate, from the oldest on, and the lane they are in. */
static struct lane_batch send_events(struct store *store, struct arena *arena, unsigned count,
                                     struct lane_lease *ret)
{
	struct lane_wish wish = {"kafka", "a", INT64_C(3600000000)};
	struct lane_lease *leases = NULL;
	struct lane_batch batch = {.count = 0};
	struct ibid_err err;
	size_t leased, share;
	for (unsigned n = 1; n <= count; n++) {
		struct tx *tx = claim_free(store, "unused", n);
		struct outcome outcome;
		struct event_row event = {.tenant = "acme",
		                          .command_id = make_id(n),
		                          .ordinal = 1,
		                          .aggregate_type = "payment",
		                          .aggregate_id = "p",
		                          .type = "PaymentCreated",
		                          .payload = "{}",
		                          .topic = "payments",
		                          .at_us = n};
		assert_int_equal(store->ops->put_event(tx, &event, &err), IBID_OK);
		assert_int_equal(store->ops->commit(&tx, arena, &outcome, &err), IBID_OK);
	}
	assert_int_equal(store->ops->lease_lanes(store, arena, &wish, &leases, &leased, &share, &err),
	                 IBID_OK);
	for (size_t i = 0; i < leased && !batch.count; i++) {
		*ret = leases[i];
		assert_int_equal(store->ops->read_lane(store, arena, ret, "", 100, false, &batch, &err),
		                 IBID_OK);
	}
	assert_int_equal(batch.count, count);
	return batch;
}

static enum ibid_code count_line(void *user, const struct archive_line *line, struct ibid_err *err)
{
	(void)err;
	assert_true(line->text[0] == '{' && strlen(line->text) == line->size);
	++*(int64_t *)user;
	return IBID_OK;
}

static void retention_leaves_what_is_held_and_gives_no_number_again(void **state) /* I8 */
{
	struct arena arena = {0};
	struct lane_lease lease;
	struct ibid_err err;
	(void)state;
	struct store *store = ready();
	struct lane_batch batch = send_events(store, &arena, 5, &lease);
	struct hold_row hold = {.tenant = "acme",
	                        .event_id = batch.events[0].event.id,
	                        .aggregate_type = "payment",
	                        .aggregate_id = "p",
	                        .version = 1,
	                        .state = HOLD_PARKED,
	                        .since_us = 1};
	struct delivery_row deliveries[4];
	for (size_t i = 0; i < 4; i++)
		deliveries[i] = (struct delivery_row){.tenant = "acme",
		                                      .event_id = batch.events[i + 1].event.id,
		                                      .place = "payments",
		                                      .at_us = 9};
	struct lane_settlement settlement = {.lease = &lease,
	                                     .cursor = batch.cursor,
	                                     .deliveries = deliveries,
	                                     .delivery_count = 4,
	                                     .holds = &hold,
	                                     .hold_count = 1};
	assert_int_equal(store->ops->settle_lane(store, &settlement, &err), IBID_OK);
	struct archive_span span;
	struct archive_seal seal, again;
	int64_t lines = 0;
	assert_int_equal(store->ops->next_span(store, &arena, 999, 1000, NULL, &span, &err), IBID_OK);
	assert_int_equal(span.events, 3);
	assert_int_equal(span.undone_count, 1);
	assert_string_equal(span.undone[0].state, "PARKED");
	assert_int_equal(store->ops->read_span(store, &span, count_line, &lines, &seal, &err), IBID_OK);
	assert_int_equal(lines, 3);
	/* What has changed since it was read is not dropped. */
	assert_true(exec("insert into ibid_delivery (tenant, event_id, destination, token, at_us, "
	                 "place) select tenant, id, 'late', 9, 9, 'p' from ibid_event where seq = 3"));
	assert_int_equal(store->ops->drop_span(store, &span, &seal, NULL, &err), IBID_RETRY);
	assert_int_equal(number("select count(*) from ibid_event"), 5);
	assert_int_equal(store->ops->read_span(store, &span, count_line, &lines, &again, &err),
	                 IBID_OK);
	assert_int_equal(store->ops->drop_span(store, &span, &again, NULL, &err), IBID_OK);
	assert_int_equal(store->ops->next_span(store, &arena, 999, 1000, &span, &span, &err), IBID_OK);
	assert_string_equal(span.part, "");
	assert_int_equal(number("select count(*) from ibid_event where seq in (1, 5)"), 2);
	assert_int_equal(number("select count(*) from ibid_event"), 2);
	assert_int_equal(number("select count(*) from ibid_delivery"), 1); /* of the newest */
	emit_for(store, 6, "q");
	assert_int_equal(number("select max(seq) from ibid_event"), 6);
	store_close(store);
	arena_release(&arena);
}

static void lane_is_read_beside_a_writer_and_nothing_stays_open(void **state)
{
	struct arena arena = {0};
	struct lane_lease lease;
	struct lane_batch batch;
	struct ibid_err err;
	(void)state;
	struct store *store = ready();
	send_events(store, &arena, 5, &lease);
	sqlite3 *db = open_raw(); /* another process */
	assert_int_equal(sqlite3_exec(db, "begin immediate", NULL, NULL, NULL), SQLITE_OK);
	for (size_t limit = 1; limit < 5; limit++) /* before its end */
		assert_int_equal(
		    store->ops->read_lane(store, &arena, &lease, "", limit, true, &batch, &err), IBID_OK);
	struct lane_settlement settlement = {.lease = &lease, .cursor = batch.cursor};
	assert_int_equal(store->ops->settle_lane(store, &settlement, &err), IBID_BUSY);
	assert_int_equal(sqlite3_exec(db, "rollback", NULL, NULL, NULL), SQLITE_OK);
	sqlite3_close(db);
	assert_int_equal(store->ops->settle_lane(store, &settlement, &err), IBID_OK);
	/* No reader holds the WAL where it is. */
	assert_int_equal(number("pragma wal_checkpoint(truncate)"), 0);
	store_close(store);
	arena_release(&arena);
}

static void cursor_of_another_store_is_refused(void **state)
{
	static const char *const wrong[] = {"9:9:", "-1", "0", "7 ", "99999999999999999999", "x"};
	struct arena arena = {0};
	struct lane_lease lease;
	struct ibid_err err;
	(void)state;
	struct store *store = ready();
	struct lane_batch batch = send_events(store, &arena, 1, &lease);
	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
		assert_int_equal(
		    store->ops->read_lane(store, &arena, &lease, wrong[i], 9, false, &batch, &err),
		    IBID_INVALID);
	store_close(store);
	arena_release(&arena);
}

/* ---- Faults --------------------------------------------------------------------------------- */

static bool hear(void *user, const struct hook_point *point)
{
	static const char *const marks[] = {[HOOK_BEFORE] = "(", [HOOK_AFTER] = ") "};
	char *text = user;
	size_t used = strlen(text);
	snprintf(text + used, 1024 - used, "%s%s", point->kind == HOOK_BEFORE ? point->statement : "",
	         marks[point->kind]);
	return false;
}

static void hook_is_told_every_statement(void **state)
{
	char heard[1024] = "";
	const struct hook hook = {hear, heard};
	struct ibid_err err;
	(void)state;
	struct store *store = ready();
	store->hook = &hook;
	struct tx *tx = claim_free(store, "k-1", 1);
	assert_int_equal(complete(&tx, "k-1", 1, 10, &err), IBID_OK);
	tx = claim_free(store, "k-2", 2);
	store->ops->rollback(&tx);
	store_close(store);
	assert_string_equal(heard, "command_get() begin() command_get() audit_put() command_put() "
	                           "answer_put() commit() command_get() begin() command_get() "
	                           "rollback() ");
}

/* One command on a store that fails at its n-th statement; what it said. */
static enum ibid_code faulty_command(struct store *store, const char *key, unsigned n)
{
	struct arena arena = {0};
	struct claim got = {.kind = CLAIM_BUSY};
	struct ibid_err err;
	enum ibid_code code = claim(store, &arena, key, n, &got, &err);
	if (!code && got.kind == CLAIM_FREE)
		code = complete(&got.tx, key, n, 10, &err);
	arena_release(&arena);
	return code;
}

/* command_get, begin, command_get, audit_put, command_put, answer_put, commit */
enum { COMMIT = 7 };

/* What a command says when its n-th statement fails, and what is left of it. */
static void assert_fault(enum fault_kind kind, unsigned n, enum ibid_code expected, int64_t rows)
{
	struct fault fault = {.kind = kind, .at = n};
	struct store *store = fault_set(&fault, ready());
	assert_int_equal(faulty_command(store, "k-1", 1), expected);
	assert_true(fault.fired);
	assert_int_equal(number("select count(*) from ibid_command"), rows);
	assert_int_equal(faulty_command(store, "k-1", 1), IBID_OK); /* it acts once */
	assert_int_equal(number("select count(*) from ibid_command"), 1);
	store_close(store);
}

static void a_statement_that_fails_leaves_nothing_and_a_commit_is_unknown(void **state) /* I7 */
{
	(void)state;
	fault_path("command");
	for (unsigned n = 1; n < COMMIT; n++) {
		assert_fault(FAULT_FAIL, n, IBID_IO, 0);
		assert_fault(FAULT_LOSE, n, IBID_IO, 0);
	}
	assert_fault(FAULT_FAIL, COMMIT, IBID_UNKNOWN, 0);
	assert_fault(FAULT_LOSE, COMMIT, IBID_UNKNOWN, 1);
}

static void fault_beyond_the_last_statement_does_not_fire(void **state)
{
	(void)state;
	struct fault fault = {.kind = FAULT_FAIL, .at = COMMIT + 1};
	struct store *store = fault_set(&fault, ready());
	assert_int_equal(faulty_command(store, "k-1", 1), IBID_OK);
	assert_false(fault.fired);
	assert_int_equal(fault.points, COMMIT);
	store_close(store);
}

static unsigned kill_at;

static void killed_at_a_statement(void)
{
	struct fault fault = {.kind = FAULT_KILL, .at = kill_at};
	struct store *store = fault_set(&fault, again());
	faulty_command(store, "k-1", 1);
	store_close(store);
}

static void kill_at_each_statement_leaves_all_or_nothing(void **state) /* B02, I1 */
{
	(void)state;
	fault_path("command");
	for (kill_at = 1; kill_at <= 2 * COMMIT; kill_at++) { /* before and after each */
		store_close(ready());
		int status = in_child(killed_at_a_statement);
		assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
		int64_t expected = kill_at == 2 * COMMIT;
		assert_int_equal(number("select count(*) from ibid_command"), expected);
		assert_int_equal(number("select count(*) from ibid_audit"), expected);
		struct store *store = again();
		assert_int_equal(faulty_command(store, "k-1", 1), IBID_OK);
		store_close(store);
		assert_int_equal(number("select count(*) from ibid_command"), 1);
	}
}

static void passwords_are_covered_in_messages(void **state)
{
	static const char *const urls[][2] = {
	    {"sqlite:pay:me@home.db", "sqlite:pay:me@home.db"},
	    {"postgres://ibid:s3cret@db/ledger", "postgres://ibid:***@db/ledger"},
	    {"postgresql://ibid:a@b/c:d@db:5432/ledger?sslmode=require",
	     "postgresql://ibid:***@db:5432/ledger?sslmode=require"},
	    {"postgres://ibid@db:5432/ledger", "postgres://ibid@db:5432/ledger"},
	    {"postgres://db:5432/ledger?user=x&password=s3cret&sslpassword=s&a=b",
	     "postgres://db:5432/ledger?user=x&password=***&sslpassword=***&a=b"},
	    {"postgres:///ledger", "postgres:///ledger"},
	    {"mysql://root:s3cret@db", "***"},
	};
	struct arena arena = {0};
	(void)state;
	for (size_t i = 0; i < sizeof urls / sizeof urls[0]; i++)
		assert_string_equal(store_url_redacted(&arena, urls[i][0]), urls[i][1]);
	arena_release(&arena);
}

static void names_of_states_are_read_back(void **state)
{
	enum command_state got;
	(void)state;
	for (int i = 0; i < COMMAND_STATE_COUNT; i++) {
		assert_true(command_state_read(command_state_name((enum command_state)i), &got));
		assert_int_equal(got, i);
	}
	assert_string_equal(command_state_name(COMMAND_IN_PROGRESS), "IN_PROGRESS");
	assert_false(command_state_read("completed", &got));
}

#define BAD_DISK(name) cmocka_unit_test_teardown(name, good_disk)

/* ---- Doctor --------------------------------------------------------------------------------- */

struct doctored {
	unsigned refused;
	char refusal[256], warnings[1024];
};

static void note_finding(void *user, enum finding_level level, const char *what, const char *advice)
{
	struct doctored *found = user;
	assert_true(level == FINDING_OK || *advice);
	found->refused += level == FINDING_REFUSE;
	if (level == FINDING_REFUSE)
		snprintf(found->refusal, sizeof found->refusal, "%s", what);
	if (level == FINDING_WARN)
		strncat(found->warnings, what, sizeof found->warnings - strlen(found->warnings) - 1);
}

static struct doctored examine(struct store *store)
{
	struct doctored found = {0};
	struct ibid_err err;
	if (store->ops->doctor(store, note_finding, &found, &err))
		fail_msg("%s", err.text);
	return found;
}

static void raw(const char *text)
{
	sqlite3 *db = open_raw();
	assert_int_equal(sqlite3_exec(db, text, NULL, NULL, NULL), SQLITE_OK);
	sqlite3_close(db);
}

static void doctor_misses_every_index_and_trigger_of_the_schema(void **state)
{
	char drop[4096] = "", line[160];
	sqlite3_stmt *stmt;
	unsigned objects = 0;
	(void)state;
	store_close(ready());
	sqlite3 *db = open_raw();
	assert_int_equal(sqlite3_prepare_v2(db,
	                                    "select type, name from sqlite_schema where name like\n"
	                                    "'ibid\\_%' escape '\\' and sql is not null\n"
	                                    "and type in ('index', 'trigger')",
	                                    -1, &stmt, NULL),
	                 SQLITE_OK);
	for (; sqlite3_step(stmt) == SQLITE_ROW; objects++) {
		snprintf(line, sizeof line, "drop %s %s;", sqlite3_column_text(stmt, 0),
		         sqlite3_column_text(stmt, 1));
		strncat(drop, line, sizeof drop - strlen(drop) - 1);
	}
	sqlite3_finalize(stmt);
	sqlite3_close(db);
	struct store *store = again();
	assert_int_equal(examine(store).refused, 0);
	store_close(store);
	raw(drop);
	store = again();
	struct doctored found = examine(store);
	assert_int_equal(found.refused, objects);
	assert_non_null(strstr(found.refusal, "is missing"));
	store_close(store);
}

static void doctor_warns_of_a_long_wal(void **state)
{
	char wal[160];
	(void)state;
	struct store *store = ready();
	snprintf(wal, sizeof wal, "%s-wal", path);
	assert_null(strstr(examine(store).warnings, "WAL"));
	/* Zeros behind the last frame are no frames. */
	assert_int_equal(truncate(wal, 66 << 20), 0);
	assert_non_null(strstr(examine(store).warnings, "WAL file 66 MiB"));
	store_close(store);
}

static void doctor_warns_of_a_library_that_can_damage_the_file(void **state)
{
	(void)state;
	struct store *store = ready();
	bool old = sqlite3_libversion_number() < 3051003;
	assert_int_equal(strstr(examine(store).warnings, "SQLite library") != NULL, old);
	store_close(store);
}

/* Nobody can mount one here: the numbers are those of statfs(2). */
static void network_file_systems_are_known(void **state)
{
	(void)state;
	assert_string_equal(lite_network_name(0x6969), "NFS");
	assert_string_equal(lite_network_name(0xff534d42), "CIFS");
	assert_string_equal(lite_network_name(0xffffffffff534d42), "CIFS"); /* a long with its sign */
	assert_string_equal(lite_network_name(0xfe534d42), "SMB");
	assert_null(lite_network_name(0xef53));     /* ext4 */
	assert_null(lite_network_name(0x58465342)); /* XFS */
	assert_null(lite_network_name(0x01021994)); /* tmpfs */
}

int main(int argc, char **argv)
{
	static const struct CMUnitTest tests[] = {
	    cmocka_unit_test(url_of_another_kind_is_invalid),
	    cmocka_unit_test(missing_file_is_not_found_and_not_created),
	    cmocka_unit_test(missing_directory_is_not_found),
	    cmocka_unit_test(directory_is_not_a_database),
	    cmocka_unit_test(file_that_is_not_a_database_is_refused_and_left_alone),
	    cmocka_unit_test(foreign_database_keeps_its_journal_mode_until_it_is_ours),
	    cmocka_unit_test(names_that_mean_something_to_sqlite_are_plain_files),
	    cmocka_unit_test(missing_permission_is_denied_and_says_which),
	    cmocka_unit_test(every_statement_prepares_and_every_file_is_listed),
	    cmocka_unit_test(commit_does_not_wait_for_the_wal_to_be_moved),
	    cmocka_unit_test(wal_begins_anew_under_writers_that_never_pause),
	    BAD_DISK(wal_is_kept_when_the_file_can_not_be_synced),
	    BAD_DISK(wal_is_kept_when_what_was_moved_can_not_be_synced),
	    BAD_DISK(commit_whose_sync_fails_is_unknown_and_resolves_to_one_outcome),
	    BAD_DISK(what_resolve_said_stays_true_after_a_power_loss),
	    BAD_DISK(resolve_on_a_disk_that_still_fails_says_so),
	    BAD_DISK(full_disk_while_a_command_runs_is_definite),
	    BAD_DISK(full_disk_at_commit_is_definite),
	    BAD_DISK(command_is_not_missed_before_its_commit_is_settled),
	    cmocka_unit_test(decimals_calculate_exactly),
	    cmocka_unit_test(wrong_decimals_fail_with_a_reason),
	    cmocka_unit_test(emitted_payload_is_kept_in_canonical_form),
	    cmocka_unit_test(column_that_would_round_a_decimal_is_refused),
	    cmocka_unit_test(scripts_can_not_end_the_transaction_or_touch_the_ledger),
	    cmocka_unit_test(indexes_that_sqlite_describes_by_columns_are_named),
	    cmocka_unit_test(lent_handle_can_not_end_the_transaction),
	    cmocka_unit_test(status_that_is_no_small_integer_fails),
	    cmocka_unit_test(temporary_objects_are_refused),
	    cmocka_unit_test(evidence_can_not_be_replaced),
	    cmocka_unit_test(lent_handle_can_not_write_the_ledger),
	    cmocka_unit_test(aggregate_keeps_the_lane_of_its_first_event),
	    cmocka_unit_test(retention_leaves_what_is_held_and_gives_no_number_again),
	    cmocka_unit_test(lane_is_read_beside_a_writer_and_nothing_stays_open),
	    cmocka_unit_test(cursor_of_another_store_is_refused),
	    cmocka_unit_test(texts_that_are_not_utf8_are_refused),
	    cmocka_unit_test(emitted_texts_have_limits),
	    cmocka_unit_test(callback_that_loses_the_transaction_commits_nothing),
	    cmocka_unit_test(schema_file_says_where_it_is_wrong),
	    cmocka_unit_test(processes_migrate_at_once_and_all_succeed),
	    cmocka_unit_test(process_that_dies_inside_a_transaction_leaves_the_identity_free),
	    cmocka_unit_test(another_process_that_holds_the_file_is_waited_for_and_then_busy),
	    cmocka_unit_test(completed_command_is_answered_while_the_writer_is_held),
	    cmocka_unit_test(doctor_misses_every_index_and_trigger_of_the_schema),
	    cmocka_unit_test(doctor_warns_of_a_long_wal),
	    cmocka_unit_test(doctor_warns_of_a_library_that_can_damage_the_file),
	    cmocka_unit_test(network_file_systems_are_known),
	    cmocka_unit_test(wal_is_moved_into_the_file_and_gone_after_closing),
	    cmocka_unit_test(unprepared_file_says_that_it_has_no_schema),
	    cmocka_unit_test(hook_is_told_every_statement),
	    cmocka_unit_test(a_statement_that_fails_leaves_nothing_and_a_commit_is_unknown),
	    cmocka_unit_test(fault_beyond_the_last_statement_does_not_fire),
	    cmocka_unit_test(kill_at_each_statement_leaves_all_or_nothing),
	    cmocka_unit_test(passwords_are_covered_in_messages),
	    cmocka_unit_test(names_of_states_are_read_back),
	};
	char command[128];
	if (argc != 2) {
		fprintf(stderr, "usage: %s DIRECTORY-OF-THE-SQL-FILES\n", argv[0]);
		return 2;
	}
	source_directory = argv[1];
	scratch_dir("ibid-store", directory, sizeof directory);
	int failed = suite_run("store-sqlite", &sqlite);
	disk_wrap();
	failed += cmocka_run_group_tests_name("sqlite", tests, NULL, NULL);
	snprintf(command, sizeof command, "rm -rf %s", directory);
	return system(command) != 0 || failed;
}
