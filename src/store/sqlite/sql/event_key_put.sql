-- event_key_put: ?1 tenant, ?2 key, ?3 event id
-- Changes nothing when the key was used before.
insert into ibid_event_key (tenant, key, event_id)
values (?1, ?2, ?3)
on conflict do nothing
