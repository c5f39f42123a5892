-- sqlite_fill_events: no parameters
insert into ibid_event (id, aggregatetype, aggregateid, type, payload, tenant, version, key, command_id,
  ordinal, partition_key, created_us)
select substr(id, 1, 32) || '0001', 'payment', id, 'PaymentCreated', '{"amount":12.5,"currency":"EUR"}', 'acme',
  1, id || ':1', id, 1, id, at_us
from temp.batch
