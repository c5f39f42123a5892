-- duplicate_seen_put: ?1 tenant, ?2 command_id, ?3 at_us, ?4 client, ?5 actor, ?6 decision,
-- ?7 fingerprint
insert into ibid_duplicate_seen (tenant, command_id, at_us, client, actor, decision, fingerprint)
values (?1, ?2, ?3, ?4, ?5, ?6, ?7)
