-- relay_seen: $1 destination, $2 relay, $3 lease in microseconds
-- Says that it is there, and forgets those that are long gone.
with gone as (
	delete from ibid.relay as r
	where r.destination = $1 and r.relay <> $2
		and r.seen_at < clock_timestamp() - 10 * $3::bigint * interval '1 microsecond')
insert into ibid.relay as r (destination, relay, seen_at) values ($1, $2, clock_timestamp())
on conflict (destination, relay) do update set seen_at = excluded.seen_at
