/* SPDX-License-Identifier: Apache-2.0 */
/* settings.h -- how a process is run: one table says what can be set, where and to what.
 *
 * A setting is given on the command line (NAME=VALUE), in the environment, in the file, or not at
 * all; the first of these wins. */
#ifndef HTTP_SETTINGS_H
#define HTTP_SETTINGS_H

#include "base/arena.h"
#include "base/err.h"
#include "base/str.h"
#include "relay/relays.h"

#include <stdint.h>

enum { DESTINATION_SETTINGS_MAX = 1000 };

struct settings {
	const char *store, *contracts, *key_file; /* NULL: not given; likewise: */
	const char *listen, *certificate, *private_key;
	const char *prefix;
	const char *open_tenant, *open_client;
	int64_t threads, connections, queue;
	int64_t body_bytes, header_bytes, memory_bytes, connections_max;
	int64_t rate;
	int64_t request_us, idle_us, drain_us;
	int64_t in_progress;
	int64_t replay_memory_us;
	const char *upstream, *upstream_other, *upstream_authorities;
	int64_t upstream_calls, upstream_connect_us, upstream_deadline_us;
	int64_t answer_bytes, pass_bytes;
	int64_t relay_lease_us, relay_batch;
	const char *relay_metrics;                /* NULL: none */
	struct destination_setting *destinations; /* below relay.destinations; each name once */
	size_t destination_count;
};

/* Read them. Texts live in `arena`. `file` may be NULL; `given` are "NAME=VALUE". IBID_INVALID
 * names the setting, where it was given and what it may be. */
IBID_CHECK enum ibid_code settings_read(struct arena *arena, const char *file,
                                        const char *const *given, size_t given_count,
                                        struct settings *ret, struct ibid_err *err);

/* What the file alone says, without defaults: for commands that run once. */
IBID_CHECK enum ibid_code settings_of_file(struct arena *arena, const char *file,
                                           struct settings *ret, struct ibid_err *err);

/* The relays that they ask for. */
struct relays_options settings_relays(const struct settings *settings, struct log log);

/* The table, for people. */
void settings_describe(struct str *out);

#endif
