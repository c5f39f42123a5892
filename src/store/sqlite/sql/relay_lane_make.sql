-- relay_lane_make: ?1 destination, ?2 number of lanes
with recursive lanes (lane) as (
  select 0 union all select lane + 1 from lanes where lane + 1 < ?2)
insert into ibid_relay_lane (destination, lane, token, cursor, delivered)
select ?1, lane, 0, '', 0 from lanes where true
on conflict do nothing
