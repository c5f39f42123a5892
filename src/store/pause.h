/* SPDX-License-Identifier: Apache-2.0 */
/* pause.h -- what people or the relay have paused. */
#ifndef STORE_PAUSE_H
#define STORE_PAUSE_H

#include "base/err.h"
#include "store/row.h"

struct store;
struct tx;

/* What may be paused: X(symbol, name). */
#define PAUSE_KINDS(X)                                                                             \
	X(RELAY, "relay")             /* nothing is sent anywhere */                                   \
	X(DESTINATION, "destination") /* nothing is sent there */                                      \
	X(EVENT, "event")             /* events of one type of one tenant, and what follows them */
enum pause_kind {
#define PAUSE_KIND_ENUM(symbol, name) PAUSE_##symbol,
	PAUSE_KINDS(PAUSE_KIND_ENUM)
#undef PAUSE_KIND_ENUM
	    PAUSE_KIND_COUNT
};
const char *pause_kind_name(enum pause_kind kind); /* as the stores keep it */
bool pause_kind_read(const char *name, enum pause_kind *ret);

/* Who paused it: X(symbol, name). */
#define PAUSE_SOURCES(X)                                                                           \
	X(PERSON, "person")                                                                            \
	X(RELAY, "relay") /* the destination refused everything */
enum pause_source {
#define PAUSE_SOURCE_ENUM(symbol, name) PAUSE_BY_##symbol,
	PAUSE_SOURCES(PAUSE_SOURCE_ENUM)
#undef PAUSE_SOURCE_ENUM
	    PAUSE_SOURCE_COUNT
};
const char *pause_source_name(enum pause_source source);
bool pause_source_read(const char *name, enum pause_source *ret);

/* Something that does not go on until somebody says so. */
struct pause_row {
	enum pause_kind kind;
	const char *tenant; /* of an event type; "": it concerns all */
	const char *name;   /* of the destination or event type; "": the relay as a whole */
	enum pause_source source;
	const char *by, *reason; /* never empty */
	int64_t since_us;
	const char *item_tenant; /* where an exception tells about it; NULL: none does */
};

extern struct words pause_kind_words;
extern const struct row_shape pause_shape;

/* ---- Verbs ---------------------------------------------------------------------------------- */

/* Pause something, and end that: with an action, or the exception that tells about it (I1).
 * IBID_RETRY, from here or from commit: it is paused already; it is not paused. Ending looks at
 * kind, tenant and name alone. */
IBID_CHECK enum ibid_code store_put_pause(struct tx *, const struct pause_row *, struct ibid_err *);

IBID_CHECK enum ibid_code store_end_pause(struct tx *, const struct pause_row *, struct ibid_err *);

/* What concerns all and what is the tenant's own; NULL: everybody's. The relay first, then
 * destinations and event types by name. Cheap: relays ask once a second. */
IBID_CHECK enum ibid_code store_list_pauses(struct store *, struct arena *, const char *tenant,
                                            struct pause_row **ret, size_t *ret_count,
                                            struct ibid_err *);

#endif
