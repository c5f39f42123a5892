/* SPDX-License-Identifier: Apache-2.0 */
/* Exact decimals: nothing is rounded, and everything that fits is found. */
#include "unit.h"

#include "base/decimal.h"

#include <stdio.h>
#include <string.h>

static const char *const nines = "99999999999999999999999999999999999999"; /* 38 of them */

static struct decimal read(const char *text)
{
	struct decimal value;
	struct ibid_err err;
	if (decimal_read(text, strlen(text), &value, &err))
		fail_msg("%s: %s", text, err.text);
	return value;
}

static void assert_writes(struct decimal value, const char *expected)
{
	char text[DECIMAL_TEXT_MAX];
	size_t size = decimal_write(value, text);
	assert_string_equal(text, expected);
	assert_int_equal(size, strlen(expected));
}

static void refuse(const char *text, size_t size, enum ibid_code code)
{
	struct decimal value = {42, 7};
	struct ibid_err err = {0};
	assert_int_equal(decimal_read(text, size, &value, &err), code);
	assert_int_equal(err.code, code);
	assert_true(value.units == 42 && value.scale == 7);
}

static void notations_of_one_value_read_alike(void **state)
{
	(void)state;
	static const char *const cases[][2] = {
	    {"12.50", "12.5"},
	    {"-0", "0"},
	    {"11e-1", "1.1"},
	    {"1E+3", "1000"},
	    {"0.000", "0"},
	    {"-0.0e5", "0"},
	    {"100", "100"},
	    {"1.10", "1.1"},
	    {"-3", "-3"},
	    {"0.05", "0.05"},
	    {"-0.05", "-0.05"},
	    {"5e-18", "0.000000000000000005"},
	    {"1.5e1", "15"},
	    {"120e-1", "12"},
	    {"0e999999999", "0"},
	    {"1e37", "10000000000000000000000000000000000000"},
	    {"0.100000000000000000000000000000", "0.1"},
	    {"1000000000000000000000000000000000000000e-5", "10000000000000000000000000000000000"},
	};
	for (size_t i = 0; i < COUNT(cases); i++)
		assert_writes(read(cases[i][0]), cases[i][1]);
	struct decimal value = read("12.500");
	assert_true(value.units == 125 && value.scale == 1);
}

static void the_largest_and_the_finest_are_read(void **state)
{
	(void)state;
	char text[64];
	assert_writes(read(nines), nines);
	snprintf(text, sizeof text, "-%s", nines);
	assert_writes(read(text), text);
	assert_writes(read("-99999999999999999999.999999999999999999"),
	              "-99999999999999999999.999999999999999999");
	assert_writes(read("0.000000000000000001"), "0.000000000000000001");
}

static void what_does_not_fit_is_a_limit(void **state)
{
	(void)state;
	static const char *const texts[] = {"100000000000000000000000000000000000000",
	                                    "1e38",
	                                    "1e-19",
	                                    "0.0000000000000000001",
	                                    "100000000000000000000.000000000000000001",
	                                    "1e999999999",
	                                    "1e-999999999",
	                                    "1e99999999999999999999",
	                                    "1.0000000000000000001"};
	for (size_t i = 0; i < COUNT(texts); i++)
		refuse(texts[i], strlen(texts[i]), IBID_LIMIT);
}

static void what_is_no_number_is_invalid(void **state)
{
	(void)state;
	static const char *const texts[] = {"",    "-",    "+1",  " 1",  "1 ",  "1.",  ".5",
	                                    "1e",  "1e+",  "01",  "0x1", "1,5", "NaN", "1.2.3",
	                                    "--1", "1e5.", "- 1", "inf", "1_0"};
	for (size_t i = 0; i < COUNT(texts); i++)
		refuse(texts[i], strlen(texts[i]), IBID_INVALID);
	refuse("1\0", 2, IBID_INVALID);
	refuse(NULL, 0, IBID_INVALID);
}

