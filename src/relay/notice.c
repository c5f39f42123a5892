/* SPDX-License-Identifier: Apache-2.0 */
#include "relay/notice.h"

#include "base/instant.h"

#include <stdio.h>
#include <string.h>

enum { ADVICE_SIZE = 400 };

void notice_parked(const struct notice *notice, const struct notice_parked *parked)
{
	const struct event_row *event = parked->event;
	char id[UUID_TEXT_SIZE], item[UUID_TEXT_SIZE], advice[ADVICE_SIZE];
	uuid_write(event->id, id);
	uuid_write(parked->item, item);
	snprintf(advice, sizeof advice,
	         "look: ibid outbox show %s --tenant %s; decide: ibid outbox release %s --destination "
	         "%s --reason R, or skip, or cancel",
	         id, event->tenant, id, notice->destination);
	LOG(notice->log, IBID_LOG_WARN, "relay.parked", {"destination", log_text(notice->destination)},
	    {"eventId", log_text(id)}, {"tenant", log_text(event->tenant)},
	    {"type", log_text(event->type)}, {"aggregateType", log_text(event->aggregate_type)},
	    {"aggregateId", log_text(event->aggregate_id)}, {"version", log_int(event->version)},
	    {"attempts", log_int(parked->hold->attempts)},
	    {"failure", log_text(failure_class_name(parked->hold->failure))},
	    {"reason", log_text(parked->hold->reason)}, {"why", log_text(parked->hold->why)},
	    {"exceptionId", log_text(item)}, {"do", log_text(advice)});
}

void notice_disabled(const struct notice *notice, const struct event_row *event, const char *reason,
                     const char *why)
{
	char id[UUID_TEXT_SIZE], advice[ADVICE_SIZE];
	uuid_write(event->id, id);
	snprintf(advice, sizeof advice,
	         "mend it with whoever runs it, then: ibid resume destination %s --reason R",
	         notice->destination);
	LOG(notice->log, IBID_LOG_ERROR, "relay.disabled",
	    {"destination", log_text(notice->destination)}, {"eventId", log_text(id)},
	    {"tenant", log_text(event->tenant)}, {"type", log_text(event->type)},
	    {"reason", log_text(reason)}, {"why", log_text(why)}, {"do", log_text(advice)});
}

void notice_breaker(const struct notice *notice, const struct notice_breaker *moved)
{
	char id[UUID_TEXT_SIZE], next[INSTANT_TEXT_SIZE];
	if (moved->before == moved->after)
		return;
	uuid_write(moved->event->id, id);
	instant_write(moved->next_us, next);
	LOG(notice->log, moved->after == BREAKER_OPEN ? IBID_LOG_WARN : IBID_LOG_INFO, "relay.breaker",
	    {"destination", log_text(notice->destination)},
	    {"state", log_text(breaker_state_name(moved->after))}, {"eventId", log_text(id)},
	    {"tenant", log_text(moved->event->tenant)}, {"reason", log_text(moved->trouble)},
	    {"nextAt", log_text(moved->after == BREAKER_CLOSED ? NULL : next)});
}

/* ---- Pauses --------------------------------------------------------------------------------- */

bool notice_same_pause(const struct pause_row *one, const struct pause_row *two)
{
	return one->kind == two->kind && one->since_us == two->since_us &&
	       strcmp(one->tenant, two->tenant) == 0 && strcmp(one->name, two->name) == 0;
}

static bool is_among(const struct pause_row *row, const struct pause_row *rows, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (notice_same_pause(row, &rows[i]))
			return true;
	return false;
}

static void say_pause(const struct notice *notice, const struct pause_row *row, bool began)
{
	char since[INSTANT_TEXT_SIZE], advice[ADVICE_SIZE];
	const char *kind = pause_kind_name(row->kind);
	instant_write(row->since_us, since);
	snprintf(advice, sizeof advice, "ibid resume %s%s%s --reason R", kind, *row->name ? " " : "",
	         row->name);
	LOG(notice->log, began ? IBID_LOG_WARN : IBID_LOG_INFO,
	    began ? "relay.paused" : "relay.resumed", {"destination", log_text(notice->destination)},
	    {"kind", log_text(kind)}, {"name", log_text(*row->name ? row->name : NULL)},
	    {"tenant", log_text(*row->tenant ? row->tenant : NULL)}, {"since", log_text(since)},
	    {"by", log_text(row->by)}, {"reason", log_text(row->reason)},
	    {"do", log_text(began ? advice : NULL)});
}

void notice_pauses(const struct notice *notice, const struct pause_row *before, size_t before_count,
                   const struct pause_row *after, size_t after_count)
{
	for (size_t i = 0; i < before_count; i++)
		if (!is_among(&before[i], after, after_count))
			say_pause(notice, &before[i], false);
	for (size_t i = 0; i < after_count; i++)
		if (!is_among(&after[i], before, before_count))
			say_pause(notice, &after[i], true);
}
