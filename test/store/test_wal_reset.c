/* SPDX-License-Identifier: Apache-2.0 */
/* test_wal_reset.c -- processes that share a file, each with a thread that moves the WAL: a
 * checkpoint that begins where another process has moved everything, and a third one writes.
 *
 * `test_store_wal_reset beside OTHER` has half of the processes run OTHER: this program with
 * another version of SQLite. `test_store_wal_reset ROUNDS [OTHER]` runs that by chance, so many
 * times for a second each, and tells how many files were damaged. */
#include "store/sqlite/lite.h"
#include "support/disk.h"
#include "support/scratch.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

enum { PAGE = 4096, COMMIT_PAGES = 100, DUE_COMMITS = 45, ROUND_US = 1000000 };

static char directory[64], path[128];
static unsigned files;

#define MUST(what)                                                                                 \
	do {                                                                                           \
		if (!(what)) {                                                                             \
			fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #what);                     \
			_exit(1);                                                                              \
		}                                                                                          \
	} while (0)

static struct store *open_store(unsigned busy_ms)
{
	char url[160];
	struct store *store = NULL;
	struct ibid_err err;
	struct store_options options = {
	    .url = url, .create = true, .env = env_system(), .busy_ms = busy_ms};
	snprintf(url, sizeof url, "sqlite:%s", path);
	MUST(!store_open(&options, &store, &err));
	return store;
}

static void prepare(void)
{
	struct ibid_err err;
	int from, to;
	snprintf(path, sizeof path, "%s/%u.db", directory, ++files);
	struct store *store = open_store(5000);
	MUST(!store->ops->migrate(store, &from, &to, &err));
	store_close(store);
}

/* A commit of many pages, under a name that nobody else has. */
static enum ibid_code commit(struct store *store, const char *who, unsigned n, unsigned pages)
{
	static char text[COMMIT_PAGES * PAGE + 1];
	char name[32];
	struct ibid_err err;
	memset(text, 'x', sizeof text - 1);
	text[pages * PAGE] = 0;
	snprintf(name, sizeof name, "%s-%u", who, n);
	const struct contract_row row = {
	    .kind = "command", .name = name, .version = 1, .text = text, .at_us = 1};
	enum ibid_code code = store_put_contract(store, &row, &err);
	text[pages * PAGE] = 'x';
	if (code && code != IBID_BUSY)
		fprintf(stderr, "%s: %s\n", name, err.text);
	return code;
}

/* ---- What is there in the end --------------------------------------------------------------- */

static int first_text(void *user, int count, char **texts, char **names)
{
	(void)count, (void)names;
	snprintf(user, 64, "%s", texts[0]);
	return 1;
}

static void ask(const char *sql, char ret[64])
{
	sqlite3 *db = NULL;
	snprintf(ret, 64, "nothing");
	MUST(sqlite3_open(path, &db) == SQLITE_OK);
	sqlite3_exec(db, sql, first_text, ret, NULL);
	sqlite3_close(db);
}

static bool is_whole(unsigned commits)
{
	char check[64], count[64], expected[64];
	snprintf(expected, sizeof expected, "%u", commits);
	ask("pragma integrity_check", check);
	ask("select count(*) from ibid_contract", count);
	return strcmp(check, "ok") == 0 && strcmp(count, expected) == 0;
}

/* ---- One after the other, by the worst order ------------------------------------------------- */

static int says[2], goes[2];

static void say(void)
{
	MUST(write(says[1], "!", 1) == 1);
}

static void say_and_wait(void)
{
	char byte;
	say();
	MUST(read(goes[0], &byte, 1) == 1);
}

static void hear(void)
{
	char byte;
	assert_int_equal(read(says[0], &byte, 1), 1);
}

static void let_go(void)
{
	assert_int_equal(write(goes[1], "!", 1), 1);
}

static void stand_still_once(void)
{
	disk.checkpoint_begins = NULL;
	say_and_wait();
}

/* Its own commits say that a checkpoint is due; it begins only when the other process lets it. */
static void run_late(void)
{
	struct store *store = open_store(5000);
	struct lite_store *lite = (struct lite_store *)store;
	pthread_mutex_lock(&lite->checkpoint_lock);
	for (unsigned n = 0; n < DUE_COMMITS; n++)
		MUST(commit(store, "late", n, COMMIT_PAGES) == IBID_OK);
	disk.checkpoint_begins = stand_still_once;
	say_and_wait();
	pthread_mutex_unlock(&lite->checkpoint_lock);
	lite_mover_release(&lite->mover); /* when it is done */
	lite_mover_init(&lite->mover);
	lite->mover.runs = lite->mover.ends = false;
	MUST(!disk.checkpoint_begins);
	say_and_wait();
	store_close(store);
	_exit(0);
}