static void order_is_exact_at_any_scale(void **state)
{
	(void)state;
	static const char *const ascending[] = {"-99999999999999999999999999999999999999",
	                                        "-10000000000000000000",
	                                        "-1.000000000000000001",
	                                        "-1",
	                                        "-0.5",
	                                        "-0.000000000000000001",
	                                        "0",
	                                        "0.000000000000000001",
	                                        "0.5",
	                                        "0.500000000000000001",
	                                        "1",
	                                        "1.000000000000000001",
	                                        "99999999999999999999.999999999999999999",
	                                        "100000000000000000000",
	                                        "99999999999999999999999999999999999999"};
	for (int i = 0; i < (int)COUNT(ascending); i++)
		for (int k = 0; k < (int)COUNT(ascending); k++)
			assert_int_equal(decimal_cmp(read(ascending[i]), read(ascending[k])),
			                 (i > k) - (i < k));
}

typedef enum ibid_code operation(struct decimal, struct decimal, struct decimal *,
                                 struct ibid_err *);

static void assert_result(operation *op, const char *a, const char *b, const char *expected)
{
	struct decimal result = {42, 7};
	struct ibid_err err = {0};
	enum ibid_code code = op(read(a), read(b), &result, &err);
	if (expected) {
		assert_int_equal(code, IBID_OK);
		assert_writes(result, expected);
	} else {
		assert_int_equal(code, IBID_LIMIT);
		assert_int_equal(err.code, IBID_LIMIT);
		assert_true(result.units == 42 && result.scale == 7);
	}
}

static void sums_are_exact_or_refused(void **state)
{
	(void)state;
	assert_result(decimal_add, "0.1", "0.2", "0.3");
	assert_result(decimal_add, "1.25", "-0.25", "1");
	assert_result(decimal_add, "-0.7", "0.7", "0");
	assert_result(decimal_add, "-1", "0.3", "-0.7");
	assert_result(decimal_add, "1", "-0.3", "0.7");
	assert_result(decimal_add, "-0.6", "-0.6", "-1.2");
	assert_result(decimal_add, "0.999999999999999999", "0.000000000000000001", "1");
	assert_result(decimal_add, nines, "1", NULL);
	assert_result(decimal_add, nines, nines, NULL);
	assert_result(decimal_add, nines, "0.1", NULL);
	assert_result(decimal_sub, nines, nines, "0");
	assert_result(decimal_sub, "-1", nines, NULL);
	assert_result(decimal_sub, "5", "7.5", "-2.5");
	assert_result(decimal_add, "99999999999999999999.999999999999999999", "0.000000000000000001",
	              "100000000000000000000");
}

/* Aligned to one scale the first operand would have 39 digits; the result has 38. */
static void a_sum_that_fits_is_found_though_its_operand_would_not_align(void **state)
{
	(void)state;
	assert_result(decimal_sub, "100000000000000000000", "0.000000000000000001",
	              "99999999999999999999.999999999999999999");
	assert_result(decimal_add, "-100000000000000000000", "0.000000000000000001",
	              "-99999999999999999999.999999999999999999");
}

static void products_are_exact_or_refused(void **state)
{
	(void)state;
	assert_result(decimal_mul, "1.5", "-2", "-3");
	assert_result(decimal_mul, "-0.5", "-0.5", "0.25");
	assert_result(decimal_mul, "0", nines, "0");
	assert_result(decimal_mul, "100", "0.01", "1");
	assert_result(decimal_mul, "100", "100", "10000");
	assert_result(decimal_mul, "9999999999999999999", "9999999999999999999",
	              "99999999999999999980000000000000000001");
	assert_result(decimal_mul, "0.000000001", "0.000000001", "0.000000000000000001");
	assert_result(decimal_mul, "0.000000001", "0.0000000001", NULL);
	assert_result(decimal_mul, "10000000000000000000", "10000000000000000000", NULL);
	assert_result(decimal_mul, nines, nines, NULL);
	assert_result(decimal_mul, nines, "2", NULL);
}

