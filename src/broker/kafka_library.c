/* SPDX-License-Identifier: Apache-2.0 */
/* kafka_library.c -- which librdkafka this is, and what is known against it. */
#include "broker/kafka_library.h"

#include <librdkafka/rdkafka.h>
#include <stdio.h>

/* As rd_kafka_version tells versions: a byte for each number, the last for pre-releases. */
enum { SAFE_OFFSETS = 0x020100ff, SAFE_SEQUENCE = 0x020300ff };

struct library kafka_library(void)
{
	return (struct library){"librdkafka", rd_kafka_version_str(), IBID_PINNED};
}

const char *kafka_library_fault(int version)
{
	if (version < SAFE_OFFSETS)
		return "upgrade to librdkafka 2.3, or build ibid without -Dsystem_libs=true: before 2.1 a "
		       "consumer that was paused, or whose group was rebalanced, may skip or repeat "
		       "offsets; "
		       "before 2.3 an idempotent producer could lose its sequence";
	if (version < SAFE_SEQUENCE)
		return "upgrade to librdkafka 2.3, or build ibid without -Dsystem_libs=true: before it an "
		       "idempotent producer could lose its sequence";
	return NULL;
}

void kafka_library_check(finding_fn *fn, void *user)
{
	struct library library = kafka_library();
	const char *fault = kafka_library_fault(rd_kafka_version());
	char what[128];
	snprintf(what, sizeof what, "Kafka library %s, %s", library.version, library_origin(&library));
	fn(user, fault ? FINDING_WARN : FINDING_OK, what, fault ? fault : "");
}
