/* SPDX-License-Identifier: Apache-2.0 */
/* journal.c -- ibid_post(source, lines [, posting_date [, description]]): double-entry groups.
 *
 * A group is appended whole, once per source operation, and never edited (I3). What is wrong with
 * its lines is the sender's business and rejects the command. */
#include "base/decimal.h"
#include "base/instant.h"
#include "base/json.h"
#include "store/sqlite/work.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { LINES_MAX = 10000, DESCRIPTION_BYTES_MAX = 1024, GROUPS_MAX = 65535, DATE_SIZE = 10 };

struct line {
	const char *account, *direction, *amount, *currency;
	struct decimal value; /* of the amount, when it was given */
};

/* Where a group is being made. Everything lives in the transaction's arena. */
struct posting {
	struct lite_tx *tx;
	const char *source, *date, *description; /* date NULL: not given */
	struct line *lines;
	size_t count;
};

static enum ibid_code reject_line(struct lite_tx *tx, size_t number, const char *reason,
                                  const char *said, struct ibid_err *err)
{
	char *text = arena_printf(&tx->arena, "line %zu: %s", number, said);
	return lite_tx_reject(tx, reason, 422, text ? text : "", err);
}

/* ---- Reading lines -------------------------------------------------------------------------- */

/* The content of a string member; NULL where there is none, or one with a NUL byte in it. */
static const char *string_of(const struct json *object, const char *name)
{
	const struct json *value = json_member(object, name);
	if (!value || value->type != JSON_STRING || strlen(value->text) != value->size)
		return NULL;
	return value->text;
}

static bool has_other_members(const struct json *object)
{
	static const char *const known[] = {"account", "direction", "amount", "currency"};
	size_t count = 0;
	for (size_t i = 0; i < sizeof known / sizeof *known; i++)
		count += json_member(object, known[i]) != NULL;
	return count != object->size;
}

static bool currency_ok(const char *text)
{
	return text && strlen(text) == 3 && strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") == 3;
}

/* A JSON number or a string of one: never by way of a double. */
static bool read_amount(struct arena *arena, const struct json *amount, struct line *ret)
{
	struct ibid_err ignored;
	char text[DECIMAL_TEXT_MAX];
	if (!amount || (amount->type != JSON_NUMBER && amount->type != JSON_STRING) ||
	    decimal_read(amount->text, amount->size, &ret->value, &ignored) || ret->value.units <= 0)
		return false;
	decimal_write(ret->value, text);
	ret->amount = arena_strdup(arena, text);
	return true;
}

static enum ibid_code read_line(struct lite_tx *tx, const struct json *object, size_t number,
                                struct line *ret, struct ibid_err *err)
{
	if (object->type != JSON_OBJECT || has_other_members(object))
		return reject_line(tx, number, "BAD_LINES",
		                   "is an object of account, direction, amount and currency", err);
	ret->account = string_of(object, "account");
	ret->direction = string_of(object, "direction");
	ret->currency = string_of(object, "currency");
	if (!ret->account || !*ret->account || strlen(ret->account) > NAME_BYTES_MAX)
		return reject_line(tx, number, "BAD_ACCOUNT", "the account is a text of 1 to 255 bytes",
		                   err);
	if (!ret->direction ||
	    (strcmp(ret->direction, "DEBIT") != 0 && strcmp(ret->direction, "CREDIT") != 0))
		return reject_line(tx, number, "BAD_DIRECTION", "the direction is DEBIT or CREDIT", err);
	if (!currency_ok(ret->currency))
		return reject_line(tx, number, "BAD_CURRENCY", "the currency is three letters A-Z", err);
	if (!read_amount(&tx->arena, json_member(object, "amount"), ret))
		return reject_line(tx, number, "BAD_AMOUNT",
		                   "the amount is a decimal above 0 of at most 38 digits, 18 of them after "
		                   "the point",
		                   err);
	return IBID_OK;
}

