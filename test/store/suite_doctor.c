/* SPDX-License-Identifier: Apache-2.0 */
/* suite_doctor.c -- indexes and the doctor. */
#include "store/suite_bed.h"
#include "store/suite_tests.h"

#include <string.h>

static struct index_row index_of(struct bed *bed, const char *name)
{
	struct index_row row = {0};
	check(bed, bed->ops->describe_index(bed->store, &bed->arena, name, &row, &bed->err));
	return row;
}

/* A08 */
void index_is_described_as_it_is(void **state)
{
	struct bed *bed = bed_of(state);
	struct index_row row = index_of(bed, "payment_reference");
	assert_text(row.table, "payment");
	assert_text(row.columns, "tenant, reference");
	assert_true(row.unique && row.valid && !row.partial);
	row = index_of(bed, "payment_one_active");
	assert_text(row.columns, "tenant, customer");
	assert_true(row.unique && row.valid && row.partial);
	assert_true(backend->exec("create index payment_note on payment (note)"));
	row = index_of(bed, "payment_note");
	assert_text(row.columns, "note");
	assert_true(!row.unique && row.valid && !row.partial);
	static const char *const none[] = {"payment", "PAYMENT_NOTE", "payment_not", "", "'; --"};
	for (size_t i = 0; i < sizeof none / sizeof *none; i++)
		assert_int_equal(
		    bed->ops->describe_index(bed->store, &bed->arena, none[i], &row, &bed->err),
		    IBID_NOT_FOUND);
}

struct findings {
	int worst;
	bool schema_refused;
};

static void note_finding(void *user, enum finding_level level, const char *what, const char *advice)
{
	struct findings *findings = user;
	assert_non_null(what);
	assert_non_null(advice);
	if (level != FINDING_OK)
		assert_true(*advice);
	if ((int)level > findings->worst)
		findings->worst = (int)level;
	findings->schema_refused |= level == FINDING_REFUSE && strstr(what, "schema");
}

void doctor_refuses_a_store_without_schema_only(void **state)
{
	struct bed *bed = bed_of(state);
	struct findings before = {-1, false}, after = {-1, false};
	int from, to;
	check(bed, bed->ops->doctor(bed->store, note_finding, &before, &bed->err));
	assert_true(before.schema_refused);
	check(bed, bed->ops->migrate(bed->store, &from, &to, &bed->err));
	check(bed, bed->ops->doctor(bed->store, note_finding, &after, &bed->err));
	assert_in_range(after.worst, FINDING_OK, FINDING_WARN);
}
