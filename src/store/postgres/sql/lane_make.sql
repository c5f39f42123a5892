-- lane_make: $1 destination, $2 how many lanes there are
insert into ibid.relay_lane (destination, lane, token, cursor, delivered)
select $1, lane, 0, '', 0 from generate_series(0, $2::int - 1) as lane
on conflict (destination, lane) do nothing
