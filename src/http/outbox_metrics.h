/* SPDX-License-Identifier: Apache-2.0 */
/* outbox_metrics.h -- how the outbox stands and what the relays of this process did, at /metrics.
 *
 * ibid_outbox_... is what the store says: the same from every process on it. ibid_relay_... is what
 * this process did: added up over processes it is all that was done. */
#ifndef HTTP_OUTBOX_METRICS_H
#define HTTP_OUTBOX_METRICS_H

#include "base/str.h"
#include "relay/relays.h"

struct outbox_metrics;

struct outbox_metrics *outbox_metrics_new(void);          /* NULL without memory */
void outbox_metrics_free(struct outbox_metrics *metrics); /* takes NULL */

/* Ask the store. What it said before stays where it does not answer. */
IBID_CHECK enum ibid_code outbox_metrics_measure(struct outbox_metrics *metrics,
                                                 struct store *store, struct ibid_err *err);

/* See what the present relays has counted so far; NULL: there is none. When it has ended, for good:
 * what its relays counted stays, and the next one's is added. */
void outbox_metrics_note(struct outbox_metrics *metrics, struct relays *relays);
void outbox_metrics_ended(struct outbox_metrics *metrics);

void outbox_metrics_write(struct outbox_metrics *metrics, struct str *out);

#endif
