-- lane_lease: $1 destination, $2 relay, $3 lease in microseconds, $4 how many lanes there are
-- Its share of the lanes, and those that it got now: one row at least. A lane that somebody settles or leases at this
-- moment is left to the next time.
with share as materialized (
	select ceil($4::numeric / count(*))::bigint as lanes from ibid.relay as r
	where r.destination = $1
		and (r.relay = $2 or r.seen_at > clock_timestamp() - $3::bigint * interval '1 microsecond')
), held as materialized (
	select count(*) as lanes from ibid.relay_lane as l
	where l.destination = $1 and l.relay = $2 and l.lease_until > clock_timestamp()
), free as materialized (
	select l.destination, l.lane from ibid.relay_lane as l
	where l.destination = $1 and (l.relay is null or l.lease_until <= clock_timestamp())
	order by l.lane
	limit (select greatest(share.lanes - held.lanes, 0) from share, held)
	for update skip locked
), leased as (
	update ibid.relay_lane as l set relay = $2, token = l.token + 1,
		lease_until = clock_timestamp() + $3::bigint * interval '1 microsecond'
	from free where l.destination = free.destination and l.lane = free.lane
	returning l.lane, l.token, l.cursor
)
select share.lanes, leased.lane, leased.token, leased.cursor from share left join leased on true order by leased.lane
