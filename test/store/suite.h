/* SPDX-License-Identifier: Apache-2.0 */
/* suite.h -- what every store promises, as one set of tests for all backends.
 *
 * A test knows only `struct store_ops`. What differs between engines (how to get an empty database,
 * and a few texts of SQL) comes from the backend's test program, which calls suite_run. */
#ifndef TEST_STORE_SUITE_H
#define TEST_STORE_SUITE_H

#include "store/store.h"

/* SQL in the backend's dialect. Scripts see these parameters, and no others:
 * :tenant :reference :customer :state :text :type :key text; :command_id :uuid uuid; :now :instant
 * instant; :integer :version integer; :decimal decimal; :boolean boolean; :date date; :json json.
 */
enum suite_sql {
	/* A user's schema file: tables
	 *   payment(id primary key, tenant not null, reference, customer, state, amount exact decimal,
	 * note) child(id text primary key, payment references payment(id) deferrable initially
	 * deferred) with unique index payment_reference on payment(tenant, reference) and unique index
	 * payment_one_active on payment(tenant, customer) where state = 'ACTIVE'. All columns text but
	 * amount. */
	SUITE_TABLES,
	/* Creates table half, then fails in a later statement. */
	SUITE_TABLES_BROKEN,

	/* Insert payment(:command_id, :tenant, :reference, :customer, :state, :decimal, :text), emit
	 * ('payment', command id, 'PaymentCreated', {"amount": :decimal}), answer 201 with body
	 * {"id": command id}, resource_type 'payment', resource_id the command id. */
	SUITE_PAY,
	/* Insert the same payment, reject('SAME_ACCOUNT', 422, 'from and to must differ'), answer 201.
	 */
	SUITE_REJECT,
	/* Insert the same payment, then insert one without a tenant (refused by not null), answer 201.
	 */
	SUITE_FAIL,
	/* Emit ('payment', :reference, :type, :json, :version, :key), then answer 200. */
	SUITE_EMIT,
	/* link_reference(:state, :reference, :type, :customer), then answer 200. */
	SUITE_LINK,
	/* One row: 200 as status and as body an object of strings or nulls {"text", "integer",
	 * "decimal", "boolean" (true or false), "date" (2026-11-15), "instant"
	 * (2026-11-15T09:00:00.123456Z), "json" (its value, not a string), "uuid"}, each the parameter
	 * of that name as the engine has it. */
	SUITE_ECHO,
	/* A statement without rows: update payment set note = :text where id = '-'. */
	SUITE_NOTHING,
	/* Two rows: status 200, then status 202. */
	SUITE_TWO_ROWS,
	/* One row: 200 as status, 1 as colour. */
	SUITE_STRANGE_COLUMN,
	/* One row without status: '{}' as body. */
	SUITE_NO_STATUS,
	/* 200 as status, 'payment' as resource_type, id as resource_id of the payment with :reference.
	 */
	SUITE_FIND,
	/* Insert into child(:text, 'missing'), answer 201: the violation shows at commit. */
	SUITE_DEFERRED,
	/* An allowed statement, then commit, then an answer: refused when the script is made. */
	SUITE_COMMIT,
	/* Uses :nobody: refused when the script is made. */
	SUITE_UNKNOWN_PARAM,

	/* Run by exec on a database with one event and one audit entry; each must be refused (I3). */
	SUITE_EDIT_EVENT,
	SUITE_DELETE_EVENT,
	SUITE_EDIT_AUDIT,
	SUITE_DELETE_AUDIT,
	/* The same, with evidence of a delivery. */
	SUITE_EDIT_DELIVERY,
	SUITE_DELETE_DELIVERY,
	/* Run by exec: every open exception is RESOLVED at 1763200000123456 us, by ann, with the
	 * resolution confirm-executed and the note "seen on the statement". */
	SUITE_RESOLVE_EXCEPTIONS,
	/* Run by exec: versions 1 and 3 of events have times beyond all years of four digits, version 2
	 * has one before them. */
	SUITE_ODD_TIMES,
	/* Run by exec: say that the schema is STORE_SCHEMA + 1, and STORE_SCHEMA + 2. */
	SUITE_SCHEMA_NEXT,
	SUITE_SCHEMA_NEWER,
	/* Numbers of rows. */
	SUITE_COUNT_COMMANDS,
	SUITE_COUNT_EVENTS,
	SUITE_COUNT_AUDIT,

	SUITE_SQL_COUNT
};

struct suite_backend {
	/* Open a store on a new, empty database without any schema; earlier ones are closed by then.
	 * Never NULL: fails the test itself. Options: busy_ms as below, at least 8 connections. */
	struct store *(*fresh)(void);
	/* The same, migrated. */
	struct store *(*migrated)(void);
	/* Another store on the database that the last of these made. */
	struct store *(*again)(void);
	/* The same, with SUITE_PATIENT_MS. */
	struct store *(*patient)(void);
	/* Run SQL on that database outside the store; false when the database refused it. */
	bool (*exec)(const char *sql);
	/* One number by SQL, outside the store. */
	int64_t (*number)(const char *sql);
	const char *const *sql; /* SUITE_SQL_COUNT texts */
	/* A connection of the program's own to that database, fit to be adopted, and SQL on it: false
	 * when the database refused it. */
	void *(*connect)(void);
	bool (*run)(void *connection, const char *sql);
	void (*disconnect)(void *connection);
};

/* Short, so that tests of waiting are quick. Where many write at once and nobody may be told that
 * it is busy, a loaded machine takes longer: the other one is for these. */
enum { SUITE_BUSY_MS = 1500, SUITE_PATIENT_MS = 20000 };

/* Run all tests; the number that failed. */
int suite_run(const char *name, const struct suite_backend *backend);

#endif
