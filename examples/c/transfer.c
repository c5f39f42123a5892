/* SPDX-License-Identifier: Apache-2.0 */
/* transfer.c STORE CONTRACTS -- move money once, however often it is asked for. */
#include <ibid.h>
#include <sqlite3.h>
#include <stdio.h>
#include <string.h>

static int fail(const struct ibid_err *err)
{
	fprintf(stderr, "transfer: %s (%s)\n", err->text, ibid_code_name(err->code));
	return 1;
}

/* Add `cents` to an account; false when there is no such account or not enough money on it. */
static bool move(sqlite3 *db, const char *account, int64_t cents)
{
	sqlite3_stmt *statement = NULL;
	bool moved = false;
	if (sqlite3_prepare_v2(
	        db, "update account set cents = cents + ?2 where id = ?1 and cents + ?2 >= 0", -1,
	        &statement, NULL) == SQLITE_OK) {
		sqlite3_bind_text(statement, 1, account, -1, SQLITE_TRANSIENT);
		sqlite3_bind_int64(statement, 2, cents);
		moved = sqlite3_step(statement) == SQLITE_DONE && sqlite3_changes(db) == 1;
	}
	sqlite3_finalize(statement);
	return moved;
}

static enum ibid_code transfer(struct ibid_work *work, void *user)
{
	(void)user;
	const char *from = ibid_field_text(work, "/from"), *to = ibid_field_text(work, "/to");
	sqlite3 *db = ibid_work_sqlite(work);
	int64_t cents;
	if (!db || !ibid_field_int64(work, "/cents", &cents))
		return ibid_fail(work, "this example runs on SQLite");
	if (strcmp(from, to) == 0)
		return ibid_reject(work, "SAME_ACCOUNT", 422, "from and to must differ");
	if (!move(db, from, -cents) || !move(db, to, cents))
		return ibid_reject(work, "NOT_POSSIBLE", 422, "no such account, or not enough money");
	ibid_emit(work, IBID_EVENT(.aggregate_type = "account", .aggregate_id = from,
	                           .type = "Transferred", .payload = ibid_work_payload(work)));
	return ibid_answer(work, 201, "{\"done\":true}");
}

int main(int argc, char **argv)
{
	struct ibid *ibid = NULL;
	struct ibid_err err = {0};
	if (argc != 3) {
		fprintf(stderr, "usage: transfer sqlite:FILE CONTRACTS\n");
		return 2;
	}
	if (ibid_init(IBID_OPTIONS(.store = argv[1], .contracts = argv[2]), &err) ||
	    ibid_open(IBID_OPTIONS(.store = argv[1], .contracts = argv[2]), &ibid, &err))
		return fail(&err);
	if (ibid_handle(ibid, "transfer", transfer, NULL, &err))
		return fail(&err);
	for (int i = 0; i < 2; i++) { /* the second time is a retry */
		struct ibid_result *result = NULL;
		if (ibid_submit(ibid,
		                IBID_COMMAND(.tenant = "acme", .client = "example", .operation = "transfer",
		                             .key = "k-1",
		                             .payload = "{\"from\":\"A\",\"to\":\"B\",\"cents\":1250}"),
		                &result, &err))
			return fail(&err);
		printf("%s%s %d %s\n", ibid_result_replayed(result) ? "replayed " : "",
		       ibid_decision_name(ibid_result_decision(result)), ibid_result_status(result),
		       ibid_result_body(result));
		ibid_result_free(result);
	}
	ibid_close(ibid);
	return 0;
}
