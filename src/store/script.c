/* SPDX-License-Identifier: Apache-2.0 */
/* script.c -- read a SQL script as its engine's lexer would, far enough to know where statements
 * end and where a colon starts a parameter.
 *
 * What must hold, or a script could do what we believe it can't:
 *   (a) whatever the engine takes for code is never taken for a comment or a quotation here, and
 *       the other way round: a hidden COMMIT would break I1;
 *   (b) a text that the engine would read differently (an unterminated quotation, a parenthesis
 *       that is never closed) is refused, not guessed at;
 *   (c) a parameter is replaced by a token that can't melt into its neighbours. */
#include "store/script.h"

#include "base/str.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

enum {
	SCRIPT_BYTES_MAX = 16 << 20,
	NESTING_MAX = 256,
	WORDS_MAX = 4, /* enough to judge a statement: SET LOCAL SESSION AUTHORIZATION */
	WORD_BYTES_MAX = 64,
	NAME_BYTES_MAX = 64, /* longer parameter names get no suggestion */
};

enum nesting_kind { NESTING_PAREN, NESTING_ARRAY, NESTING_SUBSCRIPT };

struct nesting {
	enum nesting_kind kind;
	int line;
};

struct splitter {
	struct arena *arena;
	enum script_dialect dialect;
	const char *file, *at;
	int line;
	const struct param_spec *specs;
	size_t spec_count;
	struct ibid_err *err;

	/* The statement being read. */
	struct str sql;
	size_t sql_end; /* after its last token: what follows is blank or comment */
	int first_line; /* 0: no token yet */
	size_t *used, used_count;
	bool ends_expression; /* the last token may be the end of an expression */
	bool after_array;     /* the last token is the word ARRAY */
	char words[WORDS_MAX][WORD_BYTES_MAX];
	size_t word_count;
	bool words_done;
	bool leaves_state, names_into;
	struct nesting nesting[NESTING_MAX];
	size_t depth;

	struct script_statement *items;
	size_t count, room;
};

