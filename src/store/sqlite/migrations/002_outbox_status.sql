-- 002_outbox_status: the state of every event at each of its destinations.
--
--   PENDING    it is not sent yet; a person released it; or it waits for an event before it in its aggregate (waits_for)
--   CLAIMED    a relay holds its lane now, and sends it
--   PUBLISHED  it arrived: there is evidence
--   FAILED     it is tried again at next_us
--   PARKED     a person decides
-- and a person's decision about a held event by its own name, such as SKIPPED.
--
-- One part for each state, so that a filter on the state leaves out the others: failed events are found in the hold, which
-- is small, and not among all events. deliver_to is read by json_each, because SQLite before 3.41 does not allow
-- json_extract in a view if the schema is not trusted, as on ibid's own connections.
create view ibid_outbox_status (tenant, event_id, event_key, type, aggregate_type, aggregate_id, version, topic,
  destination, state, attempts, failure, reason, why, waits_for, next_us, since_us, relay, place, partition, position,
  published_us, created_us) as
select e.tenant, e.id, e.key, e.type, e.aggregatetype, e.aggregateid, e.version, e.topic, h.destination,
  case when h.state in ('WAITS', 'RELEASED') then 'PENDING' else h.state end, h.attempts,
  case when h.state <> 'WAITS' then h.failure end,
  case when h.state = 'WAITS' and b.version is not null then 'PREDECESSOR_HELD' else h.reason end,
  case when h.state <> 'WAITS' then h.why
    when b.version is not null then
      'it waits for version ' || b.version || ' of its aggregate, which is ' || b.state
    when h.reason is not null then 'the event before it in its aggregate has yet to be read' end,
  b.version, h.next_us, h.since_us, null, null, null, null, null, e.created_us
from ibid_delivery_hold as h
join ibid_event as e on e.tenant = h.tenant and e.id = h.event_id
-- The nearest before it that does not wait itself.
left join ibid_delivery_hold as b on h.state = 'WAITS' and b.destination = h.destination and b.lane = h.lane
  and b.tenant = h.tenant and b.aggregatetype = h.aggregatetype and b.aggregateid = h.aggregateid
  and b.version = (select max(p.version) from ibid_delivery_hold as p
    where p.destination = h.destination and p.lane = h.lane and p.tenant = h.tenant
      and p.aggregatetype = h.aggregatetype and p.aggregateid = h.aggregateid and p.version < h.version
      and p.state in ('FAILED', 'PARKED', 'RELEASED'))
where not exists (select 1 from ibid_delivery as d
  where d.tenant = h.tenant and d.event_id = h.event_id and d.destination = h.destination)
union all
select e.tenant, e.id, e.key, e.type, e.aggregatetype, e.aggregateid, e.version, e.topic, n.value,
  'PUBLISHED', 0, null, null, null, null, null, null, null, d.place, d.partition, d.position, d.at_us, e.created_us
from ibid_event as e
join json_each(e.headers, '$.deliver_to') as w
join json_each('["' || replace(w.value, ',', '","') || '"]') as n
join ibid_delivery as d on d.tenant = e.tenant and d.event_id = e.id and d.destination = n.value
  and (d.at_us, d.token) = (select f.at_us, f.token from ibid_delivery as f
    where f.tenant = e.tenant and f.event_id = e.id and f.destination = n.value order by f.at_us, f.token limit 1)
where e.topic is not null
union all
select e.tenant, e.id, e.key, e.type, e.aggregatetype, e.aggregateid, e.version, e.topic, n.value,
  'CLAIMED', 0, null, null, null, null, null, null, l.relay, null, null, null, null, e.created_us
from ibid_event as e
join json_each(e.headers, '$.deliver_to') as w
join json_each('["' || replace(w.value, ',', '","') || '"]') as n
join ibid_relay_lane as l on l.destination = n.value and l.lane = e.lane and l.relay is not null
  and l.lease_until_us > cast((julianday('now') - 2440587.5) * 86400000000 as integer)
where e.topic is not null
  and not exists (select 1 from ibid_delivery as d
    where d.tenant = e.tenant and d.event_id = e.id and d.destination = n.value)
  and not exists (select 1 from ibid_delivery_hold as h
    where h.tenant = e.tenant and h.event_id = e.id and h.destination = n.value)
union all
select e.tenant, e.id, e.key, e.type, e.aggregatetype, e.aggregateid, e.version, e.topic, n.value,
  'PENDING', 0, null, null, null, null, null, null, null, null, null, null, null, e.created_us
from ibid_event as e
join json_each(e.headers, '$.deliver_to') as w
join json_each('["' || replace(w.value, ',', '","') || '"]') as n
where e.topic is not null
  and not exists (select 1 from ibid_relay_lane as l
    where l.destination = n.value and l.lane = e.lane and l.relay is not null
      and l.lease_until_us > cast((julianday('now') - 2440587.5) * 86400000000 as integer))
  and not exists (select 1 from ibid_delivery as d
    where d.tenant = e.tenant and d.event_id = e.id and d.destination = n.value)
  and not exists (select 1 from ibid_delivery_hold as h
    where h.tenant = e.tenant and h.event_id = e.id and h.destination = n.value);
