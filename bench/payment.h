/* SPDX-License-Identifier: Apache-2.0 */
/* payment.h -- the ways to make one payment: steps for rounds.h. */
#ifndef BENCH_PAYMENT_H
#define BENCH_PAYMENT_H

#include "rounds.h"

enum { PAYERS = 1000 }; /* whoever pays is one of them, at random */

/* Nothing but its row, committed by itself. */
void pay_bare(struct caller *caller);
/* Its row, and an event and an audit row of one's own, in one transaction, statement by statement.
 */
void pay_unprotected(struct caller *caller);
/* ibid_submit of a new command of the way's operation. */
void pay_submit(struct caller *caller);
/* The SQL API, as an application calls it: statement by statement, ... */
void pay_api(struct caller *caller);
/* ... with what can be sent together sent together (the work waits for the decision), ... */
void pay_api_pipeline(struct caller *caller);
/* ... and as one statement. */
void pay_api_whole(struct caller *caller);

/* ibid_submit of a command that the same caller completed before: it has WARM_STEPS of them, which
 * come again in turn. */
void pay_again(struct caller *caller);
/* The same through the SQL API: begin, command_begin, commit. */
void pay_again_api(struct caller *caller);

/* Submit a payment of payer 0 under a key; a duplicate is one that was completed before. */
void pay_with_key(struct target *target, const char *key, bool duplicate);

/* How many commands have all that belongs to one: payment, event and audit entry. */
int64_t payments_protected(struct target *target);

#endif
