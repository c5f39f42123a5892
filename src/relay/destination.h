/* SPDX-License-Identifier: Apache-2.0 */
/* destination.h -- where events go, as the settings say it.
 *
 *     relay:
 *       destinations:
 *         kafka-main:
 *           kafka: { brokers: "k1:9092" }
 *           rate: 500/s
 *
 * One kind of destination each, and beside it how often it is tried (docs/retry.md). */
#ifndef RELAY_DESTINATION_H
#define RELAY_DESTINATION_H

#include "base/arena.h"
#include "broker/broker.h"
#include "retry/settings.h"

struct destination {
	const char *name;
	struct broker *broker;
	struct retry_settings retry;
};

/* One setting: "kafka-main.kafka.brokers", its value, and where it was given. */
struct destination_setting {
	const char *name, *value, *where;
};

/* Open all that the settings name, by their names; none connects. IBID_INVALID says which setting
 * is wrong. On success `*ret` lives in `arena`, and destinations_close ends it. */
IBID_CHECK enum ibid_code destinations_open(struct arena *arena,
                                            const struct destination_setting *settings,
                                            size_t setting_count, struct env *env, struct log log,
                                            struct destination **ret, size_t *ret_count,
                                            struct ibid_err *err);
void destinations_close(struct destination *destinations, size_t count);

#endif
