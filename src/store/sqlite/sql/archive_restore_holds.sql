-- archive_restore_holds: ?1 line
insert into ibid_delivery_hold (
  tenant, event_id, aggregatetype, aggregateid, version, destination, lane, state, attempts, failure, reason, why,
  next_us, since_us)
select ?1 ->> 'tenant', ?1 ->> 'id', ?1 ->> 'aggregatetype', ?1 ->> 'aggregateid', ?1 ->> 'version',
  h.value ->> 'destination', h.value ->> 'lane', h.value ->> 'state', h.value ->> 'attempts', h.value ->> 'failure',
  h.value ->> 'reason', h.value ->> 'why', h.value ->> 'next_us', h.value ->> 'since_us'
from json_each(?1, '$.holds') as h
where true
on conflict do nothing
