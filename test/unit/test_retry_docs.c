/* SPDX-License-Identifier: Apache-2.0 */
/* docs/retry.md holds the tables that the lists print, word for word. */
#include "unit.h"

#include "base/str.h"
#include "retry/settings.h"

#include <stdio.h>
#include <string.h>

#ifndef SOURCE_ROOT
#define SOURCE_ROOT "." /* run from the top of the source tree */
#endif

static void assert_in_page(struct str *table)
{
	static char text[1 << 16];
	FILE *file = fopen(SOURCE_ROOT "/docs/retry.md", "rb");
	assert_non_null(file);
	size_t size = fread(text, 1, sizeof text - 1, file);
	fclose(file);
	text[size] = '\0';
	assert_false(table->failed);
	if (!strstr(text, str_text(table)))
		fail_msg("docs/retry.md lacks this table:\n%s", str_text(table));
	str_release(table);
}

static struct retry_decision decide(enum failure_class failure, enum retry_unknown unknown,
                                    bool last)
{
	struct retry_settings settings;
	retry_settings_init(&settings);
	settings.policy.unknown = unknown;
	return retry_decide(&(struct retry_case){.policy = &settings.policy,
	                                         .failure = failure,
	                                         .attempt = last ? settings.policy.attempts_max : 1});
}

static void add_class(struct str *out, enum failure_class failure, const char *meaning)
{
	struct retry_decision first = decide(failure, RETRY_REPEAT, false);
	struct retry_decision last = decide(failure, RETRY_REPEAT, true);
	enum retry_move careful = decide(failure, RETRY_INQUIRE, false).move;
	str_addf(out, "| `%s` | %s | %s", failure_class_name(failure), meaning,
	         retry_move_name(first.move));
	if (careful != first.move)
		str_addf(out, ", or %s", retry_move_name(careful));
	if (last.stop)
		str_addf(out, " | `%s` in `%s` |\n", retry_reason_code(last.reason),
		         exception_queue_name(last.stop->queue));
	else
		str_adds(out, " | |\n");
}

static void the_page_lists_every_class_and_what_follows_it(void **state) /* F01 */
{
	(void)state;
	struct str table = STR_INIT(1 << 16);
	str_adds(&table, "| class | means | what follows | stops as |\n|---|---|---|---|\n");
#define ADD_CLASS(symbol, name, meaning) add_class(&table, FAILURE_##symbol, meaning);
	FAILURE_CLASSES(ADD_CLASS)
#undef ADD_CLASS
	assert_in_page(&table);
}

static void the_page_lists_every_stop_and_what_may_be_done(void **state) /* F03 */
{
	(void)state;
	struct str table = STR_INIT(1 << 16);
	str_adds(&table, "| code | means | severity | what to do | actions |\n|---|---|---|---|---|\n");
	for (unsigned i = 0; i < RETRY_REASON_COUNT; i++) {
		const struct retry_stop *stop = retry_reason_stop((enum retry_reason)i);
		if (stop)
			str_addf(&table, "| `%s` | %s | %s | %s | %s |\n",
			         retry_reason_code((enum retry_reason)i),
			         retry_reason_meaning((enum retry_reason)i),
			         exception_severity_name(stop->severity), stop->suggestion, stop->actions);
	}
	assert_in_page(&table);
}

static void the_page_lists_every_other_reason(void **state)
{
	(void)state;
	struct str table = STR_INIT(1 << 16);
	str_adds(&table, "| code | means |\n|---|---|\n");
	for (unsigned i = 0; i < RETRY_REASON_COUNT; i++)
		if (!retry_reason_stop((enum retry_reason)i))
			str_addf(&table, "| `%s` | %s |\n", retry_reason_code((enum retry_reason)i),
			         retry_reason_meaning((enum retry_reason)i));
	assert_in_page(&table);
}

static void the_page_lists_every_setting_with_its_default(void **state)
{
	(void)state;
	struct str table = STR_INIT(1 << 16);
	str_adds(&table, "| setting | default | means |\n|---|---|---|\n");
#define ADD_SETTING(name, path, default_text, meaning)                                             \
	str_addf(&table, "| `%s` | `%s` | %s |\n", path, default_text, meaning);
	RETRY_SETTINGS(ADD_SETTING)
#undef ADD_SETTING
	assert_in_page(&table);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(the_page_lists_every_class_and_what_follows_it),
	    cmocka_unit_test(the_page_lists_every_stop_and_what_may_be_done),
	    cmocka_unit_test(the_page_lists_every_other_reason),
	    cmocka_unit_test(the_page_lists_every_setting_with_its_default),
	};
	return cmocka_run_group_tests_name("retry docs", tests, NULL, NULL);
}
