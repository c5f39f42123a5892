-- delivery_hold_delete: ?1 tenant, ?2 event id, ?3 destination
-- What a person decided stays, also where it arrived all the same.
delete from ibid_delivery_hold
where tenant = ?1 and event_id = ?2 and destination = ?3 and state not in ('SKIPPED', 'CANCELLED')
