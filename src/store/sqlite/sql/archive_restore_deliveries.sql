-- archive_restore_deliveries: ?1 line
insert into ibid_delivery (tenant, event_id, destination, token, at_us, place, partition, position)
select ?1 ->> 'tenant', ?1 ->> 'id', d.value ->> 'destination', d.value ->> 'token', d.value ->> 'at_us',
  d.value ->> 'place', d.value ->> 'partition', d.value ->> 'position'
from json_each(?1, '$.deliveries') as d
where not exists (select 1 from ibid_delivery as v
  where v.tenant = ?1 ->> 'tenant' and v.event_id = ?1 ->> 'id' and v.destination = d.value ->> 'destination'
    and v.token = d.value ->> 'token' and v.at_us = d.value ->> 'at_us')
