/* SPDX-License-Identifier: Apache-2.0 */
/* suite_adopt.c -- commands in a transaction of the caller's. */
#include "store/suite_bed.h"
#include "store/suite_tests.h"

#include <string.h>

/* As the contract below makes it. */
static struct identity adopted_identity(const char *key)
{
	return (struct identity){"acme", "create-payment", "[\"web\"]", key};
}

/* Where an engine decides by itself, it reads this. */
static void keep_contract(struct bed *bed)
{
	static const char text[] =
	    "{\"answer\":{\"store\":\"full\"},\"command\":\"create-payment\",\"emits\":["
	    "\"PaymentCreated\"],\"fact\":\"a payment order is accepted\",\"failures\":{\"business\":"
	    "\"final\",\"server\":\"retry\",\"validation\":\"final\"},\"fields\":{},\"key\":{"
	    "\"after_expiry\":\"refuse\",\"from\":\"header\",\"retain\":\"1d\",\"scope\":[\"client\"]},"
	    "\"same_payload\":{\"context\":[]},\"unknown_fields\":\"keep\",\"version\":3}";
	check(bed, store_put_contract(bed->store,
	                              &(struct contract_row){.kind = "command",
	                                                     .name = "create-payment",
	                                                     .version = 3,
	                                                     .digest = sha256(text, strlen(text)),
	                                                     .text = text,
	                                                     .at_us = now_us},
	                              &bed->err));
}

/* What the ledger would say, where the engine does not decide. */
static enum ibid_code plan_by_state(void *user, const struct command_row *found, struct plan *ret,
                                    struct ibid_err *err)
{
	(void)err;
	ret->verdict = found ? VERDICT_REPLAY : VERDICT_RUN;
	ret->row = *(const struct command_row *)user;
	return IBID_OK;
}

static struct begun begin_adopted(struct bed *bed, struct tx *tx, const char *key, unsigned n)
{
	struct command_row row = completed(key, n);
	struct begun begun;
	row.identity = adopted_identity(key);
	row.state = COMMAND_IN_PROGRESS;
	row.audit_id = (struct uuid){{0}};
	row.body = NULL;
	struct beginning beginning = {
	    .identity = row.identity,
	    .payload = "{\"amount\":12.5}",
	    .contract_version = 3,
	    .client = "web",
	    .actor = "u7",
	    .correlation_id = "corr-1",
	    .plan = plan_by_state,
	    .user = &row,
	};
	check(bed, bed->ops->begin_adopted(tx, &bed->arena, &beginning, &begun, &bed->err));
	return begun;
}

static enum ibid_code finish_adopted(struct bed *bed, struct tx *tx, const struct begun *begun,
                                     int64_t version)
{
	struct command_row row = completed(begun->row.identity.key, 1);
	row.identity = begun->row.identity;
	row.id = row.audit_id = begun->row.id;
	struct audit_row audit = audit_of(&row);
	struct event_row event = event_of(1, 1, version);
	struct outcome outcome = {
	    .status = row.status,
	    .body = row.body,
	    .body_size = row.body_size,
	    .resource_type = row.resource_type,
	    .resource_id = row.resource_id,
	    .found = true,
	};
	event.command_id = row.id;
	struct finishing ending = {
	    .row = &row,
	    .previous = &begun->row,
	    .outcome = &outcome,
	    .audit = &audit,
	    .events = &event,
	    .event_count = 1,
	};
	return bed->ops->finish_adopted(tx, &ending, &bed->err);
}

void adopted_command_is_whole_in_the_callers_commit(void **state)
{
	struct bed *bed = bed_of(state);
	void *own = backend->connect();
	struct tx *tx = NULL;
	struct command_row row;
	keep_contract(bed);
	assert_true(backend->run(own, "begin"));
	check(bed, bed->ops->adopt(bed->store, own, &tx, &bed->err));
	struct begun begun = begin_adopted(bed, tx, "k-1", 1);
	assert_int_equal(begun.verdict, VERDICT_RUN);
	assert_int_equal(begun.row.state, COMMAND_IN_PROGRESS);
	assert_counts(0, 0, 0);
	check(bed, finish_adopted(bed, tx, &begun, 1));
	assert_int_equal(finish_adopted(bed, tx, &begun, 2), IBID_MISUSE); /* once */
	assert_int_equal(begin_adopted(bed, tx, "k-1", 2).verdict, VERDICT_REPLAY);
	bed->ops->release_adopted(&tx);
	assert_null(tx);
	bed->ops->release_adopted(&tx);
	assert_true(backend->run(own, "commit"));
	assert_counts(1, 1, 1);
	check(bed,
	      store_get_command(bed->store, &bed->arena, "acme", &begun.row.id, NULL, &row, &bed->err));
	assert_int_equal(row.state, COMMAND_COMPLETED);
	assert_text(row.body, "{\"id\":\"p-1\"}");
	assert_text(row.resource_id, "p-1");
	assert_memory_equal(&row.audit_id, &begun.row.id, sizeof row.audit_id);
	assert_true(backend->run(own, "begin"));
	check(bed, bed->ops->adopt(bed->store, own, &tx, &bed->err));
	begun = begin_adopted(bed, tx, "k-1", 3);
	assert_int_equal(begun.verdict, VERDICT_REPLAY);
	assert_text(begun.row.body, "{\"id\":\"p-1\"}");
	bed->ops->release_adopted(&tx);
	assert_true(backend->run(own, "commit"));
	backend->disconnect(own);
}

void adopted_command_that_is_unfinished_can_not_be_committed(void **state)
{
	struct bed *bed = bed_of(state);
	void *own = backend->connect();
	struct tx *tx = NULL;
	keep_contract(bed);
	for (int refused_event = 0; refused_event < 2; refused_event++) {
		assert_true(backend->run(own, "begin"));
		check(bed, bed->ops->adopt(bed->store, own, &tx, &bed->err));
		struct begun begun = begin_adopted(bed, tx, "k-1", 1);
		if (refused_event) {
			assert_int_equal(finish_adopted(bed, tx, &begun, 7), IBID_FAILED);
			assert_non_null(strstr(bed->err.text, "VERSION_CONFLICT"));
		}
		bed->ops->release_adopted(&tx);
		assert_false(backend->run(own, "commit"));
		(void)backend->run(own, "rollback");
		assert_counts(0, 0, 0);
	}
	backend->disconnect(own);
}

void connection_without_a_transaction_is_not_adopted(void **state)
{
	struct bed *bed = bed_of(state);
	void *own = backend->connect();
	struct tx *tx = NULL;
	assert_int_equal(bed->ops->adopt(bed->store, own, &tx, &bed->err), IBID_MISUSE);
	assert_int_equal(bed->ops->adopt(bed->store, NULL, &tx, &bed->err), IBID_MISUSE);
	assert_null(tx);
	backend->disconnect(own);
}
