/* SPDX-License-Identifier: Apache-2.0 */
/* rounding.c -- find decimals that a column would round, in a statement that SQLite has prepared.
 *
 * SQLite does not tell which column a parameter meets. So what is plain is read from the text:
 * `column = :amount` and other comparisons, `set column = :amount`, and `insert into table (...)`
 * with a tuple or a `select`. The columns that such a name may mean are those that the authorizer
 * heard of; only where all of them round is there a finding. */
#include "store/sqlite/rounding.h"

#include <string.h>

enum lexeme_kind { LEXEME_END, LEXEME_WORD, LEXEME_PARAM, LEXEME_TEXT, LEXEME_OTHER };

struct lexeme {
	enum lexeme_kind kind;
	const char *at; /* a word without its quotes, a parameter without its colon */
	size_t size;
};

/* ---- Reading -------------------------------------------------------------------------------- */

static bool in_word(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
	       c == '$' || (unsigned char)c >= 0x80;
}

/* The splitter has checked that comments end. */
static const char *skip_space(const char *at)
{
	for (;;) {
		if (*at && strchr(" \t\r\n\f\v", *at)) {
			at++;
		} else if (at[0] == '-' && at[1] == '-') {
			at += strcspn(at, "\n");
		} else if (at[0] == '/' && at[1] == '*') {
			const char *end = strstr(at + 2, "*/");
			at = end ? end + 2 : at + strlen(at);
		} else {
			return at;
		}
	}
}

static const char *read_quoted(const char *at, struct lexeme *ret)
{
	char quote = *at == '[' ? ']' : *at;
	const char *end = strchr(at + 1, quote);
	while (end && quote != ']' && end[1] == quote)
		end = strchr(end + 2, quote);
	if (!end)
		end = at + strlen(at);
	*ret = (struct lexeme){quote == '\'' ? LEXEME_TEXT : LEXEME_WORD, at + 1,
	                       (size_t)(end - at) - 1};
	return *end ? end + 1 : end;
}

static const char *read_lexeme(const char *at, struct lexeme *ret)
{
	size_t size = 0;
	at = skip_space(at);
	if (*at && strchr("'\"`[", *at))
		return read_quoted(at, ret);
	bool param = *at == ':' && in_word(at[1]);
	at += param;
	while (in_word(at[size]))
		size++;
	bool number = !param && *at >= '0' && *at <= '9';
	enum lexeme_kind kind = param ? LEXEME_PARAM : size && !number ? LEXEME_WORD : LEXEME_OTHER;
	if (!size && *at)
		size = strchr("<>=!|", *at) && at[1] && strchr("<>=|", at[1]) ? 2 : 1;
	*ret = (struct lexeme){size ? kind : LEXEME_END, at, size};
	return at + size;
}

/* With one of LEXEME_END behind the last. */
static struct lexeme *read_lexemes(struct arena *arena, const char *sql)
{
	struct lexeme lexeme;
	size_t count = 0;
	for (const char *at = read_lexeme(sql, &lexeme); lexeme.kind; at = read_lexeme(at, &lexeme))
		count++;
	struct lexeme *lexemes = arena_array(arena, count + 1, sizeof *lexemes);
	for (size_t i = 0; lexemes && i <= count; i++)
		sql = read_lexeme(sql, &lexemes[i]);
	return lexemes;
}

static bool is(const struct lexeme *lexeme, const char *text)
{
	return lexeme->kind != LEXEME_END && lexeme->kind != LEXEME_TEXT &&
	       strlen(text) == lexeme->size &&
	       sqlite3_strnicmp(lexeme->at, text, (int)lexeme->size) == 0;
}

static bool is_one_of(const struct lexeme *lexeme, const char *const *texts)
{
	for (; *texts; texts++)
		if (lexeme->kind == LEXEME_OTHER && is(lexeme, *texts))
			return true;
	return false;
}

