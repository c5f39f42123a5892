-- outbox_passed_list: ?1 lane
-- Destinations whose relay stands elsewhere than was counted.
select c.destination, c.written, c.behind, c.passed, cast(l.cursor as integer)
from ibid_outbox_count as c
join ibid_relay_lane as l on l.destination = c.destination and l.lane = c.lane
where c.lane = ?1 and cast(l.cursor as integer) <> c.behind
