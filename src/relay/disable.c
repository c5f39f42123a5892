/* SPDX-License-Identifier: Apache-2.0 */
#include "relay/disable.h"

#include "relay/exception.h"
#include "relay/notice.h"

static enum ibid_code write_pause(struct relay *relay, struct arena *arena,
                                  const struct refusal *refusal, struct ibid_err *err)
{
	struct store *store = relay->options.store;
	struct outcome outcome;
	struct tx *tx = NULL;
	const struct exception_row item = relay_paused_exception(relay, arena, refusal->event,
	                                                         refusal->reason, refusal->why);
	const struct pause_row pause = {
	    .kind = PAUSE_DESTINATION,
	    .tenant = "",
	    .name = item.subject_id,
	    .source = PAUSE_BY_RELAY,
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
		code = store_put_pause(tx, &pause, err);
	if (!code)
		code = store_put_exception(tx, &item, err);
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
