/* SPDX-License-Identifier: Apache-2.0 */
/* prepare.c -- would the scripts run on this database?
 *
 * The server parses each statement with the types that it will have, and describes it. That alone
 * does not show a decimal that is rounded on its way into a column, because the cast is silent. So
 * the server is also asked of which type it would take such a parameter to be, left to itself.
 *
 * Questions go out together. Each is a transaction of its own, which executes nothing but settings
 * that end with it: a limit for waiting for locks, and the script's own SET LOCAL, on which the
 * meaning of names may depend. What would fail as a matter of course is not asked: the server
 * writes failures into its log. */
#include "store/postgres/postgres.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

enum question_kind {
	QUESTION_PLAIN, /* as it will run */
	QUESTION_TYPE,  /* of which type would the server take the parameter? */
};

enum {
	OID_FLOAT4 = 700,
	OID_FLOAT8 = 701,
	OID_MONEY = 790,
	OID_NUMERIC = 1700,
};

struct question {
	enum question_kind kind;
	const struct script_use *use;
	size_t part, param;
	Oid type;            /* what the server takes the parameter for; 0: not known */
	PGresult *failed;    /* out: NULL: the server has prepared it */
	PGresult *described; /* out */
};

struct questions {
	struct arena *arena;
	struct pg_store *store;
	struct pg_conn *conn;
	struct question *items;
	size_t count;
	finding_fn *fn;
	void *user;
};

static const struct script_statement *part_of(const struct question *question)
{
	return &question->use->script->parts.items[question->part];
}

static const struct pg_statement *statement_of(const struct question *question)
{
	return &question->use->script->statements[question->part];
}

#define TELL(q, question, level, line, ...)                                                        \
	script_learn((question)->use->script->file, line, level, (q)->fn, (q)->user, __VA_ARGS__)

/* ---- Making --------------------------------------------------------------------------------- */

/* Is parameter $n beside a comparison in the text? */
static bool is_compared(const char *sql, int n)
{
	char name[16];
	int size = snprintf(name, sizeof name, "$%d", n);
	for (const char *at = strstr(sql, name); at; at = strstr(at + size, name)) {
		const char *before = at, *behind = at + size;
		while (before > sql && strchr(" \t\r\n", before[-1]))
			before--;
		behind += strspn(behind, " \t\r\n");
		if ((before > sql && strchr("<>=", before[-1])) || (*behind && strchr("<>=!", *behind)))
			return true;
	}
	return false;
}

static bool writes(const char *sql)
{
	static const char *const words[] = {"insert", "update", "merge", "with"};
	for (size_t i = 0; i < sizeof words / sizeof *words; i++)
		if (strncasecmp(sql, words[i], strlen(words[i])) == 0)
			return true;
	return false;
}

static void add_questions(struct questions *q, const struct script_use *use, size_t part)
{
	const struct pg_statement *statement = &use->script->statements[part];
	bool written = writes(statement->sql);
	q->items[q->count++] = (struct question){.use = use, .part = part};
	for (int i = 0; i < statement->param_count; i++)
		if (statement->types[i] == OID_NUMERIC && (written || is_compared(statement->sql, i + 1)))
			q->items[q->count++] = (struct question){
			    .kind = QUESTION_TYPE, .use = use, .part = part, .param = (size_t)i};
}

static bool make_questions(struct questions *q, const struct script_use *uses, size_t count)
{
	size_t most = 0;
	for (size_t i = 0; i < count; i++)
		for (size_t k = 0; k < uses[i].script->parts.count; k++)
			most += 1 + (size_t)uses[i].script->statements[k].param_count;
	q->items = arena_array(q->arena, most, sizeof *q->items);
	for (size_t i = 0; q->items && i < count; i++)
		for (size_t k = 0; k < uses[i].script->parts.count; k++)
			add_questions(q, &uses[i], k);
	return q->items;
}

/* ---- Asking --------------------------------------------------------------------------------- */

