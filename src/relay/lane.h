/* SPDX-License-Identifier: Apache-2.0 */
/* lane.h -- one leased lane of a destination: read what is new, send it, keep what became of it. */
#ifndef RELAY_LANE_H
#define RELAY_LANE_H

#include "relay/relay.h"

/* A lane that is held. `lease` is copied. NULL without memory. */
struct relay_lane *lane_new(struct relay *relay, const struct lane_lease *lease);
void lane_free(
    struct relay_lane *lane); /* takes NULL; gives nothing up: the lease ends by itself */

/* One bounded piece of work. `*ret_wait_us`: when it wants to run again, from now. IBID_FENCED: the
 * lane is another's, in the store or at the destination: it is of no more use here. Any other
 * failure was logged, and is tried again. */
IBID_CHECK enum ibid_code lane_step(struct relay_lane *lane, int64_t *ret_wait_us,
                                    struct ibid_err *err);

/* Beside its thread, which may wait for the destination: prolong the lease, so that nobody takes
 * the lane over meanwhile; where somebody has, whoever publishes is told to stop. */
void lane_renew(struct relay_lane *lane);

/* From any thread: what is paused may have changed since it began to publish. */
void lane_interrupt(struct relay_lane *lane);

/* From any thread: whoever publishes returns soon, and nobody publishes any more. */
void lane_halt(struct relay_lane *lane);

/* Keep where it stands and give it up, so that another need not wait for the lease to end. */
void lane_give_up(struct relay_lane *lane);

int lane_number(const struct relay_lane *lane);

/* After IBID_FENCED: "broker", whose word counts where the lease was lost with a batch on its way,
 * or "store". */
const char *lane_fenced_by(const struct relay_lane *lane);

#endif
