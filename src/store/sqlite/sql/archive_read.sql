-- archive_read: ?1 from this seq on, ?2 up to that one
-- Those that are done (see archive_undone), each with its evidence and what became of it where it did not arrive, as
-- lines of an archive.
with undone as (
  select d.seq, d.destination, 'UNPUBLISHED' as state, d.created_us
  from (
    select e.seq, e.tenant, e.id, e.created_us, named.value as destination
    from ibid_event as e
    join json_each('["' || replace(e.headers ->> 'deliver_to', ',', '","') || '"]') as named
    where e.seq between ?1 and ?2) as d
  where not exists (select 1 from ibid_delivery as v
      where v.tenant = d.tenant and v.event_id = d.id and v.destination = d.destination)
    and not exists (select 1 from ibid_delivery_hold as h
      where h.tenant = d.tenant and h.event_id = d.id and h.destination = d.destination)
  union all
  select e.seq, h.destination, h.state, e.created_us
  from ibid_event as e
  join ibid_delivery_hold as h on h.tenant = e.tenant and h.event_id = e.id
  where e.seq between ?1 and ?2 and h.state not in ('SKIPPED', 'CANCELLED'))
select e.seq, e.id,
  (select count(*) from ibid_delivery as d where d.tenant = e.tenant and d.event_id = e.id),
  json_object('tenant', e.tenant, 'id', e.id, 'key', e.key, 'command_id', e.command_id, 'ordinal', e.ordinal,
    'type', e.type, 'aggregatetype', e.aggregatetype, 'aggregateid', e.aggregateid, 'version', e.version,
    'topic', e.topic, 'partition_key', e.partition_key, 'headers', e.headers, 'payload', e.payload,
    'correlation_id', e.correlation_id, 'causation_id', e.causation_id, 'traceparent', e.traceparent,
    'tracestate', e.tracestate, 'created_us', e.created_us, 'lane', e.lane, 'seq', e.seq,
    'deliveries', json((select json_group_array(json_object('destination', d.destination, 'token', d.token,
        'at_us', d.at_us, 'place', d.place, 'partition', d.partition, 'position', d.position))
      from (select * from ibid_delivery as d where d.tenant = e.tenant and d.event_id = e.id
        order by d.destination, d.token, d.at_us) as d)),
    'holds', json((select json_group_array(json_object('destination', h.destination, 'lane', h.lane,
        'state', h.state, 'attempts', h.attempts, 'failure', h.failure, 'reason', h.reason, 'why', h.why,
        'next_us', h.next_us, 'since_us', h.since_us))
      from (select * from ibid_delivery_hold as h where h.tenant = e.tenant and h.event_id = e.id
        order by h.destination) as h)))
from ibid_event as e
where e.seq between ?1 and ?2 and e.seq not in (select seq from undone)
order by e.seq