static bool send_limit(const struct questions *q)
{
	const char *values[] = {pg_int(q->arena, q->store->busy_ms)};
	return values[0] &&
	       PQsendQueryParams(q->conn->link, "select set_config('lock_timeout', $1, true)", 1, NULL,
	                         values, NULL, NULL, 0);
}

static bool send_question(const struct questions *q, const struct question *question)
{
	const struct script *script = question->use->script;
	const struct pg_statement *statement = statement_of(question);
	size_t count = (size_t)statement->param_count;
	Oid *types = arena_array(q->arena, count + 1, sizeof *types);
	if (!types)
		return false;
	if (count)
		memcpy(types, statement->types, count * sizeof *types);
	if (question->kind == QUESTION_TYPE)
		types[question->param] = 0;
	bool good = send_limit(q);
	for (size_t i = 0; good && i < question->part; i++)
		if (script->parts.items[i].sets)
			good = PQsendQueryParams(q->conn->link, script->parts.items[i].sql, 0, NULL, NULL, NULL,
			                         NULL, 0);
	return good && PQsendPrepare(q->conn->link, "", statement->sql, (int)count, types) &&
	       PQsendDescribePrepared(q->conn->link, "") && PQpipelineSync(q->conn->link);
}

/* Up to the answer to its Sync: the first failure, and the last result. */
static bool read_answers(const struct questions *q, struct question *question)
{
	for (int ends = 0; ends < 3;) { /* one behind each result, where all is well */
		PGresult *result = PQgetResult(q->conn->link);
		ExecStatusType status = PQresultStatus(result);
		ends = result ? 0 : ends + 1;
		if (result && status == PGRES_FATAL_ERROR && !question->failed) {
			question->failed = result;
		} else if (result && status != PGRES_PIPELINE_SYNC && status != PGRES_PIPELINE_ABORTED) {
			PQclear(question->described);
			question->described = result;
		} else {
			PQclear(result);
		}
		if (PQstatus(q->conn->link) == CONNECTION_BAD)
			return false;
		if (result && status == PGRES_PIPELINE_SYNC)
			return true;
	}
	return false;
}

static bool ask(struct questions *q)
{
	bool good = !pg_hook_fails(q->conn, HOOK_FLUSH, "prepare_scripts");
	for (size_t i = 0; good && i < q->count; i++)
		good = send_question(q, &q->items[i]);
	for (size_t i = 0; good && i < q->count; i++) {
		struct question *question = &q->items[i];
		good = read_answers(q, question);
		if (good && !question->failed && question->kind == QUESTION_TYPE)
			question->type = PQparamtype(question->described, (int)question->param);
	}
	good = good && !pg_hook_fails(q->conn, HOOK_AFTER, "prepare_scripts");
	q->conn->broken |= !good;
	return good;
}

/* ---- Judging -------------------------------------------------------------------------------- */

static const char *field(const PGresult *result, int code)
{
	const char *text = PQresultErrorField(result, code);
	return text ? text : "";
}

/* Nothing that could be said of the statement. */
static bool is_ours(const struct pg_conn *conn, const PGresult *result)
{
	switch (pg_sqlstate_code(field(result, PG_DIAG_SQLSTATE))) {
	case IBID_BUSY:
	case IBID_FULL:
	case IBID_IO:
	case IBID_UNAVAILABLE: return true;
	default: return pg_error_is_fatal(conn, result);
	}
}

/* What is missing may be made by an earlier statement, or be found where that looks for it. */
static bool is_missing(const PGresult *result)
{
	static const char *const states[] = {"42P01", "42703", "42704", "42883", "3F000"};
	for (size_t i = 0; i < sizeof states / sizeof *states; i++)
		if (strcmp(field(result, PG_DIAG_SQLSTATE), states[i]) == 0)
			return true;
	return false;
}

/* The line of the first statement before this one that may make what it needs; 0: there is none. */
static int made_at(const struct question *question)
{
	const struct script_statements *parts = &question->use->script->parts;
	for (size_t i = 0; i < question->part; i++)
		if (parts->items[i].makes || parts->items[i].leaves_state)
			return parts->items[i].line;
	return 0;
}

