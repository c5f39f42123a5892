/* SPDX-License-Identifier: Apache-2.0 */
#include "payment.h"

#include "base/id.h"

#include <stdio.h>
#include <string.h>

#define TENANT   "acme"
#define CLIENT   "bench"
#define ACTOR    "u7"
#define PAYEE    "DE02500105170137075030"
#define AMOUNT   "12.5"
#define CURRENCY "EUR"

static const char event_payload[] = "{\"amount\":" AMOUNT ",\"currency\":\"" CURRENCY "\"}";

struct payment {
	char id[UUID_TEXT_SIZE];  /* where ibid protects it, it gets its command's instead */
	char key[UUID_TEXT_SIZE]; /* only then */
	char payer[24];
	char payload[160];
};

static struct payment payment_by(uint64_t payer)
{
	struct payment payment = {0};
	snprintf(payment.payer, sizeof payment.payer, "DE02%018u", (unsigned)(payer % PAYERS));
	snprintf(payment.payload, sizeof payment.payload,
	         "{\"from\":\"%s\",\"to\":\"" PAYEE "\",\"amount\":12.50,\"currency\":\"" CURRENCY
	         "\"}",
	         payment.payer);
	return payment;
}

static void new_id(struct caller *caller, char ret[UUID_TEXT_SIZE])
{
	uuid_write(uuid_v7(caller->way->target->bench->env), ret);
}

/* Clients make keys, and most make them at random; ordered ones keep the index's pages warm. */
static void new_key(struct caller *caller, char ret[UUID_TEXT_SIZE])
{
	const struct bench *bench = caller->way->target->bench;
	uuid_write(bench->ordered_keys ? uuid_v7(bench->env) : uuid_v4(bench->env), ret);
}

static struct payment new_payment(struct caller *caller)
{
	struct payment payment = payment_by(caller_random(caller));
	new_id(caller, payment.id);
	new_key(caller, payment.key);
	return payment;
}

/* ---- Without ibid --------------------------------------------------------------------------- */

static void insert_payment(struct caller *caller, const struct payment *payment)
{
	const char *values[] = {TENANT, payment->id, payment->payer, PAYEE, AMOUNT, CURRENCY};
	driver_step(caller->driver, STATEMENT_PAYMENT, values, NULL);
}

void pay_bare(struct caller *caller)
{
	struct payment payment = new_payment(caller);
	insert_payment(caller, &payment);
}

void pay_unprotected(struct caller *caller)
{
	struct payment payment = new_payment(caller);
	char event[UUID_TEXT_SIZE], audit[UUID_TEXT_SIZE];
	new_id(caller, event);
	new_id(caller, audit);
	const char *events[] = {event, TENANT, payment.id, "PaymentCreated", event_payload};
	const char *audits[] = {audit, TENANT, ACTOR, "create-payment", payment.id};
	driver_step(caller->driver, STATEMENT_BEGIN, NULL, NULL);
	insert_payment(caller, &payment);
	driver_step(caller->driver, STATEMENT_EVENT, events, NULL);
	driver_step(caller->driver, STATEMENT_AUDIT, audits, NULL);
	driver_step(caller->driver, STATEMENT_COMMIT, NULL, NULL);
}

/* ---- ibid_submit ---------------------------------------------------------------------------- */

static void submit(struct target *target, const char *operation, const char *key,
                   const char *payload, bool duplicate)
{
	struct ibid_result *result = NULL;
	struct ibid_err err = {0};
	if (ibid_submit(target->ibid,
	                IBID_COMMAND(.tenant = TENANT, .client = CLIENT, .actor = ACTOR,
	                             .operation = operation, .key = key, .payload = payload),
	                &result, &err))
		die("ibid_submit", err.text);
	if (ibid_result_decision(result) != IBID_DECISION_EXECUTED ||
	    ibid_result_replayed(result) != duplicate)
		die("ibid_submit", ibid_decision_name(ibid_result_decision(result)));
	ibid_result_free(result);
}

void pay_submit(struct caller *caller)
{
	struct payment payment = new_payment(caller);
	submit(caller->way->target, caller->way->operation, payment.key, payment.payload, false);
}

static struct payment payment_again(const struct caller *caller)
{
	unsigned nth = (unsigned)(caller->count % WARM_STEPS);
	struct payment payment = payment_by(nth);
	snprintf(payment.key, sizeof payment.key, "again-%d-%u", caller->number, nth);
	return payment;
}

