/* SPDX-License-Identifier: Apache-2.0 */
/* How fast a Kafka destination is, and what it costs: `tools/with-kafka
 * build/test/broker/speed-kafka`. Asserts nothing about time. */
#include "kafka_bed.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RECORDS = 100000, PAYLOAD = 300 };

static long resident_kb(void)
{
	char line[128];
	long kb = 0;
	FILE *file = fopen("/proc/self/status", "r");
	while (fgets(line, sizeof line, file))
		if (strncmp(line, "VmRSS:", 6) == 0)
			kb = strtol(line + 6, NULL, 10);
	fclose(file);
	return kb;
}

struct lane {
	pthread_t thread;
	struct channel *channel;
	struct record *records;
	size_t batch, count;
};

static void *run(void *user)
{
	struct lane *lane = user;
	for (size_t done = 0; done < lane->count; done += lane->batch)
		if (bed_publish(lane->channel, lane->records, lane->batch))
			abort();
	return NULL;
}

static void measure(const char *mode, size_t lanes_count, size_t batch, int partitions)
{
	char topic[NAME_SIZE], name[32];
	const char *const more[] = {"mode", mode, NULL};
	struct lane lanes[8] = {0};
	bed_topic(topic, "speed", partitions, NULL);
	for (size_t i = 0; i < lanes_count; i++) {
		lanes[i] = (struct lane){.records = bed_records(topic, 0, batch, 500),
		                         .batch = batch,
		                         .count = RECORDS / lanes_count};
		for (size_t r = 0; r < batch; r++)
			bed_payload(&lanes[i].records[r], PAYLOAD);
	}
	long before_kb = resident_kb();
	struct broker *broker = bed_broker("main", more);
	for (size_t i = 0; i < lanes_count; i++) {
		snprintf(name, sizeof name, "g%zu", i);
		lanes[i].channel = bed_channel(broker, name);
		bed_publish(lanes[i].channel, lanes[i].records, batch); /* connections, topics */
	}
	int64_t began_us = env_steady_us(env_system());
	for (size_t i = 0; i < lanes_count; i++)
		pthread_create(&lanes[i].thread, NULL, run, &lanes[i]);
	for (size_t i = 0; i < lanes_count; i++)
		pthread_join(lanes[i].thread, NULL);
	int64_t took_us = env_steady_us(env_system()) - began_us;
	printf("%-13s %zu channels, batches of %zu: %6.0f records/s, %5.1f ms a batch, %ld kB "
	       "resident, %ld of them the channels\n",
	       mode, lanes_count, batch, RECORDS * 1e6 / (double)took_us,
	       (double)took_us / 1e3 / ((double)RECORDS / (double)lanes_count / (double)batch),
	       resident_kb(), resident_kb() - before_kb);
	for (size_t i = 0; i < lanes_count; i++) {
		broker->ops->close_channel(lanes[i].channel);
		bed_records_free(lanes[i].records, batch);
	}
	broker_close(broker);
}

/* speed-kafka [MODE CHANNELS BATCH [PARTITIONS]]: one measurement in a process of its own, or all.
 */
int main(int argc, char **argv)
{
	static const char *const modes[] = {"transactional", "idempotent"};
	int partitions = argc > 4 ? atoi(argv[4]) : 6;
	if (argc >= 4) {
		measure(argv[1], strtoul(argv[2], NULL, 10), strtoul(argv[3], NULL, 10), partitions);
		return 0;
	}
	for (size_t m = 0; m < 2; m++)
		for (size_t lanes = 1; lanes <= 4; lanes += 3)
			for (size_t batch = 1000; batch <= 5000; batch += 4000)
				measure(modes[m], lanes, batch, partitions);
	return 0;
}