static void tell_failed(const struct questions *q, const struct question *question)
{
	const PGresult *result = question->failed;
	const char *text = field(result, PG_DIAG_MESSAGE_PRIMARY);
	const char *hint = field(result, PG_DIAG_MESSAGE_HINT);
	int line = part_of(question)->line + pg_error_line(result, statement_of(question)->sql);
	int made = is_missing(result) ? made_at(question) : 0;
	if (made)
		TELL(q, question, FINDING_WARN, line,
		     "can't be checked, because the statement at line %d makes things when it runs: %s",
		     made, text);
	else
		TELL(q, question, FINDING_REFUSE, line, "%s%s%s%s", text, *hint ? " (" : "", hint,
		     *hint ? ")" : "");
}

static void look_at_answer(const struct questions *q, const struct question *question)
{
	const PGresult *result = question->described;
	const struct script_statement *part = part_of(question);
	struct ibid_err err;
	if (question->part + 1 < question->use->script->parts.count || script_rejects(part))
		return;
	bool never = question->use->answer == SCRIPT_ANSWERS_NEVER;
	bool bad = PQnfields(result) && pg_check_answer(result, &err);
	if (never && PQnfields(result) && !bad)
		TELL(q, question, FINDING_REFUSE, part->line, "%s", script_answers_twice);
	else if (bad && !never)
		TELL(q, question, FINDING_REFUSE, part->line, "%s", err.text);
	else if (!PQnfields(result) && question->use->answer == SCRIPT_ANSWERS)
		TELL(q, question, FINDING_REFUSE, part->line,
		     "the script's last statement must be its answer, a row with status");
}

static const char *rounding_type(Oid type)
{
	switch (type) {
	case OID_FLOAT4: return "real";
	case OID_FLOAT8: return "double precision";
	case OID_MONEY: return "money";
	default: return NULL;
	}
}

static void look_at_type(const struct questions *q, const struct question *question)
{
	const struct script_statement *part = part_of(question);
	const char *type = rounding_type(question->type);
	if (type)
		TELL(q, question, FINDING_REFUSE, part->line,
		     "the decimal :%s would be rounded: the database takes it for %s here; make that "
		     "numeric",
		     question->use->script->names[part->params[question->param]], type);
}

static void judge_one(const struct questions *q, const struct question *question)
{
	switch (question->kind) {
	case QUESTION_PLAIN:
		if (question->failed)
			tell_failed(q, question);
		else
			look_at_answer(q, question);
		break;
	case QUESTION_TYPE: look_at_type(q, question); break;
	}
}

static enum ibid_code judge(const struct questions *q, struct ibid_err *err)
{
	for (size_t i = 0; i < q->count; i++)
		if (q->items[i].failed && is_ours(q->conn, q->items[i].failed))
			return pg_error(q->conn, q->items[i].failed, err);
	for (size_t i = 0; i < q->count; i++)
		judge_one(q, &q->items[i]);
	return IBID_OK;
}

enum ibid_code pg_prepare_scripts(struct store *base, const struct script_use *uses, size_t count,
                                  finding_fn *fn, void *user, struct ibid_err *err)
{
	struct arena arena = {0};
	struct questions q = {.arena = &arena, .store = pg_store_of(base), .fn = fn, .user = user};
	if (!make_questions(&q, uses, count)) {
		arena_release(&arena);
		return err_set(err, IBID_NOMEM, "out of memory");
	}
	enum ibid_code code = pg_pool_take_alive(q.store, &q.conn, err);
	if (!code)
		code = ask(&q) ? judge(&q, err) : pg_error(q.conn, NULL, err);
	for (size_t i = 0; i < q.count; i++) {
		PQclear(q.items[i].failed);
		PQclear(q.items[i].described);
	}
	pg_pool_give(q.store, q.conn); /* takes NULL */
	arena_release(&arena);
	return code;
}
