-- archive_undone: ?1 from this seq on, ?2 up to that one
-- What keeps events from being removed, by event. Done is one that arrived, or that a person skipped or cancelled, at
-- every destination it was written for.
select d.seq, d.destination, 'UNPUBLISHED' as state, d.created_us
from (
  select e.seq, e.tenant, e.id, e.created_us, named.value as destination
  from ibid_event as e
  join json_each('["' || replace(e.headers ->> 'deliver_to', ',', '","') || '"]') as named
  where e.seq between ?1 and ?2) as d
where not exists (select 1 from ibid_delivery as v
    where v.tenant = d.tenant and v.event_id = d.id and v.destination = d.destination)
  and not exists (select 1 from ibid_delivery_hold as h
    where h.tenant = d.tenant and h.event_id = d.id and h.destination = d.destination)
union all
select e.seq, h.destination, h.state, e.created_us
from ibid_event as e
join ibid_delivery_hold as h on h.tenant = e.tenant and h.event_id = e.id
where e.seq between ?1 and ?2 and h.state not in ('SKIPPED', 'CANCELLED')
order by 1