static enum ibid_code read_lines(struct posting *posting, sqlite3_value *value,
                                 struct ibid_err *err)
{
	struct lite_tx *tx = posting->tx;
	const char *text = lite_work_text(value);
	struct json *root = NULL;
	if (text && json_read(&tx->arena, text, (size_t)sqlite3_value_bytes(value), 0, &root, err)) {
		char *said = arena_printf(&tx->arena, "ibid_post: lines: %s", err->text);
		return err_set(err, IBID_FAILED, "%s", said ? said : "");
	}
	if (!root || root->type != JSON_ARRAY)
		return lite_tx_reject(tx, "BAD_LINES", 422, "the lines are a JSON array", err);
	if (root->size == 0)
		return lite_tx_reject(tx, "EMPTY_GROUP", 422,
		                      "a group has at least one debit and one credit", err);
	if (root->size > LINES_MAX)
		return lite_tx_reject(tx, "BAD_LINES", 422, "a group has at most 10000 lines", err);
	posting->lines = arena_array(&tx->arena, root->size, sizeof *posting->lines);
	if (!posting->lines)
		return err_set(err, IBID_NOMEM, "out of memory");
	enum ibid_code code = IBID_OK;
	for (const struct json *item = root->child; !code && item; item = item->next) {
		code = read_line(tx, item, posting->count + 1, &posting->lines[posting->count], err);
		posting->count++;
	}
	return code;
}

/* ---- Debits equal credits ------------------------------------------------------------------- */

/* By currency, so that sums are over neighbours; then in a fixed order, so that equal groups are
 * equal arrays. */
static int compare_lines(const void *a, const void *b)
{
	const struct line *left = a, *right = b;
	int order = strcmp(left->currency, right->currency);
	if (!order)
		order = strcmp(left->account, right->account);
	if (!order)
		order = strcmp(left->direction, right->direction);
	return order ? order : strcmp(left->amount, right->amount);
}

static struct line *sorted(struct posting *posting)
{
	struct line *lines = arena_array(&posting->tx->arena, posting->count, sizeof *lines);
	assert(posting->lines && posting->count); /* an empty group was rejected */
	if (lines) {
		memcpy(lines, posting->lines, posting->count * sizeof *lines);
		qsort(lines, posting->count, sizeof *lines, compare_lines);
	}
	return lines;
}

static enum ibid_code unbalanced(struct lite_tx *tx, const char *currency, struct decimal debits,
                                 struct decimal credits, struct ibid_err *err)
{
	char debit[DECIMAL_TEXT_MAX], credit[DECIMAL_TEXT_MAX], between[DECIMAL_TEXT_MAX] = "";
	struct decimal difference;
	struct ibid_err ignored;
	decimal_write(debits, debit);
	decimal_write(credits, credit);
	if (!decimal_sub(debits, credits, &difference, &ignored))
		decimal_write(difference, between);
	char *text = arena_printf(&tx->arena, "%s: debits are %s, credits %s%s%s", currency, debit,
	                          credit, *between ? ", the difference is " : "", between);
	return lite_tx_reject(tx, "UNBALANCED", 422, text ? text : "", err);
}

/* One currency, in the order in which the lines were given: where a sum is too long must not depend
 * on the engine. */
static enum ibid_code balance(struct posting *posting, const char *currency, struct ibid_err *err)
{
	struct lite_tx *tx = posting->tx;
	struct decimal debits = {.scale = 0}, credits = {.scale = 0};
	for (size_t i = 0; i < posting->count; i++) {
		const struct line *line = &posting->lines[i];
		struct decimal *total = line->direction[0] == 'D' ? &debits : &credits;
		if (strcmp(line->currency, currency) == 0 && decimal_add(*total, line->value, total, err)) {
			char *text = arena_printf(&tx->arena, "%s: the amounts add up to more than 38 digits",
			                          currency);
			return lite_tx_reject(tx, "BAD_AMOUNT", 422, text ? text : "", err);
		}
	}
	if (decimal_cmp(debits, credits) != 0)
		return unbalanced(tx, currency, debits, credits, err);
	return IBID_OK;
}

static enum ibid_code balance_all(struct posting *posting, struct ibid_err *err)
{
	const struct line *lines = sorted(posting);
	enum ibid_code code = lines ? IBID_OK : err_set(err, IBID_NOMEM, "out of memory");
	for (size_t i = 0; !code && i < posting->count; i++)
		if (i == 0 || strcmp(lines[i].currency, lines[i - 1].currency) != 0)
			code = balance(posting, lines[i].currency, err);
	return code;
}

