-- delivery_hold_delete: ?1 tenant, ?2 event id, ?3 destination
delete from ibid_delivery_hold where tenant = ?1 and event_id = ?2 and destination = ?3
