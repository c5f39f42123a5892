-- lane_put: $1 destination, $2 lane, $3 token, $4 cursor or null, $5 events that arrived since it was kept last,
--   $6 lease in microseconds: 0: as it is, -1: given up
select ibid_internal.keep_lane($1, $2, $3, $4, $5, $6)
