-- outbox_count: $1 how many lanes there are, $2 events of each, about
-- Bring the counters forward; true: there is more to count.
select coalesce(bool_or(ibid_internal.count_lane(lane::smallint, $2)), false) from generate_series(0, $1::int - 1) as lane