/* ---- Appending ------------------------------------------------------------------------------ */

static enum ibid_code next_id(struct lite_tx *tx, struct uuid *ret, struct ibid_err *err)
{
	struct uuid first = uuid_nth(tx->context.command_id, 0);
	struct uuid last = uuid_nth(tx->context.command_id, GROUPS_MAX);
	int64_t count = 0;
	struct lite_run run;
	enum ibid_code code = lite_start(tx->conn, LITE_journal_group_count, &run, err);
	lite_bind_text(&run, tx->context.tenant);
	lite_bind_uuid(&run, &first);
	lite_bind_uuid(&run, &last);
	if (lite_row(&run, &code, err))
		count = lite_read_int(&run);
	lite_end(&run);
	if (!code && count >= GROUPS_MAX)
		code = err_set(err, IBID_FAILED, "ibid_post: more than %d groups in one command",
		               GROUPS_MAX);
	if (!code)
		*ret = uuid_nth(tx->context.command_id, (unsigned)count + 1);
	return code;
}

static enum ibid_code put_group(const struct posting *posting, const struct uuid *id,
                                struct ibid_err *err)
{
	const struct work_context *context = &posting->tx->context;
	char now[INSTANT_TEXT_SIZE];
	struct lite_run run;
	instant_write(context->now_us, now);
	enum ibid_code code = lite_start(posting->tx->conn, LITE_journal_group_put, &run, err);
	lite_bind_text(&run, context->tenant);
	lite_bind_uuid(&run, id);
	lite_bind_text(&run, posting->source);
	lite_bind_uuid(&run, &context->command_id);
	lite_bind_bytes(&run, posting->date ? posting->date : now, DATE_SIZE);
	lite_bind_text(&run, posting->description);
	lite_bind_int(&run, context->now_us);
	return lite_conclude(&run, code, err);
}

static enum ibid_code put_line(const struct posting *posting, const struct uuid *id, size_t index,
                               struct ibid_err *err)
{
	const struct line *line = &posting->lines[index];
	struct lite_run run;
	enum ibid_code code = lite_start(posting->tx->conn, LITE_journal_line_put, &run, err);
	lite_bind_text(&run, posting->tx->context.tenant);
	lite_bind_uuid(&run, id);
	lite_bind_int(&run, (int64_t)index + 1);
	lite_bind_text(&run, line->account);
	lite_bind_text(&run, line->direction);
	lite_bind_text(&run, line->amount);
	lite_bind_text(&run, line->currency);
	return lite_conclude(&run, code, err);
}

/* ---- The same source again ------------------------------------------------------------------ */

static void read_kept(struct lite_run *run, struct arena *arena, void *row)
{
	struct line *ret = row;
	ret->account = lite_read_text(run, arena);
	ret->direction = lite_read_text(run, arena);
	ret->amount = lite_read_text(run, arena);
	ret->currency = lite_read_text(run, arena);
}

/* The date stays NULL where the source was not posted yet. */
static enum ibid_code find_group(const struct posting *posting, struct uuid *ret_id,
                                 const char **ret_date, struct ibid_err *err)
{
	struct lite_run run;
	enum ibid_code code = lite_start(posting->tx->conn, LITE_journal_group_by_source, &run, err);
	lite_bind_text(&run, posting->tx->context.tenant);
	lite_bind_text(&run, posting->source);
	if (lite_row(&run, &code, err)) {
		*ret_id = lite_read_uuid(&run);
		*ret_date = lite_read_text(&run, &posting->tx->arena);
	}
	lite_end(&run);
	return code;
}

static bool same_lines(const struct line *a, const struct line *b, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (compare_lines(&a[i], &b[i]) != 0)
			return false;
	return true;
}

