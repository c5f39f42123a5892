-- event_put: ?1 id, ?2 aggregatetype, ?3 aggregateid, ?4 type, ?5 payload, ?6 tenant, ?7 version, ?8 key,
-- ?9 command_id, ?10 ordinal, ?11 correlation_id, ?12 causation_id, ?13 traceparent, ?14 tracestate,
-- ?15 created_us, ?16 topic, ?17 partition key, ?18 headers, ?19 lane
insert into ibid_event (
  id, aggregatetype, aggregateid, type, payload, tenant, version, key, command_id, ordinal,
  correlation_id, causation_id, traceparent, tracestate, created_us, topic, partition_key, headers, lane)
values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19)
