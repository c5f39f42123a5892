/* SPDX-License-Identifier: Apache-2.0 */
/* suite.c -- every verb's contract, in sentences: runs them all. */
#include "store/suite.h"

#include "store/suite_bed.h"
#include "store/suite_tests.h"

#define EMPTY(name) cmocka_unit_test_setup_teardown(name, open_empty, close_bed),
#define READY(name) cmocka_unit_test_setup_teardown(name, open_ready, close_bed),

int suite_run(const char *name, const struct suite_backend *with)
{
	static const struct CMUnitTest tests[] = {SUITE_TESTS(EMPTY, READY)};
	backend = with;
	return cmocka_run_group_tests_name(name, tests, NULL, NULL);
}
