-- event_list_by_command: ?1 tenant, ?2 command_id, ?3 at most
select
  id, command_id, tenant, aggregatetype, aggregateid, type, payload, version, key, ordinal,
  correlation_id, causation_id, created_us
from ibid_event
where tenant = ?1 and command_id = ?2
order by ordinal
limit ?3
