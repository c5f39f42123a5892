/* SPDX-License-Identifier: Apache-2.0 */
/* The shared suite on PostgreSQL. */
#include "store/pg_fixture.h"
#include "store/suite.h"

static const char *const sql[SUITE_SQL_COUNT] = {
    [SUITE_TABLES] =
        "create table payment (id text primary key, tenant text not null, reference text,\n"
        "	customer text, state text, amount numeric, note text);\n"
        "create table child (id text primary key,\n"
        "	payment text references payment (id) deferrable initially deferred);\n"
        "create unique index payment_reference on payment (tenant, reference);\n"
        "create unique index payment_one_active on payment (tenant, customer)\n"
        "	where state = 'ACTIVE';\n",
    [SUITE_TABLES_BROKEN] = "create table half (id text);\n"
                            "create table half (id text);\n",
    [SUITE_PAY] = "insert into payment (id, tenant, reference, customer, state, amount, note)\n"
                  "values (:command_id, :tenant, :reference, :customer, :state, :decimal, :text);\n"
                  "select ibid.emit('payment', :command_id::text, 'PaymentCreated',\n"
                  "	jsonb_build_object('amount', :decimal));\n"
                  "select 201 as status, jsonb_build_object('id', :command_id) as body,\n"
                  "	'payment' as resource_type, :command_id as resource_id;\n",
    [SUITE_REJECT] =
        "insert into payment (id, tenant, reference, customer, state, amount, note)\n"
        "values (:command_id, :tenant, :reference, :customer, :state, :decimal, :text);\n"
        "select ibid.reject('SAME_ACCOUNT', 422, 'from and to must differ');\n"
        "select 201 as status;\n",
    [SUITE_FAIL] =
        "insert into payment (id, tenant, reference, customer, state, amount, note)\n"
        "values (:command_id, :tenant, :reference, :customer, :state, :decimal, :text);\n"
        "insert into payment (id) values ('no tenant');\n"
        "select 201 as status;\n",
    [SUITE_EMIT] = "select ibid.emit('payment', :reference, :type, :json, :version, key => :key);\n"
                   "select 200 as status;\n",
    [SUITE_LINK] = "select ibid.link_reference(:state, :reference, :type, :customer);\n"
                   "select 200 as status;\n",
    [SUITE_ECHO] =
        "select 200 as status, jsonb_build_object('text', :text,\n"
        "	'integer', :integer::text, 'decimal', :decimal::text, 'boolean', :boolean::text,\n"
        "	'date', :date::text, 'instant', to_char(:instant at time zone 'UTC',\n"
        "	'YYYY-MM-DD\"T\"HH24:MI:SS.US\"Z\"'), 'json', :json, 'uuid', :uuid) as body;\n",
    [SUITE_NOTHING] = "update payment set note = :text where id = '-';\n",
    [SUITE_TWO_ROWS] =
        "select status from (values (1, 200), (2, 202)) as v (n, status) order by n;\n",
    [SUITE_STRANGE_COLUMN] = "select 200 as status, 1 as colour;\n",
    [SUITE_NO_STATUS] = "select '{}' as body;\n",
    [SUITE_FIND] = "select 200 as status, 'payment' as resource_type, id as resource_id\n"
                   "from payment where reference = :reference;\n",
    [SUITE_DEFERRED] = "insert into child (id, payment) values (:text, 'missing');\n"
                       "select 201 as status;\n",
    [SUITE_COMMIT] = "select 1;\ncommit;\nselect 200 as status;\n",
    [SUITE_UNKNOWN_PARAM] = "select :nobody as status;\n",
    [SUITE_EDIT_EVENT] = "update ibid.event set payload = '{}'",
    [SUITE_DELETE_EVENT] = "delete from ibid.event",
    [SUITE_EDIT_AUDIT] = "update ibid.audit set fact = ''",
    [SUITE_DELETE_AUDIT] = "delete from ibid.audit",
    [SUITE_EDIT_DELIVERY] = "update ibid.delivery set place = 'elsewhere'",
    [SUITE_DELETE_DELIVERY] = "delete from ibid.delivery",
    [SUITE_ODD_TIMES] = "set session_replication_role = replica;\n"
                        "update ibid.event set created_at = case version when 1 then 'infinity'\n"
                        "  when 2 then '-infinity' when 3 then '294276-12-31' else created_at end",
    [SUITE_RESOLVE_EXCEPTIONS] =
        "update ibid.exception set state = 'RESOLVED', "
        "resolved_at = '2025-11-15 09:46:40.123456+00', "
        "resolution = 'confirm-executed', resolved_by = 'ann', note = 'seen on the statement'",
    [SUITE_SCHEMA_NEXT] = "insert into ibid.schema_version (version, name)\n"
                          "select max(version) + 1, 'next' from ibid.schema_version",
    [SUITE_SCHEMA_NEWER] = "insert into ibid.schema_version (version, name)\n"
                           "select max(version) + 1, 'newer' from ibid.schema_version",
    [SUITE_COUNT_COMMANDS] = "select count(*) from ibid.command",
    [SUITE_COUNT_EVENTS] = "select count(*) from ibid.event",
    [SUITE_COUNT_AUDIT] = "select count(*) from ibid.audit",
};

static struct store *again(void)
{
	return fixture_store(fixture_own_url(), 16, SUITE_BUSY_MS);
}

static struct store *patient(void)
{
	return fixture_store(fixture_own_url(), 16, SUITE_PATIENT_MS);
}

static struct store *fresh(void)
{
	fixture_database();
	return again();
}

static struct store *migrated(void)
{
	store_close(fixture_fresh());
	return again();
}

static void *connect_own(void)
{
	return fixture_connect(fixture_own_url());
}

static bool run_own(void *link, const char *text)
{
	PGresult *result = PQexec(link, text);
	ExecStatusType status = PQresultStatus(result);
	PQclear(result);
	return status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK;
}

static void disconnect_own(void *link)
{
	PQfinish(link);
}

int main(void)
{
	static const struct suite_backend backend = {
	    .fresh = fresh,
	    .migrated = migrated,
	    .again = again,
	    .patient = patient,
	    .exec = fixture_exec,
	    .number = fixture_number,
	    .sql = sql,
	    .connect = connect_own,
	    .run = run_own,
	    .disconnect = disconnect_own,
	};
	fixture_start();
	int failed = suite_run("postgres", &backend);
	fixture_stop();
	return failed;
}
