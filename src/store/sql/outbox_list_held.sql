-- outbox_list_held
-- outbox_list for a state that only what is held has: few, and found from the hold.
select
{outbox}
from ibid.outbox_status as s
where s.state = :state
	and (:tenant::text is null or s.tenant = :tenant)
	and (:destination::text is null or s.destination = :destination)
	and (:type::text is null or s.type = :type)
	and (:aggregate_type::text is null or s.aggregate_type = :aggregate_type)
	and (:aggregate_id::text is null or s.aggregate_id = :aggregate_id)
	and (:after::uuid is null or s.event_id < :after
		or (s.event_id = :after and s.destination > :after_destination::text))
order by s.event_id desc, s.destination
limit :limit
