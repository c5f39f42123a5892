/* SPDX-License-Identifier: Apache-2.0 */
/* erase.c -- forget on request, a window of ids a transaction.
 *
 * The commands of a step are put into ibid_erasing first: the statements that follow are about
 * them, and the triggers that keep events and audit entries (I3) let them be blanked. What is freed
 * in the file is overwritten, whatever the connection does otherwise. */
#include "store/sqlite/lite.h"

#include <string.h>

/* One step: the commands after `from`, up to `upto`. */
struct step {
	struct lite_conn *conn;
	const struct erasure *erasure;
	struct uuid from, upto;
	struct erasure_count count;
	int64_t left;
};

/* Parameters that a statement takes behind the tenant. */
enum takes { TAKES_TENANT, TAKES_ACTOR, TAKES_WINDOW, TAKES_SELECTION };

static enum ibid_code start(const struct step *step, enum lite_sql sql, enum takes takes,
                            struct lite_run *run, struct ibid_err *err)
{
	const struct erasure *erasure = step->erasure;
	enum ibid_code code = lite_start(step->conn, sql, run, err);
	lite_bind_text(run, erasure->tenant);
	if (takes >= TAKES_WINDOW) {
		lite_bind_uuid(run, &step->from);
		lite_bind_uuid(run, &step->upto);
	}
	if (takes == TAKES_SELECTION) {
		lite_bind_text(run, erasure->resource_type);
		lite_bind_text(run, erasure->resource_id);
	}
	if (takes != TAKES_TENANT)
		lite_bind_text(run, erasure->actor);
	return code;
}

/* `ret` may be NULL, and is added to. */
static enum ibid_code change(const struct step *step, enum lite_sql sql, enum takes takes,
                             int64_t *ret, struct ibid_err *err)
{
	struct lite_run run;
	enum ibid_code code = start(step, sql, takes, &run, err);
	if (!code)
		code = lite_finish(&run, err);
	if (!code && ret)
		*ret += sqlite3_changes(step->conn->db);
	lite_end(&run);
	return code;
}

static enum ibid_code count(const struct step *step, enum lite_sql sql, enum takes takes,
                            int64_t *ret, struct ibid_err *err)
{
	struct lite_run run;
	enum ibid_code code = start(step, sql, takes, &run, err);
	if (lite_row(&run, &code, err))
		*ret += lite_read_int(&run);
	lite_end(&run);
	return code;
}

static enum ibid_code erase_rows(struct step *step, struct ibid_err *err)
{
	struct erasure_count *counted = &step->count;
	bool names = step->erasure->actor;
	const struct {
		enum lite_sql sql;
		enum takes takes;
		int64_t *count;
		bool skip;
	} changes[] = {
	    {LITE_erase_payload, TAKES_TENANT, &counted->payloads, false},
	    {LITE_erase_reason, TAKES_TENANT, NULL, false},
	    {LITE_erase_answer, TAKES_TENANT, &counted->bodies, false},
	    {LITE_erase_text, TAKES_TENANT, &counted->texts, false},
	    {LITE_erase_event, TAKES_TENANT, &counted->events, false},
	    {LITE_erase_evidence_merge, TAKES_WINDOW, NULL, false},
	    {LITE_erase_evidence, TAKES_WINDOW, &counted->names, false},
	    {LITE_erase_seen, TAKES_WINDOW, &counted->names, false},
	    {LITE_erase_exception, TAKES_ACTOR, &counted->exceptions, false},
	    {LITE_erase_command_names, TAKES_TENANT, &counted->names, !names},
	    {LITE_erase_audit_names, TAKES_TENANT, &counted->names, !names},
	};
	enum ibid_code code = IBID_OK;
	for (size_t i = 0; !code && i < sizeof changes / sizeof *changes; i++)
		if (!changes[i].skip)
			code = change(step, changes[i].sql, changes[i].takes, changes[i].count, err);
	return code;
}

