/* SPDX-License-Identifier: Apache-2.0 */
/* prepare.c -- would the scripts run on this file?
 *
 * Each statement is prepared on the writer's connection, which has the functions and the authorizer
 * that a command's script meets, and finalized: no step is made, no lock is taken but the one that
 * reading the schema takes for a moment. */
#include "store/sqlite/lite.h"
#include "store/sqlite/run_script.h"

#include <string.h>

struct preparing {
	struct lite_conn *conn;
	const struct script_use *use;
	const struct script_statement *statement; /* that is looked at */
	int made_at;                              /* line of the first statement that makes something */
	finding_fn *fn;
	void *user;
};

#define TELL(p, level, line, ...)                                                                  \
	script_learn((p)->use->script->file, line, level, (p)->fn, (p)->user, __VA_ARGS__)

/* ---- Where, and what ------------------------------------------------------------------------ */

static int lines_before(const char *sql, const char *at)
{
	int lines = 0;
	for (; sql < at; sql++)
		lines += *sql == '\n';
	return lines;
}

/* The first place where the name stands by itself; NULL: nowhere. */
static const char *find_name(const char *sql, const char *name)
{
	static const char word[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_$";
	size_t size = strlen(name);
	const char *at = size ? strcasestr(sql, name) : NULL;
	while (at && ((at > sql && strchr(word, at[-1])) || (at[size] && strchr(word, at[size]))))
		at = strcasestr(at + 1, name);
	return at;
}

/* The name that a message ends with, such as "no such table: pay", which has no offset. */
static int line_of_message(const char *sql, const char *message)
{
	static const char *const before[] = {"no such table: ", "has no column named ",
	                                     "no such column: "};
	for (size_t i = 0; i < sizeof before / sizeof *before; i++) {
		const char *at = strstr(message, before[i]);
		if (!at)
			continue;
		const char *name = at + strlen(before[i]), *dot = strrchr(name, '.');
		at = find_name(sql, dot ? dot + 1 : name);
		return at ? lines_before(sql, at) : 0;
	}
	return 0;
}

static int line_of_error(const struct preparing *p, const char *message)
{
	const char *sql = p->statement->sql;
	int offset = sqlite3_error_offset(p->conn->db);
	return p->statement->line +
	       (offset >= 0 ? lines_before(sql, sql + offset) : line_of_message(sql, message));
}

static void tell_error(const struct preparing *p, int rc)
{
	const char *message = rc == SQLITE_AUTH && p->conn->refused ? p->conn->refused
	                                                            : sqlite3_errmsg(p->conn->db);
	int line = line_of_error(p, message);
	if (p->made_at && (strncmp(message, "no such ", 8) == 0 || strstr(message, " has no column ")))
		TELL(p, FINDING_WARN, line,
		     "can't be checked, because the statement at line %d makes things when it runs: %s",
		     p->made_at, message);
	else
		TELL(p, FINDING_REFUSE, line, "%s", message);
}

/* ---- One statement -------------------------------------------------------------------------- */

static void look_at_answer(const struct preparing *p, sqlite3_stmt *stmt)
{
	struct ibid_err err;
	int columns = sqlite3_column_count(stmt);
	if (script_rejects(p->statement))
		return;
	bool never = p->use->answer == SCRIPT_ANSWERS_NEVER;
	bool bad = columns && lite_answer_check(stmt, &err);
	if (never && columns && !bad)
		TELL(p, FINDING_REFUSE, p->statement->line, "%s", script_answers_twice);
	else if (bad && !never)
		TELL(p, FINDING_REFUSE, p->statement->line, "%s", err.text);
	else if (!columns && p->use->answer == SCRIPT_ANSWERS)
		TELL(p, FINDING_REFUSE, p->statement->line,
		     "the script's last statement must be its answer, a row with status");
}

/* What is wrong with the file and not with the statement is the code that is returned. */
static enum ibid_code look_at(const struct preparing *p, bool last, struct ibid_err *err)
{
	struct lite_conn *conn = p->conn;
	sqlite3_stmt *stmt = NULL;
	conn->refused = NULL;
	conn->mode = LITE_SCRIPT;
	int rc = sqlite3_prepare_v2(conn->db, p->statement->sql, -1, &stmt, NULL);
	conn->mode = LITE_OURS;
	enum ibid_code code = rc && lite_code_of(rc) != IBID_FAILED ? lite_fail(conn, rc, err)
	                                                            : IBID_OK;
	if (rc && !code)
		tell_error(p, rc);
	if (!rc && last)
		look_at_answer(p, stmt);
	sqlite3_finalize(stmt);
	return code;
}

enum ibid_code lite_prepare_scripts(struct store *base, const struct script_use *uses, size_t count,
                                    finding_fn *fn, void *user, struct ibid_err *err)
{
	struct lite_store *store = lite_of(base);
	struct preparing p = {.fn = fn, .user = user};
	enum ibid_code code = lite_writer_take(store, &p.conn, err);
	if (code)
		return code;
	for (size_t i = 0; !code && i < count; i++) {
		const struct script_statements *statements = &uses[i].script->statements;
		p.use = &uses[i];
		p.made_at = 0;
		for (size_t k = 0; !code && k < statements->count; k++) {
			p.statement = &statements->items[k];
			code = look_at(&p, k + 1 == statements->count, err);
			if (p.statement->makes && !p.made_at)
				p.made_at = p.statement->line;
		}
	}
	lite_writer_return(store);
	return code;
}
