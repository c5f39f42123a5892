-- outbox_get: state, destination null: all of them
-- One event toward each of its destinations, by their names.
select
{outbox}
from ibid.outbox_status as s
where s.tenant = :tenant and s.event_id = :event_id
	and (:state::text is null or s.state = :state)
	and (:destination::text is null or s.destination = :destination)
order by s.destination
