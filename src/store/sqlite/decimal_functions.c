/* SPDX-License-Identifier: Apache-2.0 */
/* decimal_functions.c -- exact decimals for SQL.
 *
 * Arguments are text or integers; NULL gives NULL. A REAL is refused, because digits may have been
 * lost before the call; nothing is rounded, and a result that does not fit is an error. They have
 * no effects, so they may also stand in views, triggers and indexes of the user's schema. */
#include "base/decimal.h"
#include "store/sqlite/functions.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { FLAGS = SQLITE_UTF8 | SQLITE_DETERMINISTIC | SQLITE_INNOCUOUS };

struct decimal_function {
	const char *name;
	/* NULL: compare */
	enum ibid_code (*calculate)(struct decimal, struct decimal, struct decimal *,
	                            struct ibid_err *);
};

static void fail(sqlite3_context *context, const char *name, const char *text)
{
	char *message = sqlite3_mprintf("%s: %s", name, text);
	if (message)
		sqlite3_result_error(context, message, -1);
	else
		sqlite3_result_error_nomem(context);
	sqlite3_free(message);
}

/* False after an error was raised. */
static bool read_argument(sqlite3_context *context, const char *name, sqlite3_value *value,
                          struct decimal *ret)
{
	struct ibid_err err;
	char integer[24];
	const char *text;
	int size;
	switch (sqlite3_value_type(value)) {
	case SQLITE_INTEGER:
		size = snprintf(integer, sizeof integer, "%" PRId64, (int64_t)sqlite3_value_int64(value));
		text = integer;
		break;
	case SQLITE_TEXT:
		text = (const char *)sqlite3_value_text(value);
		size = sqlite3_value_bytes(value);
		break;
	case SQLITE_FLOAT:
		fail(context, name, "a REAL may have lost digits already; pass the decimal as text");
		return false;
	default: fail(context, name, "not a decimal number"); return false;
	}
	if (text && !decimal_read(text, (size_t)size, ret, &err))
		return true;
	fail(context, name, text ? err.text : "out of memory");
	return false;
}

static void answer(sqlite3_context *context, struct decimal value)
{
	char text[DECIMAL_TEXT_MAX];
	int size = (int)decimal_write(value, text);
	sqlite3_result_text(context, text, size, SQLITE_TRANSIENT);
}

static void two_arguments(sqlite3_context *context, int count, sqlite3_value **values)
{
	const struct decimal_function *function = sqlite3_user_data(context);
	struct decimal a, b, result;
	struct ibid_err err;
	assert(count == 2);
	(void)count;
	if (sqlite3_value_type(values[0]) == SQLITE_NULL ||
	    sqlite3_value_type(values[1]) == SQLITE_NULL)
		return;
	if (!read_argument(context, function->name, values[0], &a) ||
	    !read_argument(context, function->name, values[1], &b))
		return;
	if (!function->calculate)
		sqlite3_result_int(context, decimal_cmp(a, b));
	else if (function->calculate(a, b, &result, &err))
		fail(context, function->name, err.text);
	else
		answer(context, result);
}

/* ---- decimal_sum: like sum, also as a window function --------------------------------------- */

struct sum {
	struct decimal total;
	int64_t count; /* of values that are not NULL */
};

/* SQLite's memory is aligned to 8 bytes, a 128-bit integer wants 16: the sum is copied in and out.
 */
static void sum_by(sqlite3_context *context, sqlite3_value *value, int64_t sign)
{
	void *kept = sqlite3_aggregate_context(context, sizeof(struct sum));
	struct decimal number;
	struct sum sum;
	struct ibid_err err;
	if (!kept) {
		sqlite3_result_error_nomem(context);
		return;
	}
	if (sqlite3_value_type(value) == SQLITE_NULL ||
	    !read_argument(context, "decimal_sum", value, &number))
		return;
	memcpy(&sum, kept, sizeof sum);
	number.units *= sign;
	if (decimal_add(sum.total, number, &sum.total, &err))
		fail(context, "decimal_sum", err.text);
	sum.count += sign;
	memcpy(kept, &sum, sizeof sum);
}

static void sum_step(sqlite3_context *context, int count, sqlite3_value **values)
{
	(void)count;
	sum_by(context, values[0], 1);
}

static void sum_inverse(sqlite3_context *context, int count, sqlite3_value **values)
{
	(void)count;
	sum_by(context, values[0], -1);
}

static void sum_value(sqlite3_context *context)
{
	const void *kept = sqlite3_aggregate_context(context, 0);
	struct sum sum = {.count = 0};
	if (kept)
		memcpy(&sum, kept, sizeof sum);
	if (sum.count)
		answer(context, sum.total);
}

int lite_functions_register(sqlite3 *db)
{
	static const struct decimal_function functions[] = {
	    {"decimal_cmp", NULL},
	    {"decimal_add", decimal_add},
	    {"decimal_sub", decimal_sub},
	    {"decimal_mul", decimal_mul},
	};
	int rc = SQLITE_OK;
	for (size_t i = 0; !rc && i < sizeof functions / sizeof functions[0]; i++)
		rc = sqlite3_create_function_v2(db, functions[i].name, 2, FLAGS, (void *)&functions[i],
		                                two_arguments, NULL, NULL, NULL);
	if (!rc)
		rc = sqlite3_create_window_function(db, "decimal_sum", 1, FLAGS, NULL, sum_step, sum_value,
		                                    sum_value, sum_inverse, NULL);
	return rc;
}
