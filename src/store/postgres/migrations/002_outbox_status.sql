-- 002_outbox_status: the state of every event at each of its destinations.
--
--   PENDING    it is not sent yet; a person released it; or it waits for an event before it in its aggregate (waits_for)
--   CLAIMED    a relay holds its lane now, and sends it
--   PUBLISHED  it arrived: there is evidence
--   FAILED     it is tried again at next_at
--   PARKED     a person decides
-- and a person's decision about a held event by its own name, such as SKIPPED.
--
-- One part for each state, so that the planner leaves out the parts that a filter on the state excludes: failed events are
-- found in the hold, which is small, and not among all events.
--
-- A function does the work, because a view reads with the rights of its owner, to which row-level security does not apply.
-- The function runs with the rights of the querying role; it has no search_path of its own, so that the planner inlines it.
create function ibid.outbox_states() returns table (tenant text, event_id uuid, event_key text, type text,
	aggregate_type text, aggregate_id text, version bigint, topic text, destination text, state text, attempts int,
	failure text, reason text, why text, waits_for bigint, next_at timestamptz, since timestamptz, relay text, place text,
	"partition" int, "position" bigint, published_at timestamptz, created_at timestamptz)
language sql stable as $$
	select e.tenant, e.id, e.key, e.type, e.aggregatetype, e.aggregateid, e.version, e.topic, h.destination,
		case when h.state in ('WAITS', 'RELEASED') then 'PENDING' else h.state end, h.attempts,
		case when h.state <> 'WAITS' then h.failure end,
		case when h.state = 'WAITS' and b.version is not null then 'PREDECESSOR_HELD' else h.reason end,
		case when h.state <> 'WAITS' then h.why
			when b.version is not null then
				format('it waits for version %s of its aggregate, which is %s', b.version, b.state)
			when h.reason is not null then 'the event before it in its aggregate has yet to be read' end,
		case when h.state = 'WAITS' then b.version end, h.next_at, h.since, null::text, null::text, null::int,
		null::bigint, null::timestamptz, e.created_at
	from ibid.event as e -- by way of the names, so that one event's are found without reading all that is held
	cross join lateral unnest(string_to_array(e.headers::json ->> 'deliver_to', ',')) as n(name)
	join ibid.delivery_hold as h on h.destination = n.name and h.tenant = e.tenant and h.event_id = e.id
	left join lateral ( -- the nearest before it that does not wait itself
		select p.version, p.state from ibid.delivery_hold as p
		where p.destination = h.destination and p.lane = h.lane and p.tenant = h.tenant
			and p.aggregatetype = h.aggregatetype and p.aggregateid = h.aggregateid and p.version < h.version
			and p.state in ('FAILED', 'PARKED', 'RELEASED')
		order by p.version desc limit 1) as b on h.state = 'WAITS'
	where e.topic is not null
		and not exists (select from ibid.delivery as d
			where d.tenant = h.tenant and d.event_id = h.event_id and d.destination = h.destination)
	union all
	select e.tenant, e.id, e.key, e.type, e.aggregatetype, e.aggregateid, e.version, e.topic, n.name,
		'PUBLISHED', 0, null, null, null, null, null, null, null, d.place, d.partition, d.position, d.at, e.created_at
	from ibid.event as e
	cross join lateral unnest(string_to_array(e.headers::json ->> 'deliver_to', ',')) as n(name)
	cross join lateral (select d.place, d.partition, d.position, d.at from ibid.delivery as d
		where d.tenant = e.tenant and d.event_id = e.id and d.destination = n.name
		order by d.at, d.token limit 1) as d
	where e.topic is not null
	union all
	select e.tenant, e.id, e.key, e.type, e.aggregatetype, e.aggregateid, e.version, e.topic, n.name,
		'CLAIMED', 0, null, null, null, null, null, null, l.relay, null, null, null, null, e.created_at
	from ibid.event as e
	cross join lateral unnest(string_to_array(e.headers::json ->> 'deliver_to', ',')) as n(name)
	join ibid.relay_lane as l on l.destination = n.name and l.lane = e.lane and l.relay is not null
		and l.lease_until > statement_timestamp()
	where e.topic is not null
		and not exists (select from ibid.delivery as d
			where d.tenant = e.tenant and d.event_id = e.id and d.destination = n.name)
		and not exists (select from ibid.delivery_hold as h
			where h.destination = n.name and h.tenant = e.tenant and h.event_id = e.id)
	union all
	select e.tenant, e.id, e.key, e.type, e.aggregatetype, e.aggregateid, e.version, e.topic, n.name,
		'PENDING', 0, null, null, null, null, null, null, null, null, null, null, null, e.created_at
	from ibid.event as e
	cross join lateral unnest(string_to_array(e.headers::json ->> 'deliver_to', ',')) as n(name)
	where e.topic is not null
		and not exists (select from ibid.relay_lane as l
			where l.destination = n.name and l.lane = e.lane and l.relay is not null
				and l.lease_until > statement_timestamp())
		and not exists (select from ibid.delivery as d
			where d.tenant = e.tenant and d.event_id = e.id and d.destination = n.name)
		and not exists (select from ibid.delivery_hold as h
			where h.destination = n.name and h.tenant = e.tenant and h.event_id = e.id)
$$;
comment on function ibid.outbox_states() is 'the rows of ibid.outbox_status, with the rights of who asks';

-- A function's columns have the collation of the database: without their own, no index would be used for them.
create view ibid.outbox_status as
select s.tenant collate "C" as tenant, s.event_id, s.event_key, s.type, s.aggregate_type, s.aggregate_id, s.version, s.topic,
	s.destination collate "C" as destination, s.state collate "C" as state, s.attempts, s.failure, s.reason, s.why,
	s.waits_for, s.next_at, s.since, s.relay, s.place, s.partition, s.position, s.published_at, s.created_at
from ibid.outbox_states() as s;
comment on view ibid.outbox_status is
	'the state of every event toward every destination: PENDING, CLAIMED, PUBLISHED, FAILED, PARKED; or SKIPPED';
