-- outbox_between: ?1 lane, ?2 behind this seq, ?3 up to this, ?4 destination, ?5 events at most
-- How many there are, how many are to go there, and the last one's seq.
select count(*),
  count(*) filter (where instr(',' || json_extract(headers, '$.deliver_to') || ',', ',' || ?4 || ',') > 0),
  coalesce(max(seq), ?2)
from (
  select seq, headers from ibid_event
  where lane = ?1 and topic is not null and seq > ?2 and seq <= ?3
  order by seq limit ?5)
