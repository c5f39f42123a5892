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
	char id[UUID_TEXT_SIZE]; /* its key, where ibid protects it */
	char payer[24];
	char payload[160];
};

static void payment_of(struct payment *payment, uint64_t payer)
{
	snprintf(payment->payer, sizeof payment->payer, "DE02%018u", (unsigned)(payer % PAYERS));
	snprintf(payment->payload, sizeof payment->payload,
	         "{\"from\":\"%s\",\"to\":\"" PAYEE "\",\"amount\":12.50,\"currency\":\"" CURRENCY
	         "\"}",
	         payment->payer);
}

static void new_id(struct caller *caller, char ret[UUID_TEXT_SIZE])
{
	uuid_write(uuid_v7(caller->way->target->bench->env), ret);
}

static void new_payment(struct caller *caller, struct payment *payment)
{
	new_id(caller, payment->id);
	payment_of(payment, caller_random(caller));
}

/* ---- Without ibid --------------------------------------------------------------------------- */

static void insert_payment(struct caller *caller, const struct payment *payment)
{
	const char *values[] = {TENANT, payment->id, payment->payer, PAYEE, AMOUNT, CURRENCY};
	driver_step(caller->driver, STATEMENT_PAYMENT, values, NULL);
}

void pay_bare(struct caller *caller)
{
	struct payment payment;
	new_payment(caller, &payment);
	insert_payment(caller, &payment);
}

void pay_unprotected(struct caller *caller)
{
	struct payment payment;
	char event[UUID_TEXT_SIZE], audit[UUID_TEXT_SIZE];
	new_payment(caller, &payment);
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
	struct payment payment;
	new_payment(caller, &payment);
	submit(caller->way->target, caller->way->operation, payment.id, payment.payload, false);
}

static void payment_again(struct caller *caller, struct payment *payment)
{
	unsigned nth = (unsigned)(caller->count % PAYMENT_REPLAYS);
	snprintf(payment->id, sizeof payment->id, "again-%d-%u", caller->number, nth);
	payment_of(payment, nth);
}

void pay_again(struct caller *caller)
{
	struct payment payment;
	payment_again(caller, &payment);
	submit(caller->way->target, caller->way->operation, payment.id, payment.payload,
	       caller->count >= PAYMENT_REPLAYS);
}

void pay_with_key(struct target *target, const char *key, bool duplicate)
{
	struct payment payment;
	payment_of(&payment, 0);
	submit(target, "pay", key, payment.payload, duplicate);
}

/* ---- The SQL API ---------------------------------------------------------------------------- */

static void demand_decision(const struct answer *answer, const char *wanted)
{
	if (strcmp(answer->columns[0], wanted) != 0)
		die("ibid.command_begin", answer->columns[0]);
}

/* Two columns come back: the decision and the command's id. */
#define API_BEGIN_VALUES(caller, payment)                                                          \
	{                                                                                              \
		TENANT, (caller)->way->operation, (payment)->id, (payment)->payload, CLIENT, ACTOR         \
	}

/* What an application does when it is told to execute: the payment has the command's id. */
#define API_WORK(id, payment)                                                                      \
	const char *pay[] = {TENANT, id, (payment)->payer, PAYEE, AMOUNT, CURRENCY};                   \
	const char *emit[] = {id, event_payload};                                                      \
	const char *complete[] = {id, id}

static void api_execute(struct caller *caller, const struct payment *payment)
{
	struct answer begun;
	const char *begin[] = API_BEGIN_VALUES(caller, payment);
	driver_step(caller->driver, STATEMENT_BEGIN, NULL, NULL);
	driver_step(caller->driver, STATEMENT_API_BEGIN, begin, &begun);
	demand_decision(&begun, "execute");
	API_WORK(begun.columns[1], payment);
	driver_step(caller->driver, STATEMENT_PAYMENT, pay, NULL);
	driver_step(caller->driver, STATEMENT_API_EMIT, emit, NULL);
	driver_step(caller->driver, STATEMENT_API_COMPLETE, complete, NULL);
	driver_step(caller->driver, STATEMENT_COMMIT, NULL, NULL);
}

void pay_api(struct caller *caller)
{
	struct payment payment;
	new_payment(caller, &payment);
	api_execute(caller, &payment);
}

void pay_api_pipeline(struct caller *caller)
{
	struct payment payment;
	struct answer begun;
	new_payment(caller, &payment);
	const char *begin[] = API_BEGIN_VALUES(caller, &payment);
	const struct call first[] = {{STATEMENT_BEGIN, NULL}, {STATEMENT_API_BEGIN, begin}};
	driver_pipeline(caller->driver, first, 2, &begun);
	demand_decision(&begun, "execute");
	API_WORK(begun.columns[1], &payment);
	const struct call second[] = {{STATEMENT_PAYMENT, pay},
	                              {STATEMENT_API_EMIT, emit},
	                              {STATEMENT_API_COMPLETE, complete},
	                              {STATEMENT_COMMIT, NULL}};
	driver_pipeline(caller->driver, second, 4, NULL);
}

void pay_api_whole(struct caller *caller)
{
	struct payment payment;
	struct answer done;
	new_payment(caller, &payment);
	const char *values[] = {
	    TENANT,       caller->way->operation, payment.id, payment.payload, CLIENT,
	    ACTOR,        payment.payer,          PAYEE,      AMOUNT,          CURRENCY,
	    event_payload};
	driver_step(caller->driver, STATEMENT_API_WHOLE, values, &done);
	demand_decision(&done, "execute");
}

void pay_again_api(struct caller *caller)
{
	struct payment payment;
	struct answer begun;
	payment_again(caller, &payment);
	if (caller->count < PAYMENT_REPLAYS) {
		api_execute(caller, &payment);
		return;
	}
	const char *begin[] = API_BEGIN_VALUES(caller, &payment);
	driver_step(caller->driver, STATEMENT_BEGIN, NULL, NULL);
	driver_step(caller->driver, STATEMENT_API_BEGIN, begin, &begun);
	demand_decision(&begun, "replay");
	driver_step(caller->driver, STATEMENT_COMMIT, NULL, NULL);
}