static enum ibid_code put_record(const struct step *step, struct ibid_err *err)
{
	struct lite_run run;
	const struct erasure *erasure = step->erasure;
	enum ibid_code code = lite_start(step->conn, LITE_erasure_put, &run, err);
	lite_bind_text(&run, erasure->tenant);
	lite_bind_uuid(&run, &erasure->id);
	lite_bind_text(&run, erasure->by);
	lite_bind_text(&run, erasure->reason);
	lite_bind_text(&run, erasure->selection);
	lite_bind_int(&run, erasure->now_us);
#define BIND_COUNT(name, meaning) lite_bind_int(&run, step->count.name);
	ERASURE_COUNTS(BIND_COUNT)
#undef BIND_COUNT
	return lite_conclude(&run, code, err);
}

static enum ibid_code finish_record(const struct step *step, struct ibid_err *err)
{
	struct lite_run run;
	enum ibid_code code = lite_start(step->conn, LITE_erasure_finish, &run, err);
	lite_bind_text(&run, step->erasure->tenant);
	lite_bind_uuid(&run, &step->erasure->id);
	lite_bind_int(&run, step->erasure->now_us);
	return lite_conclude(&run, code, err);
}

static enum ibid_code erase_window(struct step *step, struct ibid_err *err)
{
	enum ibid_code code = change(step, LITE_erase_select, TAKES_SELECTION, NULL, err);
	if (!code)
		code = count(step, LITE_erase_left, TAKES_SELECTION, &step->left, err);
	if (!code)
		code = count(step, LITE_erase_count, TAKES_ACTOR, &step->count.commands, err);
	if (!code)
		code = erase_rows(step, err);
	if (!code)
		code = lite_do(step->conn, LITE_erase_close, err);
	if (!code && step->count.commands + step->count.names > 0)
		code = put_record(step, err);
	return code;
}

/* All zero: there is nothing more. */
static enum ibid_code find_window(struct step *step, struct ibid_err *err)
{
	struct lite_run run;
	enum ibid_code code = lite_start(step->conn, LITE_erase_window, &run, err);
	lite_bind_text(&run, step->erasure->tenant);
	lite_bind_uuid(&run, &step->from);
	lite_bind_int(&run, (int64_t)step->erasure->batch);
	if (lite_row(&run, &code, err))
		step->upto = lite_read_uuid(&run);
	lite_end(&run);
	return code;
}

static enum ibid_code take_step(struct step *step, bool *ret_done, struct ibid_err *err)
{
	static const struct uuid none;
	const struct uuid *only = step->erasure->command_id;
	enum ibid_code code = IBID_OK;
	if (only) {
		step->from = uuid_before(*only);
		step->upto = *only;
	} else {
		code = find_window(step, err);
	}
	bool empty = memcmp(&step->upto, &none, sizeof none) == 0;
	if (!code && !empty)
		code = erase_window(step, err);
	*ret_done = only || empty;
	if (!code && *ret_done)
		code = finish_record(step, err);
	return code;
}

static enum ibid_code overwriting(struct step *step, bool *ret_done, struct ibid_err *err)
{
	int64_t secure = 0;
	enum ibid_code code = lite_number(step->conn, LITE_secure_delete_get, &secure, err);
	if (!code)
		code = lite_do(step->conn, LITE_secure_delete_on, err);
	if (!code)
		code = take_step(step, ret_done, err);
	if (!code && !secure)
		code = lite_do(step->conn, LITE_secure_delete_off, err);
	return code;
}

static void add_counts(struct erasure_count *to, const struct erasure_count *more)
{
#define ADD_COUNT(name, meaning) to->name += more->name;
	ERASURE_COUNTS(ADD_COUNT)
#undef ADD_COUNT
}

enum ibid_code lite_erase_commands(struct store *base, const struct erasure *erasure,
                                   struct erasure_progress *progress, struct ibid_err *err)
{
	struct lite_store *store = lite_of(base);
	struct step step = {.erasure = erasure, .from = progress->id};
	bool done = false;
	enum ibid_code code = lite_write_begin(store, lite_wait_us(store), &step.conn, err);
	if (code)
		return code;
	code = overwriting(&step, &done, err);
	if (!code && erasure->dry_run)
		lite_write_rollback(store);
	else
		code = lite_write_end(store, code, err);
	if (code)
		return code;
	progress->id = step.upto;
	progress->done = done;
	progress->left += step.left;
	add_counts(&progress->count, &step.count);
	if (done && !erasure->dry_run)
		lite_checkpoint_truncate(store); /* the WAL still holds the pages as they were */
	return IBID_OK;
}