/* 10^37 * 5 times 0.2, and finer: the plain product of the units would leave 128 bits. */
static void a_product_that_fits_is_found_though_its_units_would_not(void **state)
{
	(void)state;
	assert_result(decimal_mul, "50000000000000000000000000000000000000", "0.2",
	              "10000000000000000000000000000000000000");
	assert_result(decimal_mul, "50000000000000000000000000000000000000", "0.000000000000000002",
	              "100000000000000000000");
	assert_result(decimal_mul, "10000000000000000000000000000000000000", "0.999999999999999999",
	              "9999999999999999990000000000000000000");
	/* 2^18 / 10^18 by 5^18 / 10^18 is 10^-18 */
	assert_result(decimal_mul, "0.000000000000262144", "0.000003814697265625",
	              "0.000000000000000001");
}

/* `value` / 10^8 in plain notation, by another way than decimal.c's. */
static void oracle_write(__int128 value, char ret[64])
{
	char fraction[16];
	__int128 size = value < 0 ? -value : value;
	snprintf(fraction, sizeof fraction, "%08lld", (long long)(size % 100000000));
	size_t digits = 8;
	while (digits && fraction[digits - 1] == '0')
		fraction[--digits] = '\0';
	snprintf(ret, 64, "%s%lld%s%s", value < 0 ? "-" : "", (long long)(size / 100000000),
	         digits ? "." : "", fraction);
}

static struct decimal random_decimal(struct env_virtual *random, int64_t *ret_units)
{
	static const int64_t steps[] = {1, 10, 100, 1000, 10000};
	int64_t units = (int64_t)pick(random, 2000000) - 1000000;
	size_t scale = pick(random, 5);
	char text[32];
	snprintf(text, sizeof text, "%llde-%zu", (long long)units, scale);
	*ret_units = units * steps[4 - scale]; /* at scale 4 */
	return read(text);
}

static void arithmetic_agrees_with_integers(void **state)
{
	(void)state;
	struct env_virtual random;
	env_virtual_init(&random, 0, 10);
	for (int i = 0; i < 50000; i++) {
		int64_t a_units, b_units;
		char expected[64];
		struct decimal a = random_decimal(&random, &a_units), b = random_decimal(&random, &b_units),
		               c;
		assert_int_equal(decimal_cmp(a, b), (a_units > b_units) - (a_units < b_units));
		assert_int_equal(decimal_add(a, b, &c, NULL), IBID_OK);
		oracle_write((__int128)(a_units + b_units) * 10000, expected);
		assert_writes(c, expected);
		assert_int_equal(decimal_sub(a, b, &c, NULL), IBID_OK);
		oracle_write((__int128)(a_units - b_units) * 10000, expected);
		assert_writes(c, expected);
		assert_int_equal(decimal_mul(a, b, &c, NULL), IBID_OK);
		oracle_write((__int128)a_units * b_units, expected);
		assert_writes(c, expected);
	}
}

static void what_is_written_reads_back_the_same(void **state)
{
	(void)state;
	struct env_virtual random;
	env_virtual_init(&random, 0, 11);
	for (int i = 0; i < 20000; i++) {
		char text[64], again[DECIMAL_TEXT_MAX];
		size_t whole = 1 + pick(&random, 20), rest = pick(&random, 19), at = 0;
		for (size_t k = 0; k < whole + rest; k++) {
			if (k == whole)
				text[at++] = '.';
			text[at++] = (char)('1' + pick(&random, 9));
		}
		text[at] = '\0';
		decimal_write(read(text), again);
		assert_string_equal(again, text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(notations_of_one_value_read_alike),
	    cmocka_unit_test(the_largest_and_the_finest_are_read),
	    cmocka_unit_test(what_does_not_fit_is_a_limit),
	    cmocka_unit_test(what_is_no_number_is_invalid),
	    cmocka_unit_test(order_is_exact_at_any_scale),
	    cmocka_unit_test(sums_are_exact_or_refused),
	    cmocka_unit_test(a_sum_that_fits_is_found_though_its_operand_would_not_align),
	    cmocka_unit_test(products_are_exact_or_refused),
	    cmocka_unit_test(a_product_that_fits_is_found_though_its_units_would_not),
	    cmocka_unit_test(arithmetic_agrees_with_integers),
	    cmocka_unit_test(what_is_written_reads_back_the_same),
	};
	return cmocka_run_group_tests_name("decimal", tests, NULL, NULL);
}
