/* SPDX-License-Identifier: Apache-2.0 */
/* kafka_library.h -- the librdkafka that this process runs with. */
#ifndef BROKER_KAFKA_LIBRARY_H
#define BROKER_KAFKA_LIBRARY_H

#include "store/store.h"

struct library kafka_library(void);
/* What to do about a version, as rd_kafka_version tells it; NULL: nothing is known against it. */
const char *kafka_library_fault(int version);
void kafka_library_check(finding_fn *fn, void *user);

#endif
