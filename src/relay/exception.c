/* SPDX-License-Identifier: Apache-2.0 */
#include "relay/exception.h"

#include "contract/event.h"
#include "desk/exception.h"

/* What its contract says of an event that stops, where it still has one. */
static const struct event_parked *parked_rule(const struct relay *relay,
                                              const struct event_row *event)
{
	const struct contracts *contracts = relay->options.contracts;
	const struct event_contract *contract = contracts ? contracts_event(contracts, event->type)
	                                                  : NULL;
	return contract ? &contract->on_parked : NULL;
}

static struct exception_row make(struct relay *relay, const struct event_parked *rule,
                                 const struct retry_stop *stop, struct exception_row about)
{
	struct env *env = relay->options.env;
	about.source = relay->options.broker->name;
	about.owner = rule ? rule->owner : "relay";
	return exception_make(&about, stop, env, env_wall_us(env), rule ? rule->sla_us : 0);
}

struct exception_row relay_parked_exception(struct relay *relay, struct arena *arena,
                                            const struct event_row *event,
                                            const struct hold_row *hold,
                                            const struct retry_stop *stop)
{
	const struct event_parked *rule = parked_rule(relay, event);
	struct retry_stop why = *stop;
	char id[UUID_TEXT_SIZE];
	uuid_write(event->id, id);
	if (rule)
		why.severity = rule->severity;
	const struct exception_row about = {
	    .tenant = event->tenant,
	    .subject_type = "delivery",
	    .subject_id = arena_printf(arena, "%s/%s", relay->options.broker->name, id),
	    .business_key = arena_printf(arena, "%s %s version %lld", event->aggregate_type,
	                                 event->aggregate_id, (long long)event->version),
	    .payload_ref = arena_printf(arena, "event:%s", id),
	    .reason = hold->reason,
	    .detail = arena_printf(arena, "%s: %s", event->type, hold->why),
	    .needs_approval = rule && rule->skip_needs_approval ? "skip,cancel" : NULL,
	    .correlation_id = event->correlation_id,
	    .trace_id = exception_trace_id(arena, event->traceparent),
	    .document_type = event->aggregate_type,
	    .document_id = event->aggregate_id,
	};
	return make(relay, rule, &why, about);
}

struct exception_row relay_paused_exception(struct relay *relay, struct arena *arena,
                                            const struct event_row *event, const char *reason,
                                            const char *why)
{
	static const struct retry_stop stop = {
	    .queue = QUEUE_DEAD_LETTER, .severity = SEVERITY_HIGH, .actions = "resume,close"};
	const char *name = relay->options.broker->name;
	const struct exception_row about = {
	    .tenant = event->tenant,
	    .subject_type = pause_kind_name(PAUSE_DESTINATION),
	    .subject_id = name,
	    .reason = reason,
	    .detail = arena_printf(arena, "destination %s is paused: %s", name, why),
	    .suggestion = arena_printf(
	        arena, "mend it with whoever runs it, then: ibid resume destination %s", name),
	};
	return make(relay, parked_rule(relay, event), &stop, about);
}
