/* SPDX-License-Identifier: Apache-2.0 */
/* tally.c STORE CONTRACTS FILE -- count words, one per line, from several threads.
 *
 * The key of a line is the file's name and the line's number, so the program may be killed and
 * started again, or two may run at once: no line is counted twice and none is left out. */
#include <ibid.h>
#include <libpq-fe.h>
#include <pthread.h>
#include <sqlite3.h>
#include <stdio.h>
#include <string.h>

enum { THREADS = 4, TRIES = 20 };

static const char upsert[] = "insert into tally (word, count) values ($1, 1) "
                             "on conflict (word) do update set count = tally.count + 1";

static enum ibid_code tally(struct ibid_work *work, void *user)
{
	(void)user;
	const char *word = ibid_field_text(work, "/word");
	sqlite3 *db = ibid_work_sqlite(work);
	bool counted = false;
	if (db) {
		sqlite3_stmt *statement = NULL;
		if (sqlite3_prepare_v2(db, upsert, -1, &statement, NULL) == SQLITE_OK) {
			sqlite3_bind_text(statement, 1, word, -1, SQLITE_TRANSIENT);
			counted = sqlite3_step(statement) == SQLITE_DONE;
		}
		sqlite3_finalize(statement);
	} else {
		PGresult *result = PQexecParams(ibid_work_postgres(work), upsert, 1, NULL, &word, NULL,
		                                NULL, 0);
		const char *state = PQresultErrorField(result, PG_DIAG_SQLSTATE);
		bool collided = state && (strcmp(state, "40P01") == 0 || strcmp(state, "40001") == 0);
		counted = PQresultStatus(result) == PGRES_COMMAND_OK;
		PQclear(result);
		if (collided)
			return IBID_RETRY;
	}
	return counted ? ibid_answer(work, 200, NULL)
	               : ibid_fail(work, "the word could not be counted");
}

struct job {
	struct ibid *ibid;
	const char *path;
	int first; /* of the lines this thread takes: first, first + THREADS, ... */
	int executed, replayed, failed;
	pthread_t thread;
};

static bool submit_line(struct job *job, int number, const char *word)
{
	char key[200], payload[400];
	snprintf(key, sizeof key, "%.150s:%d", job->path, number);
	snprintf(payload, sizeof payload, "{\"word\":\"%s\"}", word);
	for (int i = 0; i < TRIES; i++) {
		struct ibid_result *result = NULL;
		struct ibid_err err = {0};
		enum ibid_code code = ibid_submit(job->ibid,
		                                  IBID_COMMAND(.tenant = "acme", .client = "tally",
		                                               .operation = "tally", .key = key,
		                                               .payload = payload),
		                                  &result, &err);
		if (code && err.next == IBID_NEXT_NEVER) {
			fprintf(stderr, "tally: line %d: %s\n", number, err.text);
			return false;
		}
		bool done = !code && ibid_result_decision(result) == IBID_DECISION_EXECUTED;
		if (done)
			*(ibid_result_replayed(result) ? &job->replayed : &job->executed) += 1;
		ibid_result_free(result);
		if (done)
			return true;
	}
	return false;
}

static void *run(void *user)
{
	struct job *job = user;
	char line[200];
	FILE *file = fopen(job->path, "r");
	for (int number = 1; file && fgets(line, sizeof line, file); number++) {
		line[strcspn(line, "\r\n\"\\")] = '\0';
		if (number % THREADS == job->first && *line && !submit_line(job, number, line))
			job->failed++;
	}
	if (file)
		fclose(file);
	else
		job->failed++;
	return NULL;
}

int main(int argc, char **argv)
{
	struct ibid *ibid = NULL;
	struct ibid_err err = {0};
	struct job jobs[THREADS] = {0}, total = {0};
	if (argc != 4) {
		fprintf(stderr, "usage: tally STORE CONTRACTS FILE\n");
		return 2;
	}
	if (ibid_init(IBID_OPTIONS(.store = argv[1], .contracts = argv[2]), &err) ||
	    ibid_open(IBID_OPTIONS(.store = argv[1], .contracts = argv[2]), &ibid, &err) ||
	    ibid_handle(ibid, "tally", tally, NULL, &err)) {
		fprintf(stderr, "tally: %s\n", err.text);
		ibid_close(ibid);
		return 1;
	}
	for (int i = 0; i < THREADS; i++) {
		jobs[i] = (struct job){.ibid = ibid, .path = argv[3], .first = i};
		pthread_create(&jobs[i].thread, NULL, run, &jobs[i]);
	}
	for (int i = 0; i < THREADS; i++) {
		pthread_join(jobs[i].thread, NULL);
		total.executed += jobs[i].executed;
		total.replayed += jobs[i].replayed;
		total.failed += jobs[i].failed;
	}
	printf("%d counted, %d counted before, %d failed\n", total.executed, total.replayed,
	       total.failed);
	ibid_close(ibid);
	return total.failed ? 1 : 0;
}