static enum ibid_code refuse(struct splitter *s, int line, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static enum ibid_code refuse(struct splitter *s, int line, const char *format, ...)
{
	va_list args;
	va_start(args, format);
	err_setv(s->err, IBID_CONTRACT, format, args);
	va_end(args);
	return err_prefix(s->err, "%s:%d", s->file, line);
}

/* ---- Characters ----------------------------------------------------------------------------- */

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f' || c == '\v';
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool starts_word(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || (unsigned char)c >= 0x80;
}

static bool in_name(char c)
{
	return starts_word(c) || is_digit(c);
}

static bool in_word(char c)
{
	return in_name(c) || c == '$';
}

static void advance(struct splitter *s, size_t bytes)
{
	for (; bytes; bytes--)
		if (*s->at++ == '\n')
			s->line++;
}

/* ---- Statement state ------------------------------------------------------------------------ */

static void note_token(struct splitter *s, int line, bool ends_expression)
{
	if (!s->first_line)
		s->first_line = line;
	s->ends_expression = ends_expression;
	s->after_array = false;
	s->sql_end = s->sql.size;
}

/* How a statement that is allowed can still change the session for good. What a function of the
 * user's does inside can't be seen. */
static bool touches_session(const char *word, size_t size)
{
	static const char *const words[] = {
	    "set_config",
	    "pg_settings",
	    "temp",
	    "temporary",
	    "pg_temp",
	    "pg_advisory_lock",
	    "pg_try_advisory_lock",
	    "pg_advisory_lock_shared",
	    "pg_try_advisory_lock_shared",
	};
	for (size_t i = 0; i < sizeof words / sizeof *words; i++)
		if (strlen(words[i]) == size && strncasecmp(words[i], word, size) == 0)
			return true;
	return false;
}

static void note_word(struct splitter *s, const char *word, size_t size)
{
	s->leaves_state |= touches_session(word, size);
	s->names_into |= size == strlen("into") && strncasecmp(word, "into", size) == 0;
	if (s->words_done || s->word_count == WORDS_MAX)
		return;
	snprintf(s->words[s->word_count++], WORD_BYTES_MAX, "%.*s", (int)size, word);
}

/* A token that is not a word: the statement's opening words are all known now. */
static void take(struct splitter *s, const char *from, int line, bool ends_expression)
{
	s->words_done = true;
	str_add(&s->sql, from, (size_t)(s->at - from));
	note_token(s, line, ends_expression);
}

static bool word_is(const struct splitter *s, size_t index, const char *word)
{
	return index < s->word_count && strcasecmp(s->words[index], word) == 0;
}

/* ---- What is refused ------------------------------------------------------------------------ */

#define ENDS    "ibid begins and ends the transaction"
#define SESSION "it outlives the transaction"
#define ENGINE  "it has no place in a command"

static const struct refused {
	const char *word, *why;
	bool sqlite_only;
} refused_words[] = {
    {"begin", ENDS, false},       {"start", ENDS, false},         {"commit", ENDS, false},
    {"end", ENDS, false},         {"rollback", ENDS, false},      {"abort", ENDS, false},
    {"savepoint", ENDS, false},   {"release", ENDS, false},       {"prepare", SESSION, false},
    {"execute", SESSION, false},  {"deallocate", SESSION, false}, {"listen", SESSION, false},
    {"unlisten", SESSION, false}, {"discard", SESSION, false},    {"reset", SESSION, false},
    {"load", SESSION, false},     {"declare", SESSION, false},    {"copy", ENGINE, false},
    {"vacuum", ENGINE, false},    {"checkpoint", ENGINE, false},  {"attach", SESSION, true},
    {"detach", SESSION, true},    {"pragma", SESSION, true},
};

/* Settings that even SET LOCAL may not touch: whose rights the rest of the transaction has, whose
 * command it is, and whether its commit is durable (I10). */
static const char *const refused_settings[] = {
    "role", "session", "session_authorization", "synchronous_commit", "transaction", "ibid",
};

static enum ibid_code check_set(struct splitter *s)
{
	if (word_is(s, 1, "constraints"))
		return IBID_OK;
	if (!word_is(s, 1, "local"))
		return refuse(s, s->first_line,
		              "SET is not allowed in a script: " SESSION "; SET LOCAL is allowed");
	for (size_t i = 0; i < sizeof refused_settings / sizeof *refused_settings; i++)
		if (word_is(s, 2, refused_settings[i]))
			return refuse(s, s->first_line, "SET LOCAL %s is not allowed in a script", s->words[2]);
	return IBID_OK;
}

/* A temporary table would stand before the real one of its name in all later commands. */
static enum ibid_code check_create(struct splitter *s)
{
	size_t next = word_is(s, 1, "or")                                 ? 3
	              : word_is(s, 1, "local") || word_is(s, 1, "global") ? 2
	                                                                  : 1;
	bool temporary = word_is(s, next, "temp") || word_is(s, next, "temporary");
	if (s->dialect == DIALECT_SQLITE && word_is(s, temporary ? next + 1 : next, "trigger"))
		return refuse(s, s->first_line,
		              "CREATE TRIGGER is not allowed in a script; put it into the schema file");
	for (size_t i = 1; i < s->word_count; i++)
		temporary |= word_is(s, i, "pg_temp");
	if (temporary)
		return refuse(s, s->first_line, "CREATE TEMPORARY is not allowed in a script: " SESSION);
	return IBID_OK;
}

static enum ibid_code check_statement(struct splitter *s)
{
	for (size_t i = 0; i < sizeof refused_words / sizeof *refused_words; i++) {
		const struct refused *refused = &refused_words[i];
		if (!word_is(s, 0, refused->word) || (refused->sqlite_only && s->dialect != DIALECT_SQLITE))
			continue;
		return refuse(s, s->first_line, "%s is not allowed in a script: %s", s->words[0],
		              refused->why);
	}
	if (word_is(s, 0, "set"))
		return check_set(s);
	if (word_is(s, 0, "create"))
		return check_create(s);
	return IBID_OK;
}

/* ---- Ending a statement --------------------------------------------------------------------- */

static bool make_room(struct splitter *s)
{
	if (s->count < s->room)
		return true;
	size_t room = s->room ? s->room * 2 : 8;
	struct script_statement *items = arena_array(s->arena, room, sizeof *items);
	if (!items)
		return false;
	if (s->count)
		memcpy(items, s->items, s->count * sizeof *items);
	s->items = items;
	s->room = room;
	return true;
}

/* SELECT ... INTO makes a table, and so may the body of DO or of a procedure. */
static bool makes_something(const struct splitter *s)
{
	static const char *const words[] = {"create", "alter", "drop", "do", "call"};
	for (size_t i = 0; i < sizeof words / sizeof *words; i++)
		if (word_is(s, 0, words[i]))
			return true;
	return s->names_into && !word_is(s, 0, "insert") && !word_is(s, 0, "replace") &&
	       !word_is(s, 0, "merge");
}

static enum ibid_code end_statement(struct splitter *s)
{
	enum ibid_code code = IBID_OK;
	if (s->depth)
		return refuse(s, s->nesting[s->depth - 1].line, "%s is never closed",
		              s->nesting[s->depth - 1].kind == NESTING_PAREN ? "(" : "[");
	if (!s->first_line)
		goto out; /* nothing but blanks and comments */
	if ((code = check_statement(s)) != IBID_OK)
		return code;
	if (s->sql.failed || !make_room(s))
		return err_set(s->err, IBID_NOMEM, "out of memory");
	struct script_statement *item = &s->items[s->count];
	*item = (struct script_statement){
	    .sql = arena_strndup(s->arena, str_text(&s->sql), s->sql_end),
	    .line = s->first_line,
	    .params = arena_array(s->arena, s->used_count, sizeof *item->params),
	    .param_count = s->used_count,
	    .sets = word_is(s, 0, "set"),
	    .makes = makes_something(s),
	    /* Their bodies may do anything. ON CONFLICT DO is not meant. */
	    .leaves_state = s->leaves_state || word_is(s, 0, "do") || word_is(s, 0, "call"),
	};
	if (!item->sql || !item->params)
		return err_set(s->err, IBID_NOMEM, "out of memory");
	if (s->used_count)
		memcpy(item->params, s->used, s->used_count * sizeof *item->params);
	s->count++;
out:
	str_clear(&s->sql);
	s->sql_end = s->used_count = s->word_count = 0;
	s->first_line = 0;
	s->words_done = s->ends_expression = s->after_array = s->leaves_state = s->names_into = false;
	return IBID_OK;
}

/* ---- Comments and quotations: each moves `at` behind itself --------------------------------- */

static void skip_line_comment(struct splitter *s)
{
	/* PostgreSQL also ends it at a carriage return: code behind one must not be overlooked. */
	while (*s->at && *s->at != '\n' && !(*s->at == '\r' && s->dialect == DIALECT_POSTGRES))
		advance(s, 1);
}

static enum ibid_code skip_block_comment(struct splitter *s)
{
	int line = s->line, depth = 1;
	advance(s, 2);
	while (depth) {
		if (!*s->at)
			return refuse(s, line, "this comment is never closed");
		if (s->at[0] == '*' && s->at[1] == '/') {
			depth--;
			advance(s, 2);
		} else if (s->at[0] == '/' && s->at[1] == '*' && s->dialect == DIALECT_POSTGRES) {
			depth++;
			advance(s, 2);
		} else {
			advance(s, 1);
		}
	}
	return IBID_OK;
}

static enum ibid_code skip_quoted(struct splitter *s, char quote, bool backslash)
{
	int line = s->line;
	advance(s, 1);
	while (*s->at) {
		bool escaped = backslash && s->at[0] == '\\' && s->at[1];
		bool doubled = s->at[0] == quote && s->at[1] == quote;
		bool closes = s->at[0] == quote && !doubled;
		advance(s, escaped || doubled ? 2 : 1);
		if (closes)
			return IBID_OK;
	}
	return refuse(s, line, "this %c is never closed", quote);
}

/* A string that goes on after a line break (E'a' <newline> 'b\'c') keeps its kind. True, with `at`
 * on the quote, when it goes on. */
static bool string_goes_on(struct splitter *s)
{
	const char *at = s->at;
	bool broken = false;
	for (;;) {
		for (; is_blank(*at); at++)
			broken |= *at == '\n' || *at == '\r';
		if (at[0] != '-' || at[1] != '-')
			break;
		while (*at && *at != '\n' && *at != '\r')
			at++;
	}
	if (!broken || *at != '\'')
		return false;
	advance(s, (size_t)(at - s->at));
	return true;
}

static enum ibid_code skip_escape_string(struct splitter *s)
{
	enum ibid_code code;
	do {
		code = skip_quoted(s, '\'', true);
	} while (code == IBID_OK && string_goes_on(s));
	return code;
}

/* [name] of SQLite: no escape, the first ] ends it. */
static enum ibid_code skip_bracketed(struct splitter *s)
{
	int line = s->line;
	while (*s->at && *s->at != ']')
		advance(s, 1);
	if (!*s->at)
		return refuse(s, line, "this [ is never closed");
	advance(s, 1);
	return IBID_OK;
}

/* Bytes of the opening $tag$, or 0 when it is none. */
static size_t dollar_tag_size(const char *at)
{
	size_t size = 1;
	if (starts_word(at[size]))
		while (in_name(at[size]))
			size++;
	return at[size] == '$' ? size + 1 : 0;
}

static enum ibid_code skip_dollar_quoted(struct splitter *s, size_t tag_size)
{
	const char *tag = s->at;
	int line = s->line;
	advance(s, tag_size);
	while (*s->at && strncmp(s->at, tag, tag_size) != 0)
		advance(s, 1);
	if (!*s->at)
		return refuse(s, line, "this %.*s is never closed", (int)tag_size, tag);
	advance(s, tag_size);
	return IBID_OK;
}

/* ---- Parameters ----------------------------------------------------------------------------- */

static bool find_param(const struct splitter *s, const char *name, size_t size, size_t *ret)
{
	for (size_t i = 0; i < s->spec_count; i++) {
		if (strlen(s->specs[i].name) != size || memcmp(s->specs[i].name, name, size) != 0)
			continue;
		*ret = i;
		return true;
	}
	return false;
}

static unsigned min3(unsigned a, unsigned b, unsigned c)
{
	unsigned least = a < b ? a : b;
	return least < c ? least : c;
}

/* Insertions, deletions, changes and swaps of neighbours that turn one name into the other. */
static unsigned name_distance(const char *a, size_t a_size, const char *b, size_t b_size)
{
	unsigned rows[3][NAME_BYTES_MAX + 1];
	unsigned *before = rows[0], *last = rows[1], *now = rows[2];
	for (unsigned j = 0; j <= b_size; j++)
		last[j] = before[j] = j;
	for (unsigned i = 1; i <= a_size; i++) {
		now[0] = i;
		for (unsigned j = 1; j <= b_size; j++) {
			unsigned cost = a[i - 1] == b[j - 1] ? 0 : 1;
			now[j] = min3(last[j] + 1, now[j - 1] + 1, last[j - 1] + cost);
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
				now[j] = min3(now[j], now[j], before[j - 2] + 1);
		}
		unsigned *free_row = before;
		before = last;
		last = now;
		now = free_row;
	}
	return last[b_size];
}

static const char *nearest_param(const struct splitter *s, const char *name, size_t size)
{
	const char *nearest = NULL;
	unsigned best = 3;
	for (size_t i = 0; i < s->spec_count && size <= NAME_BYTES_MAX; i++) {
		size_t spec_size = strlen(s->specs[i].name);
		if (spec_size > NAME_BYTES_MAX)
			continue;
		unsigned distance = name_distance(name, size, s->specs[i].name, spec_size);
		if (distance >= best || distance > size / 2)
			continue;
		best = distance;
		nearest = s->specs[i].name;
	}
	return nearest;
}

static enum ibid_code refuse_unknown(struct splitter *s, const char *name, size_t size)
{
	char list[300] = "";
	size_t used = 0;
	for (size_t i = 0; i < s->spec_count; i++) {
		int more = snprintf(list + used, sizeof list - used, "%s:%s", i ? ", " : "",
		                    s->specs[i].name);
		if (more < 0 || (size_t)more >= sizeof list - used - sizeof ", ...") {
			snprintf(list + used, sizeof list - used, ", ...");
			break;
		}
		used += (size_t)more;
	}
	const char *nearest = nearest_param(s, name, size);
	int shown = size > NAME_BYTES_MAX ? NAME_BYTES_MAX : (int)size;
	return refuse(s, s->line, "unknown parameter :%.*s; declared are %s%s%s%s", shown, name,
	              s->spec_count ? list : "none", nearest ? " (did you mean :" : "",
	              nearest ? nearest : "", nearest ? "?)" : "");
}

/* The place of spec `index` among the statement's own parameters, from 1. */
static size_t use_param(struct splitter *s, size_t index)
{
	for (size_t i = 0; i < s->used_count; i++)
		if (s->used[i] == index)
			return i + 1;
	s->used[s->used_count++] = index;
	return s->used_count;
}

static void take_param(struct splitter *s, size_t index, size_t name_size)
{
	const char *from = s->at;
	size_t place = use_param(s, index);
	s->words_done = true;
	if (s->dialect == DIALECT_SQLITE) {
		str_add(&s->sql, from, name_size + 1);
	} else {
		/* "select:a" must not become the one word select$1. */
		bool touches = s->sql.size && in_word(s->sql.data[s->sql.size - 1]);
		str_addf(&s->sql, "%s$%zu", touches ? " " : "", place);
	}
	advance(s, name_size + 1);
	note_token(s, s->line, true);
}

static bool in_subscript(const struct splitter *s)
{
	return s->depth && s->nesting[s->depth - 1].kind == NESTING_SUBSCRIPT;
}

static enum ibid_code read_colon(struct splitter *s)
{
	const char *from = s->at;
	size_t size = 0, index;
	if (s->at[1] == ':' || s->at[1] == '=') {
		advance(s, 2);
		take(s, from, s->line, false);
		return IBID_OK;
	}
	if (starts_word(s->at[1]))
		while (in_name(s->at[size + 1]))
			size++;
	bool slice = size == 0 || (in_subscript(s) && s->ends_expression);
	if (!slice && find_param(s, s->at + 1, size, &index)) {
		take_param(s, index, size);
		return IBID_OK;
	}
	if (!slice && !in_subscript(s))
		return refuse_unknown(s, s->at + 1, size);
	advance(s, 1);
	take(s, from, s->line, false);
	return IBID_OK;
}

/* Other ways to write a parameter would reach the engine unbound. */
static enum ibid_code refuse_placeholder(struct splitter *s)
{
	size_t size = 1;
	while (size < NAME_BYTES_MAX && in_name(s->at[size]))
		size++;
	return refuse(s, s->line, "%.*s is not a parameter; write :name", (int)size, s->at);
}

/* ---- Words and nesting ---------------------------------------------------------------------- */

/* Words after which an expression starts. A name like them would be quoted by whoever means it. */
static bool expects_operand(const char *word, size_t size)
{
	static const char *const words[] = {
	    "all",      "and",  "any",    "array",  "as",     "between",   "by",     "case",
	    "distinct", "else", "from",   "having", "ilike",  "in",        "is",     "like",
	    "limit",    "not",  "offset", "on",     "or",     "returning", "select", "similar",
	    "some",     "then", "to",     "using",  "values", "when",      "where",
	};
	for (size_t i = 0; i < sizeof words / sizeof *words; i++)
		if (strlen(words[i]) == size && strncasecmp(words[i], word, size) == 0)
			return true;
	return false;
}

static enum ibid_code read_word(struct splitter *s)
{
	const char *from = s->at;
	int line = s->line;
	size_t size = 0;
	while (in_word(s->at[size]))
		size++;
	advance(s, size);
	bool escape_string = size == 1 && (*from == 'e' || *from == 'E') && *s->at == '\'';
	if (escape_string && s->dialect == DIALECT_POSTGRES) {
		enum ibid_code code = skip_escape_string(s);
		take(s, from, line, true);
		return code;
	}
	note_word(s, from, size);
	str_add(&s->sql, from, size);
	note_token(s, line, !expects_operand(from, size));
	s->after_array = size == strlen("array") && strncasecmp(from, "array", size) == 0;
	return IBID_OK;
}

static enum ibid_code read_quoted(struct splitter *s)
{
	const char *from = s->at;
	int line = s->line;
	char quote = *from;
	enum ibid_code code = quote == '[' ? skip_bracketed(s) : skip_quoted(s, quote, false);
	if (code)
		return code;
	if (quote == '\'') {
		take(s, from, line, true);
		return IBID_OK;
	}
	note_word(s, from + 1, (size_t)(s->at - from) - 2);
	str_add(&s->sql, from, (size_t)(s->at - from));
	note_token(s, line, true);
	return IBID_OK;
}

static enum ibid_code read_open(struct splitter *s)
{
	const char *from = s->at;
	enum nesting_kind kind = NESTING_PAREN;
	if (*from == '[')
		kind = s->ends_expression && !s->after_array ? NESTING_SUBSCRIPT : NESTING_ARRAY;
	if (s->depth == NESTING_MAX)
		return refuse(s, s->line, "nested more than %d deep", NESTING_MAX);
	s->nesting[s->depth++] = (struct nesting){kind, s->line};
	advance(s, 1);
	take(s, from, s->line, false);
	return IBID_OK;
}

static enum ibid_code read_close(struct splitter *s)
{
	const char *from = s->at;
	bool paren = *from == ')';
	if (!s->depth || (s->nesting[s->depth - 1].kind == NESTING_PAREN) != paren)
		return refuse(s, s->line, "%c closes nothing", *from);
	s->depth--;
	advance(s, 1);
	take(s, from, s->line, true);
	return IBID_OK;
}

static enum ibid_code read_dollar(struct splitter *s)
{
	const char *from = s->at;
	int line = s->line;
	size_t tag_size = s->dialect == DIALECT_POSTGRES ? dollar_tag_size(s->at) : 0;
	if (!tag_size)
		return refuse_placeholder(s);
	enum ibid_code code = skip_dollar_quoted(s, tag_size);
	take(s, from, line, true);
	return code;
}

static enum ibid_code read_number(struct splitter *s)
{
	const char *from = s->at;
	while (in_name(*s->at) || *s->at == '.')
		advance(s, 1);
	/* Where the number ends here (1e'...', 1a$$...$$) depends on the engine's version. */
	if (*s->at == '\'' || *s->at == '"' || *s->at == '$')
		return refuse(s, s->line, "a number runs into %c", *s->at);
	take(s, from, s->line, true);
	return IBID_OK;
}

static enum ibid_code read_operator(struct splitter *s)
{
	const char *from = s->at;
	advance(s, 1);
	take(s, from, s->line, false);
	return IBID_OK;
}

/* ---- The reader ----------------------------------------------------------------------------- */

/* Blanks and comments, kept where they stand between tokens. True when there were some. */
static enum ibid_code read_space(struct splitter *s, bool *ret_read)
{
	const char *from = s->at;
	enum ibid_code code = IBID_OK;
	if (s->at[0] == '-' && s->at[1] == '-')
		skip_line_comment(s);
	else if (s->at[0] == '/' && s->at[1] == '*')
		code = skip_block_comment(s);
	else
		while (is_blank(*s->at))
			advance(s, 1);
	*ret_read = s->at != from;
	if (s->first_line)
		str_add(&s->sql, from, (size_t)(s->at - from));
	return code;
}

static enum ibid_code read_semicolon(struct splitter *s)
{
	if (s->depth)
		return end_statement(s); /* says which parenthesis is open */
	advance(s, 1);
	return end_statement(s);
}

static enum ibid_code read_token(struct splitter *s)
{
	bool sqlite = s->dialect == DIALECT_SQLITE;
	char c = *s->at;
	switch (c) {
	case ';': return read_semicolon(s);
	case ':': return read_colon(s);
	case '$': return read_dollar(s);
	case '\'':
	case '"': return read_quoted(s);
	case '`': return sqlite ? read_quoted(s) : read_operator(s);
	case '[': return sqlite ? read_quoted(s) : read_open(s);
	case '(': return read_open(s);
	case ']':
	case ')': return read_close(s);
	case '?':
	case '@': return sqlite ? refuse_placeholder(s) : read_operator(s);
	default: break;
	}
	if (starts_word(c))
		return read_word(s);
	return is_digit(c) ? read_number(s) : read_operator(s);
}

static enum ibid_code read_all(struct splitter *s)
{
	enum ibid_code code = IBID_OK;
	while (*s->at && code == IBID_OK) {
		bool space;
		code = read_space(s, &space);
		if (code == IBID_OK && !space)
			code = read_token(s);
	}
	if (code == IBID_OK)
		code = end_statement(s);
	if (code == IBID_OK && s->count == 0)
		code = refuse(s, 1, "the script has no statement");
	return code;
}

enum ibid_code script_split(struct arena *arena, enum script_dialect dialect, const char *file,
                            const char *text, const struct param_spec *params, size_t count,
                            struct script_statements *ret, struct ibid_err *err)
{
	static const char byte_order_mark[] = "\xEF\xBB\xBF";
	struct splitter *s = arena_alloc(arena, sizeof *s);
	size_t *used = arena_array(arena, count, sizeof *used);
	if (!s || !used)
		return err_set(err, IBID_NOMEM, "out of memory");
	*s = (struct splitter){
	    .arena = arena,
	    .dialect = dialect,
	    .file = file,
	    .at = text,
	    .line = 1,
	    .specs = params,
	    .spec_count = count,
	    .err = err,
	    .used = used,
	    .sql = STR_INIT(SCRIPT_BYTES_MAX),
	};
	if (strncmp(text, byte_order_mark, sizeof byte_order_mark - 1) == 0)
		s->at += sizeof byte_order_mark - 1;
	enum ibid_code code = read_all(s);
	str_release(&s->sql);
	if (code)
		return code;
	*ret = (struct script_statements){s->items, s->count};
	return IBID_OK;
}

/* ---- Preparing: what both engines' prepare.c share ------------------------------------------ */

const char script_answers_twice[] =
    "the contract declares the answer, and so does the script's last statement: leave one of them "
    "out";

bool script_rejects(const struct script_statement *statement)
{
	return strcasestr(statement->sql, "ibid.reject") || strcasestr(statement->sql, "ibid_reject");
}

void script_learn(const char *file, int line, enum finding_level level, finding_fn *fn, void *user,
                  const char *format, ...)
{
	struct ibid_err err;
	va_list args;
	va_start(args, format);
	err_setv(&err, IBID_CONTRACT, format, args);
	va_end(args);
	err_prefix(&err, "%s:%d", file, line);
	fn(user, level, err.text, NULL);
}
