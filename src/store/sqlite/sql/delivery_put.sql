-- delivery_put: ?1 tenant, ?2 event id, ?3 destination, ?4 token, ?5 at_us, ?6 place, ?7 partition or null,
-- ?8 position or null
-- Once, also where a settlement is sent again because nobody knew whether it was done.
insert into ibid_delivery (tenant, event_id, destination, token, at_us, place, partition, position)
select ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8
where not exists (select 1 from ibid_delivery
  where tenant = ?1 and event_id = ?2 and destination = ?3 and token = ?4 and at_us = ?5)
