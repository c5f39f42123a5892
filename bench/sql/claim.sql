-- claim: $1 who, $2 at most
-- The ordered claim of the claim-and-mark pattern: an event waits for all earlier ones of its aggregate.
with candidate as (
	select o.outbox_id
	from outbox_event o
	where o.status in ('PENDING', 'FAILED') and o.available_at <= now()
		and not exists (
			select 1 from outbox_event earlier
			where earlier.aggregate_type = o.aggregate_type and earlier.aggregate_id = o.aggregate_id
				and earlier.aggregate_version < o.aggregate_version and earlier.status <> 'PUBLISHED')
	order by o.created_at
	for update skip locked
	limit $2
)
update outbox_event o
set status = 'CLAIMED', claimed_by = $1, claimed_at = now(), attempt_count = attempt_count + 1, updated_at = now()
from candidate c
where o.outbox_id = c.outbox_id
returning o.outbox_id, o.event_id, o.topic, o.partition_key, o.payload