static enum ibid_code compare_kept(struct posting *posting, const struct uuid *id, bool *ret_same,
                                   struct ibid_err *err)
{
	struct lite_tx *tx = posting->tx;
	struct lite_rows rows = {.arena = &tx->arena, .size = sizeof(struct line)};
	struct lite_run run;
	enum ibid_code code = lite_start(tx->conn, LITE_journal_line_list, &run, err);
	lite_bind_text(&run, tx->context.tenant);
	lite_bind_uuid(&run, id);
	code = lite_rows_read(&rows, &run, read_kept, code, err);
	lite_end(&run);
	if (code)
		return code;
	const struct line *given = sorted(posting);
	if (!given)
		return err_set(err, IBID_NOMEM, "out of memory");
	assert(rows.count > 0);
	qsort(rows.items, rows.count, rows.size, compare_lines);
	*ret_same = rows.count == posting->count && same_lines(given, rows.items, rows.count);
	return IBID_OK;
}

static enum ibid_code compare_group(struct posting *posting, const struct uuid *kept,
                                    const char *date, struct ibid_err *err)
{
	char id[UUID_TEXT_SIZE];
	bool same = false;
	enum ibid_code code = compare_kept(posting, kept, &same, err);
	if (code)
		return code;
	if (same && (!posting->date || strcmp(posting->date, date) == 0))
		return IBID_OK;
	uuid_write(*kept, id);
	char *text = arena_printf(&posting->tx->arena,
	                          "%s was posted as group %s with other lines or another date",
	                          posting->source, id);
	return lite_tx_reject(posting->tx, "SOURCE_POSTED", 409, text ? text : "", err);
}

static enum ibid_code append(struct posting *posting, struct uuid *ret_id, struct ibid_err *err)
{
	const char *date = NULL;
	enum ibid_code code = find_group(posting, ret_id, &date, err);
	if (!code && date)
		return compare_group(posting, ret_id, date, err);
	if (!code)
		code = next_id(posting->tx, ret_id, err);
	if (!code)
		code = put_group(posting, ret_id, err);
	for (size_t i = 0; !code && i < posting->count; i++)
		code = put_line(posting, ret_id, i, err);
	return code;
}

/* ---- Arguments ------------------------------------------------------------------------------ */

static enum ibid_code read_source(struct posting *posting, sqlite3_value *value,
                                  struct ibid_err *err)
{
	struct lite_tx *tx = posting->tx;
	char id[UUID_TEXT_SIZE];
	if (sqlite3_value_type(value) == SQLITE_NULL) {
		uuid_write(tx->context.command_id, id);
		posting->source = arena_strdup(&tx->arena, id);
		return posting->source ? IBID_OK : err_set(err, IBID_NOMEM, "out of memory");
	}
	posting->source = lite_work_text(value);
	return lite_work_name(tx, value, "source", "BAD_SOURCE", err);
}

static enum ibid_code read_rest(struct posting *posting, struct lite_work_args args,
                                struct ibid_err *err)
{
	if (args.count > 2 && sqlite3_value_type(args.values[2]) != SQLITE_NULL) {
		posting->date = lite_work_text(args.values[2]);
		if (!posting->date || !date_ok(posting->date, strlen(posting->date)))
			return err_set(err, IBID_FAILED, "ibid_post: the posting date is YYYY-MM-DD or null");
	}
	if (args.count > 3 && sqlite3_value_type(args.values[3]) != SQLITE_NULL) {
		posting->description = lite_work_text(args.values[3]);
		if (sqlite3_value_bytes(args.values[3]) > DESCRIPTION_BYTES_MAX)
			return lite_tx_reject(posting->tx, "BAD_DESCRIPTION", 422,
			                      "the description is longer than 1024 bytes", err);
		return lite_work_check(args.values[3], "ibid_post: the description", err);
	}
	return IBID_OK;
}

enum ibid_code lite_post(struct lite_tx *tx, struct lite_work_args args, struct str *answer,
                         struct ibid_err *err)
{
	struct posting posting = {.tx = tx};
	struct uuid id;
	char text[UUID_TEXT_SIZE];
	enum ibid_code code = read_source(&posting, args.values[0], err);
	if (!code)
		code = read_rest(&posting, args, err);
	if (!code)
		code = read_lines(&posting, args.values[1], err);
	if (!code)
		code = balance_all(&posting, err);
	if (!code)
		code = append(&posting, &id, err);
	if (code)
		return code;
	uuid_write(id, text);
	str_adds(answer, text);
	return IBID_OK;
}
