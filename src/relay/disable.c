/* SPDX-License-Identifier: Apache-2.0 */
#include "relay/disable.h"

#include "contract/event.h"
#include "relay/notice.h"

#include <string.h>

enum { DISABLED_SLA_HOURS = 4 }; /* where the event has no contract any more */
#define HOUR_US (INT64_C(3600) * 1000000)

static const struct event_contract *contract_of(const struct relay *relay,
                                                const struct event_row *event)
{
	const struct contracts *contracts = relay->options.contracts;
	return contracts ? contracts_event(contracts, event->type) : NULL;
}

static struct exception_row exception_of(struct relay *relay, struct arena *arena,
                                         const struct refusal *refusal)
{
	const char *name = relay->options.broker->name;
	const struct event_contract *contract = contract_of(relay, refusal->event);
	int64_t now_us = env_wall_us(relay->options.env);
	return (struct exception_row){
	    .tenant = refusal->event->tenant,
	    .id = uuid_v7(relay->options.env),
	    .queue = QUEUE_DEAD_LETTER,
	    .state = EXCEPTION_OPEN,
	    .severity = SEVERITY_HIGH,
	    .subject_type = pause_kind_name(PAUSE_DESTINATION),
	    .subject_id = name,
	    .source = name,
	    .reason = refusal->reason,
	    .detail = arena_printf(arena, "destination %s is paused: %s", name, refusal->why),
	    .suggestion = arena_printf(
	        arena, "mend it with whoever runs it, then: ibid resume destination %s", name),
	    .owner = contract ? contract->on_parked.owner : "relay",
	    .actions = "resume,close",
	    .opened_us = now_us,
	    .due_us = now_us + (contract ? contract->on_parked.sla_us : DISABLED_SLA_HOURS * HOUR_US),
	};
}

static enum ibid_code write_pause(struct relay *relay, struct arena *arena,
                                  const struct refusal *refusal, struct ibid_err *err)
{
	struct store *store = relay->options.store;
	struct outcome outcome;
	struct tx *tx = NULL;
	const struct exception_row item = exception_of(relay, arena, refusal);
	const struct pause_row pause = {
	    .kind = PAUSE_DESTINATION,
	    .tenant = "",
	    .name = item.subject_id,
	    .by_relay = true,
	    .by = "relay",
	    .reason = arena_printf(arena, "%s: %s", refusal->reason, refusal->why),
	    .since_us = item.opened_us,
	    .item_tenant = item.tenant,
	};
	if (arena->failed)
		return err_set(err, IBID_NOMEM, "out of memory");
	enum ibid_code code = store->ops->begin_action(store, &tx, err);
	if (code)
		return code;
	if (refusal->knew != relay->pauses.version) /* getting here may have taken long */
		code = err_set(err, IBID_RETRY,
		               "the destination was paused or resumed by somebody else meanwhile");
	if (!code)
		code = store->ops->put_pause(tx, &pause, err);
	if (!code)
		code = store->ops->put_exception(tx, &item, err);
	if (!code)
		code = store->ops->commit(&tx, arena, &outcome, err);
	store->ops->rollback(&tx);
	return code;
}

enum ibid_code relay_disable(struct relay *relay, const struct refusal *refusal,
                             struct ibid_err *err)
{
	struct arena arena = {0};
	enum ibid_code code = write_pause(relay, &arena, refusal, err);
	arena_release(&arena);
	if (!code)
		notice_disabled(&(struct notice){&relay->options.log, relay->options.broker->name},
		                refusal->event, refusal->reason, refusal->why);
	if (code == IBID_RETRY) /* somebody has paused it already, or did so meanwhile */
		code = IBID_OK;
	return code ? code : relay_look_at_pauses(relay, err);
}
