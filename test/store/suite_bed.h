/* SPDX-License-Identifier: Apache-2.0 */
/* suite_bed.h -- a store for one test, and what tests of several files do with it. */
#ifndef TEST_STORE_SUITE_BED_H
#define TEST_STORE_SUITE_BED_H

#include "store/suite.h"

#include "store/outbox.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

/* The one whose tests run. */
extern const struct suite_backend *backend;

/* ---- suite_bed.c ----------------------------------------------------------------------------- */

enum value {
	V_TENANT,
	V_REFERENCE,
	V_CUSTOMER,
	V_STATE,
	V_TEXT,
	V_TYPE,
	V_KEY,
	V_COMMAND_ID,
	V_UUID,
	V_NOW,
	V_INSTANT,
	V_INTEGER,
	V_VERSION,
	V_DECIMAL,
	V_BOOLEAN,
	V_DATE,
	V_JSON,
	V_COUNT
};

extern const struct param_spec params[V_COUNT];

struct bed {
	struct store *store;
	const struct store_ops *ops;
	struct arena arena;
	struct ibid_err err;
	struct script *scripts[SUITE_SQL_COUNT];
};

extern const int64_t now_us;
struct bed *bed_of(void **state);
void check(struct bed *bed, enum ibid_code code);
int open_empty(void **state);
int open_ready(void **state);
int close_bed(void **state);
void be_patient(struct bed *bed); /* from here on its store waits with SUITE_PATIENT_MS */
struct uuid make_id(unsigned n);
const char *id_text(struct bed *bed, struct uuid id);
struct identity identity_of(const char *key);
extern const char traceparent[];
struct work_context context_of(unsigned n);
struct claim claim(struct bed *bed, const char *key, unsigned n);
struct tx *claim_free(struct bed *bed, const char *key, unsigned n);
struct command_row completed(const char *key, unsigned n);
struct command_row failed(const char *key, unsigned n);
struct audit_row audit_of(const struct command_row *row);
struct event_row event_of(unsigned n, int ordinal, int64_t version);
enum ibid_code end_with(struct bed *bed, struct tx **tx, enum ibid_code said, struct outcome *ret);
enum ibid_code end(struct bed *bed, struct tx **tx);
void complete_row(struct bed *bed, struct tx **tx, const struct command_row *row,
                  const struct command_row *previous);
void complete(struct bed *bed, const char *key, unsigned n);
void assert_text(const char *got, const char *expected);
void assert_row(const struct command_row *got, const struct command_row *expected);
int64_t count(enum suite_sql sql);
void assert_counts(int64_t commands, int64_t events, int64_t audit);
const struct script *script_of(struct bed *bed, enum suite_sql sql);
void set_values(struct bed *bed, unsigned n, const char *values[V_COUNT]);
enum ibid_code run(struct bed *bed, struct tx *tx, enum suite_sql sql, const char *const *values,
                   struct outcome *ret);
enum ibid_code pay(struct bed *bed, const char *key, unsigned n, const char *reference,
                   const char *state, struct outcome *ret);
const char *canonical(struct bed *bed, const char *json);

/* ---- suite_claim.c --------------------------------------------------------------------------- */

void assert_busy(struct bed *bed, struct store *store, const char *key);

/* ---- suite_write.c --------------------------------------------------------------------------- */

extern const int64_t hour_us;
void stage(struct bed *bed, const char *key, unsigned n, int64_t token, int64_t lease_us);

/* ---- suite_event.c --------------------------------------------------------------------------- */

enum ibid_code put_events(struct bed *bed, const char *key, unsigned n,
                          const struct event_row *events, size_t events_count, struct outcome *ret);

/* ---- suite_exception.c ----------------------------------------------------------------------- */

struct exception_row exception_of(unsigned n, const char *subject_id);
void assert_exception(const struct exception_row *got, const struct exception_row *expected);
enum ibid_code open_exception(struct bed *bed, const struct exception_row *row);
enum ibid_code get_exception(struct bed *bed, const char *tenant, unsigned n,
                             struct exception_row *ret);
size_t list_exceptions(struct bed *bed, const struct exception_filter *filter,
                       struct exception_row **ret);
enum ibid_code resolve_exception(struct bed *bed, const struct exception_end *how, bool commits);

/* ---- suite_action.c -------------------------------------------------------------------------- */

struct tx *begin_action(struct bed *bed);

/* ---- suite_outbox.c -------------------------------------------------------------------------- */

void lease_all(struct bed *bed, const char *destination, const char *relay,
               struct lane_lease ret[OUTBOX_LANES]);
enum ibid_code settle(struct bed *bed, const struct lane_lease *lane,
                      struct lane_settlement settlement);
struct lane_batch read_lane(struct bed *bed, const struct lane_lease *lane, const char *cursor,
                            size_t limit);
struct lane_batch read_doubtful(struct bed *bed, const struct lane_lease *lane, const char *cursor);
const struct lane_lease *lane_of(struct bed *bed, const struct lane_lease *lanes,
                                 const char *aggregate_id);
size_t list_held(struct bed *bed, const struct lane_lease *lane, struct held_event **ret);
size_t list_deliveries(struct bed *bed, const char *tenant, struct uuid event_id,
                       struct delivery_row **ret);
struct delivery_row delivery_of(const struct event_row *event);
struct hold_row hold_of(const struct event_row *event, enum hold_state state);
void assert_event(struct bed *bed, const struct event_row *got, const struct event_row *expected);

/* ---- suite_hold.c ---------------------------------------------------------------------------- */

void send_many(struct bed *bed, unsigned n, size_t count, const char *aggregate_id,
               const char *headers);
extern const char to_both[];
enum ibid_code decide_hold(struct bed *bed, const char *destination, const struct event_row *event,
                           enum hold_state from, enum hold_state to);

#endif