void pay_again(struct caller *caller)
{
	struct payment payment = payment_again(caller);
	submit(caller->way->target, caller->way->operation, payment.key, payment.payload,
	       caller->count >= WARM_STEPS);
}

void pay_with_key(struct target *target, const char *key, bool duplicate)
{
	struct payment payment = payment_by(0);
	submit(target, "pay", key, payment.payload, duplicate);
}

/* ---- The SQL API ---------------------------------------------------------------------------- */

static void demand_decision(const struct answer *answer, const char *wanted)
{
	if (strcmp(answer->columns[0], wanted) != 0)
		die("ibid.command_begin", answer->columns[0]);
}

/* What an application sends: command_begin, and once it is told to execute, the work. */
struct api_begin {
	const char *values[6];
};

static struct api_begin api_begin_of(const struct caller *caller, const struct payment *payment)
{
	return (struct api_begin){
	    {TENANT, caller->way->operation, payment->key, payment->payload, CLIENT, ACTOR}};
}

struct api_work {
	const char *pay[6], *emit[2], *complete[2];
};

/* The payment has the command's id. */
static struct api_work api_work_of(const char *id, const struct payment *payment)
{
	return (struct api_work){
	    .pay = {TENANT, id, payment->payer, PAYEE, AMOUNT, CURRENCY},
	    .emit = {id, event_payload},
	    .complete = {id, id},
	};
}

static void api_execute(struct caller *caller, const struct payment *payment)
{
	struct answer begun;
	struct api_begin begin = api_begin_of(caller, payment);
	driver_step(caller->driver, STATEMENT_BEGIN, NULL, NULL);
	driver_step(caller->driver, STATEMENT_API_BEGIN, begin.values, &begun);
	demand_decision(&begun, "execute");
	struct api_work work = api_work_of(begun.columns[1], payment);
	driver_step(caller->driver, STATEMENT_PAYMENT, work.pay, NULL);
	driver_step(caller->driver, STATEMENT_API_EMIT, work.emit, NULL);
	driver_step(caller->driver, STATEMENT_API_COMPLETE, work.complete, NULL);
	driver_step(caller->driver, STATEMENT_COMMIT, NULL, NULL);
}

void pay_api(struct caller *caller)
{
	struct payment payment = new_payment(caller);
	api_execute(caller, &payment);
}

void pay_api_pipeline(struct caller *caller)
{
	struct payment payment = new_payment(caller);
	struct answer begun;
	struct api_begin begin = api_begin_of(caller, &payment);
	const struct call first[] = {{STATEMENT_BEGIN, NULL}, {STATEMENT_API_BEGIN, begin.values}};
	driver_pipeline(caller->driver, first, 2, &begun);
	demand_decision(&begun, "execute");
	struct api_work work = api_work_of(begun.columns[1], &payment);
	const struct call second[] = {{STATEMENT_PAYMENT, work.pay},
	                              {STATEMENT_API_EMIT, work.emit},
	                              {STATEMENT_API_COMPLETE, work.complete},
	                              {STATEMENT_COMMIT, NULL}};
	driver_pipeline(caller->driver, second, 4, NULL);
}

void pay_api_whole(struct caller *caller)
{
	struct payment payment = new_payment(caller);
	struct answer done;
	const char *values[] = {
	    TENANT,       caller->way->operation, payment.key, payment.payload, CLIENT,
	    ACTOR,        payment.payer,          PAYEE,       AMOUNT,          CURRENCY,
	    event_payload};
	driver_step(caller->driver, STATEMENT_API_WHOLE, values, &done);
	demand_decision(&done, "execute");
}

void pay_again_api(struct caller *caller)
{
	struct payment payment = payment_again(caller);
	struct answer begun;
	if (caller->count < WARM_STEPS) {
		api_execute(caller, &payment);
		return;
	}
	struct api_begin begin = api_begin_of(caller, &payment);
	driver_step(caller->driver, STATEMENT_BEGIN, NULL, NULL);
	driver_step(caller->driver, STATEMENT_API_BEGIN, begin.values, &begun);
	demand_decision(&begun, "replay");
	driver_step(caller->driver, STATEMENT_COMMIT, NULL, NULL);
}