static bool compares(const struct lexeme *lexeme)
{
	return is_one_of(lexeme,
	                 (const char *const[]){"=", "==", "<>", "!=", "<", "<=", ">", ">=", NULL});
}

/* What stands on its other side is part of an expression, which has no affinity. */
static bool calculates(const struct lexeme *lexeme)
{
	return is_one_of(lexeme, (const char *const[]){"+", "-", "*", "/", "%", "|", "||", "&", "~",
	                                               "<<", ">>", NULL});
}

int lite_lines_before(const char *sql, const char *at)
{
	int lines = 0;
	for (; sql < at; sql++)
		lines += *sql == '\n';
	return lines;
}

int lite_line_of_name(const char *sql, const char *name, size_t size)
{
	struct lexeme lexeme;
	for (const char *at = read_lexeme(sql, &lexeme); lexeme.kind; at = read_lexeme(at, &lexeme)) {
		if (lexeme.kind == LEXEME_WORD && lexeme.size == size &&
		    sqlite3_strnicmp(lexeme.at, name, (int)size) == 0)
			return lite_lines_before(sql, lexeme.at);
	}
	return -1;
}

/* ---- Columns -------------------------------------------------------------------------------- */

void lite_columns_add(void *user, const char *table, const char *name, bool updated)
{
	struct lite_columns *columns = user;
	struct lite_column *column = arena_alloc(columns->arena, sizeof *column);
	if (!column || !table || !name)
		return;
	*column = (struct lite_column){columns->first, arena_strdup(columns->arena, table),
	                               arena_strdup(columns->arena, name), updated};
	columns->first = column;
}

struct finder {
	struct lite_conn *conn;
	struct arena *arena;
	const struct script *script;
	const struct lite_columns *columns;
	struct lite_rounding *found;
	enum ibid_code code;
	struct ibid_err *err;
};

/* `written`: also where only what is no whole number is rounded. */
static bool rounds(struct finder *f, const char *table, const char *name, bool written)
{
	struct lite_run run;
	bool always = false;
	if (f->code)
		return false;
	f->code = lite_start(f->conn, LITE_column_rounds, &run, f->err);
	lite_bind_text(&run, table);
	lite_bind_text(&run, name);
	bool found = lite_row(&run, &f->code, f->err);
	if (found)
		always = lite_read_int(&run);
	lite_end(&run);
	return found && (always || written);
}

static bool is_decimal(const struct finder *f, const struct lexeme *lexeme)
{
	for (size_t i = 0; lexeme->kind == LEXEME_PARAM && i < f->script->param_count; i++)
		if (f->script->params[i].type == PARAM_DECIMAL && is(lexeme, f->script->params[i].name))
			return true;
	return false;
}

static void note(struct finder *f, const char *table, const char *column,
                 const struct lexeme *param)
{
	*f->found = (struct lite_rounding){
	    .table = table,
	    .column = column,
	    .param = arena_strndup(f->arena, param->at, param->size),
	    .at = param->at,
	};
}

/* ---- Comparisons and SET -------------------------------------------------------------------- */

static void look_at_pair(struct finder *f, const struct lexeme *name, const struct lexeme *param)
{
	const struct lite_column *last = NULL;
	if (name->kind != LEXEME_WORD)
		return;
	for (const struct lite_column *column = f->columns->first; column; column = column->next) {
		if (!is(name, column->name))
			continue;
		if (!rounds(f, column->table, column->name, column->updated))
			return;
		last = column;
	}
	if (last)
		note(f, last->table, last->name, param);
}

