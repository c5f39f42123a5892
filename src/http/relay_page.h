/* SPDX-License-Identifier: Apache-2.0 */
/* relay_page.h -- /metrics and /healthz of a process that relays and serves nothing else. */
#ifndef HTTP_RELAY_PAGE_H
#define HTTP_RELAY_PAGE_H

#include "base/log.h"
#include "relay/relays.h"

struct relay_page;

/* Answer at `listen`, the value of relay.metrics_listen, until relay_page_close; the relays must
 * live so long. `ret_address`: where it is asked. IBID_INVALID, IBID_UNAVAILABLE: it can't listen
 * there. */
IBID_CHECK enum ibid_code relay_page_open(const char *listen, struct relays *relays,
                                          struct env *env, struct log log, struct relay_page **ret,
                                          char ret_address[300], struct ibid_err *err);
void relay_page_close(struct relay_page *page); /* takes NULL */

#endif
