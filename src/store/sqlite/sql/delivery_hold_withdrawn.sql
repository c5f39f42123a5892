-- delivery_hold_withdrawn: ?1 destination, ?2 lane
-- A row where something was withdrawn that the lane has yet to pass: one look into an index that is empty otherwise.
select 1 from ibid_delivery_hold
where destination = ?1 and lane = ?2 and state = 'CANCELLED' and not passed
limit 1
