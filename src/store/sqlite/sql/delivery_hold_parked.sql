-- delivery_hold_parked: ?1 tenant, ?2 "destination/event id"
-- A row where it is.
select 1 from ibid_delivery_hold
where tenant = ?1 and event_id = substr(?2, -36) and destination = substr(?2, 1, length(?2) - 37) and state = 'PARKED'
