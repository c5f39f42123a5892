-- archive_restore_event: ?1 line
-- In its old place, which every cursor is past: it is not sent again.
insert into ibid_event (
  seq, id, aggregatetype, aggregateid, type, payload, tenant, version, key, command_id, ordinal,
  correlation_id, causation_id, traceparent, tracestate, created_us, topic, partition_key, headers, lane)
values (
  ?1 ->> 'seq', ?1 ->> 'id', ?1 ->> 'aggregatetype', ?1 ->> 'aggregateid', ?1 ->> 'type', ?1 ->> 'payload',
  ?1 ->> 'tenant', ?1 ->> 'version', ?1 ->> 'key', ?1 ->> 'command_id', ?1 ->> 'ordinal',
  ?1 ->> 'correlation_id', ?1 ->> 'causation_id', ?1 ->> 'traceparent', ?1 ->> 'tracestate',
  ?1 ->> 'created_us', ?1 ->> 'topic', ?1 ->> 'partition_key', ?1 ->> 'headers', ?1 ->> 'lane')
