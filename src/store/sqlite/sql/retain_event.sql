-- retain_event: ?1 older than this (us), ?2 rows at most
-- From the oldest on. The newest stays: its number must not be given again, or a relay that has read so far
-- passes over the event that gets it. What stands in a hold stays, too: it did not arrive yet (I8).
delete from ibid_event
where seq in (
    select e.seq from ibid_event as e
    where not exists (select 1 from ibid_delivery_hold as h where h.tenant = e.tenant and h.event_id = e.id)
    order by e.seq limit ?2)
  and created_us < ?1 and seq < (select max(seq) from ibid_event)