static void checkpoint_that_begins_late_beside_another_process_harms_nothing(void **state)
{
	unsigned own = 0;
	int status;
	struct ibid_err err;
	(void)state;
	prepare();
	assert_int_equal(pipe(says), 0);
	assert_int_equal(pipe(goes), 0);
	pid_t child = fork();
	if (child == 0) {
		close(goes[1]); /* so that it ends when this process does */
		run_late();
	}
	close(says[1]);
	close(goes[0]);
	hear();
	struct store *store = open_store(300);
	assert_int_equal(commit(store, "own", own++, COMMIT_PAGES), IBID_OK);
	assert_int_equal(lite_checkpoint((struct lite_store *)store, &err), IBID_OK);
	let_go();
	hear(); /* it has read where the WAL ends: all of that was moved */
	for (bool open = true; open && own < 20;) {
		open = commit(store, "own", own, 1) == IBID_OK; /* the first begins the WAL anew */
		own += open;
	}
	let_go();
	hear(); /* its checkpoint is over */
	for (unsigned last = own + 20; own < last; own++)
		assert_int_equal(commit(store, "own", own, 1), IBID_OK);
	let_go();
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	store_close(store);
	assert_true(is_whole(DUE_COMMITS + own));
}

/* ---- By chance ------------------------------------------------------------------------------ */

enum { WORKERS = 4, RESETS_MIN = 20, RESTART_MS = 50, ROUND_MOST = 15 };

/* Also shared with programs that a worker runs. */
struct shared {
	_Atomic bool ends, calm;
	_Atomic unsigned commits[WORKERS]; /* acknowledged: of each worker the first so many */
};

static const char *other; /* NULL: there is none */

static void sleep_a_little(void)
{
	usleep((useconds_t)(rand() % 3000));
}

