-- outbox_scan_next: ?1 lane, ?2 events at most
-- Up to where it is counted, up to where it can be now, and whether there is more behind that.
with place (seq) as (
  select coalesce((select s.seq from ibid_outbox_scan as s where s.lane = ?1), 0)
), edge (seq) as (
  select (select e.seq from ibid_event as e where e.lane = ?1 and e.topic is not null and e.seq > place.seq
    order by e.seq limit 1 offset ?2 - 1)
  from place
)
select place.seq,
  coalesce(edge.seq, (select e.seq from ibid_event as e where e.lane = ?1 and e.topic is not null and e.seq > place.seq
    order by e.seq desc limit 1), place.seq),
  edge.seq is not null
from place, edge
