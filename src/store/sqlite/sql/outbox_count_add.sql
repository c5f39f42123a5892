-- outbox_count_add: ?1 lane, ?2 behind this seq, ?3 up to this
-- By headers first: there are as many as there are contracts of events.
insert into ibid_outbox_count (destination, lane, written, behind, passed)
select d.value, ?1, sum(h.events), 0, 0
from (
  select headers, count(*) as events from ibid_event
  where lane = ?1 and topic is not null and seq > ?2 and seq <= ?3
  group by headers) as h,
  json_each('["' || replace(json_extract(h.headers, '$.deliver_to'), ',', '","') || '"]') as d
where true
group by d.value
on conflict do update set written = written + excluded.written