static struct shared *map_shared(int fd)
{
	void *shared = mmap(NULL, sizeof(struct shared), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	MUST(shared != MAP_FAILED);
	return shared;
}

/* Beside commits without a pause the danger is greatest, and a checkpoint seldom comes to an end;
 * between commits with pauses RESTART has the next one begin the WAL anew. */
static void move_wal(sqlite3 *db, bool calm)
{
	if (rand() % 3 == 0)
		sqlite3_wal_checkpoint_v2(
		    db, NULL, calm ? SQLITE_CHECKPOINT_RESTART : SQLITE_CHECKPOINT_PASSIVE, NULL, NULL);
	if (calm)
		sleep_a_little();
}

/* A commit that was not acknowledged is made again under the same name. */
static void work(struct shared *shared, int number)
{
	char who[16];
	srand((unsigned)getpid());
	snprintf(who, sizeof who, "%d", number);
	struct store *store = open_store(5000);
	sqlite3 *checkpointer = ((struct lite_store *)store)->checkpointer->db;
	sqlite3_busy_timeout(checkpointer, RESTART_MS);
	disk.checkpoint_begins = sleep_a_little;
	while (!shared->ends) {
		enum ibid_code code = commit(store, who, shared->commits[number], 1 + (unsigned)rand() % 4);
		MUST(code == IBID_OK || code == IBID_BUSY);
		shared->commits[number] += code == IBID_OK;
		move_wal(checkpointer, shared->calm);
	}
	store_close(store);
	_exit(0);
}

static pid_t start_worker(int number, int fd)
{
	pid_t pid = fork();
	char number_text[16], fd_text[16];
	if (pid)
		return pid;
	snprintf(number_text, sizeof number_text, "%d", number);
	snprintf(fd_text, sizeof fd_text, "%d", fd);
	if (other && number % 2 == 1)
		execl(other, other, "work", path, number_text, fd_text, (char *)NULL);
	else
		work(map_shared(fd), number);
	_exit(1);
}

static int run_worker(char **words)
{
	snprintf(path, sizeof path, "%s", words[0]);
	work(map_shared(atoi(words[2])), atoi(words[1]));
	return 1;
}

/* Some of the processes are stopped, wherever they are. */
static void disturb(struct shared *shared, const pid_t workers[WORKERS])
{
	for (unsigned us = 0; us < ROUND_US; us += 20000) {
		shared->calm = us >= ROUND_US * 3 / 4;
		pid_t worker = workers[rand() % WORKERS];
		kill(worker, SIGSTOP);
		usleep((useconds_t)(rand() % 20000));
		kill(worker, SIGCONT);
		usleep(5000);
	}
}

/* How often the WAL began anew: its header counts that. */
static unsigned resets(void)
{
	char name[160];
	unsigned char header[16] = {0};
	snprintf(name, sizeof name, "%s-wal", path);
	FILE *file = fopen(name, "rb");
	MUST(!file || fread(header, sizeof header, 1, file) <= 1);
	if (file)
		fclose(file);
	return (unsigned)header[12] << 24 | (unsigned)header[13] << 16 | (unsigned)header[14] << 8 |
	       header[15];
}

/* Every acknowledged commit is there, and nothing else. */
static bool has_all(const struct shared *shared)
{
	char sql[160], expected[64], found[64];
	unsigned all = 0;
	for (int i = 0; i < WORKERS; i++) {
		unsigned commits = shared->commits[i], last = commits - 1;
		snprintf(sql, sizeof sql,
		         "select count(*) || ' ' || max(cast(substr(name, 3) as integer)) "
		         "from ibid_contract where substr(name, 1, 2) = '%d-'",
		         i);
		snprintf(expected, sizeof expected, "%u %u", commits, last);
		ask(sql, found);
		if (!commits || strcmp(found, expected) != 0)
			return false;
		all += commits;
	}
	return is_whole(all);
}

static bool run_round(void)
{
	int fd = memfd_create("ibid-reset", 0);
	pid_t workers[WORKERS];
	bool good = true;
	MUST(fd >= 0 && ftruncate(fd, sizeof(struct shared)) == 0);
	struct shared *shared = map_shared(fd);
	prepare();
	for (int i = 0; i < WORKERS; i++)
		workers[i] = start_worker(i, fd);
	unsigned begun = 0;
	for (int n = 0; begun < RESETS_MIN && n < ROUND_MOST; n++) {
		disturb(shared, workers);
		begun = resets();
	}
	shared->ends = true;
	for (int i = 0; i < WORKERS; i++) {
		int status = 1;
		waitpid(workers[i], &status, 0);
		good &= status == 0;
	}
	good &= has_all(shared);
	printf("%u, %u, %u and %u commits, %u resets\n", shared->commits[0], shared->commits[1],
	       shared->commits[2], shared->commits[3], begun);
	munmap(shared, sizeof *shared);
	close(fd);
	return good && begun >= RESETS_MIN;
}

static void processes_that_reset_the_wal_at_any_moment_lose_no_commit(void **state)
{
	(void)state;
	assert_true(run_round());
	assert_true(run_round());
}

static int run_rounds(unsigned rounds)
{
	unsigned damaged = 0;
	for (unsigned n = 0; n < rounds; n++)
		damaged += !run_round();
	printf("SQLite %s%s%s: %u of %u files damaged\n", sqlite3_libversion(),
	       other ? " beside that of " : "", other ? other : "", damaged, rounds);
	return damaged != 0;
}

static int run_cases(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(checkpoint_that_begins_late_beside_another_process_harms_nothing),
	    cmocka_unit_test(processes_that_reset_the_wal_at_any_moment_lose_no_commit),
	};
	const struct CMUnitTest beside[] = {
	    cmocka_unit_test(processes_that_reset_the_wal_at_any_moment_lose_no_commit),
	};
	const char *given = other;
	other = NULL;
	int failed = cmocka_run_group_tests_name("wal-reset", tests, NULL, NULL);
	other = given;
	return other ? failed + cmocka_run_group_tests_name("wal-reset, two versions of SQLite", beside,
	                                                    NULL, NULL)
	             : failed;
}

int main(int argc, char **argv)
{
	char command[128];
	disk_wrap();
	if (argc == 5 && strcmp(argv[1], "work") == 0)
		return run_worker(argv + 2);
	other = argc > 2 ? argv[2] : NULL;
	scratch_dir("ibid-reset", directory, sizeof directory);
	unsigned rounds = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : 0;
	int failed = rounds ? run_rounds(rounds) : run_cases();
	snprintf(command, sizeof command, "rm -rf %s", directory);
	return system(command) != 0 || failed;
}
