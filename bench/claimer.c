/* SPDX-License-Identifier: Apache-2.0 */
#include "claimer.h"

#include "base/str.h"
#include "bench_sql.h"
#include "broker/broker.h"

#include <libpq-fe.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COLUMN_ROW, COLUMN_EVENT, COLUMN_TOPIC, COLUMN_KEY, COLUMN_PAYLOAD };
enum { ARRAY_BYTES_MAX = 1 << 20 };

struct claimer {
	const struct target *target;
	struct broker *broker;
	char name[24];
	size_t batch;
	double until;
	int64_t events;
	pthread_t thread;
};

static PGresult *run(PGconn *conn, const char *sql, int count, const char *const *values)
{
	PGresult *result = PQexecParams(conn, sql, count, NULL, values, NULL, NULL, 0);
	ExecStatusType status = PQresultStatus(result);
	if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK)
		die("claim and mark", PQerrorMessage(conn));
	return result;
}

static PGresult *claim(PGconn *conn, const struct claimer *claimer)
{
	char most[24];
	const char *values[] = {claimer->name, most};
	snprintf(most, sizeof most, "%zu", claimer->batch);
	return run(conn, sql_bench_claim, 2, values);
}

static struct record *records_of(const PGresult *claimed)
{
	size_t count = (size_t)PQntuples(claimed);
	struct record *records = calloc(count, sizeof *records);
	if (!records)
		die("claim and mark", "out of memory");
	for (size_t i = 0; i < count; i++)
		records[i] = (struct record){
		    .id = PQgetvalue(claimed, (int)i, COLUMN_EVENT),
		    .source = "/bench",
		    .type = "Noted",
		    .subject = PQgetvalue(claimed, (int)i, COLUMN_KEY),
		    .time = "2026-01-01T00:00:00Z",
		    .topic = PQgetvalue(claimed, (int)i, COLUMN_TOPIC),
		    .key = PQgetvalue(claimed, (int)i, COLUMN_KEY),
		    .payload = PQgetvalue(claimed, (int)i, COLUMN_PAYLOAD),
		    .payload_size = (size_t)PQgetlength(claimed, (int)i, COLUMN_PAYLOAD),
		    .aggregate = i, /* a claim has one event of each at most */
		};
	return records;
}

static void mark(PGconn *conn, const PGresult *claimed, const struct record *records)
{
	struct str arrays[3] = {STR_INIT(ARRAY_BYTES_MAX), STR_INIT(ARRAY_BYTES_MAX),
	                        STR_INIT(ARRAY_BYTES_MAX)};
	for (int i = 0; i < PQntuples(claimed); i++) {
		char comma = i ? ',' : '{', number[32];
		if (records[i].end != RECORD_ACKED)
			die("claim and mark", records[i].why);
		for (int a = 0; a < 3; a++)
			str_addc(&arrays[a], comma);
		str_adds(&arrays[0], PQgetvalue(claimed, i, COLUMN_ROW));
		snprintf(number, sizeof number, "%d", records[i].partition);
		str_adds(&arrays[1], number);
		snprintf(number, sizeof number, "%lld", (long long)records[i].offset);
		str_adds(&arrays[2], number);
	}
	for (int a = 0; a < 3; a++)
		str_addc(&arrays[a], '}');
	const char *values[] = {PQgetvalue(claimed, 0, COLUMN_TOPIC), str_text(&arrays[0]),
	                        str_text(&arrays[1]), str_text(&arrays[2])};
	PQclear(run(conn, sql_bench_claim_mark, 4, values));
	for (int a = 0; a < 3; a++)
		str_release(&arrays[a]);
}

static void *publish(void *user)
{
	struct claimer *claimer = user;
	const struct broker_ops *ops = claimer->broker->ops;
	struct channel *channel = NULL;
	struct ibid_err err = {0};
	PGconn *conn = PQconnectdb(claimer->target->url);
	if (PQstatus(conn) != CONNECTION_OK ||
	    ops->open_channel(claimer->broker, claimer->name, &channel, &err))
		die("claim and mark", *err.text ? err.text : PQerrorMessage(conn));
	while (bench_now(claimer->target->bench) < claimer->until) {
		PGresult *claimed = claim(conn, claimer);
		size_t count = (size_t)PQntuples(claimed);
		if (count) {
			struct record *records = records_of(claimed);
			if (ops->publish(channel, records, count, NULL, &err))
				die("claim and mark", err.text);
			mark(conn, claimed, records);
			free(records);
			claimer->events += (int64_t)count;
		}
		PQclear(claimed);
		if (!count)
			break;
	}
	ops->close_channel(channel);
	PQfinish(conn);
	return NULL;
}

struct claimed claimers_run(const struct target *target, const char *brokers, int threads,
                            size_t batch, double most_seconds)
{
	struct claimer claimers[8] = {0};
	struct claimed claimed = {0};
	struct ibid_err err = {0};
	struct broker *broker = NULL;
	const struct broker_setting settings[] = {{"brokers", brokers}, {"mode", "idempotent"}};
	if (broker_kafka_open(&(struct broker_options){.name = "claim",
	                                               .settings = settings,
	                                               .setting_count = 2,
	                                               .env = target->bench->env},
	                      &broker, &err))
		die("claim and mark", err.text);
	double began = bench_now(target->bench);
	for (int i = 0; i < threads; i++) {
		claimers[i] = (struct claimer){
		    .target = target, .broker = broker, .batch = batch, .until = began + most_seconds};
		snprintf(claimers[i].name, sizeof claimers[i].name, "claimer-%d", i);
		if (pthread_create(&claimers[i].thread, NULL, publish, &claimers[i]))
			die("claim and mark", "no thread");
	}
	for (int i = 0; i < threads; i++) {
		pthread_join(claimers[i].thread, NULL);
		claimed.events += claimers[i].events;
	}
	claimed.seconds = bench_now(target->bench) - began;
	broker_close(broker);
	return claimed;
}
