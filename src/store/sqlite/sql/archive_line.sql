-- archive_line: ?1 line
-- The event of this line as it is in the store now, as in archive_read; and who has its place.
select
  (select json_object('tenant', e.tenant, 'id', e.id, 'key', e.key, 'command_id', e.command_id, 'ordinal', e.ordinal,
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
    from ibid_event as e where e.tenant = ?1 ->> 'tenant' and e.id = ?1 ->> 'id'),
  (select e.id from ibid_event as e where e.seq = ?1 ->> 'seq'),
  ifnull(?1 ->> 'seq' < (select max(seq) from ibid_event), 0),
  ?1 ->> 'id', ?1 ->> 'tenant'
