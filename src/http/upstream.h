/* SPDX-License-Identifier: Apache-2.0 */
/* upstream.h -- the service behind the server: where it is, how requests go there, and how its
 * answers are kept. */
#ifndef HTTP_UPSTREAM_H
#define HTTP_UPSTREAM_H

#include "http/request.h"
#include "net/calls.h"

/* Who passes without protection takes no place from commands. */
enum place_kind { PLACE_COMMAND, PLACE_PASS, PLACE_KINDS };

struct upstream {
	const struct settings *settings;
	struct calls *calls;
	const char *base;                  /* the address, without a slash at its end */
	atomic_size_t places[PLACE_KINDS]; /* that are taken */
	struct arena arena;
};

/* `*ret` stays NULL where the settings name none. IBID_INVALID. */
IBID_CHECK enum ibid_code upstream_new(const struct settings *settings, struct env *env,
                                       struct upstream **ret, struct ibid_err *err);
void upstream_free(struct upstream *upstream); /* takes NULL */

/* One of the calls of a kind that may be on their way at once. False: there is no room. */
bool upstream_take_place(struct upstream *upstream, enum place_kind kind);
void upstream_leave_place(struct upstream *upstream, enum place_kind kind);

/* May the request go on, as far as its path and what it says of its connection? False: it is
 * answered. */
bool upstream_check_request(struct request *request);

/* Its headers as they go on, into `call`. `keeps`: the answer will be kept, and must be readable by
 * all. IBID_NOMEM. */
IBID_CHECK enum ibid_code upstream_add_headers(struct request *request, bool keeps,
                                               struct call *call, struct ibid_err *err);

/* Is this header of the answer for the connection only, or made anew here? */
bool upstream_drops(const struct call *call, const char *name, size_t size);

/* An answer as the ledger keeps it, with the headers that are named: one JSON text. NULL without
 * memory. */
const char *upstream_keep(struct arena *arena, const struct call *call,
                          const struct texts *headers);

/* And back: into `answer`, in the memory of `arena`. False: it is no such text. */
bool upstream_show(struct arena *arena, const char *kept, size_t size, struct answer *answer);

#endif