static void look_at_comparisons(struct finder *f, const struct lexeme *lexemes)
{
	for (size_t i = 0; lexemes[i].kind && !f->found->table; i++) {
		if (!is_decimal(f, &lexemes[i]) || calculates(&lexemes[i + 1]))
			continue;
		if (i >= 2 && compares(&lexemes[i - 1])) {
			size_t first = i - 2;
			if (first >= 2 && is(&lexemes[first - 1], "."))
				first -= 2;
			if (first == 0 || !calculates(&lexemes[first - 1]))
				look_at_pair(f, &lexemes[i - 2], &lexemes[i]);
		} else if (compares(&lexemes[i + 1]) && (i == 0 || !calculates(&lexemes[i - 1]))) {
			size_t name = i + 2;
			if (lexemes[name].kind && is(&lexemes[name + 1], "."))
				name += 2;
			if (lexemes[name].kind && !is(&lexemes[name + 1], "(") &&
			    !calculates(&lexemes[name + 1]))
				look_at_pair(f, &lexemes[name], &lexemes[i]);
		}
	}
}

/* ---- INSERT --------------------------------------------------------------------------------- */

/* Elements of a tuple, or of what a SELECT returns, beside the names of the columns. Gives the
 * lexeme behind the last one. */
static const struct lexeme *look_at_elements(struct finder *f, const char *table,
                                             const struct lexeme *names, const struct lexeme *at)
{
	static const char *const ends[] = {"from",  "where", "union", "except", "intersect",
	                                   "order", "limit", "on",    "group",  "returning"};
	const struct lexeme *first = at;
	size_t depth = 0;
	for (;; at++) {
		bool over = !at->kind || (!depth && is(at, ")"));
		for (size_t i = 0; !depth && !over && i < sizeof ends / sizeof *ends; i++)
			over = at->kind == LEXEME_WORD && is(at, ends[i]);
		if (over || (!depth && is(at, ","))) {
			bool alone = at - first == 1 || (at - first == 3 && is(first + 1, "as"));
			const char *name = arena_strndup(f->arena, names->at, names->size);
			if (alone && name && is_decimal(f, first) && rounds(f, table, name, true) &&
			    !f->found->table)
				note(f, table, name, first);
			if (over || !is(names + 1, ","))
				return at;
			names += 2;
			first = at + 1;
		}
		depth += is(at, "(");
		depth -= depth && is(at, ")");
	}
}

static void look_at_insert(struct finder *f, const struct lexeme *at)
{
	while (at->kind && !is(at, "into"))
		at++;
	if (at->kind && is(at + 1, "main") && is(at + 2, "."))
		at += 2;
	if (!at->kind || at[1].kind != LEXEME_WORD)
		return;
	const char *table = arena_strndup(f->arena, at[1].at, at[1].size);
	at += 2;
	if (at->kind && is(at, "as"))
		at += at[1].kind ? 2 : 1;
	if (!table || !is(at, "("))
		return;
	const struct lexeme *names = at + 1;
	while (at->kind && !is(at, ")"))
		at++;
	if (at->kind && is(at + 1, "select")) {
		look_at_elements(f, table, names, at + 2);
		return;
	}
	if (!at->kind || !is(at + 1, "values"))
		return;
	for (at += 2; is(at, "("); at += is(at, ",")) {
		at = look_at_elements(f, table, names, at + 1);
		while (at->kind && !is(at, ")")) /* more elements than names, which SQLite has refused */
			at++;
		at += at->kind != LEXEME_END;
	}
}

enum ibid_code lite_rounding_find(struct lite_conn *conn, struct arena *arena,
                                  const struct script *script,
                                  const struct script_statement *statement,
                                  const struct lite_columns *columns, struct lite_rounding *ret,
                                  struct ibid_err *err)
{
	struct finder finder = {conn, arena, script, columns, ret, IBID_OK, err};
	*ret = (struct lite_rounding){0};
	const struct lexeme *lexemes = read_lexemes(arena, statement->sql);
	if (!lexemes)
		return err_set(err, IBID_NOMEM, "out of memory");
	look_at_insert(&finder, lexemes);
	if (!ret->table)
		look_at_comparisons(&finder, lexemes);
	if (!finder.code && arena->failed)
		return err_set(err, IBID_NOMEM, "out of memory");
	return finder.code;
}
