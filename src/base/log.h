/* SPDX-License-Identifier: Apache-2.0 */
/* log.h -- structured log lines: one JSON object each, passed to the program's log function.
 *
 *     LOG(log, IBID_LOG_WARN, "store.reconnect", {"attempt", log_int(2)}, {"reason",
 * log_text(why)});
 *
 * Keys and payloads are never logged; identifiers and the hash of a key may be. */
#ifndef BASE_LOG_H
#define BASE_LOG_H

#include "base/env.h"

#include <ibid.h>

struct log {
	ibid_log_fn *fn; /* NULL: silent */
	void *user;
	struct env *env;
};

struct log_value {
	enum { LOG_VALUE_TEXT, LOG_VALUE_INT } kind;
	const char *text; /* may be NULL (written as null); invalid UTF-8 is replaced */
	int64_t number;
};

struct log_field {
	const char *name;
	struct log_value value;
};

static inline struct log_value log_text(const char *text)
{
	return (struct log_value){LOG_VALUE_TEXT, text, 0};
}
static inline struct log_value log_int(int64_t n)
{
	return (struct log_value){LOG_VALUE_INT, NULL, n};
}

/* {"time":"...","level":"warn","event":"store.reconnect","attempt":2,...} */
void log_fields(const struct log *log, enum ibid_log_level level, const char *event,
                const struct log_field *fields, size_t count);

#define LOG(log, level, event, ...)                                                                \
	log_fields((log), (level), (event), (const struct log_field[]){__VA_ARGS__},                   \
	           sizeof((const struct log_field[]){__VA_ARGS__}) / sizeof(struct log_field))

#endif
